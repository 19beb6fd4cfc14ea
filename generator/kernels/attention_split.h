/* Thread blocks that share the keys of a tile of queries: each has its own part of them, and the last to arrive joins what
 * all have, in the order of their parts, so that the result does not depend on who that is. */
#ifndef KERNELS_ATTENTION_SPLIT_H
#define KERNELS_ATTENTION_SPLIT_H

#include "attention.h"

/* What a lane has of a row of O, not divided by its sum yet. */
typedef struct attention_slice {
    ptx_val number;              /* the row's; may be behind the last */
    ptx_val column;              /* its first */
    uint32_t width, step, count; /* vectors of `width` columns, `step` columns apart, so many of them */
    attention_row *row;
    ptx_val *sums; /* variables: width * count */
} attention_slice;

/* Writes the slices of this part down. A predicate: all parts of the tile are there; it holds in one thread block. Has
 * barriers; all threads come here. */
ptx_val attention_leave_part(const attention *a, const attention_slice slices[], uint32_t count, ptx_val tid);

/* The slices and their rows over all parts, in that thread block. */
void attention_join_parts(const attention *a, const attention_slice slices[], uint32_t count);

#endif
