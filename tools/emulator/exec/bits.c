/* Logic, shifts, bit fields, permutations (ISA 9.7.1.14 to 9.7.1.22, 9.7.8, 9.7.9.7). */
#include "exec.h"

#define BITS2(name, value)                                                                                   \
    DEFINE2(name##_16, uint16_t, uint16_t, uint16_t, value)                                                  \
    DEFINE2(name##_32, uint32_t, uint32_t, uint32_t, value)                                                  \
    DEFINE2(name##_64, uint64_t, uint64_t, uint64_t, value)

#define BITS1(name, value)                                                                                   \
    DEFINE1(name##_16, uint16_t, uint16_t, value)                                                            \
    DEFINE1(name##_32, uint32_t, uint32_t, value)                                                            \
    DEFINE1(name##_64, uint64_t, uint64_t, value)

#define LOGIC2(name, operator)                                                                               \
    BITS2(name, a operator b)                                                                                \
    HANDLER(name##_pred)                                                                                     \
    {                                                                                                        \
        uint32_t value = emu_predicate(w, op->arg[1]) operator emu_predicate(w, op->arg[2]);                 \
        emu_set_predicate(w, op->arg[0], mask, value);                                                       \
    }                                                                                                        \
    TYPES(name) = {                                                                                          \
        [EMU_B16] = name##_16, [EMU_B32] = name##_32, [EMU_B64] = name##_64, [EMU_PRED] = name##_pred};

LOGIC2(and, &)
LOGIC2(or, |)
LOGIC2(xor, ^)
BITS1(not, ~a)
BITS1(cnot, a == 0)

HANDLER(not_pred)
{
    emu_set_predicate(w, op->arg[0], mask, ~emu_predicate(w, op->arg[1]));
}

TYPES(not ) = {[EMU_B16] = not_16, [EMU_B32] = not_32, [EMU_B64] = not_64, [EMU_PRED] = not_pred};
TYPES(cnot) = {[EMU_B16] = cnot_16, [EMU_B32] = cnot_32, [EMU_B64] = cnot_64};

/* Shift amounts clamp at the width. */
#define SHIFT(name, T, value) DEFINE2(name, T, T, uint32_t, value)
SHIFT(shl_16, uint16_t, b > 15 ? 0 : (uint32_t)a << b)
SHIFT(shl_32, uint32_t, b > 31 ? 0 : a << (b & 31))
SHIFT(shl_64, uint64_t, b > 63 ? 0 : a << (b & 63))
SHIFT(shr_u16, uint16_t, b > 15 ? 0 : a >> (b & 15))
SHIFT(shr_u32, uint32_t, b > 31 ? 0 : a >> (b & 31))
SHIFT(shr_u64, uint64_t, b > 63 ? 0 : a >> (b & 63))
SHIFT(shr_s16, int16_t, a >> (b > 15 ? 15 : b))
SHIFT(shr_s32, int32_t, a >> (b > 31 ? 31 : b))
SHIFT(shr_s64, int64_t, a >> (b > 63 ? 63 : b))
TYPES(shl) = {[EMU_B16] = shl_16, [EMU_B32] = shl_32, [EMU_B64] = shl_64};
TYPES(shr) = {
    [EMU_B16] = shr_u16, [EMU_B32] = shr_u32, [EMU_B64] = shr_u64, [EMU_U16] = shr_u16, [EMU_U32] = shr_u32,
    [EMU_U64] = shr_u64, [EMU_S16] = shr_s16, [EMU_S32] = shr_s32, [EMU_S64] = shr_s64};

static inline uint64_t both(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

#define CLAMPED(c) ((c) > 32 ? 32 : (c))
DEFINE3(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, (both(a, b) << (c & 31)) >> 32)
DEFINE3(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, c > 31 ? a : shf_l_wrap_f(a, b, c))
DEFINE3(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, both(a, b) >> CLAMPED(c))
DEFINE3(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, both(a, b) >> (c & 31))

/* Masks of the table's bits select the eight products without branches; the table is not known at compile time. */
HANDLER(lop3)
{
    const uint32_t *a_ = LANES_OF(const uint32_t, 1), *b_ = LANES_OF(const uint32_t, 2);
    const uint32_t *c_ = LANES_OF(const uint32_t, 3);
    uint32_t bit[8];
    for (int n = 0; n < 8; n++)
        bit[n] = op->imm >> n & 1 ? UINT32_MAX : 0;
#define CHOICE(c, n) (((c)&bit[(n) + 1]) | (~(c)&bit[n]))
#define LOP3(a, b, c)                                                                                        \
    (((a) & (((b)&CHOICE(c, 6)) | (~(b)&CHOICE(c, 4)))) | (~(a) & (((b)&CHOICE(c, 2)) | (~(b)&CHOICE(c, 0)))))
    SET_LANES(uint32_t, LANES_OF(uint32_t, 0), LOP3(a_[i], b_[i], c_[i]));
}

/* d|p: p = (d != 0) combined with q. */
HANDLER(lop3_predicate)
{
    const uint32_t *a = LANES_OF(const uint32_t, 2), *b = LANES_OF(const uint32_t, 3),
                   *c = LANES_OF(const uint32_t, 4);
    uint32_t *d = LANES_OF(uint32_t, 0), bit[8], nonzero = 0, q = emu_predicate(w, op->arg[5]);
    for (int n = 0; n < 8; n++)
        bit[n] = op->imm >> n & 1 ? UINT32_MAX : 0;
    ACTIVE_LANES(mask)
    {
        d[i] = LOP3(a[i], b[i], c[i]);
        nonzero |= (uint32_t)(d[i] != 0) << i;
    }
    emu_set_predicate(w, op->arg[1], mask, op->mods.combine == EMU_COMBINE_AND ? nonzero & q : nonzero | q);
}

static inline uint32_t prmt_byte(uint64_t bytes, uint32_t selector)
{
    uint32_t byte = (uint32_t)(bytes >> 8 * (selector & 7)) & 0xff;
    return selector & 8 ? (byte >> 7) * 0xff : byte;
}

DEFINE3(prmt, uint32_t, uint32_t, uint32_t, uint32_t,
        prmt_byte(both(a, b), c) | prmt_byte(both(a, b), c >> 4) << 8 | prmt_byte(both(a, b), c >> 8) << 16 |
            prmt_byte(both(a, b), c >> 12) << 24)

/* The modes as selectors of the generic form: [mode][c & 3]. */
HANDLER(prmt_mode)
{
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    const uint32_t *a = LANES_OF(const uint32_t, 1), *b = LANES_OF(const uint32_t, 2),
                   *c = LANES_OF(const uint32_t, 3);
    uint32_t *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(mask) d[i] = prmt_f(a[i], b[i], selectors[op->mods.mode][c[i] & 3]);
}

static inline uint32_t reverse32(uint32_t v)
{
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}

static inline uint32_t bfind64(uint64_t v, bool shift_amount)
{
    if (!v)
        return UINT32_MAX;
    uint32_t leading = (uint32_t)__builtin_clzll(v);
    return shift_amount ? leading : 63 - leading;
}

static inline uint32_t bfind32(uint32_t v, bool shift_amount)
{
    uint32_t found = bfind64(v, false);
    return shift_amount && found != UINT32_MAX ? 31 - found : found;
}

DEFINE1(popc_32, uint32_t, uint32_t, __builtin_popcount(a))
DEFINE1(popc_64, uint32_t, uint64_t, __builtin_popcountll(a))
DEFINE1(clz_32, uint32_t, uint32_t, a ? __builtin_clz(a) : 32)
DEFINE1(clz_64, uint32_t, uint64_t, a ? __builtin_clzll(a) : 64)
DEFINE1(brev_32, uint32_t, uint32_t, reverse32(a))
DEFINE1(brev_64, uint64_t, uint64_t, both(reverse32((uint32_t)(a >> 32)), reverse32((uint32_t)a)))
TYPES(popc) = {[EMU_B32] = popc_32, [EMU_B64] = popc_64};
TYPES(clz) = {[EMU_B32] = clz_32, [EMU_B64] = clz_64};
TYPES(brev) = {[EMU_B32] = brev_32, [EMU_B64] = brev_64};

#define SIGN_FOLD32(a) ((a) ^ (uint32_t)((int32_t)(a) >> 31))
#define SIGN_FOLD64(a) ((a) ^ (uint64_t)((int64_t)(a) >> 63))
#define BFIND(name, shift_amount)                                                                            \
    DEFINE1(name##_u32, uint32_t, uint32_t, bfind32(a, shift_amount))                                        \
    DEFINE1(name##_s32, uint32_t, uint32_t, bfind32(SIGN_FOLD32(a), shift_amount))                           \
    DEFINE1(name##_u64, uint32_t, uint64_t, bfind64(a, shift_amount))                                        \
    DEFINE1(name##_s64, uint32_t, uint64_t, bfind64(SIGN_FOLD64(a), shift_amount))                           \
    TYPES(name) = {                                                                                          \
        [EMU_U32] = name##_u32, [EMU_S32] = name##_s32, [EMU_U64] = name##_u64, [EMU_S64] = name##_s64};
BFIND(bfind, false)
BFIND(bfind_shift, true)

#define FIELD_MASK(T, bits, len) ((len) >= (bits) ? (T)-1 : (T)(((T)1 << ((len) & ((bits)-1))) - 1))

#define BFE(bits)                                                                                            \
    static inline uint##bits##_t bfe_u##bits##_f(uint##bits##_t a, uint32_t pos, uint32_t len)               \
    {                                                                                                        \
        pos &= 0xff;                                                                                         \
        len &= 0xff;                                                                                         \
        return pos >= bits ? 0 : (a >> (pos & (bits - 1))) & FIELD_MASK(uint##bits##_t, bits, len);          \
    }                                                                                                        \
    static inline uint##bits##_t bfe_s##bits##_f(uint##bits##_t a, uint32_t pos, uint32_t len)               \
    {                                                                                                        \
        uint32_t p = pos & 0xff, n = len & 0xff;                                                             \
        if (n == 0)                                                                                          \
            return 0;                                                                                        \
        uint32_t last = p + n - 1 < bits - 1 ? p + n - 1 : bits - 1;                                         \
        uint##bits##_t sign = (uint##bits##_t)0 - (a >> last & 1);                                           \
        uint32_t kept = p >= bits ? 0 : p + n > bits ? bits - p : n;                                         \
        uint##bits##_t field = FIELD_MASK(uint##bits##_t, bits, kept);                                       \
        return (bfe_u##bits##_f(a, p, n) & field) | (sign & ~field);                                         \
    }                                                                                                        \
    HANDLER(bfe_u##bits)                                                                                     \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1);                                         \
        const uint32_t *b = LANES_OF(const uint32_t, 2), *c = LANES_OF(const uint32_t, 3);                   \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), bfe_u##bits##_f(a[i], b[i], c[i]));           \
    }                                                                                                        \
    HANDLER(bfe_s##bits)                                                                                     \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1);                                         \
        const uint32_t *b = LANES_OF(const uint32_t, 2), *c = LANES_OF(const uint32_t, 3);                   \
        SET_LANES(uint##bits##_t, LANES_OF(uint##bits##_t, 0), bfe_s##bits##_f(a[i], b[i], c[i]));           \
    }                                                                                                        \
    HANDLER(bfi_##bits)                                                                                      \
    {                                                                                                        \
        const uint##bits##_t *a = LANES_OF(const uint##bits##_t, 1), *b = LANES_OF(const uint##bits##_t, 2); \
        const uint32_t *c = LANES_OF(const uint32_t, 3), *len = LANES_OF(const uint32_t, 4);                 \
        uint##bits##_t *d = LANES_OF(uint##bits##_t, 0);                                                     \
        ACTIVE_LANES(mask)                                                                                   \
        {                                                                                                    \
            uint32_t pos = c[i] & 0xff;                                                                      \
            uint##bits##_t field = FIELD_MASK(uint##bits##_t, bits, len[i] & 0xff);                          \
            d[i] = pos >= bits ? b[i] : (b[i] & ~(field << pos)) | (a[i] & field) << pos;                    \
        }                                                                                                    \
    }
BFE(32)
BFE(64)
TYPES(bfe) = {[EMU_U32] = bfe_u32, [EMU_S32] = bfe_s32, [EMU_U64] = bfe_u64, [EMU_S64] = bfe_s64};
TYPES(bfi) = {[EMU_B32] = bfi_32, [EMU_B64] = bfi_64};

static inline uint32_t szext(uint32_t a, uint32_t b, bool clamps, bool is_signed)
{
    uint32_t n = b & 31;
    if (b > 31 && clamps)
        return a;
    if (n == 0)
        return 0;
    return is_signed ? (uint32_t)((int32_t)(a << (32 - n)) >> (32 - n)) : a & ((1u << n) - 1);
}

DEFINE2(szext_clamp_u32, uint32_t, uint32_t, uint32_t, szext(a, b, true, false))
DEFINE2(szext_clamp_s32, uint32_t, uint32_t, uint32_t, szext(a, b, true, true))
DEFINE2(szext_wrap_u32, uint32_t, uint32_t, uint32_t, szext(a, b, false, false))
DEFINE2(szext_wrap_s32, uint32_t, uint32_t, uint32_t, szext(a, b, false, true))
TYPES(szext_clamp) = {[EMU_U32] = szext_clamp_u32, [EMU_S32] = szext_clamp_s32};
TYPES(szext_wrap) = {[EMU_U32] = szext_wrap_u32, [EMU_S32] = szext_wrap_s32};

static inline uint32_t bmsk(uint32_t a, uint32_t b, bool clamps)
{
    uint32_t from = a & 31, width = b & 31;
    if (clamps && a > 31)
        return 0;
    if (clamps && b > 31)
        return UINT32_MAX << from;
    return (uint32_t)(((UINT64_C(1) << width) - 1) << from);
}

DEFINE2(bmsk_clamp, uint32_t, uint32_t, uint32_t, bmsk(a, b, true))
DEFINE2(bmsk_wrap, uint32_t, uint32_t, uint32_t, bmsk(a, b, false))

static inline uint32_t find_nth_set(uint32_t m, uint32_t base, int32_t offset)
{
    int32_t count = offset < 0 ? -(offset + 1) : offset - 1, step = offset < 0 ? -1 : 1;
    if (offset == 0)
        return base < 32 && m >> base & 1 ? base : UINT32_MAX;
    for (int64_t at = base; at >= 0 && at < 32; at += step)
        if ((m >> at & 1) && count-- == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

DEFINE3(fns, uint32_t, uint32_t, uint32_t, int32_t, find_nth_set(a, b, c))

static const emu_row rows[] = {
    {"and", "t:pred|b16|b32|b64", "=t !t !t", .by_type = and},
    {"or", "t:pred|b16|b32|b64", "=t !t !t", .by_type = or },
    {"xor", "t:pred|b16|b32|b64", "=t !t !t", .by_type = xor},
    {"not", "t:pred|b16|b32|b64", "=t !t", .by_type = not },
    {"cnot", "@bits", "=t t", .by_type = cnot},
    {"shl", "@bits", "=t t u32", .by_type = shl},
    {"shr", "t:b16|b32|b64|u16|u32|u64|s16|s32|s64", "=x x u32", .by_type = shr},
    {"shf", "l clamp t:b32", "=t t t u32", 0, 32, .run = shf_l_clamp},
    {"shf", "l wrap t:b32", "=t t t u32", 0, 32, .run = shf_l_wrap},
    {"shf", "r clamp t:b32", "=t t t u32", 0, 32, .run = shf_r_clamp},
    {"shf", "r wrap t:b32", "=t t t u32", 0, 32, .run = shf_r_wrap},
    {"lop3", "t:b32", "=t t t t #", 43, 50, .run = lop3},
    {"lop3", "b:or|and t:b32", "=_t|p t t t # !p", 82, 70, .run = lop3_predicate},
    {"prmt", "t:b32", "=t t t u32", .run = prmt},
    {"prmt", "t:b32 m:f4e|b4e|rc8|ecl|ecr|rc16", "=t t t u32", .run = prmt_mode},
    {"popc", "t:b32|b64", "=u32 t", .by_type = popc},
    {"clz", "t:b32|b64", "=u32 t", .by_type = clz},
    {"brev", "t:b32|b64", "=t t", .by_type = brev},
    {"bfind", "@int32_64", "=u32 t", .by_type = bfind},
    {"bfind", "shiftamt @int32_64", "=u32 t", .by_type = bfind_shift},
    {"bfe", "@int32_64", "=t t bits bits", .by_type = bfe},
    {"bfi", "t:b32|b64", "=t t t bits bits", .by_type = bfi},
    {"szext", "clamp @int32", "=t t u32", 76, 70, .by_type = szext_clamp},
    {"szext", "wrap @int32", "=t t u32", 76, 70, .by_type = szext_wrap},
    {"bmsk", "clamp t:b32", "=t t u32", 76, 70, .run = bmsk_clamp},
    {"bmsk", "wrap t:b32", "=t t u32", 76, 70, .run = bmsk_wrap},
    {"fns", "t:b32", "=t t u32 s32", 60, 30, .run = fns},
};

EXPORT_ROWS(emu_rows_bits);
