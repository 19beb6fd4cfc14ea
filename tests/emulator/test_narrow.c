/* cvt between the floats that the ISA lists one by one (9.7.9.21): 4, 6, 8, 16 and 19 bits, .ue8m0, with .relu and
   .satfinite; cvt.pack. Packed sources take all their codes; .f32 sources are equal to, between, and next to all values of
   the destination. The reference searches all codes, which are in order of magnitude. */
#include "emu_test.h"

#include <math.h>

enum { MOST = 65536 };

typedef struct format {
    const char *name;
    int bits; /* bits in a register; tf32 uses the upper ones */
    int exponent, fraction;
    unsigned largest; /* magnitude of the largest finite code */
    unsigned nan;     /* lowest magnitude of a NaN; 0: the type has none */
    bool has_infinity, is_signed;
} format;

static const format formats[] = {
    {"f16", 16, 5, 10, 0x7bff, 0x7c01, true, true},
    {"bf16", 16, 8, 7, 0x7f7f, 0x7f81, true, true},
    {"tf32", 32, 8, 10, 0x3fbff, 0x3fc01, true, true},
    {"f32", 32, 8, 23, 0x7f7fffff, 0x7f800001, true, true},
    {"e4m3", 8, 4, 3, 0x7e, 0x7f, false, true},
    {"e5m2", 8, 5, 2, 0x7b, 0x7d, true, true},
    {"e2m3", 8, 2, 3, 0x1f, 0, false, true},
    {"e3m2", 8, 3, 2, 0x1f, 0, false, true},
    {"e2m1", 4, 2, 1, 0x7, 0, false, true},
    {"ue8m0", 8, 8, 0, 254, 255, false, false},
};

static const format *format_named(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strncmp(formats[i].name, name, strlen(formats[i].name)) == 0)
            return &formats[i];
    fail_msg("no format %s", name);
    return NULL;
}

static unsigned sign_of(const format *f)
{
    return f->is_signed ? 1u << (f->exponent + f->fraction) : 0;
}

/* Continues the exponents above the largest value. All values of .ue8m0 are powers of two. */
static double magnitude_of(const format *f, unsigned code)
{
    int bias = (1 << (f->exponent - 1)) - 1, e = (int)(code >> f->fraction);
    unsigned one = 1u << f->fraction, fraction = code & (one - 1);
    return e || !f->is_signed ? ldexp(one + fraction, e - bias - f->fraction)
                              : ldexp(fraction, 1 - bias - f->fraction);
}

static double value_of(const format *f, unsigned code)
{
    unsigned sign = sign_of(f), magnitude = sign ? code & (sign - 1) : code;
    double v = f->nan && magnitude >= f->nan                    ? (double)NAN
               : f->has_infinity && magnitude == f->largest + 1 ? (double)INFINITY
                                                                : magnitude_of(f, magnitude);
    return code & sign ? -v : v;
}

/* The largest code whose magnitude is at most x. */
static unsigned code_below(const format *f, double x)
{
    unsigned low = 0, high = f->largest;
    while (low < high) {
        unsigned middle = (low + high + 1) / 2;
        if (magnitude_of(f, middle) <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

typedef struct rules {
    char mode; /* n: to nearest even, a: to nearest, ties away from zero, z: towards zero, p: up */
    bool relu, satfinite;
} rules;

static unsigned encode(const format *f, double v, rules r)
{
    double x = fabs(v), limit = magnitude_of(f, f->largest);
    unsigned sign = signbit(v) ? sign_of(f) : 0, beyond = f->has_infinity ? f->largest + 1 : f->nan;
    if (isnan(v))
        return f->nan ? f->nan : f->largest;
    if (r.relu && signbit(v))
        return 0;
    if (x > limit && (r.satfinite || (r.mode == 'z' && !isinf(v))))
        return sign | f->largest;
    if (isinf(v))
        return sign | beyond;
    unsigned code = code_below(f, x);
    double below = magnitude_of(f, code), above = magnitude_of(f, code + 1), rest = x - below,
           gap = above - x;
    bool goes_up = r.mode == 'n'   ? rest > gap || (rest == gap && code & 1)
                   : r.mode == 'a' ? rest >= gap
                                   : r.mode == 'p' && rest > 0;
    if (below > x) /* .ue8m0 below its smallest value */
        return 0;
    code += goes_up;
    return sign | (code > f->largest ? beyond : code);
}

typedef struct narrow_case {
    const char *to, *from, *modes;
    bool relu;
    char satfinite; /* ! always, ? with and without, - never */
} narrow_case;

static const narrow_case cases[] = {
    {"f16", "f32", "nz", true, '?'},        {"bf16", "f32", "nz", true, '?'},
    {"f16x2", "f32", "nz", true, '?'},      {"bf16x2", "f32", "nz", true, '?'},
    {"tf32", "f32", "nz", true, '?'},       {"tf32", "f32", "a", false, '?'},
    {"e4m3x2", "f32", "n", true, '!'},      {"e5m2x2", "f32", "n", true, '!'},
    {"e4m3x2", "f16x2", "n", true, '!'},    {"e5m2x2", "f16x2", "n", true, '!'},
    {"e4m3x2", "bf16x2", "n", true, '!'},   {"e5m2x2", "bf16x2", "n", true, '!'},
    {"e2m1x2", "f32", "n", true, '!'},      {"e2m3x2", "f32", "n", true, '!'},
    {"e3m2x2", "f32", "n", true, '!'},      {"e2m1x2", "f16x2", "n", true, '!'},
    {"e2m3x2", "f16x2", "n", true, '!'},    {"e3m2x2", "f16x2", "n", true, '!'},
    {"e2m1x2", "bf16x2", "n", true, '!'},   {"e2m3x2", "bf16x2", "n", true, '!'},
    {"e3m2x2", "bf16x2", "n", true, '!'},   {"f16x2", "e4m3x2", "n", true, '-'},
    {"f16x2", "e5m2x2", "n", true, '-'},    {"f16x2", "e2m1x2", "n", true, '-'},
    {"f16x2", "e2m3x2", "n", true, '-'},    {"f16x2", "e3m2x2", "n", true, '-'},
    {"ue8m0x2", "f32", "zp", false, '?'},   {"ue8m0x2", "bf16x2", "zp", false, '?'},
    {"bf16x2", "ue8m0x2", "n", false, '-'},
};

static bool is_packed(const char *type)
{
    return strstr(type, "x2") != NULL;
}

/* The bits of an element or a pair. */
static int bits_of(const char *type)
{
    return format_named(type)->bits * (is_packed(type) ? 2 : 1);
}

static unsigned random_word(void)
{
    return (unsigned)(random_bits() >> 16);
}

/* The values of a format, values between them and next to both; then any bits. */
static unsigned hostile_float(const format *to, int i)
{
    unsigned code = i < 12 * 256 ? (unsigned)i / 6 : random_word(), bits = random_word();
    double a = magnitude_of(to, code % (to->largest + 2)), b = magnitude_of(to, code % (to->largest + 2) + 1);
    float f = (float)(i % 6 < 3 ? a : (a + b) / 2);
    f = i % 3 ? nextafterf(f, i % 3 == 1 ? INFINITY : -INFINITY) : f;
    if (i % 8 != 7)
        memcpy(&bits, &f, sizeof bits);
    return bits ^ (random_word() & 0x80000000);
}

/* in[i] has two words; for a packed source only the first is used. */
static int fill(const narrow_case *c, unsigned (*in)[2])
{
    const format *from = format_named(c->from);
    bool is_float = strcmp(c->from, "f32") == 0;
    int count = is_float ? 16384 : from->bits == 16 ? MOST : 1 << 2 * from->bits;
    unsigned unused = from->is_signed && from->bits == 8 ? ~(2 * sign_of(from) - 1) & 0xff : 0;
    for (int i = 0; i < count; i++) {
        unsigned n = (unsigned)i;
        in[i][0] = is_float           ? hostile_float(format_named(c->to), i)
                   : from->bits == 16 ? n << 16 | ((n * 40503 + 77) & 0xffff)
                                      : n & ~(unused << 8 | unused);
        in[i][1] = hostile_float(format_named(c->to), i * 7 + 3);
    }
    return count;
}

static const char *name_of(const narrow_case *c, rules r)
{
    static char name[64];
    snprintf(name, sizeof name, "cvt.r%s%s%s.%s.%s", r.mode == 'a' ? "na" : (char[]){r.mode, 0},
             r.relu ? ".relu" : "", r.satfinite ? ".satfinite" : "", c->to, c->from);
    return name;
}

/* A kernel with the instruction's registers d and a: copies %r2 and %r3 to a and b, and d to %r4. */
static const char *body_of(const narrow_case *c, rules r)
{
    static char body[1024];
    int to = bits_of(c->to), from = bits_of(c->from);
    bool is_pair = is_packed(c->to) && !is_packed(c->from);
    snprintf(
        body, sizeof body,
        ".reg .u64 %%p<3>; .reg .b32 %%r<6>; .reg .b%d %%a<2>; .reg .b%d %%d;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%tid.x;\n"
        "mad.lo.u32 %%r0, %%r0, 256, %%r1; mad.wide.u32 %%p0, %%r0, 4, %%p0; mad.wide.u32 %%p1, %%r0, 8, "
        "%%p1;\n"
        "ld.global.v2.b32 {%%r2, %%r3}, [%%p1]; cvt.u%d.u32 %%a0, %%r2; cvt.u%d.u32 %%a1, %%r3;\n"
        "%s %%d, %%a0%s; cvt.u32.u%d %%r4, %%d; st.global.b32 [%%p0], %%r4; ret;",
        from, to, from, from, name_of(c, r), is_pair ? ", %a1" : "", to);
    return body;
}

static void check_element(const narrow_case *c, rules r, unsigned in, unsigned got)
{
    const format *to = format_named(c->to), *from = format_named(c->from);
    double v = value_of(from, in);
    unsigned want = encode(to, v, r), sign = sign_of(to), magnitude = sign ? got & (sign - 1) : got;
    bool is_nan = to->nan && want >= to->nan && want < to->nan + (sign ? sign : 256);
    if (isnan(v) && to->nan ? magnitude < to->nan : got != want && !(is_nan && got == want))
        fail_msg("%s of %x (%a) gave %x, not %x", name_of(c, r), in, v, got, want);
    if (isnan(v) && r.relu && to->nan && magnitude != got)
        fail_msg("%s of a NaN gave %x, not the canonical one", name_of(c, r), got);
}

static void check_case(const char *header, const narrow_case *c, rules r)
{
    static unsigned in[MOST][2], out[MOST];
    int count = fill(c, in), to = format_named(c->to)->bits, from = format_named(c->from)->bits;
    run_body(header, body_of(c, r), (unsigned)count, in, (size_t)count * 8, out, (size_t)count * 4);
    for (int i = 0; i < count; i++) {
        if (!is_packed(c->to)) {
            check_element(c, r, in[i][0], strcmp(c->to, "tf32") == 0 ? out[i] >> 13 : out[i]);
            assert_true(to != 32 || (out[i] & 0x1fff) == 0);
            continue;
        }
        bool is_pair = !is_packed(c->from);
        unsigned low = (1u << from % 32) - 1, high_in = is_pair ? in[i][0] : in[i][0] >> from & low,
                 low_in = is_pair ? in[i][1] : in[i][0] & low;
        check_element(c, r, high_in, out[i] >> to);
        check_element(c, r, low_in, out[i] & ((1u << to) - 1));
    }
}

static void test_floats(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (const char *mode = cases[n].modes; *mode; mode++)
            for (int relu = 0; relu <= cases[n].relu; relu++)
                for (int satfinite = cases[n].satfinite == '!'; satfinite <= (cases[n].satfinite != '-');
                     satfinite++)
                    check_case(".version 9.1\n.target sm_100f", &cases[n], (rules){*mode, relu, satfinite});
}

/* 9.7.9.22, on both sides of every bound. */
static uint32_t packed(int bits, bool is_signed, int32_t a, int32_t b, uint32_t c)
{
    int64_t most = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1, least = is_signed ? -most - 1 : 0;
    uint64_t ta = (uint64_t)(a < least  ? least
                             : a > most ? most
                                        : a),
             tb = (uint64_t)(b < least  ? least
                             : b > most ? most
                                        : b),
             d = 0;
    for (int i = 0; i < 32; i++)
        d |= (i < bits       ? tb >> i & 1
              : i < 2 * bits ? ta >> (i - bits) & 1
                             : (uint64_t)(c >> (i - 2 * bits) & 1))
             << i;
    return (uint32_t)d;
}

static void check_pack(int bits, bool is_signed)
{
    enum { VALUES = 12, COUNT = VALUES * VALUES };
    static int32_t in[COUNT][3];
    static uint32_t out[COUNT];
    int32_t most = (1 << (is_signed ? bits - 1 : bits)) - 1, least = is_signed ? -most - 1 : 0;
    const int32_t values[VALUES] = {0,         1,     -1,        most - 1,  most,      most + 1,
                                    least - 1, least, least + 1, INT32_MAX, INT32_MIN, most / 2};
    char body[512];
    for (int i = 0; i < COUNT; i++) {
        in[i][0] = values[i % VALUES];
        in[i][1] = values[i / VALUES];
        in[i][2] = (int32_t)random_bits();
    }
    snprintf(body, sizeof body,
             ".reg .u64 %%p<3>; .reg .u32 %%r<3>; .reg .s32 %%i<3>; ld.param.u64 %%p0, [p0]; ld.param.u64 "
             "%%p1, [p1];\n"
             "mov.u32 %%r0, %%tid.x; mad.wide.u32 %%p1, %%r0, 12, %%p1; mad.wide.u32 %%p0, %%r0, 4, %%p0;\n"
             "ld.global.s32 %%i0, [%%p1]; ld.global.s32 %%i1, [%%p1+4]; ld.global.u32 %%r1, [%%p1+8];\n"
             "cvt.pack.sat.%c%d.s32%s %%r2, %%i0, %%i1%s; st.global.u32 [%%p0], %%r2; ret;",
             is_signed ? 's' : 'u', bits, bits == 16 ? "" : ".b32", bits == 16 ? "" : ", %r1");
    run_body(NULL, body, COUNT, in, sizeof in, out, sizeof out);
    for (int i = 0; i < COUNT; i++) {
        uint32_t want = packed(bits, is_signed, in[i][0], in[i][1], bits == 16 ? 0 : (uint32_t)in[i][2]);
        if (out[i] != want)
            fail_msg("cvt.pack.sat.%c%d of %d, %d, 0x%x gave 0x%x, not 0x%x", is_signed ? 's' : 'u', bits,
                     in[i][0], in[i][1], (uint32_t)in[i][2], out[i], want);
    }
}

static void test_pack(void **state)
{
    (void)state;
    for (int bits = 2; bits <= 16; bits *= 2)
        for (int is_signed = 0; is_signed < 2; is_signed++)
            check_pack(bits, is_signed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats), cmocka_unit_test(test_pack)};
    return cmocka_run_group_tests(tests, begin_100, end_context);
}
