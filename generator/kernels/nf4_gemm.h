/* The bodies of nf4_gemm, one per strategy, and of nf4_gemm_transposed on tensor cores. */
#ifndef KERNELS_NF4_GEMM_H
#define KERNELS_NF4_GEMM_H

#include "nf4_args.h"

/* Emit strategy simt with tile_m up to 8, and from 16 on. */
void nf4_gemm_emit_simt(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_emit_wide(ptx_fn *f, const kiln_variant *v);

/* simt's scales in shared memory: those of a tile's columns, a chunk of each column at a time. The caller sets `args` and the
 * members from k_warp to `from`. */
typedef struct nf4_scales {
    ptx_fn *f;
    nf4_args *args;
    uint32_t columns, k_warps;
    uint32_t lanes; /* of a team, a warp or half of one, which copies a column's scales, four per lane */
    uint32_t step;  /* quantised blocks of a k_warp at once, a power of two; scales past the last one are 0 */
    uint32_t chunk, column_bytes; /* scales of a column at once; bytes from column to column */
    ptx_val k_warp;               /* this warp's */
    ptx_val blocks;               /* quantised blocks of a column */
    ptx_val first_column;         /* of the tile */
    ptx_val from;                 /* address of this lane's scale in the first step */
    ptx_val is_aligned; /* each column's scales start at a multiple of 16 bytes; poison if they are nested */
    ptx_val team, lane; /* this thread's team, and its lane there */
    ptx_val to;         /* address of the team's first column */
} nf4_scales;

nf4_scales nf4_scales_plan(ptx_fn *f, uint32_t columns, uint32_t k_warps, uint32_t lanes, uint32_t step);

/* Bytes of all columns, with the table of nested scales. */
uint32_t nf4_scales_bytes(const nf4_scales *s, const kiln_variant *v);

/* Sets is_aligned; `args` and `blocks` must be set. */
void nf4_scales_align(nf4_scales *s);

/* Sets up the copies to `at`, and fills the table of nested scales; `k_warp` must be set. */
void nf4_scales_init(nf4_scales *s, ptx_val tid, ptx_val lane, ptx_val at);

/* Adds a step's partial sums, row by row, times the scales of the lane's columns to `sums`. The columns are `apart` from each
 * other. */
void nf4_scales_add(const nf4_scales *s, ptx_val scales, uint32_t apart, uint32_t columns, uint32_t count,
                    const ptx_val partial[], const ptx_val sums[]);

/* The main loop: calls `multiply` for each of this k_warp's steps, with the step's first element along K and the address of
 * this lane's scale. */
void nf4_scales_each_step(const nf4_scales *s, void (*multiply)(void *strategy, ptx_val k, ptx_val scales),
                          void *strategy);

/* Emits strategies mma and tiles. */
void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v);

/* Shapes of the strategies, for any parameters; mma's and tiles' with their constraints. */
void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v);
void nf4_gemm_shape_simt(kiln_shape *s, const kiln_variant *v); /* tile_m up to 8 */
void nf4_gemm_shape_wide(kiln_shape *s, const kiln_variant *v); /* tile_m from 16 on */

enum { TRANSPOSED_TILE_K = 512 }; /* columns of nf4_gemm_transposed's C per thread block */

void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_transposed_shape_mma(kiln_shape *s, const kiln_variant *v);

#endif
