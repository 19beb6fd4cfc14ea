/* Products of tiles, for authors of kernels. */
#include <kiln/author/tile.h>

#include "copy.h"
#include "fragment.h"
#include "lanes.h"
#include "narrow.h"
#include "shared.h"
#include "tail.h"
#include "tensor.h"
#include "tile_producer.h"

enum { A_ROWS = 16, B_COLUMNS = 8 };

static bool is_half(ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16;
}

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

static bool is_depth(uint32_t depth)
{
    return depth == 16 || depth == 32 || depth == 64;
}

/* Rows of a thread block's pass, and of the passes that cover `rows`; a row has `units` in a stage. */
static uint32_t rows_at_once(uint32_t units, uint32_t threads)
{
    return threads / units;
}

static uint32_t whole_rows(uint32_t units, uint32_t threads, uint32_t rows)
{
    const uint32_t at_once = rows_at_once(units, threads);
    return (rows + at_once - 1) / at_once * at_once;
}

static uint32_t pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t units, uint32_t threads,
                               uint32_t rows)
{
    if (!is_depth(depth) || stages > TILE_MOST_STAGES || rows > TILE_MOST_ROWS)
        return 0;
    if (threads == 0)
        return tile_producer_bytes(stages, units, rows);
    if (threads < WARP_LANES)
        return 0;
    return stages * whole_rows(units, threads, rows) * UNIT_BYTES * units;
}

uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows)
{
    return pipeline_bytes(stages, depth, is_depth(depth) ? depth / UNIT : 1, threads, rows);
}

uint32_t tile_pipeline_packed_bytes(uint32_t stages, uint32_t depth, uint32_t packed, uint32_t threads,
                                    uint32_t rows)
{
    return is_packed(depth, packed)
               ? pipeline_bytes(stages, depth, depth / packed / UNIT_BYTES, threads, rows)
               : 0;
}

tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line)
{
    const place at = {file, line};
    require(f, at, is_half(type), "tile_pipeline_open: the type must be f16 or bf16");
    require(f, at, ptx_block_x(f) % WARP_LANES == 0,
            "tile_pipeline_open: a thread block must be whole warps");
    if (!require(f, at, stages >= 2 && stages <= TILE_MOST_STAGES,
                 "tile_pipeline_open: there must be 2 to 16 stages"))
        stages = 2;
    if (!require(f, at, is_depth(depth), "tile_pipeline_open: a stage must have 16, 32 or 64 elements"))
        depth = TILE_STEP;
    return (tile_pipeline){.f = f,
                           .type = type,
                           .stages = stages,
                           .depth = depth,
                           .shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32)),
                           .stage = ptx_var(f, ptx_u32(0))};
}

/* Neighbouring threads copy neighbouring units of a row. */
static void init_slot(tile_pipeline *p, tile_slot *s, const tile_matrix *of, ptx_val first)
{
    ptx_fn *f = p->f;
    const uint32_t units = s->units, at_once = rows_at_once(units, ptx_block_x(f));
    const uint32_t element_bytes = UNIT_BYTES / s->in_unit;
    const layout l = layout_of_matrices(units);
    ptx_val tid = ptx_tid_x(f), unit = ptx_and(f, tid, units - 1), row = ptx_div(f, tid, units);
    ptx_val number = ptx_add(f, row, first), element = ptx_mul(f, unit, s->in_unit);
    ptx_val start = ptx_at(f, of->data, ptx_mul_wide(f, number, of->stride));
    s->from = ptx_var(f, ptx_address(f, ptx_at(f, start, element)));
    s->row_step = ptx_mul_wide(f, of->stride, element_bytes * at_once);
    s->rows_left = ptx_sub(f, ptx_as(f, PTX_S32, of->rows), ptx_as(f, PTX_S32, number));
    s->left = ptx_var(f, ptx_sub(f, ptx_as(f, PTX_S32, of->columns), ptx_as(f, PTX_S32, element)));
    for (uint32_t odd = 0; odd < 2; odd++) {
        ptx_val mine = odd ? ptx_add(f, row, at_once) : row;
        ptx_val in_slot = ptx_add(f, layout_at(f, &l, mine, unit), s->byte - odd * layout_rows(&l, at_once));
        s->to[odd] = ptx_add(f, in_slot, p->shared);
    }
}

static uint32_t add(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows, uint32_t units,
                    uint32_t in_unit, place at)
{
    const layout l = layout_of_matrices(units);
    const bool is_well = require(p->f, at, p->slot_count < TILE_MOST_SLOTS,
                                 "tile_pipeline_add: a pipeline has at most four matrices") &&
                         require(p->f, at, !p->has_started, "tile_pipeline_add: the pipeline has started") &&
                         require(p->f, at, !p->has_producer,
                                 "tile_pipeline_add: a pipeline needs a map for each matrix, or no map") &&
                         require(p->f, at, rows > 0 && rows <= TILE_MOST_ROWS,
                                 "tile_pipeline_add: there must be 1 to 1024 rows") &&
                         require(p->f, at, ptx_block_x(p->f) >= WARP_LANES,
                                 "tile_pipeline_add: a thread block must be whole warps");
    if (!is_well)
        return 0;
    tile_slot *s = &p->slots[p->slot_count];
    *s = (tile_slot){.rows = rows,
                     .copied = whole_rows(units, ptx_block_x(p->f), rows),
                     .units = units,
                     .in_unit = in_unit,
                     .byte = p->stage_bytes};
    init_slot(p, s, of, first);
    p->stage_bytes += layout_rows(&l, s->copied);
    return p->slot_count++;
}

uint32_t tile_pipeline_add_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                              const char *file, int line)
{
    const place at = {file, line};
    if (!require(p->f, at, of->data.type == PTX_PTR && of->data.element == p->type,
                 "tile_pipeline_add: the matrix must be of the pipeline's type"))
        return 0;
    return add(p, of, first, rows, p->depth / UNIT, UNIT, at);
}

uint32_t tile_pipeline_add_packed_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                                     uint32_t packed, const char *file, int line)
{
    const place at = {file, line};
    if (!require(p->f, at, of->data.type == PTX_PTR && of->data.element == PTX_U8,
                 "tile_pipeline_add_packed: the matrix must be of u8") ||
        !require(p->f, at, is_packed(p->depth, packed),
                 "tile_pipeline_add_packed: a row of a stage must be a multiple of 16 bytes"))
        return 0;
    return add(p, of, first, rows, p->depth / packed / UNIT_BYTES, UNIT_BYTES, at);
}

uint32_t tile_pipeline_add_map_at(tile_pipeline *p, ptx_val map, const tile_matrix *of, ptx_val first,
                                  uint32_t rows, uint32_t packed, const char *file, int line)
{
    const place at = {file, line};
    if (map.type == PTX_PTR)
        return tile_producer_add(p, map, first, rows, packed, at);
    return packed ? tile_pipeline_add_packed_at(p, of, first, rows, packed, file, line)
                  : tile_pipeline_add_at(p, of, first, rows, file, line);
}

static void copy_slot(tile_pipeline *p, tile_slot *s, ptx_val offset)
{
    ptx_fn *f = p->f;
    const uint32_t at_once = rows_at_once(s->units, ptx_block_x(f));
    const layout l = layout_of_matrices(s->units);
    const bool turns = layout_byte(&l, at_once, 0) != layout_rows(&l, at_once);
    ptx_val in_columns = ptx_gt(f, s->left, 0), to[2], from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, s->from);
    to[0] = to[1] = ptx_add(f, s->to[0], offset);
    if (turns)
        to[1] = ptx_add(f, s->to[1], offset);
    for (uint32_t row = 0; row < s->copied; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, s->rows_left, row), in_columns);
        if (row > 0)
            from = ptx_at(f, from, s->row_step);
        copy_unit(f, shared_at(f, PTX_U32, to[row / at_once % 2], layout_rows(&l, row)),
                  ptx_cast_ptr(f, from, PTX_U32), &in_bounds, PTX_NC);
    }
    ptx_add_to(f, s->from, UNIT_BYTES * s->units);
    ptx_sub_to(f, s->left, s->in_unit * s->units);
}

/* Starts to copy a stage: zeros after the last one. */
static void fill(tile_pipeline *p, ptx_val offset)
{
    for (uint32_t i = 0; i < p->slot_count; i++)
        copy_slot(p, &p->slots[i], offset);
    copy_commit(p->f);
}

/* Stages that are not refilled: the current one, and the one that a product in flight reads. */
static uint32_t held(const tile_pipeline *p)
{
    return p->is_async ? 2 : 1;
}

void tile_pipeline_start_at(tile_pipeline *p, const char *file, int line)
{
    const place at = {file, line};
    const uint32_t filled = p->stages - held(p);
    if (!require(p->f, at, !p->has_started && p->slot_count > 0,
                 "tile_pipeline_start: a pipeline with matrices starts once"))
        return;
    p->has_started = true;
    if (p->has_producer) {
        tile_producer_start(p);
        return;
    }
    for (uint32_t i = 0; i < filled; i++)
        fill(p, ptx_u32(i * p->stage_bytes));
    ptx_set(p->f, p->stage, (p->stages - 1) * p->stage_bytes);
    if (p->is_async)
        p->free = ptx_var(p->f, ptx_u32(filled * p->stage_bytes));
}

void tile_pipeline_next_at(tile_pipeline *p, const char *file, int line)
{
    const place at = {file, line};
    if (!require(p->f, at, p->has_started, "tile_pipeline_next: the pipeline has not started"))
        return;
    if (p->has_producer) {
        tile_producer_next(p);
        return;
    }
    copy_wait(p->f, p->stages - held(p) - 1);
    if (p->is_async)
        ptx_fence_async(p->f);
    ptx_barrier(p->f);
    fill(p, p->is_async ? p->free : p->stage);
    if (p->is_async)
        shared_next(p->f, p->free, p->stage_bytes, p->stages);
    shared_next(p->f, p->stage, p->stage_bytes, p->stages);
}

void tile_pipeline_end(tile_pipeline *p)
{
    if (p->has_producer) {
        tile_producer_end(p);
        return;
    }
    copy_wait(p->f, 0);
    ptx_barrier(p->f);
}

/* The current stage's offset has a constant part, and a part that is added to an address in the first stage. */
static uint32_t stage_byte(const tile_pipeline *p)
{
    return p->has_producer ? p->current * p->stage_bytes : 0;
}

static ptx_val stage_at(const tile_pipeline *p, ptx_val first)
{
    return p->has_producer ? first : ptx_add(p->f, first, p->stage);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Whether a slot has elements of the pipeline's type. */
static bool has_operand(const tile_pipeline *p, uint32_t slot)
{
    return slot < p->slot_count && p->slots[slot].in_unit == UNIT;
}

/* Lane 8 * i + j points to row j of ldmatrix's matrix i: for rows these are rows 0 to 7 and 8 to 15 of the first unit, then
 * of the second; for columns both units of rows 0 to 7, then of rows 8 to 15. */
tile_operand tile_operand_at(const tile_pipeline *p, uint32_t slot, ptx_val first, bool is_rows,
                             const char *file, int line)
{
    ptx_fn *f = p->f;
    const place at = {file, line};
    const layout l = layout_of_matrices(p->depth / UNIT);
    if (!require(f, at, has_operand(p, slot), "tile_rows, tile_columns: the pipeline has no such slot"))
        return (tile_operand){.f = f, .type = p->type, .is_rows = is_rows, .rows = UINT32_MAX, .pipeline = p};
    tile_operand o = {.f = f,
                      .type = p->type,
                      .is_rows = is_rows,
                      .rows = p->slots[slot].rows,
                      .steps = p->depth / TILE_STEP,
                      .byte = p->slots[slot].byte,
                      .pipeline = p};
    ptx_val lane = ptx_laneid(f), upper = ptx_shr(f, lane, 4), unit = upper, row;
    if (is_rows) {
        row = ptx_and(f, lane, A_ROWS - 1);
    } else {
        unit = ptx_bfe(f, lane, 3, 1);
        ptx_val in_eight = ptx_and(f, lane, B_COLUMNS - 1);
        row = ptx_mad(f, upper, B_COLUMNS, in_eight);
    }
    ptx_val mine = ptx_add(f, row, first), place_of = layout_place(f, &l, mine, unit);
    ptx_val line_at = ptx_add(f, layout_row_at(f, &l, mine), p->shared);
    for (uint32_t step = 0; step < o.steps; step++)
        o.at[step] =
            ptx_mad(f, step ? ptx_xor(f, place_of, TILE_STEP / UNIT * step) : place_of, UNIT_BYTES, line_at);
    return o;
}

tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line)
{
    const place at = {file, line};
    const bool fits = row_tiles > 0 && column_tiles > 0 && row_tiles <= TILE_MOST_SUMS / 4 / column_tiles;
    if (!require(f, at, fits && column_tiles % 2 == 0,
                 "tile_sums_open: row_tiles * column_tiles must be 1 to 32, and column_tiles even"))
        row_tiles = 1, column_tiles = 2;
    tile_sums s = {.f = f, .row_tiles = row_tiles, .column_tiles = column_tiles};
    for (uint32_t i = 0; i < 4 * row_tiles * column_tiles; i++)
        s.of[i] = ptx_var(f, ptx_f32(0));
    return s;
}

/* 16 rows of the operand's slot, from `row` on. */
static void load(const tile_operand *o, ptx_val at, uint32_t row, ptx_val out[4])
{
    const layout l = layout_of_matrices(o->steps * TILE_STEP / UNIT);
    const uint32_t byte = stage_byte(o->pipeline) + o->byte + layout_rows(&l, row);
    ptx_ldmatrix(o->f, 4, out, shared_at(o->f, o->type, at, byte));
}

void tile_multiply_at(const tile_operand *rows, const tile_operand *columns, tile_sums *sums,
                      const char *file, int line)
{
    enum { MOST_TILES = TILE_MOST_SUMS / 4 };
    ptx_fn *f = sums->f;
    const place at = {file, line};
    require(f, at, rows->is_rows && !columns->is_rows,
            "tile_multiply: the first operand must be of tile_rows, the second of tile_columns");
    require(f, at, rows->pipeline == columns->pipeline,
            "tile_multiply: both operands must be of one pipeline");
    require(f, at, A_ROWS * sums->row_tiles <= rows->rows && B_COLUMNS * sums->column_tiles <= columns->rows,
            "tile_multiply: the sums have more rows or columns than the operands");
    for (uint32_t step = 0; step < rows->steps && step < columns->steps; step++) {
        ptx_val a[MOST_TILES][4], b[4];
        ptx_val a_at = stage_at(rows->pipeline, rows->at[step]),
                b_at = stage_at(columns->pipeline, columns->at[step]);
        for (uint32_t i = 0; i < sums->row_tiles; i++)
            load(rows, a_at, A_ROWS * i, a[i]);
        for (uint32_t j = 0; j < sums->column_tiles; j++) {
            if (j % 2 == 0)
                load(columns, b_at, B_COLUMNS * j, b);
            for (uint32_t i = 0; i < sums->row_tiles; i++) {
                ptx_val *sum = &sums->of[4 * (i * sums->column_tiles + j)];
                tensor_multiply(f, rows->type, sum, a[i], &b[2 * (j % 2)], sum);
            }
        }
    }
}

/* ---- products with A in registers ---------------------------------------------------------------------------------- */

tile_product tile_product_open_at(tile_pipeline *p, uint32_t slot, tile_atom atom, const char *file, int line)
{
    ptx_fn *f = p->f;
    const place at = {file, line};
    const layout l = layout_of_matrices(p->depth / UNIT);
    const tile_slot *s = &p->slots[slot < p->slot_count ? slot : 0];
    tile_product t = {.f = f, .atom = atom, .type = p->type, .steps = p->depth / TILE_STEP, .pipeline = p};
    ptx_matrix matrix;
    if (!require(f, at, !p->has_started, "tile_product_open: the pipeline has started") ||
        !require(f, at, has_operand(p, slot), "tile_product_open: the pipeline has no such slot") ||
        !require(f, at, s->rows % (2 * B_COLUMNS) == 0 && s->rows <= 256,
                 "tile_product_open: the slot must have at most 256 rows, a multiple of 16"))
        return t;
    t.columns = s->rows;
    if (atom == TILE_MMA) {
        t.b = tile_operand_at(p, slot, ptx_u32(0), false, file, line);
        return t;
    }
    require(f, at, p->stages > 2, "tile_product_open: wgmma needs at least three stages");
    require(f, at, layout_matrix(&l, s->rows, s->units, false, &matrix),
            "tile_product_open: no descriptor describes the slot");
    p->is_async = true;
    ptx_val shared = ptx_shared_dynamic_at(f, p->type, WGMMA_ALIGN, file, line);
    t.descriptor = ptx_descriptor_at(f, ptx_at_bytes(f, shared, s->byte), matrix, file, line);
    return t;
}

/* B of a step: two units of each row further along k. */
static void issue_group(const tile_product *t, const ptx_val a[], tile_sums *sums, bool adds, place at)
{
    enum { STEP_PLACES = 2 /* of 16 bytes */ };
    ptx_fn *f = t->f;
    const ptx_wgmma_form form = {.types = t->type == PTX_BF16 ? PTX_WGMMA_BF16_F32 : PTX_WGMMA_F16_F32,
                                 .n = (int)t->columns};
    const uint32_t constant = stage_byte(t->pipeline) / UNIT_BYTES;
    ptx_val first = t->descriptor, b[TILE_MOST_STEPS];
    if (!t->pipeline->has_producer)
        first = ptx_add(f, first, ptx_cvt(f, PTX_U64, ptx_shr(f, t->pipeline->stage, 4)));
    for (uint32_t step = 0; step < t->steps; step++)
        b[step] = constant + step > 0 ? ptx_add(f, first, constant + STEP_PLACES * step) : first;
    ptx_wgmma_fence(f);
    for (uint32_t step = 0; step < t->steps; step++)
        ptx_wgmma_at(f, form, ptx_u32(adds || step > 0), sums->of, &a[4 * step], b[step], at.file, at.line);
    ptx_wgmma_commit(f);
}

static void issue_warp(const tile_product *t, const ptx_val a[], tile_sums *sums, bool adds)
{
    ptx_fn *f = t->f;
    for (uint32_t i = 0; !adds && i < 4 * sums->column_tiles; i++)
        ptx_set(f, sums->of[i], ptx_f32(0));
    for (uint32_t step = 0; step < t->steps; step++) {
        ptx_val b[4], at = stage_at(t->pipeline, t->b.at[step]);
        for (uint32_t j = 0; j < sums->column_tiles; j++) {
            if (j % 2 == 0)
                load(&t->b, at, B_COLUMNS * j, b);
            tensor_multiply(f, t->type, &sums->of[4 * j], &a[4 * step], &b[2 * (j % 2)], &sums->of[4 * j]);
        }
    }
}

void tile_product_issue_at(const tile_product *product, const ptx_val a[], tile_sums *sums, bool adds,
                           const char *file, int line)
{
    const place at = {file, line};
    if (!require(product->f, at, sums->row_tiles == 1 && B_COLUMNS * sums->column_tiles == product->columns,
                 "tile_product_issue: the sums must have one row tile, and the slot's rows as columns"))
        return;
    if (product->atom == TILE_WGMMA)
        issue_group(product, a, sums, adds, at);
    else
        issue_warp(product, a, sums, adds);
}

void tile_product_wait_at(const tile_product *product, uint32_t pending, const char *file, int line)
{
    if (product->atom == TILE_WGMMA)
        ptx_effect1(product->f, PTX_OP_WGMMA_WAIT, ptx_u32(pending), file, line);
}

void tile_sums_add_scaled(tile_sums *to, const tile_sums *from, const ptx_val factors[2])
{
    for (uint32_t i = 0; i < 4 * to->row_tiles * to->column_tiles; i++)
        ptx_fma_to(to->f, to->of[i], from->of[i], factors[i / 2 % 2]);
}

void tile_row_pointers(ptx_fn *f, const tile_matrix *of, ptx_val first, ptx_val out[2])
{
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    ptx_val row = ptx_add(f, lane.g, first);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val clamped = tail_clamp(f, i ? ptx_add(f, row, A_ROWS / 2) : row, of->rows);
        out[i] = ptx_var(f, ptx_at(f, of->data, ptx_mul_wide(f, clamped, of->stride)));
    }
}

void tile_row_load(ptx_fn *f, const ptx_val rows[2], uint32_t column, ptx_val in_bounds, ptx_val to[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val at = ptx_at_const(f, rows[i], column);
        ptx_set(f, to[i], ptx_f32(0));
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, to[i], ptx_load_hint(f, at, PTX_NC));
        }
    }
}

void tile_row_advance(ptx_fn *f, const ptx_val rows[2], uint32_t columns)
{
    for (uint32_t i = 0; i < 2; i++)
        ptx_set(f, rows[i], ptx_at_const(f, rows[i], columns));
}

/* ---- packed rows -------------------------------------------------------------------------------------------------- */

tile_words tile_words_open_at(const tile_pipeline *p, uint32_t slot, ptx_val first, const char *file,
                              int line)
{
    ptx_fn *f = p->f;
    const place at = {file, line};
    tile_words w = {.f = f, .pipeline = p};
    if (!require(f, at, slot < p->slot_count, "tile_words_open: the pipeline has no such slot"))
        return w;
    const tile_slot *s = &p->slots[slot];
    const layout l = layout_of_matrices(s->units);
    w.units = s->units;
    w.byte = s->byte;
    w.lower = layout_rows(&l, A_ROWS / 2);
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    ptx_val mine = ptx_add(f, lane.g, first), line_at = ptx_add(f, layout_row_at(f, &l, mine), p->shared);
    ptx_val place_of = layout_place(f, &l, mine, ptx_u32(0));
    for (uint32_t unit = 0; unit < w.units; unit++)
        w.at[unit] = ptx_mad(f, unit ? ptx_xor(f, place_of, unit) : place_of, UNIT_BYTES, line_at);
    return w;
}

void tile_words_load(const tile_words *words, ptx_val out[])
{
    ptx_fn *f = words->f;
    for (uint32_t unit = 0; unit < words->units; unit++) {
        ptx_val at = stage_at(words->pipeline, words->at[unit]);
        for (uint32_t is_lower = 0; is_lower < 2; is_lower++)
            ptx_load_vec(f, 4, &out[4 * (is_lower * words->units + unit)],
                         shared_at(f, PTX_U32, at,
                                   stage_byte(words->pipeline) + words->byte + is_lower * words->lower),
                         PTX_PLAIN);
    }
}

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* In a row of two column tiles a lane has columns 2t and 2t + 1 of each. */
typedef struct sink {
    ptx_fn *f;
    const tile_matrix *y;
    tile_map *map;
    const void *of;
    ptx_val is_odd; /* t */
} sink;

/* A pair of neighbouring sums as elements of y, U32; 0 if out of bounds. */
static ptx_val narrow_sums(const sink *s, const ptx_val sum[2], ptx_val row, ptx_val column, ptx_val in_rows)
{
    ptx_fn *f = s->f;
    ptx_val word = ptx_var(f, ptx_u32(0)), in_bounds = ptx_and(f, ptx_lt(f, column, s->y->columns), in_rows);
    PTX_WHEN (f, in_bounds) {
        ptx_val low = s->map ? s->map(f, s->of, sum[0], row, column) : sum[0];
        ptx_val high = s->map ? s->map(f, s->of, sum[1], row, ptx_add(f, column, 1)) : sum[1];
        ptx_set(f, word, narrow_pair(f, (ptx_type)s->y->data.element, low, high));
    }
    return word;
}

/* Even lanes take four neighbours of the first tile, odd lanes of the second, so a row's four lanes store 32 bytes. */
static void exchange(const sink *s, ptx_val words[2])
{
    ptx_fn *f = s->f;
    ptx_val given = ptx_select(f, s->is_odd, words[0], words[1]),
            kept = ptx_select(f, s->is_odd, words[1], words[0]), taken = ptx_shfl_xor(f, given, 1);
    words[0] = ptx_select(f, s->is_odd, taken, kept);
    words[1] = ptx_select(f, s->is_odd, kept, taken);
}

/* Stores this lane's four neighbours, `further` columns after `stored`, in the row from `start` on. */
static void store_words(const sink *s, ptx_val words[2], ptx_val start, ptx_val stored, uint32_t further,
                        ptx_val in_rows)
{
    ptx_fn *f = s->f;
    exchange(s, words);
    ptx_val at = ptx_add(f, stored, further), is_in = ptx_lt(f, at, s->y->columns);
    ptx_val to = ptx_cast_ptr(f, ptx_at(f, start, at), PTX_U32);
    PTX_WHEN (f, ptx_and(f, is_in, in_rows)) {
        ptx_store_vec(f, 2, to, words, PTX_PLAIN);
    }
}

void tile_store_at(const tile_sums *sums, const tile_matrix *y, ptx_val row, ptx_val column, tile_map *map,
                   const void *of, const char *file, int line)
{
    ptx_fn *f = sums->f;
    const place here = {file, line};
    if (!require(f, here, y->data.type == PTX_PTR && is_half((ptx_type)y->data.element),
                 "tile_store: y must be of f16 or bf16"))
        return;
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    ptx_val odd = ptx_and(f, lane.t, 1), upper = ptx_shr(f, lane.t, 1);
    const sink s = {f, y, map, of, ptx_ne(f, odd, 0)};
    ptx_val first = ptx_add(f, lane.g, row), own = ptx_mad(f, lane.t, 2, column);
    ptx_val stored = ptx_mad(f, odd, B_COLUMNS, ptx_mad(f, upper, 4, column));
    for (uint32_t i = 0; i < 2 * sums->row_tiles; i++) {
        ptx_val number = i == 0 ? first : ptx_add(f, first, A_ROWS / 2 * i),
                in_rows = ptx_lt(f, number, y->rows);
        ptx_val start = ptx_at(f, y->data, ptx_mul_wide(f, number, y->stride));
        for (uint32_t j = 0; j < sums->column_tiles; j += 2) {
            ptx_val words[2];
            for (uint32_t tile = 0; tile < 2; tile++)
                words[tile] =
                    narrow_sums(&s, &sums->of[4 * (i / 2 * sums->column_tiles + j + tile) + i % 2 * 2],
                                number, ptx_add(f, own, B_COLUMNS * (j + tile)), in_rows);
            store_words(&s, words, start, stored, B_COLUMNS * j, in_rows);
        }
    }
}

/* Packs two sums of a column of y, in neighbouring rows. Sums out of bounds are not mapped. */
static ptx_val narrow_column(const sink *s, const ptx_val sum[2], ptx_val row, ptx_val column)
{
    ptx_fn *f = s->f;
    ptx_val mapped[2] = {sum[0], sum[1]};
    for (uint32_t i = 0; s->map && i < 2; i++) {
        ptx_val own = i ? ptx_add(f, row, 1) : row, in_rows = ptx_lt(f, own, s->y->rows);
        mapped[i] = ptx_var(f, ptx_f32(0));
        PTX_WHEN (f, ptx_and(f, ptx_lt(f, column, s->y->columns), in_rows)) {
            ptx_set(f, mapped[i], s->map(f, s->of, sum[i], own, column));
        }
    }
    return narrow_pair(f, (ptx_type)s->y->data.element, mapped[0], mapped[1]);
}

/* Each 8 by 8 sums are transposed within the warp: lane (g, t) then has row g of y and columns 2t and 2t + 1. */
void tile_store_transposed_at(const tile_sums *sums, const tile_matrix *y, ptx_val row, ptx_val column,
                              tile_map *map, const void *of, const char *file, int line)
{
    ptx_fn *f = sums->f;
    const place here = {file, line};
    if (!require(f, here, y->data.type == PTX_PTR && is_half((ptx_type)y->data.element),
                 "tile_store_transposed: y must be of f16 or bf16"))
        return;
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    ptx_val odd = ptx_and(f, lane.t, 1), upper = ptx_shr(f, lane.t, 1);
    const sink s = {f, y, map, of, ptx_ne(f, odd, 0)};
    ptx_val first = ptx_add(f, lane.g, row), own_row = ptx_mad(f, lane.t, 2, row),
            own_column = ptx_add(f, lane.g, column);
    ptx_val stored = ptx_mad(f, odd, B_COLUMNS, ptx_mad(f, upper, 4, column));
    for (uint32_t j = 0; j < sums->column_tiles; j++) {
        ptx_val number = ptx_add(f, first, B_COLUMNS * j), in_rows = ptx_lt(f, number, y->rows);
        ptx_val start = ptx_at(f, y->data, ptx_mul_wide(f, number, y->stride));
        for (uint32_t i = 0; i < sums->row_tiles; i++) {
            const ptx_val *of_tile = &sums->of[4 * (i * sums->column_tiles + j)];
            ptx_val words[2];
            for (uint32_t half = 0; half < 2; half++) {
                ptx_val of_pair = ptx_add(f, own_row, B_COLUMNS * j),
                        of_row = ptx_add(f, own_column, A_ROWS * i + B_COLUMNS * half);
                ptx_val word = narrow_column(&s, &of_tile[2 * half], of_pair, of_row);
                words[half] = ptx_movmatrix_trans(f, word);
            }
            store_words(&s, words, start, stored, A_ROWS * i, in_rows);
        }
    }
}
