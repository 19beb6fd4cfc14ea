/* From what a configuration asks for to variants with names. */
#ifndef PLAN_VARIANTS_H
#define PLAN_VARIANTS_H

#include "family/request.h"

/* Fills in defaults and appends every combination to the plan, whose targets are known: the family's first parameter
 * changes slowest, values in the order listed. Diagnostics: too many; combinations that break a constraint, once for
 * each, but for a request of the legal ones that has any; variants that run on no target, once for each lowest one. */
void request_expand(arena *a, request *r, plan *p, size_t *capacity, diagnostics *d);

/* Gives a variant with values its id, key and entry.
 *
 * The entry is the family and its values joined by '_'; a boolean is its parameter's name, with "no" before it when
 * false: attention_f16_128_nocausal. */
void variant_name(arena *a, kiln_variant *v);

/* Diagnostics for two variants with one identity, key or entry, and for a target that some family of the plan leaves
 * without a variant; places[i] is where targets[i] was listed. */
void plan_check(arena *a, const plan *p, const place *places, diagnostics *d);

#endif
