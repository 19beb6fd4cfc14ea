/* Products of tiles, for authors of kernels. */
#include <kiln/author/tile.h>

#include "copy.h"
#include "fragment.h"
#include "lanes.h"
#include "narrow.h"
#include "shared.h"
#include "tensor.h"

enum { ELEMENT_BYTES = 2, UNIT = UNIT_BYTES / ELEMENT_BYTES, A_ROWS = 16, B_COLUMNS = 8 };

static layout layout_of(const tile_pipeline *p)
{
    return layout_of_matrices(p->depth / UNIT);
}

/* ---- the pipeline ------------------------------------------------------------------------------------------------- */

static uint32_t rows_at_once(uint32_t depth, uint32_t threads)
{
    return threads / (depth / UNIT);
}

/* Rows that are copied, which may be more than those that are asked for. */
static uint32_t whole_rows(uint32_t depth, uint32_t threads, uint32_t rows)
{
    const uint32_t at_once = rows_at_once(depth, threads);
    return (rows + at_once - 1) / at_once * at_once;
}

uint32_t tile_pipeline_bytes(uint32_t stages, uint32_t depth, uint32_t threads, uint32_t rows)
{
    return stages * whole_rows(depth, threads, rows) * ELEMENT_BYTES * depth;
}

tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line)
{
    ptx_require_at(f, type == PTX_F16 || type == PTX_BF16, "tile_pipeline_open: the type must be f16 or bf16",
                   file, line);
    ptx_require_at(f, ptx_block_x(f) % WARP_LANES == 0,
                   "tile_pipeline_open: a thread block must be whole warps", file, line);
    if (!ptx_require_at(f, stages >= 2, "tile_pipeline_open: at least two stages are needed", file, line))
        stages = 2;
    if (!ptx_require_at(f, depth == 16 || depth == 32 || depth == 64,
                        "tile_pipeline_open: a stage must have 16, 32 or 64 elements", file, line))
        depth = 16;
    return (tile_pipeline){.f = f,
                           .type = type,
                           .stages = stages,
                           .depth = depth,
                           .shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32))};
}

/* Neighbouring threads copy neighbouring units of a row. */
uint32_t tile_pipeline_add_at(tile_pipeline *p, const tile_matrix *of, ptx_val first, uint32_t rows,
                              const char *file, int line)
{
    ptx_fn *f = p->f;
    if (!ptx_require_at(f, p->slot_count < TILE_MOST_SLOTS,
                        "tile_pipeline_add: a pipeline has at most four matrices", file, line))
        return 0;
    const uint32_t units = p->depth / UNIT, threads = ptx_block_x(f),
                   at_once = rows_at_once(p->depth, threads);
    const layout l = layout_of(p);
    tile_slot *s = &p->slots[p->slot_count];
    *s = (tile_slot){.rows = whole_rows(p->depth, threads, rows), .byte = p->stage_bytes};
    ptx_val tid = ptx_tid_x(f), unit = ptx_and(f, tid, units - 1), row = ptx_div(f, tid, units);
    ptx_val number = ptx_add(f, row, first), element = ptx_mul(f, unit, UNIT);
    ptx_val start = ptx_at(f, of->data, ptx_mul_wide(f, number, of->stride));
    s->from = ptx_var(f, ptx_address(f, ptx_at(f, start, element)));
    s->row_step = ptx_mul_wide(f, of->stride, ELEMENT_BYTES * at_once);
    s->rows_left = ptx_sub(f, ptx_as(f, PTX_S32, of->rows), ptx_as(f, PTX_S32, number));
    s->left = ptx_var(f, ptx_sub(f, ptx_as(f, PTX_S32, of->columns), ptx_as(f, PTX_S32, element)));
    ptx_val in_slot = ptx_add(f, layout_at(f, &l, row, unit), s->byte);
    s->to = ptx_add(f, in_slot, p->shared);
    p->stage_bytes += layout_rows(&l, s->rows);
    return p->slot_count++;
}

static void copy_slot(tile_pipeline *p, tile_slot *s, ptx_val offset)
{
    ptx_fn *f = p->f;
    const uint32_t at_once = rows_at_once(p->depth, ptx_block_x(f));
    const layout l = layout_of(p);
    ptx_val in_columns = ptx_gt(f, s->left, 0), to = ptx_add(f, s->to, offset);
    ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, s->from);
    for (uint32_t row = 0; row < s->rows; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, s->rows_left, row), in_columns);
        if (row > 0)
            from = ptx_at(f, from, s->row_step);
        copy_unit(f, shared_at(f, PTX_U32, to, layout_rows(&l, row)), ptx_cast_ptr(f, from, PTX_U32),
                  &in_bounds, PTX_NC);
    }
    ptx_add_to(f, s->from, ELEMENT_BYTES * p->depth);
    ptx_sub_to(f, s->left, p->depth);
}

/* Behind the last stage it copies zeros. */
static void fill(tile_pipeline *p, ptx_val offset)
{
    for (uint32_t i = 0; i < p->slot_count; i++)
        copy_slot(p, &p->slots[i], offset);
    copy_commit(p->f);
}

void tile_pipeline_start(tile_pipeline *p)
{
    const uint32_t last = p->stages - 1;
    for (uint32_t i = 0; i < last; i++)
        fill(p, ptx_u32(i * p->stage_bytes));
    p->stage = ptx_var(p->f, ptx_u32(last * p->stage_bytes));
}

void tile_pipeline_next(tile_pipeline *p)
{
    copy_wait(p->f, p->stages - 2);
    ptx_barrier(p->f);
    fill(p, p->stage);
    shared_next(p->f, p->stage, p->stage_bytes, p->stages);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Lane 8 * i + j points to row j of matrix i of ldmatrix: `row` and `unit` are this lane's in a step. */
static tile_operand operand(const tile_pipeline *p, uint32_t slot, ptx_val first, ptx_val row, ptx_val unit)
{
    ptx_fn *f = p->f;
    const layout l = layout_of(p);
    tile_operand o = {.of = p, .slot = slot};
    ptx_val mine = ptx_add(f, row, first), place = layout_place(f, &l, mine, unit);
    ptx_val line = ptx_add(f, layout_row_at(f, &l, mine), p->shared);
    for (uint32_t step = 0; step < p->depth / TILE_STEP; step++)
        o.at[step] = ptx_mad(f, step ? ptx_xor(f, place, TILE_STEP / UNIT * step) : place, UNIT_BYTES, line);
    return o;
}

/* Matrices: rows 0 to 7 and 8 to 15 of the first unit, then of the second. */
tile_operand tile_rows(const tile_pipeline *p, uint32_t slot, ptx_val first)
{
    ptx_val lane = ptx_laneid(p->f), row = ptx_and(p->f, lane, A_ROWS - 1), unit = ptx_shr(p->f, lane, 4);
    return operand(p, slot, first, row, unit);
}

/* Both units of rows 0 to 7, then of rows 8 to 15. */
tile_operand tile_columns(const tile_pipeline *p, uint32_t slot, ptx_val first)
{
    ptx_fn *f = p->f;
    ptx_val lane = ptx_laneid(f), in_eight = ptx_and(f, lane, B_COLUMNS - 1), upper = ptx_shr(f, lane, 4);
    ptx_val row = ptx_mad(f, upper, B_COLUMNS, in_eight), unit = ptx_bfe(f, lane, 3, 1);
    return operand(p, slot, first, row, unit);
}

tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line)
{
    const bool fits = row_tiles > 0 && column_tiles > 0 && row_tiles <= TILE_MOST_SUMS / 4 / column_tiles;
    if (!ptx_require_at(f, fits && column_tiles % 2 == 0,
                        "tile_sums_open: at most 32 tiles are possible, and an even number in a row", file,
                        line))
        row_tiles = 1, column_tiles = 2;
    tile_sums s = {.f = f, .row_tiles = row_tiles, .column_tiles = column_tiles};
    for (uint32_t i = 0; i < 4 * row_tiles * column_tiles; i++)
        s.of[i] = ptx_var(f, ptx_f32(0));
    return s;
}

/* 16 rows of the operand's slot, from `row` on. */
static void load(const tile_operand *o, ptx_val at, uint32_t row, ptx_val out[4])
{
    const tile_pipeline *p = o->of;
    const layout l = layout_of(p);
    ptx_ldmatrix(p->f, 4, out, shared_at(p->f, p->type, at, p->slots[o->slot].byte + layout_rows(&l, row)));
}

void tile_multiply(const tile_operand *rows, const tile_operand *columns, tile_sums *sums)
{
    enum { MOST_TILES = TILE_MOST_SUMS / 4 };
    const tile_pipeline *p = rows->of;
    ptx_fn *f = p->f;
    for (uint32_t step = 0; step < p->depth / TILE_STEP; step++) {
        ptx_val a[MOST_TILES][4], b[4];
        ptx_val a_at = ptx_add(f, rows->at[step], p->stage), b_at = ptx_add(f, columns->at[step], p->stage);
        for (uint32_t i = 0; i < sums->row_tiles; i++)
            load(rows, a_at, A_ROWS * i, a[i]);
        for (uint32_t j = 0; j < sums->column_tiles; j++) {
            if (j % 2 == 0)
                load(columns, b_at, B_COLUMNS * j, b);
            for (uint32_t i = 0; i < sums->row_tiles; i++) {
                ptx_val *sum = &sums->of[4 * (i * sums->column_tiles + j)];
                tensor_multiply(f, p->type, sum, a[i], &b[2 * (j % 2)], sum);
            }
        }
    }
}

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* Of a row of two column tiles a lane has columns 2t and 2t + 1 of each. */
typedef struct sink {
    ptx_fn *f;
    ptx_type type;
    const tile_matrix *y;
    tile_map *map;
    const void *of;
    fragment_lane lane;
    ptx_val is_odd; /* t */
} sink;

/* A pair of neighbouring sums as elements of y, U32; 0 where they are not in y. */
static ptx_val narrow_sums(const sink *s, const ptx_val sum[2], ptx_val row, ptx_val column, ptx_val in_rows)
{
    ptx_fn *f = s->f;
    ptx_val word = ptx_var(f, ptx_u32(0)), in_bounds = ptx_and(f, ptx_lt(f, column, s->y->columns), in_rows);
    PTX_WHEN (f, in_bounds) {
        ptx_val low = s->map ? s->map(f, s->of, sum[0], row, column) : sum[0];
        ptx_val high = s->map ? s->map(f, s->of, sum[1], row, ptx_add(f, column, 1)) : sum[1];
        ptx_set(f, word, narrow_pair(f, s->type, low, high));
    }
    return word;
}

/* Even lanes take four neighbours of the first tile, odd ones of the second: so the four lanes of a row store 32 bytes. */
static void exchange(const sink *s, ptx_val words[2])
{
    ptx_fn *f = s->f;
    ptx_val given = ptx_select(f, s->is_odd, words[0], words[1]),
            kept = ptx_select(f, s->is_odd, words[1], words[0]), taken = ptx_shfl_xor(f, given, 1);
    words[0] = ptx_select(f, s->is_odd, taken, kept);
    words[1] = ptx_select(f, s->is_odd, kept, taken);
}

void tile_store(const tile_sums *sums, ptx_type type, const tile_matrix *y, ptx_val row, ptx_val column,
                tile_map *map, const void *of)
{
    ptx_fn *f = sums->f;
    sink s = {f, type, y, map, of, fragment_find_lane(f, ptx_laneid(f)), {0}};
    ptx_val odd = ptx_and(f, s.lane.t, 1), upper = ptx_shr(f, s.lane.t, 1);
    s.is_odd = ptx_ne(f, odd, 0);
    ptx_val first = ptx_add(f, s.lane.g, row), own = ptx_mad(f, s.lane.t, 2, column);
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
