/* Thread blocks that share the keys of a tile of queries (split-K): each has a part of the keys, and the last to arrive
 * joins all parts in their order, so that the result does not depend on which one is last. */
#ifndef KERNELS_ATTENTION_SPLIT_H
#define KERNELS_ATTENTION_SPLIT_H

#include "attention.h"
#include "device/softmax.h"

/* A lane's share of a row of O, not yet divided by the row's sum. */
typedef struct attention_slice {
    ptx_val number;              /* the row's; may be out of bounds */
    ptx_val column;              /* its first */
    uint32_t width, step, count; /* `count` vectors of `width` columns, `step` columns apart */
    softmax_row *row;
    ptx_val *sums; /* variables: width * count */
} attention_slice;

/* Stores the slices of this part. The predicate that it returns holds in one thread block of the tile, the last to arrive:
 * all parts are stored. All threads of the thread block must get here: it has barriers. */
ptx_val attention_leave_part(const attention *a, const attention_slice slices[], uint32_t count, ptx_val tid);

/* In that thread block: joins the slices and their rows over all parts. */
void attention_join_parts(const attention *a, const attention_slice slices[], uint32_t count);

#endif
