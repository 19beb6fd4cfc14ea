/* nf4_gemm on tensor cores: a variant while it is emitted, and its stages in shared memory. */
#ifndef KERNELS_NF4_GEMM_MMA_H
#define KERNELS_NF4_GEMM_MMA_H

#include "nf4_args.h"

#include "device/nf4_pairs.h"
#include "device/split.h"
#include "device/sums.h"

enum {
    BLOCK_K = 64, /* a quantised block: weights that share a scale */
    ROWS = 8,     /* of A in one product */
    COLUMNS = 16, /* of B */
    PAD_WORDS = 4,
    PAD_BYTES = 16,  /* after rows of A without swapped halves, so that rows start in different banks */
    MOST_GROUPS = 4, /* of 16 columns, per warp */
    MOST_DEPTH = 4,
    MOST_COPIES = 16 /* per thread and stage */
};

typedef struct nf4_gemm_mma {
    ptx_fn *f;
    ptx_type type; /* of A and C */
    uint32_t tile_m, tile_n, k_warps, stages, split_k;
    uint32_t groups, row_tiles, column_warps, threads;
    bool is_nested;
    bool is_wide;              /* warps have different columns, or there are many rows */
    bool swaps_halves;         /* the halves of each 32 bytes in A's odd rows: nf4_gemm_mma_stages.c */
    bool has_stretch;          /* a thread block makes parts of several tiles, one after the other */
    bool holds_rows;           /* a warp has 64 columns, and reads A half as often as with 32 */
    bool has_most_threads;     /* a thread has half of the registers then */
    uint32_t depth;            /* quantised blocks whose codes a warp prefetches: those of an iteration */
    uint32_t iteration_blocks; /* those of all k_warps */
    uint32_t stage_blocks;     /* quantised blocks of A that are copied at once, per k_warp */
    uint32_t chunk;            /* quantised blocks whose scales are copied at once */
    bool is_double_buffered;   /* the ring of scales is one: an iteration takes a whole chunk of them */
    uint32_t scale_row_bytes, a_row_bytes, a_stage_bytes, scale_copies, a_copies;

    nf4_pairs pairs;
    nf4_args args;
    ptx_val tid, lane_id, k_warp, column_warp;
    fragment_lane lane;
    ptx_val first_row, first_column;  /* of the tile */
    ptx_val shared, scales, a_stages; /* addresses in shared memory */
    ptx_val first_block, block_count; /* quantised blocks of this thread block's part of K */
    split_stretch stretch;            /* with split_k 0: of the quantised blocks of all tiles */
    ptx_val tile, is_first;           /* the one that is made, then; whether it is the thread block's first */

    /* This thread's copies of scales and of A: source, destination, and the end of their quantised blocks. */
    ptx_val scale_from, column_bytes, columns_left, column_of[MOST_COPIES]; /* see scale_number */
    ptx_val scale_to, scale_end, scale_next_end;
    ptx_val a_row, a_from, a_step, a_bytes[MOST_COPIES], a_to, a_end[2 * MOST_DEPTH];
    ptx_val scales_read, a_read; /* where this lane reads scales, and its first 16 bytes of A */
    ptx_val a_second;            /* where it reads the next 16 bytes, in tiles with a spare register */
    ptx_val ring;                /* bytes to this iteration's scales in their ring */
    ptx_val toggle_to, toggle_read, toggle_a_to, toggle_a; /* of double buffers: see shared_toggle */
    ptx_val end[2 * MOST_DEPTH]; /* `done` below which this warp's first block is in bounds, its next, ... */

    ptx_val codes_at[MOST_GROUPS][2]; /* of this lane, the next to be loaded */
    ptx_val codes[MOST_DEPTH][MOST_GROUPS][2][2];
    ptx_val scale_of[MOST_GROUPS][2][MOST_DEPTH];
    ptx_val zero;
    warp_sums sums;
} nf4_gemm_mma;

/* ---- nf4_gemm_mma_stages.c: A and the scales on their way through shared memory ------------------------------------ */

/* Where this lane reads, and what this thread copies. */
void nf4_gemm_init_reads(nf4_gemm_mma *g);
void nf4_gemm_init_copies(nf4_gemm_mma *g);

/* Starts the copies that the first iteration finds under way. */
void nf4_gemm_copy_first(nf4_gemm_mma *g);

/* Waits for the stage of block `block` of the iteration that starts at `done`, so that all threads see it, and fills the stage
 * that is free now. */
void nf4_gemm_next_stage(nf4_gemm_mma *g, ptx_val done, uint32_t block);

/* Reads the scales of block `block` of an iteration into scale_of; with a block, perhaps those of the later ones too. */
void nf4_gemm_read_scales(nf4_gemm_mma *g, uint32_t block);

/* A's fragment of eight rows for block `block` of an iteration: eight registers of two elements each. */
void nf4_gemm_read_a(nf4_gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[8]);

/* Goes on to the next iteration. */
void nf4_gemm_step_stages(nf4_gemm_mma *g);

/* Whether block `ahead` of a k_warp, counted from the iteration's first, is one that ends[0] is behind. */
ptx_val nf4_gemm_is_within(const nf4_gemm_mma *g, const ptx_val ends[], ptx_val done, uint32_t ahead);

#endif
