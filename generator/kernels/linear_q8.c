/* linear on integer tensor cores: x as codes and scales, which q8_quantize makes once for all products that share x.
 *
 * The weights are mma's first operand: 16 rows of W are its 16 rows. x is the second: eight of its rows are the 8 columns. A
 * thread block makes tile_m rows by tile_n columns of y, and each warp has 32 rows of W. With strategy mma a warp has 256
 * elements of a stage, a super-block or eight blocks of 32, and k_warps such warps make a stage. With strategy tiles two
 * warps have the same rows of W, and each has half of the tile's rows of x.
 *
 * ORDER ALONG K is free as long as the operands agree. Lane (g, t) takes unit t, or units 2t and 2t + 1, of a group of rows
 * g, g + 8, g + 16 and g + 24 (device/format.h): a quad is four bytes, one register of an operand, and a lane needs x's codes
 * of the same elements of row g. A sub-block of 32 elements is one product, m16n8k32, one of 16 m16n8k16; on sm_75 four or
 * two m8n8k16.
 *
 * NUMBERS. A sum of products starts from 0x4B400000, the bits of 1.5 * 2^23: so its bits, read as a float, are the sum plus
 * 1.5 * 2^23. A scale of x times 1.5 * 2^23 is exact, since the scale has at most 22 significant bits: so one fma subtracts
 * that and multiplies by the scale, with one rounding; another one multiplies by W's scale and adds. If codes of W
 * have an offset, the sum starts lower, by a product of x's codes with -offset; if there is a minimum, a product with ones
 * computes the sum of x's codes. Lane (g, t) decodes the numbers of row g + 8t of a stage at once, and its warp shares them
 * through shared memory.
 *
 * COPIES. Stages of W, of x's codes and of its scales fill a ring in shared memory, all but one of them in flight; k's tail
 * is zeros. In shared memory the scales of a block's rows are neighbours. A dependent launch starts copying W before it waits
 * for the launch that makes x. With tiles x has a double buffer of its own, of 128 elements of k at a time; its rows have no
 * padding, but are swizzled.
 *
 * INSTRUCTIONS. With tiles, a warp's 64 rows of x and 32 of W take for each 32 elements of Q4_K: 16 products, 64 times three fma
 * (lower a sum and scale it by x, scale it by W, add the minimum's part), 16 loads and 16 multiplications of x's scales; and
 * about 35 more to decode W and 15 for copies and sums of x. That is 18 for a product of 16 cycles on an RTX 4090. A product with
 * ones would add 3 for every 2 products, and half of a product's cycles. So the sums of x's codes are made once for all warps:
 * each thread adds up the codes that it has copied. For the same reason tiles subtract an offset from W's codes, which takes
 * two instructions for four codes.
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/row_ring.h"
#include "device/tensor.h"
#include "linear_q8_x.h"

enum {
    ROWS = Q8_X_ROWS,
    PAIRS = 2, /* of 8 rows of W in one product */
    TILES = LINEAR_MMA_TILES,
    WARP_ROWS = LINEAR_WARP_COLUMNS,
    LANE_ROWS = LINEAR_LANE_ROWS,
    QUAD_LANES = 4, /* t */
    WARP_ELEMENTS = 256,
    STEP = 128,         /* elements of a step of x, in tiles */
    MOST_GROUPS = 8,    /* per row, in a warp's part of a stage */
    MOST_NUMBERS = 8,   /* per row, in a batch of groups */
    VECTOR_NUMBERS = 4, /* per load or store of a lane */
    EIGHT_ROWS_BYTES = ROWS * 4 * VECTOR_NUMBERS +
                       32 /* after a vector of eight rows of W, so that lanes t are in different banks */
};

/* Known to `shape` and `emit`. */
typedef struct q8_geometry {
    const weight_format *format;
    bool is_tiles;
    uint32_t tile_m, tile_n, stages, threads;
    uint32_t row_tiles;     /* of a warp */
    uint32_t stage, steps;  /* elements of k in a stage of W; its steps of x */
    uint32_t warp_elements; /* elements of a step in each warp */
    uint32_t groups;        /* per row, in these elements */
    uint32_t batch;         /* groups whose numbers are loaded together */
    uint32_t numbers;       /* per batch and row: scales, then minima */
    uint32_t products;      /* registers of a row of W in a product: 2 of 32 elements, 1 of 16 */
    row_ring_shape w;       /* a stage of W */
    q8_x_shape x;
    uint32_t number_byte, stage_bytes; /* of W; in tiles x has a ring of its own */
    uint32_t x_bytes;                  /* from one stage of x to the next */
    uint32_t number_bytes;             /* of a warp */
} q8_geometry;

typedef struct q8_product {
    q8_geometry of;
    linear *l; /* arguments */
    ptx_fn *f;
    linear_tile tile;
    ptx_val stage, x_stage; /* offsets of the current stage, of W and of x */

    linear_ring w;
    q8_x x;

    ptx_val number_to, number_from;
    format_lane codes[MOST_GROUPS], numbers[MOST_GROUPS];
    ptx_val start;
    warp_sums sums;
} q8_product;

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

static uint32_t units_of(const weight_format *format)
{
    return format->units / QUAD_LANES;
}

/* Bytes of x's codes in a stage, and of its scales. */
static uint32_t codes_bytes(const q8_x_shape *x)
{
    return layout_rows(&x->codes, x->rows);
}

static uint32_t scales_bytes(const q8_x_shape *x)
{
    return x->scales * x->blocks.row_bytes;
}

/* mma: all of a stage is copied at once, and rows are padded so that lanes g and t are in different banks. */
static void plan_mma(q8_geometry *g)
{
    const weight_format *format = g->format;
    g->x.codes = (layout){.row_bytes = g->stage + QUAD_LANES * format->unit_step * units_of(format),
                          .unit_bytes = UNIT_BYTES};
    g->x.codes_byte = layout_rows(&g->w.rows, g->tile_n);
    g->x.scale_byte = g->x.codes_byte + codes_bytes(&g->x);
    g->number_byte = g->x.scale_byte + scales_bytes(&g->x);
    g->stage_bytes = g->number_byte + linear_numbers_bytes(format, g->stage, g->tile_n);
    g->x_bytes = g->stage_bytes;
    g->number_bytes = LANE_ROWS * EIGHT_ROWS_BYTES * WARP_ELEMENTS / format_part_elements(format) *
                      (format->has_minimum ? 2 : 1) / VECTOR_NUMBERS;
}

static void plan_tiles(q8_geometry *g)
{
    g->number_byte = layout_rows(&g->w.rows, g->tile_n);
    g->stage_bytes = g->number_byte + linear_numbers_bytes(g->format, g->stage, g->tile_n);
    g->x.codes = layout_of_codes();
    g->x.codes_byte = g->stages * g->stage_bytes;
    g->x.scale_byte = g->x.codes_byte + codes_bytes(&g->x);
    g->x_bytes = codes_bytes(&g->x) + scales_bytes(&g->x);
}

static q8_geometry geometry_of(const kiln_variant *v, const weight_format *format)
{
    q8_geometry g = {.format = format,
                     .is_tiles = kiln_is(v, "strategy", "tiles"),
                     .tile_m = kiln_int(v, "tile_m"),
                     .tile_n = kiln_int(v, "tile_n"),
                     .stages = kiln_int(v, "stages")};
    const uint32_t kinds = format->has_minimum ? 2 : 1, of_group = format->parts * kinds,
                   k_warps = g.is_tiles ? 1 : kiln_int(v, "k_warps"), row_warps = g.is_tiles ? 2 : 1;
    g.warp_elements = g.is_tiles ? STEP : WARP_ELEMENTS;
    g.row_tiles = g.tile_m / row_warps / ROWS;
    g.threads = WARP_LANES * (g.tile_n / WARP_ROWS) * k_warps * row_warps;
    g.steps = g.is_tiles && (format->groups > 1 || format->scale_elements == 256) ? 2 : 1;
    g.x = (q8_x_shape){.rows = g.tile_m,
                       .threads = g.threads,
                       .k_warps = k_warps,
                       .row_warps = row_warps,
                       .step = g.warp_elements * k_warps,
                       .is_tiles = g.is_tiles,
                       .has_sums = g.is_tiles && format->has_minimum};
    g.x.scales = g.x.step / (g.x.has_sums ? format_part_elements(format) : Q8_X_BLOCK);
    g.x.blocks = q8_x_blocks(g.tile_m, g.is_tiles, g.x.has_sums);
    g.stage = g.x.step * g.steps;
    g.groups = g.warp_elements / format_group_elements(format);
    g.batch = of_group >= VECTOR_NUMBERS ? 1 : VECTOR_NUMBERS / of_group;
    g.numbers = g.batch * of_group;
    g.products = format_part_elements(format) / (4 * QUAD_LANES);
    g.w = linear_ring_stage(format, g.stage, units_of(format) == 2);
    (g.is_tiles ? plan_tiles : plan_mma)(&g);
    return g;
}

/* At the end the sums of the warps overlay the stages. */
static uint32_t shared_bytes(const q8_geometry *g)
{
    const uint32_t copies = g->stages * (g->stage_bytes + (g->is_tiles ? g->x_bytes : 0)),
                   stages = copies + g->threads / WARP_LANES * g->number_bytes,
                   sums = linear_sums_bytes(g->tile_m, g->tile_n, g->x.k_warps);
    return stages > sums ? stages : sums;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Starts to copy the next stage, if there is one, to `offset`. */
static void fill_stage(q8_product *g, ptx_val offset, uint32_t ahead)
{
    PTX_IF (g->f, linear_has_stage(&g->w, ahead)) {
        q8_x_copy(&g->x, offset);
        linear_copy_ring(&g->w, offset);
        row_ring_step(&g->w.codes);
        q8_x_advance(&g->x);
    }
    copy_commit(g->f);
}

/* Starts to copy the next step of x, and with a stage's first step the next stage of W. */
static void fill_step(q8_product *g, uint32_t step)
{
    q8_x_copy(&g->x, g->x_stage);
    q8_x_advance(&g->x);
    if (step == 0)
        linear_fill_ring(&g->w, g->stage, 1);
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
        q8_x_copy(&g->x, ptx_u32(i * g->of.stage_bytes));
        q8_x_advance(&g->x);
        copy_commit(f);
    }
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

/* Decodes a batch, and gets the same numbers by shuffles among the quad's lanes. */
static batch_numbers shuffle_batch(q8_product *g, uint32_t batch)
{
    batch_numbers n;
    ptx_val numbers[MOST_NUMBERS] = {{0}};
    decode_batch(g, batch, numbers);
    for (uint32_t i = 0; i < g->of.numbers; i++)
        for (uint32_t r = 0; r < LANE_ROWS; r++)
            n.of[r][i] = ptx_shfl_idx_in(g->f, numbers[i], r, QUAD_LANES);
    return n;
}

/* This lane's quads of a group of a row. */
typedef ptx_val group_quads[2][FORMAT_MOST_QUADS];

/* A part of a group: the registers of its product. */
typedef struct sub_block {
    uint32_t element; /* first element, counted from this warp's first of the step */
    q8_x_codes x[2];
    ptx_val w[TILES][4];
    ptx_val scale[LANE_ROWS], minimum[LANE_ROWS];
} sub_block;

/* Whether the format's offset is subtracted from each code of W, not from each sum. */
static bool is_centred(const q8_geometry *g)
{
    return g->is_tiles && g->format->offset > 0;
}

/* The codes minus the format's offset, as signed bytes. */
static ptx_val centre_quad(q8_product *g, ptx_val quad)
{
    ptx_val raised = ptx_add(g->f, quad, 0x01010101 * (128u - g->of.format->offset));
    return ptx_xor(g->f, raised, 0x80808080);
}

static sub_block find_part(q8_product *g, uint32_t group, uint32_t part, group_quads quads[LANE_ROWS],
                           const batch_numbers *numbers, ptx_val x_at)
{
    const weight_format *format = g->of.format;
    const uint32_t units = units_of(format), number = group % g->of.batch * format->parts + part,
                   first = format_row_element(format, group / g->of.groups * g->of.groups);
    sub_block s = {.element = 0};
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < units; unit++) {
        for (uint32_t q = 0; q < format->quads; q++) {
            if (format_quad_part(format, q) != part)
                continue;
            const uint32_t element =
                format_row_element(format, group) - first + format_quad_element(format, unit, q);
            s.element = count == 0 ? element : s.element;
            s.x[count] = q8_x_find(&g->x, element, x_at);
            for (uint32_t r = 0; r < LANE_ROWS; r++) {
                ptx_val quad = is_centred(&g->of) ? centre_quad(g, quads[r][unit][q]) : quads[r][unit][q];
                s.w[r / PAIRS][fragment_a(r % PAIRS, count)] = ptx_as(g->f, PTX_B32, quad);
            }
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

/* Multiplies x by rows of W in which every byte is `code`: sums 0 and 1 are those of this lane's rows of x, 2 and 3 repeat them. */
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
    ptx_val sum[2];              /* of these rows' codes, times the scale; if the format has minima */
} x_block;

/* Returns a sum of products of codes, times the scale of x. */
static ptx_val lower(q8_product *g, const x_block *x, uint32_t e, ptx_val bits)
{
    return ptx_fma(g->f, ptx_as(g->f, PTX_F32, bits), x->scale[e % 2], x->raised[e % 2]);
}

static x_block read_x(q8_product *g, const sub_block *s, ptx_val scale_at, uint32_t tile)
{
    x_block x;
    q8_x_load(&g->x, s->x, g->of.products, tile, x.codes);
    q8_x_load_scales(&g->x, s->element, tile, scale_at, x.scale, x.sum);
    for (uint32_t e = 0; e < 2; e++)
        x.raised[e] = ptx_mul(g->f, x.scale[e], -0x1.8p23f);
    return x;
}

static void multiply_sub_block(q8_product *g, const sub_block *s, ptx_val scale_at)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    for (uint32_t tile = 0; tile < g->of.row_tiles; tile++) {
        x_block x = read_x(g, s, scale_at, tile);
        ptx_val start[4] = {g->start, g->start, g->start, g->start}, alike[4], products[4];
        if (format->has_minimum && !g->of.x.has_sums) {
            multiply_alike(g, 1, x.codes, alike);
            for (uint32_t e = 0; e < 2; e++)
                x.sum[e] = lower(g, &x, e, alike[e]);
        } else if (format->offset > 0 && !is_centred(&g->of)) {
            multiply_alike(g, 256u - format->offset, x.codes, start);
        }
        for (uint32_t i = 0; i < TILES; i++) {
            multiply(g, format->is_signed || is_centred(&g->of), s->w[i], x.codes, start, products);
            for (uint32_t e = 0; e < 4; e++) {
                ptx_val product = lower(g, &x, e, products[e]);
                ptx_fma_to(f, sums_of(&g->sums, tile, i)[e], product, s->scale[PAIRS * i + e / 2]);
                if (format->has_minimum)
                    ptx_fma_to(f, sums_of(&g->sums, tile, i)[e], x.sum[e % 2], s->minimum[PAIRS * i + e / 2]);
            }
        }
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

/* Multiplies this warp's groups of a step. */
static void multiply_step(q8_product *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val x_at = ptx_add(f, g->x.at, g->x_stage), scale_at = ptx_add(f, g->x.scale_at, g->x_stage);
    batch_numbers numbers;
    if (step == 0)
        linear_next_lane_rows(&g->w, g->stage);
    if (!g->of.is_tiles)
        share_numbers(g);
    for (uint32_t group = step * g->of.groups; group < (step + 1) * g->of.groups; group++) {
        group_quads quads[LANE_ROWS];
        if (group % g->of.batch == 0)
            numbers = (g->of.is_tiles ? shuffle_batch : load_batch)(g, group / g->of.batch);
        for (uint32_t r = 0; r < LANE_ROWS; r++) {
            const format_lane *lane = &g->codes[group];
            format_place place = format_find_group(f, lane, g->w.row_at[r], group);
            format_codes(f, lane, &place, 0, units_of(g->of.format), quads[r]);
        }
        for (uint32_t part = 0; part < g->of.format->parts; part++) {
            const sub_block s = find_part(g, group, part, quads, &numbers, x_at);
            multiply_sub_block(g, &s, scale_at);
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

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
    linear_find_lane_rows(&g->w, g->tile.k_warp, g->of.w.bytes / g->of.x.k_warps);
    if (!g->of.is_tiles)
        init_numbers(g);
    ptx_val unit = units_of(format) == 1 ? g->tile.lane.t : ptx_mul(f, g->tile.lane.t, units_of(format));
    for (uint32_t i = 0; i < g->of.groups * g->of.steps; i++) {
        ptx_val group = ptx_u32(i % format->groups);
        g->codes[i] = format_lane_init(f, format, group, unit, FORMAT_RAISED);
        if (units_of(format) == 2)
            format_lane_pair(&g->codes[i]);
        g->numbers[i] = format_lane_init(f, format, group, (ptx_val){0}, FORMAT_RAISED);
    }
    q8_x_init_reads(&g->x, unit, format->unit_step);
}

/* Waits for the next stage, and refills the previous one. */
static void next_stage(q8_product *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, g->of.stages - 2);
    ptx_barrier(f);
    fill_stage(g, g->stage, g->of.stages - 1);
    shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

/* Waits for the next step, and refills the previous one. */
static void next_step(q8_product *g, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val next = ptx_sub(f, ptx_u32(g->of.x_bytes), g->x_stage);
    copy_wait(f, 0);
    if (g->of.x.has_sums)
        q8_x_add_up(&g->x, next);
    ptx_barrier(f);
    fill_step(g, step);
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
    g->w = (linear_ring){.l = l,
                         .tile = &g->tile,
                         .codes = {.of = g->of.w, .is_lean = true},
                         .number_byte = g->of.number_byte,
                         .shared = g->tile.shared};
    if (l->split_k != 1)
        g->w.left = ptx_var(f, l->part_stages);
    linear_init_ring(&g->w);
    g->x = (q8_x){.of = g->of.x, .f = f, .l = l, .tile = &g->tile};
    q8_x_init(&g->x);
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
    g.tile = linear_find_tile(l, g.of.tile_m, g.of.tile_n, LINEAR_WARP_COLUMNS, g.of.x.k_warps, g.of.stage);
    if (g.of.x.row_warps > 1)
        linear_share_rows(l, &g.tile, g.of.x.row_warps);
    linear_make_tiles(l, &g.tile, make_tile, &g);
}

void linear_shape_q8(kiln_shape *s, const kiln_variant *v, const weight_format *format)
{
    const bool is_q8 = kiln_is(v, "x", "s8");
    const q8_geometry g = geometry_of(v, format);
    kiln_require(s, !is_q8 || g.threads <= 256, "x tile_n k_warps",
                 "x s8 needs tile_n times k_warps up to 256");
    kiln_require(s, !is_q8 || g.is_tiles || g.tile_m == 8 || (g.tile_m == 16 && format->parts < 4),
                 "x strategy format tile_m",
                 "x s8 with strategy mma has tile_m 8, and 16 where a scale has 32 elements: registers");
    kiln_require(s,
                 !is_q8 || !g.is_tiles ||
                     ((g.tile_n == 64 || g.tile_n == 128) && kiln_int(v, "k_warps") == 2 && g.stages == 2),
                 "x strategy tile_n k_warps stages",
                 "x s8 with strategy tiles has tile_n 64 or 128, k_warps 2 and stages 2");
    kiln_require(s, !is_q8 || !g.is_tiles || g.tile_m == 64 || (g.tile_m == 128 && format->parts < 4),
                 "x strategy format tile_m",
                 "x s8 with strategy tiles has tile_m 64, and 128 where a scale has 32 elements: registers");
    kiln_require(s, !is_q8 || kiln_int(v, "split_k") == 1 || (g.is_tiles && g.tile_m == 64),
                 "x strategy tile_m split_k",
                 "x s8 needs split_k 1, except with strategy tiles and tile_m 64");
    kiln_require(s, !is_q8 || kiln_int(v, "split_k") == 1 || !kiln_bool(v, "overlap"), "x split_k overlap",
                 "overlap with x s8 needs split_k 1");
    kiln_require_shared_bytes(s, is_q8 ? shared_bytes(&g) + linear_split_bytes(v) : 0, SHARED_SM_80,
                              "x format strategy tile_m tile_n k_warps stages",
                              "tile_m, tile_n, k_warps and stages with x s8");
    if (!is_q8)
        return;
    s->block[0] = g.threads;
    s->shared_bytes = s->least_shared_bytes = shared_bytes(&g);
    s->min_sm = s->shared_bytes + linear_split_bytes(v) > SHARED_SM_75 ? 80 : 75;
    s->trip = g.stage;
    kiln_number(s, v, "stage_elements", g.stage);
    const bool has_many_numbers =
        format->parts == 4 && format->has_minimum; /* some targets spill with fewer registers */
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.tile_m == 8 && !has_many_numbers ? 384 : 256);
}
