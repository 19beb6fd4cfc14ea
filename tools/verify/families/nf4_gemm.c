/* NF4 matrix product: reference, bound, inputs and sizes.
 *
 * With r the exact sum of a*s*t (s the block's scale, t the table's entry), S the sum of |a*s*t|, u_T half an ulp of
 * C's type, d_T half of the smallest number that it has, and L the longest chain of additions that a product goes through,
 * for all finite inputs of which no sum overflows, before or after the scale:
 *
 *     sums in f32     |C - r| <= (L + 3) * 2^-24 * S + (sum of |s| + k + 1) * 2^-150, and for 16-bit C u_T * |r| + d_T more
 *     sums in f64     |C - r| <= 2^-24 * |r| + (L + 3) * 2^-53 * S + 2^-150
 *
 *     tensor cores    |C - r| <= u_T * |r| + d_T + (5 * 2^-20 + (L + 3) * 2^-24 + u_T) * S + (sum of |s| + k + 1) * 2^-150
 *
 * since the table is rounded to T, and a step of a tensor core cuts what it adds: 8 products, each by less than 2^-24 of
 * the largest, and the sum by 2^-23, so that 64 of them, which then take their scale in f32, lose up to 80 * 2^-24. The
 * terms with 2^-150 are what products and sums lose that are too small to be normal numbers of f32. Random data must meet
 * the bound with sqrt(L), and with 16-bit C all elements together, from 64 on,
 * ||C - r|| <= u_T * (||r|| + ||sqrt(sum of (a*s*t)^2)||).
 */
#include "nf4_gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "inputs.h"
#include "nf4.h"

enum { BLOCK = 64, LEAST_OF_NORM = 64 };

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

static bool is_mma(const problem *p)
{
    return has_parameter(p, "strategy", "mma");
}

/* A warp adds its blocks of 64 one by one; what a block's products are added in is the matrix unit's affair. */
static double longest_chain_mma(problem *p)
{
    uint64_t slices = parameter(p, "slices"), splits = parameter(p, "splits");
    uint64_t blocks = problem_integer(p, "k") / BLOCK, of_part = (blocks + splits - 1) / splits;
    return (double)((of_part + slices - 1) / slices + slices - 1 + splits - 1);
}

/* Narrow tiles: a lane adds 32 products, then that sum to those of its warp's other 256s, then eight lanes and all
 * warps. Wide ones: 64 products, then that sum to those of the warp's other blocks, then all warps. */
static double longest_chain(problem *p)
{
    bool is_wide = parameter(p, "tile_m") >= 16;
    uint64_t stretch = is_wide ? BLOCK : 256, slices = parameter(p, "slices");
    uint64_t stretches = (problem_integer(p, "k") + stretch - 1) / stretch;
    return (double)((is_wide ? BLOCK : 32 + 3) + (stretches + slices - 1) / slices + slices - 1);
}

typedef struct product {
    long double r, magnitude; /* the exact sum, the sum of magnitudes */
    double squares;           /* the sum of the products' squares */
    double scales;            /* the sum of the scales' magnitudes */
} product;

static product multiply(problem *p, uint64_t row, uint64_t column)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    uint64_t k = problem_integer(p, "k");
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    product sum = {0, 0, 0, 0};
    for (uint64_t i = 0; i < k; i++) {
        uint64_t block = column * (k / BLOCK) + i / BLOCK;
        unsigned code = bytes[block * (BLOCK / 2) + i % BLOCK / 2] >> groups_shift(even_shift, i) & 15;
        double s = element_get(scale->about->type, scale->host, block);
        double a = element_get(in->about->type, in->host, row * k + i);
        long double term = (long double)a * s * nf4_table[code];
        sum.r += term;
        sum.magnitude += fabsl(term);
        sum.squares += (double)(term * term);
        sum.scales += fabs(s);
    }
    return sum;
}

static double bound_of(problem *p, const product *sum, element_type type, bool is_random)
{
    bool is_f64 = has_parameter(p, "acc", "f64");
    double chain = is_mma(p) ? longest_chain_mma(p) : longest_chain(p), unit = is_f64 ? 0x1p-53 : 0x1p-24;
    double sums = ((is_random ? sqrt(chain) : chain) + 3) * unit * (double)sum->magnitude;
    if (is_mma(p))
        sums += (5 * 0x1p-20 + number_unit(type)) * (double)sum->magnitude;
    if (!is_f64)
        sums += 0x1p-150 * (sum->scales + (double)problem_integer(p, "k") + 1);
    if (type == ELEMENT_F32 && !is_f64)
        return sums;
    double rounding = number_unit(type) * ((double)fabsl(sum->r) + sums);
    return sums + rounding + number_smallest(type) / 2;
}

/* What lies half an ulp beyond the largest number, by more than the bound, becomes an infinity. */
static double value_of(element_type type, long double r, double bound)
{
    double largest = number_largest(type), limit = largest + ldexp(number_unit(type), ilogb(largest));
    return fabsl(r) - bound >= limit ? copysign(INFINITY, (double)r) : (double)r;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out");
    uint64_t m = problem_integer(p, "m"), n = problem_integer(p, "n");
    double r_squares = 0, squares = 0;
    expect_values(p, out);
    for (uint64_t i = 0; i < m * n; i++) {
        product sum = multiply(p, i / n, i % n);
        out->bound[i] = bound_of(p, &sum, out->about->type, pattern->flags & PATTERN_RANDOM);
        out->expected_value[i] = value_of(out->about->type, sum.r, out->bound[i]);
        r_squares += (double)(sum.r * sum.r);
        squares += sum.squares;
    }
    bool has_norm =
        pattern->flags & PATTERN_RANDOM && out->about->type != ELEMENT_F32 && m * n >= LEAST_OF_NORM;
    out->norm_bound = has_norm ? number_unit(out->about->type) * (sqrt(r_squares) + sqrt(squares)) : 0;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum {
    GEMM_ONE_HOT = 100, /* a single 1 in each row of A: each weight at its own place */
    GEMM_CANCELLING,    /* x, -x, ... times equal weights: r is 0 or one product, S is large */
    GEMM_LARGE,         /* A as large as its sums allow */
    GEMM_LIMIT,         /* 64 products of the largest A that may be added before the scale */
    GEMM_OVERFLOW,      /* C is infinite in f16 */
    GEMM_TINY_SCALE,    /* denormal scales */
    GEMM_ANY_SCALE,     /* scales over 40 powers of two, both signs, and 0 */
    GEMM_LAST_BLOCK,    /* all of A but the last block along K is 0 */
    GEMM_SMALL_SCALE,   /* scales down to the smallest normal number of f32, A large enough to show them */
    GEMM_LARGE_SCALE, /* scales beyond f16, up to 2^100 where C has room for them, A small, and smaller than normal */
    GEMM_ABSORBED, /* after a block's first each product is just below what a tensor core keeps beside that */
    GEMM_SWALLOWED /* 1, 2^-60, -1, so that r is less than the sum's last place */
};

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

static double scale_of(element_type of_a, int kind, random_stream s, uint64_t i)
{
    switch (kind) {
    case GEMM_ANY_SCALE:
        return scale_between(-20, 21, s, i);
    case GEMM_SMALL_SCALE:
        return scale_between(-126, -12, s, i);
    case GEMM_LARGE_SCALE:
        return scale_between(16, of_a == ELEMENT_F16 ? 28 : 100, s, i);
    case GEMM_TINY_SCALE:
        return 0x1p-149 * (double)random_below(s, i, 65);
    case GEMM_CANCELLING:
    case GEMM_ABSORBED:
    case GEMM_SWALLOWED:
    case GEMM_OVERFLOW:
        return 1;
    case GEMM_LARGE:
        return of_a == ELEMENT_F16 ? 0x1p-14 : 0x1p-8;
    case GEMM_LIMIT:
        return of_a == ELEMENT_F16 ? 0x1p-14 : 0x1p-12;
    default:
        return fabs(random_normal(s, i)) + 0x1p-10;
    }
}

static double large(element_type type, random_stream s, uint64_t i)
{
    double most = type == ELEMENT_F16 ? number_largest(type) : 0x1p119;
    return (random_bits(s, i) & 1 ? -1 : 1) * most * (random_below(s, i + 1, 4) ? 1 : random_uniform(s, i));
}

/* Just below 2^122, for 64 of them are just below 2^128. */
static double limit_of(element_type type)
{
    return type == ELEMENT_F16 ? number_largest(type) : 0x1p122 * (1 - number_unit(type));
}

static double one_hot(random_stream s, uint64_t row, uint64_t column, uint64_t k)
{
    return column == random_below(s, row, k) ? 1 : 0;
}

/* Just less than 2^-24 of the block's first, by the bits that A has. */
static double absorbed(element_type type, uint64_t i)
{
    return i % BLOCK == 0 ? 0x1p12 : (1 - number_unit(type)) * 0x1p-12;
}

static double swallowed(element_type type, uint64_t i)
{
    const double small = type == ELEMENT_F16 ? 0x1p-24 : 0x1p-60;
    return i % 3 == 0 ? 1 : i % 3 == 1 ? small : -1;
}

/* A where scales are small, and where they are large; of three in f32 and bf16 one is too small to be normal. */
static double beside_small(element_type type, random_stream s, uint64_t i)
{
    return random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p13 : 0x1p90);
}

static double beside_large(element_type type, random_stream s, uint64_t i)
{
    return random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p-20 : i % 3 == 0 ? 0x1p-128 : 0x1p-70);
}

static void fill_a(problem *p, argument *in, int kind, random_stream s)
{
    uint64_t k = problem_integer(p, "k");
    element_type type = in->about->type;
    if (kind < GEMM_ONE_HOT) {
        inputs_fill(in, (input_kind)kind, s);
        return;
    }
    inputs_fill(in, kind == GEMM_CANCELLING ? INPUT_ALTERNATING : INPUT_NORMAL, s);
    for (uint64_t i = 0; i < in->count; i++) {
        if (kind == GEMM_ONE_HOT)
            element_set(type, in->host, i, one_hot(s, i / k, i % k, k));
        else if (kind == GEMM_LARGE)
            element_set(type, in->host, i, large(type, s, i));
        else if (kind == GEMM_LIMIT)
            element_set(type, in->host, i, limit_of(type));
        else if (kind == GEMM_OVERFLOW)
            element_set(type, in->host, i, type == ELEMENT_F16 ? number_largest(type) : 1);
        else if (kind == GEMM_LAST_BLOCK && i % k + BLOCK < k)
            element_set(type, in->host, i, 0);
        else if (kind == GEMM_SMALL_SCALE)
            element_set(type, in->host, i, beside_small(type, s, i));
        else if (kind == GEMM_LARGE_SCALE)
            element_set(type, in->host, i, beside_large(type, s, i));
        else if (kind == GEMM_ABSORBED)
            element_set(type, in->host, i, absorbed(type, i % k));
        else if (kind == GEMM_SWALLOWED)
            element_set(type, in->host, i, swallowed(type, i % k));
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    int kind = pattern->number;
    fill_a(p, in, kind, random_fork(s, 1));
    random_stream of_scales = random_fork(s, 2);
    for (uint64_t i = 0; i < scale->count; i++)
        element_set(scale->about->type, scale->host, i, scale_of(in->about->type, kind, of_scales, i));
    inputs_fill_bytes(packed, random_fork(s, 3));
    if (kind == GEMM_CANCELLING || kind == GEMM_OVERFLOW || kind == GEMM_LIMIT || kind == GEMM_ABSORBED ||
        kind == GEMM_SWALLOWED)
        memset(packed->host, kind == GEMM_CANCELLING ? 0x22 : 0xff, packed->bytes);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",      PATTERN_RANDOM | PATTERN_LARGE,  INPUT_NORMAL},
    {"one-hot",     PATTERN_LARGE,                   GEMM_ONE_HOT},
    {"small-scale", PATTERN_LARGE,                   GEMM_SMALL_SCALE},
    {"last-block",  0,                               GEMM_LAST_BLOCK},
    {"absorbed",    PATTERN_LARGE,                   GEMM_ABSORBED},
    {"large-scale", 0,                               GEMM_LARGE_SCALE},
    {"swallowed",   0,                               GEMM_SWALLOWED},
    {"uniform",     PATTERN_RANDOM,                  INPUT_UNIFORM},
    {"real",        PATTERN_LARGE,                   INPUT_REAL},
    {"cancelling",  0,                               GEMM_CANCELLING},
    {"denormal",    0,                               INPUT_DENORMAL},
    {"tiny-scale",  0,                               GEMM_TINY_SCALE},
    {"any-scale",   PATTERN_LARGE,                   GEMM_ANY_SCALE},
    {"large",       0,                               GEMM_LARGE},
    {"limit",       0,                               GEMM_LIMIT},
    {"overflow",    0,                               GEMM_OVERFLOW},
    {"zero",        0,                               INPUT_ZERO},
    {"huge-tiny",   0,                               INPUT_HUGE_TINY},
    {"nonfinite",   PATTERN_NONFINITE,               INPUT_NONFINITE},
    {NULL,          0,                               0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static uint64_t tiles(uint64_t count, uint64_t tile)
{
    return (count + tile - 1) / tile;
}

/* As much workspace as the sizes take, none where the variant takes none. */
static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t n)
{
    uint64_t tile_m = parameter(p, "tile_m"), tile_n = parameter(p, "tile_n"),
             splits = parameter(p, "splits");
    return splits > 1 ? tiles(m, tile_m) * tiles(n, tile_n) * splits * tile_m * tile_n : 0;
}

static void set(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    m = size_plan_value(plan, "m", m);
    n = size_plan_value(plan, "n", n);
    k = size_plan_value(plan, "k", k);
    problem_find(plan->problem, "workspace_size")->integer = workspace_size(plan->problem, m, n);
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "n")->integer = n;
    problem_find(plan->problem, "k")->integer = k;
}

static void add(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set(plan, m, n, k);
    size_plan_add(plan);
}

/* Whole tiles, with so long a k that every warp has several rounds of its loop, or else one: on fewer blocks of k most of
 * the loop does nothing. Two sizes, so that there are two inputs. */
static void add_whole_loop(size_plan *plan, uint64_t tile_m, uint64_t tile_n, uint64_t turn)
{
    enum { MOST = 200000 }; /* elements */
    uint64_t k = turn + 5 * BLOCK;
    while (k > turn / 2 && k * (tile_n / 2 + tile_m) > MOST)
        k -= BLOCK;
    set(plan, tile_m, tile_n + 1, k);
    size_plan_add_always(plan);
    set(plan, tile_m, tile_n, k - BLOCK);
    size_plan_add_always(plan);
}

/* More tiles of columns than thread blocks: they go over several, if only to write zeros. */
static void add_many_columns(size_plan *plan, uint64_t tile_n)
{
    char error[256];
    uint64_t blocks = 0;
    problem_find(plan->problem, "n")->integer = 1 << 24;
    if (!problem_evaluate(plan->problem, plan->problem->variant->grid[0], &blocks, error, sizeof error))
        return;
    add(plan, 1, blocks * tile_n + tile_n + 1, BLOCK);
    add(plan, 1, blocks * tile_n + tile_n + 1, 0);
}

/* Around every edge: of tiles, of blocks, of stretches of 256, of a turn of all warps, and of 8192. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {0, 64, 128, 192, 256, 320, 448, 512, 576, 768, 832, 1024, 1088};
    const problem *p = plan->problem;
    uint64_t tile_m = parameter(p, "tile_m"), tile_n = parameter(p, "tile_n");
    uint64_t turn = is_mma(p) ? 2048 * parameter(p, "splits") : 256 * parameter(p, "slices");
    edge_list rows = {{0}, 0}, columns = {{0}, 0};
    edges_add_around(&rows, 1);
    edges_add_around(&rows, tile_m);
    edges_add_around(&rows, 2 * tile_m);
    edges_add_around(&columns, 1);
    edges_add_around(&columns, tile_n);
    edges_add_around(&columns, 2 * tile_n);
    for (size_t i = 0; i < rows.count; i++)
        add(plan, rows.values[i], tile_n + 1, 192);
    for (size_t i = 0; i < columns.count; i++)
        add(plan, tile_m, columns.values[i], 320);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        add(plan, tile_m + 1, tile_n + 1, ks[i]);
    for (uint64_t k = turn - BLOCK; k <= turn + BLOCK; k += BLOCK)
        add(plan, 2, 5, k);
    add(plan, tile_m, 7, 2 * turn + 256);
    add_whole_loop(plan, tile_m, tile_n, turn);
    add(plan, 3, 67, 2560);
    add(plan, 1, 3, 6912);
    add(plan, 1, 3, 8192 + 2 * BLOCK);
    if (!is_mma(p))
        add_many_columns(plan, tile_n);
    for (uint64_t k = 4096 - BLOCK; !is_mma(p) && tile_m >= 16 && k <= 4096 + BLOCK; k += BLOCK)
        add(plan, 1, 3, k);
    if (plan->limits.is_full) {
        add(plan, 1, 2, 12288);
        add(plan, 2, 1, 65536);
        add(plan, 65, 129, 640);
    }
}

const family_row nf4_gemm_row = {.name = "nf4_gemm",
                                 .args = "in packed scale out m n k workspace_size",
                                 .patterns = patterns,
                                 .plan = plan_sizes,
                                 .make = make,
                                 .expect = expect};
