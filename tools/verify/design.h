/* Sizes as a pairwise covering design: every value of one argument runs together with every value of every other
 * argument. Few rows suffice, since a row covers many pairs. Finds mistakes that need certain values of one or two
 * arguments. */
#ifndef VERIFY_DESIGN_H
#define VERIFY_DESIGN_H

#include "sizes.h"

enum { MOST_AXES = 12, MOST_AXIS_VALUES = 12 };

/* Which values an axis has. */
typedef enum axis_kind {
    AXIS_SIZE, /* 0 to 3, a prime, a power of two, that power plus one, and the largest; 1 is the usual value */
    AXIS_OPTION, /* the values of AXIS_SIZE; 0 is the usual value */
    AXIS_CHOICE  /* 0 to `most`; 0 is the usual value */
} axis_kind;

/* An argument, or a quantity from which a plan derives arguments. */
typedef struct size_axis {
    const char *name;
    uint64_t unit;    /* the argument is this many times the value */
    uint64_t most;    /* the largest value; 0: limited by rules and limits only */
    uint64_t largest; /* if `most` is 0, caps the value; 0: no cap */
    axis_kind kind;
    const uint64_t *widths; /* further values, if multiples of the unit; the other axes have usual values */
    size_t width_count;
} size_axis;

/* Widths of published models' matrices, from their config.json. */
enum { MODEL_WIDTHS = 20 };
extern const uint64_t model_widths[MODEL_WIDTHS];

/* Returns the largest k of a tiled product, whose padding costs as much as elements do. */
uint64_t design_largest_k(const problem *p);

/* Sets the scalars of plan->problem from the axes' values, which are in units. */
typedef void size_setter(size_plan *plan, const uint64_t values[MOST_AXES]);

/* Notes rows in which each pair of values occurs. plan->excluded names the pairs that a rule or a limit excludes
 * even with the smallest values of the other axes. Then adds further values of each axis without `most`, one row
 * each: small ones and those around powers of two. A row has at most `most_work` elements, as the manifest counts
 * them. `set` may be null if each axis is an argument and no other scalar depends on them. */
void size_plan_cover(size_plan *plan, const size_axis *axes, size_t count, size_setter *set,
                     uint64_t most_work);

#endif
