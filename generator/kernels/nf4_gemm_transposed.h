/* The bodies of nf4_gemm_transposed, one per strategy, and what they share. */
#ifndef KERNELS_NF4_GEMM_TRANSPOSED_H
#define KERNELS_NF4_GEMM_TRANSPOSED_H

#include <kiln/author/family.h>

enum { TRANSPOSED_TILE_K = 512 }; /* of C, per thread block */

void nf4_gemm_transposed_emit_simt(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_transposed_shape_simt(kiln_shape *s, const kiln_variant *v);
void nf4_gemm_transposed_shape_mma(kiln_shape *s, const kiln_variant *v);

typedef struct transposed_args {
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k;
    ptx_type wide;    /* of sums */
    uint32_t split_k; /* thread blocks that share n; above 1 there are workspace and tile_counters */
} transposed_args;

transposed_args transposed_declare_args(ptx_fn *f, const kiln_variant *v);

/* Where n is split: adds the parts' sums. Each thread passes `count` variables. Where the predicate that it returns holds, in
 * all threads of the tile's last thread block, they become the sums over all parts. All threads must get here. */
ptx_val transposed_add_parts(ptx_fn *f, const transposed_args *given, uint32_t threads, ptx_val sums[],
                             uint32_t count);

#endif
