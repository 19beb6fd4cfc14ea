/* Checks q8 activations: codes and scales follow rmsnorm_q4k_gemv's contract, also with a NaN or an infinity.
 *
 * Row i of W is 1 in column i and 0 elsewhere, so y is the kernel's h: code times scale, rounded once. In a block of 32 the
 * largest magnitude has code 127, which gives the scale. Without the norm, h is x and the check is exact. With the norm, its
 * factor multiplies sums, so the reference's h and its quotients are slightly off.
 *
 * Then one element of one vector is a NaN or an infinity: that vector's y are NaNs, and the others keep their bits.
 *
 *     rmsnorm_q4k_gemv_codes DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "number.h"
#include "sample.h"

enum {
    K = 256,
    FEW_ROWS = 5,
    BLOCK = 32,
    VECTORS = 8,
    BLOCK_BYTES = 144,
    LEAST_EXPONENT = -118,
    NORM_LEAST_EXPONENT = -106
};

typedef struct buffers {
    CUdeviceptr w, factors, in, out;
} buffers;

static float x[VECTORS][K], factors[K], y[VECTORS * K], spoilt[VECTORS * K];

static unsigned batch_of(const kiln_kernel *kernel)
{
    return (unsigned)strtoul(strstr(kernel->id, "batch=") + strlen("batch="), NULL, 10);
}

static CUdeviceptr make_weights(void)
{
    static unsigned char w[K][BLOCK_BYTES];
    for (unsigned row = 0; row < K; row++) {
        const unsigned j = row / BLOCK;
        element_set(ELEMENT_F16, w[row], 0, 1); /* d; dmin is 0 */
        w[row][j < 4 ? 4 + j : 8 + j] = 1;      /* the scale of its sub-block */
        w[row][16 + row / 64 * 32 + row % 32] = j % 2 ? 0x10 : 0x01;
    }
    return upload(w, sizeof w);
}

/* Each block has a largest magnitude, and quotients at and just beside halves and integers. One block is smaller than any scale,
 * one is zero. Each block has another power of two, small enough that squares do not overflow f32. */
static void make_elements(void)
{
    uint32_t state = 1;
    for (unsigned v = 0; v < VECTORS; v++) {
        for (unsigned i = 0; i < K; i++) {
            const unsigned block = i / BLOCK, place = i % BLOCK;
            state = state * 1664525 + 1013904223;
            const float most = block % 2 ? 127 : 1 + (float)(state >> 8) * 0x1p-24f;
            float of_x = most;
            if (place != (v + block) % BLOCK) {
                const float half = (float)(state >> 16 & 0xff) / 2 * most / 127;
                of_x = fminf(half * (1 + (float)((int)(place % 3) - 1) * 0x1.8p-21F), most);
            }
            const int exponent = block == 5 ? LEAST_EXPONENT - 40 : block == 6 ? -1000 : (int)(7 * v) - 20;
            x[v][i] = ldexpf(state >> 31 ? -of_x : of_x, exponent);
        }
    }
    for (unsigned i = 0; i < K; i++)
        factors[i] = 1 + (float)(i % 7) / 8;
}

static kiln_status multiply(const kiln_kernel *kernel, const buffers *b, uint32_t rows, const void *from,
                            float *to)
{
    const sample_rmsnorm_q4k_gemv_args args = {
        .in = b->in, .gamma = b->factors, .w = b->w, .out = b->out, .n = rows, .k = K, .eps = 1e-12F};
    upload_to(b->in, from, sizeof x);
    const kiln_status status = kernel->launch(&loader, NULL, &args);
    download(to, b->out, sizeof y);
    return status;
}

/* ---- codes and scales --------------------------------------------------------------------------------------------- */

/* Checks one block's output. `off`: relative error of quotients; `rounding`: relative error of y compared with code times
 * scale. */
static bool is_block_right(const float *out, const double *h, bool has_norm)
{
    const double off = has_norm ? 0x1p-19 : 0x1p-21, rounding = has_norm ? 0x1p-22 : 0;
    double most = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        most = fmax(most, fabs(h[i]));
    const double raised = fmax(most, ldexp(1, has_norm ? NORM_LEAST_EXPONENT : LEAST_EXPONENT));
    float scale = (float)raised / 127;
    for (unsigned i = 0; i < BLOCK && most == raised && has_norm; i++)
        if (fabs(h[i]) == most)
            scale = fabsf(out[i]) / 127;
    bool is_right = fabs((double)scale - raised / 127) <= off * raised / 127;
    for (unsigned i = 0; i < BLOCK; i++) {
        if (has_norm && most < raised) { /* the scale is only known to be small */
            is_right &= fabs((double)out[i] - h[i]) <= raised / 127;
            continue;
        }
        const float code = rintf(out[i] / scale);
        const double quotient = h[i] * 127 / raised, fraction = fabs(quotient) - floor(fabs(quotient));
        is_right &= fabs((double)(out[i] - code * scale)) <= rounding * fabs((double)out[i]);
        is_right &= fabsf(code) <= 127 && fabs((double)code - rint(quotient)) <= 1;
        if (fabs(fraction - 0.5) > off * fabs(quotient))
            is_right &= (double)code == rint(quotient);
    }
    return is_right;
}

static void make_h(const kiln_kernel *kernel, unsigned vector, double h[K])
{
    double sum = 0;
    for (unsigned i = 0; i < K; i++)
        sum += (double)x[vector][i] * (double)x[vector][i];
    for (unsigned i = 0; i < K; i++)
        h[i] = has(kernel, "norm=rms") ? x[vector][i] / sqrt(sum / K + (double)1e-12F) * factors[i]
                                       : x[vector][i];
}

static void check_codes(const kiln_kernel *kernel, const buffers *b)
{
    const kiln_status status = multiply(kernel, b, K, x, y);
    bool is_right = status == KILN_OK;
    for (unsigned v = 0; v < batch_of(kernel); v++) {
        double h[K];
        make_h(kernel, v, h);
        for (unsigned first = 0; first < K; first += BLOCK)
            is_right &= is_block_right(&y[v * K + first], &h[first], has(kernel, "norm=rms"));
    }
    judge(is_right, kernel->id, status);
}

/* ---- NaNs and infinities ------------------------------------------------------------------------------------------ */

static void check_nonfinite(const kiln_kernel *kernel, const buffers *b, unsigned vector, float value)
{
    static float changed[VECTORS][K];
    memcpy(changed, x, sizeof x);
    changed[vector][(37 * vector + 11) % K] = value;
    const kiln_status status = multiply(kernel, b, FEW_ROWS, changed, spoilt);
    bool is_right = status == KILN_OK;
    for (unsigned i = 0; i < batch_of(kernel) * FEW_ROWS; i++)
        is_right &= i / FEW_ROWS == vector ? isnan(spoilt[i]) : memcmp(&spoilt[i], &y[i], sizeof y[i]) == 0;
    judge(is_right, kernel->id, status);
}

int main(int argc, char **argv)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};
    buffers b;
    need(argc == 2, "rmsnorm_q4k_gemv_codes DRIVER");
    open_device(argv[1], &sample_bundle);
    make_elements();
    b = (buffers){make_weights(), upload(factors, sizeof factors), allocate(sizeof x), allocate(sizeof y)};
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        if (!has(kernel, "x=f32,activation=q8") || (loader.device.sm < 80 && has(kernel, "rows=4")))
            continue;
        check_codes(kernel, &b);
        need(multiply(kernel, &b, FEW_ROWS, x, y) == KILN_OK, kernel->id);
        for (unsigned v = 0; v < batch_of(kernel); v++)
            check_nonfinite(kernel, &b, v, values[(v + i) % 3]);
    }
    return end_calls();
}
