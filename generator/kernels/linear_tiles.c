/* linear on tensor cores for many rows of x: activation half, strategy tiles.
 *
 * A thread block makes tile_m rows by tile_n columns of y. Each warp has 32 rows of W, and decodes them once for all tile_m rows
 * of x (device/x_ring.h): scale * code + minimum in f32, rounded to x's type. That costs less than scales on the sums, which
 * linear_mma.c has, from some 32 rows on; and is what bounds the error.
 *
 * STEPS are 64 elements of k: a group of 64 or two of 32 (device/format.h). Lane (g, t) takes units 2t and 2t + 1 of a group of
 * eight, and unit t of one of four, of its rows of W; x comes in that order, so that nothing is repacked. Lane (g, t) decodes the
 * scales of row g + 8t, and its three neighbours get them by shuffles.
 *
 * COPIES. x is copied a step at a time into a ring of `stages`, W a stage of 128 or 256 elements at a time into a double buffer.
 * With four stages there is a barrier for every two steps: warps that wait for each other less often keep tensor cores busier.
 *
 * INSTRUCTIONS per weight in the loop on sm_90, for tile_m 64 and 128: Q4_0 7.8 9.6, Q8_0 8.9 10.5, Q4_K 7.4 8.9, Q6_K 8.6 10.4,
 * MXFP4 9.9 11.6. Of Q4_K's 8.9 are 2.0 products, 0.5 loads of x, 0.7 copies of W, 4.3 weights.
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/x_ring.h"
#include "linear.h"

enum {
    WARP_ROWS = 32, /* of W */
    LANE_ROWS = 4,  /* eight apart */
    QUAD_LANES = 4, /* t */
    W_STAGES = 2
};

/* What `shape` and `emit` both know. */
typedef struct tiles_geometry {
    const weight_format *format;
    uint32_t tile_m, tile_n, stages, threads;
    uint32_t groups, units; /* of a step; of a group, that a lane takes */
    uint32_t steps, batch;  /* of a stage of W; between barriers */
    row_ring_shape w;
    uint32_t w_stage_bytes, w_byte; /* in shared memory */
} tiles_geometry;

typedef struct tiles {
    tiles_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    linear_tile tile;

    row_ring w;
    x_ring x;
    ptx_val step, w_to, x_to,
        x_from;   /* variables: the step in its stage of W; offsets of the stages that are filled and read */
    ptx_val next; /* the next step of x to copy */
    row_ring_row rows[LANE_ROWS + 1]; /* this lane's, and the one whose scales it decodes */
    ptx_val row_at[LANE_ROWS + 1];    /* variables: in this stage */
    ptx_val sum[X_RING_MOST_ROW_TILES][X_RING_TILES][4];
} tiles;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

static tiles_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    tiles_geometry g = {.format = format,
                        .tile_m = kiln_int(v, "tile_m"),
                        .tile_n = kiln_int(v, "tile_n"),
                        .stages = kiln_int(v, "stages")};
    const uint32_t stage = format->groups == 1 ? 2 * X_RING_STEP : 256;
    g.threads = WARP_LANES * g.tile_n / WARP_ROWS;
    g.groups = X_RING_STEP / format_group_elements(format);
    g.units = format->units / QUAD_LANES;
    g.steps = stage / X_RING_STEP;
    g.batch = g.stages / 2;
    g.w = row_ring_stage(stage / format->elements * format->bytes);
    g.w_stage_bytes = shared_rows_bytes(g.w.rows, g.tile_n);
    g.w_byte = g.stages * x_ring_bytes(g.tile_m);
    return g;
}

/* At the end the sums take the stages' bytes. */
static uint32_t shared_bytes(const tiles_geometry *g)
{
    const uint32_t stages = g->w_byte + W_STAGES * g->w_stage_bytes,
                   sums = linear_sums_bytes(g->tile_m, g->tile_n, 1);
    return stages > sums ? stages : sums;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* The first element of a step of x. */
static ptx_val step_element(tiles *g, ptx_val step)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    if (format->parts < 4)
        return ptx_mul(f, step, ptx_u32(X_RING_STEP));
    ptx_val block = ptx_div(f, step, ptx_u32(format->groups)),
            group = ptx_and(f, step, ptx_u32(format->groups - 1));
    return ptx_mad(f, block, ptx_u32(format->elements), format_group_element(f, format, group));
}

/* Starts to copy the next step of x, and ends a group of copies, which has a stage of W where there was one to copy. */
static void copy_x(tiles *g)
{
    ptx_fn *f = g->f;
    x_ring_copy(&g->x, step_element(g, g->next), g->x_to);
    ptx_add_to(f, g->next, ptx_u32(1));
    shared_next(f, g->x_to, x_ring_bytes(g->of.tile_m), g->of.stages);
    copy_commit(f, g->l->of.has_sm_80);
}

/* Starts to copy the next stage of W, if there is one. */
static void copy_w(tiles *g)
{
    ptx_fn *f = g->f;
    PTX_IF (f, row_ring_has_next(&g->w)) {
        row_ring_copy(&g->w, g->w_to);
        row_ring_step(&g->w);
    }
}

static void init_copies(tiles *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    g->w = (row_ring){.f = f,
                      .has_sm_80 = l->of.has_sm_80,
                      .of = g->of.w,
                      .threads = g->of.threads,
                      .passes = ROW_RING_LANES * g->of.tile_n / g->of.threads};
    linear_init_ring(l, &g->w, ptx_add(f, g->tile.shared, ptx_u32(g->of.w_byte)), g->tile.first_w);
    g->x = (x_ring){.f = f,
                    .type = l->x_type,
                    .has_sm_80 = l->of.has_sm_80,
                    .rows = g->of.tile_m,
                    .threads = g->of.threads,
                    .run_step = g->of.format->parts == 4 ? g->of.format->quad_step : 16,
                    .is_wide = g->of.units == 2};
    x_ring_init(&g->x, g->tile.shared, l->in, g->tile.first_x, l->m, l->k, l->k, l->tid, l->lane);
    g->next = ptx_var(f, ptx_u32(0));
    g->x_to = ptx_var(f, ptx_u32(0));
    g->w_to = ptx_var(f, ptx_u32(0));
    copy_w(g);
    for (uint32_t i = 0; i + g->of.batch < g->of.stages; i++)
        copy_x(g);
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

/* A group of the step: this lane's quads of its rows, and the numbers of the row whose scales it decodes. */
typedef struct group {
    ptx_val quads[LANE_ROWS][2][FORMAT_MOST_QUADS];
    ptx_val scale[FORMAT_MOST_PARTS], minimum[FORMAT_MOST_PARTS];
} group;

/* The quantised block of group i of the step, which is group `number` of its stage. */
static format_place find_block(tiles *g, const format_lane *lane, ptx_val row_at, ptx_val number)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    ptx_val at = format->groups > 1 ? row_at : ptx_mad(f, number, ptx_u32(format->bytes), row_at);
    return format_find(f, lane, shared_at(f, PTX_U8, at, 0));
}

static group decode_group(tiles *g, uint32_t i)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    group of = {.scale = {{0}}, .minimum = {{0}}};
    ptx_val number = ptx_mad(f, g->step, ptx_u32(g->of.groups), ptx_u32(i));
    ptx_val in_block = format->groups > 1 ? number : ptx_u32(0);
    ptx_val unit = g->of.units == 1 ? g->tile.t : ptx_mul(f, g->tile.t, ptx_u32(g->of.units));
    const format_lane codes = format_lane_init(f, format, in_block, unit, FORMAT_RAISED),
                      numbers = format_lane_init(f, format, in_block, (ptx_val){0}, FORMAT_RAISED);
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        format_place place = find_block(g, &codes, g->row_at[r], number);
        format_codes(f, &codes, &place, 0, g->of.units, of.quads[r]);
    }
    format_place place = find_block(g, &numbers, g->row_at[LANE_ROWS], number);
    format_numbers(f, &numbers, &place, of.scale, of.minimum);
    return of;
}

/* Quad `quad` of a unit of the lane's rows, scaled: a product's first operands. */
static void scale_quads(tiles *g, const group *of, uint32_t unit, uint32_t quad,
                        ptx_val w[X_RING_TILES][2][4], uint32_t product)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t part = format_quad_part(format, quad);
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        ptx_val pairs[2], minimum = {0};
        ptx_val scale = ptx_shfl_idx_in(f, of->scale[part], ptx_u32(r), QUAD_LANES);
        if (format->has_minimum)
            minimum = ptx_shfl_idx_in(f, of->minimum[part], ptx_u32(r), QUAD_LANES);
        format_weights(f, format, g->l->x_type, g->l->of.has_sm_80, of->quads[r][unit][quad], scale, minimum,
                       pairs);
        for (uint32_t i = 0; i < 2; i++)
            w[r / 2][product][2 * i + r % 2] = pairs[i];
    }
}

/* ---- the loop ----------------------------------------------------------------------------------------------------- */

/* The weights of a half of the step: of two groups each is a half, of one some quads or some units of each quad. */
static void make_half(tiles *g, const group *of, uint32_t half, ptx_val w[X_RING_TILES][2][4])
{
    const bool is_wide = g->of.units == 2;
    const uint32_t first = g->of.groups == 2 ? 0 : is_wide ? half : 2 * half;
    for (uint32_t i = 0; i < 2; i++)
        scale_quads(g, of, is_wide ? i : 0, is_wide ? first : first + i, w, i);
}

/* The copy of the next step of x stands between products, so that these need not wait for its instructions. */
static void multiply_step(tiles *g)
{
    group of;
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val w[X_RING_TILES][2][4];
        if (half == 0 || g->of.groups == 2)
            of = decode_group(g, half);
        make_half(g, &of, half, w);
        x_ring_multiply(&g->x, g->x_from, half, w, g->sum);
        if (half == 0)
            copy_x(g);
    }
}

/* The first step of a stage of W: the one before it is free. */
static void next_w(tiles *g)
{
    ptx_fn *f = g->f;
    PTX_IF (f, ptx_eq(f, g->step, ptx_u32(0))) {
        for (uint32_t i = 0; i <= LANE_ROWS; i++) {
            ptx_val at = row_ring_next(&g->w, &g->rows[i], g->w_to);
            ptx_set(f, g->row_at[i], at);
        }
        shared_next(f, g->w_to, g->of.w_stage_bytes, W_STAGES);
        copy_w(g);
    }
}

/* All warps are done with the batch before this one; its stages are filled while this one is multiplied. */
static void next_batch(tiles *g)
{
    copy_wait(g->f, g->l->of.has_sm_80, g->of.stages - 2 * g->of.batch);
    ptx_barrier(g->f);
    next_w(g);
}

static void next_step(tiles *g)
{
    ptx_fn *f = g->f;
    if (g->of.batch == 1) {
        next_batch(g);
        return;
    }
    ptx_val in_batch = ptx_and(f, g->step, ptx_u32(g->of.batch - 1));
    PTX_IF (f, ptx_uniform(f, ptx_eq(f, in_batch, ptx_u32(0)))) {
        next_batch(g);
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void init_rows(tiles *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    ptx_val mine = ptx_mad(f, g->tile.column_warp, ptx_u32(WARP_ROWS), g->tile.g);
    for (uint32_t i = 0; i <= LANE_ROWS; i++) {
        ptx_val row =
            i < LANE_ROWS ? ptx_add(f, mine, ptx_u32(8 * i)) : ptx_mad(f, g->tile.t, ptx_u32(8), mine);
        ptx_val first = ptx_add(f, shared_row(f, g->of.w.rows, row), g->tile.shared);
        ptx_val at = ptx_add(f, first, ptx_u32(g->of.w_byte)), number = ptx_add(f, row, g->tile.first_w);
        g->rows[i] = row_ring_find(&g->w, at, linear_row_address(l, number));
        g->row_at[i] = ptx_var(f, at);
    }
}

void linear_emit_tiles(linear *l, const kiln_variant *v)
{
    ptx_fn *f = l->f;
    linear_find_threads(l);
    tiles of = {.of = geometry_of(v, l->of.format), .l = l, .f = f}, *g = &of;
    g->tile = linear_find_tile(l, g->of.tile_m, g->of.tile_n, 1);
    init_copies(g);
    init_rows(g);
    linear_init_sums(f, g->of.tile_m, g->sum);
    g->x_from = ptx_var(f, ptx_u32(0));
    g->step = ptx_var(f, ptx_u32(0));
    PTX_FOR (f, first, ptx_u32(0), l->k, ptx_u32(X_RING_STEP)) {
        ptx_main_loop(f);
        next_step(g);
        multiply_step(g);
        shared_next(f, g->x_from, x_ring_bytes(g->of.tile_m), g->of.stages);
        shared_next(f, g->step, 1, g->of.steps);
    }
    copy_wait(f, l->of.has_sm_80, 0);
    linear_store_sums(l, &g->tile, g->sum);
}

void linear_shape_tiles(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_tiles = kiln_is(v, "strategy", "tiles");
    const tiles_geometry g = geometry_of(v, format);
    kiln_require(s, !is_tiles || (g.tile_m >= 64 && g.tile_n >= 128), "strategy tile_m tile_n",
                 "strategy tiles needs tile_m of at least 64 and tile_n of at least 128");
    kiln_require(s, !is_tiles || kiln_int(v, "k_warps") == 2, "strategy k_warps",
                 "k_warps 4 needs strategy mma");
    kiln_require(s, !is_tiles || shared_bytes(&g) <= SHARED_SM_80, "strategy format tile_m tile_n stages",
                 "tile_m, tile_n and stages of strategy tiles fit 163 KB of shared memory");
    if (!is_tiles)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = s->least_shared_bytes = shared_bytes(&g);
    s->min_sm = kiln_type(v, "x") == PTX_BF16 || s->shared_bytes > SHARED_SM_75 ? 80 : 75;
    s->trip = X_RING_STEP;
    const bool has_many_words = g.units == 2 && format->runs[1].kind == RUN_UNITS; /* Q5_K: else it spills */
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.tile_m == 64 && !has_many_words ? 168 : 255);
}
