/* Matrix instructions: every shape and type against a plain product, with distinct values in every place; the rounding of
   the sums; ldmatrix, stmatrix and movmatrix. */
#include "emu_test.h"

#include <math.h>

typedef struct form {
    const char *name;        /* shape.row.col.D.A.B.C */
    int m, k, bits, a, d, c; /* registers of A, D and C per lane */
    char kind;   /* of A and B: h f16, b bf16, t tf32, 4 e4m3, 5 e5m2, d f64, s or u integers, 1 bits */
    char result; /* h f16, f f32, d f64, s s32 */
} form;

static const form forms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 16, 2, 4, 4, 'h', 'f'},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 16, 2, 2, 2, 'h', 'h'},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 16, 4, 4, 4, 'h', 'f'},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 16, 4, 2, 2, 'h', 'h'},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 16, 2, 4, 4, 'b', 'f'},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 16, 4, 4, 4, 'b', 'f'},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, 32, 2, 4, 4, 't', 'f'},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 32, 4, 4, 4, 't', 'f'},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 32, 8, 4, 4, 4, '4', 'f'},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 16, 32, 8, 4, 4, 4, '5', 'f'},
    {"m16n8k32.row.col.f16.e4m3.e4m3.f16", 16, 32, 8, 4, 2, 2, '4', 'h'},
    {"m16n8k16.row.col.f32.e4m3.e4m3.f32", 16, 16, 8, 2, 4, 4, '4', 'f'},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, 64, 1, 2, 2, 'd', 'd'},
    {"m16n8k4.row.col.f64.f64.f64.f64", 16, 4, 64, 2, 4, 4, 'd', 'd'},
    {"m16n8k8.row.col.f64.f64.f64.f64", 16, 8, 64, 4, 4, 4, 'd', 'd'},
    {"m16n8k16.row.col.f64.f64.f64.f64", 16, 16, 64, 8, 4, 4, 'd', 'd'},
    {"m8n8k16.row.col.s32.s8.s8.s32", 8, 16, 8, 1, 2, 2, 's', 's'},
    {"m8n8k16.row.col.satfinite.s32.u8.u8.s32", 8, 16, 8, 1, 2, 2, 'u', 's'},
    {"m16n8k16.row.col.s32.s8.s8.s32", 16, 16, 8, 2, 4, 4, 's', 's'},
    {"m16n8k32.row.col.s32.u8.u8.s32", 16, 32, 8, 4, 4, 4, 'u', 's'},
    {"m8n8k32.row.col.s32.s4.s4.s32", 8, 32, 4, 1, 2, 2, 's', 's'},
    {"m16n8k32.row.col.s32.u4.u4.s32", 16, 32, 4, 2, 4, 4, 'u', 's'},
    {"m16n8k64.row.col.s32.s4.s4.s32", 16, 64, 4, 4, 4, 4, 's', 's'},
    {"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, 1, 1, 2, 2, '1', 's'},
    {"m16n8k256.row.col.s32.b1.b1.s32.and.popc", 16, 256, 1, 4, 4, 4, '1', 's'},
};

/* A value that the format holds, as its bits. Floats are integers -7 to 7 (e5m2: few of them), so that sums are exact. */
static uint64_t encode(const form *f, int v)
{
    float x = (float)v;
    double y = v;
    uint32_t u;
    uint64_t w;
    memcpy(&u, &x, sizeof u);
    memcpy(&w, &y, sizeof w);
    int exponent = (int)(u >> 23 & 255) - 127;
    uint32_t sign = u >> 31, fraction = u & 0x7fffff;
    switch (f->kind) {
    case 'h':
        return v ? sign << 15 | (uint32_t)(exponent + 15) << 10 | fraction >> 13 : 0;
    case 'b':
        return u >> 16;
    case 't':
        return u | 0x1fff; /* what is below tf32 does not count */
    case '4':
        return v ? sign << 7 | (uint32_t)(exponent + 7) << 3 | fraction >> 20 : 0;
    case '5':
        return v ? sign << 7 | (uint32_t)(exponent + 15) << 2 | fraction >> 21 : 0;
    case 'd':
        return w;
    default:
        return (uint64_t)v & (f->bits == 1 ? 1 : (1u << f->bits) - 1);
    }
}

static int value_for(const form *f, int index)
{
    uint32_t h = (uint32_t)index * 2654435761u;
    int r = (int)(h >> 13);
    switch (f->kind) {
    case '1':
        return r & 1;
    case 'u':
        return r & ((1 << f->bits) - 1);
    case 's':
        return (r & ((1 << f->bits) - 1)) - (1 << (f->bits - 1));
    case '5':
        return (r & 7) - 3 == 5 ? 4 : (r & 7) - 3;
    default:
        return r % 15 - 7;
    }
}

static char body[16384];

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    size_t size = strlen(body);
    va_list args;
    va_start(args, format);
    vsnprintf(body + size, sizeof body - size, format, args);
    va_end(args);
}

static void add_list(const char *prefix, int from, int count)
{
    add("{");
    for (int i = 0; i < count; i++)
        add("%s%%%s%d", i ? ", " : "", prefix, from + i);
    add("}");
}

/* Words per lane in memory: A, B, C in; D out. Kind d moves 64-bit words, the others 32-bit ones. */
static void run_mma(const form *f, const char *name, const void *in, void *out)
{
    int each = f->kind == 'd' ? 8 : 4, b = f->a * 8 / f->m, inputs = f->a + b + f->c;
    const char *type = f->kind == 'd' ? "f64" : "b32", *registers = f->result == 'f' ? "f32" : type;
    body[0] = '\0';
    add(".reg .u64 %%p<4>; .reg .u32 %%t; .reg .%s %%r<32>; .reg .%s %%d<8>;\n", type, registers);
    add("ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%t, %%tid.x;\n");
    add("mad.wide.u32 %%p1, %%t, %d, %%p1; mad.wide.u32 %%p0, %%t, %d, %%p0;\n", inputs * each, f->d * each);
    for (int i = 0; i < f->a + b; i++)
        add("ld.global.%s %%r%d, [%%p1+%d];\n", type, i, i * each);
    for (int i = 0; i < f->c; i++)
        add("ld.global.%s %%d%d, [%%p1+%d];\n", registers, i, (f->a + b + i) * each);
    add("mma.sync.aligned.%s ", name);
    add_list("d", 0, f->d);
    add(", ");
    add_list("r", 0, f->a);
    add(", ");
    add_list("r", f->a, b);
    add(", ");
    add_list("d", 0, f->c);
    add(";\n");
    for (int i = 0; i < f->d; i++)
        add("st.global.%s [%%p0+%d], %%d%d;\n", registers, i * each, i);
    add("ret;");
    run_body(NULL, body, 32, in, (size_t)(32 * inputs * each), out, (size_t)(32 * f->d * each));
}

static int a_values[16][256], b_values[256][8], c_values[16][8];

static void fill(const form *f)
{
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 256; k++)
            a_values[i][k] = value_for(f, i * 256 + k + 1);
    for (int k = 0; k < 256; k++)
        for (int j = 0; j < 8; j++)
            b_values[k][j] = value_for(f, k * 8 + j + 5000);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++)
            c_values[i][j] = f->result == 'h' ? (i * 8 + j) % 100 - 50 : i * 1000 + j * 17 - 3000;
}

static void put(uint8_t *at, int bit, int bits, uint64_t value)
{
    for (int n = 0; n < bits; n++)
        at[(bit + n) / 8] = (uint8_t)(at[(bit + n) / 8] | (value >> n & 1) << ((bit + n) & 7));
}

/* The fragment rules of the ISA, written once more: element e of the register r of a lane. */
static void fragment_in(const form *f, uint8_t *in)
{
    int width = f->kind == 'd' ? 64 : 32, n = width / f->bits, b = f->a * 8 / f->m, words = f->a + b + f->c;
    form half = {.kind = 'h', .bits = 16};
    for (int lane = 0; lane < 32; lane++) {
        int base = lane * words * width;
        for (int r = 0; r < f->a; r++)
            for (int e = 0; e < n; e++) {
                bool lower = f->m == 16 && r % 2;
                int right_by = (f->m == 16 ? r / 2 : r) * 4 * n;
                put(in, base + r * width + e * f->bits, f->bits,
                    encode(f, a_values[lane / 4 + (lower ? 8 : 0)][lane % 4 * n + e + right_by]));
            }
        for (int r = 0; r < b; r++)
            for (int e = 0; e < n; e++)
                put(in, base + (f->a + r) * width + e * f->bits, f->bits,
                    encode(f, b_values[lane % 4 * n + e + r * 4 * n][lane / 4]));
        for (int i = 0; i < f->m / 4; i++) {
            int c = c_values[lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2],
                bits = f->result == 'h' ? 16 : width;
            float x = (float)c;
            double y = c;
            uint64_t w = (uint32_t)c;
            if (f->result == 'f')
                memcpy(&w, &x, sizeof x);
            else if (f->result == 'd')
                memcpy(&w, &y, sizeof y);
            else if (f->result == 'h')
                w = encode(&half, c);
            put(in, base + (f->a + b) * width + i * bits, bits, w);
        }
    }
}

static double half_to_double(uint32_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

static double result_at(const form *f, const uint8_t *out, int lane, int i)
{
    uint32_t u;
    float x;
    double y;
    switch (f->result) {
    case 'h':
        memcpy(&u, out + lane * f->d * 4 + i / 2 * 4, sizeof u);
        return half_to_double(u >> 16 * (i & 1) & 0xffff);
    case 'f':
        memcpy(&x, out + lane * f->d * 4 + i * 4, sizeof x);
        return (double)x;
    case 'd':
        memcpy(&y, out + lane * f->d * 8 + i * 8, sizeof y);
        return y;
    default:
        memcpy(&u, out + lane * f->d * 4 + i * 4, sizeof u);
        return (double)(int32_t)u;
    }
}

static void test_products(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        const form *f = &forms[n];
        static uint8_t in[32 * 24 * 8], out[32 * 8 * 8];
        memset(in, 0, sizeof in);
        fill(f);
        fragment_in(f, in);
        run_mma(f, f->name, in, out);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < f->m / 4; i++) {
                int row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + i % 2,
                    sum = c_values[row][column];
                for (int k = 0; k < f->k; k++) {
                    int a = a_values[row][k], b = b_values[k][column];
                    sum += f->kind != '1' ? a * b : strstr(f->name, "xor") ? a ^ b : a & b;
                }
                double got = result_at(f, out, lane, i);
                if (got != sum)
                    fail_msg("%s: D[%d][%d] is %g, not %d", f->name, row, column, got, sum);
            }
    }
}

/* One row of A times one column of B: a0 * b0 + a1 * b1 + c of f16 values, everywhere the same. */
static uint32_t sum_of(uint16_t a0, uint16_t b0, uint16_t a1, uint16_t b1, float c)
{
    static const form f = {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 16, 2, 4, 4, 'h', 'f'};
    uint32_t in[32][7] = {{0}}, out[32][4], u;
    memcpy(&u, &c, sizeof u);
    for (int lane = 0; lane < 32; lane++) {
        if (lane % 4 == 0) {
            in[lane][0] = in[lane][1] = (uint32_t)a1 << 16 | a0;
            in[lane][2] = (uint32_t)b1 << 16 | b0;
        }
        for (int i = 3; i < 7; i++)
            in[lane][i] = u;
    }
    run_mma(&f, f.name, in, out);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++)
            assert_int_equal(out[lane][i], out[0][0]);
    return out[0][0];
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The device is an sm_90: 25 fractional bits below the largest exponent, then cut to f32. */
static void test_rounding(void **state)
{
    (void)state;
    enum { ONE = 0x3c00, TINY = 0x0400 /* 2^-14 */, TWO_12 = 0x0c00 /* 2^-12 */, TWO_11 = 0x1000 };
    assert_int_equal(sum_of(ONE, ONE, ONE, ONE, 1), bits_of(3));
    /* 1 + 2^-23 is kept; 2^-24 is cut, also from above: 2 - 2^-24 */
    assert_int_equal(sum_of(ONE, ONE, TWO_12, TWO_11, 0), bits_of(1 + 0x1p-23f));
    assert_int_equal(sum_of(ONE, ONE, TWO_12, TWO_12, 0), bits_of(1));
    assert_int_equal(sum_of(ONE, ONE, TWO_12, 0x8c00, 1), bits_of(0x1.fffffep0f));
    /* two halves of the last bit make one: 2^-24 from the product and 2^-24 from C */
    assert_int_equal(sum_of(ONE, ONE, TWO_12, TWO_12, 0x1p-24f), bits_of(1 + 0x1p-23f));
    /* below 25 bits nothing is left of a term */
    assert_int_equal(sum_of(ONE, ONE, TINY, TWO_12, -1), bits_of(0));
    assert_int_equal(sum_of(ONE, ONE, TWO_12, TWO_12, -1), bits_of(0x1p-24f));
    /* subnormals, infinities, NaN */
    assert_int_equal(sum_of(1, ONE, 0, 0, 0), bits_of(0x1p-24f));
    assert_int_equal(sum_of(0x7c00, ONE, 0, 0, 0), 0x7f800000);
    assert_int_equal(sum_of(0x7c00, ONE, 0xfc00, ONE, 0), 0x7fffffff);
    assert_int_equal(sum_of(0x7c00, 0, 0, 0, 0), 0x7fffffff);
    assert_int_equal(sum_of(ONE, ONE, 0, 0, INFINITY), 0x7f800000);
    assert_int_equal(sum_of(0x8000, ONE, 0x8000, ONE, -0.0f), 0);
    assert_int_equal(sum_of(0x7bff, 0x7bff, 0, 0, 0x1.fffffep127f), bits_of(0x1.fffffep127f));
}

/* Rows of 16 bytes at distinct addresses; element e of row r of matrix m is 1000 m + 8 r + e. */
static void test_matrix_moves(void **state)
{
    (void)state;
    static const char text[] =
        ".reg .u64 %p<3>; .reg .u32 %r<20>; .shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x;\n"
        "mad.wide.u32 %p1, %r0, 16, %p1; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%p1];\n"
        "mov.u32 %r5, s; mad.lo.u32 %r5, %r0, 16, %r5; st.shared.v4.b32 [%r5], {%r1, %r2, %r3, %r4};\n"
        "bar.sync 0; LOAD bar.sync 0;\n"
        "mad.wide.u32 %p0, %r0, 16, %p0; st.global.v4.b32 [%p0], {%r6, %r7, %r8, %r9}; ret;";
    static const struct {
        const char *what;
        int count;
        bool transposed;
    } cases[] = {
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];", 4, false},
        {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];", 4, true},
        {"ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%r6, %r7}, [%r5];", 2, false},
        {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r5];", 1, true},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5]; movmatrix.sync.aligned.m8n8.trans.b16 %r6, "
         "%r10;",
         1, true},
    };
    uint16_t in[32][8], out[32][8];
    for (int row = 0; row < 32; row++)
        for (int e = 0; e < 8; e++)
            in[row][e] = (uint16_t)(1000 * (row / 8) + 8 * (row % 8) + e);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const char *mark = strstr(text, "LOAD");
        snprintf(body, sizeof body, "%.*s%s%s", (int)(mark - text), text, cases[n].what, mark + 4);
        run_body(NULL, body, 32, in, sizeof in, out, sizeof out);
        for (int lane = 0; lane < 32; lane++)
            for (int m = 0; m < cases[n].count; m++)
                for (int e = 0; e < 2; e++) {
                    int row = lane / 4, column = lane % 4 * 2 + e;
                    int want = 1000 * m + (cases[n].transposed ? 8 * column + row : 8 * row + column);
                    assert_int_equal(out[lane][2 * m + e], want);
                }
    }
    /* stmatrix undoes ldmatrix; transposed once, rows become columns */
    for (int transposed = 0; transposed < 2; transposed++) {
        char moves[512];
        const char *mark = strstr(text, "LOAD");
        snprintf(
            moves, sizeof moves,
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%r10, %%r11, %%r12, %%r13}, [%%r5]; bar.sync 0;\n"
            "stmatrix.sync.aligned.m8n8.x4%s.shared.b16 [%%r5], {%%r10, %%r11, %%r12, %%r13}; bar.sync 0;\n"
            "ld.shared.v4.b32 {%%r6, %%r7, %%r8, %%r9}, [%%r5];",
            transposed ? ".trans" : "");
        snprintf(body, sizeof body, "%.*s%s%s", (int)(mark - text), text, moves, mark + 4);
        run_body(NULL, body, 32, in, sizeof in, out, sizeof out);
        for (int row = 0; row < 32; row++)
            for (int e = 0; e < 8; e++)
                assert_int_equal(out[row][e], transposed ? in[row / 8 * 8 + e][row % 8] : in[row][e]);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"wgmma.fence.sync.aligned;", "'wgmma' is not emulated"},
        {"cp.async.bulk.commit_group;", "'cp.async.bulk' is not emulated"},
        {"barrier.cluster.arrive;", "'barrier.cluster' is not emulated"},
        {".reg .b32 %r<4>; mapa.shared::cluster.u32 %r0, %r1, %r2;", "'mapa' (clusters) is not emulated"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        CUmodule module;
        assert_int_not_equal(load_body(NULL, cases[n][0], &module), CUDA_SUCCESS);
        assert_contains(test_log, cases[n][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_matrix_moves),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
