/* Shared by linear's files: a variant during emission. */
#ifndef KERNELS_LINEAR_H
#define KERNELS_LINEAR_H

#include <kiln/author/family.h>

#include "device/format.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/shared.h"
#include "device/split.h"
#include "device/sums.h"

enum {
    LINEAR_WARPS = 8, /* per thread block */
    LINEAR_THREADS = WARP_LANES * LINEAR_WARPS,
    LINEAR_PASS_ROWS = LINEAR_THREADS, /* rows of W that a thread block has at once: each thread stores one */
    LINEAR_MOST_ROWS = 4,              /* of W per warp */
    LINEAR_MOST_VECTORS = 8,
    LINEAR_MOST_MATRICES = 3,
    LINEAR_MMA_TILES = 2,             /* of 16 rows of W, per warp on tensor cores */
    LINEAR_LANE_ROWS = 4,             /* of W that a lane has there */
    LINEAR_WARP_COLUMNS = 32,         /* of y that a warp has there, rows of W */
    LINEAR_MOST_COPIES = 4,           /* of a lane, per row and tile */
    LINEAR_TRIP = 4 * LINEAR_THREADS, /* elements of a vector that a thread block takes at once */
    LINEAR_DENORMAL = 26,             /* linear_x.c */
    LINEAR_SUM_START = 0x4B400000     /* bits of 1.5 * 2^23, the start of sums of products of bytes */
};

/* Known to `shape` and `emit`. A tile is the part of a row of W that a warp takes at once: a group per lane
 * (device/format.h). A share is the activations that multiply one weight group: for each vector its elements in the order of
 * the group's codes, then the numbers of its parts. */
typedef struct linear_geometry {
    const weight_format *format;
    uint32_t rows, vectors, chunk;
    bool is_q8, has_norm;

    /* Set by linear_plan. */
    uint32_t stages;
    uint32_t tile_bytes;   /* of a row */
    uint32_t row_bytes;    /* of a tile in shared memory */
    uint32_t number_bytes; /* and its numbers, if the format has them in arrays: 4 or 8 per lane */
    uint32_t stage_bytes;  /* of a warp */
    uint32_t vector_bytes, share_bytes; /* of one vector's part of a share, of a share */
} linear_geometry;

/* The gate applied to a product, or to a pair of them. */
typedef enum linear_gate { LINEAR_NO_GATE, LINEAR_SILU, LINEAR_GELU } linear_gate;

typedef struct linear {
    linear_geometry of;
    ptx_fn *f;
    ptx_type x_type, y_type;
    bool has_bias, has_residual, has_scale;
    bool has_all_vectors; /* a thread block has all vectors, and there is no m */
    uint32_t matrices;
    linear_gate gate;
    bool is_pair;
    uint32_t column_rows; /* of W, for a column of y: two in a pair */
    bool overlaps;        /* it waits for the preceding launch: linear_overlap.c */
    bool may_scale;       /* scales x by powers of two if its squares leave the range of f32 */
    bool keeps_infinity;  /* an infinite sum stays infinite; else it becomes a NaN */

    ptx_val in, in_scale, gamma, residual, m, k, eps; /* arguments */
    ptx_val w[LINEAR_MOST_MATRICES], bias[LINEAR_MOST_MATRICES], out[LINEAR_MOST_MATRICES],
        n[LINEAR_MOST_MATRICES], scale[LINEAR_MOST_MATRICES], scales_of[LINEAR_MOST_MATRICES],
        zeros_of[LINEAR_MOST_MATRICES]; /* of each matrix; the last two if the format has arrays */
    ptx_val w_rows, first_row_of[LINEAR_MOST_MATRICES]; /* of all matrices; each matrix's first row */
    ptx_val y_stride; /* elements from row to row of y; poison: n of the matrix */
    ptx_val tid, lane, warp;
    ptx_val stages, sums, partials, scales, shares; /* addresses in shared memory */
    ptx_val w_row_bytes, row_numbers; /* of a row of W, U32; scales of a row if the format has arrays */

    /* On tensor cores: thread blocks that share k, and unless that is 1, this one's part of k. U32, uniform. */
    uint32_t split_k;
    ptx_val workspace, tile_counters;
    ptx_val part_stages, part_element, part_byte; /* first element in x, first byte in W */

    ptx_val first_vector, vectors;    /* this thread block's, in bounds */
    ptx_val x[LINEAR_MOST_VECTORS];   /* clamped to the last vector */
    ptx_val by[LINEAR_MOST_VECTORS];  /* the factor for x */
    ptx_val first_row, rows_here;     /* of this pass */
    ptx_val groups_of_rows;           /* of `rows` rows each */
    ptx_val chunk_first, chunk_count; /* elements */
    ptx_val chunk_byte, chunk_bytes;  /* of a row of W: start and length; U32 */
    ptx_val tiles;                    /* of a row in this chunk */
    ptx_val share_count;              /* of a row in this chunk */

    /* The next tile to copy. */
    ptx_val next_group, next_tiles;      /* of rows; remaining tiles of its rows */
    ptx_val next_from[LINEAR_MOST_ROWS]; /* this lane's first piece, U64 */
    ptx_val next_left[LINEAR_MOST_ROWS]; /* bytes from there to the row's end in this chunk, S32 */
    ptx_val next_numbers[LINEAR_MOST_ROWS]
                        [2]; /* this lane's scale and zero, U64, in formats that have these in arrays */
    ptx_val has_last;        /* whether this lane has a last piece of a row's tile */
    ptx_val stage;           /* offset of the current stage */

    format_lane w_lane;                   /* this lane's group */
    format_place place[LINEAR_MOST_ROWS]; /* of its quantised block in the first stage */
    ptx_val lane_share;                   /* address of this lane's share of the first tile */
    ptx_val sum[LINEAR_MOST_ROWS][LINEAR_MOST_VECTORS];
} linear;

/* A thread block's tile of y on tensor cores, and this thread's position in it: its warp has some columns, or a part of their
 * k. */
typedef struct linear_tile {
    uint32_t rows, columns, warp_columns; /* of a warp: 16, 32 or 64 */
    uint32_t k_warps, row_warps;          /* warps that share k, or rows; one of the two is 1 */
    ptx_val shared;                       /* address of the dynamic shared memory */
    fragment_lane lane;
    ptx_val k_warp, row_warp, column_warp; /* this warp's; poison if k, or the rows, are not shared */
    ptx_val first_x, first_w;              /* rows */

    /* If k is split. */
    uint32_t stage;       /* elements of k: parts have whole stages, or a row's last one */
    ptx_val number, part; /* of the tile; of k */
    split_stretch stretch;
    ptx_val kept_stretch, kept_tile; /* words in shared memory */
} linear_tile;

/* ---- linear.c: the kernel on CUDA cores; other families call it with fixed parameters ----------------------------- */

/* Completes a geometry. */
linear_geometry linear_plan(linear_geometry g);

/* Sets the limits of a launch; `rows * vectors` is at most 32. */
void linear_shape_simt(kiln_shape *s, const linear_geometry *g);

/* Finds threads and rows, first in every strategy. */
void linear_find_threads(linear *g);

/* The caller sets types, geometry, matrices and epilogue, and the arguments. */
void linear_emit_simt(linear *g);

/* ---- linear_x.c --------------------------------------------------------------------------------------------------- */

/* Bytes of one vector's part of a share. */
uint32_t linear_vector_bytes(const weight_format *format, bool is_q8);

/* Makes the shares of the chunk. At the start of the first pass over the first chunk, also makes the norm's sums over all
 * of x. Ends with a barrier. */
void linear_make_shares(linear *g, ptx_val is_start);

/* The norm's factor for a vector's sums. */
ptx_val linear_factor(linear *g, uint32_t vector);

/* ---- linear_matrices.c -------------------------------------------------------------------------------------------- */

/* A row among the rows of all matrices. */
typedef struct linear_row {
    ptx_val number;                        /* in its matrix */
    ptx_val is_from[LINEAR_MOST_MATRICES]; /* [i]: its matrix is i or a later one; predicates, from 1 on */
} linear_row;

/* Counts the rows of all matrices. */
void linear_init_matrices(linear *g);

linear_row linear_find_row(linear *g, ptx_val row);

/* Picks the row's matrix; pointers as addresses, U64. */
ptx_val linear_pick(linear *g, const linear_row *row, const ptx_val of_matrices[]);
ptx_val linear_pick_address(linear *g, const linear_row *row, const ptx_val pointers[]);

/* The address of a row, or of its part, U64; clamped to the last row. */
ptx_val linear_row_address(linear *g, ptx_val row);

/* The address of a row's number, U64: in array 0, scales, or 1, zeros. */
ptx_val linear_numbers_at(linear *g, const linear_row *row, uint32_t array, ptx_val number);

/* ---- linear_ring.c ------------------------------------------------------------------------------------------------ */

/* Rows of W in a ring; the user sets the members down to `stage`. */
typedef struct linear_ring {
    row_ring codes;
    const weight_format *format;
    uint32_t rows;         /* of the tile */
    uint32_t stage;        /* elements of k */
    uint32_t number_byte;  /* offset of the numbers in a stage */
    linear *l;             /* linear_init_ring sets these */
    ptx_val shared, first; /* address of the first stage; the tile's first row */
} linear_ring;

/* The shape of a stage of W: some elements of each row. Paired: a lane takes two neighbouring units of a row's codes at once. */
row_ring_shape linear_ring_stage(const weight_format *format, uint32_t elements, bool is_paired);

/* The layout of a stage's numbers if the format has arrays: a unit is a scale and its zero. _bytes: the size of `rows` rows. */
layout linear_numbers_layout(const weight_format *format, uint32_t stage);
uint32_t linear_numbers_bytes(const weight_format *format, uint32_t stage, uint32_t rows);

/* Sets up a ring of the rows from `first` on. */
void linear_init_ring(linear *g, linear_ring *ring, ptx_val shared, ptx_val first);

/* Starts to copy the next stage to the one at `offset`. */
void linear_copy_ring(linear_ring *ring, ptx_val offset);

/* Offset of a tile row's numbers in a stage, U32. */
ptx_val linear_row_numbers(ptx_fn *f, const linear_ring *ring, ptx_val row);

/* The rows of W that a lane of a tensor-core kernel reads: four rows, eight apart, and the row whose numbers it decodes. */
typedef struct linear_rows {
    row_ring_row codes[LINEAR_LANE_ROWS], numbers;
} linear_rows;

/* Finds the rows from `mine` on in the tile, whose first stage is at `first`; the numbers are of row mine + 8t. */
linear_rows linear_find_lane_rows(linear *l, const linear_ring *ring, const linear_tile *tile, ptx_val mine,
                                  ptx_val first);

/* The starts of the rows in the stage at `offset`, one stage after the previous call's. */
void linear_next_lane_rows(const linear_ring *ring, const linear_rows *rows, ptx_val offset,
                           ptx_val codes[LINEAR_LANE_ROWS], ptx_val *numbers);

/* ---- linear_overlap.c --------------------------------------------------------------------------------------------- */

/* Prefetches the rows from `first` to `end`, then waits for the preceding launch. Call it outside all blocks. */
void linear_overlap(linear *g, ptx_val first, ptx_val end);

/* ---- linear_w.c --------------------------------------------------------------------------------------------------- */

/* Starts to copy the first tiles of this warp's first rows. */
void linear_init_stages(linear *g);

/* Waits for the next tile, and starts to refill the previous one's stage. */
void linear_next_stage(linear *g);

/* Finds this lane's quantised blocks of a group of rows. */
void linear_find_rows(linear *g, ptx_val group);

/* Finds the numbers of this lane's group of row r; `codes` is the group's place. */
format_place linear_find_numbers(linear *g, uint32_t r, const format_place *codes);

/* ---- linear_mma.c: strategy mma, with what a variant says and the arguments ------------------------- */

void linear_emit_mma(linear *l, const kiln_variant *v);
void linear_shape_mma(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* ---- linear_q8.c: strategies mma and tiles where x is codes and scales; l as for mma ------------------------------ */

void linear_emit_q8(linear *l, const kiln_variant *v);
void linear_shape_q8(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* ---- linear_tiles.c: strategy tiles; l as for mma ----------------------------------------------------------------- */

void linear_emit_tiles(linear *l, const kiln_variant *v);
void linear_shape_tiles(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* ---- linear_sums.c ------------------------------------------------------------------------------------------------- */

linear_tile linear_find_tile(linear *l, uint32_t rows, uint32_t columns, uint32_t warp_columns,
                             uint32_t k_warps, uint32_t stage);

/* Divides the tile's rows among `row_warps` warps, a power of two; k_warps must be 1. */
void linear_share_rows(linear *l, linear_tile *s, uint32_t row_warps);

/* Rows that all threads store at once: more than the tile's rows, if only some threads store. */
static inline uint32_t linear_rows_at_once(const linear_tile *s)
{
    return WARP_LANES * s->k_warps * s->row_warps / s->warp_columns;
}

/* The threads that store. */
static inline uint32_t linear_store_threads(const linear_tile *s)
{
    const uint32_t rows = linear_rows_at_once(s);
    return s->columns * (rows < s->rows ? rows : s->rows);
}

/* The sums of a warp with `rows` rows, cleared. */
warp_sums linear_init_sums(ptx_fn *f, uint32_t rows);

/* Shared memory for a thread block's sums at the end. */
uint32_t linear_sums_bytes(uint32_t rows, uint32_t columns, uint32_t k_warps);

/* Stores the tile of y. linear_store_whole_sums: the sums are over all of k, even if it is split. */
void linear_store_sums(linear *l, linear_tile *s, warp_sums *sums);
void linear_store_whole_sums(linear *l, const linear_tile *s, warp_sums *sums);

/* ---- linear_split.c ----------------------------------------------------------------------------------------------- */

/* Call it after the loop along k and a barrier: recomputes the tile's values, which no register has kept. */
void linear_find_tile_again(linear *l, linear_tile *s);

/* Bytes of shared memory for a split, beside the tile's. */
static inline uint32_t linear_split_bytes(const kiln_variant *v)
{
    return kiln_int(v, "split_k") == 1 ? 0 : 48;
}

/* Calls `make` for this thread block's tile, or in a loop for its tiles, each with its part of k. */
void linear_make_tiles(linear *l, linear_tile *s, void (*make)(void *strategy), void *strategy);

/* Calls `trip` in a loop over the tile's part of k, `elements` at a time. If k is split, `left` is a variable: the remaining
 * trips. */
void linear_each_trip(linear *l, uint32_t elements, ptx_val left, void (*trip)(void *strategy),
                      void *strategy);

/* See split_add. */
ptx_val linear_add_parts(linear *l, const linear_tile *s, ptx_val sums[], uint32_t count);

/* ---- linear_y.c --------------------------------------------------------------------------------------------------- */

/* A column of y: its matrix of y, and the factor and bias of its sums, if the variant has them. */
typedef struct linear_column {
    ptx_val out, bias; /* pointers, as arguments have them */
    ptx_val stride;    /* elements from row to row of `out` */
    ptx_val row, row_64;
    ptx_val scale[2]; /* F32; in a pair those of both rows of W */
} linear_column;

/* The column of a row of W, in a pair together with the next row. */
linear_column linear_find_column(linear *g, ptx_val w_row);

/* The bias of a column, F32; poison if there is none. */
ptx_val linear_bias(linear *g, const linear_column *column);

/* Stores a column's element of y from its sums; a null factor is 1. */
void linear_store(linear *g, const linear_column *column, const ptx_val sum[], ptx_val bias,
                  const ptx_val *factor, ptx_val element);

/* ---- linear_products.c -------------------------------------------------------------------------------------------- */

/* Adds the products of the tile to the sums; `share` is this lane's first share. */
void linear_multiply_tile(linear *g, ptx_val share);

#endif
