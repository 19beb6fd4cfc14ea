/* Comparison and selection (ISA 9.7.6, 9.7.7), and the tests of float properties (9.7.3.1, 9.7.3.2). */
#include "exec.h"

#include "half.h"

/* Returns the lanes for which a comparison is true. */
typedef uint32_t compare_lanes(const void *a, const void *b);

#define COMPARE(name, T, value)                                                                              \
    static uint32_t name(const void *x, const void *y)                                                       \
    {                                                                                                        \
        const T *a_ = x, *b_ = y;                                                                            \
        uint32_t lanes = 0;                                                                                  \
        EACH_LANE                                                                                            \
        {                                                                                                    \
            T a = a_[i], b = b_[i];                                                                          \
            lanes |= (value) ? UINT32_C(1) << i : 0;                                                         \
        }                                                                                                    \
        return lanes;                                                                                        \
    }

#define COMPARE_INTEGER(T, suffix)                                                                           \
    COMPARE(eq_##suffix, T, a == b)                                                                          \
    COMPARE(ne_##suffix, T, a != b)                                                                          \
    COMPARE(lt_##suffix, T, a < b)                                                                           \
    COMPARE(le_##suffix, T, a <= b)                                                                          \
    COMPARE(gt_##suffix, T, a > b)                                                                           \
    COMPARE(ge_##suffix, T, a >= b)

/* With a NaN, eq to ge are false and the others true. */
#define COMPARE_FLOAT(T, suffix)                                                                             \
    COMPARE(eq_##suffix, T, a == b)                                                                          \
    COMPARE(ne_##suffix, T, (a < b) | (a > b))                                                               \
    COMPARE(lt_##suffix, T, a < b)                                                                           \
    COMPARE(le_##suffix, T, a <= b)                                                                          \
    COMPARE(gt_##suffix, T, a > b)                                                                           \
    COMPARE(ge_##suffix, T, a >= b)                                                                          \
    COMPARE(equ_##suffix, T, !((a < b) | (a > b)))                                                           \
    COMPARE(neu_##suffix, T, a != b)                                                                         \
    COMPARE(ltu_##suffix, T, !(a >= b))                                                                      \
    COMPARE(leu_##suffix, T, !(a > b))                                                                       \
    COMPARE(gtu_##suffix, T, !(a <= b))                                                                      \
    COMPARE(geu_##suffix, T, !(a < b))                                                                       \
    COMPARE(num_##suffix, T, (a == a) & (b == b))                                                            \
    COMPARE(nan_##suffix, T, (a != a) | (b != b))

COMPARE_INTEGER(uint16_t, u16)
COMPARE_INTEGER(int16_t, s16)
COMPARE_INTEGER(uint32_t, u32)
COMPARE_INTEGER(int32_t, s32)
COMPARE_INTEGER(uint64_t, u64)
COMPARE_INTEGER(int64_t, s64)
COMPARE_FLOAT(float, f32)
COMPARE_FLOAT(double, f64)

#define ROW_INTEGER(suffix)                                                                                  \
    {                                                                                                        \
        eq_##suffix, ne_##suffix, lt_##suffix, le_##suffix, gt_##suffix, ge_##suffix                         \
    }
/* The words lo to hs exist only for unsigned types. */
#define ROW_UNSIGNED(suffix)                                                                                 \
    {                                                                                                        \
        eq_##suffix, ne_##suffix, lt_##suffix, le_##suffix, gt_##suffix,                                     \
            ge_##suffix, [14] = lt_##suffix, le_##suffix, gt_##suffix, ge_##suffix                           \
    }
#define ROW_BITS(suffix)                                                                                     \
    {                                                                                                        \
        eq_##suffix, ne_##suffix                                                                             \
    }
#define ROW_FLOAT(suffix)                                                                                    \
    {                                                                                                        \
        eq_##suffix, ne_##suffix, lt_##suffix, le_##suffix, gt_##suffix, ge_##suffix, equ_##suffix,          \
            neu_##suffix, ltu_##suffix, leu_##suffix, gtu_##suffix, geu_##suffix, num_##suffix, nan_##suffix \
    }

static compare_lanes *const compare[EMU_TYPES][18] = {
    [EMU_B16] = ROW_BITS(u16),     [EMU_B32] = ROW_BITS(u32),     [EMU_B64] = ROW_BITS(u64),
    [EMU_U16] = ROW_UNSIGNED(u16), [EMU_U32] = ROW_UNSIGNED(u32), [EMU_U64] = ROW_UNSIGNED(u64),
    [EMU_S16] = ROW_INTEGER(s16),  [EMU_S32] = ROW_INTEGER(s32),  [EMU_S64] = ROW_INTEGER(s64),
    [EMU_F32] = ROW_FLOAT(f32),    [EMU_F64] = ROW_FLOAT(f64),    [EMU_F16] = ROW_FLOAT(f32),
    [EMU_BF16] = ROW_FLOAT(f32),
};

static uint32_t combine(unsigned combine_with, uint32_t t, uint32_t c)
{
    switch (combine_with) {
    case EMU_COMBINE_AND:
        return t & c;
    case EMU_COMBINE_OR:
        return t | c;
    case EMU_COMBINE_XOR:
        return t ^ c;
    default:
        return t;
    }
}

/* Converts f16 or bf16 values, or one half of packed pairs, to floats. */
static void widen(float out[EMU_LANES], const void *in, emu_type type, unsigned half, bool flush)
{
    unsigned step = type == EMU_F16X2 || type == EMU_BF16X2 ? 2 : 1;
    const uint16_t *h = in;
    bool is_bf16 = type == EMU_BF16 || type == EMU_BF16X2;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        uint16_t bits = h[i * step + half];
        out[i] = is_bf16 ? bf16_to_float(bits) : half_to_float(flush ? half_flush(bits) : bits);
    }
}

static uint32_t compare_sources(const emu_warp *w, emu_type type, unsigned mode, bool flush, uint32_t x,
                                uint32_t y, unsigned half)
{
    const void *a = emu_lanes(w, x), *b = emu_lanes(w, y);
    float p[EMU_LANES], q[EMU_LANES];
    if (type == EMU_F32 && flush) {
        const float *fa = a, *fb = b;
        EACH_LANE p[i] = flush_float(fa[i]);
        EACH_LANE q[i] = flush_float(fb[i]);
    } else if (type == EMU_F16 || type == EMU_BF16 || type == EMU_F16X2 || type == EMU_BF16X2) {
        widen(p, a, type, half, flush);
        widen(q, b, type, half, flush);
        type = EMU_F32;
    } else {
        return compare[type][mode](a, b);
    }
    return compare[EMU_F32][mode](p, q);
}

/* setp p|q: q gets the negated comparison, combined in the same way; for packed types, the comparison of the second halves.
   Scalar f16 and bf16 have only p: their sources are operands 1 and 2 instead of 2 and 3. */
static inline void setp_with(emu_warp *w, const emu_op *op, uint32_t mask, unsigned sources, uint32_t c)
{
    emu_mods m = op->mods;
    const uint32_t *from = op->arg + sources;
    uint32_t t = compare_sources(w, (emu_type)m.type, m.mode, m.flags & EMU_FTZ, from[0], from[1], 0), u = ~t;
    if (m.type == EMU_F16X2 || m.type == EMU_BF16X2)
        u = compare_sources(w, (emu_type)m.type, m.mode, m.flags & EMU_FTZ, from[0], from[1], 1);
    emu_set_predicate(w, op->arg[0], mask, combine(m.combine, t, c));
    if (sources == 2 && op->arg[1] != EMU_SINK)
        emu_set_predicate(w, op->arg[1], mask, combine(m.combine, u, c));
}

HANDLER_CALLS(setp, setp_with, 2, 0)
HANDLER_CALLS(setp_combined, setp_with, 2, emu_predicate(w, op->arg[4]))
HANDLER_CALLS(setp_half, setp_with, 1, 0)
HANDLER_CALLS(setp_half_combined, setp_with, 1, emu_predicate(w, op->arg[3]))

static void store_truth(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t truth)
{
    static const uint32_t ones[EMU_TYPES] = {
        [EMU_U32] = UINT32_MAX, [EMU_S32] = UINT32_MAX, [EMU_U16] = 0xffff,  [EMU_S16] = 0xffff,
        [EMU_F32] = 0x3f800000, [EMU_F16] = 0x3c00,     [EMU_BF16] = 0x3f80,
    };
    uint32_t one = ones[op->mods.type];
    if (emu_types[op->mods.type].bytes == 4)
        SET_LANES(uint32_t, LANES_OF(uint32_t, 0), truth >> i & 1 ? one : 0);
    else
        SET_LANES(uint16_t, LANES_OF(uint16_t, 0), truth >> i & 1 ? one : 0);
}

static void set_with(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t c)
{
    emu_mods m = op->mods;
    emu_type source = (emu_type)m.source;
    uint32_t t = compare_sources(w, source, m.mode, m.flags & EMU_FTZ, op->arg[1], op->arg[2], 0);
    t = combine(m.combine, t, c);
    if (source != EMU_F16X2 && source != EMU_BF16X2) {
        store_truth(w, op, mask, t);
        return;
    }
    uint32_t u = compare_sources(w, source, m.mode, m.flags & EMU_FTZ, op->arg[1], op->arg[2], 1);
    u = combine(m.combine, u, c);
    uint32_t one = m.type == EMU_F16X2 ? 0x3c00 : m.type == EMU_BF16X2 ? 0x3f80 : 0xffff;
    SET_LANES(uint32_t, LANES_OF(uint32_t, 0), (t >> i & 1 ? one : 0) | (u >> i & 1 ? one << 16 : 0));
}

HANDLER_CALLS(set, set_with, 0)
HANDLER_CALLS(set_combined, set_with, emu_predicate(w, op->arg[3]))

#define SELECT(bits)                                                                                         \
    HANDLER(selp_##bits)                                                                                     \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1), *b = LANES_OF(const uint##bits##_t, 2); \
        uint32_t c = emu_predicate(w, op->arg[3]);                                                           \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), c >> i & 1 ? a[i] : b[i]);                    \
    }                                                                                                        \
    HANDLER(slct_s32_##bits)                                                                                 \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1), *b = LANES_OF(const uint##bits##_t, 2); \
        const int32_t *c = LANES_OF(const int32_t, 3);                                                       \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), c[i] >= 0 ? a[i] : b[i]);                     \
    }                                                                                                        \
    HANDLER(slct_f32_##bits)                                                                                 \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1), *b = LANES_OF(const uint##bits##_t, 2); \
        const float *c = LANES_OF(const float, 3);                                                           \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), c[i] >= 0 ? a[i] : b[i]);                     \
    }                                                                                                        \
    HANDLER(slct_ftz_##bits)                                                                                 \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1), *b = LANES_OF(const uint##bits##_t, 2); \
        const float *c = LANES_OF(const float, 3);                                                           \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), flush_float(c[i]) >= 0 ? a[i] : b[i]);        \
    }
SELECT(16)
SELECT(32)
SELECT(64)

#define BY_BITS(name)                                                                                        \
    TYPES(name) = {                                                                                          \
        [EMU_B16] = name##_16, [EMU_U16] = name##_16, [EMU_S16] = name##_16, [EMU_B32] = name##_32,          \
        [EMU_U32] = name##_32, [EMU_S32] = name##_32, [EMU_F32] = name##_32, [EMU_B64] = name##_64,          \
        [EMU_U64] = name##_64, [EMU_S64] = name##_64, [EMU_F64] = name##_64}
BY_BITS(selp);
BY_BITS(slct_s32);
BY_BITS(slct_f32);
BY_BITS(slct_ftz);

enum { FINITE, INFINITE, NUMBER, NOT_A_NUMBER, NORMAL, SUBNORMAL };

static bool has_property(unsigned property, uint64_t magnitude, uint64_t infinity, uint64_t least_normal)
{
    switch (property) {
    case FINITE:
        return magnitude < infinity;
    case INFINITE:
        return magnitude == infinity;
    case NUMBER:
        return magnitude <= infinity;
    case NOT_A_NUMBER:
        return magnitude > infinity;
    case NORMAL:
        return magnitude == 0 || (magnitude >= least_normal && magnitude < infinity);
    default:
        return magnitude > 0 && magnitude < least_normal;
    }
}

HANDLER(testp_f32)
{
    const uint32_t *a = LANES_OF(const uint32_t, 1);
    uint32_t lanes = 0;
    for (int i = 0; i < EMU_LANES; i++)
        lanes |= (uint32_t)has_property(op->mods.mode, a[i] & 0x7fffffff, 0x7f800000, 0x800000) << i;
    emu_set_predicate(w, op->arg[0], mask, lanes);
}

HANDLER(testp_f64)
{
    const uint64_t *a = LANES_OF(const uint64_t, 1);
    uint32_t lanes = 0;
    for (int i = 0; i < EMU_LANES; i++)
        lanes |= (uint32_t)has_property(op->mods.mode, a[i] & INT64_MAX, 0x7ff0000000000000, 0x10000000000000)
                 << i;
    emu_set_predicate(w, op->arg[0], mask, lanes);
}

DEFINE2(copysign_f32, uint32_t, uint32_t, uint32_t, (a & 0x80000000) | (b & 0x7fffffff))
DEFINE2(copysign_f64, uint64_t, uint64_t, uint64_t, (a & ~(uint64_t)INT64_MAX) | (b & INT64_MAX))

TYPES(testp) = {[EMU_F32] = testp_f32, [EMU_F64] = testp_f64};
TYPES(copysign_) = {[EMU_F32] = copysign_f32, [EMU_F64] = copysign_f64};

/* The type decides which comparison words exist: NULL for other combinations. */
static emu_handler *pick_setp(const emu_mods *m)
{
    emu_type type = m->type == EMU_F16X2 || m->type == EMU_BF16X2 ? EMU_F32 : (emu_type)m->type;
    if (!compare[type][m->mode])
        return NULL;
    if (type == EMU_F16 || type == EMU_BF16)
        return m->combine ? setp_half_combined : setp_half;
    return m->combine ? setp_combined : setp;
}

static emu_handler *pick_set(const emu_mods *m)
{
    emu_type type = m->source == EMU_F16X2 || m->source == EMU_BF16X2 ? EMU_F32 : (emu_type)m->source;
    return !compare[type][m->mode] ? NULL : m->combine ? set_combined : set;
}

#define SCALARS   "b16|b32|b64|u16|u32|u64|s16|s32|s64"
#define INT_CMP   "c:eq|ne|lt|le|gt|ge|lo|ls|hi|hs"
#define SET_TYPES "t:u32|s32|f32"

static const emu_row rows[] = {
    {"setp", INT_CMP " t:" SCALARS, "=p|p? t t", .pick = pick_setp},
    {"setp", INT_CMP " @bool t:" SCALARS, "=p|p? t t !p", .pick = pick_setp},
    {"setp", "@fcmp ftz? t:f32", "=p|p? t t", .pick = pick_setp},
    {"setp", "@fcmp @bool ftz? t:f32", "=p|p? t t !p", .pick = pick_setp},
    {"setp", "@fcmp t:f64", "=p|p? t t", .pick = pick_setp},
    {"setp", "@fcmp @bool t:f64", "=p|p? t t !p", .pick = pick_setp},
    {"setp", "@fcmp ftz? t:f16", "=p t t", 42, 53, .pick = pick_setp},
    {"setp", "@fcmp @bool ftz? t:f16", "=p t t !p", 42, 53, .pick = pick_setp},
    {"setp", "@fcmp ftz? t:f16x2", "=p|p t t", 42, 53, .pick = pick_setp},
    {"setp", "@fcmp @bool ftz? t:f16x2", "=p|p t t !p", 42, 53, .pick = pick_setp},
    {"setp", "@fcmp t:bf16", "=p x x", 78, 90, .pick = pick_setp},
    {"setp", "@fcmp @bool t:bf16", "=p x x !p", 78, 90, .pick = pick_setp},
    {"setp", "@fcmp t:bf16x2", "=p|p x x", 78, 90, .pick = pick_setp},
    {"setp", "@fcmp @bool t:bf16x2", "=p|p x x !p", 78, 90, .pick = pick_setp},
    {"set", INT_CMP " " SET_TYPES " s:" SCALARS, "=t s s", .pick = pick_set},
    {"set", INT_CMP " @bool " SET_TYPES " s:" SCALARS, "=t s s !p", .pick = pick_set},
    {"set", "@fcmp ftz? " SET_TYPES " s:f32", "=t s s", .pick = pick_set},
    {"set", "@fcmp @bool ftz? " SET_TYPES " s:f32", "=t s s !p", .pick = pick_set},
    {"set", "@fcmp " SET_TYPES " s:f64", "=t s s", .pick = pick_set},
    {"set", "@fcmp @bool " SET_TYPES " s:f64", "=t s s !p", .pick = pick_set},
    {"set", INT_CMP " t:f16 s:" SCALARS, "=t s s", 42, 53, .pick = pick_set},
    {"set", INT_CMP " @bool t:f16 s:" SCALARS, "=t s s !p", 42, 53, .pick = pick_set},
    {"set", "@fcmp ftz? t:f16 s:f16|f32", "=t s s", 42, 53, .pick = pick_set},
    {"set", "@fcmp @bool ftz? t:f16 s:f16|f32", "=t s s !p", 42, 53, .pick = pick_set},
    {"set", "@fcmp t:f16 s:f64", "=t s s", 42, 53, .pick = pick_set},
    {"set", "@fcmp @bool t:f16 s:f64", "=t s s !p", 42, 53, .pick = pick_set},
    {"set", "@fcmp ftz? t:u16|s16|u32|s32 s:f16", "=t s s", 65, 53, .pick = pick_set},
    {"set", "@fcmp @bool ftz? t:u16|s16|u32|s32 s:f16", "=t s s !p", 65, 53, .pick = pick_set},
    {"set", "@fcmp ftz? t:f16x2 s:f16x2", "=t s s", 42, 53, .pick = pick_set},
    {"set", "@fcmp @bool ftz? t:f16x2 s:f16x2", "=t s s !p", 42, 53, .pick = pick_set},
    {"set", "@fcmp ftz? t:u32|s32 s:f16x2", "=t s s", 65, 53, .pick = pick_set},
    {"set", "@fcmp @bool ftz? t:u32|s32 s:f16x2", "=t s s !p", 65, 53, .pick = pick_set},
    {"set", INT_CMP " t:bf16 s:" SCALARS, "=x s s", 78, 90, .pick = pick_set},
    {"set", INT_CMP " @bool t:bf16 s:" SCALARS, "=x s s !p", 78, 90, .pick = pick_set},
    {"set", "@fcmp t:bf16 s:bf16|f16|f32|f64", "=x s s", 78, 90, .pick = pick_set},
    {"set", "@fcmp @bool t:bf16 s:bf16|f16|f32|f64", "=x s s !p", 78, 90, .pick = pick_set},
    {"set", "@fcmp t:u16|s16|u32|s32 s:bf16", "=t s s", 78, 90, .pick = pick_set},
    {"set", "@fcmp @bool t:u16|s16|u32|s32 s:bf16", "=t s s !p", 78, 90, .pick = pick_set},
    {"set", "@fcmp t:bf16x2|u32|s32 s:bf16x2", "=x s s", 78, 90, .pick = pick_set},
    {"set", "@fcmp @bool t:bf16x2|u32|s32 s:bf16x2", "=x s s !p", 78, 90, .pick = pick_set},
    {"selp", "@any", "=t t t !p", .by_type = selp},
    {"slct", "@any s:s32", "=t t t s", .by_type = slct_s32},
    {"slct", "@any s:f32", "=t t t s", .by_type = slct_f32},
    {"slct", "ftz @any s:f32", "=t t t s", .by_type = slct_ftz},
    {"testp", "m:finite|infinite|number|notanumber|normal|subnormal t:f32|f64", "=p t", .by_type = testp},
    {"copysign", "t:f32|f64", "=t t t", .by_type = copysign_},
};

EXPORT_ROWS(emu_rows_compare);
