/* The table of formats, and where a lane finds its words. */
#include "decoder.h"
#include "narrow.h"

#include <string.h>

/* clang-format off */
#define UNITS(...)  {RUN_UNITS, .byte = __VA_ARGS__}
#define GROUP(...)  {RUN_GROUP, .byte = __VA_ARGS__}
#define SCALES(...) {RUN_SCALES, .byte = __VA_ARGS__}

static const weight_format table[] = {
    /* name     elements bytes groups units parts quads step offset raise lift signed minimum, decoder, runs */
    {"q4_0",   32,      18,   1,     4,    1,    2,    16,  8,     0,    4,   false, false, &format_decode_nibbles,
     {UNITS(2)}},
    {"q4_1",   32,      20,   1,     4,    1,    2,    16,  0,     0,    4,   false, true,  &format_decode_nibbles,
     {UNITS(4)}},
    {"q5_0",   32,      22,   1,     4,    1,    2,    16,  16,    0,    0,   false, false, &format_decode_fives,
     {UNITS(6), GROUP(2)}},
    {"q5_1",   32,      24,   1,     4,    1,    2,    16,  0,     0,    0,   false, true,  &format_decode_fives,
     {UNITS(8), GROUP(4)}},
    {"q8_0",   32,      34,   1,     8,    1,    1,    0,   0,     0,    0,   true,  false, &format_decode_bytes,
     {UNITS(2)}},
    {"q2_k",   256,     84,   4,     4,    4,    4,    32,  0,     2,    2,   false, true,  &format_decode_q2k,
     {UNITS(16, .group = 16), SCALES(0, .half = 8)}},
    {"q3_k",   256,     110,  4,     4,    4,    4,    32,  4,     0,    0,   false, false, &format_decode_q3k,
     {UNITS(32, .group = 16), UNITS(0, .odd = 16), SCALES(96)}},
    {"q4_k",   256,     144,  4,     8,    2,    2,    32,  0,     4,    4,   false, true,  &format_decode_q4k,
     {UNITS(16, .group = 32), SCALES(0)}},
    {"q5_k",   256,     176,  4,     8,    2,    2,    32,  0,     0,    0,   false, true,  &format_decode_q5k,
     {UNITS(48, .group = 32), UNITS(16), SCALES(0)}},
    {"q6_k",   256,     210,  4,     4,    4,    4,    32,  32,    0,    0,   false, false, &format_decode_q6k,
     {UNITS(0, .half = 64, .odd = 16), UNITS(32, .half = 64, .odd = 16), UNITS(128, .group = 16), SCALES(192, .half = 8)}},
    {"iq4_nl", 32,      18,   1,     4,    1,    2,    16,  0,     0,    0,   true,  false, &format_decode_iq4nl,
     {UNITS(2)}},
    {"iq4_xs", 256,     136,  8,     4,    1,    2,    16,  0,     0,    0,   true,  false, &format_decode_iq4xs,
     {UNITS(8, .group = 16), SCALES(0)}},
    {"mxfp4",  32,      17,   1,     4,    1,    2,    16,  12,    0,    0,   false, false, &format_decode_mxfp4,
     {UNITS(1)}},
    {"tq2_0",  256,     66,  4,     4,    4,    4,    32,  1,     0,    0,   false, false, &format_decode_tq2,
     {UNITS(0, .group = 16)}},
};
/* clang-format on */

const weight_format *format_at(uint32_t i)
{
    return i < sizeof table / sizeof table[0] ? &table[i] : NULL;
}

const weight_format *format_named(const char *name)
{
    for (uint32_t i = 0; format_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* Groups of 4 parts are the even and the odd sixteens of each half of a super-block. */
ptx_val format_group_element(ptx_fn *f, const weight_format *w, ptx_val group)
{
    if (w->groups == 1)
        return ptx_u32(0);
    if (w->parts < 4)
        return ptx_mul(f, group, ptx_u32(format_group_elements(w)));
    ptx_val half = ptx_shr(f, group, ptx_u32(1));
    ptx_val odd = ptx_and(f, group, ptx_u32(1));
    ptx_val first = ptx_shl(f, half, ptx_u32(7));
    return ptx_mad(f, odd, ptx_u32(16), first);
}

/* ---- the lane ----------------------------------------------------------------------------------------------------- */

static uint32_t lower(uint32_t alignment, uint32_t step)
{
    while (step % alignment != 0)
        alignment /= 2;
    return alignment;
}

static void add_term(ptx_fn *f, format_lane *lane, uint32_t run, ptx_val count, uint32_t step)
{
    if (step == 0)
        return;
    ptx_val *offset = &lane->offset[run];
    *offset = offset->type == PTX_NONE ? ptx_mul(f, count, ptx_u32(step))
                                       : ptx_mad(f, count, ptx_u32(step), *offset);
    lane->alignment[run] = lower(lane->alignment[run], step);
}

static bool same_steps(const format_run *a, const format_run *b)
{
    return a->kind == b->kind && a->group == b->group && a->half == b->half && a->odd == b->odd;
}

static void find_offset(ptx_fn *f, format_lane *lane, uint32_t run)
{
    const format_run *r = &lane->format->runs[run];
    lane->alignment[run] = format_alignment(lane->format);
    if (run > 0 && same_steps(r, r - 1)) {
        lane->offset[run] = lane->offset[run - 1];
        lane->alignment[run] = lane->alignment[run - 1];
        return;
    }
    add_term(f, lane, run, lane->group, r->group);
    if (r->half > 0)
        add_term(f, lane, run, ptx_shr(f, lane->group, ptx_u32(1)), r->half);
    if (r->odd > 0)
        add_term(f, lane, run, ptx_and(f, lane->group, ptx_u32(1)), r->odd);
    if (lane->unit.type != PTX_NONE && r->kind == RUN_UNITS)
        add_term(f, lane, run, lane->unit, 4);
}

format_lane format_lane_init(ptx_fn *f, const weight_format *w, ptx_val group, ptx_val unit, format_rule rule)
{
    format_lane lane = {.format = w, .rule = rule, .group = group, .unit = unit};
    for (uint32_t run = 0; run < FORMAT_RUNS && w->runs[run].kind != RUN_NONE; run++)
        find_offset(f, &lane, run);
    if (w->decoder->init != NULL)
        w->decoder->init(f, &lane);
    return lane;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

static ptx_val further(ptx_fn *f, ptx_val pointer, ptx_val bytes)
{
    ptx_val moved = ptx_at(f, ptx_cast_ptr(f, pointer, PTX_U8), bytes);
    return ptx_cast_ptr(f, moved, PTX_U32);
}

/* The phase of the words: all runs but those at multiples of 4 have the first one's. */
static uint32_t phase_of(const weight_format *w)
{
    return w->runs[0].byte % 4;
}

static void find_runs(ptx_fn *f, const format_lane *lane, format_place *p)
{
    for (uint32_t i = 0; i < FORMAT_RUNS && lane->format->runs[i].kind != RUN_NONE; i++) {
        bool is_like_last = i > 0 && same_steps(&lane->format->runs[i], &lane->format->runs[i - 1]);
        if (is_like_last)
            p->run[i] = p->run[i - 1];
        else if (lane->offset[i].type == PTX_NONE)
            p->run[i] = p->block;
        else
            p->run[i] = further(f, p->block, lane->offset[i]);
    }
}

format_place format_find(ptx_fn *f, const format_lane *lane, ptx_val block)
{
    uint32_t alignment = format_alignment(lane->format);
    format_place p = {.order = bytes_order(f, block, alignment, phase_of(lane->format))};
    p.block = bytes_round(f, block, alignment);
    find_runs(f, lane, &p);
    return p;
}

format_place format_move(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val bytes)
{
    format_place p = {.order = place->order, .block = further(f, place->block, bytes)};
    find_runs(f, lane, &p);
    return p;
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

void format_codes(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t first,
                  uint32_t count, ptx_val quads[][FORMAT_MOST_QUADS])
{
    const weight_format *w = lane->format;
    ptx_val words[FORMAT_RUNS][FORMAT_MOST_UNITS];
    for (uint32_t run = 0; run < FORMAT_RUNS; run++) {
        if (w->runs[run].kind == RUN_UNITS)
            decode_load(f, lane, place, run, 4 * first, count, words[run]);
        else if (w->runs[run].kind == RUN_GROUP)
            decode_load(f, lane, place, run, 0, 1, words[run]);
    }
    for (uint32_t u = 0; u < count; u++) {
        ptx_val word[FORMAT_RUNS] = {{0}};
        for (uint32_t run = 0; run < FORMAT_RUNS; run++)
            if (w->runs[run].kind == RUN_UNITS || w->runs[run].kind == RUN_GROUP)
                word[run] = words[run][w->runs[run].kind == RUN_UNITS ? u : 0];
        w->decoder->split(f, lane, first + u, word, quads[u]);
        for (uint32_t q = 0; q < w->quads && w->is_signed; q++)
            quads[u][q] = ptx_as(f, PTX_S32, quads[u][q]);
    }
}

void format_floats(ptx_fn *f, const weight_format *w, ptx_val quad, ptx_val x[4])
{
    ptx_val bytes = w->is_signed ? ptx_xor(f, ptx_as(f, PTX_U32, quad), ptx_u32(0x80808080)) : quad;
    float taken = 0x1p23f + (w->is_signed ? 128.0f : (float)w->offset);
    for (uint32_t i = 0; i < 4; i++) {
        ptx_val raised = ptx_prmt(f, bytes, ptx_u32(DECODE_RAISED), ptx_u32(0x7440 + i));
        x[i] = ptx_sub(f, ptx_as(f, PTX_F32, raised), ptx_f32(taken));
    }
}

enum { F16_1024 = 0x64, BF16_128 = 0x43 };

/* The byte of each code under the upper byte of a power of two, which the ulp of that number is 1 of. */
static void raise_codes(ptx_fn *f, ptx_val bytes, ptx_type pair, uint32_t upper, ptx_val raised[2])
{
    for (uint32_t i = 0; i < 2; i++)
        raised[i] = ptx_as(f, pair, ptx_prmt(f, bytes, ptx_u32(upper), ptx_u32(0x4140 + 0x202 * i)));
}

/* 1024 of F16 has ten bits for the code, and 128 of BF16 seven. A signed byte is its low seven bits less its high one, 128: that
 * bit of 128 itself makes 256. */
void format_pairs(ptx_fn *f, const weight_format *w, ptx_type type, ptx_val quad, ptx_val pairs[2])
{
    ptx_val bytes = ptx_as(f, PTX_U32, quad), raised[2], taken[2];
    if (type == PTX_F16) {
        raise_codes(f, w->is_signed ? ptx_xor(f, bytes, ptx_u32(0x80808080)) : bytes, PTX_F16X2, F16_1024,
                    raised);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = ptx_sub(f, raised[i], ptx_number(PTX_F16X2, 1024 + (w->is_signed ? 128 : w->offset)));
    } else if (w->is_signed) {
        raise_codes(f, ptx_and(f, bytes, ptx_u32(0x7f7f7f7f)), PTX_BF16X2, BF16_128, raised);
        raise_codes(f, ptx_and(f, bytes, ptx_u32(0x80808080)), PTX_BF16X2, BF16_128, taken);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = ptx_fma(f, taken[i], ptx_number(PTX_BF16X2, -1), raised[i]);
    } else {
        raise_codes(f, bytes, PTX_BF16X2, BF16_128, raised);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] =
                ptx_fma(f, raised[i], ptx_number(PTX_BF16X2, 1), ptx_number(PTX_BF16X2, -128 - w->offset));
    }
    for (uint32_t i = 0; i < 2; i++)
        pairs[i] = ptx_as(f, PTX_B32, pairs[i]);
}

/* scale * (code - offset): with the code under 128 one fma makes it, as 128 + offset times a scale is exact. Scales of MXFP4 are too
 * large for that. */
static void scale_codes(ptx_fn *f, const weight_format *w, ptx_val quad, ptx_val scale, ptx_val x[4])
{
    enum { RAISED_128 = 0x43 };
    ptx_val minus_raised = ptx_mul(f, scale, ptx_f32(-128.0f - (float)w->offset));
    for (uint32_t i = 0; i < 4; i++) {
        ptx_val raised = ptx_prmt(f, quad, ptx_u32(RAISED_128), ptx_u32(0x4077 | i << 8));
        x[i] = ptx_fma(f, ptx_as(f, PTX_F32, raised), scale, minus_raised);
    }
}

void format_weights(ptx_fn *f, const weight_format *w, ptx_type type, bool has_sm_80, ptx_val quad,
                    ptx_val scale, ptx_val minimum, ptx_val pairs[2])
{
    ptx_val x[4];
    if (!w->is_signed && !w->has_minimum && w->decoder != &format_decode_mxfp4) {
        scale_codes(f, w, quad, scale, x);
    } else {
        format_floats(f, w, quad, x);
        for (uint32_t i = 0; i < 4; i++)
            x[i] = w->has_minimum ? ptx_fma(f, x[i], scale, minimum) : ptx_mul(f, x[i], scale);
    }
    for (uint32_t i = 0; i < 2; i++)
        pairs[i] = ptx_as(f, PTX_B32, narrow_pair(f, type, has_sm_80, x[2 * i], x[2 * i + 1]));
}

void format_half_weights(ptx_fn *f, const weight_format *w, ptx_val quad, uint32_t lift, ptx_val scale,
                         ptx_val minimum, ptx_val pairs[2])
{
    const double down = 1.0 / (1 << lift), offset = w->is_signed ? 128 : w->offset;
    ptx_val bytes = ptx_as(f, PTX_U32, quad), codes[2];
    if (w->is_signed)
        bytes = ptx_xor(f, bytes, ptx_u32(0x80808080));
    raise_codes(f, bytes, PTX_F16X2, F16_1024, codes);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val taken = ptx_number(PTX_F16X2, -1024 * down - offset);
        codes[i] =
            lift > 0 ? ptx_fma(f, codes[i], ptx_number(PTX_F16X2, down), taken) : ptx_add(f, codes[i], taken);
        ptx_val scaled = w->has_minimum ? ptx_fma(f, codes[i], scale, minimum) : ptx_mul(f, codes[i], scale);
        pairs[i] = ptx_as(f, PTX_B32, scaled);
    }
}

bool format_has_half_numbers(const weight_format *w)
{
    return w->decoder == &format_decode_tq2 || (w->elements == 32 && w->decoder != &format_decode_mxfp4);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

void format_numbers(ptx_fn *f, const format_lane *lane, const format_place *place,
                    ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    lane->format->decoder->numbers(f, lane, place, scale, minimum);
}

void format_denormals(ptx_fn *f, ptx_val quad, ptx_val x[4])
{
    for (uint32_t i = 0; i < 4; i++)
        x[i] = ptx_as(f, PTX_F32, ptx_prmt(f, quad, ptx_u32(0), ptx_u32(0x4440 + i)));
}
