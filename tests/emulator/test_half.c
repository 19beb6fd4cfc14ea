/* Sums, products and fused multiply-adds of f16, bf16, f32x2 and mixed precision (ISA 9.7.3 to 9.7.5), with every rounding,
   .ftz, .sat, .relu and .oob, against exact 128-bit sums. */
#include "instruction_test.h"

enum { COUNT = 16384 };

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

typedef struct format {
    int bits, fraction;
} format;

static const format f16 = {16, 10}, bf16 = {16, 7}, f32 = {32, 23};

typedef enum kind { ZERO, FINITE, INFINITE, NOT_A_NUMBER } kind;

/* (negative ? -1 : 1) * m * 2^e; m of a finite number has 48 bits. */
typedef struct number {
    kind kind;
    bool negative;
    uint64_t m;
    int e;
} number;

static uint64_t infinity_of(format t)
{
    return ((UINT64_C(1) << (t.bits - 1 - t.fraction)) - 1) << t.fraction;
}

static int lowest_exponent(format t)
{
    return 2 - (1 << (t.bits - 2 - t.fraction));
}

static number normalised(number x)
{
    for (; x.kind == FINITE && !(x.m >> 47); x.e--)
        x.m <<= 1;
    return x;
}

static number number_of(format t, uint64_t bits, bool flushes)
{
    uint64_t magnitude = bits & ((UINT64_C(1) << (t.bits - 1)) - 1), one = UINT64_C(1) << t.fraction;
    int e = (int)(magnitude >> t.fraction);
    number x = {ZERO, bits >> (t.bits - 1) & 1, (magnitude & (one - 1)) | (e ? one : 0), 0};
    x.e = (e ? e - 1 : 0) + lowest_exponent(t) - t.fraction;
    if (magnitude >= infinity_of(t))
        x.kind = magnitude == infinity_of(t) ? INFINITE : NOT_A_NUMBER;
    else if (magnitude && (e || !flushes))
        x.kind = FINITE;
    return normalised(x);
}

static number product(number a, number b)
{
    number p = {FINITE, a.negative != b.negative, 0, 0};
    if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER || a.kind + b.kind == ZERO + INFINITE)
        p.kind = a.kind == FINITE || b.kind == FINITE ? (a.kind > b.kind ? a.kind : b.kind) : NOT_A_NUMBER;
    else if (a.kind == INFINITE || b.kind == INFINITE || a.kind == ZERO || b.kind == ZERO)
        p.kind = a.kind == INFINITE || b.kind == INFINITE ? INFINITE : ZERO;
    p.m = (a.m >> 24) * (b.m >> 24); /* sources have at most 24 bits */
    p.e = a.e + b.e + 48;
    return normalised(p);
}

/* Rounds a sum to the type in mode n, z, m or p; a NaN is the canonical one. */
static uint64_t rounded(format t, wide sum, int e, bool sign_of_zero, char mode)
{
    bool negative = sum < 0 || (sum == 0 && sign_of_zero);
    uwide m = (uwide)(sum < 0 ? -sum : sum), rest = 0, half = 1;
    uint64_t sign = negative ? UINT64_C(1) << (t.bits - 1) : 0;
    if (!m)
        return sign;
    int top = 127;
    while (!(m >> top))
        top--;
    int exponent = e + top < lowest_exponent(t) ? lowest_exponent(t) : e + top,
        drop = exponent - t.fraction - e;
    if (drop > 120)
        return mode == (negative ? 'm' : 'p') ? sign | 1 : sign;
    if (drop > 0) {
        rest = m & (((uwide)1 << drop) - 1);
        half <<= drop - 1;
        m >>= drop;
    } else
        m <<= -drop;
    if (mode == 'n' ? rest > half || (drop > 0 && rest == half && (m & 1))
                    : rest && mode == (negative ? 'm' : 'p'))
        m++;
    uint64_t bits = (uint64_t)m + ((uint64_t)(exponent - lowest_exponent(t)) << t.fraction);
    bool stays = mode == 'z' || mode == (negative ? 'p' : 'm');
    return sign | (bits >= infinity_of(t) ? infinity_of(t) - stays : bits);
}

static uint64_t sum_of(format t, number a, number b, char mode)
{
    uint64_t nan = (UINT64_C(1) << (t.bits - 1)) - 1;
    if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER)
        return nan;
    if (a.kind == INFINITE || b.kind == INFINITE) {
        bool both = a.kind == b.kind, negative = a.kind == INFINITE ? a.negative : b.negative;
        return both && a.negative != b.negative ? nan : infinity_of(t) | (uint64_t)negative << (t.bits - 1);
    }
    number big = b.kind == ZERO || (a.kind != ZERO && a.e >= b.e) ? a : b,
           small = big.e == a.e && big.m == a.m ? b : a;
    if (big.kind == ZERO) /* zeros of both signs add to +0; if rounded to -infinity, to -0 */
        return rounded(t, 0, 0, a.negative == b.negative ? a.negative : mode == 'm', mode);
    int apart = small.kind == ZERO ? 0 : big.e - small.e;
    wide low = small.kind == ZERO ? 0 : apart > 70 ? 1 : (wide)small.m; /* 1: a sticky bit */
    wide high = (wide)big.m << (apart > 70 ? 70 : apart);
    return rounded(t, (big.negative ? -high : high) + (small.negative ? -low : low),
                   big.e - (apart > 70 ? 70 : apart), mode == 'm', mode);
}

typedef struct half_case {
    const char *instruction; /* the instruction; operands depend on `form` */
    char operation;          /* one of + - * f */
    char form;               /* h: a half, 2: two, x: two f32; mixed types: a: d, a, c, m: d, a, b, c */
    const format *source, *result;
    char mode;
} half_case;

static const half_case cases[] = {
    {"add.f16", '+', 'h', &f16, &f16, 'n'},
    {"add.rn.f16", '+', 'h', &f16, &f16, 'n'},
    {"sub.rn.f16", '-', 'h', &f16, &f16, 'n'},
    {"sub.rn.ftz.f16", '-', 'h', &f16, &f16, 'n'},
    {"mul.f16", '*', 'h', &f16, &f16, 'n'},
    {"mul.rn.f16", '*', 'h', &f16, &f16, 'n'},
    {"mul.sat.f16", '*', 'h', &f16, &f16, 'n'},
    {"fma.rn.f16", 'f', 'h', &f16, &f16, 'n'},
    {"fma.rn.ftz.sat.f16", 'f', 'h', &f16, &f16, 'n'},
    {"fma.rn.relu.f16", 'f', 'h', &f16, &f16, 'n'},
    {"fma.rn.oob.f16", 'f', 'h', &f16, &f16, 'n'},
    {"add.f16x2", '+', '2', &f16, &f16, 'n'},
    {"add.ftz.sat.f16x2", '+', '2', &f16, &f16, 'n'},
    {"sub.f16x2", '-', '2', &f16, &f16, 'n'},
    {"mul.f16x2", '*', '2', &f16, &f16, 'n'},
    {"mul.ftz.f16x2", '*', '2', &f16, &f16, 'n'},
    {"fma.rn.f16x2", 'f', '2', &f16, &f16, 'n'},
    {"fma.rn.ftz.relu.f16x2", 'f', '2', &f16, &f16, 'n'},
    {"fma.rn.oob.relu.f16x2", 'f', '2', &f16, &f16, 'n'},
    {"add.bf16", '+', 'h', &bf16, &bf16, 'n'},
    {"sub.bf16", '-', 'h', &bf16, &bf16, 'n'},
    {"sub.rn.bf16", '-', 'h', &bf16, &bf16, 'n'},
    {"mul.bf16", '*', 'h', &bf16, &bf16, 'n'},
    {"fma.rn.bf16", 'f', 'h', &bf16, &bf16, 'n'},
    {"fma.rn.relu.bf16", 'f', 'h', &bf16, &bf16, 'n'},
    {"fma.rn.oob.bf16x2", 'f', '2', &bf16, &bf16, 'n'},
    {"add.bf16x2", '+', '2', &bf16, &bf16, 'n'},
    {"mul.rn.bf16x2", '*', '2', &bf16, &bf16, 'n'},
    {"fma.rn.bf16x2", 'f', '2', &bf16, &bf16, 'n'},
    {"fma.rn.relu.bf16x2", 'f', '2', &bf16, &bf16, 'n'},
    {"add.rn.f32x2", '+', 'x', &f32, &f32, 'n'},
    {"sub.f32x2", '-', 'x', &f32, &f32, 'n'},
    {"sub.rz.ftz.f32x2", '-', 'x', &f32, &f32, 'z'},
    {"mul.rn.f32x2", '*', 'x', &f32, &f32, 'n'},
    {"mul.rm.f32x2", '*', 'x', &f32, &f32, 'm'},
    {"fma.rn.f32x2", 'f', 'x', &f32, &f32, 'n'},
    {"fma.rp.f32x2", 'f', 'x', &f32, &f32, 'p'},
    {"fma.rn.ftz.f32x2", 'f', 'x', &f32, &f32, 'n'},
    {"add.f32.f16", '+', 'a', &f16, &f32, 'n'},
    {"add.rz.sat.f32.bf16", '+', 'a', &bf16, &f32, 'z'},
    {"sub.rm.f32.f16", '-', 'a', &f16, &f32, 'm'},
    {"sub.rp.sat.f32.bf16", '-', 'a', &bf16, &f32, 'p'},
    {"fma.rn.f32.f16", 'f', 'm', &f16, &f32, 'n'},
    {"fma.rz.sat.f32.f16", 'f', 'm', &f16, &f32, 'z'},
    {"fma.rm.f32.bf16", 'f', 'm', &bf16, &f32, 'm'},
    {"fma.rp.f32.bf16", 'f', 'm', &bf16, &f32, 'p'},
    {"fma.rn.sat.f32.bf16", 'f', 'm', &bf16, &f32, 'n'},
};

static bool has(const half_case *h, const char *word)
{
    return strstr(h->instruction, word) != NULL;
}

static uint64_t expected(const half_case *h, uint64_t a, uint64_t b, uint64_t c)
{
    format s = *h->source, t = *h->result;
    bool flushes = has(h, ".ftz");
    uint64_t sign = UINT64_C(1) << (t.bits - 1),
             one = infinity_of(t) / 2 & ~((UINT64_C(1) << t.fraction) - 1);
    number x = number_of(s, a, flushes), y = number_of(s, b, flushes);
    if (has(h, ".oob") && (a == 0xffff || b == 0xffff))
        return 0;
    number z = number_of(h->operation == 'f' ? t
                         : h->form == 'a'    ? t
                                             : s,
                         h->form == 'a' || h->operation == 'f' ? c : b, flushes);
    number first = h->operation == 'f' || h->operation == '*' ? product(x, y) : x;
    z.negative ^= h->operation == '-';
    if (h->operation == '*') /* plus a zero with the product's sign */
        z = (number){ZERO, first.negative, 0, 0};
    uint64_t r = sum_of(t, first, z, h->mode);
    if (flushes && !(r & infinity_of(t)))
        r &= sign;
    bool is_nan = (r & (sign - 1)) > infinity_of(t);
    if (has(h, ".sat"))
        r = is_nan || r & sign ? 0 : r > one ? one : r;
    if (has(h, ".relu") && !is_nan && r & sign)
        r = 0;
    return r;
}

/* The instruction with its operands. */
static const char *text_of(const half_case *h)
{
    static char text[128];
    const char *three = h->operation == 'f' ? "%x5, %x0, %x1, %x2;" : "%x5, %x0, %x1;";
    const char *operands = h->form == 'a' ? "%f5, %h0, %f2;" : h->form == 'm' ? "%f5, %h0, %h1, %f2;" : three;
    int size = snprintf(text, sizeof text, "%s ", h->instruction);
    snprintf(text + size, sizeof text - (size_t)size, "%s", operands);
    for (char *at = text + size; *at; at++)
        if (*at == 'x')
            *at = h->form == 'h' ? 'h' : h->form == '2' ? 'f' : 'd';
    return text;
}

/* Any bits; values near an earlier one, so that sums cancel; zeros, infinities, NaN, the NaN of .oob. */
static uint64_t hostile(format t, uint64_t former)
{
    const uint64_t some[] = {0,
                             UINT64_C(1) << (t.bits - 1),
                             infinity_of(t),
                             infinity_of(t) | UINT64_C(1) << (t.bits - 1),
                             0xffff,
                             1,
                             infinity_of(t) - 1,
                             infinity_of(t) / 2,
                             UINT64_C(1) << t.fraction};
    uint64_t r = random_bits(), all = UINT64_MAX >> (64 - t.bits);
    switch (r >> 60 & 3) {
    case 0:
        return some[(r >> 8) % 9];
    case 1:
        return (former ^ (r & 0x3f) ^ (r << (t.bits - 9) & UINT64_C(1) << (t.bits - 1))) & all;
    default:
        return r & all;
    }
}

static void test_cases(void **state)
{
    (void)state;
    static uint64_t in[COUNT][3], out[COUNT];
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const half_case *h = &cases[n];
        int parts = h->form == '2' || h->form == 'x' ? 2 : 1, bits = h->source->bits;
        bool is_mixed = h->form == 'a' || h->form == 'm';
        for (int i = 0; i < COUNT; i++) {
            memset(in[i], 0, sizeof in[i]);
            for (int p = 0; p < parts; p++)
                for (int k = 0; k < 3; k++)
                    in[i][k] |=
                        hostile(is_mixed && k == 2 ? f32 : *h->source, k ? in[i][k - 1] >> p * bits : 0)
                        << p * bits;
        }
        run_instruction(".version 8.8\n.target sm_100", text_of(h), COUNT, in, out);
        for (int i = 0; i < COUNT; i++)
            for (int p = 0; p < parts; p++) {
                uint64_t all = UINT64_MAX >> (64 - bits), a = in[i][0] >> p * bits & all,
                         b = in[i][1] >> p * bits & all;
                uint64_t c = is_mixed ? in[i][2] : in[i][2] >> p * bits & all, want = expected(h, a, b, c);
                uint64_t got = out[i] >> p * bits & (UINT64_MAX >> (64 - h->result->bits));
                if (got != want)
                    fail_msg("%s of %llx %llx %llx gave %llx, not %llx", h->instruction,
                             (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
                             (unsigned long long)got, (unsigned long long)want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, begin_100, end_context);
}
