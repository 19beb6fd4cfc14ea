/* Products of tiles, for authors of kernels. */
#include <kiln/author/tile.h>

#include "copy.h"
#include "fragment.h"
#include "lanes.h"
#include "narrow.h"
#include "shared.h"
#include "tensor.h"

enum { ELEMENT_BYTES = 2, UNIT = UNIT_BYTES / ELEMENT_BYTES, A_ROWS = 16, B_COLUMNS = 8 };

/* An author's source line. */
typedef struct place {
    const char *file;
    int line;
} place;

static bool require(ptx_fn *f, place at, bool holds, const char *what)
{
    return ptx_require_at(f, holds, what, at.file, at.line);
}

static bool is_half(ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16;
}

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

static bool is_depth(uint32_t depth)
{
    return depth == 16 || depth == 32 || depth == 64;
}

static layout layout_of(uint32_t depth)
{
    return layout_of_matrices(depth / UNIT);
}

/* Rows of one pass of the thread block; and of all passes that cover `rows`. */
static uint32_t rows_at_once(uint32_t depth, uint32_t threads)
{
    return threads / (depth / UNIT);
}

static uint32_t whole_rows(uint32_t depth, uint32_t threads, uint32_t rows)
{
    const uint32_t at_once = rows_at_once(depth, threads);
    return (rows + at_once - 1) / at_once * at_once;
}

uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows)
{
    if (!is_depth(depth) || threads < WARP_LANES || stages > TILE_MOST_STAGES || rows > TILE_MOST_ROWS)
        return 0;
    return stages * whole_rows(depth, threads, rows) * ELEMENT_BYTES * depth;
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
    const uint32_t units = p->depth / UNIT, at_once = rows_at_once(p->depth, ptx_block_x(f));
    const layout l = layout_of(p->depth);
    ptx_val tid = ptx_tid_x(f), unit = ptx_and(f, tid, units - 1), row = ptx_div(f, tid, units);
    ptx_val number = ptx_add(f, row, first), element = ptx_mul(f, unit, UNIT);
    ptx_val start = ptx_at(f, of->data, ptx_mul_wide(f, number, of->stride));
    s->from = ptx_var(f, ptx_address(f, ptx_at(f, start, element)));
    s->row_step = ptx_mul_wide(f, of->stride, ELEMENT_BYTES * at_once);
    s->rows_left = ptx_sub(f, ptx_as(f, PTX_S32, of->rows), ptx_as(f, PTX_S32, number));
    s->left = ptx_var(f, ptx_sub(f, ptx_as(f, PTX_S32, of->columns), ptx_as(f, PTX_S32, element)));
    for (uint32_t odd = 0; odd < 2; odd++) {
        ptx_val mine = odd ? ptx_add(f, row, at_once) : row;
        ptx_val in_slot = ptx_add(f, layout_at(f, &l, mine, unit), s->byte - odd * layout_rows(&l, at_once));
        s->to[odd] = ptx_add(f, in_slot, p->shared);
    }
}

uint32_t tile_pipeline_add_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                              const char *file, int line)
{
    const place at = {file, line};
    const layout l = layout_of(p->depth);
    const bool is_well = require(p->f, at, p->slot_count < TILE_MOST_SLOTS,
                                 "tile_pipeline_add: a pipeline has at most four matrices") &&
                         require(p->f, at, !p->has_started, "tile_pipeline_add: the pipeline has started") &&
                         require(p->f, at, rows > 0 && rows <= TILE_MOST_ROWS,
                                 "tile_pipeline_add: there must be 1 to 1024 rows") &&
                         require(p->f, at, ptx_block_x(p->f) >= WARP_LANES,
                                 "tile_pipeline_add: a thread block must be whole warps") &&
                         require(p->f, at, of->data.type == PTX_PTR && of->data.element == p->type,
                                 "tile_pipeline_add: the matrix must be of the pipeline's type");
    if (!is_well)
        return 0;
    tile_slot *s = &p->slots[p->slot_count];
    *s = (tile_slot){
        .rows = rows, .copied = whole_rows(p->depth, ptx_block_x(p->f), rows), .byte = p->stage_bytes};
    init_slot(p, s, of, first);
    p->stage_bytes += layout_rows(&l, s->copied);
    return p->slot_count++;
}

static void copy_slot(tile_pipeline *p, tile_slot *s, ptx_val offset)
{
    ptx_fn *f = p->f;
    const uint32_t at_once = rows_at_once(p->depth, ptx_block_x(f));
    const layout l = layout_of(p->depth);
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
    ptx_add_to(f, s->from, ELEMENT_BYTES * p->depth);
    ptx_sub_to(f, s->left, p->depth);
}

/* After the last stage it copies zeros. */
static void fill(tile_pipeline *p, ptx_val offset)
{
    for (uint32_t i = 0; i < p->slot_count; i++)
        copy_slot(p, &p->slots[i], offset);
    copy_commit(p->f);
}

void tile_pipeline_start_at(tile_pipeline *p, const char *file, int line)
{
    const place at = {file, line};
    const uint32_t last = p->stages - 1;
    if (!require(p->f, at, !p->has_started && p->slot_count > 0,
                 "tile_pipeline_start: a pipeline with matrices starts once"))
        return;
    p->has_started = true;
    for (uint32_t i = 0; i < last; i++)
        fill(p, ptx_u32(i * p->stage_bytes));
    ptx_set(p->f, p->stage, last * p->stage_bytes);
}

void tile_pipeline_next_at(tile_pipeline *p, const char *file, int line)
{
    const place at = {file, line};
    if (!require(p->f, at, p->has_started, "tile_pipeline_next: the pipeline has not started"))
        return;
    copy_wait(p->f, p->stages - 2);
    ptx_barrier(p->f);
    fill(p, p->stage);
    shared_next(p->f, p->stage, p->stage_bytes, p->stages);
}

void tile_pipeline_end(tile_pipeline *p)
{
    copy_wait(p->f, 0);
    ptx_barrier(p->f);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Lane 8 * i + j points to row j of ldmatrix's matrix i: for rows these are rows 0 to 7 and 8 to 15 of the first unit, then
 * of the second; for columns both units of rows 0 to 7, then of rows 8 to 15. */
tile_operand tile_operand_at(const tile_pipeline *p, uint32_t slot, ptx_val first, bool is_rows,
                             const char *file, int line)
{
    ptx_fn *f = p->f;
    const place at = {file, line};
    const layout l = layout_of(p->depth);
    if (!require(f, at, slot < p->slot_count, "tile_rows, tile_columns: the pipeline has no such slot"))
        return (tile_operand){.f = f, .type = p->type, .is_rows = is_rows, .rows = UINT32_MAX};
    tile_operand o = {.f = f,
                      .type = p->type,
                      .is_rows = is_rows,
                      .rows = p->slots[slot].rows,
                      .steps = p->depth / TILE_STEP,
                      .byte = p->slots[slot].byte,
                      .stage = p->stage};
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
    const layout l = layout_of(o->steps * TILE_STEP);
    ptx_ldmatrix(o->f, 4, out, shared_at(o->f, o->type, at, o->byte + layout_rows(&l, row)));
}

void tile_multiply_at(const tile_operand *rows, const tile_operand *columns, tile_sums *sums,
                      const char *file, int line)
{
    enum { MOST_TILES = TILE_MOST_SUMS / 4 };
    ptx_fn *f = sums->f;
    const place at = {file, line};
    require(f, at, rows->is_rows && !columns->is_rows,
            "tile_multiply: the first operand must be of tile_rows, the second of tile_columns");
    require(f, at, rows->stage.reg == columns->stage.reg,
            "tile_multiply: both operands must be of one pipeline");
    require(f, at, A_ROWS * sums->row_tiles <= rows->rows && B_COLUMNS * sums->column_tiles <= columns->rows,
            "tile_multiply: the sums have more rows or columns than the operands");
    for (uint32_t step = 0; step < rows->steps && step < columns->steps; step++) {
        ptx_val a[MOST_TILES][4], b[4];
        ptx_val a_at = ptx_add(f, rows->at[step], rows->stage),
                b_at = ptx_add(f, columns->at[step], columns->stage);
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

/* Even lanes take four neighbours of the first tile, odd ones of the second: so a row's four lanes store 32 bytes. */
static void exchange(const sink *s, ptx_val words[2])
{
    ptx_fn *f = s->f;
    ptx_val given = ptx_select(f, s->is_odd, words[0], words[1]),
            kept = ptx_select(f, s->is_odd, words[1], words[0]), taken = ptx_shfl_xor(f, given, 1);
    words[0] = ptx_select(f, s->is_odd, taken, kept);
    words[1] = ptx_select(f, s->is_odd, kept, taken);
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
            exchange(&s, words);
            ptx_val at = ptx_add(f, stored, B_COLUMNS * j), is_in = ptx_lt(f, at, y->columns);
            ptx_val to = ptx_cast_ptr(f, ptx_at(f, start, at), PTX_U32);
            PTX_WHEN (f, ptx_and(f, is_in, in_rows)) {
                ptx_store_vec(f, 2, to, words, PTX_PLAIN);
            }
        }
    }
}
