/* Codes of 8 bits. */
#include "codes.h"

#include "small_float.h"

enum { LOWEST_BYTES = 0x0040, HIGHEST_BYTES = 0x0073 };

/* One byte of each of four words, which prmt finds in two of them by `selector`. */
static ptx_val pick(ptx_fn *f, const ptx_val words[CODES], uint32_t selector)
{
    ptx_val low = ptx_prmt(f, words[0], words[1], ptx_u32(selector));
    ptx_val high = ptx_prmt(f, words[2], words[3], ptx_u32(selector));
    return ptx_prmt(f, low, high, ptx_u32(0x5410));
}

/* In the highest byte. small_float's code is 20 bits up, below a bit for the sign that it does not have. */
static ptx_val e4m3_software(ptx_fn *f, ptx_val x)
{
    ptx_val rounded = small_float_round(f, &small_float_e4m3, x);
    ptx_val code = ptx_shl(f, small_float_code(f, &small_float_e4m3, rounded), ptx_u32(4));
    ptx_val sign = ptx_as(f, PTX_U32, x);
    ptx_val signed_code = ptx_lop3(f, sign, ptx_u32(0x80000000), code, 0xEA); /* (a & b) | c */
    return ptx_select(f, ptx_ordered(f, x, x), signed_code, ptx_u32(0x7f000000));
}

ptx_val codes_e4m3(ptx_fn *f, bool has_sm_89, const ptx_val x[CODES])
{
    if (has_sm_89) {
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
        ptx_val code = ptx_min(f, ptx_cvt_rni(f, PTX_S32, x[i]), ptx_s32(127));
        words[i] = ptx_as(f, PTX_U32, ptx_max(f, code, ptx_s32(-128)));
    }
    return pick(f, words, LOWEST_BYTES);
}
