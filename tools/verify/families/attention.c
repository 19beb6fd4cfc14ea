/* Attention: reference, bound, inputs and sizes.
 *
 * With r exact, p_j the exact probabilities, s_j the scores, m their maximum, u half an ulp of the arithmetic (f64 for f64,
 * else f32), u_T of O's type, g(n) = n, sqrt(n) for random data, D = head_dim:
 *
 *     d_j = u * [(g(D) + 2) * |scale| * sum |q * k_j| + 2 * |s_j - m| + 8]
 *     |O - r| <= sum of p_j * d_j * |v_j - r|  +  u * (g(Lk) + 4) * sum of p_j * |v_j|  +  u_T * |r|
 *
 * With strategy mma d_j has (D / 16) * 2^-20 * |scale| * sum |q * k_j| more, the second term is u_T * sum of p_j * |v_j|,
 * for f16 with 2^-25 * sum of |v_j| / l more, l the sum of e^(s_j - m). No term is for what tensor cores cut off, 5/4 of u
 * for each key of a chunk of 4096 at most: the rounding of weights leaves that room. The logarithm of the sum of
 * exponentials is within
 *
 *     sum of p_j * d_j  +  u * (g(n) + 2 * parts + 8 + 8 * (|lse| + |m|))
 *
 * of it, where n, the chain of a lane's weights, is Lk / 16, with strategy mma min(Lk, 4096) / 4 + Lk / 4096, and parts
 * are those of the keys, with tile_q 16 four more for the warps. Weights below
 * the least normal number may be 0, and each addition and product may be off by the smallest number: that is in the bounds
 * too, and is nothing elsewhere.
 *
 * Where K and V are codes times scales, d_j has u * |scale| * sum |q * k_j| more, and the second term u * sum of p_j * |v_j|:
 * a product with a scale each. With a scale for each key weights are rounded when they are multiplied by V's, in f16 by 32
 * times that: of each key 2^-25 / l * |code| / 32 is lost, and not 2^-25 / l * |v_j|.
 */
#include "attention.h"

#include <math.h>
#include <string.h>

#include "attention_layout.h"
#include "codes.h"
#include "inputs.h"

enum {
    MOST_HEAD_DIM = 576,
    MOST_PARTS = 256,
    MOST_BLOCKS = 512,   /* of which a call without splits has more than one to a tile */
    CHUNK = 4096,        /* keys that tensor cores sum before a total takes them */
    HEADS_TOGETHER = 16, /* whose causal tiles begin together */
    APART = 2000,        /* elements from row to row of Q */
    COUNTED_GAP = 24     /* between rows of Q where each key counts */
};

/* Warps of a thread block that share its keys. */
static uint64_t key_warps(const problem *p)
{
    return problem_parameter(p, "tile_q") == 16 ? 4 : 1;
}

/* The most parts that the keys are cut into. */
static uint64_t parts_of(problem *p)
{
    uint64_t split_k = problem_parameter(p, "split_k"), splits = problem_integer(p, "splits");
    uint64_t most = problem_integer(p, "k_length") / 2 / problem_parameter(p, "tile_k") + 1;
    if (split_k > 0)
        return split_k;
    return splits > 0 ? splits : most < MOST_PARTS ? most : MOST_PARTS;
}

/* More keys in every part than tensor cores sum before a total takes them. */
static bool is_long(problem *p)
{
    return problem_has_parameter(p, "strategy", "mma") &&
           problem_integer(p, "k_length") > parts_of(p) * key_warps(p) * CHUNK;
}

enum {
    ATTENTION_DOMINATING = 100, /* one key in 37 far above the others */
    ATTENTION_EXTREME,          /* scores of 1e4 and -1e4 */
    ATTENTION_RISING,           /* each tile's scores above those before */
    ATTENTION_FALLING,
    ATTENTION_LATE, /* the first of many tiles is not seen; scores rise by 1 after half, by 2 more in the last eighth */
    ATTENTION_SCALE_0,
    ATTENTION_LARGE_V,   /* as large as the sums of weights allow */
    ATTENTION_ONE_HOT,   /* V is 1 at one place in each row: every weight at its own */
    ATTENTION_NONFINITE, /* NaN and infinities in one row of K, and in one of eight of Q */
    /* Of more keys than one chunk has. Scores behind the first are above its; no key of it is seen; all are alike. */
    ATTENTION_CHUNKS_RISE,
    ATTENTION_CHUNKS_NONE,
    ATTENTION_CHUNKS_LIKE,
    ATTENTION_DRIFT /* a lane's first weight is 1, its others nearly an ulp of that, or, in odd rows, hardly any */
};

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* One query against its keys. Products of f32 and narrower numbers are exact in double, whose sums lose nothing that shows
 * beside bounds of 2^-24; f64 takes long double. */
typedef struct query {
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
} query;

typedef struct arithmetic {
    double unit, out, product; /* u; u_T; (D / 16) * 2^-20 with mma */
    double codes;              /* u, where K and V are codes */
    double parts;
    double tiny_weight, least_normal, smallest;
    bool is_mma, is_random, drifts, rounds_even; /* weights of exactly 1, too */
} arithmetic;

static double grow(const arithmetic *a, double n)
{
    return a->is_random ? sqrt(n) : n;
}

/* Sums over the keys, relative to the sum of magnitudes. Where all scores are 0 tensor cores take weights of exactly 1, of
 * which 16 bits lose nothing: what is left is what they cut off, totals and parts, and the division. */
static double values_lose(const arithmetic *a, const query *t)
{
    double keys = (double)t->count;
    if (a->is_mma && t->is_even && !a->rounds_even)
        return a->codes +
               fmin(a->out, a->unit * (1.25 * fmin(keys, CHUNK) + keys / CHUNK + 2 * a->parts + 8));
    return a->codes + (a->is_mma ? a->out : a->unit * (grow(a, keys) + 4));
}

/* Where a lane's first weight is 1 and the others of its chunk are small, its sum is a multiple of 2^-23: an addition loses
 * no more than what a weight is away from one. */
static double additions_lose(const query *t)
{
    double sum = 0;
    for (uint64_t j = 0; j < t->seen && j < CHUNK; j++) {
        double weight = (double)(t->weight[j] * t->sum) * 0x1p23;
        sum += fabs(weight - nearbyint(weight)) * 0x1p-23;
    }
    return sum / (double)t->sum;
}

static double weights_lose(const arithmetic *a, const query *t)
{
    double keys = (double)t->count, chain = a->is_mma ? fmin(keys, CHUNK) / 4 + keys / CHUNK : keys / 16;
    if (a->drifts)
        return additions_lose(t) + a->unit * (fmax(keys - CHUNK, 0) / 4 + keys / CHUNK + 2 * a->parts + 8);
    return a->unit * (grow(a, chain) + 2 * a->parts + 8);
}

static arithmetic arithmetic_of(problem *p, element_type type, uint64_t dim, bool is_random)
{
    bool is_mma = problem_has_parameter(p, "strategy", "mma"), is_f64 = type == ELEMENT_F64;
    double unit = is_f64 ? 0x1p-53 : 0x1p-24, of_type = number_unit(type);
    return (arithmetic){.unit = unit,
                        .out = of_type,
                        .product = is_mma ? ceil((double)dim / 16) * 0x1p-20 : 0,
                        .tiny_weight = is_mma && type == ELEMENT_F16 ? 0x1p-25 : 0,
                        .least_normal = is_f64 ? 0x1p-1022 : 0x1p-126,
                        .smallest = is_f64 ? 0x1p-1074 : 0x1p-149,
                        .codes = attention_has_codes(p) ? unit : 0,
                        .rounds_even = attention_has_key_scales(p),
                        .parts = (double)(parts_of(p) + (key_warps(p) > 1 ? key_warps(p) : 0)),
                        .is_mma = is_mma,
                        .is_random = is_random};
}

enum { AT_ONCE = 8 /* of which every head_dim is a multiple */ };

static long double score_of(const query *t, const double *q, const double *k, double *size)
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

static bool is_seen(const query *t, uint64_t j)
{
    return j >= t->begin || j < t->first_keys;
}

static double real_of(problem *p, const char *name)
{
    const argument *a = problem_find(p, name);
    return a ? a->real : 0;
}

/* Element of a row of mask, or of the slopes or the sinks. */
static double element_of(problem *p, const char *name, uint64_t i)
{
    const argument *a = problem_find(p, name);
    return a && a->count > 0 ? element_get(a->about->type, a->host, i) : -INFINITY;
}

/* The product's error does not grow: tanh is nowhere steeper than 1. */
static void shape_score(problem *p, query *t, uint64_t j)
{
    double cap = real_of(p, "softcap");
    long double *score = &t->score[j];
    t->shaping[j] = 0;
    if (problem_has_parameter(p, "score", "softcap")) {
        t->size[j] = isinf((double)*score) ? 0 : t->size[j]; /* the cap of an infinity is exact */
        *score = cap > 0 ? cap * tanhl(*score / cap) : isnan(*score) ? *score : 0;
        t->shaping[j] = 12 * cap;
    } else if (problem_has_parameter(p, "score", "alibi")) {
        double away = t->slope * fabs((double)(t->own - (int64_t)j));
        *score -= away;
        t->shaping[j] = 4 * fabs(away);
    } else if (problem_has_parameter(p, "score", "mask")) {
        double added = element_of(p, "mask", t->mask + j);
        *score += added;
        t->shaping[j] = isfinite(added) ? 4 * fabs(added) : 0;
    }
}

static void find_scores(problem *p, query *t, double scale)
{
    argument *q = problem_find(p, "q");
    double row[MOST_HEAD_DIM];
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

/* A NaN among the scores, or +infinity: O and the logarithm are NaN. */
static bool is_lost(const query *t)
{
    return isnan(t->most) || t->most == INFINITY;
}

static double deviation(const query *t, const arithmetic *a, uint64_t j)
{
    double size = t->size[j];
    return a->unit * ((grow(a, (double)t->dim) + 2) * size + t->shaping[j] +
                      2 * (double)(t->most - t->score[j]) + 8) +
           (a->product + a->codes) * size;
}

static void find_weights(query *t, const arithmetic *a)
{
    t->sum = t->lost = 0;
    if (!isfinite(t->most))
        return;
    for (uint64_t j = 0; j < t->seen; j++) {
        t->weight[j] = expl(t->score[j] - t->most);
        t->sum += t->weight[j];
    }
    long double sink = expl(t->sink - t->most);
    t->sum += sink;
    t->sink_loss = sink > 0 ? (double)(sink / t->sum) * a->unit *
                                  (2 * fabs(t->sink) + 2 * (double)(t->most - t->sink) + 8)
                            : 0;
    t->lost = t->sink_loss;
    for (uint64_t j = 0; j < t->seen; j++) {
        t->weight[j] /= t->sum;
        t->loss[j] = t->weight[j] > 0 ? (double)t->weight[j] * deviation(t, a, j) : 0;
        t->lost += t->loss[j];
    }
}

/* Sums over the keys, of each column. */
typedef struct columns {
    double r[MOST_HEAD_DIM];
    long double wide[MOST_HEAD_DIM]; /* r of f64 */
    double p_size[MOST_HEAD_DIM], spread[MOST_HEAD_DIM], v_size[MOST_HEAD_DIM];
} columns;

static void add_values(const query *t, columns *c)
{
    for (uint64_t j = 0; j < t->seen; j++) {
        const double *v = t->values + t->v[j], weight = (double)t->weight[j];
        if (t->score[j] == -INFINITY)
            continue;
        for (uint64_t d = 0; d < t->dim_v; d++) {
            c->r[d] += weight * (v[d] * t->v_scale[j]);
            c->p_size[d] += weight * fabs(v[d] * t->v_scale[j]);
            c->v_size[d] += fabs(v[d]) * t->v_weighed[j];
        }
        for (uint64_t d = 0; d < t->dim_v && t->is_wide; d++)
            c->wide[d] += t->weight[j] * v[d];
    }
    for (uint64_t d = 0; d < t->dim_v && t->is_wide; d++)
        c->r[d] = (double)c->wide[d];
    for (uint64_t j = 0; j < t->seen; j++) {
        const double *v = t->values + t->v[j], loss = t->loss[j];
        for (uint64_t d = 0; d < t->dim_v && loss > 0; d++)
            c->spread[d] += loss * fabs(v[d] * t->v_scale[j] - c->r[d]);
    }
}

static void expect_row(problem *p, const query *t, const arithmetic *a, uint64_t first)
{
    argument *out = problem_find(p, "out");
    for (uint64_t d = 0; d < t->dim_v && !isfinite(t->most); d++)
        out->expected_value[first + d] = is_lost(t) ? NAN : 0;
    if (!isfinite(t->most))
        return;
    columns c;
    memset(&c, 0, sizeof c);
    add_values(t, &c);
    for (uint64_t d = 0; d < t->dim_v; d++) {
        double sums = values_lose(a, t) * c.p_size[d];
        sums += (a->tiny_weight + a->least_normal) * c.v_size[d] / (double)t->sum +
                a->smallest * (double)(t->seen + 2);
        out->expected_value[first + d] = c.r[d];
        out->bound[first + d] = c.spread[d] + t->sink_loss * fabs(c.r[d]) + sums + a->out * fabs(c.r[d]) +
                                number_smallest(out->about->type) / 2;
    }
}

static void expect_log(problem *p, const query *t, const arithmetic *a, uint64_t i)
{
    argument *lse = problem_find(p, "lse");
    if (!isfinite(t->most)) {
        lse->expected_value[i] = is_lost(t) ? NAN : -INFINITY;
        return;
    }
    long double log = t->most + logl(t->sum);
    lse->expected_value[i] = (double)log;
    lse->bound[i] = weights_lose(a, t) + t->lost + 8 * a->unit * (double)(fabsl(log) + fabsl(t->most));
}

/* Query i stands at key i + k_length - q_length + causal_offset. */
static void find_window(problem *p, const attention_sequence *s, query *t, uint64_t i)
{
    int64_t length = (int64_t)s->k_length, left = (int64_t)problem_integer(p, "window_left");
    int64_t right =
        problem_has_parameter(p, "causal", "true") ? 1 : (int64_t)problem_integer(p, "window_right");
    t->own = (int64_t)i + length - (int64_t)s->q_length + (int32_t)problem_integer(p, "causal_offset");
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

static int kind_at(problem *p, int kind);

static bool has_e4m3(const problem *p)
{
    return problem_has_parameter(p, "kv", "e4m3");
}

static const double *decode(problem *p, const char *name)
{
    const argument *a = attention_keys(p, name);
    double *values = pool_allocate(&p->memory, (size_t)(a->count + 1) * sizeof *values);
    for (uint64_t i = 0; i < a->count; i++)
        values[i] = attention_has_codes(p)
                        ? codes_decode(has_e4m3(p), (unsigned)element_bits(a->about->type, a->host, i))
                        : element_get(a->about->type, a->host, i);
    return values;
}

/* Of key j of a head. */
static double scale_of(problem *p, const attention_sequence *s, const char *matrix, uint64_t kv_head,
                       uint64_t j)
{
    const argument *a = attention_scales(p, matrix);
    if (!a)
        return 1;
    return element_get(a->about->type, a->host,
                       attention_has_key_scales(p) ? attention_key_at(p, s, "scale", kv_head, j) : kv_head);
}

/* Weights in F16 are multiplied by 32 times a key's scale. */
static double weighed(const problem *p, double v_scale)
{
    const bool is_f16 =
        problem_has_parameter(p, "type", "f16") && problem_has_parameter(p, "strategy", "mma");
    return !attention_has_key_scales(p) ? v_scale : is_f16 ? 0x1p-5 : 1;
}

/* All queries of a head. */
static void expect_head(problem *p, query *t, const arithmetic *a, uint64_t batch, uint64_t head)
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
        find_weights(t, a);
        expect_row(p, t, a, attention_query_at(p, &s, "out", head, i));
        expect_log(p, t, a, attention_log_at(p, &s, head, i));
    }
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *lse = problem_find(p, "lse");
    uint64_t dim = problem_parameter(p, "head_dim"), heads = problem_integer(p, "q_heads");
    int kind = kind_at(p, pattern->number);
    arithmetic a =
        arithmetic_of(p, out->about->type, dim, kind == pattern->number && pattern->flags & PATTERN_RANDOM);
    a.drifts = kind == ATTENTION_DRIFT;
    size_t keys = (size_t)problem_integer(p, "k_length") + 1;
    query t = {.dim = dim,
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
    expect_values(p, lse);
    if (problem_find(p, "tile_counters"))
        expect_bits(p, problem_find(p, "tile_counters")); /* all 0, as before */
    for (uint64_t n = 0; n < problem_integer(p, "batch") * heads; n++)
        expect_head(p, &t, &a, n / heads, n % heads);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* What is filled: rows are counted by their place in memory, so many elements apart. */
typedef struct matrix {
    argument *a;
    int kind;
    double size;      /* of numbers that make scores */
    double largest_v; /* as large as the sums of weights allow */
    uint64_t dim, keys, tile_k, apart, rows;
    bool is_mma, has_codes, is_e4m3;
    random_stream s;
} matrix;

static double q_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    switch (m->kind) {
    case ATTENTION_EXTREME:
    case ATTENTION_RISING:
    case ATTENTION_FALLING:
        return m->size;
    case ATTENTION_LATE:
        return 1;
    case ATTENTION_DRIFT:
        return column >= 8 ? 0 : (row + row / 8) % 2 ? 1.3125 : 1;
    case ATTENTION_CHUNKS_RISE:
    case ATTENTION_CHUNKS_NONE:
    case ATTENTION_CHUNKS_LIKE:
        return 1 + (double)(row % 16) / 16;
    default:
        return normal;
    }
}

/* Keys in which lanes' sums begin have 0, in the second chunk -2. The others' weights are 0.98 ulps of 1, or e^-21: seven
 * columns come near the score, one to it. */
static double drift_of(const matrix *m, uint64_t row, uint64_t column)
{
    element_type type = m->a->about->type;
    double root = sqrt((double)m->dim), score = log(0.98 * 0x1p-23) * root;
    double most = number_decode(type, number_encode(type, score / 7));
    if (column >= 8)
        return 0;
    if (row % CHUNK < 8 && row % 2 == 0)
        return row < CHUNK ? 0 : -2 * root / 8;
    return column < 7 ? most : score - 7 * most;
}

static double k_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    const double size = m->size, step = 1 / sqrt((double)m->dim); /* raises a score by 1 where Q is 1 */
    switch (m->kind) {
    case ATTENTION_DOMINATING:
        return row % 37 == 20 ? 6 * normal : normal / 4;
    case ATTENTION_EXTREME:
        return random_bits(random_fork(m->s, 7), row) & 1 ? size : -size;
    case ATTENTION_RISING:
        return size * (double)row / (double)m->rows + normal / 64;
    case ATTENTION_FALLING:
        return size * (double)(m->rows - row) / (double)m->rows + normal / 64;
    case ATTENTION_LATE:
        if (row < m->tile_k && column == 0 && m->keys > m->tile_k)
            return -INFINITY;
        return (8 * row >= 7 * m->rows ? 3 : 2 * row >= m->rows ? 1 : 0) * step + normal / 4;
    case ATTENTION_DRIFT:
        return drift_of(m, row, column);
    case ATTENTION_CHUNKS_RISE:
        return (row >= CHUNK ? 4.7 : 0) * step + normal / 4;
    case ATTENTION_CHUNKS_NONE:
        return row >= CHUNK ? normal : column == 0 ? -INFINITY : 0;
    default:
        return normal;
    }
}

static double v_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    element_type type = m->a->about->type;
    if (m->kind == ATTENTION_LARGE_V)
        return normal > 0 ? m->largest_v : -m->largest_v;
    if (m->kind >= ATTENTION_CHUNKS_RISE) /* sums of thousands do not hide a 1 */
        return normal * (type == ELEMENT_F16 ? 0x1p-10 : 0x1p-14);
    return m->kind == ATTENTION_ONE_HOT ? column == row % m->apart : normal;
}

/* An infinity in K is a score of +infinity to some queries, of -infinity to others. */
static void put_nonfinite(argument *a, uint64_t dim, random_stream s)
{
    uint64_t rows = a->count / dim, only = rows ? random_below(s, 0, rows) : 0;
    random_stream of_row = random_fork(s, 1), column = random_fork(s, 2), value = random_fork(s, 3);
    for (uint64_t row = 0; row < rows; row++) {
        bool is_hit = a->about->name[0] == 'k' ? row == only : random_below(of_row, row, 8) == 0;
        if (is_hit)
            element_set(a->about->type, a->host, row * dim + random_below(column, row, dim),
                        inputs_nonfinite(value, row));
    }
}

/* ---- codes ------------------------------------------------------------------------------------------------------ */

/* What the largest code of a matrix stands for, but for factors of heads and keys of at most 1. */
static double most_of(const matrix *m)
{
    const bool is_k = m->a->about->name[0] == 'k';
    switch (m->kind) {
    case ATTENTION_DOMINATING:
        return is_k ? 24 : 4;
    case ATTENTION_EXTREME:
    case ATTENTION_RISING:
    case ATTENTION_FALLING:
        return is_k ? m->size : 4;
    case ATTENTION_LARGE_V:
        return is_k ? 4 : m->largest_v;
    case ATTENTION_CHUNKS_RISE:
    case ATTENTION_CHUNKS_LIKE:
        return is_k ? 4 : 0x1p-8;
    case INPUT_DENORMAL:
        return 0x1p-20;
    default:
        return 4;
    }
}

/* Exactly an f32. */
static double nominal_scale(const matrix *m)
{
    return (float)(most_of(m) / (m->is_e4m3 ? 448 : 128));
}

/* A code as a signed byte. */
static int code_at(const matrix *m, uint64_t i)
{
    const uint64_t row = i / m->apart, column = i % m->apart, bits = random_bits(random_fork(m->s, 9), i);
    const double normal = random_normal(m->s, i);
    const bool is_k = m->a->about->name[0] == 'k';
    const int largest = m->is_e4m3 ? CODES_E4M3_LARGEST : 127, sign = bits & 1 ? -CODES_SIGN : 0;
    switch (m->kind) {
    case INPUT_REAL: /* any but a NaN */
        return m->is_e4m3 ? sign + (int)(bits / 2 % CODES_E4M3_NAN) : (int)(bits & 255) - 128;
    case INPUT_DENORMAL:
        return m->is_e4m3 ? sign + (int)(bits / 2 % 8) : (int)(bits / 2 % 3) - 1;
    case INPUT_HUGE_TINY:
        return bits / 2 % 2 ? (m->is_e4m3 || sign == 0 ? sign + largest : sign) : (int)(bits / 4 % 2);
    case ATTENTION_LARGE_V:
        if (!is_k)
            return m->is_e4m3 || normal > 0 ? (normal > 0 ? 0 : -CODES_SIGN) + largest : -128;
        break;
    default:
        break;
    }
    const double value = is_k ? k_of(m, row, column, normal) : v_of(m, row, column, normal);
    return codes_encode(m->is_e4m3, value / nominal_scale(m));
}

/* Kinds whose scores are what matters have one scale. */
static double factor_at(const matrix *m, uint64_t i, bool is_of_key)
{
    static const double of_heads[] = {1, 0.75, 0.5};
    random_stream s = random_fork(m->s, 10);
    if (!is_of_key)
        return of_heads[i % 3];
    if (m->kind == INPUT_HUGE_TINY)
        return exp2(-30 * (double)random_below(s, i, 3)) * (random_below(random_fork(s, 1), i, 8) > 0);
    return m->kind > ATTENTION_DOMINATING && m->kind != ATTENTION_NONFINITE
               ? 1
               : exp2(-3 * (double)random_below(s, i, 1024) / 1024);
}

/* A NaN is in one code of K, or in the scale of one of its keys. */
static void fill_codes(problem *p, const matrix *m)
{
    argument *codes = m->a, *scales = attention_scales(p, m->a->about->name);
    const double nominal = nominal_scale(m);
    for (uint64_t i = 0; i < codes->count; i++)
        element_set(codes->about->type, codes->host, i, code_at(m, i));
    for (uint64_t i = 0; i < scales->count; i++)
        element_set(scales->about->type, scales->host, i,
                    nominal * factor_at(m, i, attention_has_key_scales(p)));
    if (m->kind != ATTENTION_NONFINITE || codes->about->name[0] != 'k')
        return;
    if (m->is_e4m3 && codes->count > 0)
        element_set(codes->about->type, codes->host, random_below(random_fork(m->s, 8), 0, codes->count),
                    CODES_E4M3_NAN);
    else if (attention_has_key_scales(p) && scales->count > 0)
        element_set(scales->about->type, scales->host, random_below(random_fork(m->s, 8), 0, scales->count),
                    NAN);
}

static void fill(const matrix *m)
{
    element_type type = m->a->about->type;
    const char name = m->a->about->name[0];
    if (m->kind < ATTENTION_DOMINATING) {
        inputs_fill(m->a, (input_kind)m->kind, m->s);
        return;
    }
    for (uint64_t i = 0; i < m->a->count; i++) {
        uint64_t row = i / m->apart, column = i % m->apart;
        double normal = random_normal(m->s, i);
        element_set(type, m->a->host, i,
                    name == 'q'   ? q_of(m, row, column, normal)
                    : name == 'k' ? k_of(m, row, column, normal)
                                  : v_of(m, row, column, normal));
    }
    if (m->kind == ATTENTION_NONFINITE && name != 'v')
        put_nonfinite(m->a, m->dim, random_fork(m->s, 8));
}

/* Rows that follow each other at once, with a gap, or that overlap; else some number of elements makes one. */
static matrix matrix_of(problem *p, const char *name, int kind, double size, random_stream s)
{
    char stride[32];
    strcat(strcpy(stride, name), "_row_stride");
    uint64_t dim = attention_dim(p, name), apart = problem_integer(p, stride);
    const bool has_codes = name[0] != 'q' && attention_has_codes(p);
    const element_type of_out = problem_find(p, "out")->about->type;
    matrix m = {.a = has_codes ? attention_keys(p, name) : problem_find(p, name),
                .kind = kind,
                .size = size,
                .dim = dim,
                .keys = problem_integer(p, "k_length"),
                .tile_k = problem_parameter(p, "tile_k"),
                .apart = apart > 0 && (apart <= 2 * dim || name[0] == 'q') ? apart : dim,
                .is_mma = problem_has_parameter(p, "strategy", "mma"),
                .has_codes = has_codes,
                .is_e4m3 = has_e4m3(p),
                .s = s};
    m.largest_v =
        of_out == ELEMENT_F16 ? number_largest(of_out) : number_largest(of_out) / (4 * (double)(m.keys + 1));
    m.rows = m.a->count / m.apart + 1;
    return m;
}

/* Where rows of Q are far apart the size is for what goes from tile to tile, or from chunk to chunk, of which many inputs
 * show little. Others are for which keys are seen: there all weigh alike, or nearly. */
static int kind_at(problem *p, int kind)
{
    if (problem_integer(p, "q_row_stride") == problem_parameter(p, "head_dim") + COUNTED_GAP)
        return kind == INPUT_NORMAL ? kind : ATTENTION_SCALE_0;
    if (problem_integer(p, "q_row_stride") != APART)
        return kind;
    if (!is_long(p))
        return kind == INPUT_NORMAL ? kind : kind == ATTENTION_DOMINATING ? ATTENTION_LATE : ATTENTION_RISING;
    if (problem_integer(p, "k_row_stride") == 0)
        return ATTENTION_CHUNKS_LIKE;
    if (attention_has_codes(p)) /* there is no infinity, nor scores between codes' */
        return ATTENTION_CHUNKS_RISE;
    bool is_none = kind == ATTENTION_NONFINITE || kind == ATTENTION_FALLING || kind == ATTENTION_SCALE_0 ||
                   kind == ATTENTION_EXTREME;
    return kind == ATTENTION_DOMINATING ? ATTENTION_DRIFT
           : is_none                    ? ATTENTION_CHUNKS_NONE
                                        : ATTENTION_CHUNKS_RISE;
}

/* Above scores, near them, and so far below that nothing is left of it, or none. */
static double sink_of(uint64_t head, double normal)
{
    return head % 3 == 0 ? 3 + fabs(normal) : head % 3 == 1 ? 2 * normal : normal > 0 ? -2000 : -INFINITY;
}

/* Near 0, so that thousands of keys count. */
static double slope_of(uint64_t head, bool is_near)
{
    return exp2(is_near ? -13 : -1 - (double)(head % 8));
}

/* A mask hides one key in five, and with extremes all of some queries. */
static void fill_shaping(problem *p, int kind, random_stream s)
{
    static const char *const names[] = {"sinks", "alibi_slopes", "mask"};
    argument *cap = problem_find(p, "softcap");
    if (cap)
        cap->real = kind == ATTENTION_SCALE_0 ? 0 : kind == ATTENTION_EXTREME ? 0.125 : 30;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        argument *a = problem_find(p, names[n]);
        random_stream of = random_fork(s, 10 + n);
        for (uint64_t i = 0; a && i < a->count; i++) {
            double normal = random_normal(of, i);
            bool is_hit = random_below(random_fork(of, 1), i, 5) == 0;
            double value = n == 1 ? slope_of(i, kind == ATTENTION_SCALE_0 || kind >= ATTENTION_CHUNKS_RISE)
                           : n == 2 && is_hit          ? -INFINITY
                           : kind == ATTENTION_EXTREME ? (normal > 0 ? 300 : -300)
                           : n == 0                    ? sink_of(i, normal)
                                                       : 2 * normal;
            element_set(a->about->type, a->host, i, value);
        }
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    static const char *const names[] = {"q", "k", "v"};
    argument *scale = problem_find(p, "scale");
    double dim = (double)problem_parameter(p, "head_dim");
    int kind = kind_at(p, pattern->number);
    double exact = kind == ATTENTION_SCALE_0 ? 0 : 1 / sqrt(dim);
    double score = kind == ATTENTION_EXTREME ? 1e4 : 60, size = sqrt(score / sqrt(dim));
    scale->real = number_decode(scale->about->type, number_encode(scale->about->type, exact));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        matrix m = matrix_of(p, names[i], kind, size, random_fork(s, i + 1));
        if (m.has_codes)
            fill_codes(p, &m);
        else
            fill(&m);
    }
    fill_shaping(p, kind, s);
    attention_make_layout(p);
    attention_poison(p);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",     PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"dominating", PATTERN_LARGE,                  ATTENTION_DOMINATING},
    {"extreme",    0,                              ATTENTION_EXTREME},
    {"rising",     0,                              ATTENTION_RISING},
    {"falling",    0,                              ATTENTION_FALLING},
    {"late",       0,                              ATTENTION_LATE},
    {"scale-0",    0,                              ATTENTION_SCALE_0},
    {"large-v",    0,                              ATTENTION_LARGE_V},
    {"one-hot",    0,                              ATTENTION_ONE_HOT},
    {"real",       0,                              INPUT_REAL},
    {"denormal",   0,                              INPUT_DENORMAL},
    {"huge-tiny",  0,                              INPUT_HUGE_TINY},
    {"nonfinite",  PATTERN_NONFINITE,              ATTENTION_NONFINITE},
    {NULL,         0,                              0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Where rows and heads lie. */
typedef enum layout {
    HEADS_FIRST, /* batch, head, row */
    ROWS_FIRST,  /* batch, row, head */
    GAPS,        /* Q, K and V with gaps between rows, heads and batches */
    ONE_KV,      /* all batches share K and V */
    OVERLAPPING, /* a row of K or V begins a few elements behind the one before it: few elements, many rows */
    FAR_QUERIES, /* the same; rows of Q far apart */
    ONE_VALUE,   /* and one row of V for all keys */
    ONE_ROW,     /* and of K */
    COUNTED      /* as OVERLAPPING, and inputs in which each key counts */
} layout;

typedef struct lengths {
    uint64_t batch, q_heads, kv_heads, q, k;
} lengths;

typedef struct sight {
    uint64_t left, right, first; /* window_left, window_right, first_keys */
    int64_t offset;
    bool has_sinks;
} sight;

static void set(size_plan *plan, const char *prefix, const char *suffix, uint64_t value)
{
    char name[32];
    strcpy(name, prefix);
    strcat(name, suffix);
    problem_find(plan->problem, name)->integer = value;
}

static void set_strides(size_plan *plan, const char *prefix, uint64_t heads, uint64_t rows, layout where,
                        uint64_t gap)
{
    uint64_t dim = attention_dim(plan->problem, prefix), row = dim + gap, head;
    if (where >= OVERLAPPING)
        row = gap;
    head = where == ROWS_FIRST ? dim : rows * row + 3 * gap;
    set(plan, prefix, "_row_stride", where == ROWS_FIRST ? heads * dim : row);
    set(plan, prefix, "_head_stride", head);
    set(plan, prefix, "_batch_stride",
        where == ONE_KV ? 0 : heads * (where == ROWS_FIRST ? rows * dim : head) + 5 * gap);
}

/* Of the parts that a call without splits may have, or of its splits. */
static uint64_t records(problem *p, uint64_t rows)
{
    uint64_t tile_k = problem_parameter(p, "tile_k"), splits = problem_integer(p, "splits");
    uint64_t tiles = (problem_integer(p, "k_length") + 2 * tile_k - 1) / (2 * tile_k);
    uint64_t most = rows * (tiles < 1 ? 1 : tiles < MOST_PARTS ? tiles : MOST_PARTS);
    uint64_t few = MOST_BLOCKS * problem_parameter(p, "tile_q"), asked = splits > 1 ? rows * splits : 0;
    most = most < few ? most : few;
    return most > asked ? most : asked;
}

/* Odd rows; one matrix for all heads where there are several batches. */
static void set_mask(size_plan *plan, lengths n)
{
    uint64_t row = n.k | 1, head = n.batch > 1 ? 0 : n.q * row;
    set(plan, "mask", "_row_stride", row);
    set(plan, "mask", "_head_stride", head);
    set(plan, "mask", "_batch_stride", n.q * row);
}

/* Scales of keys, one behind the other, or some apart. */
static void set_scale_strides(size_plan *plan, uint64_t heads, uint64_t rows, layout where)
{
    const bool by_rows = where == ROWS_FIRST;
    const uint64_t row = where == GAPS ? 3 : 1, head = rows * row + (where == GAPS ? 1 : 0);
    if (!attention_has_key_scales(plan->problem))
        return;
    set(plan, "scale", "_row_stride", by_rows ? heads : row);
    set(plan, "scale", "_head_stride", by_rows ? 1 : head);
    set(plan, "scale", "_batch_stride", where == ONE_KV ? 0 : heads * (by_rows ? rows : head));
}

static void add_size(size_plan *plan, lengths n, layout where, const sight *seen, bool is_always)
{
    static const struct {
        uint64_t q, k, v;
    } gaps[] = {[GAPS] = {8, 8, 16},         [OVERLAPPING] = {8, 8, 16}, [FAR_QUERIES] = {APART, 8, 16},
                [ONE_VALUE] = {APART, 8, 0}, [ONE_ROW] = {APART, 0, 0},  [COUNTED] = {COUNTED_GAP, 8, 16}};
    static const attention_lengths lengths_by[] = {
        [HEADS_FIRST] = LENGTHS_BY_OFFSETS, [ROWS_FIRST] = LENGTHS_IN_PART,
        [GAPS] = LENGTHS_IN_SLOTS,          [ONE_KV] = LENGTHS_ALL,
        [OVERLAPPING] = LENGTHS_BY_OFFSETS, [FAR_QUERIES] = LENGTHS_BY_OFFSETS,
        [ONE_VALUE] = LENGTHS_BY_OFFSETS,   [ONE_ROW] = LENGTHS_BY_OFFSETS,
        [COUNTED] = LENGTHS_BY_OFFSETS};
    layout of_q = where == ONE_KV ? HEADS_FIRST : where == OVERLAPPING || where == COUNTED ? GAPS : where;
    if (plan->is_replacing && strncmp(plan->limits.only.name, "out_", strlen("out_")) == 0) {
        plan->obstacle = "its reference knows no other gaps in out than those that are tried anyhow";
        return;
    }
    n.batch = size_plan_value(plan, "batch", n.batch);
    n.q_heads = size_plan_value(plan, "q_heads", n.q_heads);
    n.kv_heads = size_plan_value(plan, "kv_heads", n.kv_heads);
    n.q = size_plan_value(plan, "q_length", n.q);
    n.k = size_plan_value(plan, "k_length", n.k);
    set(plan, "batch", "", n.batch);
    set(plan, "q_heads", "", n.q_heads);
    set(plan, "kv_heads", "", n.kv_heads);
    set(plan, "q_length", "", n.q);
    set(plan, "k_length", "", n.k);
    set(plan, "window_left", "", seen->left);
    set(plan, "window_right", "", seen->right);
    set(plan, "first_keys", "", seen->first);
    set(plan, "causal_offset", "", (uint64_t)seen->offset);
    problem_find(plan->problem, "sinks")->is_null = !seen->has_sinks;
    if (problem_find(plan->problem, "mask"))
        set_mask(plan, n);
    attention_plan_layout(plan->problem, lengths_by[where]);
    n.q = attention_query_rows(plan->problem);
    n.k = attention_key_rows(plan->problem);
    set_strides(plan, "q", n.q_heads, n.q, of_q, gaps[where].q);
    const uint64_t wider =
        attention_has_codes(plan->problem) && gaps[where].k == 8 ? 2 : 1; /* whole units of codes */
    set_strides(plan, "k", n.kv_heads, n.k, where, wider * gaps[where].k);
    set_strides(plan, "v", n.kv_heads, n.k, where, gaps[where].v);
    set_scale_strides(plan, n.kv_heads, n.k, where);
    set_strides(plan, "out", n.q_heads, n.q, where == ROWS_FIRST ? where : HEADS_FIRST, 0);
    uint64_t split_k = problem_parameter(plan->problem, "split_k"), rows = n.batch * n.q_heads * n.q,
             dim = attention_dim(plan->problem, "out");
    set(plan, "workspace_size", "",
        (split_k == 0  ? records(plan->problem, rows)
         : split_k > 1 ? rows * split_k
                       : 0) *
            (dim + 8));
    (is_always ? size_plan_add_always : size_plan_add)(plan);
}

static void add(size_plan *plan, lengths n, layout where)
{
    add_size(plan, n, where, &(sight){0}, false);
}

/* Few elements, but for O's, that make a kernel do most of what it does. */
static void add_always(size_plan *plan, lengths n, layout where)
{
    add_size(plan, n, where, &(sight){0}, true);
}

/* More keys than tensor cores sum at once, in every part: one query tile, and both rows of its lanes. */
static void add_long(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t split_k = problem_parameter(p, "split_k"), tile_k = problem_parameter(p, "tile_k");
    uint64_t group = problem_has_parameter(p, "pack_gqa", "true") ? 3 : 1, parts = split_k ? split_k : 1;
    const bool is_wide = attention_dim(p, "k") > 256 || attention_dim(p, "v") > 256;
    const uint64_t rows = is_wide                                ? 57
                          : problem_parameter(p, "tile_q") >= 64 ? 27
                                                                 : 9; /* in all blocks of a warp */
    lengths n = {1, group, 1, rows / group, parts * key_warps(p) * CHUNK + tile_k + 3};
    set(plan, "splits", "", !split_k);
    if (problem_has_parameter(p, "strategy", "mma"))
        split_k > 4 ? add(plan, n, ONE_ROW) : add_always(plan, n, split_k > 1 ? ONE_ROW : ONE_VALUE);
    set(plan, "splits", "", 0);
}

static void add_parts(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t split_k = problem_parameter(p, "split_k"), tile_k = problem_parameter(p, "tile_k");
    for (uint64_t i = 1; i <= 2; i++) /* a part has one key, and none */
        add_always(plan, (lengths){1, 2, 1, 5, (split_k - i) * tile_k + 1}, OVERLAPPING);
    add_always(plan, (lengths){1, 3, 1, 3, 128 * split_k + 5}, OVERLAPPING);
}

/* Parts that a call asks for: groups of them, which the last of each joins, have one part, some, all; and parts without keys.
 * Half of them with sinks.
 * What a call leaves open is in all other sizes. */
static void add_splits(size_plan *plan)
{
    static const uint64_t splits[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 65, 256};
    uint64_t tile_k = problem_parameter(plan->problem, "tile_k");
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        set(plan, "splits", "", splits[i]);
        add_size(plan, (lengths){1, 2, 1, 3, splits[i] * tile_k - 1}, OVERLAPPING,
                 &(sight){.has_sinks = i % 2}, true);
        add(plan, (lengths){2, 2, 1, 2, 3 * tile_k + 1}, ROWS_FIRST);
    }
    set(plan, "splits", "", 0);
}

/* A tile's rows, one more, and a head's queries in two tiles. */
static void add_packed(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k");
    add_always(plan, (lengths){1, tile_q / 4, 1, 4, tile_k + 3}, OVERLAPPING);
    add(plan, (lengths){1, 2 * (tile_q / 3 + 1), 2, 3, 10}, ROWS_FIRST);
    add_always(plan, (lengths){1, 3, 1, tile_q / 2 + 1, tile_q}, OVERLAPPING);
    add(plan, (lengths){1, 3, 1, tile_q / 2 + 1, tile_q}, GAPS);
}

/* Edges of what is seen at each key of a tile, so that each comparison of a key's number decides once: of first keys, and of
 * the length; a lane of mma has pairs of keys in each octet, and each edge has one of its keys on either side. */
static void add_edges(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_k = problem_parameter(p, "tile_k");
    const bool is_mma = problem_has_parameter(p, "strategy", "mma");
    enum { ROWS = 27 };
    for (uint64_t n = 0; n < tile_k / (is_mma ? 4 : 16); n++) {
        const uint64_t edge = is_mma ? n / 2 * 8 + (n % 2 ? 6 : 3) : n * 16 + (n % 2 ? 14 : 3);
        add_size(plan, (lengths){1, 1, 1, ROWS, 2 * tile_k + edge}, COUNTED,
                 &(sight){.left = 1, .first = edge}, true);
    }
}

/* The same of windows, which move with the rows: a lane's rows are eight apart. In front of them there are no keys. */
static void add_moving_edges(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_q = problem_parameter(p, "tile_q");
    const bool is_causal = problem_has_parameter(p, "causal", "true");
    for (uint64_t ahead = 0; ahead < 32; ahead += 8) {
        const uint64_t rows = ahead == 0 ? 2 * tile_q + 3 : tile_q;
        add_size(plan, (lengths){1, 1, 1, rows, rows + ahead}, COUNTED,
                 &(sight){.left = 4, .right = is_causal ? 0 : 3}, true);
    }
}

/* Windows of one key, and around a tile; first keys that fill a tile, or not; a gap of a tile between them and the window;
 * queries that stand before the first key, see a sink alone, or stand behind the last key. */
static void add_windows(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k"),
                   parts = problem_parameter(p, "split_k");
    const bool is_causal = problem_has_parameter(p, "causal", "true");
    const uint64_t few = 9, long_k = (parts + 5) * tile_k + 7;
    const struct {
        lengths n;
        sight seen;
    } rows[] = {
        {{1, 3, 1, few, long_k}, {.left = (parts + 2) * tile_k + 1, .first = 3, .has_sinks = true}},
        {{1, 1, 1, few, 4 * tile_k + 1},
         {.left = tile_k, .first = tile_k + 1}}, /* the last query does not see a tile's first key */
        {{1, 1, 1, few, 3 * tile_k}, {.left = 2, .first = tile_k}},
        {{1, 2, 1, few, tile_k + 3}, {.right = 1, .offset = -(int64_t)tile_k - 6, .has_sinks = true}},
        {{1, 1, 1, few, tile_k + 3}, {.left = 8, .offset = 5}},
        {{1, 1, 1, few, tile_k + 3}, {.left = 4, .first = 2, .offset = 1 << 29}},
        {{1, 1, 1, tile_q + 1, 2 * tile_k - 1},
         {.left = 7, .right = is_causal ? 1 : tile_k + 2, .offset = -2}},
        {{2, 2, 1, few, tile_k + 3}, {.right = is_causal ? 0 : 2}},
        {{1, 1, 1, 27, 9}, {.right = 1}}, /* of a tile's queries 18 see nothing */
        {{1, 1, 1, 27, tile_k + 3}, {.left = tile_k, .first = tile_k}}, /* first keys within the window */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_size(plan, rows[i].n, rows[i].seen.has_sinks ? OVERLAPPING : COUNTED, &rows[i].seen, true);
}

/* Sequences of every length beside each other, their rows by offsets and in slots. */
static void add_sequences(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k");
    const uint64_t parts = problem_parameter(p, "split_k"), tiles = 4 * (parts > 0 ? parts : 3);
    const sight window = {.left = tile_k / 2, .right = 1, .first = 3, .has_sinks = true};
    const sight gap = {.left = tiles * tile_k + tile_k / 2, .right = 1, .first = 3 * tile_k + 3};
    enum { ALL_LENGTHS = 9 };
    add_always(plan, (lengths){ALL_LENGTHS, 1, 1, tile_q + 5, 2 * tile_k + 5}, OVERLAPPING);
    add_size(plan, (lengths){ALL_LENGTHS, 3, 1, 3, 4 * tile_k + 9}, OVERLAPPING, &window, true);
    add(plan, (lengths){ALL_LENGTHS, 2, 1, 5, tile_k + 1}, ROWS_FIRST);
    add(plan, (lengths){ALL_LENGTHS, 2, 2, 2, tile_k + 1}, GAPS);
    add_always(plan, (lengths){ALL_LENGTHS, 1, 1, 2, 9}, GAPS);
    for (uint64_t i = 0; i < 2; i++) /* tiles far ahead in a part are behind the gap, in pages of two sizes */
        add_size(plan, (lengths){1, 3, 1, 3, (tiles + 7) * tile_k + 7 + i}, OVERLAPPING, &gap, true);
}

/* Around every edge of tiles, both sides together; whole tiles in every layout; heads and batches at small lengths. */
static void plan_sizes(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k"),
             dim = problem_parameter(p, "head_dim");
    static const uint64_t few[][2] = {{0, 2}, {1, 1}, {2, 2}, {5, 0}, {5, 1}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        add(plan, (lengths){1, 1, 1, few[i][0], few[i][1]}, HEADS_FIRST);
    for (uint64_t i = 0; i <= 2; i++)
        add_always(plan, (lengths){1, 1, 1, tile_q - 1 + i, tile_k - 1 + i}, OVERLAPPING);
    for (uint64_t k = tile_k - 1; k <= tile_k + 1; k++)
        add(plan, (lengths){1, 1, 1, 5, k}, HEADS_FIRST);
    for (uint64_t i = tile_q - 1; i <= tile_q + 1; i++)
        add(plan, (lengths){1, 1, 1, i, i + (i & 1)}, OVERLAPPING);
    add(plan, (lengths){1, 2, 1, tile_q, 2 * tile_k}, ROWS_FIRST);
    add(plan, (lengths){1, 2, 2, tile_q, 2 * tile_k}, GAPS);
    add(plan, (lengths){2, 1, 1, tile_q, 2 * tile_k}, ONE_KV);
    add_edges(plan);
    add_always(plan, (lengths){1, 1, 1, tile_q + 3, 2 * tile_k + 11},
               OVERLAPPING); /* causal: 8 beyond the diagonal */
    add_always(plan, (lengths){1, 1, 1, 19, 5 * tile_k - 3}, FAR_QUERIES);
    add(plan, (lengths){1, 1, 1, 100, 100}, HEADS_FIRST);
    if (problem_has_parameter(p, "causal", "true")) {
        add_always(plan, (lengths){1, 1, 1, 5, tile_k + 3},
                   COUNTED); /* query 0 does not see a tile's last key */
        add_always(plan, (lengths){1, 1, 1, 70, 33}, OVERLAPPING); /* 37 see nothing */
        if (problem_parameter(p, "split_k") == 1 &&
            dim * tile_q <= 4096) /* tiles begin in an order of their own */
            add_size(plan, (lengths){1, HEADS_TOGETHER + 2, HEADS_TOGETHER + 2, tile_q + 1, 3}, OVERLAPPING,
                     &(sight){.offset = (int64_t)tile_q}, true);
    }
    add(plan, (lengths){1, 1, 1, 3, 1000}, OVERLAPPING);
    add_windows(plan);
    add_moving_edges(plan);
    add_long(plan);
    if (problem_parameter(p, "split_k") > 1)
        add_parts(plan);
    if (problem_parameter(p, "split_k") == 0)
        add_splits(plan);
    add_always(plan, (lengths){2, 4, 2, 1, 3}, OVERLAPPING); /* heads and batches at little cost */
    add(plan, (lengths){2, 6, 2, 9, 21}, ROWS_FIRST);
    add(plan, (lengths){2, 3, 3, 5, 18}, GAPS);
    add(plan, (lengths){3, 2, 1, 4, 7}, ONE_KV);
    if (problem_has_parameter(p, "pack_gqa", "true"))
        add_packed(plan);
    if (!problem_has_parameter(p, "layout", "dense"))
        add_sequences(plan);
    add(plan, (lengths){0, 2, 1, 4, 7}, HEADS_FIRST);
    add(plan, (lengths){1, 0, 1, 4, 7}, HEADS_FIRST);
    if (dim <= 16 || plan->limits.is_full)
        add(plan, (lengths){1, 1, 1, 1000, 1000}, HEADS_FIRST);
}

const family_row attention_row = {
    .name = "attention",
    .args = "q out lse batch q_heads kv_heads q_length k_length scale workspace_size splits",
    .patterns = patterns,
    .plan = plan_sizes,
    .make = make,
    .expect = expect,
    .expects_nonfinite = true};
