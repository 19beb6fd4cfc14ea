/* Chooses what to measure: reads shapes from the configuration or a file, and applies one to a variant. */
#ifndef TUNE_SHAPES_H
#define TUNE_SHAPES_H

#include "../verify/problem.h"

typedef struct tune_shape {
    const char *family;
    const char *place; /* "shapes.yaml:4"; for the configuration, the bundle's name */
    manifest_size *sizes;
    size_t size_count;
    const manifest_shape *item; /* of the configuration, with its contract; null: any */
} tune_shape;

typedef struct shape_list {
    tune_shape *items;
    size_t count;
} shape_list;

/* Reads a list of {family: NAME, shape: {SIZE: VALUE, ...}}. A VALUE is a number, a list of numbers, a range
 * {from: 1, to: 512}, or an expression over sizes and parameters. Each number of a list makes a shape. A range
 * makes a shape of its ends, of the powers of two in it, and of t and t + 1 for each number t that a tuning
 * parameter can have. False after messages. */
bool shapes_read(pool *p, const char *path, const manifest *m, shape_list *out);

/* Adds the configuration's shapes. */
void shapes_of_manifest(pool *p, const manifest *m, shape_list *out);

/* Returns whether to measure the variant at the shape. */
bool shape_is_for(const tune_shape *s, const manifest_variant *v);

/* Parses a shape on one line: "m=1 q_row_stride=q_heads*head_dim". A value is a number or an expression
 * without spaces; a name is a size of some variant of the family. False after writing a message. */
bool shape_parse(pool *p, const manifest *m, const char *family, const char *words, tune_shape *out,
                 char *error, size_t error_bytes);

typedef enum shape_fit {
    SHAPE_FITS,
    SHAPE_RULED_OUT,  /* a rule or the device's shared memory forbids it; the message says which */
    SHAPE_INCOMPLETE, /* the shape lacks a size that the variant needs; the message names it */
    SHAPE_WRONG       /* a mistake in the shape; the message describes it */
} shape_fit;

/* Sets the problem's integer arguments, and makes optional inputs null. An unnamed stride is that of arrays
 * without gaps. Any other unnamed size gets the smallest value that the rules allow, as when the variants were
 * chosen; but a shape from a file must name the sizes that buffers or the grid depend on. Expressions see all
 * numbers, and earlier expressions. */
shape_fit shape_apply(const tune_shape *s, problem *p, char *error, size_t error_bytes);

/* Writes "m: 1, n: 4096", an applied shape as a tuned file has it, the same for all competing variants. Leaves out
 * usual values, and sizes that are expressions unless the cost or grid of a competing variant depends on them. */
void shape_describe(const tune_shape *s, const manifest *m, problem *p, char *text, size_t bytes);

/* Prints a shapes file to fill in, with the sizes that each family's shapes must name. */
void shapes_print_template(const manifest *m);

/* Returns whether the bundle has another variant for the same calls: of the same family, with the same values of
 * parameters that callers name. */
bool shape_has_rival(const manifest *m, const manifest_variant *v);

#endif
