/* Maps names to numbers, in constant time. */
#ifndef SUPPORT_NAMES_H
#define SUPPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/* All zero: empty. */
typedef struct name_table {
    struct name_slot *slots;
    size_t count, slot_count;
} name_table;

#define NAME_NONE SIZE_MAX

/* Returns the number of a name, or NAME_NONE. */
size_t names_find(const name_table *t, const char *name, size_t length);

/* Adds a name, which must live as long as the table. Returns NAME_NONE, or the number that the name already
 * has and keeps. */
size_t names_add(arena *a, name_table *t, const char *name, size_t number);

#endif
