/* NF4 references: quantise, unpack, and the two halves of quantise. All results are exact, bit for bit. */
#include "nf4.h"

#include <math.h>
#include <string.h>

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

element_type nf4_arithmetic(element_type elements)
{
    return elements == ELEMENT_F64 ? ELEMENT_F64 : ELEMENT_F32;
}

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

double nf4_divide(element_type arithmetic, double x, double scale)
{
    return arithmetic == ELEMENT_F64 ? x / scale : (double)((float)x / (float)scale);
}

double nf4_multiply(element_type arithmetic, double a, double b)
{
    return arithmetic == ELEMENT_F64 ? a * b : (double)((float)a * (float)b);
}

double nf4_scale(const argument *in, uint64_t first, uint64_t last)
{
    double most = nf4_arithmetic(in->about->type) == ELEMENT_F64 ? 1e-12 : (double)1e-12f;
    for (uint64_t i = first; i < last; i++) {
        double magnitude = fabs(element_get(in->about->type, in->host, i));
        if (magnitude > most)
            most = magnitude;
    }
    return most;
}

/* ---- the contract's parameters ----------------------------------------------------------------------------------- */

/* Elements per scale: the parameter `group`, or the argument when that is "any". */
static uint64_t group_of(problem *p)
{
    argument *given = problem_find(p, "group_size");
    const char *fixed = manifest_param_value(p->variant, "group");
    uint64_t group = 0;
    if (given)
        return given->integer;
    for (; fixed && *fixed >= '0' && *fixed <= '9'; fixed++)
        group = group * 10 + (uint64_t)(*fixed - '0');
    return group ? group : 64;
}

static unsigned shift_of(problem *p, uint64_t i)
{
    const char *nibbles = manifest_param_value(p->variant, "nibbles");
    bool is_high_first = nibbles && strcmp(nibbles, "high") == 0;
    return (i % 2 != 0) != is_high_first ? 4 : 0;
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static void expect_scales(problem *p)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale");
    uint64_t n = problem_integer(p, "n"), group = group_of(p);
    expect_bits(p, scale);
    for (uint64_t g = 0; g < scale->count; g++) {
        uint64_t last = (g + 1) * group < n ? (g + 1) * group : n;
        element_set(scale->about->type, scale->expected_bits, g, nf4_scale(in, g * group, last));
    }
}

/* `scales` are float32, or float64 where the elements are. */
static void expect_codes(problem *p, const void *scales)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    uint64_t n = problem_integer(p, "n"), group = group_of(p);
    element_type arithmetic = nf4_arithmetic(in->about->type);
    expect_bits(p, packed);
    unsigned char *bytes = packed->expected_bits;
    for (uint64_t i = 0; i < n; i++) {
        double x = element_get(in->about->type, in->host, i);
        double s = element_get(scale->about->type, scales, i / group);
        unsigned code = nf4_code(arithmetic, nf4_divide(arithmetic, x, s));
        bytes[i / 2] = (unsigned char)(bytes[i / 2] | code << shift_of(p, i));
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
    uint64_t n = problem_integer(p, "n"), group = group_of(p);
    element_type arithmetic = nf4_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    expect_bits(p, out);
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> shift_of(p, i) & 15;
        double s = element_get(scale->about->type, scale->host, i / group);
        element_set(out->about->type, out->expected_bits, i, nf4_multiply(arithmetic, nf4_table[code], s));
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum { NF4_THRESHOLDS = 100, NF4_THRESHOLDS_ODD, NF4_NEAR_SMALLEST_SCALE };

/* In every group one element of magnitude s and, around it, the thresholds times s: each exactly, one ulp below and
 * above. With s a power of two the quotient is the threshold itself; with any other s the division's rounding decides. */
static void fill_thresholds(problem *p, argument *in, bool is_power_of_two, random_stream s)
{
    element_type type = in->about->type, arithmetic = nf4_arithmetic(type);
    uint64_t group = group_of(p);
    for (uint64_t i = 0; i < in->count; i++) {
        uint64_t g = i / group, place = i % group;
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
    uint64_t group = group_of(p);
    for (uint64_t i = 0; i < in->count; i++) {
        uint64_t limit = number_encode(type, 1e-12);
        double most = number_decode(type, number_step(type, limit, (int)(i / group % 5) - 2));
        double x = i % group == 0 ? most : most * (2 * random_uniform(s, i) - 1);
        element_set(type, in->host, i, i / group % 2 ? -x : x);
    }
}

static void fill_elements(problem *p, argument *a, int kind, random_stream s)
{
    if (kind == NF4_THRESHOLDS || kind == NF4_THRESHOLDS_ODD)
        fill_thresholds(p, a, kind == NF4_THRESHOLDS, s);
    else if (kind == NF4_NEAR_SMALLEST_SCALE)
        fill_near_smallest_scale(p, a, s);
    else
        inputs_fill(a, (input_kind)kind, s);
}

/* The scale that goes into a kernel: that of the elements at hand, else random magnitudes. */
static void fill_scales(problem *p, argument *scale, argument *in, int kind, random_stream s)
{
    uint64_t n = problem_integer(p, "n"), group = group_of(p);
    if (!in) {
        inputs_fill(scale, (input_kind)kind, s);
        return;
    }
    for (uint64_t g = 0; g < scale->count; g++) {
        uint64_t last = (g + 1) * group < n ? (g + 1) * group : n;
        double ratio = kind == INPUT_UNIFORM ? 2 * random_uniform(s, g) + 0.01 : 1;
        element_set(scale->about->type, scale->host, g, ratio * nf4_scale(in, g * group, last));
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
    {NULL,                  0,                              0},
};

static const input_pattern code_patterns[] = {
    {"normal",    PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"uniform",   PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"denormal",  0,                              INPUT_DENORMAL},
    {"largest",   0,                              INPUT_LARGEST},
    {"zero",      0,                              INPUT_ZERO},
    {"any-bits",  PATTERN_RANDOM | PATTERN_LARGE, INPUT_ANY_BITS},
    {"nonfinite", PATTERN_NONFINITE,              INPUT_NONFINITE},
    {NULL,        0,                              0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void plan_group(size_plan *plan, uint64_t group)
{
    static const uint64_t some[] = {0, 1, 2, 3, 7, 31, 33, 1001, 4096, 4099, 65536, 100003};
    edge_list n = {{0}, 0};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        edges_add(&n, some[i]);
    edges_add_around(&n, group);
    edges_add_around(&n, 2 * group);
    edges_add(&n, 4 * group);
    edges_add(&n, 3 * group + group / 2 + 1);
    argument *size = problem_find(plan->problem, "n");
    edges_add_tiles(&n, plan->problem, size);
    if (plan->limits.big)
        edges_add_around(&n, plan->limits.big);
    for (size_t i = 0; i < n.count; i++) {
        size->integer = n.values[i];
        size_plan_add(plan);
    }
}

static void plan(size_plan *sizes)
{
    static const uint64_t groups[] = {64, 1, 2, 3, 31, 32, 33, 100, 128, 256, 1000};
    argument *given = problem_find(sizes->problem, "group_size");
    if (!given) {
        plan_group(sizes, group_of(sizes->problem));
        return;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        given->integer = groups[i];
        plan_group(sizes, groups[i]);
    }
}

const family_row nf4_quantize_row = {.name = "nf4_quantize",
                                     .args = "in scale packed n",
                                     .patterns = element_patterns,
                                     .plan = plan,
                                     .make = make,
                                     .expect = expect_quantize,
                                     .expects_nonfinite = true};
const family_row nf4_scale_row = {.name = "nf4_scale",
                                  .args = "in scale n",
                                  .patterns = element_patterns,
                                  .plan = plan,
                                  .make = make,
                                  .expect = expect_scale,
                                  .expects_nonfinite = true};
const family_row nf4_pack_row = {.name = "nf4_pack",
                                 .args = "in scale packed n",
                                 .patterns = element_patterns,
                                 .plan = plan,
                                 .make = make,
                                 .expect = expect_pack,
                                 .expects_nonfinite = true};
const family_row nf4_unpack_row = {.name = "nf4_unpack",
                                   .args = "packed scale out n",
                                   .patterns = code_patterns,
                                   .plan = plan,
                                   .make = make,
                                   .expect = expect_unpack,
                                   .expects_nonfinite = true};
