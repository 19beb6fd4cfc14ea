/* The float64 reference of rmsnorm_q4k_gemv, and the bound on its error. */
#include "rmsnorm_q4k.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "q4k.h"

enum { Q8_BLOCK = 32 };

static bool is_word(const problem *p, const char *param, const char *word)
{
    const char *value = manifest_param_value(p->variant, param);
    return value && strcmp(value, word) == 0;
}

/* ---- the bound -------------------------------------------------------------------------------------------------- */

/* With r the exact product, S the sum of |h| * (|d| * scale * code + |dmin| * minimum), u half an ulp of y's type, L and L_n
 * the longest chains of additions in the product and in the norm:
 *
 *     u |r| + (2^-22 + (L_n/2 + 3) 2^-24) |r| with the norm + (L + 6) 2^-24 S
 *     q8: + sum over blocks of (scale/2) (1 + 2^-9) sum |w|; random data: 5 sqrt(sum of scale^2 w^2 / 12)
 *
 * Random data have sqrt(L) and sqrt(L_n). A lane adds 32 products for each half of its 64 elements of a tile of 2048
 * (q8: exactly), and 4 of these per tile to its sum; then 5 lanes, and the chunks. In the norm a thread adds 4 squares of
 * each 1024, then 5 lanes and 8 warps.
 *
 * Below the least normal number an operation may be off by half a denormal, which no factor bounds: each of the 3 on an
 * element, with what they are multiplied by. Exact products are added up in units of at most 2^29 max|h|: there half a
 * denormal is 2^-121 max|h|. A scale of q8 is at least 2^-112 / 127. */
typedef struct row_sums {
    double product, size;          /* r and S */
    double rounding, rounding_rms; /* of q8: sums of scale/2 |w| and scale^2 w^2 */
    double weights;                /* sum of |d| scale code + |dmin| minimum */
} row_sums;

/* Of one vector, as the kernel takes it. */
typedef struct vector {
    double *h, *scale; /* the second of the element's block */
    double most;       /* largest |h| */
} vector;

static double bound_of(const problem *p, const row_sums *s, element_type y, uint64_t k, double most_h,
                       bool is_random)
{
    bool has_norm = is_word(p, "norm", "rms"), is_q8 = is_word(p, "activation", "q8");
    double chunk = strtod(manifest_param_value(p->variant, "chunk"), NULL), elements = (double)k;
    double chain = (is_q8 ? 0 : 32) + 4 * ceil(elements / fmin(2048, chunk)) + 5 + ceil(elements / chunk);
    double norm_chain = ceil(elements / 1024) * 4 + 5 + 8;
    if (is_random) {
        chain = sqrt(chain);
        norm_chain = sqrt(norm_chain);
    }
    double bound = number_unit(y) * fabs(s->product) + (chain + 6) * 0x1p-24 * s->size;
    if (has_norm)
        bound += (0x1p-22 + (norm_chain / 2 + 3) * 0x1p-24) * fabs(s->product);
    if (is_q8)
        bound += is_random ? 5 * sqrt(s->rounding_rms / 12) : s->rounding * (1 + 0x1p-9);
    else
        bound += 0x1p-121 * most_h * (s->weights + elements);
    return bound + 0x1p-149 * (4 * s->weights + 3 * elements) + number_smallest(y);
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

static void make_h(problem *p, uint64_t number, vector *v)
{
    argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    uint64_t k = problem_integer(p, "k");
    double sum = 0, factor = 1;
    for (uint64_t i = 0; i < k; i++) {
        v->h[i] = element_get(in->about->type, in->host, number * k + i);
        sum += v->h[i] * v->h[i];
    }
    if (gamma)
        factor = 1 / sqrt(sum / (double)k + (double)(float)eps->real);
    v->most = 0;
    for (uint64_t i = 0; i < k; i++) {
        if (gamma)
            v->h[i] *= factor * element_get(ELEMENT_F32, gamma->host, i);
        v->most = fmax(v->most, fabs(v->h[i]));
    }
}

static void make_scales(vector *v, uint64_t k)
{
    for (uint64_t first = 0; first < k; first += Q8_BLOCK) {
        double most = 0x1p-112;
        for (uint64_t i = first; i < first + Q8_BLOCK; i++)
            most = fmax(most, fabs(v->h[i]));
        for (uint64_t i = first; i < first + Q8_BLOCK; i++)
            v->scale[i] = most / 127;
    }
}

static row_sums multiply(const unsigned char *row, uint64_t k, const vector *v)
{
    row_sums s = {0};
    q4k_block b;
    for (uint64_t i = 0; i < k; i++) {
        unsigned place = (unsigned)(i % Q4K_BLOCK_ELEMENTS), j = place / Q4K_SUB_ELEMENTS;
        if (place == 0)
            q4k_read(&b, row + i / Q4K_BLOCK_ELEMENTS * Q4K_BLOCK_BYTES);
        double w = q4k_value(&b, place);
        double size = fabs(number_decode(ELEMENT_F16, b.d)) * b.scale[j] * b.code[place] +
                      fabs(number_decode(ELEMENT_F16, b.dmin)) * b.minimum[j];
        s.product += w * v->h[i];
        s.size += size * fabs(v->h[i]);
        s.rounding += v->scale[i] / 2 * fabs(w);
        s.rounding_rms += v->scale[i] * v->scale[i] * w * w;
        s.weights += size;
    }
    return s;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *w = problem_find(p, "w"), *out = problem_find(p, "out");
    uint64_t n = problem_integer(p, "n"), k = problem_integer(p, "k"), row_bytes = k / 256 * 144;
    pool memory = {0};
    vector v = {.h = pool_allocate(&memory, (size_t)k * sizeof *v.h),
                .scale = pool_allocate(&memory, (size_t)k * sizeof *v.scale)};
    expect_values(p, out);
    for (uint64_t i = 0; i < out->count; i++) {
        if (i % n == 0) {
            make_h(p, i / n, &v);
            make_scales(&v, k);
        }
        row_sums s = multiply((const unsigned char *)w->host + i % n * row_bytes, k, &v);
        out->expected_value[i] = s.product;
        out->bound[i] = bound_of(p, &s, out->about->type, k, v.most, pattern->flags & PATTERN_RANDOM);
    }
    pool_free(&memory);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* What x, gamma and W are. */
typedef struct kinds {
    input_kind x, gamma;
    int w;
    double eps;
} kinds;

enum { RANDOM, REAL, CANCELLING, HUGE_TINY, DENORMAL, LARGEST_W, DENORMAL_W, ZERO, ZERO_EPS, NONFINITE };

/* clang-format off */
static const kinds all_kinds[] = {
    [RANDOM]     = {INPUT_NORMAL,      INPUT_UNIFORM, Q4K_RANDOM,                     1e-5},
    [REAL]       = {INPUT_REAL,        INPUT_UNIFORM, Q4K_NUMBERS + INPUT_REAL,       1e-6},
    [CANCELLING] = {INPUT_ALTERNATING, INPUT_EQUAL,   Q4K_NUMBERS + INPUT_EQUAL,      1e-5},
    [HUGE_TINY]  = {INPUT_HUGE_TINY,   INPUT_NORMAL,  Q4K_NUMBERS + INPUT_HUGE_TINY,  1e-5},
    [DENORMAL]   = {INPUT_DENORMAL,    INPUT_NORMAL,  Q4K_RANDOM,                     1e-5},
    [LARGEST_W]  = {INPUT_NORMAL,      INPUT_UNIFORM, Q4K_LARGEST,                    1e-5},
    [DENORMAL_W] = {INPUT_NORMAL,      INPUT_UNIFORM, Q4K_DENORMAL,                   1e-5},
    [ZERO]       = {INPUT_ZERO,        INPUT_NORMAL,  Q4K_RANDOM,                     1e-5},
    [ZERO_EPS]   = {INPUT_UNIFORM,     INPUT_NORMAL,  Q4K_NUMBERS + INPUT_NORMAL,     0},
    [NONFINITE]  = {INPUT_NONFINITE,   INPUT_NORMAL,  Q4K_NONFINITE,                  1e-5},
};

static const input_pattern patterns[] = {
    {"random",     PATTERN_RANDOM | PATTERN_LARGE, RANDOM},
    {"real",       PATTERN_LARGE,                  REAL},
    {"cancelling", 0,                              CANCELLING},
    {"huge-tiny",  0,                              HUGE_TINY},
    {"denormal",   0,                              DENORMAL},
    {"largest-w",  0,                              LARGEST_W},
    {"denormal-w", 0,                              DENORMAL_W},
    {"zero",       0,                              ZERO},
    {"zero-eps",   PATTERN_RANDOM,                 ZERO_EPS},
    {"nonfinite",  PATTERN_NONFINITE,              NONFINITE},
    {NULL,         0,                              0},
};
/* clang-format on */

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    const kinds *of = &all_kinds[pattern->number];
    argument *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    inputs_fill(problem_find(p, "in"), of->x, random_fork(s, 1));
    q4k_fill(problem_find(p, "w"), of->w, random_fork(s, 2));
    if (gamma)
        inputs_fill(gamma, of->gamma, random_fork(s, 3));
    if (eps)
        eps->real = of->eps;
}

/* Rows around those of a warp, a thread block and two, and more than one has at once; tiles of 8 super-blocks, and chunks
 * of 8 and more; rows that begin in the middle of a sector; and the longest row that is promised. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t rows[] = {0, 1, 2, 3, 8, 9, 15, 16, 17, 33, 66},
                          blocks[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 27, 48};
    argument *n = problem_find(plan->problem, "n"), *k = problem_find(plan->problem, "k");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
            n->integer = rows[r];
            k->integer = 256 * blocks[b];
            if (rows[r] == 3 || b == 0 || b == r)
                size_plan_add(plan);
        }
    }
    n->integer = 3;
    k->integer = 65536;
    size_plan_add(plan);
    n->integer = plan->limits.big / 256; /* several groups for each warp */
    k->integer = 768;
    size_plan_add(plan);
    n->integer = plan->limits.big / 96; /* from 2952960 on more than 256 rows for each of 120 thread blocks */
    k->integer = 256;
    size_plan_add(plan);
}

const family_row rmsnorm_q4k_gemv_row = {.name = "rmsnorm_q4k_gemv",
                                         .args = "in w out n k",
                                         .patterns = patterns,
                                         .plan = plan_sizes,
                                         .make = make,
                                         .expect = expect};
