/* Bakes all images of a plan, on several processors. */
#ifndef BUNDLE_BAKE_H
#define BUNDLE_BAKE_H

#include "images.h"

typedef struct baked {
    image *images;
    size_t count;
} baked;

/* Of each variant of the plan in its place; none where it shares an earlier one's. The result does not depend on plan->jobs. A kernel
 * that fails ends the generator as it does by itself, the first of those that fail. */
baked *bake_all(arena *a, const plan *p, spool *s);

#endif
