/* The bound of attention.
 *
 * Let r be the exact result, p_j the exact probabilities, s_j the scores, m their maximum, u half an ulp of the
 * arithmetic (f64 for f64, otherwise f32), u_T half an ulp of O's type, g(n) = n, or sqrt(n) for random data, and
 * D = head_dim:
 *
 *     d_j = u * [(g(D) + 2) * |scale| * sum |q * k_j| + 2 * |s_j - m| + 8]
 *     |O - r| <= sum of p_j * d_j * |v_j - r|  +  u * (g(Lk) + 4) * sum of p_j * |v_j|  +  u_T * |r|
 *
 * With strategy mma, (D / 16) * 2^-20 * |scale| * sum |q * k_j| is added to d_j, and the second term is
 * u_T * sum of p_j * |v_j|. For f16 it also has 2^-25 * sum of |v_j| / l, where l is the sum of e^(s_j - m), including
 * the sink's. Truncation by tensor cores, at most 5/4 u for each key of a chunk of 4096, has no term: the term for
 * the rounding of weights has room for it. The logarithm of the sum of exponentials is within
 *
 *     sum of p_j * d_j  +  u * (g(n) + 2 * parts + 8 + 8 * (|lse| + |m|))
 *
 * of the exact one. Here n, a lane's chain of additions, is Lk / 16, with strategy mma min(Lk, 4096) / 4 + Lk / 4096.
 * `parts` is the number of parts of the keys, with tile_q 16 four more for the warps. Weights below the least normal
 * number may be 0, which loses 2^-126 * sum of |v_j| / l (f64: 2^-1022) if a key or a sink is far above them. Each
 * addition and product may also be off by the smallest number.
 *
 * If K and V are codes times scales, u * |scale| * sum |q * k_j| is added to d_j, and u * sum of p_j * |v_j| to the
 * second term: one product with a scale each. With a scale for each key, weights are rounded after they are multiplied
 * by V's scale, in f16 by 32 times that: each key loses 2^-25 / l * |code| / 32 instead of 2^-25 / l * |v_j|. In other
 * types |v_j| counts as at least |code| where weights are lost, as a product with a small scale may be denormal.
 */
#include "attention_bound.h"

#include <math.h>
#include <string.h>

attention_arithmetic attention_arithmetic_of(problem *p, element_type type, bool is_random, bool drifts)
{
    bool is_mma = attention_is_mma(p), is_f64 = type == ELEMENT_F64;
    double unit = is_f64 ? 0x1p-53 : 0x1p-24, of_type = number_unit(type);
    return (attention_arithmetic){
        .unit = unit,
        .out = of_type,
        .product = is_mma ? ceil((double)problem_parameter(p, "head_dim") / 16) * 0x1p-20 : 0,
        .tiny_weight = is_mma && type == ELEMENT_F16 ? 0x1p-25 : 0,
        .least_normal = is_f64 ? 0x1p-1022 : 0x1p-126,
        .smallest = is_f64 ? 0x1p-1074 : 0x1p-149,
        .smallest_out = number_smallest(type),
        .codes = attention_has_codes(p) ? unit : 0,
        .rounds_even = attention_has_key_scales(p),
        .parts = (double)(attention_parts(p) + (attention_key_warps(p) > 1 ? attention_key_warps(p) : 0)),
        .is_mma = is_mma,
        .is_random = is_random,
        .drifts = drifts};
}

static double grow(const attention_arithmetic *a, double n)
{
    return a->is_random ? sqrt(n) : n;
}

/* Sums over the keys, relative to the sum of magnitudes. If all scores are 0, weights on tensor cores are exactly 1,
 * and lose nothing in 16 bits: only truncation, the joining of totals and parts, and the division remain. */
static double values_lose(const attention_arithmetic *a, const attention_query *t)
{
    double keys = (double)t->count;
    if (a->is_mma && t->is_even && !a->rounds_even)
        return a->codes + fmin(a->out, a->unit * (1.25 * fmin(keys, ATTENTION_CHUNK) +
                                                  keys / ATTENTION_CHUNK + 2 * a->parts + 8));
    return a->codes + (a->is_mma ? a->out : a->unit * (grow(a, keys) + 4));
}

/* If a lane's first weight is 1 and the others of its chunk are small, its sum is a multiple of 2^-23: an addition
 * loses at most the weight's distance from such a multiple. */
static double additions_lose(const attention_query *t)
{
    double sum = 0;
    for (uint64_t j = 0; j < t->seen && j < ATTENTION_CHUNK; j++) {
        double weight = (double)(t->weight[j] * t->sum) * 0x1p23;
        sum += fabs(weight - nearbyint(weight)) * 0x1p-23;
    }
    return sum / (double)t->sum;
}

static double weights_lose(const attention_arithmetic *a, const attention_query *t)
{
    double keys = (double)t->count,
           chain = a->is_mma ? fmin(keys, ATTENTION_CHUNK) / 4 + keys / ATTENTION_CHUNK : keys / 16;
    if (a->drifts)
        return additions_lose(t) +
               a->unit * (fmax(keys - ATTENTION_CHUNK, 0) / 4 + keys / ATTENTION_CHUNK + 2 * a->parts + 8);
    return a->unit * (grow(a, chain) + 2 * a->parts + 8);
}

static double deviation(const attention_query *t, const attention_arithmetic *a, uint64_t j)
{
    double size = t->size[j];
    return a->unit * ((grow(a, (double)t->dim) + 2) * size + t->shaping[j] +
                      2 * (double)(t->most - t->score[j]) + 8) +
           (a->product + a->codes) * size;
}

void attention_find_losses(attention_query *t, const attention_arithmetic *a)
{
    t->lost = 0;
    if (!isfinite(t->most))
        return;
    const long double sink = expl(t->sink - t->most);
    t->sink_loss = sink > 0 ? (double)(sink / t->sum) * a->unit *
                                  (2 * fabs(t->sink) + 2 * (double)(t->most - t->sink) + 8)
                            : 0;
    t->lost = t->sink_loss;
    for (uint64_t j = 0; j < t->seen; j++) {
        t->loss[j] = t->weight[j] > 0 ? (double)t->weight[j] * deviation(t, a, j) : 0;
        t->lost += t->loss[j];
    }
}

/* Sums over the keys for each column: of p_j * |v_j|, of |v_j|, of p_j * d_j * |v_j - r|. */
typedef struct columns {
    double p_size[ATTENTION_MOST_DIM], v_size[ATTENTION_MOST_DIM], spread[ATTENTION_MOST_DIM];
} columns;

static void add_keys(const attention_query *t, const double r[], columns *c)
{
    for (uint64_t j = 0; j < t->seen; j++) {
        const double *v = t->values + t->v[j], weight = (double)t->weight[j], loss = t->loss[j];
        if (t->score[j] == -INFINITY)
            continue;
        for (uint64_t d = 0; d < t->dim_v; d++) {
            c->p_size[d] += weight * fabs(v[d] * t->v_scale[j]);
            c->v_size[d] += fabs(v[d]) * t->v_weighed[j];
        }
        for (uint64_t d = 0; d < t->dim_v && loss > 0; d++)
            c->spread[d] += loss * fabs(v[d] * t->v_scale[j] - r[d]);
    }
}

void attention_bound_row(const attention_query *t, const attention_arithmetic *a, const double r[],
                         double bound[])
{
    columns c;
    memset(&c, 0, sizeof c);
    add_keys(t, r, &c);
    for (uint64_t d = 0; d < t->dim_v; d++) {
        double sums = values_lose(a, t) * c.p_size[d];
        sums += (a->tiny_weight + a->least_normal) * c.v_size[d] / (double)t->sum +
                a->smallest * (double)(t->seen + 2);
        bound[d] = c.spread[d] + t->sink_loss * fabs(r[d]) + sums + a->out * fabs(r[d]) + a->smallest_out / 2;
    }
}

double attention_bound_log(const attention_query *t, const attention_arithmetic *a, long double log)
{
    return weights_lose(a, t) + t->lost + 8 * a->unit * (double)(fabsl(log) + fabsl(t->most));
}
