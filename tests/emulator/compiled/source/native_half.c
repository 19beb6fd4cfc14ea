/* See native_half.h. */
#include "device.h"

#include <fenv.h>

typedef struct format {
    int fraction_bits, bias;
    uint16_t infinity, nan;
} format;

static format format_of(int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits;
    uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits);
    return (format){fraction_bits, (1 << (exponent_bits - 1)) - 1, infinity, 0x7fff};
}

double native_widen(int fraction_bits, uint16_t bits)
{
    format f = format_of(fraction_bits);
    int magnitude = bits & 0x7fff, exponent = magnitude >> f.fraction_bits;
    int fraction = magnitude & ((1 << f.fraction_bits) - 1);
    double sign = bits >> 15 ? -1.0 : 1.0;
    if (magnitude >= f.infinity)
        return magnitude > f.infinity ? NAN : sign * INFINITY;
    return sign * ldexp(exponent ? fraction + (1 << f.fraction_bits) : fraction,
                        (exponent ? exponent : 1) - f.bias - f.fraction_bits);
}

/* The result of a number too large for the format, in this rounding mode. */
static uint16_t overflow(const format *f, bool negative)
{
    int mode = fegetround();
    bool stays = mode == FE_TOWARDZERO || mode == (negative ? FE_UPWARD : FE_DOWNWARD);
    return (uint16_t)(f->infinity - stays);
}

uint16_t native_narrow(int fraction_bits, double x)
{
    format f = format_of(fraction_bits);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return f.nan;
    if (isinf(x) || x == 0)
        return sign | (x == 0 ? 0 : f.infinity);
    int exponent = ilogb(x) < 1 - f.bias ? 1 - f.bias : ilogb(x);
    if (exponent > f.bias)
        return sign | overflow(&f, sign);
    volatile double scaled = ldexp(x, f.fraction_bits - exponent);
    long bits = ((long)(exponent + f.bias - 1) << f.fraction_bits) + (long)fabs(nearbyint(scaled));
    return sign | (bits >= f.infinity ? overflow(&f, sign) : (uint16_t)bits);
}

/* The product is exact. The sum is rounded to odd, so that only one rounding remains. */
uint16_t native_fused(int fraction_bits, double a, double b, double c)
{
    fesetround(FE_TOWARDZERO);
    feclearexcept(FE_INEXACT);
    volatile double product = a * b, sum = product + c;
    u64 bits = double_bits(sum) | (fetestexcept(FE_INEXACT) != 0);
    fesetround(FE_TONEAREST);
    return native_narrow(fraction_bits, sum == sum ? bits_double(bits) : NAN);
}

uint16_t native_extreme(int fraction_bits, uint16_t a, uint16_t b, bool largest)
{
    double x = native_widen(fraction_bits, a), y = native_widen(fraction_bits, b);
    double r = largest ? native_max_double(x, y) : native_min_double(x, y);
    return native_narrow(fraction_bits, r);
}

#define FLOAT_TO_HALF(r, mode)                                                                               \
    half __float2half_##r(float x)                                                                           \
    {                                                                                                        \
        fesetround(mode);                                                                                    \
        half h = {native_narrow(HALF, (double)x)};                                                           \
        fesetround(FE_TONEAREST);                                                                            \
        return h;                                                                                            \
    }
FOR_ROUNDINGS(FLOAT_TO_HALF)
