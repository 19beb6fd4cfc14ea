/* One query against its keys: what the reference finds, and the bound is made of. */
#ifndef VERIFY_ATTENTION_QUERY_H
#define VERIFY_ATTENTION_QUERY_H

#include <stdbool.h>
#include <stdint.h>

/* Products of f32 and narrower numbers are exact in double, whose sums lose nothing that shows beside bounds of 2^-24; f64 takes
 * long double. */
typedef struct attention_query {
    uint64_t dim, dim_v; /* of a row of K, of V */
    uint64_t seen;       /* end of the keys that it sees: from `begin` on, and before `first_keys` */
    uint64_t begin, first_keys;
    double sink;                 /* -infinity: none */
    uint64_t count;              /* of the keys that it sees */
    int64_t own;                 /* the key at which it stands */
    double slope;                /* ALiBi's */
    uint64_t q, mask;            /* first elements */
    uint64_t *k, *v;             /* those of each key's rows */
    const double *keys, *values; /* all elements of K and V, or codes */
    double *k_scale, *v_scale;   /* of each key: what codes are multiplied by, else 1 */
    double *v_weighed; /* and what weights that are lost multiply: V's scale, where it is not in the weight */
    bool is_wide;      /* f64 */
    long double *score, *weight; /* of each key: its score, e^(score - most) */
    double *size, *loss;         /* and |scale| * sum |q * k|, p_j * d_j */
    double *shaping;             /* what shaping the score may be off by, in units in the last place of 1 */
    long double most, sum;       /* the largest score; the sum of weights */
    double lost, sink_loss;      /* sum of p_j * d_j; the sink's */
    bool is_even;                /* all scores are exactly 0 */
} attention_query;

#endif
