/* cvt to and from 8, 6 and 4 bits, and cvt.pack (ISA 9.7.9.21, 9.7.9.22). Element by element, through soft.c. */
#include "exec.h"

#include "soft.h"

/* e4m3 has one NaN pattern and no infinity; the 6- and 4-bit formats have neither. */
static const emu_format e4m3 = {4, 3, false, true, 0x7f}, e5m2 = {5, 2, true, true, 0x7f},
                        e2m3 = {2, 3, false, false, 0x1f}, e3m2 = {3, 2, false, false, 0x1f},
                        e2m1 = {2, 1, false, false, 0x7};

static const emu_format *format_of(unsigned type)
{
    switch (type) {
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
    case EMU_F16X2:
        return &emu_f16;
    case EMU_BF16X2:
        return &emu_bf16;
    default:
        return &emu_f32;
    }
}

static unsigned element_bits(unsigned type)
{
    return type == EMU_E2M1X2 ? 4 : type == EMU_F32 ? 32 : type == EMU_F16X2 || type == EMU_BF16X2 ? 16 : 8;
}

/* .satfinite: beyond the largest value comes the largest; without a NaN of its own a format takes +largest for it. */
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

/* Two floats: a to the upper half, b to the lower one. */
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
                             uint64_t convert(const emu_mods *m, uint64_t x))
{
    unsigned from = element_bits(op->mods.source), to = element_bits(op->mods.type);
    ACTIVE_LANES(mask)
    {
        uint32_t x = load_bits(w, op->arg[1], emu_types[op->mods.source].bytes, i);
        uint64_t high = convert(&op->mods, x >> from), low = convert(&op->mods, x & ((1u << from) - 1));
        store_bits(w, op->arg[0], emu_types[op->mods.type].bytes, i, (uint32_t)(high << to | low));
    }
}

HANDLER(narrow_packed)
{
    each_half(w, op, mask, to_narrow);
}

HANDLER(widen_packed)
{
    each_half(w, op, mask, from_narrow);
}

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

HANDLER(exponent_packed)
{
    each_half(w, op, mask, to_exponent);
}

static uint64_t from_exponent(const emu_mods *m, uint64_t x)
{
    (void)m;
    return x == 255 ? 0x7fff : x == 0 ? 0x40 : x << 7; /* 2^-127 is subnormal in bf16 */
}

HANDLER(widen_exponent)
{
    each_half(w, op, mask, from_exponent);
}

static uint32_t clamp_bits(int32_t x, unsigned bits, bool is_signed)
{
    int32_t most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = is_signed ? -most - 1 : 0;
    return (uint32_t)(x < least ? least : x > most ? most : x) & ((1u << bits) - 1);
}

/* mods.mode: the word's index, u16 s16 u8 s8 u4 s4 u2 s2. */
HANDLER(pack)
{
    unsigned bits = 16u >> op->mods.mode / 2;
    bool is_signed = op->mods.mode & 1;
    ACTIVE_LANES(mask)
    {
        uint32_t a = clamp_bits(LANES_OF(const int32_t, 1)[i], bits, is_signed),
                 b = clamp_bits(LANES_OF(const int32_t, 2)[i], bits, is_signed);
        uint32_t c = bits == 16 ? 0 : LANES_OF(const uint32_t, 3)[i] << 2 * (bits & 15);
        LANES_OF(uint32_t, 0)[i] = a << bits | b | c;
    }
}

#define F8     "e4m3x2|e5m2x2"
#define F6     "e2m3x2|e3m2x2"
#define NARROW "100f 110f 120f 121f 103f"

static const emu_row rows[] = {
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

EXPORT_ROWS(emu_rows_narrow);
