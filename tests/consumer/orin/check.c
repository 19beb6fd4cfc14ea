/* Compares each launch of the last layer with float64. The reference reads the launch's inputs back from the device, so errors
 * do not accumulate over launches. The bound is the one that `kiln families` states. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "layer.h"

#define HALF_ULP    0x1p-11 /* relative rounding error of f16 */
#define HALF_LEAST  0x1p-24
#define FLOAT_ULP   0x1p-24
#define FLOAT_LEAST 0x1p-149

typedef struct report {
    uint32_t count, wrong;
    double error, share; /* the largest error, absolute and relative to its bound */
} report;

static void compare(report *r, double found, double exact, double bound)
{
    const double error = fabs(found - exact);
    r->count++;
    if (!(error <= bound)) /* a NaN is wrong */
        r->wrong++;
    r->error = fmax(r->error, error);
    r->share = fmax(r->share, error / bound);
}

static bool print(const char *launch, report r)
{
    printf("  %-24s %6u  %.1e  %.3f%s\n", launch, r.count, r.error, r.share, r.wrong ? "  WRONG" : "");
    return r.wrong == 0;
}

/* ---- linear -------------------------------------------------------------------------------------------------------- */

/* A row of Q4_K. A block has two factors in f16, then 8 scales and 8 minima of 6 bits, then 256 codes of 4 bits; a weight is
 * scale * code - minimum. `parts` gets the sums of the two absolute values. */
static void decode_row(const matrix *w, uint32_t row, double *weights, double *parts)
{
    const unsigned char *first = w->blocks + (size_t)row * (w->columns / BLOCK) * BLOCK_BYTES;
    for (uint32_t i = 0; i < w->columns; i++) {
        const unsigned char *block = first + i / BLOCK * BLOCK_BYTES, *packed = block + 4;
        const uint32_t group = i % BLOCK / 32, at = group % 4;
        const unsigned both = block[16 + group / 2 * 32 + i % 32];
        unsigned scale = packed[at] & 63U, minimum = packed[at + 4] & 63U;
        if (group >= 4) {
            scale = (packed[at + 8] & 15U) | (packed[at] & 192U) >> 2;
            minimum = packed[at + 8] >> 4 | (packed[at + 4] & 192U) >> 2;
        }
        const double code = group % 2 ? both >> 4 : both & 15U;
        const double product = half_value((uint16_t)(block[0] | block[1] << 8)) * scale * code;
        const double subtracted = half_value((uint16_t)(block[2] | block[3] << 8)) * minimum;
        weights[i] = product - subtracted;
        parts[i] = fabs(product) + fabs(subtracted);
    }
}

typedef struct sum {
    double exact, bound; /* bound of the f32 sum, before it is rounded to y's type */
} sum;

/* Computes a row's product with h, and the terms of its bound for `activation: exact`. */
static sum multiply(const matrix *w, uint32_t row, const double *h, bool is_normed)
{
    static double weights[1 << 14], parts[1 << 14];
    const double k = w->columns, steps = 8 * ceil(k / 1024) + 5 + ceil(k / 2048) + 32;
    const double norm = is_normed ? 0x1p-22 + (4 * ceil(k / 1024) + 13) / 2 * 0x1p-24 + 4 * 0x1p-24 : 0;
    double exact = 0, size = 0;
    decode_row(w, row, weights, parts);
    for (uint32_t i = 0; i < w->columns; i++) {
        exact += h[i] * weights[i];
        size += fabs(h[i]) * parts[i];
    }
    return (sum){exact, norm * fabs(exact) + (steps + 8) * 0x1p-24 * size};
}

static void check_products(report *r, const matrix *w, const double *h, const double *y)
{
    for (uint32_t i = 0; i < w->rows; i++) {
        const sum s = multiply(w, i, h, true);
        compare(r, y[i], s.exact, s.bound + HALF_ULP * fabs(s.exact) + HALF_LEAST);
    }
}

static report check_added(const matrix *w, const double *x, const double *residual, const double *y)
{
    report r = {0};
    for (uint32_t i = 0; i < w->rows; i++) {
        const sum s = multiply(w, i, x, false);
        const double exact = s.exact + residual[i];
        compare(&r, y[i], exact,
                s.bound + 0x1p-23 * (fabs(s.exact) + fabs(residual[i])) + FLOAT_ULP * fabs(exact) +
                    FLOAT_LEAST);
    }
    return r;
}

static report check_gated(const matrix *up, const matrix *gate, const double *h, const double *y)
{
    report r = {0};
    for (uint32_t i = 0; i < up->rows; i++) {
        const sum u = multiply(up, i, h, true), g = multiply(gate, i, h, true);
        const double silu = g.exact / (1 + exp(-g.exact)), exact = silu * u.exact;
        const double of_silu = 1.13 * (g.bound + 0x1p-22 * fabs(g.exact)) + 0x1p-20 * fabs(silu);
        compare(&r, y[i], exact,
                HALF_ULP * fabs(exact) + HALF_LEAST + fabs(silu) * u.bound +
                    of_silu * (fabs(u.exact) + u.bound));
    }
    return r;
}

/* RMSNorm of the residual stream. */
static void normalise(const double *x, const float *gamma, uint32_t count, double *h)
{
    double squares = 0;
    for (uint32_t i = 0; i < count; i++)
        squares += x[i] * x[i];
    for (uint32_t i = 0; i < count; i++)
        h[i] = x[i] * (double)gamma[i] / sqrt(squares / count + (double)1e-5F);
}

/* ---- rope ---------------------------------------------------------------------------------------------------------- */

/* Element i of a head is paired with element i + HEAD_DIM / 2. */
static void check_rotated(report *r, const model *m, uint32_t position, const double *head,
                          const double *rotated)
{
    for (int i = 0; i < HEAD_DIM / 2; i++) {
        const double turns = (double)(m->frequencies[i] * position) * 0x1p-64; /* whole turns wrap around */
        const double c = cos(turns * 6.28318530717958647692), s = sin(turns * 6.28318530717958647692);
        const double a = head[i], b = head[i + HEAD_DIM / 2];
        const double exact[2] = {a * c - b * s, a * s + b * c};
        for (int j = 0; j < 2; j++)
            compare(r, rotated[i + j * HEAD_DIM / 2], exact[j],
                    0x1p-21 * (fabs(a) + fabs(b)) + HALF_ULP * fabs(exact[j]) + HALF_LEAST);
    }
}

/* ---- attention ----------------------------------------------------------------------------------------------------- */

typedef struct keys {
    const double **k, **v; /* one row per token */
    uint32_t count;
} keys;

/* Checks one head of the token. The bound is that of tensor cores, the larger one. */
static void check_head(report *r, const double *q, keys rows, const double *o, double *p, double *doubt)
{
    const double scale = 1 / sqrt(HEAD_DIM);
    double most = -INFINITY, total = 0;
    for (uint32_t j = 0; j < rows.count; j++) {
        double score = 0, size = 0;
        for (int i = 0; i < HEAD_DIM; i++) {
            score += scale * q[i] * rows.k[j][i];
            size += scale * fabs(q[i] * rows.k[j][i]);
        }
        p[j] = score;
        doubt[j] = FLOAT_ULP * ((HEAD_DIM + 2) * size + 8) + HEAD_DIM / 16 * 0x1p-20 * size;
        most = fmax(most, score);
    }
    for (uint32_t j = 0; j < rows.count; j++) {
        doubt[j] += FLOAT_ULP * 2 * fabs(p[j] - most);
        p[j] = exp(p[j] - most);
        total += p[j];
    }
    for (int i = 0; i < HEAD_DIM; i++) {
        double exact = 0, bound = 0, size = 0, values = 0;
        for (uint32_t j = 0; j < rows.count; j++)
            exact += p[j] / total * rows.v[j][i];
        for (uint32_t j = 0; j < rows.count; j++) {
            const double v = rows.v[j][i];
            bound += p[j] / total * doubt[j] * fabs(v - exact);
            size += p[j] / total * fabs(v);
            values += fabs(v);
        }
        bound += HALF_ULP * size + HALF_ULP * fabs(exact) + (0x1p-126 + 0x1p-25) * values / total +
                 FLOAT_LEAST * (rows.count + 2) + HALF_LEAST / 2;
        compare(r, o[i], exact, bound);
    }
}

/* ---- a layer ------------------------------------------------------------------------------------------------------- */

enum { BUFFERS = 11 };
typedef struct buffers {
    double *in, *between, *out, *q, *k, *v, *rotated, *attended, *hidden, *k_cache, *v_cache;
} buffers;

static double *read_numbers(device *d, CUdeviceptr from, size_t count, bool is_half)
{
    void *raw = malloc(count * sizeof(float));
    double *numbers = malloc(count * sizeof *numbers);
    const bool ok =
        raw && numbers && device_download(d, raw, from, count * (is_half ? sizeof(uint16_t) : sizeof(float)));
    for (size_t i = 0; ok && i < count; i++)
        numbers[i] = is_half ? half_value(((uint16_t *)raw)[i]) : (double)((float *)raw)[i];
    free(raw);
    if (ok)
        return numbers;
    free(numbers);
    return NULL;
}

static bool read_buffers(const model *m, device *d, const layer *l, buffers *b)
{
    const size_t q_row = (size_t)m->size.q_heads * HEAD_DIM, k_row = K_HEADS * HEAD_DIM;
    const struct {
        double **to;
        CUdeviceptr from;
        size_t count;
        bool is_half;
    } rows[BUFFERS] = {{&b->in, l->in, m->size.width, false},
                       {&b->between, l->between, m->size.width, false},
                       {&b->out, l->out, m->size.width, false},
                       {&b->q, m->q, q_row, true},
                       {&b->k, m->k, k_row, true},
                       {&b->v, m->v, k_row, true},
                       {&b->rotated, m->rotated, q_row, true},
                       {&b->attended, m->attended, q_row, true},
                       {&b->hidden, m->hidden, m->size.hidden, true},
                       {&b->k_cache, l->k_cache, m->size.context * k_row, true},
                       {&b->v_cache, l->v_cache, m->size.context * k_row, true}};
    for (int i = 0; i < BUFFERS; i++)
        if (!(*rows[i].to = read_numbers(d, rows[i].from, rows[i].count, rows[i].is_half)))
            return false;
    return true;
}

static report check_rope(const model *m, const buffers *b, const token *now)
{
    const double *k_row = b->k_cache + now->slot * K_HEADS * HEAD_DIM;
    const double *v_row = b->v_cache + now->slot * K_HEADS * HEAD_DIM;
    report r = {0};
    for (uint32_t h = 0; h < m->size.q_heads; h++)
        check_rotated(&r, m, now->position, b->q + h * HEAD_DIM, b->rotated + h * HEAD_DIM);
    for (uint32_t h = 0; h < K_HEADS; h++)
        check_rotated(&r, m, now->position, b->k + h * HEAD_DIM, k_row + h * HEAD_DIM);
    for (uint32_t i = 0; i < K_HEADS * HEAD_DIM; i++)
        compare(&r, v_row[i], b->v[i], FLOAT_LEAST); /* must have the same bits */
    return r;
}

/* Returns false if out of memory. */
static bool check_attention(report *r, const model *m, const buffers *b, uint32_t length)
{
    const double **rows = malloc(2 * length * sizeof *rows);
    double *numbers = malloc(2 * length * sizeof *numbers);
    for (uint32_t h = 0; rows && numbers && h < m->size.q_heads; h++) {
        const uint32_t k_head = h / (m->size.q_heads / K_HEADS);
        for (uint32_t j = 0; j < length; j++) {
            const int64_t at = (model_slot(m, j) * K_HEADS + k_head) * HEAD_DIM;
            rows[j] = b->k_cache + at;
            rows[length + j] = b->v_cache + at;
        }
        check_head(r, b->rotated + h * HEAD_DIM, (keys){rows, rows + length, length},
                   b->attended + h * HEAD_DIM, numbers, numbers + length);
    }
    const bool ok = rows && numbers;
    free(rows);
    free(numbers);
    return ok || failed("out of memory");
}

static bool check_layer(const model *m, const layer *l, const buffers *b, const token *now)
{
    static double h[1 << 14];
    report project = {0}, attend = {0};
    normalise(b->in, l->attention_gamma, m->size.width, h);
    check_products(&project, &l->q, h, b->q);
    check_products(&project, &l->k, h, b->k);
    check_products(&project, &l->v, h, b->v);
    if (!check_attention(&attend, m, b, now->length))
        return false;
    normalise(b->between, l->hidden_gamma, m->size.width, h);
    bool ok = print("norm, Q, K and V", project);
    ok = print("rotate, append", check_rope(m, b, now)) && ok;
    ok = print("attention", attend) && ok;
    ok = print("output, residual", check_added(&l->output, b->attended, b->in, b->between)) && ok;
    ok = print("norm, gate and up", check_gated(&l->up, &l->gate, h, b->hidden)) && ok;
    return print("down, residual", check_added(&l->down, b->hidden, b->between, b->out)) && ok;
}

bool model_check(const model *m, device *d, const token *now)
{
    const layer *l = &m->layers[LAYERS - 1];
    buffers b = {0};
    printf("position %u: elements, largest error, as a share of its bound\n", now->position);
    const bool ok = read_buffers(m, d, l, &b) && check_layer(m, l, &b, now);
    double *const all[BUFFERS] = {b.in,      b.between,  b.out,    b.q,       b.k,      b.v,
                                  b.rotated, b.attended, b.hidden, b.k_cache, b.v_cache};
    for (int i = 0; i < BUFFERS; i++)
        free(all[i]);
    return ok;
}
