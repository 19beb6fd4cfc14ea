/* NF4 references: quantise, unpack, and the two halves of quantise. All results are exact, bit for bit. */
#include "nf4.h"

#include <math.h>
#include <string.h>

#include "groups.h"
#include "inputs.h"

/* QLoRA, appendix E; every entry is a float32. Written again here on purpose. */
const double nf4_table[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

double nf4_threshold(element_type arithmetic, int i)
{
    double midpoint = (nf4_table[i] + nf4_table[i + 1]) / 2;
    return arithmetic == ELEMENT_F64 ? midpoint : (double)(float)midpoint;
}

unsigned nf4_code(element_type arithmetic, double r)
{
    unsigned code = 0;
    for (int i = 0; i < 15; i++)
        code += r > nf4_threshold(arithmetic, i);
    return code;
}

double nf4_scale(const argument *in, uint64_t first, uint64_t last)
{
    double most = groups_arithmetic(in->about->type) == ELEMENT_F64 ? 1e-12 : (double)1e-12f;
    for (uint64_t i = first; i < last; i++) {
        double magnitude = fabs(element_get(in->about->type, in->host, i));
        if (magnitude > most)
            most = magnitude;
    }
    return most;
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static void expect_scales(problem *p)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale");
    expect_bits(p, scale);
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        element_set(scale->about->type, scale->expected_bits, g, nf4_scale(in, range.first, range.last));
    }
}

/* `scales` are float32, or float64 where the elements are. */
static void expect_codes(problem *p, const void *scales)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(in->about->type);
    expect_bits(p, packed);
    unsigned char *bytes = packed->expected_bits;
    const unsigned even_shift = groups_even_shift(p);
    for (uint64_t i = 0; i < n; i++) {
        double x = element_get(in->about->type, in->host, i);
        double s = element_get(scale->about->type, scales, i / group);
        unsigned code = nf4_code(arithmetic, groups_divide(arithmetic, x, s));
        bytes[i / 2] = (unsigned char)(bytes[i / 2] | code << groups_shift(even_shift, i));
    }
}

static void expect_scale(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    expect_scales(p);
}

static void expect_pack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    expect_codes(p, problem_find(p, "scale")->host);
}

static void expect_quantize(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    expect_scales(p);
    expect_codes(p, problem_find(p, "scale")->expected_bits);
}

/* The product is rounded to the arithmetic's type, then to the elements'. */
static void expect_unpack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *packed = problem_find(p, "packed"), *scale = problem_find(p, "scale"),
             *out = problem_find(p, "out");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    expect_bits(p, out);
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> groups_shift(even_shift, i) & 15;
        double s = element_get(scale->about->type, scale->host, i / group);
        element_set(out->about->type, out->expected_bits, i, groups_multiply(arithmetic, nf4_table[code], s));
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum { NF4_THRESHOLDS = 100, NF4_THRESHOLDS_ODD, NF4_NEAR_SMALLEST_SCALE };

/* In every group one element of magnitude s and, around it, the thresholds times s: each exactly, one ulp below and
 * above. With s a power of two the quotient is the threshold itself; with any other s the division's rounding decides. `of`: the groups; null: all. */
static void fill_thresholds(problem *p, argument *in, bool is_power_of_two, const groups_share *of,
                            random_stream s)
{
    element_type type = in->about->type, arithmetic = groups_arithmetic(type);
    uint64_t group = groups_size(p);
    for (uint64_t i = 0; i < in->count; i++) {
        uint64_t g = i / group, place = i % group;
        if (of && groups_share_of(g) != *of)
            continue;
        double factor = is_power_of_two ? 1 : 1 + random_uniform(s, 4 * g + 1);
        double wanted = ldexp(factor, (int)random_below(s, 4 * g, 13) - 6);
        double scale = number_decode(type, number_encode(type, wanted));
        uint64_t step = random_below(s, 4 * g + 2, 45) + place;
        uint64_t length =
            in->count - g * group < group ? in->count - g * group : group; /* the last one may be short */
        if (place == random_below(s, 4 * g + 3, length)) {
            element_set(type, in->host, i, place % 2 ? -scale : scale);
            continue;
        }
        uint64_t bits = number_encode(type, nf4_threshold(arithmetic, (int)(step % 15)) * scale);
        element_set_bits(type, in->host, i, number_step(type, bits, (int)(step / 15 % 3) - 1));
    }
}

/* Group by group, the largest magnitude just below, at and just above the smallest scale, 1e-12. */
static void fill_near_smallest_scale(problem *p, argument *in, random_stream s)
{
    element_type type = in->about->type;
    uint64_t group = groups_size(p);
    for (uint64_t i = 0; i < in->count; i++) {
        uint64_t limit = number_encode(type, 1e-12);
        double most = number_decode(type, number_step(type, limit, (int)(i / group % 5) - 2));
        double x = i % group == 0 ? most : most * (2 * random_uniform(s, i) - 1);
        element_set(type, in->host, i, i / group % 2 ? -x : x);
    }
}

static void fill_elements(problem *p, argument *a, int kind, random_stream s)
{
    static const groups_share near = GROUPS_NEAR, at = GROUPS_AT;
    if (kind == NF4_THRESHOLDS || kind == NF4_THRESHOLDS_ODD)
        fill_thresholds(p, a, kind == NF4_THRESHOLDS, NULL, s);
    else if (kind == NF4_NEAR_SMALLEST_SCALE)
        fill_near_smallest_scale(p, a, s);
    else
        groups_fill_elements(p, a, kind, s);
    fill_thresholds(p, a, false, &near, random_fork(s, 7));
    fill_thresholds(p, a, true, &at, random_fork(s, 8));
}

/* The scale that goes into a kernel: that of the elements at hand, else random magnitudes. */
static void fill_scales(problem *p, argument *scale, argument *in, int kind, random_stream s)
{
    if (kind == GROUPS_NEAR_TIE) {
        groups_fill_near_ties(scale, nf4_table + 8, 7, s); /* but for 1 */
        return;
    }
    if (!in || kind == GROUPS_ANY_SCALE || kind == GROUPS_NONFINITE_SCALE) {
        groups_fill_numbers(scale, kind, s);
        return;
    }
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        double ratio = kind == INPUT_UNIFORM ? 2 * random_uniform(s, g) + 0.01 : 1;
        element_set(scale->about->type, scale->host, g, ratio * nf4_scale(in, range.first, range.last));
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"),
             *packed = problem_find(p, "packed");
    if (in)
        fill_elements(p, in, pattern->number, random_fork(s, 1));
    if (scale && scale->about->direction == DIRECTION_IN)
        fill_scales(p, scale, in, pattern->number, random_fork(s, 2));
    if (packed && packed->about->direction == DIRECTION_IN)
        inputs_fill_bytes(packed, random_fork(s, 3));
}

/* clang-format off */
static const input_pattern element_patterns[] = {
    {"normal",              PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"thresholds",          PATTERN_LARGE,                  NF4_THRESHOLDS},
    {"thresholds-odd",      0,                              NF4_THRESHOLDS_ODD},
    {"near-smallest-scale", 0,                              NF4_NEAR_SMALLEST_SCALE},
    {"uniform",             PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",                PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",            0,                              INPUT_DENORMAL},
    {"largest",             0,                              INPUT_LARGEST},
    {"zero",                0,                              INPUT_ZERO},
    {"equal",               0,                              INPUT_EQUAL},
    {"alternating",         0,                              INPUT_ALTERNATING},
    {"huge-tiny",           0,                              INPUT_HUGE_TINY},
    {"any-bits",            PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"nonfinite",           PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",                 PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",            PATTERN_NONFINITE,              GROUPS_INFINITY},
    {NULL,                  0,                              0},
};

static const input_pattern pack_patterns[] = {
    {"normal",              PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"thresholds",          PATTERN_LARGE,                  NF4_THRESHOLDS},
    {"thresholds-odd",      0,                              NF4_THRESHOLDS_ODD},
    {"uniform",             PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",                PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",            0,                              INPUT_DENORMAL},
    {"largest",             0,                              INPUT_LARGEST},
    {"any-bits",            PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"any-scale",           PATTERN_RANDOM | PATTERN_LARGE, GROUPS_ANY_SCALE},
    {"nonfinite",           PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",                 PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",            PATTERN_NONFINITE,              GROUPS_INFINITY},
    {"nonfinite-scale",     PATTERN_NONFINITE,              GROUPS_NONFINITE_SCALE},
    {NULL,                  0,                              0},
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

const family_row nf4_quantize_row = {.name = "nf4_quantize",
                                     .args = "in scale packed n",
                                     .patterns = element_patterns,
                                     .plan = groups_plan,
                                     .make = make,
                                     .expect = expect_quantize,
                                     .expects_nonfinite = true};
const family_row nf4_scale_row = {.name = "nf4_scale",
                                  .args = "in scale n",
                                  .patterns = element_patterns,
                                  .plan = groups_plan,
                                  .make = make,
                                  .expect = expect_scale,
                                  .expects_nonfinite = true};
const family_row nf4_pack_row = {.name = "nf4_pack",
                                 .args = "in scale packed n",
                                 .patterns = pack_patterns,
                                 .plan = groups_plan,
                                 .make = make,
                                 .expect = expect_pack,
                                 .expects_nonfinite = true};
const family_row nf4_unpack_row = {.name = "nf4_unpack",
                                   .args = "packed scale out n",
                                   .patterns = code_patterns,
                                   .plan = groups_plan,
                                   .make = make,
                                   .expect = expect_unpack,
                                   .expects_nonfinite = true};
