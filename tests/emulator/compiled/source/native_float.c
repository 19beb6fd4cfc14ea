/* Floating point for the host, in every rounding mode: sets the mode around one operation on volatile values. */
#include "device.h"

#include <fenv.h>

#define ROUNDED(mode, T, name, value, ...)                                                                   \
    T name(__VA_ARGS__)                                                                                      \
    {                                                                                                        \
        fesetround(mode);                                                                                    \
        volatile T r = value;                                                                                \
        fesetround(FE_TONEAREST);                                                                            \
        return r;                                                                                            \
    }

/* Values out of range are clamped. A NaN becomes 0, but the lowest number if a 64-bit type is involved (ISA 9.7.9.21). */
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

/* clang's code for u64 to double ends in a subtraction; rounding down, its zero would be -0. */
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

/* A zero has the sign that minimum and maximum of IEEE 754-2019 give it. */
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
