/* Types and geometry of the 4-bit quantisers.
 *
 * A warp works on a tile of 4 steps. It takes 8 if its scales then fill whole sectors of 32 bytes, or if fewer neighbours
 * share a sector (groups whose size is an argument). In a step each lane takes 16 bytes of the tensor (2, 4 or 8 elements),
 * so that a warp reads and writes whole sectors. A group is 4 to 32 lanes of a step, or all lanes of 2 or 4 steps. Only
 * scales of groups of any size use shared memory.
 */
#include "device/lanes.h"
#include "device/narrow.h"
#include "quant.h"

quant quant_init(ptx_fn *f, const kiln_variant *v, quant_coder coder)
{
    quant q = {.f = f, .coder = coder, .type = kiln_type(v, "type")};
    q.wide = q.type == PTX_F64 ? PTX_F64 : PTX_F32;
    q.stored = coder == QUANT_INT4_ASYM ? 2 : 1;
    q.lane_elements = q.type == PTX_F64 ? 2 : q.type == PTX_F32 ? 4 : 8;
    q.has_pairs = kiln_has_sm(v, 80) && q.lane_elements == 8;
    q.step_elements = 32 * q.lane_elements;
    q.group = kiln_is(v, "group", "any") ? 0 : kiln_int(v, "group");
    bool has_many_steps = q.group == 0 || (q.group >= 128 && q.lane_elements < 8);
    q.steps = has_many_steps ? QUANT_MOST_STEPS : QUANT_MOST_STEPS / 2;
    q.tile_elements = q.steps * q.step_elements;
    q.large_group = q.wide == PTX_F64 ? 1024 : 2048;
    if (q.group == 0)
        return q;
    q.lanes = q.group / q.lane_elements < 32 ? q.group / q.lane_elements : 32;
    q.row_steps = q.group > q.step_elements ? q.group / q.step_elements : 1;
    q.rows = q.steps / q.row_steps;
    return q;
}

/* ---- the warp's tile ---------------------------------------------------------------------------------------------- */

ptx_val quant_find_tile(quant *q)
{
    ptx_fn *f = q->f;
    q->lane = ptx_laneid(f);
    ptx_val warp = ptx_warpid_x(f);
    ptx_val block = ptx_ctaid_x(f);
    ptx_val index = ptx_mad(f, block, QUANT_WARPS, warp);
    q->first = ptx_mul_wide(f, index, q->tile_elements);
    return ptx_lt(f, q->first, q->n);
}

ptx_val quant_find_left(quant *q)
{
    ptx_fn *f = q->f;
    ptx_val left = ptx_sub(f, q->n, q->first);
    ptx_val capped = ptx_min(f, left, q->tile_elements);
    q->left = ptx_cvt(f, PTX_U32, capped);
    q->lane_first = ptx_mad_wide(f, q->lane, q->lane_elements, q->first);
    return ptx_eq(f, q->left, q->tile_elements);
}

ptx_val quant_tile_at(quant *q)
{
    return ptx_at(q->f, q->tensor, q->lane_first);
}

ptx_val quant_packed_at(quant *q)
{
    ptx_val byte = ptx_shr(q->f, q->lane_first, 1);
    return ptx_at(q->f, q->packed, byte);
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* The 2 or 4 words of a step, as in memory. */
static uint32_t step_words(const quant *q)
{
    return q->lane_elements == 8 ? 4 : q->lane_elements;
}

static void load_words(quant *q, ptx_val at, uint32_t step, ptx_val words[4])
{
    const int count = (int)step_words(q);
    ptx_val from = q->lane_elements == 8 ? ptx_cast_ptr(q->f, at, PTX_U32) : at;
    ptx_load_vec(q->f, count, words, ptx_at_const(q->f, from, 32 * count * (int)step),
                 PTX_NC | PTX_NO_ALLOCATE);
}

void quant_load_tile(quant *q, quant_words words)
{
    ptx_val at = quant_tile_at(q);
    for (uint32_t step = 0; step < q->steps; step++)
        load_words(q, at, step, words[step]);
}

void quant_widen_step(quant *q, const ptx_val words[4], ptx_val x[])
{
    widen_words(q->f, q->type, step_words(q), words, x);
}

void quant_load_step(quant *q, ptx_val at, ptx_val x[])
{
    ptx_val words[4];
    load_words(q, at, 0, words);
    quant_widen_step(q, words, x);
}

ptx_val quant_nan(const quant *q)
{
    return ptx_bits(q->wide, q->wide == PTX_F64 ? UINT64_C(0x7fffffffffffffff) : 0x7fffffff);
}

ptx_val quant_load_element(quant *q, ptx_val at, ptx_val in_bounds)
{
    ptx_val nan = q->type == PTX_F16 ? ptx_u16(0x7fff) : q->type == PTX_BF16 ? ptx_u32(0x7fff) : quant_nan(q);
    return widen_load_where(q->f, q->type, at, in_bounds, nan, PTX_NC);
}

ptx_type quant_word_type(const quant *q)
{
    return q->lane_elements == 2 ? PTX_U8 : q->lane_elements == 4 ? PTX_U16 : PTX_U32;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

ptx_val quant_number_at(quant *q, uint32_t i, ptx_val first, ptx_val index)
{
    ptx_val at = ptx_at(q->f, q->number[i], first);
    return ptx_at(q->f, at, index);
}

quant_numbers quant_load_numbers(quant *q, ptx_val first, ptx_val index, const ptx_val *in_bounds)
{
    ptx_fn *f = q->f;
    quant_numbers g = {.at = {{0}}};
    if (q->is_nested) {
        ptx_val number = ptx_add(f, first, ptx_cvt(f, PTX_U64, index));
        nf4_nested_load(&q->nested, 1, &number, in_bounds, &g.at[QUANT_SCALE]);
        return g;
    }
    for (uint32_t i = 0; i < q->stored; i++) {
        ptx_val at = quant_number_at(q, i, first, index);
        g.at[i] = in_bounds ? widen_load_where(f, q->wide, at, *in_bounds, ptx_number(q->wide, 1), PTX_NC)
                            : ptx_load_hint(f, at, PTX_NC);
    }
    return g;
}
