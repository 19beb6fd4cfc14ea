/* The float64 reference of q8_quantize.
 *
 * Let a be the largest |h| of a block and e the norm's error. A scale is within (2^-19 + e) a / 127 of a / 127, a code within
 * 1/2 + 2^-10 of h 127 / a; with an a below LOST the scale is at most 2 LOST / 127, and only codes of zeros are
 * known. Where h, or x with a norm, is not finite, the scale is a NaN and codes are undefined. */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <string.h>

#include "inputs.h"

enum { BLOCK = 32, LARGEST_CODE = 127 };

#define LOST        0x1p-90 /* below this, |h| may count as 0 */
#define CODE_BOUND  (0.5 + 0x1p-10)
#define SCALE_BOUND 0x1p-19

static double norm_bound_of(problem *p)
{
    const double trips = ceil((double)problem_integer(p, "k") / 1024);
    return problem_has_parameter(p, "norm", "rms") ? 0x1p-22 + ((4 * trips + 13) / 2 + 4) * 0x1p-24 : 0x1p-24;
}

/* ---- the reference ---------------------------------------------------------------------------------------------- */

static void make_h(problem *p, uint64_t row, double h[])
{
    const argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"),
                   *eps = problem_find(p, "eps");
    const uint64_t k = problem_integer(p, "k");
    double sum = 0;
    for (uint64_t i = 0; i < k; i++) {
        h[i] = element_get(in->about->type, in->host, row * k + i);
        sum += h[i] * h[i];
    }
    const double factor = !gamma          ? 1
                          : isfinite(sum) ? 1 / sqrt(sum / (double)k + (double)(float)eps->real)
                                          : NAN;
    for (uint64_t i = 0; i < k && gamma; i++)
        h[i] *= factor * element_get(ELEMENT_F32, gamma->host, i);
}

static void expect_block(problem *p, const double h[], uint64_t block)
{
    argument *codes = problem_find(p, "codes"), *scales = problem_find(p, "scale");
    double most = 0;
    bool is_finite = true;
    for (uint64_t i = 0; i < BLOCK; i++) {
        most = fmax(most, fabs(h[i]));
        is_finite = is_finite && isfinite(h[i]);
    }
    const bool is_lost = most < LOST;
    scales->expected_value[block] = is_finite ? most / LARGEST_CODE : NAN;
    scales->bound[block] =
        is_lost ? LOST / LARGEST_CODE : (SCALE_BOUND + norm_bound_of(p)) * most / LARGEST_CODE;
    for (uint64_t i = 0; i < BLOCK; i++) {
        const uint64_t element = block * BLOCK + i;
        const bool is_known = is_finite && !is_lost;
        codes->expected_value[element] = is_known ? h[i] * LARGEST_CODE / most : 0;
        codes->bound[element] = is_known ? CODE_BOUND : is_finite && most == 0 ? 0 : 128;
    }
}

static void expect(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    const uint64_t m = problem_integer(p, "m"), k = problem_integer(p, "k");
    pool memory = {0};
    double *h = pool_allocate(&memory, (size_t)k * sizeof *h);
    expect_values(p, problem_find(p, "codes"));
    expect_values(p, problem_find(p, "scale"));
    for (uint64_t row = 0; row < m; row++) {
        make_h(p, row, h);
        for (uint64_t block = 0; block < k / BLOCK; block++)
            expect_block(p, h + block * BLOCK, row * (k / BLOCK) + block);
    }
    pool_free(&memory);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

typedef struct kinds {
    input_kind x, gamma;
    double eps;
    int exponent; /* x is multiplied by this power of two */
    bool has_bad_x;
} kinds;

enum { RANDOM, REAL, HUGE_X, TINY_X, LOW_X, BAD_X, ZERO_X, SPREAD_X, TIES };

/* clang-format off */
static const kinds all_kinds[] = {
    [RANDOM]   = {INPUT_NORMAL,  INPUT_UNIFORM, 0.75, 0,    false},
    [REAL]     = {INPUT_REAL,    INPUT_UNIFORM, 1e-6, 0,    false},
    [HUGE_X]   = {INPUT_NORMAL,  INPUT_UNIFORM, 1e-5, 90,   false},
    [TINY_X]   = {INPUT_NORMAL,  INPUT_UNIFORM, 0,    -70,  false},
    [LOW_X]    = {INPUT_NORMAL,  INPUT_UNIFORM, 0,    -135, false},
    [BAD_X]    = {INPUT_NORMAL,  INPUT_UNIFORM, 1e-5, 0,    true},
    [ZERO_X]   = {INPUT_ZERO,    INPUT_UNIFORM, 1e-5, 0,    false},
    [SPREAD_X] = {INPUT_SPREAD,  INPUT_NORMAL,  1e-5, 0,    false},
    [TIES]     = {INPUT_UNIFORM, INPUT_EQUAL,   1e-6, 0,    false},
};

static const input_pattern patterns[] = {
    {"random",    PATTERN_RANDOM | PATTERN_LARGE, RANDOM},
    {"huge",      0,                              HUGE_X},
    {"real",      PATTERN_LARGE,                  REAL},
    {"tiny",      0,                              TINY_X},
    {"nonfinite", PATTERN_NONFINITE,              BAD_X},
    {"low",       0,                              LOW_X},
    {"zero",      0,                              ZERO_X},
    {"spread",    0,                              SPREAD_X},
    {"ties",      0,                              TIES},
    {NULL,        0,                              0},
};
/* clang-format on */

/* Multiplies x by a power of two, as far as the type allows. */
static void move(problem *p, argument *in, int exponent)
{
    const element_type type = in->about->type;
    const bool has_norm = problem_has_parameter(p, "norm", "rms");
    const double most = number_largest(type);
    for (uint64_t i = 0; i < in->count; i++) {
        const double x = ldexp(element_get(type, in->host, i), exponent);
        element_set(type, in->host, i, fmax(fmin(x, has_norm ? most : fmin(most, 0x1p100)), -most));
    }
}

/* Makes integer codes and halves of one scale for each block. */
static void make_ties(argument *in, random_stream s)
{
    for (uint64_t i = 0; i < in->count; i++) {
        const double halves = (double)random_below(s, i, 253) - 126;
        element_set(in->about->type, in->host, i, i % BLOCK == 5 ? 127 : halves / 2);
    }
}

/* Makes an element of every second row a NaN or an infinity. */
static void spoil(problem *p, argument *in, random_stream s)
{
    const uint64_t k = problem_integer(p, "k");
    for (uint64_t row = 0; row < in->count / k; row += 2)
        element_set(in->about->type, in->host, row * k + random_below(random_fork(s, 3), row, k),
                    inputs_nonfinite(s, row));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    const kinds *of = &all_kinds[pattern->number];
    argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    inputs_fill(in, of->x, random_fork(s, 1));
    if (gamma)
        inputs_fill(gamma, of->gamma, random_fork(s, 2));
    if (eps)
        eps->real = of->eps;
    move(p, in, of->exponent);
    if (pattern->number == HUGE_X && eps && in->about->type != ELEMENT_F16)
        inputs_raise_some(in, problem_integer(p, "k"), random_fork(s, 5));
    if (pattern->number == TIES)
        make_ties(in, random_fork(s, 3));
    if (of->has_bad_x)
        spoil(p, in, random_fork(s, 4));
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void add(size_plan *plan, uint64_t m, uint64_t k)
{
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "k")->integer = k;
    size_plan_add(plan);
}

/* Tries sizes around the elements of a warp, a thread block and its trip; one row, some, none. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {32,   64,   96,   128,  224,  256,  288,  992, 1024,
                                  1056, 2016, 2048, 2080, 4064, 4096, 4128, 8224};
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {{.name = "m", .unit = 1}, {.name = "k", .unit = 32}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
        add(plan, 1 + i % 4, ks[i]);
    add(plan, 0, 64);
    add(plan, 33, 32);
    add(plan, 7, 160);
    add(plan, 2, plan->limits.big / 64 * 32);
}

const family_row q8_quantize_row = {.name = "q8_quantize",
                                    .args = "in codes scale m k",
                                    .patterns = patterns,
                                    .plan = plan_sizes,
                                    .make = make,
                                    .expect = expect,
                                    .expects_nonfinite = true};
