/* INT4 references: scale, pack, quantize and unpack. All results are exact, bit for bit. */
#include "int4.h"

#include <math.h>
#include <string.h>

#include "groups.h"
#include "inputs.h"

/* ---- the arithmetic, one element or group at a time -------------------------------------------------------------- */

static double largest_of(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

int4_numbers int4_numbers_of(int4_mode mode, const argument *in, uint64_t first, uint64_t last)
{
    element_type arithmetic = groups_arithmetic(in->about->type);
    double least_range = arithmetic == ELEMENT_F64 ? 1e-12 : (double)1e-12f;
    double most = NAN, minus_least = NAN, magnitude = NAN;
    for (uint64_t i = first; i < last; i++) {
        double x = element_get(in->about->type, in->host, i);
        if (isnan(x))
            continue;
        most = largest_of(most, x);
        minus_least = largest_of(minus_least, -x);
        magnitude = largest_of(magnitude, fabs(x));
    }
    double range = mode == INT4_ASYM ? groups_add(arithmetic, most, minus_least) : magnitude;
    if (!(range >= least_range))
        range = least_range;
    int4_numbers g = {.scale = groups_divide(arithmetic, range, mode == INT4_ASYM ? 15 : 7)};
    g.zero = groups_divide(arithmetic, minus_least + 0.0, g.scale); /* + 0: a zero without a sign */
    return g;
}

unsigned int4_code(int4_mode mode, element_type arithmetic, int4_numbers g, double x)
{
    double q = groups_divide(arithmetic, x, g.scale);
    double low = mode == INT4_ASYM ? 0 : -8, high = low + 15;
    if (mode == INT4_ASYM)
        q = groups_add(arithmetic, q, g.zero);
    q = nearbyint(q);
    if (!(q > low))
        return 0;
    return (unsigned)((q < high ? q : high) - low);
}

double int4_value(int4_mode mode, element_type arithmetic, int4_numbers g, unsigned code)
{
    double q = mode == INT4_ASYM ? groups_subtract(arithmetic, code, g.zero) : (double)code - 8;
    return groups_multiply(arithmetic, q, g.scale);
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static int4_mode mode_of(const problem *p)
{
    const char *mode = manifest_param_value(p->variant, "mode");
    return mode && strcmp(mode, "asym") == 0 ? INT4_ASYM : INT4_SYM;
}

/* From arrays of scales and zeros in the kernel's type. */
static int4_numbers numbers_at(element_type type, const void *scales, const void *zeros, uint64_t g)
{
    int4_numbers numbers = {.scale = element_get(type, scales, g)};
    if (zeros)
        numbers.zero = element_get(type, zeros, g);
    return numbers;
}

static void expect_numbers(problem *p)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    element_type type = scale->about->type;
    expect_bits(p, scale);
    if (zero)
        expect_bits(p, zero);
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        int4_numbers numbers = int4_numbers_of(mode_of(p), in, range.first, range.last);
        element_set(type, scale->expected_bits, g, numbers.scale);
        if (zero)
            element_set(type, zero->expected_bits, g, numbers.zero);
    }
}

static void expect_codes(problem *p, const void *scales, const void *zeros)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(in->about->type);
    expect_bits(p, packed);
    unsigned char *bytes = packed->expected_bits;
    const unsigned even_shift = groups_even_shift(p);
    const element_type type = problem_find(p, "scale")->about->type;
    const int4_mode mode = mode_of(p);
    for (uint64_t i = 0; i < n; i++) {
        double x = element_get(in->about->type, in->host, i);
        int4_numbers numbers = numbers_at(type, scales, zeros, i / group);
        unsigned code = int4_code(mode, arithmetic, numbers, x);
        bytes[i / 2] = (unsigned char)(bytes[i / 2] | code << groups_shift(even_shift, i));
    }
}

static void expect_scale(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    expect_numbers(p);
}

static void expect_pack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *zero = problem_find(p, "zero");
    expect_codes(p, problem_find(p, "scale")->host, zero ? zero->host : NULL);
}

static void expect_quantize(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *zero = problem_find(p, "zero");
    expect_numbers(p);
    expect_codes(p, problem_find(p, "scale")->expected_bits, zero ? zero->expected_bits : NULL);
}

/* The product is rounded to the arithmetic's type, then to the elements'. */
static void expect_unpack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *packed = problem_find(p, "packed"), *out = problem_find(p, "out"),
             *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    const int4_mode mode = mode_of(p);
    expect_bits(p, out);
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> groups_shift(even_shift, i) & 15;
        int4_numbers numbers =
            numbers_at(scale->about->type, scale->host, zero ? zero->host : NULL, i / group);
        element_set(out->about->type, out->expected_bits, i, int4_value(mode, arithmetic, numbers, code));
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum { INT4_TIES = 100, INT4_TIES_NEAR, INT4_NEAR_SMALLEST, INT4_EQUAL_GROUPS, INT4_HUGE, INT4_FAR };

/* Quotients of k + 0.5: a group's extremes are 7 (asymmetric: 15) times an odd number m, and its elements odd numbers
 * of m / 2, all exact in the type. `near`: one ulp above or below. */
static double tie(int4_mode mode, bool near, element_type type, random_stream s, uint64_t g, uint64_t place)
{
    bool is_asym = mode == INT4_ASYM;
    int bits = (type == ELEMENT_BF16 ? 8 : type == ELEMENT_F16 ? 11 : 20) - (is_asym ? 5 : 4);
    double m = ldexp((double)(2 * random_below(s, 2 * g, UINT64_C(1) << (bits - 1)) + 1),
                     (int)random_below(s, 2 * g + 1, 9) - 4 - bits / 2);
    double low = is_asym ? -(double)random_below(random_fork(s, 1), g, 16) : -7;
    uint64_t levels = is_asym ? 15 : 14;
    random_stream choice = random_fork(random_fork(s, 2), g);
    if (place < 2)
        return m * (place == 0 ? low : low + (double)levels);
    double x = m * (low + (double)random_below(choice, place, levels) + 0.5);
    int step = near ? (int)random_below(random_fork(choice, 1), place, 3) - 1 : 0;
    return number_decode(type, number_step(type, number_encode(type, x), step));
}

/* The largest magnitude, or the range, just below, at and just above 1e-12. */
static double near_smallest(element_type type, random_stream s, uint64_t g, uint64_t place)
{
    double most = number_decode(type, number_step(type, number_encode(type, 1e-12), (int)(g % 5) - 2));
    return place == 0 ? most : place == 1 ? 0 : most * random_uniform(random_fork(s, g), place);
}

static double make_element(int4_mode mode, element_type type, int kind, random_stream s, uint64_t g,
                           uint64_t place)
{
    random_stream here = random_fork(s, g);
    switch (kind) {
    case INT4_TIES:
    case INT4_TIES_NEAR:
        return tie(mode, kind == INT4_TIES_NEAR, type, s, g, place);
    case INT4_NEAR_SMALLEST:
        return near_smallest(type, s, g, place);
    case INT4_EQUAL_GROUPS: /* smallest and largest are one number, of any size up to 1e25 */
        return random_normal(here, 0) * ldexp(1, (int)random_below(here, 1, 166) - 83);
    case INT4_HUGE:
        return (2 * random_uniform(here, place) - 1) * 1e25;
    default: /* far from 0 for their range, so that the zero is large */
        return random_normal(here, 0) * ldexp(1, (int)random_below(here, 1, 40) - 20) *
               (1 + ldexp(random_uniform(here, place + 2), -(int)random_below(here, 2, 30)));
    }
}

/* A group's extremes, its first two, are anywhere in it. */
static void fill_group(problem *p, argument *in, int kind, random_stream s, uint64_t g)
{
    const group_range range = groups_range(p, g);
    const uint64_t count = range.last - range.first, turn = random_below(random_fork(s, 9), g, count);
    const element_type type = in->about->type;
    const int4_mode mode = mode_of(p);
    for (uint64_t i = range.first; i < range.last; i++)
        element_set(type, in->host, i,
                    make_element(mode, type, kind, s, g, (i - range.first + turn) % count));
}

static void fill_elements(problem *p, argument *in, int kind, random_stream s)
{
    const int kinds[] = {kind, INT4_TIES_NEAR, INT4_TIES};
    const uint64_t group = groups_size(p);
    if (kind < INT4_TIES)
        groups_fill_elements(p, in, kind, s);
    for (uint64_t g = 0; in->count > 0 && g <= (in->count - 1) / group; g++) {
        const int here = kinds[groups_share_of(g)];
        if (here >= INT4_TIES)
            fill_group(p, in, here, s, g);
    }
}

/* Groups of even number have scales that make a tie of a code, and whole zeros; the others zeros that are rounded to a tie
 * when codes from 8 on are taken less them, and scales of 1. */
static void fill_near_ties(argument *scale, argument *zero, random_stream s)
{
    static const double values[] = {3, 5, 6, 7}; /* not the powers of two, by which nothing is rounded */
    groups_fill_near_ties(scale, values, sizeof values / sizeof values[0], s);
    for (uint64_t g = 0; zero && g < scale->count; g++) {
        const int bits = g / 2 % 2 ? 8 : 5; /* of a tie's fraction, f16 and bf16 */
        const double tie = ldexp(1 + 2 * (double)random_below(s, g, UINT64_C(1) << (bits - 1)), -bits);
        const double whole = (double)random_below(s, g, 16);
        element_set(zero->about->type, zero->host, g, g % 2 ? tie + (g / 4 % 2 ? 0x1p-22 : -0x1p-22) : whole);
        if (g % 2)
            element_set(scale->about->type, scale->host, g, 1);
    }
}

/* What goes into a kernel: the numbers of the elements at hand, or moved a little, or random ones. */
static void fill_numbers(problem *p, argument *in, int kind, random_stream s)
{
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    if (kind == GROUPS_NEAR_TIE) {
        fill_near_ties(scale, zero, s);
        return;
    }
    if (!in || kind == GROUPS_ANY_SCALE || kind == GROUPS_NONFINITE_SCALE) {
        groups_fill_numbers(scale, kind, s);
        if (zero)
            groups_fill_numbers(zero, kind, random_fork(s, 1));
        return;
    }
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        int4_numbers numbers = int4_numbers_of(mode_of(p), in, range.first, range.last);
        double ratio = kind == INPUT_UNIFORM ? 2 * random_uniform(s, g) + 0.01 : 1;
        element_set(scale->about->type, scale->host, g, ratio * numbers.scale);
        if (zero)
            element_set(zero->about->type, zero->host, g, numbers.zero);
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"),
             *packed = problem_find(p, "packed");
    if (in)
        fill_elements(p, in, pattern->number, random_fork(s, 1));
    if (scale->about->direction == DIRECTION_IN)
        fill_numbers(p, in, pattern->number, random_fork(s, 2));
    if (packed && packed->about->direction == DIRECTION_IN)
        inputs_fill_bytes(packed, random_fork(s, 3));
}

/* clang-format off */
static const input_pattern element_patterns[] = {
    {"normal",        PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"ties",          PATTERN_LARGE,                  INT4_TIES},
    {"ties-near",     0,                              INT4_TIES_NEAR},
    {"near-smallest", 0,                              INT4_NEAR_SMALLEST},
    {"equal-groups",  0,                              INT4_EQUAL_GROUPS},
    {"huge",          PATTERN_RANDOM,                 INT4_HUGE},
    {"far",           PATTERN_RANDOM,                 INT4_FAR},
    {"uniform",       PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",          PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",      0,                              INPUT_DENORMAL},
    {"largest",       0,                              INPUT_LARGEST},
    {"zero",          0,                              INPUT_ZERO},
    {"equal",         0,                              INPUT_EQUAL},
    {"alternating",   0,                              INPUT_ALTERNATING},
    {"huge-tiny",     0,                              INPUT_HUGE_TINY},
    {"any-bits",      PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"nonfinite",     PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",           PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",      PATTERN_NONFINITE,              GROUPS_INFINITY},
    {NULL,            0,                              0},
};

static const input_pattern pack_patterns[] = {
    {"normal",          PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"ties",            PATTERN_LARGE,                  INT4_TIES},
    {"ties-near",       0,                              INT4_TIES_NEAR},
    {"equal-groups",    0,                              INT4_EQUAL_GROUPS},
    {"huge",            PATTERN_RANDOM,                 INT4_HUGE},
    {"far",             PATTERN_RANDOM,                 INT4_FAR},
    {"uniform",         PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",            PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",        0,                              INPUT_DENORMAL},
    {"largest",         0,                              INPUT_LARGEST},
    {"any-bits",        PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"any-scale",       PATTERN_RANDOM | PATTERN_LARGE, GROUPS_ANY_SCALE},
    {"nonfinite",       PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",             PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",        PATTERN_NONFINITE,              GROUPS_INFINITY},
    {"nonfinite-scale", PATTERN_NONFINITE,              GROUPS_NONFINITE_SCALE},
    {NULL,              0,                              0},
};

static const input_pattern code_patterns[] = {
    {"normal",    PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"ties",      PATTERN_LARGE,                  GROUPS_TIE_SCALE},
    {"near-ties", PATTERN_LARGE,                  GROUPS_NEAR_TIE},
    {"uniform",   PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"denormal",  0,                              INPUT_DENORMAL},
    {"largest",   0,                              INPUT_LARGEST},
    {"zero",      0,                              INPUT_ZERO},
    {"any-bits",  PATTERN_RANDOM | PATTERN_LARGE, INPUT_ANY_BITS},
    {"nonfinite", PATTERN_NONFINITE,              INPUT_NONFINITE},
    {NULL,        0,                              0},
};
/* clang-format on */

const family_row int4_scale_row = {.name = "int4_scale",
                                   .args = "in scale n",
                                   .patterns = element_patterns,
                                   .plan = groups_plan,
                                   .make = make,
                                   .expect = expect_scale,
                                   .expects_nonfinite = true};
const family_row int4_pack_row = {.name = "int4_pack",
                                  .args = "in scale packed n",
                                  .patterns = pack_patterns,
                                  .plan = groups_plan,
                                  .make = make,
                                  .expect = expect_pack,
                                  .expects_nonfinite = true};
const family_row int4_quantize_row = {.name = "int4_quantize",
                                      .args = "in scale packed n",
                                      .patterns = element_patterns,
                                      .plan = groups_plan,
                                      .make = make,
                                      .expect = expect_quantize,
                                      .expects_nonfinite = true};
const family_row int4_unpack_row = {.name = "int4_unpack",
                                    .args = "packed scale out n",
                                    .patterns = code_patterns,
                                    .plan = groups_plan,
                                    .make = make,
                                    .expect = expect_unpack,
                                    .expects_nonfinite = true};
