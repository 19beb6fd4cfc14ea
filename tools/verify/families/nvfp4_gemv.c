/* The reference of nvfp4_gemv, and the bound on its error: with r the exact sum, S the sum over blocks of 16 of
 * |sfa * sfb * the block's sum|, u half an ulp of c's type and L the longest chain of additions,
 *
 *     |c - r| <= u |r| + (L + 1) 2^-24 S          random data: sqrt(L)
 *
 * and half of c's smallest number where c is not normal. The products and the sums within a block are exact.
 *
 * Strategy mma must meet this bound. simt must do better: it rounds only in the sum over blocks, in a documented
 * order, so its f32 sum is known to the last bit, and c is that sum rounded once.
 */
#include "nvfp4_gemv.h"

#include "../design.h"
#include <math.h>
#include <string.h>

#include "inputs.h"

enum { BLOCK = 16, DEFAULT_B_ROWS = 128 };
enum { NAN_SCALE = 0x7f, LARGEST_SCALE = 0x7e, LEAST_SCALE = 1 };

/* ---- the format ------------------------------------------------------------------------------------------------- */

/* Decodes a float with a sign, an exponent and a fraction; exponent 0 has no leading one. */
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

uint64_t nvfp4_scale_index(bool is_tiled, uint64_t rows, uint64_t blocks, uint64_t row, uint64_t block)
{
    if (!is_tiled)
        return row * blocks + block;
    const uint64_t across = (blocks + 3) / 4, down = (rows + 127) / 128, in_batch = row % rows,
                   tile = (row / rows * down + in_batch / 128) * across + block / 4;
    return tile * 512 + in_batch % 32 * 16 + in_batch % 128 / 32 * 4 + block % 4;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static uint64_t padded_rows(problem *p)
{
    uint64_t given = problem_integer(p, "b_rows");
    return given ? given : DEFAULT_B_ROWS;
}

static bool is_mma(const problem *p)
{
    return problem_has_parameter(p, "strategy", "mma");
}

/* Returns the longest chain. With mma a lane adds 8 blocks of each 512 codes; then 4 lanes of a row are added,
 * then the warps that share the row. */
static double longest_chain(problem *p)
{
    uint64_t k_warps = problem_parameter(p, "k_warps"),
             turns = (problem_integer(p, "k") + 512 * k_warps - 1) / (512 * k_warps);
    return (double)(8 * turns + 2 + k_warps - 1);
}

static bool is_tiled(const problem *p)
{
    return problem_has_parameter(p, "scale_layout", "tiles_128x4");
}

typedef struct product {
    long double r, size;
} product;

/* An operand: its rows in all batches, and the current row. */
typedef struct operand {
    const unsigned char *codes, *scales;
    uint64_t rows, row, blocks;
    bool is_tiled;
} operand;

/* A row of a and a vector of b. */
typedef struct pair {
    operand a, b;
    uint64_t blocks;
} pair;

static operand find_operand(problem *p, const char *codes, const char *scales, uint64_t rows, uint64_t row)
{
    uint64_t k = problem_integer(p, "k");
    return (operand){.codes = (const unsigned char *)problem_find(p, codes)->host + row * (k / 2),
                     .scales = problem_find(p, scales)->host,
                     .rows = rows,
                     .row = row,
                     .blocks = k / BLOCK,
                     .is_tiled = is_tiled(p)};
}

static pair find_pair(problem *p, uint64_t row, uint64_t vector)
{
    return (pair){.a = find_operand(p, "a", "sfa", problem_integer(p, "m"), row),
                  .b = find_operand(p, "b", "sfb", padded_rows(p), vector),
                  .blocks = problem_integer(p, "k") / BLOCK};
}

/* Returns the exact sum of a block's products. */
static double sum_codes(const pair *of, uint64_t block)
{
    double sum = 0;
    for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
        unsigned shift = i % 2 ? 4 : 0;
        sum += nvfp4_code_value(of->a.codes[i / 2] >> shift & 15) *
               nvfp4_code_value(of->b.codes[i / 2] >> shift & 15);
    }
    return sum;
}

static double scale_of_operand(const operand *o, uint64_t block)
{
    return nvfp4_scale_value(o->scales[nvfp4_scale_index(o->is_tiled, o->rows, o->blocks, o->row, block)]);
}

/* Returns the exact product of two scales, which has 8 bits. */
static double scale_of(const pair *of, uint64_t block)
{
    return scale_of_operand(&of->a, block) * scale_of_operand(&of->b, block);
}

static product multiply(const pair *of)
{
    product sum = {0, 0};
    for (uint64_t block = 0; block < of->blocks; block++) {
        double term = scale_of(of, block) * sum_codes(of, block);
        sum.r += term;
        sum.size += fabs(term);
    }
    return sum;
}

/* ---- simt's sum ------------------------------------------------------------------------------------------------- */

enum { LANES = 32, MOST_WARPS = 8 };

/* Adds lanes 16 apart, then 8 apart, down to neighbours. */
static float add_lanes(float sum[LANES])
{
    for (unsigned apart = LANES / 2; apart > 0; apart /= 2) {
        for (unsigned lane = 0; lane < apart; lane++)
            sum[lane] += sum[lane + apart];
    }
    return sum[0];
}

/* Returns simt's sum. The warps that share a row take the steps along k in turn; a lane has the blocks of
 * lane_codes adjacent codes of a step, and adds each with one rounding. Then lanes are added, and then k_warps, in
 * order. */
static float multiply_simt(const problem *p, const pair *of)
{
    const uint64_t k_warps = problem_parameter(p, "k_warps"),
                   lane_blocks = problem_parameter(p, "lane_codes") / BLOCK;
    float sum[MOST_WARPS][LANES] = {{0}}, total = 0;
    for (uint64_t block = 0; block < of->blocks; block++) {
        const uint64_t share = block / lane_blocks;
        float *at = &sum[share / LANES % k_warps][share % LANES];
        *at = fmaf((float)scale_of(of, block), (float)sum_codes(of, block), *at);
    }
    for (uint64_t warp = 0; warp < k_warps; warp++)
        total = warp == 0 ? add_lanes(sum[0]) : total + add_lanes(sum[warp]);
    return total;
}

/* ---- c ---------------------------------------------------------------------------------------------------------- */

/* Returns alpha, the factor of c. */
static float alpha_of(problem *p)
{
    const argument *alpha = problem_find(p, "alpha");
    return alpha ? (float)alpha->real : 1;
}

/* Expects mma's c. A product with alpha is rounded once more. */
static void expect_mma(problem *p, const input_pattern *pattern, const pair *of, uint64_t i)
{
    argument *out = problem_find(p, "out");
    element_type type = out->about->type;
    const double chain = longest_chain(p) + (problem_find(p, "alpha") ? 1 : 0), alpha = (double)alpha_of(p);
    product sum = multiply(of);
    sum.r *= alpha;
    sum.size *= fabs(alpha);
    const double additions = (pattern->flags & PATTERN_RANDOM ? sqrt(chain) : chain) + 1;
    out->expected_value[i] = number_or_infinity(type, sum.r, 0);
    out->bound[i] = number_unit(type) * (double)fabsl(sum.r) + additions * 0x1p-24 * (double)sum.size +
                    number_smallest(type) / 2 + (problem_find(p, "alpha") ? 0x1p-150 : 0);
}

static void expect_simt(problem *p, const pair *of, uint64_t i)
{
    argument *out = problem_find(p, "out");
    const double sum = (double)(multiply_simt(p, of) * alpha_of(p));
    out->expected_value[i] = number_decode(out->about->type, number_encode(out->about->type, sum));
    out->bound[i] = 0;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out");
    uint64_t m = problem_integer(p, "m");
    expect_values(p, out);
    for (uint64_t i = 0; i < out->count; i++) {
        const pair of = find_pair(p, i, i / m * padded_rows(p));
        if (is_mma(p))
            expect_mma(p, pattern, &of, i);
        else
            expect_simt(p, &of, i);
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Makes codes and scales of one row from the row's own random stream. */
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

/* Makes scales of 1/16 to 2, so that sums stay within f16. */
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

/* Makes the largest numbers, all of one sign. */
static void make_largest(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    unsigned char sign = random_bits(s, 0) & 1 ? 0x88 : 0;
    memset(codes, 0x77 | sign, k / 2);
    memset(scales, LARGEST_SCALE, k / BLOCK);
}

/* Makes half of a's blocks, at random places, the negatives of the others, with equal blocks in b, except for one
 * code of a small block. The result is so small that any intermediate rounding shows in it. */
static void make_cancelling(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    const uint64_t half = k / BLOCK / 2, small = half ? random_below(random_fork(s, 4), 0, half) : 0;
    make_any(codes, scales, k, s);
    if (k > 0)
        scales[small] = LEAST_SCALE;
    for (uint64_t i = 0; i < half; i++) {
        const uint64_t end = half + i, place = half + random_below(random_fork(s, 3), i, i + 1);
        /* moves the block from `place` to the end of the placed ones */
        memmove(codes + 8 * end, codes + 8 * place, 8);
        scales[end] = scales[place];
        memcpy(codes + 8 * place, codes + 8 * i, 8);
        scales[place] = scales[i] ^ 0x80;
    }
    if (half > 0)
        codes[8 * small + random_below(random_fork(s, 5), 0, 8)] ^= 1;
    if (k / BLOCK % 2)
        scales[k / BLOCK - 1] = LEAST_SCALE;
}

static void make_equal(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_moderate(codes, scales, k, s);
    for (uint64_t block = 1; block < k / BLOCK; block++) {
        memcpy(codes + 8 * block, codes, 8);
        scales[block] = scales[0];
    }
}

/* Makes zeros of both signs, in scales and codes. */
static void make_zero(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    fill_row(codes, scales, k, s, 0, 0);
    for (uint64_t i = 0; i < k / 2; i += 3)
        codes[i] &= 0x88;
}

/* Makes another kind of numbers in each row. */
static void make_extreme(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    static row_maker *const kinds[] = {make_any, make_any,     make_denormal, make_denormal,
                                       make_448, make_largest, make_zero};
    kinds[random_below(random_fork(s, 5), 0, sizeof kinds / sizeof kinds[0])](codes, scales, k, s);
}

/* In one of `rows` rows, turns some scales, the last one or all into NaNs. */
static void spoil_scales(unsigned char *scales, uint64_t blocks, random_stream s, uint64_t rows)
{
    const uint64_t kind = random_below(s, 0, 4);
    if (random_below(s, 1, rows) != 0)
        return;
    for (uint64_t i = 0; i < blocks; i++) {
        const bool is_hit = kind < 2 ? random_below(random_fork(s, 1), i, blocks) == 0 : kind == 2;
        if (is_hit || (kind == 3 && i + 1 == blocks))
            scales[i] |= NAN_SCALE;
    }
}

static void make_nan_cancelling(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_cancelling(codes, scales, k, s);
    spoil_scales(scales, k / BLOCK, random_fork(s, 6), 2);
}

static void make_nan_equal(unsigned char *codes, unsigned char *scales, uint64_t k, random_stream s)
{
    make_equal(codes, scales, k, s);
    spoil_scales(scales, k / BLOCK, random_fork(s, 6), 5);
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

/* Makes numbers of a real model, rounded to NVFP4. */
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
            most = fabs((double)values[i]) > most ? fabs((double)values[i]) : most;
        scales[block] = (unsigned char)nearest(most / 6, LARGEST_SCALE + 1, nvfp4_scale_value);
        double scale = scales[block] ? nvfp4_scale_value(scales[block]) : 1;
        for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            codes[i / 2] |=
                (unsigned char)(nearest((double)values[i] / scale, 16, nvfp4_code_value) << (i % 2 ? 4 : 0));
    }
    pool_free(&memory);
}

enum { MODERATE, CANCELLING, NAN_SCALES, REAL, EXTREME };

static const struct {
    row_maker *a, *b;
} makers[] = {
    [MODERATE] = {make_moderate, make_moderate},
    [CANCELLING] = {make_cancelling, make_equal},
    [NAN_SCALES] = {make_nan_cancelling, make_nan_equal},
    [REAL] = {make_real, make_real},
    [EXTREME] = {make_extreme, make_extreme},
};

/* Makes every step-th row of an operand that has `rows` in each batch. */
static void make_rows(problem *p, row_maker *maker, const char *codes, const char *scales, uint64_t rows,
                      uint64_t step, random_stream s)
{
    const uint64_t k = problem_integer(p, "k"), all = problem_integer(p, "l") * rows;
    pool memory = {0};
    unsigned char *made = pool_allocate(&memory, k / BLOCK + 1);
    for (uint64_t row = 0; row < all; row += step) {
        const operand o = find_operand(p, codes, scales, rows, row);
        maker((unsigned char *)problem_find(p, codes)->host + row * (k / 2), made, k, random_fork(s, row));
        for (uint64_t block = 0; block < o.blocks; block++) {
            const uint64_t to = nvfp4_scale_index(o.is_tiled, rows, o.blocks, row, block);
            ((unsigned char *)problem_find(p, scales)->host)[to] = made[block];
        }
    }
    pool_free(&memory);
}

/* Returns alpha: exact, one that rounds, small, or far too large for f16 results. */
static double pick_alpha(const input_pattern *pattern, random_stream s)
{
    static const double alphas[] = {1, -0.7312481, 0x1p-9, 3.1e-5, 1e30, 0x1p-126};
    const uint64_t count = pattern->flags & PATTERN_RANDOM ? 4 : sizeof alphas / sizeof *alphas;
    return (double)(float)alphas[random_below(s, 0, count)];
}

/* Makes the inputs. Rows and blocks of padding are random bytes, with NaNs among their scales. */
static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    static const char *const padded[] = {"b", "sfa", "sfb"};
    for (uint64_t i = 0; i < 3; i++)
        inputs_fill_bytes(problem_find(p, padded[i]), random_fork(s, i));
    make_rows(p, makers[pattern->number].a, "a", "sfa", problem_integer(p, "m"), 1, random_fork(s, 3));
    make_rows(p, makers[pattern->number].b, "b", "sfb", padded_rows(p), padded_rows(p), random_fork(s, 4));
    argument *alpha = problem_find(p, "alpha");
    if (alpha)
        alpha->real = pick_alpha(pattern, random_fork(s, 5));
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"random",     PATTERN_RANDOM | PATTERN_LARGE,    MODERATE},
    {"nan",        PATTERN_NONFINITE | PATTERN_LARGE, NAN_SCALES},
    {"cancelling", 0,                                 CANCELLING},
    {"real",       0,                                 REAL},
    {"extreme",    0,                                 EXTREME},
    {NULL,         0,                                 0},
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

/* Tries sizes around every edge: the rows of a thread block, a warp's step along k and a round of all warps, the
 * part of b that is decoded at once (16384); 3, 5, 7 and 33 vectors; padding of none, one row, the usual amount. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {0, 16, 32, 48, 64, 96, 112, 256, 272}, ls[] = {0, 2, 3, 5, 7, 8, 33};
    const problem *p = plan->problem;
    uint64_t k_warps = problem_parameter(p, "k_warps"), warp_rows = problem_parameter(p, "rows"),
             tile = 8 / k_warps * warp_rows, step = is_mma(p) ? 512 : 32 * problem_parameter(p, "lane_codes"),
             turn = step * k_warps;
    edge_list rows = {{0}, 0};
    enum { K_UNIT = 16, MOST_WORK = 1 << 20, MOST_B_ROWS = 130, FAR_ELEMENTS = 1 << 22 };
    static const size_axis axes[] = {
        {.name = "m", .unit = 1},
        {.name = "k", .unit = K_UNIT, .widths = model_widths, .width_count = MODEL_WIDTHS},
        {.name = "l", .unit = 1},
        {.name = "b_rows", .unit = 1, .most = MOST_B_ROWS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    /* offsets of A's rows need more than 20 bits; then offsets of c need more than 16 */
    set(plan, 140, 16384, 1, 1);
    size_plan_add_far(plan, FAR_ELEMENTS);
    set(plan, 300, 32, 230, 1);
    size_plan_add_far(plan, FAR_ELEMENTS);
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
        if (k_warps > 1)
            add(plan, 2, turn + (uint64_t)around, 2, 1);
        add(plan, 1, 4 * turn + (uint64_t)around, 1, 1);
        add(plan, 1, 16384 + (uint64_t)around, 2, 1);
    }
    for (uint64_t k = 512; k <= 4608; k += k < 2048 ? 512 : 1024)
        add(plan, tile + 2, k, 2, 1);
    if (is_tiled(p)) { /* sizes around a tile of scales, and unused places after the last scale */
        for (uint64_t m = 127; m <= 129; m++)
            add(plan, m, 544, 2, m % 2 * 129);
        add(plan, 257, 512, 2, 1);
        add(plan, 33, 576, 1, 130);
    }
    add(plan, warp_rows + 1, 1184, 1, 1);
    add(plan, warp_rows, 1376, 1, 1);
    add(plan, 1, 3616, 1, 1);
    add(plan, 1, 32768 + 512, 1, 1);
    add(plan, 2 * tile + 3, 1056, 3, 0);
    add(plan, 67, 48, 3, 0);
    add(plan, 17, 2048, 4, 0);
    /* more vectors than the grid has rows of thread blocks, so that some take two */
    set(plan, 1, is_mma(p) ? 512 : problem_parameter(p, "lane_codes"), 256 + 3, 1);
    size_plan_add_always(plan);
    /* the part of b decoded at once, and the rest: a whole round of all warps, and a step that ends within it */
    set(plan, warp_rows < 4 ? 4 : warp_rows, 16384 + (is_mma(p) ? 1024 : 1120), 1, 1);
    size_plan_add_always(plan);
    if (plan->limits.is_full) {
        add(plan, 1, 32, 65537, 1);
        add(plan, 129, 7168, 2, 128);
    }
}

/* For one multiprocessor: shares of several passes, with a last pass of some of the rows or warps; shares of
 * several vectors; and vectors that each pass decodes again. */
static void plan_few(size_plan *plan)
{
    enum { MOST_OF_LARGE = 32 };
    const problem *p = plan->problem;
    const uint64_t k_warps = problem_parameter(p, "k_warps"),
                   pass = 8 / k_warps * problem_parameter(p, "rows"), step = is_mma(p) ? 512 : 32;
    add(plan, 3 * pass + 1, step, 8, 1);
    add(plan, 2 * pass + pass / 2 + 3, 2 * step, 9, 2);
    add(plan, 19 * pass / 2 + 5, step, 1, 1);
    add(plan, 5 * 254, step, 1, 1); /* a share with a number of rows that has many bits */
    if (pass <= MOST_OF_LARGE) {
        add(plan, pass + 2, step, 259, 1);
        add(plan, pass + 3, 16384 + step, 8, 1);
    }
}

const family_row nvfp4_gemv_row = {.name = "nvfp4_gemv",
                                   .args = "a sfa b sfb out m k l b_rows",
                                   .patterns = patterns,
                                   .plan = plan_sizes,
                                   .plan_few = plan_few,
                                   .make = make,
                                   .expect = expect,
                                   .expects_nonfinite = true};
