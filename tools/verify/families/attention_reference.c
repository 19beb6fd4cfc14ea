/* The reference of attention: computes each query's scores, weights and sums in double, for f64 in long double. */
#include "attention_reference.h"

#include <math.h>
#include <string.h>

#include "attention_bound.h"
#include "attention_inputs.h"
#include "attention_layout.h"
#include "codes.h"

/* ---- scores ------------------------------------------------------------------------------------------------------- */

enum { AT_ONCE = 8 /* divides every head_dim */ };

static long double score_of(const attention_query *t, const double *q, const double *k, double *size)
{
    long double sum = 0;
    double sums[AT_ONCE] = {0}, sizes[AT_ONCE] = {0};
    for (uint64_t d = 0; d < t->dim; d += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            double term = q[d + i] * k[d + i];
            sums[i] += term;
            sizes[i] += fabs(term);
        }
    }
    for (uint64_t d = 0; d < t->dim && t->is_wide; d++)
        sum += (long double)q[d] * k[d];
    *size = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        sum += t->is_wide ? 0 : sums[i];
        *size += sizes[i];
    }
    return sum;
}

static bool is_seen(const attention_query *t, uint64_t j)
{
    return j >= t->begin || j < t->first_keys;
}

static double real_of(problem *p, const char *name)
{
    const argument *a = problem_find(p, name);
    return a ? a->real : 0;
}

/* Returns an element of a row of mask, or of the slopes or sinks. */
static double element_of(problem *p, const char *name, uint64_t i)
{
    const argument *a = problem_find(p, name);
    return a && a->count > 0 ? element_get(a->about->type, a->host, i) : -INFINITY;
}

/* Shapes a score. The product's error does not grow: the slope of tanh is at most 1. */
static void shape_score(problem *p, attention_query *t, uint64_t j)
{
    double cap = real_of(p, "softcap");
    long double *score = &t->score[j];
    t->shaping[j] = 0;
    if (problem_has_parameter(p, "score", "softcap")) {
        t->size[j] = isinf((double)*score) ? 0 : t->size[j]; /* an infinite score is capped exactly */
        *score = cap > 0 ? cap * tanhl(*score / cap) : isnan(*score) ? *score : 0;
        t->shaping[j] = 12 * cap;
    } else if (problem_has_parameter(p, "score", "alibi")) {
        double away = t->slope * fabs((double)(t->own - (int64_t)j));
        *score -= away;
        t->shaping[j] = 4 * fabs(away);
    } else if (problem_has_parameter(p, "score", "mask")) {
        double added = element_of(p, "mask", t->mask + j);
        *score = added == -INFINITY ? added : *score + added; /* -infinity hides a NaN and +infinity, too */
        t->size[j] = added == -INFINITY ? 0 : t->size[j];
        t->shaping[j] = isfinite(added) ? 4 * fabs(added) : 0;
    }
}

static void find_scores(problem *p, attention_query *t, double scale)
{
    argument *q = problem_find(p, "q");
    double row[ATTENTION_MOST_DIM];
    for (uint64_t d = 0; d < t->dim; d++)
        row[d] = element_get(q->about->type, q->host, t->q + d);
    t->most = t->sink;
    t->is_even = isinf(t->sink);
    t->count = 0;
    for (uint64_t j = 0; j < t->seen && !isnan(t->most); j++) {
        t->size[j] = t->shaping[j] = 0;
        t->score[j] = -INFINITY;
        if (!is_seen(t, j))
            continue;
        t->score[j] = scale * t->k_scale[j] * score_of(t, row, t->keys + t->k[j], &t->size[j]);
        t->size[j] *= fabs(scale) * t->k_scale[j];
        shape_score(p, t, j);
        t->is_even = t->is_even && t->size[j] + t->shaping[j] == 0;
        t->count++;
        if (t->score[j] > t->most || isnan(t->score[j]))
            t->most = t->score[j];
    }
}

/* Returns whether a score is NaN or +infinity: then O and the logarithm are NaN. */
static bool is_lost(const attention_query *t)
{
    return isnan(t->most) || t->most == INFINITY;
}

/* ---- weights, and sums of values ---------------------------------------------------------------------------------- */

static void find_weights(attention_query *t)
{
    t->sum = 0;
    if (!isfinite(t->most))
        return;
    for (uint64_t j = 0; j < t->seen; j++) {
        t->weight[j] = expl(t->score[j] - t->most);
        t->sum += t->weight[j];
    }
    t->sum += expl(t->sink - t->most);
    for (uint64_t j = 0; j < t->seen; j++)
        t->weight[j] /= t->sum;
}

static void add_values(const attention_query *t, double r[])
{
    long double wide[ATTENTION_MOST_DIM] = {0}; /* for f64 */
    for (uint64_t j = 0; j < t->seen; j++) {
        const double *v = t->values + t->v[j], weight = (double)t->weight[j];
        if (t->score[j] == -INFINITY)
            continue;
        for (uint64_t d = 0; d < t->dim_v && !t->is_wide; d++)
            r[d] += weight * (v[d] * t->v_scale[j]);
        for (uint64_t d = 0; d < t->dim_v && t->is_wide; d++)
            wide[d] += t->weight[j] * v[d];
    }
    for (uint64_t d = 0; d < t->dim_v && t->is_wide; d++)
        r[d] = (double)wide[d];
}

static void expect_row(problem *p, const attention_query *t, const attention_arithmetic *a, uint64_t first)
{
    argument *out = problem_find(p, "out");
    double r[ATTENTION_MOST_DIM] = {0};
    memset(out->is_gap + first, 0, (size_t)t->dim_v);
    for (uint64_t d = 0; d < t->dim_v && !isfinite(t->most); d++)
        out->expected_value[first + d] = is_lost(t) ? NAN : 0;
    if (!isfinite(t->most))
        return;
    add_values(t, r);
    memcpy(out->expected_value + first, r, (size_t)t->dim_v * sizeof *r);
    attention_bound_row(t, a, r, out->bound + first);
}

static void expect_log(problem *p, const attention_query *t, const attention_arithmetic *a, uint64_t i)
{
    argument *lse = problem_find(p, "lse");
    lse->is_gap[i] = 0;
    if (!isfinite(t->most)) {
        lse->expected_value[i] = is_lost(t) ? NAN : -INFINITY;
        return;
    }
    const long double log = t->most + logl(t->sum);
    lse->expected_value[i] = (double)log;
    lse->bound[i] = attention_bound_log(t, a, log);
}

/* ---- queries and visible keys ------------------------------------------------------------------------------------- */

/* Finds the visible keys. Query i is at key i + k_length - q_length + causal_offset; the offset is clamped to
 * +-2^29. */
static void find_window(problem *p, const attention_sequence *s, attention_query *t, uint64_t i)
{
    int64_t length = (int64_t)s->k_length, left = (int64_t)problem_integer(p, "window_left");
    int64_t right =
        problem_has_parameter(p, "causal", "true") ? 1 : (int64_t)problem_integer(p, "window_right");
    const int64_t offset = (int32_t)problem_integer(p, "causal_offset"), farthest = 1 << 29;
    t->own = (int64_t)i + length - (int64_t)s->q_length +
             (offset < -farthest  ? -farthest
              : offset > farthest ? farthest
                                  : offset);
    int64_t end = right > 0 && t->own + right < length ? t->own + right : length;
    int64_t begin = left > 0 ? t->own - left + 1 : 0;
    t->seen = end > 0 ? (uint64_t)end : 0;
    t->begin = begin > 0 ? (uint64_t)begin : 0;
    t->first_keys = problem_integer(p, "first_keys");
}

static uint64_t mask_at(problem *p, uint64_t batch, uint64_t head, uint64_t i)
{
    return batch * problem_integer(p, "mask_batch_stride") + head * problem_integer(p, "mask_head_stride") +
           i * problem_integer(p, "mask_row_stride");
}

static const double *decode(problem *p, const char *name)
{
    const argument *a = attention_keys(p, name);
    double *values = pool_allocate(&p->memory, (size_t)(a->count + 1) * sizeof *values);
    for (uint64_t i = 0; i < a->count; i++)
        values[i] = attention_has_codes(p) ? codes_decode(attention_has_e4m3(p),
                                                          (unsigned)element_bits(a->about->type, a->host, i))
                                           : element_get(a->about->type, a->host, i);
    return values;
}

static double scale_of(problem *p, const attention_sequence *s, const char *matrix, uint64_t kv_head,
                       uint64_t j)
{
    const argument *a = attention_scales(p, matrix);
    if (!a)
        return 1;
    return element_get(a->about->type, a->host,
                       attention_has_key_scales(p) ? attention_key_at(p, s, "scale", kv_head, j) : kv_head);
}

/* Returns the factor of a lost weight. With f16, weights are multiplied by 32 times a key's scale; in other types,
 * weights are lost before that product, or are denormal after it. */
static double weighed(const problem *p, double v_scale)
{
    const bool is_f16 = problem_has_parameter(p, "type", "f16") && attention_is_mma(p);
    return !attention_has_key_scales(p) ? v_scale : is_f16 ? 0x1p-5 : fmax(v_scale, 1);
}

static void expect_head(problem *p, attention_query *t, const attention_arithmetic *a, uint64_t batch,
                        uint64_t head)
{
    const attention_sequence s = attention_sequence_of(p, batch);
    uint64_t kv_head = head / (problem_integer(p, "q_heads") / problem_integer(p, "kv_heads"));
    for (uint64_t j = 0; j < s.k_length; j++) {
        t->k[j] = attention_key_at(p, &s, "k", kv_head, j);
        t->v[j] = attention_key_at(p, &s, "v", kv_head, j);
        t->k_scale[j] = scale_of(p, &s, "k", kv_head, j);
        t->v_scale[j] = scale_of(p, &s, "v", kv_head, j);
        t->v_weighed[j] = weighed(p, t->v_scale[j]);
    }
    t->slope = element_of(p, "alibi_slopes", head);
    t->sink = element_of(p, "sinks", head);
    for (uint64_t i = 0; i < s.q_length; i++) {
        t->q = attention_query_at(p, &s, "q", head, i);
        t->mask = mask_at(p, batch, head, i);
        find_window(p, &s, t, i);
        find_scores(p, t, problem_find(p, "scale")->real);
        find_weights(t);
        attention_find_losses(t, a);
        expect_row(p, t, a, attention_query_at(p, &s, "out", head, i));
        expect_log(p, t, a, attention_log_at(p, &s, head, i));
    }
}

void attention_expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *lse = problem_find(p, "lse");
    const uint64_t heads = problem_integer(p, "q_heads");
    const attention_arithmetic a = attention_arithmetic_of(
        p, out->about->type, attention_is_random(p, pattern), attention_drifts(p, pattern));
    size_t keys = (size_t)problem_integer(p, "k_length") + 1;
    attention_query t = {.dim = attention_dim(p, "q"),
                         .dim_v = attention_dim(p, "v"),
                         .k = pool_allocate(&p->memory, keys * sizeof *t.k),
                         .v = pool_allocate(&p->memory, keys * sizeof *t.v),
                         .keys = decode(p, "k"),
                         .values = decode(p, "v"),
                         .k_scale = pool_allocate(&p->memory, keys * sizeof *t.k_scale),
                         .v_scale = pool_allocate(&p->memory, keys * sizeof *t.v_scale),
                         .v_weighed = pool_allocate(&p->memory, keys * sizeof *t.v_weighed),
                         .is_wide = out->about->type == ELEMENT_F64,
                         .score = pool_allocate(&p->memory, keys * sizeof *t.score),
                         .weight = pool_allocate(&p->memory, keys * sizeof *t.weight),
                         .size = pool_allocate(&p->memory, keys * sizeof *t.size),
                         .loss = pool_allocate(&p->memory, keys * sizeof *t.loss),
                         .shaping = pool_allocate(&p->memory, keys * sizeof *t.shaping)};
    expect_values(p, out);
    expect_gaps(p, out);
    expect_values(p, lse);
    expect_gaps(p, lse);
    if (problem_find(p, "tile_counters"))
        expect_bits(p, problem_find(p, "tile_counters")); /* all 0, as before */
    for (uint64_t n = 0; n < problem_integer(p, "batch") * heads; n++)
        expect_head(p, &t, &a, n / heads, n % heads);
}
