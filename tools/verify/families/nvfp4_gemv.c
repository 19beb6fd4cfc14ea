/* The float64 reference of nvfp4_gemv, and the bound on its error: with r the exact sum, S the sum over blocks of 16 of
 * |sfa * sfb * the block's sum|, u half an ulp of c's type and L the longest chain of additions,
 *
 *     |c - r| <= u |r| + (L + 1) 2^-24 S          random data: sqrt(L)
 *
 * and half of c's smallest number where c is not normal. The products and the sums within a block are exact.
 */
#include "nvfp4_gemv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

enum { BLOCK = 16, NAN_SCALE = 0x7f, LARGEST_SCALE = 0x7e, DEFAULT_B_ROWS = 128 };

/* ---- the format ------------------------------------------------------------------------------------------------- */

/* A float of a sign, an exponent and a fraction; exponent 0 has no leading one. */
static double small_float(unsigned bits, unsigned fraction_bits, int bias, unsigned sign_bit)
{
    unsigned magnitude = bits & (sign_bit - 1), fraction = magnitude & ((1u << fraction_bits) - 1);
    int exponent = (int)(magnitude >> fraction_bits);
    double whole = (double)(exponent ? fraction + (1u << fraction_bits) : fraction);
    double value = ldexp(whole, (exponent ? exponent : 1) - bias - (int)fraction_bits);
    return bits & sign_bit ? -value : value;
}

double nvfp4_code_value(unsigned code)
{
    return small_float(code, 1, 1, 8);
}

double nvfp4_scale_value(unsigned scale)
{
    return (scale & 0x7f) == NAN_SCALE ? NAN : small_float(scale, 3, 7, 0x80);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static uint64_t parameter(const problem *p, const char *name)
{
    return strtoull(manifest_param_value(p->variant, name), NULL, 10);
}

static uint64_t padded_rows(problem *p)
{
    uint64_t given = problem_integer(p, "b_rows");
    return given ? given : DEFAULT_B_ROWS;
}

static bool is_mma(const problem *p)
{
    return strcmp(manifest_param_value(p->variant, "strategy"), "mma") == 0;
}

/* simt: a warp's lanes have lane_codes each, and add block after block; then the 32 lanes are added, then the warps that share
 * the row. mma: a lane has 8 blocks of each 512 codes, and 4 lanes a row. */
static double longest_chain(problem *p)
{
    uint64_t codes = is_mma(p) ? 512 : 32 * parameter(p, "lane_codes"), warps = parameter(p, "warps");
    uint64_t turns = (problem_integer(p, "k") + codes * warps - 1) / (codes * warps),
             lanes = is_mma(p) ? 4 : 32;
    return (double)(turns * (codes / BLOCK / lanes) + (is_mma(p) ? 2 : 5) + warps - 1);
}

typedef struct product {
    long double r, size;
} product;

static product multiply(problem *p, uint64_t row, uint64_t vector)
{
    const unsigned char *a = problem_find(p, "a")->host, *sfa = problem_find(p, "sfa")->host,
                        *b = problem_find(p, "b")->host, *sfb = problem_find(p, "sfb")->host;
    uint64_t k = problem_integer(p, "k");
    product sum = {0, 0};
    a += row * (k / 2), sfa += row * (k / BLOCK), b += vector * (k / 2), sfb += vector * (k / BLOCK);
    for (uint64_t block = 0; block < k / BLOCK; block++) {
        double codes = 0;
        for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
            unsigned shift = i % 2 ? 4 : 0;
            codes += nvfp4_code_value(a[i / 2] >> shift & 15) * nvfp4_code_value(b[i / 2] >> shift & 15);
        }
        double term = nvfp4_scale_value(sfa[block]) * nvfp4_scale_value(sfb[block]) * codes;
        sum.r += term;
        sum.size += fabs(term);
    }
    return sum;
}

/* What lies half an ulp beyond the largest number becomes an infinity. */
static double value_of(element_type type, long double r)
{
    double largest = number_largest(type), limit = largest + ldexp(number_unit(type), ilogb(largest));
    return fabsl(r) >= limit ? copysign(INFINITY, (double)r) : (double)r;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out");
    uint64_t m = problem_integer(p, "m");
    double chain = longest_chain(p);
    element_type type = out->about->type;
    expect_values(p, out);
    for (uint64_t i = 0; i < out->count; i++) {
        product sum = multiply(p, i, i / m * padded_rows(p));
        double additions = (pattern->flags & PATTERN_RANDOM ? sqrt(chain) : chain) + 1;
        out->expected_value[i] = value_of(type, sum.r);
        out->bound[i] = number_unit(type) * (double)fabsl(sum.r) + additions * 0x1p-24 * (double)sum.size +
                        number_smallest(type) / 2;
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Codes and scales of one row, with the row's own random stream. */
typedef void row_maker(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s);

static unsigned char random_scale(random_stream s, uint64_t i, unsigned from, unsigned to)
{
    return (unsigned char)((random_bits(random_fork(s, 7), i) & 0x80) |
                           (from + random_below(s, i, to + 1 - from)));
}

static void fill_codes(unsigned char *codes, uint64_t k, random_stream s)
{
    for (uint64_t i = 0; i < k / 2; i++)
        codes[i] = (unsigned char)random_bits(s, i);
}

static void fill_row(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s, unsigned from,
                     unsigned to)
{
    fill_codes(codes, k, random_fork(s, 1));
    for (uint64_t i = 0; i < k / BLOCK; i++)
        scales[i] = random_scale(random_fork(s, 2), i, from, to);
}

/* Scales of 1/16 to 2, so that sums stay within f16. */
static void make_moderate(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, 0x18, 0x40);
}

static void make_any(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, 0, LARGEST_SCALE);
}

static void make_denormal(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, 0, 7);
}

static void make_448(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, LARGEST_SCALE, LARGEST_SCALE);
}

/* Everything as large as it gets, of one sign. */
static void make_largest(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    unsigned char sign = random_bits(s, 0) & 1 ? 0x88 : 0;
    memset(codes, 0x77 | sign, k / 2);
    memset(scales, LARGEST_SCALE, k / BLOCK);
}

/* Block after block +x, -x: of a, against the equal blocks of b. */
static void make_cancelling(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_any(codes, scales, k, s);
    for (uint64_t block = 1; block < k / BLOCK; block += 2) {
        memcpy(codes + 8 * block, codes + 8 * (block - 1), 8);
        scales[block] = scales[block - 1] ^ 0x80;
    }
}

static void make_equal(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_moderate(codes, scales, k, s);
    for (uint64_t block = 1; block < k / BLOCK; block++) {
        memcpy(codes + 8 * block, codes, 8);
        scales[block] = scales[0];
    }
}

/* One code of 1 in a row of zeros. */
static void make_one_hot(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    memset(codes, 0, k / 2);
    memset(scales, 0x38, k / BLOCK);
    if (k == 0)
        return;
    uint64_t i = random_below(s, 0, k);
    codes[i / 2] = i % 2 ? 0x20 : 0x02;
}

/* Zeros of both signs, in scales and codes. */
static void make_zero(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, 0, 0);
    for (uint64_t i = 0; i < k / 2; i += 3)
        codes[i] &= 0x88;
}

static void make_nan(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_any(codes, scales, k, s);
    for (uint64_t i = 0; i < k / BLOCK; i++) {
        if (random_below(random_fork(s, 3), i, 1 + k / BLOCK * 2) == 0)
            scales[i] |= NAN_SCALE;
    }
    if (k >= BLOCK && random_below(random_fork(s, 4), 0, 4) == 0)
        scales[k / BLOCK - 1] = random_bits(s, 0) & 1 ? 0xff : 0x7f;
}

static unsigned nearest(double x, unsigned count, double (*value)(unsigned))
{
    unsigned best = 0;
    for (unsigned code = 1; code < count; code++) {
        if (fabs(value(code) - x) < fabs(value(best) - x))
            best = code;
    }
    return best;
}

/* Numbers of a real model, rounded to NVFP4. */
static void make_real(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    const manifest_arg about = {.type = ELEMENT_F32};
    pool memory = {0};
    argument x = {.about = &about, .count = k, .bytes = (size_t)k * sizeof(float)};
    x.host = pool_allocate(&memory, x.bytes);
    inputs_fill(&x, INPUT_REAL, s);
    const float *values = x.host;
    memset(codes, 0, k / 2);
    for (uint64_t block = 0; block < k / BLOCK; block++) {
        double most = 0;
        for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            most = fmax(most, fabs((double)values[i]));
        scales[block] = (unsigned char)nearest(most / 6, LARGEST_SCALE + 1, nvfp4_scale_value);
        double scale = scales[block] ? nvfp4_scale_value(scales[block]) : 1;
        for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            codes[i / 2] |=
                (unsigned char)(nearest((double)values[i] / scale, 16, nvfp4_code_value) << (i % 2 ? 4 : 0));
    }
    pool_free(&memory);
}

enum { MODERATE, REAL, ONE_HOT, ANY, CANCELLING, DENORMAL, ALL_448, LARGEST, ZERO, NAN_A, NAN_B };

static const struct {
    row_maker *a, *b;
} makers[] = {
    [MODERATE] = {make_moderate, make_moderate},
    [REAL] = {make_real, make_real},
    [ONE_HOT] = {make_any, make_one_hot},
    [ANY] = {make_any, make_any},
    [CANCELLING] = {make_cancelling, make_equal},
    [DENORMAL] = {make_denormal, make_denormal},
    [ALL_448] = {make_448, make_448},
    [LARGEST] = {make_largest, make_largest},
    [ZERO] = {make_any, make_zero},
    [NAN_A] = {make_nan, make_any},
    [NAN_B] = {make_any, make_nan},
};

static void make_rows(row_maker *maker, argument *codes, argument *scales, uint64_t k, uint64_t rows,
                      uint64_t step, random_stream s)
{
    for (uint64_t row = 0; row < rows; row += step)
        maker((unsigned char *)codes->host + row * (k / 2), (unsigned char *)scales->host + row * (k / BLOCK),
              k, random_fork(s, row));
}

/* The rows that pad b are random bytes, NaN among their scales. */
static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *b = problem_find(p, "b"), *sfb = problem_find(p, "sfb");
    uint64_t m = problem_integer(p, "m"), k = problem_integer(p, "k"), l = problem_integer(p, "l");
    inputs_fill_bytes(b, random_fork(s, 1));
    inputs_fill_bytes(sfb, random_fork(s, 2));
    make_rows(makers[pattern->number].a, problem_find(p, "a"), problem_find(p, "sfa"), k, m * l, 1,
              random_fork(s, 3));
    make_rows(makers[pattern->number].b, b, sfb, k, l * padded_rows(p), padded_rows(p), random_fork(s, 4));
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"random",     PATTERN_RANDOM | PATTERN_LARGE, MODERATE},
    {"one-hot",    PATTERN_LARGE,                  ONE_HOT},
    {"nan-a",      PATTERN_NONFINITE,              NAN_A},
    {"real",       0,                              REAL},
    {"any-scale",  0,                              ANY},
    {"cancelling", 0,                              CANCELLING},
    {"denormal",   0,                              DENORMAL},
    {"scale-448",  0,                              ALL_448},
    {"largest",    0,                              LARGEST},
    {"zero",       0,                              ZERO},
    {"nan-b",      PATTERN_NONFINITE,              NAN_B},
    {NULL,         0,                              0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void set(size_plan *plan, uint64_t m, uint64_t k, uint64_t l, uint64_t b_rows)
{
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "k")->integer = k;
    problem_find(plan->problem, "l")->integer = l;
    problem_find(plan->problem, "b_rows")->integer = b_rows;
}

static void add(size_plan *plan, uint64_t m, uint64_t k, uint64_t l, uint64_t b_rows)
{
    set(plan, m, k, l, b_rows);
    size_plan_add(plan);
}

/* Around every edge: of the rows of a thread block, of a warp's step along k and a turn of all warps, of what of b is
 * decoded at once (16384); 3, 5, 7 and 33 vectors; padding of none, one row, the usual one. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {0, 16, 32, 48, 64, 96, 112, 256, 272}, ls[] = {0, 2, 3, 5, 7, 8, 33};
    const problem *p = plan->problem;
    uint64_t warps = parameter(p, "warps"), tile = 8 / warps * parameter(p, "rows"),
             step = is_mma(p) ? 512 : 32 * parameter(p, "lane_codes"), turn = step * warps;
    edge_list rows = {{0}, 0};
    edges_add_around(&rows, 1);
    edges_add_around(&rows, tile);
    edges_add_around(&rows, 2 * tile);
    for (size_t i = 0; i < rows.count; i++)
        add(plan, rows.values[i], 96, 2, 1);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        add(plan, tile + 1, ks[i], 2, 3);
    for (size_t i = 0; i < sizeof ls / sizeof ls[0]; i++)
        add(plan, 5, 64, ls[i], i % 2);
    for (int64_t around = -32; around <= 32; around += 16) {
        add(plan, 3, step + (uint64_t)around, 1, 2);
        add(plan, 2, turn + (uint64_t)around, 2, 1);
        add(plan, 1, 4 * turn + (uint64_t)around, 1, 1);
        add(plan, 1, 16384 + (uint64_t)around, 2, 1);
    }
    for (uint64_t k = 512; k <= 4608; k += k < 2048 ? 512 : 1024)
        add(plan, tile + 2, k, 2, 1);
    add(plan, 1, 32768 + 512, 1, 1);
    add(plan, 2 * tile + 3, 1056, 3, 0);
    add(plan, 67, 48, 3, 0);
    add(plan, 17, 2048, 4, 0);
    /* more vectors than the grid has rows of thread blocks, of which some then take two */
    set(plan, 1, is_mma(p) ? 512 : parameter(p, "lane_codes"), 256 + 3, 1);
    size_plan_add_always(plan);
    if (plan->limits.is_full) {
        add(plan, 1, 32, 65537, 1);
        add(plan, 129, 7168, 2, 128);
    }
}

const family_row nvfp4_gemv_row = {.name = "nvfp4_gemv",
                                   .args = "a sfa b sfb out m k l b_rows",
                                   .patterns = patterns,
                                   .plan = plan_sizes,
                                   .make = make,
                                   .expect = expect,
                                   .expects_nonfinite = true};
