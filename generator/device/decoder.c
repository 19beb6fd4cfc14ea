/* What the formats' decoders have in common.
 *
 * NUMBERS FROM BYTES need no conversion: 2^23 + byte is a float whose low bits are the byte, so one prmt puts the byte under
 * 0x4B000000, and one subtraction takes 2^23 and the offset away. A product with a factor is one fma instead, as long as the
 * factor times what is taken away is exact: with the byte under 0x47, eight bits up, that is 2^15 + bias, at most 9 bits
 * times the 11 of a factor. But then 0 * factor is +0, and an infinite factor is lost: infinity - infinity.
 */
#include "decoder.h"

enum { RAISED_EIGHT = 0x47000000 };

void decode_load(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t run, uint32_t byte,
                 uint32_t count, ptx_val words[])
{
    bytes_load(f, &place->order, place->run[run], lane->alignment[run], lane->format->runs[run].byte + byte,
               count, words);
}

void decode_halves(ptx_fn *f, ptx_val word, ptx_val x[2])
{
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, word);
    for (uint32_t i = 0; i < 2; i++)
        x[i] = ptx_cvt(f, PTX_F32, halves[i]);
}

ptx_val decode_low_half(ptx_fn *f, ptx_val word)
{
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, word);
    return ptx_cvt(f, PTX_F32, halves[0]);
}

static ptx_val exact_product(ptx_fn *f, ptx_val factor, ptx_val bytes, uint32_t i, uint32_t bias)
{
    ptx_val raised = ptx_prmt(f, bytes, ptx_u32(DECODE_RAISED), ptx_u32(0x7440 + i));
    ptx_val number = ptx_sub(f, ptx_as(f, PTX_F32, raised), ptx_f32(0x1p23f + (float)bias));
    return ptx_mul(f, number, factor);
}

void decode_products(ptx_fn *f, const format_lane *lane, ptx_val factor, ptx_val bytes, uint32_t first,
                     uint32_t bias, bool is_scale, ptx_val products[])
{
    ptx_val scaled = factor, minus_raised = {0};
    for (uint32_t part = 0; part < lane->format->parts; part++) {
        uint32_t i = first + part,
                 down = is_scale && lane->rule == FORMAT_RAISED ? decode_raise(lane, part) : 0;
        if (lane->rule == FORMAT_EXACT) {
            products[part] = exact_product(f, factor, bytes, i, bias);
            continue;
        }
        if (down > 0)
            scaled = ptx_mul(f, factor, ptx_f32(1.0f / (float)(1u << down)));
        if (part == 0 || down > 0)
            minus_raised = ptx_mul(f, scaled, ptx_f32(-(0x1p15f + (float)bias)));
        ptx_val raised = ptx_prmt(f, bytes, ptx_u32(RAISED_EIGHT), ptx_u32(0x7404 + (i << 4)));
        products[part] = ptx_fma(f, ptx_as(f, PTX_F32, raised), scaled, minus_raised);
    }
}

ptx_val decode_shift(ptx_fn *f, ptx_val word, int shift)
{
    if (shift == 0)
        return word;
    return shift > 0 ? ptx_shr(f, word, ptx_u32((uint32_t)shift))
                     : ptx_shl(f, word, ptx_u32((uint32_t)-shift));
}
