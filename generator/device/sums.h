/* Sums of products on tensor cores: a warp's in registers, and a thread block's in shared memory.
 *
 * Weights are mma's first operand, so that a product makes 16 columns of y and 8 of its rows: lane (g, t) has columns g and g
 * + 8, and rows 2t and 2t + 1 (fragment.h).
 */
#ifndef DEVICE_SUMS_H
#define DEVICE_SUMS_H

#include "fragment.h"
#include "layout.h"

enum { SUMS_ROWS = 8, SUMS_COLUMNS = 16 /* of a product */, SUMS_MOST = 128 };

/* A warp's sums: `row_tiles` times 8 rows by `column_tiles` times 16 columns. */
typedef struct warp_sums {
    uint32_t row_tiles, column_tiles;
    bool has_one_row;      /* only one row is computed: the first of a lane's two */
    ptx_val of[SUMS_MOST]; /* four of each product */
} warp_sums;

static inline ptx_val *sums_of(warp_sums *s, uint32_t row_tile, uint32_t column_tile)
{
    return &s->of[4 * (row_tile * s->column_tiles + column_tile)];
}

static inline uint32_t sums_count(const warp_sums *s)
{
    return 4 * s->row_tiles * s->column_tiles;
}

/* Whether sum e of a product is computed. */
static inline bool sums_has(const warp_sums *s, uint32_t e)
{
    return !s->has_one_row || e % 2 == 0;
}

/* Initialises the sums as variables, to 0. */
void sums_clear(ptx_fn *f, warp_sums *s);

/* The layout of rows of sums in shared memory; a unit is one sum. */
layout shared_sums_layout(uint32_t columns);

/* A thread block's sums: a tile for each of `k_warps` groups of warps that share k. */
typedef struct shared_sums {
    uint32_t k_warps, tile_bytes;
    layout rows;
    ptx_val at; /* address; poison if only sizes are needed */
} shared_sums;

shared_sums shared_sums_init(uint32_t rows, uint32_t columns, uint32_t k_warps, ptx_val at);

/* Stores a warp's sums; this lane's first are in `column`, rows 2t and 2t + 1. `k_warp` is poison if there is one tile. A
 * barrier must follow. */
void shared_sums_store(ptx_fn *f, const shared_sums *s, warp_sums *sums, ptx_val column, ptx_val t,
                       ptx_val k_warp);

/* The start of a row in the first tile; a pointer to the element `rows` below and `columns` to the right of `from`; and the
 * sum of that element over the tiles, in order. */
ptx_val shared_sums_row(ptx_fn *f, const shared_sums *s, ptx_val row);
ptx_val shared_sums_at(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns);
ptx_val shared_sums_load(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns);

#endif
