/* Strides of arrays without gaps, from the rows in which a family says how its arrays lie. */
#ifndef FAMILY_DENSE_H
#define FAMILY_DENSE_H

#include <kiln/author/family.h>

#include "support/arena.h"

/* A stride argument, and its value over arguments and parameters. */
typedef struct dense_stride {
    const char *arg, *value;
} dense_stride;

/* The strides of one row: gives the count and the array of them. Whether the row counts, row->when says. */
size_t dense_strides(arena *a, const kiln_family *family, const kiln_dense *row, const dense_stride **list);

#endif
