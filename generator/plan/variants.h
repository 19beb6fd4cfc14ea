/* Expands a configuration's requests to variants with names. */
#ifndef PLAN_VARIANTS_H
#define PLAN_VARIANTS_H

#include "family/request.h"
#include "plan.h"

/* Fills in defaults and appends every combination to the plan, whose targets are known: the family's first parameter
 * changes slowest, values in the order listed. Diagnostics: too many variants; combinations that break a constraint,
 * once for each, except in a request for the legal ones that has any; variants that run on no target, once for each
 * lowest target. */
void request_expand(arena *a, request *r, plan *p, diagnostics *d);

/* Gives each omitted parameter its default. */
void request_fill_defaults(arena *a, request *r);

/* The first variant, of a family or (null) of any, whose images variant i shares: the kernels of a module have its files. Those
 * of an emitted kernel are its own. */
size_t plan_image_owner(const plan *p, size_t i, const kiln_family *family);

/* Diagnostics for two variants with one identity, key or entry, and for a target that some family of the plan leaves
 * without a variant; places[i] is where targets[i] was listed. */
void plan_check(arena *a, const plan *p, const place *places, diagnostics *d);

#endif
