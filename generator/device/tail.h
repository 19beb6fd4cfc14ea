/* Tails: rows and columns beyond the last one. */
#ifndef DEVICE_TAIL_H
#define DEVICE_TAIL_H

#include <kiln/author/ptx.h>

/* Clamps an index to the last row or column: out-of-bounds results are computed, but not stored. */
ptx_val tail_clamp(ptx_fn *f, ptx_val index, ptx_val count);

/* Loads `count` neighbouring elements of a type, or zeros if out of bounds. A null `in_bounds` means true. */
void tail_load(ptx_fn *f, ptx_type type, uint32_t count, ptx_val out[], ptx_val from,
               const ptx_val *in_bounds, int hints);

/* Sets `count` variables to neighbouring elements in memory. */
void tail_set(ptx_fn *f, uint32_t count, const ptx_val variables[], ptx_val from, int hints);

#endif
