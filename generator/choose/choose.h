/* Variants for items with shapes: the fewest that serve the shapes well and every legal call. */
#ifndef CHOOSE_CHOOSE_H
#define CHOOSE_CHOOSE_H

#include "plan/plan.h"
#include "support/diagnostics.h"

typedef struct choose_options {
    const char *lock;    /* a lock file to use; null: the one beside the configuration, where there is one */
    bool ignores_lock;   /* chooses anew */
    uint32_t candidates; /* of each contract, the fastest to keep beside the choice, to be measured */
    text *summary;       /* gets a line for each contract; may be null */
} choose_options;

/* For config_options: appends the variants of the items with shapes to the plan, from the lock or chosen. `options` is a
 * choose_options. */
void choose_variants(arena *a, plan *p, diagnostics *d, const void *options);

#endif
