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

static uint32_t units_of(const fp4_rows *r)
{
    return r->codes.row_bytes / UNIT_BYTES;
}

static uint32_t unit_elements(const fp4_rows *r)
{
    return FP4_STAGE / units_of(r);
}

static uint32_t block_of(const fp4_rows *r)
{
    return r->is_mx ? 32 : 16;
}

static uint32_t stage_scales(const fp4_rows *r)
{
    return FP4_STAGE / block_of(r);
}

uint32_t fp4_rows_passes(const fp4_rows *r)
{
    const uint32_t units = r->rows * units_of(r);
    return units > r->threads ? units / r->threads : 1;
}

uint32_t fp4_rows_pass(const fp4_rows *r)
{
    return r->threads / units_of(r);
}

static uint32_t addresses_of(const fp4_rows *r)
{
    return r->pass_bytes.type == PTX_NONE ? fp4_rows_passes(r) : 1;
}

ptx_val fp4_rows_row_of(const fp4_rows *r, ptx_val tid)
{
    return ptx_shr(r->f, tid, lanes_log2(units_of(r)));
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static ptx_val blocks_of_row(const fp4_rows *r)
{
    return ptx_shr(r->f, r->k, lanes_log2(block_of(r)));
}

/* Finds the first word of this thread's row. */
static void init_scales(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    ptx_fn *f = r->f;
    const uint32_t bits = lanes_log2(block_of(r));
    ptx_val blocks = blocks_of_row(r), first = ptx_shr(f, r->first, bits);
    ptx_val left = ptx_sub(f, ptx_shr(f, r->end, bits), first);
    if (r->is_tiled) {
        ptx_val down = ptx_shr(f, r->scale_row, lanes_log2(SCALE_TILE_ROWS));
        ptx_val across = ptx_shr(f, ptx_add(f, blocks, SCALE_TILE_BLOCKS - 1), lanes_log2(SCALE_TILE_BLOCKS));
        ptx_val tile = ptx_mad_wide(f, down, across,
                                    ptx_cvt(f, PTX_U64, ptx_shr(f, first, lanes_log2(SCALE_TILE_BLOCKS))));
        ptx_val quarter = ptx_bfe(f, r->scale_row, 5, 2), line = ptx_and(f, r->scale_row, 31);
        ptx_val in_tile = ptx_mad(f, line, UNIT_BYTES, ptx_mul(f, quarter, WORD));
        ptx_val tile_at = ptx_add(f, r->scales, ptx_mul(f, tile, SCALE_TILE_BYTES));
        r->scale_from = ptx_var(f, ptx_add(f, tile_at, ptx_cvt(f, PTX_U64, in_tile)));
    } else {
        ptx_val row = ptx_mad_wide(f, r->scale_row, blocks, r->scales);
        ptx_val at = ptx_add(f, row, ptx_cvt(f, PTX_U64, first));
        ptx_val offset = ptx_and(f, ptx_cvt(f, PTX_U32, at), WORD - 1);
        left = ptx_add(f, left, offset);
        r->scale_from = ptx_var(f, ptx_and(f, at, ~(uint64_t)(WORD - 1)));
    }
    r->scale_left = ptx_var(f, ptx_as(f, PTX_S32, left));
    r->scale_to = ptx_add(f, ptx_mad(f, tid, FP4_SCALE_BYTES, shared), r->scale_byte);
    if (r->rows < r->threads)
        r->has_scales = ptx_lt(f, tid, r->rows);
}

static void copy_scales(fp4_rows *r, ptx_val offset)
{
    ptx_fn *f = r->f;
    const uint32_t words = stage_scales(r) / WORD + (r->is_tiled ? 0 : 1),
                   step = r->is_tiled ? SCALE_TILE_BYTES : WORD;
    ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, r->scale_from), to = ptx_add(f, r->scale_to, offset);
    for (uint32_t i = 0; i < words; i++)
        copy_word_cut(f, shared_at(f, PTX_U32, to, WORD * i), ptx_at_bytes(f, from, step * i),
                      i == 0 ? r->scale_left : ptx_sub(f, r->scale_left, WORD * i));
}

ptx_val fp4_rows_scales(const fp4_rows *r, ptx_val shared, ptx_val row, ptx_val number)
{
    ptx_fn *f = r->f;
    ptx_val at = ptx_add(f, ptx_mad(f, row, FP4_SCALE_BYTES, shared), r->scale_byte);
    if (r->is_tiled)
        return at;
    ptx_val byte = ptx_mul(f, number, blocks_of_row(r));
    return ptx_add(f, at, ptx_and(f, byte, WORD - 1));
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

static void init_codes(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    ptx_fn *f = r->f;
    ptx_val unit = ptx_and(f, tid, units_of(r) - 1), row = fp4_rows_row_of(r, tid);
    ptx_val element = ptx_mad(f, unit, unit_elements(r), r->first);
    ptx_val byte = ptx_cvt(f, PTX_U64, ptx_shr(f, element, lanes_log2(FP4_STAGE / r->codes.row_bytes)));
    for (uint32_t i = 0; i < addresses_of(r); i++)
        r->from[i] = ptx_var(f, ptx_add(f, r->from[i], byte));
    r->left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, r->end, element)));
    r->to = ptx_add(f, ptx_add(f, layout_at(f, &r->codes, row, unit), shared), r->code_byte);
    if (!r->is_mx)
        r->is_narrow = ptx_ne(f, ptx_and(f, r->k, block_of(r)), 0);
    if (r->rows * units_of(r) < r->threads)
        r->has_codes = ptx_lt(f, tid, r->rows * units_of(r));
}

static ptx_val pass_address(fp4_rows *r, uint32_t pass)
{
    if (pass < addresses_of(r))
        return r->from[pass];
    return ptx_mad_wide(r->f, ptx_min(r->f, r->passes_left, pass), r->pass_bytes, r->from[0]);
}

/* Copies this thread's unit of every pass; a narrow unit in two halves, the second of which may be past the row's end. */
static void copy_units(fp4_rows *r, ptx_val to, bool is_narrow)
{
    ptx_fn *f = r->f;
    ptx_val in_bounds = ptx_gt(f, r->left, 0), has_upper = ptx_gt(f, r->left, (int32_t)unit_elements(r) / 2);
    for (uint32_t i = 0; i < fp4_rows_passes(r); i++) {
        ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, pass_address(r, i));
        const uint32_t byte = i * layout_rows(&r->codes, fp4_rows_pass(r));
        if (!is_narrow)
            copy_unit(f, shared_at(f, PTX_U32, to, byte), from, &in_bounds, PTX_NC | PTX_NO_ALLOCATE);
        for (uint32_t half = 0; half < 2 && is_narrow; half++)
            copy_half(f, shared_at(f, PTX_U32, to, byte + UNIT_BYTES / 2 * half),
                      ptx_at_bytes(f, from, UNIT_BYTES / 2 * half), half == 0 ? &in_bounds : &has_upper);
    }
}

static void copy_codes(fp4_rows *r, ptx_val offset)
{
    ptx_fn *f = r->f;
    ptx_val to = ptx_add(f, r->to, offset);
    if (r->is_mx) {
        copy_units(r, to, false);
        return;
    }
    PTX_IF (f, r->is_narrow) {
        ptx_rarely(f);
        copy_units(r, to, true);
    }
    PTX_ELSE (f) {
        copy_units(r, to, false);
    }
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

void fp4_rows_init(fp4_rows *r, ptx_val tid, ptx_val shared)
{
    init_codes(r, tid, shared);
    init_scales(r, tid, shared);
}

void fp4_rows_copy(fp4_rows *r, ptx_val offset)
{
    ptx_fn *f = r->f;
    const bool all_have_codes = r->has_codes.type == PTX_NONE,
               all_have_scales = r->has_scales.type == PTX_NONE;
    IF_NEEDED (f, !all_have_codes, r->has_codes) {
        copy_codes(r, offset);
    }
    if (r->is_branchless && !all_have_scales) {
        PTX_WHEN (f, r->has_scales) {
            copy_scales(r, offset);
        }
    } else {
        IF_NEEDED (f, !all_have_scales, r->has_scales) {
            copy_scales(r, offset);
        }
    }
    for (uint32_t i = 0; i < addresses_of(r); i++)
        ptx_add_to(f, r->from[i], r->codes.row_bytes);
    ptx_sub_to(f, r->left, FP4_STAGE);
    ptx_add_to(f, r->scale_from,
               r->is_tiled ? SCALE_TILE_BYTES * stage_scales(r) / SCALE_TILE_BLOCKS : stage_scales(r));
    ptx_sub_to(f, r->scale_left, stage_scales(r));
}
