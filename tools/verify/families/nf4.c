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

/* ---- given scales ----------------------------------------------------------------------------------------------- */

enum { NESTED_SHARE = 256 /* scales with the same absmax */ };

double nf4_given_scale(problem *p, uint64_t i)
{
    argument *scale = problem_find(p, "scale"), *absmax = problem_find(p, "nested_absmax");
    if (scale)
        return element_get(scale->about->type, scale->host, i);
    const unsigned char *indices = problem_find(p, "scale_index")->host;
    const double code = element_get(ELEMENT_F32, problem_find(p, "nested_code")->host, indices[i]),
                 factor = element_get(ELEMENT_F32, absmax->host, i / NESTED_SHARE);
    const double offset = (double)(float)problem_find(p, "nested_offset")->real;
    return groups_add(ELEMENT_F32, groups_multiply(ELEMENT_F32, code, factor), offset);
}

void nf4_make_nested(problem *p, bool is_usual, random_stream s)
{
    argument *absmax = problem_find(p, "nested_absmax");
    for (uint64_t i = 0; i < absmax->count; i++)
        element_set(ELEMENT_F32, absmax->host, i, is_usual ? 0.5 + random_uniform(s, i) : i % 2 ? 0.5 : 1);
    problem_find(p, "nested_offset")->real = is_usual ? 0.0123 : 0;
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
    argument *packed = problem_find(p, "packed"), *out = problem_find(p, "out");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    expect_bits(p, out);
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> groups_shift(even_shift, i) & 15;
        double s = nf4_given_scale(p, i / group);
        element_set(out->about->type, out->expected_bits, i, groups_multiply(arithmetic, nf4_table[code], s));
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum { NF4_THRESHOLDS = 100, NF4_HARD, NF4_NEAR_SMALLEST_SCALE };

/* In every group one element of magnitude s and, around it, the thresholds times s: each exactly, one ulp below and
 * above. s is a power of two, so that the quotient is the threshold itself. */
static void fill_thresholds(problem *p, argument *in, uint64_t g, random_stream s)
{
    element_type type = in->about->type, arithmetic = groups_arithmetic(type);
    const group_range range = groups_range(p, g);
    const uint64_t extreme = groups_extreme_place(p, s, g, range.last - range.first);
    const double scale = ldexp(1, (int)random_below(s, 4 * g, 13) - 6);
    for (uint64_t i = range.first; i < range.last; i++) {
        const uint64_t place = i - range.first, step = random_below(s, 4 * g + 2, 45) + place;
        const double x = nf4_threshold(arithmetic, (int)(step % 15)) * scale;
        if (place == extreme)
            element_set(type, in->host, i, groups_extreme_is_negative(p, g) ? -scale : scale);
        else
            element_set(type, in->host, i, groups_step(type, x, (int)(step / 15 % 3) - 1));
    }
}

/* A group whose codes hang on how quotients are rounded. */
typedef struct hard_group {
    element_type type, arithmetic;
    double scale, near; /* near: an element whose quotient is next to a threshold where any of its type is */
} hard_group;

/* Whether another rounding of the quotient gives another code. */
static bool is_hard(const hard_group *h, double x)
{
    return nf4_code(h->arithmetic, groups_divide(h->arithmetic, x, h->scale)) !=
           nf4_code(h->arithmetic, groups_other_quotient(h->arithmetic, x, h->scale));
}

/* Scales, and elements, with which alone it shows in codes how the scale's inverse is rounded: f32 up and down; of f16, where
 * kernels may multiply by the inverse and no more, the one pair whose quotient is rounded to a threshold. */
typedef struct rare_pair {
    double scale, element;
} rare_pair;
static const rare_pair rare_f32[] = {{0x1.a7d1c2p0, -0x1.02cc4cp0}, {0x1.b79026p0, -0x1.74cab6p0}},
                       rare_f16 = {0x1.edcp0, -0x1.2d8p0};

/* An element of few bits comes next to a threshold by a scale that is given. One group in 8 is a rare pair's. */
static hard_group make_group(element_type type, bool is_given, random_stream s)
{
    hard_group h = {.type = type, .arithmetic = groups_arithmetic(type)};
    const uint64_t below = random_below(s, 2, 14);
    const double threshold = nf4_threshold(h.arithmetic, (int)below),
                 power = ldexp(1, (int)random_below(s, 3, 9) - 4);
    const bool is_rare = random_below(s, 4, 8) == 0;
    if (is_given) {
        h.near = copysign(groups_any_mantissa(type, s, 5), threshold);
        h.scale = groups_step(h.arithmetic, h.near / threshold, (int)random_below(s, 6, 5) - 2);
    } else {
        h.scale = groups_any_mantissa(type, s, 5);
        h.near = threshold * h.scale;
    }
    if (is_rare && (type == ELEMENT_F32 || type == ELEMENT_F16)) {
        const rare_pair pair = type == ELEMENT_F16 ? rare_f16 : rare_f32[below % 2];
        h.scale = pair.scale * power;
        h.near = pair.element * power;
    }
    return h;
}

/* The first of a few in which the element next to a threshold is hard, and the product with the scale's inverse, which is
 * where kernels begin, does not give its code. */
static hard_group make_hard_group(element_type type, bool is_given, random_stream s)
{
    enum { ATTEMPTS = 24 };
    hard_group h;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        h = make_group(type, is_given, random_fork(s, attempt));
        const element_type a = h.arithmetic;
        const double product = groups_multiply(a, h.near, groups_divide(a, 1, h.scale));
        const bool is_wrong = nf4_code(a, product) != nf4_code(a, groups_divide(a, h.near, h.scale));
        if (!is_given || (is_hard(&h, h.near) && (is_wrong || attempt < 3)))
            break;
    }
    return h;
}

/* The first hard one of a few; and NaNs, whose code is found in the same way. */
static double hard_element(const hard_group *h, random_stream s, uint64_t i)
{
    enum { ATTEMPTS = 4 };
    double x = 0;
    if (random_below(random_fork(s, ATTEMPTS), i, 12) == 0)
        return NAN;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        const random_stream here = random_fork(s, attempt);
        const double threshold = nf4_threshold(h->arithmetic, (int)random_below(here, 4 * i, 15));
        const bool is_near = random_below(here, 4 * i + 1, 8) < 3;
        x = is_near ? h->near : threshold * h->scale;
        x = groups_step(h->type, x, is_near ? 0 : (int)random_below(here, 4 * i + 2, 5) - 2);
        if (is_hard(h, x))
            break;
    }
    return x;
}

/* And its scale, where that is given. */
static void fill_hard_group(problem *p, argument *in, random_stream s, uint64_t g)
{
    argument *scale = problem_find(p, "scale");
    const bool is_given = scale->about->direction == DIRECTION_IN;
    const group_range range = groups_range(p, g);
    const uint64_t extreme = groups_extreme_place(p, s, g, range.last - range.first);
    const element_type type = in->about->type;
    const hard_group h = make_hard_group(type, is_given, random_fork(s, g));
    for (uint64_t i = range.first; i < range.last; i++) {
        const bool is_extreme = !is_given && i - range.first == extreme;
        const double largest = groups_extreme_is_negative(p, g) ? -h.scale : h.scale;
        element_set(type, in->host, i, is_extreme ? largest : hard_element(&h, random_fork(s, 5), i));
    }
    if (is_given)
        element_set(scale->about->type, scale->host, g, h.scale);
}

/* Group by group, the largest magnitude just below, at and just above the smallest scale, 1e-12. */
static void fill_near_smallest_scale(problem *p, argument *in, random_stream s, uint64_t g)
{
    const element_type type = in->about->type;
    const group_range range = groups_range(p, g);
    const uint64_t extreme = groups_extreme_place(p, s, g, range.last - range.first);
    const double most = groups_step(type, 1e-12, (int)random_below(s, g, 5) - 2);
    for (uint64_t i = range.first; i < range.last; i++) {
        const double x = i - range.first == extreme ? most : most * (2 * random_uniform(s, i) - 1);
        element_set(type, in->host, i, groups_extreme_is_negative(p, g) ? -x : x);
    }
}

static const groups_kinds kinds = {NF4_HARD, NF4_THRESHOLDS, NF4_NEAR_SMALLEST_SCALE, 0};

static void fill_elements(problem *p, argument *in, int kind, random_stream s)
{
    const uint64_t group = groups_size(p);
    if (kind < NF4_THRESHOLDS)
        groups_fill_elements(p, in, kind, s);
    for (uint64_t g = 0; in->count > 0 && g <= (in->count - 1) / group; g++) {
        const int here = groups_kind_of(p, s, g, kind, &kinds);
        if (here == NF4_THRESHOLDS)
            fill_thresholds(p, in, g, random_fork(s, 8));
        else if (here == NF4_NEAR_SMALLEST_SCALE)
            fill_near_smallest_scale(p, in, random_fork(s, 7), g);
    }
}

static void fill_hard_groups(problem *p, argument *in, int kind, random_stream s)
{
    const uint64_t group = groups_size(p);
    for (uint64_t g = 0; in->count > 0 && g <= (in->count - 1) / group; g++) {
        if (groups_kind_of(p, s, g, kind, &kinds) == NF4_HARD)
            fill_hard_group(p, in, random_fork(s, 6), g);
    }
}

/* The scale that goes into a kernel: that of the elements at hand, else random magnitudes. */
static void fill_scales(problem *p, argument *scale, argument *in, int kind, random_stream s)
{
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

/* A scale by which a value comes next to a tie, and that value for half of the codes. */
static void fill_near_tie(problem *p, uint64_t g, random_stream s)
{
    argument *scale = problem_find(p, "scale"), *packed = problem_find(p, "packed");
    const element_type outputs = problem_find(p, "out")->about->type;
    const unsigned code = 1 + (unsigned)random_below(s, 0, 13),
                   tied = code < 7 ? code : code + 1; /* not -1, 0, 1 */
    const group_range range = groups_range(p, g);
    element_set(scale->about->type, scale->host, g,
                groups_near_tie_scale(outputs, fabs(nf4_table[tied]), s, 0));
    for (uint64_t i = range.first; i < range.last; i++) {
        if (random_below(random_fork(s, 1), i, 2))
            groups_set_code(p, packed, i, tied);
    }
}

static void make_nested_codes(problem *p, const input_pattern *pattern, random_stream s)
{
    const bool is_usual = pattern->number == INPUT_NORMAL || pattern->number == INPUT_UNIFORM;
    groups_fill_numbers(problem_find(p, "nested_code"), pattern->number, random_fork(s, 2));
    nf4_make_nested(p, is_usual, random_fork(s, 4));
    inputs_fill_bytes(problem_find(p, "packed"), random_fork(s, 3));
    inputs_fill_bytes(problem_find(p, "scale_index"), random_fork(s, 5));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"),
             *packed = problem_find(p, "packed");
    if (!scale) {
        make_nested_codes(p, pattern, s);
        return;
    }
    if (in)
        fill_elements(p, in, pattern->number, random_fork(s, 1));
    if (scale->about->direction == DIRECTION_IN)
        fill_scales(p, scale, in, pattern->number, random_fork(s, 2));
    if (in) {
        const bool is_given = scale->about->direction == DIRECTION_IN;
        fill_hard_groups(p, in, pattern->number, random_fork(s, 1));
        groups_finish_blocks(p, in, is_given ? scale : NULL, random_fork(s, 1));
    }
    if (!packed || packed->about->direction != DIRECTION_IN)
        return;
    inputs_fill_bytes(packed, random_fork(s, 3));
    for (uint64_t g = 0; g < scale->count; g++) {
        if (pattern->number == GROUPS_NEAR_TIE || groups_share_of(s, g) != GROUPS_OWN)
            fill_near_tie(p, g, random_fork(random_fork(s, 4), g));
    }
}

/* clang-format off */
static const input_pattern element_patterns[] = {
    {"normal",              PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"thresholds",          PATTERN_LARGE,                  NF4_THRESHOLDS},
    {"hard",                0,                              NF4_HARD},
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
    {"hard",                0,                              NF4_HARD},
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
                                   .args = "packed out n",
                                   .patterns = code_patterns,
                                   .plan = groups_plan,
                                   .make = make,
                                   .expect = expect_unpack,
                                   .expects_nonfinite = true};

/* ---- inputs of the products ---------------------------------------------------------------------------------------- */

double nf4_scale_between(int low, int high, random_stream s, uint64_t i)
{
    const uint64_t exponents = (uint64_t)(high - low);
    double magnitude =
        ldexp(1 + random_uniform(s, 2 * i), (int)random_below(random_fork(s, 1), i, exponents) + low);
    return random_below(random_fork(s, 2), i, 16) == 0 ? 0
           : random_bits(s, 2 * i + 1) & 1             ? -magnitude
                                                       : magnitude;
}

double nf4_usual_scale(random_stream s, uint64_t i)
{
    return fabs(random_normal(s, i)) + 0x1p-10;
}

double nf4_large(element_type type, random_stream s, uint64_t i)
{
    double most = type == ELEMENT_F16 ? number_largest(type) : 0x1p119;
    return (random_bits(s, i) & 1 ? -1 : 1) * most * (random_below(s, i + 1, 4) ? 1 : random_uniform(s, i));
}
