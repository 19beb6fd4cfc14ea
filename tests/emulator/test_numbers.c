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

/* Forms without a rounding, with .ftz and .sat; float constants as operands; slct; a rounding that two roundings miss. */
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
        {"cvt.rn.f32.u64 %f5, %d0;", 0x8000008000000001, 0, 0, 0x5f000001},
        {"slct.u32.f32 %f5, 1, 2, %f0;", 0x80000000, 0, 0, 1},
        {"slct.u32.f32 %f5, 1, 2, %f0;", 0x7fc00000, 0, 0, 2},
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
