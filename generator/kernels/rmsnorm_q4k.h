/* The parts of rmsnorm_q4k_gemv's body: h, tiles of W, products. */
#ifndef KERNELS_RMSNORM_Q4K_H
#define KERNELS_RMSNORM_Q4K_H

#include <kiln/family.h>

#include "q4k.h"

enum {
    GEMV_WARPS = 8, /* per thread block */
    GEMV_THREADS = 32 * GEMV_WARPS,
    GEMV_PASS_ROWS = 256, /* that a thread block works on at once, one for each thread to store */
    GEMV_MOST_ROWS = 4,   /* per warp */
    GEMV_MOST_TILES = 2,  /* per row and stage */
    GEMV_MOST_BATCH = 8,
    GEMV_STAGES = 2,
    GEMV_TILE_BYTES = Q4K_TILE_BLOCKS * Q4K_BLOCK_BYTES,
    GEMV_PIECE_BYTES = 16,
    GEMV_TILE_PIECES = GEMV_TILE_BYTES / GEMV_PIECE_BYTES,
    GEMV_MOST_COPIES = (GEMV_MOST_TILES * GEMV_TILE_PIECES + 1 + 31) / 32,

    /* h: of the 64 elements of a quarter of a super-block, and 16 bytes more, so that lanes meet in no bank. */
    GEMV_SHARE_ELEMENTS = 64,
    GEMV_SHARES = 8, /* that are placed together */
    GEMV_EXACT_SHARE_BYTES = 4 * GEMV_SHARE_ELEMENTS + 16,
    GEMV_Q8_SHARE_BYTES = GEMV_SHARE_ELEMENTS + 16,
    GEMV_EXACT_EXPONENT = 149 /* a code read as a denormal is that many powers of two too small */
};

/* How a lane unpacks its scales and minima out of a header. */
typedef struct gemv_masks {
    ptx_val bytes;       /* of two words, those of this lane's sub-blocks */
    ptx_val shift;       /* of these bytes, down to the bits that count */
    ptx_val first, last; /* those bits, and those in the header's last word */
} gemv_masks;

/* A variant while it is emitted. Addresses in shared memory are U32. */
typedef struct gemv {
    ptx_fn *f;
    ptx_type x_type, y_type;
    uint32_t batch, rows, tiles, chunk;
    bool has_sm_80;
    bool has_norm, is_q8;
    bool has_rest; /* of the norm's factor, which y is multiplied by */
    uint32_t share_bytes;

    ptx_val x[GEMV_MOST_BATCH], gamma, w, y, n, k, eps;
    ptx_val lane, warp;
    ptx_val row_blocks;              /* super-blocks of a row */
    ptx_val factor[GEMV_MOST_BATCH]; /* of x, with the norm */

    ptx_val stages, sums, partials, units, h; /* where they begin */
    ptx_val h_bytes;                          /* of a vector */
    ptx_val is_first_of_eight;                /* lanes, which make a sub-block of h */

    ptx_val first_row, rows_here;      /* of this pass */
    ptx_val chunk_first, chunk_blocks; /* its first element; super-blocks of a row in it */
    ptx_val groups;                    /* of rows, in this pass */

    /* What is copied next. */
    ptx_val next_row;                       /* of a group, its first, in the pass */
    ptx_val next_left;                      /* stages of each of its rows, of row_stages */
    ptx_val next_from[GEMV_MOST_ROWS];      /* this lane's first piece, U64 */
    ptx_val next_in_bounds[GEMV_MOST_ROWS]; /* of its rows */
    ptx_val stage;                          /* that it fills: its offset; the other one is multiplied */

    /* Of a row of the chunk. */
    ptx_val row_stages, last_pieces;    /* in the last of the stages */
    ptx_val piece[GEMV_MOST_COPIES];    /* of a stage, that this lane copies where there are as many */
    ptx_val in_stage[GEMV_MOST_COPIES]; /* whether there are; from sm_80 on */
    ptx_val in_last[GEMV_MOST_COPIES];
    ptx_val lane_to;    /* where it puts the first one, in the first stage */
    ptx_val group_step; /* from the last stage of a row to the first of this warp's next */

    gemv_masks masks;
    ptx_val lane_block, lane_header, lane_codes; /* of a tile, and where they are in the second stage */
    ptx_val lane_end[GEMV_MOST_TILES];           /* S32: this lane has blocks where a stage begins before */
    ptx_val lane_h;
    ptx_val sum[GEMV_MOST_ROWS][GEMV_MOST_BATCH];
} gemv;

/* An address in shared memory as a pointer. */
static inline ptx_val gemv_at(const gemv *g, ptx_type type, ptx_val address, int64_t bytes)
{
    return ptx_at_bytes(g->f, ptx_pointer(g->f, PTX_SHARED, type, address), bytes);
}

/* Tiles of a row that a warp has at a time. */
static inline uint32_t gemv_tiles(uint32_t rows, uint32_t batch)
{
    return rows == 1 && batch <= 2 ? 2 : 1;
}

static inline uint32_t gemv_stage_bytes(const gemv *g)
{
    return g->rows * g->tiles * GEMV_TILE_BYTES;
}

/* ---- rmsnorm_q4k_norm.c ------------------------------------------------------------------------------------------- */

/* Four elements of x. */
void gemv_load_four(gemv *g, ptx_val at, ptx_val x[4]);

/* The factor of each vector, for all threads. */
void gemv_find_factors(gemv *g);

/* What remains of a vector's factor. */
ptx_val gemv_load_rest(gemv *g, uint32_t vector);

/* Each warp's value, for all threads behind a barrier, where `partials` are. */
void gemv_store_partial(gemv *g, ptx_val partials, uint32_t byte, ptx_val value);

/* Over the warps, in their order. */
ptx_val gemv_join_partials(gemv *g, ptx_val partials, uint32_t byte, ptx_op op);

/* ---- rmsnorm_q4k_h.c ---------------------------------------------------------------------------------------------- */

/* Where share `share` of h is, counted in shares. */
ptx_val gemv_share_slot(gemv *g, ptx_val share);

/* h of the chunk, for all threads once a barrier has followed. */
void gemv_make_h(gemv *g);

/* ---- rmsnorm_q4k_tiles.c ------------------------------------------------------------------------------------------ */

/* The first tile of this warp's first group of rows is on its way. */
void gemv_init_tiles(gemv *g);

/* The next tile is on its way, and the one before it is there. */
void gemv_next_tile(gemv *g);

/* All lanes have done with the tile. */
void gemv_end_tile(gemv *g);

/* What no tile fills is read, and not used. */
void gemv_clear_stages(gemv *g);

/* The first row of a group, counted from the pass's first; its others are two apart. */
ptx_val gemv_row(gemv *g, ptx_val group);

/* ---- rmsnorm_q4k_products.c --------------------------------------------------------------------------------------- */

/* What depends on the lane alone. */
void gemv_init_products(gemv *g);

/* What depends on the chunk. */
void gemv_limit_lanes(gemv *g);

/* Adds the products of the tile that is there, and begins with super-block `first` of the chunk, to the sums. */
void gemv_multiply_tile(gemv *g, ptx_val first);

#endif
