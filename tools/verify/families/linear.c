/* The float64 reference of linear, and the bound on its error. */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <stdio.h>

#include "gguf_blocks.h"
#include "inputs.h"
#include "nf4.h"

enum { Q8_BLOCK = 32, MOST_MATRICES = 3 };

/* ---- weights ---------------------------------------------------------------------------------------------------- */

/* int4 and nf4: the block holds only codes; scales and zeros are in arrays. */
static const gguf_format formats_of_groups[] = {
    {"", 32, 16, {-1, -1}, NULL},
    {"", 64, 32, {-1, -1}, NULL},
    {"", 128, 64, {-1, -1}, NULL},
    {"", 256, 128, {-1, -1}, NULL},
};

static bool is_nf4(const problem *p)
{
    return problem_has_parameter(p, "format", "nf4");
}

static bool has_arrays(const problem *p)
{
    return is_nf4(p) || problem_has_parameter(p, "format", "int4");
}

static const gguf_format *format_of(const problem *p)
{
    const gguf_format *of = formats_of_groups;
    if (!has_arrays(p))
        return gguf_of(p);
    while (of->elements != problem_parameter(p, "group"))
        of++;
    return of;
}

/* A matrix of weights; scales and zeros are null unless the format has arrays of them. */
typedef struct matrix {
    argument *w, *scales, *zeros;
} matrix;

/* Returns an argument of matrix `i`, such as "w_2" for the second; null if there is none. */
static argument *find_of(problem *p, const char *name, uint32_t i)
{
    char numbered[32];
    snprintf(numbered, sizeof numbered, i == 0 ? "%s" : "%s_%u", name, (unsigned)i + 1);
    return problem_find(p, numbered);
}

static matrix find_matrix(problem *p, uint32_t i)
{
    return (matrix){find_of(p, "w", i), find_of(p, "w_scales", i), find_of(p, "w_zeros", i)};
}

static matrix find_gate(problem *p)
{
    return (matrix){problem_find(p, "gate"), problem_find(p, "gate_scales"), problem_find(p, "gate_zeros")};
}

/* ---- the bound -------------------------------------------------------------------------------------------------- */

/* Let r be the exact product, S the sum of |h| * (|scale * code| + |minimum|), u half an ulp of y's type, L and L_n
 * the longest chains of additions in the product and in the norm:
 *
 *     u |y| + (2^-22 + (L_n/2 + 4) 2^-24) |r| with the norm + (L + 8) 2^-24 S
 *     q8: + sum over blocks of (scale/2) (1 + 2^-9) sum |w|
 *     with bias or residual: + 2^-23 (|r| + |bias| + |residual|)
 *     with w_scale: r and S times it, and + 2^-24 |r|
 *     int4 with zeros: L is one more, as -zero * scale, the minimum, is rounded
 *     nf4 with mma: + u_x S, as values are rounded to x's type
 *     mma: L S is the sum of |h| * (|scale * code| + |minimum|) of each element times its L: a warp's additions from the
 *           element's stage on, and those that join the warps
 *     half: + 40 * 2^-24 S, since a step of a tensor core truncates its addends, 8 products and a sum, each by less
 *           than 2^-24 of the largest twice; a sub-block is up to 4 steps
 *     codes: only the product's bound, as h is exact; with tiles as with mma, and no warps share k
 *     split_k: 9 more parts to add, as a thread block has at least an eighth of a tile's k
 *     tiles instead, in which a sum takes all of k: L = 5/4 k, for such a step; and for rounding weights to x's type,
 *           with d half of the least number, + u_x S + d sum |h|; if scales and minima are rounded first, so that a
 *           scale's error is multiplied by the code, + 2 u_x S + d sum (|code| + 2) |h|
 *
 * For q8 more is known: codes are rint(q) for a q within 2^-20 of h 127 / max|h|, relatively. So h here is code times
 * scale, and rounding adds nothing, except near a tie, where the code may be either neighbour.
 *
 * Random data have sqrt(L) and sqrt(L_n). A lane adds at most 8 products of parts for each 1024 elements (exact: 32
 * products of elements to each of them); then 5 lanes, and the chunks. With mma a warp has a k_warps-th of each
 * stage, and adds the product of each sub-block, of 16 or 32 elements, and its minimum. In the norm a thread adds 4
 * squares of each 1024, then 5 lanes and 8 warps.
 *
 * If the squares of x leave the range of f32, x is scaled by a power of two; so losses below the least normal number
 * are relative to numbers that may be 2^20 times h. An |h| below 2^-90 may count as 0. */
#define LOST 0x1p-90

typedef struct row_sums {
    double product, size; /* r and S of the bound */
    double additions;     /* mma: L S without the additions between warps */
    double loose;         /* for q8: sum of |w| times the uncertainty of h */
    double weights;       /* sum of |scale code| + |minimum| */
    double inputs;        /* sum of |h| */
    double steps;         /* sum of |h| * (|code| + 2) */
} row_sums;

/* A row of x, as the kernel reads it. */
typedef struct vector {
    double *h, *loose;
    bool is_finite;
} vector;

/* A row of W as numbers. */
typedef struct weights {
    double *w, *size, *steps; /* steps: |code| + 2 */
    bool is_finite;
} weights;

static bool is_half(const problem *p)
{
    return problem_has_parameter(p, "activation", "half");
}

/* Returns whether x is given as codes and scales. */
static bool is_codes(const problem *p)
{
    return problem_has_parameter(p, "x", "s8");
}

/* Returns whether weights are scaled and rounded before they are multiplied. */
static bool is_tiles(const problem *p)
{
    return problem_has_parameter(p, "strategy", "tiles") && !is_codes(p);
}

static bool rounds_scales(const problem *p)
{
    return problem_has_parameter(p, "rounding", "twice");
}

/* Returns whether thread blocks share k. */
static bool is_split(const problem *p)
{
    return (is_half(p) || is_codes(p)) && problem_parameter(p, "split_k") != 1;
}

/* Returns whether scales multiply sums of products. */
static bool is_mma(const problem *p)
{
    return problem_has_parameter(p, "strategy", "mma") || is_codes(p);
}

/* Returns the warps of a thread block that share a stage of k. */
static uint64_t k_warps_of(const problem *p)
{
    return problem_has_parameter(p, "strategy", "tiles") ? 1 : problem_parameter(p, "k_warps");
}

/* Returns the elements of k that a thread block multiplies between barriers. */
static uint64_t stage_elements(const problem *p)
{
    if (is_tiles(p))
        return has_arrays(p) || format_of(p)->elements == 256 || problem_parameter(p, "tile_m") < 64 ? 256
                                                                                                     : 128;
    if (is_codes(p) && problem_has_parameter(p, "strategy", "tiles"))
        return format_of(p)->elements == 256 ? 256 : 128;
    if (is_codes(p))
        return 256 * k_warps_of(p);
    return problem_parameter(p, "tile_m") <= 16 ? 512 : 256;
}

static bool has_format(const problem *p, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (problem_has_parameter(p, "format", names[i]))
            return true;
    return false;
}

/* Returns how many elements' products tensor cores add before a scale multiplies the sum. */
static uint64_t product_elements(const problem *p)
{
    static const char *const of_16[] = {"q2_k", "q3_k", "q6_k", "tq2_0"};
    return has_format(p, of_16, sizeof of_16 / sizeof *of_16) ? 16 : 32;
}

/* Returns, for mma, a warp's additions to an element of y in a stage: one per scale, and one per minimum. */
static double additions_of_stage(const problem *p)
{
    static const char *const with_minima[] = {"q4_1", "q5_1", "q2_k", "q4_k", "q5_k"};
    const bool has_minima = has_arrays(p)
                                ? problem_has_parameter(p, "mode", "asym")
                                : has_format(p, with_minima, sizeof with_minima / sizeof *with_minima);
    const double kinds = has_minima ? 2 : 1;
    return kinds * (double)stage_elements(p) / (double)(k_warps_of(p) * product_elements(p));
}

/* Returns the number of stages from that of element i of k to the thread block's last. With split_k 0 the last may
 * be k's last. */
static uint64_t stages_from(const problem *p, uint64_t i, uint64_t k)
{
    const uint64_t elements = stage_elements(p), stages = (k + elements - 1) / elements, here = i / elements;
    const uint64_t parts = is_split(p) ? problem_parameter(p, "split_k") : 1;
    if (parts < 2)
        return stages - here;
    const uint64_t each = stages / parts, longer = stages % parts, in_longer = longer * (each + 1);
    return here < in_longer ? each + 1 - here % (each + 1) : each - (here - in_longer) % each;
}

static double bound_of(problem *p, const row_sums *s, uint64_t k, bool is_random)
{
    const bool has_norm = problem_has_parameter(p, "norm", "rms"),
               is_q8 = problem_has_parameter(p, "activation", "q8");
    const double chunk = (double)problem_parameter(p, "chunk"), elements = (double)k;
    const double k_warps = (double)k_warps_of(p), cut = is_half(p) && !is_tiles(p) ? 40 : 0;
    double chain = is_tiles(p) ? 1.25 * elements
                   : is_mma(p) ? (s->size > 0 ? s->additions / s->size : 0) + k_warps
                               : (is_q8 ? 0 : 32) + 8 * ceil(elements / 1024) + 5 + ceil(elements / chunk);
    if (is_split(p))
        chain += 9;
    if (has_arrays(p) && problem_has_parameter(p, "mode", "asym"))
        chain += 1;
    double norm_chain = ceil(elements / 1024) * 4 + 5 + 8;
    if (is_random) {
        chain = sqrt(chain);
        norm_chain = sqrt(norm_chain);
    }
    double bound =
        (chain + 8 + cut) * 0x1p-24 * s->size + s->loose + LOST * s->weights + 0x1p-149 * (8 + elements);
    if (has_norm)
        bound += (0x1p-22 + (norm_chain / 2 + 4) * 0x1p-24) * fabs(s->product);
    if (is_nf4(p) && is_mma(p))
        bound += number_unit(problem_find(p, "in")->about->type) * s->size;
    if (is_tiles(p)) {
        const element_type x = problem_find(p, "in")->about->type;
        bound += rounds_scales(p) ? 2 * number_unit(x) * s->size + number_smallest(x) / 2 * s->steps
                                  : number_unit(x) * s->size + number_smallest(x) / 2 * s->inputs;
    }
    return bound;
}

/* ---- h ---------------------------------------------------------------------------------------------------------- */

static void make_h(problem *p, uint64_t number, vector *v)
{
    argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    const argument *scale = problem_find(p, "in_scale");
    const uint64_t k = problem_integer(p, "k");
    double sum = 0;
    for (uint64_t i = 0; i < k; i++) {
        v->h[i] = element_get(in->about->type, in->host, number * k + i);
        if (scale)
            v->h[i] *= element_get(ELEMENT_F32, scale->host, (number * k + i) / Q8_BLOCK);
        sum += v->h[i] * v->h[i];
    }
    const double factor = gamma ? 1 / sqrt(sum / (double)k + (double)(float)eps->real) : 1;
    v->is_finite = true;
    for (uint64_t i = 0; i < k; i++) {
        v->h[i] *= factor * (gamma ? element_get(ELEMENT_F32, gamma->host, i) : 1);
        v->loose[i] = 0;
        v->is_finite = v->is_finite && isfinite(v->h[i]);
    }
}

/* Replaces h by codes times scales. */
static void round_to_codes(vector *v, uint64_t k)
{
    for (uint64_t first = 0; v->is_finite && first < k; first += Q8_BLOCK) {
        double most = 0;
        for (uint64_t i = first; i < first + Q8_BLOCK; i++)
            most = fmax(most, fabs(v->h[i]));
        for (uint64_t i = first; i < first + Q8_BLOCK; i++) {
            if (most < LOST) {
                v->loose[i] = LOST / 127;
                continue;
            }
            const double scale = most / 127, quotient = fabs(v->h[i]) / scale, code = rint(quotient);
            const double off = 0x1p-20 * quotient + 0x1p-24;
            v->loose[i] = fabs(quotient - floor(quotient) - 0.5) <= off ? scale : 0;
            v->h[i] = copysign(code * scale, v->h[i]);
        }
    }
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

static weights allocate_weights(pool *memory, uint64_t k)
{
    return (weights){.w = pool_allocate(memory, (size_t)k * sizeof(double)),
                     .size = pool_allocate(memory, (size_t)k * sizeof(double)),
                     .steps = pool_allocate(memory, (size_t)k * sizeof(double))};
}

/* Reads block `number` of the matrix, whose scales and zeros are in arrays. */
static void read_arrays(const problem *p, const matrix *of, uint64_t number, gguf_block *b)
{
    const gguf_format *format = format_of(p);
    const unsigned char *codes = (const unsigned char *)of->w->host + number * format->bytes;
    const bool is_high_first = problem_has_parameter(p, "nibbles", "high");
    const double scale = element_get(ELEMENT_F32, of->scales->host, number);
    b->has_minimum = of->zeros != NULL;
    for (unsigned i = 0; i < format->elements; i++) {
        const bool is_high = (i % 2 == 0) == is_high_first;
        b->code[i] = (is_high ? codes[i / 2] >> 4 : codes[i / 2] & 15) - (of->zeros || is_nf4(p) ? 0 : 8);
        b->scale[i / GGUF_SUB_ELEMENTS] = scale;
        b->minimum[i / GGUF_SUB_ELEMENTS] =
            of->zeros ? -scale * element_get(ELEMENT_F32, of->zeros->host, number) : 0;
    }
}

static double value_of(const problem *p, const gguf_block *b, unsigned i)
{
    return is_nf4(p) ? nf4_table[b->code[i]] : b->code[i];
}

static void read_weights(problem *p, const matrix *of, uint64_t number, uint64_t k, weights *w)
{
    const bool is_narrow = is_tiles(p) && problem_find(p, "in")->about->type == ELEMENT_F16;
    const double most = is_narrow ? 65520 : INFINITY; /* the smallest number that rounds to an infinity */
    const gguf_format *format = format_of(p);
    const uint64_t first = number * (k / format->elements);
    gguf_block b;
    w->is_finite = true;
    for (uint64_t i = 0; i < k; i++) {
        const unsigned in_block = (unsigned)(i % format->elements), sub = in_block / GGUF_SUB_ELEMENTS;
        const uint64_t block = first + i / format->elements;
        if (in_block == 0 && of->scales)
            read_arrays(p, of, block, &b);
        else if (in_block == 0)
            gguf_read(format, &b, (const unsigned char *)of->w->host + block * format->bytes);
        const double value = value_of(p, &b, in_block), product = b.scale[sub] * value,
                     minimum = b.has_minimum ? b.minimum[sub] : 0;
        w->w[i] = product + minimum;
        w->size[i] = fabs(product) + fabs(minimum);
        w->steps[i] = fabs(value) + 2;
        w->is_finite = w->is_finite && isfinite(b.scale[sub]) && isfinite(minimum) && fabs(w->w[i]) < most;
        if (rounds_scales(p))
            w->is_finite = w->is_finite && fabs(b.scale[sub]) < most && fabs(minimum) < most;
    }
}

static row_sums multiply(const weights *w, const vector *v, const double *additions, uint64_t k)
{
    row_sums s = {0};
    for (uint64_t i = 0; i < k; i++) {
        s.product += w->w[i] * v->h[i];
        s.size += w->size[i] * fabs(v->h[i]);
        s.additions += additions[i] * w->size[i] * fabs(v->h[i]);
        s.loose += v->loose[i] * fabs(w->w[i]);
        s.weights += w->size[i];
        s.inputs += fabs(v->h[i]);
        s.steps += fabs(v->h[i]) * w->steps[i];
    }
    if (!w->is_finite || !v->is_finite)
        s.product = NAN;
    return s;
}

static double added(const argument *a, uint64_t i)
{
    return a ? element_get(a->about->type, a->host, i) : 0;
}

/* A call, with all rows of x. */
typedef struct call {
    problem *p;
    uint64_t m, k;
    vector *v;
    double *additions; /* mma: a warp's additions from each element's stage to the end */
    bool is_random;
} call;

/* A product with a vector, and its bound. */
typedef struct product {
    double value, off;
} product;

static product multiply_scaled(const call *c, const weights *w, const vector *v, const argument *scale)
{
    const row_sums s = multiply(w, v, c->additions, c->k);
    const double by = scale ? (double)(float)scale->real : 1;
    product of = {by * s.product, fabs(by) * bound_of(c->p, &s, c->k, c->is_random)};
    if (scale)
        of.off += 0x1p-24 * fabs(of.value) + 0x1p-149;
    return of;
}

/* Returns act(gate) * up; the slope of an activation is at most 1.13. */
static product multiply_pair(const problem *p, product gate, product up)
{
    const double x = gate.value, root = 0.79788456080286535588; /* of 2 / pi */
    const double act = problem_has_parameter(p, "epilogue", "swiglu")
                           ? x / (1 + exp(-x))
                           : x / 2 * (1 + tanh(root * (x + 0.044715 * x * x * x)));
    const double off = 1.13 * (gate.off + 0x1p-22 * fabs(x)) + 0x1p-20 * fabs(act);
    return (product){act * up.value, fabs(act) * up.off + off * (fabs(up.value) + up.off)};
}

/* Expects a matrix's y. */
static void expect_matrix(problem *p, const call *c, uint32_t number)
{
    argument *out = find_of(p, "out", number);
    const argument *bias = find_of(p, "bias", number), *residual = problem_find(p, "residual");
    const argument *scale = find_of(p, "w_scale", number), *gate_scale = problem_find(p, "gate_scale");
    const matrix w = find_matrix(p, number), gate = find_gate(p);
    const uint64_t n = out->extent[1];
    pool memory = {0};
    weights row = allocate_weights(&memory, c->k), gate_row = allocate_weights(&memory, c->k);
    expect_values(p, out);
    for (uint64_t r = 0; r < n; r++) {
        read_weights(p, &w, r, c->k, &row);
        if (gate.w)
            read_weights(p, &gate, r, c->k, &gate_row);
        for (uint64_t i = 0; i < c->m; i++) {
            const uint64_t element = i * n + r;
            product of = multiply_scaled(c, &row, &c->v[i], scale);
            if (gate.w)
                of = multiply_pair(p, multiply_scaled(c, &gate_row, &c->v[i], gate_scale), of);
            const double b = added(bias, r), z = added(residual, element), y = of.value + b + z;
            const double added_up = bias || residual ? 0x1p-23 * (fabs(of.value) + fabs(b) + fabs(z)) : 0;
            out->expected_value[element] = y;
            out->bound[element] = of.off + number_unit(out->about->type) * (fabs(y) + of.off) + added_up +
                                  number_smallest(out->about->type);
        }
    }
    pool_free(&memory);
}

static void expect(problem *p, const input_pattern *pattern)
{
    pool memory = {0};
    call c = {.p = p,
              .m = problem_integer(p, "m"),
              .k = problem_integer(p, "k"),
              .is_random = pattern->flags & PATTERN_RANDOM};
    c.additions = pool_allocate(&memory, (size_t)c.k * sizeof *c.additions);
    for (uint64_t i = 0; i < c.k; i++)
        c.additions[i] = is_mma(p) ? additions_of_stage(p) * (double)stages_from(p, i, c.k) : 0;
    c.v = pool_allocate(&memory, (size_t)c.m * sizeof *c.v);
    for (uint64_t i = 0; i < c.m; i++) {
        c.v[i].h = pool_allocate(&memory, (size_t)c.k * sizeof *c.v[i].h);
        c.v[i].loose = pool_allocate(&memory, (size_t)c.k * sizeof *c.v[i].loose);
        make_h(p, i, &c.v[i]);
        if (problem_has_parameter(p, "activation", "q8") && !is_codes(p))
            round_to_codes(&c.v[i], c.k);
    }
    for (uint32_t i = 0; i < MOST_MATRICES && find_of(p, "w", i); i++)
        expect_matrix(p, &c, i);
    pool_free(&memory);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

typedef struct kinds {
    input_kind x, gamma;
    int w;
    double eps;
    int exponent; /* x is multiplied by this power of two */
    bool has_bad_x;
} kinds;

/* each row of W is of another kind */
enum { MIXED_W = -1, BAD_ROWS = -2 };

enum {
    RANDOM,
    REAL,
    HUGE_X,
    TINY_X,
    LOW_X,
    BAD_X,
    BAD_W,
    CANCELLING,
    HUGE_TINY,
    SPREAD,
    SPREAD_GAMMA,
    MIXED,
    LONE,
    SMALL_EPS,
    LARGE_EPS,
    ONE_SIGN,
    ABSORBED
};

/* clang-format off */
static const kinds all_kinds[] = {
    [RANDOM]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 0.75, 0,    false},
    [REAL]         = {INPUT_REAL,        INPUT_UNIFORM, GGUF_RANDOM, 1e-6, 0,    false},
    [HUGE_X]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 1e-5, 90,   false},
    [TINY_X]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 0,    -70,  false},
    [LOW_X]        = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 0,    -135, false},
    [BAD_X]        = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 1e-5, 0,    true},
    [BAD_W]        = {INPUT_NORMAL,      INPUT_UNIFORM, BAD_ROWS,    1e-5, 0,    false},
    [CANCELLING]   = {INPUT_ALTERNATING, INPUT_EQUAL,   GGUF_TIES,   1e-5, 0,    false},
    [HUGE_TINY]    = {INPUT_HUGE_TINY,   INPUT_NORMAL,  GGUF_RANDOM, 0,    0,    false},
    [SPREAD]       = {INPUT_SPREAD,      INPUT_NORMAL,  GGUF_RANDOM, 1e-5, 0,    false},
    [SPREAD_GAMMA] = {INPUT_NORMAL,      INPUT_SPREAD,  GGUF_RANDOM, 1e-5, 0,    false},
    [MIXED]        = {INPUT_UNIFORM,     INPUT_NORMAL,  MIXED_W,     0.1,  0,    false},
    [LONE]         = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 1e-6, 0,    false},
    [SMALL_EPS]    = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 0x1p-40, -20, false},
    [LARGE_EPS]    = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM, 0x1p88, 44, false},
    [ONE_SIGN]     = {INPUT_UNIFORM,     INPUT_UNIFORM, GGUF_RANDOM, 1e-5, 0,    false},
    [ABSORBED]     = {INPUT_UNIFORM,     INPUT_EQUAL,   GGUF_RANDOM, 1e-5, 0,    false},
};

static const input_pattern patterns[] = {
    {"random",       PATTERN_RANDOM | PATTERN_LARGE, RANDOM},
    {"huge",         0,                              HUGE_X},
    {"real",         PATTERN_LARGE,                  REAL},
    {"tiny",         0,                              TINY_X},
    {"nonfinite-w",  PATTERN_NONFINITE,              BAD_W},
    {"cancelling",   0,                              CANCELLING},
    {"huge-tiny",    0,                              HUGE_TINY},
    {"low",          0,                              LOW_X},
    {"mixed",        0,                              MIXED},
    {"nonfinite",    PATTERN_NONFINITE,              BAD_X},
    {"spread",       0,                              SPREAD},
    {"spread-gamma", 0,                              SPREAD_GAMMA},
    {"lone",         PATTERN_RANDOM,                 LONE},
    {"small-eps",    0,                              SMALL_EPS}, /* about as large as the squares of x */
    {"large-eps",    0,                              LARGE_EPS},
    {"one-sign",     PATTERN_RANDOM,                 ONE_SIGN}, /* growing sums show each addition's error */
    {"absorbed",     0,                              ABSORBED}, /* each addition loses as much as possible */
    {NULL,           0,                              0},
};
/* clang-format on */

/* Returns the exponent for a row of x: scales one of several rows, all, or each by another power of two. So an
 * error in processing one of a thread block's vectors shows next to the others, and so does a single row that the
 * norm brings back among unmoved rows; the number of rows of W chooses the row. */
static int row_exponent(int exponent, uint64_t row, uint64_t rows, uint64_t n, bool has_norm, random_stream s)
{
    enum { APART = 9, FAR = 60 };
    const bool is_lone = rows > 1 && row == n % rows;
    if (exponent == 0)
        return !has_norm || !is_lone ? 0 : n / rows % 2 ? FAR : -FAR;
    switch (rows > 1 ? random_below(s, 0, 3) : 0) {
    case 0:
        return exponent;
    case 1:
        return is_lone ? exponent : 0;
    default:
        return (exponent < 0 ? -1 : 1) * (int)random_below(random_fork(s, 1), row, APART) + exponent;
    }
}

/* Multiplies x by a power of two, as far as the type allows. Without a norm h is x, and its products stay within
 * f32. */
static void move(problem *p, argument *in, int exponent, random_stream s)
{
    const element_type type = in->about->type;
    const bool has_norm = problem_has_parameter(p, "norm", "rms");
    const uint64_t k = problem_integer(p, "k"), rows = problem_integer(p, "m"), n = problem_integer(p, "n");
    const double most = number_largest(type);
    for (uint64_t i = 0; i < in->count; i++) {
        const int by = row_exponent(exponent, i / k, rows, n, has_norm, s);
        const double x = ldexp(element_get(type, in->host, i), has_norm ? by : by / 2);
        element_set(type, in->host, i, fmax(fmin(x, most), -most));
    }
}

/* Keeps one element of x in 32: sums of few terms cancel little and have a tight bound, which shows errors of a
 * gate. */
static void thin(argument *in, random_stream s)
{
    for (uint64_t i = 0; i < in->count; i++) {
        const bool is_kept = i % 32 == random_below(s, i / 32, 32);
        const double x = element_get(in->about->type, in->host, i);
        element_set(in->about->type, in->host, i, is_kept ? 8 * x : 0);
    }
}

/* Makes elements in every second row of x, or in gamma, NaNs and infinities. */
static void spoil(problem *p, argument *in, random_stream s)
{
    argument *gamma = problem_find(p, "gamma");
    const uint64_t k = problem_integer(p, "k");
    if (gamma && random_below(s, 0, 3) == 0)
        element_set(ELEMENT_F32, gamma->host, random_below(s, 1, k), inputs_nonfinite(s, 2));
    for (uint64_t row = 0; row < in->count / k; row += 2)
        element_set(in->about->type, in->host, row * k + random_below(random_fork(s, 3), row, k),
                    inputs_nonfinite(s, row));
}

/* Rounds a scale. Scales have at most 22 bits: some have 9, others all. */
static double round_scale(double scale, random_stream s, uint64_t block)
{
    int exponent;
    const int bits = random_below(s, block, 2) == 0 ? 9 : 22;
    const double fraction = frexp(scale, &exponent);
    return ldexp(ceil(ldexp(fraction, bits)), exponent - bits);
}

/* Makes codes and scales of x, in F32. Codes may also be any bytes. */
static void make_codes(const argument *x, argument *codes, argument *scales, bool is_any, random_stream s)
{
    for (uint64_t block = 0; block < scales->count; block++) {
        const float *of = (const float *)x->host + block * Q8_BLOCK;
        double most = 0;
        bool is_finite = true;
        for (uint64_t i = 0; i < Q8_BLOCK; i++) {
            most = fmax(most, fabs((double)of[i]));
            is_finite = is_finite && isfinite(of[i]);
        }
        const double scale = is_finite ? round_scale(most / 127, s, block) : NAN;
        element_set(ELEMENT_F32, scales->host, block, scale);
        for (uint64_t i = 0; i < Q8_BLOCK; i++) {
            const uint64_t element = block * Q8_BLOCK + i;
            const double any = (double)random_below(random_fork(s, 1), element, 256) - 128,
                         code = scale > 0 ? rint((double)of[i] / scale) : 0;
            element_set(ELEMENT_I8, codes->host, element, is_any ? any : code);
        }
    }
}

/* Returns the kind of row `at`, given the kind of the matrix. */
static int kind_of_row(int kind, random_stream s, size_t at)
{
    static const int of_rows[] = {GGUF_LARGEST, GGUF_DENORMAL, GGUF_TIES, GGUF_ZERO};
    const size_t number = random_below(s, at, 4);
    return kind >= 0 ? kind : kind == MIXED_W ? of_rows[number] : number == 0 ? GGUF_NONFINITE : GGUF_RANDOM;
}

/* Returns a scale in an array, with 24 bits and either sign unless the kind has another; and a zero, mostly
 * between codes. */
static double make_scale(int kind, random_stream s, uint64_t number)
{
    const double sign = random_below(s, number, 2) ? -1 : 1,
                 some = 1 + random_uniform(random_fork(s, 1), number);
    switch (kind) {
    case GGUF_TIES:
        return sign * 0x1p-4;
    case GGUF_DENORMAL:
        return sign * some * 0x1p-30;
    case GGUF_LARGEST:
        return sign * some * 0x1p11;
    case GGUF_ZERO:
        return sign * 0;
    default:
        return sign * some * 0x1p-6;
    }
}

static double make_zero(int kind, random_stream s, uint64_t number)
{
    const double any = 20 * random_uniform(s, number) - 2;
    return kind == GGUF_TIES ? rint(any) : any;
}

/* Fills scales and zeros. About each fourth row has a NaN or an infinity in them. */
static void fill_arrays(problem *p, const matrix *w, int kind, random_stream s)
{
    const uint64_t numbers = problem_integer(p, "k") / problem_parameter(p, "group");
    inputs_fill_bytes(w->w, random_fork(s, 1));
    for (uint64_t i = 0; i < w->scales->count; i++) {
        const int of_row = kind_of_row(kind, random_fork(s, 2), i / numbers);
        element_set(ELEMENT_F32, w->scales->host, i, make_scale(of_row, random_fork(s, 3), i));
        if (w->zeros)
            element_set(ELEMENT_F32, w->zeros->host, i, make_zero(of_row, random_fork(s, 4), i));
    }
    for (uint64_t row = 0; numbers > 0 && row < w->scales->count / numbers; row++) {
        const argument *array = w->zeros && random_below(random_fork(s, 5), row, 2) ? w->zeros : w->scales;
        if (kind_of_row(kind, random_fork(s, 2), row) == GGUF_NONFINITE)
            element_set(ELEMENT_F32, array->host,
                        row * numbers + random_below(random_fork(s, 6), row, numbers),
                        inputs_nonfinite(s, row));
    }
}

static void fill_weights(problem *p, const matrix *of, int kind, random_stream s)
{
    const gguf_format *format = format_of(p);
    argument row = *of->w;
    if (has_arrays(p)) {
        fill_arrays(p, of, kind, s);
        return;
    }
    if (kind >= 0) {
        gguf_fill(format, of->w, kind, s);
        return;
    }
    row.bytes = problem_integer(p, "k") / format->elements * format->bytes;
    row.count = row.bytes;
    for (size_t at = 0; at < of->w->bytes; at += row.bytes) {
        int of_row = kind_of_row(kind, s, at);
        if (format->factor[0] < 0 && (of_row == GGUF_LARGEST || of_row == GGUF_NONFINITE))
            of_row = GGUF_RANDOM; /* powers of two up to 2^127, whose sums overflow, without NaNs */
        row.host = (unsigned char *)of->w->host + at;
        gguf_fill(format, &row, of_row, random_fork(random_fork(s, 1), at));
    }
}

/* Makes a matrix, and the arrays that the variant has. */
static void make_matrix(problem *p, const matrix *w, argument *bias, argument *scale, int kind,
                        random_stream s)
{
    if (w->w)
        fill_weights(p, w, kind, random_fork(s, 1));
    if (bias)
        inputs_fill(bias, INPUT_NORMAL, random_fork(s, 2));
    if (scale)
        scale->real = 4 * random_uniform(s, 3) - 2;
}

/* Changes a row of x so that all products with a row of W are positive. */
static void align_signs(const double w[], double x[], uint64_t k)
{
    for (uint64_t i = 0; i < k; i++)
        x[i] = copysign(x[i], w[i]);
}

/* Makes one product just above a power of two, then products whose sums are each slightly less than half an ulp of
 * it. */
static void absorb(const double w[], double x[], uint64_t k, uint64_t elements)
{
    uint64_t largest = 0;
    for (uint64_t i = 0; i < elements; i++) {
        largest = fabs(w[i]) > fabs(w[largest]) ? i : largest;
        x[i] = 0;
    }
    if (w[largest] == 0)
        return;
    const double power = exp2(floor(log2(fabs(w[largest]))) + 15), part = 0.47 * 0x1p-23 * power;
    x[largest] = 1.02 * power / w[largest];
    for (uint64_t first = elements; first < k; first += elements) {
        uint64_t count = 0;
        for (uint64_t i = first; i < first + elements; i++)
            count += w[i] != 0;
        for (uint64_t i = first; i < first + elements; i++)
            x[i] = w[i] != 0 ? part / (double)count / w[i] : 0;
    }
}

/* Makes each row of x from a row of W, cyclically. */
static void suit_weights(problem *p, argument *in, bool is_absorbed)
{
    const uint64_t k = problem_integer(p, "k"), n = problem_integer(p, "n");
    const element_type type = in->about->type;
    pool memory = {0};
    const matrix w = find_matrix(p, 0);
    weights row = allocate_weights(&memory, k);
    double *x = pool_allocate(&memory, (size_t)k * sizeof *x);
    for (uint64_t i = 0; n > 0 && i < in->count / k; i++) {
        read_weights(p, &w, i % n, k, &row);
        for (uint64_t e = 0; e < k; e++)
            x[e] = element_get(type, in->host, i * k + e);
        if (is_absorbed)
            absorb(row.w, x, k, product_elements(p));
        else
            align_signs(row.w, x, k);
        for (uint64_t e = 0; e < k; e++)
            element_set(type, in->host, i * k + e, x[e]);
    }
    pool_free(&memory);
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    const kinds *of = &all_kinds[pattern->number];
    argument *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    argument *codes = problem_find(p, "in"), *scales = problem_find(p, "in_scale");
    argument *residual = problem_find(p, "residual");
    argument x = *codes, *in = scales ? &x : codes;
    manifest_arg of_x = *codes->about;
    pool memory = {0};
    if (scales) {
        of_x.type = ELEMENT_F32;
        x.about = &of_x;
        x.bytes = x.count * element_bytes(ELEMENT_F32);
        x.host = pool_allocate(&memory, x.bytes);
    }
    inputs_fill(in, of->x, random_fork(s, 1));
    if (gamma)
        inputs_fill(gamma, of->gamma, random_fork(s, 3));
    if (residual)
        inputs_fill(residual, INPUT_NORMAL, random_fork(s, 7));
    if (eps)
        eps->real = of->eps;
    if (pattern->number == LONE)
        thin(in, random_fork(s, 4));
    move(p, in, of->exponent, random_fork(s, 6));
    if (pattern->number == HUGE_X && problem_has_parameter(p, "norm", "rms") &&
        in->about->type != ELEMENT_F16)
        inputs_raise_some(in, problem_integer(p, "k"), random_fork(s, 20));
    const matrix gate = find_gate(p);
    for (uint32_t i = 0; i < MOST_MATRICES; i++) {
        const matrix w = find_matrix(p, i);
        make_matrix(p, &w, find_of(p, "bias", i), find_of(p, "w_scale", i), of->w, random_fork(s, 8 + i));
    }
    make_matrix(p, &gate, NULL, problem_find(p, "gate_scale"), of->w, random_fork(s, 2));
    if (pattern->number == ONE_SIGN || pattern->number == ABSORBED)
        suit_weights(p, in, pattern->number == ABSORBED);
    if (of->has_bad_x)
        spoil(p, in, random_fork(s, 5));
    if (scales)
        make_codes(in, codes, scales, pattern->number == MIXED, random_fork(s, 6));
    pool_free(&memory);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Returns a workspace size that suffices. */
static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t rows)
{
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n"),
                   split_k = problem_parameter(p, "split_k");
    const uint64_t tiles = (m + tile_m - 1) / tile_m * ((rows + tile_n - 1) / tile_n);
    return (split_k > 0 ? tiles * split_k : 2 * (tiles < 80 ? 8 * tiles : 640)) * tile_m * tile_n;
}

/* Sets the sizes. With several matrices, the others have fewer rows, down to none. */
static void set_sizes(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "n")->integer = n;
    for (uint32_t i = 1; i < MOST_MATRICES && find_of(plan->problem, "n", i); i++)
        find_of(plan->problem, "n", i)->integer = n / (i + 1);
    problem_find(plan->problem, "k")->integer = k;
    if (!is_split(plan->problem))
        return;
    uint64_t rows = problem_find(plan->problem, "gate") ? 2 * n : n;
    for (uint32_t i = 1; i < MOST_MATRICES && find_of(plan->problem, "n", i); i++)
        rows += n / (i + 1);
    problem_find(plan->problem, "workspace_size")->integer = workspace_size(plan->problem, m, rows);
}

static void add(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set_sizes(plan, m, n, k);
    size_plan_add(plan);
}

/* Returns how many stages are peeled before the loop. */
static uint64_t stages_ahead(const problem *p)
{
    return is_tiles(p) ? 1 : problem_parameter(p, "stages") - 1;
}

static void add_always(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set_sizes(plan, m, n, k);
    size_plan_add_always(plan);
}

/* Adds sizes with as many stages of k as a tile has thread blocks, with fewer, and with more by less than one
 * each, the last of them cut. */
static void add_parts(size_plan *plan, uint64_t tile_m, uint64_t trip)
{
    const uint64_t split_k = problem_parameter(plan->problem, "split_k"), parts = split_k > 0 ? split_k : 8,
                   elements = format_of(plan->problem)->elements;
    add_always(plan, 2, 3, parts * trip);
    add_always(plan, 1, 5, (parts - 1) * trip);
    add_always(plan, tile_m, 2, parts * trip + elements);
    add_always(plan, 3, 1, (parts + 3) * trip - elements);
}

/* Adds whole tiles, in spite of limits: each stage in turn is the last; half a tile; and again few rows, so that
 * stages are filled a second time. */
static void add_whole_tiles(size_plan *plan, uint64_t tile_m, uint64_t tile_n)
{
    enum { MOST = DEFAULT_ELEMENTS * 3 / 4 };
    const gguf_format *format = format_of(plan->problem);
    const uint64_t elements = stage_elements(plan->problem), ahead = stages_ahead(plan->problem),
                   blocks = elements / format->elements;
    for (uint64_t stage = 0; stage <= ahead + 1; stage++) {
        const uint64_t part = blocks > 1 ? blocks / 2 + stage % (blocks / 2) : 1,
                       k = elements * stage + format->elements * part,
                       row_bytes = k / format->elements * format->bytes;
        const bool fits = row_bytes * tile_n + k * tile_m <= MOST;
        add_always(plan, tile_m, fits ? tile_n : tile_n / 2 + 1, k);
    }
    for (uint64_t wider = 0; wider < 2; wider++)
        add_always(plan, 3, tile_n / 2 + wider, (2 * ahead + 2 + wider) * elements + format->elements);
    for (uint64_t n = 1; n <= 2;
         n++) /* all rows of the tile are clamped to the last one, which ends where W does */
        add_always(plan, 1, n, (ahead + 1) * elements + format->elements);
}

/* Sets a row of the design: rows of x and W around one tile and two; k of one block, and around a thread block's
 * step; one row or column, and none. */
static void set_design(size_plan *plan, const uint64_t values[MOST_AXES])
{
    set_sizes(plan, values[0], values[1], values[2] * format_of(plan->problem)->elements);
}

static void add_design(size_plan *plan)
{
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {
        {.name = "m", .unit = 1},
        {.name = "n", .unit = 1},
        {.name = "k",
         .unit = format_of(plan->problem)->elements,
         .largest = design_largest_k(plan->problem) / format_of(plan->problem)->elements,
         .widths = model_widths,
         .width_count = MODEL_WIDTHS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, set_design, MOST_WORK);
}

static void plan_mma(size_plan *plan)
{
    const gguf_format *format = format_of(plan->problem);
    const uint64_t tile_m = problem_parameter(plan->problem, "tile_m"),
                   tile_n = problem_parameter(plan->problem, "tile_n"), trip = stage_elements(plan->problem);
    const uint64_t ms[] = {1, tile_m - 1, tile_m, tile_m + 1, 2 * tile_m + 1, 3},
                   ns[] = {tile_n + 1, 1, tile_n - 1, tile_n, 7, 2 * tile_n + 3},
                   ks[] = {
                       format->elements,        3 * format->elements,        trip,
                       trip + format->elements, 2 * trip - format->elements, 5 * trip + 3 * format->elements};
    for (size_t i = 0; i < 6; i++) {
        add(plan, ms[i], ns[i], ks[i]);
        add(plan, ms[i], ns[(i + 2) % 6], ks[(i + 3) % 6]);
    }
    add_whole_tiles(plan, tile_m, tile_n);
    for (uint64_t m = 6; m < tile_m; m += 4) /* rows for which some warps copy x */
        add(plan, m, 1, format->elements);
    add(plan, 0, 5, 256);
    add(plan, 2, 0, 256);
    add(plan, 1, plan->limits.big / 256, 256);
    if (is_split(plan->problem))
        add_parts(plan, tile_m, trip);
}

/* Adds more rows of W, each of one block of k, than all warps of all thread blocks process at once: some thread
 * blocks have none. */
static void add_many_rows(size_plan *plan, uint64_t rows, uint64_t block)
{
    enum { M = 8, WARPS = 8 };
    char error[256];
    uint64_t blocks = 0;
    set_sizes(plan, M, 1 << 24, block);
    if (problem_evaluate(plan->problem, plan->problem->variant->grid[0], &blocks, error, sizeof error))
        add_always(plan, M, blocks * WARPS * rows + 1, block);
}

/* Adds, in spite of limits, all steps of a trip over x, tiles of W before the last, and a second chunk of k, for
 * each number of vectors. */
static void add_steps(size_plan *plan, uint64_t vectors, uint64_t rows, uint64_t block)
{
    const uint64_t chunk = problem_parameter(plan->problem, "chunk");
    for (uint64_t k = 3328; k <= 4096; k += 768) {
        add_always(plan, vectors, 1, k);
        add_always(plan, vectors, rows + 1, k);
    }
    add_always(plan, chunk > 8192 ? 1 : vectors, 2, chunk + 256);
    add_always(plan, 1, 3, chunk + 3 * block);
}

/* Adds as many rows of W as models have; offsets of y's rows need more than 16 bits. */
static void add_far(size_plan *plan)
{
    set_sizes(plan, 9, 8300, format_of(plan->problem)->elements);
    size_plan_add_far(plan, 1 << 21);
}

/* Tries rows of x around those of a thread block; rows of W around those of a warp, one thread block and two; rows
 * shorter than a tile, of one tile, and longer; rows that begin at any byte, the last of which ends where W does. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ns[] = {1, 3, 7, 8, 9, 16, 17, 33},
                          blocks[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 18, 31, 32, 33, 65};
    const gguf_format *format = format_of(plan->problem);
    const uint64_t vectors = problem_parameter(plan->problem, "vectors");
    add_design(plan);
    add_far(plan);
    if (is_half(plan->problem) || is_codes(plan->problem)) {
        plan_mma(plan);
        return;
    }
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        add(plan, 1 + i % (vectors + 1), ns[i % 8], format->elements * blocks[i]);
    for (uint64_t m = 1; m <= 2 * vectors + 1; m += vectors > 2 ? 3 : 1)
        add(plan, m, ns[m % 8], format->elements * 3);
    add(plan, 0, 5, 256);
    add(plan, 2, 0, 256);
    add_steps(plan, vectors, problem_parameter(plan->problem, "rows"), format->elements);
    add_many_rows(plan, problem_parameter(plan->problem, "rows"), format->elements);
    for (uint64_t n = 1;
         n <= 2 * vectors && vectors > 1 && problem_has_parameter(plan->problem, "norm", "rms"); n++)
        add_always(plan, vectors, n, format->elements);
    add(plan, vectors, 66, 512);
    add(plan, 1, 3, 2048 + 256);
    add(plan, 1, 2, 8192 + 256);
    add(plan, 1, plan->limits.big / 256, 256);
}

/* Adds sizes in which thread blocks have parts of several tiles, of x and of W. */
static void add_stretches(size_plan *plan)
{
    const uint64_t tile_m = problem_parameter(plan->problem, "tile_m"),
                   tile_n = problem_parameter(plan->problem, "tile_n"), trip = stage_elements(plan->problem);
    add_always(plan, 2 * tile_m + 1, 3, 5 * trip);
    add_always(plan, tile_m + 1, tile_n + 1, 2 * trip);
}

/* For one multiprocessor: rows after a warp's first ones, which begin at any byte, and warps with only some of
 * their rows; more rows than a thread block gathers, in one chunk and in several. */
static void plan_few(size_plan *plan)
{
    if (is_half(plan->problem) || is_codes(plan->problem)) {
        if (problem_parameter(plan->problem, "split_k") == 0)
            add_stretches(plan);
        return;
    }
    const uint64_t rows = problem_parameter(plan->problem, "rows"),
                   vectors = problem_parameter(plan->problem, "vectors"),
                   chunk = problem_parameter(plan->problem, "chunk");
    add(plan, vectors, 2 * 16 * rows + 2, 1024 + format_of(plan->problem)->elements);
    add(plan, 1, 2 * (256 + 8 * rows) + 3, 256);
    for (uint64_t absent = 1; absent < rows; absent++) {
        add(plan, 1, 8 * rows - absent, format_of(plan->problem)->elements);
        add(plan, vectors, 2 * 8 * rows - absent, format_of(plan->problem)->elements);
    }
    if (chunk <= 8192)
        add(plan, vectors, 2 * 8 * rows + 3, chunk + 256);
    if (chunk == 2048)
        add(plan, 1, 2 * 256 + 3, chunk + 256);
}

const family_row linear_row = {.name = "linear",
                               .args = "in w out m n k",
                               .patterns = patterns,
                               .plan = plan_sizes,
                               .plan_few = plan_few,
                               .make = make,
                               .expect = expect,
                               .expects_nonfinite = true};
