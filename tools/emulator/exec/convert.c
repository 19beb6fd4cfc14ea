/* cvt and cvt.pack (ISA 9.7.9.21, 9.7.9.22). Frequent pairs have vectorised handlers; the others go lane by lane through
   soft.c. Formats of 8, 6 and 4 bits are at the end. Registers have exactly the sizes of the types: the decoder converts
   wider operands. */
#include "exec.h"

#include "half.h"
#include "soft.h"

#include <math.h>

/* Integer to integer: C's conversions are PTX's. */
#define TO(dst, D, src, S) DEFINE1(dst##_from_##src, D, S, a)
#define FROM_ALL(dst, D)                                                                                     \
    TO(dst, D, u8, uint8_t)                                                                                  \
    TO(dst, D, u16, uint16_t)                                                                                \
    TO(dst, D, u32, uint32_t)                                                                                \
    TO(dst, D, u64, uint64_t)                                                                                \
    TO(dst, D, s8, int8_t)                                                                                   \
    TO(dst, D, s16, int16_t)                                                                                 \
    TO(dst, D, s32, int32_t)                                                                                 \
    TO(dst, D, s64, int64_t)
FROM_ALL(i8, uint8_t)
FROM_ALL(i16, uint16_t)
FROM_ALL(i32, uint32_t)
FROM_ALL(i64, uint64_t)

#define ROW_FROM(dst)                                                                                        \
    {                                                                                                        \
        [EMU_U8] = dst##_from_u8, [EMU_U16] = dst##_from_u16, [EMU_U32] = dst##_from_u32,                    \
        [EMU_U64] = dst##_from_u64, [EMU_S8] = dst##_from_s8, [EMU_S16] = dst##_from_s16,                    \
        [EMU_S32] = dst##_from_s32, [EMU_S64] = dst##_from_s64                                               \
    }

static emu_handler *const integers[4][EMU_TYPES] = {ROW_FROM(i8), ROW_FROM(i16), ROW_FROM(i32),
                                                    ROW_FROM(i64)};

/* e4m3 has one NaN pattern and no infinity; the 6- and 4-bit formats have neither. */
static const emu_format e4m3 = {4, 3, false, true, 0x7f}, e5m2 = {5, 2, true, true, 0x7f},
                        e2m3 = {2, 3, false, false, 0x1f}, e3m2 = {3, 2, false, false, 0x1f},
                        e2m1 = {2, 1, false, false, 0x7};

static const emu_format *format_of(unsigned type)
{
    switch (type) {
    case EMU_F16:
    case EMU_F16X2:
        return &emu_f16;
    case EMU_BF16:
    case EMU_BF16X2:
        return &emu_bf16;
    case EMU_F64:
        return &emu_f64;
    case EMU_TF32:
        return &emu_tf32;
    case EMU_E4M3X2:
        return &e4m3;
    case EMU_E5M2X2:
        return &e5m2;
    case EMU_E2M3X2:
        return &e2m3;
    case EMU_E3M2X2:
        return &e3m2;
    case EMU_E2M1X2:
        return &e2m1;
    default:
        return &emu_f32;
    }
}

static bool is_float(unsigned type)
{
    return emu_types[type].class == EMU_FLOAT || type == EMU_TF32 || type == EMU_F16X2 || type == EMU_BF16X2;
}

static bool is_signed(unsigned type)
{
    return emu_types[type].class == EMU_SIGNED;
}

/* Clamps an integer, given as sign and magnitude, to the range of the type. */
static uint64_t clamp_integer(unsigned type, bool sign, uint64_t magnitude)
{
    unsigned bits = 8u * emu_types[type].bytes;
    uint64_t most = is_signed(type) ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    uint64_t least = is_signed(type) ? most + 1 : 0; /* magnitude of the lowest value */
    if (sign)
        return 0 - (magnitude > least ? least : magnitude);
    return magnitude > most ? most : magnitude;
}

static uint64_t sign_extended(unsigned type, uint64_t x)
{
    unsigned unused = 64 - 8u * emu_types[type].bytes;
    return is_signed(type) ? (uint64_t)((int64_t)(x << unused) >> unused) : x << unused >> unused;
}

static uint64_t float_to_integer(const emu_mods *m, emu_soft v)
{
    unsigned bits = 8u * emu_types[m->type].bytes;
    bool wide = m->source == EMU_F64 || bits == 64;
    if (v.class == EMU_SOFT_NAN)
        return wide ? UINT64_C(1) << (bits - 1) : 0;
    v = emu_soft_integral(v, m->round);
    if (v.class == EMU_SOFT_ZERO)
        return 0;
    bool huge = v.class == EMU_SOFT_INFINITY || v.exponent > 63;
    return clamp_integer(m->type, v.sign, huge ? UINT64_MAX : v.significand >> (63 - v.exponent));
}

static uint64_t largest_finite(const emu_format *f)
{
    return (((UINT64_C(1) << f->exponent_bits) - 1) << f->fraction_bits) - 1;
}

static uint64_t finish_float(const emu_mods *m, const emu_format *f, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (f->exponent_bits + f->fraction_bits), magnitude = bits & (sign - 1);
    uint64_t infinity = largest_finite(f) + 1, one = ((UINT64_C(1) << (f->exponent_bits - 1)) - 1)
                                                     << f->fraction_bits;
    if ((m->flags & EMU_FTZ) && m->type == EMU_F32 && !(bits & 0x7f800000))
        bits = magnitude = bits & sign;
    if (m->flags & EMU_SAT)
        return magnitude > infinity || bits & sign ? 0 : bits > one ? one : bits;
    if ((m->flags & EMU_RELU) && bits & sign && magnitude <= infinity)
        return 0;
    if ((m->flags & EMU_SATFINITE) && magnitude == infinity)
        return (bits & sign) | largest_finite(f);
    return bits;
}

static uint64_t to_float(const emu_mods *m, emu_soft v)
{
    const emu_format *f = format_of(m->type);
    bool to_integral = m->round >= EMU_RNI;
    if (to_integral)
        v = emu_soft_integral(v, m->round);
    uint64_t bits = finish_float(m, f, emu_soft_pack(f, v, to_integral ? EMU_RN : m->round));
    return m->type == EMU_TF32 ? bits << 13 : bits;
}

static uint64_t convert(const emu_mods *m, uint64_t x)
{
    if (is_float(m->source)) {
        if ((m->flags & EMU_FTZ) && m->source == EMU_F32 && !(x & 0x7f800000))
            x &= 0x80000000;
        emu_soft v = emu_soft_unpack(format_of(m->source), x);
        return is_float(m->type) ? to_float(m, v) : float_to_integer(m, v);
    }
    x = sign_extended(m->source, x);
    bool sign = is_signed(m->source) && (int64_t)x < 0;
    uint64_t magnitude = sign ? 0 - x : x;
    if (is_float(m->type))
        return to_float(m, emu_soft_of_integer(sign, magnitude));
    return m->flags & EMU_SAT ? clamp_integer(m->type, sign, magnitude) : x;
}

static uint64_t load_lane(const void *slot, unsigned bytes, uint32_t lane)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)slot + (size_t)lane * bytes, bytes);
    return x;
}

HANDLER(any)
{
    unsigned from = emu_types[op->mods.source].bytes, to = emu_types[op->mods.type].bytes;
    const char *a = LANES_OF(const char, 1);
    char *d = LANES_OF(char, 0);
    ACTIVE_LANES(mask)
    {
        uint64_t r = convert(&op->mods, load_lane(a, from, i));
        memcpy(d + (size_t)i * to, &r, to);
    }
}

/* Packs two floats: a to the upper half, b to the lower half. */
HANDLER(pair)
{
    const uint32_t *a = LANES_OF(const uint32_t, 1), *b = LANES_OF(const uint32_t, 2);
    uint32_t *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(mask) d[i] = (uint32_t)(convert(&op->mods, a[i]) << 16 | convert(&op->mods, b[i]));
}

#define PAIR_OF(low, high) ((uint32_t)(low) | (uint32_t)(high) << 16)
DEFINE2(f16x2_rn, uint32_t, float, float, PAIR_OF(float_to_half(b), float_to_half(a)))
DEFINE2(bf16x2_rn, uint32_t, float, float, PAIR_OF(float_to_bf16(b), float_to_bf16(a)))

DEFINE1(f32_from_f16, float, uint16_t, canonical(half_to_float(a)))
DEFINE1(f32_from_bf16, float, uint16_t, canonical(bf16_to_float(a)))
DEFINE1(f16_from_f32, uint16_t, float, float_to_half(a))
DEFINE1(bf16_from_f32, uint16_t, float, float_to_bf16(a))
DEFINE1(f64_from_f32, double, float, canonical64((double)a))
DEFINE1(f32_from_f64, float, double, canonical((float)a))
DEFINE1(f32_from_u32, float, uint32_t, a)
DEFINE1(f32_from_s32, float, int32_t, a)
DEFINE1(f32_from_u64, float, uint64_t, a)
DEFINE1(f32_from_s64, float, int64_t, a)
DEFINE1(f64_from_u32, double, uint32_t, a)
DEFINE1(f64_from_s32, double, int32_t, a)
DEFINE1(f64_from_u64, double, uint64_t, a)
DEFINE1(f64_from_s64, double, int64_t, a)

/* Clamps an f32 for conversion to a 32-bit integer. Uses double, which represents all of them. */
static inline double within(float a, double least, double most)
{
    double x = (double)a;
    return a != a ? 0 : x < least ? least : x > most ? most : x;
}

#define F32_TO(name, round)                                                                                  \
    DEFINE1(name##_s32, int32_t, float, (int32_t)round(within(a, -2147483648.0, 2147483647.0)))              \
    DEFINE1(name##_u32, uint32_t, float, (uint32_t)(int64_t)round(within(a, 0.0, 4294967295.0)))             \
    DEFINE1(name##_f32, float, float, canonical((float)round((double)a)))
F32_TO(rni, nearbyint)
F32_TO(rzi, trunc)
F32_TO(rmi, floor)
F32_TO(rpi, ceil)

typedef struct fast_pair {
    uint8_t type, source, round;
    bool also_ftz; /* its result is the same with .ftz */
    emu_handler *run;
} fast_pair;

static const fast_pair fast[] = {
    {EMU_F32, EMU_F16, EMU_RN, true, f32_from_f16},  {EMU_F32, EMU_BF16, EMU_RN, false, f32_from_bf16},
    {EMU_F16, EMU_F32, EMU_RN, false, f16_from_f32}, {EMU_BF16, EMU_F32, EMU_RN, false, bf16_from_f32},
    {EMU_F64, EMU_F32, EMU_RN, false, f64_from_f32}, {EMU_F32, EMU_F64, EMU_RN, false, f32_from_f64},
    {EMU_F32, EMU_U32, EMU_RN, true, f32_from_u32},  {EMU_F32, EMU_S32, EMU_RN, true, f32_from_s32},
    {EMU_F32, EMU_U64, EMU_RN, true, f32_from_u64},  {EMU_F32, EMU_S64, EMU_RN, true, f32_from_s64},
    {EMU_F64, EMU_U32, EMU_RN, false, f64_from_u32}, {EMU_F64, EMU_S32, EMU_RN, false, f64_from_s32},
    {EMU_F64, EMU_U64, EMU_RN, false, f64_from_u64}, {EMU_F64, EMU_S64, EMU_RN, false, f64_from_s64},
    {EMU_S32, EMU_F32, EMU_RNI, true, rni_s32},      {EMU_S32, EMU_F32, EMU_RZI, true, rzi_s32},
    {EMU_S32, EMU_F32, EMU_RMI, false, rmi_s32},     {EMU_S32, EMU_F32, EMU_RPI, false, rpi_s32},
    {EMU_U32, EMU_F32, EMU_RNI, true, rni_u32},      {EMU_U32, EMU_F32, EMU_RZI, true, rzi_u32},
    {EMU_U32, EMU_F32, EMU_RMI, false, rmi_u32},     {EMU_U32, EMU_F32, EMU_RPI, false, rpi_u32},
    {EMU_F32, EMU_F32, EMU_RNI, true, rni_f32},      {EMU_F32, EMU_F32, EMU_RZI, true, rzi_f32},
    {EMU_F32, EMU_F32, EMU_RMI, false, rmi_f32},     {EMU_F32, EMU_F32, EMU_RPI, false, rpi_f32},
};

static emu_handler *pick_fast(const emu_mods *m)
{
    unsigned flags = m->flags & (EMU_FTZ | EMU_SAT | EMU_RELU | EMU_SATFINITE);
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++)
        if (fast[i].type == m->type && fast[i].source == m->source && fast[i].round == m->round &&
            (flags == 0 || (flags == EMU_FTZ && fast[i].also_ftz)))
            return fast[i].run;
    return any;
}

/* True if the destination cannot represent every value of the source; .sat needs that. */
static bool can_saturate(const emu_mods *m)
{
    unsigned from = emu_types[m->source].bytes, to = emu_types[m->type].bytes;
    if (is_float(m->source) || is_float(m->type))
        return true;
    return is_signed(m->source) == is_signed(m->type) ? to < from : is_signed(m->source) || to <= from;
}

/* Which rounding a pair requires: an integer one, a float one, or none. rounded: the instruction has one. From .bf16 it may
   have one although the conversion is exact: the ISA has an example. */
static emu_handler *pick_cvt(const emu_mods *m, bool rounded)
{
    bool from_float = is_float(m->source), to_float_type = is_float(m->type), integral = m->round >= EMU_RNI;
    unsigned from = emu_types[m->source].bytes, to = emu_types[m->type].bytes;
    bool touches_f32 = m->type == EMU_F32 || m->source == EMU_F32;
    if (((m->flags & EMU_FTZ) && !touches_f32) || ((m->flags & EMU_SAT) && !can_saturate(m)))
        return NULL;
    if (!from_float && !to_float_type) {
        bool fast_enough = !(m->flags & EMU_SAT);
        return rounded ? NULL : fast_enough ? integers[__builtin_ctz(to)][m->source] : any;
    }
    if (from_float && !to_float_type)
        return rounded && integral ? pick_fast(m) : NULL;
    if (!from_float)
        return rounded && !integral ? pick_fast(m) : NULL;
    if (m->type == m->source)
        return !rounded || integral ? pick_fast(m) : NULL;
    bool narrows = to < from || (to == from && m->type != m->source);
    if (m->source == EMU_BF16 && rounded && !integral)
        return pick_fast(m);
    return narrows == (rounded && !integral) && narrows == rounded ? pick_fast(m) : NULL;
}

static emu_handler *pick_rounded(const emu_mods *m)
{
    return pick_cvt(m, true);
}

static emu_handler *pick_unrounded(const emu_mods *m)
{
    return pick_cvt(m, false);
}

static emu_handler *pick_pair(const emu_mods *m)
{
    bool plain = m->round == EMU_RN && !(m->flags & (EMU_RELU | EMU_SATFINITE));
    return !plain ? pair : m->type == EMU_F16X2 ? f16x2_rn : bf16x2_rn;
}

/* ---- formats of 8, 6 and 4 bits, element by element ------------------------------------------------------------------ */

static unsigned element_bits(unsigned type)
{
    return type == EMU_E2M1X2 ? 4 : type == EMU_F32 ? 32 : type == EMU_F16X2 || type == EMU_BF16X2 ? 16 : 8;
}

/* .satfinite: values beyond the largest become the largest; a NaN becomes +largest if the format has no NaN. */
static uint64_t to_narrow(const emu_mods *m, uint64_t x)
{
    const emu_format *to = format_of(m->type);
    uint64_t sign = UINT64_C(1) << (to->exponent_bits + to->fraction_bits);
    uint64_t largest = to->has_infinity ? (((UINT64_C(1) << to->exponent_bits) - 1) << to->fraction_bits) - 1
                                        : sign - 1 - to->has_nan;
    emu_soft v = emu_soft_unpack(format_of(m->source), x);
    if (v.class == EMU_SOFT_NAN)
        return to->nan;
    uint64_t bits = emu_soft_pack(to, v, EMU_RN);
    if ((bits & (sign - 1)) > largest)
        bits = (v.sign ? sign : 0) | largest;
    return (m->flags & EMU_RELU) && v.sign ? 0 : bits;
}

static uint64_t from_narrow(const emu_mods *m, uint64_t x)
{
    const emu_format *to = format_of(m->type), *from = format_of(m->source);
    x &= (UINT64_C(2) << (from->exponent_bits + from->fraction_bits)) - 1;
    emu_soft v = emu_soft_unpack(from, x);
    if ((m->flags & EMU_RELU) && v.sign && v.class != EMU_SOFT_NAN)
        return 0;
    return emu_soft_pack(to, v, EMU_RN);
}

static uint32_t load_bits(const emu_warp *w, uint32_t arg, unsigned bytes, uint32_t lane)
{
    uint32_t x = 0;
    memcpy(&x, (const char *)emu_lanes(w, arg) + (size_t)lane * bytes, bytes);
    return x;
}

static void store_bits(const emu_warp *w, uint32_t arg, unsigned bytes, uint32_t lane, uint32_t x)
{
    memcpy((char *)emu_lanes(w, arg) + (size_t)lane * bytes, &x, bytes);
}

/* Packs two floats: a to the upper half, b to the lower half. */
HANDLER(narrow_pair)
{
    unsigned bits = element_bits(op->mods.type);
    ACTIVE_LANES(mask)
    {
        uint64_t a = to_narrow(&op->mods, LANES_OF(const uint32_t, 1)[i]),
                 b = to_narrow(&op->mods, LANES_OF(const uint32_t, 2)[i]);
        store_bits(w, op->arg[0], emu_types[op->mods.type].bytes, i, (uint32_t)(a << bits | b));
    }
}

static inline void each_half(emu_warp *w, const emu_op *op, uint32_t mask,
                             uint64_t half(const emu_mods *m, uint64_t x))
{
    unsigned from = element_bits(op->mods.source), to = element_bits(op->mods.type);
    ACTIVE_LANES(mask)
    {
        uint32_t x = load_bits(w, op->arg[1], emu_types[op->mods.source].bytes, i);
        uint64_t high = half(&op->mods, x >> from), low = half(&op->mods, x & ((1u << from) - 1));
        store_bits(w, op->arg[0], emu_types[op->mods.type].bytes, i, (uint32_t)(high << to | low));
    }
}

HANDLER_CALLS(narrow_packed, each_half, to_narrow)
HANDLER_CALLS(widen_packed, each_half, from_narrow)

/* ue8m0: the exponent of a power of two, biased by 127; 255 is NaN. */
static uint64_t to_exponent(const emu_mods *m, uint64_t x)
{
    emu_soft v = emu_soft_unpack(format_of(m->source), x);
    if (v.class == EMU_SOFT_NAN)
        return 255;
    if (v.class == EMU_SOFT_INFINITY)
        return m->flags & EMU_SATFINITE ? 254 : 255;
    if (v.class == EMU_SOFT_ZERO)
        return 0;
    int e = v.exponent + (m->round == EMU_RP && v.significand << 1);
    return e < -127 ? 0 : e > 127 ? (m->flags & EMU_SATFINITE ? 254 : 255) : (uint64_t)(e + 127);
}

HANDLER(exponent_pair)
{
    ACTIVE_LANES(mask)
    {
        uint64_t a = to_exponent(&op->mods, LANES_OF(const uint32_t, 1)[i]),
                 b = to_exponent(&op->mods, LANES_OF(const uint32_t, 2)[i]);
        LANES_OF(uint16_t, 0)[i] = (uint16_t)(a << 8 | b);
    }
}

HANDLER_CALLS(exponent_packed, each_half, to_exponent)

static uint64_t from_exponent(const emu_mods *m, uint64_t x)
{
    (void)m;
    return x == 255 ? 0x7fff : x == 0 ? 0x40 : x << 7; /* 2^-127 is subnormal in bf16 */
}

HANDLER_CALLS(widen_exponent, each_half, from_exponent)

static uint32_t clamp_bits(int32_t x, unsigned bits, bool has_sign)
{
    int32_t most = has_sign ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = has_sign ? -most - 1 : 0;
    return (uint32_t)(x < least ? least : x > most ? most : x) & ((1u << bits) - 1);
}

/* mods.mode: index of the word, u16 s16 u8 s8 u4 s4 u2 s2. */
HANDLER(pack)
{
    unsigned bits = 16u >> op->mods.mode / 2;
    bool has_sign = op->mods.mode & 1;
    ACTIVE_LANES(mask)
    {
        uint32_t a = clamp_bits(LANES_OF(const int32_t, 1)[i], bits, has_sign),
                 b = clamp_bits(LANES_OF(const int32_t, 2)[i], bits, has_sign);
        uint32_t c = bits == 16 ? 0 : LANES_OF(const uint32_t, 3)[i] << 2 * (bits & 15);
        LANES_OF(uint32_t, 0)[i] = a << bits | b | c;
    }
}

#define WITHOUT_BF16 "u8|u16|u32|u64|s8|s16|s32|s64|f16|f32|f64"
#define WITH_BF16    WITHOUT_BF16 "|bf16"
#define ROUNDING     "r:rn|rz|rm|rp|rni|rzi|rmi|rpi"
#define F8           "e4m3x2|e5m2x2"
#define F6           "e2m3x2|e3m2x2"
#define NARROW       "100f 110f 120f 121f 103f"

static const emu_row rows[] = {
    {"cvt", "ftz? sat? t:" WITHOUT_BF16 " s:" WITHOUT_BF16, "=~t %~s", .pick = pick_unrounded},
    {"cvt", ROUNDING " ftz? sat? t:" WITHOUT_BF16 " s:" WITHOUT_BF16, "=~t ~s", .pick = pick_rounded},
    {"cvt", "r:rn|rz relu? t:f16 s:f32", "=~t s", 70, 80, .pick = pick_rounded},
    {"cvt", "r:rn|rz relu? t:bf16 s:f32", "=t s", 70, 80, .pick = pick_rounded},
    {"cvt", "r:rn|rz relu? satfinite relu? t:f16 s:f32", "=~t s", 81, 80, .pick = pick_rounded},
    {"cvt", "r:rn|rz relu? satfinite relu? t:bf16 s:f32", "=t s", 81, 80, .pick = pick_rounded},
    {"cvt", "ftz? t:f32 s:bf16", "=t s", 71, 80, .pick = pick_unrounded},
    {"cvt", "ftz? t:" WITH_BF16 " s:" WITH_BF16, "=t s", 78, 90, .pick = pick_unrounded},
    {"cvt", ROUNDING " ftz? t:" WITH_BF16 " s:" WITH_BF16, "=t s", 78, 90, .pick = pick_rounded},
    {"cvt", "r:rn|rz relu? t:f16x2|bf16x2 s:f32", "=~t s s", 70, 80, .pick = pick_pair},
    {"cvt", "r:rn|rz relu? satfinite relu? t:f16x2|bf16x2 s:f32", "=~t s s", 81, 80, .pick = pick_pair},
    {"cvt", "r:rna t:tf32 s:f32", "=t s", 70, 80, .run = any},
    {"cvt", "r:rna satfinite t:tf32 s:f32", "=t s", 81, 80, .run = any},
    {"cvt", "r:rn|rz relu? t:tf32 s:f32", "=t s", 78, 90, .run = any},
    {"cvt", "r:rn|rz relu? satfinite relu? t:tf32 s:f32", "=t s", 86, 100, .run = any},
    {"cvt", "r:rn relu? satfinite relu? t:" F8 " s:f32", "=x s s", 78, 89, .run = narrow_pair},
    {"cvt", "r:rn relu? satfinite relu? t:" F8 " s:f16x2", "=x y", 78, 89, .run = narrow_packed},
    {"cvt", "r:rn relu? t:f16x2 s:" F8, "=t y", 78, 89, .run = widen_packed},
    {"cvt", "r:rn relu? satfinite relu? t:e2m1x2 s:f32", "=x s s", 86, 100, NARROW, .run = narrow_pair},
    {"cvt", "r:rn relu? satfinite relu? t:" F6 " s:f32", "=x s s", 86, 100, NARROW, .run = narrow_pair},
    {"cvt", "r:rn relu? t:f16x2 s:e2m1x2", "=t y", 86, 100, NARROW, .run = widen_packed},
    {"cvt", "r:rn relu? t:f16x2 s:" F6, "=t y", 86, 100, NARROW, .run = widen_packed},
    {"cvt", "r:rn relu? satfinite relu? t:" F8 " s:bf16x2", "=x y", 91, 100, NARROW, .run = narrow_packed},
    {"cvt", "r:rn relu? satfinite relu? t:" F6 " s:f16x2|bf16x2", "=x y", 91, 100, NARROW,
     .run = narrow_packed},
    {"cvt", "r:rn relu? satfinite relu? t:e2m1x2 s:f16x2|bf16x2", "=x y", 91, 100, NARROW,
     .run = narrow_packed},
    {"cvt", "r:rz|rp satfinite? t:ue8m0x2 s:f32", "=x s s", 86, 100, NARROW, .run = exponent_pair},
    {"cvt", "r:rz|rp satfinite? t:ue8m0x2 s:bf16x2", "=x y", 86, 100, NARROW, .run = exponent_packed},
    {"cvt", "r:rn t:bf16x2 s:ue8m0x2", "=x y", 86, 100, NARROW, .run = widen_exponent},
    {"cvt", "pack sat m:u16|s16 s32", "=u32 s32 s32", 65, 72, .run = pack},
    {"cvt", "pack sat m:-|-|u8|s8 s32 b32", "=u32 s32 s32 b32", 65, 72, .run = pack},
    {"cvt", "pack sat m:-|-|-|-|u4|s4|u2|s2 s32 b32", "=u32 s32 s32 b32", 65, 75, .run = pack},
};

EXPORT_ROWS(emu_rows_convert);
