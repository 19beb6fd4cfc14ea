/* What the files of the NF4 product on tensor cores share: a variant while it is emitted. */
#ifndef KERNELS_NF4_GEMM_MMA_H
#define KERNELS_NF4_GEMM_MMA_H

#include <kiln/author/family.h>

#include "device/nf4_pairs.h"

enum {
    MMA_WARP_LANES = 32,
    MMA_BLOCK_K = 64, /* a quantised block: weights that share a scale */
    MMA_ROWS = 8,     /* of A in one product */
    MMA_COLUMNS = 16, /* of B */
    MMA_PAD_WORDS = 4,
    MMA_PAD_BYTES = 16,  /* so that rows in shared memory start in different banks */
    MMA_MOST_GROUPS = 2, /* of 16 columns, per warp */
    MMA_MOST_ROW_TILES = 16,
    MMA_MOST_DEPTH = 4,
    MMA_MOST_COPIES = 16, /* per thread and stage */
    MMA_MOST_SUMS = 64    /* that a thread adds over the k_warps */
};

typedef struct mma_gemm {
    ptx_fn *f;
    ptx_type type; /* of A and C */
    uint32_t tile_m, tile_n, k_warps, stages, split_k;
    uint32_t groups, row_tiles, column_warps, threads;
    bool has_sm_80;
    bool is_wide;          /* warps have different columns */
    uint32_t depth;        /* quantised blocks whose codes a warp prefetches: those of an iteration */
    uint32_t stage_blocks; /* quantised blocks of A that are copied at once, per k_warp */
    uint32_t chunk;        /* quantised blocks whose scales are copied at once */
    uint32_t scale_row_bytes, a_row_bytes, a_stage_bytes, scale_copies, a_copies;

    nf4_pairs pairs;
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k; /* arguments */
    ptx_val tid, lane, g, t, k_warp, column_warp;
    ptx_val first_row, first_column;  /* of the tile */
    ptx_val shared, scales, a_stages; /* addresses in shared memory */
    ptx_val first_block, block_count; /* quantised blocks of this thread block's part of K */

    /* This thread's copies of scales and of A: source, destination, and the end of their quantised blocks. */
    ptx_val scale_from, column_bytes, columns_left, column_of[MMA_MOST_COPIES]; /* see scale_at */
    ptx_val scale_to, scale_end, scale_next_end;
    ptx_val a_from, a_step, a_bytes[MMA_MOST_COPIES], a_to, a_end[2 * MMA_MOST_DEPTH];
    ptx_val scales_read, a_read; /* where this lane reads them */
    ptx_val ring;                /* bytes to this iteration's scales in their ring */
    ptx_val toggle_to, toggle_read, toggle_a_to,
        toggle_a; /* double buffers: the sum of the two addresses, by which one toggles */
    ptx_val
        end[2 * MMA_MOST_DEPTH]; /* `done` below which this warp's first block is in bounds, its next, ... */

    ptx_val codes_at[MMA_MOST_GROUPS][2]; /* of this lane, the next to be loaded */
    ptx_val codes[MMA_MOST_DEPTH][MMA_MOST_GROUPS][2][2];
    ptx_val scale_of[MMA_MOST_GROUPS][2][MMA_MOST_DEPTH];
    ptx_val zero;
    ptx_val sum[MMA_MOST_ROW_TILES][MMA_MOST_GROUPS][4];
} mma_gemm;

/* Copies into shared memory, in the background where the target can. `done` is the first quantised block of the iteration,
 * counted from this thread block's first. */
void mma_init_copies(mma_gemm *g);
void mma_copy_first(mma_gemm *g);                           /* the first scales, the first stages */
void mma_copy_scales(mma_gemm *g, ptx_val done);            /* the next chunk's */
void mma_copy_a(mma_gemm *g, ptx_val done, uint32_t ahead); /* block `ahead` of each k_warp */
void mma_step_copies(mma_gemm *g);                          /* to the next iteration */
bool mma_is_double_buffered(
    const mma_gemm *g); /* whether scales are: an iteration takes a whole chunk of them */
void mma_copies_commit(mma_gemm *g);
void mma_copies_wait(mma_gemm *g, uint32_t pending);

/* Stores the sums over all warps and parts to C. */
void mma_store_tile(mma_gemm *g);

/* Bytes of a row of sums in shared memory. A lane's rows are two apart, so that the lanes' banks differ. */
uint32_t mma_sums_row_bytes(const mma_gemm *g);

ptx_val mma_shared_at(const mma_gemm *g, ptx_type type, ptx_val address, uint32_t bytes);
ptx_val mma_clamp(ptx_fn *f, ptx_val index, ptx_val count);

#endif
