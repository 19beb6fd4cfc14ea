/* What to measure: the shapes of the configuration or of a file, and one of them as a variant's sizes. */
#ifndef TUNE_SHAPES_H
#define TUNE_SHAPES_H

#include "../verify/problem.h"

typedef struct tune_shape {
    const char *family;
    const char *place; /* "shapes.yaml:4"; of the configuration: the bundle's name */
    manifest_size *sizes;
    size_t size_count;
    const manifest_shape *item; /* of the configuration, with the contract that it asks for; null: any */
} tune_shape;

typedef struct shape_list {
    tune_shape *items;
    size_t count;
} shape_list;

/* A list of {family: NAME, shape: {SIZE: VALUE, ...}}. A VALUE is a number, a list of numbers, a range {from: 1, to: 512}, or an
 * expression over sizes and parameters. Each number of a list makes a shape; so do the ends of a range, the powers of two in it
 * and t and t + 1 for each number t that a tuning parameter can have. False after messages. */
bool shapes_read(pool *p, const char *path, const manifest *m, shape_list *out);

/* Those of the configuration. */
void shapes_of_manifest(pool *p, const manifest *m, shape_list *out);

/* Whether the variant is to be measured at the shape. */
bool shape_is_for(const tune_shape *s, const manifest_variant *v);

/* Parses a shape on one line: "m=1 q_row_stride=q_heads*head_dim". A value is a number or an expression
 * without spaces; a name is a size of some variant of the family. False after writing a message. */
bool shape_parse(pool *p, const manifest *m, const char *family, const char *words, tune_shape *out,
                 char *error, size_t error_bytes);

typedef enum shape_fit {
    SHAPE_FITS,
    SHAPE_RULED_OUT,  /* by a rule or the device's shared memory; the message says which */
    SHAPE_INCOMPLETE, /* this variant needs a size that the shape does not name; the message says which */
    SHAPE_WRONG       /* a mistake in the shape; likewise */
} shape_fit;

/* Gives the problem's integer arguments their values and makes optional inputs null. A stride that the shape does not name
 * is that of arrays without gaps. Another size that it does not name gets the least value that the rules allow, as where the
 * variants were chosen; in a file, a size that buffers or the grid depend on has to be named. Expressions see all numbers, and
 * earlier expressions. */
shape_fit shape_apply(const tune_shape *s, problem *p, char *error, size_t error_bytes);

/* "m: 1, n: 4096": what a tuned file has of a shape that was applied, the same for all variants that compete. Usual
 * values are left out, and sizes that are expressions unless the cost or grid of one of these variants counts with them. */
void shape_describe(const tune_shape *s, const manifest *m, problem *p, char *text, size_t bytes);

/* Prints the sizes that shapes of each family have to name, as a shapes file to fill in. */
void shapes_print_template(const manifest *m);

/* Whether the bundle has another variant for the same calls: one of a family, with the same values of what callers name. */
bool shape_has_rival(const manifest *m, const manifest_variant *v);

#endif
