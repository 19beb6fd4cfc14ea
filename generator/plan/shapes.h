/* Shapes: the sizes of calls, as configurations and tuned files name them. */
#ifndef PLAN_SHAPES_H
#define PLAN_SHAPES_H

#include "family/variant.h"

/* A size that a shape does not name as a number. */
#define SHAPE_ANY_SIZE UINT64_MAX

typedef struct call_shape {
    place at;
    uint64_t *sizes; /* by argument of the family; SHAPE_ANY_SIZE: not named, or an expression */
    const char *
        *expressions;    /* by argument: over the shape's other sizes and contract parameters; null: none */
    const size_t *order; /* the arguments that are expressions, each after the sizes that it uses */
    size_t order_count;
    bool is_inner; /* from inside a range, not one of its ends: skipped if a rule forbids it */
} call_shape;

size_t family_arg_count(const kiln_family *family);

/* Whether shapes name the argument: an integer. And all such arguments of a family, as words. */
bool arg_is_size(const kiln_arg *arg);
const char *family_size_names(arena *a, const kiln_family *family);

/* "m=1 n=4096": the sizes that the shape names; expressions as written. */
const char *call_shape_text(arena *a, const kiln_family *family, const call_shape *s);

#endif
