/* Bakes all images of a plan, on several processors. */
#ifndef BUNDLE_BAKE_H
#define BUNDLE_BAKE_H

#include "images.h"

typedef struct baked {
    image *images;
    size_t count;
} baked;

/* Returns the images of each variant of the plan, in order; external PTX has none. The result does not depend on
 * plan->jobs. If kernels fail, the first of them ends the generator, as it would alone. */
baked *bake_all(arena *a, const plan *p, spool *s);

#endif
