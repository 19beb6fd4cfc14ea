/* Shared by the parts of the attention job: the layer's shape, its tensors on the host, the exact result of a row. */
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

/* Sequences at once; each has tokens in the cache, then a prompt, then single tokens. */
typedef struct context {
    uint32_t batch, cached, prompt, steps;
} context;

uint32_t context_queries(const context *c); /* tokens of a sequence: prompt and steps */
uint32_t context_keys(const context *c);    /* including the cached tokens */

/* ---- attend_inputs.c --------------------------------------------------------------------------------------------- */

/* Q by batch, query, head; K and V by batch, head, key. */
typedef struct tensors {
    float *q, *k, *v;
    size_t q_count, kv_count;
} tensors;

/* Multiplies normalised hidden states by matrices cut from the real one, and rotates Q and K by position. */
tensors tensors_make(const matrix *real, const context *c);

/* Returns the same, rounded to a type. */
tensors tensors_round(const tensors *t, element_type type);
void tensors_free(tensors *t);

/* ---- attend_launch.c --------------------------------------------------------------------------------------------- */

/* O in Q's layout, and the log-sum-exps by sequence, head and query. */
typedef struct results {
    float *out, *log;
} results;

/* Runs the sequences step by step, and with all queries at once. The numbers of `t` are exact in the type. Returns false, after
 * a message, if thread blocks did not split a token's keys, split other keys, or left nonzero counters. */
bool attend_stream(const context *c, const tensors *t, element_type type, results *r);
bool attend_together(const context *c, const tensors *t, element_type type, results *r);

/* Runs one head, causal, with contiguous rows. */
void attend_head(const float *q, const float *k, const float *v, float *out, uint32_t length, double scale,
                 element_type type);

/* ---- attend_exact.c ---------------------------------------------------------------------------------------------- */

/* A row of O and its log-sum-exp in float64, with the bounds on a kernel's error. */
typedef struct exact_row {
    double out[HEAD], bound[HEAD], log, log_bound;
} exact_row;

/* Computes query `i` of a sequence and a head, which sees all keys up to its own. */
void attend_exactly(const tensors *t, const context *c, uint32_t batch, uint32_t i, uint32_t head,
                    element_type type, exact_row *row);

#endif
