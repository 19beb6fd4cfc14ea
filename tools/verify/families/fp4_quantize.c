/* Codes with a scale for each block along k, in NVFP4, MXFP4 or MXFP8: the reference of fp4_quantize. Every result is
 * exact, bit for bit. Rounds by searching all codes for the nearest; operations on f32 are the host's. */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <string.h>

#include "codes.h"
#include "inputs.h"
#include "nvfp4_gemv.h"

enum { E4M3_NAN = 0x7f, E4M3_LARGEST = 0x7e, E2M1_LARGEST = 7, E8M0_NAN = 0xff };

static bool has_bytes(const problem *p)
{
    return problem_has_parameter(p, "format", "mxfp8");
}

static bool is_mx(const problem *p)
{
    return has_bytes(p) || problem_has_parameter(p, "format", "mxfp4");
}

static bool is_tiled(const problem *p)
{
    return problem_has_parameter(p, "scale_layout", "tiles_128x4");
}

static uint64_t block_of(const problem *p)
{
    return is_mx(p) ? 32 : 16;
}

/* ---- rounding --------------------------------------------------------------------------------------------------- */

/* Returns the nearest of codes that are in the order of their values; on a tie the even one. */
static unsigned nearest(double x, unsigned largest, double (*value)(unsigned))
{
    unsigned code = 0;
    while (code < largest) {
        const double below = x - value(code), above = value(code + 1) - x;
        if (below < above || (below == above && code % 2 == 0))
            break;
        code++;
    }
    return code;
}

/* Returns a code of 4 bits; a NaN gives the largest code without a sign. */
static unsigned e2m1_of(float x)
{
    const unsigned code = isnan(x) ? E2M1_LARGEST : nearest(fabs((double)x), E2M1_LARGEST, nvfp4_code_value);
    return code | (signbit(x) && !isnan(x) ? 8 : 0);
}

/* ---- scales ----------------------------------------------------------------------------------------------------- */

/* A block's scale in memory, and the factor of its elements. */
typedef struct scaling {
    unsigned code;
    float inverse;
} scaling;

static scaling scale_nvfp4(float most, bool has_nan, float global_scale)
{
    const float exact = most * (1.0f / 6) * global_scale;
    const unsigned code =
        isnan(exact) ? E4M3_LARGEST : nearest((double)exact, E4M3_LARGEST, nvfp4_scale_value);
    const float inverse = global_scale / (float)nvfp4_scale_value(code);
    return (scaling){.code = has_nan ? E4M3_NAN : code,
                     .inverse = code == 0 ? 0 : fminf(inverse, 0x1.fffffep127f)};
}

/* Returns the scale of MX formats: an exponent with a bias of 127. of_largest is the largest code's exponent: 2 for 6, 8
 * for 448. */
static scaling scale_mx(float most, bool has_nan, int of_largest)
{
    int exponent = -1000;
    if (isinf(most))
        exponent = 128;
    else if (most > 0)
        exponent = ilogbf(most);
    const int shared = exponent - of_largest > -127 ? exponent - of_largest : -127;
    return (scaling){.code = has_nan ? E8M0_NAN : (unsigned)(shared + 127), .inverse = ldexpf(1, -shared)};
}

/* Returns the scale of a block; `x` gets its elements. A NaN has the effect of an infinity, except on the scale. */
static scaling scale_of(problem *p, const argument *in, uint64_t first)
{
    float most = 0;
    bool has_nan = false;
    for (uint64_t i = first; i < first + block_of(p); i++) {
        const float x = fabsf((float)element_get(in->about->type, in->host, i));
        has_nan |= isnan(x);
        most = x > most ? x : most;
    }
    most = has_nan ? INFINITY : most;
    return is_mx(p) ? scale_mx(most, has_nan, has_bytes(p) ? 8 : 2)
                    : scale_nvfp4(most, has_nan, (float)problem_find(p, "global_scale")->real);
}

static void expect(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    const uint64_t block = block_of(p), blocks = problem_integer(p, "k") / block,
                   rows = problem_integer(p, "m");
    expect_bits(p, packed);
    expect_bits(p, scale);
    unsigned char *codes = packed->expected_bits, *scales = scale->expected_bits;
    for (uint64_t b = 0; b < rows * blocks; b++) {
        const scaling s = scale_of(p, in, b * block);
        scales[nvfp4_scale_index(is_tiled(p), rows, blocks, b / blocks, b % blocks)] = (unsigned char)s.code;
        for (uint64_t i = b * block; i < (b + 1) * block; i++) {
            const float x = (float)element_get(in->about->type, in->host, i);
            if (has_bytes(p))
                codes[i] = (unsigned char)codes_encode(true, (double)(x * s.inverse));
            else
                codes[i / 2] |= (unsigned char)(e2m1_of(x * s.inverse) << (i % 2 ? 4 : 0));
        }
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* One third of the blocks are of the input's own kind, one third have elements at and near ties of codes, one
 * third a largest magnitude at and near ties of scales. The place of the largest and the number of zeros vary. */
typedef enum share { OWN, CODE_TIES, SCALE_TIES, SHARES } share;

/* The f32 nearest to 16 / 21. If its quotient by a block's scale is rounded in a wrong direction, a product moves to the other
 * side of a tie: of 8 scales, 3 show rounding up, and 4 rounding towards 0. */
#define INEXACT_SCALE  (16.0f / 21)
#define INEXACT_FACTOR (21.0 / 16)

static bool is_inexact(problem *p)
{
    const argument *global_scale = problem_find(p, "global_scale");
    return global_scale && global_scale->real == (double)INEXACT_SCALE;
}

/* Sets an element to a number of the type or to a neighbour of it. */
static void set_beside(argument *in, uint64_t i, double x, random_stream s)
{
    element_set(in->about->type, in->host, i, x);
    const int steps = (int)random_below(s, i, 5) - 2;
    if (x != 0 && steps > -2 && steps < 2) {
        const uint64_t bits = number_encode(in->about->type, x);
        element_set(in->about->type, in->host, i,
                    number_decode(in->about->type, number_step(in->about->type, bits, steps)));
    }
}

/* Returns a power of two for which global scales of 2^-3 to 2^3 give a normal number of e4m3. */
static double power_of(random_stream s, uint64_t first)
{
    return ldexp(1, (int)random_below(random_fork(s, 1), first, 8) - 4);
}

/* Returns a number at or between codes: for e2m1 one of ten; for e4m3 the middle of two neighbours or the lower one. */
static double pick_tie(const problem *p, random_stream s, uint64_t i)
{
    static const double ties[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 0, 6, 1};
    if (!has_bytes(p))
        return ties[random_below(s, i, sizeof ties / sizeof *ties)];
    const unsigned half_codes = (unsigned)random_below(s, i, 2 * CODES_E4M3_LARGEST);
    return (codes_decode(true, half_codes / 2) + codes_decode(true, (half_codes + 1) / 2)) / 2;
}

/* Makes ties of codes. In nvfp4 the scale is any 4-bit number: its inverse is rounded, yet a tie times it is a tie
 * again, or is next to one with the inexact global scale. */
static void make_code_ties(problem *p, argument *in, uint64_t first, random_stream s)
{
    const uint64_t block = block_of(p), largest = first + random_below(random_fork(s, 2), first, block);
    const double fraction = is_mx(p) ? 0 : (double)random_below(random_fork(s, 8), first, 8) / 8,
                 factor = is_inexact(p) ? INEXACT_FACTOR : 1,
                 power = (1 + fraction) * factor * power_of(s, first);
    for (uint64_t i = first; i < first + block; i++) {
        const double tie = pick_tie(p, random_fork(s, 3), i);
        const double sign = random_below(random_fork(s, 4), i, 2) ? -1 : 1;
        set_beside(in, i, sign * tie * power, random_fork(s, 5));
    }
    const double most = (has_bytes(p) ? 448 : 6) * power;
    element_set(in->about->type, in->host, largest,
                random_below(random_fork(s, 4), largest, 2) ? -most : most);
}

/* Makes ties of scales. A tie of 4-bit scales has 5 bits; for MX formats the edges are powers of two. */
static void make_scale_ties(problem *p, argument *in, uint64_t first, random_stream s)
{
    const uint64_t block = block_of(p), largest = first + random_below(random_fork(s, 2), first, block);
    const double fraction = (double)(33 + 2 * random_below(random_fork(s, 6), first, 16)) / 32,
                 most = is_mx(p) ? power_of(s, first) : 6 * fraction * power_of(s, first);
    for (uint64_t i = first; i < first + block; i++)
        element_set(in->about->type, in->host, i, (random_uniform(random_fork(s, 7), i) - 0.5) * most);
    set_beside(in, largest, random_below(random_fork(s, 4), largest, 2) ? -most : most, random_fork(s, 5));
}

/* Returns a global scale: exact, typical of checkpoints, one whose inverse leaves the range, one that makes scales
 * 0, or the inexact one. */
static double pick_global_scale(random_stream s)
{
    static const double scales[] = {1, 0.125, 4, 2688 / 3.7, 0x1p-20, 3e38, 0, 1e-41, INEXACT_SCALE};
    return (double)(float)scales[random_below(s, 0, sizeof scales / sizeof *scales)];
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *global_scale = problem_find(p, "global_scale");
    const uint64_t block = block_of(p);
    inputs_fill(in, (input_kind)pattern->number, random_fork(s, 1));
    if (global_scale)
        global_scale->real = pattern->flags & PATTERN_RANDOM ? 1 : pick_global_scale(random_fork(s, 2));
    for (uint64_t first = 0; first < in->count; first += block) {
        const share of = (share)random_below(random_fork(s, 3), first, SHARES);
        if (of == CODE_TIES)
            make_code_ties(p, in, first, random_fork(s, 4));
        else if (of == SCALE_TIES)
            make_scale_ties(p, in, first, random_fork(s, 5));
    }
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",    PATTERN_RANDOM | PATTERN_LARGE,    INPUT_NORMAL},
    {"nonfinite", PATTERN_NONFINITE | PATTERN_LARGE, INPUT_NONFINITE},
    {"huge-tiny", 0,                                 INPUT_HUGE_TINY},
    {"any-bits",  PATTERN_NONFINITE,                 INPUT_ANY_BITS},
    {"real",      0,                                 INPUT_REAL},
    {"denormal",  0,                                 INPUT_DENORMAL},
    {"zero",      0,                                 INPUT_ZERO},
    {"largest",   0,                                 INPUT_LARGEST},
    {"spread",    0,                                 INPUT_SPREAD},
    {NULL,        0,                                 0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void add(size_plan *plan, uint64_t m, uint64_t k)
{
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "k")->integer = k;
    size_plan_add(plan);
}

/* Tries sizes around the blocks of a round, a warp and a thread block; rows and columns of tiles; each number of
 * rows of a tile. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t rows[] = {1, 2, 7, 31, 32, 33, 64, 97, 127, 128, 129, 257};
    const uint64_t block = block_of(plan->problem);
    edge_list counts = {{0}, 0};
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {{.name = "m", .unit = 1}, {.name = "k", .unit = block_of(plan->problem)}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    for (uint64_t blocks = 32; blocks <= 1024; blocks *= 2)
        edges_add_around(&counts, blocks);
    edges_add(&counts, 0);
    for (uint64_t blocks = 1; blocks <= 9; blocks++)
        edges_add(&counts, blocks);
    for (size_t i = 0; i < counts.count; i++)
        add(plan, 1, counts.values[i] * block);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        add(plan, rows[i], 4 * block);
        add(plan, rows[i], (3 + i % 4) * block);
    }
    for (uint64_t m = 1; m <= 64; m++)
        add(plan, m, block);
    add(plan, 0, block);
    add(plan, 5, 67 * block);
    add(plan, 130, 18 * block);
}

/* Tries the other numbers of rows in a tile of scales: each has other lanes for its last row. */
static void plan_few(size_plan *plan)
{
    for (uint64_t m = 65; is_tiled(plan->problem) && m < 128; m++)
        add(plan, m, block_of(plan->problem));
}

const family_row fp4_quantize_row = {.name = "fp4_quantize",
                                     .args = "in packed scale m k",
                                     .patterns = patterns,
                                     .plan = plan_sizes,
                                     .plan_few = plan_few,
                                     .make = make,
                                     .expect = expect,
                                     .expects_nonfinite = true};
