/* Computes a row of attention in float64, and its error bound.
 *
 * With r exact, s_j the scores, m their maximum, l the sum of e^(s_j - m), p_j the probabilities, n the number of keys,
 * and square roots in place of lengths of chains, as the inputs are no worse than random:
 *
 *     d_j = 2^-24 [(sqrt(HEAD) + 2) scale sum |q k_j| + 2 |s_j - m| + 8]
 *     |O - r| <= sum of p_j d_j |v_j - r| + 2^-24 (sqrt(n) + 4) sum of p_j |v_j| + u |r|
 *     |log - its exact value| <= sum of p_j d_j + 2^-24 (sqrt(n) + 4) + 2^-22 (|log| + |m|) + 2^-22
 *
 * u is half an ulp of O's type at 1. On tensor cores d_j has (HEAD / 16) 2^-20 scale sum |q k_j| more, and O
 * another u sum of p_j |v_j|, and for f16 2^-25 sum of |v_j| / l, for weights that are rounded to the type.
 */
#include "attend.h"

#include <math.h>
#include <stdlib.h>

typedef struct arithmetic {
    double out, weights, tiny_weight, product;
} arithmetic;

static arithmetic arithmetic_of(element_type type)
{
    static const double units[] = {[F32] = 0x1p-24, [F16] = 0x1p-11, [BF16] = 0x1p-8};
    const bool is_mma = type == F16 || (type == BF16 && device_loader.device.sm >= 80);
    return (arithmetic){.out = units[type],
                        .weights = is_mma ? units[type] : 0,
                        .tiny_weight = is_mma && type == F16 ? 0x1p-25 : 0,
                        .product = is_mma ? HEAD / 16 * 0x1p-20 : 0};
}

/* For each key that a query sees: the score, scale sum |q k|, the probability, and d. */
typedef struct key {
    double score, size, probability, deviation;
} key;

static key find_score(const float *q, const float *k)
{
    const double scale = 1 / sqrt(HEAD);
    key j = {0};
    for (uint32_t i = 0; i < HEAD; i++) {
        const double product = (double)q[i] * (double)k[i];
        j.score += scale * product;
        j.size += scale * fabs(product);
    }
    return j;
}

typedef struct softmax {
    double most, sum;
} softmax;

static softmax find_weights(key keys[], uint32_t count, const arithmetic *a)
{
    softmax s = {-INFINITY, 0};
    for (uint32_t j = 0; j < count; j++)
        s.most = fmax(s.most, keys[j].score);
    for (uint32_t j = 0; j < count; j++)
        s.sum += exp(keys[j].score - s.most);
    for (uint32_t j = 0; j < count; j++) {
        const double below = s.most - keys[j].score, size = keys[j].size;
        keys[j].probability = exp(-below) / s.sum;
        keys[j].deviation = 0x1p-24 * ((sqrt(HEAD) + 2) * size + 2 * below + 8) + a->product * size;
    }
    return s;
}

static void find_element(const key keys[], uint32_t count, const softmax *s, const float *v,
                         const arithmetic *a, double *out, double *bound)
{
    double r = 0, spread = 0, weighted = 0, plain = 0;
    for (uint32_t j = 0; j < count; j++)
        r += keys[j].probability * (double)v[(size_t)j * HEAD];
    for (uint32_t j = 0; j < count; j++) {
        const double x = (double)v[(size_t)j * HEAD];
        spread += keys[j].probability * keys[j].deviation * fabs(x - r);
        weighted += keys[j].probability * fabs(x);
        plain += fabs(x);
    }
    *out = r;
    *bound = spread + (0x1p-24 * (sqrt(count) + 4) + a->weights) * weighted +
             a->tiny_weight * plain / s->sum + a->out * fabs(r);
}

void attend_exactly(const tensors *t, const context *c, uint32_t batch, uint32_t i, uint32_t head,
                    element_type type, exact_row *row)
{
    const uint32_t count = c->cached + i + 1;
    const size_t kv = ((size_t)batch * KV_HEADS + head / GROUP) * context_keys(c) * HEAD;
    const float *q = t->q + ((size_t)batch * context_queries(c) + i) * QUERY_ROW + (size_t)head * HEAD;
    const arithmetic a = arithmetic_of(type);
    key *keys = host_new(count, sizeof *keys);
    for (uint32_t j = 0; j < count; j++)
        keys[j] = find_score(q, t->k + kv + (size_t)j * HEAD);
    const softmax s = find_weights(keys, count, &a);
    for (uint32_t d = 0; d < HEAD; d++)
        find_element(keys, count, &s, t->v + kv + d, &a, &row->out[d], &row->bound[d]);
    row->log = s.most + log(s.sum);
    row->log_bound = 0x1p-24 * (sqrt(count) + 4) + 0x1p-22 * (fabs(row->log) + fabs(s.most)) + 0x1p-22;
    for (uint32_t j = 0; j < count; j++)
        row->log_bound += keys[j].probability * keys[j].deviation;
    free(keys);
}
