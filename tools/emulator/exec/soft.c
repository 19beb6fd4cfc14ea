/* See soft.h. Intermediate results carry a sticky bit, so that one final rounding is exact. */
#include "soft.h"

#include "../core/program.h"

__extension__ typedef unsigned __int128 u128;

const emu_format emu_f16 = {5, 10, true, true, 0x7fff};
const emu_format emu_bf16 = {8, 7, true, true, 0x7fff};
const emu_format emu_f32 = {8, 23, true, true, 0x7fffffff};
const emu_format emu_f64 = {11, 52, true, true, 0x7fffffffffffffff};
const emu_format emu_tf32 = {8, 10, true, true, 0x3ffff}; /* in its own 19 bits */

static const emu_soft soft_nan = {.class = EMU_SOFT_NAN};

static emu_soft zero(bool sign)
{
    return (emu_soft){.class = EMU_SOFT_ZERO, .sign = sign};
}

static emu_soft infinity(bool sign)
{
    return (emu_soft){.class = EMU_SOFT_INFINITY, .sign = sign};
}

/* Normalises significand / 2^63 * 2^exponent: shifts the leading one to bit 63. */
static emu_soft normalised(bool sign, int exponent, uint64_t significand, bool sticky)
{
    if (!significand)
        return zero(sign);
    int shift = __builtin_clzll(significand);
    return (emu_soft){EMU_SOFT_FINITE, sign, sticky, exponent - shift, significand << shift};
}

/* Like normalised, for 128 bits: value = wide / 2^127 * 2^exponent. */
static emu_soft normalised_wide(bool sign, int exponent, u128 wide, bool sticky)
{
    if (!wide)
        return zero(sign);
    uint64_t high = (uint64_t)(wide >> 64), low = (uint64_t)wide;
    int shift = high ? __builtin_clzll(high) : 64 + __builtin_clzll(low);
    wide <<= shift;
    return (emu_soft){EMU_SOFT_FINITE, sign, sticky || (uint64_t)wide, exponent - shift,
                      (uint64_t)(wide >> 64)};
}

emu_soft emu_soft_unpack(const emu_format *f, uint64_t bits)
{
    int e = f->exponent_bits, m = f->fraction_bits, bias = (1 << (e - 1)) - 1;
    uint64_t fraction = bits & ((UINT64_C(1) << m) - 1);
    int exponent = (int)(bits >> m & ((1u << e) - 1));
    bool sign = bits >> (e + m) & 1, top = exponent == (1 << e) - 1;
    if (f->has_nan && top && (f->has_infinity ? fraction != 0 : fraction == (UINT64_C(1) << m) - 1))
        return soft_nan;
    if (top && f->has_infinity)
        return infinity(sign);
    if (exponent == 0)
        return normalised(sign, 1 - bias, fraction << (63 - m), false);
    return (emu_soft){EMU_SOFT_FINITE, sign, false, exponent - bias,
                      UINT64_C(1) << 63 | fraction << (63 - m)};
}

static bool rounds_up(unsigned round, bool sign, bool odd, bool half, bool rest)
{
    switch (round) {
    case EMU_RN:
    case EMU_RNI:
        return half && (rest || odd);
    case EMU_RNA:
        return half;
    case EMU_RM:
    case EMU_RMI:
        return sign && (half || rest);
    case EMU_RP:
    case EMU_RPI:
        return !sign && (half || rest);
    default:
        return false;
    }
}

static uint64_t overflow(const emu_format *f, bool sign, unsigned round, uint64_t largest)
{
    bool to_infinity =
        round == EMU_RN || round == EMU_RNA || (round == EMU_RM && sign) || (round == EMU_RP && !sign);
    if (to_infinity && f->has_infinity)
        return largest + 1;
    return to_infinity && f->has_nan ? f->nan : largest;
}

uint64_t emu_soft_pack(const emu_format *f, emu_soft v, unsigned round)
{
    int e = f->exponent_bits, m = f->fraction_bits, bias = (1 << (e - 1)) - 1;
    uint64_t sign_bit = (uint64_t)v.sign << (e + m);
    uint64_t infinity_bits = ((UINT64_C(1) << e) - 1) << m;
    uint64_t largest = f->has_infinity ? infinity_bits - 1 : ((UINT64_C(1) << (e + m)) - 1) - f->has_nan;
    if (v.class == EMU_SOFT_NAN)
        return f->nan;
    if (v.class == EMU_SOFT_ZERO)
        return sign_bit;
    if (v.class == EMU_SOFT_INFINITY)
        return sign_bit | (f->has_infinity ? infinity_bits : overflow(f, v.sign, EMU_RN, largest));
    /* bits to drop: more if the result is subnormal */
    int drop = 63 - m + (v.exponent < 1 - bias ? 1 - bias - v.exponent : 0);
    uint64_t kept = drop > 63 ? 0 : v.significand >> drop;
    bool half = drop > 64 ? false : v.significand >> (drop - 1) & 1;
    bool rest = v.sticky || (drop > 64 ? true : (v.significand & ((UINT64_C(1) << (drop - 1)) - 1)) != 0);
    kept += rounds_up(round, v.sign, kept & 1, half, rest);
    /* adding the significand adds its hidden bit to the exponent */
    uint64_t biased = v.exponent < 1 - bias ? 0 : (uint64_t)(v.exponent + bias - 1);
    if (biased > (UINT64_C(1) << e))
        return sign_bit | overflow(f, v.sign, round, largest);
    uint64_t bits = (biased << m) + kept;
    return sign_bit | (bits > largest ? overflow(f, v.sign, round, largest) : bits);
}

emu_soft emu_soft_of_integer(bool sign, uint64_t magnitude)
{
    emu_soft v = normalised(sign, 63, magnitude, false);
    v.sign = magnitude ? sign : false;
    return v;
}

emu_soft emu_soft_integral(emu_soft v, unsigned round)
{
    if (v.class != EMU_SOFT_FINITE || v.exponent >= 63)
        return v;
    int drop = 63 - v.exponent;
    uint64_t kept = drop > 63 ? 0 : v.significand >> drop;
    bool half = drop > 64 ? false : v.significand >> (drop - 1) & 1;
    bool rest = v.sticky || drop > 64 || (v.significand & ((UINT64_C(1) << (drop - 1)) - 1));
    kept += rounds_up(round, v.sign, kept & 1, half, rest);
    return normalised(v.sign, 63, kept, false);
}

/* A significand of 126 bits (the leading one is bit 126), with room for one carry. */
typedef struct wide {
    bool sign, sticky;
    int exponent;
    u128 significand;
} wide;

static u128 shift_right(u128 value, int by, bool *sticky)
{
    if (by <= 0)
        return value;
    if (by > 127) {
        *sticky |= value != 0;
        return 0;
    }
    *sticky |= (value & (((u128)1 << by) - 1)) != 0;
    return value >> by;
}

static emu_soft add_wide(wide a, wide b, unsigned round)
{
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        wide t = a;
        a = b;
        b = t;
    }
    bool sticky = a.sticky || b.sticky;
    b.significand = shift_right(b.significand, a.exponent - b.exponent, &sticky);
    if (a.sign == b.sign)
        return normalised_wide(a.sign, a.exponent + 1, a.significand + b.significand, sticky);
    u128 difference = a.significand - b.significand - (sticky ? 1 : 0);
    if (!difference && !sticky)
        return zero(round == EMU_RM);
    return normalised_wide(a.sign, a.exponent + 1, difference, sticky);
}

static wide widen(emu_soft v)
{
    return (wide){v.sign, v.sticky, v.exponent, (u128)v.significand << 63};
}

static emu_soft add_special(emu_soft a, emu_soft b, unsigned round)
{
    if (a.class == EMU_SOFT_NAN || b.class == EMU_SOFT_NAN)
        return soft_nan;
    if (a.class == EMU_SOFT_INFINITY)
        return b.class == EMU_SOFT_INFINITY && a.sign != b.sign ? soft_nan : a;
    if (b.class == EMU_SOFT_INFINITY)
        return b;
    if (a.class == EMU_SOFT_ZERO && b.class == EMU_SOFT_ZERO)
        return zero(a.sign == b.sign ? a.sign : round == EMU_RM);
    return a.class == EMU_SOFT_ZERO ? b : a;
}

emu_soft emu_soft_add(emu_soft a, emu_soft b, unsigned round)
{
    if (a.class != EMU_SOFT_FINITE || b.class != EMU_SOFT_FINITE)
        return add_special(a, b, round);
    return add_wide(widen(a), widen(b), round);
}

static emu_soft multiply_special(emu_soft a, emu_soft b)
{
    bool sign = a.sign != b.sign;
    if (a.class == EMU_SOFT_NAN || b.class == EMU_SOFT_NAN)
        return soft_nan;
    if (a.class == EMU_SOFT_INFINITY || b.class == EMU_SOFT_INFINITY)
        return a.class == EMU_SOFT_ZERO || b.class == EMU_SOFT_ZERO ? soft_nan : infinity(sign);
    return zero(sign);
}

static wide product(emu_soft a, emu_soft b)
{
    u128 p = (u128)a.significand * b.significand; /* the leading one is bit 126 or 127 */
    bool carry = p >> 127;
    wide w = {a.sign != b.sign, false, a.exponent + b.exponent + carry, 0};
    w.significand = shift_right(p, carry, &w.sticky);
    return w;
}

emu_soft emu_soft_multiply(emu_soft a, emu_soft b)
{
    if (a.class != EMU_SOFT_FINITE || b.class != EMU_SOFT_FINITE)
        return multiply_special(a, b);
    wide w = product(a, b);
    return normalised_wide(w.sign, w.exponent + 1, w.significand, w.sticky);
}

emu_soft emu_soft_fma(emu_soft a, emu_soft b, emu_soft c, unsigned round)
{
    bool finite = a.class == EMU_SOFT_FINITE && b.class == EMU_SOFT_FINITE;
    if (!finite)
        return emu_soft_add(multiply_special(a, b), c, round);
    if (c.class == EMU_SOFT_ZERO)
        return emu_soft_multiply(a, b);
    if (c.class != EMU_SOFT_FINITE)
        return c;
    return add_wide(product(a, b), widen(c), round);
}

emu_soft emu_soft_divide(emu_soft a, emu_soft b)
{
    bool sign = a.sign != b.sign;
    if (a.class == EMU_SOFT_NAN || b.class == EMU_SOFT_NAN ||
        (a.class == b.class && a.class != EMU_SOFT_FINITE))
        return soft_nan;
    if (a.class == EMU_SOFT_INFINITY || b.class == EMU_SOFT_ZERO)
        return infinity(sign);
    if (b.class == EMU_SOFT_INFINITY || a.class == EMU_SOFT_ZERO)
        return zero(sign);
    u128 numerator = (u128)a.significand << 63;
    u128 quotient = numerator / b.significand; /* in (2^62, 2^64) */
    return normalised_wide(sign, a.exponent - b.exponent + 64, quotient, numerator % b.significand != 0);
}

emu_soft emu_soft_sqrt(emu_soft a)
{
    if (a.class == EMU_SOFT_NAN || a.class == EMU_SOFT_ZERO)
        return a;
    if (a.sign)
        return soft_nan;
    if (a.class == EMU_SOFT_INFINITY)
        return a;
    bool odd = a.exponent & 1;
    u128 rest = (u128)a.significand << (odd ? 64 : 63); /* value * 2^126; the exponent is even */
    u128 root = 0, bit = (u128)1 << 126;
    for (; bit; bit >>= 2) {
        if (rest >= root + bit) {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    int exponent = (a.exponent - (odd ? 1 : 0)) / 2;
    return normalised(false, exponent, (uint64_t)root, rest != 0);
}
