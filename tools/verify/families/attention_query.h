/* One query and its keys: intermediate results of the reference, which the bound uses. */
#ifndef VERIFY_ATTENTION_QUERY_H
#define VERIFY_ATTENTION_QUERY_H

#include <stdbool.h>
#include <stdint.h>

/* In double, products of f32 and narrower numbers are exact, and errors of sums are far below bounds of
 * 2^-24; f64 uses long double. */
typedef struct attention_query {
    uint64_t dim, dim_v; /* elements of a row of K, of V */
    uint64_t seen;       /* visible keys: those before first_keys, and from `begin` to `seen` */
    uint64_t begin, first_keys;
    double sink;                 /* -infinity: none */
    uint64_t count;              /* visible keys */
    int64_t own;                 /* the key at its own position */
    double slope;                /* of ALiBi */
    uint64_t q, mask;            /* index of the first element */
    uint64_t *k, *v;             /* index of each key's first element */
    const double *keys, *values; /* all elements of K and V, or of their codes */
    double *k_scale, *v_scale;   /* factor of each key's codes; otherwise 1 */
    double *v_weighed;           /* factor of each key's lost weight: see `weighed` */
    bool is_wide;                /* f64 */
    long double *score, *weight; /* per key: its score, e^(score - most) */
    double *size, *loss;         /* per key: |scale| * sum |q * k|, p_j * d_j */
    double *shaping;             /* error from shaping the score, in ulps of 1 */
    long double most, sum;       /* the largest score; the sum of weights */
    double lost, sink_loss;      /* sum of p_j * d_j; the sink's */
    bool is_even;                /* all scores are exactly 0 */
} attention_query;

#endif
