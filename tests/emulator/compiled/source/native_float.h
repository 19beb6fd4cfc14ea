/* CUDA's arithmetic names for the host: floats in every rounding, halves, conversions (ISA 9.7.3, 9.7.4, 9.7.9.21). */
#ifndef NATIVE_FLOAT_H
#define NATIVE_FLOAT_H

static inline uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline u64 double_bits(double x)
{
    u64 u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double bits_double(u64 u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define FOR_ROUNDINGS(X) X(rn, FE_TONEAREST) X(rz, FE_TOWARDZERO) X(ru, FE_UPWARD) X(rd, FE_DOWNWARD)

#define DECLARE_ROUNDED(r, mode)                                                                             \
    float __fadd_##r(float a, float b);                                                                      \
    float __fsub_##r(float a, float b);                                                                      \
    float __fmul_##r(float a, float b);                                                                      \
    float __fdiv_##r(float a, float b);                                                                      \
    float __fmaf_##r(float a, float b, float c);                                                             \
    float __fsqrt_##r(float a);                                                                              \
    float __frcp_##r(float a);                                                                               \
    double __dadd_##r(double a, double b);                                                                   \
    double __dmul_##r(double a, double b);                                                                   \
    double __ddiv_##r(double a, double b);                                                                   \
    double __fma_##r(double a, double b, double c);                                                          \
    double __dsqrt_##r(double a);                                                                            \
    float __double2float_##r(double a);                                                                      \
    int32_t __float2int_##r(float a);                                                                        \
    uint32_t __float2uint_##r(float a);                                                                      \
    s64 __float2ll_##r(float a);                                                                             \
    u64 __float2ull_##r(float a);                                                                            \
    int32_t __double2int_##r(double a);                                                                      \
    uint32_t __double2uint_##r(double a);                                                                    \
    s64 __double2ll_##r(double a);                                                                           \
    u64 __double2ull_##r(double a);                                                                          \
    float __int2float_##r(int32_t a);                                                                        \
    float __uint2float_##r(uint32_t a);                                                                      \
    float __ll2float_##r(s64 a);                                                                             \
    float __ull2float_##r(u64 a);                                                                            \
    double __ll2double_##r(s64 a);                                                                           \
    double __ull2double_##r(u64 a);
FOR_ROUNDINGS(DECLARE_ROUNDED)

/* min and max: a number wins over a NaN; -0 is below +0 */
float native_min(float a, float b);
float native_max(float a, float b);
double native_min_double(double a, double b);
double native_max_double(double a, double b);
#define fminf(a, b)    native_min(a, b)
#define fmaxf(a, b)    native_max(a, b)
#define fmin(a, b)     native_min_double(a, b)
#define fmax(a, b)     native_max_double(a, b)
#define __saturatef(x) native_min(native_max((x) == (x) ? (x) : 0.0f, 0.0f), 1.0f)

/* References for the bounds in functions.def: nearly correctly rounded */
#define approximate_ex2(x)   ((float)exp2((double)(x)))
#define approximate_lg2(x)   ((float)log2((double)(x)))
#define approximate_sin(x)   ((float)sin((double)(x)))
#define approximate_cos(x)   ((float)cos((double)(x)))
#define approximate_tanh(x)  ((float)tanh((double)(x)))
#define approximate_rcp(x)   (1.0f / (x))
#define approximate_rsqrt(x) ((float)(1.0 / sqrt((double)(x))))
#define approximate_sqrt(x)  sqrtf(x)

/* The C library's functions in higher precision: the error is little more than half a unit in the last place */
#define expf(x)      ((float)exp((double)(x)))
#define logf(x)      ((float)log((double)(x)))
#define sinf(x)      ((float)sin((double)(x)))
#define cosf(x)      ((float)cos((double)(x)))
#define tanhf(x)     ((float)tanh((double)(x)))
#define cbrtf(x)     ((float)cbrt((double)(x)))
#define erff(x)      ((float)erf((double)(x)))
#define powf(x, y)   ((float)pow((double)(x), (double)(y)))
#define hypotf(x, y) ((float)hypot((double)(x), (double)(y)))
#define exp(x)       ((double)expl((long double)(x)))
#define log(x)       ((double)logl((long double)(x)))
#define sin(x)       ((double)sinl((long double)(x)))

#include "native_half.h"

#endif
