/* NF4 matrix product on CUDA cores, for many rows: sums in f32, A in f32.
 *
 * A thread block makes a tile of C, tile_m (16 or 32) rows by tile_n (32 or 64) columns. Its warps share the tile and split
 * K: each takes every k_warps-th quantised block of 64, and their sums are added in the order of the warps. A lane has tile_m
 * / 4 by tile_n / 8 sums, of rows 4 apart and columns 8 apart. For each 4 along K it loads a vector of A per row and a vector
 * of weights per column from shared memory.
 *
 * STAGES. Each warp copies 16 along K at a time to shared memory: A unchanged, and the decoded weights without their scales.
 * Lane l loads half of the 64 codes of columns l mod 16, l mod 16 + 16, ... So 8 of a stage's 16 come from each half of a
 * quantised block, and those of A do too. Rows and columns are 20 words apart, so that neither readers nor writers have bank
 * conflicts.
 *
 * DECODING takes a shift and a shuffle: a code is the number of a lane that has its value in a register. With 32 rows that is
 * a sixteenth of an instruction per product, and the stages share no room with a table.
 *
 * SCALES of 4096 along K are copied to shared memory at once, so that their sectors are full. They multiply the sums of 64
 * products, as in the narrow tiles.
 */
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/nf4_pairs.h"
#include "device/shared.h"
#include "device/tail.h"
#include "nf4_gemm.h"

enum {
    LANE_ROWS = 4, /* lanes of a warp along rows, along columns */
    LANE_COLUMNS = 8,
    DEPTH = 16, /* of a stage */
    ROUNDS = NF4_BLOCK_K / DEPTH,
    STRIDE = DEPTH + 4,            /* words from row to row, or column to column, of a stage */
    CODE_COLUMNS = WARP_LANES / 2, /* columns of one load */
    SUMS_PAD = 8,                  /* between rows of sums */
    MOST_ROWS = 8,
    MOST_COLUMNS = 8,
    MOST_SUMS = MOST_ROWS * MOST_COLUMNS
};

/* A variant during emission. */
typedef struct wide {
    ptx_fn *f;
    uint32_t tile_m, tile_n, k_warps;
    uint32_t rows, columns; /* per lane */
    uint32_t sums;          /* of a lane, row by row */
    uint32_t stage_bytes;   /* of a warp: A's rows, then weights */
    bool is_high_first;

    nf4_args args;
    nf4_scales scales;
    ptx_val tid, lane, tile, first_row;              /* the tile's first column and row */
    ptx_val value;                                   /* the value of code lane mod 16 */
    ptx_val shared, a_to, w_to;                      /* U32; where this lane writes */
    ptx_val a_from, w_from;                          /* and reads */
    ptx_val a_at[MOST_ROWS], codes_at[MOST_COLUMNS]; /* loads for a stage, for a quantised block */
    ptx_val partial[MOST_SUMS], sum[MOST_SUMS];
} wide;

static ptx_val word_at(const wide *g, ptx_val address, uint32_t words)
{
    return shared_at(g->f, PTX_F32, address, 4 * words);
}

/* In shared memory the scales follow the stages of all warps. */
static void init(wide *g)
{
    ptx_fn *f = g->f;
    const uint32_t bytes = 4 * STRIDE;
    uint64_t bits[WARP_LANES];
    for (uint32_t i = 0; i < WARP_LANES; i++)
        bits[i] = ptx_number(PTX_F32, nf4_values[i % 16]).bits;
    g->tid = ptx_tid_x(f);
    g->lane = ptx_laneid(f);
    g->scales.k_warp = ptx_warpid_x(f);
    g->tile = g->scales.first_column = ptx_mul(f, ptx_ctaid_x(f), g->tile_n);
    g->first_row = ptx_mul(f, ptx_ctaid_y(f), g->tile_m);
    g->scales.blocks = ptx_shr(f, g->args.k, NF4_BLOCK_K_LOG2);
    g->value = ptx_load_hint(f, ptx_at(f, ptx_global_table(f, PTX_F32, WARP_LANES, bits), g->lane), PTX_NC);
    nf4_scales_align(&g->scales);

    ptx_val lane_row = ptx_shr(f, g->lane, 3), lane_column = ptx_and(f, g->lane, 7);
    ptx_val side = ptx_shr(f, g->lane, 4), in_side = ptx_and(f, g->lane, CODE_COLUMNS - 1);
    g->shared = ptx_address(f, ptx_shared_dynamic(f, PTX_F32));
    ptx_val scales = ptx_add(f, g->shared, g->k_warps * g->stage_bytes);
    ptx_val a = ptx_mad(f, g->scales.k_warp, g->stage_bytes, g->shared);
    ptx_val w = ptx_add(f, a, bytes * g->tile_m);
    g->a_to = ptx_mad(f, lane_column, bytes, ptx_mad(f, lane_row, 16, a));
    g->a_from = ptx_mad(f, lane_row, bytes, a);
    g->w_to = ptx_mad(f, in_side, bytes, ptx_mad(f, side, 4 * DEPTH / 2, w));
    g->w_from = ptx_mad(f, lane_column, bytes, w);
    g->scales.from = ptx_mad(f, lane_column, g->scales.column_bytes, scales);
    nf4_scales_init(&g->scales, g->tid, g->lane, scales);

    ptx_val fours = ptx_shl(f, ptx_and(f, lane_row, 1), 2), along = ptx_mad(f, side, NF4_BLOCK_K / 2, fours);
    ptx_val row = ptx_add(f, g->first_row, lane_column), column = ptx_add(f, g->tile, in_side);
    for (uint32_t i = 0; i < g->tile_m / 8; i++) {
        ptx_val at = tail_clamp(f, ptx_add(f, row, 8 * i), g->args.m);
        g->a_at[i] = tail_element(f, g->args.in, at, g->args.a_stride, along);
    }
    ptx_val words = ptx_shr(f, g->args.k, 3), start = ptx_shl(f, side, 2);
    for (uint32_t i = 0; i < g->tile_n / CODE_COLUMNS; i++) {
        ptx_val at = tail_clamp(f, ptx_add(f, column, i * CODE_COLUMNS), g->args.n);
        g->codes_at[i] = tail_element(f, ptx_cast_ptr(f, g->args.packed, PTX_U32), at, words, start);
    }
}

/* ---- into shared memory ----------------------------------------------------------------------------------------- */

static void stage_round(wide *g, const ptx_val a_at[], ptx_val words[MOST_COLUMNS][4], uint32_t round)
{
    ptx_fn *f = g->f;
    ptx_val x[MOST_ROWS][4], w[8];
    for (uint32_t i = 0; i < g->tile_m / 8; i++)
        ptx_load_vec(f, 4, x[i], ptx_at_const(f, a_at[i], round * DEPTH / 2), PTX_NC);
    for (uint32_t i = 0; i < g->tile_n / CODE_COLUMNS; i++) {
        for (uint32_t code = 0; code < 8; code++) {
            const uint32_t nibble = g->is_high_first ? code ^ 1 : code;
            ptx_val lane = nibble == 0 ? words[i][round] : ptx_shr(f, words[i][round], 4 * nibble);
            w[code] = ptx_shfl_idx(f, g->value, lane);
        }
        for (uint32_t e = 0; e < 8; e += 4)
            ptx_store_vec(f, 4, word_at(g, g->w_to, i * CODE_COLUMNS * STRIDE + e), &w[e], PTX_PLAIN);
    }
    for (uint32_t i = 0; i < g->tile_m / 8; i++)
        ptx_store_vec(f, 4, word_at(g, g->a_to, 8 * i * STRIDE), x[i], PTX_PLAIN);
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

static void multiply_round(wide *g)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, at, ptx_u32(0), 4 * DEPTH, 16) {
        ptx_val x[MOST_ROWS][4], w[4];
        ptx_val a = ptx_add(f, g->a_from, at), b = ptx_add(f, g->w_from, at);
        for (uint32_t r = 0; r < g->rows; r++)
            ptx_load_vec(f, 4, x[r], word_at(g, a, r * LANE_ROWS * STRIDE), PTX_PLAIN);
        for (uint32_t c = 0; c < g->columns; c++) {
            ptx_load_vec(f, 4, w, word_at(g, b, c * LANE_COLUMNS * STRIDE), PTX_PLAIN);
            for (uint32_t e = 0; e < 4; e++)
                for (uint32_t r = 0; r < g->rows; r++)
                    ptx_fma_to(f, g->partial[r * g->columns + c], x[r][e], w[e]);
        }
    }
}

/* Multiplies the quantised block from k on, whose scales are at `scales`. */
static void multiply_block(void *strategy, ptx_val k, ptx_val scales)
{
    wide *g = strategy;
    ptx_fn *f = g->f;
    ptx_val words[MOST_COLUMNS][4], a_at[MOST_ROWS], word = ptx_shr(f, k, 3);
    for (uint32_t i = 0; i < g->tile_n / CODE_COLUMNS; i++)
        ptx_load_vec(f, 4, words[i], ptx_at(f, g->codes_at[i], word), NF4_CODE_HINTS);
    for (uint32_t i = 0; i < g->tile_m / 8; i++)
        a_at[i] = ptx_at(f, g->a_at[i], k);
    for (uint32_t i = 0; i < g->sums; i++)
        ptx_set(f, g->partial[i], 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        stage_round(g, a_at, words, round);
        ptx_warp_barrier(f);
        multiply_round(g);
        ptx_warp_barrier(f);
    }
    nf4_scales_add(&g->scales, scales, LANE_COLUMNS, g->columns, g->sums, g->partial, g->sum);
}

/* ---- sums over warps ------------------------------------------------------------------------------------------- */

/* The warps' sums overlay their stages. Thread t then takes column t mod tile_n, and every (threads / tile_n)-th row. */
static void store_tile(wide *g)
{
    ptx_fn *f = g->f;
    const uint32_t stride = g->tile_n + SUMS_PAD, rows_apart = g->k_warps * WARP_LANES / g->tile_n;
    ptx_val mine = ptx_mad(f, g->scales.k_warp, 4 * stride * g->tile_m, g->shared);
    ptx_val lane_row = ptx_shr(f, g->lane, 3), lane_column = ptx_and(f, g->lane, 7);
    ptx_val lane_line = ptx_mad(f, lane_row, 4 * stride, mine);
    ptx_val lane_to = ptx_mad(f, lane_column, 4, lane_line);
    for (uint32_t i = 0; i < g->sums; i++) {
        const uint32_t row_at = i / g->columns * LANE_ROWS, column_at = i % g->columns * LANE_COLUMNS;
        ptx_store(f, word_at(g, lane_to, row_at * stride + column_at), g->sum[i]);
    }
    ptx_barrier(f);
    ptx_val in_tile = ptx_and(f, g->tid, g->tile_n - 1), row = ptx_div(f, g->tid, g->tile_n);
    ptx_val line = ptx_mad(f, row, 4 * stride, g->shared);
    ptx_val from = ptx_mad(f, in_tile, 4, line);
    ptx_val column = ptx_add(f, g->tile, in_tile), first = ptx_add(f, g->first_row, row);
    ptx_val has_column = ptx_lt(f, column, g->args.n), to = ptx_at(f, g->args.out, column);
    for (uint32_t r = 0; r < g->tile_m; r += rows_apart) {
        ptx_val sum = shared_sum(f, word_at(g, from, r * stride), g->k_warps, 4 * g->tile_m * stride);
        ptx_val at = ptx_add(f, first, r), has_row = ptx_lt(f, at, g->args.m);
        ptx_val row_at = ptx_at(f, to, ptx_mul_wide(f, at, g->args.c_stride));
        narrow_store_where(f, PTX_F32, PTX_F32, row_at, sum, ptx_and(f, has_row, has_column));
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static wide geometry(ptx_fn *f, const kiln_variant *v)
{
    wide g = {.f = f, .is_high_first = kiln_is(v, "nibbles", "high")};
    g.tile_m = kiln_int(v, "tile_m");
    g.tile_n = kiln_int(v, "tile_n");
    g.k_warps = kiln_int(v, "k_warps");
    g.rows = g.tile_m / LANE_ROWS;
    g.columns = g.tile_n / LANE_COLUMNS;
    g.sums = g.rows * g.columns;
    g.stage_bytes = 4 * STRIDE * (g.tile_m + g.tile_n);
    g.scales = nf4_scales_plan(f, g.tile_n, g.k_warps, WARP_LANES / 2, 1);
    return g;
}

void nf4_gemm_shape_wide(kiln_shape *s, const kiln_variant *v)
{
    const wide g = geometry(NULL, v);
    const uint32_t sums = 2 * g.sums, resident = sums <= 32 ? 512 : sums <= 64 ? 384 : 256;
    s->block[0] = g.k_warps * WARP_LANES;
    s->shared_bytes = g.k_warps * g.stage_bytes + nf4_scales_bytes(&g.scales, v);
    s->blocks_per_multiprocessor = lanes_blocks(g.k_warps * WARP_LANES, resident);
    s->trip = NF4_BLOCK_K;
    s->loop_warps = g.k_warps;
}

void nf4_gemm_emit_wide(ptx_fn *f, const kiln_variant *v)
{
    wide g = geometry(f, v);
    g.args = nf4_declare_args(f, v, false);
    g.scales.args = &g.args;
    init(&g);
    for (uint32_t i = 0; i < g.sums; i++) {
        g.sum[i] = ptx_var(f, ptx_f32(0));
        g.partial[i] = ptx_declare(f, PTX_F32);
    }
    nf4_scales_each_step(&g.scales, multiply_block, &g);
    store_tile(&g);
}
