/* linear's tiles of W: the part of a row that a warp's lanes take at once, for each of the warp's rows.
 *
 * A warp has its own ring of stages in shared memory, which fills across the ends of rows: all stages but one are in
 * flight before x is read. A row of quantised blocks may begin at any byte. So pieces of 16 bytes are counted from the
 * multiple of 16 before the row's first byte, and keep their global layout in shared memory; readers shift. A row's last
 * piece is cut at its end, so that no byte after the tensor is read; the bytes before its first belong to the previous
 * row.
 *
 * From sm_80 on cp.async copies. Below, a load and a store do, and a partial piece is copied byte by byte.
 */
#include "device/copy.h"
#include "device/if_needed.h"
#include "device/tail.h"
#include "linear_simt.h"

/* A row of a group, clamped to the last row. */
static ptx_val row_of(linear_simt *g, ptx_val group, uint32_t r)
{
    ptx_fn *f = g->f;
    ptx_val row = ptx_mad(f, group, g->of.rows, r);
    return ptx_add(f, tail_clamp(f, row, g->rows_here), g->first_row);
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Finds this lane's first piece of each row, and its numbers in each array. */
static void find_next_rows(linear_simt *g)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    ptx_val lane_byte = ptx_mul(f, g->l->lane, UNIT_BYTES);
    ptx_val chunk_byte = ptx_cvt(f, PTX_U64, g->chunk_byte), start[LINEAR_MOST_MATRICES];
    for (uint32_t i = 0; i < g->l->matrices; i++)
        start[i] = ptx_add(f, ptx_address(f, g->l->w[i]), chunk_byte);
    for (uint32_t r = 0; r < g->of.rows; r++) {
        const linear_row row = linear_find_row(g->l, row_of(g, g->next_group, r));
        ptx_val from = ptx_mad_wide(f, row.number, g->l->w_row_bytes, linear_pick(g->l, &row, start)),
                left = ptx_sub(f, g->chunk_bytes, lane_byte);
        if (g->of.begins_anywhere) {
            ptx_val offset = ptx_and(f, ptx_cvt(f, PTX_U32, from), UNIT_BYTES - 1);
            from = ptx_and(f, from, ~(uint64_t)(UNIT_BYTES - 1));
            left = ptx_add(f, left, offset);
        }
        ptx_set(f, g->next[r].from, ptx_add(f, from, ptx_cvt(f, PTX_U64, lane_byte)));
        ptx_set(f, g->next[r].left, ptx_as(f, PTX_S32, left));
        for (uint32_t i = 0; i < format_arrays(format); i++) {
            ptx_val of_lane = ptx_mad(f, g->l->lane, format_group_elements(format), g->chunk_first);
            ptx_val number = ptx_div(f, of_lane, format->scale_elements);
            ptx_set(f, g->next[r].numbers[i], linear_numbers_at(g->l, &row, i, number));
        }
    }
}

/* Whether this lane has a last piece. A tile has one piece more if rows are not 16-byte aligned. */
static ptx_val has_last_piece(linear_simt *g)
{
    ptx_fn *f = g->f;
    const uint32_t pieces = g->of.tile_bytes / UNIT_BYTES;
    ptx_val rest = ptx_and(f, g->l->w_row_bytes, UNIT_BYTES - 1);
    ptx_val more = ptx_select(f, ptx_ne(f, rest, 0), ptx_u32(1), 0);
    ptx_val first_without = ptx_add(f, more, pieces - WARP_LANES * (g->of.row_copies - 1));
    return ptx_lt(f, g->l->lane, first_without);
}

/* Copies a piece. In a row's last tile only `left` bytes are in bounds: whole pieces, or in unaligned rows a part of one. */
static void copy_piece(linear_simt *g, ptx_val to, ptx_val from, const ptx_val *left)
{
    ptx_fn *f = g->f;
    const int hints = PTX_NC | PTX_NO_ALLOCATE;
    if (!left) {
        copy_unit(f, to, from, NULL, hints);
    } else if (g->of.begins_anywhere) {
        copy_cut(f, to, from, *left);
    } else {
        ptx_val in_bounds = ptx_gt(f, *left, 0);
        copy_unit(f, to, from, &in_bounds, hints);
    }
}

static void copy_row(linear_simt *g, ptx_val to, uint32_t r, bool is_last)
{
    ptx_fn *f = g->f;
    ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, g->next[r].from);
    const bool may_branch = is_last && !ptx_has_sm(g->f, 80);
    for (uint32_t i = 0; i < g->of.row_copies; i++) {
        const uint32_t byte = UNIT_BYTES * WARP_LANES * i;
        ptx_val piece_to = shared_at(f, PTX_U32, to, r * g->of.row_bytes + byte),
                piece = ptx_at_bytes(f, from, byte), left = {0};
        if (is_last)
            left = ptx_sub(f, g->next[r].left, byte);
        const bool all_have = byte + UNIT_BYTES * WARP_LANES <= g->of.tile_bytes; /* an i-th piece */
        WHEN_NEEDED (f, !all_have, may_branch, g->has_last) {
            copy_piece(g, piece_to, piece, is_last ? &left : NULL);
        }
    }
}

/* Bytes from a stage's first to the numbers of row r. */
static uint32_t number_byte(const linear_simt *g, uint32_t r)
{
    return g->of.rows * g->of.row_bytes + r * WARP_LANES * g->of.number_bytes;
}

/* Each lane copies the numbers of its own group. */
static void copy_numbers(linear_simt *g, ptx_val offset, uint32_t r)
{
    ptx_fn *f = g->f;
    ptx_val in_bounds = ptx_gt(f, g->next[r].left, 0);
    ptx_val to = ptx_add(f, ptx_mad(f, g->l->lane, g->of.number_bytes, g->stages), offset);
    for (uint32_t i = 0; i < format_arrays(g->of.format); i++)
        copy_word(f, shared_at(f, PTX_U32, to, number_byte(g, r) + 4 * i),
                  ptx_pointer(f, PTX_GLOBAL, PTX_U32, g->next[r].numbers[i]), &in_bounds);
}

static void copy_last_tile(linear_simt *g, ptx_val to)
{
    for (uint32_t r = 0; r < g->of.rows; r++)
        copy_row(g, to, r, true);
    ptx_set(g->f, g->next_tiles, g->tiles);
    ptx_add_to(g->f, g->next_group, LINEAR_WARPS);
    find_next_rows(g);
}

static void copy_tile(linear_simt *g, ptx_val to)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->of.rows; r++) {
        copy_row(g, to, r, false);
        ptx_add_to(f, g->next[r].from, g->of.tile_bytes);
        ptx_sub_to(f, g->next[r].left, g->of.tile_bytes);
        for (uint32_t i = 0; i < format_arrays(g->of.format); i++)
            ptx_add_to(f, g->next[r].numbers[i], 4 * g->of.tile_elements / g->of.format->scale_elements);
    }
    ptx_sub_to(f, g->next_tiles, 1);
}

/* Starts to copy the next tile, if there is one, to the stage at `offset`. */
static void fill_stage(linear_simt *g, ptx_val offset)
{
    ptx_fn *f = g->f;
    const bool has_one = g->of.chunk <= g->of.tile_elements;
    ptx_val lane_to = ptx_mad(f, g->l->lane, UNIT_BYTES, g->stages);
    ptx_val to = ptx_add(f, lane_to, offset);
    PTX_IF (f, ptx_lt(f, g->next_group, g->groups_of_rows)) {
        for (uint32_t r = 0; r < g->of.rows && format_arrays(g->of.format) > 0; r++)
            copy_numbers(g, offset, r);
        if (has_one) {
            copy_last_tile(g, to);
        } else {
            PTX_IF (f, ptx_eq(f, g->next_tiles, 1)) {
                ptx_rarely(f);
                copy_last_tile(g, to);
            }
            PTX_ELSE (f) {
                copy_tile(g, to);
            }
        }
    }
    copy_commit(f);
}

void linear_init_stages(linear_simt *g)
{
    ptx_fn *f = g->f;
    const uint32_t last = (g->of.stages - 1) * g->of.stage_bytes;
    ptx_warp_barrier(f); /* all lanes are done with the last tiles of the chunk before */
    g->next_group = ptx_var(f, g->l->warp);
    g->next_tiles = ptx_var(f, g->tiles);
    for (uint32_t r = 0; r < g->of.rows; r++) {
        g->next[r].from = ptx_declare(f, PTX_U64);
        g->next[r].left = ptx_declare(f, PTX_S32);
        for (uint32_t i = 0; i < format_arrays(g->of.format); i++)
            g->next[r].numbers[i] = ptx_declare(f, PTX_U64);
    }
    g->has_last = has_last_piece(g);
    find_next_rows(g);
    PTX_FOR (f, offset, ptx_u32(0), last, g->of.stage_bytes) {
        fill_stage(g, offset);
    }
    g->stage = ptx_var(f, ptx_u32(last));
}

/* Waits for the next stage, and refills the previous one. */
void linear_next_stage(linear_simt *g)
{
    ptx_fn *f = g->f;
    copy_wait(f, g->of.stages - 2);
    ptx_warp_barrier(f);
    fill_stage(g, g->stage);
    shared_next(f, g->stage, g->of.stage_bytes, g->of.stages);
}

/* ---- what is read ------------------------------------------------------------------------------------------------- */

void linear_find_rows(linear_simt *g, ptx_val group)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    ptx_val block = ptx_div(f, g->l->lane, format->groups);
    ptx_val of_lane = ptx_mad(f, block, format->bytes, g->stages);
    for (uint32_t r = 0; r < g->of.rows; r++) {
        ptx_val at = of_lane;
        if (g->of.begins_anywhere) {
            const linear_row row = linear_find_row(g->l, row_of(g, group, r));
            ptx_val byte = ptx_mad(f, row.number, g->l->w_row_bytes, g->chunk_byte);
            at = ptx_add(f, at, ptx_and(f, byte, UNIT_BYTES - 1));
        }
        g->place[r] = format_find(f, &g->w_lane, shared_at(f, PTX_U8, at, r * g->of.row_bytes));
    }
}

format_place linear_find_numbers(linear_simt *g, uint32_t r, const format_place *codes)
{
    ptx_fn *f = g->f;
    if (g->of.number_bytes == 0)
        return *codes;
    ptx_val of_lane = ptx_add(f, ptx_mad(f, g->l->lane, g->of.number_bytes, g->stages), g->stage);
    return format_find_numbers(f, &g->w_lane, ptx_add(f, of_lane, number_byte(g, r)), 0);
}
