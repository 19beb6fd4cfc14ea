/* Generates all images of a plan, on several processors. */
#ifndef BUNDLE_BAKE_H
#define BUNDLE_BAKE_H

#include "images.h"

typedef struct baked {
    image *images;
    size_t count;
} baked;

/* The images of each variant, in the plan's order; none where it shares an earlier variant's. The result does not depend on
 * plan->jobs. If kernels fail, the first of them ends the generator. */
baked *bake_all(arena *a, const plan *p, spool *s);

#endif
