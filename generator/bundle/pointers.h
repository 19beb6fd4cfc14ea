/* What a launch asks of the pointers that it is given, as the tables that the runtime reads. */
#ifndef BUNDLE_POINTERS_H
#define BUNDLE_POINTERS_H

#include "model.h"

/* Fills in the family's tables: first the one of what every variant asks, then those of what only some ask beside. */
void pointers_make(arena *a, bundle_family *f);

/* The tables as C; an empty one is left out. */
void pointers_write(arena *a, text *out, const bundle_family *f);

/* What checks a table that is not empty, of the argument struct that `a` points at: a status, for what `head` does. */
void pointers_write_check(arena *a, text *out, const bundle_family *f, const pointer_table *table,
                          const char *head);

#endif
