/* Makes the queries, keys and values of a layer. */
#include "attend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 512 };

uint32_t context_queries(const context *c)
{
    return c->prompt + c->steps;
}

uint32_t context_keys(const context *c)
{
    return c->cached + context_queries(c);
}

/* ---- one token --------------------------------------------------------------------------------------------------- */

static void multiply(const matrix *w, uint32_t first, const double h[HIDDEN], float y[HEAD])
{
    for (uint32_t i = 0; i < HEAD; i++) {
        const float *row = w->values + (size_t)(first + i) * HIDDEN;
        double sum = 0;
        for (uint32_t j = 0; j < HIDDEN; j++)
            sum += (double)row[j] * h[j];
        y[i] = (float)sum;
    }
}

/* Rotary position: elements i and i + HEAD / 2 turn by place / 10000^(2 i / HEAD). */
static void rotate(float x[HEAD], uint32_t place)
{
    for (uint32_t i = 0; i < HEAD / 2; i++) {
        const double angle = place * pow(10000, -2.0 * i / HEAD), low = (double)x[i],
                     high = (double)x[i + HEAD / 2];
        x[i] = (float)(low * cos(angle) - high * sin(angle));
        x[i + HEAD / 2] = (float)(low * sin(angle) + high * cos(angle));
    }
}

/* ---- all tokens -------------------------------------------------------------------------------------------------- */

static tensors tensors_new(size_t q_count, size_t kv_count)
{
    return (tensors){host_new(q_count, sizeof(float)), host_new(kv_count, sizeof(float)),
                     host_new(kv_count, sizeof(float)), q_count, kv_count};
}

void tensors_free(tensors *t)
{
    free(t->q);
    free(t->k);
    free(t->v);
}

typedef struct projections {
    matrix q, k, v;
} projections;

static void project(const projections *w, const context *c, uint32_t batch, uint32_t place,
                    const double h[HIDDEN], tensors *t)
{
    const uint32_t keys = context_keys(c);
    for (uint32_t head = 0; head < KV_HEADS; head++) {
        const size_t at = (((size_t)batch * KV_HEADS + head) * keys + place) * HEAD;
        multiply(&w->k, head * HEAD, h, t->k + at);
        multiply(&w->v, head * HEAD, h, t->v + at);
        rotate(t->k + at, place);
    }
    for (uint32_t head = 0; head < QUERY_HEADS && place >= c->cached; head++) {
        const size_t row = (size_t)batch * context_queries(c) + place - c->cached;
        float *q = t->q + row * QUERY_ROW + (size_t)head * HEAD;
        multiply(&w->q, head * HEAD, h, q);
        rotate(q, place);
    }
}

tensors tensors_make(const matrix *real, const context *c)
{
    const uint32_t keys = context_keys(c);
    const projections w = {weights_cut(real, true, 0, 0, QUERY_ROW, HIDDEN),
                           weights_cut(real, true, QUERY_ROW, 0, KV_HEADS * HEAD, HIDDEN),
                           weights_cut(real, true, QUERY_ROW + KV_HEADS * HEAD, 0, KV_HEADS * HEAD, HIDDEN)};
    tensors t = tensors_new((size_t)c->batch * context_queries(c) * QUERY_ROW,
                            (size_t)c->batch * KV_HEADS * keys * HEAD);
    const size_t count = (size_t)c->batch * keys * HIDDEN;
    float gamma[HIDDEN], *x = host_new(count, sizeof *x);
    fill_gamma(gamma, HIDDEN, 9);
    fill_normal(x, count, 10);
    for (uint32_t i = 0; i < c->batch * keys; i++) {
        double h[HIDDEN];
        for (uint32_t j = 0; j < HIDDEN; j++)
            h[j] = (double)x[(size_t)i * HIDDEN + j];
        normalize(HIDDEN, gamma, 1e-5f, h);
        project(&w, c, i / keys, i % keys, h, &t);
    }
    free(x);
    free(w.q.values);
    free(w.k.values);
    free(w.v.values);
    return t;
}

tensors tensors_round(const tensors *t, element_type type)
{
    tensors rounded = tensors_new(t->q_count, t->kv_count);
    memcpy(rounded.q, t->q, t->q_count * sizeof(float));
    memcpy(rounded.k, t->k, t->kv_count * sizeof(float));
    memcpy(rounded.v, t->v, t->kv_count * sizeof(float));
    round_elements(rounded.q, t->q_count, type);
    round_elements(rounded.k, t->kv_count, type);
    round_elements(rounded.v, t->kv_count, type);
    return rounded;
}
