/* Numbers rounded to a few bits. */
#include "small_float.h"

#include <math.h>

const small_float small_float_e2m1 = {.fraction_bits = 1, .least_exponent = 0, .largest = 6};
const small_float small_float_e4m3 = {.fraction_bits = 3, .least_exponent = -6, .largest = 448};

/* A power of two that is larger by so much that the last bit of a sum with it is the last that is kept: adding it rounds, and
 * only once. The power is that of x, or the least of normal numbers, below which all have the same last bit. */
ptx_val small_float_round(ptx_fn *f, const small_float *to, ptx_val x)
{
    const float raise = ldexpf(1, 23 - (int)to->fraction_bits);
    ptx_val magnitude = ptx_min(f, ptx_abs(f, x), ptx_f32(to->largest));
    ptx_val normal = ptx_max(f, magnitude, ptx_f32(ldexpf(1, to->least_exponent)));
    ptx_val exponent = ptx_and(f, ptx_as(f, PTX_U32, normal), ptx_u32(0x7f800000));
    ptx_val power = ptx_as(f, PTX_F32, exponent);
    ptx_val sum = ptx_fma(f, power, ptx_f32(raise), magnitude);
    return ptx_fma(f, power, ptx_f32(-raise), sum);
}

/* Multiplied so that its least normal number is that of f32, a number has its code in the highest bits of f32's. */
ptx_val small_float_code(ptx_fn *f, const small_float *of, ptx_val rounded)
{
    ptx_val moved = ptx_mul(f, rounded, ptx_f32(ldexpf(1, -126 - of->least_exponent)));
    return ptx_as(f, PTX_U32, moved);
}
