/* What a variant takes of a multiprocessor, and which combinations a family refuses: both from the family's `shape`. */
#ifndef GENERATOR_SHAPE_H
#define GENERATOR_SHAPE_H

#include "plan.h"

/* One call of kiln_require. */
typedef struct constraint {
    const char *params, *text;
    bool holds;
} constraint;

typedef struct kiln_constraints {
    arena *arena;
    constraint *items;
    size_t count, capacity;
} constraints;

/* The family's constraints, and whether they hold for the variant; in the order in which the family says them. */
constraints constraints_of(arena *a, const kiln_variant *v);

/* The variant with the family's defaults: for what is true of all. */
kiln_variant *family_default_variant(arena *a, const kiln_family *family);

/* For one target; a shape that no device takes is an error of the family. The variant is a legal one. */
kiln_shape shape_for(const kiln_variant *v, target t);

/* Fills v->shape, v->runs_on, and v->blocks: a target may leave room for another number of thread blocks, of which the shape has
 * the least. A family whose shape differs otherwise between targets is an error. */
void variant_fill_shape(arena *a, kiln_variant *v, const plan *p);

/* Whether the variant, whose shape is filled in, can be emitted for a target. */
bool variant_runs_on(const kiln_variant *v, target t);

#endif
