/* What the parts of the attention job share: the layer's shape, its tensors on the host, the exact result of a row. */
#ifndef ATTEND_H
#define ATTEND_H

#include "layer.h"

enum {
    HEAD = 64,
    QUERY_HEADS = 6,
    KV_HEADS = 2,
    GROUP = QUERY_HEADS / KV_HEADS,
    QUERY_ROW = QUERY_HEADS * HEAD
};

/* This many sequences at once: tokens that the cache holds already, then a prompt, then tokens that come one by one. */
typedef struct context {
    uint32_t batch, cached, prompt, steps;
} context;

uint32_t context_queries(const context *c); /* of a sequence: prompt and steps */
uint32_t context_keys(const context *c);    /* these and the cached ones */

/* ---- attend_inputs.c --------------------------------------------------------------------------------------------- */

/* Q by batch, query, head; K and V by batch, head, key. */
typedef struct tensors {
    float *q, *k, *v;
    size_t q_count, kv_count;
} tensors;

/* Hidden states, normalised, times matrices that are cut from the real one; Q and K are rotated by their places. */
tensors tensors_make(const matrix *real, const context *c);

/* The same, rounded to a type. */
tensors tensors_round(const tensors *t, element_type type);
void tensors_free(tensors *t);

/* ---- attend_launch.c --------------------------------------------------------------------------------------------- */

/* O like Q, and the logarithms by sequence, head and query. */
typedef struct results {
    float *out, *log;
} results;

/* The sequences as they come, and with all queries at once. `t` are numbers that the type has. False, after saying what: no
 * thread blocks shared the keys of a token, or some did elsewhere, or they left no zeros in their counters. */
bool attend_stream(const context *c, const tensors *t, element_type type, results *r);
bool attend_together(const context *c, const tensors *t, element_type type, results *r);

/* One head, causal; rows follow each other. */
void attend_head(const float *q, const float *k, const float *v, float *out, uint32_t length, double scale,
                 element_type type);

/* ---- attend_exact.c ---------------------------------------------------------------------------------------------- */

/* A row of O and the logarithm of its sum of exponentials, in float64, and how far a kernel may be off. */
typedef struct exact_row {
    double out[HEAD], bound[HEAD], log, log_bound;
} exact_row;

/* Computes query `i` of a sequence and a head, which sees all keys up to its own. */
void attend_exactly(const tensors *t, const context *c, uint32_t batch, uint32_t i, uint32_t head,
                    element_type type, exact_row *row);

#endif
