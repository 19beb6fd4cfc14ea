/* Checks the first element of x after the norm. The published kernel overwrites x[0] in shared memory with the norm's factor,
 * which is only harmless if x[0] is small. Here only x[0] matters: x is 2^v in its first element and 0 elsewhere, so h is
 * sqrt(k) * gamma there for any v, and the weights are 0 except in their first column.
 *
 * usage: rmsnorm_q4k_gemv_first DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "number.h"
#include "sample.h"

enum { ELEMENT_TYPES = 16, K = 512, BLOCKS = K / 256, BLOCK_BYTES = 144, ROWS = 5, VECTORS = 8, CODE = 5 };

static const double gamma_of_first = 2;

/* The documented bound without y's rounding, with L <= 42 and L_n = 17: the sum of magnitudes is the product itself, and
 * with q8 the code of the largest element is exact. */
#define OTHERS ((4 + 17 / 2.0 + 3 + 42 + 6) * 0x1p-24)

typedef struct buffers {
    CUdeviceptr w, gamma, in[ELEMENT_TYPES], out;
} buffers;

static element_type type_of(const kiln_kernel *kernel, const char *f16, const char *bf16)
{
    return has(kernel, f16) ? ELEMENT_F16 : has(kernel, bf16) ? ELEMENT_BF16 : ELEMENT_F32;
}

static CUdeviceptr make_weights(void)
{
    static unsigned char w[ROWS][BLOCKS][BLOCK_BYTES];
    for (unsigned row = 0; row < ROWS; row++) {
        element_set(ELEMENT_F16, w[row][0], 0, row + 0.5); /* d; dmin is 0 */
        w[row][0][4] = 1;                                  /* the scale of the first 32 */
        w[row][0][16] = CODE;
    }
    return upload(w, sizeof w);
}

static CUdeviceptr make_input(element_type type)
{
    static double room[VECTORS * K]; /* bytes of the widest type */
    memset(room, 0, sizeof room);
    for (unsigned v = 0; v < VECTORS; v++)
        element_set(type, room, (uint64_t)v * K, ldexp(1, (int)v));
    return upload(room, sizeof room);
}

static void check(const kiln_kernel *kernel, const buffers *b)
{
    static unsigned char out[VECTORS * ROWS * 4];
    const element_type x = type_of(kernel, "x=f16", "x=bf16"), y = type_of(kernel, "y=f16", "y=bf16");
    const unsigned batch = (unsigned)strtoul(strstr(kernel->id, "batch=") + strlen("batch="), NULL, 10);
    const sample_rmsnorm_q4k_gemv_args args = {
        .in = b->in[x], .gamma = b->gamma, .w = b->w, .out = b->out, .n = ROWS, .k = K, .eps = 0};
    const kiln_status status = kernel->launch(&loader, NULL, &args);
    download(out, b->out, sizeof out);
    bool is_right = status == KILN_OK;
    for (unsigned v = 0; v < batch; v++) {
        for (unsigned row = 0; row < ROWS; row++) {
            const double exact = sqrt(K) * gamma_of_first * (row + 0.5) * CODE;
            is_right &= fabs(element_get(y, out, (uint64_t)v * ROWS + row) - exact) <=
                        (number_unit(y) + OTHERS) * exact;
        }
    }
    judge(is_right, kernel->id, status);
}

int main(int argc, char **argv)
{
    static float gamma[K];
    buffers b = {0};
    need(argc == 2, "rmsnorm_q4k_gemv_first DRIVER");
    open_device(argv[1], &sample_bundle);
    for (unsigned i = 0; i < K; i++)
        gamma[i] = (float)(i == 0 ? gamma_of_first : 1);
    b.w = make_weights();
    b.gamma = upload(gamma, sizeof gamma);
    b.out = allocate(VECTORS * ROWS * 4);
    b.in[ELEMENT_F32] = make_input(ELEMENT_F32);
    b.in[ELEMENT_F16] = make_input(ELEMENT_F16);
    b.in[ELEMENT_BF16] = make_input(ELEMENT_BF16);
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++)
        if (has(sample_index.kernels[i], "rmsnorm_q4k_gemv/") && has(sample_index.kernels[i], "norm=rms") &&
            (loader.device.sm >= 80 || !has(sample_index.kernels[i], "rows=4"))) /* they need sm_80 */
            check(sample_index.kernels[i], &b);
    return end_calls();
}
