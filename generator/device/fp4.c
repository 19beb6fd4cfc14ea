/* Codes of e2m1 and their scales. */
#include "fp4.h"

#include "codes.h"
#include "narrow.h"

/* Four bytes of 0x80 or 0: the signs of codes 4 * half and on. prmt's selectors from 8 on fill a byte with the highest bit of
 * another byte: an odd code's sign in the word, an even code's in the word shifted by one code. */
static ptx_val signs_of(ptx_fn *f, ptx_val word, ptx_val shifted, uint32_t half)
{
    ptx_val filled = ptx_prmt(f, shifted, word, half == 0 ? 0xd9c8 : 0xfbea);
    return ptx_and(f, filled, 0x80808080);
}

/* prmt looks up magnitudes, with codes as its selectors: the upper bytes of 0, 1/2, 1, 3/2, 2, 3, 4 and 6, and for BF16 the
 * lower bytes, which are 0 in F16. */
void fp4_pairs(ptx_fn *f, ptx_type type, ptx_val word, ptx_val pairs[FP4_PAIRS])
{
    const bool is_bf16 = type == PTX_BF16;
    ptx_val magnitudes = ptx_and(f, word, 0x77777777), shifted = ptx_shl(f, word, 4);
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val selector = half == 0 ? magnitudes : ptx_shr(f, magnitudes, 16);
        ptx_val upper = is_bf16 ? ptx_prmt(f, ptx_u32(0x3f3f3f00), ptx_u32(0x40404040), selector)
                                : ptx_prmt(f, ptx_u32(0x3e3c3800), ptx_u32(0x46444240), selector);
        ptx_val lower =
            is_bf16 ? ptx_prmt(f, ptx_u32(0xc0800000), ptx_u32(0xc0804000), selector) : ptx_u32(0);
        ptx_val signs = signs_of(f, word, shifted, half);
        upper = ptx_or(f, upper, signs);
        for (uint32_t i = 0; i < 2; i++) {
            ptx_val pair = is_bf16 ? ptx_prmt(f, lower, upper, i == 0 ? 0x5140 : 0x7362)
                                   : ptx_prmt(f, upper, 0, i == 0 ? 0x1404 : 0x3424);
            pairs[2 * half + i] = ptx_as(f, is_bf16 ? PTX_BF16X2 : PTX_F16X2, pair);
        }
    }
}

ptx_val fp4_scale(ptx_fn *f, ptx_type type, bool is_e8m0, ptx_val byte)
{
    if (!is_e8m0) {
        const codes_values e4m3 = {.type = type, .is_e4m3 = true};
        ptx_val pairs[2], twice = ptx_prmt(f, byte, 0, 0x4400);
        codes_pairs(f, &e4m3, twice, false, pairs);
        return pairs[0];
    }
    if (type == PTX_F16) {
        ptx_val power = ptx_as(f, PTX_F32, ptx_shl(f, byte, 23));
        return ptx_as(f, PTX_F16X2, narrow_pair(f, PTX_F16, power, power));
    }
    enum { LEAST = 0x40 /* 2^-127 is no normal number */ };
    ptx_val power = ptx_max(f, ptx_shl(f, byte, 7), LEAST);
    return ptx_as(f, PTX_BF16X2, ptx_prmt(f, power, 0, 0x1010));
}

ptx_val fp4_weights(ptx_fn *f, ptx_type type, ptx_val pair, ptx_val scale)
{
    if (type == PTX_BF16) /* from sm_80 on; the multiplication from sm_90 on */
        return ptx_as(f, PTX_B32, ptx_fma(f, pair, scale, ptx_number(PTX_BF16X2, -0.0)));
    return ptx_as(f, PTX_B32, ptx_mul(f, pair, scale));
}
