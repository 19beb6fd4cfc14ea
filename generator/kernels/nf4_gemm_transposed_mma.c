/* The transposed NF4 product on tensor cores.
 *
 * A thread block makes a tile of C, tile_m rows by 512 along K. Each of its eight warps has a quantised block, the 64 along K
 * that share a scale, so no sums cross warps. Weights are mma's A: its 16 rows are values of k, and the reduction runs over
 * columns. Rows of A are mma's B. The order of columns is free as long as the operands agree: of 16 columns lane t of four
 * has 4t to 4t + 3, which are 8 consecutive bytes in A.
 *
 * STAGES. All threads copy 32 columns of codes, scales and A to shared memory. The next 32 wait in registers while these are
 * multiplied. The buffer is double, so that 32 columns take one barrier. The 32 bytes that a warp needs of a column's 256 are
 * swizzled by the reading lane, so that there are no bank conflicts.
 *
 * DECODING. A register of mma's A has two columns of one k; a byte of codes has two k of one column. So the words of two
 * columns are merged first, with four instructions for 16 weights. Then nf4_pairs.h's table gives a register per byte.
 *
 * SCALES differ along the reduction and along k, so they multiply an operand. If the type of products has f32's range that is
 * A, for the 64 k of a warp at once. For bf16 the products are in bf16. A scale becomes two bf16, the rounded one and the
 * rest, and a * high + a * low is rounded once; with one part alone, the scale's rounding would add a third half ulp, to this
 * one and to the table's. For f16 the products are in tf32, which has f16's fraction: a is widened, multiplied by the scale
 * in f32, and rounded once. A gradient times a scale is often too small for f16, and so is a weight times a small scale; tf32
 * holds both. Products in f16 take half of the time, and are for callers who know their scales (scales normal): there the
 * scale multiplies the weight, in two parts as above.
 *
 * SUMS. A tensor core truncates what it adds, by the exponent of the largest, so that after many columns it would lose
 * small products. Every 1024 columns the sums are added to a total in f32, and restart at 0.
 */
#include "device/fragment.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/nf4_pairs.h"
#include "device/shared.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "nf4_gemm.h"

enum {
    WARPS = 8,
    THREADS = WARP_LANES * WARPS,
    TILE_K = TRANSPOSED_TILE_K,
    WARP_K = TILE_K / WARPS, /* a quantised block, which has one scale */
    CHUNK = 32,              /* columns of a stage */
    STEP = 16,               /* columns of one mma, or of two */
    STEPS = CHUNK / STEP,
    FOLD = 1024 / CHUNK, /* stages that one set of sums takes: see SUMS above */
    COLUMN_BYTES = TILE_K / 2,
    CODES_BYTES = CHUNK * COLUMN_BYTES,
    CODES_LOADS = CODES_BYTES / 16 / THREADS,
    SCALE_THREADS = THREADS / 2,
    SCALES_STRIDE = 8 * CHUNK / 2 + 16, /* bytes from warp to warp, without bank conflicts */
    SCALES_BYTES = WARPS * SCALES_STRIDE,
    ROW_BYTES = 2 * CHUNK + 32, /* of A; likewise */
    LANE_K = 8,
    FRAGMENTS = LANE_K / 2,
    MOST_GROUPS = 8, /* of 8 rows */
    MOST_SUMS = FRAGMENTS * MOST_GROUPS * 4
};

/* Codes, scales or A in flight through shared memory; addresses there are those in the first buffer. */
typedef struct stream {
    ptx_val column;   /* this thread's first column of a stage */
    ptx_val to, from; /* where this thread stores, and where this lane reads */
    ptx_val now;      /* where it reads in the buffer in use */
} stream;

typedef struct transposed_mma {
    ptx_fn *f;
    ptx_type pair;   /* f16x2, or bf16x2 */
    uint32_t groups; /* of 8 rows */
    uint32_t stage_bytes;
    uint32_t row_loads, row_words,
        row_threads;             /* of A: loads of a thread, words of a load, threads that have one */
    uint32_t sum_count;          /* sums of a thread */
    uint32_t columns_of_sums;    /* columns that one set of sums takes, over all parts: a power of two */
    bool scales_rows;            /* scales multiply A: where the type of products has f32's range */
    bool is_high_first, is_tf32; /* products in tf32 of A in f16 */

    nf4_pairs pairs;
    nf4_args args;
    ptx_val tid, lane_id, warp;
    fragment_lane lane;
    ptx_val first_k, first_row, minus_zero;
    stream codes, scales, rows;
    ptx_val codes_at, scales_at, row_at[MOST_GROUPS]; /* this thread's loads from column 0 */
    ptx_val buffer;                                   /* bytes to the buffer in use */
    ptx_val loaded_codes[CODES_LOADS][4], loaded_scales[2], loaded_rows[MOST_GROUPS];
    ptx_val sum[MOST_SUMS], total; /* four of each product; the total of earlier sums, in local memory */
} transposed_mma;

static ptx_val *sum_of(transposed_mma *g, uint32_t fragment, uint32_t group)
{
    return &g->sum[4 * (fragment * g->groups + group)];
}

/* ---- layout ---------------------------------------------------------------------------------------------------- */

/* Finds where this thread loads and stores, and where this lane reads; the streams' stages begin at `codes`, `scales` and
 * `rows`. */
static void init_streams(transposed_mma *g, ptx_val codes, ptx_val scales, ptx_val rows)
{
    ptx_fn *f = g->f;
    /* Codes past the end of K repeat those before it. */
    ptx_val unit = ptx_and(f, g->tid, COLUMN_BYTES / 16 - 1);
    ptx_val k = ptx_mad(f, unit, 32, g->first_k);
    ptx_val most = ptx_sub(f, g->args.k, 32);
    ptx_val packed = ptx_at(f, g->args.packed, ptx_shr(f, ptx_min(f, k, most), 1));
    g->codes_at = ptx_address(f, packed);
    g->codes.column = ptx_shr(f, g->tid, 4);
    ptx_val swizzle = ptx_and(f, ptx_shr(f, g->codes.column, 2), 3);
    ptx_val group = ptx_xor(f, ptx_shr(f, unit, 1), swizzle);
    ptx_val half = ptx_and(f, unit, 1);
    ptx_val in_column = ptx_mad(f, half, 16, ptx_mul(f, group, 32));
    ptx_val to = ptx_mad(f, g->codes.column, COLUMN_BYTES, in_column);
    g->codes.to = ptx_add(f, to, codes);
    ptx_val mine = ptx_mul(f, ptx_xor(f, g->warp, g->lane.t), 32);
    ptx_val from = ptx_mad(f, g->lane.t, 4 * COLUMN_BYTES, ptx_mad(f, g->lane.g, 4, mine));
    g->codes.from = ptx_add(f, from, codes);

    /* Half of the threads load scales, each the scales of two columns in one quantised block. */
    ptx_val block = ptx_and(f, g->tid, WARPS - 1);
    ptx_val first_block = ptx_shr(f, g->first_k, NF4_BLOCK_K_LOG2);
    ptx_val blocks = ptx_shr(f, g->args.k, NF4_BLOCK_K_LOG2);
    ptx_val number = ptx_add(f, first_block, block), last_block = ptx_sub(f, blocks, 1);
    g->scales_at = ptx_address(f, ptx_at(f, g->args.scale, ptx_min(f, number, last_block)));
    ptx_val pair = ptx_shr(f, g->tid, 3);
    g->scales.column = ptx_shl(f, pair, 1);
    to = ptx_mad(f, block, SCALES_STRIDE, ptx_mul(f, pair, 8));
    g->scales.to = ptx_add(f, to, scales);
    from = ptx_mad(f, g->warp, SCALES_STRIDE, ptx_mul(f, g->lane.t, 16));
    g->scales.from = ptx_add(f, from, scales);

    /* A thread loads an element of each eighth row, or eight elements of one row. Rows past the last repeat the
     * last. */
    const bool is_vector = g->row_words == 4;
    ptx_val row = is_vector ? ptx_shr(f, g->tid, 2) : g->warp;
    ptx_val piece = ptx_and(f, g->lane_id, CHUNK / (is_vector ? 8 : 1) - 1);
    g->rows.column = is_vector ? ptx_mul(f, piece, 8) : piece;
    ptx_val first = ptx_add(f, row, g->first_row), last = ptx_sub(f, g->args.m, 1);
    for (uint32_t i = 0; i < g->row_loads; i++) {
        ptx_val at = ptx_min(f, ptx_add(f, first, 8 * i), last);
        g->row_at[i] = tail_element(f, g->args.in, at, g->args.n, g->rows.column);
    }
    to = ptx_mad(f, row, ROW_BYTES, ptx_mul(f, g->rows.column, 2));
    g->rows.to = ptx_add(f, to, rows);
    from = ptx_mad(f, g->lane.g, ROW_BYTES, ptx_mul(f, g->lane.t, 8));
    g->rows.from = ptx_add(f, from, rows);
}

/* ---- 32 columns into registers --------------------------------------------------------------------------------- */

/* Computes one-instruction addresses here, not across the loop: with 32 rows no register is left. */
static void load_codes(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val column_bytes = ptx_shr(f, g->args.k, 1);
    ptx_val first = ptx_add(f, chunk, g->codes.column), last = ptx_sub(f, g->args.n, 1);
    for (uint32_t i = 0; i < CODES_LOADS; i++) {
        ptx_val column = ptx_min(f, ptx_add(f, first, i * CHUNK / CODES_LOADS), last);
        ptx_val at = ptx_mad_wide(f, column, column_bytes, g->codes_at);
        tail_set(f, 4, g->loaded_codes[i], ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), NF4_CODE_HINTS);
    }
}

/* Scales out of bounds are 0. */
static void load_scales(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_add(f, chunk, g->scales.column);
    ptx_val scale_bytes = ptx_shr(f, g->args.k, 4);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val column = ptx_add(f, first, i);
        ptx_val at = ptx_mad_wide(f, column, scale_bytes, g->scales_at);
        ptx_val in_bounds = ptx_lt(f, column, g->args.n);
        ptx_set(f, g->loaded_scales[i], 0);
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, g->loaded_scales[i],
                    ptx_load_hint(f, ptx_pointer(f, PTX_GLOBAL, PTX_F32, at), PTX_NC));
        }
    }
}

static void load_rows(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val in_bounds = ptx_lt(f, ptx_add(f, chunk, g->rows.column), g->args.n);
    for (uint32_t i = 0; i < g->row_loads * g->row_words; i++)
        ptx_set(f, g->loaded_rows[i], 0);
    for (uint32_t i = 0; i < g->row_loads; i++) {
        ptx_val at = ptx_at(f, g->row_at[i], chunk);
        PTX_WHEN (f, in_bounds) {
            if (g->row_words == 1)
                ptx_set(f, g->loaded_rows[i], ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, at, PTX_U16), PTX_NC));
            else
                tail_set(f, 4, g->loaded_rows, ptx_cast_ptr(f, at, PTX_U32), PTX_NC);
        }
    }
}

static void load_columns(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    load_codes(g, chunk);
    PTX_IF (f, ptx_lt(f, g->tid, SCALE_THREADS)) {
        load_scales(g, chunk);
    }
    IF_NEEDED (f, g->row_threads < THREADS, ptx_lt(f, g->tid, g->row_threads)) {
        load_rows(g, chunk);
    }
}

/* ---- and into shared memory ------------------------------------------------------------------------------------ */

static void store_scales(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val halves[2], high[2], low[2];
    ptx_val to = ptx_add(f, g->scales.to, g->buffer);
    if (g->is_tf32) {
        ptx_store_vec(f, 2, shared_at(f, PTX_F32, to, 0), g->loaded_scales, PTX_PLAIN);
        return;
    }
    halves[0] = narrow_pair(f, g->args.type, g->loaded_scales[0], g->loaded_scales[1]);
    widen_pair(f, g->args.type, halves[0], high);
    for (uint32_t i = 0; i < 2; i++)
        low[i] = ptx_sub(f, g->loaded_scales[i], high[i]);
    halves[1] = narrow_pair(f, g->args.type, low[0], low[1]);
    ptx_store_vec(f, 2, shared_at(f, PTX_U32, to, 0), halves, PTX_PLAIN);
}

static void store_rows(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->rows.to, g->buffer);
    for (uint32_t i = 0; i < g->row_loads; i++)
        ptx_store_vec(f, (int)g->row_words,
                      shared_at(f, g->row_words == 1 ? PTX_U16 : PTX_U32, to, i * 8 * ROW_BYTES),
                      &g->loaded_rows[i], PTX_PLAIN);
}

static void store_columns(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->codes.to, g->buffer);
    for (uint32_t i = 0; i < CODES_LOADS; i++)
        ptx_store_vec(f, 4, shared_at(f, PTX_U32, to, i * CODES_BYTES / CODES_LOADS), g->loaded_codes[i],
                      PTX_PLAIN);
    PTX_IF (f, ptx_lt(f, g->tid, SCALE_THREADS)) {
        store_scales(g);
    }
    IF_NEEDED (f, g->row_threads < THREADS, ptx_lt(f, g->tid, g->row_threads)) {
        store_rows(g);
    }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* Merges the words of two columns: codes of the even k, and of the odd ones. The first column is in the bytes' low halves. */
static void merge_columns(const transposed_mma *g, ptx_val first, ptx_val second, ptx_val merged[2])
{
    ptx_fn *f = g->f;
    enum { FIRST_OR_SECOND = 0xCA /* c ? b : a, of (c, b, a) */ };
    ptx_val low_halves = ptx_u32(0x0f0f0f0f);
    ptx_val up = ptx_shl(f, second, 4), down = ptx_shr(f, first, 4);
    merged[g->is_high_first ? 1 : 0] = ptx_lop3(f, low_halves, first, up, FIRST_OR_SECOND);
    merged[g->is_high_first ? 0 : 1] = ptx_lop3(f, low_halves, down, second, FIRST_OR_SECOND);
}

/* Two elements of neighbouring columns times their scales, which have a high and a low part. */
static ptx_val scaled(const transposed_mma *g, ptx_val x, const ptx_val scale[2])
{
    ptx_fn *f = g->f;
    ptx_val rest = g->args.type == PTX_F16 ? ptx_mul(f, x, scale[1]) : ptx_fma(f, x, scale[1], g->minus_zero);
    return ptx_fma(f, x, scale[0], rest);
}

static void read_rows(transposed_mma *g, uint32_t step, ptx_val rows[][2])
{
    ptx_fn *f = g->f;
    for (uint32_t group = 0; group < g->groups; group++) {
        ptx_val words[2];
        ptx_load_vec(f, 2, words, shared_at(f, PTX_U32, g->rows.now, group * 8 * ROW_BYTES + step * 2 * STEP),
                     PTX_PLAIN);
        for (uint32_t i = 0; i < 2; i++)
            rows[group][i] = ptx_as(f, g->pair, words[i]);
    }
}

/* Reads words of columns, from `column` of the stage on. */
static void read_codes(const transposed_mma *g, uint32_t column, uint32_t count, ptx_val words[])
{
    for (uint32_t c = 0; c < count; c++)
        words[c] = ptx_load(g->f, shared_at(g->f, PTX_U32, g->codes.now, (column + c) * COLUMN_BYTES));
}

static void multiply_step(transposed_mma *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val words[4], merged[2][2], halves[4], scales[2][2], rows[MOST_GROUPS][2];
    read_codes(g, step * STEP, 4, words);
    ptx_load_vec(f, 4, halves, shared_at(f, PTX_U32, g->scales.now, step * STEP / 2 * 8), PTX_PLAIN);
    for (uint32_t pair = 0; pair < 2; pair++) {
        merge_columns(g, words[2 * pair], words[2 * pair + 1], merged[pair]);
        for (uint32_t i = 0; i < 2; i++)
            scales[pair][i] = ptx_as(f, g->pair, halves[2 * pair + i]);
    }
    read_rows(g, step, rows);
    for (uint32_t group = 0; g->scales_rows && group < g->groups; group++)
        for (uint32_t pair = 0; pair < 2; pair++)
            rows[group][pair] = scaled(g, rows[group][pair], scales[pair]);
    for (uint32_t fragment = 0; fragment < FRAGMENTS; fragment++) {
        ptx_val weights[4];
        for (uint32_t i = 0; i < 4; i++) {
            ptx_val codes[2];
            nf4_pairs_decode(&g->pairs, merged[i / 2][i % 2], fragment, codes);
            weights[i] = ptx_as(g->f, g->pair, codes[0]);
            if (!g->scales_rows)
                weights[i] = scaled(g, weights[i], scales[i / 2]);
        }
        for (uint32_t group = 0; group < g->groups; group++) {
            ptx_val *sum = sum_of(g, fragment, group);
            tensor_multiply(f, g->args.type, sum, weights, rows[group], sum);
        }
    }
}

/* Here a register of mma's A is one weight, so a byte of codes, two k of one column, is decoded directly. The table's f16
 * values are tf32 values too. A of two columns, half of a lane's share of a step, is widened and multiplied by their scales. */
static void multiply_step_in_tf32(transposed_mma *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val rows_of_step[MOST_GROUPS][2];
    read_rows(g, step, rows_of_step);
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val words[2], scales[2], rows[MOST_GROUPS][2];
        const uint32_t column = step * STEP + 2 * half;
        read_codes(g, column, 2, words);
        ptx_load_vec(f, 2, scales, shared_at(f, PTX_F32, g->scales.now, column * 4), PTX_PLAIN);
        for (uint32_t group = 0; group < g->groups; group++) {
            ptx_val x[2];
            widen_pair(f, PTX_F16, ptx_as(f, PTX_U32, rows_of_step[group][half]), x);
            for (uint32_t i = 0; i < 2; i++)
                rows[group][i] = ptx_cvt_tf32(f, ptx_mul(f, x[i], scales[i]));
        }
        for (uint32_t fragment = 0; fragment < FRAGMENTS; fragment++) {
            ptx_val weights[4];
            for (uint32_t i = 0; i < 2; i++) {
                ptx_val pair[2], x[2];
                nf4_pairs_decode(&g->pairs, words[i], fragment, pair);
                widen_pair(f, PTX_F16, pair[0], x);
                for (uint32_t odd = 0; odd < 2; odd++)
                    weights[2 * i + odd] = ptx_as(f, PTX_B32, x[odd]);
            }
            for (uint32_t group = 0; group < g->groups; group++)
                ptx_mma_to(f, PTX_MMA_M16N8K8_TF32_F32, sum_of(g, fragment, group), weights, rows[group]);
        }
    }
}

/* The total after the set of sums that contains `column`; a bit of `column` selects the half of the array. With only constant
 * offsets, ptxas would hold the array in registers, and spill them. */
static ptx_val total_of(const transposed_mma *g, ptx_val column)
{
    ptx_fn *f = g->f;
    const uint32_t columns = g->columns_of_sums;
    ptx_val parity = ptx_and(f, column, columns);
    return ptx_at(f, g->total, ptx_div(f, parity, columns / g->sum_count));
}

/* Adds the total so far to the sums. */
static void add_total(transposed_mma *g, ptx_val total)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < g->sum_count; i += 4) {
        ptx_val before[4];
        ptx_load_vec(f, 4, before, ptx_at_const(f, total, i), PTX_PLAIN);
        for (uint32_t e = 0; e < 4; e++)
            ptx_add_to(f, g->sum[i + e], before[e]);
    }
}

/* Call it after a stage whose first column is `chunk`. */
static void fold_sums(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    const uint32_t columns = g->columns_of_sums, last = columns - CHUNK * g->args.split_k;
    PTX_IF (f, ptx_eq(f, ptx_and(f, chunk, last), last)) {
        ptx_rarely(f);
        PTX_IF (f, ptx_ge(f, chunk, columns)) {
            add_total(g, total_of(g, ptx_xor(f, chunk, columns)));
        }
        /* The sums become the total, and restart at 0. */
        ptx_val total = total_of(g, chunk);
        for (uint32_t i = 0; i < g->sum_count; i += 4) {
            ptx_store_vec(f, 4, ptx_at_const(f, total, i), &g->sum[i], PTX_PLAIN);
            for (uint32_t e = 0; e < 4; e++)
                ptx_set(f, g->sum[i + e], 0);
        }
    }
}

/* The first column of the thread block's part. */
static ptx_val first_chunk(const transposed_mma *g)
{
    return g->args.split_k == 1 ? ptx_u32(0) : ptx_mul(g->f, ptx_ctaid_z(g->f), CHUNK);
}

static void multiply_columns(transposed_mma *g)
{
    ptx_fn *f = g->f;
    const uint32_t columns = g->columns_of_sums, stride = g->args.split_k * CHUNK;
    for (uint32_t i = 0; i < g->sum_count; i++)
        g->sum[i] = ptx_var(f, ptx_f32(0));
    g->buffer = ptx_var(f, ptx_u32(0));
    g->total = ptx_local(f, PTX_F32, 2 * g->sum_count, 16);
    ptx_val start = first_chunk(g);
    PTX_IF (f, ptx_lt(f, start, g->args.n)) {
        load_columns(g, start);
    }
    PTX_FOR (f, chunk, start, g->args.n, stride) {
        ptx_main_loop(f);
        store_columns(g);
        ptx_barrier(f);
        ptx_val next = ptx_add(f, chunk, stride);
        PTX_IF (f, ptx_lt(f, next, g->args.n)) {
            load_columns(g, next);
        }
        g->codes.now = ptx_add(f, g->codes.from, g->buffer);
        g->scales.now = ptx_add(f, g->scales.from, g->buffer);
        g->rows.now = ptx_add(f, g->rows.from, g->buffer);
        for (uint32_t step = 0; step < STEPS; step++)
            (g->is_tf32 ? multiply_step_in_tf32 : multiply_step)(g, step);
        shared_toggle(f, g->buffer, ptx_u32(g->stage_bytes));
        fold_sums(g, chunk);
    }
    /* Adds the saved total, if there is one, to the last sums. */
    start = first_chunk(g);
    PTX_IF (f, ptx_lt(f, ptx_add(f, start, columns - stride), g->args.n)) {
        ptx_rarely(f);
        ptx_val past_last = ptx_sub(f, ptx_add(f, g->args.n, stride - 1), start);
        add_total(g, total_of(g, ptx_sub(f, past_last, columns)));
    }
}

/* Call it before the loop, and again after it if the sums leave no registers to keep its values. */
static void init_thread(transposed_mma *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->lane_id = ptx_laneid(f);
    g->warp = ptx_warpid_x(f);
    g->lane = fragment_find_lane(f, g->lane_id);
    g->first_k = ptx_mul(f, ptx_ctaid_x(f), TILE_K);
    g->first_row = ptx_mul(f, ptx_ctaid_y(f), 8 * g->groups);
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* A lane has eight consecutive k of two rows of each eight. */
static void store_tile(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val mine = ptx_mad(f, g->warp, WARP_K, g->first_k);
    ptx_val k = ptx_mad(f, g->lane.g, LANE_K, mine);
    ptx_val has_k = ptx_lt(f, k, g->args.k);
    ptx_val first = ptx_mad(f, g->lane.t, 2, g->first_row);
    for (uint32_t group = 0; group < g->groups; group++) {
        for (uint32_t odd = 0; odd < 2; odd++) {
            ptx_val words[FRAGMENTS];
            ptx_val row = ptx_add(f, first, 8 * group + odd);
            ptx_val at = ptx_cast_ptr(f, tail_element(f, g->args.out, row, g->args.k, k), PTX_U32);
            for (uint32_t i = 0; i < FRAGMENTS; i++)
                words[i] =
                    narrow_pair(f, g->args.type, sum_of(g, i, group)[odd], sum_of(g, i, group)[2 + odd]);
            ptx_val has_row = ptx_lt(f, row, g->args.m);
            PTX_WHEN (f, ptx_and(f, has_k, has_row)) {
                ptx_store_vec(f, 4, at, words, PTX_PLAIN);
            }
        }
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static transposed_mma geometry(ptx_fn *f, const kiln_variant *v)
{
    const ptx_type type = kiln_type(v, "a");
    const bool is_vector = kiln_int(v, "vector") == 8;
    transposed_mma g = {.f = f, .pair = type == PTX_F16 ? PTX_F16X2 : PTX_BF16X2};
    g.groups = kiln_int(v, "tile_m") / 8;
    g.stage_bytes = CODES_BYTES + SCALES_BYTES + 8 * g.groups * ROW_BYTES;
    g.row_loads = is_vector ? 1 : g.groups;
    g.row_words = is_vector ? 4 : 1;
    g.row_threads = is_vector ? g.groups * 8 * CHUNK / 8 : THREADS;
    g.sum_count = FRAGMENTS * g.groups * 4;
    g.columns_of_sums = FOLD * CHUNK * kiln_int(v, "split_k");
    g.scales_rows = type == PTX_BF16;
    g.is_high_first = kiln_is(v, "nibbles", "high");
    g.is_tf32 = type == PTX_F16 && kiln_is(v, "scales", "any");
    g.pairs = nf4_table(f, v, type, 2048);
    g.pairs.is_high_first = g.is_tf32 && g.is_high_first; /* otherwise merge_columns orders the nibbles */
    return g;
}

void nf4_gemm_transposed_shape_mma(kiln_shape *s, const kiln_variant *v)
{
    const transposed_mma g = geometry(NULL, v);
    /* With its addresses of A two thread blocks would run out of registers. */
    const bool is_tight = g.groups == 4 && g.row_words == 1;
    s->block[0] = THREADS;
    s->shared_bytes = g.pairs.bytes + 2 * g.stage_bytes;
    s->blocks_per_multiprocessor = g.groups <= 4 && !is_tight ? 2 : 1;
    s->trip = CHUNK;
}

void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    transposed_mma g = geometry(f, v);
    g.args = nf4_declare_args(f, v, true);
    init_thread(&g);
    if (g.scales_rows)
        g.minus_zero = ptx_var(f, ptx_bits(PTX_BF16X2, 0x80008000));
    /* The table, then two stages. */
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    ptx_val codes = ptx_add(f, start, nf4_pairs_layout(&g.pairs, start));
    ptx_val scales = ptx_add(f, codes, CODES_BYTES), rows = ptx_add(f, scales, SCALES_BYTES);
    nf4_pairs_find(&g.pairs, g.lane_id);
    nf4_pairs_fill(&g.pairs, g.tid);
    init_streams(&g, codes, scales, rows);
    for (uint32_t i = 0; i < 4 * CODES_LOADS; i++)
        g.loaded_codes[i / 4][i % 4] = ptx_var(f, ptx_u32(0));
    for (uint32_t i = 0; i < 2; i++)
        g.loaded_scales[i] = ptx_var(f, ptx_f32(0));
    for (uint32_t i = 0; i < g.row_loads * g.row_words; i++)
        g.loaded_rows[i] = ptx_var(f, ptx_u32(0));
    multiply_columns(&g); /* its first barrier is also the table's */
    if (g.groups == MOST_GROUPS || (g.args.split_k > 1 && g.args.type == PTX_F16))
        init_thread(&g);
    const bool is_split = g.args.split_k > 1;
    IF_NEEDED (f, is_split, nf4_add_parts(f, &g.args, ptx_tid_x(f), THREADS, g.sum, g.sum_count)) {
        if (is_split)
            ptx_rarely(f);
        store_tile(&g);
    }
}
