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
    LINEAR_MOST_VECTORS = 8,
    LINEAR_MOST_MATRICES = 3,
    LINEAR_MMA_TILES = 2,         /* of 16 rows of W, per warp on tensor cores */
    LINEAR_LANE_ROWS = 4,         /* rows of W in a lane on tensor cores */
    LINEAR_WARP_COLUMNS = 32,     /* columns of y, rows of W, in a warp on tensor cores */
    LINEAR_SUM_START = 0x4B400000 /* bits of 1.5 * 2^23, the start of sums of products of bytes */
};

/* The kernel on CUDA cores, known to `shape` and `emit`; other strategies set only the format. A tile is the part of a row of W
 * that a warp takes at once: a group per lane (device/format.h). A share is the activations that multiply one weight group: for
 * each vector its elements in the order of the group's codes, then the numbers of its parts. */
typedef struct linear_geometry {
    const weight_format *format;
    uint32_t rows, vectors, chunk;
    bool is_q8, has_norm;

    /* Set by linear_plan. */
    uint32_t stages;
    uint32_t tile_elements, tile_bytes; /* of a row */
    uint32_t row_bytes;                 /* of a tile in shared memory */
    uint32_t row_copies;                /* pieces of a row's tile per lane */
    bool begins_anywhere;               /* rows may begin at any byte */
    uint32_t number_bytes; /* of a tile's numbers, if the format has them in arrays: 4 or 8 per lane */
    uint32_t stage_bytes;  /* of a warp */
    uint32_t vector_bytes, share_bytes; /* of one vector's part of a share, of a share */
    uint32_t share_step;                /* bytes of the shares of LINEAR_TRIP elements */
    uint32_t part_words;                /* words of four codes in a part */
    uint32_t
        joined; /* vectors whose values are joined over lanes (device/lanes.h): a power of two; those past the last repeat it */
} linear_geometry;

typedef struct linear {
    linear_geometry of;
    ptx_fn *f;
    ptx_type x_type, y_type;
    bool has_bias, has_residual, has_scale;
    bool has_all_vectors; /* a thread block has all vectors, and there is no m */
    uint32_t matrices;
    bool is_pair, is_gelu; /* SiLU, or GELU, of one product multiplies the other */
    uint32_t column_rows;  /* of W, for a column of y: two in a pair */
    bool overlaps;         /* the kernel waits for the preceding launch */
    bool keeps_infinity;   /* an infinite sum stays infinite; else it becomes a NaN */

    ptx_val in, in_scale, gamma, residual, m, k, eps; /* arguments */
    ptx_val w[LINEAR_MOST_MATRICES], bias[LINEAR_MOST_MATRICES], out[LINEAR_MOST_MATRICES],
        n[LINEAR_MOST_MATRICES], scale[LINEAR_MOST_MATRICES]; /* of each matrix */
    ptx_val arrays[2][LINEAR_MOST_MATRICES]; /* scales and zeros, if the format has them in arrays */
    ptx_val w_rows, first_row_of[LINEAR_MOST_MATRICES]; /* of all matrices; each matrix's first row */
    ptx_val y_stride; /* elements from row to row of y; poison: n of the matrix */
    ptx_val tid, lane, warp;
    ptx_val w_row_bytes, row_numbers; /* of a row of W, U32; scales of a row if the format has arrays */

    /* On tensor cores: how many thread blocks share k; if several, this one's part of k. U32, uniform. */
    uint32_t split_k;
    ptx_val workspace, tile_counters;
    ptx_val part_stages, part_element, part_byte; /* first element in x, first byte in W */
} linear;

/* A thread block's tile of y on tensor cores, and this thread's position in it: its warp has some columns, or a part of their
 * k. */
typedef struct linear_tile {
    uint32_t rows, columns, warp_columns; /* of a warp: 16, 32 or 64 */
    uint32_t k_warps, row_warps;          /* warps that share k, or rows; one of the two is 1 */
    uint32_t stage;                       /* elements of k; a part of k has whole stages, or ends with k */
    uint32_t rows_at_once; /* that all threads store: more than `rows` if only store_threads do */
    uint32_t store_threads;
    ptx_val shared; /* address of the dynamic shared memory */
    fragment_lane lane;
    ptx_val k_warp, row_warp, column_warp; /* this warp's; poison if k, or the rows, are not shared */
    ptx_val first_x, first_w;              /* rows */

    /* If k is split. */
    ptx_val number, part; /* of the tile; of k */
    split_stretch stretch;
    ptx_val kept_stretch, kept_tile; /* words in shared memory */
} linear_tile;

/* ---- linear.c: the kernel on CUDA cores; other families call it with fixed parameters ----------------------------- */

/* Expressions of its estimates, over k, chunk and rows, for a thread block's `here` rows of W. Shares are
 * computed again for every 256 rows if a chunk is less than x. */
#define LINEAR_REPEATS(here)    "ceil_div(" here ", 8 * rows) * ceil_div(k, chunk)"
#define LINEAR_SIDE_TRIPS(here) "ceil_div(k, 1024) * select(k > chunk, ceil_div(" here ", 256), 1)"
#define LINEAR_EXTRA(here)                                                                                   \
    "300 * " LINEAR_REPEATS(here) " + select(k > chunk, 1500 * ceil_div(k, chunk) * ceil_div(" here          \
                                  ", 256), 0)"

/* Completes a geometry. */
linear_geometry linear_plan(linear_geometry g);

/* Sets the limits of a launch; `rows * vectors` is at most 32. */
void linear_shape_simt(kiln_shape *s, const linear_geometry *g);

/* The caller sets types, geometry, matrices and epilogue, and the arguments. */
void linear_emit_simt(linear *g);

/* ---- linear_matrices.c -------------------------------------------------------------------------------------------- */

/* A row among the rows of all matrices. */
typedef struct linear_row {
    ptx_val number;                        /* in its matrix */
    ptx_val is_from[LINEAR_MOST_MATRICES]; /* [i]: its matrix is i or a later one; predicates, from 1 on */
} linear_row;

/* Finds threads and rows, first in every strategy. */
void linear_find_threads(linear *g);

linear_row linear_find_row(linear *g, ptx_val row);

/* Picks the row's matrix; pointers as addresses, U64. */
ptx_val linear_pick(linear *g, const linear_row *row, const ptx_val of_matrices[]);
ptx_val linear_pick_address(linear *g, const linear_row *row, const ptx_val pointers[]);

/* The address of a row, or of its part, U64; clamped to the last row. */
ptx_val linear_row_address(linear *g, ptx_val row);

/* The address of a row's number, U64: in array 0, scales, or 1, zeros. */
ptx_val linear_numbers_at(linear *g, const linear_row *row, uint32_t array, ptx_val number);

/* ---- linear_ring.c ------------------------------------------------------------------------------------------------ */

/* The tile's rows of W in a ring of stages, and those that a lane reads: four rows, eight apart, and the row whose numbers it
 * decodes. */
typedef struct linear_ring {
    linear *l;
    const linear_tile *tile;
    row_ring codes;
    uint32_t number_byte; /* offset of the numbers in a stage */
    ptx_val shared;       /* address of the first stage */
    ptx_val left;         /* trips of the loop from this one on; a variable if k is split */
    row_ring_row rows[LINEAR_LANE_ROWS], number_row;
    ptx_val row_at[LINEAR_LANE_ROWS], number_row_at; /* where these rows start in the current stage */
} linear_ring;

/* The shape of a stage of W: some elements of each row. Paired: a lane takes two neighbouring units of a row's codes at once. */
row_ring_shape linear_ring_stage(const weight_format *format, uint32_t elements, bool is_paired);

/* The layout of a stage's numbers if the format has arrays: a unit is a scale and its zero. _bytes: the size of `rows` rows. */
layout linear_numbers_layout(const weight_format *format, uint32_t stage);
uint32_t linear_numbers_bytes(const weight_format *format, uint32_t stage, uint32_t rows);

/* Returns a ring with this thread's copies initialised. `codes` has only the shape and options. If k is split, the caller sets
 * `left`. */
linear_ring linear_init_ring(linear *l, const linear_tile *tile, row_ring codes, uint32_t number_byte,
                             ptx_val shared);

/* Whether there is a stage `ahead` trips after the current one. */
ptx_val linear_has_stage(const linear_ring *ring, uint32_t ahead);

/* Starts to copy the next stage to `offset` in the ring; linear_fill_ring does so only if there is one, and
 * counts it. */
void linear_copy_ring(linear_ring *ring, ptx_val offset);
void linear_fill_ring(linear_ring *ring, ptx_val offset, uint32_t ahead);

/* Finds this lane's rows: rows g + 8i of its warp's, and for the numbers row g + 8t. Its part of a row's stage
 * begins index * bytes after the row; a poison index is 0. */
void linear_find_lane_rows(linear_ring *ring, ptx_val index, uint32_t bytes);

/* Finds where the rows start in the stage at `offset`, one stage after the previous call's. */
void linear_next_lane_rows(linear_ring *ring, ptx_val offset);

/* ---- linear_mma.c: strategy mma; l has the variant's options and the arguments ------------------------------------ */

void linear_emit_mma(linear *l, const kiln_variant *v);
void linear_shape_mma(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* ---- linear_q8.c: strategies mma and tiles where x is codes and scales; l as for mma ------------------------------ */

void linear_emit_q8(linear *l, const kiln_variant *v);
void linear_shape_q8(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* The layout of x's scales: a row per block of a stage, a unit per eight rows of x. With tiles, threads copy the scales of four
 * blocks of eight rows at once; padding, or without sums a swizzle, puts the blocks into different banks. Copies of scales that
 * alternate with sums use half of the banks, and with mma a quarter. */
layout linear_q8_blocks(uint32_t rows, bool is_tiles, bool has_sums);

/* ---- linear_tiles.c: strategy tiles; l as for mma ----------------------------------------------------------------- */

void linear_emit_tiles(linear *l, const kiln_variant *v);
void linear_shape_tiles(kiln_shape *s, const kiln_variant *v, const weight_format *format);

/* ---- linear_tile.c: tiles on tensor cores ------------------------------------------------------------------------- */

/* k_warps or row_warps is 1, the other a power of two. */
linear_tile linear_find_tile(linear *l, uint32_t rows, uint32_t columns, uint32_t warp_columns,
                             uint32_t k_warps, uint32_t row_warps, uint32_t stage);

/* The sums of a warp with `rows` rows, cleared. */
warp_sums linear_init_sums(ptx_fn *f, uint32_t rows);

/* Shared memory of a thread block whose stages take `bytes`: at the end its sums overlay them. */
uint32_t linear_bytes(uint32_t bytes, uint32_t rows, uint32_t columns, uint32_t k_warps);

/* Reloads the tile's values, which no register has kept, after the loop along k and a barrier. Then adds `count` sums of each
 * thread over the thread blocks that share the tile: see split_add. */
void linear_find_tile_again(linear *l, linear_tile *s);
ptx_val linear_add_parts(linear *l, const linear_tile *s, ptx_val sums[], uint32_t count);

/* Stores the tile of y. linear_store_whole_sums: the sums are over all of k, even if it is split. */
void linear_store_sums(linear *l, linear_tile *s, warp_sums *sums);
void linear_store_whole_sums(linear *l, const linear_tile *s, warp_sums *sums);

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

/* ---- linear_y.c --------------------------------------------------------------------------------------------------- */

/* Sets y's type, the epilogue, the matrices that it implies, and split_k. */
void linear_set_epilogue(linear *g, const kiln_variant *v);

/* Reads the arguments from the bias to k. _each: a pointer or a value for each of `count` matrices. */
void linear_read_y(linear *g);
void linear_read_each(linear *g, uint32_t count, bool is_pointer, ptx_type type, const char *const names[],
                      ptx_val of[]);

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

#endif
