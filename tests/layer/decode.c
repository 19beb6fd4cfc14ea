/* Decoding: the first token of a sequence goes through one layer with GGUF's Q4_K weights. For this token attention is v itself,
 * so the device only computes the projections. The host computes SwiGLU and the sums.
 *
 * The error bound of an element, with r the exact product, S the sum of |h| times the magnitude that the weight's rounding
 * depends on, and d the q8 scale of each 32 elements:
 *     2^-24 |r| + (L + 6) 2^-24 S,  plus (2^-22 + (L/2 + 3) 2^-24) |r| with a fused norm, 5 sqrt(sum of d^2 w^2 / 12) for q8.
 * L is the root of the longest chain of additions, because inputs are random. A chain has at most K additions. */
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HIDDEN = 512, HEAD = 64, QUERY_HEADS = 4, ATTENTION = QUERY_HEADS * HEAD, FEED_FORWARD = 768 };

static const float epsilon = 1e-5f;

/* The device's result, and the float64 result with the weights before quantisation. */
typedef struct vector {
    uint32_t n;
    float *got;
    double *ideal;
} vector;

static vector vector_new(uint32_t n)
{
    return (vector){n, host_new(n, sizeof(float)), host_new(n, sizeof(double))};
}

static void vector_free(vector *v)
{
    free(v->got);
    free(v->ideal);
}

/* ---- the same in float64 ----------------------------------------------------------------------------------------- */

/* Computes h from x: normalised if there is a gamma. */
static void make_h(uint32_t k, const float *gamma, double h[])
{
    if (gamma)
        normalize(k, gamma, epsilon, h);
}

static double dot(const float *row, const double h[], uint32_t k)
{
    double sum = 0;
    for (uint32_t i = 0; i < k; i++)
        sum += (double)row[i] * h[i];
    return sum;
}

typedef struct sums {
    double product, size, rounding;
} sums;

static double q8_scale(const double h[Q4K_SUB_ELEMENTS])
{
    double most = 0;
    for (int i = 0; i < Q4K_SUB_ELEMENTS; i++)
        most = fmax(most, fabs(h[i]));
    return most / 127;
}

static sums dot_packed(const unsigned char *row, const double h[], uint32_t k)
{
    double w[Q4K_ELEMENTS], size[Q4K_ELEMENTS];
    sums s = {0};
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t place = i % Q4K_ELEMENTS;
        if (place == 0)
            q4k_unpack(row + i / Q4K_ELEMENTS * Q4K_BYTES, w, size);
        const double d = q8_scale(&h[i / Q4K_SUB_ELEMENTS * Q4K_SUB_ELEMENTS]);
        s.product += w[place] * h[i];
        s.size += size[place] * fabs(h[i]);
        s.rounding += d * d * w[place] * w[place] / 12;
    }
    return s;
}

static double bound_of(const sums *s, uint32_t k, bool has_norm, bool is_q8)
{
    const double chain = sqrt(k), size = fabs(s->product);
    double bound = 0x1p-24 * size + (chain + 6) * 0x1p-24 * s->size;
    if (has_norm)
        bound += (0x1p-22 + (chain / 2 + 3) * 0x1p-24) * size;
    return is_q8 ? bound + 5 * sqrt(s->rounding) : bound;
}

/* ---- one projection ---------------------------------------------------------------------------------------------- */

static unsigned char *pack(const matrix *w)
{
    const size_t blocks = (size_t)w->rows * w->columns / Q4K_ELEMENTS;
    unsigned char *packed = host_new(blocks, Q4K_BYTES);
    for (size_t i = 0; i < blocks; i++)
        q4k_pack(w->values + i * Q4K_ELEMENTS, packed + i * Q4K_BYTES);
    return packed;
}

static void run(const unsigned char *packed, const float *gamma, bool is_q8, const vector *x, vector *y)
{
    const uint32_t n = y->n, k = x->n;
    const layer_kernels_rmsnorm_q4k_gemv_args args = {
        .in = device_new(k * sizeof(float), x->got),
        .gamma = gamma ? device_new(k * sizeof(float), gamma) : 0,
        .w = device_new((size_t)n * k / Q4K_ELEMENTS * Q4K_BYTES, packed),
        .out = device_new(n * sizeof(float), NULL),
        .n = n,
        .k = k,
        .eps = epsilon,
        .norm = gamma ? LAYER_KERNELS_RMSNORM_Q4K_GEMV_NORM_RMS : LAYER_KERNELS_RMSNORM_Q4K_GEMV_NORM_NONE,
        .activation = is_q8 ? LAYER_KERNELS_RMSNORM_Q4K_GEMV_ACTIVATION_Q8
                            : LAYER_KERNELS_RMSNORM_Q4K_GEMV_ACTIVATION_EXACT,
    };
    device_need(layer_kernels_rmsnorm_q4k_gemv(&device_loader, NULL, &args));
    device_take(y->got, args.out, n * sizeof(float));
    device_free(args.in);
    device_free(args.w);
    if (gamma)
        device_free(args.gamma);
}

/* Computes y = W h on the device and compares each element with float64. Frees W. */
static bool project(const char *name, matrix w, const float *gamma, bool is_q8, const vector *x, vector *y)
{
    const uint32_t k = w.columns;
    const size_t row_bytes = (size_t)k / Q4K_ELEMENTS * Q4K_BYTES;
    unsigned char *packed = pack(&w);
    double *h = host_new(k, sizeof *h), *ideal = host_new(k, sizeof *ideal);
    comparison c = {0};
    char title[64];
    *y = vector_new(w.rows);
    run(packed, gamma, is_q8, x, y);
    for (uint32_t i = 0; i < k; i++) {
        h[i] = (double)x->got[i];
        ideal[i] = x->ideal[i];
    }
    make_h(k, gamma, h);
    make_h(k, gamma, ideal);
    for (uint32_t i = 0; i < w.rows; i++) {
        const float *row = w.values + (size_t)i * k;
        const sums s = dot_packed(packed + i * row_bytes, h, k);
        compare(&c, (double)y->got[i], s.product, bound_of(&s, k, gamma != NULL, is_q8), dot(row, h, k));
        y->ideal[i] = dot(row, ideal, k);
    }
    snprintf(title, sizeof title, "%s, %s%s", name, gamma ? "norm + q4_k " : "q4_k ", is_q8 ? "q8" : "exact");
    free(packed);
    free(h);
    free(ideal);
    free(w.values);
    return report(title, 1, y->n, k, &c);
}

/* ---- the layer --------------------------------------------------------------------------------------------------- */

static void add(vector *to, const vector *v)
{
    for (uint32_t i = 0; i < to->n; i++) {
        to->got[i] += v->got[i];
        to->ideal[i] += v->ideal[i];
    }
}

/* Every query head attends to the only token. */
static vector attend(const vector *v)
{
    vector out = vector_new(ATTENTION);
    for (uint32_t i = 0; i < ATTENTION; i++) {
        out.got[i] = v->got[i % HEAD];
        out.ideal[i] = v->ideal[i % HEAD];
    }
    return out;
}

static void swiglu(vector *gate, const vector *up)
{
    for (uint32_t i = 0; i < gate->n; i++) {
        gate->got[i] = gate->got[i] / (1 + expf(-gate->got[i])) * up->got[i];
        gate->ideal[i] = gate->ideal[i] / (1 + exp(-gate->ideal[i])) * up->ideal[i];
    }
}

static bool attention(const matrix *real, bool is_q8, vector *x)
{
    float gamma[HIDDEN];
    vector q, k, v, out;
    fill_gamma(gamma, HIDDEN, 2);
    bool fine = project("q", weights_cut(real, true, 0, 0, ATTENTION, HIDDEN), gamma, is_q8, x, &q);
    fine &= project("k", weights_cut(real, true, ATTENTION, 0, HEAD, HIDDEN), gamma, is_q8, x, &k);
    fine &= project("v", weights_cut(real, true, ATTENTION + HEAD, 0, HEAD, HIDDEN), gamma, is_q8, x, &v);
    vector seen = attend(&v);
    fine &= project("o", weights_cut(real, false, 0, 0, HIDDEN, ATTENTION), NULL, is_q8, &seen, &out);
    add(x, &out);
    vector *const all[] = {&q, &k, &v, &seen, &out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vector_free(all[i]);
    return fine;
}

static bool feed_forward(const matrix *real, bool is_q8, vector *x)
{
    float gamma[HIDDEN];
    vector gate, up, out;
    fill_gamma(gamma, HIDDEN, 3);
    bool fine = project("gate", weights_cut(real, true, 0, 64, FEED_FORWARD, HIDDEN), gamma, is_q8, x, &gate);
    fine &= project("up", weights_cut(real, true, 192, 256, FEED_FORWARD, HIDDEN), gamma, is_q8, x, &up);
    swiglu(&gate, &up);
    fine &= project("down", weights_cut(real, false, 0, 0, HIDDEN, FEED_FORWARD), NULL, is_q8, &gate, &out);
    add(x, &out);
    vector *const all[] = {&gate, &up, &out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vector_free(all[i]);
    return fine;
}

bool decode_token(const matrix *real, bool is_q8)
{
    vector x = vector_new(HIDDEN);
    double error = 0, power = 0;
    fill_normal(x.got, HIDDEN, 1);
    for (uint32_t i = 0; i < HIDDEN; i++)
        x.ideal[i] = (double)x.got[i];
    bool fine = attention(real, is_q8, &x);
    fine &= feed_forward(real, is_q8, &x);
    for (uint32_t i = 0; i < HIDDEN; i++) {
        error += ((double)x.got[i] - x.ideal[i]) * ((double)x.got[i] - x.ideal[i]);
        power += x.ideal[i] * x.ideal[i];
    }
    printf("the whole layer is off by %.5f, relative to float64 with the weights as they were\n\n",
           sqrt(error / power));
    vector_free(&x);
    return fine;
}
