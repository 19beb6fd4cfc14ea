/* Shapes and strides of arrays without gaps, from the rows in which a family says how its arrays lie. */
#ifndef FAMILY_DENSE_H
#define FAMILY_DENSE_H

#include <kiln/author/family.h>

#include "variant.h"

/* A stride argument, and its value over arguments and parameters. */
typedef struct dense_stride {
    const char *arg, *value;
} dense_stride;

/* The strides of one row: gives the count and the array of them. Whether the row counts, row->when says. */
size_t dense_strides(arena *a, const kiln_family *family, const kiln_dense *row, const dense_stride **list);

/* Whether the row counts for a variant that `common` stands for; null: for any. */
bool dense_applies(arena *a, const kiln_family *family, const kiln_dense *row, const variant *common);

/* "[batch, rows, 128] or [pages, size, 128]": the rows that count, or the shape if no row has the argument. What the variants that
 * `common` stands for agree on is put in, and a dimension that is 1 by that is left out. */
const char *dense_shape(arena *a, const kiln_family *family, const kiln_arg *arg, const variant *common);

#endif
