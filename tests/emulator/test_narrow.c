/* Conversions to and from 8 bits, every code and floats around every boundary, against a search over all codes; cvt.pack. */
#include "emu_test.h"

#include <math.h>

enum { CODES = 256, FLOATS = 8192 };

/* The value of a code: exponent bits, fraction bits; e4m3 has no infinity and one NaN. */
static double value_of(unsigned code, int e, int m)
{
    int bias = (1 << (e - 1)) - 1, exponent = (int)(code >> m) & ((1 << e) - 1),
        fraction = (int)code & ((1 << m) - 1);
    double v = exponent ? ldexp((1 << m) + fraction, exponent - bias - m) : ldexp(fraction, 1 - bias - m);
    if (e == 4 && (code & 0x7f) == 0x7f)
        v = (double)NAN;
    if (e == 5 && exponent == 31)
        v = fraction ? (double)NAN : (double)INFINITY;
    return code & 0x80 ? -v : v;
}

static unsigned nearest(double x, int e, int m)
{
    unsigned best = 0, sign = signbit(x) ? 0x80 : 0, largest = e == 4 ? 0x7e : 0x7b;
    if (isnan(x))
        return 0x7f;
    if (fabs(x) >= value_of(largest, e, m))
        return largest | sign;
    for (unsigned code = 1; code <= largest; code++) {
        double d = fabs(fabs(x) - value_of(code, e, m)), b = fabs(fabs(x) - value_of(best, e, m));
        if (d < b || (d == b && (code & 1) == 0))
            best = code;
    }
    return best | sign;
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, f = h & 1023;
    double v = e == 31 ? (f ? (double)NAN : (double)INFINITY) : e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
    return h & 0x8000 ? -v : v;
}

static void run_format(const char *name, int e, int m)
{
    char body[1024];
    static uint32_t codes[CODES], halves[CODES], floats[FLOATS], narrow[FLOATS];
    const char *load =
        ".reg .u64 %%p<4>; .reg .b32 %%r<6>; .reg .b16 %%h<3>; .reg .f32 %%f<3>; ld.param.u64 %%p0, [p0];\n"
        "ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r0, %%r1, "
        "256, %%r0;\n"
        "mad.wide.u32 %%p1, %%r0, 4, %%p1; mad.wide.u32 %%p0, %%r0, 4, %%p0; ld.global.b32 %%r2, [%%p1];\n";
    size_t size = (size_t)snprintf(body, sizeof body, load, 0);
    snprintf(body + size, sizeof body - size,
             "cvt.u16.u32 %%h0, %%r2; cvt.rn.f16x2.%s %%r3, %%h0; st.global.b32 [%%p0], %%r3; ret;", name);
    for (unsigned i = 0; i < CODES; i++)
        codes[i] = i << 8 | (i * 7 & 255);
    run_body(NULL, body, CODES, codes, sizeof codes, halves, sizeof halves);
    for (unsigned i = 0; i < CODES; i++)
        for (int part = 0; part < 2; part++) {
            double want = value_of(codes[i] >> 8 * part & 255, e, m),
                   got = half_value((uint16_t)(halves[i] >> 16 * part));
            if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
                fail_msg("%s %02x is %g, not %g", name, codes[i] >> 8 * part & 255, got, want);
        }
    uint32_t state = 1;
    for (unsigned i = 0; i < FLOATS; i++) {
        /* values, middles between neighbours, both a little off; then any bits */
        unsigned code = i / 6 & 127;
        double a = value_of(code, e, m), b = value_of(code + 1, e, m), x = i % 6 < 3 ? a : (a + b) / 2;
        float f = (float)x;
        if (i % 3 == 1)
            f = nextafterf(f, INFINITY);
        if (i % 3 == 2)
            f = nextafterf(f, -INFINITY);
        state = state * 1664525 + 1013904223;
        memcpy(&floats[i], &f, sizeof f);
        floats[i] ^= state & 0x80000000;
        if (i >= 2000)
            floats[i] = (state >> 3) * 2654435761u;
        if (i >= 5000)
            floats[i] = (floats[i] & 0x80ffffff) | (0x3b000000 + (state >> 5 & 0x07000000));
    }
    for (int relu = 0; relu < 2; relu++) {
        size = (size_t)snprintf(body, sizeof body, load, 0);
        snprintf(body + size, sizeof body - size,
                 "mov.b32 %%f0, %%r2; mov.f32 %%f1, 0f40400000; cvt.rn.satfinite%s.%s.f32 %%h0, %%f0, %%f1;\n"
                 "cvt.u32.u16 %%r3, %%h0; st.global.b32 [%%p0], %%r3; ret;",
                 relu ? ".relu" : "", name);
        run_body(NULL, body, FLOATS, floats, sizeof floats, narrow, sizeof narrow);
        for (unsigned i = 0; i < FLOATS; i++) {
            float f;
            memcpy(&f, &floats[i], sizeof f);
            unsigned want = nearest((double)f, e, m);
            want = relu && !isnan(f) && (want & 0x80) ? 0 : want;
            if (narrow[i] != (want << 8 | nearest(3, e, m)))
                fail_msg("%s of %a gave %04x, not %02x", name, (double)f, narrow[i], want);
        }
    }
}

static void test_8_bits(void **state)
{
    (void)state;
    run_format("e4m3x2", 4, 3);
    run_format("e5m2x2", 5, 2);
}

static void test_pack(void **state)
{
    (void)state;
    static const int32_t in[8] = {0, 1, -1, 127, 128, 300, -128, -40000};
    uint32_t out[8][4];
    run_body(
        NULL,
        ".reg .u64 %p<3>; .reg .u32 %r<8>; .reg .s32 %i; ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1];\n"
        "mov.u32 %r0, %tid.x; mad.wide.u32 %p1, %r0, 4, %p1; mad.wide.u32 %p0, %r0, 16, %p0;\n"
        "ld.global.s32 %i, [%p1]; cvt.pack.sat.s8.s32.b32 %r1, %i, 5, 0x1234; cvt.pack.sat.u8.s32.b32 %r2, "
        "%i, 5, 0;\n"
        "cvt.pack.sat.s16.s32 %r3, %i, -2; cvt.pack.sat.u4.s32.b32 %r4, %i, 99, 1;\n"
        "st.global.v4.u32 [%p0], {%r1, %r2, %r3, %r4}; ret;",
        8, in, sizeof in, out, sizeof out);
    for (int i = 0; i < 8; i++) {
        int32_t x = in[i], s8 = x < -128 ? -128 : x > 127 ? 127 : x, u8 = x < 0 ? 0 : x > 255 ? 255 : x;
        int32_t s16 = x < -32768 ? -32768 : x, u4 = x < 0 ? 0 : x > 15 ? 15 : x;
        assert_int_equal(out[i][0], 0x12340005u | (uint32_t)(s8 & 255) << 8);
        assert_int_equal(out[i][1], 5u | (uint32_t)u8 << 8);
        assert_int_equal(out[i][2], 0xfffeu | (uint32_t)s16 << 16);
        assert_int_equal(out[i][3], 0x10fu | (uint32_t)u4 << 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_8_bits), cmocka_unit_test(test_pack)};
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
