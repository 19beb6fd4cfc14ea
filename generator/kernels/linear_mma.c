/* linear on tensor cores: activation half.
 *
 * The weights are mma's first operand: 16 rows of W are its 16 rows. x is the second: eight of its rows are the 8 columns. A
 * thread block makes tile_m rows by tile_n columns of y. Each warp has 32 rows of W, and decodes them once for all tile_m
 * rows of x. A stage is 256 elements of k, whole quantised blocks, or with few rows of x twice as many; k_warps such warps
 * share its groups.
 *
 * ORDER ALONG K is free as long as the operands agree. Lane (g, t) takes some units of a group of rows g, g + 8, g + 16 and
 * g + 24 (device/format.h): unit t; or the pair 2t and 2t + 1, loaded at once; or, where pairs have bank conflicts, units t and
 * t + 4. The four lanes' quads are the 16 elements of one product, so a lane needs the same four consecutive
 * elements of row g of x, 8 bytes, and nothing is repacked. Pairs, and units of int4 and nf4, have two neighbouring quads: 16
 * bytes of x for two products.
 *
 * NUMBERS. Codes minus their offset are exact in f16 and in bf16; NF4's values are rounded. Scales multiply the products of a
 * sub-block, in f32, and a minimum multiplies the sum of x over the sub-block, which a product with ones computes: no other
 * weight is rounded, and no scale overflows or underflows the type. Each 16 rows of W and eight of x cost 4 fma per
 * sub-block, 8 with a minimum. Scaled weights cost less, and are rounded: linear_tiles.c. Lane (g, t) decodes the scales of
 * row g + 8t, and its three neighbours get them by shuffles.
 *
 * SHARED MEMORY is a ring of `stages` stages. Trip i waits for stage i, and after a barrier copies stage i + stages - 1 into the
 * one that trip i - 1 has read. k's tail is zeros.
 *
 *             bytes of a stage
 *     W       layout_rows(w.rows, tile_n)
 *     x       tile_m * x_row_bytes
 *     numbers linear_numbers_bytes: W's scales and zeros, if they are in arrays
 *     sums    overlay all stages after the loop
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "linear.h"

enum {
    ROWS = 8,  /* rows of x in one product */
    PAIRS = 2, /* pairs of 8 rows of W in one product */
    TILES = LINEAR_MMA_TILES,
    LANE_ROWS = LINEAR_LANE_ROWS,
    X_UNIT = 8,       /* elements of x in a copy */
    X_PAD_BYTES = 32, /* puts four rows of x in different banks; doubled, two, if lanes load 16 bytes */
    MOST_GROUPS = 16, /* of a row and stage */
    MOST_UNITS = 2    /* of a lane and group */
};

/* Known to `shape` and `emit`. */
typedef struct mma_geometry {
    const weight_format *format;
    uint32_t tile_m, tile_n, k_warps, stages, threads;
    uint32_t row_tiles;
    uint32_t units;                                         /* of a lane and group */
    bool is_paired;                                         /* a lane's two units are neighbours */
    uint32_t distance;                                      /* between a lane's units */
    uint32_t lane_elements;                                 /* of x, consecutive, that a lane loads at once */
    uint32_t stage;                                         /* elements of k */
    uint32_t groups;                                        /* groups of a row and stage in a warp */
    row_ring_shape w;                                       /* a stage of W */
    uint32_t x_row_bytes, x_byte, number_byte, stage_bytes; /* in shared memory */
    uint32_t shared_bytes;
} mma_geometry;

typedef struct mma {
    mma_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    ptx_type type;
    linear_tile tile;
    ptx_val stage; /* offset of the current stage */

    /* This thread's copies of the next stage. */
    linear_ring w;
    ptx_val x_to;           /* in the first stage */
    ptx_val x_from, x_step; /* U64: this thread's unit of its first row; bytes between its rows */
    ptx_val x_left, x_rows; /* elements from this thread's unit on; rows from its first row on; S32 */

    ptx_val x_at;
    format_lane codes[MOST_GROUPS], numbers[MOST_GROUPS];
    ptx_val zero;
    warp_sums sums;
} mma;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

static mma_geometry plan(const kiln_variant *v, const weight_format *format, bool may_pair)
{
    mma_geometry g = {.format = format,
                      .tile_m = kiln_int(v, "tile_m"),
                      .tile_n = kiln_int(v, "tile_n"),
                      .k_warps = kiln_int(v, "k_warps"),
                      .stages = kiln_int(v, "stages"),
                      .units = format->units / FRAGMENT_LANES};
    g.row_tiles = g.tile_m / ROWS;
    g.threads = WARP_LANES * (g.tile_n / LINEAR_WARP_COLUMNS) * g.k_warps;
    g.stage = g.tile_m <= 16 ? 512 : 256;
    g.groups = g.stage / format_group_elements(format) / g.k_warps;
    g.w = linear_ring_stage(format, g.stage, may_pair && g.units == 2 && format_alignment(format) % 8 == 0);
    g.is_paired = g.w.lane_bytes == 8;
    g.distance = g.is_paired ? 1 : FRAGMENT_LANES;
    g.lane_elements = format->unit_step * (g.is_paired ? 2u : 1u);
    g.x_row_bytes = 2 * g.stage + X_PAD_BYTES * g.lane_elements / 4;
    g.x_byte = layout_rows(&g.w.rows, g.tile_n);
    g.number_byte = g.x_byte + g.tile_m * g.x_row_bytes;
    g.stage_bytes = g.number_byte + linear_numbers_bytes(format, g.stage, g.tile_n);
    g.shared_bytes = linear_bytes(g.stages * g.stage_bytes, g.tile_m, g.tile_n, g.k_warps);
    return g;
}

/* Pairs take more shared memory: they are not used if they would not fit on sm_75, and single units would. */
static mma_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    const mma_geometry paired = plan(v, format, true), single = plan(v, format, false);
    const uint32_t most = SHARED_SM_75 - linear_split_bytes(v);
    return single.shared_bytes <= most && paired.shared_bytes > most ? single : paired;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* A warp copies 256 elements of a row at once. */
static void init_x_copies(mma *g)
{
    ptx_fn *f = g->f;
    ptx_val number = ptx_add(f, g->l->warp, g->tile.first_x), element = ptx_mul(f, g->l->lane, X_UNIT);
    if (g->l->split_k != 1)
        element = ptx_add(f, element, g->l->part_element);
    g->x_from = ptx_var(f, ptx_address(f, tail_element(f, g->l->in, number, g->l->k, element)));
    g->x_step = ptx_mul_wide(f, g->l->k, 2 * g->of.threads / WARP_LANES);
    ptx_val to = ptx_mad(f, g->l->warp, g->of.x_row_bytes, g->tile.shared);
    ptx_val of_unit = ptx_mad(f, g->l->lane, UNIT_BYTES, to);
    g->x_to = ptx_add(f, of_unit, g->of.x_byte);
    g->x_left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, g->l->k, element)));
    g->x_rows = ptx_as(f, PTX_S32, ptx_sub(f, g->l->m, number));
}

/* Starts to copy the next stage of x to `offset` in the ring. */
static void copy_x(mma *g, ptx_val offset)
{
    enum { STEP = X_UNIT * WARP_LANES };
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->x_to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, g->x_from);
    for (uint32_t row = 0; row < g->of.tile_m; row += g->of.threads / WARP_LANES) {
        ptx_val in_m = ptx_gt(f, g->x_rows, row);
        if (row > 0)
            from = ptx_at(f, from, g->x_step);
        for (uint32_t element = 0; element < g->of.stage; element += STEP) {
            ptx_val in_bounds = ptx_and(f, ptx_gt(f, g->x_left, element), in_m);
            ptx_val unit = ptx_cast_ptr(f, ptx_at_bytes(f, from, 2 * element), PTX_U32);
            ptx_val unit_to = shared_at(f, PTX_U32, to, row * g->of.x_row_bytes + 2 * element);
            copy_unit(f, unit_to, unit, &in_bounds, PTX_NC);
        }
    }
}

/* Starts to copy the next stage, if there is one, to `offset`, `ahead` stages after the current one. */
static void fill_stage(mma *g, ptx_val offset, uint32_t ahead)
{
    ptx_fn *f = g->f;
    PTX_IF (f, linear_has_stage(&g->w, ahead)) {
        linear_copy_ring(&g->w, offset);
        copy_x(g, offset);
        row_ring_step(&g->w.codes);
        ptx_add_to(f, g->x_from, 2 * g->of.stage);
        ptx_sub_to(f, g->x_left, g->of.stage);
    }
    copy_commit(f);
}

/* ---- codes and scales --------------------------------------------------------------------------------------------- */

/* This lane's quads of a group of a row. */
typedef ptx_val group_quads[MOST_UNITS][FORMAT_MOST_QUADS];

static void decode_codes(mma *g, uint32_t group, ptx_val row_at, group_quads quads)
{
    ptx_fn *f = g->f;
    const format_lane *lane = &g->codes[group];
    const uint32_t at_once = g->of.is_paired ? g->of.units : 1;
    format_place place = format_find_group(f, lane, row_at, group);
    for (uint32_t i = 0; i < g->of.units; i += at_once)
        format_codes(f, lane, &place, g->of.distance * i, at_once, &quads[i]);
}

typedef struct row_numbers {
    ptx_val scale[LANE_ROWS], minimum[LANE_ROWS];
} row_numbers;

/* Shuffles the numbers of a part among four lanes, each of which decoded one row's numbers. */
static row_numbers share_numbers(mma *g, ptx_val scale, ptx_val minimum)
{
    row_numbers numbers = {.scale = {{0}}, .minimum = {{0}}};
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        numbers.scale[r] = ptx_shfl_idx_in(g->f, scale, r, FRAGMENT_LANES);
        if (g->of.format->has_minimum)
            numbers.minimum[r] = ptx_shfl_idx_in(g->f, minimum, r, FRAGMENT_LANES);
    }
    return numbers;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* A sub-block of this lane's rows of W: its products' first operands. */
typedef struct sub_block {
    uint32_t count;      /* of products */
    uint32_t element[2]; /* first of each product's 16 elements, relative to this warp's first */
    ptx_val w[TILES][2][4];
} sub_block;

static sub_block pair_codes(mma *g, uint32_t group, uint32_t part, group_quads quads[LANE_ROWS])
{
    const weight_format *format = g->of.format;
    sub_block s = {.count = 0};
    for (uint32_t i = 0; i < g->of.units; i++) {
        for (uint32_t q = 0; q < format->quads; q++) {
            if (format_quad_part(format, q) != part)
                continue;
            const uint32_t unit = g->of.distance * i;
            s.element[s.count] = format_row_element(format, group) + format_quad_element(format, unit, q);
            for (uint32_t r = 0; r < LANE_ROWS; r++) {
                ptx_val pairs[2];
                format_pairs(g->f, &g->codes[group], g->type, quads[r][i][q], pairs);
                for (uint32_t pair = 0; pair < 2; pair++)
                    s.w[r / PAIRS][s.count][fragment_a(r % PAIRS, pair)] = pairs[pair];
            }
            s.count++;
        }
    }
    return s;
}

/* The sub-block's 16 or 32 elements of eight rows of x, as the products' second operands. */
static void read_x(mma *g, const sub_block *s, ptx_val x_at, uint32_t tile, ptx_val x[2][2])
{
    ptx_fn *f = g->f;
    const bool is_pair = s->count == 2 && s->element[1] == s->element[0] + 4;
    const uint32_t at_once = is_pair ? 4 : 2;
    for (uint32_t i = 0; i < 2 * s->count; i += at_once) {
        const uint32_t byte = tile * ROWS * g->of.x_row_bytes + 2 * s->element[i / 2];
        ptx_val words[4];
        ptx_load_vec(f, (int)at_once, words, shared_at(f, PTX_U32, x_at, byte), PTX_PLAIN);
        for (uint32_t e = 0; e < at_once; e++)
            x[(i + e) / 2][e % 2] = ptx_as(f, PTX_B32, words[e]);
    }
}

static void multiply(mma *g, uint32_t count, ptx_val w[2][4], ptx_val x[2][2], ptx_val out[4])
{
    const ptx_val zeros[4] = {g->zero, g->zero, g->zero, g->zero};
    ptx_val half[4];
    tensor_multiply(g->f, g->type, count == 2 ? half : out, w[0], x[0], zeros);
    if (count == 2)
        tensor_multiply(g->f, g->type, out, w[1], x[1], half);
}

/* The sums of x over the sub-block: with ones all rows of a product are equal. */
static void sum_x(mma *g, const sub_block *s, ptx_val x[2][2], ptx_val out[4])
{
    ptx_val one = ptx_as(g->f, PTX_B32, ptx_u32(g->type == PTX_F16 ? 0x3c003c00 : 0x3f803f80));
    ptx_val ones[2][4] = {{one, one, one, one}, {one, one, one, one}};
    multiply(g, s->count, ones, x, out);
}

/* Whether a barrier also keeps the loads of a group's codes and numbers after the previous group's products. */
static bool bounds_groups(const mma_geometry *g)
{
    const bool has_arrays =
        g->format->scale_elements > 0 && (g->format->has_minimum || format_has_values(g->format));
    return (g->row_tiles > 1 && has_arrays) ||
           (g->row_tiles == 2 && g->is_paired); /* without the barrier ptxas 13.0 spills for sm_120 */
}

/* ptxas moves no load across a barrier. Without one it would load all of a large tile's x at once, and run out of registers. */
static void bound_loads_ahead(mma *g, uint32_t tile)
{
    enum { TILES_AHEAD = 2 };
    const uint32_t ahead = bounds_groups(&g->of) ? 1 : TILES_AHEAD;
    if (g->of.row_tiles > 2 * TILES_AHEAD && tile % ahead == 0)
        ptx_warp_barrier(g->f);
}

static void multiply_sub_block(mma *g, sub_block *s, const row_numbers *numbers, ptx_val x_at)
{
    ptx_fn *f = g->f;
    const bool has_minimum = g->of.format->has_minimum;
    for (uint32_t tile = 0; tile < g->of.row_tiles; tile++) {
        ptx_val x[2][2], sum_of_x[4], products[4];
        bound_loads_ahead(g, tile);
        read_x(g, s, x_at, tile, x);
        if (has_minimum)
            sum_x(g, s, x, sum_of_x);
        for (uint32_t i = 0; i < TILES; i++) {
            multiply(g, s->count, s->w[i], x, products);
            for (uint32_t e = 0; e < 4; e++) {
                ptx_val sum = sums_of(&g->sums, tile, i)[e];
                ptx_fma_to(f, sum, products[e], numbers->scale[PAIRS * i + e / 2]);
                if (has_minimum)
                    ptx_fma_to(f, sum, sum_of_x[e], numbers->minimum[PAIRS * i + e / 2]);
            }
        }
    }
}

/* Multiplies this warp's groups of the stage. */
static void multiply_stage(mma *g)
{
    ptx_fn *f = g->f;
    ptx_val x_at = ptx_add(f, g->x_at, g->stage);
    row_numbers numbers;
    linear_next_lane_rows(&g->w, g->stage);
    for (uint32_t group = 0; group < g->of.groups; group++) {
        group_quads quads[LANE_ROWS];
        ptx_val scale[FORMAT_MOST_PARTS] = {{0}}, minimum[FORMAT_MOST_PARTS] = {{0}};
        const bool has_numbers = bounds_groups(&g->of) || format_begins_scale(g->of.format, group);
        if (group > 0 && bounds_groups(&g->of))
            ptx_warp_barrier(f);
        for (uint32_t r = 0; r < LANE_ROWS; r++)
            decode_codes(g, group, g->w.row_at[r], quads[r]);
        if (has_numbers) {
            format_place place = format_find_numbers(f, &g->numbers[group], g->w.number_row_at, group);
            format_numbers(f, &g->numbers[group], &place, scale, minimum);
        }
        for (uint32_t part = 0; part < g->of.format->parts; part++) {
            sub_block s = pair_codes(g, group, part, quads);
            if (has_numbers)
                numbers = share_numbers(g, scale[part], minimum[part]);
            if (bounds_groups(&g->of) &&
                (g->of.is_paired || format_has_values(g->of.format))) /* otherwise some variants spill */
                ptx_warp_barrier(f);
            multiply_sub_block(g, &s, &numbers, x_at);
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

/* Sets this lane's addresses of W and x, and its decoder. A warp has some groups of one block, or whole blocks. */
static void init_reads(mma *g)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const bool has_blocks = g->of.groups >= format->groups;
    ptx_val first_group = ptx_mul(f, g->tile.k_warp, g->of.groups);
    ptx_val block = ptx_div(f, first_group, format->groups);
    ptx_val in_block = has_blocks ? ptx_u32(0) : ptx_and(f, first_group, format->groups - 1);
    linear_find_lane_rows(&g->w, block, format->bytes);
    ptx_val unit = g->of.is_paired ? ptx_mul(f, g->tile.lane.t, 2) : g->tile.lane.t;
    for (uint32_t i = 0; i < g->of.groups; i++) {
        ptx_val group = has_blocks ? ptx_u32(i % format->groups) : ptx_add(f, in_block, i);
        g->codes[i] = format_lane_init(f, format, group, unit, g->of.is_paired ? 2 : 1, FORMAT_FINITE);
        format_lane_values(f, &g->codes[i], g->type);
        g->numbers[i] = format_lane_init(f, format, group, (ptx_val){0}, 0, FORMAT_FINITE);
    }
    ptx_val element = has_blocks ? ptx_u32(0) : format_group_element(f, format, in_block);
    element = ptx_mad(f, block, format->elements, element);
    ptx_val line = ptx_mad(f, g->tile.lane.g, g->of.x_row_bytes, g->tile.shared);
    ptx_val of_lane = ptx_mad(f, g->tile.lane.t, 2 * g->of.lane_elements, line);
    ptx_val x_at = ptx_add(f, of_lane, g->of.x_byte);
    g->x_at = ptx_mad(f, element, 2, x_at);
}

/* Waits for the next stage, refills the previous one, and multiplies. */
static void make_trip(void *strategy)
{
    mma *g = strategy;
    copy_wait(g->f, g->of.stages - 2);
    ptx_barrier(g->f);
    fill_stage(g, g->stage, g->of.stages - 1);
    shared_next(g->f, g->stage, g->of.stage_bytes, g->of.stages);
    multiply_stage(g);
}

static void make_tile(void *strategy)
{
    mma *g = strategy;
    linear *l = g->l;
    ptx_fn *f = g->f;
    const bool finds_starts = g->of.tile_m == 16; /* else ptxas 13.0 spills for sm_120 */
    ptx_val left = l->split_k == 1 ? (ptx_val){0} : ptx_var(f, l->part_stages);
    g->w = linear_init_ring(l, &g->tile, (row_ring){.of = g->of.w, .finds_starts = finds_starts},
                            g->of.number_byte, g->tile.shared);
    g->w.left = left;
    init_x_copies(g);
    const uint32_t last = g->of.stages - 1;
    for (uint32_t i = 0; i < last; i++)
        fill_stage(g, ptx_u32(i * g->of.stage_bytes), i);
    g->stage = ptx_var(f, ptx_u32(last * g->of.stage_bytes));
    init_reads(g);
    g->zero = ptx_var(f, ptx_f32(0));
    g->sums = linear_init_sums(f, g->of.tile_m);
    linear_each_trip(l, g->of.stage, g->w.left, make_trip, g);
    linear_store_sums(l, &g->tile, &g->sums);
}

void linear_emit_mma(linear *l, const kiln_variant *v)
{
    linear_find_threads(l);
    mma g = {.of = geometry_of(v, l->of.format), .l = l, .f = l->f, .type = l->x_type};
    g.tile = linear_find_tile(l, g.of.tile_m, g.of.tile_n, LINEAR_WARP_COLUMNS, g.of.k_warps, 1, g.of.stage);
    linear_make_tiles(l, &g.tile, make_tile, &g);
}

void linear_shape_mma(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_mma = kiln_is(v, "strategy", "mma") && !kiln_is(v, "x", "s8");
    const mma_geometry g = geometry_of(v, format);
    kiln_require(s, !is_mma || (g.threads >= 128 && g.threads <= 256), "strategy tile_n k_warps",
                 "activation half with strategy mma needs tile_n times k_warps of 128 or 256");
    kiln_require(s, !is_mma || g.tile_m < 64 || (g.tile_m == 64 && g.k_warps == 4), "strategy tile_m k_warps",
                 "activation half with strategy mma has tile_m up to 64; 64 needs k_warps 4: registers");
    kiln_require(s, !is_mma || g.tile_m < 64 || kiln_int(v, "split_k") == 1, "strategy tile_m split_k",
                 "k is split with strategy mma and tile_m up to 32, or tiles and up to 64: registers");
    kiln_require_shared_bytes(s, is_mma ? g.shared_bytes + linear_split_bytes(v) : 0, SHARED_SM_80,
                              "strategy format tile_m tile_n k_warps stages",
                              "tile_m, tile_n, k_warps and stages of strategy mma");
    if (!is_mma)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = g.shared_bytes;
    s->trip = g.stage;
    kiln_number(s, v, "stage_elements", g.stage);
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.tile_m == 8    ? 512
                                                           : g.tile_m == 16 ? 384
                                                           : g.tile_m == 32 ? 320
                                                                            : 256);
}
