/* Softmax: exponentials, and a row's running softmax over tiles. `type` is that of scores and sums, F32 or F64. */
#ifndef DEVICE_SOFTMAX_H
#define DEVICE_SOFTMAX_H

#include <kiln/author/ptx.h>

/* -inf, the score of a masked key. */
ptx_val softmax_none(ptx_type type);

/* 2^x for x up to about 0. F64: within an ulp, 0 below 2^-1022. */
ptx_val softmax_exp2(ptx_fn *f, ptx_type type, ptx_val x);

/* ln(x) + top * ln(2). x is at least 1, or 0, or a NaN, which it returns. */
ptx_val softmax_log(ptx_fn *f, ptx_type type, ptx_val x, ptx_val top);

/* A row's running softmax, in powers of two: the sum is over 2^(score * factor - shift). */
typedef struct softmax_row {
    ptx_val shift; /* the largest score of a tile so far, times the factor; -inf if none */
    ptx_val sum;
} softmax_row;

void softmax_init_row(ptx_fn *f, ptx_type type, softmax_row *row);

/* Raises the shift to a tile's. Multiply earlier sums by the result. */
ptx_val softmax_raise(ptx_fn *f, ptx_type type, softmax_row *row, ptx_val shift);

/* The term to add to score * factor. */
ptx_val softmax_minus(ptx_fn *f, ptx_type type, const softmax_row *row);

/* Adds an attention sink's score, in powers of two, to the sum; -inf is none. Multiply the weighted sum by the result, in
 * addition to the share. */
ptx_val softmax_add_sink(ptx_fn *f, ptx_type type, softmax_row *row, ptx_val score);

/* 1 / sum, or 0 for a row without keys. */
ptx_val softmax_share(ptx_fn *f, ptx_type type, ptx_val sum);

#endif
