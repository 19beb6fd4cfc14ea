/* Chooses sizes from the manifest, for a family without a plan. */
#ifndef VERIFY_FILL_H
#define VERIFY_FILL_H

#include "sizes.h"

/* Varies all sizes around a base, one at a time and together, also around the bounds of rules. If a size combined
 * with the base has too many elements, it is tried with the smallest values of the others. */
void size_plan_fill(size_plan *plan, uint64_t seed);

#endif
