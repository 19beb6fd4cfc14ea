/* NF4 matrix product on tensor cores.
 *
 * The weights are the first operand of mma: 16 columns of B are its 16 rows. A is the second: eight of its rows are the 8
 * columns. So mma gives C transposed, and 1 to 8 rows of A cost the same. A thread block makes tile_m rows by tile_n
 * columns of C. In a wide tile (tile_n from 64, or tile_m from 16) each warp has 32 columns, and `k_warps` groups of such
 * warps share K; in a narrow one all warps have the same columns and share K. A quantised block is 64 weights along K with
 * one scale. Each k_warp takes every k_warps-th quantised block, and the sums are added in the order of the warps. Each of
 * `split_k` thread blocks has a part of K. With split_k 0 each of as many thread blocks as fit the device at once has an equal
 * stretch of the quantised blocks of all tiles (device/split.h): no second wave, and none of them without work.
 *
 * ORDER ALONG K. Any order will do as long as the operands agree. In a quantised block, lane (g, t) takes the 16 codes from
 * 16*t on of columns g and g + 8, 8 bytes each, and the same 16 elements of row g of A, 32 bytes. Each byte becomes one
 * register of an operand, two weights: prmt for the byte, mad for the address (not with an aligned table), one load from
 * the table. Four lanes read a whole sector of codes, rows of A in shared memory have 16 bytes of padding, and nothing is
 * repacked.
 *
 * SCALES multiply the sums of a quantised block, in f32: weights keep the 11 or 8 bits that the table has, and no scale is
 * too large or too small for the type.
 *
 * PREFETCHING. Codes go straight into registers, since no two warps need the same ones: through shared memory they would
 * take twice the bandwidth that already limits the table. As soon as a quantised block is done, its registers are loaded
 * for the one that comes `depth` later. A and the scales are copied into shared memory (nf4_gemm_mma_stages.c). A thread block
 * reads each row of A once, and each warp reads all of it out of shared memory, which is what limits many rows: with 16 or 32
 * rows and tile_n 128 a warp has 64 columns, and half as many bytes of A for each. Then it holds its part of A in registers, and
 * decodes 16 columns after the other. Two thread blocks of four warps wait for each other less than one of eight.
 * With 16 warps a thread block has a multiprocessor to itself: as many bytes are on the way as with
 * two of 8 warps, but K need not be split over thread blocks to get them, nor A be copied twice.
 */
#include "nf4_gemm_mma.h"

#include "nf4_gemm.h"

#include "device/copy.h"
#include "device/lanes.h"
#include "device/shared.h"
#include "device/tensor.h"

enum {
    BLOCK_PRODUCTS = 4, /* of a quantised block */
    MOST_HELD_TILES = 4,
    MOST_THREADS = 512,
    MOST_SUMS = 64 /* that a thread adds over the k_warps */
};

/* ---- this warp's codes ------------------------------------------------------------------------------------------- */

static void init_codes(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val of_warp = ptx_mad(f, g->column_warp, SUMS_COLUMNS * g->groups, g->tile.first_column);
    ptx_val mine = ptx_add(f, of_warp, g->lane.g);
    ptx_val block = ptx_add(f, g->tile.first_block, g->k_warp);
    ptx_val byte = ptx_mad(f, g->lane.t, 4 * NF4_LANE_WORDS, ptx_mul(f, block, NF4_BLOCK_K / 2));
    ptx_val column_bytes = ptx_shr(f, g->args.k, 1);
    for (uint32_t i = 0; i < 2 * g->groups; i++) {
        ptx_val column = ptx_add(f, mine, 8 * i);
        g->codes_at[i] = ptx_var(f, nf4_codes_at(f, &g->args, column, column_bytes, byte));
        for (uint32_t j = 0; j < g->depth; j++)
            for (uint32_t word = 0; word < NF4_LANE_WORDS; word++)
                g->codes[j][i][word] = ptx_var(f, ptx_u32(0));
    }
}

/* Loads the codes of this warp's block `ahead`, counted from the iteration's first, if it is in bounds. */
static void load_ahead(nf4_gemm_mma *g, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const uint32_t words = ahead * g->k_warps * NF4_BLOCK_WORDS;
    PTX_WHEN (f, nf4_gemm_in_bounds(g, g->ends, done, ahead)) {
        for (uint32_t i = 0; i < 2 * g->groups; i++)
            nf4_load_words(f, NF4_LANE_WORDS, g->codes[ahead % g->depth][i],
                           ptx_at_const(f, g->codes_at[i], words), NF4_CODE_HINTS);
    }
}

/* ---- the product --------------------------------------------------------------------------------------------------- */

/* 16 columns' weights of a quantised block, as the products' first operands. */
static void decode_group(nf4_gemm_mma *g, uint32_t block, uint32_t group, ptx_val out[BLOCK_PRODUCTS][4])
{
    for (uint32_t lower = 0; lower < 2; lower++) {
        for (uint32_t p = 0; p < 2 * BLOCK_PRODUCTS; p++) {
            ptx_val pair[2], word = g->codes[block][2 * group + lower][p / 4];
            nf4_pairs_decode(&g->pairs, word, p % 4, pair);
            out[p / 2][fragment_a(lower, p % 2)] = ptx_as(g->f, PTX_B32, pair[0]);
        }
    }
}

/* Adds 16 columns of 64 weights times 64 elements of eight rows, which are then scaled. */
static void add_products(nf4_gemm_mma *g, uint32_t block, uint32_t row_tile, uint32_t group,
                         ptx_val weights[BLOCK_PRODUCTS][4], const ptx_val a[2 * BLOCK_PRODUCTS])
{
    ptx_fn *f = g->f;
    ptx_val *sums = sums_of(&g->sums, row_tile, group), partial[4] = {g->zero, g->zero, g->zero, g->zero};
    for (uint32_t p = 0; p < BLOCK_PRODUCTS; p++) {
        const ptx_val of_a[2] = {ptx_as(f, PTX_B32, a[2 * p]), ptx_as(f, PTX_B32, a[2 * p + 1])};
        ptx_val next[4];
        tensor_multiply(f, g->args.type, next, weights[p], of_a, partial);
        for (uint32_t e = 0; e < 4; e++)
            partial[e] = next[e];
    }
    for (uint32_t e = 0; e < 4; e++)
        if (sums_has(&g->sums, e))
            ptx_fma_to(f, sums[e], partial[e], g->scale[2 * group + e / 2][block]);
}

/* ptxas moves no load across a barrier. Without one it would load all of a large tile's A at once, and run out of
 * registers. */
static void bound_loads_ahead(nf4_gemm_mma *g, uint32_t row_tile)
{
    const uint32_t ahead = g->has_most_threads ? 2 : 4;
    if (row_tile > 0 && row_tile % ahead == 0)
        ptx_warp_barrier(g->f);
}

/* Registers hold the block's weights of all groups. */
static void add_block(nf4_gemm_mma *g, uint32_t block)
{
    ptx_val weights[MOST_GROUPS][BLOCK_PRODUCTS][4];
    for (uint32_t group = 0; group < g->groups; group++)
        decode_group(g, block, group, weights[group]);
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++) {
        ptx_val a[2 * BLOCK_PRODUCTS];
        bound_loads_ahead(g, row_tile);
        nf4_gemm_read_a(g, block, row_tile, a);
        for (uint32_t group = 0; group < g->groups; group++)
            add_products(g, block, row_tile, group, weights[group], a);
    }
}

/* They hold all rows of A. */
static void add_block_to_rows(nf4_gemm_mma *g, uint32_t block)
{
    ptx_val rows[MOST_HELD_TILES][2 * BLOCK_PRODUCTS], weights[BLOCK_PRODUCTS][4];
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++)
        nf4_gemm_read_a(g, block, row_tile, rows[row_tile]);
    for (uint32_t group = 0; group < g->groups; group++) {
        decode_group(g, block, group, weights);
        for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++)
            add_products(g, block, row_tile, group, weights, rows[row_tile]);
    }
}

static void multiply_blocks(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val end = ptx_as(f, PTX_S32, g->tile.block_count);
    PTX_FOR (f, done, 0, end, g->iteration_blocks) {
        ptx_main_loop(f);
        for (uint32_t block = 0; block < g->depth; block++) {
            if (block % g->rows.blocks == 0)
                nf4_gemm_next_stage(g, done, block);
            nf4_gemm_read_scales(g, block);
            PTX_IF (f, nf4_gemm_in_bounds(g, g->ends, done, block)) {
                (g->holds_rows ? add_block_to_rows : add_block)(g, block);
            }
            load_ahead(g, done, block + g->depth);
        }
        const uint32_t words = g->iteration_blocks * NF4_BLOCK_WORDS;
        for (uint32_t i = 0; i < 2 * g->groups; i++)
            ptx_set(f, g->codes_at[i], ptx_at_const(f, g->codes_at[i], words));
        nf4_gemm_step_stages(g);
    }
    copy_wait(f, 0);
}

/* ---- sums into C --------------------------------------------------------------------------------------------------- */

/* Over the copies; the table is not needed again, except in a stretch. */
static shared_sums shared_of(const nf4_gemm_mma *g)
{
    return (shared_sums){.rows = SUMS_ROWS * g->row_tiles,
                         .columns = g->tile_n,
                         .k_warps = g->k_warps,
                         .at = g->split_k == 0 ? g->scales.at : g->shared};
}

/* Stores this thread's elements of a column: from `row` on, every `step`-th row. */
static void store_column(nf4_gemm_mma *g, ptx_val row, ptx_val column, ptx_val may, const ptx_val sums[],
                         uint32_t count, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val line = ptx_at(f, g->args.out, ptx_mul_wide(f, row, g->args.c_stride)),
            at = ptx_at(f, line, column);
    ptx_val line_step = ptx_mul_wide(f, g->args.c_stride, step);
    ptx_val left = ptx_sub(f, ptx_as(f, PTX_S32, g->args.m), ptx_as(f, PTX_S32, row));
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            at = ptx_at(f, at, line_step);
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, left, i * step), may);
        ptx_val narrow = ptx_cvt(f, g->args.type, sums[i]);
        PTX_WHEN (f, in_bounds) {
            ptx_store(f, at, narrow);
        }
    }
}

/* Threads take neighbouring elements of a row; a small tile has fewer elements than there are threads. */
static void store_tile(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    uint32_t elements = g->tile_m * g->tile_n, pass_rows = g->threads / g->tile_n;
    uint32_t count = elements < g->threads ? 1 : elements / g->threads, threads = elements / count;
    ptx_val sums[MOST_SUMS], row = ptx_div(f, g->tid, g->tile_n);
    ptx_val in_tile = ptx_and(f, g->tid, g->tile_n - 1);
    const shared_sums tile = shared_of(g);
    ptx_val from = ptx_mad(f, in_tile, 4, shared_sums_row(f, &tile, row));
    ptx_val column = ptx_add(f, in_tile, g->tile.first_column), may = ptx_lt(f, column, g->args.n);
    ptx_barrier(f);
    ptx_val first = ptx_mad(f, g->column_warp, SUMS_COLUMNS * g->groups, g->lane.g);
    shared_sums_store(f, &tile, &g->sums, first, g->lane.t, g->k_warp);
    ptx_barrier(f);
    for (uint32_t i = 0; i < count; i++)
        sums[i] = ptx_var(f, ptx_f32(0));
    if (threads < g->threads) {
        ptx_val has_sums = ptx_lt(f, g->tid, threads);
        may = ptx_and(f, may, has_sums);
        PTX_IF (f, has_sums) {
            ptx_set(f, sums[0], shared_sums_load(f, &tile, from, 0, 0));
        }
    } else {
        for (uint32_t i = 0; i < count; i++)
            ptx_set(f, sums[i], shared_sums_load(f, &tile, from, i * pass_rows, 0));
    }
    if (g->split_k != 1)
        may = ptx_and(f, may, nf4_add_parts(f, &g->args, &g->tile, g->tid, threads, sums, count));
    store_column(g, ptx_add(f, row, g->tile.first_row), column, may, sums, count, pass_rows);
}

/* ---- the thread block's shape -------------------------------------------------------------------------------------- */

static nf4_gemm_mma geometry(ptx_fn *f, const kiln_variant *v)
{
    nf4_gemm_mma of = {.f = f}, *g = &of;
    g->tile_m = kiln_int(v, "tile_m");
    g->tile_n = kiln_int(v, "tile_n");
    g->k_warps = kiln_int(v, "k_warps");
    g->stages = kiln_int(v, "stages");
    g->split_k = kiln_int(v, "split_k");
    g->holds_rows = (g->tile_m == 32 || g->tile_m == 16) && g->tile_n == 128;
    g->groups = g->tile_n == 16 ? 1 : g->holds_rows ? 4 : 2;
    g->row_tiles = g->tile_m < SUMS_ROWS ? 1 : g->tile_m / SUMS_ROWS;
    g->column_warps = g->tile_n / (SUMS_COLUMNS * g->groups);
    g->threads = WARP_LANES * g->column_warps * g->k_warps;
    g->has_most_threads = g->threads == MOST_THREADS;
    g->is_wide = g->column_warps > 1 || g->tile_m > SUMS_ROWS;
    g->depth = g->is_wide ? (g->tile_m <= 16 && !g->has_most_threads ? 4 : 2) : (g->tile_m <= 4 ? 4 : 2);
    g->iteration_blocks = g->k_warps * g->depth;
    g->pairs = nf4_table(f, v, kiln_type(v, "a"), 1024 + (g->split_k != 1 ? SPLIT_SHARED_BYTES : 0));
    nf4_gemm_size_stages(g, kiln_is(v, "table", "compact"));
    return of;
}

/* The table, scales and stages of A, and what nested scales are looked up in; at the end the sums of the warps. */
static uint32_t shared_bytes(const nf4_gemm_mma *g, bool is_nested)
{
    const uint32_t table = nf4_pairs_bytes(&g->pairs), nested = is_nested ? NF4_NESTED_BYTES : 0;
    const shared_sums tile = shared_of(g);
    const uint32_t copies = table + nf4_gemm_stages_bytes(g) + nested,
                   sums = (g->split_k == 0 ? table : 0) + shared_sums_bytes(&tile);
    return copies > sums ? copies : sums;
}

/* As many as leave enough registers for a thread's sums. */
static uint32_t blocks_per_multiprocessor(const nf4_gemm_mma *g)
{
    uint32_t registers = g->tile_m >= 64 || g->holds_rows    ? 255
                         : g->has_most_threads               ? 128
                         : g->is_wide                        ? 204
                         : g->groups == 1 && g->split_k == 1 ? 85
                                                             : 128;
    return lanes_blocks(g->threads, registers);
}

/* That ptxas 13.0 gives a thread on sm_90, rounded up to as many as let the same number of thread blocks run. */
static uint32_t registers_of_wide(const nf4_gemm_mma *g, bool is_compact)
{
    enum { FOUR_WARPS = 128 };
    const bool has_stretch = g->split_k == 0;
    if (g->tile_m == SUMS_ROWS)
        return g->threads > FOUR_WARPS && is_compact && g->stages == 2 && !has_stretch ? 128 : 160;
    const bool is_tight = g->tile_m == 32 ? has_stretch || (g->split_k == 1 && g->tile_n == 64)
                                          : has_stretch && g->stages == 4 && g->tile_n == 32;
    return is_tight ? 184 : 168;
}

void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v)
{
    enum { K_WARPS_OF_NARROW = 8 };
    const nf4_gemm_mma g = geometry(NULL, v);
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_narrow = !g.is_wide,
               is_tiles = kiln_is(v, "strategy", "tiles");
    const ptx_type type = kiln_type(v, "a");
    s->block[0] = g.threads;
    s->shared_bytes = shared_bytes(&g, kiln_is(v, "scale_type", "nested"));
    s->min_sm = type == PTX_BF16 || s->shared_bytes > SHARED_SM_75 || g.holds_rows ? 80 : 75;
    s->blocks_per_multiprocessor = blocks_per_multiprocessor(&g);
    if (is_mma && g.is_wide && g.tile_m < 64 && !g.has_most_threads && !g.holds_rows)
        s->registers = registers_of_wide(&g, kiln_is(v, "table", "compact"));
    s->trip = g.depth * NF4_BLOCK_K;
    s->loop_warps = g.k_warps;
    kiln_require(s, is_mma || is_tiles || (g.stages == 2 && g.split_k == 1), "strategy stages split_k",
                 "stages 4 and split_k above 1 need strategy mma or tiles");
    kiln_require(s, !is_mma || type != PTX_F32, "a strategy", "strategy mma needs a f16 or bf16");
    kiln_require(s, !is_mma || !is_narrow || g.k_warps == K_WARPS_OF_NARROW, "strategy tile_m tile_n k_warps",
                 "strategy mma with tile_n 16 or 32 and tile_m of at most 8 needs k_warps 8");
    kiln_require(
        s, !is_mma || is_narrow || (g.tile_n >= 32 && g.tile_m >= SUMS_ROWS && g.tile_m >= g.tile_n / 8),
        "strategy tile_m tile_n",
        "strategy mma needs tile_m of at most 8 with tile_n 16, of at least 8 with 64, and of at least 16 with 128");
    kiln_require(
        s,
        !is_mma || is_narrow || (g.threads >= 128 && g.threads <= 256) ||
            (g.has_most_threads && g.tile_m <= 32 && g.tile_n <= 64),
        "strategy tile_m tile_n k_warps",
        "strategy mma needs 4 to 16 warps, tile_n / 32 * k_warps, or tile_n / 64 * k_warps with tile_m 16 or 32 and tile_n 128; 16 with tile_m of at most 32 and tile_n of at most 64");
    kiln_require(
        s, !is_mma || g.stages == 2 || (g.is_wide && g.depth == g.stages),
        "strategy tile_m tile_n k_warps stages",
        "stages 4 needs tile_n of at least 64, or tile_m 16; tile_m of at most 16; and at most 8 warps, by tile_n and k_warps");
    kiln_require(s, g.tile_m < 128 || is_tiles, "strategy tile_m", "tile_m 128 needs strategy tiles");
    kiln_require(
        s, g.split_k != 0 || is_tiles || (is_mma && g.is_wide), "strategy tile_m tile_n split_k",
        "split_k 0 needs strategy tiles, or mma with tile_n of at least 64 or tile_m of at least 16");
    kiln_require_shared_bytes(s, is_mma ? s->shared_bytes : 0, SHARED_SM_80,
                              "strategy tile_m tile_n k_warps table stages split_k",
                              "tile_m, tile_n, k_warps and stages of strategy mma");
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* This thread block's part of the quantised blocks. Where they do not divide evenly, the first parts have one more. */
static void init_part(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val blocks = nf4_blocks(f, &g->args);
    g->tile.first_block = ptx_u32(0);
    g->tile.block_count = blocks;
    if (g->split_k == 1)
        return;
    ptx_val part = ptx_ctaid_z(f);
    ptx_val each = ptx_div(f, blocks, g->split_k), more = ptx_rem(f, blocks, g->split_k);
    g->tile.first_block = ptx_mad(f, part, each, ptx_min(f, part, more));
    ptx_val longer = ptx_select(f, ptx_lt(f, part, more), ptx_u32(1), 0);
    g->tile.block_count = ptx_add(f, each, longer);
}

static void init_warp(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->lane_id = ptx_laneid(f);
    g->lane = fragment_find_lane(f, g->lane_id);
    ptx_val warp = g->has_most_threads ? ptx_shfl_idx(f, ptx_warpid_x(f), 0) : ptx_warpid_x(f);
    g->k_warp = g->column_warps == 1 ? warp : ptx_div(f, warp, g->column_warps);
    g->column_warp = g->column_warps == 1 ? ptx_u32(0) : ptx_rem(f, warp, g->column_warps);
}

/* The table, then scales, then stages of A, then what nested scales are looked up in. */
static void layout_shared(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    g->shared = ptx_address(f, ptx_shared_dynamic(f, PTX_F32));
    g->scales.at = ptx_add(f, g->shared, nf4_pairs_layout(&g->pairs, g->shared));
}

static void init_ends(nf4_gemm_mma *g)
{
    nf4_gemm_find_ends(g, g->k_warp, 2 * g->depth, 1, g->ends);
}

static void make_tile(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    nf4_gemm_init_reads(g);
    init_codes(g);
    nf4_gemm_init_copies(g);
    for (uint32_t block = 0; block < g->depth; block++)
        load_ahead(g, ptx_s32(0), block);
    if (g->args.is_nested)
        nf4_nested_fill(&g->args.nested, ptx_add(f, g->rows.at, g->stages * g->rows.stage_bytes), g->tid);
    nf4_gemm_copy_first(g);
    nf4_pairs_find(&g->pairs, g->lane_id);
    nf4_fill_table(&g->pairs, &g->tile, g->tid);
    g->zero = ptx_var(f, ptx_f32(0));
    g->scales.offset = ptx_var(f, ptx_u32(0));
    g->sums =
        (warp_sums){.row_tiles = g->row_tiles, .column_tiles = g->groups, .has_one_row = g->tile_m == 1};
    sums_clear(f, &g->sums);
    multiply_blocks(g);
    store_tile(g);
}

static void make_tile_of_stretch(void *kernel, const nf4_tile *tile)
{
    nf4_gemm_mma *g = kernel;
    g->tile = *tile;
    init_ends(g);
    g->tile.is_first = nf4_is_first(g->f, tile);
    make_tile(g);
}

void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    nf4_gemm_mma g = geometry(f, v);
    g.args = nf4_gemm_declare_args(f, v);
    if (g.split_k == 0) {
        init_warp(&g);
        layout_shared(&g);
        nf4_make_stretch(f, &g.args, g.tile_m, g.tile_n, make_tile_of_stretch, &g);
        return;
    }
    init_part(&g);
    init_warp(&g);
    g.tile.first_row = ptx_mul(f, ptx_ctaid_y(f), g.tile_m);
    g.tile.first_column = ptx_mul(f, ptx_ctaid_x(f), g.tile_n);
    init_ends(&g);
    layout_shared(&g);
    make_tile(&g);
}
