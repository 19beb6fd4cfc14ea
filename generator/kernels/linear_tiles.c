/* linear on tensor cores from 16 rows of x on: activation half, strategy tiles.
 *
 * A thread block makes tile_m rows by tile_n columns of y. Each warp has 32 rows of W, and decodes them once for all tile_m
 * rows of x (device/x_ring.h): scale * code + minimum, rounded to x's type. That costs less than scaling the sums, as
 * linear_mma.c does, and this rounding dominates the error.
 *
 * ROUNDING. In F16 one instruction scales two weights. If the file's scales and minima are F16, it rounds once, like f32
 * arithmetic and a conversion. For other formats, `rounding: twice` first rounds scales and minima to F16. Without it, and
 * always in BF16, weights are computed in f32.
 *
 * STEPS are 64 elements of k: a group of 64 or two of 32 (device/format.h). With tile_m below 64 and two or four stages, a
 * trip of the loop is a stage of W, so that a step's offsets are constants; larger tiles have no registers for that. Lane (g,
 * t) takes units 2t and 2t + 1 of a group of eight, and unit t of one of four, of its rows of W; x has that order too, so
 * that nothing is repacked. Lane (g, t) decodes the scales of row g + 8t, and its three neighbours get them by shuffles.
 *
 * SHARED MEMORY. A stage of x is a step, one of W 128 or 256 elements. With four stages of x there is a barrier for every two
 * steps, a batch: fewer barriers keep tensor cores busier.
 *
 *             bytes                   copied                                  waited for
 *     x       stages * tile_m * 128   step s + stages - batch during step s   before each batch
 *     W       2 * w_stage_bytes       stage i + 1 when stage i begins         before each stage
 *     sums    overlay both after the last step, when no copy is in flight
 */
#include "device/copy.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/row_ring.h"
#include "device/x_ring.h"
#include "linear.h"

enum {
    WARP_ROWS = LINEAR_WARP_COLUMNS, /* of W */
    LANE_ROWS = 4,                   /* eight apart */
    W_STAGES = 2
};

/* Known to `shape` and `emit`. */
typedef struct tiles_geometry {
    const weight_format *format;
    uint32_t tile_m, tile_n, stages, threads;
    uint32_t groups, units; /* groups of a step; a lane's units of a group */
    uint32_t steps, batch;  /* steps of a stage of W, and between barriers */
    bool is_half;           /* weights are scaled in F16 */
    bool has_blocks;        /* a stage has several quantised blocks of a row, otherwise at most one */
    bool is_unrolled;       /* a trip of the loop is a stage of W, not a step */
    row_ring_shape w;
    uint32_t number_byte, w_stage_bytes; /* in a stage of W: the first of its numbers in arrays; its size */
    uint32_t w_byte;                     /* in shared memory: the first stage of W, after x's stages */
    uint32_t trip, shared_bytes;         /* elements of a trip of the loop */
} tiles_geometry;

/* The kernel during emission: `g` below, while lane (g, t) in comments is lane 4g + t. */
typedef struct tiles {
    tiles_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    linear_tile tile;

    linear_ring w;
    x_ring x;
    uint32_t trip_step;              /* in an unrolled trip */
    ptx_val step;                    /* in its stage of W; this and the following are variables */
    ptx_val w_filled;                /* offset of the stage of W that was copied last */
    ptx_val x_to, x_from, next_step; /* offsets of the stages of x to copy to and to read; the step to copy */
    ptx_val row_at[LANE_ROWS], number_row_at; /* addresses in this stage of W */
    warp_sums sums;
} tiles;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

static tiles_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    tiles_geometry g = {.format = format,
                        .tile_m = kiln_int(v, "tile_m"),
                        .tile_n = kiln_int(v, "tile_n"),
                        .stages = kiln_int(v, "stages")};
    /* With 64 or more rows of x a stage of W is half as long, which saves shared memory, unless a block or a scale in an array
     * is for up to 256 elements. */
    const bool is_short =
        format->elements <= 2 * X_RING_STEP && format->scale_elements == 0 && g.tile_m >= 64;
    const uint32_t stage = is_short ? 2 * X_RING_STEP : 256;
    g.threads = WARP_LANES * g.tile_n / WARP_ROWS;
    g.groups = X_RING_STEP / format_group_elements(format);
    g.units = format->units / FRAGMENT_LANES;
    g.steps = stage / X_RING_STEP;
    g.batch = g.stages / 2;
    g.is_half =
        kiln_type(v, "x") == PTX_F16 && (format_has_half_numbers(format) || kiln_is(v, "rounding", "twice"));
    g.has_blocks = format->elements < stage;
    g.is_unrolled = g.tile_m < 64 && g.steps % g.stages == 0;
    g.w = linear_ring_stage(format, stage, g.units == 2);
    g.number_byte = layout_rows(&g.w.rows, g.tile_n);
    g.w_stage_bytes = g.number_byte + linear_numbers_bytes(format, stage, g.tile_n);
    g.w_byte = g.stages * x_ring_bytes(g.tile_m);
    g.trip = g.is_unrolled ? stage : X_RING_STEP;
    g.shared_bytes = linear_bytes(g.w_byte + W_STAGES * g.w_stage_bytes, g.tile_m, g.tile_n, 1);
    return g;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* The first element of a step of x. */
static ptx_val step_element(tiles *g, ptx_val step)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    if (format->parts < 4)
        return ptx_mul(f, step, X_RING_STEP);
    ptx_val block = ptx_div(f, step, format->groups), group = ptx_and(f, step, format->groups - 1);
    return ptx_mad(f, block, format->elements, format_group_element(f, format, group));
}

/* Starts to copy the next step of x, and ends a group of copies, which includes a stage of W if one was started. */
static void copy_x(tiles *g)
{
    ptx_fn *f = g->f;
    x_ring_copy(&g->x, step_element(g, g->next_step), g->x_to);
    ptx_add_to(f, g->next_step, 1);
    shared_next(f, g->x_to, x_ring_bytes(g->of.tile_m), g->of.stages);
    copy_commit(f);
}

/* Trips of the loop over this thread block's part of k. */
static ptx_val trips_of_part(tiles *g)
{
    ptx_fn *f = g->f;
    if (g->of.is_unrolled)
        return g->l->part_stages;
    ptx_val left = ptx_sub(f, g->l->k, g->l->part_element);
    ptx_val steps = ptx_div(f, ptx_add(f, left, X_RING_STEP - 1), X_RING_STEP);
    return ptx_min(f, steps, ptx_mul(f, g->l->part_stages, g->of.steps));
}

static void init_copies(tiles *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    g->w = linear_init_ring(l, &g->tile, (row_ring){.of = g->of.w}, g->of.number_byte,
                            ptx_add(f, g->tile.shared, g->of.w_byte));
    g->x = (x_ring){.f = f,
                    .type = l->x_type,
                    .rows = g->of.tile_m,
                    .threads = g->of.threads,
                    .run_step = g->of.format->parts == 4 ? g->of.format->quad_step : 16,
                    .is_wide = g->of.units == 2 || g->of.format->unit_step == 8};
    x_ring_init(&g->x, g->tile.shared, l->in, g->tile.first_x, l->m, l->k, l->tid, l->lane);
    g->next_step = ptx_var(f, l->split_k == 1 ? ptx_u32(0) : ptx_div(f, l->part_element, X_RING_STEP));
    if (l->split_k != 1)
        g->w.left = ptx_var(f, trips_of_part(g));
    g->x_to = ptx_var(f, ptx_u32(0));
    g->w_filled = ptx_var(f, ptx_u32(0));
    linear_fill_ring(&g->w, g->w_filled, 0);
    for (uint32_t i = 0; i + g->of.batch < g->of.stages; i++)
        copy_x(g);
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

/* A group of the step: this lane's quads of its rows, and the numbers of the row whose scales it decodes. */
typedef struct step_group {
    format_lane codes;
    ptx_val quads[LANE_ROWS][2][FORMAT_MOST_QUADS];
    ptx_val scale[FORMAT_MOST_PARTS], minimum[FORMAT_MOST_PARTS];
} step_group;

/* Finds group i of the step: its number in its block and, in a loop that is not unrolled, the block's in the stage; poison if there
 * is only one. */
static void find_group(tiles *g, uint32_t i, ptx_val *block, ptx_val *in_block)
{
    ptx_fn *f = g->f;
    const uint32_t groups = g->of.format->groups, of_step = g->of.groups;
    *block = (ptx_val){0};
    if (g->of.is_unrolled) {
        *in_block = ptx_u32((g->trip_step * of_step + i) % groups);
    } else if (groups <= of_step) { /* a step has whole blocks */
        *block = ptx_mad(f, g->step, of_step / groups, i / groups);
        *in_block = ptx_u32(i % groups);
    } else {
        const uint32_t steps = groups / of_step; /* of a block */
        ptx_val step = g->step;
        if (g->of.has_blocks) {
            *block = ptx_div(f, g->step, steps);
            step = ptx_and(f, g->step, steps - 1);
        }
        *in_block = ptx_mad(f, step, of_step, i);
    }
}

/* Finds a block in the stage. */
static format_place find_block(tiles *g, const format_lane *lane, ptx_val row_at, ptx_val block)
{
    ptx_fn *f = g->f;
    ptx_val at = block.type == PTX_NONE ? row_at : ptx_mad(f, block, g->of.format->bytes, row_at);
    return format_find(f, lane, shared_at(f, PTX_U8, at, 0));
}

/* Finds the numbers of a block's group. */
static format_place find_numbers(tiles *g, const format_lane *lane, ptx_val row_at, ptx_val block)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    if (format->scale_elements == 0)
        return find_block(g, lane, row_at, block);
    ptx_val scale = ptx_div(f, block, format->scale_elements / format->elements);
    return format_find_numbers(f, lane, ptx_mad(f, scale, format_numbers_bytes(format), row_at), 0);
}

/* Decodes group i of the step. */
static step_group decode_group(tiles *g, uint32_t i)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const bool has_constants = g->of.is_unrolled && g->of.has_blocks;
    const uint32_t in_stage = g->trip_step * g->of.groups + i;
    step_group group = {.scale = {{0}}, .minimum = {{0}}};
    ptx_val block, in_block;
    find_group(g, i, &block, &in_block);
    ptx_val unit = g->of.units == 1 ? g->tile.lane.t : ptx_mul(f, g->tile.lane.t, g->of.units);
    const format_rule rule = g->of.is_half ? FORMAT_PLAIN_SHIFT : FORMAT_SCALED_SHIFT;
    group.codes = format_lane_init(f, format, in_block, unit, g->of.units, rule);
    format_lane_values(f, &group.codes, PTX_F32);
    const format_lane numbers = format_lane_init(f, format, in_block, (ptx_val){0}, 0, rule);
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        format_place place = has_constants ? format_find_group(f, &group.codes, g->row_at[r], in_stage)
                                           : find_block(g, &group.codes, g->row_at[r], block);
        format_codes(f, &group.codes, &place, 0, g->of.units, group.quads[r]);
    }
    format_place place = has_constants ? format_find_numbers(f, &numbers, g->number_row_at, in_stage)
                                       : find_numbers(g, &numbers, g->number_row_at, block);
    format_numbers(f, &numbers, &place, group.scale, group.minimum);
    return group;
}

/* A part's numbers for each of the lane's rows, F16X2 of two equal halves. */
typedef struct row_halves {
    ptx_val scale[LANE_ROWS], minimum[LANE_ROWS];
} row_halves;

/* Broadcasts one half of a word; ptxas folds the move into the instruction that reads the pair. */
static ptx_val both_halves(ptx_fn *f, ptx_val word, uint32_t half)
{
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, ptx_as(f, PTX_B32, word));
    const ptx_val alike[2] = {halves[half], halves[half]};
    return ptx_pack(f, PTX_F16X2, 2, alike);
}

/* As F16: one shuffle moves two. */
static row_halves share_halves(tiles *g, const step_group *from, uint32_t part)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    row_halves numbers;
    ptx_val scale = from->scale[part], other = format->has_minimum ? from->minimum[part] : scale;
    ptx_val word = narrow_pair(f, PTX_F16, scale, other);
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        ptx_val mine = ptx_shfl_idx_in(f, word, r, FRAGMENT_LANES);
        numbers.scale[r] = format->has_minimum ? both_halves(f, mine, 0) : ptx_as(f, PTX_F16X2, mine);
        if (format->has_minimum)
            numbers.minimum[r] = both_halves(f, mine, 1);
    }
    return numbers;
}

/* First operands of products: the scaled quad `quad` of a unit of each of the lane's rows. `halves` are its part's numbers. */
static void scale_quads(tiles *g, const step_group *from, const row_halves *halves, uint32_t unit,
                        uint32_t quad, ptx_val w[X_RING_TILES][2][4], uint32_t product)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t part = format_quad_part(format, quad);
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        ptx_val pairs[2], minimum = {0}, code = from->quads[r][unit][quad];
        if (g->of.is_half) {
            format_half_weights(f, format, code, format->plain_shift * quad, halves->scale[r],
                                halves->minimum[r], pairs);
        } else {
            ptx_val scale = ptx_shfl_idx_in(f, from->scale[part], r, FRAGMENT_LANES);
            if (format->has_minimum)
                minimum = ptx_shfl_idx_in(f, from->minimum[part], r, FRAGMENT_LANES);
            format_weights(f, &from->codes, g->l->x_type, code, scale, minimum, pairs);
        }
        for (uint32_t i = 0; i < 2; i++)
            w[r / 2][product][fragment_a(r % 2, i)] = pairs[i];
    }
}

/* ---- the loop ----------------------------------------------------------------------------------------------------- */

/* The weights of a half of the step: one of two groups, or some quads or some units of each quad of one group. */
static void make_half(tiles *g, const step_group *from, uint32_t half, ptx_val w[X_RING_TILES][2][4])
{
    const bool is_wide = g->of.units == 2;
    const uint32_t first = g->of.groups == 2 ? 0 : is_wide ? half : 2 * half;
    row_halves halves;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t quad = is_wide ? first : first + i, part = format_quad_part(g->of.format, quad);
        if (g->of.is_half && (i == 0 || part != format_quad_part(g->of.format, first)))
            halves = share_halves(g, from, part);
        scale_quads(g, from, &halves, is_wide ? i : 0, quad, w, i);
    }
}

/* The copy of the next step of x is between products, so that these need not wait for its instructions. */
static void multiply_step(tiles *g)
{
    const bool has_arrays = g->of.format->scale_elements > 0;
    step_group group;
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val w[X_RING_TILES][2][4];
        if (has_arrays && g->of.tile_m == 16)
            ptx_warp_barrier(g->f);
        if (half == 0 || g->of.groups == 2)
            group = decode_group(g, half);
        if (has_arrays) /* ptxas moves no load across it: else some variants spill */
            ptx_warp_barrier(g->f);
        make_half(g, &group, half, w);
        x_ring_multiply(&g->x,
                        g->of.is_unrolled ? ptx_u32(g->trip_step % g->of.stages * x_ring_bytes(g->of.tile_m))
                                          : g->x_from,
                        half, w, &g->sums);
        if (half == 0)
            copy_x(g);
    }
}

/* Selects the next stage of W, and refills the previous one. */
static void next_w(tiles *g)
{
    ptx_fn *f = g->f;
    linear_next_lane_rows(&g->w, g->w_filled);
    for (uint32_t r = 0; r < LANE_ROWS; r++)
        ptx_set(f, g->row_at[r], g->w.row_at[r]);
    ptx_set(f, g->number_row_at, g->w.number_row_at);
    shared_next(f, g->w_filled, g->of.w_stage_bytes, W_STAGES);
    linear_fill_ring(&g->w, g->w_filled, g->of.is_unrolled ? 1 : g->of.steps);
}

/* All warps are done with the previous batch; its stages are refilled while this one is multiplied. */
static void next_batch(tiles *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, g->of.stages - 2 * g->of.batch);
    ptx_barrier(f);
    if (g->of.is_unrolled && g->trip_step > 0)
        return;
    IF_NEEDED (f, !g->of.is_unrolled, ptx_eq(f, g->step, 0)) {
        next_w(g);
    }
}

static void next_step(tiles *g)
{
    ptx_fn *f = g->f;
    if (g->trip_step % g->of.batch > 0)
        return;
    IF_NEEDED (f, g->of.batch > 1 && !g->of.is_unrolled,
               ptx_uniform(f, ptx_eq(f, ptx_and(f, g->step, g->of.batch - 1), 0))) {
        next_batch(g);
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void make_trip(void *strategy)
{
    tiles *g = strategy;
    const uint32_t steps = g->of.is_unrolled ? g->of.steps : 1;
    for (g->trip_step = 0; g->trip_step < steps; g->trip_step++) {
        next_step(g);
        multiply_step(g);
    }
    if (g->of.is_unrolled)
        return;
    shared_next(g->f, g->x_from, x_ring_bytes(g->of.tile_m), g->of.stages);
    shared_next(g->f, g->step, 1, g->of.steps);
}

static void make_tile(void *strategy)
{
    tiles *g = strategy;
    linear *l = g->l;
    ptx_fn *f = g->f;
    init_copies(g);
    linear_find_lane_rows(&g->w, (ptx_val){0}, 0);
    for (uint32_t r = 0; r < LANE_ROWS; r++)
        g->row_at[r] = ptx_var(f, g->w.rows[r].at);
    g->number_row_at = ptx_var(f, g->w.number_row.at);
    g->sums = linear_init_sums(f, g->of.tile_m);
    g->x_from = ptx_var(f, ptx_u32(0));
    g->step = ptx_var(f, ptx_u32(0));
    linear_each_trip(l, g->of.trip, g->w.left, make_trip, g);
    copy_wait(f, 0);
    linear_store_sums(l, &g->tile, &g->sums);
}

void linear_emit_tiles(linear *l, const kiln_variant *v)
{
    linear_find_threads(l);
    tiles g = {.of = geometry_of(v, l->of.format), .l = l, .f = l->f};
    g.tile =
        linear_find_tile(l, g.of.tile_m, g.of.tile_n, LINEAR_WARP_COLUMNS, 1, 1, g.of.steps * X_RING_STEP);
    linear_make_tiles(l, &g.tile, make_tile, &g);
}

void linear_shape_tiles(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_tiles = kiln_is(v, "strategy", "tiles") && !kiln_is(v, "x", "s8");
    const tiles_geometry g = geometry_of(v, format);
    kiln_require(
        s, !is_tiles || (g.tile_m >= 16 && g.tile_n >= 128 && 8 * g.tile_m >= g.tile_n),
        "strategy tile_m tile_n",
        "strategy tiles needs tile_n of at least 128, and tile_m of at least 16 and an eighth of tile_n");
    kiln_require(s, !is_tiles || kiln_int(v, "k_warps") == 2, "strategy k_warps",
                 "k_warps 4 needs strategy mma");
    kiln_require(s, !is_tiles || g.tile_m < 128 || kiln_int(v, "split_k") == 1, "strategy tile_m split_k",
                 "k is split with strategy mma and tile_m up to 32, or tiles and up to 64: registers");
    kiln_require_shared_bytes(s, is_tiles ? g.shared_bytes + linear_split_bytes(v) : 0, SHARED_SM_80,
                              "strategy format tile_m tile_n stages",
                              "tile_m, tile_n and stages of strategy tiles");
    kiln_require(
        s,
        kiln_is(v, "rounding", "once") || (is_tiles && kiln_type(v, "x") == PTX_F16 &&
                                           !format_has_half_numbers(format) && !format_has_values(format)),
        "format x strategy rounding",
        "rounding twice needs strategy tiles, x f16, and a format of integers with scales that are no numbers of f16");
    kiln_require(s, !is_tiles || g.tile_m < 128 || !format_has_values(format), "format strategy tile_m",
                 "format nf4 with strategy tiles has tile_m up to 64: registers");
    if (!is_tiles)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = g.shared_bytes;
    s->trip = g.trip;
    kiln_number(s, v, "stage_elements", g.steps * X_RING_STEP);
    const bool has_many_words = g.units == 2 && format->runs[1].kind == RUN_UNITS;        /* Q5_K */
    const bool needs_all = has_many_words || (kiln_int(v, "split_k") != 1 && !g.is_half); /* else it spills */
    s->blocks_per_multiprocessor =
        lanes_blocks(g.threads, g.tile_m == 16 && g.is_half                       ? 512
                                : g.tile_m < 64 || (g.tile_m == 64 && !needs_all) ? 384
                                                                                  : 256);
}
