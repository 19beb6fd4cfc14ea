/* linear on integer tensor cores: x as codes and scales, which q8_quantize makes once for all products that share x.
 *
 * The weights are mma's first operand: 16 rows of W are its 16 rows. x is the second: eight of its rows are the 8 columns. A
 * thread block makes tile_m rows by tile_n columns of y. Each warp has 32 rows of W and 256 elements of a stage, a
 * super-block or eight blocks of 32; k_warps such warps make a stage.
 *
 * ORDER ALONG K is free as long as the operands agree. Lane (g, t) takes unit t, or units 2t and 2t + 1, of a group of rows
 * g, g + 8, g + 16 and g + 24 (device/format.h): a quad is four bytes, one register of an operand, and a lane needs x's codes
 * of the same elements of row g. A sub-block of 32 elements is one product, m16n8k32, one of 16 m16n8k16; on sm_75 four or
 * two m8n8k16.
 *
 * NUMBERS. A sum of products starts from 0x4B400000, the bits of 1.5 * 2^23: so it always has a float's bits, and the float
 * minus 1.5 * 2^23 is the sum. A scale of x times 1.5 * 2^23 is exact, since the scale has at most 22 significant bits: so one fma
 * subtracts that and multiplies by the scale, with one rounding; another one multiplies by W's scale and adds. If codes of W
 * have an offset, the sum starts lower, by a product of x's codes with -offset; if there is a minimum, a product with ones
 * computes the sum of x's codes. Lane (g, t) decodes the numbers of row g + 8t of a stage at once, and its warp shares them
 * through shared memory.
 *
 * COPIES. Stages of W, of x's codes and of its scales fill a ring in shared memory, all but one of them in flight; k's tail
 * is zeros. In shared memory the scales of a block's rows are neighbours. A dependent launch starts copying W before it waits
 * for the launch that makes x.
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/tensor.h"
#include "linear.h"

enum {
    ROWS = 8,    /* of x in one product */
    W_ROWS = 16, /* of W */
    PAIRS = 2,   /* of 8 rows of W in one product */
    TILES = LINEAR_MMA_TILES,
    WARP_ROWS = W_ROWS * TILES,
    LANE_ROWS = LINEAR_LANE_ROWS,
    QUAD_LANES = 4, /* t */
    X_BLOCK = 32,   /* elements under one scale of x */
    WARP_ELEMENTS = 256,
    MOST_GROUPS = 8,    /* of a row, that a warp has of a stage */
    MOST_NUMBERS = 8,   /* of a row, that are loaded for some groups */
    VECTOR_NUMBERS = 4, /* that a lane loads or stores at once */
    EIGHT_ROWS_BYTES = ROWS * 4 * VECTOR_NUMBERS +
                       32 /* after a vector of eight rows of W, so that lanes t are in different banks */
};

/* Known to `shape` and `emit`. */
typedef struct q8_geometry {
    const weight_format *format;
    uint32_t tile_m, tile_n, k_warps, stages, threads;
    uint32_t row_tiles;
    uint32_t stage;       /* elements of k */
    uint32_t groups;      /* of a row and stage, that a warp has */
    uint32_t batch;       /* of groups whose numbers are loaded together */
    uint32_t numbers;     /* of such a batch and row: scales, then minima */
    uint32_t products;    /* registers of a row of W in a product: 2 of 32 elements, 1 of 16 */
    uint32_t row_lanes;   /* that copy a row of W together */
    row_ring_shape w;     /* a stage of W */
    uint32_t x_row_bytes; /* of codes, in shared memory */
    uint32_t x_byte, scale_byte, number_byte, stage_bytes;
    uint32_t number_bytes; /* of a warp */
} q8_geometry;

typedef struct q8_product {
    q8_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    linear_tile tile;
    ptx_val stage; /* offset of the current stage */

    /* This thread's copies of the next stage. */
    linear_ring w;
    ptx_val x_to, scale_to; /* in the first stage */
    ptx_val x_from, x_step; /* U64: its first row's unit; bytes between its rows */
    ptx_val x_left, x_rows; /* bytes from its unit on, rows from its first on, S32 */
    ptx_val scale_from, scale_step, scale_left, scale_rows; /* the same for scales */

    linear_rows rows;
    ptx_val x_at, scale_at, number_to, number_from;
    format_lane codes[MOST_GROUPS], numbers[MOST_GROUPS];
    ptx_val start;
    warp_sums sums;
} q8_product;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

static uint32_t units_of(const weight_format *format)
{
    return format->units / QUAD_LANES;
}

static q8_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    q8_geometry g = {.format = format,
                     .tile_m = kiln_int(v, "tile_m"),
                     .tile_n = kiln_int(v, "tile_n"),
                     .k_warps = kiln_int(v, "k_warps"),
                     .stages = kiln_int(v, "stages")};
    const uint32_t kinds = format->has_minimum ? 2 : 1, of_group = format->parts * kinds;
    g.row_tiles = g.tile_m / ROWS;
    g.threads = WARP_LANES * (g.tile_n / WARP_ROWS) * g.k_warps;
    g.stage = WARP_ELEMENTS * g.k_warps;
    g.groups = WARP_ELEMENTS / format_group_elements(format);
    g.batch = of_group >= VECTOR_NUMBERS ? 1 : VECTOR_NUMBERS / of_group;
    g.numbers = g.batch * of_group;
    g.products = format_part_elements(format) / (4 * QUAD_LANES);
    g.w = row_ring_stage(g.stage / format->elements * format->bytes);
    if (units_of(format) == 2) /* lanes load 8 bytes: four rows are in different banks */
        g.w.rows.row_bytes = UNIT_BYTES * ((g.w.pieces + 1) / 4 * 4 + 2);
    g.row_lanes = g.threads / g.tile_n > ROW_RING_LANES ? g.threads / g.tile_n : ROW_RING_LANES;
    /* Lanes g and t are in different banks. */
    g.x_row_bytes = g.stage + QUAD_LANES * format->unit_step * units_of(format);
    g.x_byte = layout_rows(&g.w.rows, g.tile_n);
    g.scale_byte = g.x_byte + g.tile_m * g.x_row_bytes;
    g.number_byte = g.scale_byte + 4 * g.tile_m * g.stage / X_BLOCK;
    g.stage_bytes = g.number_byte + linear_numbers_bytes(format, g.stage, g.tile_n);
    g.number_bytes = LANE_ROWS * EIGHT_ROWS_BYTES * g.groups * of_group / VECTOR_NUMBERS;
    return g;
}

/* At the end the sums of the warps take the stages' bytes. */
static uint32_t shared_bytes(const q8_geometry *g)
{
    const uint32_t stages = g->stages * g->stage_bytes + g->threads / WARP_LANES * g->number_bytes,
                   sums = linear_sums_bytes(g->tile_m, g->tile_n, g->k_warps);
    return stages > sums ? stages : sums;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

static void init_w_copies(q8_product *g)
{
    ptx_fn *f = g->f;
    const row_ring codes = {.f = f,
                            .of = g->of.w,
                            .lanes = g->of.row_lanes,
                            .is_lean = true,
                            .threads = g->of.threads,
                            .passes = g->of.row_lanes * g->of.tile_n / g->of.threads};
    g->w = (linear_ring){.codes = codes,
                         .format = g->of.format,
                         .rows = g->of.tile_n,
                         .stage = g->of.stage,
                         .number_byte = g->of.number_byte};
    linear_init_ring(g->l, &g->w, g->tile.shared, g->tile.first_w);
}

/* Neighbouring threads copy neighbouring units of a row. Uses shifts: ptxas does not see that the divisor is a power of two. */
static void init_x_copies(q8_product *g)
{
    ptx_fn *f = g->f;
    linear *l = g->l;
    const uint32_t units = g->of.stage / UNIT_BYTES, blocks = g->of.stage / X_BLOCK;
    ptx_val unit = ptx_and(f, l->tid, units - 1), row = ptx_shr(f, l->tid, lanes_log2(units));
    ptx_val number = ptx_add(f, row, g->tile.first_x), byte = ptx_mul(f, unit, UNIT_BYTES);
    ptx_val line = ptx_at(f, l->in, ptx_mul_wide(f, number, l->k));
    g->x_from = ptx_var(f, ptx_address(f, ptx_at(f, line, byte)));
    g->x_step = ptx_mul_wide(f, l->k, g->of.threads / units);
    ptx_val to = ptx_mad(f, row, g->of.x_row_bytes, g->tile.shared);
    g->x_to = ptx_add(f, ptx_add(f, to, byte), g->of.x_byte);
    g->x_left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, l->k, byte)));
    g->x_rows = ptx_as(f, PTX_S32, ptx_sub(f, l->m, number));

    ptx_val block = ptx_and(f, l->tid, blocks - 1), scale_row = ptx_shr(f, l->tid, lanes_log2(blocks));
    ptx_val scale_number = ptx_add(f, scale_row, g->tile.first_x),
            all = ptx_shr(f, l->k, lanes_log2(X_BLOCK));
    ptx_val scales = ptx_at(f, l->in_scale, ptx_mul_wide(f, scale_number, all));
    g->scale_from = ptx_var(f, ptx_address(f, ptx_at(f, scales, block)));
    g->scale_step = ptx_mul_wide(f, all, 4 * (g->of.threads / blocks));
    ptx_val scale_to = ptx_mad(f, block, 4 * g->of.tile_m, g->tile.shared);
    ptx_val of_row = ptx_mad(f, scale_row, 4, scale_to);
    g->scale_to = ptx_add(f, of_row, g->of.scale_byte);
    g->scale_left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, all, block)));
    g->scale_rows = ptx_as(f, PTX_S32, ptx_sub(f, l->m, scale_number));
}

static void copy_x(q8_product *g, ptx_val offset)
{
    ptx_fn *f = g->f;
    const uint32_t at_once = g->of.threads / (g->of.stage / UNIT_BYTES);
    ptx_val to = ptx_add(f, g->x_to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, g->x_from);
    ptx_val in_k = ptx_gt(f, g->x_left, 0);
    for (uint32_t row = 0; row < g->of.tile_m; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, g->x_rows, row), in_k);
        if (row > 0)
            from = ptx_at(f, from, g->x_step);
        copy_unit(f, shared_at(f, PTX_U32, to, row * g->of.x_row_bytes), ptx_cast_ptr(f, from, PTX_U32),
                  &in_bounds, PTX_NC);
    }
}

/* If there are more threads than scales, the others copy none. */
static void copy_scales(q8_product *g, ptx_val offset)
{
    ptx_fn *f = g->f;
    const uint32_t blocks = g->of.stage / X_BLOCK, at_once = g->of.threads / blocks;
    ptx_val to = ptx_add(f, g->scale_to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, g->scale_from);
    ptx_val in_k = ptx_gt(f, g->scale_left, 0);
    for (uint32_t row = 0; row < g->of.tile_m; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, g->scale_rows, row), in_k);
        if (row > 0)
            from = ptx_at(f, from, g->scale_step);
        ptx_val word = ptx_cast_ptr(f, from, PTX_U32), word_to = shared_at(f, PTX_U32, to, 4 * row);
        if (at_once <= g->of.tile_m) {
            copy_word(f, word_to, word, &in_bounds);
            continue;
        }
        PTX_IF (f, ptx_lt(f, g->l->tid, g->of.tile_m * blocks)) {
            copy_word(f, word_to, word, &in_bounds);
        }
    }
}

/* Copies x to `offset`: zeros if there is no next stage. */
static void fill_x(q8_product *g, ptx_val offset)
{
    copy_x(g, offset);
    copy_scales(g, offset);
}

static void step_x(q8_product *g)
{
    ptx_fn *f = g->f;
    ptx_add_to(f, g->x_from, g->of.stage);
    ptx_sub_to(f, g->x_left, g->of.stage);
    ptx_add_to(f, g->scale_from, 4 * g->of.stage / X_BLOCK);
    ptx_sub_to(f, g->scale_left, g->of.stage / X_BLOCK);
}

/* Starts to copy the next stage, if there is one, to `offset`. */
static void fill_stage(q8_product *g, ptx_val offset)
{
    PTX_IF (g->f, row_ring_has_next(&g->w.codes)) {
        fill_x(g, offset);
        linear_copy_ring(&g->w, offset);
        row_ring_step(&g->w.codes);
        step_x(g);
    }
    copy_commit(g->f);
}

/* Starts the copies of all stages but one. With overlapping launches, W is copied before the launch that makes x has ended. */
static void fill_stages(q8_product *g, uint32_t last)
{
    ptx_fn *f = g->f;
    for (uint32_t offset = 0; offset < last; offset += g->of.stage_bytes) {
        if (!g->l->overlaps) {
            fill_stage(g, ptx_u32(offset));
            continue;
        }
        PTX_IF (f, row_ring_has_next(&g->w.codes)) {
            linear_copy_ring(&g->w, ptx_u32(offset));
            row_ring_step(&g->w.codes);
        }
    }
    if (!g->l->overlaps)
        return;
    ptx_grid_launch_next(f);
    ptx_grid_wait(f);
    for (uint32_t offset = 0; offset < last; offset += g->of.stage_bytes) {
        fill_x(g, ptx_u32(offset));
        step_x(g);
        copy_commit(f);
    }
}

/* ---- codes and scales of W ---------------------------------------------------------------------------------------- */

/* In shared memory four numbers of a row are neighbours, and the warp's rows follow each other: the first byte of vector i of
 * a batch. */
static uint32_t number_byte(const q8_geometry *g, uint32_t batch, uint32_t i)
{
    return LANE_ROWS * EIGHT_ROWS_BYTES * (batch * g->numbers / VECTOR_NUMBERS + i);
}

/* Decodes the numbers of a batch of groups of this lane's row. */
static void decode_batch(q8_product *g, uint32_t batch, ptx_val number_at, ptx_val numbers[])
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t parts = format->parts, scales = g->of.batch * parts;
    for (uint32_t i = 0; i < g->of.batch; i++) {
        ptx_val scale[FORMAT_MOST_PARTS] = {{0}}, minimum[FORMAT_MOST_PARTS] = {{0}};
        const uint32_t group = batch * g->of.batch + i;
        const format_lane *lane = &g->numbers[group];
        format_place place = format_find_numbers(f, lane, number_at, group);
        format_numbers(f, lane, &place, scale, minimum);
        for (uint32_t part = 0; part < parts; part++) {
            numbers[i * parts + part] = scale[part];
            if (format->has_minimum)
                numbers[scales + i * parts + part] = minimum[part];
        }
    }
}

/* Decodes all numbers before it stores the first, so that loads are not repeated. */
static void share_numbers(q8_product *g, ptx_val number_at)
{
    ptx_fn *f = g->f;
    const uint32_t batches = g->of.groups / g->of.batch;
    ptx_val numbers[MOST_GROUPS][MOST_NUMBERS];
    for (uint32_t batch = 0; batch < batches; batch++)
        decode_batch(g, batch, number_at, numbers[batch]);
    for (uint32_t batch = 0; batch < batches; batch++)
        for (uint32_t i = 0; i < g->of.numbers / VECTOR_NUMBERS; i++)
            ptx_store_vec(f, VECTOR_NUMBERS,
                          shared_at(f, PTX_F32, g->number_to, number_byte(&g->of, batch, i)),
                          &numbers[batch][VECTOR_NUMBERS * i], PTX_PLAIN);
    ptx_warp_barrier(f);
}

/* Scales and minima of the parts of a batch's groups, for each of the lane's rows. */
typedef struct batch_numbers {
    ptx_val of[LANE_ROWS][MOST_NUMBERS];
} batch_numbers;

static batch_numbers load_batch(q8_product *g, uint32_t batch)
{
    batch_numbers n;
    for (uint32_t r = 0; r < LANE_ROWS; r++)
        for (uint32_t i = 0; i < g->of.numbers / VECTOR_NUMBERS; i++)
            ptx_load_vec(g->f, VECTOR_NUMBERS, &n.of[r][VECTOR_NUMBERS * i],
                         shared_at(g->f, PTX_F32, g->number_from,
                                   number_byte(&g->of, batch, i) + EIGHT_ROWS_BYTES * r),
                         PTX_PLAIN);
    return n;
}

/* This lane's quads of a group of a row. */
typedef ptx_val group_quads[2][FORMAT_MOST_QUADS];

/* A part of a group: the registers of its product. */
typedef struct sub_block {
    uint32_t element[2]; /* of x's registers, from this warp's first on */
    ptx_val w[TILES][4];
    ptx_val scale[LANE_ROWS], minimum[LANE_ROWS];
} sub_block;

static sub_block find_part(q8_product *g, uint32_t group, uint32_t part, group_quads quads[LANE_ROWS],
                           const batch_numbers *numbers)
{
    const weight_format *format = g->of.format;
    const uint32_t units = units_of(format), number = group % g->of.batch * format->parts + part;
    sub_block s;
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < units; unit++) {
        for (uint32_t q = 0; q < format->quads; q++) {
            if (format_quad_part(format, q) != part)
                continue;
            s.element[count] = format_row_element(format, group) + format_quad_element(format, unit, q);
            for (uint32_t r = 0; r < LANE_ROWS; r++)
                s.w[r / PAIRS][fragment_a(r % PAIRS, count)] = ptx_as(g->f, PTX_B32, quads[r][unit][q]);
            count++;
        }
    }
    for (uint32_t r = 0; r < LANE_ROWS; r++) {
        s.scale[r] = numbers->of[r][number];
        if (format->has_minimum)
            s.minimum[r] = numbers->of[r][g->of.batch * format->parts + number];
    }
    return s;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

static void multiply(q8_product *g, bool is_signed, const ptx_val w[4], const ptx_val x[2],
                     const ptx_val start[4], ptx_val out[4])
{
    tensor_multiply_bytes(g->f, is_signed, g->of.products, out, w, x, start);
}

/* Multiplies x by one code, a byte, in all rows of W: sums 0 and 1 are this lane's rows', 2 and 3 repeat them. */
static void multiply_alike(q8_product *g, uint32_t code, const ptx_val x[2], ptx_val out[4])
{
    ptx_val byte = ptx_as(g->f, PTX_B32, ptx_u32(0x01010101 * code)), w[4] = {byte, byte, byte, byte};
    ptx_val start[4] = {g->start, g->start, g->start, g->start};
    multiply(g, true, w, x, start, out);
}

/* Eight rows of x over a sub-block. */
typedef struct x_block {
    ptx_val codes[2];
    ptx_val scale[2], raised[2]; /* of this lane's two rows of sums; times -1.5 * 2^23 */
} x_block;

static void read_codes(q8_product *g, const sub_block *s, ptx_val x_at, uint32_t tile, ptx_val codes[2])
{
    ptx_fn *f = g->f;
    const uint32_t row = tile * ROWS * g->of.x_row_bytes;
    const bool is_pair = g->of.products == 2 && s->element[1] == s->element[0] + 4;
    if (is_pair)
        ptx_load_vec(f, 2, codes, shared_at(f, PTX_U32, x_at, row + s->element[0]), PTX_PLAIN);
    for (uint32_t i = 0; i < g->of.products; i++) {
        if (!is_pair)
            codes[i] = ptx_load(f, shared_at(f, PTX_U32, x_at, row + s->element[i]));
        codes[i] = ptx_as(f, PTX_B32, codes[i]);
    }
}

static x_block read_x(q8_product *g, const sub_block *s, ptx_val x_at, ptx_val scale_at, uint32_t tile)
{
    ptx_fn *f = g->f;
    const uint32_t block = s->element[0] / X_BLOCK;
    x_block x;
    read_codes(g, s, x_at, tile, x.codes);
    ptx_load_vec(f, 2, x.scale, shared_at(f, PTX_F32, scale_at, 4 * (block * g->of.tile_m + tile * ROWS)),
                 PTX_PLAIN);
    for (uint32_t e = 0; e < 2; e++)
        x.raised[e] = ptx_mul(f, x.scale[e], -0x1.8p23f);
    return x;
}

/* A sum of products of codes times the scale of x. */
static ptx_val lower(q8_product *g, const x_block *x, uint32_t e, ptx_val bits)
{
    return ptx_fma(g->f, ptx_as(g->f, PTX_F32, bits), x->scale[e % 2], x->raised[e % 2]);
}

static void multiply_sub_block(q8_product *g, const sub_block *s, ptx_val x_at, ptx_val scale_at)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    for (uint32_t tile = 0; tile < g->of.row_tiles; tile++) {
        const x_block x = read_x(g, s, x_at, scale_at, tile);
        ptx_val start[4] = {g->start, g->start, g->start, g->start}, alike[4], products[4], sum_of_x[2];
        if (format->has_minimum) {
            multiply_alike(g, 1, x.codes, alike);
            for (uint32_t e = 0; e < 2; e++)
                sum_of_x[e] = lower(g, &x, e, alike[e]);
        } else if (format->offset > 0) {
            multiply_alike(g, 256u - format->offset, x.codes, start);
        }
        for (uint32_t i = 0; i < TILES; i++) {
            multiply(g, format->is_signed, s->w[i], x.codes, start, products);
            for (uint32_t e = 0; e < 4; e++) {
                ptx_val product = lower(g, &x, e, products[e]);
                ptx_fma_to(f, sums_of(&g->sums, tile, i)[e], product, s->scale[PAIRS * i + e / 2]);
                if (format->has_minimum)
                    ptx_fma_to(f, sums_of(&g->sums, tile, i)[e], sum_of_x[e % 2],
                               s->minimum[PAIRS * i + e / 2]);
            }
        }
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

/* This warp's groups of the stage. */
static void multiply_stage(q8_product *g)
{
    ptx_fn *f = g->f;
    ptx_val x_at = ptx_add(f, g->x_at, g->stage), scale_at = ptx_add(f, g->scale_at, g->stage),
            row_at[LANE_ROWS], number_at;
    batch_numbers numbers;
    linear_next_lane_rows(&g->w, &g->rows, g->stage, row_at, &number_at);
    share_numbers(g, number_at);
    for (uint32_t group = 0; group < g->of.groups; group++) {
        group_quads quads[LANE_ROWS];
        if (group % g->of.batch == 0)
            numbers = load_batch(g, group / g->of.batch);
        for (uint32_t r = 0; r < LANE_ROWS; r++) {
            const format_lane *lane = &g->codes[group];
            format_place place = format_find_group(f, lane, row_at[r], group);
            format_codes(f, lane, &place, 0, units_of(g->of.format), quads[r]);
        }
        for (uint32_t part = 0; part < g->of.format->parts; part++) {
            const sub_block s = find_part(g, group, part, quads, &numbers);
            multiply_sub_block(g, &s, x_at, scale_at);
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void init_rows(q8_product *g)
{
    ptx_fn *f = g->f;
    ptx_val mine = ptx_mad(f, g->tile.column_warp, WARP_ROWS, g->tile.lane.g);
    ptx_val first = ptx_mad(f, g->tile.k_warp, g->of.w.bytes / g->of.k_warps, g->tile.shared);
    g->rows = linear_find_lane_rows(g->l, &g->w, &g->tile, mine, first);
}

/* Sets where this lane stores the numbers of row g + 8t of its warp, and loads those of row g. */
static void init_numbers(q8_product *g)
{
    ptx_fn *f = g->f;
    ptx_val warp = ptx_mad(f, g->l->warp, g->of.number_bytes, g->tile.shared);
    ptx_val shared = ptx_add(f, warp, g->of.stages * g->of.stage_bytes);
    g->number_from = ptx_mad(f, g->tile.lane.g, 4 * VECTOR_NUMBERS, shared);
    g->number_to = ptx_mad(f, g->tile.lane.t, EIGHT_ROWS_BYTES, g->number_from);
}

/* Sets this lane's addresses of W and x, and its decoder. */
static void init_reads(q8_product *g)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    init_rows(g);
    init_numbers(g);
    ptx_val unit = units_of(format) == 1 ? g->tile.lane.t : ptx_mul(f, g->tile.lane.t, units_of(format));
    for (uint32_t i = 0; i < g->of.groups; i++) {
        ptx_val group = ptx_u32(i % format->groups);
        g->codes[i] = format_lane_init(f, format, group, unit, FORMAT_RAISED);
        if (units_of(format) == 2)
            format_lane_pair(&g->codes[i]);
        g->numbers[i] = format_lane_init(f, format, group, (ptx_val){0}, FORMAT_RAISED);
    }
    ptx_val line = ptx_mad(f, g->tile.lane.g, g->of.x_row_bytes, g->tile.shared);
    ptx_val of_lane = ptx_mad(f, unit, format->unit_step, line);
    ptx_val of_warp = ptx_mad(f, g->tile.k_warp, WARP_ELEMENTS, of_lane);
    g->x_at = ptx_add(f, of_warp, g->of.x_byte);
    ptx_val scale = ptx_mad(f, g->tile.k_warp, 4 * g->of.tile_m * (WARP_ELEMENTS / X_BLOCK), g->tile.shared);
    ptx_val of_rows = ptx_mad(f, g->tile.lane.t, 8, scale);
    g->scale_at = ptx_add(f, of_rows, g->of.scale_byte);
}

/* Waits for the next stage, and refills the previous one. */
static void next_stage(q8_product *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, g->of.stages - 2);
    ptx_barrier(f);
    fill_stage(g, g->stage);
    shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

void linear_emit_q8(linear *l, const kiln_variant *v)
{
    ptx_fn *f = l->f;
    linear_find_threads(l);
    q8_product of = {.of = geometry_of(v, l->of.format), .l = l, .f = f}, *g = &of;
    g->tile = linear_find_tile(l, g->of.tile_m, g->of.tile_n, g->of.k_warps, g->of.stage);
    init_w_copies(g);
    init_x_copies(g);
    const uint32_t last = (g->of.stages - 1) * g->of.stage_bytes;
    fill_stages(g, last);
    g->stage = ptx_var(f, ptx_u32(last));
    init_reads(g);
    g->start = ptx_var(f, ptx_s32(LINEAR_SUM_START));
    g->sums = linear_init_sums(f, g->of.tile_m);
    PTX_FOR (f, first, 0, l->k, g->of.stage) {
        ptx_main_loop(f);
        next_stage(g);
        multiply_stage(g);
    }
    linear_store_sums(l, &g->tile, &g->sums);
}

void linear_shape_q8(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_q8 = kiln_is(v, "x", "s8");
    const q8_geometry g = geometry_of(v, format);
    kiln_require(s, !is_q8 || g.threads <= 256, "x tile_n k_warps",
                 "x s8 needs tile_n times k_warps up to 256");
    kiln_require(s, !is_q8 || g.tile_m == 8 || (g.tile_m == 16 && format->parts < 4), "x format tile_m",
                 "x s8 has tile_m 8, and 16 where a scale has 32 elements: registers");
    kiln_require_shared_bytes(s, is_q8 ? shared_bytes(&g) : 0, SHARED_SM_80,
                              "x format tile_m tile_n k_warps stages",
                              "tile_m, tile_n, k_warps and stages with x s8");
    if (!is_q8)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = s->least_shared_bytes = shared_bytes(&g);
    s->min_sm = s->shared_bytes > SHARED_SM_75 ? 80 : 75;
    s->trip = g.stage;
    kiln_number(s, v, "stage_elements", g.stage);
    const bool has_many_numbers =
        format->parts == 4 && format->has_minimum; /* some targets spill with fewer registers */
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.tile_m == 8 && !has_many_numbers ? 384 : 256);
}
