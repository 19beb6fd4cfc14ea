/* Floats in each rounding mode, against the host's arithmetic; single values that the ISA's text defines. */
#include "instruction_test.h"

#include <fenv.h>
#include <math.h>

enum { COUNT = 4096 };

/* Any bits; close exponents, so that sums cancel; subnormals; zeros, infinities, NaNs and the ends of the range. */
static void random_words(uint64_t (*in)[3])
{
    static const uint64_t singles[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                       0x7fc00000, 1,          0x3f800000, 0x7f7fffff};
    static const uint64_t doubles[] = {
        0, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
        1, 0x3ff0000000000000, 0x7fefffffffffffff};
    for (int i = 0; i < COUNT; i++) {
        for (int n = 0; n < 3; n++)
            in[i][n] = random_bits();
        if (i % 2)
            in[i][1] = (in[i][0] & 0x7ff0000000000000) ^ (in[i][1] & 0x800fffffffffffff);
        if (i % 7 == 0)
            in[i][0] &= 0xffffffff800fffff; /* f32 subnormals */
        for (int n = 0; n < 3 && i % 8 == 5; n++)
            in[i][n] = (i % 16 == 5 ? singles : doubles)[random_bits() >> 20 & 7];
    }
}

static float float_of(uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return f == f ? u : 0x7fffffff;
}

static uint64_t double_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return d == d ? u : 0x7fffffffffffffff;
}

static uint64_t host_result(const char *op, bool wide, const uint64_t in[3])
{
    volatile double a = double_of(in[0]), b = double_of(in[1]), c = double_of(in[2]);
    volatile float x = float_of(in[0]), y = float_of(in[1]), z = float_of(in[2]);
    volatile double d = 0;
    volatile float f = 0;
    switch (op[0]) {
    case 'a':
        d = a + b;
        f = x + y;
        break;
    case 's':
        d = op[1] == 'u' ? a - b : sqrt(a);
        f = op[1] == 'u' ? x - y : sqrtf(x);
        break;
    case 'm':
        d = a * b;
        f = x * y;
        break;
    case 'f':
        d = fma(a, b, c);
        f = fmaf(x, y, z);
        break;
    case 'd':
        d = a / b;
        f = x / y;
        break;
    default:
        d = 1 / a;
        f = 1 / x;
    }
    return wide ? double_bits(d) : float_bits(f);
}

static void test_rounding_modes(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"};
    static const char *const arguments[] = {"2", "2", "2", "3", "2", "1", "1"};
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
    static uint64_t in[COUNT][3], out[COUNT];
    for (int k = 0; k < 7; k++)
        for (int m = 0; m < 4; m++)
            for (int wide = 0; wide < 2; wide++) {
                char instruction[256], sources[32] = "";
                const char *r = wide ? "%d" : "%f";
                for (int n = 0; n < arguments[k][0] - '0'; n++)
                    snprintf(sources + strlen(sources), sizeof sources - strlen(sources), ", %s%d", r, n);
                snprintf(instruction, sizeof instruction, "%s.%s.%s %s5%s;", ops[k], modes[m].name,
                         wide ? "f64" : "f32", r, sources);
                random_words(in);
                run_instruction(NULL, instruction, COUNT, in, out);
                for (int i = 0; i < COUNT; i++) {
                    fesetround(modes[m].mode);
                    uint64_t want = host_result(ops[k], wide, in[i]);
                    fesetround(FE_TONEAREST);
                    if (out[i] != want)
                        fail_msg("%s of %016llx %016llx %016llx gave %016llx, expected %016llx", instruction,
                                 (unsigned long long)in[i][0], (unsigned long long)in[i][1],
                                 (unsigned long long)in[i][2], (unsigned long long)out[i],
                                 (unsigned long long)want);
                }
            }
}

typedef struct one_value {
    const char *instruction;
    uint64_t a, b, c, want;
} one_value;

/* Single values that the ISA's text defines: NaN, saturation, flushing, ties, ranges. */
static void test_values(void **state)
{
    (void)state;
    static const one_value values[] = {
        {"add.rn.f32 %f5, %f0, 0f3f000000;", 0x3f800000, 0, 0, 0x3fc00000},
        {"fma.rn.f32 %f5, %f0, 0f40000000, 0f3f800000;", 0x3f800000, 0, 0, 0x40400000},
        {"add.rn.f64 %d5, %d0, 0d3fe0000000000000;", 0x3ff0000000000000, 0, 0, 0x3ff8000000000000},
        {"mul.rn.f64 %d5, %d0, 0dc000000000000000;", 0x3ff8000000000000, 0, 0, 0xc008000000000000},
        {"set.geu.f32.f32 %f5, %f0, 0f3f800000;", 0x7fc00000, 0, 0, 0x3f800000},
        {"set.lt.u32.f64 %f5, %d0, 0d4000000000000000;", 0x3fffffffffffffff, 0, 0, 0xffffffff},
        {"add.f32 %f5, %f0, %f1;", 0x7f800000, 0xff800000, 0, 0x7fffffff},
        {"add.sat.f32 %f5, %f0, %f1;", 0x7fc00001, 0, 0, 0},
        {"add.sat.f32 %f5, %f0, %f1;", 0x40000000, 0, 0, 0x3f800000},
        {"add.ftz.f32 %f5, %f0, %f1;", 0x80000001, 0x80000000, 0, 0x80000000},
        {"mul.f32 %f5, %f0, %f1;", 1, 0x3f000000, 0, 0},
        {"min.f32 %f5, %f0, %f1;", 0x80000000, 0, 0, 0x80000000},
        {"max.f32 %f5, %f0, %f1;", 0x80000000, 0, 0, 0},
        {"max.f32 %f5, %f0, %f1;", 0x7fc00000, 0x3f800000, 0, 0x3f800000},
        {"max.NaN.f32 %f5, %f0, %f1;", 0x7fc00000, 0x3f800000, 0, 0x7fffffff},
        {"min.xorsign.abs.f32 %f5, %f0, %f1;", 0xc0000000, 0x3f800000, 0, 0xbf800000},
        {"cvt.rni.s32.f32 %f5, %f0;", 0x3fc00000, 0, 0, 2},
        {"cvt.rni.s32.f32 %f5, %f0;", 0x40200000, 0, 0, 2},
        {"cvt.rzi.s32.f32 %f5, %f0;", 0x4f800000, 0, 0, 0x7fffffff},
        {"cvt.rzi.u32.f32 %f5, %f0;", 0xbf800000, 0, 0, 0},
        {"cvt.rzi.u32.f32 %f5, %f0;", 0x4f7fffff, 0, 0, 0xffffff00},
        {"cvt.rmi.s32.f32 %f5, %f0;", 0x80000001, 0, 0, 0xffffffff},
        {"cvt.rmi.ftz.s32.f32 %f5, %f0;", 0x80000001, 0, 0, 0},
        {"cvt.rzi.s32.f32 %f5, %f0;", 0x7fc00000, 0, 0, 0},
        {"cvt.rzi.s64.f32 %d5, %f0;", 0x7fc00000, 0, 0, 0x8000000000000000},
        {"cvt.rzi.u32.f64 %f5, %d0;", 0x7ff8000000000000, 0, 0, 0x80000000},
        {"cvt.rzi.s8.f32 %f5, %f0;", 0xc3960000, 0, 0, 0xffffff80}, /* -300 */
        {"cvt.sat.u8.s32 %f5, %f0;", 0xffffffff, 0, 0, 0},
        {"cvt.sat.s8.s32 %f5, %f0;", 200, 0, 0, 127},
        {"cvt.rn.f32.u64 %f5, %d0;", 0x8000008000000001, 0, 0, 0x5f000001},
        {"cvt.rz.f32.s32 %f5, %f0;", 0x7fffffff, 0, 0, 0x4effffff},
        {"cvt.rp.f16.f32 %h0, %f0; mov.b16 %h5, %h0;", 0x3f800001, 0, 0, 0x3c01},
        {"cvt.rn.f16.f32 %h0, %f0; mov.b16 %h5, %h0;", 0x477ff000, 0, 0, 0x7c00},
        {"cvt.rn.f16.f32 %h0, %f0; mov.b16 %h5, %h0;", 0x33000001, 0, 0, 1},
        {"cvt.rn.satfinite.f16.f32 %h0, %f0; mov.b16 %h5, %h0;", 0x7f800000, 0, 0, 0x7bff},
        {"cvt.rn.relu.bf16.f32 %h0, %f0; mov.b16 %h5, %h0;", 0xbf800000, 0, 0, 0},
        {"cvt.rn.bf16x2.f32 %f5, %f0, %f1;", 0x3f800000, 0x40008000, 0, 0x3f804000},
        {"cvt.rn.relu.f16x2.f32 %f5, %f0, %f1;", 0xbf800000, 0x40000000, 0, 0x4000},
        {"cvt.rna.tf32.f32 %f5, %f0;", 0x3f801000, 0, 0, 0x3f802000},
        {"cvt.rn.tf32.f32 %f5, %f0;", 0x3f801000, 0, 0, 0x3f800000},
        {"cvt.f32.f16 %f5, %h0;", 1, 0, 0, 0x33800000},
        {"cvt.rn.f32.f64 %f5, %d0;", 0x3ff0000010000000, 0, 0, 0x3f800000},
        {"cvt.rpi.f64.f64 %d5, %d0;", 0xbfe0000000000000, 0, 0, 0x8000000000000000},
        {"div.s32 %f5, %f0, %f1;", 0x80000000, 0xffffffff, 0, 0x80000000},
        {"rem.s32 %f5, %f0, %f1;", 0xfffffff9, 3, 0, 0xffffffff},
        {"bfe.s32 %f5, %f0, 28, 8;", 0x80000000, 0, 0, 0xfffffff8},
        {"bfe.u64 %d5, %d0, 60, 8;", 0xf000000000000000, 0, 0, 15},
        {"lop3.b32 %f5, %f0, %f1, %f2, 0xe8;", 0xff00ff00, 0xf0f0f0f0, 0xcccccccc, 0xfcc0fcc0},
        {"prmt.b32 %f5, %f0, %f1, 0xba73;", 0x80112233, 0x8899aabb, 0, 0xff008880},
        {"dp4a.s32.u32 %f5, %f0, %f1, %f2;", 0xff01ff01, 0xff02ff02, 5, 0xfffffe0b},
        {"szext.wrap.s32 %f5, %f0, 36;", 0x8, 0, 0, 0xfffffff8},
        {"bmsk.clamp.b32 %f5, 4, 8;", 0, 0, 0, 0xff0},
        {"fns.b32 %f5, %f0, 3, -1;", 0xaaaaaaaa, 0, 0, 3},
        {"mad.hi.sat.s32 %f5, %f0, %f1, %f2;", 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff},
        {"add.cc.u32 %f5, %f0, %f1; addc.u32 %f5, 0, 0;", 0xffffffff, 1, 0, 1},
        {"rcp.approx.ftz.f64 %d5, %d0;", 0x4000000012345678, 0, 0, 0x3fe0000000000000},
        {"slct.u32.f32 %f5, 1, 2, %f0;", 0x80000000, 0, 0, 1},
        {"slct.u32.f32 %f5, 1, 2, %f0;", 0x7fc00000, 0, 0, 2},
        {"set.ltu.f32.f32 %f5, %f0, %f1;", 0x7fc00000, 0, 0, 0x3f800000},
        {"set.lt.u32.f16 %f5, %h0, %h0;", 0x7e00, 0, 0, 0},
        {"tanh.approx.f32 %f5, %f0;", 0x80000001, 0, 0, 0x80000001},
        {"ex2.approx.f32 %f5, %f0;", 0xc3150000, 0, 0, 1}, /* 2^-149 */
        {"ex2.approx.ftz.f32 %f5, %f0;", 0xc3150000, 0, 0, 0},
        {"lg2.approx.f32 %f5, %f0;", 0x80000000, 0, 0, 0xff800000},
        {"rsqrt.approx.f32 %f5, %f0;", 0x80000000, 0, 0, 0xff800000},
        {"sin.approx.f32 %f5, %f0;", 0x80000000, 0, 0, 0x80000000},
        {"sin.approx.f32 %f5, %f0;", 0x7f800000, 0, 0, 0x7fffffff},
    };
    static uint64_t in[COUNT][3], out[COUNT];
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        const one_value *v = &values[k];
        for (int i = 0; i < COUNT; i++) {
            in[i][0] = v->a;
            in[i][1] = v->b;
            in[i][2] = v->c;
        }
        run_instruction(NULL, v->instruction, COUNT, in, out);
        for (int i = 0; i < COUNT; i += COUNT - 1)
            if (out[i] != v->want)
                fail_msg("%s gave %llx, expected %llx", v->instruction, (unsigned long long)out[i],
                         (unsigned long long)v->want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_modes),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
