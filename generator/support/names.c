/* A hash table with open addressing, at most half full. */
#include "names.h"

#include <string.h>

typedef struct name_slot {
    const char *name; /* null: free */
    size_t number;
} name_slot;

enum { FEWEST_SLOTS = 16 };

/* FNV-1a */
static uint64_t hash_of(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The slot of the name, or the free slot for it. */
static name_slot *slot_of(const name_table *t, const char *name, size_t length)
{
    size_t i = (size_t)hash_of(name, length) & (t->slot_count - 1);
    for (const char *other; (other = t->slots[i].name); i = (i + 1) & (t->slot_count - 1))
        if (strncmp(other, name, length) == 0 && other[length] == '\0')
            break;
    return &t->slots[i];
}

static void grow(arena *a, name_table *t)
{
    const name_table old = *t;
    t->slot_count = old.slot_count ? 2 * old.slot_count : FEWEST_SLOTS;
    t->slots = arena_alloc(a, t->slot_count * sizeof *t->slots);
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].name)
            *slot_of(t, old.slots[i].name, strlen(old.slots[i].name)) = old.slots[i];
}

size_t names_find(const name_table *t, const char *name, size_t length)
{
    const name_slot *slot = t->count > 0 ? slot_of(t, name, length) : NULL;
    return slot && slot->name ? slot->number : NAME_NONE;
}

size_t names_add(arena *a, name_table *t, const char *name, size_t number)
{
    if (2 * t->count >= t->slot_count)
        grow(a, t);
    name_slot *slot = slot_of(t, name, strlen(name));
    if (slot->name)
        return slot->number;
    *slot = (name_slot){name, number};
    t->count++;
    return NAME_NONE;
}
