/* The float64 reference of rmsnorm_q4k_gemv, y = W * h with W in Q4_K and h = x * rsqrt(mean(x^2) + eps) * gamma or x
 * itself, and the bound on its error. */
#include "families.h"

#include "../design.h"
#include <math.h>

#include "inputs.h"
#include "q4k.h"

enum { Q8_BLOCK = 32 };

/* ---- the bound -------------------------------------------------------------------------------------------------- */

/* Let r be the exact product, S the sum of |h| * (|d| * scale * code + |dmin| * minimum), u half an ulp of y's type, L
 * and L_n the longest chains of additions in the product and in the norm:
 *
 *     u |r| + (2^-22 + (L_n/2 + 3) 2^-24) |r| with the norm + (L + 6) 2^-24 S
 *     q8: + sum over blocks of (scale/2) (1 + 2^-9) sum |w|
 *
 * For q8 more is known: codes are rint(q) for a q within 2^-21 of h 127 / max|h|, relatively. So h here is code times
 * scale, and rounding adds nothing, except near a tie, where the code may be either neighbour.
 *
 * Random data have sqrt(L) and sqrt(L_n). A lane adds 32 products for each half of its 64 elements of a tile of 2048
 * (q8: exactly), and 4 of these per tile to its sum; then 5 lanes, and the chunks. In the norm a thread adds 4
 * squares of each 1024, then 5 lanes and 8 warps.
 *
 * Below the least normal number, an operation may have an error of half a denormal, which no relative bound covers:
 * each of the 3 operations on an element, times its later factors; gamma for x times the norm's factor. If 1 / rms
 * exceeds 2^90, the numbers are up to 2^36 times too small until the end. Exact products of 32 elements are added up
 * in units in which half a denormal is at most 2^-121 max|h|. A scale of q8 is at least 2^-118 / 127, and none of its
 * sums overflows up to |h| of 2^111.
 *
 * A NaN or an infinity in h makes its vector's y NaN; in d or dmin, its row's y. */
typedef struct row_sums {
    double product, size; /* r and S of the bound */
    double loose;         /* for q8: sum of scale |w| where the code is one of two */
    double weights;       /* sum of |d| scale code + |dmin| minimum */
    double weights_gamma; /* sum of these terms times |gamma| */
} row_sums;

/* A vector, as the kernel reads it. */
typedef struct vector {
    double *h, *loose, *gamma; /* loose: the uncertainty of h next to a tie */
    double most;               /* largest |h| */
    double factor;             /* 1 / rms */
    bool is_finite;
} vector;

static double bound_of(const problem *p, const row_sums *s, element_type y, uint64_t k, const vector *v,
                       bool is_random)
{
    bool has_norm = problem_has_parameter(p, "norm", "rms"),
         is_q8 = problem_has_parameter(p, "activation", "q8");
    double chunk = (double)problem_parameter(p, "chunk"), elements = (double)k;
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
        bound += (1 + number_unit(y)) * s->loose;
    else
        bound += 0x1p-121 * v->most * (s->weights + elements);
    double denormal = has_norm && v->factor > 0x1p88 ? 0x1p-113 : 0x1p-149;
    return bound + denormal * (4 * s->weights + s->weights_gamma + 3 * elements) + number_smallest(y);
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

static void make_h(problem *p, uint64_t number, vector *v)
{
    argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    uint64_t k = problem_integer(p, "k");
    double sum = 0;
    for (uint64_t i = 0; i < k; i++) {
        v->h[i] = element_get(in->about->type, in->host, number * k + i);
        sum += v->h[i] * v->h[i];
    }
    v->factor = gamma ? 1 / sqrt(sum / (double)k + (double)(float)eps->real) : 1;
    v->most = 0;
    v->is_finite = true;
    for (uint64_t i = 0; i < k; i++) {
        v->gamma[i] = gamma ? element_get(ELEMENT_F32, gamma->host, i) : 1;
        v->h[i] *= v->factor * v->gamma[i];
        v->most = fmax(v->most, fabs(v->h[i]));
        v->is_finite = v->is_finite && isfinite(v->h[i]);
    }
}

/* Replaces h by codes times scales. With the norm, the scale of a block of very small h is known only to be small:
 * the
 * scale is clamped from below before the norm's factor, at most 2^24 for f16 and 2^12 for other types. */
static void round_to_codes(vector *v, uint64_t k, bool has_norm, element_type x)
{
    const double least = !has_norm          ? 0x1p-118
                         : x == ELEMENT_F16 ? 0x1p-94
                                            : 0x1p-106,
                 near = has_norm ? 0x1p-20 : 0x1p-21;
    for (uint64_t first = 0; v->is_finite && first < k; first += Q8_BLOCK) {
        double most = 0;
        for (uint64_t i = first; i < first + Q8_BLOCK; i++)
            most = fmax(most, fabs(v->h[i]));
        const double scale = fmax(most, least) / 127;
        for (uint64_t i = first; i < first + Q8_BLOCK; i++) {
            const double quotient = fabs(v->h[i]) / scale, code = rint(quotient);
            const double off = near * quotient + 0x1p-149 * fabs(v->gamma[i]) / scale;
            const bool is_known = !has_norm || most >= least;
            v->loose[i] = !is_known || fabs(quotient - floor(quotient) - 0.5) <= off ? scale : 0;
            if (is_known)
                v->h[i] = copysign(code * scale, v->h[i]);
        }
    }
}

static void add_sub_block(row_sums *s, const q4k_block *b, const vector *v, uint64_t first)
{
    unsigned place = (unsigned)(first % Q4K_BLOCK_ELEMENTS), j = place / Q4K_SUB_ELEMENTS;
    double d = number_decode(ELEMENT_F16, b->d) * b->scale[j], dot = 0, sum = 0;
    double dmin = number_decode(ELEMENT_F16, b->dmin) * b->minimum[j];
    for (unsigned i = 0; i < Q4K_SUB_ELEMENTS; i++) {
        double code = b->code[place + i], w = d * code - dmin, size = fabs(d) * code + fabs(dmin);
        double h = v->h[first + i];
        dot += code * h;
        sum += h;
        s->size += size * fabs(h);
        s->loose += v->loose[first + i] * fabs(w);
        s->weights += size;
        s->weights_gamma += size * fabs(v->gamma[first + i]);
    }
    s->product += d * dot - dmin * sum;
}

static row_sums multiply(const unsigned char *row, uint64_t k, const vector *v)
{
    row_sums s = {0};
    q4k_block b;
    for (uint64_t i = 0; i < k; i += Q4K_SUB_ELEMENTS) {
        if (i % Q4K_BLOCK_ELEMENTS == 0)
            q4k_read(&b, row + i / Q4K_BLOCK_ELEMENTS * Q4K_BLOCK_BYTES);
        if (!isfinite(number_decode(ELEMENT_F16, b.d)) || !isfinite(number_decode(ELEMENT_F16, b.dmin)))
            s.product = NAN;
        add_sub_block(&s, &b, v, i);
    }
    if (!v->is_finite)
        s.product = NAN;
    return s;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *w = problem_find(p, "w"), *out = problem_find(p, "out");
    uint64_t n = problem_integer(p, "n"), k = problem_integer(p, "k"), row_bytes = k / 256 * 144;
    const bool is_q8 = problem_has_parameter(p, "activation", "q8");
    pool memory = {0};
    vector v = {.h = pool_allocate(&memory, (size_t)k * sizeof *v.h),
                .loose = pool_allocate(&memory, (size_t)k * sizeof *v.loose),
                .gamma = pool_allocate(&memory, (size_t)k * sizeof *v.gamma)};
    expect_values(p, out);
    for (uint64_t i = 0; i < out->count; i++) {
        if (i % n == 0) {
            make_h(p, i / n, &v);
            if (is_q8)
                round_to_codes(&v, k, problem_has_parameter(p, "norm", "rms"),
                               problem_find(p, "in")->about->type);
        }
        row_sums s = multiply((const unsigned char *)w->host + i % n * row_bytes, k, &v);
        out->expected_value[i] = s.product;
        out->bound[i] = bound_of(p, &s, out->about->type, k, &v, pattern->flags & PATTERN_RANDOM);
    }
    pool_free(&memory);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* How far a power of two moves elements of a vector towards the type's largest or smallest exponent. With several
 * vectors, all others are moved in other ways or unchanged. */
typedef enum reach {
    IN_REACH,
    REACH_HUGE,   /* one element near the largest number: its square overflows */
    REACH_LARGE,  /* all elements: the sum of their squares overflows, with an eps of about that size */
    REACH_TINY,   /* one element far above the others: their squares are denormal, or 0 */
    REACH_LOW,    /* all elements, down to denormals */
    REACH_SQUARE, /* squares about as small as eps */
    REACH_LEAST   /* denormals */
} reach;

/* Which operand has NaNs or infinities. */
typedef enum spoiled { NONE, SPOILED_H, SPOILED_W } spoiled;

typedef struct kinds {
    input_kind x, gamma;
    int w;
    double eps;
    reach reach;
    spoiled spoiled;
} kinds;

/* each row of W is of another kind */
enum { MIXED_W = -1 };

enum {
    RANDOM,
    REAL,
    HUGE_X,
    HUGE_EPS,
    TINY_X,
    LOW_X,
    BAD,
    BAD_W,
    CANCELLING,
    HUGE_TINY,
    SPREAD,
    SPREAD_GAMMA,
    MIXED,
    SMALL_EPS,
    LOST_X
};

/* clang-format off */
static const kinds all_kinds[] = {
    [RANDOM]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   0.75,      IN_REACH,     NONE},
    [REAL]         = {INPUT_REAL,        INPUT_UNIFORM, Q4K_NUMBERS + INPUT_REAL,      1e-6,      IN_REACH,     NONE},
    [HUGE_X]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   1e-5,      REACH_HUGE,   NONE},
    [HUGE_EPS]     = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   0x1p126,   REACH_LARGE,  NONE},
    [TINY_X]       = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   0,         REACH_TINY,   NONE},
    [LOW_X]        = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   0,         REACH_LOW,    NONE},
    [BAD]          = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   1e-5,      IN_REACH,     SPOILED_H},
    [BAD_W]        = {INPUT_NORMAL,      INPUT_UNIFORM, GGUF_RANDOM,                   1e-5,      IN_REACH,     SPOILED_W},
    [CANCELLING]   = {INPUT_ALTERNATING, INPUT_EQUAL,   Q4K_NUMBERS + INPUT_EQUAL,     1e-5,      IN_REACH,     NONE},
    [HUGE_TINY]    = {INPUT_HUGE_TINY,   INPUT_NORMAL,  Q4K_NUMBERS + INPUT_HUGE_TINY, 0,         IN_REACH,     NONE},
    [SPREAD]       = {INPUT_SPREAD,      INPUT_NORMAL,  GGUF_RANDOM,                   1e-5,      IN_REACH,     NONE},
    [SPREAD_GAMMA] = {INPUT_NORMAL,      INPUT_SPREAD,  GGUF_RANDOM,                   1e-5,      IN_REACH,     NONE},
    [MIXED]        = {INPUT_UNIFORM,     INPUT_NORMAL,  MIXED_W,                       0.1,       IN_REACH,     NONE},
    [SMALL_EPS]    = {INPUT_NORMAL,      INPUT_NORMAL,  GGUF_RANDOM,                   0x1p-129,  REACH_SQUARE, NONE},
    [LOST_X]       = {INPUT_NORMAL,      INPUT_NORMAL,  GGUF_RANDOM,                   0x1p-102,  REACH_LEAST,  NONE},
};

static const input_pattern patterns[] = {
    {"random",       PATTERN_RANDOM | PATTERN_LARGE, RANDOM},
    {"huge",         0,                              HUGE_X},
    {"real",         PATTERN_LARGE,                  REAL},
    {"tiny",         0,                              TINY_X},
    {"nonfinite-w",  PATTERN_NONFINITE,              BAD_W},
    {"cancelling",   0,                              CANCELLING},
    {"small-eps",    0,                              SMALL_EPS},
    {"huge-tiny",    0,                              HUGE_TINY},
    {"huge-eps",     0,                              HUGE_EPS},
    {"low",          0,                              LOW_X},
    {"mixed",        0,                              MIXED},
    {"nonfinite",    PATTERN_NONFINITE,              BAD},
    {"spread",       0,                              SPREAD},
    {"lost-x",       0,                              LOST_X}, /* with an eps that is itself out of range */
    {"spread-gamma", 0,                              SPREAD_GAMMA},
    {NULL,           0,                              0},
};
/* clang-format on */

/* The vector that is moved as the input's name says, and whether the others stay unchanged. */
typedef struct mover {
    uint64_t vector;
    bool is_lone;
} mover;

/* Chooses the vector by the number of rows of W, so that sizes show each. */
static mover choose_mover(problem *p, random_stream s)
{
    const uint64_t vectors = problem_find(p, "in")->count / problem_integer(p, "k");
    return (mover){problem_integer(p, "n") % vectors, random_below(s, 1, 2) == 0};
}

/* Returns the exponent for equal elements. Without the norm h itself is that large, and its products must stay
 * within f32. */
static int reach_exponent(reach where, element_type type, bool has_norm, random_stream s, uint64_t number,
                          mover of)
{
    const int most = (int)log2(number_largest(type)), least = (int)log2(number_smallest(type));
    const int tiny[] = {least / 2 + 4, least / 2 - 2, least / 4 * 3, least + 10, least};
    const int huge = !has_norm ? most / 2 : random_below(s, 2 * number, 2) ? most : most / 2 + 4;
    const int small = tiny[random_below(s, 2 * number + 1, sizeof tiny / sizeof tiny[0])];
    const int any[] = {0, huge, small};
    if (number != of.vector)
        return of.is_lone ? 0 : any[random_below(random_fork(s, 1), number, 3)];
    switch (where) {
    case REACH_HUGE:
        return huge;
    case REACH_LARGE:
        return most / 2;
    case REACH_TINY:
    case REACH_LOW:
        return small;
    case REACH_SQUARE:
        return least / 2 + 10;
    case REACH_LEAST:
        return least + 9;
    default:
        return 0;
    }
}

static double clamp(element_type type, double x)
{
    return fmax(fmin(x, number_largest(type)), -number_largest(type));
}

static void move_vectors(problem *p, reach where, mover of, random_stream s)
{
    argument *in = problem_find(p, "in");
    const element_type type = in->about->type;
    const uint64_t k = problem_integer(p, "k");
    int exponent = 0;
    for (uint64_t i = 0; i < in->count; i++) {
        if (i % k == 0)
            exponent = reach_exponent(where, type, problem_has_parameter(p, "norm", "rms"), s, i / k, of);
        element_set(type, in->host, i, clamp(type, ldexp(element_get(type, in->host, i), exponent)));
    }
}

/* Returns the exponent of the largest element: one for which twice the inverse is below the normal numbers, or one
 * whose square just overflows. */
static int largest_exponent(reach where, bool is_f16, random_stream s)
{
    if (is_f16)
        return where == REACH_HUGE ? 13 : 0;
    if (where == REACH_HUGE)
        return (random_bits(s, 0) & 1 ? 126 : 64) + (int)random_below(s, 1, 2);
    return -56;
}

/* Makes one element of a vector so large that its square (f16: its scaled value) overflows if the vector is scaled as suits
 * the other elements. So a kernel must find the largest element. */
static void raise_one(problem *p, reach where, uint64_t number, random_stream s)
{
    argument *in = problem_find(p, "in");
    const bool is_f16 = in->about->type == ELEMENT_F16;
    const int of_one = largest_exponent(where, is_f16, random_fork(s, 1));
    const int of_others = is_f16 ? of_one - 13 : where == REACH_HUGE ? -20 : -124;
    const uint64_t k = problem_integer(p, "k");
    inputs_raise_one(in, number * k, k, of_one, of_others, s);
}

static void reach_out(problem *p, reach where, random_stream s)
{
    argument *eps = problem_find(p, "eps");
    const mover of = choose_mover(p, random_fork(s, 4));
    move_vectors(p, where, of, s);
    if (eps && where == REACH_LARGE && problem_has_parameter(p, "x", "f16"))
        eps->real = 0x1p14;
    if ((where == REACH_HUGE || where == REACH_TINY) && problem_has_parameter(p, "norm", "rms"))
        raise_one(p, where, of.vector, random_fork(s, 3));
}

/* Moves one vector out of range, from where the norm brings it back; the others stay in range. */
static void reach_out_alone(problem *p, argument *eps, random_stream s)
{
    const uint64_t vectors = problem_find(p, "in")->count / problem_integer(p, "k");
    const bool is_huge = problem_integer(p, "n") / vectors % 2;
    mover of = choose_mover(p, random_fork(s, 1));
    of.is_lone = true;
    if (vectors == 1)
        return;
    move_vectors(p, is_huge ? REACH_HUGE : REACH_TINY, of, s);
    if (!is_huge)
        eps->real = 0;
}

/* Makes elements of every second vector, or of the only one, NaNs and infinities. */
static void spoil_elements(argument *a, uint64_t k, random_stream s)
{
    for (uint64_t v = 0; v < a->count / k; v++) {
        uint64_t place = v * k + random_below(random_fork(s, 1), v, k);
        if (a->count == k || random_below(random_fork(s, 2), v, 2))
            element_set(a->about->type, a->host, place, inputs_nonfinite(s, v));
    }
}

/* Makes weights in every fourth row NaNs and infinities. */
static void spoil_weights(argument *w, uint64_t k, random_stream s)
{
    const uint64_t row_blocks = k / Q4K_BLOCK_ELEMENTS;
    for (uint64_t row = 0; row < w->bytes / (row_blocks * Q4K_BLOCK_BYTES); row++) {
        uint64_t block = row * row_blocks + random_below(random_fork(s, 1), row, row_blocks);
        if (random_below(random_fork(s, 2), row, 4) == 0)
            element_set(ELEMENT_F16, (unsigned char *)w->host + block * Q4K_BLOCK_BYTES,
                        random_below(random_fork(s, 3), row, 2), inputs_nonfinite(s, row));
    }
}

/* Spoils x, or gamma; or makes x zeros, with or without eps. */
static void spoil_h(problem *p, random_stream s)
{
    argument *in = problem_find(p, "in"), *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    const uint64_t k = problem_integer(p, "k"), kind = random_below(s, 0, 8);
    if (kind < 6)
        spoil_elements(kind >= 4 && gamma ? gamma : in, k, random_fork(s, 1));
    else
        inputs_fill(in, INPUT_ZERO, random_fork(s, 1));
    if (eps && kind == 7)
        eps->real = 0;
}

/* Makes rows with factors as large and as small as possible, among others; a small gamma keeps results within f16. */
static void mix_rows(problem *p, random_stream s)
{
    static const int row_kinds[] = {GGUF_LARGEST, GGUF_DENORMAL, GGUF_TIES, GGUF_ANY_BITS};
    const size_t row_bytes = problem_integer(p, "k") / Q4K_BLOCK_ELEMENTS * Q4K_BLOCK_BYTES;
    argument *w = problem_find(p, "w"), *gamma = problem_find(p, "gamma"), row = *w;
    row.bytes = row_bytes;
    for (size_t at = 0; at < w->bytes; at += row_bytes) {
        row.host = (unsigned char *)w->host + at;
        q4k_fill(&row, row_kinds[random_below(s, at, 4)], random_fork(random_fork(s, 1), at));
    }
    for (uint64_t i = 0; gamma && i < gamma->count; i++)
        element_set(ELEMENT_F32, gamma->host, i, 0x1p-16 * element_get(ELEMENT_F32, gamma->host, i));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    const kinds *of = &all_kinds[pattern->number];
    argument *gamma = problem_find(p, "gamma"), *eps = problem_find(p, "eps");
    argument *in = problem_find(p, "in"), *w = problem_find(p, "w");
    inputs_fill(in, of->x, random_fork(s, 1));
    if (gamma)
        inputs_fill(gamma, of->gamma, random_fork(s, 3));
    if (eps)
        eps->real = of->eps;
    if (of->w == MIXED_W)
        mix_rows(p, random_fork(s, 2));
    else
        q4k_fill(w, of->w, random_fork(s, 2));
    if (of->reach != IN_REACH)
        reach_out(p, of->reach, random_fork(s, 4));
    else if (gamma && eps && !(pattern->flags & PATTERN_RANDOM)) /* plain inputs are for measurements */
        reach_out_alone(p, eps, random_fork(s, 4));
    if (of->spoiled == SPOILED_H)
        spoil_h(p, random_fork(s, 5));
    else if (of->spoiled == SPOILED_W)
        spoil_weights(w, problem_integer(p, "k"), random_fork(s, 5));
}

static void add(size_plan *plan, uint64_t n, uint64_t k)
{
    problem_find(plan->problem, "n")->integer = n;
    problem_find(plan->problem, "k")->integer = k;
    size_plan_add(plan);
}

/* Adds one row more than all warps hold at once, so that some thread blocks have none in the second round. Ignores
 * max_elements. */
static void add_many_rows(size_plan *plan)
{
    enum { WARPS = 8, MOST = 4 * DEFAULT_ELEMENTS, BLOCK = 256 };
    const uint64_t kept = plan->limits.max_elements;
    char error[256];
    uint64_t blocks = 0;
    problem_find(plan->problem, "n")->integer = 1 << 24;
    problem_find(plan->problem, "k")->integer = BLOCK;
    if (!problem_evaluate(plan->problem, plan->problem->variant->grid[0], &blocks, error, sizeof error))
        return;
    plan->limits.max_elements = kept < MOST ? MOST : kept;
    plan->is_brief = true;
    add(plan, blocks * WARPS * problem_parameter(plan->problem, "rows") + 1, BLOCK);
    plan->is_brief = false;
    plan->limits.max_elements = kept;
}

/* Tries rows around those of a warp, one thread block and two, and more than a thread block holds at once; tiles
 * of 8 super-blocks, and chunks of 8 and more; rows that begin in the middle of a sector; and the longest
 * supported row. With one row, the norm takes its four steps of 1024, and the last copy of a tile ends where W
 * does. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t rows[] = {0, 3, 8, 9, 16, 17, 33, 66},
                          blocks[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 27, 48};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
            if (rows[r] == 3 || b == 0 || b == r)
                add(plan, rows[r], 256 * blocks[b]);
        }
    }
    enum { MOST_WORK = 1 << 20 };
    static const size_axis axes[] = {
        {.name = "n", .unit = 1},
        {.name = "k", .unit = 256, .widths = model_widths, .width_count = MODEL_WIDTHS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    plan->is_brief = true;
    plan->input = "nonfinite"; /* one element of a row, at many places */
    for (uint64_t n = 1; n <= 48; n++)
        add(plan, n, 256);
    plan->input = NULL;
    plan->is_brief = false;
    problem_find(plan->problem, "n")->integer = 32; /* offsets of W's rows need more than 20 bits */
    problem_find(plan->problem, "k")->integer = 65536;
    size_plan_add_far(plan, 1 << 22);
    const uint64_t vectors = problem_parameter(plan->problem, "batch");
    for (uint64_t n = 1; vectors > 1 && n <= 2 * vectors; n++) {
        problem_find(plan->problem, "n")->integer = n;
        problem_find(plan->problem, "k")->integer = 256;
        size_plan_add_always(plan);
    }
    add(plan, 1, 256);
    add(plan, 1, 256 * 5);
    add(plan, 2, 256 * 5);
    add(plan, 1, 256 * 6);
    add(plan, 3, 256 * 4);
    problem_find(plan->problem, "n")->integer = 1;
    problem_find(plan->problem, "k")->integer = 256 * 8;
    size_plan_add_always(plan);
    problem_find(plan->problem, "k")->integer = 256 * 9;
    size_plan_add_always(plan);
    problem_find(plan->problem, "k")->integer = 256 * 15;
    size_plan_add_always(plan);
    problem_find(plan->problem, "k")->integer = 65536 + 256; /* longer than any chunk */
    size_plan_add_always(plan);
    add(plan, 3, 65536);
    add_many_rows(plan);
    add(plan, plan->limits.big / 256, 768); /* several groups per warp */
    /* from 2952960 on, more than 256 rows for each of 120 thread blocks */
    add(plan, plan->limits.big / 96, 256);
}

/* For one multiprocessor: as many rows as the warps of its thread blocks hold at once, and twice that, so that the
 * last row of W is the last of a warp; a few more or fewer, so that a warp has only some of its rows; and more
 * than the 256 rows whose sums a block gathers, in one chunk of k and, where chunks are short, in several. */
static void plan_few(size_plan *plan)
{
    const uint64_t rows = problem_parameter(plan->problem, "rows");
    const uint64_t chunk = problem_parameter(plan->problem, "chunk");
    const uint64_t batch = problem_parameter(plan->problem, "batch");
    const uint64_t blocks = rows == 4 ? 1 : 2;
    add(plan, blocks * 16 * rows, 256 * 4);
    add(plan, blocks * (16 * rows + 2), 256 * 4);
    /* full tiles, of 16 and of 8 super-blocks, and a last one */
    add(plan, blocks * (8 * rows + 4), 256 * (rows == 1 ? 19 : 11));
    add(plan, blocks * (256 + 8 * rows + 2), 256);
    for (uint64_t absent = 1; absent < rows; absent++)
        add(plan, blocks * 8 * rows - absent, 256);
    if (chunk <= 2048 && batch <= 2)
        add(plan, blocks * (256 + 1) + 1, chunk + 256);
}

const family_row rmsnorm_q4k_gemv_row = {.name = "rmsnorm_q4k_gemv",
                                         .args = "in w out n k",
                                         .patterns = patterns,
                                         .plan = plan_sizes,
                                         .plan_few = plan_few,
                                         .make = make,
                                         .expect = expect,
                                         .expects_nonfinite = true};
