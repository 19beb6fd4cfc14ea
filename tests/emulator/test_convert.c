/* cvt between integers and floats (ISA 9.7.9.21): every pair, rounding, .ftz and .sat. The ISA's rules decide which forms
   exist; exact arithmetic in long doubles, whose 64 bits hold every source, gives the values. 16-bit sources are tested
   with all values. */
#include "emu_test.h"

#include <float.h>
#include <math.h>

typedef struct kind {
    const char *name;
    int bits, exponent, fraction; /* 0: an integer */
    bool is_signed;
} kind;

static const kind kinds[] = {
    {"u8", 8, 0, 0, false},   {"s8", 8, 0, 0, true},    {"u16", 16, 0, 0, false}, {"s16", 16, 0, 0, true},
    {"u32", 32, 0, 0, false}, {"s32", 32, 0, 0, true},  {"u64", 64, 0, 0, false}, {"s64", 64, 0, 0, true},
    {"f16", 16, 5, 10, true}, {"bf16", 16, 8, 7, true}, {"f32", 32, 8, 23, true}, {"f64", 64, 11, 52, true},
};

enum { KINDS = sizeof kinds / sizeof *kinds, MOST = 65536, WIDE = 3072 };

static const char *const roundings[] = {"", "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};

typedef struct conversion {
    const kind *to, *from;
    const char *rounding;
    bool flushes, saturates;
} conversion;

static uint64_t low_bits(int count)
{
    return UINT64_MAX >> (64 - count);
}

static bool is_named(const kind *k, const char *name)
{
    return strcmp(k->name, name) == 0;
}

static long double value_of(const kind *k, uint64_t bits)
{
    bits &= low_bits(k->bits);
    if (!k->exponent)
        return k->is_signed ? (long double)((int64_t)(bits << (64 - k->bits)) >> (64 - k->bits))
                            : (long double)bits;
    int top = (int)low_bits(k->exponent), e = (int)(bits >> k->fraction) & top, bias = top / 2;
    uint64_t f = bits & low_bits(k->fraction);
    long double v = e ? ldexpl((long double)(f | UINT64_C(1) << k->fraction), e - bias - k->fraction)
                      : ldexpl((long double)f, 1 - bias - k->fraction);
    if (e == top)
        v = f ? (long double)NAN : (long double)INFINITY;
    return bits >> (k->bits - 1) ? -v : v;
}

static long double to_integral(long double v, char mode)
{
    long double down = floorl(v), rest = v - down;
    switch (mode) {
    case 'n':
        return rest > 0.5L || (rest == 0.5L && fmodl(down, 2) != 0) ? down + 1 : down;
    case 'z':
        return truncl(v);
    case 'm':
        return down;
    default:
        return ceill(v);
    }
}

static uint64_t to_integer(const conversion *c, long double v)
{
    int bits = c->to->bits;
    if (isnan(v))
        return is_named(c->from, "f64") || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    long double most = ldexpl(1, c->to->is_signed ? bits - 1 : bits) - 1,
                least = c->to->is_signed ? -most - 1 : 0;
    if (c->from->exponent)
        v = to_integral(v, c->rounding[1]);
    v = v > most ? most : v < least ? least : v;
    return (v < 0 ? 0 - (uint64_t)-v : (uint64_t)v) & low_bits(bits);
}

/* Rounds to the precision of the type. Returns the bits; a NaN is the largest pattern. */
static uint64_t to_float(const conversion *c, long double v)
{
    const kind *k = c->to;
    uint64_t sign = signbit(v) ? UINT64_C(1) << (k->bits - 1) : 0, infinity = low_bits(k->exponent)
                                                                              << k->fraction;
    int bias = (int)low_bits(k->exponent - 1);
    char mode = c->rounding[0] && !c->rounding[2] ? c->rounding[1] : 'n';
    if (isnan(v))
        return c->saturates ? 0 : low_bits(k->bits - 1);
    if (c->rounding[0] && c->rounding[2])
        v = copysignl(to_integral(v, c->rounding[1]), v);
    if (c->saturates)
        return signbit(v) ? 0
               : v >= 1   ? (uint64_t)bias << k->fraction
                          : to_float(&(conversion){k, c->from, c->rounding, c->flushes, false}, v);
    if (isinf(v))
        return sign | infinity;
    int size = v == 0 || ilogbl(v) < 1 - bias ? 1 - bias : ilogbl(v);
    long double steps = fabsl(to_integral(ldexpl(v, k->fraction - size), mode));
    uint64_t magnitude = (uint64_t)steps + ((uint64_t)(size + bias - 1) << k->fraction);
    if (magnitude >= infinity) {
        bool stays = mode == 'z' || (mode == 'm' && !sign) || (mode == 'p' && sign);
        magnitude = stays ? infinity - 1 : infinity;
    }
    if (c->flushes && is_named(k, "f32") && magnitude < UINT64_C(1) << k->fraction)
        magnitude = 0;
    return sign | magnitude;
}

static uint64_t expected(const conversion *c, uint64_t bits)
{
    long double v = value_of(c->from, bits);
    if (c->flushes && is_named(c->from, "f32") && fabsl(v) < ldexpl(1, -126))
        v = copysignl(0, v);
    if (c->to->exponent)
        return to_float(c, v);
    if (!c->from->exponent && !c->saturates) /* a copy, extended or truncated */
        return (v < 0 ? 0 - (uint64_t)-v : (uint64_t)v) & low_bits(c->to->bits);
    return to_integer(c, v);
}

static bool holds_all_of(const kind *to, const kind *from)
{
    if (to->exponent && from->exponent)
        return to->exponent >= from->exponent && to->fraction >= from->fraction;
    return to->is_signed == from->is_signed ? to->bits >= from->bits : to->is_signed && to->bits > from->bits;
}

static bool has_bf16(const conversion *c)
{
    return is_named(c->to, "bf16") || is_named(c->from, "bf16");
}

/* ptxas has no .sat with .bf16. "Rounding modifier is mandatory ... illegal in all other instances", but an example of the
   ISA rounds a conversion from .bf16. */
static bool exists(const conversion *c)
{
    bool to_float_kind = c->to->exponent, from_float = c->from->exponent;
    bool integral = strlen(c->rounding) == 3, floating = strlen(c->rounding) == 2;
    if (c->flushes && !is_named(c->to, "f32") && !is_named(c->from, "f32"))
        return false;
    if (c->saturates && (has_bf16(c) || (!to_float_kind && !from_float && holds_all_of(c->to, c->from))))
        return false;
    if (!to_float_kind || !from_float)
        return to_float_kind ? floating : from_float ? integral : !c->rounding[0];
    if (c->to == c->from)
        return !floating;
    return holds_all_of(c->to, c->from) ? !c->rounding[0] || (floating && is_named(c->from, "bf16"))
                                        : floating;
}

/* Values around every power of two and every step of a narrower format, then any bits. */
static uint64_t hostile(const kind *k, int i)
{
    uint64_t r = random_bits();
    if (!k->exponent)
        return i % 3 == 2 ? r >> i % 64 : ((uint64_t)1 << i / 3 % 64) + (uint64_t)(i / 192) % 9 - 4;
    uint64_t bits = r & low_bits(k->bits);
    int cut = k->fraction - (int)(r >> 40) % (k->fraction < 30 ? 24 : 52);
    if (i % 4 < 3 && cut > 0) /* a tie of a narrower format, or a neighbour of one */
        bits = (bits & ~low_bits(cut)) | ((UINT64_C(1) << (cut - 1)) + (uint64_t)(i % 3) - 1);
    if (i % 2) { /* exponents in the range of integers and narrow formats */
        uint64_t top = low_bits(k->exponent), e = (top / 2 + (r >> 20) % 84 - 20) & top;
        bits = (bits & ~(top << k->fraction)) | e << k->fraction;
    }
    return i % 97 ? bits : bits & ~(low_bits(k->exponent) << k->fraction);
}

static int sources_of(const kind *k, uint64_t values[MOST])
{
    int count = k->bits == 16 ? 65536 : k->bits == 8 ? 256 : WIDE;
    for (int i = 0; i < count; i++)
        values[i] = k->bits <= 16 ? (uint64_t)i : hostile(k, i);
    return count;
}

/* If one operand is .bf16, ptxas accepts no wider register for an 8-bit operand. */
static const char *register_for(const conversion *c, const kind *k)
{
    return k->bits == 8    ? (has_bf16(c) ? "b8" : "b16")
           : k->bits == 16 ? "b16"
           : k->bits == 32 ? "b32"
                           : "b64";
}

static const char *name_of(const conversion *c)
{
    static char name[64];
    snprintf(name, sizeof name, "cvt%s%s%s%s.%s.%s", c->rounding[0] ? "." : "", c->rounding,
             c->flushes ? ".ftz" : "", c->saturates ? ".sat" : "", c->to->name, c->from->name);
    return name;
}

static const char *body_of(const conversion *c)
{
    static char body[1024];
    snprintf(
        body, sizeof body,
        ".reg .u64 %%p<3>; .reg .u32 %%r<3>; .reg .%s %%a; .reg .%s %%d;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%tid.x;\n"
        "mad.lo.u32 %%r0, %%r0, 256, %%r1; mad.wide.u32 %%p0, %%r0, 8, %%p0; mad.wide.u32 %%p1, %%r0, 8, "
        "%%p1;\n"
        "ld.global.%s %%a, [%%p1]; %s %%d, %%a; st.global.%s [%%p0], %%d; ret;",
        register_for(c, c->from), register_for(c, c->to), register_for(c, c->from), name_of(c),
        register_for(c, c->to));
    return body;
}

static bool is_nan(const kind *k, uint64_t bits)
{
    return k->exponent && isnan(value_of(k, bits));
}

static void check_values(const conversion *c)
{
    static uint64_t in[MOST], out[MOST];
    int count = sources_of(c->from, in);
    memset(out, 0, sizeof out);
    run_body(NULL, body_of(c), (unsigned)count, in, (size_t)count * 8, out, (size_t)count * 8);
    for (int i = 0; i < count; i++) {
        uint64_t want = expected(c, in[i]), got = out[i];
        if (c->to->bits == 8 && c->to->is_signed && want & 0x80 &&
            !has_bf16(c)) /* .bf16 has 16-bit registers */
            want |= 0xff00;
        if (is_nan(c->to, want) ? !is_nan(c->to, got) : got != want)
            fail_msg("%s of %llx (%Lg) gave %llx, not %llx", name_of(c),
                     (unsigned long long)(in[i] & low_bits(c->from->bits)), value_of(c->from, in[i]),
                     (unsigned long long)got, (unsigned long long)want);
    }
}

static void test_pairs(void **state)
{
    (void)state;
    int taken = 0;
    for (int n = 0; n < KINDS * KINDS * 9 * 4; n++) {
        conversion c = {&kinds[n % KINDS], &kinds[n / KINDS % KINDS], roundings[n / (KINDS * KINDS) % 9],
                        n / (KINDS * KINDS * 9) & 1, n / (KINDS * KINDS * 18) & 1};
        CUmodule module;
        bool is_taken = load_body(NULL, body_of(&c), &module) == CUDA_SUCCESS;
        if (is_taken != exists(&c))
            fail_msg("%s is %s\n%s", name_of(&c), is_taken ? "taken" : "not taken", test_log);
        if (!is_taken)
            continue;
        cuModuleUnload(module);
        check_values(&c);
        taken++;
    }
    print_message("%d conversions\n", taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    if (LDBL_MANT_DIG < 64) {
        fprintf(stderr, "skipped: long double is too short to hold every source\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
