/* Shared by attention's strategies: arguments, and a thread block's tile. */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include "device/codes.h"
#include "device/softmax.h"
#include <kiln/author/family.h>

/* Rows, keys or columns: a matrix of ldmatrix has eight rows of 16 bytes; a page has a multiple of eight rows. */
enum { OCTET = 8 };

/* The matrix of one head of one batch; with pack_gqa those of the heads whose queries are packed into one tile. */
typedef struct attention_matrix {
    ptx_type type;        /* of elements; S8 for codes */
    uint32_t bytes;       /* of an element */
    ptx_val first;        /* element */
    ptx_val end;          /* end of the rows that this thread block reads: of its part of the keys; U32 */
    ptx_val row_stride;   /* elements, U32 */
    ptx_val head_stride;  /* elements, U64 */
    ptx_val first_row;    /* of this sequence, U32 */
    ptx_val batch_stride; /* elements, U64; with pages from page to page */
    bool is_paged;        /* attention_pages.c: */
    uint32_t in_entry;    /* bytes */
    bool pack_gqa;
} attention_matrix;

/* The enumerations below are in the order of their parameter's words, since kiln_word_index gives their values. */
typedef enum attention_shaping {
    ATTENTION_PLAIN,
    ATTENTION_SOFTCAP, /* softcap * tanh(score / softcap) */
    ATTENTION_ALIBI,   /* score - slope * |distance to the query's own key| */
    ATTENTION_MASK     /* score + an element of a matrix of queries and keys */
} attention_shaping;

/* K and V: in Q's type, or 8-bit codes with a scale per head or per key. */
typedef enum attention_kv {
    ATTENTION_SAME,
    ATTENTION_E4M3,
    ATTENTION_INT8,
    ATTENTION_INT8_TOKEN
} attention_kv;

typedef enum attention_layout { ATTENTION_DENSE, ATTENTION_RAGGED, ATTENTION_PAGED } attention_layout;

/* A thread block makes tile_q rows of O for one head of one batch, and loops over the keys in tiles of tile_k. A row is a
 * query. With pack_gqa, row r is query r / group of head r % group, of the `group` heads that share a head of K and V. */
typedef struct attention {
    ptx_fn *f;
    ptx_type type, wide;           /* of Q, K, V and O; of scores and sums: F64 if Q is, else F32 */
    uint32_t wide_bytes, unit;     /* of a wide number; wide numbers in 16 bytes */
    uint32_t head_dim, head_dim_v; /* of Q and K; of V and O */
    uint32_t tile_q, tile_k, split_k;
    bool has_sm_80, is_causal, pack_gqa;
    bool has_order;       /* tiles do not begin in grid order */
    bool has_head_scales; /* codes have a scale per head, not per key */
    attention_layout layout;
    attention_kv kv;

    attention_matrix q, k, v, out;
    attention_matrix k_scales, v_scales; /* with a scale for each key */
    ptx_val k_scale, v_scale;            /* without them: pointers to each head's scale */
    ptx_val lse;                         /* the log-sum-exps of all heads; may be null */
    ptx_val sinks;                       /* of each head of Q; may be null */
    ptx_val group;                       /* U32 */
    ptx_val q_length, k_length;          /* of the sequence; U32 */
    ptx_val rows;                        /* U32: q_length, with pack_gqa times group */
    ptx_val q_heads;                     /* U32 */
    ptx_val tile_in_head, grid_head;     /* set by attention_order_blocks, U32 */
    /* Set by attention_find_before: earlier rows of O, U64, in the order of the workspace and of lse; rows of a head in
     * lse, U32. */
    ptx_val before, log_before, log_rows;
    ptx_val first; /* the tile's first row */
    /* set by attention_find_sequence: */
    ptx_val most_queries, most_keys; /* of any sequence; U32 */
    ptx_val q_offsets, q_rows;       /* null in the dense layout */
    ptx_val kv_batch;                /* ragged: selects K and V by their batch stride; U32 */
    /* attention_pages.c: */
    ptx_val page_table, first_page; /* the sequence's first entry; U32 */
    ptx_val page_size;              /* rows, U32 */
    uint32_t entry_bytes;           /* of an octet: see attention_pages.c */
    uint32_t warp_octets;           /* see attention_init_pages */
    ptx_val entries, octets;        /* in shared memory: of two tiles; of the copied tile; U32 */
    ptx_val page;                   /* variable: of this thread's octet of the next tile */
    /* attention_score.c, keys: */
    ptx_val window_left, window_right, causal_offset; /* S32 */
    ptx_val first_keys;
    ptx_val diagonal; /* the own key of query 0; S32 */
    /* The tile's queries see keys below `kept` and a window that starts at kept + gap, both multiples of tile_k. Counted keys
     * leave out the gap between them: counted key c is key c, or from `kept` on key c + gap. */
    ptx_val kept, gap;
    ptx_val first_key, end; /* of this part, in counted keys */
    /* All queries see all keys of a tile whose first key is one of the full_count keys from full_first on. */
    ptx_val full_first, full_count;
    /* attention_score.c: a shaped score times `factor` is a base-2 logarithm */
    attention_shaping shaping;
    ptx_val factor, inner, cap;
    ptx_val alibi_slopes; /* of each head of Q */
    attention_matrix mask;
    /* attention_split.c. A record's numbers: a row's sums of all columns, scaled by 2^-shift; the shift and the sum of weights
     * of a part; those of a group. With codes, records in shared memory are padded, so that the four neighbouring columns that a
     * lane has, in eight rows, are in different banks. */
    uint32_t record, shared_record;
    /* With split_k: */
    ptx_val workspace, tile_counters;
    ptx_val parts, part; /* U32 */
    ptx_val tiles, tile; /* tiles of a head; this tile's number over all heads and batches */
} attention;

/* Finds the tile and the head if tiles do not begin in grid order. */
void attention_order_blocks(attention *a);

/* Return the tile's number in its head, and the head in grid order: a head of Q, or with pack_gqa of K and V. U32. With split_k,
 * attention_find_tile also sets parts, part and tiles. */
ptx_val attention_find_tile(attention *a);
ptx_val attention_grid_head(const attention *a);

/* Reads the layout's arguments, and finds this thread block's sequence: its lengths, and its rows. Lengths per sequence are
 * on the device, so that a captured graph serves growing sequences: q_length and k_length are then only the maxima, for grid
 * and parts. */
void attention_find_sequence(attention *a);

/* Sets `before`, and with split_k part and tile. Call it after the loop over the keys, where they would occupy registers. */
void attention_find_before(attention *a);

/* Returns a row's head of Q, U32. */
ptx_val attention_head_of(const attention *a, ptx_val row);

/* Moves `at` to a row. */
ptx_val attention_row_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row);

/* Returns a pointer to a row's log-sum-exp. */
ptx_val attention_log_at(const attention *a, ptx_val row);

/* x + n, without an instruction if n is 0. */
static inline ptx_val attention_plus(ptx_fn *f, ptx_val x, uint32_t n)
{
    return n == 0 ? x : ptx_add(f, x, n);
}

/* ---- a lane's rows --------------------------------------------------------------------------------------------------- */

/* A lane's elements of a matrix: in each of its rows, which are row_step apart, `count` vectors of `width` neighbouring columns,
 * `step` columns apart. */
enum { ATTENTION_MOST_ROWS = 8, ATTENTION_MOST_COLUMNS = 64 };
typedef struct attention_slice {
    uint32_t rows, row_step, count, width, step;
    ptx_val x[ATTENTION_MOST_ROWS][ATTENTION_MOST_COLUMNS]; /* variables */
} attention_slice;

static inline uint32_t attention_columns(const attention_slice *s)
{
    return s->count * s->width;
}

/* Finds the rows' numbers, from the first one's, `first`. */
void attention_number_rows(const attention *a, const attention_slice *s, ptx_val first, ptx_val numbers[]);

/* A lane's rows of O, not yet divided by the sums of their weights. */
typedef struct attention_rows {
    attention_slice o;
    softmax_row row[ATTENTION_MOST_ROWS];
} attention_rows;

/* ---- codes ----------------------------------------------------------------------------------------------------------- */

/* 8-bit codes of K and V are bytes in shared memory, and are decoded into registers. A head's scale of K multiplies its
 * scores, and its scale of V its rows of O. Scales of keys come with the tile: those of K multiply scores before they are
 * shaped, those of V weights before they are rounded. */

/* The decoder of codes of K, or of V, to `type`, F16 or BF16. If it divides V's codes by a power of two, V's scales are
 * multiplied by it, so that F16 weights times these scales are as far from overflow as V's rows are. */
codes_values attention_codes_of(const attention *a, ptx_type type, bool is_v);

/* Loads a head's scale, F32, given a pointer to the first head's. */
ptx_val attention_head_scale(const attention *a, ptx_val scales);

/* ---- scores ---------------------------------------------------------------------------------------------------------- */

/* Finds the keys of the tile and of this part. Needs first, rows, the lengths and the window. */
void attention_find_keys(attention *a);

/* The number of the counted key `counted`, U32. */
ptx_val attention_key(const attention *a, ptx_val counted);

/* Declares the parameters of the shaping, after all others, and finds factor and Q's end. With scale 0 Q counts as zeros
 * and the scale as 1, so that a mask's -inf stays -inf. */
void attention_init_scores(attention *a, ptx_val scale);

/* The row's number in the tile's head, and the key's in the sequence, of a lane's first score; U32. */
typedef struct attention_origin {
    ptx_val row, key;
} attention_origin;

/* Shapes scores of the tile_k keys from `key` on, as exponents before `factor`, and sets a score to -inf if its row does not
 * see the key. Calls `find` for the lane's first score: at each use, to save registers, or once if finds_once. */
void attention_shape_and_mask(const attention *a, ptx_val key, bool finds_once, const attention_slice *scores,
                              attention_origin (*find)(const void *of, ptx_val key), const void *of);

/* Returns the shift of row i: the row's largest score, over the `lanes` lanes that share it, times the factor. */
ptx_val attention_find_shift(const attention *a, const attention_slice *slice, uint32_t i, int lanes);

/* Adds the sinks' scores to the sums of rows, and finds the factors that turn the rows' sums of V into O; they include the
 * head's scale of V. */
void attention_find_shares(const attention *a, const ptx_val numbers[], softmax_row rows[], ptx_val shares[],
                           uint32_t count);

/* If `is_here` holds, stores the log-sum-exp of a row, if requested. */
void attention_store_log(const attention *a, ptx_val is_here, ptx_val number, const softmax_row *row);

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

/* Thread blocks that share the keys of a tile of queries (split-K): each has a part of the keys and leaves a record of every
 * row. The last to arrive joins the records in the order of the parts, so that the result does not depend on which one is
 * last; no thread block waits for another. With split_k 0 the number of parts is the grid's: groups of 8 or 16 parts are
 * joined first, each by its last, then the groups by the last group. */

/* Stores the lane's columns of row i, from `column` on, into the row's record, a pointer. */
void attention_store_record(const attention *a, const attention_rows *r, uint32_t i, ptx_val column,
                            ptx_val record);

/* Ends a kernel whose warps have their own rows. If several thread blocks share the tile, stores the lane's rows of this part,
 * from row number `first` and `column` on, which may be out of bounds; the last part to arrive stores O and its logarithms.
 * Otherwise store_results stores O. All threads of the thread block must call it: it has barriers. */
void attention_finish(const attention *a, const attention_rows *r, ptx_val first, ptx_val column, ptx_val tid,
                      void (*store_results)(void *of, ptx_val first), void *of);

/* Like attention_finish, from the records of `warps` warps in shared memory, one warp after the other, tile_q rows each. */
void attention_leave_warps(const attention *a, ptx_val records, uint32_t warps, ptx_val tid);

/* ---- strategies ------------------------------------------------------------------------------------------------------ */

typedef struct attention_strategy {
    void (*shape)(kiln_shape *s, attention *a);
    void (*emit)(attention *a);
} attention_strategy;

extern const attention_strategy attention_strategy_simt, attention_strategy_mma, attention_strategy_decode,
    attention_strategy_wide;

#endif
