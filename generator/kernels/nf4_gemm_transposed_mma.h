/* What the files of the transposed NF4 product on tensor cores share: a variant while it is emitted. */
#ifndef KERNELS_NF4_GEMM_TRANSPOSED_MMA_H
#define KERNELS_NF4_GEMM_TRANSPOSED_MMA_H

#include "device/nf4_pairs.h"
#include "nf4_gemm_transposed.h"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    TILE_K = TRANSPOSED_TILE_K,
    WARP_K = TILE_K / WARPS, /* a quantised block, which has one scale */
    CHUNK = 32,              /* columns of a stage */
    STEP = 16,               /* columns of one mma, or of two */
    STEPS = CHUNK / STEP,
    FOLD = 1024 / CHUNK, /* stages that one set of sums takes: see nf4_gemm_transposed_mma.c */
    COLUMN_BYTES = TILE_K / 2,
    CODES_BYTES = CHUNK * COLUMN_BYTES,
    CODES_LOADS = CODES_BYTES / 16 / THREADS,
    SCALES_STRIDE = 8 * CHUNK / 2 + 16, /* bytes from one warp's to the next's, without bank conflicts */
    SCALES_BYTES = WARPS * SCALES_STRIDE,
    ROW_BYTES = 2 * CHUNK + 32, /* of A; likewise */
    LANE_K = 8,
    FRAGMENTS = LANE_K / 2,
    MOST_GROUPS = 8 /* of 8 rows */
};

typedef struct transposed_mma {
    ptx_fn *f;
    ptx_type type, pair; /* f16, f16x2, or bf16 */
    uint32_t groups, vector;
    bool has_sm_80, is_high_first, is_tf32; /* products in tf32 of A in f16 */

    nf4_pairs pairs;
    transposed_args args;
    ptx_val tid, lane, warp, quad, member; /* group of 8 rows; lane of the four */
    ptx_val first_k, first_row, minus_zero;
    ptx_val codes_at, scales_at, a_at[MOST_GROUPS], a_column; /* where loads start, for column 0 */
    ptx_val code_column, scale_column;
    ptx_val codes_to, scales_to, a_to, codes_from, scales_from, a_from; /* in the first buffer */
    ptx_val buffer;                                                     /* bytes to the buffer in use */
    ptx_val codes[CODES_LOADS][4], scales[2], a[MOST_GROUPS];           /* being loaded */
    ptx_val sum[FRAGMENTS][MOST_GROUPS][4], total; /* total of earlier sums, in local memory */
} transposed_mma;

/* All threads of the thread block copy 32 columns: find them, load them into registers, store these to shared memory. */
void transposed_init_columns(transposed_mma *g);
void transposed_load_columns(transposed_mma *g, ptx_val chunk);
void transposed_store_columns(transposed_mma *g);

ptx_val transposed_shared_at(const transposed_mma *g, ptx_type type, ptx_val address, uint32_t bytes);

#endif
