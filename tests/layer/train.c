/* A training step of a low-rank adapter (LoRA) over frozen NF4 weights, as in QLoRA:
 *
 *     y = x W^T + 2 (x A^T) B^T        forward: the first product is nf4_gemm's
 *     dx = g W + 2 (g B) A             backward: the first is nf4_gemm_transposed's; g is the gradient of y
 *
 * The host computes with the small matrices A and B; an application would use another library. B begins as zeros, so A and B do
 * not contribute to dx in this step. The bounds are for products with random inputs, where L is the root of the number of
 * additions:
 *
 *     f32     (L + 3) 2^-24 S
 *     bf16    u |r| + (5 2^-20 + (L + 3) 2^-24 + 2 u) S, u = 2^-8, whichever strategy runs;
 *             and over all elements together u (||r|| + ||root of the sum of the products' squares||)
 */
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 48, OUTPUTS = 512, INPUTS = 384, RANK = 8, GROUP = 64 };

/* The workspace for partial sums. It only has to be large enough; without it, thread blocks do not share sums. Each launch leaves
 * zeros in `tile_counters`, so consecutive products can share them. */
enum { WORKSPACE = 1 << 18, ARRIVALS = WORKSPACE / 256 };

typedef struct workspace {
    CUdeviceptr sums, tile_counters;
} workspace;

static workspace workspace_new(void)
{
    return (workspace){device_new(WORKSPACE * sizeof(float), NULL),
                       device_new(ARRIVALS * sizeof(uint32_t), NULL)};
}

static void workspace_free(workspace *s)
{
    device_free(s->sums);
    device_free(s->tile_counters);
}

static const double adapter_scale = 2;

/* ---- the weights ------------------------------------------------------------------------------------------------- */

static const double nf4_table[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

/* W[OUTPUTS, INPUTS], in blocks of 64 along its rows. nf4_gemm calls these rows columns. */
typedef struct nf4_weights {
    CUdeviceptr packed, scale;
    double *values; /* the codes' values */
    const float *unquantised;
} nf4_weights;

static nf4_weights quantize(const matrix *w)
{
    const size_t count = (size_t)w->rows * w->columns;
    unsigned char *codes = host_new(count / 2, 1);
    float *scales = host_new(count / GROUP, sizeof *scales);
    nf4_weights q = {.values = host_new(count, sizeof(double)), .unquantised = w->values};
    layer_kernels_nf4_quantize_args args = {.in = device_new(count * sizeof(float), w->values),
                                            .scale = device_new(count / GROUP * sizeof(float), NULL),
                                            .packed = device_new(count / 2, NULL),
                                            .n = count};
    device_need(layer_kernels_nf4_quantize(&device_loader, NULL, &args));
    device_free(args.in);
    device_take(codes, args.packed, count / 2);
    device_take(scales, args.scale, count / GROUP * sizeof(float));
    for (size_t i = 0; i < count; i++)
        q.values[i] = nf4_table[codes[i / 2] >> (i % 2 ? 4 : 0) & 15] * (double)scales[i / GROUP];
    q.packed = device_new(count / 2, codes);
    q.scale = device_new(count / GROUP * sizeof(float), scales);
    free(codes);
    free(scales);
    return q;
}

static void weights_free(nf4_weights *q)
{
    device_free(q->packed);
    device_free(q->scale);
    free(q->values);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void forward(const workspace *s, const nf4_weights *w, const float *x, float *y, element_type type)
{
    const layer_kernels_nf4_gemm_args args = {
        .in = elements_upload(x, TOKENS * INPUTS, type),
        .packed = w->packed,
        .scale = w->scale,
        .out = elements_upload(y, TOKENS * OUTPUTS, type),
        .workspace = s->sums,
        .tile_counters = s->tile_counters,
        .m = TOKENS,
        .n = OUTPUTS,
        .k = INPUTS,
        .workspace_size = WORKSPACE,
        .a = type == BF16 ? LAYER_KERNELS_NF4_GEMM_A_BF16 : LAYER_KERNELS_NF4_GEMM_A_F32,
    };
    device_need(layer_kernels_nf4_gemm(&device_loader, NULL, &args));
    elements_take(y, args.out, TOKENS * OUTPUTS, type);
    device_free(args.in);
}

static void backward(const workspace *s, const nf4_weights *w, const float *g, float *dx, element_type type)
{
    const layer_kernels_nf4_gemm_transposed_args args = {
        .in = elements_upload(g, TOKENS * OUTPUTS, type),
        .packed = w->packed,
        .scale = w->scale,
        .out = elements_upload(dx, TOKENS * INPUTS, type),
        .workspace = s->sums,
        .tile_counters = s->tile_counters,
        .m = TOKENS,
        .n = OUTPUTS,
        .k = INPUTS,
        .workspace_size = WORKSPACE,
        .a =
            type == BF16 ? LAYER_KERNELS_NF4_GEMM_TRANSPOSED_A_BF16 : LAYER_KERNELS_NF4_GEMM_TRANSPOSED_A_F32,
    };
    device_need(layer_kernels_nf4_gemm_transposed(&device_loader, NULL, &args));
    elements_take(dx, args.out, TOKENS * INPUTS, type);
    device_free(args.in);
}

/* A product's shape: n results per token, each a sum over k weights with this stride. */
typedef struct shape {
    uint32_t n, k, result_stride, sum_stride;
} shape;

static const shape of_outputs = {OUTPUTS, INPUTS, INPUTS, 1}, of_inputs = {INPUTS, OUTPUTS, 1, INPUTS};

static double bound_of(double exact, double size, uint32_t k, element_type type)
{
    const double sums = (sqrt(k) + 3) * 0x1p-24;
    return type == BF16 ? 0x1p-8 * fabs(exact) + (5 * 0x1p-20 + sums + 0x1p-7) * size : sums * size;
}

static bool check(const char *name, const shape *s, const nf4_weights *w, const float *a, const float *got,
                  element_type type)
{
    comparison c = {0};
    double squares = 0;
    char title[64];
    for (uint32_t i = 0; i < TOKENS * s->n; i++) {
        const float *row = a + i / s->n * s->k;
        double exact = 0, size = 0, unquantised = 0;
        for (uint32_t j = 0; j < s->k; j++) {
            const size_t at = (size_t)(i % s->n) * s->result_stride + (size_t)j * s->sum_stride;
            const double product = (double)row[j] * w->values[at];
            exact += product;
            size += fabs(product);
            squares += product * product;
            unquantised += (double)row[j] * (double)w->unquantised[at];
        }
        compare(&c, (double)got[i], exact, bound_of(exact, size, s->k, type), unquantised);
    }
    if (type == BF16)
        c.norm_bound = 0x1p-8 * (sqrt(c.power) + sqrt(squares));
    snprintf(title, sizeof title, "%s, nf4 %s", name, type == BF16 ? "bf16" : "f32");
    return report(title, TOKENS, s->n, s->k, &c);
}

/* ---- the adapter, on the host ------------------------------------------------------------------------------------ */

/* c[m,n] += factor * a[m,k] * b[n,k]^T */
static void multiply(float *c, const float *a, const float *b, uint32_t m, uint32_t n, uint32_t k,
                     double factor)
{
    for (uint32_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < k; j++)
            sum += (double)a[i / n * k + j] * (double)b[i % n * k + j];
        c[i] += (float)(factor * sum);
    }
}

static void transpose(float *to, const float *from, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows * columns; i++)
        to[i % columns * rows + i / columns] = from[i];
}

static double mean_product(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum / (double)count;
}

typedef struct step {
    float x[TOKENS * INPUTS], y[TOKENS * OUTPUTS], target[TOKENS * OUTPUTS], g[TOKENS * OUTPUTS],
        dx[TOKENS * INPUTS];
    float a[RANK * INPUTS], b[OUTPUTS * RANK];          /* the adapter */
    float low[TOKENS * RANK], change[TOKENS * OUTPUTS]; /* x A^T; the change of y per unit step */
    float g_columns[OUTPUTS * TOKENS], low_columns[RANK * TOKENS], db[OUTPUTS * RANK];
} step;

/* Makes the target: outputs of another model, whose weights are W plus a product of rank 8. */
static void make_target(step *t)
{
    float *to = host_new(OUTPUTS * RANK, sizeof *to), *from = host_new(RANK * INPUTS, sizeof *from);
    float *low = host_new(TOKENS * RANK, sizeof *low);
    fill_normal(to, OUTPUTS * RANK, 5);
    fill_normal(from, RANK * INPUTS, 6);
    multiply(low, t->x, from, TOKENS, RANK, INPUTS, 1);
    memcpy(t->target, t->y, sizeof t->target);
    multiply(t->target, low, to, TOKENS, OUTPUTS, RANK, 0.02);
    free(to);
    free(from);
    free(low);
}

/* Computes the gradient of half the mean square error, up to a factor. Returns its mean square. */
static double make_gradient(step *t)
{
    for (size_t i = 0; i < TOKENS * OUTPUTS; i++)
        t->g[i] = t->y[i] - t->target[i];
    return mean_product(t->g, t->g, TOKENS * OUTPUTS);
}

/* Steps along B's gradient to the least loss. */
static void update(step *t)
{
    multiply(t->low, t->x, t->a, TOKENS, RANK, INPUTS, adapter_scale);
    transpose(t->g_columns, t->g, TOKENS, OUTPUTS);
    transpose(t->low_columns, t->low, TOKENS, RANK);
    multiply(t->db, t->g_columns, t->low_columns, OUTPUTS, RANK, TOKENS, 1);
    multiply(t->change, t->low, t->db, TOKENS, OUTPUTS, RANK, 1);
    const double rate = mean_product(t->g, t->change, TOKENS * OUTPUTS) /
                        mean_product(t->change, t->change, TOKENS * OUTPUTS);
    for (size_t i = 0; i < OUTPUTS * RANK; i++)
        t->b[i] -= (float)rate * t->db[i];
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static bool run_step(const workspace *s, const nf4_weights *w, step *t, element_type type)
{
    fill_normal(t->x, TOKENS * INPUTS, 7);
    fill_normal(t->a, RANK * INPUTS, 8);
    round_elements(t->x, TOKENS * INPUTS, type);
    forward(s, w, t->x, t->y, type);
    bool fine = check("forward", &of_outputs, w, t->x, t->y, type);
    make_target(t);
    const double before = make_gradient(t);
    round_elements(t->g, TOKENS * OUTPUTS, type);
    backward(s, w, t->g, t->dx, type);
    fine &= check("backward", &of_inputs, w, t->g, t->dx, type);
    update(t);
    forward(s, w, t->x, t->y, type);
    multiply(t->y, t->low, t->b, TOKENS, OUTPUTS, RANK, 1);
    const double after = make_gradient(t);
    printf("the step takes the mean square from %.4f to %.4f\n\n", before, after);
    return fine && after < before;
}

bool train_adapter(const matrix *real, element_type type)
{
    step *t = host_new(1, sizeof *t);
    nf4_weights w = quantize(real);
    workspace s = workspace_new();
    const bool fine = run_step(&s, &w, t, type);
    workspace_free(&s);
    weights_free(&w);
    free(t);
    return fine;
}
