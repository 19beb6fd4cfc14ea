/* Approximate functions (ISA 9.7.3.8 and 9.7.3.13 to 9.7.3.22). */
#include "exec.h"

#include "approximate.h"
#include "half.h"

#include <math.h>

#define FLOAT_FUNCTION(name, value)                                                                          \
    static inline float name##_value(float a)                                                                \
    {                                                                                                        \
        return canonical(value);                                                                             \
    }                                                                                                        \
    DEFINE1(name, float, float, name##_value(a))                                                             \
    DEFINE1(name##_ftz, float, float, flush_float(name##_value(flush_float(a))))

FLOAT_FUNCTION(rcp, 1.0f / a)
FLOAT_FUNCTION(sqrt_, sqrtf(a))
FLOAT_FUNCTION(rsqrt, (float)(1.0 / sqrt((double)a)))
FLOAT_FUNCTION(ex2, approximate_ex2(a))
FLOAT_FUNCTION(lg2, approximate_lg2(a))
FLOAT_FUNCTION(sin_, approximate_sin(a))
FLOAT_FUNCTION(cos_, approximate_cos(a))
DEFINE1(tanh_, float, float, approximate_tanh(a))

/* a * (1/b), where the reciprocal of a huge b is flushed to zero. */
static inline float div_approx_value(float a, float b)
{
    float magnitude = fabsf(b), r = a / b;
    r = magnitude > 0x1p126f && magnitude <= 0x1.fffffep127f ? a * copysignf(0.0f, b) : r;
    return canonical(r);
}

static inline float div_full_value(float a, float b)
{
    return canonical(a / b);
}

DEFINE2(div_approx, float, float, float, div_approx_value(a, b))
DEFINE2(div_approx_ftz, float, float, float, flush_float(div_approx_value(flush_float(a), flush_float(b))))
DEFINE2(div_full, float, float, float, div_full_value(a, b))
DEFINE2(div_full_ftz, float, float, float, flush_float(div_full_value(flush_float(a), flush_float(b))))

DEFINE1(rsqrt_f64, double, double, a == a && a >= 0 ? 1.0 / sqrt(a) : double_of_bits(0x7fffffffffffffff))

/* The gross f64 forms read and write only the upper words. */
static inline uint64_t upper_word(uint64_t bits)
{
    uint64_t upper = bits & UINT64_C(0xffffffff00000000);
    return (upper & UINT64_C(0x7ff0000000000000)) ? upper : upper & UINT64_C(1) << 63;
}

static inline uint64_t gross(double r)
{
    return r == r ? upper_word(bits_of_double(r)) : UINT64_C(0x7fffffff00000000);
}

DEFINE1(rcp_gross, uint64_t, uint64_t, gross(1.0 / double_of_bits(upper_word(a))))
DEFINE1(rsqrt_gross, uint64_t, uint64_t, gross(1.0 / sqrt(double_of_bits(upper_word(a)))))

static const emu_row rows[] = {
    {"div", "approx t:f32", "=t t t", .run = div_approx},
    {"div", "approx ftz t:f32", "=t t t", .run = div_approx_ftz},
    {"div", "full t:f32", "=t t t", .run = div_full},
    {"div", "full ftz t:f32", "=t t t", .run = div_full_ftz},
    {"rcp", "approx t:f32", "=t t", .run = rcp},
    {"rcp", "approx ftz t:f32", "=t t", .run = rcp_ftz},
    {"rcp", "approx ftz t:f64", "=t t", .run = rcp_gross},
    {"sqrt", "approx t:f32", "=t t", .run = sqrt_},
    {"sqrt", "approx ftz t:f32", "=t t", .run = sqrt__ftz},
    {"rsqrt", "approx t:f32", "=t t", .run = rsqrt},
    {"rsqrt", "approx ftz t:f32", "=t t", .run = rsqrt_ftz},
    {"rsqrt", "approx t:f64", "=t t", .run = rsqrt_f64},
    {"rsqrt", "approx ftz t:f64", "=t t", .run = rsqrt_gross},
    {"ex2", "approx t:f32", "=t t", .run = ex2},
    {"ex2", "approx ftz t:f32", "=t t", .run = ex2_ftz},
    {"lg2", "approx t:f32", "=t t", .run = lg2},
    {"lg2", "approx ftz t:f32", "=t t", .run = lg2_ftz},
    {"sin", "approx t:f32", "=t t", .run = sin_},
    {"sin", "approx ftz t:f32", "=t t", .run = sin__ftz},
    {"cos", "approx t:f32", "=t t", .run = cos_},
    {"cos", "approx ftz t:f32", "=t t", .run = cos__ftz},
    {"tanh", "approx t:f32", "=t t", 70, 75, .run = tanh_},
};

EXPORT_ROWS(emu_rows_math);
