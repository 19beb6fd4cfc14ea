/* A variant's resources on a multiprocessor, as its family's `shape` sets them. */
#ifndef FAMILY_SHAPE_H
#define FAMILY_SHAPE_H

#include "variant.h"

extern const target oldest_target;

/* The shape that the family sets, of any combination, for one target. `alike` is narrowed as in kiln_variant, `noted`
 * gets the constraints; both may be null. */
kiln_shape shape_ask(const variant *v, target t, target_range *alike, struct kiln_constraints *noted);

/* The shape for one target; a shape that fits no device is an error of the family. The variant must be legal. */
kiln_shape shape_for(const variant *v, target t, target_range *alike);

/* Fills v->shape, v->runs_on, and v->blocks: the thread blocks per multiprocessor may depend on the target; the shape
 * has the smallest number. It is an error of the family if anything else depends on the target. */
void variant_fill_shape(arena *a, variant *v, const target *targets, size_t count);

/* Whether the variant, whose shape is filled in, can be emitted for a target. */
bool variant_runs_on(const variant *v, target t);

#endif
