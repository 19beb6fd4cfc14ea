/* Arithmetic that C has no operator for. */
#include "device.h"

#include <fenv.h>

/* ---- integers (ISA 9.7.1, 9.7.8) ---- */

uint32_t __brev(uint32_t x)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 32; i++)
        r |= (x >> i & 1) << (31 - i);
    return r;
}

u64 __brevll(u64 x)
{
    return (u64)__brev((uint32_t)x) << 32 | __brev((uint32_t)(x >> 32));
}

uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    u64 bytes = (u64)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++)
        r |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}

uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)((((u64)high << 32 | low) << (by & 31)) >> 32);
}

uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)(((u64)high << 32 | low) >> (by & 31));
}

uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t by)
{
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}

uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t by)
{
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}

int32_t dp4a_signed(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8)
        c += (uint32_t)((int8_t)(a >> i) * (int8_t)(b >> i));
    return (int32_t)c;
}

uint32_t dp4a_unsigned(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8)
        c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}

/* ---- floating point in every rounding mode: the mode is set around one operation on volatile values ---- */

#define ROUNDED(mode, T, name, value, ...)                                                                   \
    T name(__VA_ARGS__)                                                                                      \
    {                                                                                                        \
        fesetround(mode);                                                                                    \
        volatile T r = value;                                                                                \
        fesetround(FE_TONEAREST);                                                                            \
        return r;                                                                                            \
    }

/* Out of range is clamped; a NaN is 0, but the lowest number when 64 bits take part (ISA 9.7.9.21). */
#define TO_INTEGER(mode, T, name, F, round, low, high, nan)                                                  \
    T name(F a)                                                                                              \
    {                                                                                                        \
        fesetround(mode);                                                                                    \
        volatile F x = a;                                                                                    \
        volatile F r = round(x);                                                                             \
        fesetround(FE_TONEAREST);                                                                            \
        if (r != r)                                                                                          \
            return nan;                                                                                      \
        return r < (F)(low) ? (low) : r >= (F)(high) ? (high) : (T)r;                                        \
    }

/* clang's code for u64 to double ends in a subtraction: rounded down, its zero would be -0. */
#define DEFINE_ROUNDED(r, mode)                                                                              \
    ROUNDED(mode, float, __fadd_##r, a + b, volatile float a, volatile float b)                              \
    ROUNDED(mode, float, __fsub_##r, a - b, volatile float a, volatile float b)                              \
    ROUNDED(mode, float, __fmul_##r, a *b, volatile float a, volatile float b)                               \
    ROUNDED(mode, float, __fdiv_##r, a / b, volatile float a, volatile float b)                              \
    ROUNDED(mode, float, __fmaf_##r, fmaf(a, b, c), volatile float a, volatile float b, volatile float c)    \
    ROUNDED(mode, float, __fsqrt_##r, sqrtf(a), volatile float a)                                            \
    ROUNDED(mode, float, __frcp_##r, 1.0f / a, volatile float a)                                             \
    ROUNDED(mode, double, __dadd_##r, a + b, volatile double a, volatile double b)                           \
    ROUNDED(mode, double, __dmul_##r, a *b, volatile double a, volatile double b)                            \
    ROUNDED(mode, double, __ddiv_##r, a / b, volatile double a, volatile double b)                           \
    ROUNDED(mode, double, __fma_##r, fma(a, b, c), volatile double a, volatile double b, volatile double c)  \
    ROUNDED(mode, double, __dsqrt_##r, sqrt(a), volatile double a)                                           \
    ROUNDED(mode, float, __double2float_##r, (float)a, volatile double a)                                    \
    ROUNDED(mode, float, __int2float_##r, (float)a, volatile int32_t a)                                      \
    ROUNDED(mode, float, __uint2float_##r, (float)a, volatile uint32_t a)                                    \
    ROUNDED(mode, float, __ll2float_##r, (float)a, volatile s64 a)                                           \
    ROUNDED(mode, float, __ull2float_##r, (float)a, volatile u64 a)                                          \
    ROUNDED(mode, double, __ll2double_##r, (double)a, volatile s64 a)                                        \
    ROUNDED(mode, double, __ull2double_##r, a ? (double)a : 0.0, volatile u64 a)                             \
    TO_INTEGER(mode, int32_t, __float2int_##r, float, rintf, INT32_MIN, INT32_MAX, 0)                        \
    TO_INTEGER(mode, uint32_t, __float2uint_##r, float, rintf, 0, UINT32_MAX, 0)                             \
    TO_INTEGER(mode, s64, __float2ll_##r, float, rintf, INT64_MIN, INT64_MAX, INT64_MIN)                     \
    TO_INTEGER(mode, u64, __float2ull_##r, float, rintf, 0, UINT64_MAX, UINT64_C(1) << 63)                   \
    TO_INTEGER(mode, int32_t, __double2int_##r, double, rint, INT32_MIN, INT32_MAX, INT32_MIN)               \
    TO_INTEGER(mode, uint32_t, __double2uint_##r, double, rint, 0, UINT32_MAX, UINT32_C(1) << 31)            \
    TO_INTEGER(mode, s64, __double2ll_##r, double, rint, INT64_MIN, INT64_MAX, INT64_MIN)                    \
    TO_INTEGER(mode, u64, __double2ull_##r, double, rint, 0, UINT64_MAX, UINT64_C(1) << 63)

/* A zero has the sign that IEEE 754-2019 minimum and maximum give it. */
#define EXTREME(name, T, which, negative)                                                                    \
    T name(T a, T b)                                                                                         \
    {                                                                                                        \
        if (a != a || b != b)                                                                                \
            return a != a ? b : a;                                                                           \
        if (a == b)                                                                                          \
            return (signbit(a) != 0) == negative ? a : b;                                                    \
        return a which b ? a : b;                                                                            \
    }

FOR_ROUNDINGS(DEFINE_ROUNDED)
EXTREME(native_min, float, <, true)
EXTREME(native_max, float, >, false)
EXTREME(native_min_double, double, <, true)
EXTREME(native_max_double, double, >, false)

/* ---- halves and bfloats ---- */

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

/* What stands for a number too large in this rounding mode. */
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

/* The product is exact; the sum is cut off and its last bit says whether anything was lost, so that one rounding is left. */
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
