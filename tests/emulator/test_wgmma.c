/* wgmma: the results of every type and every N, with operands placed in shared memory and registers by the ISA's formulas
   (9.7.15.5.1), under all checks; then each rule, broken and kept. Independent of the emulator's code. If ptxas is
   installed, it must accept every kernel. */
#include "mma_form.h"

#define RULE_THREADS 128
#define RULE_BLOCKS  1
#include "rules.h"

enum {
    THREADS = 128,
    ROWS = 64,
    MOST_N = 256,
    MOST_K = 32,
    A_AT = 0,
    B_AT = 8192,
    SHARED_BYTES = 8192 + 32768
};

static const char header[] = ".version 8.8\n.target sm_90a";

/* ---- one product --------------------------------------------------------------------------------------------------- */

/* The layout of an operand in shared memory: the ISA's canonical layouts, in elements. */
typedef struct layout {
    int swizzle; /* bytes; 0: none */
    bool is_mn_major;
    int column; /* K-major with a swizzle: offset in the row, in units of 32 bytes */
} layout;

typedef struct product {
    const char *d, *a, *b;
    int n;
    layout of_a, of_b;
    bool a_in_registers, saturates, adds, negates_a, negates_b;
} product;

typedef struct values {
    double a[ROWS][MOST_K], b[MOST_K][MOST_N], c[ROWS][MOST_N], d[ROWS][MOST_N];
} values;

static const element *named(const char *name)
{
    return element_named(name, strlen(name));
}

static int depth_of(const product *p)
{
    return 256 / named(p->a)->bits;
}

/* Leading and stride byte offsets, LBO and SBO, for a matrix of this many rows; not always the smallest possible. */
static void offsets_of(layout l, int rows, int *leading, int *stride)
{
    if (l.swizzle && l.is_mn_major) {
        *stride = 8 * l.swizzle;
        *leading = 2 * *stride;
    } else if (l.swizzle) {
        *stride = 8 * l.swizzle;
        *leading = 16;
    } else if (l.is_mn_major) {
        *stride = 128;
        *leading = rows / 8 * 128;
    } else {
        *stride = rows > 64 ? 128 : 256;
        *leading = rows > 64 ? rows * 16 : 128;
    }
}

/* Byte offset of the element in row `mn` at place k of the sum: table of 9.7.15.5.1.2.1.3. */
static int byte_of(layout l, int start, int rows, int bits, int mn, int k)
{
    int t = 128 / bits, leading, stride, at; /* T */
    offsets_of(l, rows, &leading, &stride);
    leading = leading * 8 / bits;
    stride = stride * 8 / bits;
    int w = l.swizzle ? l.swizzle / 16 : 1;
    if (l.is_mn_major && l.swizzle) /* ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO)) */
        at = mn % t + mn / t % w * t + mn / (t * w) * leading + k % 8 * w * t + k / 8 * stride;
    else if (l.is_mn_major) /* ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO)) */
        at = mn % t + mn / t * stride + k % 8 * t + k / 8 * leading;
    else if (l.swizzle) /* ((8,m),(T,2k)) : ((wT,SBO),(1,T)) */
        at = mn % 8 * w * t + mn / 8 * stride + k % t + k / t * t;
    else /* ((8,m),(T,2k)) : ((1T,SBO),(1,LBO)) */
        at = mn % 8 * t + mn / 8 * stride + k % t + k / t * leading;
    int byte = start + 32 * l.column + at * bits / 8;
    switch (l.swizzle) { /* Swizzle<B,4,3> */
    case 128:
        return byte ^ (byte >> 7 & 7) << 4;
    case 64:
        return byte ^ (byte >> 7 & 3) << 4;
    case 32:
        return byte ^ (byte >> 7 & 1) << 4;
    default:
        return byte;
    }
}

/* A matrix descriptor without the address. */
static unsigned long long descriptor_of(layout l, int rows)
{
    int leading, stride;
    offsets_of(l, rows, &leading, &stride);
    unsigned long long mode = l.swizzle == 128 ? 1 : l.swizzle == 64 ? 2 : l.swizzle == 32 ? 3 : 0;
    return mode << 62 | (unsigned long long)(stride >> 4) << 32 | (unsigned long long)(leading >> 4) << 16;
}

static int d_registers(const product *p)
{
    return p->n * named(p->d)->bits / 64;
}

static void add_list(char *body, size_t size, const char *prefix, int count)
{
    for (int n = 0; n < count; n++)
        add_text(body, size, "%s%s%d%s", n ? ", " : "{", prefix, n, n + 1 < count ? "" : "}");
}

/* p1: the bytes of shared memory, then the registers of A and D; n: scale-d. */
static const char *body_of(const product *p)
{
    static char body[32768];
    const element *a = named(p->a);
    bool is_integer = !a->exponent;
    int registers = d_registers(p);
    const char *type = strcmp(p->d, "f32") == 0 ? "f32" : "b32";
    body[0] = '\0';
    ADD(".reg .u64 %%p<9>; .reg .u32 %%r<9>; .reg .pred %%q<3>; .reg .b32 %%a<4>; .reg .%s %%d<%d>;\n", type,
        registers);
    ADD(".reg .b64 %%x<3>;\n.shared .align 1024 .b8 s[%d];\n", SHARED_BYTES);
    ADD("ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; ld.param.u32 %%r6, [n]; setp.ne.u32 %%q1, %%r6, 0;\n"
        "mov.u32 %%r0, %%tid.x; shl.b32 %%r1, %%r0, 2; mov.u32 %%r2, s;\n"
        "COPY: cvt.u64.u32 %%p2, %%r1; add.u64 %%p2, %%p2, %%p1; ld.global.b32 %%r3, [%%p2];\n"
        "add.u32 %%r4, %%r2, %%r1; st.shared.b32 [%%r4], %%r3; add.u32 %%r1, %%r1, %d;\n"
        "setp.lt.u32 %%q0, %%r1, %d; @%%q0 bra COPY;\n"
        "fence.proxy.async; bar.sync 0;\n",
        4 * THREADS, SHARED_BYTES);
    ADD("mad.wide.u32 %%p3, %%r0, 16, %%p1; mad.wide.u32 %%p4, %%r0, %d, %%p1; mad.wide.u32 %%p0, %%r0, %d, %%p0;\n",
        4 * registers, 4 * registers);
    for (int n = 0; n < 4; n++)
        ADD("ld.global.b32 %%a%d, [%%p3+%d];\n", n, SHARED_BYTES + 4 * n);
    for (int n = 0; n < registers; n++)
        ADD("ld.global.%s %%d%d, [%%p4+%d];\n", type, n, SHARED_BYTES + 16 * THREADS + 4 * n);
    ADD("add.u32 %%r3, %%r2, %d; cvt.u64.u32 %%x1, %%r3; shr.u64 %%x1, %%x1, 4; or.b64 %%x1, %%x1, 0x%llx;\n",
        A_AT + 32 * p->of_a.column, descriptor_of(p->of_a, ROWS));
    ADD("add.u32 %%r3, %%r2, %d; cvt.u64.u32 %%x2, %%r3; shr.u64 %%x2, %%x2, 4; or.b64 %%x2, %%x2, 0x%llx;\n",
        B_AT + 32 * p->of_b.column, descriptor_of(p->of_b, p->n));
    ADD("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%dk%d%s.%s.%s.%s ", p->n, depth_of(p),
        p->saturates ? ".satfinite" : "", p->d, p->a, p->b);
    add_list(body, sizeof body, "%d", registers);
    ADD("%s%%x2, %%q1", p->a_in_registers ? ", {%a0, %a1, %a2, %a3}, " : ", %x1, ");
    if (!is_integer)
        ADD(", %d, %d", p->negates_a ? -1 : 1, p->negates_b ? -1 : 1);
    if (a->bits == 16 && !p->a_in_registers)
        ADD(", %d", p->of_a.is_mn_major);
    if (a->bits == 16)
        ADD(", %d", p->of_b.is_mn_major);
    ADD(";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (int n = 0; n < registers; n++)
        ADD("st.global.%s [%%p0+%d], %%d%d;\n", type, 4 * n, n);
    ADD("ret;");
    return body;
}

/* Place of element i of A's fragment (9.7.15.5.1.1): four registers with `each` elements each. */
static void place_in_a(int thread, int each, int i, int *row, int *k)
{
    *row = thread / 32 * 16 + thread % 32 / 4 + i / each % 2 * 8;
    *k = thread % 4 * each + i % each + i / (2 * each) * 4 * each;
}

static void place_in_d(int thread, int i, int *row, int *column)
{
    *row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    *column = i / 4 * 8 + thread % 4 * 2 + i % 2;
}

static void put_byte_bits(uint8_t *bytes, int at, const element *t, double v)
{
    uint64_t bits = element_bits(t, v) | (t->shift == 13 ? 0x1fff : 0);
    memcpy(bytes + at, &bits, (size_t)t->bits / 8);
}

static void run_product(const product *p, values *v)
{
    static uint8_t in[SHARED_BYTES + THREADS * 16 + THREADS * MOST_N * 2];
    static uint32_t out[THREADS * MOST_N / 2];
    const element *a = named(p->a), *b = named(p->b), *d = named(p->d);
    int depth = depth_of(p), registers = d_registers(p), row, column;
    for (int n = 0; n < SHARED_BYTES; n++)
        in[n] = (uint8_t)random_bits();
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < depth; k++)
            put_byte_bits(in, byte_of(p->of_a, A_AT, ROWS, a->bits, i, k), a, v->a[i][k]);
    for (int j = 0; j < p->n; j++)
        for (int k = 0; k < depth; k++)
            put_byte_bits(in, byte_of(p->of_b, B_AT, p->n, b->bits, j, k), b, v->b[k][j]);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < 128 / a->bits; i++) {
            place_in_a(t, 32 / a->bits, i, &row, &column);
            put_byte_bits(in + SHARED_BYTES + 16 * t, i * a->bits / 8, a, v->a[row][column]);
        }
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < p->n / 2; i++) {
            place_in_d(t, i, &row, &column);
            put_byte_bits(in + SHARED_BYTES + 16 * THREADS + 4 * registers * t, i * d->bits / 8, d,
                          v->c[row][column]);
        }
    const char *body = body_of(p);
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p0 = device_bytes(sizeof out, NULL), p1 = device_bytes(sizeof in, in);
    assert_int_equal(launch(f, 1, THREADS, p0, p1, p->adds), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p0, (size_t)(4 * THREADS * registers)), CUDA_SUCCESS);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < p->n / 2; i++) {
            place_in_d(t, i, &row, &column);
            v->d[row][column] = element_value(d, get_bits(out, (t * registers * 32 + i * d->bits), d->bits));
        }
}

/* ---- every type, N and layout: values whose sums are exact --------------------------------------------------------- */

static double small_value(const element *t)
{
    if (!t->exponent)
        return element_value(t, random_bits() & low_bits(t->bits));
    return (double)(int)(random_bits() % 5) - 2;
}

static double exact(const product *p, const values *v, int i, int j)
{
    double sum = p->adds ? v->c[i][j] : 0;
    for (int k = 0; k < depth_of(p); k++)
        sum += (p->negates_a != p->negates_b ? -1 : 1) * v->a[i][k] * v->b[k][j];
    if (named(p->a)->exponent)
        return sum;
    if (p->saturates)
        return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (double)(int32_t)(uint32_t)(int64_t)sum;
}

static void check_product(const product *p)
{
    static values v;
    const element *d = named(p->d);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < depth_of(p); k++)
            v.a[i][k] = small_value(named(p->a));
    for (int j = 0; j < p->n; j++)
        for (int k = 0; k < depth_of(p); k++)
            v.b[k][j] = small_value(named(p->b));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < p->n; j++) /* near the ends of the range, so that sums overflow */
            v.c[i][j] = d->exponent
                            ? (double)(int)(random_bits() % 17) - 8
                            : element_value(d, (random_bits() & 0x80007fff) ^ (i & 1 ? 0x7fff0000 : 0));
    run_product(p, &v);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < p->n; j++)
            if (v.d[i][j] != exact(p, &v, i, j))
                fail_msg("m64n%d.%s.%s.%s, A %s %d %d, B %d %d: D[%d][%d] is %g, not %g", p->n, p->d, p->a,
                         p->b, p->a_in_registers ? "in registers" : "shared", p->of_a.swizzle,
                         p->of_a.is_mn_major, p->of_b.swizzle, p->of_b.is_mn_major, i, j, v.d[i][j],
                         exact(p, &v, i, j));
}

/* The N that ptxas 13.0 accepts: multiples of 8; for integers 8, 24 and multiples of 16; up to 256. */
static bool takes_n(bool is_integer, int n)
{
    return n % 8 == 0 && (!is_integer || n % 16 == 0 || n == 8 || n == 24);
}

static const struct {
    const char *d, *a, *b;
} types[] = {
    {"f32", "f16", "f16"},   {"f16", "f16", "f16"},   {"f32", "bf16", "bf16"}, {"f32", "tf32", "tf32"},
    {"f32", "e4m3", "e4m3"}, {"f32", "e4m3", "e5m2"}, {"f32", "e5m2", "e4m3"}, {"f32", "e5m2", "e5m2"},
    {"f16", "e4m3", "e4m3"}, {"f16", "e4m3", "e5m2"}, {"f16", "e5m2", "e4m3"}, {"f16", "e5m2", "e5m2"},
    {"s32", "s8", "s8"},     {"s32", "u8", "u8"},     {"s32", "s8", "u8"},     {"s32", "u8", "s8"},
};

enum { TYPES = sizeof types / sizeof *types };

static product product_of(size_t type, int n)
{
    bool is_integer = types[type].d[0] == 's';
    int turn = n / 8 + (int)type;
    return (product){.d = types[type].d,
                     .a = types[type].a,
                     .b = types[type].b,
                     .n = n,
                     .of_a = {.swizzle = 128, .column = turn % 4},
                     .of_b = {.swizzle = 128, .column = turn / 2 % 4},
                     .a_in_registers = turn & 1,
                     .saturates = is_integer && (turn & 2),
                     .adds = turn % 3 != 0,
                     .negates_a = !is_integer && (turn & 4),
                     .negates_b = !is_integer && (turn & 2)};
}

static void test_values(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPES; t++)
        for (int n = 8; n <= 256; n += 8)
            if (takes_n(types[t].d[0] == 's', n)) {
                product p = product_of(t, n);
                check_product(&p);
            }
}

/* A and B in all layouts, each combined with some layouts of the other, and B's with A in registers. */
static void test_layouts(void **state)
{
    static const int swizzles[] = {0, 32, 64, 128}, ns[] = {8, 64, 96, 256};
    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        bool is_16 = named(types[t].a)->bits == 16;
        for (int n = 0; n < 40; n++) {
            product p = product_of(t, ns[(n < 32 ? n / 8 : n + (int)t) % 4]);
            layout l = {.swizzle = swizzles[n % 4], .is_mn_major = is_16 && n % 8 >= 4};
            l.column = l.is_mn_major || l.swizzle < 64 ? 0 : l.swizzle / 32 - 1;
            p.a_in_registers = n >= 32;
            p.adds = true;
            p.of_b = l;
            l.swizzle = swizzles[(n + n / 8) % 4];
            l.is_mn_major = is_16 && (n + n / 4) % 2;
            l.column = 0;
            p.of_a = l;
            check_product(&p);
        }
    }
}

/* ---- inexact sums -------------------------------------------------------------------------------------------------- */

/* Published measurements (arXiv 2511.10909): the products and C are aligned to the largest exponent, truncated after 25
   fractional bits, 13 with fp8, and added; the sum is truncated to f32, or to 13 fractional bits with fp8, or rounded to
   f16. */
static int exponent_of(const element *t, double v)
{
    int lowest = 2 - (1 << (t->exponent - 1));
    return v != 0 && ilogb(v) > lowest ? ilogb(v) : lowest;
}

static double modelled(const product *p, const values *v, int i, int j)
{
    const element *a = named(p->a), *b = named(p->b), *d = named(p->d);
    double c = p->adds ? v->c[i][j] : 0, plain = c, sum, sign = p->negates_a != p->negates_b ? -1 : 1;
    int largest = c != 0 ? exponent_of(d, c) : -126, bits = a->bits == 8 ? 13 : 25;
    for (int k = 0; k < depth_of(p); k++)
        plain += sign * v->a[i][k] * v->b[k][j];
    if (!isfinite(plain))
        return plain;
    for (int k = 0; k < depth_of(p); k++) {
        int e = exponent_of(a, v->a[i][k]) + exponent_of(b, v->b[k][j]);
        largest = v->a[i][k] != 0 && v->b[k][j] != 0 && e > largest ? e : largest;
    }
    double step = ldexp(1, largest - bits);
    sum = trunc(c / step);
    for (int k = 0; k < depth_of(p); k++)
        sum += trunc(sign * v->a[i][k] * v->b[k][j] / step);
    sum *= step;
    bool is_half = d->bits == 16;
    step = ldexp(1, exponent_of(d, sum) - (is_half ? 10 : a->bits == 8 ? 13 : 23));
    double result = (is_half ? nearbyint(sum / step) : trunc(sum / step)) * step;
    return fabs(result) >= (is_half ? 65520 : 0x1p128) ? copysign((double)INFINITY, sum)
           : result == 0                               ? 0
                                                       : result;
}

/* Run 0: any bits; 1: similar exponents, so that terms cancel each other and C; 2: subnormals and the smallest normal
   numbers. */
static double random_value(const element *t, int run, int spread)
{
    if (!t->exponent)
        return 0;
    uint64_t bits = random_bits() & low_bits(1 + t->exponent + t->fraction);
    int bias = (int)low_bits(t->exponent - 1),
        e = bias - spread / 2 + (int)(random_bits() % (unsigned)(spread + 1));
    if (run == 2)
        e = (int)(random_bits() & 1);
    if (run)
        bits = (bits & ~(low_bits(t->exponent) << t->fraction)) | (uint64_t)(e < 0 ? 0 : e) << t->fraction;
    double v = element_value(t, bits << t->shift);
    return isfinite(v) || random_bits() % 32 == 0 ? v : 0;
}

static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

static void test_sums(void **state)
{
    static values v;
    (void)state;
    for (int n = 0; n < 12 * 6; n++) {
        product p = product_of((size_t)(n % 12), 24 + n / 12 * 8);
        const element *a = named(p.a), *b = named(p.b), *d = named(p.d);
        int run = n / 12 % 3, spread = a->exponent > 4 ? 10 : 4;
        p.adds = true;
        for (int i = 0; i < ROWS * depth_of(&p); i++)
            v.a[i / depth_of(&p)][i % depth_of(&p)] = random_value(a, run, spread);
        for (int i = 0; i < p.n * depth_of(&p); i++)
            v.b[i % depth_of(&p)][i / depth_of(&p)] = random_value(b, run, spread);
        for (int i = 0; i < ROWS * p.n; i++)
            v.c[i / p.n][i % p.n] = i % 5 ? random_value(d, run, 2 * spread) : 0;
        run_product(&p, &v);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < p.n; j++)
                if (!same(v.d[i][j], modelled(&p, &v, i, j)))
                    fail_msg("%s.%s.%s, run %d: D[%d][%d] is %a, not %a", p.d, p.a, p.b, run, i, j, v.d[i][j],
                             modelled(&p, &v, i, j));
    }
}

/* An N, and a combination of types, that do not exist. */
static void test_refused(void **state)
{
    static const struct {
        const char *instruction, *words;
    } cases[] = {
        {"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5}, %x, %x, 1, 1, 1, 0, 0;",
         "'.m64n12k16' is not a modifier"},
        {"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%f0}, %x, %x, 1;",
         "'.s32' is not a modifier that 'wgmma' takes here"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r0, %r1}, %x, %x, 1, 1, 1, 0, 0;",
         "'.bf16' is not a modifier"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2}, %x, %x, 1, 1, 1, 0, 0;",
         "expected a vector of 4 elements"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, _}, %x, %x, 1, 1, 1, 0, 0;",
         "expected a register of type .f32 as the destination"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x, %x, 1, 1, 1, 0;",
         "takes 8 operands, 7 are given"},
        {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %x, %x, 1, 1, 1, 0, 0;",
         "takes 6 operands, 8 are given"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x, %x, 1, 0, 1, 0, 0;",
         "imm-scale-a must be 1 or -1"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x, %x, 1, 1, 1, 0, 2;",
         "imm-trans-b must be 0 or 1"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x, %x, 2, 1, 1, 0, 0;",
         "scale-d must be 0 or 1"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%f0, %f1, %f2, %f3}, %x, 1, 1, 1, 0;",
         "needs registers of type .b32"},
        {"wgmma.wait_group.sync.aligned -1;", "the number of groups must not be negative"},
        {"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r0, %r1, %r2, %r3}, %x, %x, 1;",
         "'wgmma' with .b1 is not emulated"},
        {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %x, %x, %r0, 0, 1, 1, 1, 0, 0;",
         "'wgmma.mma_async.sp' is not emulated"},
    };
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char body[512];
        CUmodule module;
        CUfunction f;
        snprintf(body, sizeof body,
                 ".reg .f32 %%f<6>; .reg .b32 %%r<6>; .reg .b64 %%x;\nmov.b64 %%x, 0;\n%s\nret;",
                 cases[n].instruction);
        CUresult r = load_body(header, body, &module);
        if (r == CUDA_SUCCESS)
            assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_ERROR_NOT_SUPPORTED);
        assert_contains(test_log, cases[n].words);
    }
    CUmodule module;
    assert_int_equal(load_body(NULL, "wgmma.fence.sync.aligned; ret;", &module), CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "needs one of the targets 90a");
}

/* ---- the rules: for each a kernel that breaks it, and one that keeps it --------------------------------------------- */

/* Operands of two products, written by all threads: A at s, B at s + 2048, K-major without a swizzle. */
#define PROLOGUE                                                                                             \
    ".reg .u64 %p<9>; .reg .u32 %r<9>; .reg .pred %q<3>; .reg .b32 %a<4>; .reg .b32 %u<4>; .reg .f32 "       \
    "%f<16>;\n"                                                                                              \
    ".reg .b64 %x<6>; .reg .f32 %v<4>;\n.shared .align 1024 .b8 s[3072];\n.shared .align 16 .b8 t[2048];\n"  \
    "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s;\n"                    \
    "mad.wide.u32 %p0, %r0, 64, %p0; shr.u32 %r5, %r0, 5;\n"                                                 \
    "COPY: add.u32 %r4, %r2, %r1; st.shared.b32 [%r4], 0; mov.u32 %r3, %ntid.x; shl.b32 %r3, %r3, 2;\n"      \
    "add.u32 %r1, %r1, %r3; setp.lt.u32 %q0, %r1, 3072; @%q0 bra COPY;\n"                                    \
    "cvt.u64.u32 %x1, %r2; shr.u64 %x1, %x1, 4; or.b64 %x1, %x1, 0x1000080000;\n"                            \
    "add.u64 %x2, %x1, 128;\n"                                                                               \
    "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.f32 %f4, %f0;\n"     \
    "mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;\n"                                                \
    "mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;\n"
#define READY           "fence.proxy.async; bar.sync 0;\n"
#define FENCE           "wgmma.fence.sync.aligned;\n"
#define COMMIT          "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n)         "wgmma.wait_group.sync.aligned " #n ";\n"
#define F16(n)          "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 "
#define ONTO(d, rest)   F16(8) d ", " rest ";\n"
#define FIRST           "{%f0, %f1, %f2, %f3}"
#define SECOND          "{%f4, %f5, %f6, %f7}"
#define SHARED_A        "%x1, %x2, 1, 1, 1, 0, 0"
#define PRODUCT         ONTO(FIRST, SHARED_A)
#define OTHER           ONTO(SECOND, SHARED_A)
#define REGISTERS       ONTO(FIRST, "{%a0, %a1, %a2, %a3}, %x2, 1, 1, 1, 0")
#define WIDE            F16(16) "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, " SHARED_A ";\n"
#define BYTES           "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%a0, %a1, %a2, %a3}, %x1, %x2, 0;\n"
#define DONE            COMMIT WAIT(0)
#define STORE(register) "st.global.f32 [%p0], " register ";\n"
#define PROXY_FENCE     "fence.proxy.async;\n"
#define WRITE_B(thread) "setp.eq.u32 %q1, %r0, " #thread "; @%q1 st.shared.b32 [%r2+2056], 1;\n"
#define COPY_B(thread)                                                                                       \
    "setp.eq.u32 %q1, %r0, " #thread "; @%q1 cp.async.ca.shared.global [%r2+2056], [%p0], 4;\n"
#define COPY_WAIT "cp.async.wait_all;\n"
/* Each warp writes its own rows of A; lanes read what other lanes wrote. */
#define WRITE_A                                                                                              \
    "xor.b32 %r3, %r0, 1; mad.lo.u32 %r3, %r3, 16, %r2; mov.b32 %u0, 0x3c003c00;\n"                          \
    "st.shared.v4.b32 [%r3], {%u0, %u0, %u0, %u0};\n"

static const rule rules[] = {
    {"an accumulator read in flight", READY FENCE PRODUCT COMMIT "add.f32 %f8, %f0, %f0;\n" WAIT(0),
     "reads an accumulator of the product in line", 0, 0},
    {"", READY FENCE PRODUCT DONE "add.f32 %f8, %f0, %f0;\n", NULL, 0, 0},
    {"an accumulator written in flight", READY FENCE PRODUCT COMMIT "mov.f32 %f1, 0f00000000;\n" WAIT(0),
     "writes an accumulator of the product in line", 0, 0},
    {"", READY FENCE PRODUCT COMMIT "mov.f32 %f4, 0f00000000;\n" WAIT(0) "mov.f32 %f1, %f4;\n", NULL, 0, 0},
    {"all accumulators stored in flight",
     READY FENCE PRODUCT COMMIT "st.global.v4.f32 [%p0], {%f0, %f1, %f2, %f3};\n" STORE("%f2") STORE("%f3")
         WAIT(0),
     "reads an accumulator of the product in line", 0, 0},
    {"", READY FENCE PRODUCT DONE "st.global.v4.f32 [%p0], {%f0, %f1, %f2, %f3};\n", NULL, 0, 0},
    {"A written in flight", READY FENCE REGISTERS COMMIT "mov.b32 %a2, 7;\n" WAIT(0),
     "writes a register of A of the product in line", 0, 0},
    {"", READY FENCE REGISTERS DONE "mov.b32 %a2, 7;\n", NULL, 0, 0},
    {"A read in flight", READY FENCE REGISTERS COMMIT "add.u32 %r3, %a2, 7;\n" WAIT(0),
     "reads a register of A of the product in line", 0, 0},
    {"", READY FENCE REGISTERS DONE "add.u32 %r3, %a2, 7;\n", NULL, 0, 0},
    {"the last group is not waited for", READY FENCE PRODUCT COMMIT OTHER COMMIT WAIT(1) STORE("%f4") WAIT(0),
     "reads an accumulator", 0, 0},
    {"", READY FENCE PRODUCT COMMIT OTHER COMMIT WAIT(1) STORE("%f0") WAIT(0) STORE("%f4"), NULL, 0, 0},
    {"a wait does not cover what is not committed", READY FENCE PRODUCT WAIT(0) STORE("%f0") COMMIT WAIT(0),
     "reads an accumulator", 0, 0},
    {"an accumulator becomes A in flight", READY FENCE BYTES REGISTERS DONE, "takes as A an accumulator of",
     0, 0},
    {"", READY FENCE BYTES DONE FENCE REGISTERS DONE, NULL, 0, 0},
    {"A becomes an accumulator in flight", READY FENCE REGISTERS BYTES DONE, "adds to a register of A of", 0,
     0},
    {"", READY FENCE REGISTERS DONE FENCE BYTES DONE, NULL, 0, 0},
    {"A is multiplied twice",
     READY FENCE REGISTERS ONTO(SECOND, "{%a0, %a1, %a2, %a3}, %x2, 1, 1, 1, 0") DONE, NULL, 0, 0},
    {"an accumulator renamed in flight",
     READY FENCE PRODUCT COMMIT "mov.b32 %f4, %f0;\n" STORE("%f4") WAIT(0),
     "reads an accumulator of the product in line", 0, 0},
    {"", READY FENCE PRODUCT COMMIT "mov.b32 %f4, %f0; mov.b32 %f0, %f4;\n" PRODUCT DONE STORE("%f4"), NULL,
     0, 0},
    {"no fence at all", READY PRODUCT DONE, "issues its warp's first product without a wgmma.fence", 0, 0},
    {"", READY FENCE PRODUCT DONE, NULL, 0, 0},
    {"no fence after a write", READY FENCE PRODUCT DONE "mov.f32 %f2, %f4;\n" PRODUCT DONE,
     "uses a register that line", 0, 0},
    {"", READY FENCE PRODUCT DONE "mov.f32 %f2, %f4;\n" FENCE PRODUCT DONE, NULL, 0, 0},
    {"no fence after a read", READY FENCE PRODUCT DONE STORE("%f3") PRODUCT DONE, "uses a register that line",
     0, 0},
    {"", READY FENCE PRODUCT DONE STORE("%f3") FENCE PRODUCT DONE, NULL, 0, 0},
    {"no fence after A is written", READY FENCE "mov.b32 %a3, 0;\n" REGISTERS DONE,
     "uses a register that line", 0, 0},
    {"", READY "mov.b32 %a3, 0;\n" FENCE REGISTERS DONE, NULL, 0, 0},
    {"no fence between shapes", READY FENCE PRODUCT WIDE DONE, "uses a register of the product in line", 0,
     0},
    {"", READY FENCE PRODUCT FENCE WIDE DONE, NULL, 0, 0},
    {"no fence before an accumulator becomes A", READY FENCE BYTES DONE REGISTERS DONE,
     "uses a register of the product in line", 0, 0},
    {"none is needed between products of a shape", READY FENCE PRODUCT PRODUCT COMMIT PRODUCT DONE, NULL, 0,
     0},
    {"warps run ahead",
     READY "mov.u32 %r3, 0;\nLOOP:\n" FENCE PRODUCT COMMIT WAIT(
         1) "setp.eq.u32 %q1, %r5, 1;\n"
            "@%q1 nanosleep.u32 20; add.u32 %r3, %r3, 1; setp.lt.u32 %q1, %r3, 200; @%q1 bra LOOP;\n" WAIT(0),
     NULL, 0, 0},
    {"a warp runs ahead, and ends late",
     READY "mov.u32 %r3, 0; add.u32 %r4, %r5, 200;\nLOOP:\n" FENCE PRODUCT DONE
           "add.u32 %r3, %r3, 1; setp.lt.u32 %q1, %r3, %r4; @%q1 bra LOOP;\n",
     "all four warps must execute it", 0, 0},
    {"a warpgroup of three warps", FENCE PRODUCT DONE, "in a warpgroup that is not complete", 96, 0},
    {"a warp of 16 threads", READY FENCE PRODUCT DONE, "in a warpgroup that is not complete", 112, 0},
    {"warps 1 to 4",
     READY
     "add.u32 %r3, %r5, 7; and.b32 %r3, %r3, 7; setp.ge.u32 %q1, %r3, 4; @%q1 bra END;\n" FENCE PRODUCT DONE
     "END:\n",
     "all four warps must execute it", 256, 0},
    {"", READY "setp.lt.u32 %q1, %r5, 4; @%q1 bra END;\n" FENCE PRODUCT DONE "END:\n", NULL, 256, 0},
    {"a warp takes another branch",
     READY FENCE "setp.eq.u32 %q1, %r5, 2; @%q1 bra TWO;\n" PRODUCT DONE "bra END;\nTWO:\n" PRODUCT DONE
                 "END:\n",
     "all four must execute the same instruction", 0, 0},
    {"a warp skips a wait",
     READY FENCE PRODUCT DONE "setp.eq.u32 %q1, %r5, 1; @%q1 bra END;\n" WAIT(0) "END:\n",
     "all four warps must execute it", 0, 0},
    {"a lane has ended", READY "setp.eq.u32 %q1, %r0, 37; @%q1 exit;\n" FENCE PRODUCT DONE,
     "executes this for its whole warp", 0, 0},
    {"descriptors of warps differ", READY "cvt.u64.u32 %x3, %r5; add.u64 %x2, %x2, %x3;\n" FENCE PRODUCT DONE,
     "and another warp of its warpgroup give different matrix descriptors of B", 0, 0},
    {"descriptors of lanes differ",
     READY "and.b32 %r3, %r0, 1; cvt.u64.u32 %x3, %r3; add.u64 %x1, %x1, %x3;\n" FENCE PRODUCT DONE,
     "and the first lane of its warp give different matrix descriptors of A", 0, 0},
    {"scale-d of lanes differs",
     READY "setp.lt.u32 %q1, %r0, 16;\n" FENCE ONTO(FIRST, "%x1, %x2, %q1, 1, 1, 0, 0") DONE,
     "and other lanes of its warp give different values of scale-d", 0, 0},
    {"scale-d of warps differs",
     READY "setp.lt.u32 %q1, %r0, 32;\n" FENCE ONTO(FIRST, "%x1, %x2, %q1, 1, 1, 0, 0") DONE,
     "and another warp of its warpgroup give different values of scale-d", 0, 0},
    {"", READY "setp.lt.u32 %q1, %r0, 999;\n" FENCE ONTO(FIRST, "%x1, %x2, %q1, 1, 1, 0, 0") DONE, NULL, 0,
     0},
    {"A ends outside of the block's shared memory", READY "add.u64 %x1, %x1, 312;\n" FENCE PRODUCT DONE,
     "of .shared memory", 0, 0},
    {"B lies in what the system reserves", READY "mov.b64 %x2, 0x1000080000;\n" FENCE PRODUCT DONE,
     "of .shared memory", 0, 0},
    {"an address that is not encoded", READY "or.b64 %x2, %x2, 0x4000;\n" FENCE PRODUCT DONE,
     "which has bits that belong to no field", 0, 0},
    {"a base offset", READY "or.b64 %x2, %x2, 0x4002000000000000;\n" FENCE PRODUCT DONE,
     "with a base offset for B", 0, 0},
    {"half a row into the swizzle's pattern",
     READY "add.u64 %x2, %x2, 1; or.b64 %x2, %x2, 0xc000000000000000;\n" FENCE PRODUCT DONE,
     "16 bytes into a row of the 32-byte swizzle's pattern", 0, 0},
    {"", READY "add.u64 %x2, %x2, 2; or.b64 %x2, %x2, 0x8000000000000000;\n" FENCE PRODUCT DONE, NULL, 0, 0},
    {"no wait", READY FENCE PRODUCT COMMIT, "no wgmma.wait_group covers it", 0, 0},
    {"a wait for all but the last", READY FENCE PRODUCT COMMIT WAIT(1), "no wgmma.wait_group covers it", 0,
     0},
    {"no commit", READY FENCE PRODUCT WAIT(0), "no wgmma.commit_group covers it", 0, 0},
    {"an operand overwritten in flight",
     READY FENCE PRODUCT COMMIT "setp.eq.u32 %q1, %r0, 127; @%q1 st.shared.b32 [%r2+1536], 1;\n" WAIT(0),
     "which a product of thread", 0, 0},
    {"", READY FENCE PRODUCT DONE "setp.eq.u32 %q1, %r0, 127; @%q1 st.shared.b32 [%r2+1536], 1;\n", NULL, 0,
     0},
    {"", READY FENCE PRODUCT DONE "bar.sync 0; setp.eq.u32 %q1, %r0, 0; @%q1 st.shared.b32 [%r2+8], 1;\n",
     NULL, 0, 0},
    {"an operand overwritten by a warp that has not waited",
     READY "setp.lt.u32 %q1, %r5, 4; @!%q1 bra LATE;\n" FENCE PRODUCT DONE "bra END;\nLATE:\n"
           "setp.eq.u32 %q1, %r0, 159; @%q1 st.shared.b32 [%r2+2056], 1;\nEND:\n",
     "with nothing to order the two", 160, 0},
    {"an operand overwritten after the wait of another warp of the warpgroup",
     READY FENCE PRODUCT DONE "setp.eq.u32 %q1, %r0, 127; @%q1 st.shared.b32 [%r2+2056], 1;\n", NULL, 0, 0},
    {"an operand read in flight", READY FENCE PRODUCT COMMIT "ld.shared.b32 %r3, [%r2+8];\n" WAIT(0), NULL, 0,
     0},
    {"an operand is written after wgmma.fence", READY FENCE WRITE_B(64) PROXY_FENCE PRODUCT DONE,
     "with nothing to order the two", 0, 0},
    {"", READY WRITE_B(96) PROXY_FENCE FENCE PRODUCT DONE, NULL, 0, 0},
    {"an operand is written before a product without wgmma.fence",
     READY FENCE PRODUCT DONE "bar.sync 0;\n" WRITE_B(0) PROXY_FENCE PRODUCT DONE,
     "with nothing to order the two", 0, 0},
    {"a warp waits at a barrier instead of wgmma.fence",
     READY "setp.eq.u32 %q1, %r5, 1; @%q1 barrier.sync 1, 128;\n" FENCE PRODUCT DONE
           "@!%q1 barrier.sync 1, 128;\n",
     "waits for the other warps of its warpgroup to reach wgmma.fence", 0, 0},
    {"a copy to an operand is not waited for", READY COPY_B(96) PROXY_FENCE FENCE PRODUCT DONE COPY_WAIT,
     "still writes: nothing has waited for it", 0, 0},
    {"", READY COPY_B(96) COPY_WAIT PROXY_FENCE FENCE PRODUCT DONE, NULL, 0, 0},
    {"only wgmma.fence after a write", READY WRITE_B(96) FENCE PRODUCT DONE,
     "with no fence.proxy.async between the two", 0, 0},
    {"another warpgroup writes an operand without a barrier",
     READY WRITE_B(0) PROXY_FENCE "setp.lt.u32 %q1, %r5, 4; @%q1 bra END;\n" FENCE PRODUCT DONE "END:\n",
     "with nothing to order the two", 256, 0},
    {"another warpgroup writes an operand and executes wgmma.fence",
     READY WRITE_B(0) PROXY_FENCE FENCE PRODUCT DONE, "with nothing to order the two", 256, 0},
    {"no proxy fence", "bar.sync 0;\n" FENCE PRODUCT DONE, "with no fence.proxy.async between the two", 0, 0},
    {"", "bar.sync 0; fence.proxy.async.shared::cta;\n" FENCE PRODUCT DONE, NULL, 0, 0},
    {"",
     "bar.sync 0; setp.lt.u32 %q1, %r5, 4; @%q1 bra NEXT; fence.proxy.async;\nNEXT: bar.sync 0;\n"
     "@!%q1 bra END;\n" FENCE PRODUCT DONE "END:\n",
     NULL, 160, 0},
    {"another warp's proxy fence comes too late",
     "bar.sync 0; setp.lt.u32 %q1, %r5, 4; @%q1 bra NEXT; bar.sync 0; fence.proxy.async; bra END;\nNEXT: bar.sync 0;\n" FENCE
         PRODUCT DONE "END:\n",
     "with no fence.proxy.async between the two", 160, 0},
    {"another proxy's fence", "fence.proxy.alias; bar.sync 0;\n" FENCE PRODUCT DONE,
     "with no fence.proxy.async between the two", 0, 0},
    {"a proxy fence before the last write",
     READY "setp.eq.u32 %q1, %r0, 0; @%q1 st.shared.b32 [%r2+2048], 0;\n"
           "bar.sync 0;\n" FENCE PRODUCT DONE,
     "with no fence.proxy.async between the two", 0, 0},
    {"a copy arrives in an operand in flight",
     READY FENCE PRODUCT COMMIT
     "setp.eq.u32 %q1, %r0, 127; @%q1 cp.async.ca.shared.global [%r2+1536], [%p0], 4;\ncp.async.wait_all;\n" WAIT(
         0),
     "which a product of thread", 0, 0},
    {"operands that no thread wrote",
     READY "mov.u32 %r3, t; cvt.u64.u32 %x3, %r3; shr.u64 %x3, %x3, 4; or.b64 %x1, %x3, "
           "0x1000080000;\n" FENCE PRODUCT DONE,
     "reads 16 bytes that were never written", 0, 0},
    {"an undefined register of A",
     READY FENCE ONTO(FIRST, "{%a0, %u1, %a2, %a3}, %x2, 1, 1, 1, 0") DONE STORE("%f1"),
     "uses an uninitialised register as the value that it stores", 0, 0},
    {"undefined accumulators", READY FENCE ONTO("{%v0, %v1, %v2, %v3}", SHARED_A) DONE STORE("%v1"),
     "uses an uninitialised register as the value that it stores", 0, 0},
    {"", READY FENCE ONTO("{%v0, %v1, %v2, %v3}", "%x1, %x2, 0, 1, 1, 0, 0") DONE STORE("%v1"), NULL, 0, 0},
    {"an undefined descriptor", READY FENCE ONTO(FIRST, "%x1, %x5, 1, 1, 1, 0, 0") DONE,
     "uses an uninitialised register as an address", 0, 0},
    {"an undefined scale-d", READY FENCE ONTO(FIRST, "%x1, %x2, %q2, 1, 1, 0, 0") DONE,
     "uses an uninitialised register as an operand of this", 0, 0},
};

/* With the check `warpgroup`: wgmma.fence does not order products after writes. */
static const rule warpgroup_rules[] = {
    {"only wgmma.fence after another warp's write", READY WRITE_B(96) PROXY_FENCE FENCE PRODUCT DONE,
     "with only wgmma.fence to order the two", 0, 0},
    {"", READY WRITE_B(96) PROXY_FENCE "bar.sync 0;\n" FENCE PRODUCT DONE, NULL, 0, 0},
    {"only wgmma.fence after another lane's write", READY WRITE_A PROXY_FENCE FENCE PRODUCT DONE,
     "with only wgmma.fence to order the two", 0, 0},
    {"", READY WRITE_A PROXY_FENCE "bar.warp.sync 0xffffffff;\n" FENCE PRODUCT DONE, NULL, 0, 0},
};

enum {
    RULES = sizeof rules / sizeof *rules,
    WARPGROUP_RULES = sizeof warpgroup_rules / sizeof *warpgroup_rules
};

static void test_rules(void **state)
{
    (void)state;
    check_rules(header, "", PROLOGUE, rules, RULES);
}

static void test_warpgroup_rules(void **state)
{
    (void)state;
    check_rules(header, "", PROLOGUE, warpgroup_rules, WARPGROUP_RULES);
}

/* Each warp writes its rows of A and a quarter of B, one of them late, with no barrier before the product: A and B are ones. */
static void test_meeting(void **state)
{
    char body[8192];
    float d[128][16];
    (void)state;
    snprintf(
        body, sizeof body, "%s%s%s%s%sret;", PROLOGUE,
        READY
        "mov.u32 %r4, 0; setp.eq.u32 %q1, %r5, 2;\n"
        "LATE: nanosleep.u32 20; add.u32 %r4, %r4, 1; setp.lt.and.u32 %q2, %r4, 100, %q1; @%q2 bra LATE;\n",
        WRITE_A,
        "and.b32 %r3, %r0, 31; setp.lt.u32 %q2, %r3, 16; mad.lo.u32 %r3, %r5, 16, %r3;\n"
        "mad.lo.u32 %r3, %r3, 4, %r2; @%q2 st.shared.b32 [%r3+2048], %u0;\n",
        PROXY_FENCE FENCE PRODUCT DONE "st.global.v4.f32 [%p0], {%f0, %f1, %f2, %f3};\n");
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p0 = device_bytes(sizeof d, NULL);
    cuMemsetD32_v2(p0, 0, sizeof d / 4);
    assert_int_equal(launch(f, 1, 128, p0, p0, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(d, p0, sizeof d), CUDA_SUCCESS);
    for (int thread = 0; thread < 128; thread++)
        for (int n = 0; n < 4; n++)
            assert_float_equal(d[thread][n], 16, 0);
    cuMemFree_v2(p0);
}

/* ---- ptxas --------------------------------------------------------------------------------------------------------- */

static void add_entry(const ptxas_text *t, const char *name, size_t number, const char *prologue,
                      const rule *r)
{
    char entry[32];
    snprintf(entry, sizeof entry, "%s%zu", name, number);
    fputs(rule_entry(entry, "", prologue, r), t->file);
}

/* ptxas accepts all kernels of this file. */
static void test_ptxas(void **state)
{
    (void)state;
    ptxas_text text = begin_ptxas(header);
    fputs("\n.address_size 64\n", text.file);
    for (size_t n = 0; n < RULES; n++)
        add_entry(&text, "rule", n, PROLOGUE, &rules[n]);
    for (size_t n = 0; n < WARPGROUP_RULES; n++)
        add_entry(&text, "warpgroup", n, PROLOGUE, &warpgroup_rules[n]);
    for (size_t t = 0; t < TYPES; t++)
        for (int n = 8; n <= 256; n += 8)
            if (takes_n(types[t].d[0] == 's', n)) {
                product p = product_of(t, n);
                rule form = {.body = body_of(&p)};
                add_entry(&text, "form", t * 256 + (size_t)n, "", &form);
            }
    end_ptxas(&text);
}

/* An argument selects tests that need a process of their own or take long: "warpgroup" tests that check, which a process enables
 * only once, at its start; "ptxas" takes 10 seconds. */
int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_layouts), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_rules),   cmocka_unit_test(test_meeting),
    };
    const struct CMUnitTest of_warpgroups[] = {cmocka_unit_test(test_warpgroup_rules)};
    const struct CMUnitTest of_ptxas[] = {cmocka_unit_test(test_ptxas)};
    const bool is_warpgroup = strcmp(part, "warpgroup") == 0;
    setenv("KILN_EMU_CHECK", is_warpgroup ? "all,same,warpgroup" : "all,same", 1);
    if (is_warpgroup)
        return cmocka_run_group_tests(of_warpgroups, begin_context, end_context);
    return strcmp(part, "ptxas") == 0 ? cmocka_run_group_tests(of_ptxas, begin_context, end_context)
                                      : cmocka_run_group_tests(tests, begin_context, end_context);
}
