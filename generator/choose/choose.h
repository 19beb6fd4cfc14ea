/* Chooses variants for items with shapes: the fewest that are fast at the shapes and serve every legal call. */
#ifndef CHOOSE_CHOOSE_H
#define CHOOSE_CHOOSE_H

#include "plan/plan.h"
#include "support/diagnostics.h"

typedef struct choose_options {
    const char *lock;    /* the lock file; null: the one beside the configuration, if it exists */
    bool ignores_lock;   /* chooses again */
    uint32_t candidates; /* fastest variants of each contract to keep in addition, for measuring */
    text *summary;       /* gets a line for each contract; may be null */
} choose_options;

/* Appends the variants for items with shapes to the plan, from the lock or by choosing. A callback of config_options; `options`
 * is a choose_options. */
void choose_variants(arena *a, plan *p, diagnostics *d, const void *options);

#endif
