/* Inexact sums of mma.sync. For f64 the ISA defines a chain of fused multiply-adds. For the other floats it leaves
   order and rounding open; the model is the published one that exec/tensor.h describes, written here again in
   doubles. */
#include "mma_form.h"

#include <fenv.h>

typedef struct model {
    int fraction_bits, terms, result_bits;
    bool unpacks;
} model;

static bool is_narrow(const element *t)
{
    return t->bits <= 8 && t->exponent;
}

static model model_of(int device, const mma_form *f)
{
    if (is_narrow(f->a) && device < 90)
        return (model){13, 16, 13, false};
    if (device >= 90)
        return (model){25, 256, 23, is_narrow(f->a) && device < 120};
    return (model){24, f->a->bits == 32 ? 4 : 8, 23, false};
}

/* The exponent that a value has in the sum; subnormals have that of the smallest normal number. */
static int exponent_of(const element *t, double v)
{
    int lowest = 2 - (1 << (t->exponent - 1));
    return v != 0 && ilogb(v) > lowest ? ilogb(v) : lowest;
}

/* Converts to the result type: f16 is rounded to nearest, f32 truncated after `bits` fractional bits. */
static double finish(const element *t, double sum, int bits)
{
    bool is_half = t->bits == 16;
    if (!isfinite(sum))
        return sum;
    double step = ldexp(1, exponent_of(t, sum) - (is_half ? 10 : bits)), limit = is_half ? 65520 : 0x1p128;
    double result = (is_half ? nearbyint(sum / step) : trunc(sum / step)) * step;
    return fabs(result) >= limit ? copysign((double)INFINITY, sum) : result == 0 ? 0 : result;
}

/* Each product has a scale, 1 without block scaling, which adds to its exponent. */
typedef struct dot {
    int count;
    double a[64], b[64], scale[64];
    int exponent[64];
} dot;

/* One step: aligns the terms and c to the largest exponent, truncates and adds them. */
static double add_terms(model m, const mma_form *f, const dot *v, int from, int to, double c)
{
    double plain = c, sum = 0;
    for (int n = from; n < to; n++)
        plain += v->a[n] * v->b[n] * v->scale[n];
    if (!isfinite(plain))
        return plain;
    int largest = c != 0 ? exponent_of(f->d, c) : -126;
    for (int n = from; n < to; n++) {
        int e = exponent_of(f->a, v->a[n]) + exponent_of(f->b, v->b[n]) + v->exponent[n];
        largest = v->a[n] * v->b[n] * v->scale[n] != 0 && e > largest ? e : largest;
    }
    double step = ldexp(1, largest - m.fraction_bits);
    for (int n = from; n < to; n++)
        sum += trunc(v->a[n] * v->b[n] * v->scale[n] / step);
    return finish(f->d, (sum + trunc(c / step)) * step, m.result_bits);
}

static dot part_of(const dot *v, int wanted)
{
    dot part = {0};
    for (int n = 0; n < v->count; n++)
        if ((n & 2) == wanted) {
            part.a[part.count] = v->a[n];
            part.scale[part.count] = 1;
            part.b[part.count++] = v->b[n];
        }
    return part;
}

static double modelled(model m, const mma_form *f, const dot *v, double c)
{
    if (m.unpacks) {
        dot low = part_of(v, 0), high = part_of(v, 2);
        double sum = add_terms(m, f, &low, 0, low.count, 0);
        sum = add_terms(m, f, &high, 0, high.count, sum);
        return f->d->bits == 16 ? finish(f->d, sum + c, 0) : (double)((float)sum + (float)c);
    }
    for (int n = 0; n < v->count; n += m.terms)
        c = add_terms(m, f, v, n, n + m.terms < v->count ? n + m.terms : v->count, c);
    return c;
}

/* Run 0: any bits; 1: similar exponents, so that terms cancel each other and C; 2: subnormals and the smallest normal
   numbers. */
static double random_value(const element *t, int run, int spread)
{
    uint64_t bits = random_bits() & low_bits(1 + t->exponent + t->fraction);
    uint64_t exponents = low_bits(t->exponent) << t->fraction;
    int bias = (1 << (t->exponent - 1)) - 1,
        e = bias - spread / 2 + (int)(random_bits() % (unsigned)(spread + 1));
    if (run == 2)
        e = (int)(random_bits() & 1);
    if (run)
        bits = (bits & ~exponents) | (uint64_t)(e < 0 ? 0 : e) << t->fraction;
    else if (random_bits() % 64) /* few infinities and NaNs */
        bits &= ~(UINT64_C(1) << t->fraction);
    double v = element_value(t, bits << t->shift);
    return isfinite(v) || random_bits() % 32 == 0 ? v : 0;
}

/* .ue8m0: near 1 or any; .ue4m3: any. Seldom a NaN. */
static uint8_t random_scale(const mma_form *f, int run)
{
    unsigned bits = (unsigned)(random_bits() & 255);
    if (f->is_ue4m3)
        return (uint8_t)(bits < 255 ? bits % 127 : 0x7f);
    return (uint8_t)(run ? 120 + bits % 12 : bits);
}

static void fill(const mma_form *f, matrices *m, int run)
{
    int spread = f->a->exponent > 4 ? 10 : 4;
    for (int n = 0; n < 16 * 4; n++)
        m->scale_a[n / 4][n % 4] = random_scale(f, run);
    for (int n = 0; n < 8 * 4; n++)
        m->scale_b[n / 4][n % 4] = random_scale(f, run);
    for (int q = 0; q < f->products; q++) {
        for (int n = 0; n < f->m * f->k; n++)
            m->a[q][n / f->k][n % f->k] = random_value(f->a, run, spread);
        for (int n = 0; n < f->k * 8; n++)
            m->b[q][n / 8][n % 8] = random_value(f->b, run, spread);
        for (int n = 0; n < f->m * 8; n++)
            m->c[q][n / 8][n % 8] = n % 5 ? random_value(f->c, run, 2 * spread) : 0;
    }
}

static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

/* A .ue4m3 has a bit more before the point than an exponent. */
static int scale_exponent(const mma_form *f, unsigned code)
{
    return f->is_ue4m3 ? (code >= 8 ? (int)code / 8 : 1) - 7 + 1 : (int)code - 127;
}

static double expected(model m, const mma_form *f, const matrices *v, int q, int i, int j)
{
    dot d = {.count = f->k};
    for (int k = 0; k < f->k; k++) {
        int chunk = k * f->chunks / f->k;
        d.a[k] = v->a[q][i][k];
        d.b[k] = v->b[q][k][j];
        d.scale[k] = 1;
        if (f->chunks) {
            d.scale[k] = scale_value(f, v->scale_a[i][chunk]) * scale_value(f, v->scale_b[j][chunk]);
            d.exponent[k] = scale_exponent(f, v->scale_a[i][chunk]) + scale_exponent(f, v->scale_b[j][chunk]);
        }
    }
    if (f->a->bits != 64)
        return modelled(m, f, &d, v->c[q][i][j]);
    volatile double sum = v->c[q][i][j];
    fesetround(f->rounding == 'z'   ? FE_TOWARDZERO
               : f->rounding == 'm' ? FE_DOWNWARD
               : f->rounding == 'p' ? FE_UPWARD
                                    : FE_TONEAREST);
    for (int k = 0; k < f->k; k++)
        sum = fma(d.a[k], d.b[k], sum);
    fesetround(FE_TONEAREST);
    return sum;
}

typedef struct sum_form {
    const char *name;
    int target;
} sum_form;

static const sum_form forms[] = {
    {"m8n8k4.row.col.f32.f16.f16.f32", 75},
    {"m8n8k4.col.row.f16.f16.f16.f16", 75},
    {"m16n8k8.row.col.f32.f16.f16.f32", 75},
    {"m16n8k8.row.col.f16.f16.f16.f16", 75},
    {"m16n8k16.row.col.f32.f16.f16.f32", 80},
    {"m16n8k16.row.col.f16.f16.f16.f16", 80},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 80},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 80},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 80},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 80},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 89},
    {"m16n8k32.row.col.f16.e5m2.e4m3.f16", 89},
    {"m16n8k16.row.col.f32.e5m2.e5m2.f32", 89},
    {"m16n8k16.row.col.f16.e4m3.e4m3.f16", 89},
    {"m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", 120},
    {"m16n8k32.row.col.kind::f8f6f4.f16.e2m3.e5m2.f16", 120},
    {"m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", 120},
    {"m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m1.e5m2.f32.ue8m0", 120},
    {"m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", 120},
    {"m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", 120},
    {"m8n8k4.row.col.f64.f64.f64.f64", 80},
    {"m8n8k4.row.col.rz.f64.f64.f64.f64", 80},
    {"m16n8k4.row.col.rm.f64.f64.f64.f64", 90},
    {"m16n8k8.row.col.rp.f64.f64.f64.f64", 90},
    {"m16n8k16.row.col.rn.f64.f64.f64.f64", 90},
    {"m16n8k16.row.col.rz.f64.f64.f64.f64", 90},
};

static const int devices[] = {90, 120, 100, 89, 80, 75};

static void check_form(const char *header, int device, const mma_form *f)
{
    static matrices m;
    model how = model_of(device, f);
    for (int run = 0; run < 24; run++) {
        fill(f, &m, run % 3);
        run_form(header, f, &m);
        for (int q = 0; q < f->products; q++)
            for (int i = 0; i < f->m; i++)
                for (int j = 0; j < 8; j++)
                    if (!same(m.d[q][i][j], expected(how, f, &m, q, i, j)))
                        fail_msg("sm_%d, %s, run %d: D[%d][%d] is %a, not %a", device, f->name, run, i, j,
                                 m.d[q][i][j], expected(how, f, &m, q, i, j));
    }
}

/* Checks every form on every device that has it. */
static void check_all(void (*check)(const char *header, int device, const mma_form *f))
{
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        char header[64];
        CUcontext context;
        snprintf(header, sizeof header, ".version 9.1\n.target sm_%d%s", devices[d],
                 devices[d] == 120 ? "f" : "");
        assert_int_equal(cuCtxCreate_v2(&context, 0, (CUdevice)d), CUDA_SUCCESS);
        for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
            mma_form f;
            assert_true(parse_form(forms[n].name, &f));
            if (forms[n].target <= devices[d])
                check(header, devices[d], &f);
        }
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

static void test_model(void **state)
{
    (void)state;
    check_all(check_form);
}

/* One row of A times one column of B: a0 * b0 + a1 * b1 + c, of f16 values; the same in all elements. */
static uint32_t sum_of(double a0, double b0, double a1, double b1, double c)
{
    static matrices m;
    mma_form f;
    assert_true(parse_form("m16n8k8.row.col.f32.f16.f16.f32", &f));
    memset(&m, 0, sizeof m);
    for (int i = 0; i < 16; i++) {
        m.a[0][i][0] = a0;
        m.a[0][i][1] = a1;
    }
    for (int j = 0; j < 8; j++) {
        m.b[0][0][j] = b0;
        m.b[0][1][j] = b1;
    }
    for (int n = 0; n < 128; n++)
        m.c[0][n / 8][n % 8] = c;
    run_form(NULL, &f, &m);
    for (int n = 0; n < 128; n++)
        assert_true(same(m.d[0][n / 8][n % 8], m.d[0][0][0]));
    return (uint32_t)element_bits(f.d, m.d[0][0][0]);
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The device is an sm_90: 25 fractional bits below the largest exponent, then truncated to f32. */
static void test_rounding(void **state)
{
    (void)state;
    const double infinity = (double)INFINITY;
    assert_int_equal(sum_of(1, 1, 1, 1, 1), bits_of(3));
    /* 1 + 2^-23 is kept; 2^-24 is truncated, also below 2: 2 - 2^-24 */
    assert_int_equal(sum_of(1, 1, 0x1p-12, 0x1p-11, 0), bits_of(1 + 0x1p-23f));
    assert_int_equal(sum_of(1, 1, 0x1p-12, 0x1p-12, 0), bits_of(1));
    assert_int_equal(sum_of(1, 1, 0x1p-12, -0x1p-12, 1), bits_of(0x1.fffffep0f));
    /* two halves of the last bit add up to it: 2^-24 from the product and 2^-24 from C */
    assert_int_equal(sum_of(1, 1, 0x1p-12, 0x1p-12, 0x1p-24), bits_of(1 + 0x1p-23f));
    /* a term below 25 bits is lost */
    assert_int_equal(sum_of(1, 1, 0x1p-14, 0x1p-12, -1), bits_of(0));
    assert_int_equal(sum_of(1, 1, 0x1p-12, 0x1p-12, -1), bits_of(0x1p-24f));
    /* subnormals, infinities, NaN */
    assert_int_equal(sum_of(0x1p-24, 1, 0, 0, 0), bits_of(0x1p-24f));
    assert_int_equal(sum_of(infinity, 1, 0, 0, 0), 0x7f800000);
    assert_int_equal(sum_of(infinity, 1, -infinity, 1, 0), 0x7fffffff);
    assert_int_equal(sum_of(infinity, 0, 0, 0, 0), 0x7fffffff);
    assert_int_equal(sum_of(1, 1, 0, 0, infinity), 0x7f800000);
    assert_int_equal(sum_of(-0.0, 1, -0.0, 1, -0.0), 0);
    assert_int_equal(sum_of(65504, 65504, 0, 0, 0x1.fffffep127), bits_of(0x1.fffffep127f));
}

/* NaN and infinities affect their row, column or element, and nothing else: neither other products nor later ones. */
static double special_expected(const mma_form *f, const matrices *m, int q, int i, int j)
{
    double sum = m->c[q][i][j];
    for (int k = 0; k < f->k; k++)
        sum += m->a[q][i][k] * m->b[q][k][j];
    return sum;
}

static void fill_small(const mma_form *f, matrices *m)
{
    memset(m->scale_a, f->is_ue4m3 ? 0x38 : 127, sizeof m->scale_a); /* 1 */
    memset(m->scale_b, f->is_ue4m3 ? 0x38 : 127, sizeof m->scale_b);
    for (int q = 0; q < f->products; q++) {
        for (int n = 0; n < f->m * f->k; n++)
            m->a[q][n / f->k][n % f->k] = (n + q) % 3;
        for (int n = 0; n < f->k * 8; n++)
            m->b[q][n / 8][n % 8] = (n + q) % 2 - 1;
        for (int n = 0; n < f->m * 8; n++)
            m->c[q][n / 8][n % 8] = n % 4;
    }
}

static void check_specials(const char *header, int device, const mma_form *f)
{
    (void)device;
    static matrices m;
    double specials[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1};
    for (int n = 0; n < 4 * 3 * f->products; n++) {
        char matrix = "ABC"[n / 4 % 3];
        const element *t = matrix == 'C' ? f->c : matrix == 'A' ? f->a : f->b;
        double special = specials[n % 4];
        fill_small(f, &m);
        if (!isnan(element_value(t, element_bits(t, (double)NAN))))
            continue; /* the type has none */
        if (isinf(special) && t->exponent < 5)
            continue;
        *value_at(&m, matrix, (place){n / 12, n % 4, (n + 1) % 4}) = special;
        run_form(header, f, &m);
        for (int q = 0; q < f->products; q++)
            for (int i = 0; i < f->m; i++)
                for (int j = 0; j < 8; j++)
                    if (!same(m.d[q][i][j] + 0.0, special_expected(f, &m, q, i, j) + 0.0))
                        fail_msg("%s with %g in %c of product %d: D[%d][%d] of product %d is %g, not %g",
                                 f->name, special, matrix, n / 12, i, j, q, m.d[q][i][j],
                                 special_expected(f, &m, q, i, j));
    }
}

static void test_specials(void **state)
{
    (void)state;
    check_all(check_specials);
}

static int begin_devices(void **state)
{
    setenv("KILN_EMU_DEVICE", "sm_90,sm_120,sm_100,sm_89,sm_80,sm_75", 1);
    return begin_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_specials),
    };
    return cmocka_run_group_tests(tests, begin_devices, end_context);
}
