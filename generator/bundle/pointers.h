/* Requirements of a launch's pointers, as the tables that the runtime reads. */
#ifndef BUNDLE_POINTERS_H
#define BUNDLE_POINTERS_H

#include "model.h"

/* Fills in the family's tables: first the requirements of every variant, then those of some. */
void pointers_make(arena *a, bundle_family *f);

/* Prints the tables as C; skips empty ones. */
void pointers_write(arena *a, text *out, const bundle_family *f);

/* Prints `head`, and after it a call that checks the pointers of the argument struct `a` and returns a
 * status. The table must not be empty. */
void pointers_write_check(arena *a, text *out, const bundle_family *f, const pointer_table *table,
                          const char *head);

#endif
