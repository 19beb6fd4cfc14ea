/* Transposed NF4 matrix product: reference, bound, inputs and sizes.
 *
 * Let r be the exact sum of a*s*t over columns (s the block's scale, t the table's entry), S the sum of |a*s*t|, u_T
 * half an ulp of C's type, d_T half of its smallest number, and L the longest chain of additions of a product. For all
 * finite inputs for which no product and no sum overflows:
 *
 *     sums in f32     |C - r| <= (L + 3) * 2^-24 * S + (2n + 1) * 2^-150, and for 16-bit C u_T * |r| + d_T more
 *     sums in f64     |C - r| <= 2^-24 * |r| + (L + 3) * 2^-53 * S + 2^-150
 *
 * On tensor cores (strategy mma) it is
 *
 *     |C - r| <= u_T * |r| + d_T + (2 * u_T + (L + 3) * 2^-24) * S + E
 *
 * since the table is rounded to T, and so is the operand that includes the scale: A times the scale, in tf32 for f16;
 * for f16 with normal scales the weight. A step of a tensor core truncates its addends: 4 products of tf32 or 8 of
 * 16 bits, each by less than 2^-24 of the largest, and the sum by 2^-23. So a column counts 1.5 in L, or 1.25, up to
 * the 1024 after which sums are added to a total in f32. E covers subnormal numbers: a scale's second part, its
 * product, and the sum with that product. For tf32, which has f32's range, it is far below d_T.
 *
 *     bf16                   E = sum of |t| * (|a| + 2) * d_T: nothing where scales are 0 or at least 2^-118
 *     f16, scales normal     E = sum of |a| * (|t| + 2) * d_T: up to 3 u_T of |a*s| where s is normal
 *
 * Random data must meet it with sqrt(L). With 16-bit C, all elements together, from 64 on, must meet
 * ||C - r|| <= u_T * (||r|| + ||sqrt(sum of (a*s*t)^2)||).
 */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <stdlib.h>

#include "groups.h"
#include "inputs.h"
#include "nf4.h"

enum { BLOCK = 64, TILE_K = 512, CHUNK = 16, MMA_CHUNK = 32, MOST_SUMMED = 1024, LEAST_OF_NORM = 64 };

/* Inputs in addition to those of inputs.h. */
enum {
    GEMM_MIXED = 100, /* several kinds of rows, and of blocks of k: see mixed and codes_of_block */
    GEMM_EXACT,       /* sums of tensor cores are exact; otherwise 16 columns nearly cancel the 16 before */
    GEMM_CANCELLING,  /* as GEMM_EXACT, with closer magnitudes */
    GEMM_LARGE,       /* A as large as its sums allow; in f16, every second block of k overflows */
    GEMM_SCALES, /* scales over many powers of two, both signs, and 0; denormal ones: see scales_of_block */
    GEMM_ANY_SCALE,
    GEMM_TINY_SCALE,
    GEMM_SCALE_PARTS, /* C is near 0, so that rounding scales to A's type shows: see worst */
    GEMM_SMALL_SCALE, /* scales down to the smallest normal number of f32, with A large enough to show them */
    GEMM_LARGE_SCALE, /* scales beyond f16, up to 2^100 if C's range allows, A small */
    GEMM_NONFINITE,   /* NaNs and infinities in every third row */
    GEMM_ONE_HOT      /* each element of C is one exact product */
};

static bool is_exact(int kind)
{
    return kind == GEMM_EXACT || kind == GEMM_CANCELLING;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static bool is_mma(const problem *p)
{
    return problem_has_parameter(p, "strategy", "mma");
}

static bool has_tf32(const problem *p)
{
    return is_mma(p) && problem_has_parameter(p, "a", "f16") && problem_has_parameter(p, "scales", "any");
}

/* Returns the longest chain: columns that one accumulator sums, its totals, and the parts. */
static double longest_chain_mma(problem *p)
{
    uint64_t split_k = problem_parameter(p, "split_k");
    uint64_t columns = ceil_div(ceil_div(problem_integer(p, "n"), MMA_CHUNK), split_k) * MMA_CHUNK;
    uint64_t summed = columns < MOST_SUMMED ? columns : MOST_SUMMED;
    return (has_tf32(p) ? 1.5 : 1.25) * (double)summed + (double)(ceil_div(columns, MOST_SUMMED) + split_k);
}

/* Returns the longest chain: a lane adds its columns of each 16 that its warp processes; then come the warp's
 * other lanes of the column, the other warps and the other thread blocks. */
static double longest_chain(problem *p)
{
    uint64_t k_warps = problem_parameter(p, "k_warps"), split_k = problem_parameter(p, "split_k");
    if (is_mma(p))
        return longest_chain_mma(p);
    uint64_t chunks = ceil_div(ceil_div(problem_integer(p, "n"), CHUNK), k_warps * split_k);
    return (double)(chunks * CHUNK + 2 * k_warps - 1 + split_k - 1);
}

/* Returns a bound on the truncation error that tensor cores usually have, since few products lose the maximum. It is below
 * the proven bound up to 12000 columns. No known input exceeds it, so all inputs must meet it. */
static double usually_lost(problem *p)
{
    uint64_t split_k = problem_parameter(p, "split_k"), chunks = ceil_div(problem_integer(p, "n"), MMA_CHUNK);
    return 5 * 0x1p-20 + (double)(ceil_div(chunks, split_k) * 4 + 18 + split_k) * 0x1p-24;
}

typedef struct product {
    long double r, magnitude;       /* the exact sum, the sum of magnitudes */
    double squares;                 /* the sum of the products' squares */
    double rows, weights, unscaled; /* the sums of |a|, |t| and |a*t| */
} product;

/* The operands as numbers: rows of A, and for each k the columns' table entries, and for each block their scales. */
typedef struct operands {
    uint64_t n;
    double *in, *weights, *scales;
} operands;

static double *numbers(uint64_t count)
{
    double *made = malloc((count + 1) * sizeof *made);
    if (!made)
        abort();
    return made;
}

static operands operands_open(problem *p)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    const uint64_t n = problem_integer(p, "n"), k = problem_integer(p, "k"), blocks = k / BLOCK;
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    operands o = {n, numbers(in->count), numbers(n * k), numbers(scale->count)};
    for (uint64_t i = 0; i < in->count; i++)
        o.in[i] = element_get(in->about->type, in->host, i);
    for (uint64_t i = 0; i < n * k; i++)
        o.weights[i % k * n + i / k] = nf4_table[bytes[i / 2] >> groups_shift(even_shift, i) & 15];
    for (uint64_t i = 0; i < scale->count; i++)
        o.scales[i % blocks * n + i / blocks] = element_get(scale->about->type, scale->host, i);
    return o;
}

static void operands_close(operands *o)
{
    free(o->in);
    free(o->weights);
    free(o->scales);
}

static operands operands_at(const operands *o, uint64_t row, uint64_t i)
{
    return (operands){o->n, o->in + row * o->n, o->weights + i * o->n, o->scales + i / BLOCK * o->n};
}

static product multiply(const operands *o)
{
    product sum = {0, 0, 0, 0, 0, 0};
    for (uint64_t column = 0; column < o->n; column++) {
        const double a = o->in[column], t = o->weights[column];
        long double term = (long double)(a * o->scales[column]) * t; /* a * s fits a double */
        sum.r += term;
        sum.magnitude += fabsl(term);
        sum.squares += (double)(term * term);
        sum.rows += fabs(a);
        sum.weights += fabs(t);
        sum.unscaled += fabs(a * t);
    }
    return sum;
}

/* Returns E of the bound. */
static double bound_of_smallest(const problem *p, const product *sum, element_type type)
{
    if (has_tf32(p))
        return 0;
    return (sum->unscaled + 2 * (type == ELEMENT_BF16 ? sum->weights : sum->rows)) * number_smallest(type) /
           2;
}

static double bound_of(problem *p, const product *sum, element_type type, bool is_random)
{
    bool is_f64 = problem_has_parameter(p, "acc", "f64");
    double chain = longest_chain(p), unit = is_f64 ? 0x1p-53 : 0x1p-24;
    double lost = ((is_random ? sqrt(chain) : chain) + 3) * unit;
    if (is_mma(p))
        lost = fmin(lost, usually_lost(p));
    double sums = lost * (double)sum->magnitude;
    if (!is_f64)
        sums += 0x1p-150 * (2 * (double)problem_integer(p, "n") + 1);
    if (is_mma(p))
        sums += 2 * number_unit(type) * (double)sum->magnitude + bound_of_smallest(p, sum, type);
    if (type == ELEMENT_F32 && !is_f64)
        return sums;
    double rounding = number_unit(type) * ((double)fabsl(sum->r) + sums);
    return sums + rounding + number_smallest(type) / 2;
}

/* ---- the kernels' order of additions -----------------------------------------------------------------------------
 *
 * Each step is one IEEE operation, and the order is the one that longest_chain counts, so the result is known to the
 * last bit: always on CUDA cores; on tensor cores if their sums are exact despite truncation. */

typedef struct order {
    bool is_f64;
    uint64_t split_k, k_warps, columns; /* columns: in a warp's step */
} order;

static order order_of(const problem *p)
{
    const bool is_f64 = problem_has_parameter(p, "acc", "f64");
    const uint64_t row_bytes = problem_parameter(p, "tile_m") * (is_f64 ? 8 : 4);
    return (order){is_f64, problem_parameter(p, "split_k"), problem_parameter(p, "k_warps"),
                   row_bytes <= 16 ? 2 : 1};
}

static double rounded(const order *o, double x)
{
    return o->is_f64 ? x : (double)(float)x;
}

static double fused(const order *o, double a, double b, double c)
{
    return o->is_f64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

/* Returns a lane's sum over a warp's 16 columns, in strides from `group` on. */
static double lane_sum(const order *o, const operands *x, uint64_t part, uint64_t warp, uint64_t group)
{
    double sum = 0;
    for (uint64_t chunk = (part * o->k_warps + warp) * CHUNK; chunk < x->n;
         chunk += o->split_k * o->k_warps * CHUNK)
        for (uint64_t i = chunk + group; i < chunk + CHUNK && i < x->n; i += o->columns)
            sum = fused(o, rounded(o, x->in[i] * x->scales[i]), x->weights[i], sum);
    return sum;
}

static double simt_part(const order *o, const operands *x, uint64_t part)
{
    double sum = lane_sum(o, x, part, 0, 0);
    for (uint64_t slice = 1; slice < o->k_warps * o->columns; slice++)
        sum = rounded(o, sum + lane_sum(o, x, part, slice / o->columns, slice % o->columns));
    return sum;
}

/* Sums a part: an accumulator takes 1024 of its columns, then is added to the total. */
static double mma_part(const order *o, const operands *x, uint64_t part)
{
    const uint64_t turn = o->split_k * MMA_CHUNK, summed = MOST_SUMMED * o->split_k;
    double total = 0;
    for (uint64_t set = 0; set < x->n; set += summed) {
        double sum = 0;
        for (uint64_t chunk = set + part * MMA_CHUNK; chunk < set + summed && chunk < x->n; chunk += turn)
            for (uint64_t i = chunk; i < chunk + MMA_CHUNK && i < x->n; i++)
                sum += x->in[i] * x->scales[i] * x->weights[i];
        total = rounded(o, sum + total);
    }
    return total;
}

static double in_order(problem *p, const operands *x)
{
    const order o = order_of(p);
    double (*of_part)(const order *, const operands *, uint64_t) = is_mma(p) ? mma_part : simt_part;
    double sum = of_part(&o, x, 0);
    for (uint64_t part = 1; part < o.split_k; part++)
        sum = rounded(&o, sum + of_part(&o, x, part));
    return sum;
}

/* Returns whether the last bit is known: exact inputs are exact on tensor cores only for the split of n that they
 * were made for, see exact_scale. */
static bool knows_last_bit(const problem *p, const input_pattern *pattern)
{
    return !is_mma(p) || (is_exact(pattern->number) && p->variant == p->made_for);
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *tile_counters = problem_find(p, "tile_counters");
    uint64_t m = problem_integer(p, "m"), k = problem_integer(p, "k");
    element_type type = out->about->type;
    bool is_random = pattern->flags & PATTERN_RANDOM;
    const bool is_known = knows_last_bit(p, pattern);
    double r_squares = 0, squares = 0;
    operands all = operands_open(p);
    expect_values(p, out);
    for (uint64_t i = 0; i < m * k; i++) {
        const operands one = operands_at(&all, i / k, i % k);
        product sum = multiply(&one);
        out->expected_value[i] = number_or_infinity(type, sum.r, 0);
        out->bound[i] = bound_of(p, &sum, type, is_random);
        if (pattern->number == GEMM_ONE_HOT)
            expect_last_bit(out, i, (double)sum.r);
        else if (is_known)
            expect_last_bit(out, i, in_order(p, &one));
        else if (!isfinite((double)sum.magnitude)) /* a scale in two parts may turn an infinity into a NaN */
            out->bound[i] = INFINITY;
        r_squares += (double)(sum.r * sum.r);
        squares += sum.squares;
    }
    operands_close(&all);
    bool has_norm = is_random && type != ELEMENT_F32 && m * k >= LEAST_OF_NORM;
    out->norm_bound = has_norm ? number_unit(type) * (sqrt(r_squares) + sqrt(squares)) : 0;
    if (tile_counters)
        expect_bits(p, tile_counters); /* all 0, as before */
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Scales half-way between numbers of A's type, with codes and A for which rounding the scale makes a product
 * larger or smaller by the most: in all by 2.2 u_T and more, including the errors of the table and of the scaled
 * operand; without rounding the scale by 0.3 to 0.8. Both signs have products of equal size, so that r leaves the
 * bound at 2 u_T * S. */
typedef struct factors {
    unsigned code;
    double scale, a;
} factors;

static const factors worst_f16[2] = {{3, 0x1.47ep+0, 1}, {2, 0x1.02ap+0, -1}};
static const factors worst_bf16[2] = {{4, 0x1.17p+0, 0x1.d6p+1}, {2, 0x1.05p+0, -0x1.fep+0}};

static const factors *worst(element_type of_a, uint64_t column)
{
    return (of_a == ELEMENT_BF16 ? worst_bf16 : worst_f16) + column % 2;
}

/* The parameters of an input. */
typedef struct filling {
    const problem *p;
    element_type type; /* of A */
    int kind;
    bool is_normal; /* scales must be normal numbers of f16 */
    bool is_mma;
    uint64_t n, blocks;
    random_stream s;
} filling;

/* Returns a scale as nf4_scale_between does, except for a few equal powers of two in a block of k, so that each
 * column shows next to the others. */
static double block_scale_between(int low, int high, random_stream s, uint64_t block, uint64_t i)
{
    enum { APART = 6 };
    if (high - low <= APART)
        return nf4_scale_between(low, high, s, i);
    const int from = low + (int)random_below(random_fork(s, 3), block, (uint64_t)(high - low - APART + 1));
    return nf4_scale_between(from, from + APART, s, i);
}

/* Returns a power of two: with integer A and weights of -1, 0 and 1 tensor cores round nothing. A sum that is
 * added to a total or to another part is too small to change it, except that it breaks a tie. */
static double exact_scale(const filling *f, uint64_t column, uint64_t i)
{
    const uint64_t split_k = problem_parameter(f->p, "split_k"), chunk = column / MMA_CHUNK;
    const bool is_first = chunk % split_k == 0 && chunk / split_k < MOST_SUMMED / MMA_CHUNK;
    return ldexp(1, (int)random_below(f->s, i, 3) - (is_first ? 0 : f->is_normal ? 14 : 30));
}

/* Returns a scale with which every second 16 columns nearly cancel the 16 before them, so that rounding errors of
 * sums show in 16-bit results, too. */
static double paired_scale(const filling *f, uint64_t column, uint64_t block)
{
    const uint64_t is_second = column / CHUNK % 2, i = (column - is_second * CHUNK) * f->blocks + block;
    const double scale = nf4_usual_scale(f->s, i);
    const double apart = f->kind == GEMM_CANCELLING ? 0x1p-20 : 0x1p-17;
    return is_second ? -scale * (1 + apart * random_uniform(random_fork(f->s, 1), column)) : scale;
}

/* Returns the kind of a block's scales; kinds alternate. */
static int scales_of_block(uint64_t block)
{
    static const int kinds[] = {GEMM_ANY_SCALE, INPUT_NORMAL, GEMM_TINY_SCALE};
    return kinds[block % 3];
}

/* Returns a scale that keeps C away from its type's end, where a bound would include infinity. */
static double scale_of(const filling *f, int kind, uint64_t column, uint64_t block)
{
    const bool is_f16 = f->type == ELEMENT_F16, is_normal = f->is_normal;
    const uint64_t i = column * f->blocks + block;
    const random_stream s = f->s;
    switch (kind) {
    case GEMM_SCALES:
        return scale_of(f, scales_of_block(block), column, block);
    case GEMM_ANY_SCALE:
        return nf4_scale_between(is_normal ? -14 : -20, is_f16 ? 8 : 21, s, i);
    case GEMM_TINY_SCALE:
        return is_normal ? nf4_scale_between(-14, -13, s, i) : 0x1p-149 * (double)random_below(s, i, 65);
    case GEMM_SMALL_SCALE:
        return block_scale_between(is_normal                  ? -14
                                   : is_f16 && block % 2 == 0 ? -28
                                                              : -126,
                                   is_normal ? -8 : -12, s, block, i);
    case GEMM_LARGE_SCALE:
        return block_scale_between(is_normal ? 12 : 16, is_normal ? 15 : is_f16 ? 28 : 100, s, block, i);
    case GEMM_ONE_HOT:
        return ldexp(1, (int)(i % 3) - 1);
    case GEMM_SCALE_PARTS:
        return worst(f->type, column)->scale;
    case GEMM_MIXED:
        return block % 3 ? 1 : nf4_usual_scale(s, i);
    case GEMM_EXACT:
    case GEMM_CANCELLING:
        return f->is_mma ? exact_scale(f, column, i) : paired_scale(f, column, block);
    case GEMM_LARGE:
        return !is_f16 ? 0x1p-8 : block % 2 ? 1 : 0x1p-14;
    default:
        return nf4_usual_scale(s, i);
    }
}

/* Returns a product slightly less than 2^-24 of the first, given the eleven or eight bits of A. */
static double absorbed(element_type type, uint64_t column)
{
    return column == 0 ? 0x1p12 : (1 - number_unit(type)) * 0x1p-12;
}

static double swallowed(element_type type, uint64_t column)
{
    const double small = type == ELEMENT_F16 ? 0x1p-24 : 0x1p-60;
    return column % 3 == 0 ? 1 : column % 3 == 1 ? small : -1;
}

/* Returns an element of a row's kind; kinds alternate, the most revealing first: for long sums those that show
 * truncation. */
static double mixed(const filling *f, uint64_t row, uint64_t column)
{
    enum { LONG = 4096, ABSORBED = 3 };
    const random_stream s = random_fork(f->s, row);
    const double normal = random_normal(s, column);
    switch ((f->n > LONG ? row + ABSORBED : row) % 8) {
    case 0: /* x, -x, ...: times equal weights r is 0 or one product, and S is large */
        return (column % 2 ? -1 : 1) * fabs(random_normal(s, column / 2));
    case 1:
        return column == random_below(f->s, row, f->n) ? 1 : 0;
    case 2:
        return column + 1 < f->n ? 0 : normal;
    case ABSORBED:
        return absorbed(f->type, column);
    case 4:
        return normal * (column % 41 == 7 ? 0x1p12 : 0x1p-12);
    case 5:
        return (normal < 0 ? -1 : 1) * number_smallest(f->type) * (double)random_below(s, column, 65);
    case 6:
        return swallowed(f->type, column);
    default:
        return normal < 0 ? -0.0 : 0;
    }
}

/* Returns integers; without tensor cores, 16 columns repeat those of the 16 before. */
static double exact(const filling *f, uint64_t row, uint64_t column)
{
    const random_stream s = random_fork(f->s, row);
    return (double)random_below(s, f->is_mma ? column : column - column / CHUNK % 2 * CHUNK, 31) - 15;
}

static double a_of(const filling *f, uint64_t row, uint64_t column)
{
    const uint64_t i = row * f->n + column;
    const bool is_f16 = f->type == ELEMENT_F16;
    switch (f->kind) {
    case GEMM_MIXED:
        return mixed(f, row, column);
    case GEMM_EXACT:
    case GEMM_CANCELLING:
        return exact(f, row, column);
    case GEMM_ONE_HOT: /* one nonzero element in a row: C is a weight times 1/2, 1 or 2 */
        return column != (random_below(f->s, 0, f->n) + 7 * row) % f->n
                   ? 0
                   : ldexp(row % 2 ? -1 : 1, (int)(row % 3) - 1);
    case GEMM_SCALE_PARTS:
        return worst(f->type, column)->a;
    case GEMM_LARGE:
        return nf4_large(f->type, f->s, i);
    case GEMM_SMALL_SCALE:
        return random_normal(f->s, i) * (is_f16 ? 0x1p13 : 0x1p90);
    case GEMM_LARGE_SCALE:
        return random_normal(f->s, i) * (is_f16 ? 0x1p-20 : 0x1p-70);
    default:
        return random_normal(f->s, i);
    }
}

static void fill_a(const filling *f, argument *in)
{
    if (f->kind < GEMM_MIXED)
        inputs_fill(in, (input_kind)f->kind, f->s);
    for (uint64_t i = 0; f->kind >= GEMM_MIXED && i < in->count; i++) {
        const uint64_t row = i / f->n, column = i % f->n;
        const bool is_spoiled =
            f->kind == GEMM_NONFINITE && row % 3 == 1 && inputs_is_spoiled(f->s, row, column, f->n);
        element_set(f->type, in->host, i, is_spoiled ? inputs_nonfinite(f->s, i) : a_of(f, row, column));
    }
}

/* Returns two codes of a block of k: equal, of -1, 0 and 1, or any. */
static unsigned char codes_of_block(const filling *f, uint64_t column, uint64_t block, uint64_t byte)
{
    static const unsigned char whole[] = {0, 7, 15};
    const bool is_second = is_exact(f->kind) && !f->is_mma && column / CHUNK % 2;
    const uint64_t bits = random_bits(f->s, byte - (is_second ? CHUNK * f->blocks * BLOCK / 2 : 0));
    switch (f->kind) {
    case GEMM_ONE_HOT: /* every code at every place */
        return (unsigned char)(column + 37 * byte);
    case GEMM_SCALE_PARTS:
        return (unsigned char)(worst(f->type, column)->code * 0x11);
    case GEMM_MIXED:
        return block % 3 == 1 ? 0x22 : block % 3 == 2 ? 0xff : (unsigned char)bits;
    case GEMM_LARGE:
        return block % 2 ? 0xff : (unsigned char)bits;
    case GEMM_EXACT:
    case GEMM_CANCELLING:
        return f->is_mma ? (unsigned char)(whole[bits % 3] | whole[(bits >> 8) % 3] << 4)
                         : (unsigned char)bits;
    default:
        return (unsigned char)bits;
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    enum { BLOCK_BYTES = BLOCK / 2 };
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed"),
             *scale = problem_find(p, "scale");
    filling f = {p,
                 in->about->type,
                 pattern->number,
                 problem_integer(p, "normal_scales"),
                 is_mma(p),
                 problem_integer(p, "n"),
                 problem_integer(p, "k") / BLOCK,
                 random_fork(s, 1)};
    fill_a(&f, in);
    f.s = random_fork(s, 2);
    for (uint64_t i = 0; i < scale->count; i++)
        element_set(scale->about->type, scale->host, i, scale_of(&f, f.kind, i / f.blocks, i % f.blocks));
    f.s = random_fork(s, 3);
    for (uint64_t i = 0; i < packed->bytes; i++) {
        const uint64_t block = i / BLOCK_BYTES;
        ((unsigned char *)packed->host)[i] = codes_of_block(&f, block / f.blocks, block % f.blocks, i);
    }
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",      PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"exact",       PATTERN_LARGE,                  GEMM_EXACT},
    {"mixed",       PATTERN_LARGE,                  GEMM_MIXED},
    {"small-scale", PATTERN_LARGE,                  GEMM_SMALL_SCALE},
    {"scale-parts", 0,                              GEMM_SCALE_PARTS},
    {"large-scale", 0,                              GEMM_LARGE_SCALE},
    {"real",        PATTERN_LARGE,                  INPUT_REAL},
    {"cancelling",  PATTERN_LARGE,                  GEMM_CANCELLING},
    {"large",       0,                              GEMM_LARGE},
    {"scales",      0,                              GEMM_SCALES},
    {"nonfinite",   PATTERN_NONFINITE,              GEMM_NONFINITE},
    {"one-hot",     0,                              GEMM_ONE_HOT},
    {NULL,          0,                              0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Returns as much workspace as the variant needs. */
static uint64_t workspace_size(const problem *p, uint64_t m, uint64_t k)
{
    uint64_t tile_m = problem_parameter(p, "tile_m"), split_k = problem_parameter(p, "split_k");
    return split_k == 1 ? 0 : ceil_div(m, tile_m) * ceil_div(k, TILE_K) * split_k * tile_m * TILE_K;
}

static void set(size_plan *plan, uint64_t m, uint64_t n, uint64_t k)
{
    m = size_plan_value(plan, "m", m);
    n = size_plan_value(plan, "n", n);
    k = size_plan_value(plan, "k", k);
    problem_find(plan->problem, "m")->integer = m;
    problem_find(plan->problem, "n")->integer = n;
    problem_find(plan->problem, "k")->integer = k;
    problem_find(plan->problem, "workspace_size")->integer = workspace_size(plan->problem, m, k);
    /* kernels for any scales also accept normal ones, but dispatch may then pick others */
    problem_find(plan->problem, "normal_scales")->integer =
        problem_has_parameter(plan->problem, "scales", "normal") || k == 192;
}

static uint64_t n_unit(const problem *p)
{
    return problem_parameter(p, "vector") == 8 ? 8 : 1;
}

static void set_design(size_plan *plan, const uint64_t values[MOST_AXES])
{
    set(plan, values[0], values[1] * n_unit(plan->problem), values[2] * BLOCK);
}

static void add_design(size_plan *plan)
{
    enum { MOST_WORK = 1 << 20 };
    const size_axis axes[] = {
        {.name = "m", .unit = 1},
        {.name = "n", .unit = n_unit(plan->problem), .widths = model_widths, .width_count = MODEL_WIDTHS},
        {.name = "k", .unit = BLOCK, .widths = model_widths, .width_count = MODEL_WIDTHS}};
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

/* Adds sizes, in spite of limits, at which an accumulator's sum becomes the total, and further sums are added to it. They
 * leave out a tile's last rows, whose lanes add nothing new. */
static void add_totals(size_plan *plan, uint64_t tile_m, uint64_t step)
{
    enum { MOST = 8 * DEFAULT_ELEMENTS };
    const uint64_t kept = plan->limits.max_elements, split_k = problem_parameter(plan->problem, "split_k");
    const uint64_t rows = tile_m > 8 ? tile_m - 5 : tile_m, sets = split_k == 1 ? 3 : 2;
    if (kept < MOST)
        plan->limits.max_elements = MOST;
    plan->is_brief = split_k > 1; /* many columns */
    add(plan, rows, sets * split_k * MOST_SUMMED + step, BLOCK);
    plan->is_brief = false;
    plan->limits.max_elements = kept;
}

/* Tries sizes around every edge: tiles, blocks, the columns of a warp's step and of all warps; no columns at all.
 * In spite of limits, a whole tile of k, of which each thread has several elements, with work for all parts and
 * warps. */
static void plan_sizes(size_plan *plan)
{
    enum { MOST_WHOLE = 512 };
    static const uint64_t ks[] = {0, 64, 192, 448, 512, 576, 1088};
    const problem *p = plan->problem;
    uint64_t tile_m = problem_parameter(p, "tile_m"), k_warps = problem_parameter(p, "k_warps");
    uint64_t step = n_unit(p), chunk = is_mma(p) ? MMA_CHUNK : CHUNK;
    uint64_t turn = chunk * problem_parameter(p, "split_k") * (is_mma(p) ? 1 : k_warps);
    const uint64_t some_rows[] = {2, tile_m / 4 + 1, tile_m / 2 + 1, tile_m * 3 / 4 + 1};
    edge_list rows = {{0}, 0}, columns = {{0}, 0};
    add_design(plan);
    edges_add(&rows, 0);
    edges_add(&rows, 1);
    edges_add_around(&rows, tile_m);
    edges_add(&rows, 2 * tile_m + 1);
    edges_add(&columns, 1);
    edges_add_around(&columns, chunk / step);
    edges_add_around(&columns, turn / step);
    edges_add(&columns, 2 * turn / step + 1);
    for (size_t i = 0; i < rows.count; i++)
        add(plan, rows.values[i], (2 * chunk / step + 1) * step, 64);
    for (size_t i = 0; i < columns.count; i++)
        add(plan, some_rows[i % 4], columns.values[i] * step, 64);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        add(plan, some_rows[i % 4], step == 1 ? 5 : step, ks[i]);
    add(plan, tile_m + 1, (chunk / step + 1) * step, TILE_K + BLOCK);
    add_always(plan, tile_m + 1, (turn / step + 1) * step, BLOCK);
    add_always(plan, tile_m, (3 * turn / step - 1) * step, 2 * BLOCK);
    add_always(plan, tile_m, (turn / step + 1) * step,
               turn > MOST_WHOLE ? TILE_K / 2 + BLOCK : TILE_K - BLOCK);
    add_always(plan, 1, (chunk / step + 1) * step, TILE_K + 2 * BLOCK);
    add(plan, 1, 67 / step * step, 2560);
    if (is_mma(p))
        add_totals(plan, tile_m, step);
    set(plan, 18, step == 1 ? 5 : step, 4096); /* offsets of C's rows need more than 16 bits */
    size_plan_add_far(plan, 1 << 20);
    plan->input = "one-hot";
    add_always(plan, 64, 64, BLOCK);
    plan->input = NULL;
    if (plan->limits.big) /* one block of k with many columns */
        add(plan, 1, plan->limits.big / BLOCK / step * step, BLOCK);
    if (plan->limits.is_full) {
        add(plan, 2, 12288 + step, 64);
        add(plan, 1, 3 * step, 65536);
        add(plan, 65, 129 / step * step, 640);
    }
}

const family_row nf4_gemm_transposed_row = {.name = "nf4_gemm_transposed",
                                            .args = "in packed scale out m n k workspace_size normal_scales",
                                            .patterns = patterns,
                                            .plan = plan_sizes,
                                            .make = make,
                                            .expect = expect,
                                            .expects_nonfinite = true};
