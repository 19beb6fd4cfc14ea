/* fp4_gemm's products: NVFP4 or MXFP4 weights times rows of 16-bit elements, NVFP4 times NVFP4, or MXFP4 times MXFP8.
 *
 * As in linear_tiles.c, the weights are mma's first operand, a warp has 32 of their rows, and a thread block makes tile_m rows by
 * tile_n columns of y.
 *
 * SHARED MEMORY is a ring of `stages` stages of 128 elements of k. Trip i copies stage i + stages - 1. At the end, sums overlay
 * it. A stage has these parts, padded to a multiple of 128 bytes:
 *
 *     W         tile_n * FP4_ROW_BYTES
 *     x         tile_m * x_row_bytes: 256 of 16-bit elements, 128 of e4m3, 64 of e2m1
 *     W scales  tile_n * scale_bytes (device/fp4_rows.h)
 *     x scales  tile_m * scale_bytes, if x is codes
 *
 * DECODED, on every target: a step is 64 elements. Lane (g, t) takes the 16 codes from 16t on of rows g, g + 8, g + 16 and g + 24,
 * which have one scale, and multiplies them by it in x's type; x is in the same order (a woven ring, device/x_ring.h). Nothing is
 * rounded except MX formats in f16. If x is codes, every warp decodes its rows in the same way.
 *
 * BLOCK-SCALED, on sm_120f: ldmatrix loads NVFP4 codes, whose order in memory is that of the product's operands; one word holds a
 * row's four scales of a step. MXFP4 times MXFP8 takes one product per block of 32: lane (g, t) takes elements 8t to 8t + 7 of a
 * row's block, the first four in the operand's lower register. ldmatrix loads W's eight codes as a word, which is spread to
 * bytes; x's are 8 bytes. One word holds a row's four scales of a stage.
 *
 * A block-scaled trip begins with its stage's first fragments in registers. Before the products of the last tiles of x it waits
 * for the next stage, passes a barrier and loads that stage's first fragments: these products hide all three. Scales as rows are
 * carried (device/fp4_rows.h): registers keep the last word of each row. The words before the first stage lie after the ring.
 */
#include <string.h>

#include "device/codes.h"
#include "device/copy.h"
#include "device/fp4.h"
#include "device/fp4_rows.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "device/x_ring.h"
#include "fp4_gemm.h"

enum {
    WARP_ROWS = 32, /* of W */
    LANE_ROWS = 4,  /* eight apart */
    QUAD_LANES = 4, /* lanes that share a row of sums */
    TILES = X_RING_TILES,
    STEP = X_RING_STEP,
    STEPS = FP4_STAGE / STEP,
    HALVES = 2, /* words of a lane's 16 codes of e2m1 */
    MX_BLOCKS = FP4_STAGE / 32,
    STAGE_ALIGNMENT = 128,
    MOST_TILES = 16 /* of eight rows of x */
};

const weight_format fp4_gemm_codes = {
    .name = "fp4", .elements = 16, .bytes = 8, .groups = 1, .units = 2, .parts = 1};

/* Block-scaled: variables for a stage's first fragments. x's are the codes of the first tile and the scales of the first four
 * tiles; W's codes are as ldmatrix loads them. */
typedef struct scaled_fragments {
    ptx_val w[STEPS][TILES][4], w_scales[STEPS];
    ptx_val x[2 * MX_BLOCKS], x_scales[STEPS];
    ptx_val w_carried, x_carried[MOST_TILES / QUAD_LANES]; /* if scales are rows; one of x for four tiles */
} scaled_fragments;

/* Block-scaled: where this lane reads x's codes and the scales of a stage. */
typedef struct scaled_stage {
    ptx_val x[MX_BLOCKS], w_scales, x_scales;
} scaled_stage;

typedef struct fp4_gemm {
    fp4_gemm_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    ptx_val in_scales;
    linear_tile tile;
    fp4_rows w, x_codes;
    x_ring x;
    ptx_val next_step; /* a variable: the next step of x to copy */
    ptx_val stage;     /* a variable: the offset of the current stage */
    ptx_val filled;    /* block-scaled, a variable: the offset of the stage that is filled */
    ptx_val left;      /* a variable: stages from this one on */
    /* Addresses in the first stage. Decoded: this lane's codes of a step, of its first rows of W and x; their scales. */
    ptx_val w_at[STEPS], x_at[MX_BLOCKS], w_scales, x_scales;
    ptx_val w_selector, x_selector; /* block-scaled: prmt selectors for words of scales */
    scaled_fragments fragments;
    warp_sums sums;
} fp4_gemm;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

/* At the end the sums overlay the stages, as many rows at a time as fit there. */
static uint32_t rows_at_once(const fp4_gemm_geometry *g)
{
    enum { MOST_ROWS = 64 };
    uint32_t rows = g->tile_m < MOST_ROWS ? g->tile_m : MOST_ROWS;
    const uint32_t stages = g->stages * g->stage_bytes;
    while (rows > SUMS_ROWS && linear_bytes(stages, rows, g->tile_n, 1) > stages)
        rows /= 2;
    return rows;
}

/* Fills begin early if the next trip waits for them (two stages), and a multiprocessor has no third thread block to hide the wait
 * (tiles of 128 rows). */
static void plan_fills(fp4_gemm_geometry *g)
{
    const uint32_t tiles = g->tile_m / SUMS_ROWS, last = tiles < 8 ? 1 : tiles / 4;
    g->last_tiles = last;
    g->fills_early = g->stages == 2 && tiles == MOST_TILES;
    g->fill_parts = g->fills_early ? last + last / 2 : last < tiles ? tiles - last : 1;
}

static fp4_rows rows_of(ptx_fn *f, const fp4_gemm_geometry *g, uint32_t rows, layout codes)
{
    return fp4_rows_plan((fp4_rows){.f = f,
                                    .rows = rows,
                                    .threads = g->threads,
                                    .is_mx = g->is_mx,
                                    .is_tiled = g->is_tiled,
                                    .is_block_scaled = g->is_block_scaled,
                                    .codes = codes});
}

static fp4_rows w_rows(ptx_fn *f, const fp4_gemm_geometry *g)
{
    return rows_of(f, g, g->tile_n, fp4_rows_layout(g->is_block_scaled));
}

fp4_gemm_geometry fp4_gemm_plan(const kiln_variant *v)
{
    fp4_gemm_geometry g = {.tile_m = kiln_int(v, "tile_m"),
                           .tile_n = kiln_int(v, "tile_n"),
                           .stages = kiln_int(v, "stages"),
                           .is_mx = kiln_is(v, "format", "mxfp4"),
                           .is_tiled = kiln_is(v, "scale_layout", "tiles_128x4"),
                           .has_codes = kiln_is(v, "x", "nvfp4") || kiln_is(v, "x", "mxfp8"),
                           .is_e4m3 = kiln_is(v, "x", "mxfp8"),
                           .is_block_scaled = kiln_is(v, "strategy", "block_scaled"),
                           .type = kiln_is(v, "x", "bf16") ? PTX_BF16 : PTX_F16};
    g.threads = WARP_LANES * g.tile_n / WARP_ROWS;
    g.x_row_bytes = !g.has_codes ? FP4_STAGE * 2 : g.is_e4m3 ? FP4_STAGE : FP4_STAGE / 2;
    g.x_byte = g.tile_n * FP4_ROW_BYTES;
    g.w_scale_byte = g.x_byte + g.tile_m * g.x_row_bytes;
    const fp4_rows w = w_rows(NULL, &g);
    g.x_scale_byte = g.w_scale_byte + g.tile_n * w.scale_bytes;
    const uint32_t bytes = g.x_scale_byte + (g.has_codes ? g.tile_m * w.scale_bytes : 0);
    g.stage_bytes = (bytes + STAGE_ALIGNMENT - 1) / STAGE_ALIGNMENT * STAGE_ALIGNMENT;
    g.carried_offset = g.stages * g.stage_bytes - g.w_scale_byte;
    g.scale_words = g.is_mx ? 1 : STEPS;
    plan_fills(&g);
    g.rows_at_once = rows_at_once(&g);
    const uint32_t carried_bytes = w.is_carried ? bytes - g.w_scale_byte : 0;
    g.shared_bytes = linear_bytes(g.stages * g.stage_bytes + carried_bytes, g.rows_at_once, g.tile_n, 1);
    return g;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Finds how far this thread's second row of scales is from its first, `first`: `rows` rows of the matrix, or 0 if there is none. */
static void find_second_pass(fp4_rows *r, ptx_val first, ptx_val count, uint32_t rows)
{
    if (r->passes[FP4_ROWS_SCALES] == 1)
        return;
    ptx_val exists = ptx_lt(r->f, ptx_add(r->f, first, r->pass[FP4_ROWS_SCALES]), count);
    r->scale_pass_rows = ptx_select(r->f, exists, ptx_u32(rows), 0);
}

static void init_w_copies(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    g->w = w_rows(f, &g->of);
    g->w.k = l->k;
    g->w.scale_byte = g->of.w_scale_byte;
    g->w.first = l->split_k == 1 ? ptx_u32(0) : l->part_element;
    g->w.end = l->k;
    if (l->split_k != 1)
        g->w.end = ptx_min(f, l->k, ptx_mad(f, l->part_stages, FP4_STAGE, l->part_element));
    const uint32_t pass = g->w.pass[FP4_ROWS_CODES];
    ptx_val row = ptx_add(f, fp4_rows_row_of(&g->w, FP4_ROWS_CODES, l->tid), g->tile.first_w);
    for (uint32_t i = 0; i < g->w.passes[FP4_ROWS_CODES]; i++) {
        ptx_val clamped = tail_clamp(f, i == 0 ? row : ptx_add(f, row, i * pass), l->w_rows);
        const linear_row of = linear_find_row(l, clamped);
        g->w.from[i] = ptx_mad_wide(f, of.number, l->w_row_bytes, linear_pick_address(l, &of, l->w));
    }
    ptx_val mine = ptx_add(f, fp4_rows_row_of(&g->w, FP4_ROWS_SCALES, l->tid), g->tile.first_w);
    const linear_row of = linear_find_row(l, tail_clamp(f, mine, l->w_rows));
    g->w.scale_row = of.number;
    find_second_pass(&g->w, mine, l->w_rows, g->w.pass[FP4_ROWS_SCALES] / l->column_rows);
    g->w.scales = linear_pick_address(l, &of, l->arrays[0]);
    fp4_rows_init(&g->w, l->tid, g->tile.shared);
}

static void init_x_codes(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    fp4_rows *x = &g->x_codes;
    *x = rows_of(f, &g->of, g->of.tile_m, g->of.is_e4m3 ? layout_of_codes() : g->w.codes);
    x->k = l->k;
    x->code_byte = g->of.x_byte;
    x->scale_byte = g->of.x_scale_byte;
    x->first = g->w.first;
    x->end = g->w.end;
    x->scales = ptx_address(f, g->in_scales);
    const uint32_t pass = x->pass[FP4_ROWS_CODES];
    ptx_val stride = g->of.is_e4m3 ? l->k : l->w_row_bytes;
    ptx_val row =
        tail_clamp(f, ptx_add(f, fp4_rows_row_of(x, FP4_ROWS_CODES, l->tid), g->tile.first_x), l->m);
    ptx_val left = ptx_sub(f, ptx_sub(f, l->m, 1), row);
    x->from[0] = ptx_mad_wide(f, row, stride, ptx_address(f, l->in));
    x->pass_bytes = ptx_mul(f, stride, pass);
    x->passes_left = ptx_div(f, left, pass);
    ptx_val mine = ptx_add(f, fp4_rows_row_of(x, FP4_ROWS_SCALES, l->tid), g->tile.first_x);
    x->scale_row = tail_clamp(f, mine, l->m);
    find_second_pass(x, mine, l->m, x->pass[FP4_ROWS_SCALES]);
    fp4_rows_init(x, l->tid, g->tile.shared);
}

static void init_x(fp4_gemm *g)
{
    linear *l = g->l;
    if (g->of.has_codes) {
        init_x_codes(g);
        return;
    }
    g->x = (x_ring){.f = g->f,
                    .type = g->of.type,
                    .rows = g->of.tile_m,
                    .threads = g->of.threads,
                    .is_wide = true,
                    .is_woven = true};
    x_ring_init(&g->x, ptx_add(g->f, g->tile.shared, g->of.x_byte), l->in, g->tile.first_x, l->m, l->k,
                l->tid, l->lane);
    g->next_step = ptx_var(g->f, ptx_div(g->f, g->w.first, STEP));
}

static void copy_x(fp4_gemm *g, ptx_val offset)
{
    ptx_fn *f = g->f;
    if (g->of.has_codes) {
        fp4_rows_copy(&g->x_codes, offset);
        return;
    }
    ptx_val element = ptx_mul(f, g->next_step, STEP);
    for (uint32_t step = 0; step < STEPS; step++) {
        ptx_val to = ptx_add(f, offset, step * x_ring_bytes(g->of.tile_m));
        x_ring_copy(&g->x, ptx_add(f, element, step * STEP), to);
    }
    ptx_add_to(f, g->next_step, STEPS);
}

/* Starts to copy the next stage to `offset`, if there is one: `ahead` stages after the current one. Block-scaled products copy
 * zeros past the last one. */
static void fill_stage(fp4_gemm *g, ptx_val offset, uint32_t ahead)
{
    ptx_fn *f = g->f;
    IF_NEEDED (f, !g->of.is_block_scaled, ptx_gt(f, g->left, ahead)) {
        fp4_rows_copy(&g->w, offset);
        copy_x(g, offset);
    }
    copy_commit(f);
}

/* Block-scaled: starts one of the fill_parts parts of a stage's copies. They have no branches, so that ptxas puts them between
 * products. */
static void fill_part(fp4_gemm *g, uint32_t part)
{
    const uint32_t parts = g->of.fill_parts, w = fp4_rows_pieces(&g->w),
                   all = w + fp4_rows_pieces(&g->x_codes);
    if (part >= parts)
        return;
    for (uint32_t i = part * all / parts; i < (part + 1) * all / parts; i++)
        if (i < w)
            fp4_rows_copy_piece(&g->w, g->filled, i);
        else
            fp4_rows_copy_piece(&g->x_codes, g->filled, i - w);
    if (part == parts - 1)
        copy_commit(g->f);
}

/* ---- decoded products --------------------------------------------------------------------------------------------- */

static bool has_e4m3(const fp4_rows *of)
{
    return of->codes.row_bytes == FP4_STAGE;
}

/* A lane's 16 codes of a step of one row, and their scale. */
typedef struct decoded_row {
    bool is_e4m3;
    ptx_val words[2 * HALVES], scale; /* e2m1: two words */
} decoded_row;

/* `row` is counted from the lane's first row. */
static decoded_row load_row(fp4_gemm *g, const fp4_rows *from, ptx_val codes, ptx_val scales, uint32_t row,
                            uint32_t step)
{
    ptx_fn *f = g->f;
    decoded_row of = {.is_e4m3 = has_e4m3(from)};
    ptx_load_vec(f, of.is_e4m3 ? 2 * HALVES : HALVES, of.words,
                 shared_at(f, PTX_U32, codes, layout_rows(&from->codes, row)), PTX_PLAIN);
    const uint32_t byte = row * FP4_SCALE_BYTES + step * (from->is_mx ? STEP / 32 : STEP / 16);
    ptx_val scale = ptx_load(f, shared_at(f, PTX_U8, scales, byte));
    of.scale = fp4_scale(f, g->of.type, from->is_mx, ptx_cvt(f, PTX_U32, scale));
    return of;
}

/* Decodes eight numbers: the four of each product in two registers. */
static void decode_half(fp4_gemm *g, const decoded_row *row, uint32_t half, ptx_val out[2][2])
{
    const codes_values e4m3 = {.type = g->of.type, .is_e4m3 = true};
    ptx_val pairs[FP4_PAIRS];
    for (uint32_t i = 0; i < 2 && row->is_e4m3; i++)
        codes_pairs(g->f, &e4m3, row->words[2 * half + i], false, &pairs[2 * i]);
    if (!row->is_e4m3)
        fp4_pairs(g->f, g->of.type, row->words[half], pairs);
    for (uint32_t i = 0; i < FP4_PAIRS; i++)
        out[i / 2][i % 2] = fp4_weights(g->f, g->of.type, pairs[i], row->scale);
}

static void multiply_x_codes(fp4_gemm *g, ptx_val codes, ptx_val scales, uint32_t step, uint32_t half,
                             ptx_val w[TILES][2][4])
{
    for (uint32_t tile = 0; tile < g->sums.row_tiles; tile++) {
        ptx_val x[2][2];
        const decoded_row row = load_row(g, &g->x_codes, codes, scales, SUMS_ROWS * tile, step);
        decode_half(g, &row, half, x);
        for (uint32_t product = 0; product < 2; product++)
            for (uint32_t i = 0; i < TILES; i++) {
                ptx_val *sum = sums_of(&g->sums, tile, i);
                tensor_multiply(g->f, g->of.type, sum, w[i][product], x[product], sum);
            }
    }
}

static void multiply_decoded(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    ptx_val w_scales = ptx_add(f, g->w_scales, g->stage), x_scales = {0};
    if (g->of.has_codes)
        x_scales = ptx_add(f, g->x_scales, g->stage);
    for (uint32_t step = 0; step < STEPS; step++) {
        decoded_row rows[LANE_ROWS];
        ptx_val w_at = ptx_add(f, g->w_at[step], g->stage), x_at = {0};
        for (uint32_t r = 0; r < LANE_ROWS; r++)
            rows[r] = load_row(g, &g->w, w_at, w_scales, SUMS_ROWS * r, step);
        if (g->of.has_codes)
            x_at = ptx_add(f, g->x_at[step], g->stage);
        for (uint32_t half = 0; half < HALVES; half++) {
            ptx_val w[TILES][2][4], pairs[2][2];
            for (uint32_t r = 0; r < LANE_ROWS; r++) {
                decode_half(g, &rows[r], half, pairs);
                for (uint32_t i = 0; i < 4; i++)
                    w[r / 2][i / 2][fragment_a(r % 2, i % 2)] = pairs[i / 2][i % 2];
            }
            if (g->of.has_codes)
                multiply_x_codes(g, x_at, x_scales, step, half, w);
            else
                x_ring_multiply(&g->x, ptx_add(f, g->stage, step * x_ring_bytes(g->of.tile_m)), half, w,
                                &g->sums);
        }
    }
}

/* Finds the addresses of this lane's codes and scales in a row: `row` is its number in the tile, `number` that in its matrix. */
static void find_decoded(fp4_gemm *g, const fp4_rows *of, ptx_val row, ptx_val number, ptx_val codes[STEPS],
                         ptx_val *scales)
{
    ptx_fn *f = g->f;
    const fragment_lane lane = g->tile.lane;
    ptx_val in_unit = ptx_mul(f, ptx_and(f, lane.t, 1), UNIT_BYTES / 2), half = ptx_shr(f, lane.t, 1);
    ptx_val start =
        ptx_add(f, has_e4m3(of) ? g->tile.shared : ptx_add(f, in_unit, g->tile.shared), of->code_byte);
    const uint32_t units = of->codes.row_bytes / UNIT_BYTES / STEPS;
    for (uint32_t step = 0; step < STEPS; step++) {
        ptx_val unit = ptx_add(f, has_e4m3(of) ? lane.t : half, step * units);
        codes[step] = ptx_add(f, layout_at(f, &of->codes, row, unit), start);
    }
    ptx_val block = of->is_mx ? half : lane.t;
    *scales = ptx_add(f, fp4_rows_scales(of, g->tile.shared, row, number), block);
}

/* ---- block-scaled products ---------------------------------------------------------------------------------------- */

/* Finds where this lane reads the current stage. */
static scaled_stage find_stage(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    scaled_stage at = {.w_scales = ptx_add(f, g->w_scales, g->stage),
                       .x_scales = ptx_add(f, g->x_scales, g->stage)};
    for (uint32_t i = 0; i < (g->of.is_mx ? MX_BLOCKS : 1); i++)
        at.x[i] = ptx_add(f, g->x_at[i], g->stage);
    return at;
}

/* Loads a row's words of scales in a stage: one per step, or a single one for MX. Scales as rows begin in `carried`, the last word
 * of the preceding stage. */
static void load_scales(fp4_gemm *g, ptx_val at, uint32_t row, ptx_val selector, ptx_val carried,
                        ptx_val scales[])
{
    ptx_fn *f = g->f;
    const uint32_t count = g->of.scale_words;
    ptx_val words[STEPS];
    ptx_load_vec(f, (int)count, words, shared_at(f, PTX_U32, at, row * 4 * count), PTX_PLAIN);
    for (uint32_t i = 0; i < count; i++)
        scales[i] =
            g->of.is_tiled ? words[i] : ptx_prmt(f, i == 0 ? carried : words[i - 1], words[i], selector);
    if (!g->of.is_tiled)
        ptx_set(f, carried, words[count - 1]);
}

static void load_x_codes(fp4_gemm *g, const scaled_stage *at, uint32_t tile, ptx_val x[])
{
    const uint32_t byte = SUMS_ROWS * tile * g->of.x_row_bytes;
    if (!g->of.is_mx) {
        ptx_ldmatrix(g->f, 2 * STEPS, x, shared_at(g->f, PTX_B32, at->x[0], byte));
        return;
    }
    for (uint32_t block = 0; block < MX_BLOCKS; block++)
        ptx_load_vec(g->f, 2, &x[2 * block], shared_at(g->f, PTX_U32, at->x[block], byte), PTX_PLAIN);
}

/* The scales of four tiles of x, one in each lane of a row. */
static void load_x_scales(fp4_gemm *g, const scaled_stage *at, uint32_t tile, ptx_val scales[])
{
    load_scales(g, at->x_scales, SUMS_ROWS * tile, g->x_selector, g->fragments.x_carried[tile / QUAD_LANES],
                scales);
}

/* Loads the first fragments of the current stage. */
static scaled_fragments load_fragments(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    const scaled_stage at = find_stage(g);
    scaled_fragments of = {0};
    load_scales(g, at.w_scales, 0, g->w_selector, g->fragments.w_carried, of.w_scales);
    load_x_scales(g, &at, 0, of.x_scales);
    load_x_codes(g, &at, 0, of.x);
    for (uint32_t step = 0; step < STEPS; step++) {
        ptx_val w_at = ptx_add(f, g->w_at[step], g->stage);
        for (uint32_t i = 0; i < TILES; i++)
            ptx_ldmatrix(f, 4, of.w[step][i], shared_at(f, PTX_B32, w_at, SUMS_COLUMNS * i * FP4_ROW_BYTES));
    }
    return of;
}

/* Waits until the next stage has been copied and all warps have read the current one, which is filled next. */
static void next_stage(fp4_gemm *g, uint32_t pending)
{
    ptx_fn *f = g->f;
    copy_wait(f, pending);
    ptx_barrier(f);
    ptx_set(f, g->filled, g->stage);
    shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

/* Moves loaded words to the variables that the products read; the first move makes the variables. */
static void move_words(ptx_fn *f, bool is_first, uint32_t count, ptx_val to[], const ptx_val from[])
{
    for (uint32_t i = 0; i < count; i++)
        if (is_first)
            to[i] = ptx_var(f, from[i]);
        else
            ptx_set(f, to[i], from[i]);
}

static void move_fragments(fp4_gemm *g, bool is_first, const scaled_fragments *from)
{
    scaled_fragments *to = &g->fragments;
    move_words(g->f, is_first, STEPS * TILES * 4, to->w[0][0], from->w[0][0]);
    move_words(g->f, is_first, g->of.is_mx ? 2 * MX_BLOCKS : 2 * STEPS, to->x, from->x);
    move_words(g->f, is_first, g->of.scale_words, to->w_scales, from->w_scales);
    move_words(g->f, is_first, g->of.scale_words, to->x_scales, from->x_scales);
}

static ptx_val load_carried(fp4_gemm *g, ptx_val scales, uint32_t row)
{
    const uint32_t words = g->of.scale_words, byte = g->of.carried_offset;
    return ptx_var(g->f,
                   ptx_load(g->f, shared_at(g->f, PTX_U32, scales, byte + 4 * (words * row + words - 1))));
}

static void init_fragments(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    scaled_fragments *of = &g->fragments;
    g->filled = ptx_var(f, g->stage);
    const uint32_t early = g->of.fills_early ? g->of.last_tiles : 0;
    for (uint32_t part = 0; part < early; part++)
        fill_part(g, part);
    next_stage(g, g->of.stages - 2);
    if (!g->of.is_tiled) {
        of->w_carried = load_carried(g, g->w_scales, 0);
        for (uint32_t tile = 0; tile < g->sums.row_tiles; tile += QUAD_LANES)
            of->x_carried[tile / QUAD_LANES] = load_carried(g, g->x_scales, SUMS_ROWS * tile);
    }
    const scaled_fragments first = load_fragments(g);
    move_fragments(g, true, &first);
}

/* Spreads the eight e2m1 codes of a word, in order, to bits 2 to 5 of the bytes of two words, as kind mxf8f6f4 needs them
 * (PTX ISA 9.7.14.5.14). */
static void spread_codes(ptx_fn *f, ptx_val word, ptx_val *first, ptx_val *second)
{
    ptx_val even = ptx_and(f, ptx_shl(f, word, 2), 0x3c3c3c3c);
    ptx_val odd = ptx_and(f, ptx_shr(f, word, 2), 0x3c3c3c3c);
    *first = ptx_prmt(f, even, odd, 0x5140);
    *second = ptx_prmt(f, even, odd, 0x7362);
}

static void spread_weights(fp4_gemm *g, ptx_val w[MX_BLOCKS][TILES][4])
{
    enum { STEP_BLOCKS = MX_BLOCKS / STEPS };
    for (uint32_t step = 0; step < STEPS; step++)
        for (uint32_t i = 0; i < TILES; i++)
            for (uint32_t n = 0; n < 2 * STEP_BLOCKS; n++) { /* rows g and g + 8 of each block */
                ptx_val *to = w[STEP_BLOCKS * step + n / 2][i];
                spread_codes(g->f, ptx_as(g->f, PTX_U32, g->fragments.w[step][i][n]), &to[n % 2],
                             &to[2 + n % 2]);
            }
}

static void multiply_tile(fp4_gemm *g, uint32_t tile, ptx_val w[MX_BLOCKS][TILES][4], ptx_val x[],
                          const ptx_val scales[])
{
    ptx_val *of_w = g->fragments.w_scales;
    for (uint32_t n = 0; n < (g->of.is_mx ? MX_BLOCKS : STEPS); n++)
        for (uint32_t i = 0; i < TILES; i++) {
            const int thread = (int)tile % QUAD_LANES, byte = g->of.is_mx ? (int)n : 0;
            const uint32_t word = g->of.is_mx ? 0 : n;
            const ptx_mma_scales a = {of_w[word], byte, (int)i}, b = {scales[word], byte, thread};
            ptx_val *sum = sums_of(&g->sums, tile, i);
            ptx_mma_scaled(g->f, g->of.is_mx ? PTX_MMA_M16N8K32_E2M1E4M3_UE8M0 : PTX_MMA_M16N8K64_E2M1_UE4M3,
                           sum, w[n][i], &x[2 * n], sum, a, b);
        }
}

static void multiply_scaled(fp4_gemm *g)
{
    const uint32_t tiles = g->sums.row_tiles, last = tiles - g->of.last_tiles;
    const scaled_stage at = find_stage(g);
    scaled_fragments *of = &g->fragments, next = {0};
    ptx_val w[MX_BLOCKS][TILES][4] = {0}, x[MOST_TILES][2 * MX_BLOCKS] = {0},
            scales[MOST_TILES / QUAD_LANES][STEPS] = {0};
    memcpy(x[0], of->x, sizeof x[0]);
    memcpy(scales[0], of->x_scales, sizeof scales[0]);
    if (g->of.is_mx)
        spread_weights(g, w);
    else
        memcpy(w, of->w, sizeof of->w);
    for (uint32_t tile = 0, loaded = 1; tile < tiles; tile++) {
        for (; loaded < (tile + 1 < last ? tile + 2 : tiles); loaded++) {
            if (loaded % QUAD_LANES == 0)
                load_x_scales(g, &at, loaded, scales[loaded / QUAD_LANES]);
            load_x_codes(g, &at, loaded, x[loaded]);
        }
        if (!g->of.fills_early)
            fill_part(g, tile);
        if (tile == last) {
            next_stage(g, g->of.stages - 2);
            next = load_fragments(g);
        }
        if (g->of.fills_early)
            fill_part(g, tile < last ? tile + tiles - last : tile - last);
        multiply_tile(g, tile, w, x[tile], scales[tile / QUAD_LANES]);
    }
    move_fragments(g, false, &next);
}

/* Block-scaled: what this lane reads of W or x. Rows are the tile's. */
typedef struct scaled_operand {
    const fp4_rows *rows;
    uint32_t loads;
    ptx_val row, unit;         /* of its first load of codes; each next one is two units on */
    ptx_val scale_row, number; /* the row whose scales it holds, and that row's number in its matrix */
} scaled_operand;

/* Finds the addresses of the codes that this lane loads, or passes to ldmatrix, and of the scales that it holds. */
static void find_scaled(fp4_gemm *g, const scaled_operand *of, ptx_val codes[], ptx_val *scales,
                        ptx_val *selector)
{
    ptx_fn *f = g->f;
    ptx_val start = ptx_add(f, g->tile.shared, of->rows->code_byte);
    for (uint32_t load = 0; load < of->loads; load++)
        codes[load] =
            ptx_add(f, layout_at(f, &of->rows->codes, of->row, ptx_add(f, of->unit, 2 * load)), start);
    ptx_val at = fp4_rows_scales(of->rows, g->tile.shared, of->scale_row, of->number);
    *selector =
        ptx_mad(f, ptx_and(f, at, 3), 0x1111, ptx_u32(0x3210)); /* the word at `at` of two aligned words */
    *scales = ptx_and(f, at, ~UINT32_C(3));
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

/* The number of a row of W in its matrix. */
static ptx_val number_of(fp4_gemm *g, ptx_val row)
{
    return linear_find_row(g->l, ptx_add(g->f, row, g->tile.first_w)).number;
}

static void init_reads(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    const fragment_lane lane = g->tile.lane;
    ptx_val first = ptx_mul(f, g->tile.column_warp, WARP_ROWS);
    if (!g->of.is_block_scaled) {
        ptx_val row = ptx_add(f, first, lane.g);
        find_decoded(g, &g->w, row, number_of(g, row), g->w_at, &g->w_scales);
        if (g->of.has_codes)
            find_decoded(g, &g->x_codes, lane.g, ptx_add(f, lane.g, g->tile.first_x), g->x_at, &g->x_scales);
        return;
    }
    /* Lane (g, t) holds the scales of row 8t + g of 32: products pick the lane. */
    const uint32_t x_tiles = g->of.tile_m / SUMS_ROWS < QUAD_LANES ? g->of.tile_m / SUMS_ROWS : QUAD_LANES;
    ptx_val x_row = ptx_mad(f, ptx_and(f, lane.t, x_tiles - 1), SUMS_ROWS, lane.g);
    ptx_val w_row = ptx_add(f, first, ptx_mad(f, lane.t, SUMS_ROWS, lane.g));
    scaled_operand w = {.rows = &g->w, .loads = STEPS, .scale_row = w_row},
                   x = {.rows = &g->x_codes, .scale_row = x_row};
    w.number = number_of(g, w_row);
    w.unit = ptx_shr(f, g->l->lane, 4);
    w.row = ptx_add(f, first, ptx_and(f, g->l->lane, 15));
    find_scaled(g, &w, g->w_at, &g->w_scales, &g->w_selector);
    x.number = ptx_add(f, x_row, g->tile.first_x);
    x.loads = g->of.is_e4m3 ? MX_BLOCKS : 1; /* one load has both steps */
    x.unit = g->of.is_e4m3 ? ptx_shr(f, lane.t, 1) : ptx_shr(f, g->l->lane, 3);
    x.row = g->of.is_e4m3 ? lane.g : ptx_and(f, g->l->lane, 7);
    find_scaled(g, &x, g->x_at, &g->x_scales, &g->x_selector);
    if (!g->of.is_e4m3)
        return;
    for (uint32_t block = 0; block < MX_BLOCKS; block++)
        g->x_at[block] = ptx_mad(f, ptx_and(f, lane.t, 1), UNIT_BYTES / 2, g->x_at[block]);
}

static void make_trip(void *strategy)
{
    fp4_gemm *g = strategy;
    ptx_fn *f = g->f;
    if (g->of.is_block_scaled) {
        multiply_scaled(g);
    } else {
        copy_wait(f, g->of.stages - 2);
        ptx_barrier(f); /* all warps are done with the previous stage, which is refilled */
        fill_stage(g, g->stage, g->of.stages - 1);
        shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
        multiply_decoded(g);
    }
    if (g->l->split_k == 1)
        ptx_sub_to(f, g->left, 1);
}

/* Stores sums over all of k, `rows_at_once` rows of the tile at a time. */
static void store_whole_sums(fp4_gemm *g)
{
    const uint32_t rows = g->of.rows_at_once;
    for (uint32_t first = 0; first < g->of.tile_m; first += rows) {
        warp_sums some = {.row_tiles = rows / SUMS_ROWS, .column_tiles = g->sums.column_tiles};
        for (uint32_t i = 0; i < sums_count(&some); i++)
            some.of[i] = sums_of(&g->sums, first / SUMS_ROWS, 0)[i];
        linear_tile tile = g->tile;
        tile.rows = rows;
        if (first > 0)
            tile.first_x = ptx_add(g->f, tile.first_x, first);
        linear_store_whole_sums(g->l, &tile, &some);
    }
}

/* Thread blocks that share k add their sums before they go to shared memory, since no warps of a thread block share it. */
static void store_sums(fp4_gemm *g)
{
    ptx_fn *f = g->f;
    if (g->l->split_k == 1) {
        store_whole_sums(g);
        return;
    }
    ptx_barrier(f);
    linear_find_tile_again(g->l, &g->tile);
    ptx_val has_all = linear_add_parts(g->l, &g->tile, g->sums.of, sums_count(&g->sums));
    PTX_IF (f, has_all) {
        store_whole_sums(g);
    }
}

static void make_tile(void *strategy)
{
    fp4_gemm *g = strategy;
    linear *l = g->l;
    ptx_fn *f = g->f;
    const uint32_t last = g->of.stages - 1;
    g->left =
        ptx_var(f, l->split_k == 1 ? ptx_div(f, ptx_add(f, l->k, FP4_STAGE - 1), FP4_STAGE) : l->part_stages);
    init_w_copies(g);
    init_x(g);
    if (g->w.is_carried) {
        fp4_rows_copy_carried(&g->w, ptx_u32(g->of.carried_offset), l->tid);
        fp4_rows_copy_carried(&g->x_codes, ptx_u32(g->of.carried_offset), l->tid);
    }
    for (uint32_t i = 0; i < last; i++)
        fill_stage(g, ptx_u32(i * g->of.stage_bytes), i);
    g->stage = ptx_var(f, ptx_u32(last * g->of.stage_bytes));
    init_reads(g);
    g->sums = linear_init_sums(f, g->of.tile_m);
    if (g->of.is_block_scaled)
        init_fragments(g);
    linear_each_trip(l, FP4_STAGE, g->left, make_trip, g);
    if (g->of.is_block_scaled)
        copy_commit(f);
    copy_wait(f, 0);
    store_sums(g);
}

void fp4_gemm_emit(linear *l, const fp4_gemm_geometry *of, ptx_val in_scales)
{
    linear_find_threads(l);
    fp4_gemm g = {.of = *of, .l = l, .f = l->f, .in_scales = in_scales};
    g.tile = linear_find_tile(l, of->tile_m, of->tile_n, LINEAR_WARP_COLUMNS, 1, 1, FP4_STAGE);
    linear_make_tiles(l, &g.tile, make_tile, &g);
}
