/* What the products with NF4 weights, either way, start and end with: arguments, the table, the sums over parts of a split. */
#ifndef KERNELS_NF4_ARGS_H
#define KERNELS_NF4_ARGS_H

#include <kiln/author/family.h>

#include "device/nf4_pairs.h"

typedef struct nf4_args {
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k;
    ptx_type type, wide; /* of A and C; of sums */
    uint32_t split_k;    /* thread blocks that share a sum; above 1 there are workspace and tile_counters */
} nf4_args;

nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v);

/* The table of a variant's nibbles and `table`, of `type`; `reserved` bytes may lie before it in shared memory. */
nf4_pairs nf4_table(ptx_fn *f, const kiln_variant *v, ptx_type type, uint32_t reserved);

/* Whether each column's scales, `blocks` of them, start at a multiple of 16 bytes. */
ptx_val nf4_has_aligned_scales(ptx_fn *f, const nf4_args *args, ptx_val blocks);

/* Where a sum is split: adds the parts' sums. Each of the first `threads` threads passes `count` variables. Where the predicate that it returns holds,
 * in all threads of the tile's last thread block, they become the sums over all parts. All threads must get here. */
ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, ptx_val tid, uint32_t threads, ptx_val sums[],
                      uint32_t count);

#endif
