/* Double precision. */
#include "device.h"

KERNEL(double_arithmetic, double, double, double)
{
    EACH(i);
    out[4 * i] = a[i] + b[i];
    out[4 * i + 1] = a[i] - b[i];
    out[4 * i + 2] = a[i] * b[i];
    out[4 * i + 3] = fma(a[i], b[i], a[n - 1 - i]);
}

KERNEL(double_divide, double, double, double)
{
    EACH(i);
    out[2 * i] = a[i] / b[i];
    out[2 * i + 1] = sqrt(a[i]);
}

#define ROUNDED(r)                                                                                           \
    KERNEL(double_rounded_##r, double, double, double)                                                       \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[5 * i] = __dadd_##r(a[i], b[i]);                                                                 \
        out[5 * i + 1] = __dmul_##r(a[i], b[i]);                                                             \
        out[5 * i + 2] = __ddiv_##r(a[i], b[i]);                                                             \
        out[5 * i + 3] = __fma_##r(a[i], b[i], a[n - 1 - i]);                                                \
        out[5 * i + 4] = __dsqrt_##r(a[i]);                                                                  \
    }                                                                                                        \
    KERNEL(double_to_float_##r, float, double, double)                                                       \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[i] = __double2float_##r(a[i]);                                                                   \
    }                                                                                                        \
    KERNEL(double_to_integer_##r, u64, double, double)                                                       \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[4 * i] = (uint32_t)__double2int_##r(a[i]);                                                       \
        out[4 * i + 1] = __double2uint_##r(a[i]);                                                            \
        out[4 * i + 2] = (u64)__double2ll_##r(a[i]);                                                         \
        out[4 * i + 3] = __double2ull_##r(a[i]);                                                             \
    }                                                                                                        \
    KERNEL(double_from_integer_##r, double, u64, u64)                                                        \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[2 * i] = __ll2double_##r((s64)a[i]);                                                             \
        out[2 * i + 1] = __ull2double_##r(a[i]);                                                             \
    }
ROUNDED(rn)
ROUNDED(rz)
ROUNDED(ru)
ROUNDED(rd)

KERNEL(double_compare, uint32_t, double, double)
{
    EACH(i);
    double x = a[i], y = b[i];
    out[i] = (uint32_t)(x < y) | (uint32_t)(x <= y) << 1 | (uint32_t)(x == y) << 2 | (uint32_t)(x != y) << 3 |
             (uint32_t) !(x > y) << 4 | (uint32_t)(x != x) << 5;
}

KERNEL(double_extremes, double, double, double)
{
    EACH(i);
    out[2 * i] = fmin(a[i], b[i]);
    out[2 * i + 1] = fmax(a[i], b[i]);
}

KERNEL(double_whole, double, double, double)
{
    EACH(i);
    out[4 * i] = floor(a[i]);
    out[4 * i + 1] = ceil(a[i]);
    out[4 * i + 2] = trunc(a[i]);
    out[4 * i + 3] = rint(a[i]);
}

KERNEL(double_from_float, double, float, float)
{
    EACH(i);
    out[i] = (double)a[i] * (double)b[i];
}

/* A product of two floats to the last bit, and what an exact sum loses. */
KERNEL(double_compensated, double, double, double)
{
    EACH(i);
    double s = a[i] + b[i], t = s - a[i], product = a[i] * b[i];
    out[2 * i] = (a[i] - (s - t)) + (b[i] - t);
    out[2 * i + 1] = fma(a[i], b[i], -product);
}

KERNEL(double_bits_apart, double, u64, u64)
{
    EACH(i);
    u64 bits = (a[i] & 0x800fffffffffffffull) | (u64)(1023 - 20 + b[i] % 40) << 52;
    out[i] = bits_double(bits) + 1.0;
}
