/* What the products with NF4 weights, either way, start and end with: their arguments, and the sums over parts of a split. */
#ifndef KERNELS_NF4_ARGS_H
#define KERNELS_NF4_ARGS_H

#include <kiln/author/family.h>

typedef struct nf4_args {
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k;
    ptx_type type, wide; /* of A and C; of sums */
    uint32_t split_k;    /* thread blocks that share a sum; above 1 there are workspace and tile_counters */
} nf4_args;

nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v);

/* Where a sum is split: adds the parts' sums. Each thread passes `count` variables. Where the predicate that it returns holds,
 * in all threads of the tile's last thread block, they become the sums over all parts. All threads must get here. */
ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, uint32_t threads, ptx_val sums[], uint32_t count);

#endif
