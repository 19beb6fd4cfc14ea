/* nf4_gemm on tensor cores for many rows: strategy tiles.
 *
 * A thread block makes tile_m rows by 128 columns of C. Each of its four warps has 32 columns, and decodes their weights once
 * for all tile_m rows of A (device/x_ring.h), a quantised block of 64 along K at a time. Lane (g, t) takes the 16 codes from
 * 16t on of its four columns, 8 bytes each, and the same elements of A: the ring has that order, so that nothing is repacked.
 * Codes go straight into registers, a quantised block ahead: no two warps need the same ones.
 *
 * SCALES multiply the sums of a quantised block, as in nf4_gemm_mma.c. With 128 rows in bf16, whose range holds every scale,
 * they multiply the weights instead: half as many instructions, and no product waits for them. A scale is the sum of two bf16
 * numbers, so that a weight is rounded once: t * high + (t * low).
 *
 * COPIES. A is copied a quantised block at a time into a ring of `stages`; with four there is a barrier for every two. A column's
 * scales are copied eight at a time, a whole sector, into a ring of two such chunks.
 *
 * With split_k 0 a thread block makes a stretch of all tiles' quantised blocks (device/split.h). Lanes' sums are added
 * directly, in registers, and only complete ones go through shared memory to C.
 */
#include "nf4_gemm.h"

#include "device/copy.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "device/x_ring.h"

enum {
    COLUMNS = 128,
    WARP_COLUMNS = 32,
    LANE_COLUMNS = 4, /* eight apart */
    THREADS = COLUMNS / WARP_COLUMNS * WARP_LANES,
    CHUNK = 8, /* scales of a column */
    SCALES_AT_ONCE = 4,
    SCALE_ROW_BYTES = 4 * (2 * CHUNK + 1), /* so that eight columns are in different banks */
    SCALES_BYTES = COLUMNS * SCALE_ROW_BYTES,
    TILES_AT_ONCE = 2 /* of eight rows, whose products are scaled */
};

typedef struct tiles {
    ptx_fn *f;
    uint32_t tile_m, stages;
    bool has_stretch, scales_weights;
    nf4_args args;
    linear l;
    linear_tile tile;
    nf4_pairs pairs;
    ptx_val a_at, scales_at; /* addresses in shared memory */
    ptx_val first, step,
        end; /* the part's first quantised block; the current one; the one after the part's last */

    x_ring a;
    ptx_val codes_at[LANE_COLUMNS], codes[LANE_COLUMNS][NF4_LANE_WORDS];
    ptx_val scale_from, column_step, columns_left; /* this thread's scales, like a ring's rows */
    ptx_val scale_block, scale_to, scale_read;
    warp_sums sums;
} tiles;

static tiles geometry(ptx_fn *f, const kiln_variant *v)
{
    const ptx_type type = kiln_type(v, "a");
    tiles g = {.f = f,
               .tile_m = kiln_int(v, "tile_m"),
               .stages = kiln_int(v, "stages"),
               .has_stretch = kiln_int(v, "split_k") == 0};
    g.scales_weights = type == PTX_BF16 && g.tile_m == 128;
    g.pairs = nf4_table(f, v, type, 1024 + linear_split_bytes(v));
    return g;
}

/* If another tile needs it; and with 128 rows in f16, if another address would not fit the registers. */
static bool keeps_table(const tiles *g)
{
    return g->has_stretch || (g->tile_m == 128 && !g->scales_weights);
}

/* The table, the ring of A, scales, tables for nested ones. At the end the sums overlay them. */
static uint32_t shared_bytes(const tiles *g, bool is_nested)
{
    const uint32_t table = nf4_pairs_bytes(&g->pairs),
                   copies = table + g->stages * x_ring_bytes(g->tile_m) + SCALES_BYTES,
                   sums = (keeps_table(g) ? table : 0) + linear_sums_bytes(g->tile_m, COLUMNS, 1);
    return (copies > sums ? copies : sums) + (is_nested ? NF4_NESTED_BYTES : 0);
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* The offset in a ring of `count` stages of the stage for the quantised block `ahead` blocks later. */
static ptx_val stage_offset(tiles *g, uint32_t ahead, uint32_t count, uint32_t bytes)
{
    ptx_fn *f = g->f;
    ptx_val block = ahead ? ptx_add(f, g->step, ahead) : g->step;
    return ptx_and(f, ptx_mul(f, block, bytes), (count - 1) * bytes);
}

static void copy_a(tiles *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    ptx_val block = ptx_add(f, g->step, ahead);
    ptx_val element = ptx_mul(f, block, X_RING_STEP);
    x_ring_copy(&g->a, element, stage_offset(g, ahead, g->stages, x_ring_bytes(g->tile_m)));
    copy_commit(f);
}

/* Neighbouring threads copy the scales of neighbouring quantised blocks. */
static void init_scales(tiles *g)
{
    ptx_fn *f = g->f;
    const uint32_t step = THREADS / CHUNK;
    ptx_val row = ptx_div(f, g->l.tid, CHUNK);
    ptx_val column = tail_clamp(f, ptx_add(f, row, g->tile.first_w), g->args.n);
    ptx_val before = ptx_mul_wide(f, column, g->l.row_numbers);
    g->scale_block = ptx_and(f, g->l.tid, CHUNK - 1);
    g->scale_from = g->args.is_nested ? before : ptx_address(f, ptx_at(f, g->args.scale, before));
    g->column_step = ptx_mul(f, g->l.row_numbers, step * (g->args.is_nested ? 1 : 4));
    ptx_val behind = ptx_sub(f, ptx_sub(f, g->args.n, 1), column);
    g->columns_left = ptx_div(f, behind, step);
    g->scale_to = ptx_mad(f, row, SCALE_ROW_BYTES, g->scales_at);
    ptx_val mine = ptx_mad(f, g->l.warp, WARP_COLUMNS, g->tile.lane.g);
    g->scale_read = ptx_mad(f, mine, SCALE_ROW_BYTES, g->scales_at);
}

/* Copies the chunk of the quantised blocks from `ahead` later on. */
static void copy_scales(tiles *g, uint32_t ahead)
{
    enum { COLUMN_STEP = THREADS / CHUNK, COPIES = COLUMNS / COLUMN_STEP };
    ptx_fn *f = g->f;
    ptx_val first = ptx_add(f, g->step, ahead), block = ptx_add(f, first, g->scale_block);
    ptx_val is_there = ptx_lt(f, block, g->end), bytes = ptx_select(f, is_there, ptx_u32(4), 0);
    ptx_val place = ptx_and(f, block, 2 * CHUNK - 1);
    ptx_val to = ptx_mad(f, place, 4, g->scale_to);
    ptx_val from = ptx_mad_wide(f, block, g->args.is_nested ? 1 : 4, g->scale_from);
    for (uint32_t i = 0; i < COPIES; i += SCALES_AT_ONCE) {
        ptx_val at[SCALES_AT_ONCE], in_bounds[SCALES_AT_ONCE], scale[SCALES_AT_ONCE];
        for (uint32_t j = 0; j < SCALES_AT_ONCE; j++) {
            ptx_val column = ptx_min(f, g->columns_left, i + j);
            at[j] = ptx_mad_wide(f, column, g->column_step, from);
            in_bounds[j] = is_there;
        }
        if (g->args.is_nested)
            nf4_nested_load(&g->args.nested, SCALES_AT_ONCE, at, in_bounds, scale);
        for (uint32_t j = 0; j < SCALES_AT_ONCE; j++) {
            ptx_val place_of = shared_at(f, PTX_F32, to, (i + j) * COLUMN_STEP * SCALE_ROW_BYTES);
            if (g->args.is_nested)
                ptx_store(f, place_of, scale[j]);
            else
                ptx_cp_async_zfill(f, place_of, ptx_pointer(f, PTX_GLOBAL, PTX_F32, at[j]), 4, bytes, PTX_CA);
        }
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

static void init_codes(tiles *g)
{
    ptx_fn *f = g->f;
    ptx_val of_warp = ptx_mad(f, g->l.warp, WARP_COLUMNS, g->tile.first_w);
    ptx_val mine = ptx_add(f, of_warp, g->tile.lane.g);
    ptx_val byte = ptx_mul(f, g->tile.lane.t, 4 * NF4_LANE_WORDS);
    for (uint32_t i = 0; i < LANE_COLUMNS; i++) {
        ptx_val row = linear_row_address(&g->l, ptx_add(f, mine, 8 * i));
        ptx_val at = ptx_add(f, row, ptx_cvt(f, PTX_U64, byte));
        g->codes_at[i] = ptx_pointer(f, PTX_GLOBAL, PTX_U32, at);
        for (uint32_t word = 0; word < NF4_LANE_WORDS; word++)
            g->codes[i][word] = ptx_var(f, ptx_u32(0));
    }
}

/* Loads the codes of a quantised block, if it exists. */
static void load_codes(tiles *g, ptx_val block)
{
    ptx_fn *f = g->f;
    ptx_val word = ptx_mul(f, ptx_sub(f, block, g->first), NF4_BLOCK_WORDS);
    PTX_WHEN (f, ptx_lt(f, block, g->end)) {
        for (uint32_t i = 0; i < LANE_COLUMNS; i++)
            nf4_load_words(f, NF4_LANE_WORDS, g->codes[i], ptx_at(f, g->codes_at[i], word), NF4_CODE_HINTS);
    }
}

static ptx_type pair_type(const tiles *g)
{
    return g->args.type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
}

/* A scale as two numbers of A's type, each in both halves. */
typedef struct parts {
    ptx_val high, low;
} parts;

static parts split_scale(tiles *g, ptx_val scale)
{
    ptx_fn *f = g->f;
    ptx_val high = ptx_cvt_pair(f, pair_type(g), scale, scale), wide[2];
    widen_pair(f, g->args.type, ptx_as(f, PTX_U32, high), wide);
    ptx_val rest = ptx_sub(f, scale, wide[0]);
    return (parts){high, ptx_cvt_pair(f, pair_type(g), rest, rest)};
}

/* Decodes half a quantised block, a product's first operands; scaled, or not: null. */
static void decode_half(tiles *g, ptx_val codes[LANE_COLUMNS][NF4_LANE_WORDS], uint32_t half,
                        const parts *scale, ptx_val w[X_RING_TILES][2][4])
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < LANE_COLUMNS; i++) {
        for (uint32_t byte = 0; byte < 4; byte++) {
            ptx_val pair[2];
            nf4_pairs_decode(&g->pairs, codes[i][half], byte, pair);
            if (scale) {
                ptx_val values = ptx_as(f, pair_type(g), pair[0]);
                ptx_val low = ptx_fma(f, values, scale[i].low, ptx_number(pair_type(g), -0.0));
                pair[0] = ptx_fma(f, values, scale[i].high, low);
            }
            w[i / 2][byte / 2][fragment_a(i % 2, byte % 2)] = ptx_as(f, PTX_B32, pair[0]);
        }
    }
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

static void multiply_scaled(tiles *g, const ptx_val scale[LANE_COLUMNS])
{
    ptx_fn *f = g->f;
    ptx_val codes[LANE_COLUMNS][NF4_LANE_WORDS];
    parts of[LANE_COLUMNS];
    for (uint32_t i = 0; i < LANE_COLUMNS; i++)
        for (uint32_t word = 0; word < NF4_LANE_WORDS; word++)
            codes[i][word] = ptx_var(f, g->codes[i][word]);
    load_codes(g, ptx_add(f, g->step, 1));
    ptx_val from = stage_offset(g, 0, g->stages, x_ring_bytes(g->tile_m));
    for (uint32_t i = 0; i < LANE_COLUMNS; i++)
        of[i] = split_scale(g, scale[i]);
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val w[X_RING_TILES][2][4];
        decode_half(g, codes, half, of, w);
        x_ring_multiply(&g->a, from, half, w, &g->sums);
    }
}

static void multiply_then_scale(tiles *g, const ptx_val scale[LANE_COLUMNS])
{
    ptx_fn *f = g->f;
    ptx_val from = stage_offset(g, 0, g->stages, x_ring_bytes(g->tile_m)), w[2][X_RING_TILES][2][4];
    for (uint32_t half = 0; half < 2; half++)
        decode_half(g, g->codes, half, NULL, w[half]);
    load_codes(g, ptx_add(f, g->step, 1));
    for (uint32_t first = 0; first < g->sums.row_tiles; first += TILES_AT_ONCE) {
        warp_sums partial = {.row_tiles = TILES_AT_ONCE, .column_tiles = X_RING_TILES};
        sums_clear(f, &partial);
        for (uint32_t half = 0; half < 2; half++)
            x_ring_multiply_rows(&g->a, from, half, first, w[half], &partial);
        for (uint32_t i = 0; i < sums_count(&partial); i++)
            ptx_fma_to(f, sums_of(&g->sums, first, 0)[i], partial.of[i], scale[i / 2 % LANE_COLUMNS]);
    }
}

/* ---- the loop ----------------------------------------------------------------------------------------------------- */

/* All warps are done with the previous blocks; their stages are refilled while these are multiplied. */
static void next_stages(tiles *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, 0);
    ptx_barrier(f);
    ptx_val in_chunk = ptx_and(f, ptx_sub(f, g->step, g->first), CHUNK - 1);
    PTX_IF (f, ptx_uniform(f, ptx_eq(f, in_chunk, 0))) {
        ptx_rarely(f);
        copy_scales(g, CHUNK);
    }
}

static void multiply_blocks(tiles *g)
{
    ptx_fn *f = g->f;
    const uint32_t batch = g->stages / 2;
    PTX_FOR (f, block, g->first, g->end, 1) {
        ptx_main_loop(f);
        g->step = block;
        if (batch == 1) {
            next_stages(g);
        } else {
            ptx_val in_batch = ptx_and(f, ptx_sub(f, block, g->first), batch - 1);
            PTX_IF (f, ptx_uniform(f, ptx_eq(f, in_batch, 0))) {
                next_stages(g);
            }
        }
        copy_a(g, batch);
        ptx_val scale[LANE_COLUMNS];
        ptx_val from = ptx_add(f, g->scale_read, stage_offset(g, 0, 2 * CHUNK, 4));
        for (uint32_t i = 0; i < LANE_COLUMNS; i++)
            scale[i] = ptx_load(f, shared_at(f, PTX_F32, from, 8 * i * SCALE_ROW_BYTES));
        (g->scales_weights ? multiply_scaled : multiply_then_scale)(g, scale);
    }
    copy_wait(f, 0);
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void layout_shared(tiles *g)
{
    ptx_fn *f = g->f;
    ptx_val shared = g->tile.shared;
    g->a_at = ptx_add(f, shared, nf4_pairs_layout(&g->pairs, shared));
    g->scales_at = ptx_add(f, g->a_at, g->stages * x_ring_bytes(g->tile_m));
    nf4_pairs_find(&g->pairs, g->l.lane);
    if (g->args.is_nested)
        nf4_nested_fill(&g->args.nested, ptx_add(f, shared, shared_bytes(g, false)), g->l.tid);
    if (keeps_table(g))
        g->tile.shared = g->a_at;
}

/* For the only tile, or for the first one of a stretch; a barrier must follow. */
static void fill_table(tiles *g)
{
    ptx_fn *f = g->f;
    if (!g->has_stretch) {
        nf4_pairs_fill(&g->pairs, g->l.tid);
        return;
    }
    ptx_val step = ptx_mad(f, g->tile.number, g->l.row_numbers, g->first);
    PTX_IF (f, ptx_eq(f, step, g->tile.stretch.first)) {
        nf4_pairs_fill(&g->pairs, g->l.tid);
    }
}

static void make_tile(void *strategy)
{
    tiles *g = strategy;
    ptx_fn *f = g->f;
    g->first = g->has_stretch ? ptx_div(f, g->l.part_element, NF4_BLOCK_K) : ptx_u32(0);
    g->end = g->has_stretch ? ptx_add(f, g->first, g->l.part_stages) : g->l.row_numbers;
    g->step = g->first;
    g->a = (x_ring){.f = f,
                    .type = g->args.type,
                    .rows = g->tile_m,
                    .threads = THREADS,
                    .is_wide = true,
                    .is_woven = true};
    x_ring_init(&g->a, g->a_at, g->args.in, g->tile.first_x, g->args.m, g->args.k, g->args.a_stride, g->l.tid,
                g->l.lane);
    init_codes(g);
    init_scales(g);
    load_codes(g, g->step);
    copy_scales(g, 0);
    for (uint32_t ahead = 0; ahead < g->stages / 2; ahead++)
        copy_a(g, ahead);
    fill_table(g);
    g->sums = linear_init_sums(f, g->tile_m);
    multiply_blocks(g);
    linear_store_sums(&g->l, &g->tile, &g->sums);
}

void nf4_gemm_emit_tiles(ptx_fn *f, const kiln_variant *v)
{
    tiles of = geometry(f, v), *g = &of;
    g->args = nf4_gemm_declare_args(f, v);
    g->l = nf4_linear(f, &g->args);
    linear_find_threads(&g->l);
    g->tile = linear_find_tile(&g->l, g->tile_m, COLUMNS, WARP_COLUMNS, 1, NF4_BLOCK_K);
    layout_shared(g);
    linear_make_tiles(&g->l, &g->tile, make_tile, g);
}

void nf4_gemm_shape_tiles(kiln_shape *s, const kiln_variant *v)
{
    const tiles g = geometry(NULL, v);
    const bool is_tiles = kiln_is(v, "strategy", "tiles");
    const uint32_t split_k = kiln_int(v, "split_k");
    kiln_require(s, !is_tiles || g.pairs.type != PTX_F32, "a strategy", "strategy tiles needs a f16 or bf16");
    kiln_require(s,
                 !is_tiles || (g.tile_m >= 64 && kiln_int(v, "tile_n") == COLUMNS &&
                               kiln_int(v, "k_warps") == 1 && kiln_is(v, "table", "compact")),
                 "strategy tile_m tile_n k_warps table",
                 "strategy tiles needs tile_m 64 or 128, tile_n 128, k_warps 1 and table compact");
    kiln_require(s, !is_tiles || split_k == 1 || (split_k == 0 && g.tile_m == 64), "strategy tile_m split_k",
                 "strategy tiles needs split_k 1, or with tile_m 64 split_k 0: registers");
    if (!is_tiles)
        return;
    s->block[0] = THREADS;
    s->shared_bytes = shared_bytes(&g, kiln_is(v, "scale_type", "nested"));
    s->min_sm = 80;
    s->trip = NF4_BLOCK_K;
    s->blocks_per_multiprocessor = lanes_blocks(THREADS, 256);
}
