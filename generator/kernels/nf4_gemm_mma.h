/* nf4_gemm on tensor cores: a variant while it is emitted, and its copies in shared memory. */
#ifndef KERNELS_NF4_GEMM_MMA_H
#define KERNELS_NF4_GEMM_MMA_H

#include "nf4_args.h"

#include "device/sums.h"

enum {
    MOST_GROUPS = 4, /* of 16 columns, per warp */
    MOST_LANE_COLUMNS = 2 * MOST_GROUPS,
    MOST_DEPTH = 4,
    MOST_COPIES = 16 /* per thread and stage */
};

/* Of each block `ahead` of an iteration's first one, the least `done` at which it is out of bounds. S32. */
typedef ptx_val block_ends[2 * MOST_DEPTH];

/* Scales of the tile's columns in shared memory: a ring of two chunks. */
typedef struct scale_ring {
    uint32_t chunk;     /* quantised blocks whose scales are copied at once */
    uint32_t copies;    /* of a thread: columns */
    uint32_t row_bytes; /* of a column */
    bool is_iteration;  /* an iteration takes a whole chunk: addresses toggle, and `offset` is not used */
    ptx_val at;         /* address of the first column */
    ptx_val from, to;   /* this thread's copies, variables: see scale_number */
    ptx_val column_step, columns_left, column[MOST_COPIES];
    ptx_val end, next_end;          /* of this thread's quantised blocks, in this chunk and in the next */
    ptx_val read;                   /* where this lane reads */
    ptx_val offset;                 /* bytes to this iteration's scales, a variable */
    ptx_val toggle_to, toggle_read; /* see shared_toggle */
} scale_ring;

/* Rows of A in shared memory, `stages` times. In a wide tile immediates tell stages apart, in a narrow one addresses toggle. */
typedef struct row_stages {
    uint32_t blocks; /* quantised blocks of a k_warp in a stage */
    uint32_t copies; /* of a thread: rows */
    uint32_t row_bytes, stage_bytes;
    bool swaps_halves; /* of each 32 bytes, in odd rows: nf4_gemm_mma_stages.c */
    ptx_val at;        /* address of the first stage */
    ptx_val from, to;  /* this thread's copies, variables */
    ptx_val step, bytes[MOST_COPIES];
    block_ends ends;
    ptx_val read,
        second; /* this lane's first and next 16 bytes; not all tiles have a register for the second */
    ptx_val toggle_to, toggle_read;
} row_stages;

typedef struct nf4_gemm_mma {
    ptx_fn *f;
    uint32_t tile_m, tile_n, k_warps, stages, split_k;
    uint32_t groups, row_tiles, column_warps, threads;
    uint32_t depth;            /* quantised blocks whose codes a warp prefetches: those of an iteration */
    uint32_t iteration_blocks; /* those of all k_warps */
    bool is_wide;              /* warps have different columns, or there are many rows */
    bool holds_rows;           /* a warp has 64 columns, and reads A half as often as with 32 */
    bool has_most_threads;     /* a thread has half of the registers then */

    nf4_args args;
    nf4_pairs pairs;
    ptx_val tid, lane_id, k_warp, column_warp;
    fragment_lane lane;
    ptx_val shared; /* address */
    nf4_tile tile;
    block_ends ends; /* this warp's */
    scale_ring scales;
    row_stages rows;

    ptx_val codes_at[MOST_LANE_COLUMNS]; /* of this lane, the next to be loaded */
    ptx_val codes[MOST_DEPTH][MOST_LANE_COLUMNS][NF4_LANE_WORDS];
    ptx_val scale[MOST_LANE_COLUMNS][MOST_DEPTH];
    ptx_val zero;
    warp_sums sums;
} nf4_gemm_mma;

/* ---- nf4_gemm_mma_stages.c: A and the scales on their way through shared memory ------------------------------------ */

/* Sizes, for a thread block whose other members are set. */
void nf4_gemm_size_stages(nf4_gemm_mma *g, bool is_compact);
uint32_t nf4_gemm_stages_bytes(const nf4_gemm_mma *g);

/* Where this lane reads, and what this thread copies. */
void nf4_gemm_init_reads(nf4_gemm_mma *g);
void nf4_gemm_init_copies(nf4_gemm_mma *g);

/* Starts the copies that the first iteration finds under way. */
void nf4_gemm_copy_first(nf4_gemm_mma *g);

/* Waits for the stage of block `block` of the iteration that starts at `done`, so that all threads see it, and fills the stage
 * that is free now. */
void nf4_gemm_next_stage(nf4_gemm_mma *g, ptx_val done, uint32_t block);

/* Reads the scales of block `block` of an iteration; with a block, perhaps those of the later ones too. */
void nf4_gemm_read_scales(nf4_gemm_mma *g, uint32_t block);

/* A's fragment of eight rows for block `block` of an iteration: eight registers of two elements each. */
void nf4_gemm_read_a(nf4_gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[8]);

/* Goes on to the next iteration. */
void nf4_gemm_step_stages(nf4_gemm_mma *g);

/* The ends of the blocks 0, `step`, ... below `count`, where block 0 is quantised block `first` of the part of K. */
void nf4_gemm_find_ends(const nf4_gemm_mma *g, ptx_val first, uint32_t count, uint32_t step, block_ends ends);

/* Whether the block is in bounds in the iteration that starts at `done`. */
ptx_val nf4_gemm_in_bounds(const nf4_gemm_mma *g, const block_ends ends, ptx_val done, uint32_t ahead);

#endif
