/* Types and geometry of the 4-bit quantisers.
 *
 * In a step each lane takes 16 bytes of the tensor (2, 4 or 8 elements), so that a warp reads and writes whole sectors. A warp
 * works on a tile of 4 steps; of 8 if the size of groups is an argument, and in f32 and f64 with groups of 128 or more, where two
 * warps would share a sector of the few scales of 4 steps. A group is 4 to 32 lanes of a step, or all lanes of 2 or 4 steps. Only
 * scales of groups of any size use shared memory.
 */
#include "device/if_needed.h"
#include "device/narrow.h"
#include "quant.h"

quant quant_init(ptx_fn *f, const kiln_variant *v, quant_coder coder)
{
    quant q = {.f = f, .coder = coder, .type = kiln_type(v, "type")};
    q.wide = q.type == PTX_F64 ? PTX_F64 : PTX_F32;
    q.stored = coder == QUANT_INT4_ASYM ? 2 : 1;
    q.lane_elements = q.type == PTX_F64 ? 2 : q.type == PTX_F32 ? 4 : 8;
    q.step_elements = 32 * q.lane_elements;
    q.group = kiln_is(v, "group", "any") ? 0 : kiln_int(v, "group");
    q.has_pairs = kiln_has_sm(v, 80) && q.lane_elements == 8 && q.group > 0;
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
    ptx_val index = ptx_mad(f, ptx_ctaid_x(f), QUANT_WARPS, warp);
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

quant quant_cut(const quant *tile, ptx_val start, uint32_t steps)
{
    ptx_fn *f = tile->f;
    quant q = *tile;
    q.steps = q.row_steps = steps;
    q.rows = 1;
    q.has_pairs = false;
    q.is_cut = true;
    q.offset = ptx_mad(f, q.lane, q.lane_elements, start);
    /* With pairs, and for scales alone, no register is left to keep the lane's first element over a whole tile. */
    const bool recomputes = tile->has_pairs || (q.makes_scales && !q.makes_codes);
    ptx_val base = recomputes ? q.first : q.lane_first, after = recomputes ? q.offset : start;
    q.lane_first = ptx_add(f, base, ptx_cvt(f, PTX_U64, after));
    q.has = ptx_as(f, PTX_S32, ptx_sub(f, tile->left, q.offset));
    return q;
}

ptx_val quant_in_bounds(const quant *q, uint32_t step, uint32_t i)
{
    return ptx_gt(q->f, q->has, (int)(step * q->step_elements + i));
}

ptx_val quant_tile_at(quant *q)
{
    return ptx_at(q->f, q->tensor, q->lane_first);
}

ptx_val quant_packed_at(quant *q)
{
    return ptx_at(q->f, q->packed, ptx_shr(q->f, q->lane_first, 1));
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Words of memory that hold `count` elements: F64 is a word, too. */
static uint32_t words_of(const quant *q, uint32_t count)
{
    return q->lane_elements == 8 ? count / 2 : count;
}

void quant_load_words(quant *q, uint32_t count, ptx_val at, ptx_val x[])
{
    ptx_val from = q->lane_elements == 8 ? ptx_cast_ptr(q->f, at, PTX_U32) : at;
    ptx_load_vec(q->f, (int)words_of(q, count), x, from, PTX_NC | PTX_NO_ALLOCATE);
}

void quant_widen(quant *q, uint32_t count, ptx_val x[])
{
    ptx_val words[4];
    for (uint32_t i = 0; i < words_of(q, count); i++)
        words[i] = x[i];
    widen_words(q->f, q->type, words_of(q, count), words, x);
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

void quant_load_elements(quant *q, uint32_t count, ptx_val at, const ptx_val in_bounds[], ptx_val x[])
{
    ptx_fn *f = q->f;
    for (uint32_t i = 0; i < count; i++)
        x[i] = ptx_declare(f, q->wide);
    PTX_IF (f, in_bounds[count - 1]) {
        ptx_val all[QUANT_MOST_LANE_ELEMENTS];
        quant_load_words(q, count, at, all);
        quant_widen(q, count, all);
        for (uint32_t i = 0; i < count; i++)
            ptx_set(f, x[i], all[i]);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i + 1 < count; i++)
            ptx_set(f, x[i], quant_load_element(q, ptx_at_const(f, at, i), in_bounds[i]));
        ptx_set(f, x[count - 1], quant_nan(q));
    }
}

void quant_load_cut(quant *q, ptx_val at, uint32_t step, ptx_val x[])
{
    ptx_val in_bounds[QUANT_MOST_LANE_ELEMENTS] = {{0}};
    for (uint32_t i = 0; i < q->lane_elements; i++)
        in_bounds[i] = quant_in_bounds(q, step, i);
    quant_load_elements(q, q->lane_elements, ptx_at_const(q->f, at, step * q->step_elements), in_bounds, x);
}

void quant_store_elements(quant *q, ptx_val at, uint32_t step, const ptx_val x[])
{
    ptx_fn *f = q->f;
    at = ptx_at_const(f, at, step * q->step_elements);
    IF_NEEDED (f, q->is_cut, quant_in_bounds(q, step, q->lane_elements - 1)) {
        narrow_store(f, q->type, q->lane_elements, at, x, PTX_CS);
    }
    if (q->is_cut)
        PTX_ELSE (f) {
            for (uint32_t i = 0; i + 1 < q->lane_elements; i++)
                narrow_store_where(f, q->type, q->wide, ptx_at_const(f, at, i), x[i],
                                   quant_in_bounds(q, step, i));
        }
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* A lane's codes of a step, in one word. */
static ptx_val word_at(quant *q, ptx_val at, uint32_t step)
{
    const ptx_type word = q->lane_elements == 2 ? PTX_U8 : q->lane_elements == 4 ? PTX_U16 : PTX_U32;
    return ptx_at_const(q->f, ptx_cast_ptr(q->f, at, word), 32 * step);
}

static ptx_val byte_at(quant *q, ptx_val at, uint32_t step, uint32_t i)
{
    return ptx_at_const(q->f, at, (step * q->step_elements + i) / 2);
}

/* Whether a cut tile has all of this lane's codes of a step, for one access instead of one per byte. */
static ptx_val has_word(const quant *q, uint32_t step)
{
    return ptx_gt(q->f, q->has, (int)(step * q->step_elements + q->lane_elements - 1));
}

ptx_val quant_load_codes(quant *q, ptx_val at, uint32_t step)
{
    ptx_fn *f = q->f;
    if (!q->is_cut)
        return ptx_load_as(f, PTX_U32, word_at(q, at, step), PTX_NC | PTX_NO_ALLOCATE);
    ptx_val codes = ptx_var(f, ptx_u32(0));
    PTX_IF (f, has_word(q, step)) {
        ptx_set(f, codes, ptx_load_as(f, PTX_U32, word_at(q, at, step), PTX_NC));
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i += 2) {
            ptx_val two = ptx_var(f, ptx_u32(0));
            PTX_WHEN (f, quant_in_bounds(q, step, i)) {
                ptx_set(f, two, ptx_load_hint(f, byte_at(q, at, step, i), PTX_NC));
            }
            ptx_mad_to(f, codes, two, UINT32_C(1) << 4 * i);
        }
    }
    return codes;
}

void quant_store_codes(quant *q, ptx_val at, uint32_t step, ptx_val codes)
{
    ptx_fn *f = q->f;
    IF_NEEDED (f, q->is_cut, has_word(q, step)) {
        ptx_store(f, word_at(q, at, step), codes);
    }
    if (q->is_cut)
        PTX_ELSE (f) {
            for (uint32_t i = 0; i < q->lane_elements; i += 2) {
                ptx_val two = i == 0 ? codes : ptx_shr(f, codes, 4 * i);
                PTX_WHEN (f, quant_in_bounds(q, step, i)) {
                    ptx_store(f, byte_at(q, at, step, i), two);
                }
            }
        }
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

ptx_val quant_number_at(quant *q, uint32_t i, ptx_val first, ptx_val index)
{
    return ptx_at(q->f, ptx_at(q->f, q->number[i], first), index);
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
