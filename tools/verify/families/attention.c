/* Attention: reference, bound, inputs and sizes.
 *
 * With r exact, p_j the exact probabilities, s_j the scores, m their maximum, u half an ulp of the arithmetic (f64 for f64,
 * else f32), u_T of O's type, g(n) = n, sqrt(n) for random data, D = head_dim:
 *
 *     d_j = u * [(g(D) + 2) * |scale| * sum |q * k_j| + 2 * |s_j - m| + 8]
 *     |O - r| <= sum of p_j * d_j * |v_j - r|  +  u * (g(Lk) + 4) * sum of p_j * |v_j|  +  u_T * |r|
 *
 * With strategy mma d_j has (D / 16) * 2^-20 * |scale| * sum |q * k_j| more, and the second term is
 *
 *     (u_T + u * (g(3 / 2 * min(Lk, 4096)) + Lk / 4096 + 8)) * sum of p_j * |v_j|
 *
 * for f16 with 2^-25 * sum of |v_j| / l more, l the sum of e^(s_j - m): a tensor core cuts up to 5/4 of u off for each key,
 * a quarter of the keys is a lane's chain of weights, and after 4096 keys sums join a total. The logarithm of the sum of
 * exponentials is within
 *
 *     sum of p_j * d_j  +  u * (g(n) + 2 * splits + 8 + 8 * (|lse| + |m|))
 *
 * of it, where n, the chain of a lane's weights, is Lk / 16, with strategy mma min(Lk, 4096) / 4 + Lk / 4096. Weights below the least normal number may be 0, and each addition and product may be off by the smallest number:
 * that is in the bounds too, and is nothing elsewhere.
 */
#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

enum { MOST_HEAD_DIM = 256, CHUNK = 4096 /* keys that tensor cores sum before a total takes them */ };

static bool has_parameter(const problem *p, const char *name, const char *word)
{
    const char *text = manifest_param_value(p->variant, name);
    return text && strcmp(text, word) == 0;
}

static uint64_t parameter(const problem *p, const char *name)
{
    const char *text = manifest_param_value(p->variant, name);
    return text ? strtoull(text, NULL, 10) : 0;
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* One query against its keys. */
typedef struct query {
    uint64_t dim, seen; /* elements of a row; keys that it sees */
    uint64_t q, k, v;   /* first elements */
    uint64_t k_row, v_row;
    long double *score, *size; /* of each key: its score, |scale| * sum |q * k| */
    long double most, sum;     /* the largest score; the sum of e^(score - most) */
} query;

typedef struct arithmetic {
    double unit, out, product; /* u; u_T; (D / 16) * 2^-20 with mma */
    double splits;
    double tiny_weight, least_normal, smallest;
    bool is_mma, is_random;
} arithmetic;

static double grow(const arithmetic *a, double n)
{
    return a->is_random ? sqrt(n) : n;
}

/* Sums over so many keys, relative to the sum of magnitudes. */
static double values_lose(const arithmetic *a, double keys)
{
    if (!a->is_mma)
        return a->unit * (grow(a, keys) + 4);
    return a->out + a->unit * (grow(a, 1.5 * fmin(keys, CHUNK)) + keys / CHUNK + 8);
}

static double weights_lose(const arithmetic *a, double keys)
{
    double chain = a->is_mma ? fmin(keys, CHUNK) / 4 + keys / CHUNK : keys / 16;
    return a->unit * (grow(a, chain) + 2 * a->splits + 8);
}

static arithmetic arithmetic_of(const problem *p, element_type type, uint64_t dim, bool is_random)
{
    bool is_mma = has_parameter(p, "strategy", "mma"), is_f64 = type == ELEMENT_F64;
    double unit = is_f64 ? 0x1p-53 : 0x1p-24, of_type = number_unit(type);
    return (arithmetic){.unit = unit,
                        .out = of_type,
                        .product = is_mma ? ceil((double)dim / 16) * 0x1p-20 : 0,
                        .tiny_weight = is_mma && type == ELEMENT_F16 ? 0x1p-25 : 0,
                        .least_normal = is_f64 ? 0x1p-1022 : 0x1p-126,
                        .smallest = is_f64 ? 0x1p-1074 : 0x1p-149,
                        .splits = (double)parameter(p, "splits"),
                        .is_mma = is_mma,
                        .is_random = is_random};
}

static void find_scores(problem *p, query *t, double scale)
{
    argument *q = problem_find(p, "q"), *k = problem_find(p, "k");
    double row[MOST_HEAD_DIM];
    for (uint64_t d = 0; d < t->dim; d++)
        row[d] = element_get(q->about->type, q->host, t->q + d);
    t->most = -INFINITY;
    for (uint64_t j = 0; j < t->seen; j++) {
        long double sum = 0, size = 0;
        for (uint64_t d = 0; d < t->dim; d++) {
            long double term =
                (long double)row[d] * element_get(k->about->type, k->host, t->k + j * t->k_row + d);
            sum += term;
            size += fabsl(term);
        }
        t->score[j] = scale * sum;
        t->size[j] = fabs(scale) * size;
        if (t->score[j] > t->most || isnan(t->score[j]))
            t->most = t->score[j];
        if (isnan(t->most))
            break;
    }
    t->sum = 0;
    for (uint64_t j = 0; j < t->seen && isfinite(t->most); j++)
        t->sum += expl(t->score[j] - t->most);
}

/* A NaN among the scores, or +infinity: O and the logarithm are NaN. */
static bool is_lost(const query *t)
{
    return isnan(t->most) || t->most == INFINITY;
}

static long double probability(const query *t, uint64_t j)
{
    return expl(t->score[j] - t->most) / t->sum;
}

static double deviation(const query *t, const arithmetic *a, uint64_t j)
{
    double size = (double)t->size[j];
    return a->unit * ((grow(a, (double)t->dim) + 2) * size + 2 * (double)(t->most - t->score[j]) + 8) +
           a->product * size;
}

static void expect_row(problem *p, const query *t, const arithmetic *a, uint64_t first)
{
    argument *v = problem_find(p, "v"), *out = problem_find(p, "out");
    for (uint64_t d = 0; d < t->dim && !isfinite(t->most); d++)
        out->expected_value[first + d] = is_lost(t) ? NAN : 0;
    if (!isfinite(t->most))
        return;
    long double r[MOST_HEAD_DIM] = {0};
    double p_size[MOST_HEAD_DIM] = {0}, spread[MOST_HEAD_DIM] = {0}, v_size[MOST_HEAD_DIM] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t j = 0; j < t->seen; j++) {
            if (t->score[j] == -INFINITY)
                continue;
            long double exact = probability(t, j);
            double weight = (double)exact, d_j = pass ? deviation(t, a, j) : 0;
            for (uint64_t d = 0; d < t->dim; d++) {
                double x = element_get(v->about->type, v->host, t->v + j * t->v_row + d);
                if (pass == 1) {
                    spread[d] += weight * d_j * (double)fabsl(x - r[d]);
                    continue;
                }
                r[d] += exact * x;
                p_size[d] += weight * fabs(x);
                v_size[d] += fabs(x);
            }
        }
    }
    for (uint64_t d = 0; d < t->dim; d++) {
        double sums = values_lose(a, (double)t->seen) * p_size[d];
        sums += (a->tiny_weight + a->least_normal) * v_size[d] / (double)t->sum +
                a->smallest * (double)(t->seen + 2);
        out->expected_value[first + d] = (double)r[d];
        out->bound[first + d] =
            spread[d] + sums + a->out * (double)fabsl(r[d]) + number_smallest(out->about->type) / 2;
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
    double bound = weights_lose(a, (double)t->seen);
    for (uint64_t j = 0; j < t->seen; j++)
        bound += t->score[j] == -INFINITY ? 0 : (double)probability(t, j) * deviation(t, a, j);
    lse->expected_value[i] = (double)log;
    lse->bound[i] = bound + 8 * a->unit * (double)(fabsl(log) + fabsl(t->most));
}

static uint64_t keys_seen(problem *p, uint64_t i)
{
    uint64_t q_length = problem_integer(p, "q_length"), k_length = problem_integer(p, "k_length");
    if (!has_parameter(p, "causal", "true"))
        return k_length;
    return i + 1 + k_length > q_length ? i + 1 + k_length - q_length : 0;
}

static uint64_t stride(problem *p, const char *prefix, const char *suffix)
{
    char name[32];
    strcpy(name, prefix);
    strcat(name, suffix);
    return problem_integer(p, name);
}

static uint64_t first_of(problem *p, const char *matrix, uint64_t batch, uint64_t head)
{
    return batch * stride(p, matrix, "_batch_stride") + head * stride(p, matrix, "_head_stride");
}

static void expect(problem *p, const input_pattern *pattern)
{
    argument *out = problem_find(p, "out"), *lse = problem_find(p, "lse");
    uint64_t dim = parameter(p, "head_dim"), heads = problem_integer(p, "q_heads");
    uint64_t lengths = problem_integer(p, "q_length"), group = heads / problem_integer(p, "kv_heads");
    arithmetic a = arithmetic_of(p, out->about->type, dim, pattern->flags & PATTERN_RANDOM);
    size_t bytes = (size_t)(problem_integer(p, "k_length") + 1) * sizeof(long double);
    query t = {.dim = dim,
               .k_row = problem_integer(p, "k_row_stride"),
               .v_row = problem_integer(p, "v_row_stride"),
               .score = pool_allocate(&p->memory, bytes),
               .size = pool_allocate(&p->memory, bytes)};
    expect_values(p, out);
    expect_values(p, lse);
    if (problem_find(p, "arrivals"))
        expect_bits(p, problem_find(p, "arrivals")); /* all 0, as before */
    for (uint64_t n = 0; n < lse->count; n++) {
        uint64_t i = n % lengths, head = n / lengths % heads, batch = n / lengths / heads;
        t.q = first_of(p, "q", batch, head) + i * problem_integer(p, "q_row_stride");
        t.k = first_of(p, "k", batch, head / group);
        t.v = first_of(p, "v", batch, head / group);
        t.seen = keys_seen(p, i);
        find_scores(p, &t, problem_find(p, "scale")->real);
        expect_row(p, &t, &a, first_of(p, "out", batch, head) + i * problem_integer(p, "out_row_stride"));
        expect_log(p, &t, &a, n);
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum {
    ATTENTION_DOMINATING = 100, /* one key in 37 far above the others */
    ATTENTION_EQUAL,            /* all keys alike */
    ATTENTION_EXTREME,          /* scores of 1e4 and -1e4 */
    ATTENTION_RISING,           /* each tile's scores above those before */
    ATTENTION_FALLING,
    ATTENTION_SCALE_0,
    ATTENTION_LARGE_V,  /* as large as the sums of weights allow */
    ATTENTION_ONE_HOT,  /* V is 1 at one place in each row: every weight at its own */
    ATTENTION_NONFINITE /* NaN and infinities in one row of K, and in one of eight of Q */
};

static double q_of(int kind, double size, double normal)
{
    return kind == ATTENTION_EXTREME || kind == ATTENTION_RISING || kind == ATTENTION_FALLING ? size : normal;
}

static double k_of(int kind, double size, random_stream s, uint64_t row, uint64_t column, uint64_t rows,
                   double normal)
{
    switch (kind) {
    case ATTENTION_DOMINATING:
        return row % 37 == 20 ? 6 * normal : normal / 4;
    case ATTENTION_EQUAL:
        return random_normal(s, column);
    case ATTENTION_EXTREME:
        return random_bits(random_fork(s, 7), row) & 1 ? size : -size;
    case ATTENTION_RISING:
        return size * (double)row / (double)rows + normal / 64;
    case ATTENTION_FALLING:
        return size * (double)(rows - row) / (double)rows + normal / 64;
    default:
        return normal;
    }
}

static double v_of(int kind, element_type type, uint64_t row, uint64_t column, uint64_t dim, uint64_t keys,
                   double normal)
{
    double most =
        type == ELEMENT_F16 ? number_largest(type) : number_largest(type) / (4 * (double)(keys + 1));
    if (kind == ATTENTION_LARGE_V)
        return normal > 0 ? most : -most;
    return kind == ATTENTION_ONE_HOT ? column == row % dim : normal;
}

/* An infinity in K is a score of +infinity to some queries, of -infinity to others. */
static void put_nonfinite(argument *a, uint64_t dim, random_stream s)
{
    static const double values[3] = {NAN, INFINITY, -INFINITY};
    uint64_t rows = a->count / dim, only = rows ? random_below(s, 0, rows) : 0;
    random_stream of_row = random_fork(s, 1), column = random_fork(s, 2), value = random_fork(s, 3);
    for (uint64_t row = 0; row < rows; row++) {
        bool is_hit = a->about->name[0] == 'k' ? row == only : random_below(of_row, row, 8) == 0;
        if (is_hit)
            element_set(a->about->type, a->host, row * dim + random_below(column, row, dim),
                        values[random_below(value, row, 3)]);
    }
}

/* Rows are counted by their place in memory: with gaps and shared heads too, some number of elements makes one. */
static void fill(argument *a, int kind, double size, uint64_t dim, uint64_t keys, random_stream s)
{
    element_type type = a->about->type;
    if (kind < ATTENTION_DOMINATING) {
        inputs_fill(a, (input_kind)kind, s);
        return;
    }
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t row = i / dim, column = i % dim;
        double normal = random_normal(s, i);
        double x = a->about->name[0] == 'q'   ? q_of(kind, size, normal)
                   : a->about->name[0] == 'k' ? k_of(kind, size, s, row, column, a->count / dim + 1, normal)
                                              : v_of(kind, type, row, column, dim, keys, normal);
        element_set(type, a->host, i, x);
    }
    if (kind == ATTENTION_NONFINITE && a->about->name[0] != 'v')
        put_nonfinite(a, dim, random_fork(s, 8));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    static const char *const names[] = {"q", "k", "v"};
    argument *scale = problem_find(p, "scale");
    uint64_t dim = parameter(p, "head_dim");
    int kind = pattern->number;
    bool is_one_row = problem_integer(p, "k_row_stride") == 0 && problem_integer(p, "k_length") > CHUNK;
    if (is_one_row) /* a NaN in it, or zeros, would hide all that is behind it */
        kind = INPUT_NORMAL;
    double exact = kind == ATTENTION_SCALE_0 ? 0 : 1 / sqrt((double)dim);
    double score = kind == ATTENTION_EXTREME ? 1e4 : 60, size = sqrt(score / sqrt((double)dim));
    scale->real = number_decode(scale->about->type, number_encode(scale->about->type, exact));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fill(problem_find(p, names[i]), kind, size, dim, problem_integer(p, "k_length"),
             random_fork(s, i + 1));
    argument *v = problem_find(p, "v");
    for (uint64_t i = 0; is_one_row && i < v->count; i++) /* sums of thousands do not hide a 1 */
        element_set(v->about->type, v->host, i, element_get(v->about->type, v->host, i) * 0x1p-10);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",     PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"dominating", PATTERN_LARGE,                  ATTENTION_DOMINATING},
    {"equal",      0,                              ATTENTION_EQUAL},
    {"extreme",    0,                              ATTENTION_EXTREME},
    {"rising",     0,                              ATTENTION_RISING},
    {"falling",    0,                              ATTENTION_FALLING},
    {"scale-0",    0,                              ATTENTION_SCALE_0},
    {"large-v",    0,                              ATTENTION_LARGE_V},
    {"one-hot",    0,                              ATTENTION_ONE_HOT},
    {"uniform",    PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",       0,                              INPUT_REAL},
    {"denormal",   0,                              INPUT_DENORMAL},
    {"zero",       0,                              INPUT_ZERO},
    {"alternating", 0,                             INPUT_ALTERNATING},
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
    OVERLAPPING, /* a row begins a few elements behind the one before it: few elements, many rows */
    ONE_ROW      /* of K and of V, for all keys; those of Q far apart */
} layout;

typedef struct lengths {
    uint64_t batch, q_heads, kv_heads, q, k;
} lengths;

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
    uint64_t dim = parameter(plan->problem, "head_dim"), row = dim + gap, head;
    if (where == OVERLAPPING || where == ONE_ROW)
        row = gap;
    head = where == ROWS_FIRST ? dim : rows * row + 3 * gap;
    set(plan, prefix, "_row_stride", where == ROWS_FIRST ? heads * dim : row);
    set(plan, prefix, "_head_stride", head);
    set(plan, prefix, "_batch_stride",
        where == ONE_KV ? 0 : heads * (where == ROWS_FIRST ? rows * dim : head) + 5 * gap);
}

static void add(size_plan *plan, lengths n, layout where)
{
    enum { APART = 4000 };
    static const struct {
        uint64_t q, k, v;
    } gaps[] = {[GAPS] = {8, 8, 16}, [OVERLAPPING] = {24, 8, 16}, [ONE_ROW] = {APART, 0, 0}};
    layout of_q = where == ONE_KV ? HEADS_FIRST : where;
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
    set_strides(plan, "q", n.q_heads, n.q, of_q, gaps[where].q);
    set_strides(plan, "k", n.kv_heads, n.k, where, gaps[where].k);
    set_strides(plan, "v", n.kv_heads, n.k, where, gaps[where].v);
    set_strides(plan, "out", n.q_heads, n.q, where == ROWS_FIRST ? where : HEADS_FIRST, 0);
    uint64_t splits = parameter(plan->problem, "splits"), rows = n.batch * n.q_heads * n.q;
    set(plan, "workspace_size", "", splits > 1 ? rows * splits * (MOST_HEAD_DIM + 8) : 0);
    size_plan_add(plan);
}

/* More keys than tensor cores sum at once, in every part: one query tile. */
static void add_long(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t splits = parameter(p, "splits"), dim = parameter(p, "head_dim"), tile_k = parameter(p, "tile_k");
    enum { FEW_ELEMENTS = 8192, MANY_ELEMENTS = 65536, MUCH_WORK = 16 * CHUNK * 16 };
    bool is_much = splits * CHUNK * dim > MUCH_WORK;
    if (has_parameter(p, "strategy", "mma") &&
        plan->limits.max_elements >= (is_much ? MANY_ELEMENTS : FEW_ELEMENTS))
        add(plan, (lengths){1, 1, 1, 3, splits * CHUNK + tile_k + 3}, ONE_ROW);
    if (has_parameter(p, "strategy", "mma") && splits == 1 && plan->limits.max_elements >= MANY_ELEMENTS)
        add(plan, (lengths){1, 1, 1, 2, 2 * CHUNK + 7}, OVERLAPPING);
}

/* Around every edge of tiles, both sides together; whole tiles in every layout; heads and batches at small lengths. */
static void plan_sizes(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = parameter(p, "tile_q"), tile_k = parameter(p, "tile_k"), dim = parameter(p, "head_dim");
    static const uint64_t few[][2] = {{0, 2}, {1, 1}, {1, 2}, {2, 2}, {5, 0}, {5, 1}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        add(plan, (lengths){1, 1, 1, few[i][0], few[i][1]}, HEADS_FIRST);
    for (uint64_t k = tile_k - 1; k <= tile_k + 1; k++)
        add(plan, (lengths){1, 1, 1, 5, k}, k == tile_k ? OVERLAPPING : HEADS_FIRST);
    add(plan, (lengths){1, 1, 1, 5, tile_k + 3},
        HEADS_FIRST); /* causal: query 0 sees all of a tile but its last key */
    add(plan, (lengths){1, 1, 1, 5, 2 * tile_k + 1}, OVERLAPPING);
    for (uint64_t i = tile_q - 1; i <= tile_q + 1; i++)
        add(plan, (lengths){1, 1, 1, i, i + (i & 1)}, i == tile_q ? OVERLAPPING : HEADS_FIRST);
    add(plan, (lengths){1, 2, 1, tile_q, 2 * tile_k}, ROWS_FIRST);
    add(plan, (lengths){1, 2, 2, tile_q, 2 * tile_k}, GAPS);
    add(plan, (lengths){2, 1, 1, tile_q, 2 * tile_k}, ONE_KV);
    add(plan, (lengths){1, 1, 1, tile_q + 3, 2 * tile_k + 5}, OVERLAPPING);
    add(plan, (lengths){1, 1, 1, 100, 100}, HEADS_FIRST);
    add(plan, (lengths){1, 1, 1, 70, 33}, HEADS_FIRST); /* causal: 37 rows see nothing */
    add(plan, (lengths){1, 1, 1, 3, 1000}, HEADS_FIRST);
    add_long(plan);
    for (uint64_t i = 1; i <= 2 && parameter(p, "splits") > 1; i++) /* a part has one key, and none */
        add(plan, (lengths){1, 2, 1, 3, (parameter(p, "splits") - i) * tile_k + 1}, HEADS_FIRST);
    if (parameter(p, "splits") > 1)
        add(plan, (lengths){1, 1, 1, 1, 128 * parameter(p, "splits") + 5}, HEADS_FIRST);
    add(plan, (lengths){2, 6, 2, 9, 21}, ROWS_FIRST);
    add(plan, (lengths){2, 3, 3, 5, 18}, GAPS);
    add(plan, (lengths){3, 2, 1, 4, 7}, ONE_KV);
    if (has_parameter(p, "packed", "true")) { /* a tile's rows, one more, and a head's queries in two tiles */
        add(plan, (lengths){1, tile_q / 4, 1, 4, tile_k + 3}, HEADS_FIRST);
        add(plan, (lengths){1, 2 * (tile_q / 3 + 1), 2, 3, 10}, ROWS_FIRST);
        add(plan, (lengths){1, 3, 1, tile_q / 2 + 1, tile_q}, GAPS);
    }
    add(plan, (lengths){0, 2, 1, 4, 7}, HEADS_FIRST);
    add(plan, (lengths){1, 0, 1, 4, 7}, HEADS_FIRST);
    if (dim <= 16 || plan->limits.is_full)
        add(plan, (lengths){1, 1, 1, 1000, 1000}, HEADS_FIRST);
}

const family_row attention_row = {
    .name = "attention",
    .args = "q k v out lse batch q_heads kv_heads q_length k_length scale workspace_size",
    .patterns = patterns,
    .plan = plan_sizes,
    .make = make,
    .expect = expect,
    .expects_nonfinite = true};
