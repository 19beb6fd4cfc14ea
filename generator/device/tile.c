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

/* Units of 16 bytes of a row in a stage. `packed`: elements per byte, or 0 for 16-bit elements. Returns 0 if the depth is invalid
 * or the units are not whole. */
static uint32_t stage_units(uint32_t depth, uint32_t packed)
{
    const uint64_t unit_elements = packed ? UINT64_C(1) * packed * UNIT_BYTES : UNIT;
    const bool is_depth = (depth == 16 || depth == 32 || depth == 64) && packed <= depth;
    return is_depth && depth % unit_elements == 0 ? (uint32_t)(depth / unit_elements) : 0;
}

/* Rows of one pass of the thread block; rows of all passes that cover `rows`. */
static uint32_t rows_at_once(uint32_t units, uint32_t threads)
{
    return threads / units;
}

static uint32_t whole_rows(uint32_t units, uint32_t threads, uint32_t rows)
{
    const uint32_t at_once = rows_at_once(units, threads);
    return (rows + at_once - 1) / at_once * at_once;
}

uint32_t tile_pipeline_packed_bytes(uint32_t stages, uint32_t depth, uint32_t packed, uint32_t threads,
                                    uint32_t rows)
{
    const uint32_t units = stage_units(depth, packed);
    if (units == 0 || stages < 2 || stages > TILE_MOST_STAGES || rows > TILE_MOST_ROWS ||
        threads % WARP_LANES != 0)
        return 0;
    if (threads == 0)
        return tile_producer_bytes(stages, units, rows);
    return stages * whole_rows(units, threads, rows) * UNIT_BYTES * units;
}

tile_pipeline tile_pipeline_open_at(ptx_fn *f, ptx_type type, uint32_t stages, uint32_t depth,
                                    const char *file, int line)
{
    TILE_CALL(f);
    require(f, is_half(type), "tile_pipeline_open: the type must be f16 or bf16");
    require(f, ptx_block_x(f) % WARP_LANES == 0, "tile_pipeline_open: a thread block must be whole warps");
    if (!require(f, stages >= 2 && stages <= TILE_MOST_STAGES,
                 "tile_pipeline_open: there must be 2 to 16 stages"))
        stages = 2;
    if (!require(f, stage_units(depth, 0) > 0, "tile_pipeline_open: a stage must have 16, 32 or 64 elements"))
        depth = TILE_STEP;
    return (tile_pipeline){.f = f,
                           .type = type,
                           .stages = stages,
                           .depth = depth,
                           .shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32)),
                           .stage = ptx_var(f, ptx_u32(0))};
}

/* Neighbouring threads copy neighbouring units of a row. */
static void init_slot(tile_pipeline *p, tile_slot *s, const tile_matrix *of)
{
    ptx_fn *f = p->f;
    const uint32_t units = s->units, at_once = rows_at_once(units, ptx_block_x(f));
    const uint32_t element_bytes = UNIT_BYTES / s->in_unit;
    const layout l = layout_of_matrices(units);
    ptx_val tid = ptx_tid_x(f), unit = ptx_and(f, tid, units - 1), row = ptx_div(f, tid, units);
    ptx_val number = ptx_add(f, row, s->first), element = ptx_mul(f, unit, s->in_unit);
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

/* Poison, which has no type, passes: it was reported. */
static bool is_u32(ptx_val v)
{
    return v.type == PTX_U32 || v.type == PTX_NONE;
}

/* Returns false for an immediate that is not a multiple; a register's value is unknown. */
static bool may_be_multiple(ptx_val v, uint32_t of)
{
    uint64_t value;
    return !ptx_is_immediate(v, &value) || value % of == 0;
}

static bool can_copy(const tile_pipeline *p, const tile_matrix *of, uint32_t rows, bool is_packed)
{
    ptx_fn *f = p->f;
    const ptx_type type = of->data.type == PTX_PTR ? (ptx_type)of->data.element : PTX_NONE;
    return require(f, is_packed || type == p->type,
                   "tile_pipeline_add: the matrix must be of the pipeline's type") &&
           require(f, !is_packed || type == PTX_U8, "tile_pipeline_add_packed: the matrix must be of u8") &&
           require(f, is_u32(of->columns) && is_u32(of->stride),
                   "tile_pipeline_add: the matrix's columns and stride must be u32") &&
           require(f,
                   may_be_multiple(of->columns, is_packed ? UNIT_BYTES : UNIT) &&
                       may_be_multiple(of->stride, is_packed ? UNIT_BYTES : UNIT),
                   "tile_pipeline_add: the matrix's columns and stride must be multiples of 16 bytes") &&
           require(f, rows > 0 && rows <= TILE_MOST_ROWS,
                   "tile_pipeline_add: there must be 1 to 1024 rows") &&
           require(f, ptx_block_x(f) >= WARP_LANES, "tile_pipeline_add: a thread block must be whole warps");
}

uint32_t tile_pipeline_add_at(tile_pipeline *p, ptx_val map, const tile_matrix *of, ptx_val first,
                              uint32_t rows, uint32_t packed, const char *file, int line)
{
    ptx_fn *f = p->f;
    const bool has_map = map.type == PTX_PTR;
    const uint32_t units = stage_units(p->depth, packed);
    TILE_CALL(f);
    if (!require(f, units > 0, "tile_pipeline_add_packed: a row of a stage must be a multiple of 16 bytes") ||
        !require(f, p->slot_count < TILE_MOST_SLOTS && !p->has_started,
                 "tile_pipeline_add: a pipeline has at most four matrices, before it starts") ||
        !require(f, is_u32(of->rows) && is_u32(first),
                 "tile_pipeline_add: the matrix's rows and the first row must be u32") ||
        !require(f, p->slot_count == 0 || p->has_producer == has_map,
                 "tile_pipeline_add: a pipeline needs a map for each matrix, or no map") ||
        !(has_map ? tile_producer_can_copy(p, rows) : can_copy(p, of, rows, packed > 0)))
        return 0;
    tile_slot *s = &p->slots[p->slot_count];
    *s = (tile_slot){.rows = rows,
                     .copied = has_map ? rows : whole_rows(units, ptx_block_x(f), rows),
                     .units = units,
                     .in_unit = packed ? UNIT_BYTES : UNIT,
                     .byte = p->stage_bytes,
                     .map = map,
                     .first = first};
    if (!has_map)
        init_slot(p, s, of);
    p->has_producer = has_map;
    p->is_async |= has_map;
    p->stage_bytes += has_map ? tile_producer_slot_bytes(units, rows) : UNIT_BYTES * units * s->copied;
    return p->slot_count++;
}

static void copy_slot(tile_pipeline *p, tile_slot *s, ptx_val offset)
{
    ptx_fn *f = p->f;
    const uint32_t at_once = rows_at_once(s->units, ptx_block_x(f));
    const layout l = layout_of_matrices(s->units);
    const bool is_swizzled = layout_byte(&l, at_once, 0) != layout_rows(&l, at_once);
    ptx_val in_columns = ptx_gt(f, s->left, 0), to[2], from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, s->from);
    to[0] = to[1] = ptx_add(f, s->to[0], offset);
    if (is_swizzled)
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
    const uint32_t filled = p->stages - held(p);
    const uint32_t stage_bytes = p->stage_bytes + (p->has_producer ? TILE_BARRIER_BYTES : 0);
    TILE_CALL(p->f);
    if (!require(p->f, !p->has_started && p->slot_count > 0,
                 "tile_pipeline_start: a pipeline with matrices starts once") ||
        !require(p->f, ptx_take_dynamic(p->f, p->stages * stage_bytes),
                 "tile_pipeline_start: a kernel has at most one pipeline"))
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
    TILE_CALL(p->f);
    if (!require(p->f, p->has_started, "tile_pipeline_next: the pipeline has not started") ||
        !require(p->f, !p->has_producer || p->parity.type != PTX_NONE,
                 "tile_pipeline_next: with a producer, call it only in TILE_CONSUMERS"))
        return;
    p->next_count++;
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
        ptx_set(p->f, p->free, p->stage);
    shared_next(p->f, p->stage, p->stage_bytes, p->stages);
}

void tile_pipeline_end_at(tile_pipeline *p, const char *file, int line)
{
    TILE_CALL(p->f);
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

static bool require_stage(const tile_pipeline *p)
{
    return require(
        p->f, p->next_count > 0,
        "tile_multiply, tile_product_issue, tile_words_load: there is no current stage before tile_pipeline_next");
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Whether a slot has elements of the pipeline's type. */
static bool has_operand(const tile_pipeline *p, uint32_t slot)
{
    return slot < p->slot_count && p->slots[slot].in_unit == UNIT;
}

/* Lane 8 * i + j points to row j of ldmatrix's matrix i. Rows: matrices 0 and 1 are the first units of rows 0 to 7 and 8 to 15, 2
 * and 3 the second units. Columns: 0 and 1 are both units of rows 0 to 7, 2 and 3 of rows 8 to 15. Words: lane (g, t) points to
 * row g. */
tile_operand tile_operand_at(const tile_pipeline *p, uint32_t slot, ptx_val first, tile_view view,
                             const char *file, int line)
{
    ptx_fn *f = p->f;
    const tile_slot *s = &p->slots[slot < p->slot_count ? slot : 0];
    tile_operand o = {.f = f, .type = p->type, .view = view, .rows = UINT32_MAX, .pipeline = p};
    TILE_CALL(f);
    if (!require(f, slot < p->slot_count && (view == TILE_WORDS || has_operand(p, slot)),
                 "tile_rows, tile_columns, tile_words_open: the pipeline has no such slot") ||
        !require(f, is_u32(first), "tile_rows, tile_columns, tile_words_open: the first row must be u32"))
        return o;
    uint64_t skipped;
    if (!ptx_is_immediate(first, &skipped))
        skipped = 0;
    if (!require(
            f, skipped % (view == TILE_WORDS ? A_ROWS : B_COLUMNS) == 0,
            "tile_rows, tile_columns, tile_words_open: the first row must be a multiple of 8, of 16 for words") ||
        !require(
            f, skipped + A_ROWS <= s->rows,
            "tile_rows, tile_columns, tile_words_open: the slot has fewer than 16 rows from the first row on"))
        return o;
    o.rows = s->rows - (uint32_t)skipped;
    o.byte = s->byte;
    o.step_units = view == TILE_WORDS ? 1 : TILE_STEP / UNIT;
    o.steps = s->units / o.step_units;
    ptx_val lane = ptx_laneid(f), unit = ptx_u32(0), row;
    if (view == TILE_WORDS) {
        row = fragment_find_lane(f, lane).g;
    } else if (view == TILE_ROWS) {
        unit = ptx_shr(f, lane, 4);
        row = ptx_and(f, lane, A_ROWS - 1);
    } else {
        ptx_val upper = ptx_shr(f, lane, 4), in_eight = ptx_and(f, lane, B_COLUMNS - 1);
        unit = ptx_bfe(f, lane, 3, 1);
        row = ptx_mad(f, upper, B_COLUMNS, in_eight);
    }
    const layout l = layout_of_matrices(s->units);
    row = ptx_add(f, row, first);
    ptx_val place_of = layout_place(f, &l, row, unit);
    ptx_val line_at = ptx_add(f, layout_row_at(f, &l, row), p->shared);
    for (uint32_t i = 0; i < o.steps; i++)
        o.at[i] = ptx_mad(f, i ? ptx_xor(f, place_of, o.step_units * i) : place_of, UNIT_BYTES, line_at);
    return o;
}

tile_sums tile_sums_open_at(ptx_fn *f, uint32_t row_tiles, uint32_t column_tiles, const char *file, int line)
{
    TILE_CALL(f);
    const bool fits = row_tiles > 0 && column_tiles > 0 && row_tiles <= TILE_MOST_SUMS / 4 / column_tiles;
    if (!require(f, fits && column_tiles % 2 == 0,
                 "tile_sums_open: row_tiles * column_tiles must be 1 to 32, and column_tiles even"))
        row_tiles = 1, column_tiles = 2;
    tile_sums s = {.f = f, .row_tiles = row_tiles, .column_tiles = column_tiles};
    for (uint32_t i = 0; i < 4 * row_tiles * column_tiles; i++)
        s.of[i] = ptx_var(f, ptx_f32(0));
    return s;
}

/* The address of this lane's part of a step in the current stage, `rows` rows below the lane's row. */
static ptx_val part_at(const tile_operand *o, ptx_type type, ptx_val at, uint32_t rows)
{
    const uint32_t row_bytes = UNIT_BYTES * o->steps * o->step_units;
    return shared_at(o->f, type, at, stage_byte(o->pipeline) + o->byte + row_bytes * rows);
}

/* Adds the products of a step. `a`: A's row tiles in registers; `at`: this lane's part of the columns. */
static void multiply(const tile_operand *columns, ptx_val at, const ptx_val a[], tile_sums *sums)
{
    ptx_val b[4];
    for (uint32_t j = 0; j < sums->column_tiles; j++) {
        if (j % 2 == 0)
            ptx_ldmatrix(sums->f, 4, b, part_at(columns, columns->type, at, B_COLUMNS * j));
        for (uint32_t i = 0; i < sums->row_tiles; i++) {
            ptx_val *sum = &sums->of[4 * (i * sums->column_tiles + j)];
            tensor_multiply(sums->f, columns->type, sum, &a[4 * i], &b[2 * (j % 2)], sum);
        }
    }
}

void tile_multiply_at(const tile_operand *rows, const tile_operand *columns, tile_sums *sums,
                      const char *file, int line)
{
    ptx_fn *f = sums->f;
    TILE_CALL(f);
    require(f, sums->row_tiles > 0 && sums->column_tiles > 0,
            "tile_multiply: the sums are not from tile_sums_open");
    require(f, rows->view == TILE_ROWS && columns->view == TILE_COLUMNS,
            "tile_multiply: the first operand must be of tile_rows, the second of tile_columns");
    require(f, rows->pipeline == columns->pipeline, "tile_multiply: both operands must be of one pipeline");
    require(f, A_ROWS * sums->row_tiles <= rows->rows && B_COLUMNS * sums->column_tiles <= columns->rows,
            "tile_multiply: the sums have more rows or columns than the operands");
    if (!require_stage(rows->pipeline))
        return;
    for (uint32_t step = 0; step < rows->steps && step < columns->steps; step++) {
        ptx_val a[TILE_MOST_SUMS];
        ptx_val a_at = stage_at(rows->pipeline, rows->at[step]),
                b_at = stage_at(columns->pipeline, columns->at[step]);
        for (uint32_t i = 0; i < sums->row_tiles; i++)
            ptx_ldmatrix(f, 4, &a[4 * i], part_at(rows, rows->type, a_at, A_ROWS * i));
        multiply(columns, b_at, a, sums);
    }
}

/* ---- products with A in registers ---------------------------------------------------------------------------------- */

tile_product tile_product_open_at(tile_pipeline *p, uint32_t slot, tile_atom atom, const char *file, int line)
{
    ptx_fn *f = p->f;
    const tile_slot *s = &p->slots[slot < p->slot_count ? slot : 0];
    TILE_CALL(f);
    tile_product t = {.f = f, .atom = atom, .pipeline = p};
    if (!require(f, !p->has_started, "tile_product_open: the pipeline has started") ||
        !require(f, atom == TILE_MMA || atom == TILE_WGMMA,
                 "tile_product_open: the atom is not a tile_atom") ||
        !require(f, has_operand(p, slot), "tile_product_open: the pipeline has no such slot") ||
        !require(f, s->rows % (2 * B_COLUMNS) == 0 && s->rows <= 256,
                 "tile_product_open: the slot must have at most 256 rows, a multiple of 16"))
        return t;
    t.columns = s->rows;
    if (atom == TILE_MMA) {
        t.b = tile_operand_at(p, slot, ptx_u32(0), TILE_COLUMNS, file, line);
        return t;
    }
    require(f, ptx_block_x(f) % TILE_PRODUCER_THREADS == 0,
            "tile_product_open: wgmma needs a thread block of whole warpgroups");
    require(f, p->stages > 2, "tile_product_open: wgmma needs at least three stages");
    p->is_async = true;
    ptx_val shared = ptx_shared_dynamic_aligned(f, p->type, WGMMA_ALIGN);
    t.descriptor = ptx_descriptor(f, ptx_at_bytes(f, shared, s->byte), layout_matrix(s->units));
    return t;
}

/* B of a step: two units of each row further along k. */
static void issue_group(const tile_product *t, const ptx_val a[], tile_sums *sums, bool adds)
{
    enum { STEP_PLACES = 2 /* of 16 bytes */ };
    ptx_fn *f = t->f;
    const tile_pipeline *p = t->pipeline;
    const ptx_wgmma_form form = {.types = p->type == PTX_BF16 ? PTX_WGMMA_BF16_F32 : PTX_WGMMA_F16_F32,
                                 .n = (int)t->columns};
    const uint32_t constant = stage_byte(p) / UNIT_BYTES, steps = p->depth / TILE_STEP;
    ptx_val first = t->descriptor, b[TILE_MOST_STEPS];
    if (!p->has_producer)
        first = ptx_add(f, first, ptx_cvt(f, PTX_U64, ptx_shr(f, p->stage, 4)));
    for (uint32_t step = 0; step < steps; step++)
        b[step] = constant + step > 0 ? ptx_add(f, first, constant + STEP_PLACES * step) : first;
    ptx_wgmma_fence(f);
    for (uint32_t step = 0; step < steps; step++)
        ptx_wgmma(f, form, adds || step > 0, sums->of, &a[4 * step], b[step]);
    ptx_wgmma_commit(f);
}

void tile_product_issue_at(const tile_product *product, const ptx_val a[], tile_sums *sums, bool adds,
                           const char *file, int line)
{
    ptx_fn *f = product->f;
    TILE_CALL(f);
    if (!require(f, sums->row_tiles == 1 && B_COLUMNS * sums->column_tiles == product->columns,
                 "tile_product_issue: the sums must have one row tile, and the slot's rows as columns") ||
        !require_stage(product->pipeline))
        return;
    if (product->atom == TILE_WGMMA) {
        issue_group(product, a, sums, adds);
        return;
    }
    for (uint32_t i = 0; !adds && i < 4 * sums->column_tiles; i++)
        ptx_set(f, sums->of[i], ptx_f32(0));
    for (uint32_t step = 0; step < product->b.steps; step++)
        multiply(&product->b, stage_at(product->pipeline, product->b.at[step]), &a[4 * step], sums);
}

void tile_product_wait_at(const tile_product *product, uint32_t pending, const char *file, int line)
{
    if (product->atom == TILE_WGMMA)
        ptx_effect1(product->f, PTX_OP_WGMMA_WAIT, ptx_u32(pending), file, line);
}

void tile_sums_add_scaled_at(tile_sums *to, const tile_sums *from, const ptx_val factors[2], const char *file,
                             int line)
{
    TILE_CALL(to->f);
    if (!require(to->f, to->row_tiles == from->row_tiles && to->column_tiles == from->column_tiles,
                 "tile_sums_add_scaled: both sums must have the same numbers of tiles"))
        return;
    for (uint32_t i = 0; i < 4 * to->row_tiles * to->column_tiles; i++)
        ptx_fma_to(to->f, to->of[i], from->of[i], factors[i / 2 % 2]);
}

void tile_row_pointers_at(ptx_fn *f, const tile_matrix *of, ptx_val first, ptx_val out[2], const char *file,
                          int line)
{
    TILE_CALL(f);
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    ptx_val row = ptx_add(f, lane.g, first);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val clamped = tail_clamp(f, i ? ptx_add(f, row, A_ROWS / 2) : row, of->rows);
        out[i] = ptx_var(f, ptx_at(f, of->data, ptx_mul_wide(f, clamped, of->stride)));
    }
}

void tile_row_load_at(ptx_fn *f, const ptx_val rows[2], uint32_t column, ptx_val in_bounds, ptx_val to[2],
                      const char *file, int line)
{
    TILE_CALL(f);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val at = ptx_at_const(f, rows[i], column);
        ptx_set(f, to[i], ptx_f32(0));
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, to[i], ptx_load_hint(f, at, PTX_NC));
        }
    }
}

void tile_row_advance_at(ptx_fn *f, const ptx_val rows[2], uint32_t columns, const char *file, int line)
{
    TILE_CALL(f);
    for (uint32_t i = 0; i < 2; i++)
        ptx_set(f, rows[i], ptx_at_const(f, rows[i], columns));
}

void tile_words_load_at(const tile_words *words, ptx_val out[], const char *file, int line)
{
    TILE_CALL(words->f);
    if (!require(words->f, words->view == TILE_WORDS,
                 "tile_words_load: the words are not from tile_words_open") ||
        !require_stage(words->pipeline))
        return;
    for (uint32_t unit = 0; unit < words->steps; unit++) {
        ptx_val in_stage = stage_at(words->pipeline, words->at[unit]);
        for (uint32_t is_lower = 0; is_lower < 2; is_lower++)
            ptx_load_vec(words->f, 4, &out[4 * (is_lower * words->steps + unit)],
                         part_at(words, PTX_U32, in_stage, is_lower * A_ROWS / 2), PTX_PLAIN);
    }
}

/* ---- the sink ----------------------------------------------------------------------------------------------------- */

/* Lane (g, t) has two neighbours in a row of each 8 x 8 tile of y; in a column if the sums are transposed. */
typedef struct sink {
    ptx_fn *f;
    const tile_matrix *y;
    tile_map *map;
    const void *of;
    bool is_transposed;
    ptx_val row, column; /* this lane's first element of the first tile */
    ptx_val is_odd;      /* t */
    ptx_val stored;      /* the first of the four columns that the lane stores in the first two tiles */
} sink;

static ptx_val is_inside(const sink *s, ptx_val row, ptx_val column)
{
    ptx_val in_columns = ptx_lt(s->f, column, s->y->columns);
    return ptx_and(s->f, ptx_lt(s->f, row, s->y->rows), in_columns);
}

/* Instructions that the author's function emits keep their own places. */
static ptx_val map_sum(const sink *s, ptx_val sum, ptx_val row, ptx_val column)
{
    const ptx_caller call = ptx_set_caller(s->f, (ptx_caller){0});
    ptx_val mapped = s->map(s->f, s->of, sum, row, column);
    ptx_set_caller(s->f, call);
    return mapped;
}

/* Two sums as elements of y, U32. Sums out of bounds are not mapped; two in a row of y are both in bounds, or neither is. */
static ptx_val narrow_sums(const sink *s, const ptx_val sum[2], ptx_val row, ptx_val column)
{
    ptx_fn *f = s->f;
    ptx_val mapped[2] = {sum[0], sum[1]}, in_bounds = {0};
    for (uint32_t i = 0; s->map && i < 2; i++) {
        if (i > 0 && s->is_transposed)
            row = ptx_add(f, row, 1);
        else if (i > 0)
            column = ptx_add(f, column, 1);
        if (i == 0 || s->is_transposed)
            in_bounds = is_inside(s, row, column);
        mapped[i] = ptx_var(f, ptx_f32(0));
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, mapped[i], map_sum(s, sum[i], row, column));
        }
    }
    return narrow_pair(f, (ptx_type)s->y->data.element, mapped[0], mapped[1]);
}

/* Even lanes store four neighbours of the first of two tiles, odd lanes four of the second, so a row's four lanes store 32 bytes.
 * `start` is the row's first element; `further` columns from the first two tiles to these two. */
static void store_words(const sink *s, const ptx_val words[2], ptx_val start, uint32_t further,
                        ptx_val in_rows)
{
    ptx_fn *f = s->f;
    ptx_val given = ptx_select(f, s->is_odd, words[0], words[1]),
            kept = ptx_select(f, s->is_odd, words[1], words[0]), taken = ptx_shfl_xor(f, given, 1), four[2];
    four[0] = ptx_select(f, s->is_odd, taken, kept);
    four[1] = ptx_select(f, s->is_odd, kept, taken);
    ptx_val at = ptx_add(f, s->stored, further), is_in = ptx_lt(f, at, s->y->columns);
    ptx_val to = ptx_cast_ptr(f, ptx_at(f, start, at), PTX_U32);
    PTX_WHEN (f, ptx_and(f, is_in, in_rows)) {
        ptx_store_vec(f, 2, to, four, PTX_PLAIN);
    }
}

/* Tiles of transposed sums are transposed within the warp first, so lane (g, t) always has columns 2t and 2t + 1 of row g. */
void tile_store_at(const tile_sums *sums, const tile_matrix *y, ptx_val row, ptx_val column, tile_map *map,
                   const void *of, bool is_transposed, const char *file, int line)
{
    ptx_fn *f = sums->f;
    const uint32_t high = is_transposed ? sums->column_tiles : 2 * sums->row_tiles,
                   wide = is_transposed ? 2 * sums->row_tiles : sums->column_tiles;
    TILE_CALL(f);
    if (!require(f, y->data.type == PTX_PTR && is_half((ptx_type)y->data.element),
                 "tile_store: y must be of f16 or bf16") ||
        !require(f,
                 is_u32(y->rows) && is_u32(y->columns) && is_u32(y->stride) && is_u32(row) && is_u32(column),
                 "tile_store: rows, columns and strides must be u32") ||
        !require(
            f, may_be_multiple(column, 4) && may_be_multiple(y->columns, 4) && may_be_multiple(y->stride, 4),
            "tile_store: the column, y's columns and its stride must be multiples of four") ||
        !require(f, sums->row_tiles > 0 && sums->column_tiles > 0,
                 "tile_store: the sums are not from tile_sums_open"))
        return;
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    sink s = {.f = f, .y = y, .map = map, .of = of, .is_transposed = is_transposed};
    ptx_val odd = ptx_and(f, lane.t, 1), upper = ptx_shr(f, lane.t, 1), first = ptx_add(f, lane.g, row);
    s.is_odd = ptx_ne(f, odd, 0);
    s.stored = ptx_mad(f, odd, B_COLUMNS, ptx_mad(f, upper, 4, column));
    s.row = is_transposed ? ptx_mad(f, lane.t, 2, row) : first;
    s.column = is_transposed ? ptx_add(f, lane.g, column) : ptx_mad(f, lane.t, 2, column);
    for (uint32_t i = 0; i < high; i++) {
        ptx_val number = ptx_add(f, first, 8 * i), in_rows = ptx_lt(f, number, y->rows);
        ptx_val start = ptx_at(f, y->data, ptx_mul_wide(f, number, y->stride)), words[2];
        ptx_val own_row = is_transposed ? ptx_add(f, s.row, 8 * i) : number;
        for (uint32_t j = 0; j < wide; j++) {
            const uint32_t sum_row = is_transposed ? j : i, sum_column = is_transposed ? i : j;
            const ptx_val *sum =
                &sums->of[4 * (sum_row / 2 * sums->column_tiles + sum_column) + sum_row % 2 * 2];
            ptx_val word = narrow_sums(&s, sum, own_row, ptx_add(f, s.column, 8 * j));
            words[j % 2] = is_transposed ? ptx_movmatrix_trans(f, word) : word;
            if (j % 2 > 0)
                store_words(&s, words, start, 8 * (j - 1), in_rows);
        }
    }
}
