/* Elements of matrices, and tails: rows and columns beyond the last one. */
#ifndef DEVICE_TAIL_H
#define DEVICE_TAIL_H

#include <kiln/author/ptx.h>

/* Points to an element of a matrix in global memory, whose rows are `stride` elements apart. */
static inline ptx_val tail_element(ptx_fn *f, ptx_val matrix, ptx_val row, ptx_val stride, ptx_val column)
{
    return ptx_at(f, ptx_at(f, matrix, ptx_mul_wide(f, row, stride)), column);
}

/* Clamps an index to the last row or column: out-of-bounds results are computed, but not stored. */
ptx_val tail_clamp(ptx_fn *f, ptx_val index, ptx_val count);

/* Loads `count` neighbouring elements of a type, or zeros if out of bounds. A null `in_bounds` means true. */
void tail_load(ptx_fn *f, ptx_type type, uint32_t count, ptx_val out[], ptx_val from,
               const ptx_val *in_bounds, int hints);

/* Sets `count` variables to neighbouring elements in memory. */
void tail_set(ptx_fn *f, uint32_t count, const ptx_val variables[], ptx_val from, int hints);

#endif
