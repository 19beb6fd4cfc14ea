/* Products of tiles on tensor cores: a pipeline that brings tiles of matrices into shared memory while others are multiplied, operands
 * that read them, sums, and a sink. For authors of kernels; include/kiln/README.md has a whole example.
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
 *     tile_store(&sums, &y, row, column, NULL, NULL);
 *
 * makes y = x * w^T. What these functions take as C integers is known when the kernel is made. Values are U32 unless a comment says
 * otherwise. A thread block is whole warps along x. All its threads must reach each call together; for tile_store, all of a warp.
 */
#ifndef KILN_TILE_H
#define KILN_TILE_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix in global memory, of F16 or BF16, row by row; `data` points to it. `stride` is the elements from a row to the next. Of an
 * operand, `data` must be aligned to 16 bytes, and `stride` and `columns` must be multiples of eight: rules of the family say so. */
typedef struct tile_matrix {
    ptx_val data, rows, columns, stride;
} tile_matrix;

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

enum {
    TILE_STEP = 16, /* elements along the sum that a product takes */
    TILE_MOST_STEPS = 4,
    TILE_MOST_STAGES = 16,
    TILE_MOST_SLOTS = 4,
    TILE_MOST_ROWS = 1024
};

/* Rows of a matrix on their way through shared memory, and this thread's part of them. */
typedef struct tile_slot {
    uint32_t rows, copied; /* that were asked for; that are copied: whole passes of the thread block */
    uint32_t byte;         /* in a stage */
    ptx_val from;          /* U64, a variable: the next 16 bytes to copy */
    ptx_val to[2];         /* where they go to in the first stage, of an even pass and an odd one */
    ptx_val row_step;      /* U64: bytes between the rows that this thread copies */
    ptx_val rows_left;     /* S32: from this thread's first on */
    ptx_val left;          /* S32, a variable: columns from the next 16 bytes on */
} tile_slot;

typedef struct tile_pipeline {
    ptx_fn *f;
    ptx_type type;
    uint32_t stages, depth, stage_bytes, slot_count;
    bool has_started;
    tile_slot slots[TILE_MOST_SLOTS];
    ptx_val shared; /* address of the first stage */
    ptx_val stage;  /* a variable: offset of the one that is multiplied */
} tile_pipeline;

/* A ring of 2 to 16 stages in dynamic shared memory, from its start on; a kernel has one. A stage is 16, 32 or 64 elements along the
 * sum. */
#define tile_pipeline_open(f, type, stages, depth) tile_pipeline_open_at(f, type, stages, depth, PTX_HERE)
tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line);

/* For a family's `shape`: the bytes of shared memory that one matrix of `rows` rows takes. Rows are rounded up to what a thread block
 * copies at once, so call it for each matrix, and add. 0 where tile_pipeline_open would refuse the numbers. */
uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows);

/* Adds `rows` rows of a matrix, at most 1024, from `first` on, before the start. Rows and columns beyond the matrix are zeros. Returns
 * the slot. */
#define tile_pipeline_add(p, of, first, rows) tile_pipeline_add_at(p, of, first, rows, PTX_HERE)
uint32_t tile_pipeline_add_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                              const char *file, int line);

/* Starts the copies of all stages but one; once. */
#define tile_pipeline_start(p) tile_pipeline_start_at(p, PTX_HERE)
void tile_pipeline_start_at(tile_pipeline *p, const char *file, int line);

/* Waits for the next stage, and starts to refill the one that was multiplied last: once in a trip, before its products. It has a
 * barrier of the thread block. */
#define tile_pipeline_next(p) tile_pipeline_next_at(p, PTX_HERE)
void tile_pipeline_next_at(tile_pipeline *p, const char *file, int line);

/* Behind the loop, before the thread block uses the shared memory for anything else: waits for copies that are still on their way, at
 * a barrier. */
void tile_pipeline_end(tile_pipeline *p);

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* What a warp reads of a slot. */
typedef struct tile_operand {
    ptx_fn *f;
    ptx_type type;
    bool is_rows;
    uint32_t rows, steps, byte;  /* of the slot, of a stage; where the slot is in it */
    ptx_val at[TILE_MOST_STEPS]; /* this lane's 16 bytes of each step, in the first slot of the first stage */
    ptx_val stage;               /* the pipeline's */
} tile_operand;

/* Rows of the product, 16 for each row tile of the sums; columns, 8 for each column tile. `first` is the warp's first in the slot, a
 * multiple of 8. */
#define tile_rows(p, slot, first)    tile_operand_at(p, slot, first, true, PTX_HERE)
#define tile_columns(p, slot, first) tile_operand_at(p, slot, first, false, PTX_HERE)
tile_operand tile_operand_at(const tile_pipeline *p, uint32_t slot, ptx_val first, bool is_rows,
                             const char *file, int line);

enum { TILE_MOST_SUMS = 128 };

/* A warp's sums, F32 variables: 16 * `row_tiles` rows by 8 * `column_tiles` columns. Lane 4 * g + t has four for each column tile of
 * each row tile: rows g and g + 8, columns 2t and 2t + 1. They may be changed before they are stored: to multiply two, say. */
typedef struct tile_sums {
    ptx_fn *f;
    uint32_t row_tiles, column_tiles;
    ptx_val of[TILE_MOST_SUMS];
} tile_sums;

/* All are 0. There are at most 32 tiles, and `column_tiles` is even. */
#define tile_sums_open(f, row_tiles, column_tiles) tile_sums_open_at(f, row_tiles, column_tiles, PTX_HERE)
tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line);

/* Adds the products of the stage that is multiplied. */
#define tile_multiply(rows, columns, sums) tile_multiply_at(rows, columns, sums, PTX_HERE)
void tile_multiply_at(const tile_operand *rows, const tile_operand *columns, tile_sums *sums,
                      const char *file, int line);

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* Returns the F32 to store for a sum, in a row and a column of y: adds a bias, say, or a gate. It is emitted within PTX_WHEN, for
 * elements of y only: it has no blocks and no shuffles. */
typedef ptx_val tile_map(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column);

/* Stores the sums from `row` and `column` on, rounded to y's type, F16 or BF16; what lies outside of y is left out. `column`, y's
 * columns and its stride are multiples of four; rows of y begin at multiples of 8 bytes. `map` may be null. */
#define tile_store(sums, y, row, column, map, of) tile_store_at(sums, y, row, column, map, of, PTX_HERE)
void tile_store_at(const tile_sums *sums, const tile_matrix *y, ptx_val row, ptx_val column, tile_map *map,
                   const void *of, const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
