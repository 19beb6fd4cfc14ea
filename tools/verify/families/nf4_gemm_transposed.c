/* Transposed NF4 matrix product: reference, bound, inputs and sizes.
 *
 * With r the exact sum of a*s*t over columns (s the block's scale, t the table's entry), S the sum of |a*s*t|, u_T half
 * an ulp of C's type, d_T half of the smallest number that it has, and L the longest chain of additions that a product
 * goes through, for all finite inputs of which no product and no sum overflows:
 *
 *     sums in f32     |C - r| <= (L + 3) * 2^-24 * S + (2n + 1) * 2^-150, and for 16-bit C u_T * |r| + d_T more
 *     sums in f64     |C - r| <= 2^-24 * |r| + (L + 3) * 2^-53 * S + 2^-150
 *
 * On tensor cores (strategy mma) it is
 *
 *     |C - r| <= u_T * |r| + d_T + (2 * u_T + (L + 3) * 2^-24) * S + E
 *
 * since the table is rounded to T, and so is what the scale goes into: A times the scale, in tf32 for f16, and for f16 with
 * scales normal the weight. A step of a tensor core cuts what it adds: 4 products of tf32 or 8 of 16 bits, each by less
 * than 2^-24 of the largest, and the sum by 2^-23. So a column counts 1.5 in L, or 1.25, up to the 1024 after which sums
 * join a total in f32. E is what is lost of numbers that are too small to be normal: of a scale's second part, of its
 * product, and of what that is added to. For tf32, which has f32's range, it is nothing beside d_T.
 *
 *     bf16                   E = sum of |t| * (|a| + 2) * d_T: nothing where scales are 0 or at least 2^-118
 *     f16, scales normal     E = sum of |a| * (|t| + 2) * d_T: up to 3 u_T of |a*s| where s is normal
 *
 * Random data must meet it with sqrt(L), and with 16-bit C all elements together, from 64 on,
 * ||C - r|| <= u_T * (||r|| + ||sqrt(sum of (a*s*t)^2)||).
 */
#include "nf4_gemm_transposed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "inputs.h"
#include "nf4.h"

enum { BLOCK = 64, TILE_K = 512, CHUNK = 16, MMA_CHUNK = 32, MOST_SUMMED = 1024, LEAST_OF_NORM = 64 };

static uint64_t parameter(const problem *p, const char *name)
{
    const char *text = manifest_param_value(p->variant, name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool has_parameter(const problem *p, const char *name, const char *word)
{
    const char *text = manifest_param_value(p->variant, name);
    return text && strcmp(text, word) == 0;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static bool is_mma(const problem *p)
{
    return has_parameter(p, "strategy", "mma");
}

static bool has_tf32(const problem *p)
{
    return is_mma(p) && has_parameter(p, "a", "f16") && has_parameter(p, "scales", "any");
}

/* Of the columns of a thread block's part those that one set of a tensor core's sums takes, its totals, the parts. */
static double longest_chain_mma(problem *p)
{
    uint64_t splits = parameter(p, "splits");
    uint64_t columns = ceil_div(ceil_div(problem_integer(p, "n"), MMA_CHUNK), splits) * MMA_CHUNK;
    uint64_t summed = columns < MOST_SUMMED ? columns : MOST_SUMMED;
    return (has_tf32(p) ? 1.5 : 1.25) * (double)summed + (double)(ceil_div(columns, MOST_SUMMED) + splits);
}

/* A lane adds its columns of each 16 that its warp takes; then come the warp's other lanes of the column, the other
 * warps and the other thread blocks. */
static double longest_chain(problem *p)
{
    uint64_t warps = parameter(p, "warps"), splits = parameter(p, "splits");
    if (is_mma(p))
        return longest_chain_mma(p);
    uint64_t chunks = ceil_div(ceil_div(problem_integer(p, "n"), CHUNK), warps * splits);
    return (double)(chunks * CHUNK + 2 * warps - 1 + splits - 1);
}

/* What tensor cores cut where not every product is cut by the most there is: less than the bound up to 12000 columns. No
 * input is known that needs more, so all are held to it. */
static double usually_lost(problem *p)
{
    uint64_t splits = parameter(p, "splits"), chunks = ceil_div(problem_integer(p, "n"), MMA_CHUNK);
    return 5 * 0x1p-20 + (double)(ceil_div(chunks, splits) * 4 + 18 + splits) * 0x1p-24;
}

typedef struct product {
    long double r, magnitude;       /* the exact sum, the sum of magnitudes */
    double squares;                 /* the sum of the products' squares */
    double rows, weights, unscaled; /* the sums of |a|, |t| and |a*t| */
} product;

static product multiply(problem *p, uint64_t row, uint64_t i)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    uint64_t n = problem_integer(p, "n"), k = problem_integer(p, "k");
    const unsigned char *bytes = packed->host;
    const unsigned shift = groups_shift(groups_even_shift(p), i);
    product sum = {0, 0, 0, 0, 0, 0};
    for (uint64_t column = 0; column < n; column++) {
        uint64_t block = column * (k / BLOCK) + i / BLOCK;
        unsigned code = bytes[block * (BLOCK / 2) + i % BLOCK / 2] >> shift & 15;
        double s = element_get(scale->about->type, scale->host, block);
        double a = element_get(in->about->type, in->host, row * n + column);
        long double term = (long double)a * s * nf4_table[code];
        sum.r += term;
        sum.magnitude += fabsl(term);
        sum.squares += (double)(term * term);
        sum.rows += fabs(a);
        sum.weights += fabs(nf4_table[code]);
        sum.unscaled += fabs(a * nf4_table[code]);
    }
    return sum;
}

/* E of the bound. */
static double bound_of_smallest(const problem *p, const product *sum, element_type type)
{
    if (has_tf32(p))
        return 0;
    return (sum->unscaled + 2 * (type == ELEMENT_BF16 ? sum->weights : sum->rows)) * number_smallest(type) /
           2;
}

static double bound_of(problem *p, const product *sum, element_type type, bool is_random)
{
    bool is_f64 = has_parameter(p, "acc", "f64");
    double chain = longest_chain(p), unit = is_f64 ? 0x1p-53 : 0x1p-24;
    double lost = ((is_random ? sqrt(chain) : chain) + 3) * unit;
    if (is_mma(p))
        lost = fmin(lost, usually_lost(p));
    double sums = lost * (double)sum->magnitude;
    if (!is_f64)
        sums += 0x1p-150 * (2 * (double)problem_integer(p, "n") + 1);
    if (is_mma(p))
        sums += 2 * number_unit(type) * (double)sum->magnitude + bound_of_smallest(p, sum, type);
    if (type == ELEMENT_F32 && !is_f64)
        return sums;
    double rounding = number_unit(type) * ((double)fabsl(sum->r) + sums);
    return sums + rounding + number_smallest(type) / 2;
}

/* What lies half an ulp beyond the largest number becomes an infinity. */
static double value_of(element_type type, long double r)
{
    double largest = number_largest(type), limit = largest + ldexp(number_unit(type), ilogb(largest));
    return fabsl(r) >= limit ? copysign(INFINITY, (double)r) : (double)r;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *arrivals = problem_find(p, "arrivals");
    uint64_t m = problem_integer(p, "m"), k = problem_integer(p, "k");
    element_type type = out->about->type;
    bool is_random = pattern->flags & PATTERN_RANDOM;
    double r_squares = 0, squares = 0;
    expect_values(p, out);
    for (uint64_t i = 0; i < m * k; i++) {
        product sum = multiply(p, i / k, i % k);
        out->expected_value[i] = value_of(type, sum.r);
        out->bound[i] = bound_of(p, &sum, type, is_random);
        r_squares += (double)(sum.r * sum.r);
        squares += sum.squares;
    }
    bool has_norm = is_random && type != ELEMENT_F32 && m * k >= LEAST_OF_NORM;
    out->norm_bound = has_norm ? number_unit(type) * (sqrt(r_squares) + sqrt(squares)) : 0;
    if (arrivals)
        expect_bits(p, arrivals); /* all 0, as before */
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum {
    GEMM_ONE_HOT = 100, /* a single 1 in each row of A: each weight at its own place */
    GEMM_CANCELLING,    /* x, -x, ... times equal weights: r is 0 or one product, S is large */
    GEMM_LARGE,         /* A as large as its sums allow */
    GEMM_OVERFLOW,      /* C is infinite in f16 */
    GEMM_TINY_SCALE,    /* denormal scales */
    GEMM_ANY_SCALE,     /* scales over many powers of two, both signs, and 0 */
    GEMM_SCALE_PARTS,   /* C is near 0, and shows it when scales are rounded to A's type: see worst */
    GEMM_LAST_COLUMN,   /* all of A but the last column is 0 */
    GEMM_SMALL_SCALE,   /* scales down to the smallest normal number of f32, A large enough to show them */
    GEMM_LARGE_SCALE,   /* scales beyond f16, up to 2^100 where C has room for them, A small */
    GEMM_ABSORBED,      /* after the first each product is just below what a tensor core keeps beside that */
    GEMM_SWALLOWED      /* 1, 2^-60, -1, so that r is less than the sum's last place */
};

/* Scales half-way between numbers of A's type, codes and A with which rounding them there makes a product larger, and
 * smaller, by most of all: in all by 2.2 u_T and more, with the table's error and that of what the scale is folded into;
 * without it by 0.3 to 0.8. Products of both kinds are alike in size, so that r leaves the bound no more than 2 u_T * S. */
typedef struct factors {
    unsigned code;
    double scale, a;
} factors;

static const factors worst_f16[2] = {{3, 0x1.47ep+0, 1}, {2, 0x1.02ap+0, -1}};
static const factors worst_bf16[2] = {{4, 0x1.17p+0, 0x1.d6p+1}, {2, 0x1.05p+0, -0x1.fep+0}};

static const factors *worst(element_type of_a, uint64_t column)
{
    return (of_a == ELEMENT_BF16 ? worst_bf16 : worst_f16) + column % 2;
}

/* From 2^low to below 2^high, of both signs, and 0. */
static double scale_between(int low, int high, random_stream s, uint64_t i)
{
    const uint64_t exponents = (uint64_t)(high - low);
    double magnitude =
        ldexp(1 + random_uniform(s, 2 * i), (int)random_below(random_fork(s, 1), i, exponents) + low);
    return random_below(random_fork(s, 2), i, 16) == 0 ? 0
           : random_bits(s, 2 * i + 1) & 1             ? -magnitude
                                                       : magnitude;
}

/* C is not to be near its type's end, where a bound has infinity in it. */
static double scale_of(element_type of_a, bool is_normal, int kind, random_stream s, uint64_t i)
{
    const bool is_f16 = of_a == ELEMENT_F16;
    switch (kind) {
    case GEMM_ANY_SCALE:
        return scale_between(is_normal ? -14 : -20, is_f16 ? 8 : 21, s, i);
    case GEMM_SMALL_SCALE:
        return scale_between(is_normal ? -14 : -126, is_normal ? -8 : -12, s, i);
    case GEMM_LARGE_SCALE:
        return scale_between(is_normal ? 12 : 16, is_normal ? 15 : is_f16 ? 28 : 100, s, i);
    case GEMM_TINY_SCALE:
        return is_normal ? scale_between(-14, -13, s, i) : 0x1p-149 * (double)random_below(s, i, 65);
    case GEMM_ABSORBED:
        return 0x1p-2;
    case GEMM_CANCELLING:
    case GEMM_SWALLOWED:
    case GEMM_OVERFLOW:
        return 1;
    case GEMM_LARGE:
        return of_a == ELEMENT_F16 ? 0x1p-14 : 0x1p-8;
    default:
        return fabs(random_normal(s, i)) + 0x1p-10;
    }
}

static double large(element_type type, random_stream s, uint64_t i)
{
    double most = type == ELEMENT_F16 ? number_largest(type) : 0x1p119;
    return (random_bits(s, i) & 1 ? -1 : 1) * most * (random_below(s, i + 1, 4) ? 1 : random_uniform(s, i));
}

/* Just less than 2^-24 of the first, by the eleven or eight bits that A has. */
static double absorbed(element_type type, uint64_t column)
{
    return column == 0 ? 0x1p12 : (1 - number_unit(type)) * 0x1p-12;
}

static double swallowed(element_type type, uint64_t column)
{
    const double small = type == ELEMENT_F16 ? 0x1p-24 : 0x1p-60;
    return column % 3 == 0 ? 1 : column % 3 == 1 ? small : -1;
}

static void fill_a(problem *p, argument *in, int kind, random_stream s)
{
    uint64_t n = problem_integer(p, "n");
    element_type type = in->about->type;
    if (kind < GEMM_ONE_HOT) {
        inputs_fill(in, (input_kind)kind, s);
        return;
    }
    inputs_fill(in, kind == GEMM_CANCELLING ? INPUT_ALTERNATING : INPUT_NORMAL, s);
    for (uint64_t i = 0; i < in->count; i++) {
        if (kind == GEMM_ONE_HOT)
            element_set(type, in->host, i, i % n == random_below(s, i / n, n) ? 1 : 0);
        else if (kind == GEMM_SCALE_PARTS)
            element_set(type, in->host, i, worst(type, i % n)->a);
        else if (kind == GEMM_LARGE)
            element_set(type, in->host, i, large(type, s, i));
        else if (kind == GEMM_OVERFLOW)
            element_set(type, in->host, i, type == ELEMENT_F16 ? number_largest(type) : 1);
        else if (kind == GEMM_LAST_COLUMN && i % n + 1 < n)
            element_set(type, in->host, i, 0);
        else if (kind == GEMM_SMALL_SCALE)
            element_set(type, in->host, i, random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p13 : 0x1p90));
        else if (kind == GEMM_LARGE_SCALE)
            element_set(type, in->host, i, random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p-20 : 0x1p-70));
        else if (kind == GEMM_ABSORBED)
            element_set(type, in->host, i, absorbed(type, i % n));
        else if (kind == GEMM_SWALLOWED)
            element_set(type, in->host, i, swallowed(type, i % n));
    }
}

static void fill_scale_parts(element_type of_a, argument *packed, argument *scale, uint64_t blocks)
{
    for (uint64_t i = 0; i < scale->count; i++) {
        const factors *one = worst(of_a, i / blocks);
        element_set(scale->about->type, scale->host, i, one->scale);
        memset((unsigned char *)packed->host + i * (BLOCK / 2), (int)(one->code * 0x11), BLOCK / 2);
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    int kind = pattern->number;
    const bool is_normal = problem_integer(p, "normal_scales");
    fill_a(p, in, kind, random_fork(s, 1));
    random_stream of_scales = random_fork(s, 2);
    for (uint64_t i = 0; i < scale->count; i++)
        element_set(scale->about->type, scale->host, i,
                    scale_of(in->about->type, is_normal, kind, of_scales, i));
    inputs_fill_bytes(packed, random_fork(s, 3));
    if (kind == GEMM_CANCELLING)
        memset(packed->host, 0x22, packed->bytes);
    if (kind == GEMM_OVERFLOW || kind == GEMM_ABSORBED || kind == GEMM_SWALLOWED)
        memset(packed->host, 0xff, packed->bytes);
    if (kind == GEMM_SCALE_PARTS)
        fill_scale_parts(in->about->type, packed, scale, problem_integer(p, "k") / BLOCK);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"absorbed",    PATTERN_LARGE,                  GEMM_ABSORBED},
    {"normal",      PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"one-hot",     PATTERN_LARGE,                  GEMM_ONE_HOT},
    {"small-scale", PATTERN_LARGE,                  GEMM_SMALL_SCALE},
    {"scale-parts", 0,                              GEMM_SCALE_PARTS},
    {"large-scale", 0,                              GEMM_LARGE_SCALE},
    {"swallowed",   0,                              GEMM_SWALLOWED},
    {"last-column", 0,                              GEMM_LAST_COLUMN},
    {"uniform",     PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",        PATTERN_LARGE,                  INPUT_REAL},
    {"cancelling",  0,                              GEMM_CANCELLING},
    {"denormal",    0,                              INPUT_DENORMAL},
    {"tiny-scale",  0,                              GEMM_TINY_SCALE},
    {"any-scale",   PATTERN_LARGE,                  GEMM_ANY_SCALE},
    {"large",       0,                              GEMM_LARGE},
    {"overflow",    0,                              GEMM_OVERFLOW},
    {"zero",        0,                              INPUT_ZERO},
    {"huge-tiny",   0,                              INPUT_HUGE_TINY},
    {"nonfinite",   PATTERN_NONFINITE,              INPUT_NONFINITE},
    {NULL,          0,                              0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* As much as the variant needs. */
static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t k)
{
    uint64_t tile_m = parameter(p, "tile_m"), splits = parameter(p, "splits");
    return splits == 1 ? 0 : ceil_div(m, tile_m) * ceil_div(k, TILE_K) * splits * tile_m * TILE_K;
}

static void set(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    m = size_plan_value(plan, "m", m);
    n = size_plan_value(plan, "n", n);
    k = size_plan_value(plan, "k", k);
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "n")->integer = n;
    problem_find(plan->problem, "k")->integer = k;
    problem_find(plan->problem, "workspace_size")->integer = workspace_size(plan->problem, m, k);
    /* what any scales are right for is right for normal ones, and dispatch may then pick others */
    problem_find(plan->problem, "normal_scales")->integer =
        has_parameter(plan->problem, "scales", "normal") || k == 192;
}

static void add(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set(plan, m, n, k);
    size_plan_add(plan);
}

static void add_always(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set(plan, m, n, k);
    size_plan_add_always(plan);
}

/* Around every edge: of tiles, of blocks, of the columns that a warp and all warps take at once; no columns at all. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {0, 64, 128, 192, 320, 448, 512, 576, 832, 1024, 1088};
    const problem *p = plan->problem;
    uint64_t tile_m = parameter(p, "tile_m"), warps = parameter(p, "warps");
    uint64_t step = parameter(p, "vector") == 8 ? 8 : 1, chunk = is_mma(p) ? MMA_CHUNK : CHUNK;
    uint64_t turn = chunk * parameter(p, "splits") * (is_mma(p) ? 1 : warps);
    edge_list rows = {{0}, 0}, columns = {{0}, 0};
    edges_add_around(&rows, 1);
    edges_add_around(&rows, tile_m);
    edges_add_around(&rows, 2 * tile_m);
    edges_add_around(&columns, 1);
    edges_add_around(&columns, chunk / step);
    edges_add_around(&columns, turn / step);
    edges_add_around(&columns, 2 * turn / step);
    for (size_t i = 0; i < rows.count; i++)
        add(plan, rows.values[i], (2 * chunk / step + 1) * step, 64);
    for (size_t i = 0; i < columns.count; i++)
        add(plan, tile_m, columns.values[i] * step, 128);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        add(plan, tile_m + 1, (chunk / step + 1) * step, ks[i]);
    add(plan, 1, (2 * turn / step + 1) * step, 64);
    add(plan, 2, (turn / step + 3) * step, TILE_K + BLOCK);
    add(plan, 1, 67 / step * step, 2560);
    const uint64_t splits =
        parameter(p, "splits"); /* sums that become a total, join it, and are joined by it */
    if (is_mma(p))
        add_always(plan, 1, (splits > 2 ? splits : 2 * splits) * MOST_SUMMED + step, BLOCK);
    if (plan->limits.big) /* one block of many columns */
        add(plan, 1, plan->limits.big / BLOCK / step * step, BLOCK);
    if (plan->limits.is_full) {
        add(plan, 2, 12288 + step, 64);
        add(plan, 1, 3 * step, 65536);
        add(plan, 65, 129 / step * step, 640);
    }
}

const family_row nf4_gemm_transposed_row = {.name = "nf4_gemm_transposed",
                                            .args = "in packed scale out m n k workspace_size normal_scales",
                                            .patterns = patterns,
                                            .plan = plan_sizes,
                                            .make = make,
                                            .expect = expect};
