/* Rows of e2m1 or e4m3 codes in stages. */
#include "fp4_rows.h"

#include "copy.h"
#include "if_needed.h"
#include "lanes.h"
#include "scale_tiles.h"
#include "shared.h"

enum { WORD = 4 };

layout fp4_rows_layout(bool for_matrices)
{
    layout l = {.row_bytes = FP4_ROW_BYTES, .unit_bytes = UNIT_BYTES, .turn_count = 1};
    l.turns[0] = (layout_turn){.row_bit = 1, .unit_bit = 1};
    return for_matrices ? layout_of_matrices(FP4_ROW_UNITS) : l;
}

fp4_rows fp4_rows_plan(fp4_rows r)
{
    r.is_carried = r.is_block_scaled && !r.is_tiled;
    r.block = r.is_mx ? 32 : 16;
    r.units = r.codes.row_bytes / UNIT_BYTES;
    r.scales_of_stage = FP4_STAGE / r.block;
    r.scale_bytes = r.is_block_scaled ? r.scales_of_stage : FP4_SCALE_BYTES;
    r.row_threads[FP4_ROWS_CODES] = r.units;
    r.row_threads[FP4_ROWS_SCALES] = r.is_carried ? r.scales_of_stage / WORD : 1;
    for (uint32_t part = 0; part < FP4_ROWS_PARTS; part++) {
        const uint32_t copies = r.rows * r.row_threads[part];
        r.pass[part] = r.threads / r.row_threads[part];
        r.passes[part] = copies > r.threads ? copies / r.threads : 1;
    }
    return r;
}

ptx_val fp4_rows_row_of(const fp4_rows *r, fp4_rows_part part, ptx_val tid)
{
    const uint32_t threads = r->row_threads[part];
    return threads == 1 ? tid : ptx_shr(r->f, tid, lanes_log2(threads));
}

static void find_threads(fp4_rows *r, fp4_rows_part part, ptx_val tid)
{
    const uint32_t copies = r->rows * r->row_threads[part];
    if (copies < r->threads)
        r->has[part] = ptx_lt(r->f, tid, copies);
}

static bool is_predicated(const fp4_rows *r, fp4_rows_part part)
{
    return r->has[part].type != PTX_NONE;
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static ptx_val blocks_of_row(const fp4_rows *r)
{
    return ptx_shr(r->f, r->k, lanes_log2(r->block));
}

/* Finds this thread's first word in its row; if carried, the word is in the stage before the first. */
static void init_scales(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    ptx_fn *f = r->f;
    const uint32_t bits = lanes_log2(r->block), threads = r->row_threads[FP4_ROWS_SCALES];
    ptx_val blocks = blocks_of_row(r), first = ptx_shr(f, r->first, bits), word = ptx_u32(0);
    ptx_val left = ptx_sub(f, ptx_shr(f, r->end, bits), first);
    if (r->is_tiled) {
        ptx_val down = ptx_shr(f, r->scale_row, lanes_log2(SCALE_TILE_ROWS));
        ptx_val across = scale_tiles_across(f, blocks);
        ptx_val before = ptx_cvt(f, PTX_U64, ptx_shr(f, first, lanes_log2(SCALE_TILE_BLOCKS)));
        ptx_val tile = ptx_mad_wide(f, down, across, before);
        ptx_val quarter = ptx_bfe(f, r->scale_row, 5, 2), line = ptx_and(f, r->scale_row, 31);
        ptx_val in_tile = ptx_mad(f, line, UNIT_BYTES, ptx_mul(f, quarter, WORD));
        ptx_val tile_at = ptx_add(f, r->scales, ptx_mul(f, tile, SCALE_TILE_BYTES));
        r->scale_from = ptx_var(f, ptx_add(f, tile_at, ptx_cvt(f, PTX_U64, in_tile)));
    } else {
        ptx_val row = ptx_mad_wide(f, r->scale_row, blocks, r->scales);
        ptx_val at = ptx_add(f, row, ptx_cvt(f, PTX_U64, first));
        ptx_val offset = ptx_and(f, ptx_cvt(f, PTX_U32, at), WORD - 1);
        left = ptx_add(f, left, offset);
        at = ptx_and(f, at, ~(uint64_t)(WORD - 1));
        if (threads > 1) {
            word = ptx_and(f, tid, threads - 1);
            ptx_val back = ptx_mul(f, ptx_sub(f, threads - 1, word), WORD);
            at = ptx_sub(f, at, ptx_cvt(f, PTX_U64, back));
            left = ptx_add(f, left, back);
        }
        r->scale_from = ptx_var(f, at);
    }
    if (r->passes[FP4_ROWS_SCALES] > 1)
        r->scale_pass_bytes = ptx_mul_wide(f, r->scale_pass_rows, blocks);
    r->scale_left = ptx_var(f, ptx_as(f, PTX_S32, left));
    ptx_val row = fp4_rows_row_of(r, FP4_ROWS_SCALES, tid);
    ptx_val to = ptx_mad(f, row, r->scale_bytes, shared);
    if (threads > 1)
        to = ptx_mad(f, word, WORD, to);
    r->scale_to = ptx_add(f, to, r->scale_byte);
    find_threads(r, FP4_ROWS_SCALES, tid);
}

static void next_scales(fp4_rows *r)
{
    ptx_add_to(r->f, r->scale_from,
               r->is_tiled ? SCALE_TILE_BYTES * r->scales_of_stage / SCALE_TILE_BLOCKS : r->scales_of_stage);
    ptx_sub_to(r->f, r->scale_left, r->scales_of_stage);
}

static void copy_carried(fp4_rows *r, ptx_val to, uint32_t pass, ptx_val left)
{
    ptx_fn *f = r->f;
    ptx_val at = pass == 0 ? r->scale_from : ptx_add(f, r->scale_from, r->scale_pass_bytes);
    const uint32_t byte = pass * r->pass[FP4_ROWS_SCALES] * r->scale_bytes;
    copy_word_cut(f, shared_at(f, PTX_U32, to, byte), ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), left);
}

static void copy_scales(fp4_rows *r, ptx_val offset, uint32_t pass)
{
    ptx_fn *f = r->f;
    ptx_val to = ptx_add(f, r->scale_to, offset);
    if (r->is_carried) {
        copy_carried(r, to, pass, r->scale_left);
        return;
    }
    const uint32_t words = r->scales_of_stage / WORD + (r->is_tiled ? 0 : 1),
                   step = r->is_tiled ? SCALE_TILE_BYTES : WORD;
    ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, r->scale_from);
    for (uint32_t i = 0; i < words; i++)
        copy_word_cut(f, shared_at(f, PTX_U32, to, WORD * i), ptx_at_bytes(f, from, step * i),
                      i == 0 ? r->scale_left : ptx_sub(f, r->scale_left, WORD * i));
}

ptx_val fp4_rows_scales(const fp4_rows *r, ptx_val shared, ptx_val row, ptx_val number)
{
    ptx_fn *f = r->f;
    ptx_val at = ptx_add(f, ptx_mad(f, row, r->scale_bytes, shared), r->scale_byte);
    if (r->is_tiled)
        return at;
    ptx_val byte = ptx_mul(f, number, blocks_of_row(r));
    return ptx_add(f, at, ptx_and(f, byte, WORD - 1));
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

static uint32_t addresses_of(const fp4_rows *r)
{
    return r->pass_bytes.type == PTX_NONE ? r->passes[FP4_ROWS_CODES] : 1;
}

static void init_codes(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    ptx_fn *f = r->f;
    ptx_val unit = ptx_and(f, tid, r->units - 1), row = fp4_rows_row_of(r, FP4_ROWS_CODES, tid);
    ptx_val element = ptx_mad(f, unit, FP4_STAGE / r->units, r->first);
    ptx_val byte = ptx_cvt(f, PTX_U64, ptx_shr(f, element, lanes_log2(FP4_STAGE / r->codes.row_bytes)));
    for (uint32_t i = 0; i < addresses_of(r); i++)
        r->from[i] = ptx_var(f, ptx_add(f, r->from[i], byte));
    r->left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, r->end, element)));
    r->to = ptx_add(f, ptx_add(f, layout_at(f, &r->codes, row, unit), shared), r->code_byte);
    if (!r->is_mx)
        r->is_narrow = ptx_ne(f, ptx_and(f, r->k, r->block), 0);
    find_threads(r, FP4_ROWS_CODES, tid);
}

/* Copies this thread's units of some passes; a narrow unit in two halves, the second of which may be past the row's end. */
static void copy_units(fp4_rows *r, ptx_val to, uint32_t first, uint32_t past, bool is_narrow)
{
    ptx_fn *f = r->f;
    const uint32_t half_elements = FP4_STAGE / r->units / 2;
    ptx_val in_bounds = ptx_gt(f, r->left, 0), has_upper = ptx_gt(f, r->left, half_elements);
    for (uint32_t i = first; i < past; i++) {
        ptx_val at = i < addresses_of(r)
                         ? r->from[i]
                         : ptx_mad_wide(f, ptx_min(f, r->passes_left, i), r->pass_bytes, r->from[0]);
        ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, at);
        const uint32_t byte = i * layout_rows(&r->codes, r->pass[FP4_ROWS_CODES]);
        if (!is_narrow)
            copy_unit(f, shared_at(f, PTX_U32, to, byte), from, &in_bounds, PTX_NC | PTX_NO_ALLOCATE);
        for (uint32_t half = 0; half < 2 && is_narrow; half++)
            copy_half(f, shared_at(f, PTX_U32, to, byte + UNIT_BYTES / 2 * half),
                      ptx_at_bytes(f, from, UNIT_BYTES / 2 * half), half == 0 ? &in_bounds : &has_upper);
    }
}

static void copy_codes(fp4_rows *r, ptx_val offset, uint32_t first, uint32_t past)
{
    ptx_fn *f = r->f;
    IF_NEEDED (f, is_predicated(r, FP4_ROWS_CODES), r->has[FP4_ROWS_CODES]) {
        ptx_val to = ptx_add(f, r->to, offset);
        if (r->is_mx) {
            copy_units(r, to, first, past, false);
        } else {
            PTX_IF (f, r->is_narrow) {
                ptx_rarely(f);
                copy_units(r, to, first, past, true);
            }
            PTX_ELSE (f) {
                copy_units(r, to, first, past, false);
            }
        }
    }
}

static void next_codes(fp4_rows *r)
{
    for (uint32_t i = 0; i < addresses_of(r); i++)
        ptx_add_to(r->f, r->from[i], r->codes.row_bytes);
    ptx_sub_to(r->f, r->left, FP4_STAGE);
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

void fp4_rows_init(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    init_codes(r, tid, shared);
    init_scales(r, tid, shared);
}

static void copy_scales_pass(fp4_rows *r, ptx_val offset, uint32_t pass)
{
    WHEN_NEEDED (r->f, is_predicated(r, FP4_ROWS_SCALES), !r->is_block_scaled, r->has[FP4_ROWS_SCALES]) {
        copy_scales(r, offset, pass);
    }
}

void fp4_rows_copy(fp4_rows *r, ptx_val offset)
{
    copy_codes(r, offset, 0, r->passes[FP4_ROWS_CODES]);
    for (uint32_t pass = 0; pass < r->passes[FP4_ROWS_SCALES]; pass++)
        copy_scales_pass(r, offset, pass);
    next_codes(r);
    next_scales(r);
}

uint32_t fp4_rows_pieces(const fp4_rows *r)
{
    return r->passes[FP4_ROWS_CODES] + r->passes[FP4_ROWS_SCALES];
}

void fp4_rows_copy_piece(fp4_rows *r, ptx_val offset, uint32_t piece)
{
    const uint32_t passes = r->passes[FP4_ROWS_CODES];
    if (piece < passes)
        copy_codes(r, offset, piece, piece + 1);
    else
        copy_scales_pass(r, offset, piece - passes);
    if (piece == passes - 1)
        next_codes(r);
    if (piece == fp4_rows_pieces(r) - 1)
        next_scales(r);
}

void fp4_rows_copy_carried(fp4_rows *r, ptx_val offset, ptx_val tid)
{
    ptx_fn *f = r->f;
    const uint32_t threads = r->row_threads[FP4_ROWS_SCALES];
    ptx_val to = ptx_add(f, r->scale_to, offset), left = r->scale_left;
    if (threads > 1) {
        ptx_val has_word = ptx_eq(f, ptx_and(f, tid, threads - 1), threads - 1);
        left = ptx_select(f, has_word, left, 0);
    }
    IF_NEEDED (f, is_predicated(r, FP4_ROWS_SCALES), r->has[FP4_ROWS_SCALES]) {
        for (uint32_t pass = 0; pass < r->passes[FP4_ROWS_SCALES]; pass++)
            copy_carried(r, to, pass, left);
    }
    next_scales(r);
}
