/* NF4 matrix product, C[m,n] = A[m,k] * B[k,n]: reference, bound, inputs and sizes.
 *
 * Let r be the exact sum of a*s*t (s the block's scale, t the table's entry), S the sum of |a*s*t|, u_T half an ulp of
 * C's type, d_T half of its smallest number, and L the longest chain of additions of a product. For all finite inputs
 * for which no sum overflows, before or after scaling:
 *
 *     sums in f32     |C - r| <= (L + 3) * 2^-24 * S + (sum of |s| + k + 1) * 2^-150, and for 16-bit C u_T * |r| + d_T more
 *     sums in f64     |C - r| <= 2^-24 * |r| + (L + 3) * 2^-53 * S + 2^-150
 *
 *     tensor cores    |C - r| <= u_T * |r| + d_T + (5 * 2^-20 + (L + 3) * 2^-24 + u_T) * S + (sum of |s| + k + 1) * 2^-150
 *
 *     and scaled weights (strategy tiles in bf16, tile_m 128)
 *                     |C - r| <= u_T * |r| + d_T + (2 * u_T + 4 * u_T^2 + (L + 3) * 2^-24) * S + 3 * 2^-134 * sum |a| + 2^-149 * k
 *
 * since the table is rounded to T, and a step of a tensor core truncates its addends: 8 products, each by less than
 * 2^-24 of the largest, and the sum by 2^-23. So 64 products, whose sum is then scaled in f32, lose up to 80 * 2^-24;
 * with scaled weights this counts as 80 additions in L. A scale is split into high and low, which loses u_T^2 of it.
 * t * low is rounded to T, which loses as much again, and t * high + t * low is rounded, too; each rounding loses at
 * most 2^-134 if the result is not normal. The terms with 2^-150 cover products and sums below the normal numbers of
 * f32. Random data must meet the bound with sqrt(L). With 16-bit C, all elements together, from 64 on, must meet
 * ||C - r|| <= u_T * (||r|| + ||sqrt(sum of (a*s*t)^2)||).
 */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <stdlib.h>

#include "groups.h"
#include "inputs.h"
#include "nf4.h"

enum { BLOCK = 64, LEAST_OF_NORM = 64 };

/* Inputs in addition to those of inputs.h. */
enum {
    GEMM_MIXED = 100, /* several kinds of rows and columns: see mixed and codes_of_column */
    GEMM_EXACT,      /* sums of a block are exact, and consecutive blocks cancel: see exact and exact_scale */
    GEMM_CANCELLING, /* as GEMM_EXACT, with closer magnitudes */
    GEMM_LARGE, /* A as large as its sums allow, also before scaling; in f16, a third of the columns overflow */
    GEMM_SCALES, /* scales over 40 powers of two, both signs, and 0; denormal ones: see scales_of_column */
    GEMM_ANY_SCALE,
    GEMM_TINY_SCALE,
    GEMM_SMALL_SCALE, /* scales down to the smallest normal number of f32, with A large enough to show them */
    GEMM_LARGE_SCALE, /* scales beyond f16, up to 2^100 if C's range allows, A small, down to subnormal */
    GEMM_NONFINITE,   /* NaNs and infinities in every third row */
    GEMM_ONE_HOT      /* each element of C is one exact product */
};

static bool is_exact(int kind)
{
    return kind == GEMM_EXACT || kind == GEMM_CANCELLING;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static bool is_tiles(const problem *p)
{
    return problem_has_parameter(p, "strategy", "tiles");
}

static bool is_mma(const problem *p)
{
    return problem_has_parameter(p, "strategy", "mma") || is_tiles(p);
}

/* Returns whether weights are scaled before the product. */
static bool scales_weights(const problem *p)
{
    return is_tiles(p) && problem_has_parameter(p, "a", "bf16") && problem_parameter(p, "tile_m") == 128;
}

static bool is_narrow(const problem *p)
{
    return !is_mma(p) && problem_parameter(p, "tile_m") < 16;
}

/* Returns the elements between rows of A. */
static uint64_t a_stride(problem *p)
{
    return problem_has_parameter(p, "rows", "strided") ? problem_integer(p, "a_stride")
                                                       : problem_integer(p, "k");
}

static uint64_t c_stride(problem *p)
{
    return problem_has_parameter(p, "rows", "strided") ? problem_integer(p, "c_stride")
                                                       : problem_integer(p, "n");
}

static uint64_t tiles(uint64_t count, uint64_t tile)
{
    return (count + tile - 1) / tile;
}

/* Returns, for split_k 0, how many blocks of 64 along K a thread block has over all tiles. */
static uint64_t stretch_blocks(problem *p)
{
    char error[256];
    uint64_t sharing = 0, of_all = tiles(problem_integer(p, "m"), problem_parameter(p, "tile_m")) *
                                   tiles(problem_integer(p, "n"), problem_parameter(p, "tile_n")) *
                                   (problem_integer(p, "k") / BLOCK);
    if (!problem_evaluate(p, p->variant->grid[0], &sharing, error, sizeof error) || sharing == 0)
        abort();
    return tiles(of_all, sharing);
}

/* Returns the longest chain of a warp, which adds its blocks of 64 one by one; errors within a block are the
 * tensor core's. */
static double longest_chain_mma(problem *p)
{
    uint64_t k_warps = problem_parameter(p, "k_warps"), split_k = problem_parameter(p, "split_k");
    uint64_t blocks = problem_integer(p, "k") / BLOCK, parts = split_k, of_part;
    if (split_k == 0) {
        const uint64_t each = stretch_blocks(p);
        parts = tiles(blocks, each) + 1; /* its part may begin within a stretch */
        of_part = each < blocks ? each : blocks;
    } else {
        of_part = tiles(blocks, split_k);
    }
    if (scales_weights(p))
        return 1.25 * (double)problem_integer(p, "k");
    return (double)(tiles(of_part, k_warps) + k_warps - 1 + parts - 1);
}

/* Returns the longest chain. Narrow tiles: a lane adds 32 products, then that sum to those of its warp's other
 * 256s, then eight lanes and all warps. Wide tiles: 64 products, then that sum to those of the warp's other
 * blocks, then all warps. */
static double longest_chain(problem *p)
{
    bool is_wide = problem_parameter(p, "tile_m") >= 16;
    uint64_t stretch = is_wide ? BLOCK : 256, k_warps = problem_parameter(p, "k_warps");
    uint64_t stretches = (problem_integer(p, "k") + stretch - 1) / stretch;
    return (double)((is_wide ? BLOCK : 32 + 3) + (stretches + k_warps - 1) / k_warps + k_warps - 1);
}

typedef struct product {
    long double r, magnitude; /* the exact sum, the sum of magnitudes */
    double squares;           /* the sum of the products' squares */
    double scales, in;        /* the sums of the magnitudes of scales and of A */
} product;

/* The operands as numbers: rows of A, columns of table entries and of scales. */
typedef struct operands {
    uint64_t k, a_stride;
    double *in, *weights, *scales;
} operands;

static operands operands_open(problem *p)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed");
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    const uint64_t scales = 2 * packed->count / BLOCK;
    operands o = {problem_integer(p, "k"), a_stride(p), malloc((in->count + 1) * sizeof(double)),
                  malloc((2 * packed->count + 1) * sizeof(double)), malloc((scales + 1) * sizeof(double))};
    if (!o.in || !o.weights || !o.scales)
        abort();
    for (uint64_t i = 0; i < in->count; i++)
        o.in[i] = element_get(in->about->type, in->host, i);
    for (uint64_t i = 0; i < 2 * packed->count; i++)
        o.weights[i] = nf4_table[bytes[i / 2] >> groups_shift(even_shift, i) & 15];
    for (uint64_t i = 0; i < scales; i++)
        o.scales[i] = nf4_given_scale(p, i);
    return o;
}

static void operands_close(operands *o)
{
    free(o->in);
    free(o->weights);
    free(o->scales);
}

static operands operands_at(const operands *o, uint64_t row, uint64_t column)
{
    return (operands){o->k, o->a_stride, o->in + row * o->a_stride, o->weights + column * o->k,
                      o->scales + column * (o->k / BLOCK)};
}

static product multiply(const operands *o)
{
    product sum = {0, 0, 0, 0, 0};
    for (uint64_t i = 0; i < o->k; i++) {
        double s = o->scales[i / BLOCK];
        long double term = (long double)(o->in[i] * s) * o->weights[i]; /* a * s fits a double */
        sum.r += term;
        sum.magnitude += fabsl(term);
        sum.squares += (double)(term * term);
        sum.scales += fabs(s);
        sum.in += fabs(o->in[i]);
    }
    return sum;
}

static double bound_of(problem *p, const product *sum, element_type type, bool is_random)
{
    bool is_f64 = problem_has_parameter(p, "acc", "f64");
    double chain = is_mma(p) ? longest_chain_mma(p) : longest_chain(p), unit = is_f64 ? 0x1p-53 : 0x1p-24;
    double sums = ((is_random ? sqrt(chain) : chain) + 3) * unit * (double)sum->magnitude;
    const double unit_t = number_unit(type);
    if (scales_weights(p))
        sums += (2 + 4 * unit_t) * unit_t * (double)sum->magnitude + 3 * 0x1p-134 * sum->in +
                0x1p-149 * (double)problem_integer(p, "k");
    else if (is_mma(p))
        sums += (5 * 0x1p-20 + unit_t) * (double)sum->magnitude;
    if (!is_f64)
        sums += 0x1p-150 * (sum->scales + (double)problem_integer(p, "k") + 1);
    if (type == ELEMENT_F32 && !is_f64)
        return sums;
    double rounding = number_unit(type) * ((double)fabsl(sum->r) + sums);
    return sums + rounding + number_smallest(type) / 2;
}

/* ---- the kernels' order of additions -----------------------------------------------------------------------------
 *
 * Each step is one IEEE operation, and the order is the one that longest_chain counts, so the result is known to the
 * last bit: always on CUDA cores; on tensor cores if the sums of a block are exact despite truncation. */

typedef struct order {
    bool is_f64;
    uint64_t k_warps, split_k;
    uint64_t each; /* with split_k 0: see stretch_blocks */
    uint64_t tile; /* for split_k 0: the element's tile */
} order;

static double rounded(const order *o, double x)
{
    return o->is_f64 ? x : (double)(float)x;
}

static double fused(const order *o, double a, double b, double c)
{
    return o->is_f64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

/* Returns the sum of lane `lane` of eight over a warp's 256s. */
static double lane_sum(const order *o, const operands *x, uint64_t slice, uint64_t lane)
{
    enum { LANE_K = 32, STRETCH = 256 };
    double sum = 0;
    for (uint64_t k = slice * STRETCH + lane * LANE_K; k < x->k; k += o->k_warps * STRETCH) {
        double partial = rounded(o, x->in[k] * x->weights[k]);
        for (uint64_t i = k + 1; i < k + LANE_K; i++)
            partial = fused(o, x->in[i], x->weights[i], partial);
        sum = fused(o, partial, x->scales[k / BLOCK], sum);
    }
    return sum;
}

static double narrow_slice(const order *o, const operands *x, uint64_t slice)
{
    double sums[8];
    for (uint64_t lane = 0; lane < 8; lane++)
        sums[lane] = lane_sum(o, x, slice, lane);
    for (uint64_t apart = 4; apart > 0; apart /= 2)
        for (uint64_t lane = 0; lane < apart; lane++)
            sums[lane] = rounded(o, sums[lane] + sums[lane + apart]);
    return sums[0];
}

/* Sums 16 at a time: eight of the block's first half and eight of the other. */
static double wide_slice(const order *o, const operands *x, uint64_t slice)
{
    double sum = 0;
    for (uint64_t block = slice; block < x->k / BLOCK; block += o->k_warps) {
        double partial = 0;
        for (uint64_t i = 0; i < BLOCK; i++) {
            uint64_t at = block * BLOCK + i / 16 * 8 + i % 8 + (i % 16 / 8) * 32;
            partial = fused(o, x->in[at], x->weights[at], partial);
        }
        sum = fused(o, partial, x->scales[block], sum);
    }
    return sum;
}

/* Sums blocks [first, last), a thread block's part of K. */
static double mma_slice(const order *o, const operands *x, uint64_t first, uint64_t last, uint64_t slice)
{
    double sum = 0;
    for (uint64_t block = first + slice; block < last; block += o->k_warps) {
        double partial = 0;
        for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            partial += x->in[i] * x->weights[i];
        sum = fused(o, partial, x->scales[block], sum);
    }
    return sum;
}

static double mma_part(const order *o, const operands *x, uint64_t first, uint64_t last)
{
    double sum = mma_slice(o, x, first, last, 0);
    for (uint64_t slice = 1; slice < o->k_warps; slice++)
        sum = rounded(o, sum + mma_slice(o, x, first, last, slice));
    return sum;
}

/* Returns the end of the part that begins with a block. */
static uint64_t part_end(const order *o, uint64_t blocks, uint64_t first)
{
    if (o->split_k == 0) {
        const uint64_t start = o->tile * blocks, cut = ((start + first) / o->each + 1) * o->each - start;
        return cut < blocks ? cut : blocks;
    }
    const uint64_t each = blocks / o->split_k, more = blocks % o->split_k;
    return first + each + (first < more * (each + 1));
}

static double in_order(problem *p, const order *o, const operands *x)
{
    if (is_mma(p)) {
        const uint64_t blocks = x->k / BLOCK;
        uint64_t end = part_end(o, blocks, 0);
        double sum = mma_part(o, x, 0, end);
        for (uint64_t part = 1; o->split_k == 0 ? end < blocks : part < o->split_k; part++) {
            const uint64_t first = end;
            end = part_end(o, blocks, first);
            sum = rounded(o, sum + mma_part(o, x, first, end));
        }
        return sum;
    }
    double (*of_slice)(const order *, const operands *, uint64_t) = is_narrow(p) ? narrow_slice : wide_slice;
    double sum = of_slice(o, x, 0);
    for (uint64_t slice = 1; slice < o->k_warps; slice++)
        sum = rounded(o, sum + of_slice(o, x, slice));
    return sum;
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *tile_counters = problem_find(p, "tile_counters");
    const uint64_t m = problem_integer(p, "m"), n = problem_integer(p, "n"), stride = c_stride(p);
    const bool is_known = !is_mma(p) || (is_exact(pattern->number) && !scales_weights(p));
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n");
    const bool is_hot = pattern->number == GEMM_ONE_HOT && problem_find(p, "scale");
    order o = {.is_f64 = problem_has_parameter(p, "acc", "f64"),
               .k_warps = problem_parameter(p, "k_warps"),
               .split_k = problem_parameter(p, "split_k")};
    o.each = o.split_k == 0 ? stretch_blocks(p) : 0;
    double r_squares = 0, squares = 0;
    operands all = operands_open(p);
    expect_values(p, out);
    if (stride > n)
        expect_gaps(p, out);
    for (uint64_t i = 0; i < m * n; i++) {
        const uint64_t at = i / n * stride + i % n;
        const operands one = operands_at(&all, i / n, i % n);
        product sum = multiply(&one);
        o.tile = i % n / tile_n * tiles(m, tile_m) + i / n / tile_m;
        out->bound[at] = bound_of(p, &sum, out->about->type, pattern->flags & PATTERN_RANDOM);
        out->expected_value[at] = number_or_infinity(out->about->type, sum.r, out->bound[at]);
        if (is_hot)
            expect_last_bit(out, at, (double)sum.r);
        else if (is_known)
            expect_last_bit(out, at, in_order(p, &o, &one));
        if (out->is_gap)
            out->is_gap[at] = 0;
        r_squares += (double)(sum.r * sum.r);
        squares += sum.squares;
    }
    bool has_norm =
        pattern->flags & PATTERN_RANDOM && out->about->type != ELEMENT_F32 && m * n >= LEAST_OF_NORM;
    out->norm_bound = has_norm ? number_unit(out->about->type) * (sqrt(r_squares) + sqrt(squares)) : 0;
    if (tile_counters)
        expect_bits(p, tile_counters); /* all 0, as before */
    operands_close(&all);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Returns a scale as nf4_scale_between does, except for eight equal powers of two in a column, so that each block
 * of 64 shows next to the others. */
static double column_scale_between(int low, int high, random_stream s, uint64_t column, uint64_t i)
{
    const int from = low + (int)random_below(random_fork(s, 3), column, (uint64_t)(high - low - 7));
    return nf4_scale_between(from, from + 8, s, i);
}

/* Returns a scale: each second block nearly cancels the one before, so that rounding errors of sums show in 16
 * bits, too. */
static double exact_scale(random_stream s, uint64_t block, uint64_t i, double apart)
{
    double scale = nf4_usual_scale(s, i - block % 2);
    return block % 2 ? -scale * (1 + apart * random_uniform(random_fork(s, 1), i)) : scale;
}

/* Returns the kind of a column's scales; kinds alternate. */
static int scales_of_column(uint64_t column)
{
    static const int kinds[] = {GEMM_ANY_SCALE, INPUT_NORMAL, GEMM_TINY_SCALE};
    return kinds[column % 3];
}

static double scale_of(element_type of_a, int kind, random_stream s, uint64_t column, uint64_t block,
                       uint64_t i)
{
    const bool is_f16 = of_a == ELEMENT_F16;
    switch (kind) {
    case GEMM_SCALES:
        return scale_of(of_a, scales_of_column(column), s, column, block, i);
    case GEMM_ANY_SCALE:
        return nf4_scale_between(-20, 21, s, i);
    case GEMM_TINY_SCALE:
        return 0x1p-149 * (double)random_below(s, i, 65);
    case GEMM_SMALL_SCALE: /* in f16, every other column's are large enough for C */
        return column_scale_between(is_f16 && column % 2 == 0 ? -28 : -126, -12, s, column, i);
    case GEMM_LARGE_SCALE:
        return column_scale_between(16, is_f16 ? 28 : 100, s, column, i);
    case GEMM_MIXED:
        return column % 3 ? 1 : nf4_usual_scale(s, i);
    case GEMM_EXACT:
        return exact_scale(s, block, i, 0x1p-17);
    case GEMM_ONE_HOT:
        return ldexp(1, (int)(i % 3) - 1);
    case GEMM_CANCELLING:
        return exact_scale(s, block, i, 0x1p-20);
    case GEMM_LARGE:
        return is_f16 ? column % 3 == 2 ? 1 : 0x1p-14 : 0x1p-12;
    default:
        return nf4_usual_scale(s, i);
    }
}

/* Returns a number just below 2^122, since the sum of 64 of them is just below 2^128. */
static double limit_of(element_type type)
{
    return type == ELEMENT_F16 ? number_largest(type) : 0x1p122 * (1 - number_unit(type));
}

/* Returns a product slightly less than 2^-24 of the block's first, given the bits of A. */
static double absorbed(element_type type, uint64_t i)
{
    return i % BLOCK == 0 ? 0x1p12 : (1 - number_unit(type)) * 0x1p-12;
}

static double swallowed(element_type type, uint64_t i)
{
    const double small = type == ELEMENT_F16 ? 0x1p-24 : 0x1p-60;
    return i % 3 == 0 ? 1 : i % 3 == 1 ? small : -1;
}

/* Returns A for small and for large scales; for f32 and bf16, one of three is subnormal. */
static double beside_small(element_type type, random_stream s, uint64_t i)
{
    return random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p13 : 0x1p90);
}

static double beside_large(element_type type, random_stream s, uint64_t i)
{
    return random_normal(s, i) * (type == ELEMENT_F16 ? 0x1p-20 : i % 3 == 0 ? 0x1p-128 : 0x1p-70);
}

/* Returns integers; each block repeats those of the one before. */
static double exact(random_stream s, uint64_t row, uint64_t i)
{
    return (double)random_below(random_fork(s, row), i - i / BLOCK % 2 * BLOCK, 31) - 15;
}

/* Returns an element of a row's kind; kinds alternate, the most revealing first. */
static double mixed(element_type type, random_stream s, uint64_t row, uint64_t i, uint64_t k)
{
    const double normal = random_normal(random_fork(s, row), i);
    switch (row % 8) {
    case 0: /* x, -x, ...: times equal weights r is 0 or one product, and S is large */
        return (i % 2 ? -1 : 1) * fabs(random_normal(random_fork(s, row), i / 2));
    case 1:
        return i == random_below(s, row, k) ? 1 : 0;
    case 2:
        return i + BLOCK < k ? 0 : normal;
    case 3:
        return absorbed(type, i);
    case 4:
        return normal * (i % 41 == 7 ? 0x1p12 : 0x1p-12);
    case 5:
        return (normal < 0 ? -1 : 1) * number_smallest(type) *
               (double)random_below(random_fork(s, row), i, 65);
    case 6:
        return swallowed(type, i);
    default:
        return normal < 0 ? -0.0 : 0;
    }
}

/* Returns A with one power of two in each row, so C is a weight times 1/2, 1 or 2. */
static double one_hot(random_stream s, uint64_t row, uint64_t k, uint64_t i)
{
    const bool is_hot = i == (random_below(s, 0, k) + 7 * row) % k;
    return is_hot ? ldexp(row % 2 ? -1 : 1, (int)(row % 3) - 1) : row % 2 ? 0 : -0.0;
}

static double a_of(element_type type, int kind, random_stream s, uint64_t row, uint64_t k, uint64_t i)
{
    const uint64_t number = row * k + i;
    switch (kind) {
    case GEMM_ONE_HOT:
        return one_hot(s, row, k, i);
    case GEMM_MIXED:
        return mixed(type, s, row, i, k);
    case GEMM_EXACT:
    case GEMM_CANCELLING:
        return exact(s, row, i);
    case GEMM_SMALL_SCALE:
        return beside_small(type, s, number);
    case GEMM_LARGE_SCALE:
        return beside_large(type, s, number);
    case GEMM_LARGE:
        return row % 2 ? limit_of(type) : nf4_large(type, s, number);
    default:
        return random_normal(s, number);
    }
}

static void fill_a(problem *p, argument *in, int kind, random_stream s)
{
    const uint64_t k = problem_integer(p, "k"), stride = a_stride(p);
    if (kind < GEMM_MIXED)
        inputs_fill(in, (input_kind)kind, s);
    for (uint64_t i = 0; i < in->count; i++) {
        const uint64_t row = i / stride, column = i % stride;
        if (column >= k) /* between rows */
            element_set(in->about->type, in->host, i, NAN);
        else if (kind == GEMM_NONFINITE && row % 3 == 1 && inputs_is_spoiled(s, row, column, k))
            element_set(in->about->type, in->host, i, inputs_nonfinite(s, i));
        else if (kind >= GEMM_MIXED)
            element_set(in->about->type, in->host, i, a_of(in->about->type, kind, s, row, k, column));
    }
}

/* Returns the code that a column consists of; negative: random codes. */
static int codes_of_column(int kind, uint64_t column)
{
    if (kind == GEMM_MIXED && column % 3)
        return column % 3 == 1 ? 0x22 : 0xff;
    return kind == GEMM_LARGE && column % 3 ? 0xff : -1;
}

/* Returns two codes: of -1, 0 and 1, or of all 16. */
static unsigned char codes_of(int kind, random_stream s, uint64_t byte)
{
    static const unsigned char whole[] = {0, 7, 15};
    const uint64_t bits = random_bits(s, byte);
    return is_exact(kind) ? (unsigned char)(whole[bits % 3] | whole[(bits >> 8) % 3] << 4)
                          : (unsigned char)bits;
}

static void fill_codes(argument *packed, int kind, random_stream s, uint64_t k)
{
    unsigned char *bytes = packed->host;
    const uint64_t block_bytes = BLOCK / 2;
    for (uint64_t i = 0; i < packed->bytes; i++) {
        const uint64_t column = i / (k / 2), block = i % (k / 2) / block_bytes;
        const uint64_t from =
            is_exact(kind) ? i - block % 2 * block_bytes : i; /* as in A, each block repeats the one before */
        const int all = kind == GEMM_ONE_HOT
                            ? (int)((column + 37 * (i % (k / 2))) % 256) /* every code at every place */
                            : codes_of_column(kind, column);
        bytes[i] = all < 0 ? codes_of(kind, s, from) : (unsigned char)all;
    }
}

/* Fills nested scales. Six table entries take turns: two adjacent blocks in each of three columns. So each entry can have
 * the kind of its column and block. */
static void fill_nested(problem *p, int kind, random_stream s)
{
    enum { CODES = 256, PAIR = 2, KINDS = 3, TURN = PAIR * KINDS };
    argument *in = problem_find(p, "in"), *index = problem_find(p, "scale_index"),
             *code = problem_find(p, "nested_code");
    const uint64_t blocks = problem_integer(p, "k") / BLOCK;
    unsigned char *indices = index->host;
    for (uint64_t i = 0; i < CODES; i++)
        element_set(ELEMENT_F32, code->host, i,
                    scale_of(in->about->type, kind, s, i / PAIR % KINDS, i % PAIR, i));
    for (uint64_t i = 0; i < index->count; i++) {
        const uint64_t column = i / blocks, second = i % blocks % PAIR,
                       turn = random_below(random_fork(s, 7), i - second, CODES / TURN);
        indices[i] = (unsigned char)(turn * TURN + column % KINDS * PAIR + second);
    }
    nf4_make_nested(p, kind < GEMM_MIXED, random_fork(s, 8));
}

static void fill_scales(problem *p, argument *scale, int kind, random_stream s)
{
    const element_type of_a = problem_find(p, "in")->about->type;
    const uint64_t blocks = problem_integer(p, "k") / BLOCK;
    for (uint64_t i = 0; i < scale->count; i++)
        element_set(scale->about->type, scale->host, i, scale_of(of_a, kind, s, i / blocks, i % blocks, i));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    const uint64_t k = problem_integer(p, "k");
    fill_a(p, in, pattern->number, random_fork(s, 1));
    if (scale)
        fill_scales(p, scale, pattern->number, random_fork(s, 2));
    else
        fill_nested(p, pattern->number, random_fork(s, 2));
    fill_codes(packed, pattern->number, random_fork(s, 3), k);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",      PATTERN_RANDOM | PATTERN_LARGE,  INPUT_NORMAL},
    {"exact",       PATTERN_LARGE,                   GEMM_EXACT},
    {"small-scale", PATTERN_LARGE,                   GEMM_SMALL_SCALE},
    {"mixed",       PATTERN_LARGE,                   GEMM_MIXED},
    {"large-scale", 0,                               GEMM_LARGE_SCALE},
    {"real",        PATTERN_LARGE,                   INPUT_REAL},
    {"cancelling",  PATTERN_LARGE,                   GEMM_CANCELLING},
    {"large",       0,                               GEMM_LARGE},
    {"scales",      0,                               GEMM_SCALES},
    {"nonfinite",   PATTERN_NONFINITE,               GEMM_NONFINITE},
    {"one-hot",     0,                               GEMM_ONE_HOT},
    {NULL,          0,                               0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Returns as much workspace as the sizes need; 0 if the variant needs none. */
static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t n)
{
    uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n"),
             split_k = problem_parameter(p, "split_k");
    const uint64_t count = tiles(m, tile_m) * tiles(n, tile_n);
    const uint64_t parts = split_k == 0  ? 2 * (count < 40 ? 8 * count : 320)
                           : split_k > 1 ? count * split_k
                                         : 0;
    return parts * tile_m * tile_n;
}

static void set(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    m = size_plan_value(plan, "m", m);
    n = size_plan_value(plan, "n", n);
    k = size_plan_value(plan, "k", k);
    problem_find(plan->problem, "workspace_size")->integer = workspace_size(plan->problem, m, n);
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "n")->integer = n;
    problem_find(plan->problem, "k")->integer = k;
    if (problem_has_parameter(plan->problem, "rows", "strided")) {
        static const uint64_t gaps[] = {0, 3, 8};
        problem_find(plan->problem, "a_stride")->integer = k + (m % 2 ? 8 : 72);
        problem_find(plan->problem, "c_stride")->integer = n + gaps[(m + k / BLOCK) % 3];
    }
}

static void set_design(size_plan *plan, const uint64_t values[MOST_AXES])
{
    set(plan, values[0], values[1], values[2] * BLOCK);
}

static void add_design(size_plan *plan)
{
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {{.name = "m", .unit = 1},
                              {.name = "n", .unit = 1},
                              {.name = "k",
                               .unit = BLOCK,
                               .largest = design_largest_k(plan->problem) / BLOCK,
                               .widths = model_widths,
                               .width_count = MODEL_WIDTHS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, set_design, MOST_WORK);
}

static void add(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set(plan, m, n, k);
    size_plan_add(plan);
}

static void add_always(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    set(plan, m, n, k);
    size_plan_add_always(plan);
}

/* Adds whole tiles with a k so long that every warp has several rounds of its loop, or just one: with fewer blocks
 * of k most of the loop has no effect. Two sizes, so that there are two inputs. */
static void add_whole_loop(size_plan *plan, uint64_t tile_m, uint64_t tile_n, uint64_t long_k)
{
    enum { MOST = 150000 }; /* elements */
    uint64_t k = long_k + 5 * BLOCK;
    while (k > long_k / 4 && k * (tile_n / 2 + tile_m) > MOST)
        k -= BLOCK;
    add_always(plan, tile_m, tile_n + 1, k);
    add_always(plan, tile_m, tile_n, k - BLOCK);
}

/* Returns, on tensor cores, the blocks of K that a warp holds at once; each is reloaded for a later round of the
 * loop. */
static uint64_t held_blocks(const problem *p)
{
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n");
    const bool is_wide = tile_n >= 64 || tile_m > 8,
               is_largest = tile_n / 32 * problem_parameter(p, "k_warps") == 16;
    return tile_m <= (is_wide ? 16 : 4) && !(is_wide && is_largest) ? 4 : 2;
}

/* Returns the number of parts into which a tile's K is divided. */
static uint64_t parts_of(const problem *p)
{
    const uint64_t split_k = problem_parameter(p, "split_k");
    return split_k ? split_k : 8;
}

/* Adds sizes at which a warp's K ends after each number of blocks that it can hold, in the first round and in the second.
 * They have two columns, but the last two sizes all columns; or, if limits prevent that, all columns of one row, and all
 * rows of a warp's columns. */
static void add_last_blocks(size_plan *plan, uint64_t tile_m, uint64_t tile_n)
{
    enum { MOST = DEFAULT_ELEMENTS * 3 / 4, WARP_COLUMNS = 32 };
    const problem *p = plan->problem;
    const uint64_t k_warps = problem_parameter(p, "k_warps"), parts = parts_of(p), held = held_blocks(p);
    for (uint64_t block = 1; block < 2 * held; block++) {
        const uint64_t k = (block * k_warps + 1) * parts * BLOCK, n = tile_n + (block % 2 ? 0 : 1);
        const bool is_whole = block + 2 >= 2 * held, fits = k * (n / 2 + tile_m) < MOST;
        add_always(plan, is_whole && !fits ? 1 : tile_m, is_whole ? n : 2, k);
        if (is_whole && !fits)
            add_always(plan, tile_m, tile_n < WARP_COLUMNS ? tile_n : WARP_COLUMNS, k);
    }
}

/* Adds more tiles of columns than thread blocks, so that some thread blocks process several tiles, even if they only write
 * zeros. */
static void add_many_columns(size_plan *plan, uint64_t tile_n, uint64_t m, uint64_t k)
{
    char error[256];
    uint64_t blocks = 0;
    problem_find(plan->problem, "n")->integer = 1 << 24;
    if (!problem_evaluate(plan->problem, plan->problem->variant->grid[0], &blocks, error, sizeof error))
        return;
    add(plan, m, blocks * tile_n + tile_n + 1, k);
}

/* Returns the K that all warps process in a round of their loop, whose scales are in shared memory together. */
static uint64_t round_k(const problem *p)
{
    const uint64_t k_warps = problem_parameter(p, "k_warps");
    return is_mma(p) ? k_warps * held_blocks(p) * parts_of(p) * BLOCK : 256 * k_warps;
}

static uint64_t scales_k(const problem *p)
{
    if (is_mma(p))
        return (problem_parameter(p, "tile_n") == 128 ? 16 : 32) * parts_of(p) * BLOCK;
    return (is_narrow(p) ? 128 : 64) * BLOCK;
}

/* Tries sizes around every edge: tiles, blocks, stretches of 256, a round of all warps, and scales loaded at once. */
static void plan_sizes(size_plan *plan)
{
    static const uint64_t ks[] = {192, 64, 448, 512, 576, 1024, 1088};
    const problem *p = plan->problem;
    uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n");
    const uint64_t round = round_k(p), scales = scales_k(p);
    const uint64_t some_rows[] = {2, tile_m / 4 + 1, tile_m / 2 + 1, tile_m * 3 / 4 + 1};
    edge_list rows = {{0}, 0}, columns = {{0}, 0};
    add_design(plan);
    edges_add(&rows, 0);
    edges_add(&rows, 1);
    edges_add_around(&rows, tile_m);
    edges_add(&rows, 2 * tile_m + 1);
    edges_add(&columns, 0);
    edges_add(&columns, 1);
    edges_add_around(&columns, tile_n);
    edges_add(&columns, 2 * tile_n + 1);
    for (size_t i = 0; i < rows.count; i++)
        add(plan, rows.values[i], 3, 128);
    for (size_t i = 0; i < columns.count; i++)
        add(plan, some_rows[i % 4], columns.values[i], 64);
    add_always(plan, tile_m - 1, tile_n + 1, BLOCK);
    add_always(plan, tile_m + 1, tile_n - 1, 2 * BLOCK);
    for (size_t i = 0; i < (is_mma(p) ? 1 : sizeof ks / sizeof ks[0]); i++)
        add(plan, ks[i] > 512 ? 2 : some_rows[i % 4], 3, ks[i]);
    add(plan, tile_m + 1, tile_n + 1, 0);
    add(plan, tile_m + 1, tile_n + 1, 320);
    for (uint64_t k = round - BLOCK; k <= round + BLOCK; k += BLOCK)
        add(plan, 2, 5, k);
    if (is_mma(p))
        add_last_blocks(plan, tile_m, tile_n);
    else
        add_whole_loop(plan, tile_m, tile_n, 2 * round > scales ? 2 * round : scales);
    add(plan, 3, 67, 2560);
    if (problem_find(plan->problem, "nested_absmax")) /* the last column's scales end a group of 256 */
        add(plan, 1, 16, 16 * BLOCK);
    add_always(plan, 1, 3, (is_mma(p) ? 2 : 1) * scales + 3 * BLOCK);
    if (is_mma(p))
        add_always(plan, 2, tile_n, scales + 3 * BLOCK);
    if (is_narrow(p))
        add_many_columns(plan, tile_n, 1, 0);
    for (uint64_t k = scales - BLOCK; !is_mma(p) && k <= scales + BLOCK; k += BLOCK)
        add(plan, 1, 3, k);
    /* as many columns as models have; offsets of C's rows need more than 16 bits */
    set(plan, 9, 8300, BLOCK);
    size_plan_add_far(plan, 1 << 21);
    plan->input = "one-hot";
    add_always(plan, tile_m < 16 ? 16 : tile_m > 64 ? 64 : tile_m, 256, BLOCK);
    plan->input = NULL;
    if (plan->limits.is_full) {
        add(plan, 1, 2, 12288);
        add(plan, 2, 1, 65536);
        add(plan, 65, 129, 640);
    }
}

/* For few multiprocessors: thread blocks that process several tiles of columns; few that share K, with parts of
 * more blocks than scales are loaded at once, and parts of two tiles. Each number of rows in a tile, since the
 * stores of tensor core tiles are unrolled for each. */
static void plan_few(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_m = problem_parameter(p, "tile_m"), tile_n = problem_parameter(p, "tile_n");
    for (uint64_t k = 0; is_narrow(p) && k <= BLOCK; k += BLOCK)
        add_many_columns(plan, tile_n, tile_m, k);
    if (is_mma(p) && problem_parameter(p, "split_k") == 0) {
        const uint64_t part = scales_k(p) / parts_of(p);
        add(plan, tile_m, tile_n, 2 * part + 3 * BLOCK);
        add(plan, tile_m - 1, 2 * tile_n + 1, part + BLOCK);
    }
    for (uint64_t m = 1; is_mma(p) && m < tile_m; m++)
        add(plan, m, 1, problem_parameter(p, "split_k") == 0 ? BLOCK : 0);
}

const family_row nf4_gemm_row = {.name = "nf4_gemm",
                                 .args = "in packed out m n k workspace_size",
                                 .patterns = patterns,
                                 .plan = plan_sizes,
                                 .plan_few = plan_few,
                                 .make = make,
                                 .expect = expect,
                                 .expects_nonfinite = true};
