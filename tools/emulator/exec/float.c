/* f32 and f64 arithmetic (ISA 9.7.3), f32x2, and the mixed-precision forms (9.7.5). Rounding to nearest is done by the
   host; other roundings go through soft.c. NaN results are canonical, so that they do not depend on the host. */
#include "exec.h"

#include "half.h"
#include "soft.h"

#include <math.h>

static inline float saturate(float f)
{
    return !(f > 0) ? 0.0f : f > 1 ? 1.0f : f;
}

#define PLAIN(x)   canonical(x)
#define FLUSH(x)   flush_float(canonical(x))
#define SAT(x)     saturate(x)
#define SAT_FTZ(x) saturate(flush_float(x))

/* Each operation in the four combinations of .ftz and .sat, indexed by those flags. */
#define TWO_ARGS(name, value)                                                                                \
    static inline float name##_value(float a, float b)                                                       \
    {                                                                                                        \
        return value;                                                                                        \
    }                                                                                                        \
    DEFINE2(name##_plain, float, float, float, PLAIN(name##_value(a, b)))                                    \
    DEFINE2(name##_ftz, float, float, float, FLUSH(name##_value(flush_float(a), flush_float(b))))            \
    DEFINE2(name##_sat, float, float, float, SAT(name##_value(a, b)))                                        \
    DEFINE2(name##_ftz_sat, float, float, float, SAT_FTZ(name##_value(flush_float(a), flush_float(b))))      \
    DEFINE2(name##_f64, double, double, double, canonical64(value))                                          \
    static emu_handler *const name[4] = {name##_plain, name##_ftz, name##_sat, name##_ftz_sat};

TWO_ARGS(add, a + b)
TWO_ARGS(sub, a - b)
TWO_ARGS(mul, a *b)
TWO_ARGS(div, a / b)

DEFINE3(fma_plain, float, float, float, float, PLAIN(fmaf(a, b, c)))
DEFINE3(fma_ftz, float, float, float, float, FLUSH(fmaf(flush_float(a), flush_float(b), flush_float(c))))
DEFINE3(fma_sat, float, float, float, float, SAT(fmaf(a, b, c)))
DEFINE3(fma_ftz_sat, float, float, float, float,
        SAT_FTZ(fmaf(flush_float(a), flush_float(b), flush_float(c))))
DEFINE3(fma_f64, double, double, double, double, canonical64(fma(a, b, c)))
static emu_handler *const fma_[4] = {fma_plain, fma_ftz, fma_sat, fma_ftz_sat};

DEFINE1(rcp_plain, float, float, PLAIN(1.0f / a))
DEFINE1(rcp_ftz, float, float, FLUSH(1.0f / flush_float(a)))
DEFINE1(rcp_f64, double, double, canonical64(1.0 / a))
static emu_handler *const rcp[4] = {rcp_plain, rcp_ftz};

DEFINE1(sqrt_plain, float, float, PLAIN(sqrtf(a)))
DEFINE1(sqrt_ftz, float, float, FLUSH(sqrtf(flush_float(a))))
DEFINE1(sqrt_f64, double, double, canonical64(sqrt(a)))
static emu_handler *const sqrt_[4] = {sqrt_plain, sqrt_ftz};

DEFINE1(neg_f32, uint32_t, uint32_t, a ^ 0x80000000)
DEFINE1(neg_ftz, float, float, -flush_float(a))
DEFINE1(neg_f64, uint64_t, uint64_t, a ^ UINT64_C(1) << 63)
DEFINE1(abs_f32, uint32_t, uint32_t, a & 0x7fffffff)
DEFINE1(abs_ftz, float, float, fabsf(flush_float(a)))
DEFINE1(abs_f64, uint64_t, uint64_t, a &INT64_MAX)

/* -0 < +0; a number wins over a NaN; two NaNs give the canonical one. */
static inline float minimum(float a, float b)
{
    float equal = float_of_bits(bits_of_float(a) | bits_of_float(b));
    float ordered = a < b ? a : b < a ? b : equal;
    return a != a ? canonical(b) : b != b ? a : ordered;
}

static inline float maximum(float a, float b)
{
    float equal = float_of_bits(bits_of_float(a) & bits_of_float(b));
    float ordered = a > b ? a : b > a ? b : equal;
    return a != a ? canonical(b) : b != b ? a : ordered;
}

static inline double minimum64(double a, double b)
{
    double equal = double_of_bits(bits_of_double(a) | bits_of_double(b));
    double ordered = a < b ? a : b < a ? b : equal;
    return a != a ? canonical64(b) : b != b ? a : ordered;
}

static inline double maximum64(double a, double b)
{
    double equal = double_of_bits(bits_of_double(a) & bits_of_double(b));
    double ordered = a > b ? a : b > a ? b : equal;
    return a != a ? canonical64(b) : b != b ? a : ordered;
}

DEFINE2(min_f32, float, float, float, minimum(a, b))
DEFINE2(max_f32, float, float, float, maximum(a, b))
DEFINE2(min_ftz, float, float, float, minimum(flush_float(a), flush_float(b)))
DEFINE2(max_ftz, float, float, float, maximum(flush_float(a), flush_float(b)))
DEFINE2(min_f64, double, double, double, minimum64(a, b))
DEFINE2(max_f64, double, double, double, maximum64(a, b))

/* min and max with .NaN, .xorsign.abs, .abs and a third operand. */
static float extreme(const emu_mods *m, bool is_max, float a, float b)
{
    if ((m->flags & EMU_NAN) && (a != a || b != b))
        return float_of_bits(0x7fffffff);
    return is_max ? maximum(a, b) : minimum(a, b);
}

static float extreme_with_modifiers(const emu_mods *m, bool is_max, float a, float b)
{
    uint32_t sign = (bits_of_float(a) ^ bits_of_float(b)) & 0x80000000;
    if (m->flags & EMU_FTZ) {
        a = flush_float(a);
        b = flush_float(b);
    }
    float r = m->flags & EMU_ABS ? extreme(m, is_max, fabsf(a), fabsf(b)) : extreme(m, is_max, a, b);
    if ((m->flags & EMU_XORSIGN) && r == r)
        r = float_of_bits((bits_of_float(r) & 0x7fffffff) | sign);
    return r;
}

#define EXTREME(name, is_max)                                                                                \
    HANDLER(name##2)                                                                                         \
    {                                                                                                        \
        const float *a = LANES_OF(const float, 1), *b = LANES_OF(const float, 2);                            \
        float *d = LANES_OF(float, 0);                                                                       \
        ACTIVE_LANES(mask) d[i] = extreme_with_modifiers(&op->mods, is_max, a[i], b[i]);                     \
    }                                                                                                        \
    HANDLER(name##3)                                                                                         \
    {                                                                                                        \
        const float *a = LANES_OF(const float, 1), *b = LANES_OF(const float, 2),                            \
                    *c = LANES_OF(const float, 3);                                                           \
        float *d = LANES_OF(float, 0);                                                                       \
        ACTIVE_LANES(mask)                                                                                   \
        {                                                                                                    \
            float first = extreme_with_modifiers(&op->mods, is_max, a[i], b[i]);                             \
            d[i] = extreme_with_modifiers(&op->mods, is_max, first, c[i]);                                   \
        }                                                                                                    \
    }
EXTREME(min_modified, false)
EXTREME(max_modified, true)

/* All roundings other than to nearest, and the packed and mixed forms, in integer arithmetic. */
enum { ADD, SUB, MUL, FMA, DIV, RCP, SQRT };

static uint64_t flush_bits(uint64_t bits, const emu_mods *m)
{
    return (m->flags & EMU_FTZ) && !(bits & 0x7f800000) ? bits & 0x80000000 : bits;
}

static uint64_t soft_operation(unsigned operation, const emu_mods *m, const emu_format *format, emu_soft a,
                               emu_soft b, emu_soft c)
{
    emu_soft one = emu_soft_of_integer(false, 1), r;
    switch (operation) {
    case SUB:
        b.sign = !b.sign;
        r = emu_soft_add(a, b, m->round);
        break;
    case ADD:
        r = emu_soft_add(a, b, m->round);
        break;
    case MUL:
        r = emu_soft_multiply(a, b);
        break;
    case FMA:
        r = emu_soft_fma(a, b, c, m->round);
        break;
    case DIV:
        r = emu_soft_divide(a, b);
        break;
    case RCP:
        r = emu_soft_divide(one, a);
        break;
    default:
        r = emu_soft_sqrt(a);
    }
    uint64_t bits = emu_soft_pack(format, r, m->round);
    if (format == &emu_f32)
        bits = flush_bits(bits, m);
    if (m->flags & EMU_SAT)
        bits = bits_of_float(saturate(float_of_bits((uint32_t)bits)));
    return bits;
}

static inline uint64_t soft_f32(unsigned operation, const emu_mods *m, uint32_t a, uint32_t b, uint32_t c)
{
    return soft_operation(operation, m, &emu_f32, emu_soft_unpack(&emu_f32, flush_bits(a, m)),
                          emu_soft_unpack(&emu_f32, flush_bits(b, m)),
                          emu_soft_unpack(&emu_f32, flush_bits(c, m)));
}

static uint64_t soft_lane(unsigned operation, const emu_mods *m, uint64_t a, uint64_t b, uint64_t c)
{
    if (m->type == EMU_F64)
        return soft_operation(operation, m, &emu_f64, emu_soft_unpack(&emu_f64, a),
                              emu_soft_unpack(&emu_f64, b), emu_soft_unpack(&emu_f64, c));
    uint64_t low = soft_f32(operation, m, (uint32_t)a, (uint32_t)b, (uint32_t)c);
    if (m->type == EMU_F32)
        return low;
    return low | soft_f32(operation, m, (uint32_t)(a >> 32), (uint32_t)(b >> 32), (uint32_t)(c >> 32)) << 32;
}

static inline uint64_t lane_bits(const emu_warp *w, uint32_t arg, unsigned bytes, uint32_t lane)
{
    const void *at = emu_lanes(w, arg);
    return bytes == 8 ? ((const uint64_t *)at)[lane] : ((const uint32_t *)at)[lane];
}

static inline void soft_all(emu_warp *w, const emu_op *op, uint32_t mask, unsigned operation,
                            unsigned sources)
{
    unsigned bytes = emu_types[op->mods.type].bytes;
    ACTIVE_LANES(mask)
    {
        uint64_t x[3] = {0};
        for (unsigned n = 0; n < sources; n++)
            x[n] = lane_bits(w, op->arg[n + 1], bytes, i);
        uint64_t r = soft_lane(operation, &op->mods, x[0], x[1], x[2]);
        if (bytes == 8)
            LANES_OF(uint64_t, 0)[i] = r;
        else
            LANES_OF(uint32_t, 0)[i] = (uint32_t)r;
    }
}

#define SOFT(name, operation, sources)                                                                       \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        soft_all(w, op, mask, operation, sources);                                                           \
    }
SOFT(soft_add, ADD, 2)
SOFT(soft_sub, SUB, 2)
SOFT(soft_mul, MUL, 2)
SOFT(soft_fma, FMA, 3)
SOFT(soft_div, DIV, 2)
SOFT(soft_rcp, RCP, 1)
SOFT(soft_sqrt, SQRT, 1)

/* add.f32.f16 d, a, c and fma.f32.f16 d, a, b, c: the half operands are widened first. */
static inline void mixed(emu_warp *w, const emu_op *op, uint32_t mask, unsigned operation, unsigned halves)
{
    bool is_bf16 = op->mods.source == EMU_BF16;
    uint32_t *d = LANES_OF(uint32_t, 0);
    const uint32_t *last = LANES_OF(const uint32_t, halves + 1);
    ACTIVE_LANES(mask)
    {
        uint32_t x[2] = {0};
        for (unsigned n = 0; n < halves; n++) {
            uint16_t h = LANES_OF(const uint16_t, n + 1)[i];
            x[n] = bits_of_float(is_bf16 ? bf16_to_float(h) : half_to_float(h));
        }
        uint32_t second = halves == 2 ? x[1] : last[i];
        d[i] = (uint32_t)soft_f32(operation, &op->mods, x[0], second, last[i]);
    }
}

HANDLER_CALLS(mixed_add, mixed, ADD, 1)
HANDLER_CALLS(mixed_sub, mixed, SUB, 1)
HANDLER_CALLS(mixed_fma, mixed, FMA, 2)

#define F32X2(name, sources, value)                                                                          \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        const float *a = LANES_OF(const float, 1), *b = LANES_OF(const float, 2);                            \
        const float *c = LANES_OF(const float, (sources));                                                   \
        float t[2 * EMU_LANES];                                                                              \
        (void)c;                                                                                             \
        for (int i = 0; i < 2 * EMU_LANES; i++)                                                              \
            t[i] = canonical(value);                                                                         \
        ACTIVE_LANES(mask) memcpy(LANES_OF(float, 0) + 2 * i, t + 2 * i, 8);                                 \
    }
F32X2(add_x2, 2, a[i] + b[i])
F32X2(sub_x2, 2, a[i] - b[i])
F32X2(mul_x2, 2, a[i] * b[i])
F32X2(fma_x2, 3, fmaf(a[i], b[i], c[i]))

static emu_handler *pick(const emu_mods *m, emu_handler *const f32[4], emu_handler *f64, emu_handler *x2,
                         emu_handler *soft)
{
    if (m->round != EMU_RN)
        return soft;
    if (m->type == EMU_F32X2)
        return m->flags & EMU_FTZ ? soft : x2;
    return m->type == EMU_F64 ? f64 : f32[m->flags & (EMU_FTZ | EMU_SAT)];
}

#define PICK(name, f32, f64, x2, soft)                                                                       \
    static emu_handler *name(const emu_mods *m)                                                              \
    {                                                                                                        \
        return pick(m, f32, f64, x2, soft);                                                                  \
    }
PICK(pick_add, add, add_f64, add_x2, soft_add)
PICK(pick_sub, sub, sub_f64, sub_x2, soft_sub)
PICK(pick_mul, mul, mul_f64, mul_x2, soft_mul)
PICK(pick_fma, fma_, fma_f64, fma_x2, soft_fma)
PICK(pick_div, div, div_f64, NULL, soft_div)
PICK(pick_rcp, rcp, rcp_f64, NULL, soft_rcp)
PICK(pick_sqrt, sqrt_, sqrt_f64, NULL, soft_sqrt)

static const emu_row rows[] = {
    {"add", "@rnd? ftz? sat? t:f32", "=t t t", .pick = pick_add},
    {"add", "@rnd? t:f64", "=t t t", .pick = pick_add},
    {"add", "@rnd? ftz? t:f32x2", "=x x x", 86, 100, .pick = pick_add},
    {"add", "@rnd? sat? t:f32 s:f16|bf16", "=t y t", 86, 100, .run = mixed_add},
    {"sub", "@rnd? ftz? sat? t:f32", "=t t t", .pick = pick_sub},
    {"sub", "@rnd? t:f64", "=t t t", .pick = pick_sub},
    {"sub", "@rnd? ftz? t:f32x2", "=x x x", 86, 100, .pick = pick_sub},
    {"sub", "@rnd? sat? t:f32 s:f16|bf16", "=t y t", 86, 100, .run = mixed_sub},
    {"mul", "@rnd? ftz? sat? t:f32", "=t t t", .pick = pick_mul},
    {"mul", "@rnd? t:f64", "=t t t", .pick = pick_mul},
    {"mul", "@rnd? ftz? t:f32x2", "=x x x", 86, 100, .pick = pick_mul},
    {"fma", "@rnd ftz? sat? t:f32", "=t t t t", .pick = pick_fma},
    {"fma", "@rnd t:f64", "=t t t t", .pick = pick_fma},
    {"fma", "@rnd ftz? t:f32x2", "=x x x x", 86, 100, .pick = pick_fma},
    {"fma", "@rnd sat? t:f32 s:f16|bf16", "=t y y t", 86, 100, .run = mixed_fma},
    {"mad", "@rnd ftz? sat? t:f32", "=t t t t", .pick = pick_fma},
    {"mad", "@rnd t:f64", "=t t t t", .pick = pick_fma},
    {"div", "@rnd ftz? t:f32", "=t t t", .pick = pick_div},
    {"div", "@rnd t:f64", "=t t t", .pick = pick_div},
    {"rcp", "@rnd ftz? t:f32", "=t t", .pick = pick_rcp},
    {"rcp", "@rnd t:f64", "=t t", .pick = pick_rcp},
    {"sqrt", "@rnd ftz? t:f32", "=t t", .pick = pick_sqrt},
    {"sqrt", "@rnd t:f64", "=t t", .pick = pick_sqrt},
    {"abs", "t:f32", "=t t", .run = abs_f32},
    {"abs", "ftz t:f32", "=t t", .run = abs_ftz},
    {"abs", "t:f64", "=t t", .run = abs_f64},
    {"neg", "t:f32", "=t t", .run = neg_f32},
    {"neg", "ftz t:f32", "=t t", .run = neg_ftz},
    {"neg", "t:f64", "=t t", .run = neg_f64},
    {"min", "t:f32", "=t t t", .run = min_f32},
    {"min", "ftz t:f32", "=t t t", .run = min_ftz},
    {"min", "t:f64", "=t t t", .run = min_f64},
    {"max", "t:f32", "=t t t", .run = max_f32},
    {"max", "ftz t:f32", "=t t t", .run = max_ftz},
    {"max", "t:f64", "=t t t", .run = max_f64},
    {"min", "ftz? NaN t:f32", "=t t t", 70, 80, .run = min_modified2},
    {"max", "ftz? NaN t:f32", "=t t t", 70, 80, .run = max_modified2},
    {"min", "ftz? NaN? xorsign abs t:f32", "=t t t", 72, 86, .run = min_modified2},
    {"max", "ftz? NaN? xorsign abs t:f32", "=t t t", 72, 86, .run = max_modified2},
    {"min", "ftz? NaN? abs? t:f32", "=t t t t", 88, 100, .run = min_modified3},
    {"max", "ftz? NaN? abs? t:f32", "=t t t t", 88, 100, .run = max_modified3},
};

EXPORT_ROWS(emu_rows_float);
