/* y[m,n] = x[m,k] * W[n,k]^T, W in NVFP4 or MXFP4, x in 16 bits, NVFP4 or MXFP8: the reference, and the bound on its error. With r
 * the exact product, S the sum of |x * w|, u half an ulp of y's type and L = 5/4 k, 9 more if k is split, it is
 *
 *     u |y| + y's smallest number + (L + 8) 2^-24 S          random data: sqrt(L)
 *     block_scaled: + 2^-16 times the sum over each 64 of k of their largest product, where a code of 0.5 counts as 1 and a scale
 *           below 2^-6 as 2^-6: a step truncates 64 products and a sum, each by less than 2^-25 of the largest, whose exponent
 *           may be larger by 2 than its value's
 *     x in MXFP8, block_scaled: + 2^-19 times the sum over each 32, where an e4m3 code below 2^-6 counts as 2^-6 and
 *           scales are exact: 32 products and a sum, each truncated by less than 2^-25
 *     x in MXFP8, decoded: + 2^-17 times the sum over each 64, where an operand below 2^-14 counts as 2^-14, since it is
 *           a subnormal number of f16: eight times 8 products and a sum, each truncated by less than 2^-24
 *     with bias or residual: + 2^-23 (|r| + |bias| + |residual|)
 *     with alpha: r and S times it, and + 2^-24 |r|
 *
 * Operands are exact, except for MX formats decoded to f16, which are rounded as the contract says. */
#include "families.h"

#include "../design.h"
#include <math.h>

#include "codes.h"
#include "inputs.h"
#include "nvfp4_gemv.h"

enum { STAGE = 128, E8M0_NAN = 0xff };

static bool is_mx(const problem *p)
{
    return problem_has_parameter(p, "format", "mxfp4");
}

static uint64_t block_of(const problem *p)
{
    return is_mx(p) ? 32 : 16;
}

/* Whether x is MXFP8: a byte per code. */
static bool has_bytes(const problem *p)
{
    return problem_has_parameter(p, "x", "mxfp8");
}

static bool has_codes(const problem *p)
{
    return has_bytes(p) || problem_has_parameter(p, "x", "nvfp4");
}

static bool is_block_scaled(const problem *p)
{
    return problem_has_parameter(p, "strategy", "block_scaled");
}

static bool is_split(const problem *p)
{
    return problem_parameter(p, "split_k") != 1;
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

/* A row as numbers; `size` has their magnitudes, or the least magnitude that a step's bound counts. */
typedef struct row {
    double *x, *size;
    bool is_finite;
} row;

static row allocate_row(pool *memory, uint64_t k)
{
    return (row){.x = pool_allocate(memory, (size_t)k * sizeof(double)),
                 .size = pool_allocate(memory, (size_t)k * sizeof(double))};
}

static double round_half(double x)
{
    return number_decode(ELEMENT_F16, number_encode(ELEMENT_F16, x));
}

/* Whether operands in MX formats are decoded to f16. */
static bool rounds_to_half(const problem *p)
{
    return is_mx(p) && !is_block_scaled(p) && (has_bytes(p) || problem_has_parameter(p, "x", "f16"));
}

/* Reads row `number` of `rows`: a byte per code if e4m3, otherwise half a byte, e2m1. */
static void read_codes(const problem *p, bool is_e4m3, const argument *codes, const argument *scales,
                       uint64_t rows, uint64_t number, uint64_t k, row *to)
{
    const uint64_t block = block_of(p);
    const bool is_tiled = problem_has_parameter(p, "scale_layout", "tiles_128x4"), rounds = rounds_to_half(p),
               is_bf16 = problem_has_parameter(p, "x", "bf16");
    const unsigned char *of_codes = (const unsigned char *)codes->host + number * (is_e4m3 ? k : k / 2),
                        *of_scales = scales->host;
    to->is_finite = true;
    for (uint64_t i = 0; i < k; i++) {
        const unsigned scale = of_scales[nvfp4_scale_index(is_tiled, rows, k / block, number, i / block)];
        double by =
            is_mx(p) ? scale == E8M0_NAN ? NAN : ldexp(1, (int)scale - 127) : nvfp4_scale_value(scale);
        const double code = is_e4m3 ? codes_decode(true, of_codes[i])
                                    : nvfp4_code_value(of_codes[i / 2] >> (i % 2 ? 4 : 0) & 15),
                     least = is_e4m3 ? 0x1p-6 : 1;
        by = rounds ? round_half(by) : by;
        to->x[i] = rounds ? round_half(code * by) : code * by;
        if (rounds)
            to->size[i] = to->x[i] == 0 ? 0 : fmax(fabs(to->x[i]), 0x1p-14);
        else
            to->size[i] = code == 0 ? 0 : fmax(fabs(code), least) * fmax(fabs(by), is_mx(p) ? 0 : 0x1p-6);
        to->is_finite =
            to->is_finite && isfinite(by) && isfinite(to->x[i]) && !(is_bf16 && fabs(to->x[i]) >= 0x1p128);
    }
}

static void read_x(problem *p, uint64_t number, uint64_t k, row *to)
{
    if (has_codes(p)) {
        read_codes(p, has_bytes(p), problem_find(p, "in_codes"), problem_find(p, "in_scales"),
                   problem_integer(p, "m"), number, k, to);
        return;
    }
    const argument *in = problem_find(p, "in");
    to->is_finite = true;
    for (uint64_t i = 0; i < k; i++) {
        to->x[i] = element_get(in->about->type, in->host, number * k + i);
        to->is_finite = to->is_finite && isfinite(to->x[i]);
    }
}

/* ---- products --------------------------------------------------------------------------------------------------- */

/* Each step of `elements` along k adds a share of its largest product to the bound. */
typedef struct cutting {
    uint64_t elements;
    double share;
} cutting;

static cutting cutting_of(const problem *p)
{
    if (has_bytes(p))
        return is_block_scaled(p) ? (cutting){32, 0x1p-19} : (cutting){64, 0x1p-17};
    return (cutting){64, is_block_scaled(p) ? 0x1p-16 : 0};
}

/* A product, and its bound. */
typedef struct product {
    double value, off;
} product;

static product multiply(const problem *p, const row *w, const row *x, uint64_t k, const argument *alpha,
                        bool is_random)
{
    const cutting step = cutting_of(p);
    double sum = 0, size = 0, largest = 0, of_steps = 0;
    for (uint64_t i = 0; i < k; i++) {
        sum += w->x[i] * x->x[i];
        size += fabs(w->x[i] * x->x[i]);
        if (step.share == 0)
            continue;
        largest = fmax(i % step.elements == 0 ? 0 : largest, w->size[i] * x->size[i]);
        if (i % step.elements == step.elements - 1 || i == k - 1)
            of_steps += largest;
    }
    const double by = alpha ? (double)(float)alpha->real : 1,
                 chain = 1.25 * (double)k + (is_split(p) ? 9 : 0);
    product of = {by * sum, fabs(by) * (((is_random ? sqrt(chain) : chain) + 8) * 0x1p-24 * size +
                                        (is_random ? 0x1p-3 : 1) * step.share * of_steps)};
    of.off += 0x1p-149 * (8 + (double)k) * fabs(by);
    if (alpha)
        of.off += 0x1p-24 * fabs(of.value) + 0x1p-149;
    if (!w->is_finite || !x->is_finite)
        of.value = NAN;
    return of;
}

/* act(gate) * up; the slope of an activation is at most 1.13. */
static product multiply_pair(const problem *p, product gate, product up)
{
    const double x = gate.value, root = 0.79788456080286535588; /* of 2 / pi */
    const double act = problem_has_parameter(p, "epilogue", "swiglu")
                           ? x / (1 + exp(-x))
                           : x / 2 * (1 + tanh(root * (x + 0.044715 * x * x * x)));
    const double off = 1.13 * (gate.off + 0x1p-22 * fabs(x)) + 0x1p-20 * fabs(act);
    return (product){act * up.value, fabs(act) * up.off + off * (fabs(up.value) + up.off)};
}

static double added(const argument *a, uint64_t i)
{
    return a ? element_get(a->about->type, a->host, i) : 0;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out");
    const argument *bias = problem_find(p, "bias"), *residual = problem_find(p, "residual"),
                   *gate = problem_find(p, "gate"), *alpha = problem_find(p, "alpha");
    const element_type type = out->about->type;
    const uint64_t m = problem_integer(p, "m"), n = problem_integer(p, "n"), k = problem_integer(p, "k");
    const bool is_random = pattern->flags & PATTERN_RANDOM;
    pool memory = {0};
    row w = allocate_row(&memory, k), of_gate = allocate_row(&memory, k),
        *x = pool_allocate(&memory, (size_t)m * sizeof *x);
    for (uint64_t i = 0; i < m; i++) {
        x[i] = allocate_row(&memory, k);
        read_x(p, i, k, &x[i]);
    }
    expect_values(p, out);
    for (uint64_t r = 0; r < n; r++) {
        read_codes(p, false, problem_find(p, "w"), problem_find(p, "w_scales"), n, r, k, &w);
        if (gate)
            read_codes(p, false, gate, problem_find(p, "gate_scales"), n, r, k, &of_gate);
        for (uint64_t i = 0; i < m; i++) {
            const uint64_t element = i * n + r;
            product of = multiply(p, &w, &x[i], k, alpha, is_random);
            if (gate)
                of = multiply_pair(
                    p, multiply(p, &of_gate, &x[i], k, problem_find(p, "gate_alpha"), is_random), of);
            const double b = added(bias, r), z = added(residual, element), y = of.value + b + z;
            const double joined = bias || residual ? 0x1p-23 * (fabs(of.value) + fabs(b) + fabs(z)) : 0;
            out->bound[element] =
                of.off + number_unit(type) * (fabs(y) + of.off) + joined + number_smallest(type);
            out->expected_value[element] = number_or_infinity(type, (long double)y, out->bound[element]);
        }
    }
    pool_free(&memory);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* How scales of W, and of x if it has codes, are made. */
typedef enum scale_kind { MODERATE, ANY, SMALL, ZERO, MIXED, BAD, SCALES } scale_kind;

typedef struct kinds {
    input_kind x;
    scale_kind scales;
    bool has_bad_x, is_one_sign;
} kinds;

enum {
    RANDOM,
    REAL,
    ANY_SCALES,
    SMALL_SCALES,
    ZERO_SCALES,
    MIXED_SCALES,
    BAD_W,
    BAD_X,
    HUGE_TINY,
    SPREAD,
    CANCELLING,
    ONE_SIGN
};

/* clang-format off */
static const kinds all_kinds[] = {
    [RANDOM]       = {INPUT_NORMAL,      MODERATE, false, false},
    [REAL]         = {INPUT_REAL,        MODERATE, false, false},
    [ANY_SCALES]   = {INPUT_NORMAL,      ANY,      false, false},
    [SMALL_SCALES] = {INPUT_NORMAL,      SMALL,    false, false},
    [ZERO_SCALES]  = {INPUT_NORMAL,      ZERO,     false, false},
    [MIXED_SCALES] = {INPUT_UNIFORM,     MIXED,    false, false},
    [BAD_W]        = {INPUT_NORMAL,      BAD,      false, false},
    [BAD_X]        = {INPUT_NORMAL,      BAD,      true,  false},
    [HUGE_TINY]    = {INPUT_HUGE_TINY,   MODERATE, false, false},
    [SPREAD]       = {INPUT_SPREAD,      MODERATE, false, false},
    [CANCELLING]   = {INPUT_ALTERNATING, MODERATE, false, false},
    [ONE_SIGN]     = {INPUT_UNIFORM,     MODERATE, false, true},
};

static const input_pattern patterns[] = {
    {"random",       PATTERN_RANDOM | PATTERN_LARGE, RANDOM},
    {"any-scales",   0,                              ANY_SCALES},
    {"nonfinite-w",  PATTERN_NONFINITE,              BAD_W},
    {"mixed",        0,                              MIXED_SCALES},
    {"nonfinite",    PATTERN_NONFINITE,              BAD_X},
    {"real",         PATTERN_LARGE,                  REAL},
    {"small-scales", 0,                              SMALL_SCALES},
    {"one-sign",     0,                              ONE_SIGN}, /* tensor cores truncate growing sums always to one side */
    {"cancelling",   0,                              CANCELLING},
    {"huge-tiny",    0,                              HUGE_TINY},
    {"spread",       0,                              SPREAD},
    {"zero-scales",  0,                              ZERO_SCALES},
    {NULL,           0,                              0},
};

/* The first and the last scale of a kind, for NVFP4, MXFP4 and MXFP8: around 1; all; the smallest, subnormal ones of e4m3; zeros.
 * For e8m0, `all` are the scales with which products with 16-bit x stay within f32, or with which MXFP8 stays within f16, and the
 * smallest are those that f16 holds in part or not at all. */
static const unsigned char ranges[3][SCALES][2] = {
    {[MODERATE] = {0x18, 0x40}, [ANY] = {0, 0x7e},     [SMALL] = {0, 7},      [ZERO] = {0, 0}, [BAD] = {0x18, 0x40}},
    {[MODERATE] = {120, 130},   [ANY] = {127 - 20, 127 + 12}, [SMALL] = {127 - 28, 127 - 20}, [ZERO] = {0, 0}, [BAD] = {120, 130}},
    {[MODERATE] = {112, 122},   [ANY] = {127 - 20, 127 + 7},  [SMALL] = {127 - 28, 127 - 20}, [ZERO] = {0, 0}, [BAD] = {112, 122}},
};
/* clang-format on */

static scale_kind kind_of_row(scale_kind kind, random_stream s, uint64_t number)
{
    return kind == MIXED ? (scale_kind)random_below(s, number, MIXED) : kind;
}

/* Replaces NaNs among e4m3 codes by zeros. */
static void make_numbers(argument *codes)
{
    unsigned char *code = codes->host;
    for (uint64_t i = 0; i < codes->count; i++)
        if ((code[i] & CODES_E4M3_NAN) == CODES_E4M3_NAN)
            code[i] &= CODES_SIGN;
}

/* Fills codes and scales, in random order; the padding of tiles with any bytes. With x in NVFP4 scales have no sign, as block
 * scaling needs. About a third of the rows of a bad matrix have a NaN among their scales or, in odd rows of e4m3, among their
 * codes. */
static void make_codes(const problem *p, bool is_e4m3, argument *codes, argument *scales, uint64_t rows,
                       uint64_t k, scale_kind kind, random_stream s)
{
    const uint64_t block = block_of(p), blocks = k / block;
    const bool is_tiled = problem_has_parameter(p, "scale_layout", "tiles_128x4"),
               has_sign = !is_mx(p) && !has_codes(p);
    unsigned char *to = scales->host;
    inputs_fill_bytes(codes, random_fork(s, 1));
    inputs_fill_bytes(scales, random_fork(s, 2));
    if (is_e4m3)
        make_numbers(codes);
    for (uint64_t r = 0; r < rows; r++) {
        const unsigned char *range = ranges[is_mx(p) + is_e4m3][kind_of_row(kind, random_fork(s, 3), r)];
        const uint64_t bad = kind == BAD && random_below(random_fork(s, 4), r, 3) == 0
                                 ? random_below(random_fork(s, 5), r, blocks)
                                 : blocks;
        for (uint64_t b = 0; b < blocks; b++) {
            unsigned scale = range[0] + (unsigned)random_below(random_fork(s, 6), r * blocks + b,
                                                               range[1] + 1u - range[0]);
            if (b == bad && is_e4m3 && r % 2)
                ((unsigned char *)codes->host)[r * k + b * block + r % block] |= CODES_E4M3_NAN;
            else if (b == bad)
                scale = is_mx(p) ? E8M0_NAN : 0x7f;
            if (has_sign)
                scale |= (unsigned)random_below(random_fork(s, 7), r * blocks + b, 2) << 7;
            to[nvfp4_scale_index(is_tiled, rows, blocks, r, b)] = (unsigned char)scale;
        }
    }
}

/* Makes all products of a row of x with a row of W positive: each element of x has the sign of its weight. */
static void align_signs(problem *p, uint64_t n, uint64_t k)
{
    argument *in = problem_find(p, "in"), *codes = problem_find(p, "in_codes");
    pool memory = {0};
    row w = allocate_row(&memory, k);
    for (uint64_t i = 0; n > 0 && i < problem_integer(p, "m"); i++) {
        read_codes(p, false, problem_find(p, "w"), problem_find(p, "w_scales"), n, i % n, k, &w);
        for (uint64_t e = 0; e < k; e++) {
            const uint64_t at = i * k + e;
            if (codes) {
                unsigned char *byte = (unsigned char *)codes->host + (has_bytes(p) ? at : at / 2);
                const unsigned sign = has_bytes(p) ? CODES_SIGN : 8u << (at % 2 ? 4 : 0);
                *byte = (unsigned char)((*byte & ~sign) | (signbit(w.x[e]) ? sign : 0));
            } else {
                element_set(in->about->type, in->host, at,
                            copysign(element_get(in->about->type, in->host, at), w.x[e]));
            }
        }
    }
    pool_free(&memory);
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    const kinds *of = &all_kinds[pattern->number];
    argument *in = problem_find(p, "in"), *gate = problem_find(p, "gate"), *bias = problem_find(p, "bias"),
             *residual = problem_find(p, "residual"), *alpha = problem_find(p, "alpha"),
             *gate_alpha = problem_find(p, "gate_alpha");
    const uint64_t m = problem_integer(p, "m"), n = problem_integer(p, "n"), k = problem_integer(p, "k");
    make_codes(p, false, problem_find(p, "w"), problem_find(p, "w_scales"), n, k, of->scales,
               random_fork(s, 1));
    if (gate)
        make_codes(p, false, gate, problem_find(p, "gate_scales"), n, k, of->scales, random_fork(s, 2));
    if (has_codes(p))
        make_codes(p, has_bytes(p), problem_find(p, "in_codes"), problem_find(p, "in_scales"), m, k,
                   of->scales == BAD && !of->has_bad_x ? MODERATE : of->scales, random_fork(s, 3));
    else
        inputs_fill(in, of->x, random_fork(s, 3));
    if (bias)
        inputs_fill(bias, INPUT_NORMAL, random_fork(s, 4));
    if (residual)
        inputs_fill(residual, INPUT_NORMAL, random_fork(s, 5));
    if (alpha)
        alpha->real = (random_uniform(s, 6) + 0.5) * (has_codes(p) ? 0x1p-6 : 1);
    if (gate_alpha)
        gate_alpha->real = -(random_uniform(s, 7) + 0.5) * 0x1p-4;
    if (of->is_one_sign)
        align_signs(p, n, k);
    for (uint64_t i = 0; of->has_bad_x && in && i < m; i += 2)
        element_set(in->about->type, in->host, i * k + random_below(random_fork(s, 8), i, k),
                    inputs_nonfinite(s, i));
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t rows)
{
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n"),
                   split_k = problem_parameter(p, "split_k"), sharers = tile_m == 128 ? 384 : 640;
    const uint64_t tiles = (m + tile_m - 1) / tile_m * ((rows + tile_n - 1) / tile_n);
    return (split_k > 0 ? tiles * split_k : 2 * (8 * tiles < sharers ? 8 * tiles : sharers)) * tile_m *
           tile_n;
}

static void set_sizes(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    problem *p = plan->problem;
    problem_find(p, "m")->integer = m;
    problem_find(p, "n")->integer = n;
    problem_find(p, "k")->integer = k;
    if (is_split(p))
        problem_find(p, "workspace_size")->integer =
            workspace_size(p, m, problem_find(p, "gate") ? 2 * n : n);
}

static void add(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set_sizes(plan, m, n, k);
    size_plan_add(plan);
}

static void add_always(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set_sizes(plan, m, n, k);
    size_plan_add_always(plan);
}

static void set_design(size_plan *plan, const uint64_t values[MOST_AXES])
{
    set_sizes(plan, values[0], values[1], values[2] * block_of(plan->problem));
}

/* Tries rows of x and W around a tile and two; k of one block, around a stage and several, with each number of blocks of a stage;
 * rows of odd numbers of blocks, so that codes begin at multiples of 8 bytes and scales at any byte. */
static void plan_sizes(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n"),
                   block = block_of(p), ahead = problem_parameter(p, "stages") - 1;
    const uint64_t ms[] = {1, tile_m - 1, tile_m, tile_m + 1, 2 * tile_m + 1, 3},
                   ns[] = {tile_n + 1, 1, tile_n - 1, tile_n, 7, 2 * tile_n + 3},
                   ks[] = {block, 3 * block, STAGE, STAGE + block, 2 * STAGE - block, 5 * STAGE + 3 * block};
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {{.name = "m", .unit = 1},
                              {.name = "n", .unit = 1},
                              {.name = "k",
                               .unit = block,
                               .largest = design_largest_k(p) / block,
                               .widths = model_widths,
                               .width_count = MODEL_WIDTHS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, set_design, MOST_WORK);
    for (size_t i = 0; i < 6; i++) {
        add(plan, ms[i], ns[i], ks[i]);
        add(plan, ms[i], ns[(i + 2) % 6], ks[(i + 3) % 6]);
    }
    for (uint64_t stage = 0; stage <= ahead + 1; stage++) /* each stage in turn is the last */
        add_always(plan, tile_m, tile_n / 2 + 1, STAGE * stage + block * (1 + stage % (STAGE / block)));
    for (uint64_t blocks = 1; blocks < STAGE / block; blocks++)
        add(plan, 2, 9, STAGE + blocks * block);
    for (uint64_t cut = 0; cut <= block;
         cut += block) /* nvfp4 copies an odd number of blocks in half units */
        add_always(plan, tile_m, tile_n, (ahead + 2) * STAGE - cut);
    add_always(plan, 3, tile_n / 2 + 1, (2 * ahead + 2) * STAGE + block);
    add(plan, 2, 3, 2880);
    add(plan, 0, 5, 256);
    add(plan, 2, 0, 256);
    add(plan, 1, plan->limits.big / 256, 256);
    set_sizes(plan, 9, 8300, block);
    size_plan_add_far(plan, 1 << 21);
    if (!is_split(p))
        return;
    const uint64_t split_k = problem_parameter(p, "split_k"), parts = split_k > 0 ? split_k : 8;
    add_always(plan, 2, 3, parts * STAGE);
    add_always(plan, 1, 5, (parts - 1) * STAGE);
    add_always(plan, tile_m, 2, parts * STAGE + block);
    add_always(plan, 3, 1, (parts + 3) * STAGE - block);
}

/* For one multiprocessor: thread blocks have parts of several tiles, of x and of W. */
static void plan_few(size_plan *plan)
{
    const uint64_t tile_m = problem_parameter(plan->problem, "tile_m"),
                   tile_n = problem_parameter(plan->problem, "tile_n");
    if (problem_parameter(plan->problem, "split_k") != 0)
        return;
    add_always(plan, 2 * tile_m + 1, 3, 5 * STAGE);
    add_always(plan, tile_m + 1, tile_n + 1, 2 * STAGE);
}

const family_row fp4_gemm_row = {.name = "fp4_gemm",
                                 .args = "w out m n k",
                                 .patterns = patterns,
                                 .plan = plan_sizes,
                                 .plan_few = plan_few,
                                 .make = make,
                                 .expect = expect,
                                 .expects_nonfinite = true};
