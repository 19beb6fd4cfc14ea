/* setp, set (ISA 9.7.6, 9.7.7) and testp (9.7.3.1): every comparison, type, boolean operator and .ftz, against the ISA's
   rules for numbers and NaN, on equal, ordered, subnormal, infinite and NaN values. Also tests which forms exist. */
#include "emu_test.h"

#include <math.h>

typedef struct kind {
    const char *name;
    char class; /* b bits, u unsigned, s signed, f float */
    int bits, fraction;
    bool is_pair;
} kind;

static const kind kinds[] = {
    {"b16", 'b', 16, 0, false},  {"b32", 'b', 32, 0, false},   {"b64", 'b', 64, 0, false},
    {"u16", 'u', 16, 0, false},  {"u32", 'u', 32, 0, false},   {"u64", 'u', 64, 0, false},
    {"s16", 's', 16, 0, false},  {"s32", 's', 32, 0, false},   {"s64", 's', 64, 0, false},
    {"f16", 'f', 16, 10, false}, {"bf16", 'f', 16, 7, false},  {"f32", 'f', 32, 23, false},
    {"f64", 'f', 64, 52, false}, {"f16x2", 'f', 16, 10, true}, {"bf16x2", 'f', 16, 7, true},
};

static const char *const comparisons[] = {"eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
                                          "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
static const char *const operators[] = {"", "and", "or", "xor"};

enum {
    KINDS = sizeof kinds / sizeof *kinds,
    COMPARISONS = sizeof comparisons / sizeof *comparisons,
    COUNT = 256
};

typedef struct comparison {
    const kind *source, *result; /* result: of set; NULL for setp */
    const char *word, *operator;
    bool flushes, negates; /* the predicate operand */
} comparison;

static bool is_named(const kind *k, const char *name)
{
    return k && strncmp(k->name, name, strlen(name)) == 0;
}

/* Bits have only eq and ne; lo to hs are for unsigned, the last eight for floats. */
static bool has_comparison(char class, int n)
{
    return class == 'b' ? n < 2 : class == 'u' ? n < 10 : class == 's' ? n < 6 : n < 6 || n >= 10;
}

static bool exists(const comparison *c, int n)
{
    const kind *s = c->source, *d = c->result;
    bool can_flush = is_named(s, "f32") || is_named(s, "f16");
    if (!has_comparison(s->class, n) || (c->flushes && !can_flush))
        return false;
    if (!d)
        return true;
    if (s->is_pair) /* the result has the same type, or is u32 or s32 */
        return d == s || strcmp(d->name, "u32") == 0 || strcmp(d->name, "s32") == 0;
    if (d->is_pair || (is_named(d, "bf16") && c->flushes))
        return false;
    if (is_named(s, "f16") || is_named(s, "bf16"))
        return (d->class != 'b' && d->bits == 16 && d->class != 'f') ||
               ((d->class == 'u' || d->class == 's') && d->bits == 32) || is_named(d, "bf16") ||
               (is_named(d, "f16") && is_named(s, "f16"));
    return is_named(d, "f16") || is_named(d, "bf16") || is_named(d, "f32") ||
           ((d->class == 'u' || d->class == 's') && d->bits == 32);
}

static double value_of(const kind *k, uint64_t bits, bool flushes)
{
    uint64_t sign = UINT64_C(1) << (k->bits - 1), magnitude = bits & (sign - 1),
             one = UINT64_C(1) << k->fraction;
    uint64_t infinity = (sign / one - 1) * one;
    int bias = (int)(sign / one / 2) - 1, e = (int)(magnitude / one);
    double v = magnitude > infinity    ? (double)NAN
               : magnitude == infinity ? (double)INFINITY
               : e                     ? ldexp((double)(magnitude % one + one), e - bias - k->fraction)
               : flushes               ? 0
                                       : ldexp((double)magnitude, 1 - bias - k->fraction);
    return bits & sign ? -v : v;
}

typedef struct order {
    bool less, equal, unordered;
} order;

static order order_of(const comparison *c, uint64_t a, uint64_t b)
{
    const kind *k = c->source;
    uint64_t flip = k->class == 's' ? UINT64_C(1) << (k->bits - 1) : 0;
    if (k->class != 'f')
        return (order){(a ^ flip) < (b ^ flip), a == b, false};
    double x = value_of(k, a, c->flushes), y = value_of(k, b, c->flushes);
    return (order){x < y, x == y, isnan(x) || isnan(y)};
}

/* True if the comparison holds; words with u also hold if an operand is NaN. */
static bool holds(const char *word, order o)
{
    bool more = !o.less && !o.equal;
    if (strcmp(word, "num") == 0 || strcmp(word, "nan") == 0)
        return o.unordered == (word[1] == 'a');
    if (o.unordered)
        return word[2] == 'u';
    switch (word[0]) {
    case 'e':
        return o.equal;
    case 'n':
        return !o.equal;
    case 'l': /* lt, lo, le, ls */
        return o.less || ((word[1] == 'e' || word[1] == 's') && o.equal);
    case 'h': /* hi, hs */
        return more || (word[1] == 's' && o.equal);
    default:
        return more || (word[1] == 'e' && o.equal);
    }
}

static bool combined(const comparison *c, bool t, bool p)
{
    p = p != c->negates;
    switch (c->operator[0]) {
    case 'a':
        return t && p;
    case 'o':
        return t || p;
    case 'x':
        return t != p;
    default:
        return t;
    }
}

/* The stored value: for setp, p and q as bits 0 and 1; for set, the result. */
static uint64_t expected(const comparison *c, uint64_t a, uint64_t b, bool p)
{
    const kind *d = c->result;
    uint64_t all = UINT64_MAX >> (64 - c->source->bits);
    bool low = holds(c->word, order_of(c, a & all, b & all)), high = !low;
    if (c->source->is_pair)
        high = holds(c->word, order_of(c, a >> 16 & all, b >> 16 & all));
    low = combined(c, low, p);
    high = combined(c, high, p);
    if (!d)
        return (uint64_t)low |
               (uint64_t)(high && !(c->source->class == 'f' && c->source->bits == 16 && !c->source->is_pair))
                   << 1;
    uint64_t one = is_named(d, "bf16")  ? 0x3f80
                   : is_named(d, "f16") ? 0x3c00
                   : is_named(d, "f32") ? 0x3f800000
                   : c->source->is_pair ? 0xffff
                                        : UINT64_MAX >> (64 - d->bits);
    return c->source->is_pair ? (low ? one : 0) | (high ? one << 16 : 0) : low ? one : 0;
}

static const char *name_of(const comparison *c)
{
    static char name[64];
    snprintf(name, sizeof name, "%s.%s%s%s%s%s%s.%s", c->result ? "set" : "setp", c->word,
             *c->operator? "." : "", c->operator, c->flushes ? ".ftz" : "", c->result ? "." : "",
             c->result ? c->result->name : "", c->source->name);
    return name;
}

static int register_bits(const kind *k)
{
    return k->is_pair ? 32 : k->bits;
}

static const char *body_of(const comparison *c)
{
    static char body[1024];
    bool has_q = !c->result && (c->source->is_pair || c->source->class != 'f' || c->source->bits != 16);
    int from = register_bits(c->source), to = c->result ? register_bits(c->result) : 32;
    snprintf(body, sizeof body,
             ".reg .u64 %%p<3>; .reg .b%d %%a<2>; .reg .b%d %%d; .reg .b32 %%r<4>; .reg .pred %%q<4>;\n"
             "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%tid.x; mad.wide.u32 %%p0, "
             "%%r0, 8, %%p0;\n"
             "mad.wide.u32 %%p1, %%r0, 24, %%p1; ld.global.b%d %%a0, [%%p1]; ld.global.b%d %%a1, [%%p1+8];\n"
             "ld.global.b32 %%r1, [%%p1+16]; setp.ne.u32 %%q2, %%r1, 0; setp.ne.u32 %%q1, 0, 0;\n%s %s%s, "
             "%%a0, %%a1%s%s;\n",
             from, to, from, from, name_of(c), c->result ? "%d" : "%q0", has_q ? "|%q1" : "",
             *c->operator? ", " : "",
             !*c->operator? ""
             : c->negates ? "!%q2"
                          : "%q2");
    if (!c->result)
        strcat(body, "selp.b32 %r2, 1, 0, %q0; selp.b32 %r3, 2, 0, %q1; or.b32 %d, %r2, %r3;\n");
    size_t size = strlen(body);
    snprintf(body + size, sizeof body - size, "st.global.b%d [%%p0], %%d; ret;", to);
    return body;
}

static uint64_t hostile(const kind *k)
{
    uint64_t sign = UINT64_C(1) << (k->bits - 1), one = UINT64_C(1) << k->fraction,
             infinity = (sign / one - 1) * one;
    const uint64_t some[] = {
        0, sign, 1, sign | 1, infinity, sign | infinity, infinity + 1, sign | (sign - 1), one, infinity - 1};
    uint64_t r = random_bits();
    return r & 7 ? some[(r >> 8) % 10] : r >> (64 - k->bits);
}

static void check(const comparison *c)
{
    static uint64_t in[COUNT][3], out[COUNT];
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 2; k++)
            in[i][k] = hostile(c->source) | (c->source->is_pair ? hostile(c->source) << 16 : 0);
        in[i][2] = random_bits() >> 63;
        if (i % 4 == 0)
            in[i][1] = in[i][0];
    }
    memset(out, 0, sizeof out);
    run_body(NULL, body_of(c), COUNT, in, sizeof in, out, sizeof out);
    uint64_t kept = UINT64_MAX >> (64 - (c->result ? register_bits(c->result) : 32));
    for (int i = 0; i < COUNT; i++) {
        uint64_t want = expected(c, in[i][0], in[i][1], in[i][2]);
        if ((out[i] & kept) != want)
            fail_msg("%s of %llx %llx %d gave %llx, not %llx", name_of(c), (unsigned long long)in[i][0],
                     (unsigned long long)in[i][1], (int)in[i][2], (unsigned long long)(out[i] & kept),
                     (unsigned long long)want);
    }
}

static void test_forms(void **state)
{
    (void)state;
    int taken = 0;
    for (int n = 0; n < COMPARISONS; n++)
        for (int k = 0; k < KINDS; k++)
            for (int d = -1; d < KINDS; d++)
                for (int o = 0; o < 8; o++) {
                    comparison c = {&kinds[k],      d < 0 ? NULL : &kinds[d],
                                    comparisons[n], operators[o & 3],
                                    o & 4,          (n + k) & 1};
                    CUmodule module;
                    if (d >= 0 && kinds[d].bits == 64)
                        continue;
                    bool is_taken = load_body(NULL, body_of(&c), &module) == CUDA_SUCCESS;
                    if (is_taken != exists(&c, n))
                        fail_msg("%s is %s\n%s", name_of(&c), is_taken ? "taken" : "not taken", test_log);
                    if (!is_taken)
                        continue;
                    cuModuleUnload(module);
                    check(&c);
                    taken++;
                }
    print_message("%d comparisons\n", taken);
}

/* testp (ISA 9.7.3.1) on both sides of every bound; zeros count as normal. */
static bool has_property(const char *property, int class)
{
    bool is_normal = class == FP_NORMAL || class == FP_ZERO;
    return strcmp(property, "finite") == 0       ? is_normal || class == FP_SUBNORMAL
           : strcmp(property, "infinite") == 0   ? class == FP_INFINITE
           : strcmp(property, "number") == 0     ? class != FP_NAN
           : strcmp(property, "notanumber") == 0 ? class == FP_NAN
           : strcmp(property, "normal") == 0     ? is_normal
                                                 : class == FP_SUBNORMAL;
}

static void check_property(const char *property, int bits)
{
    enum { VALUES = 12, TESTED = 2 * VALUES };
    uint64_t one = UINT64_C(1) << (bits == 32 ? 23 : 52), sign = UINT64_C(1) << (bits - 1),
             infinity = (sign / one - 1) * one, in[TESTED];
    const uint64_t values[VALUES] = {
        0,       1, 2, one - 1, one, one + 1, 5 * one, one | one / 2, infinity - 1, infinity, infinity + 1,
        sign - 1};
    uint32_t out[TESTED];
    char body[512];
    for (int i = 0; i < TESTED; i++)
        in[i] = values[i / 2] | (i % 2 ? sign : 0);
    snprintf(body, sizeof body,
             ".reg .u64 %%p<3>; .reg .u32 %%r<2>; .reg .f%d %%f; .reg .pred %%q; ld.param.u64 %%p0, [p0];\n"
             "ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%tid.x; mad.wide.u32 %%p1, %%r0, 8, %%p1;\n"
             "mad.wide.u32 %%p0, %%r0, 4, %%p0; ld.global.f%d %%f, [%%p1]; testp.%s.f%d %%q, %%f;\n"
             "selp.u32 %%r1, 1, 0, %%q; st.global.u32 [%%p0], %%r1; ret;",
             bits, bits, property, bits);
    run_body(NULL, body, TESTED, in, sizeof in, out, sizeof out);
    for (int i = 0; i < TESTED; i++) {
        double d;
        float f;
        uint32_t low = (uint32_t)in[i];
        memcpy(&d, &in[i], sizeof d);
        memcpy(&f, &low, sizeof f);
        if (out[i] != has_property(property, bits == 32 ? fpclassify(f) : fpclassify(d)))
            fail_msg("testp.%s.f%d of %llx gave %u", property, bits, (unsigned long long)in[i], out[i]);
    }
}

static void test_properties(void **state)
{
    (void)state;
    static const char *const properties[] = {"finite",     "infinite", "number",
                                             "notanumber", "normal",   "subnormal"};
    for (size_t n = 0; n < sizeof properties / sizeof *properties; n++) {
        check_property(properties[n], 32);
        check_property(properties[n], 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_properties)};
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
