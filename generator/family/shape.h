/* What a variant takes of a multiprocessor, as its family's `shape` says. */
#ifndef FAMILY_SHAPE_H
#define FAMILY_SHAPE_H

#include "variant.h"

extern const target oldest_target;

/* As the family fills it, of any combination, for one target; `alike` is narrowed as kiln_variant says,
 * `noted` gets its constraints; both may be null. */
kiln_shape shape_ask(const variant *v, target t, target_range *alike, struct kiln_constraints *noted);

/* For one target; a shape that no device takes is an error of the family. The variant is a legal one. */
kiln_shape shape_for(const variant *v, target t, target_range *alike);

/* Fills v->shape, v->runs_on, and v->blocks: a target may leave room for another number of thread blocks, of which the shape has
 * the least. A family whose shape differs otherwise between targets is an error. */
void variant_fill_shape(arena *a, variant *v, const target *targets, size_t count);

/* Whether the variant, whose shape is filled in, can be emitted for a target. */
bool variant_runs_on(const variant *v, target t);

#endif
