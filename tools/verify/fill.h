/* Sizes for a family without a plan, from the manifest. */
#ifndef VERIFY_FILL_H
#define VERIFY_FILL_H

#include "sizes.h"

/* Varies all sizes around a base, one at a time and together, also around the bounds of rules. A size with too many elements
 * beside the base is tried with the smallest values of the others. */
void size_plan_fill(size_plan *plan, uint64_t seed);

#endif
