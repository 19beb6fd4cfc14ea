/* Shapes and strides of contiguous arrays, from the family's dense rows. */
#ifndef FAMILY_DENSE_H
#define FAMILY_DENSE_H

#include <kiln/author/family.h>

#include "variant.h"

/* A stride argument, and its value over arguments and parameters. */
typedef struct dense_stride {
    const char *arg, *value;
} dense_stride;

/* The strides of one row: returns the count and sets the array. row->when tells whether the row applies. */
size_t dense_strides(arena *a, const kiln_family *family, const kiln_dense *row, const dense_stride **list);

/* Whether the row applies to a variant that `common` stands for; null: to any. */
bool dense_applies(arena *a, const kiln_family *family, const kiln_dense *row, const variant *common);

/* "[batch, rows, 128] or [pages, size, 128]": the rows that apply, or the shape if no row has the argument. Substitutes
 * the values on which the variants of `common` agree, and omits dimensions that are then 1. */
const char *dense_shape(arena *a, const kiln_family *family, const kiln_arg *arg, const variant *common);

#endif
