/* Single precision: what IEEE 754 and the ISA define to the bit. */
#include "device.h"

KERNEL(float_arithmetic, float, float, float)
{
    EACH(i);
    float sum = a[i] + b[i], difference = a[i] - b[i];
    out[3 * i] = sum;
    out[3 * i + 1] = difference;
    out[3 * i + 2] = a[i] * b[i];
}

KERNEL(float_divide, float, float, float)
{
    EACH(i);
    out[i] = a[i] / b[i];
}

KERNEL(float_square_root, float, float, float)
{
    EACH(i);
    out[2 * i] = sqrtf(a[i]);
    out[2 * i + 1] = __frcp_rn(b[i]);
}

KERNEL(float_fused, float, float, float)
{
    EACH(i);
    out[2 * i] = fmaf(a[i], b[i], a[n - 1 - i]);
    out[2 * i + 1] = fmaf(-a[i], a[i], b[i]);
}

#define ROUNDED(r)                                                                                           \
    KERNEL(float_rounded_##r, float, float, float)                                                           \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[6 * i] = __fadd_##r(a[i], b[i]);                                                                 \
        out[6 * i + 1] = __fmul_##r(a[i], b[i]);                                                             \
        out[6 * i + 2] = __fmaf_##r(a[i], b[i], a[n - 1 - i]);                                               \
        out[6 * i + 3] = __fdiv_##r(a[i], b[i]);                                                             \
        out[6 * i + 4] = __fsqrt_##r(a[i]);                                                                  \
        out[6 * i + 5] = __frcp_##r(b[i]);                                                                   \
    }
ROUNDED(rn)
ROUNDED(rz)
ROUNDED(ru)
ROUNDED(rd)

KERNEL(float_extremes, float, float, float)
{
    EACH(i);
    out[3 * i] = fminf(a[i], b[i]);
    out[3 * i + 1] = fmaxf(a[i], b[i]);
    out[3 * i + 2] = __saturatef(a[i]);
}

/* All comparisons, ordered and not. */
KERNEL(float_compare, uint32_t, float, float)
{
    EACH(i);
    float x = a[i], y = b[i];
    uint32_t r =
        (uint32_t)(x < y) | (uint32_t)(x <= y) << 1 | (uint32_t)(x > y) << 2 | (uint32_t)(x >= y) << 3;
    r |= (uint32_t)(x == y) << 4 | (uint32_t)(x != y) << 5 | (uint32_t) !(x < y) << 6 |
         (uint32_t) !(x >= y) << 7;
    r |= (uint32_t)(x != x || y != y) << 8 | (uint32_t)(x == x) << 9;
    out[i] = r;
}

#define TO_INTEGERS(r)                                                                                       \
    KERNEL(float_to_integer_##r, u64, float, float)                                                          \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[4 * i] = (uint32_t)__float2int_##r(a[i]);                                                        \
        out[4 * i + 1] = __float2uint_##r(a[i]);                                                             \
        out[4 * i + 2] = (u64)__float2ll_##r(a[i]);                                                          \
        out[4 * i + 3] = __float2ull_##r(a[i]);                                                              \
    }                                                                                                        \
    KERNEL(float_from_integer_##r, float, u64, u64)                                                          \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[4 * i] = __int2float_##r((int32_t)a[i]);                                                         \
        out[4 * i + 1] = __uint2float_##r((uint32_t)a[i]);                                                   \
        out[4 * i + 2] = __ll2float_##r((s64)a[i]);                                                          \
        out[4 * i + 3] = __ull2float_##r(a[i]);                                                              \
    }
TO_INTEGERS(rn)
TO_INTEGERS(rz)
TO_INTEGERS(ru)
TO_INTEGERS(rd)

KERNEL(float_whole, float, float, float)
{
    EACH(i);
    out[4 * i] = floorf(a[i]);
    out[4 * i + 1] = ceilf(a[i]);
    out[4 * i + 2] = truncf(a[i]);
    out[4 * i + 3] = rintf(a[i]);
}

KERNEL(float_signs, uint32_t, float, float)
{
    EACH(i);
    float x = a[i] == a[i] ? a[i] : 1.0f; /* what abs and neg do to a NaN is left open */
    out[2 * i] = float_bits(fabsf(x)) ^ float_bits(-x);
    out[2 * i + 1] = float_bits(copysignf(x, b[i]));
}

KERNEL(float_classes, uint32_t, float, float)
{
    EACH(i);
    uint32_t bits = float_bits(a[i]), exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    uint32_t class_ = exponent == 255 ? (fraction ? 4u : 3u) : exponent ? 2u : fraction ? 1u : 0u;
    out[i] = class_ | (bits >> 31) << 4 | (uint32_t)(fabsf(a[i]) < INFINITY) << 5;
}

KERNEL(float_polynomial, float, float, float)
{
    EACH(i);
    float x = a[i], p = 1.0f / 120;
    p = fmaf(p, x, 1.0f / 24);
    p = fmaf(p, x, 1.0f / 6);
    p = p * x + 0.5f;
    p = p * x + 1.0f;
    out[i] = p * x + 1.0f;
}

/* 1/sqrt(x) from a guess in the bits, then Newton. */
KERNEL(float_newton, float, float, float)
{
    EACH(i);
    float x = fabsf(a[i]) + 0.001f, y = bits_float(0x5f3759dfu - (float_bits(x) >> 1));
    for (int k = 0; k < 4; k++)
        y = y * (1.5f - 0.5f * x * y * y);
    out[i] = y;
}

KERNEL(float_kahan, float, float, float)
{
    EACH(i);
    float sum = 0.0f, lost = 0.0f;
    for (uint32_t k = 0; k < 20; k++) {
        float y = a[(i + k) % n] - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    out[i] = sum;
}

KERNEL(float_mandelbrot, uint32_t, float, float)
{
    EACH(i);
    float x = 0.0f, y = 0.0f;
    uint32_t k = 0;
    while (k < 60 && x * x + y * y < 4.0f) {
        float t = x * x - y * y + 2.0f * a[i];
        y = 2.0f * x * y + b[i];
        x = t;
        k++;
    }
    out[i] = k;
}

KERNEL(float_quaternion, float, float, float)
{
    EACH(i);
    float q[4] = {a[i], b[i], 1.0f, -0.5f}, p[4] = {b[i], 0.25f, a[i], 2.0f};
    out[4 * i] = q[0] * p[0] - q[1] * p[1] - q[2] * p[2] - q[3] * p[3];
    out[4 * i + 1] = q[0] * p[1] + q[1] * p[0] + q[2] * p[3] - q[3] * p[2];
    out[4 * i + 2] = q[0] * p[2] - q[1] * p[3] + q[2] * p[0] + q[3] * p[1];
    out[4 * i + 3] = q[0] * p[3] + q[1] * p[2] - q[2] * p[1] + q[3] * p[0];
}
