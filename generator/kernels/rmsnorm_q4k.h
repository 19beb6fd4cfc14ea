/* What the files of rmsnorm_q4k_gemv's body share: h, tiles of W, products. */
#ifndef KERNELS_RMSNORM_Q4K_H
#define KERNELS_RMSNORM_Q4K_H

#include <kiln/author/family.h>

#include "device/shared.h"

/* A super-block of Q4_K. */
enum {
    Q4K_BLOCK_BYTES = 144,
    Q4K_HEADER_WORDS = 4,
    Q4K_BLOCK_ELEMENTS = 256,
    Q4K_TILE_BLOCKS = 8 /* super-blocks: whole sectors, and two sub-blocks for each lane */
};

enum {
    GEMV_WARPS = 8, /* per thread block */
    GEMV_THREADS = 32 * GEMV_WARPS,
    GEMV_PASS_ROWS = 256, /* rows that a thread block has at once; each thread stores one */
    GEMV_MOST_ROWS = 4,   /* per warp */
    GEMV_MOST_TILES = 2,  /* per row and stage */
    GEMV_MOST_BATCH = 8,
    GEMV_STAGES = 2,
    GEMV_TILE_BYTES = Q4K_TILE_BLOCKS * Q4K_BLOCK_BYTES,
    GEMV_TILE_PIECES = GEMV_TILE_BYTES / UNIT_BYTES,
    GEMV_MOST_COPIES = (GEMV_MOST_TILES * GEMV_TILE_PIECES + 1 + 31) / 32,

    /* h: a share is 64 elements, a quarter of a super-block, and 16 bytes of padding against bank conflicts. */
    GEMV_SHARE_ELEMENTS = 64,
    GEMV_SHARES = 8, /* in two super-blocks: see rmsnorm_q4k_h.c */
    GEMV_EXACT_SHARE_BYTES = 4 * GEMV_SHARE_ELEMENTS + 16,
    GEMV_Q8_SHARE_BYTES = GEMV_SHARE_ELEMENTS + 16,
    GEMV_EXACT_EXPONENT = 149 /* a code read as a denormal is 2^149 times too small */
};

/* How a lane unpacks its scales and minima from a header. */
typedef struct gemv_masks {
    ptx_val bytes;       /* selects this lane's sub-blocks from two words */
    ptx_val shift;       /* of these bytes, down to the bits used */
    ptx_val first, last; /* those bits, and those in the header's last word */
} gemv_masks;

/* A variant while it is emitted. Addresses in shared memory are U32. */
typedef struct gemv {
    ptx_fn *f;
    ptx_type x_type, y_type;
    uint32_t batch, rows, tiles, chunk;
    bool has_sm_80;
    bool has_norm, is_q8;
    bool has_rest; /* the norm's factor has a rest, by which y is multiplied */
    uint32_t share_bytes;

    ptx_val x[GEMV_MOST_BATCH], gamma, w, y, n, k, eps;
    ptx_val lane, warp;
    ptx_val row_blocks;              /* super-blocks of a row */
    ptx_val factor[GEMV_MOST_BATCH]; /* of x, with the norm */

    ptx_val stages, sums, partials, units, h; /* addresses */
    ptx_val h_bytes;                          /* of a vector */
    ptx_val is_first_of_eight;                /* lanes, which make a sub-block of h */

    ptx_val first_row, rows_here;      /* of this pass */
    ptx_val chunk_first, chunk_blocks; /* its first element; super-blocks of a row in it */
    ptx_val groups;                    /* of rows, in this pass */

    /* The next tile to copy. */
    ptx_val next_row;                       /* the first of its group, in the pass */
    ptx_val next_left;                      /* stages left of each row, of row_stages */
    ptx_val next_from[GEMV_MOST_ROWS];      /* this lane's first piece, U64 */
    ptx_val next_in_bounds[GEMV_MOST_ROWS]; /* whether its rows are */
    ptx_val stage;                          /* offset of the stage that fills; the other one is multiplied */

    /* A row of the chunk. */
    ptx_val row_stages, last_pieces;    /* pieces in the last stage */
    ptx_val piece[GEMV_MOST_COPIES];    /* of a stage, that this lane copies where in bounds */
    ptx_val in_stage[GEMV_MOST_COPIES]; /* whether they are in bounds; from sm_80 on */
    ptx_val in_last[GEMV_MOST_COPIES];
    ptx_val lane_to;    /* destination of the first one, in the first stage */
    ptx_val group_step; /* from the last stage of a row to the first of this warp's next */

    gemv_masks masks;
    ptx_val lane_block, lane_header, lane_codes; /* of a tile; addresses in the second stage */
    ptx_val lane_end[GEMV_MOST_TILES]; /* S32: this lane has super-blocks in stages that start before it */
    ptx_val lane_h;
    ptx_val sum[GEMV_MOST_ROWS][GEMV_MOST_BATCH];
} gemv;

/* Tiles of a row that a warp takes at a time. */
static inline uint32_t gemv_tiles(uint32_t rows, uint32_t batch)
{
    return rows == 1 && batch <= 2 ? 2 : 1;
}

static inline uint32_t gemv_stage_bytes(const gemv *g)
{
    return g->rows * g->tiles * GEMV_TILE_BYTES;
}

/* ---- rmsnorm_q4k_norm.c ------------------------------------------------------------------------------------------- */

/* Loads four elements of x. */
void gemv_load_four(gemv *g, ptx_val at, ptx_val x[4]);

/* Makes the factor of each vector, for all threads. */
void gemv_find_factors(gemv *g);

/* Loads the rest of a vector's factor. */
ptx_val gemv_load_rest(gemv *g, uint32_t vector);

/* ---- rmsnorm_q4k_h.c ---------------------------------------------------------------------------------------------- */

/* The slot of share `share` of h, counted in shares. */
ptx_val gemv_share_slot(gemv *g, ptx_val share);

/* Makes h of the chunk; after a barrier all threads may read it. */
void gemv_make_h(gemv *g);

/* ---- rmsnorm_q4k_tiles.c ------------------------------------------------------------------------------------------ */

/* Starts to copy the first tile of this warp's first group of rows. */
void gemv_init_tiles(gemv *g);

/* Starts to copy the next tile, and waits for the one before it. */
void gemv_next_tile(gemv *g);

/* Waits until all lanes are done with the tile. */
void gemv_end_tile(gemv *g);

/* Clears the stages: bytes that no tile fills are read, but not used. */
void gemv_clear_stages(gemv *g);

/* The first row of a group, counted from the pass's first; its others are two apart. */
ptx_val gemv_row(gemv *g, ptx_val group);

/* ---- rmsnorm_q4k_products.c --------------------------------------------------------------------------------------- */

/* Sets what depends on the lane alone. */
void gemv_init_products(gemv *g);

/* Sets what depends on the chunk. */
void gemv_limit_lanes(gemv *g);

/* Adds the products of the current tile, whose first super-block in the chunk is `first`, to the sums. */
void gemv_multiply_tile(gemv *g, ptx_val first);

#endif
