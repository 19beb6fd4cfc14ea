/* Products of tiles on tensor cores, as values: a pipeline that brings tiles of matrices into shared memory while others are
 * multiplied, operands that read them, and sums that are stored. For authors of kernels; include/kiln/README.md has an example.
 *
 *     tile_pipeline p = tile_pipeline_open(f, PTX_F16, stages, depth);
 *     const uint32_t x_tile = tile_pipeline_add(&p, &x, first_row, 64), w_tile = ...;
 *     const tile_operand a = tile_rows(&p, x_tile, warp_row), b = tile_columns(&p, w_tile, warp_column);
 *     tile_sums sums = tile_sums_open(f, 2, 4);
 *     tile_pipeline_start(&p);
 *     PTX_FOR (f, done, 0, k, depth) {
 *         tile_pipeline_next(&p);
 *         tile_multiply(&a, &b, &sums);
 *     }
 *     tile_store(&sums, PTX_F16, &y, row, column, NULL, NULL);
 *
 * makes y = x * w^T. What these functions take as C integers is known when the kernel is made. Values are U32 unless a comment
 * says otherwise. A thread block is whole warps along x. All its threads make each call together; for tile_store, all of a warp
 * suffice.
 */
#ifndef KILN_TILE_H
#define KILN_TILE_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix in global memory, of F16 or BF16, row by row; `data` points to it. `stride` is the elements from a row to
 * the next. Rows of operands begin at multiples of 16 bytes: `stride` and `columns` are multiples of eight. */
typedef struct tile_matrix {
    ptx_val data, rows, columns, stride;
} tile_matrix;

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

enum {
    TILE_MOST_SLOTS = 4,
    TILE_MOST_STEPS = 4,
    TILE_STEP = 16 /* elements along the sum that a product takes */
};

/* Rows of a matrix on their way through shared memory, and this thread's part of them. */
typedef struct tile_slot {
    uint32_t rows, byte; /* a multiple of the rows that are copied at once; where they are in a stage */
    ptx_val from, to;    /* a variable, U64: the next 16 bytes to copy; where they go to in the first stage */
    ptx_val row_step;    /* U64: bytes between the rows that this thread copies */
    ptx_val rows_left;   /* S32: from this thread's first on */
    ptx_val left;        /* S32, a variable: columns from the next 16 bytes on */
} tile_slot;

typedef struct tile_pipeline {
    ptx_fn *f;
    ptx_type type;
    uint32_t stages, depth, stage_bytes, slot_count;
    tile_slot slots[TILE_MOST_SLOTS];
    ptx_val shared; /* address of the first stage */
    ptx_val stage;  /* a variable: offset of the one that is multiplied */
} tile_pipeline;

/* A ring of `stages`, two or more, in dynamic shared memory, from its start on. A stage is 16, 32 or 64 elements along the sum. */
#define tile_pipeline_open(f, type, stages, depth) tile_pipeline_open_at(f, type, stages, depth, PTX_HERE)
tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line);

/* For a family's `shape`: bytes of shared memory for `rows` rows of one matrix, in a thread block of `threads`. Add those of all. */
uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows);

/* Adds `rows` rows of a matrix from `first` on; rows and columns beyond its last are zeros. Returns the slot. */
#define tile_pipeline_add(p, of, first, rows) tile_pipeline_add_at(p, of, first, rows, PTX_HERE)
uint32_t tile_pipeline_add_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                              const char *file, int line);

/* Starts the copies of all stages but one. */
void tile_pipeline_start(tile_pipeline *p);

/* Waits for the next stage, and starts to copy into the one before it. It has a barrier of the thread block. */
void tile_pipeline_next(tile_pipeline *p);

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* A slot's rows that a warp reads, 16 at a time: the product's rows, or its columns. */
typedef struct tile_operand {
    const tile_pipeline *of;
    uint32_t slot;
    ptx_val at[TILE_MOST_STEPS]; /* this lane's 16 bytes of each step, in the first slot of the first stage */
} tile_operand;

/* `first` is the warp's first row in the slot, a multiple of 8. */
tile_operand tile_rows(const tile_pipeline *p, uint32_t slot, ptx_val first);
tile_operand tile_columns(const tile_pipeline *p, uint32_t slot, ptx_val first);

enum { TILE_MOST_SUMS = 128 };

/* A warp's sums, F32 variables: 16 * `row_tiles` rows by 8 * `column_tiles` columns. `column_tiles` is even. Lane 4 * g + t has
 * four for each column tile of each row tile: rows g and g + 8, columns 2t and 2t + 1. */
typedef struct tile_sums {
    ptx_fn *f;
    uint32_t row_tiles, column_tiles;
    ptx_val of[TILE_MOST_SUMS];
} tile_sums;

/* All are 0; at most TILE_MOST_SUMS / 4 tiles. */
#define tile_sums_open(f, row_tiles, column_tiles) tile_sums_open_at(f, row_tiles, column_tiles, PTX_HERE)
tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line);

/* Adds the products of the stage that is multiplied. */
void tile_multiply(const tile_operand *rows, const tile_operand *columns, tile_sums *sums);

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* Returns the F32 to store for a sum, in a row and a column of y: adds a bias, say, or a gate. Called only within y. */
typedef ptx_val tile_map(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column);

/* Stores the sums from `row` and `column` on that are in y. `column`, y's columns and its stride are multiples of four; rows of y
 * begin at multiples of 8 bytes. `map` may be null. */
void tile_store(const tile_sums *sums, ptx_type type, const tile_matrix *y, ptx_val row, ptx_val column,
                tile_map *map, const void *of);

#ifdef __cplusplus
}
#endif

#endif
