/* What to measure: the shapes file, and a shape of it as a variant's sizes. */
#ifndef TUNE_SHAPES_H
#define TUNE_SHAPES_H

#include "../verify/problem.h"

/* A size that a shape names. */
typedef struct shape_size {
    const char *name;
    uint64_t number;
    formula *formula; /* over sizes and parameters; null: the number */
} shape_size;

typedef struct tune_shape {
    const char *family;
    const char *place; /* "shapes.yaml:4" */
    shape_size *sizes;
    size_t size_count;
} tune_shape;

typedef struct shape_list {
    tune_shape *items;
    size_t count;
} shape_list;

/* A list of {family: NAME, shape: {SIZE: VALUE, ...}}. A VALUE is a number, a list of numbers, each of which makes a shape, or
 * an expression over sizes and parameters. False after messages. */
bool shapes_read(pool *p, const char *path, const manifest *m, shape_list *out);

typedef enum shape_fit {
    SHAPE_FITS,
    SHAPE_RULED_OUT, /* a rule, the device's shared memory, or a size that is not named; the message says which */
    SHAPE_WRONG      /* a mistake of the shapes file; likewise */
} shape_fit;

/* Gives the problem's integer arguments their values. One that the shape does not name is the least that the rules allow; of
 * one that buffers or the grid depend on there is no such value. */
shape_fit shape_apply(const tune_shape *s, problem *p, char *error, size_t error_bytes);

/* "m: 1, n: 4096": what a tuned file has of a shape that was applied. Sizes that are expressions are left out, unless the
 * variant's cost or grid counts with them. */
void shape_describe(const tune_shape *s, problem *p, char *text, size_t bytes);

/* Prints the sizes that shapes of each family have to name, as a shapes file to fill in. */
void shapes_print_template(const manifest *m);

/* Whether the bundle has another variant for the same calls: one of a family, with the same values of what callers name. */
bool shape_has_rival(const manifest *m, const manifest_variant *v);

#endif
