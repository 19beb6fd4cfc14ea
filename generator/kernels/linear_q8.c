/* linear on integer tensor cores: x as codes and scales, which q8_quantize makes once for all products that share x.
 *
 * The weights are mma's first operand: 16 rows of W are its 16 rows. x is the second: eight of its rows are the 8 columns. A
 * thread block makes tile_m rows by tile_n columns of y, and each warp has 32 rows of W. With strategy mma a warp has 256
 * elements of a stage, whole quantised blocks, and k_warps such warps make a stage. With strategy tiles two warps have the
 * same rows of W, and each has half of the tile's rows of x.
 *
 * ORDER ALONG K is free as long as the operands agree. Lane (g, t) takes unit t, or units 2t and 2t + 1, of a group of rows
 * g, g + 8, g + 16 and g + 24 (device/format.h): a quad is four bytes, one register of an operand, and a lane needs x's codes
 * of the same elements of row g. A sub-block of 32 elements takes one product m16n8k32, one of 16 elements one m16n8k16; on
 * sm_75 four and two m8n8k16.
 *
 * NUMBERS. A sum of products starts from 0x4B400000, the bits of 1.5 * 2^23: so its bits, read as a float, are the sum plus
 * 1.5 * 2^23. A scale of x times 1.5 * 2^23 is exact, since the scale has at most 22 significant bits: so one fma subtracts
 * this number and multiplies by the scale, with one rounding; another one multiplies by W's scale and adds. If codes of W
 * have an offset, the sum starts lower, by a product of x's codes with -offset; if there is a minimum, a product with ones
 * computes the sum of x's codes. Lane (g, t) decodes the numbers of row g + 8t of a stage at once, and its warp shares them
 * through shared memory.
 *
 * SHARED MEMORY. k's tail is zeros. The scales of a block's rows of x are neighbours. With tiles x's rows are swizzled, not padded,
 * and if W has minima, each scale of x is followed by the sum of its codes times the scale. A dependent launch starts copying W
 * before it waits for the launch that makes x.
 *
 *             bytes with mma                                 bytes with tiles
 *     W       stages * stage_bytes, with x and W's           2 * stage_bytes, with W's numbers in arrays; the first step
 *             numbers; trip i copies stage i + stages - 1    of stage i copies stage i + 1
 *     x       in these stages                                2 * x_bytes, 128 elements each; step s copies step s + 1
 *     warps   number_bytes each: decoded scales of W         none
 *     sums    overlay all after the loop                     overlay all after the loop
 *
 * A trip, or with tiles a step, begins with a wait for its copies and a barrier.
 *
 * INSTRUCTIONS. With tiles, a warp's 64 rows of x and 32 of W take for each 32 elements of Q4_K: 16 products, 64 times three fma
 * (lower a sum and scale it by x, scale it by W, add the minimum's part), 16 loads and 16 multiplications of x's scales; and
 * about 35 more to decode W and 15 for copies and sums of x. That is 18 for a product of 16 cycles on an RTX 4090. A product with
 * ones would add 3 for every 2 products, and half of a product's cycles. So the sums of x's codes are made once for all warps:
 * each thread adds up the codes that it has copied. For the same reason tiles subtract an offset from W's codes, which takes
 * two instructions for four codes.
 */
#include "device/copy.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "linear.h"

enum {
    ROWS = 8,   /* rows of x in one product */
    BLOCK = 32, /* elements under one scale of x */
    PAIRS = 2,  /* pairs of 8 rows of W in one product */
    TILES = LINEAR_MMA_TILES,
    LANE_ROWS = LINEAR_LANE_ROWS,
    WARP_ELEMENTS = 256,
    STEP = 128,         /* elements of a step of x, in tiles */
    MOST_GROUPS = 8,    /* groups per row in a warp's part of a stage */
    MOST_NUMBERS = 8,   /* numbers per row in a batch of groups */
    VECTOR_NUMBERS = 4, /* per load or store of a lane */
    MOST_PASSES = 8,    /* of threads over rows of x */
    EIGHT_ROWS_BYTES = ROWS * 4 * VECTOR_NUMBERS +
                       32 /* pads a vector of eight rows of W, so that lanes t are in different banks */
};

/* Known to `shape` and `emit`. */
typedef struct q8_geometry {
    const weight_format *format;
    bool is_tiles, has_sums; /* each scale of x has a sum */
    bool is_centred;         /* the format's offset is subtracted from each code of W, not from each sum */
    uint32_t tile_m, tile_n, stages, threads;
    uint32_t k_warps, row_warps;  /* warps that share a step's k, or rows of x */
    uint32_t row_tiles;           /* of a warp */
    uint32_t units;               /* of a group, per lane */
    uint32_t stage, steps, step;  /* elements of k in a stage of W; its steps of x, and their elements */
    uint32_t warp_elements;       /* elements of a step in each warp */
    uint32_t groups;              /* groups of a row in these elements */
    uint32_t batch;               /* groups whose numbers are loaded together */
    uint32_t numbers;             /* per batch and row: scales, then minima */
    uint32_t products;            /* registers of a row of W in a product: 2 of 32 elements, 1 of 16 */
    uint32_t sum_lanes;           /* threads that share a sum of codes: each copies 16 of its codes */
    uint32_t scales, scale_bytes; /* of a row of x in a step: one per block, or with sums per part of W */
    row_ring_shape w;             /* a stage of W */
    layout codes, blocks;         /* of x's codes, and of its scales */
    uint32_t codes_byte, scale_byte, number_byte; /* of x's first codes and scales, and of W's numbers */
    uint32_t stage_bytes, x_bytes;                /* from one stage of W, and of x, to the next */
    uint32_t number_bytes;                        /* of a warp */
    uint32_t shared_bytes;
} q8_geometry;

/* This thread's copies of x: units of 16 codes, or words, in some rows; zeros beyond the last row and element. */
typedef struct x_copies {
    uint32_t rows, apart; /* the rows' end; the distance between rows that a thread copies */
    uint32_t bytes;       /* of a number: a code or a scale */
    uint32_t to_step;     /* bytes from row to row in shared memory */
    ptx_val from, step; /* U64: next unit or word of this thread's first row, variable; bytes between rows */
    ptx_val to;         /* in the first stage */
    ptx_val left, in_m; /* numbers to the rows' end, a variable; rows of x from this thread's first on; S32 */
} x_copies;

typedef struct q8_product {
    q8_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    linear_tile tile;
    ptx_val stage, x_stage; /* offsets of the current stage, of W and of x */

    linear_ring w;
    x_copies codes_of_x, scales_of_x;
    /* This lane's row g of codes, and scales of rows 2t and 2t + 1, in the first stage. */
    ptx_val x_at, scale_at;
    ptx_val place; /* place of this lane's codes in a row; only in tiles, else part of x_at */

    ptx_val number_to, number_from; /* where this lane stores row g + 8t's numbers, and loads row g's */
    format_lane codes[MOST_GROUPS], numbers[MOST_GROUPS];
    ptx_val start;
    warp_sums sums;
} q8_product;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

layout linear_q8_blocks(uint32_t rows, bool is_tiles, bool has_sums)
{
    enum { PAD_BYTES = 32 };
    const uint32_t bytes = has_sums ? 8 : 4;
    layout l = {.row_bytes = bytes * rows + (has_sums ? PAD_BYTES : 0), .unit_bytes = bytes * ROWS};
    if (is_tiles && !has_sums) {
        l.turn_count = 2;
        l.turns[0] = (layout_turn){.row_bit = 0, .unit_bit = 0};
        l.turns[1] = (layout_turn){.row_bit = 1, .unit_bit = 1};
    }
    return l;
}

/* mma: all of a stage is copied at once, and x's rows are padded so that lanes g and t are in different banks. Tiles: x's
 * stages follow W's. */
static void plan_bytes(q8_geometry *g)
{
    const weight_format *format = g->format;
    const layout padded = {.row_bytes = g->stage + FRAGMENT_LANES * format->unit_step * g->units,
                           .unit_bytes = UNIT_BYTES};
    g->codes = g->is_tiles ? layout_of_codes() : padded;
    g->blocks = linear_q8_blocks(g->tile_m, g->is_tiles, g->has_sums);
    const uint32_t w_bytes = layout_rows(&g->w.rows, g->tile_n),
                   codes_bytes = layout_rows(&g->codes, g->tile_m),
                   copied_bytes = codes_bytes + g->scales * g->blocks.row_bytes;
    g->number_byte = g->is_tiles ? w_bytes : w_bytes + copied_bytes;
    g->stage_bytes = g->number_byte + linear_numbers_bytes(format, g->stage, g->tile_n);
    g->codes_byte = g->is_tiles ? g->stages * g->stage_bytes : w_bytes;
    g->scale_byte = g->codes_byte + codes_bytes;
    g->x_bytes = g->is_tiles ? copied_bytes : g->stage_bytes;
    if (!g->is_tiles)
        g->number_bytes = LANE_ROWS * EIGHT_ROWS_BYTES * WARP_ELEMENTS / format_part_elements(format) *
                          (format->has_minimum ? 2 : 1) / VECTOR_NUMBERS;
}

static q8_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    const bool is_tiles = kiln_is(v, "strategy", "tiles");
    q8_geometry g = {.format = format,
                     .is_tiles = is_tiles,
                     .has_sums = is_tiles && format->has_minimum,
                     .is_centred = is_tiles && format->offset > 0,
                     .tile_m = kiln_int(v, "tile_m"),
                     .tile_n = kiln_int(v, "tile_n"),
                     .stages = kiln_int(v, "stages"),
                     .k_warps = is_tiles ? 1 : kiln_int(v, "k_warps"),
                     .row_warps = is_tiles ? 2 : 1,
                     .warp_elements = is_tiles ? STEP : WARP_ELEMENTS};
    const uint32_t of_group = format->parts * (format->has_minimum ? 2u : 1u);
    g.row_tiles = g.tile_m / g.row_warps / ROWS;
    g.units = format->units / FRAGMENT_LANES;
    g.threads = WARP_LANES * (g.tile_n / LINEAR_WARP_COLUMNS) * g.k_warps * g.row_warps;
    g.step = g.warp_elements * g.k_warps;
    g.steps = is_tiles && (format->elements > STEP || format->scale_elements == 256) ? 2 : 1;
    g.stage = g.step * g.steps;
    g.scales = g.step / (g.has_sums ? format_part_elements(format) : BLOCK);
    g.scale_bytes = g.has_sums ? 8 : 4;
    g.sum_lanes = g.step / UNIT_BYTES / g.scales;
    g.groups = g.warp_elements / format_group_elements(format);
    g.batch = of_group >= VECTOR_NUMBERS ? 1 : VECTOR_NUMBERS / of_group;
    g.numbers = g.batch * of_group;
    g.products = format_part_elements(format) / (4 * FRAGMENT_LANES);
    g.w = linear_ring_stage(format, g.stage, g.units == 2);
    plan_bytes(&g);
    const uint32_t copies = g.stages * (g.stage_bytes + (is_tiles ? g.x_bytes : 0));
    g.shared_bytes =
        linear_bytes(copies + g.threads / WARP_LANES * g.number_bytes, g.tile_m, g.tile_n, g.k_warps);
    return g;
}

/* ---- copies of x -------------------------------------------------------------------------------------------------- */

/* Sets the source of this thread's copies: number `first` of a row of `in`, which has `count` numbers. */
static void find_source(q8_product *g, x_copies *c, ptx_val in, ptx_val row, ptx_val first, ptx_val count)
{
    ptx_fn *f = g->f;
    c->from = ptx_var(f, ptx_address(f, tail_element(f, in, row, count, first)));
    c->step = ptx_mul_wide(f, count, c->bytes * c->apart);
}

static void find_bounds(q8_product *g, x_copies *c, ptx_val row, ptx_val first, ptx_val count)
{
    ptx_fn *f = g->f;
    c->left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, count, first)));
    c->in_m = ptx_as(f, PTX_S32, ptx_sub(f, g->l->m, row));
}

/* Finds the scales that this thread copies. With sums, these are the scales of the codes that it adds up, so the thread
 * needs no barrier. */
static void init_scale_copies(q8_product *g, ptx_val unit, ptx_val row)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    const uint32_t blocks = g->of.step / BLOCK, lanes = g->of.sum_lanes;
    x_copies *c = &g->scales_of_x;
    ptx_val block, scale_row, place;
    if (g->of.has_sums) {
        *c = (x_copies){.rows = g->of.tile_m / lanes, .apart = g->codes_of_x.apart};
        block = ptx_div(f, unit, BLOCK / UNIT_BYTES);
        place = ptx_div(f, unit, lanes);
        scale_row = ptx_mad(f, ptx_and(f, unit, lanes - 1), c->rows, row);
    } else {
        *c = (x_copies){.rows = g->of.tile_m, .apart = g->of.threads / g->of.scales};
        block = place = ptx_and(f, l->tid, blocks - 1);
        scale_row = ptx_shr(f, l->tid, lanes_log2(blocks));
    }
    c->bytes = 4;
    c->to_step = g->of.scale_bytes;
    ptx_val number = ptx_add(f, scale_row, g->tile.first_x), all = ptx_shr(f, l->k, lanes_log2(BLOCK));
    ptx_val first = l->split_k == 1 ? block : ptx_add(f, block, ptx_div(f, l->part_element, BLOCK));
    find_source(g, c, l->in_scale, number, first, all);
    ptx_val eight_rows = ptx_div(f, scale_row, ROWS);
    ptx_val to = ptx_add(f, layout_at(f, &g->of.blocks, place, eight_rows), g->tile.shared);
    ptx_val of_row = ptx_mad(f, ptx_and(f, scale_row, ROWS - 1), g->of.scale_bytes, to);
    c->to = ptx_add(f, of_row, g->of.scale_byte);
    find_bounds(g, c, number, first, all);
}

/* Neighbouring threads copy neighbouring units of a row. Uses shifts: ptxas does not see that the divisor is a power of two. */
static void init_x_copies(q8_product *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    const uint32_t units = g->of.step / UNIT_BYTES;
    x_copies *c = &g->codes_of_x;
    *c = (x_copies){
        .rows = g->of.tile_m, .apart = g->of.threads / units, .bytes = 1, .to_step = g->of.codes.row_bytes};
    ptx_val unit = ptx_and(f, l->tid, units - 1), row = ptx_shr(f, l->tid, lanes_log2(units));
    ptx_val number = ptx_add(f, row, g->tile.first_x), byte = ptx_mul(f, unit, UNIT_BYTES), place = byte;
    if (g->of.is_tiles)
        place = ptx_mul(f, layout_place(f, &g->of.codes, row, unit), UNIT_BYTES);
    ptx_val first = l->split_k == 1 ? byte : ptx_add(f, byte, l->part_element);
    find_source(g, c, l->in, number, first, l->k);
    ptx_val to = ptx_mad(f, row, c->to_step, g->tile.shared);
    c->to = ptx_add(f, ptx_add(f, to, place), g->of.codes_byte);
    find_bounds(g, c, number, first, l->k);
    init_scale_copies(g, unit, row);
}

/* If there are more threads than scales, the others copy none. */
static void copy_rows(q8_product *g, const x_copies *c, ptx_val offset)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, c->to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, c->from);
    ptx_val in_k = ptx_gt(f, c->left, 0);
    for (uint32_t row = 0; row < c->rows; row += c->apart) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, c->in_m, row), in_k);
        if (row > 0)
            from = ptx_cast_ptr(f, ptx_at(f, ptx_cast_ptr(f, from, PTX_U8), c->step), PTX_U32);
        ptx_val row_to = shared_at(f, PTX_U32, to, c->to_step * row);
        IF_NEEDED (f, c->apart > g->of.tile_m, ptx_lt(f, g->l->tid, g->of.tile_m * g->of.scales)) {
            copy_async(f, c->bytes == 1 ? UNIT_BYTES : 4, row_to, from, &in_bounds, PTX_NC);
        }
    }
}

/* Starts to copy the next step of x to the stage at `offset`; advance_x counts the step. */
static void copy_x(q8_product *g, ptx_val offset)
{
    copy_rows(g, &g->codes_of_x, offset);
    copy_rows(g, &g->scales_of_x, offset);
}

static void advance_x(q8_product *g)
{
    ptx_fn *f = g->f;
    ptx_add_to(f, g->codes_of_x.from, g->of.step);
    ptx_sub_to(f, g->codes_of_x.left, g->of.step);
    ptx_add_to(f, g->scales_of_x.from, 4 * g->of.step / BLOCK);
    ptx_sub_to(f, g->scales_of_x.left, g->of.step / BLOCK);
}

/* Makes the sums of the step in the stage at `offset`. Threads read only what they copied, so the call needs no barrier before
 * it; the barrier that follows the copies makes the sums visible too. */
static void add_up_codes(q8_product *g, ptx_val offset)
{
    ptx_fn *f = g->f;
    const x_copies *c = &g->codes_of_x;
    const uint32_t passes = c->rows / c->apart, lanes = g->of.sum_lanes;
    ptx_val from = ptx_add(f, c->to, offset), to = ptx_add(f, g->scales_of_x.to, offset), sum[MOST_PASSES];
    for (uint32_t i = 0; i < passes; i++) {
        ptx_val codes[4];
        ptx_load_vec(f, 4, codes, shared_at(f, PTX_S32, from, i * c->apart * c->to_step), PTX_PLAIN);
        sum[i] = ptx_s32(0);
        for (uint32_t word = 0; word < 4; word++)
            sum[i] = ptx_dp4a_us(f, ptx_u32(0x01010101), codes[word], sum[i]);
    }
    lanes_join(f, PTX_OP_ADD, lanes, passes, g->l->tid, sum);
    for (uint32_t i = 0; i < passes / lanes; i++) {
        ptx_val at = shared_at(f, PTX_F32, to, g->of.scale_bytes * i * c->apart);
        ptx_val scale = ptx_load(f, at);
        ptx_store(f, ptx_at_const(f, at, 1), ptx_mul(f, ptx_cvt(f, PTX_F32, sum[i]), scale));
    }
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

/* Starts to copy the next stage, if there is one, to `offset`. */
static void fill_stage(q8_product *g, ptx_val offset, uint32_t ahead)
{
    PTX_IF (g->f, linear_has_stage(&g->w, ahead)) {
        copy_x(g, offset);
        linear_copy_ring(&g->w, offset);
        row_ring_step(&g->w.codes);
        advance_x(g);
    }
    copy_commit(g->f);
}

/* Starts the copies of all stages but one. With overlapping launches, W is copied before the launch that makes x has ended. */
static void fill_stages(q8_product *g, uint32_t last)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < last; i++) {
        ptx_val offset = ptx_u32(i * g->of.stage_bytes);
        if (g->l->overlaps)
            linear_fill_ring(&g->w, offset, i);
        else
            fill_stage(g, offset, i);
    }
    if (!g->l->overlaps)
        return;
    ptx_grid_launch_next(f);
    ptx_grid_wait(f);
    for (uint32_t i = 0; i < last; i++) {
        copy_x(g, ptx_u32(i * g->of.stage_bytes));
        advance_x(g);
        copy_commit(f);
    }
}

/* ---- this lane's part of x ---------------------------------------------------------------------------------------- */

/* Moves an address to the part of a k_warp or row_warp; a poison warp has all. */
static ptx_val of_warp(q8_product *g, ptx_val warp, uint32_t bytes, ptx_val at)
{
    return warp.type == PTX_NONE ? at : ptx_mad(g->f, warp, bytes, at);
}

/* Finds the addresses from which this lane reads x; `unit` is its first unit. */
static void init_x_reads(q8_product *g, ptx_val unit)
{
    ptx_fn *f = g->f;
    const fragment_lane *lane = &g->tile.lane;
    const uint32_t warp_rows = g->of.tile_m / g->of.row_warps, unit_step = g->of.format->unit_step;
    const ptx_val k_warp = g->tile.k_warp, row_warp = g->tile.row_warp;
    ptx_val at = ptx_mad(f, lane->g, g->of.codes.row_bytes, g->tile.shared);
    if (g->of.is_tiles) {
        ptx_val byte = ptx_mul(f, unit, unit_step);
        ptx_val place = layout_place(f, &g->of.codes, lane->g, ptx_div(f, byte, UNIT_BYTES));
        g->place = ptx_mad(f, place, UNIT_BYTES, ptx_and(f, byte, UNIT_BYTES - 1));
    } else {
        at = ptx_mad(f, unit, unit_step, at);
    }
    at = of_warp(g, row_warp, layout_rows(&g->of.codes, warp_rows), at);
    at = of_warp(g, k_warp, g->of.warp_elements, at);
    g->x_at = ptx_add(f, at, g->of.codes_byte);
    at = of_warp(g, k_warp, g->of.scales / g->of.k_warps * g->of.blocks.row_bytes, g->tile.shared);
    at = of_warp(g, row_warp, warp_rows * g->of.scale_bytes, at);
    ptx_val of_rows = ptx_mad(f, lane->t, 2 * g->of.scale_bytes, at);
    g->scale_at = ptx_add(f, of_rows, g->of.scale_byte);
}

/* The lane's codes from an element of the step on: `byte` bytes after `at`. */
typedef struct x_codes {
    ptx_val at;
    uint32_t byte;
} x_codes;

/* A part of a group: the registers of its product. */
typedef struct sub_block {
    uint32_t element; /* first element, counted from this warp's first of the step */
    x_codes x[2];
    ptx_val w[TILES][4];
} sub_block;

/* Eight rows of x over a sub-block. */
typedef struct x_block {
    ptx_val codes[2];
    ptx_val scale[2], raised[2]; /* scales of this lane's two rows of sums; the scales times -1.5 * 2^23 */
    ptx_val sum[2];              /* sum of each row's codes times the scale, if the format has minima */
} x_block;

/* `scale_at` is in the current stage. */
static x_block load_x(q8_product *g, const sub_block *s, ptx_val scale_at, uint32_t tile)
{
    ptx_fn *f = g->f;
    const uint32_t row = layout_rows(&g->of.codes, tile * ROWS), count = g->of.scale_bytes / 4,
                   block = s->element / (g->of.step / g->of.scales);
    const bool is_pair = g->of.products == 2 && s->x[1].byte == s->x[0].byte + 4;
    x_block x;
    ptx_val numbers[4];
    if (is_pair)
        ptx_load_vec(f, 2, x.codes, shared_at(f, PTX_U32, s->x[0].at, row + s->x[0].byte), PTX_PLAIN);
    for (uint32_t i = 0; i < g->of.products; i++) {
        if (!is_pair)
            x.codes[i] = ptx_load(f, shared_at(f, PTX_U32, s->x[i].at, row + s->x[i].byte));
        x.codes[i] = ptx_as(f, PTX_B32, x.codes[i]);
    }
    ptx_load_vec(f, (int)(2 * count), numbers,
                 shared_at(f, PTX_F32, scale_at, layout_byte(&g->of.blocks, block, tile)), PTX_PLAIN);
    for (uint32_t e = 0; e < 2; e++) {
        x.scale[e] = numbers[count * e];
        x.sum[e] = numbers[count * e + count - 1];
        x.raised[e] = ptx_mul(f, x.scale[e], -0x1.8p23f);
    }
    return x;
}

/* ---- codes and scales of W ---------------------------------------------------------------------------------------- */

/* The first byte of vector i of a batch in shared memory. A vector is four numbers of a row, followed by those of the warp's
 * next row. */
static uint32_t number_byte(const q8_geometry *g, uint32_t batch, uint32_t i)
{
    return LANE_ROWS * EIGHT_ROWS_BYTES * (batch * g->numbers / VECTOR_NUMBERS + i);
}

/* Decodes the numbers of a batch of groups of this lane's row. */
static void decode_batch(q8_product *g, uint32_t batch, ptx_val numbers[])
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t parts = format->parts, scales = g->of.batch * parts;
    for (uint32_t i = 0; i < g->of.batch; i++) {
        ptx_val scale[FORMAT_MOST_PARTS] = {{0}}, minimum[FORMAT_MOST_PARTS] = {{0}};
        const uint32_t group = batch * g->of.batch + i;
        const format_lane *lane = &g->numbers[group];
        format_place place = format_find_numbers(f, lane, g->w.number_row_at, group);
        format_numbers(f, lane, &place, scale, minimum);
        for (uint32_t part = 0; part < parts; part++) {
            numbers[i * parts + part] = scale[part];
            if (format->has_minimum)
                numbers[scales + i * parts + part] = minimum[part];
        }
    }
}

/* Decodes all numbers before it stores the first, so that loads are not repeated. */
static void share_numbers(q8_product *g)
{
    ptx_fn *f = g->f;
    const uint32_t batches = g->of.groups / g->of.batch;
    ptx_val numbers[MOST_GROUPS][MOST_NUMBERS];
    for (uint32_t batch = 0; batch < batches; batch++)
        decode_batch(g, batch, numbers[batch]);
    for (uint32_t batch = 0; batch < batches; batch++)
        for (uint32_t i = 0; i < g->of.numbers / VECTOR_NUMBERS; i++)
            ptx_store_vec(f, VECTOR_NUMBERS,
                          shared_at(f, PTX_F32, g->number_to, number_byte(&g->of, batch, i)),
                          &numbers[batch][VECTOR_NUMBERS * i], PTX_PLAIN);
    ptx_warp_barrier(f);
}

/* Scales and minima of the parts of a batch's groups, for each of the lane's rows. */
typedef ptx_val batch_numbers[LANE_ROWS][MOST_NUMBERS];

static void load_batch(q8_product *g, uint32_t batch, batch_numbers out)
{
    for (uint32_t r = 0; r < LANE_ROWS; r++)
        for (uint32_t i = 0; i < g->of.numbers / VECTOR_NUMBERS; i++)
            ptx_load_vec(g->f, VECTOR_NUMBERS, &out[r][VECTOR_NUMBERS * i],
                         shared_at(g->f, PTX_F32, g->number_from,
                                   number_byte(&g->of, batch, i) + EIGHT_ROWS_BYTES * r),
                         PTX_PLAIN);
}

/* Decodes a batch, and gets the same numbers by shuffles among the quad's lanes. */
static void shuffle_batch(q8_product *g, uint32_t batch, batch_numbers out)
{
    ptx_val numbers[MOST_NUMBERS] = {{0}};
    decode_batch(g, batch, numbers);
    for (uint32_t i = 0; i < g->of.numbers; i++)
        for (uint32_t r = 0; r < LANE_ROWS; r++)
            out[r][i] = ptx_shfl_idx_in(g->f, numbers[i], r, FRAGMENT_LANES);
}

/* This lane's quads of a group of a row. */
typedef ptx_val group_quads[2][FORMAT_MOST_QUADS];

/* Finds this lane's codes of x, from an element of the step on. */
static x_codes find_x(q8_product *g, uint32_t element, ptx_val x_at)
{
    if (!g->of.is_tiles)
        return (x_codes){.at = x_at, .byte = element};
    ptx_val place = ptx_xor(g->f, g->place, element / UNIT_BYTES * UNIT_BYTES);
    return (x_codes){.at = ptx_add(g->f, place, x_at), .byte = element % UNIT_BYTES};
}

/* The codes minus the format's offset, as signed bytes. */
static ptx_val centre_quad(q8_product *g, ptx_val quad)
{
    ptx_val raised = ptx_add(g->f, quad, 0x01010101 * (128u - g->of.format->offset));
    return ptx_xor(g->f, raised, 0x80808080);
}

static sub_block find_part(q8_product *g, uint32_t group, uint32_t part, group_quads quads[LANE_ROWS],
                           ptx_val x_at)
{
    const weight_format *format = g->of.format;
    const uint32_t first = format_row_element(format, group / g->of.groups * g->of.groups);
    sub_block s = {.element = 0};
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < g->of.units; unit++) {
        for (uint32_t q = 0; q < format->quads; q++) {
            if (format_quad_part(format, q) != part)
                continue;
            const uint32_t element =
                format_row_element(format, group) - first + format_quad_element(format, unit, q);
            s.element = count == 0 ? element : s.element;
            s.x[count] = find_x(g, element, x_at);
            for (uint32_t r = 0; r < LANE_ROWS; r++) {
                ptx_val quad = g->of.is_centred ? centre_quad(g, quads[r][unit][q]) : quads[r][unit][q];
                s.w[r / PAIRS][fragment_a(r % PAIRS, count)] = ptx_as(g->f, PTX_B32, quad);
            }
            count++;
        }
    }
    return s;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Multiplies x by rows of W in which every byte is `code`: sums 0 and 1 are those of this lane's rows of x, 2 and 3 repeat them. */
static void multiply_alike(q8_product *g, uint32_t code, const ptx_val x[2], ptx_val out[4])
{
    ptx_val byte = ptx_as(g->f, PTX_B32, ptx_u32(0x01010101 * code)), w[4] = {byte, byte, byte, byte};
    ptx_val start[4] = {g->start, g->start, g->start, g->start};
    tensor_multiply_bytes(g->f, true, g->of.products, out, w, x, start);
}

/* Returns a sum of products of codes, times the scale of x. */
static ptx_val lower(q8_product *g, const x_block *x, uint32_t e, ptx_val bits)
{
    return ptx_fma(g->f, ptx_as(g->f, PTX_F32, bits), x->scale[e % 2], x->raised[e % 2]);
}

/* `number` is the sub-block's number in the batch. */
static void multiply_sub_block(q8_product *g, const sub_block *s, batch_numbers numbers, uint32_t number,
                               ptx_val scale_at)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t minimum = g->of.batch * format->parts + number;
    for (uint32_t tile = 0; tile < g->of.row_tiles; tile++) {
        x_block x = load_x(g, s, scale_at, tile);
        ptx_val start[4] = {g->start, g->start, g->start, g->start}, alike[4], products[4];
        if (format->has_minimum && !g->of.has_sums) {
            multiply_alike(g, 1, x.codes, alike);
            for (uint32_t e = 0; e < 2; e++)
                x.sum[e] = lower(g, &x, e, alike[e]);
        } else if (format->offset > 0 && !g->of.is_centred) {
            multiply_alike(g, 256u - format->offset, x.codes, start);
        }
        for (uint32_t i = 0; i < TILES; i++) {
            tensor_multiply_bytes(f, format->is_signed || g->of.is_centred, g->of.products, products, s->w[i],
                                  x.codes, start);
            for (uint32_t e = 0; e < 4; e++) {
                ptx_val product = lower(g, &x, e, products[e]), sum = sums_of(&g->sums, tile, i)[e];
                ptx_fma_to(f, sum, product, numbers[PAIRS * i + e / 2][number]);
                if (format->has_minimum)
                    ptx_fma_to(f, sum, x.sum[e % 2], numbers[PAIRS * i + e / 2][minimum]);
            }
        }
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static void multiply_step(q8_product *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val x_at = ptx_add(f, g->x_at, g->x_stage), scale_at = ptx_add(f, g->scale_at, g->x_stage);
    batch_numbers numbers;
    if (step == 0)
        linear_next_lane_rows(&g->w, g->stage);
    if (!g->of.is_tiles)
        share_numbers(g);
    for (uint32_t group = step * g->of.groups; group < (step + 1) * g->of.groups; group++) {
        group_quads quads[LANE_ROWS];
        if (group % g->of.batch == 0)
            (g->of.is_tiles ? shuffle_batch : load_batch)(g, group / g->of.batch, numbers);
        for (uint32_t r = 0; r < LANE_ROWS; r++) {
            const format_lane *lane = &g->codes[group];
            format_place place = format_find_group(f, lane, g->w.row_at[r], group);
            format_codes(f, lane, &place, 0, g->of.units, quads[r]);
        }
        for (uint32_t part = 0; part < g->of.format->parts; part++) {
            const sub_block s = find_part(g, group, part, quads, x_at);
            multiply_sub_block(g, &s, numbers, group % g->of.batch * g->of.format->parts + part, scale_at);
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

/* Sets this lane's addresses of W and x, and its decoder. */
static void init_reads(q8_product *g)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    linear_find_lane_rows(&g->w, g->tile.k_warp, g->of.w.bytes / g->of.k_warps);
    if (!g->of.is_tiles) {
        ptx_val warp = ptx_mad(f, g->l->warp, g->of.number_bytes, g->tile.shared);
        ptx_val shared = ptx_add(f, warp, g->of.stages * g->of.stage_bytes);
        g->number_from = ptx_mad(f, g->tile.lane.g, 4 * VECTOR_NUMBERS, shared);
        g->number_to = ptx_mad(f, g->tile.lane.t, EIGHT_ROWS_BYTES, g->number_from);
    }
    ptx_val unit = g->of.units == 1 ? g->tile.lane.t : ptx_mul(f, g->tile.lane.t, g->of.units);
    for (uint32_t i = 0; i < g->of.groups * g->of.steps; i++) {
        ptx_val group = ptx_u32(i % format->groups);
        g->codes[i] = format_lane_init(f, format, group, unit, g->of.units, FORMAT_SCALED_SHIFT);
        g->numbers[i] = format_lane_init(f, format, group, (ptx_val){0}, 0, FORMAT_SCALED_SHIFT);
    }
    init_x_reads(g, unit);
}

/* mma: waits for the next stage, and refills the previous one. */
static void next_stage(q8_product *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, g->of.stages - 2);
    ptx_barrier(f);
    fill_stage(g, g->stage, g->of.stages - 1);
    shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

/* Tiles: waits for the next step of x, and refills the previous one; with a stage's first step does the same for W. */
static void next_step(q8_product *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val next = ptx_sub(f, ptx_u32(g->of.x_bytes), g->x_stage);
    copy_wait(f, 0);
    if (g->of.has_sums)
        add_up_codes(g, next);
    ptx_barrier(f);
    copy_x(g, g->x_stage);
    advance_x(g);
    if (step == 0)
        linear_fill_ring(&g->w, g->stage, 1);
    copy_commit(f);
    ptx_set(f, g->x_stage, next);
    if (step == 0)
        shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

static void make_trip(void *strategy)
{
    q8_product *g = strategy;
    for (uint32_t step = 0; step < g->of.steps; step++) {
        if (g->of.is_tiles)
            next_step(g, step);
        else
            next_stage(g);
        multiply_step(g, step);
    }
}

static void make_tile(void *strategy)
{
    q8_product *g = strategy;
    linear *l = g->l;
    ptx_fn *f = g->f;
    ptx_val left = l->split_k == 1 ? (ptx_val){0} : ptx_var(f, l->part_stages);
    g->w = linear_init_ring(l, &g->tile, (row_ring){.of = g->of.w, .is_lean = true}, g->of.number_byte,
                            g->tile.shared);
    g->w.left = left;
    init_x_copies(g);
    const uint32_t last = g->of.stages - 1;
    fill_stages(g, last);
    g->stage = ptx_var(f, ptx_u32(last * g->of.stage_bytes));
    g->x_stage = g->of.is_tiles ? ptx_var(f, ptx_u32(g->of.x_bytes)) : g->stage;
    init_reads(g);
    g->start = ptx_var(f, ptx_s32(LINEAR_SUM_START));
    g->sums = linear_init_sums(f, g->of.row_tiles * ROWS);
    linear_each_trip(l, g->of.stage, g->w.left, make_trip, g);
    if (g->of.is_tiles)
        copy_wait(f, 0);
    linear_store_sums(l, &g->tile, &g->sums);
}

void linear_emit_q8(linear *l, const kiln_variant *v)
{
    linear_find_threads(l);
    q8_product g = {.of = geometry_of(v, l->of.format), .l = l, .f = l->f};
    g.tile = linear_find_tile(l, g.of.tile_m, g.of.tile_n, LINEAR_WARP_COLUMNS, g.of.k_warps, g.of.row_warps,
                              g.of.stage);
    linear_make_tiles(l, &g.tile, make_tile, &g);
}

void linear_shape_q8(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_q8 = kiln_is(v, "x", "s8");
    const q8_geometry g = geometry_of(v, format);
    kiln_require(s, !is_q8 || g.threads <= 256, "x tile_n k_warps",
                 "x s8 needs tile_n times k_warps up to 256");
    kiln_require(
        s, !is_q8 || g.is_tiles || g.tile_m == 8 || (g.tile_m == 16 && format->parts < 4),
        "x strategy format tile_m",
        "x s8 with strategy mma has tile_m 8, and 16 for formats other than q2_k, q3_k, q6_k and tq2_0: registers");
    kiln_require(s,
                 !is_q8 || !g.is_tiles ||
                     ((g.tile_n == 64 || g.tile_n == 128) && kiln_int(v, "k_warps") == 2 && g.stages == 2),
                 "x strategy tile_n k_warps stages",
                 "x s8 with strategy tiles has tile_n 64 or 128, k_warps 2 and stages 2");
    kiln_require(
        s, !is_q8 || !g.is_tiles || g.tile_m == 64 || (g.tile_m == 128 && format->parts < 4),
        "x strategy format tile_m",
        "x s8 with strategy tiles has tile_m 64, and 128 for formats other than q2_k, q3_k, q6_k and tq2_0: registers");
    kiln_require(s, !is_q8 || kiln_int(v, "split_k") == 1 || (g.is_tiles && g.tile_m == 64),
                 "x strategy tile_m split_k",
                 "x s8 needs split_k 1, except with strategy tiles and tile_m 64");
    kiln_require(s, !is_q8 || kiln_int(v, "split_k") == 1 || !kiln_bool(v, "overlap"), "x split_k overlap",
                 "overlap with x s8 needs split_k 1");
    kiln_require_shared_bytes(s, is_q8 ? g.shared_bytes + linear_split_bytes(v) : 0, SHARED_SM_80,
                              "x format strategy tile_m tile_n k_warps stages",
                              "tile_m, tile_n, k_warps and stages with x s8");
    if (!is_q8)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = g.shared_bytes;
    s->trip = g.stage;
    kiln_number(s, v, "stage_elements", g.stage);
    const bool has_many_numbers =
        format->parts == 4 && format->has_minimum; /* some targets spill with fewer registers */
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.tile_m == 8 && !has_many_numbers ? 384 : 256);
}
