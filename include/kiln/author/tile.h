/* Products of tiles on tensor cores: a pipeline that copies tiles of matrices into shared memory while earlier ones are
 * multiplied, operands that read them, sums, and a sink. For kernel authors; include/kiln/README.md has a whole
 * example.
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
 * computes y = x * w^T. tile_product multiplies an operand that a kernel makes in registers, such as decoded weights: by warps
 * or, on sm_90a, by warpgroups while the kernel makes the next operand. On sm_90a a producer warp can copy the tiles (TMA).
 *
 * C integers are known at build time. Values are U32 unless a comment says otherwise. A thread block is whole warps along
 * x. All its threads must reach each call together, in TILE_CONSUMERS all consumers; for the stores, all lanes of a warp.
 * Pipelines must not move.
 */
#ifndef KILN_TILE_H
#define KILN_TILE_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row-major matrix in global memory, of F16 or BF16, at `data`. `stride` is the distance between rows in elements.
 * For an operand, `data` must be aligned to 16 bytes, and `stride` and `columns` must be multiples of eight: the family
 * needs rules for that. */
typedef struct tile_matrix {
    ptx_val data, rows, columns, stride;
} tile_matrix;

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

enum {
    TILE_STEP = 16, /* elements along k per product */
    TILE_MOST_UNITS = 8,
    TILE_MOST_STEPS = 4,
    TILE_MOST_STAGES = 16,
    TILE_MOST_SLOTS = 4,
    TILE_MOST_ROWS = 1024,
    TILE_PRODUCER_THREADS = 128 /* a warpgroup, of which one thread copies */
};

/* Rows of a matrix that the pipeline copies through shared memory, and this thread's part of them. */
typedef struct tile_slot {
    uint32_t rows, copied;   /* rows requested; rows copied, rounded up to whole passes */
    uint32_t units, in_unit; /* units of 16 bytes of a row in a stage; the matrix's elements in one */
    uint32_t byte;           /* offset in a stage */
    ptx_val from;            /* U64, a variable: the next 16 bytes to copy */
    ptx_val to[2];           /* destination in the first stage, of even and odd passes */
    ptx_val row_step;        /* U64: bytes between the rows that this thread copies */
    ptx_val rows_left;       /* S32: rows from this thread's first on */
    ptx_val left;            /* S32, a variable: columns from the next 16 bytes on */
    ptx_val map, first;      /* or, with a tensor map: the map, and the box's first row */
} tile_slot;

typedef struct tile_pipeline {
    ptx_fn *f;
    ptx_type type;
    uint32_t stages, depth, stage_bytes, slot_count;
    bool has_started;
    bool is_async; /* wgmma reads it: a product in flight holds the stage before the current one */
    tile_slot slots[TILE_MOST_SLOTS];
    ptx_val shared;      /* address of the first stage */
    ptx_val stage;       /* a variable: offset of the current stage */
    ptx_val free;        /* a variable if it is_async: offset of the stage to refill */
    bool has_producer;   /* in TILE_CONSUMERS the current stage is known at build time */
    uint32_t current;    /* number of that stage */
    uint32_t next_count; /* calls of tile_pipeline_next */
    ptx_val barriers;    /* in shared memory, B64: two mbarriers for each stage */
    ptx_val parity;      /* a variable: of the current stage's phase; poison outside TILE_CONSUMERS */
    ptx_val is_first_lane;
} tile_pipeline;

/* Opens a ring of 2 to 16 stages at the start of dynamic shared memory; one per kernel. A stage is 16, 32 or 64
 * elements along k. */
#define tile_pipeline_open(f, type, stages, depth) tile_pipeline_open_at(f, type, stages, depth, PTX_HERE)
tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line);

/* Returns the bytes of shared memory for `rows` rows of one matrix, for a family's `shape`; 0 if tile_pipeline_open would reject
 * the numbers. Rounds rows up to the thread block's copy size, so call it for each matrix, and add. `threads` is 0 if a producer
 * warp copies. */
uint32_t tile_pipeline_packed_bytes(uint32_t stages, uint32_t depth, uint32_t packed, uint32_t threads,
                                    uint32_t rows);
static inline uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows)
{
    return tile_pipeline_packed_bytes(stages, depth, 0, threads, rows);
}

/* Adds `rows` rows of a matrix, at most 1024, from `first` on, before the start. Out-of-bounds rows and columns are
 * zeros. Returns the slot. */
#define tile_pipeline_add(p, of, first, rows) tile_pipeline_add_packed(p, of, first, rows, 0)

/* Adds a matrix of U8 elements, each of which holds `packed` neighbours along k: 2 for codes of 4 bits. Its columns and
 * stride are in bytes, multiples of 16; depth / packed must be a multiple of 16. tile_words reads the slot. */
#define tile_pipeline_add_packed(p, of, first, rows, packed)                                                 \
    tile_pipeline_add_map(p, ptx_bits(PTX_NONE, 0), of, first, rows, packed)

/* Adds a matrix that a producer warp copies from its tensor map. A box is `rows` rows, at most 256, by a stage's
 * elements of a row; its swizzle is the bytes of such a row. `packed` is 0 for elements of the pipeline's type. With a zeroed
 * map all threads copy. A pipeline needs a map for each matrix, or no map. With maps the thread block has TILE_PRODUCER_THREADS
 * more threads, the shape sets blocks_per_multiprocessor, and the code after the start is in TILE_CONSUMERS. sm_90a. */
#define tile_pipeline_add_map(p, map, of, first, rows, packed)                                               \
    tile_pipeline_add_at(p, map, of, first, rows, packed, PTX_HERE)
uint32_t tile_pipeline_add_at(tile_pipeline *p, ptx_val map, const tile_matrix *of, ptx_val first,
                              uint32_t rows, uint32_t packed, const char *file, int line);

/* Starts the copies of all stages except one; call it once. Contains a barrier of the thread block if there is a producer. */
#define tile_pipeline_start(p) tile_pipeline_start_at(p, PTX_HERE)
void tile_pipeline_start_at(tile_pipeline *p, const char *file, int line);

/* Executes the block in the consumers; without a producer these are all threads. A producer, the last warpgroup, gives
 * registers to the others, and copies `count` stages: the number of times that the consumers call tile_pipeline_next. If a
 * matrix has no elements, its map must not be used: `count` is 0. Call it once, after the start. */
#define TILE_CONSUMERS(p, count)                                                                             \
    for (tile_block PTX_NAME_(tile_) = tile_consumers_begin(p, count, PTX_HERE); PTX_NAME_(tile_).pipeline;  \
         tile_consumers_end(&PTX_NAME_(tile_)))
typedef struct tile_block {
    tile_pipeline *pipeline; /* null once it has ended */
    ptx_block block;
    const char *file;
    int line;
} tile_block;
tile_block tile_consumers_begin(tile_pipeline *p, ptx_val count, const char *file, int line);
void tile_consumers_end(tile_block *block);

/* Waits for the next stage, and starts to refill the previous one: call it once per trip, before the trip's products.
 * Contains a barrier of the thread block. With a producer it has none, and a trip calls it `stages` times; at most one call may
 * come before the loop. */
#define tile_pipeline_next(p) tile_pipeline_next_at(p, PTX_HERE)
void tile_pipeline_next_at(tile_pipeline *p, const char *file, int line);

/* Waits for copies in flight, at a barrier: call it after the loop, before the shared memory is reused. */
#define tile_pipeline_end(p) tile_pipeline_end_at(p, PTX_HERE)
void tile_pipeline_end_at(tile_pipeline *p, const char *file, int line);

/* ---- products ----------------------------------------------------------------------------------------------------- */

typedef enum KILN_AS_INT tile_view { TILE_ROWS, TILE_COLUMNS, TILE_WORDS } tile_view;

/* A warp's view of a slot. */
typedef struct tile_operand {
    ptx_fn *f;
    ptx_type type;
    tile_view view;
    uint32_t rows, byte; /* the slot's rows, without those before a constant `first`; its offset in a stage */
    uint32_t steps, step_units;  /* of a stage; 16 bytes each, of a step */
    ptx_val at[TILE_MOST_UNITS]; /* this lane's 16 bytes of each step, in the first stage */
    const tile_pipeline *pipeline;
} tile_operand;

/* An operand: the rows of the product, 16 for each row tile of the sums, or its columns, 8 for each column tile. `first` is
 * the warp's first row in the slot, a multiple of 8. */
#define tile_rows(p, slot, first)    tile_operand_at(p, slot, first, TILE_ROWS, PTX_HERE)
#define tile_columns(p, slot, first) tile_operand_at(p, slot, first, TILE_COLUMNS, PTX_HERE)
tile_operand tile_operand_at(const tile_pipeline *p, uint32_t slot, ptx_val first, tile_view view,
                             const char *file, int line);

enum { TILE_MOST_SUMS = 128 };

/* A warp's sums, or its part of a warpgroup's, F32 variables: 16 * `row_tiles` rows by 8 * `column_tiles` columns. Lane
 * 4 * g + t has four for each column tile of each row tile: rows g and g + 8, columns 2t and 2t + 1. They may be changed
 * before the store, for example to multiply two. */
typedef struct tile_sums {
    ptx_fn *f;
    uint32_t row_tiles, column_tiles;
    ptx_val of[TILE_MOST_SUMS];
} tile_sums;

/* Opens sums of 0. At most 32 tiles; `column_tiles` must be even. */
#define tile_sums_open(f, row_tiles, column_tiles) tile_sums_open_at(f, row_tiles, column_tiles, PTX_HERE)
tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line);

/* Adds the products of the current stage. */
#define tile_multiply(rows, columns, sums) tile_multiply_at(rows, columns, sums, PTX_HERE)
void tile_multiply_at(const tile_operand *rows, const tile_operand *columns, tile_sums *sums,
                      const char *file, int line);

/* ---- products with A in registers ---------------------------------------------------------------------------------- */

typedef enum KILN_AS_INT tile_atom {
    TILE_MMA,  /* each warp by itself */
    TILE_WGMMA /* warpgroups, whose products run beside other instructions; sm_90a */
} tile_atom;

/* The product of A, 16 rows for each warp, in registers, and B, whose columns are the rows of a slot. */
typedef struct tile_product {
    ptx_fn *f;
    tile_atom atom;
    uint32_t columns;
    ptx_val descriptor; /* TILE_WGMMA: of the first stage, U64 */
    tile_operand b;     /* TILE_MMA */
    const tile_pipeline *pipeline;
} tile_product;

/* Opens products with a slot of at most 256 rows, a multiple of 16; call it before the pipeline starts. TILE_WGMMA needs a
 * thread block of whole warpgroups (128 threads) and at least three stages, as a product in flight holds one. */
#define tile_product_open(p, slot, atom) tile_product_open_at(p, slot, atom, PTX_HERE)
tile_product tile_product_open_at(tile_pipeline *p, uint32_t slot, tile_atom atom, const char *file,
                                  int line);

/* Starts the product with the current stage: sums = A * B, or sums += A * B if `adds`. `a` has four B32 for each 16 elements
 * along k: ptx_mma_a's. The sums have one row tile, and a column tile for each 8 columns. Until tile_product_wait nothing may
 * access `a` or the sums; the checker reports it for TILE_WGMMA. At most one product may be in flight when
 * tile_pipeline_next is called. */
#define tile_product_issue(product, a, sums, adds) tile_product_issue_at(product, a, sums, adds, PTX_HERE)
void tile_product_issue_at(const tile_product *product, const ptx_val a[], tile_sums *sums, bool adds,
                           const char *file, int line);

/* Waits until at most `pending` products are in flight. Emits nothing for TILE_MMA. */
#define tile_product_wait(product, pending) tile_product_wait_at(product, pending, PTX_HERE)
void tile_product_wait_at(const tile_product *product, uint32_t pending, const char *file, int line);

/* Adds `from`, which has the same numbers of tiles, times a factor for each row, F32: factors of rows g and g + 8 of each row
 * tile. */
#define tile_sums_add_scaled(to, from, factors) tile_sums_add_scaled_at(to, from, factors, PTX_HERE)
void tile_sums_add_scaled_at(tile_sums *to, const tile_sums *from, const ptx_val factors[2], const char *file,
                             int line);

/* Finds rows g and g + 8 of the 16 from `first` on, clamped to the matrix's last row: for numbers along the sums' rows, such
 * as scales. Uses only data, rows and stride. The pointers are variables. */
#define tile_row_pointers(f, of, first, out) tile_row_pointers_at(f, of, first, out, PTX_HERE)
void tile_row_pointers_at(ptx_fn *f, const tile_matrix *of, ptx_val first, ptx_val out[2], const char *file,
                          int line);

/* _load loads the element in a column, a C integer, of both rows into variables `to`, F32; 0 unless in_bounds, a predicate,
 * holds. _advance moves both pointers by `columns`. */
#define tile_row_load(f, rows, column, in_bounds, to)                                                        \
    tile_row_load_at(f, rows, column, in_bounds, to, PTX_HERE)
#define tile_row_advance(f, rows, columns) tile_row_advance_at(f, rows, columns, PTX_HERE)
void tile_row_load_at(ptx_fn *f, const ptx_val rows[2], uint32_t column, ptx_val in_bounds, ptx_val to[2],
                      const char *file, int line);
void tile_row_advance_at(ptx_fn *f, const ptx_val rows[2], uint32_t columns, const char *file, int line);

/* A lane's rows of a slot as words: g and g + 8 of the 16 from `first` on, a multiple of 16. Lanes with the same g read the
 * same words. */
typedef tile_operand tile_words;
#define tile_words_open(p, slot, first) tile_operand_at(p, slot, first, TILE_WORDS, PTX_HERE)

/* Loads the current stage's words of row g, then those of row g + 8, U32: depth / packed / 4 of each. */
#define tile_words_load(words, out) tile_words_load_at(words, out, PTX_HERE)
void tile_words_load_at(const tile_words *words, ptx_val out[], const char *file, int line);

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* Returns the F32 to store for a sum at a row and column of y, for example with a bias or a gate. Emitted within
 * PTX_WHEN, only for elements in bounds: it must not contain blocks or shuffles. Null: the sum. */
typedef ptx_val tile_map(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column);

/* Stores the sums from `row` and `column` on, rounded to y's type, F16 or BF16; elements out of bounds are omitted.
 * `column`, y's columns and its stride must be multiples of four, and y's rows aligned to 8 bytes. */
#define tile_store(sums, y, row, column, map, of)                                                            \
    tile_store_at(sums, y, row, column, map, of, false, PTX_HERE)
/* Stores the sums transposed: their columns become y's rows from `row` on, and their rows y's columns from `column`
 * on. */
#define tile_store_transposed(sums, y, row, column, map, of)                                                 \
    tile_store_at(sums, y, row, column, map, of, true, PTX_HERE)
void tile_store_at(const tile_sums *sums, const tile_matrix *y, ptx_val row, ptx_val column, tile_map *map,
                   const void *of, bool is_transposed, const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
