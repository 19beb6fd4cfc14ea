/* Approximate functions, within the errors that the ISA states (9.7.3, 9.7.4), for all exponents and all halves, with its
   tables of special values; min and max in all forms; other rounding modes of the host. References: the host's double
   functions, and the ISA's pseudocode. */
#include "instruction_test.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

enum { COUNT = 65536 };

typedef struct layout {
    int bits, fraction;
} layout;

static const layout f16 = {16, 10}, bf16 = {16, 7}, f32 = {32, 23}, f64 = {64, 52};

static uint64_t infinity_of(layout t)
{
    return ((UINT64_C(1) << (t.bits - 1 - t.fraction)) - 1) << t.fraction;
}

static uint64_t sign_of(layout t)
{
    return UINT64_C(1) << (t.bits - 1);
}

static double value_of(layout t, uint64_t bits)
{
    uint64_t magnitude = bits & (sign_of(t) - 1), one = UINT64_C(1) << t.fraction;
    int bias = (1 << (t.bits - 2 - t.fraction)) - 1, e = (int)(magnitude >> t.fraction);
    double v = magnitude > infinity_of(t)    ? (double)NAN
               : magnitude == infinity_of(t) ? (double)INFINITY
               : e ? ldexp((double)((magnitude & (one - 1)) | one), e - bias - t.fraction)
                   : ldexp((double)magnitude, 1 - bias - t.fraction);
    return bits & sign_of(t) ? -v : v;
}

static double smallest_normal(layout t)
{
    return value_of(t, UINT64_C(1) << t.fraction);
}

/* The distance to the neighbour of x. */
static double ulp_at(layout t, double x)
{
    int e = x != 0 && isfinite(x) ? ilogb(x) : -2000, least = ilogb(smallest_normal(t));
    return ldexp(1, (e < least ? least : e) - t.fraction);
}

typedef struct function {
    const char *instruction;
    const layout *type;
    double (*exact)(double, double);
    double relative, absolute, ulps;
    double limit; /* the ISA states no error for larger values */
    bool flushes;
} function;

#define ONE(name, value)                                                                                     \
    static double name(double x, double y)                                                                   \
    {                                                                                                        \
        (void)y;                                                                                             \
        return value;                                                                                        \
    }
ONE(exact_ex2, exp2(x))
ONE(exact_lg2, log2(x))
ONE(exact_sin, sin(x))
ONE(exact_cos, cos(x))
ONE(exact_tanh, tanh(x))
ONE(exact_rcp, 1 / x)
ONE(exact_sqrt, sqrt(x))
ONE(exact_rsqrt, 1 / sqrt(x))

static double exact_div(double x, double y)
{
    return x / y;
}

/* "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise it returns a sign-preserving zero." */
static double fast_div(double x, double y)
{
    if (!(fabs(y) > 0x1p126) || isinf(y) || isnan(x))
        return x / y;
    return isinf(x) ? (double)NAN : copysign(0, x) * copysign(1, y);
}

#define PI 3.14159265358979323846

static const function functions[] = {
    /*                                                       relative    absolute   ulps   limit */
    {"ex2.approx.f32 %f5, %f0;", &f32, exact_ex2, 0, 0, 2, INFINITY, false},
    {"ex2.approx.ftz.f32 %f5, %f0;", &f32, exact_ex2, 0, 0, 2, INFINITY, true},
    {"lg2.approx.f32 %f5, %f0;", &f32, exact_lg2, 0x1p-22, 0x1p-22, 0, INFINITY, false},
    {"lg2.approx.ftz.f32 %f5, %f0;", &f32, exact_lg2, 0x1p-22, 0x1p-22, 0, INFINITY, true},
    {"sin.approx.f32 %f5, %f0;", &f32, exact_sin, 0, 0x1.6a09p-21, 0, 2 * PI, false},
    {"cos.approx.f32 %f5, %f0;", &f32, exact_cos, 0, 0x1.6a09p-21, 0, 2 * PI, false},
    {"sin.approx.ftz.f32 %f5, %f0;", &f32, exact_sin, 0, 0x1.3b2bp-15, 0, 100 * PI, true},
    {"cos.approx.ftz.f32 %f5, %f0;", &f32, exact_cos, 0, 0x1.3b2bp-15, 0, 100 * PI, true},
    {"tanh.approx.f32 %f5, %f0;", &f32, exact_tanh, 0x1p-11, 0, 0, INFINITY, false},
    {"rcp.approx.f32 %f5, %f0;", &f32, exact_rcp, 0, 0, 1, INFINITY, false},
    {"rcp.approx.ftz.f32 %f5, %f0;", &f32, exact_rcp, 0, 0, 1, INFINITY, true},
    {"sqrt.approx.f32 %f5, %f0;", &f32, exact_sqrt, 0x1p-23, 0, 0, INFINITY, false},
    {"sqrt.approx.ftz.f32 %f5, %f0;", &f32, exact_sqrt, 0x1p-23, 0, 0, INFINITY, true},
    {"rsqrt.approx.f32 %f5, %f0;", &f32, exact_rsqrt, 0x1.125p-23, 0, 0, INFINITY, false},
    {"rsqrt.approx.ftz.f32 %f5, %f0;", &f32, exact_rsqrt, 0x1.125p-23, 0, 0, INFINITY, true},
    {"div.approx.f32 %f5, %f0, %f1;", &f32, fast_div, 0, 0, 2, INFINITY, false},
    {"div.approx.ftz.f32 %f5, %f0, %f1;", &f32, fast_div, 0, 0, 2, INFINITY, true},
    {"div.full.f32 %f5, %f0, %f1;", &f32, exact_div, 0, 0, 2, INFINITY, false},
    {"div.full.ftz.f32 %f5, %f0, %f1;", &f32, exact_div, 0, 0, 2, INFINITY, true},
    {"tanh.approx.f16 %h5, %h0;", &f16, exact_tanh, 0, 0x1.024p-11, 0, INFINITY, false},
    {"tanh.approx.bf16 %h5, %h0;", &bf16, exact_tanh, 0, 0x1p-8, 0, INFINITY, false},
    {"ex2.approx.f16 %h5, %h0;", &f16, exact_ex2, 0x1.125p-10, 0, 0, INFINITY, false},
    {"ex2.approx.ftz.bf16 %h5, %h0;", &bf16, exact_ex2, 0x1p-7, 0, 0, INFINITY, true},
    {"mov.b32 %f0, {%h0, %h0}; tanh.approx.f16x2 %f1, %f0; mov.b32 {%h5, %h1}, %f1;", &f16, exact_tanh, 0,
     0x1.024p-11, 0, INFINITY, false},
    {"mov.b32 %f0, {%h1, %h0}; ex2.approx.f16x2 %f1, %f0; mov.b32 {%h1, %h5}, %f1;", &f16, exact_ex2,
     0x1.125p-10, 0, 0, INFINITY, false},
    {"mov.b32 %f0, {%h1, %h0}; tanh.approx.bf16x2 %f1, %f0; mov.b32 {%h1, %h5}, %f1;", &bf16, exact_tanh, 0,
     0x1p-8, 0, INFINITY, false},
    {"mov.b32 %f0, {%h1, %h0}; ex2.approx.ftz.bf16x2 %f1, %f0; mov.b32 {%h1, %h5}, %f1;", &bf16, exact_ex2,
     0x1p-7, 0, 0, INFINITY, true},
};

static double flushed(const function *f, double x)
{
    return f->flushes && fabs(x) < smallest_normal(*f->type) ? copysign(0, x) : x;
}

/* True within the stated error, or within half a step below the smallest normal number, which a relative error does not
   cover. */
static bool is_within(const function *f, double exact, double got)
{
    double largest = value_of(*f->type, infinity_of(*f->type) - 1), small = smallest_normal(*f->type);
    double allowed = f->relative * fabs(exact) > f->absolute ? f->relative * fabs(exact) : f->absolute;
    double by_ulps = f->ulps * ulp_at(*f->type, exact);
    allowed = by_ulps > allowed ? by_ulps : allowed;
    allowed += fabs(exact) < small ? ulp_at(*f->type, 0) / 2 : 0;
    if (isnan(exact))
        return isnan(got);
    if (isinf(got) && !isinf(exact))
        return fabs(exact) + allowed > largest && (got > 0) == (exact > 0);
    if (isinf(exact))
        return got == exact;
    if (got == 0 && f->flushes && fabs(exact) < small + allowed)
        return exact == 0 ? signbit(got) == signbit(exact) : true;
    if (f->flushes && got != 0 && fabs(got) < small)
        return false;
    if (exact == 0)
        return got == 0 ? signbit(got) == signbit(exact) : fabs(got) <= allowed;
    return fabs(got - exact) <= allowed;
}

static uint64_t in[COUNT][3], out[COUNT];

/* All halves; for f32 all signs and exponents, and the values in the tables. */
static void fill(layout t)
{
    static const uint64_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0xffffffff, 1,          0x80000001, 0x7fffff,   0x800000,
                                       0x3f800000, 0xbf800000, 0x7f7fffff, 0x7e800000, 0x7e800001};
    enum { SPECIAL = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++) {
        in[i][0] = t.bits == 16 ? (uint64_t)i : (uint64_t)i << 16 | (random_bits() >> 20 & 0xffff);
        in[i][1] = random_bits() >> 12 & UINT32_MAX;
        if (t.bits == 32 && i % 16 == 0) /* the range where sin, cos, ex2 and tanh are not constant */
            in[i][0] = (in[i][0] & 0x80ffffff) | (0x3b + random_bits() % 9) << 24;
        if (i % 8 == 1) /* quotients near one, and near the ends of the range */
            in[i][1] = in[i][0] ^ (random_bits() >> 20 & 0x80ffffff);
        if (t.bits == 32 && i < SPECIAL * SPECIAL) {
            in[i][0] = special[i % SPECIAL];
            in[i][1] = special[i / SPECIAL];
        }
    }
}

static void test_approximations(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        const function *f = &functions[n];
        bool divides = f->exact == fast_div || f->exact == exact_div;
        fill(*f->type);
        run_instruction(NULL, f->instruction, COUNT, in, out);
        for (int i = 0; i < COUNT; i++) {
            double x = flushed(f, value_of(*f->type, in[i][0])), y = flushed(f, value_of(*f->type, in[i][1]));
            double got = value_of(*f->type, out[i]), exact = f->exact(x, y);
            if (f->exact == fast_div && y != 0 && fabs(y) < 0x1p-126)
                continue; /* the ISA states no error */
            if (isfinite(x) && fabs(x) > f->limit ? !(fabs(got) <= 1) : !is_within(f, exact, got))
                fail_msg("%s of %a%s%a gave %a, exactly %a", f->instruction, x, divides ? " and " : ", not ",
                         y, got, exact);
        }
    }
}

/* The tables of 9.7.3.14 and 9.7.3.17. Only the upper half of a finite value is used and returned. */
static void test_upper_halves(void **state)
{
    (void)state;
    enum { INFINITE = 0x7ff00000, QUIET = 0x7fffffff };
    static const uint32_t table[][3] = {
        /* a          rcp         rsqrt */
        {0xfff00000, 0x80000000, QUIET},      {0x80000001, 0xfff00000, 0xfff00000},
        {0x80000000, 0xfff00000, 0xfff00000}, {0x00000000, INFINITE, INFINITE},
        {0x000fffff, INFINITE, INFINITE},     {INFINITE, 0, 0},
        {0x7ff80000, QUIET, QUIET},           {0xfff00001, QUIET, QUIET},
        {0xbff00000, 0xbff00000, QUIET},      {0x3ff00000, 0x3ff00000, 0x3ff00000},
        {0x40100000, 0x3fd00000, 0x3fe00000}, {0x7fe00000, 0, 0x1ff6a09e},
    };
    static const char *const instructions[] = {"rcp.approx.ftz.f64 %d5, %d0;",
                                               "rsqrt.approx.ftz.f64 %d5, %d0;"};
    enum { ROWS = sizeof table / sizeof *table };
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < ROWS; i++)
            in[i][0] = (uint64_t)table[i][0] << 32;
        run_instruction(NULL, instructions[k], ROWS, in, out);
        for (int i = 0; i < ROWS; i++)
            if (out[i] != (uint64_t)table[i][1 + k] << 32)
                fail_msg("%s of %08x gave %llx", instructions[k], table[i][0], (unsigned long long)out[i]);
    }
}

typedef struct extreme {
    const char *instruction; /* %a stands for %f, %h or %d */
    const layout *type;
    int inputs;
    bool is_max, flushes, propagates, xorsign, abs;
} extreme;

static const extreme extremes[] = {
    {"min.f32 %f5, %f0, %f1;", &f32, 2, false, false, false, false, false},
    {"max.f32 %f5, %f0, %f1;", &f32, 2, true, false, false, false, false},
    {"min.ftz.NaN.f32 %f5, %f0, %f1;", &f32, 2, false, true, true, false, false},
    {"max.xorsign.abs.f32 %f5, %f0, %f1;", &f32, 2, true, false, false, true, true},
    {"min.ftz.NaN.xorsign.abs.f32 %f5, %f0, %f1;", &f32, 2, false, true, true, true, true},
    {"min.f32 %f5, %f0, %f1, %f2;", &f32, 3, false, false, false, false, false},
    {"max.f32 %f5, %f0, %f1, %f2;", &f32, 3, true, false, false, false, false},
    {"max.ftz.NaN.f32 %f5, %f0, %f1, %f2;", &f32, 3, true, true, true, false, false},
    {"min.abs.f32 %f5, %f0, %f1, %f2;", &f32, 3, false, false, false, false, true},
    {"max.NaN.abs.f32 %f5, %f0, %f1, %f2;", &f32, 3, true, false, true, false, true},
    {"min.f64 %d5, %d0, %d1;", &f64, 2, false, false, false, false, false},
    {"max.f64 %d5, %d0, %d1;", &f64, 2, true, false, false, false, false},
    {"min.f16 %h5, %h0, %h1;", &f16, 2, false, false, false, false, false},
    {"max.f16 %h5, %h0, %h1;", &f16, 2, true, false, false, false, false},
    {"max.ftz.f16 %h5, %h0, %h1;", &f16, 2, true, true, false, false, false},
    {"max.NaN.xorsign.abs.f16 %h5, %h0, %h1;", &f16, 2, true, false, true, true, true},
    {"min.bf16 %h5, %h0, %h1;", &bf16, 2, false, false, false, false, false},
    {"max.bf16 %h5, %h0, %h1;", &bf16, 2, true, false, false, false, false},
    {"max.NaN.bf16 %h5, %h0, %h1;", &bf16, 2, true, false, true, false, false},
    {"min.xorsign.abs.bf16 %h5, %h0, %h1;", &bf16, 2, false, false, false, true, true},
    {"mov.b32 %f0, {%h2, %h0}; mov.b32 %f1, {%h2, %h1}; min.f16x2 %f2, %f0, %f1; mov.b32 {%h0, %h5}, %f2;",
     &f16, 2, false, false, false, false, false},
    {"mov.b32 %f0, {%h0, %h2}; mov.b32 %f1, {%h1, %h2}; max.f16x2 %f2, %f0, %f1; mov.b32 {%h5, %h0}, %f2;",
     &f16, 2, true, false, false, false, false},
    {"mov.b32 %f0, {%h2, %h0}; mov.b32 %f1, {%h2, %h1}; min.NaN.f16x2 %f2, %f0, %f1; mov.b32 {%h0, %h5}, "
     "%f2;",
     &f16, 2, false, false, true, false, false},
    {"mov.b32 %f0, {%h0, %h2}; mov.b32 %f1, {%h1, %h2}; max.xorsign.abs.bf16x2 %f2, %f0, %f1; mov.b32 {%h5, "
     "%h0}, %f2;",
     &bf16, 2, true, false, false, true, true},
};

/* 9.7.3.11: -0 is below +0. A NaN is the largest pattern. */
static uint64_t extreme_of(const extreme *e, uint64_t x, uint64_t y)
{
    uint64_t sign = sign_of(*e->type), infinity = infinity_of(*e->type);
    bool x_nan = (x & (sign - 1)) > infinity, y_nan = (y & (sign - 1)) > infinity;
    if ((x_nan && y_nan) || (e->propagates && (x_nan || y_nan)))
        return sign - 1;
    if (x_nan || y_nan)
        return x_nan ? y : x;
    double a = value_of(*e->type, x), b = value_of(*e->type, y);
    bool is_less = a < b || (a == b && signbit(a) && !signbit(b));
    return is_less != e->is_max ? x : y;
}

static uint64_t expected_extreme(const extreme *e, const uint64_t values[3])
{
    uint64_t sign = sign_of(*e->type), v[3];
    for (int i = 0; i < 3; i++) {
        v[i] = values[i] & (sign - 1 + sign);
        if (e->flushes && !(v[i] & infinity_of(*e->type)))
            v[i] &= sign;
    }
    uint64_t xorsign = (v[0] ^ v[1]) & sign;
    for (int i = 0; i < 3; i++)
        v[i] &= e->abs ? sign - 1 : UINT64_MAX;
    uint64_t d = extreme_of(e, v[0], v[1]);
    if (e->inputs == 3)
        d = extreme_of(e, d, v[2]);
    return e->xorsign && (d & (sign - 1)) <= infinity_of(*e->type) ? (d & (sign - 1)) | xorsign : d;
}

static void test_extremes(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof extremes / sizeof *extremes; n++) {
        const extreme *e = &extremes[n];
        layout t = *e->type;
        const uint64_t some[] = {0,
                                 sign_of(t),
                                 infinity_of(t),
                                 infinity_of(t) | sign_of(t),
                                 infinity_of(t) + 1,
                                 sign_of(t) - 1,
                                 1,
                                 sign_of(t) | 1,
                                 infinity_of(t) / 2};
        for (int i = 0; i < COUNT; i++)
            for (int k = 0; k < 3; k++) {
                uint64_t r = random_bits();
                in[i][k] = r & 1        ? some[(r >> 8) % 9]
                           : r & 2 && k ? in[i][k - 1] ^ (r & sign_of(t))
                                        : r >> (64 - t.bits);
            }
        run_instruction(".version 8.8\n.target sm_100", e->instruction, COUNT, in, out);
        for (int i = 0; i < COUNT; i++) {
            uint64_t want = expected_extreme(e, in[i]);
            if (out[i] != want)
                fail_msg("%s of %llx %llx %llx gave %llx, not %llx", e->instruction,
                         (unsigned long long)in[i][0], (unsigned long long)in[i][1],
                         (unsigned long long)in[i][2], (unsigned long long)out[i], (unsigned long long)want);
        }
    }
}

/* Like a program that rounds down and is linked with -ffast-math. */
static void test_host_environment(void **state)
{
    fenv_t host;
    (void)state;
    fegetenv(&host);
    fesetround(FE_DOWNWARD);
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* subnormals are zeros */
#endif
    for (int i = 0; i < COUNT; i++) {
        in[i][0] = i & 1 ? 0x00800000 : 0x3f800000; /* 2^-126 / 2 and 1 / 3 */
        in[i][1] = i & 1 ? 0x40000000 : 0x40400000;
    }
    run_instruction(NULL, "div.rn.f32 %f5, %f0, %f1;", COUNT, in, out);
    assert_int_equal(fegetround(), FE_DOWNWARD);
    fesetenv(&host);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(out[i], i & 1 ? 0x00400000 : 0x3eaaaaab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_environment), /* first, since it starts the driver's threads */
        cmocka_unit_test(test_approximations), cmocka_unit_test(test_upper_halves),
        cmocka_unit_test(test_extremes)};
    return cmocka_run_group_tests(tests, begin_100, end_context);
}
