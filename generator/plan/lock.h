/* A lock file: the variants that were chosen for a configuration's items with shapes, as plain items, so that a later kiln with
 * other estimates makes the same bundle. */
#ifndef PLAN_LOCK_H
#define PLAN_LOCK_H

#include "plan.h"

/* XXH3, 128 bit, as 32 hexadecimal digits. */
enum { LOCK_HASH_BYTES = 33 };

typedef struct lock {
    place at;          /* of `asked` */
    const char *asked; /* the hash that it was made for */
    bool is_edited;    /* its variants are not those that `chosen` was written for; false without it */
    variant **variants;
    size_t count;
} lock;

/* A hash of what the variants are chosen for: the items with shapes, targets, limits of bytes, compression and tuned
 * files. Orders do not matter, nor do the estimates. */
void lock_hash(arena *a, const plan *p, char hash[LOCK_HASH_BYTES]);

/* Where the lock of a configuration lies: NAME.lock.yaml for NAME.yaml; null: it came through a pipe. */
const char *lock_path(arena *a, const plan *p);

/* Reads one, and notes in the plan that it did. Variants that run on no target of the plan are left out. False after
 * diagnostics. */
bool lock_read(arena *a, plan *p, const char *path, lock *out, diagnostics *d);

/* The same for a text already in memory. */
bool lock_read_text(arena *a, plan *p, const char *path, const char *data, size_t bytes, lock *out,
                    diagnostics *d);

/* The text of one; `candidates` of each contract besides the chosen variants, 0: none. */
void lock_print(text *out, const plan *p, variant *const *variants, size_t count, uint32_t candidates);

#endif
