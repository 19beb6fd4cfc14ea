/* Integer, bit-field, permutation, carry and packed instructions, signs of floats, selections and mov, against the ISA's
   pseudocode (9.7.1, 9.7.2, 9.7.8, 9.7.9.4, 9.7.9.7). One row per form, on random and edge values; prmt with all selectors, lop3
   with all tables, bit fields with all positions. */
#include "instruction_test.h"

enum { COUNT = 65536 };

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

static uint32_t low32(uint64_t x)
{
    return (uint32_t)x;
}

static uint64_t bit_of(uint64_t x, uint64_t n)
{
    return n < 64 ? x >> n & 1 : 0;
}

/* 9.7.1.19 */
static uint64_t extracted(uint64_t a, uint64_t b, uint64_t c, unsigned msb, bool is_signed)
{
    uint64_t pos = b & 255, len = c & 255, d = 0, last = pos + len - 1 < msb ? pos + len - 1 : msb;
    uint64_t sign = is_signed && len ? bit_of(a, last) : 0;
    for (uint64_t i = 0; i <= msb; i++)
        d |= (i < len && pos + i <= msb ? bit_of(a, pos + i) : sign) << i;
    return d;
}

/* 9.7.1.20 */
static uint64_t inserted(uint64_t a, uint64_t into, uint64_t b, uint64_t c, unsigned msb)
{
    uint64_t pos = b & 255, len = c & 255;
    for (uint64_t i = 0; i < len && pos + i <= msb; i++)
        into = (into & ~(UINT64_C(1) << (pos + i))) | bit_of(a, i) << (pos + i);
    return into;
}

static uint64_t extended(uint32_t a, uint32_t b, bool wraps, bool is_signed)
{
    uint32_t n = wraps ? b & 31 : b;
    if (n >= 32)
        return a;
    uint32_t low = a & ((1u << n) - 1);
    return is_signed && n && (low >> (n - 1) & 1) ? low | ~0u << n : low;
}

static uint64_t mask_of(uint32_t a, uint32_t b, bool wraps)
{
    uint64_t start = wraps ? a & 31 : a, width = wraps ? b & 31 : b, d = 0;
    for (uint64_t i = 0; i < 32; i++)
        d |= (uint64_t)(i >= start && i - start < width) << i;
    return d;
}

/* 9.7.1.17 */
static uint64_t nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int count = abs(offset) - 1, step = offset > 0 ? 1 : -1;
    for (int pos = (int)base; pos >= 0 && pos < 32; pos += step)
        if ((mask >> pos & 1) && count-- == 0)
            return (uint64_t)pos;
    return UINT32_MAX;
}

static uint64_t reversed(uint64_t a, unsigned bits)
{
    uint64_t d = 0;
    for (unsigned i = 0; i < bits; i++)
        d |= bit_of(a, i) << (bits - 1 - i);
    return d;
}

/* 9.7.1.16: the highest bit that differs from the sign. */
static uint64_t found(uint64_t a, int bits, bool is_signed, bool as_shift)
{
    if (is_signed && bit_of(a, (uint64_t)bits - 1))
        a = ~a;
    for (int i = bits - 1; i >= 0; i--)
        if (bit_of(a, (uint64_t)i))
            return (uint64_t)(as_shift ? bits - 1 - i : i);
    return UINT32_MAX;
}

static uint64_t ones(uint64_t a)
{
    uint64_t n = 0;
    for (; a; a &= a - 1)
        n++;
    return n;
}

static uint64_t leading_zeros(uint64_t a, unsigned bits)
{
    uint64_t n = 0;
    while (n < bits && !bit_of(a, bits - 1 - n))
        n++;
    return n;
}

/* 9.7.9.7 */
static uint64_t permuted(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t bytes = (b & UINT32_MAX) << 32 | (a & UINT32_MAX), d = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t selector = c >> 4 * i & 15, byte = bytes >> 8 * (selector & 7) & 255;
        d |= (selector & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
    }
    return d;
}

static uint64_t permuted_by(const char *mode, uint64_t a, uint64_t b, uint64_t c)
{
    static const struct {
        const char *mode;
        unsigned bytes[4][4]; /* [c & 3][byte of d] */
    } table[] = {
        {"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
        {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
        {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
        {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
        {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
        {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(mode, table[i].mode) == 0) {
            const unsigned *n = table[i].bytes[c & 3];
            return permuted(a, b, n[0] | n[1] << 4 | n[2] << 8 | n[3] << 12);
        }
    return 0;
}

/* 9.7.8.7 */
static uint64_t funnelled(uint64_t a, uint64_t b, uint64_t c, bool left, bool wraps)
{
    uint64_t n = wraps ? c & 31 : c > 32 ? 32 : c, both = b << 32 | a;
    return low32(left ? (n == 32 ? a : both << n >> 32) : both >> n);
}

static int64_t field(uint64_t x, int bits, int n, bool is_signed)
{
    uint64_t v = x >> bits * n & ((UINT64_C(1) << bits) - 1);
    return is_signed && bit_of(v, (uint64_t)bits - 1) ? (int64_t)v - (INT64_C(1) << bits) : (int64_t)v;
}

static uint64_t dot4(uint64_t a, uint64_t b, uint64_t c, bool a_signed, bool b_signed)
{
    int64_t sum = (int64_t)c;
    for (int i = 0; i < 4; i++)
        sum += field(a, 8, i, a_signed) * field(b, 8, i, b_signed);
    return low32((uint64_t)sum);
}

static uint64_t dot2(uint64_t a, uint64_t b, uint64_t c, int half, bool a_signed, bool b_signed)
{
    int64_t sum = (int64_t)c;
    for (int i = 0; i < 2; i++)
        sum += field(a, 16, i, a_signed) * field(b, 8, i + half, b_signed);
    return low32((uint64_t)sum);
}

/* True if the f32 is at least 0. */
static bool is_positive(uint32_t bits)
{
    bool is_zero = (bits & 0x7f800000) == 0; /* with .ftz */
    return is_zero || bits <= 0x7f800000;
}

static int64_t clamped(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
}

/* The 48-bit product of two 24-bit integers. */
static int64_t product24(uint64_t a, uint64_t b, bool is_signed)
{
    return field(a, 24, 0, is_signed) * field(b, 24, 0, is_signed);
}

#define PAIR(low, high) ((uint64_t)((low)&0xffff) | (uint64_t)((high)&0xffff) << 16)
#define LEAST(x, y)     ((x) < (y) ? (x) : (y))
#define MOST(x, y)      ((x) > (y) ? (x) : (y))
#define S(x)            ((int64_t)(int32_t)(x))
#define L16(x, s)       field(x, 16, 0, s)
#define H16(x, s)       field(x, 16, 1, s)
#define EACH(f, s)      PAIR(f(L16(a, s), L16(b, s)), f(H16(a, s), H16(b, s)))
#define PLUS(x, y)      ((x) + (y))
#define RELU(x, y)      MOST(LEAST(x, y), 0)
#define WIDE(x)         ((wide)(x))
#define SIGNED_WIDE(x)  ((signed_wide)(int64_t)(x))
#define HIGH(x)         ((uint64_t)((x) >> 64))
#define ABOVE(x, y)     MOST(MOST(x, y), 0)
#define HIGH_U64(x, y)  HIGH(WIDE(x) * WIDE(y))
#define HIGH_S64(x, y)  HIGH((wide)(SIGNED_WIDE(x) * SIGNED_WIDE(y)))
#define HIGH_S32(x, y)  low32((uint64_t)(S(x) * S(y) >> 32))
#define CARRY_32(x, y)  (((x) + (y)) >> 32)
#define CARRY_64(x, y)  HIGH(WIDE(x) + WIDE(y))
#define FOLD_32(x)      low32(low32(x) + ((x) >> 32)) /* the result plus its carry */
#define FOLD_64(x)      ((uint64_t)(x) + HIGH(x))

/* a, b and c have 64 bits with W, otherwise 32. f: bit fields, with small b and c; s: selectors, with consecutive c. */
#define CASES(X)                                                                                             \
    X('r', "add.s16 %h5, %h0, %h1;", (a + b) & 0xffff)                                                       \
    X('r', "sub.s16 %h5, %h0, %h1;", (a - b) & 0xffff)                                                       \
    X('r', "mul.lo.s16 %h5, %h0, %h1;", (a * b) & 0xffff)                                                    \
    X('r', "add.s32 %r5, %r0, %r1;", low32(a + b))                                                           \
    X('r', "sub.s32 %r5, %r0, %r1;", low32(a - b))                                                           \
    X('r', "mul.lo.s32 %r5, %r0, %r1;", low32(a *b))                                                         \
    X('r', "mad.lo.s32 %r5, %r0, %r1, %r2;", low32(a *b + c))                                                \
    X('W', "add.s64 %d5, %d0, %d1;", a + b)                                                                  \
    X('W', "sub.s64 %d5, %d0, %d1;", a - b)                                                                  \
    X('W', "mul.lo.s64 %d5, %d0, %d1;", a *b)                                                                \
    X('r', "mul.hi.u16 %h5, %h0, %h1;", (L16(a, false) * L16(b, false)) >> 16 & 0xffff)                      \
    X('r', "mul.hi.s16 %h5, %h0, %h1;", (L16(a, true) * L16(b, true)) >> 16 & 0xffff)                        \
    X('r', "mul.hi.u32 %r5, %r0, %r1;", a *b >> 32)                                                          \
    X('r', "mul.hi.s32 %r5, %r0, %r1;", low32((uint64_t)(S(a) * S(b) >> 32)))                                \
    X('r', "mad.hi.u16 %h5, %h0, %h1, %h2;",                                                                 \
      ((L16(a, false) * L16(b, false) >> 16) + L16(c, false)) & 0xffff)                                      \
    X('r', "mad.hi.s16 %h5, %h0, %h1, %h2;", ((L16(a, true) * L16(b, true) >> 16) + L16(c, true)) & 0xffff)  \
    X('r', "mul.wide.u16 %r5, %h0, %h1;", (uint64_t)(L16(a, false) * L16(b, false)))                         \
    X('r', "mul.wide.s16 %r5, %h0, %h1;", low32((uint64_t)(L16(a, true) * L16(b, true))))                    \
    X('r', "mul.wide.u32 %d5, %r0, %r1;", a *b)                                                              \
    X('r', "mul.wide.s32 %d5, %r0, %r1;", S(a) * S(b))                                                       \
    X('r', "or.b16 %h1, %h1, 1; div.u16 %h5, %h0, %h1;", L16(a, false) / (L16(b, false) | 1))                \
    X('r', "or.b16 %h1, %h1, 1; div.s16 %h5, %h0, %h1;", (L16(a, true) / (L16(b, true) | 1)) & 0xffff)       \
    X('r', "or.b16 %h1, %h1, 1; rem.u16 %h5, %h0, %h1;", L16(a, false) % (L16(b, false) | 1))                \
    X('r', "or.b16 %h1, %h1, 1; rem.s16 %h5, %h0, %h1;", (L16(a, true) % (L16(b, true) | 1)) & 0xffff)       \
    X('r', "or.b32 %r1, %r1, 1; div.u32 %r5, %r0, %r1;", a / (b | 1))                                        \
    X('r', "or.b32 %r1, %r1, 1; div.s32 %r5, %r0, %r1;", low32((uint64_t)(S(a) / (S(b) | 1))))               \
    X('r', "or.b32 %r1, %r1, 1; rem.u32 %r5, %r0, %r1;", a % (b | 1))                                        \
    X('r', "or.b32 %r1, %r1, 1; rem.s32 %r5, %r0, %r1;", low32((uint64_t)(S(a) % (S(b) | 1))))               \
    X('W', "or.b64 %d1, %d1, 1; div.u64 %d5, %d0, %d1;", a / (b | 1))                                        \
    X('W', "or.b64 %d1, %d1, 1; div.s64 %d5, %d0, %d1;", SIGNED_WIDE(a) / SIGNED_WIDE(b | 1))                \
    X('W', "or.b64 %d1, %d1, 1; rem.u64 %d5, %d0, %d1;", a % (b | 1))                                        \
    X('W', "or.b64 %d1, %d1, 1; rem.s64 %d5, %d0, %d1;", SIGNED_WIDE(a) % SIGNED_WIDE(b | 1))                \
    X('r', "neg.s16 %h5, %h0;", (0 - a) & 0xffff)                                                            \
    X('r', "neg.s32 %r5, %r0;", low32(0 - a))                                                                \
    X('W', "neg.s64 %d5, %d0;", 0 - a)                                                                       \
    X('r', "not.b16 %h5, %h0;", ~a & 0xffff)                                                                 \
    X('r', "not.b32 %r5, %r0;", low32(~a))                                                                   \
    X('W', "not.b64 %d5, %d0;", ~a)                                                                          \
    X('r', "and.b16 %h5, %h0, %h1;", a &b & 0xffff)                                                          \
    X('r', "xor.b16 %h5, %h0, %h1;", (a ^ b) & 0xffff)                                                       \
    X('r', "or.b32 %r5, %r0, %r1;", a | b)                                                                   \
    X('W', "and.b64 %d5, %d0, %d1;", a &b)                                                                   \
    X('W', "xor.b64 %d5, %d0, %d1;", a ^ b)                                                                  \
    X('r', "setp.ne.u32 %q1, %r1, 0; and.pred %q5, %q0, %q1;", (uint64_t)((a & 1) && b) << 32)               \
    X('r', "setp.ne.u32 %q1, %r1, 0; or.pred %q5, %q0, %q1;", (uint64_t)((a & 1) || b) << 32)                \
    X('r', "setp.ne.u32 %q1, %r1, 0; xor.pred %q5, %q0, %q1;", (uint64_t)((a & 1) != (b != 0)) << 32)        \
    X('r', "not.pred %q5, %q0;", (uint64_t) !(a & 1) << 32)                                                  \
    X('r', "mov.pred %q5, %q0;", (a & 1) << 32)                                                              \
    X('r', "min.u32 %r5, %r0, %r1;", LEAST(a, b))                                                            \
    X('r', "min.s32 %r5, %r0, %r1;", low32((uint64_t)LEAST(S(a), S(b))))                                     \
    X('r', "max.s32 %r5, %r0, %r1;", low32((uint64_t)MOST(S(a), S(b))))                                      \
    X('r', "selp.u16 %h5, %h0, %h1, %q0;", (a & 1 ? a : b) & 0xffff)                                         \
    X('r', "selp.f32 %r5, %r0, %r1, %q0;", a & 1 ? a : b)                                                    \
    X('r', "selp.f32 %r5, 0f3f800000, %r1, %q0;", a & 1 ? 0x3f800000 : b)                                    \
    X('W', "selp.u64 %d5, %d0, %d1, %q0;", a & 1 ? a : b)                                                    \
    X('W', "selp.f64 %d5, %d0, 0d3ff0000000000000, %q0;", a & 1 ? a : 0x3ff0000000000000)                    \
    X('r', "mov.u16 %h5, %h0;", a & 0xffff)                                                                  \
    X('r', "mov.f32 %r5, 0f3fc00000;", 0x3fc00000)                                                           \
    X('W', "mov.u64 %d5, %d0;", a)                                                                           \
    X('W', "mov.f64 %d5, 0d3ff8000000000001;", 0x3ff8000000000001)                                           \
    X('r', "neg.f32 %r5, %r0;", a ^ 0x80000000)                                                              \
    X('r', "abs.f32 %r5, %r0;", a & 0x7fffffff)                                                              \
    X('r', "copysign.f32 %r5, %r0, %r1;", (a & 0x80000000) | (b & 0x7fffffff))                               \
    X('W', "neg.f64 %d5, %d0;", a ^ UINT64_C(1) << 63)                                                       \
    X('W', "abs.f64 %d5, %d0;", a &INT64_MAX)                                                                \
    X('W', "copysign.f64 %d5, %d0, %d1;", (a & UINT64_C(1) << 63) | (b & INT64_MAX))                         \
    X('r', "bfind.shiftamt.u32 %r5, %r0;", found(a, 32, false, true))                                        \
    X('r', "mad.lo.cc.u32 %r4, %r0, %r1, %r2; madc.hi.cc.u32 %r4, %r0, %r1, %r2; addc.u32 %r5, 0, 0;",       \
      ((a * b >> 32) + c + ((low32(a * b) + c) >> 32)) >> 32)                                                \
    X('f', "bfe.u32 %r5, %r0, %r1, %r2;", extracted(a, b, c, 31, false))                                     \
    X('f', "bfe.s32 %r5, %r0, %r1, %r2;", low32(extracted(a, b, c, 31, true)))                               \
    X('F', "bfe.u64 %d5, %d0, %r1, %r2;", extracted(a, b, c, 63, false))                                     \
    X('F', "bfe.s64 %d5, %d0, %r1, %r2;", extracted(a, b, c, 63, true))                                      \
    X('f', "bfi.b32 %r5, %r0, %r3, %r1, %r2;", inserted(a, low32(a * 0x9e3779b1), b, c, 31))                 \
    X('F', "bfi.b64 %d5, %d0, 0x5555aaaa12345678, %r1, %r2;", inserted(a, 0x5555aaaa12345678, b, c, 63))     \
    X('f', "szext.clamp.u32 %r5, %r0, %r1;", extended(low32(a), low32(b), false, false))                     \
    X('f', "szext.clamp.s32 %r5, %r0, %r1;", extended(low32(a), low32(b), false, true))                      \
    X('f', "szext.wrap.u32 %r5, %r0, %r1;", extended(low32(a), low32(b), true, false))                       \
    X('f', "szext.wrap.s32 %r5, %r0, %r1;", extended(low32(a), low32(b), true, true))                        \
    X('f', "bmsk.clamp.b32 %r5, %r1, %r2;", mask_of(low32(b), low32(c), false))                              \
    X('f', "bmsk.wrap.b32 %r5, %r1, %r2;", mask_of(low32(b), low32(c), true))                                \
    X('n', "fns.b32 %r5, %r0, %r1, %r2;", nth_set(low32(a), low32(b), (int32_t)c))                           \
    X('r', "brev.b32 %r5, %r0;", reversed(a, 32))                                                            \
    X('W', "brev.b64 %d5, %d0;", reversed(a, 64))                                                            \
    X('r', "popc.b32 %r5, %r0;", ones(a))                                                                    \
    X('W', "popc.b64 %r5, %d0;", ones(a))                                                                    \
    X('r', "clz.b32 %r5, %r0;", leading_zeros(a, 32))                                                        \
    X('W', "clz.b64 %r5, %d0;", leading_zeros(a, 64))                                                        \
    X('r', "bfind.u32 %r5, %r0;", found(a, 32, false, false))                                                \
    X('r', "bfind.s32 %r5, %r0;", found(a, 32, true, false))                                                 \
    X('r', "bfind.shiftamt.s32 %r5, %r0;", found(a, 32, true, true))                                         \
    X('W', "bfind.u64 %r5, %d0;", found(a, 64, false, false))                                                \
    X('W', "bfind.shiftamt.u64 %r5, %d0;", found(a, 64, false, true))                                        \
    X('W', "bfind.s64 %r5, %d0;", found(a, 64, true, false))                                                 \
    X('s', "prmt.b32 %r5, %r0, %r1, %r2;", permuted(a, b, c))                                                \
    X('s', "prmt.b32.f4e %r5, %r0, %r1, %r2;", permuted_by("f4e", a, b, c))                                  \
    X('s', "prmt.b32.b4e %r5, %r0, %r1, %r2;", permuted_by("b4e", a, b, c))                                  \
    X('s', "prmt.b32.rc8 %r5, %r0, %r1, %r2;", permuted_by("rc8", a, b, c))                                  \
    X('s', "prmt.b32.ecl %r5, %r0, %r1, %r2;", permuted_by("ecl", a, b, c))                                  \
    X('s', "prmt.b32.ecr %r5, %r0, %r1, %r2;", permuted_by("ecr", a, b, c))                                  \
    X('s', "prmt.b32.rc16 %r5, %r0, %r1, %r2;", permuted_by("rc16", a, b, c))                                \
    X('g', "shf.l.clamp.b32 %r5, %r0, %r1, %r2;", funnelled(a, b, c, true, false))                           \
    X('g', "shf.l.wrap.b32 %r5, %r0, %r1, %r2;", funnelled(a, b, c, true, true))                             \
    X('g', "shf.r.clamp.b32 %r5, %r0, %r1, %r2;", funnelled(a, b, c, false, false))                          \
    X('g', "shf.r.wrap.b32 %r5, %r0, %r1, %r2;", funnelled(a, b, c, false, true))                            \
    X('f', "shl.b16 %h5, %h0, %r1;", b > 15 ? 0 : a << b & 0xffff)                                           \
    X('f', "shr.u16 %h5, %h0, %r1;", b > 15 ? 0 : (a & 0xffff) >> b)                                         \
    X('f', "shr.s16 %h5, %h0, %r1;", (uint64_t)(L16(a, true) >> LEAST(b, 15)) & 0xffff)                      \
    X('f', "shl.b32 %r5, %r0, %r1;", b > 31 ? 0 : low32(a << b))                                             \
    X('f', "shr.u32 %r5, %r0, %r1;", b > 31 ? 0 : a >> b)                                                    \
    X('f', "shr.s32 %r5, %r0, %r1;", low32((uint64_t)(S(a) >> LEAST(b, 31))))                                \
    X('F', "shl.b64 %d5, %d0, %r1;", b > 63 ? 0 : a << b)                                                    \
    X('F', "shr.u64 %d5, %d0, %r1;", b > 63 ? 0 : a >> b)                                                    \
    X('F', "shr.s64 %d5, %d0, %r1;", (uint64_t)((int64_t)a >> LEAST(b, 63)))                                 \
    X('r', "dp4a.u32.u32 %r5, %r0, %r1, %r2;", dot4(a, b, c, false, false))                                  \
    X('r', "dp4a.u32.s32 %r5, %r0, %r1, %r2;", dot4(a, b, c, false, true))                                   \
    X('r', "dp4a.s32.u32 %r5, %r0, %r1, %r2;", dot4(a, b, c, true, false))                                   \
    X('r', "dp4a.s32.s32 %r5, %r0, %r1, %r2;", dot4(a, b, c, true, true))                                    \
    X('r', "dp2a.lo.u32.u32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 0, false, false))                            \
    X('r', "dp2a.lo.u32.s32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 0, false, true))                             \
    X('r', "dp2a.lo.s32.u32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 0, true, false))                             \
    X('r', "dp2a.lo.s32.s32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 0, true, true))                              \
    X('r', "dp2a.hi.u32.u32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 2, false, false))                            \
    X('r', "dp2a.hi.u32.s32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 2, false, true))                             \
    X('r', "dp2a.hi.s32.u32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 2, true, false))                             \
    X('r', "dp2a.hi.s32.s32 %r5, %r0, %r1, %r2;", dot2(a, b, c, 2, true, true))                              \
    X('r', "mul24.lo.u32 %r5, %r0, %r1;", low32((uint64_t)product24(a, b, false)))                           \
    X('r', "mul24.hi.u32 %r5, %r0, %r1;", low32((uint64_t)(product24(a, b, false) >> 16)))                   \
    X('r', "mul24.lo.s32 %r5, %r0, %r1;", low32((uint64_t)product24(a, b, true)))                            \
    X('r', "mul24.hi.s32 %r5, %r0, %r1;", low32((uint64_t)(product24(a, b, true) >> 16)))                    \
    X('r', "mad24.lo.s32 %r5, %r0, %r1, %r2;", low32((uint64_t)product24(a, b, true) + c))                   \
    X('r', "mad24.lo.u32 %r5, %r0, %r1, %r2;", low32((uint64_t)product24(a, b, false) + c))                  \
    X('r', "mad24.hi.u32 %r5, %r0, %r1, %r2;", low32((uint64_t)(product24(a, b, false) >> 16) + c))          \
    X('r', "mad24.hi.s32 %r5, %r0, %r1, %r2;", low32((uint64_t)(product24(a, b, true) >> 16) + c))           \
    X('r', "mad24.hi.sat.s32 %r5, %r0, %r1, %r2;",                                                           \
      low32((uint64_t)clamped((product24(a, b, true) >> 16) + S(c))))                                        \
    X('r', "mad.hi.sat.s32 %r5, %r0, %r1, %r2;", low32((uint64_t)clamped((S(a) * S(b) >> 32) + S(c))))       \
    X('r', "add.sat.s32 %r5, %r0, %r1;", low32((uint64_t)clamped(S(a) + S(b))))                              \
    X('r', "sub.sat.s32 %r5, %r0, %r1;", low32((uint64_t)clamped(S(a) - S(b))))                              \
    X('r', "sad.u32 %r5, %r0, %r1, %r2;", low32(c + MOST(a, b) - LEAST(a, b)))                               \
    X('r', "sad.s32 %r5, %r0, %r1, %r2;", low32(c + (uint64_t)(MOST(S(a), S(b)) - LEAST(S(a), S(b)))))       \
    X('W', "mul.hi.u64 %d5, %d0, %d1;", HIGH(WIDE(a) * WIDE(b)))                                             \
    X('W', "mul.hi.s64 %d5, %d0, %d1;", HIGH((wide)(SIGNED_WIDE(a) * SIGNED_WIDE(b))))                       \
    X('W', "mad.lo.u64 %d5, %d0, %d1, %d2;", a *b + c)                                                       \
    X('W', "add.cc.u64 %d4, %d0, %d1; addc.u64 %d5, %d2, 0;", c + HIGH(WIDE(a) + WIDE(b)))                   \
    X('W', "sub.cc.u64 %d4, %d0, %d1; subc.u64 %d5, %d2, 0;", c - (a < b))                                   \
    X('W', "add.cc.u64 %d4, %d0, %d1; addc.cc.u64 %d4, %d1, %d2; addc.u64 %d5, %d2, 7;",                     \
      c + 7 + HIGH(WIDE(b) + WIDE(c) + HIGH(WIDE(a) + WIDE(b))))                                             \
    X('W', "sub.cc.s64 %d4, %d0, %d1; subc.cc.s64 %d4, %d1, %d2; subc.s64 %d5, %d2, 7;",                     \
      c - 7 - (HIGH(WIDE(b) - WIDE(c) - (a < b)) & 1))                                                       \
    X('r', "add.cc.u32 %r4, %r0, %r1; addc.cc.u32 %r4, %r1, %r2; addc.u32 %r5, 0, 0;",                       \
      (b + c + ((a + b) >> 32)) >> 32)                                                                       \
    X('r', "mad.lo.cc.u32 %r4, %r0, %r1, %r2; madc.hi.u32 %r5, %r0, %r1, 9;",                                \
      low32(((a * b + c) >> 32) + 9))                                                                        \
    X('r', "mad.hi.cc.u32 %r4, %r0, %r1, %r2; addc.u32 %r5, 0, 0;", ((a * b >> 32) + c) >> 32)               \
    X('r', "mad.lo.cc.u32 %r4, %r0, %r1, %r2; madc.lo.cc.u32 %r4, %r1, %r2, %r0; addc.u32 %r5, %r4, 0;",     \
      low32(low32(b *c + a + ((low32(a * b) + c) >> 32)) +                                                   \
            ((low32(b * c) + a + ((low32(a * b) + c) >> 32)) >> 32)))                                        \
    X('W', "mad.lo.cc.u64 %d4, %d0, %d1, %d2; madc.hi.u64 %d5, %d0, %d1, %d2;",                              \
      HIGH(WIDE(a) * WIDE(b) + WIDE(c)) + c)                                                                 \
    X('r', "add.cc.u32 %r4, 1, 2; subc.u32 %r5, 7, 0;", 6)                                                   \
    X('r', "sub.cc.u32 %r4, 1, 2; addc.u32 %r5, 7, 0;", 7)                                                   \
    X('r', "add.cc.u32 %r4, %r0, %r1; subc.u32 %r5, %r2, 7;", low32(c - 8 + ((a + b) >> 32)))                \
    X('r', "sub.cc.s32 %r4, %r0, %r1; addc.s32 %r5, %r2, 7;", low32(c + 7 + (a >= b)))                       \
    X('r', "sub.cc.u32 %r4, %r0, %r1; subc.cc.u32 %r4, %r1, %r2; addc.u32 %r5, 0, 0;", b >= c + (a < b))     \
    X('r', "add.cc.u32 %r4, %r0, %r1; subc.cc.u32 %r4, %r1, %r2; madc.lo.u32 %r5, %r0, 3, 0;",               \
      low32(a * 3 + (b >= c + !((a + b) >> 32))))                                                            \
    X('r', "mad.lo.cc.u32 %r4, %r0, %r1, %r2; subc.u32 %r5, %r2, 0;",                                        \
      low32(c - 1 + ((low32(a * b) + c) >> 32)))                                                             \
    X('r', "mad.hi.cc.s32 %r4, %r0, %r1, %r2; subc.u32 %r5, %r2, 0;",                                        \
      low32(c - 1 + ((low32((uint64_t)(S(a) * S(b) >> 32)) + c) >> 32)))                                     \
    X('W', "add.cc.u64 %d4, %d0, %d1; subc.u64 %d5, %d2, 7;", c - 8 + HIGH(WIDE(a) + WIDE(b)))               \
    X('W', "sub.cc.u64 %d4, %d0, %d1; madc.hi.u64 %d5, %d0, %d1, %d2;",                                      \
      HIGH(WIDE(a) * WIDE(b)) + c + (a >= b))                                                                \
    X('W', "mad.hi.cc.u64 %d4, %d0, %d1, %d2; addc.u64 %d5, %d4, 0;", FOLD_64(WIDE(HIGH_U64(a, b)) + c))     \
    X('W', "mad.hi.cc.s64 %d4, %d0, %d1, %d2; addc.u64 %d5, %d4, 0;", FOLD_64(WIDE(HIGH_S64(a, b)) + c))     \
    X('W', "add.cc.u64 %d4, %d0, %d1; madc.hi.cc.u64 %d4, %d0, %d1, %d2; addc.u64 %d5, %d4, 0;",             \
      FOLD_64(WIDE(HIGH_U64(a, b)) + c + CARRY_64(a, b)))                                                    \
    X('W', "add.cc.u64 %d4, %d0, %d1; madc.hi.cc.s64 %d4, %d0, %d1, %d2; addc.u64 %d5, %d4, 0;",             \
      FOLD_64(WIDE(HIGH_S64(a, b)) + c + CARRY_64(a, b)))                                                    \
    X('W', "add.cc.u64 %d4, %d0, %d1; madc.lo.cc.u64 %d4, %d0, %d1, %d2; addc.u64 %d5, %d4, 0;",             \
      FOLD_64(WIDE(a *b) + c + CARRY_64(a, b)))                                                              \
    X('W', "add.cc.u64 %d4, %d0, %d1; madc.hi.s64 %d5, %d0, %d1, %d2;", HIGH_S64(a, b) + c + CARRY_64(a, b)) \
    X('W', "add.cc.u64 %d4, %d0, %d1; madc.lo.u64 %d5, %d0, %d1, %d2;", a *b + c + CARRY_64(a, b))           \
    X('r', "add.cc.u32 %r4, %r0, %r1; madc.hi.cc.s32 %r4, %r0, %r1, %r2; addc.u32 %r5, %r4, 0;",             \
      FOLD_32(HIGH_S32(a, b) + c + CARRY_32(a, b)))                                                          \
    X('r', "add.cc.u32 %r4, %r0, %r1; madc.hi.s32 %r5, %r0, %r1, %r2;",                                      \
      low32(HIGH_S32(a, b) + c + CARRY_32(a, b)))                                                            \
    X('r', "add.u16x2 %r5, %r0, %r1;", EACH(PLUS, false))                                                    \
    X('r', "add.s16x2 %r5, %r0, %r1;", EACH(PLUS, true))                                                     \
    X('r', "min.u16x2 %r5, %r0, %r1;", EACH(LEAST, false))                                                   \
    X('r', "max.u16x2 %r5, %r0, %r1;", EACH(MOST, false))                                                    \
    X('r', "min.s16x2 %r5, %r0, %r1;", EACH(LEAST, true))                                                    \
    X('r', "max.s16x2 %r5, %r0, %r1;", EACH(MOST, true))                                                     \
    X('r', "min.relu.s16x2 %r5, %r0, %r1;", EACH(RELU, true))                                                \
    X('r', "max.relu.s16x2 %r5, %r0, %r1;", EACH(ABOVE, true))                                               \
    X('r', "min.relu.s32 %r5, %r0, %r1;", (uint64_t)RELU(S(a), S(b)))                                        \
    X('r', "max.relu.s32 %r5, %r0, %r1;", (uint64_t)MOST(MOST(S(a), S(b)), 0))                               \
    X('r', "min.s16 %h5, %h0, %h1;", (uint64_t)LEAST(L16(a, true), L16(b, true)) & 0xffff)                   \
    X('W', "max.s64 %d5, %d0, %d1;", (uint64_t)MOST((int64_t)a, (int64_t)b))                                 \
    X('r', "lop3.or.b32 %r5|%q5, %r0, %r1, %r2, 0x80, %q0;",                                                 \
      (a & b & c) | (uint64_t)((a & b & c) || (a & 1)) << 32)                                                \
    X('r', "lop3.and.b32 _|%q5, %r0, %r1, %r2, 0x80, !%q0;", (uint64_t)((a & b & c) && !(a & 1)) << 32)      \
    X('W', "cnot.b64 %d5, %d0;", a == 0)                                                                     \
    X('r', "abs.s32 %r5, %r0;", low32((uint64_t)(S(a) < 0 ? -S(a) : S(a))))                                  \
    X('r', "slct.u32.s32 %r5, %r0, %r1, %r2;", S(c) >= 0 ? a : b)                                            \
    X('W', "slct.ftz.b64.f32 %d5, %d0, %d1, %r2;", is_positive(low32(c)) ? a : b)                            \
    X('r', "slct.ftz.b16.f32 %h5, %h0, %h1, %r2;", (is_positive(low32(c)) ? a : b) & 0xffff)                 \
    X('W', "mov.b64 {%r4, %r10}, %d0; mov.b64 %d5, {%r10, %r4};", a << 32 | a >> 32)                         \
    X('W', "mov.b64 {%h1, %h2, %h3, %h4}, %d0; mov.b64 %d5, {%h4, %h3, %h2, %h1};",                          \
      PAIR(a >> 48, a >> 32) | PAIR(a >> 16, a) << 32)                                                       \
    X('r', "mov.b32 {%h1, %h2}, %r0; mov.b32 %r5, {%h2, %h1};", PAIR(a >> 16, a))                            \
    X('r', "mov.b32 {%c0, %c1, %c2, %c3}, %r0; mov.b32 %r5, {%c3, %c2, %c1, %c0};", permuted(a, 0, 0x0123))  \
    X('r', "mov.b16 {%c0, %c1}, %h0; mov.b16 %h5, {%c1, %c0};", permuted(a, 0, 0x4401))                      \
    X('W', "mov.b128 %x, {%d0, %d1}; mov.b128 {%d4, %d5}, %x; sub.u64 %d5, %d5, %d4;", b - a)                \
    X('r', "mov.b128 %x, {%r0, %r1, %r2, 7}; mov.b128 {%d4, %d5}, %x; add.u64 %d5, %d5, %d4;",               \
      (c | UINT64_C(7) << 32) + (a | b << 32))                                                               \
    X('W', "mov.b128 %x, {%d0, %d1}; mov.b128 {%r4, _, %r10, %r5}, %x; xor.b32 %r5, %r5, %r10;",             \
      low32(b >> 32 ^ b))                                                                                    \
    X('W', "@%q0 mov.b64 {_, %r5}, %d0;", a & 1 ? a >> 32 : 0)                                               \
    X('W', "@%q0 mov.b64 {_, _, %h5, _}, %d0;", a & 1 ? a >> 32 & 0xffff : 0)                                \
    X('r', "@%q0 mov.b64 %d5, {%r1, %r0};", a & 1 ? a << 32 | b : 0)                                         \
    X('r', "@!%q0 mov.b64 %d5, {%h0, %h1, %h0, %h1};", a & 1 ? 0 : PAIR(a, b) | PAIR(a, b) << 32)

typedef struct integer_case {
    char kind;
    const char *instruction;
} integer_case;

#define ROW(kind, instruction, want) {kind, instruction},
static const integer_case cases[] = {CASES(ROW)};

static uint64_t expected(size_t row, uint64_t a, uint64_t b, uint64_t c)
{
    size_t n = 0;
#define WANT(kind, instruction, want)                                                                        \
    if (n++ == row)                                                                                          \
        return (uint64_t)(want);
    CASES(WANT)
    return 0;
}

static uint64_t hostile(void)
{
    static const uint64_t some[] = {0,
                                    1,
                                    2,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x7fffffffffffffff,
                                    0x8000000000000000,
                                    UINT64_MAX,
                                    0x7fff8000,
                                    0x80007fff,
                                    0xffff0000,
                                    0xff80,
                                    0xffffff,
                                    0x800000};
    uint64_t r = random_bits();
    return r & 3 ? random_bits() >> (r >> 8 & 3 ? 0 : r >> 16 & 63)
                 : some[(r >> 24) % (sizeof some / sizeof *some)];
}

static void fill(char kind, uint64_t (*in)[3])
{
    for (int i = 0; i < COUNT; i++) {
        uint64_t kept = kind == 'W' || kind == 'F' ? UINT64_MAX : UINT32_MAX, n = (uint64_t)i;
        for (int k = 0; k < 3; k++)
            in[i][k] = hostile() & kept;
        if (kind == 'f' || kind == 'F') { /* each of 0 to 127, and sometimes values above 255 */
            in[i][1] = n % 128 + (n % 97 ? 0 : 256);
            in[i][2] = n / 128 % 128 + (n % 89 ? 0 : 512);
        }
        if (kind == 'g')
            in[i][2] = n % 5 ? n % 70 : in[i][2];
        if (kind == 's')
            in[i][2] = n | (in[i][2] & 0xffff0000);
        if (kind == 'n') {
            in[i][1] = n % 32;
            in[i][2] = (uint64_t)((int)(n / 32 % 70) - 35) & UINT32_MAX;
        }
    }
}

static uint64_t in[COUNT][3], out[COUNT];

static void test_cases(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        fill(cases[n].kind, in);
        run_instruction(NULL, cases[n].instruction, COUNT, in, out);
        for (int i = 0; i < COUNT; i++) {
            uint64_t want = expected(n, in[i][0], in[i][1], in[i][2]);
            if (out[i] != want)
                fail_msg("%s of %llx %llx %llx gave %llx, not %llx", cases[n].instruction,
                         (unsigned long long)in[i][0], (unsigned long long)in[i][1],
                         (unsigned long long)in[i][2], (unsigned long long)out[i], (unsigned long long)want);
        }
    }
}

/* All 256 tables, on values in which the bit positions have all combinations. */
static void test_lop3(void **state)
{
    (void)state;
    for (unsigned table = 0; table < 256; table++) {
        char instruction[64];
        uint32_t want = 0;
        for (unsigned i = 0; i < 32; i++)
            want |= (table >> (i & 7) & 1) << i;
        snprintf(instruction, sizeof instruction, "lop3.b32 %%r5, %%r0, %%r1, %%r2, %u;", table);
        for (int i = 0; i < 32; i++) { /* bits k of a, b and c are bits 2, 1 and 0 of k */
            in[i][0] = 0xf0f0f0f0;
            in[i][1] = 0xcccccccc;
            in[i][2] = 0xaaaaaaaa;
        }
        run_instruction(NULL, instruction, 32, in, out);
        assert_int_equal(out[0], want);
        assert_int_equal(out[31], want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_lop3)};
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
