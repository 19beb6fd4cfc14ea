/* A lock file lists the variants chosen for a configuration's items with shapes, as plain items, so that a later kiln with other
 * estimates makes the same bundle. */
#ifndef PLAN_LOCK_H
#define PLAN_LOCK_H

#include "plan.h"

/* XXH3, 128 bit, as 32 hexadecimal digits. */
enum { LOCK_HASH_BYTES = 33 };

typedef struct lock {
    place at;          /* of `asked` */
    const char *asked; /* the lock_hash of the configuration that it was made for */
    bool is_edited;    /* its variants do not match its hash `chosen`; false without that hash */
    variant **variants;
    size_t count;
} lock;

/* Hashes the inputs of a choice: the items with shapes, targets, limits of bytes, compression and tuned files. Their order and
 * the estimates do not matter. */
void lock_hash(arena *a, const plan *p, char hash[LOCK_HASH_BYTES]);

/* The path of a configuration's lock: NAME.lock.yaml for NAME.yaml; null: the configuration is a pipe. */
const char *lock_path(arena *a, const plan *p);

/* Reads a lock, and records in the plan that it was read. Skips variants that run on no target of the plan. False after
 * diagnostics. */
bool lock_read(arena *a, plan *p, const char *path, lock *out, diagnostics *d);

bool lock_read_text(arena *a, plan *p, const char *path, const char *data, size_t bytes, lock *out,
                    diagnostics *d);

/* Prints a lock; `candidates`: how many of each contract it holds besides the chosen variants. */
void lock_print(text *out, const plan *p, variant *const *variants, size_t count, uint32_t candidates);

#endif
