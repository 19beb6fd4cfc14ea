/* Codes of 8 bits, and numbers rounded to a few bits. */
#include "codes.h"

#include "narrow.h"

#include <math.h>

enum { LOWEST_BYTES = 0x0040, HIGHEST_BYTES = 0x0073 };

/* ---- rounding ----------------------------------------------------------------------------------------------------------- */

const small_float small_float_e2m1 = {.fraction_bits = 1, .least_exponent = 0, .largest = 6};
const small_float small_float_e4m3 = {.fraction_bits = 3, .least_exponent = -6, .largest = 448};

/* Rounds by adding a power of two so large that the sum's last bit is the last one to keep. The power comes from x's
 * exponent; below the smallest normal number, where all numbers have the same last bit, from that number's exponent. */
ptx_val small_float_round(ptx_fn *f, const small_float *to, ptx_val x)
{
    const float raise = ldexpf(1, 23 - (int)to->fraction_bits);
    ptx_val magnitude = ptx_min(f, ptx_abs(f, x), to->largest);
    ptx_val normal = ptx_max(f, magnitude, ldexpf(1, to->least_exponent));
    ptx_val exponent = ptx_and(f, ptx_as(f, PTX_U32, normal), 0x7f800000);
    ptx_val power = ptx_as(f, PTX_F32, exponent);
    ptx_val sum = ptx_fma(f, power, raise, magnitude);
    return ptx_fma(f, power, -raise, sum);
}

/* Scales x so that the small type's smallest normal number becomes f32's; the code is then in the highest bits of the f32. */
ptx_val small_float_code(ptx_fn *f, const small_float *of, ptx_val rounded)
{
    ptx_val moved = ptx_mul(f, rounded, ldexpf(1, -126 - of->least_exponent));
    return ptx_as(f, PTX_U32, moved);
}

/* ---- codes of values ---------------------------------------------------------------------------------------------------- */

/* One byte of each of four words; `selector` picks it from a pair of words. */
static ptx_val pick(ptx_fn *f, const ptx_val words[CODES], uint32_t selector)
{
    ptx_val low = ptx_prmt(f, words[0], words[1], selector);
    ptx_val high = ptx_prmt(f, words[2], words[3], selector);
    return ptx_prmt(f, low, high, 0x5410);
}

ptx_val codes_join(ptx_fn *f, const ptx_val words[CODES])
{
    return pick(f, words, LOWEST_BYTES);
}

ptx_val codes_sign(ptx_fn *f, ptx_val x, uint32_t mask, ptx_val code)
{
    return ptx_lop3(f, x, mask, code, 0xEA); /* (a & b) | c */
}

/* The code is in the highest byte: small_float's code is shifted left by 20, below a free bit for the sign. */
static ptx_val e4m3_software(ptx_fn *f, ptx_val x)
{
    ptx_val rounded = small_float_round(f, &small_float_e4m3, x);
    ptx_val code = ptx_shl(f, small_float_code(f, &small_float_e4m3, rounded), 4);
    ptx_val signed_code = codes_sign(f, ptx_as(f, PTX_U32, x), 0x80000000, code);
    return ptx_select(f, ptx_ordered(f, x, x), signed_code, 0x7f000000);
}

ptx_val codes_e4m3(ptx_fn *f, const ptx_val x[CODES])
{
    if (ptx_has_sm(f, 89)) {
        ptx_val pairs[2];
        pairs[0] = ptx_e4m3x2_from_f32(f, x[0], x[1]);
        pairs[1] = ptx_e4m3x2_from_f32(f, x[2], x[3]);
        return ptx_pack(f, PTX_U32, 2, pairs);
    }
    ptx_val words[CODES];
    for (uint32_t i = 0; i < CODES; i++)
        words[i] = e4m3_software(f, x[i]);
    return pick(f, words, HIGHEST_BYTES);
}

ptx_val codes_int8(ptx_fn *f, const ptx_val x[CODES])
{
    ptx_val words[CODES];
    for (uint32_t i = 0; i < CODES; i++) {
        ptx_val code = ptx_min(f, ptx_cvt_rni(f, PTX_S32, x[i]), 127);
        words[i] = ptx_as(f, PTX_U32, ptx_max(f, code, -128));
    }
    return codes_join(f, words);
}

/* As an integer, a NaN's bits are above those of all numbers. */
ptx_val codes_absmax(ptx_fn *f, const ptx_val x[], uint32_t count, uint32_t lanes)
{
    ptx_val most = ptx_as(f, PTX_U32, ptx_f32(INT8_LEAST_ABSMAX));
    for (uint32_t i = 0; i < count; i++)
        most = ptx_max(f, most, ptx_as(f, PTX_U32, ptx_abs(f, x[i])));
    return ptx_as(f, PTX_F32, ptx_reduce_lanes(f, PTX_OP_MAX, (int)lanes, most));
}

/* ---- values of codes ------------------------------------------------------------------------------------------------- */

static ptx_val to_pair(ptx_fn *f, ptx_type type, ptx_val bits)
{
    return ptx_as(f, type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2, bits);
}

static ptx_val both(ptx_fn *f, ptx_type type, uint32_t bits)
{
    return to_pair(f, type, ptx_u32(bits << 16 | bits));
}

static ptx_val times(ptx_fn *f, ptx_type type, ptx_val x, uint32_t bits)
{
    enum { MINUS_0 = 0x8000 };
    if (type == PTX_BF16) /* from sm_80 on; the multiplication from sm_90 on */
        return ptx_fma(f, x, both(f, type, bits), both(f, type, MINUS_0));
    return ptx_mul(f, x, both(f, type, bits));
}

/* One byte per half: the upper byte is from `above`, the lower one is a code. */
static ptx_val spread(ptx_fn *f, ptx_val word, uint32_t above, bool apart, int i)
{
    static const uint32_t selectors[2][2] = {{0x4140, 0x4342}, {0x4240, 0x4341}};
    return ptx_prmt(f, word, above * 0x01010101U, selectors[apart][i]);
}

/* F16: a code below 2^(10 - down) fits the last bits of a number. BF16 has room for seven bits; the eighth bit is worth -128. */
static ptx_val int8_pair(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, int i)
{
    enum { LAST_BIT_IS_1 = 0x64, LOG2 = 4, BF16_LAST_BIT_IS_1 = 0x43, MINUS_1 = 0xbf80 };
    if (of->type == PTX_F16) {
        const uint32_t above = LAST_BIT_IS_1 - LOG2 * of->down;
        ptx_val raised = ptx_as(f, PTX_F16X2, spread(f, word, above, apart, i));
        return ptx_sub(f, raised, both(f, PTX_F16, above << 8 | 0x80));
    }
    ptx_val raised = spread(f, word, BF16_LAST_BIT_IS_1, apart, i);
    ptx_val low = ptx_as(f, PTX_BF16X2, ptx_and(f, raised, 0xff7fff7f));
    ptx_val sign = ptx_as(f, PTX_BF16X2, ptx_and(f, raised, 0xff80ff80));
    return ptx_fma(f, sign, both(f, PTX_BF16, MINUS_1), low);
}

/* F16 has one more exponent bit, BF16 four, and a bias greater by 8 and 120. So shifting a magnitude under zero bits gives a
 * number too small by a power of two, for subnormal numbers too. */
ptx_val codes_small_e4m3(ptx_fn *f, ptx_type type, ptx_val word, uint32_t selector, ptx_val *magnitudes)
{
    const bool is_bf16 = type == PTX_BF16;
    ptx_val high = ptx_prmt(f, word, 0, selector);
    ptx_val moved = ptx_shr(f, high, is_bf16 ? 4 : 1);
    *magnitudes = ptx_and(f, moved, is_bf16 ? 0x07f007f0 : 0x3f803f80);
    return to_pair(f, type, codes_sign(f, high, 0x80008000, *magnitudes));
}

/* Code 0x7f, NaN, decodes to 480. Times a factor that overflows only 480, then times 0, it gives NaN; all others give 0. */
static ptx_val e4m3_pair(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, int i)
{
    static const uint32_t above[2][2] = {{CODES_FIRST_TWO, 0x3424}, {0x2404, 0x3414}};
    const bool is_bf16 = of->type == PTX_BF16;
    ptx_val magnitudes, small = codes_small_e4m3(f, of->type, word, above[apart][i], &magnitudes);
    ptx_val value = times(f, of->type, small, is_bf16 ? 0x7b80 : 0x5c00);
    ptx_val none = times(f, of->type, value, is_bf16 ? 0x7b10 : 0x5880);
    return ptx_fma(f, none, both(f, of->type, 0), value);
}

static void e4m3_pairs_sm_89(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, ptx_val pairs[2])
{
    ptx_val halves[2], x[2];
    if (apart)
        word = ptx_prmt(f, word, 0, 0x3120);
    ptx_unpack(f, PTX_B16, 2, halves, word);
    for (int i = 0; i < 2; i++) {
        pairs[i] = ptx_f16x2_from_e4m3x2(f, halves[i]);
        if (of->type == PTX_F16)
            continue;
        widen_pair(f, PTX_F16, ptx_as(f, PTX_U32, pairs[i]), x);
        pairs[i] = ptx_as(f, PTX_BF16X2, narrow_pair(f, PTX_BF16, x[0], x[1]));
    }
}

void codes_pairs(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, ptx_val pairs[2])
{
    if (of->is_e4m3 && ptx_has_sm(f, 89)) {
        e4m3_pairs_sm_89(f, of, word, apart, pairs);
        return;
    }
    if (!of->is_e4m3 && of->type == PTX_F16)
        word = ptx_xor(f, word, 0x80808080); /* now from 0 to 255 */
    for (int i = 0; i < 2; i++)
        pairs[i] = (of->is_e4m3 ? e4m3_pair : int8_pair)(f, of, word, apart, i);
}

void codes_widen(ptx_fn *f, const codes_values *of, ptx_val word, ptx_val x[CODES])
{
    const codes_values values = {PTX_F16, of->is_e4m3, 0};
    ptx_val pairs[2];
    codes_pairs(f, &values, word, false, pairs);
    for (int i = 0; i < 2; i++)
        widen_pair(f, PTX_F16, ptx_as(f, PTX_U32, pairs[i]), &x[2 * i]);
}
