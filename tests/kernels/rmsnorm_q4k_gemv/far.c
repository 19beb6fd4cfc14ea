/* rmsnorm_q4k_gemv on more than 2^32 bytes of weights. A warp computes many rows, each in several stages; the last rows must give
 * the same bits as in a small launch.
 *
 *     rmsnorm_q4k_gemv_far DRIVER
 *
 * The emulated driver allocates memory when it is touched. Only the last thread block of the large launch runs.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "../../calls.h"

#include <inttypes.h>

#include "sample.h"

enum { ROWS = 64, K = 4352, ROW_BYTES = K / 256 * 144, ALL_ROWS = 1 << 21 };

static CUdeviceptr in, factors, few, all, out;

/* Makes vectors, and the same pseudorandom rows, with d and dmin of 2^-10, in both matrices. */
static void make_inputs(void)
{
    static unsigned char rows[ROWS * ROW_BYTES];
    static float x[K];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof rows; i++) {
        state = state * 1664525 + 1013904223;
        size_t place = i % 144;
        rows[i] = place >= 4 ? (unsigned char)(state >> 24) : place % 2 ? 0x14 : 0;
    }
    for (size_t i = 0; i < K; i++)
        x[i] = (float)(i % 23) - 11;
    few = upload(rows, sizeof rows);
    all = allocate((size_t)ALL_ROWS * ROW_BYTES);
    upload_to(all + (uint64_t)(ALL_ROWS - ROWS) * ROW_BYTES, rows, sizeof rows);
    in = upload(x, sizeof x);
    factors = upload(x, sizeof x);
    out = allocate((size_t)ALL_ROWS * sizeof(float));
}

/* One variant for both launches, because another one may round in another order. */
static const kiln_kernel *find_kernel(const char *activation)
{
    char words[96];
    snprintf(words, sizeof words, "norm=rms,x=f32,activation=%s,batch=1,y=f32,rows=2,chunk=65536",
             activation);
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++)
        if (strstr(sample_index.kernels[i]->id, words))
            return sample_index.kernels[i];
    need(false, words);
    return NULL;
}

/* Computes the products of the last of n rows. */
static void multiply(const kiln_kernel *kernel, CUdeviceptr w, uint32_t n, float products[ROWS])
{
    const sample_rmsnorm_q4k_gemv_args args = {
        .in = in, .gamma = factors, .w = w, .out = out, .n = n, .k = K, .eps = 1e-5F};
    need(kernel->launch(&loader, NULL, &args) == KILN_OK, kernel->id);
    download(products, out + (uint64_t)(n - ROWS) * sizeof(float), ROWS * sizeof(float));
}

static bool try_activation(const char *activation)
{
    const kiln_kernel *kernel = find_kernel(activation);
    float near[ROWS], far[ROWS];
    char blocks[32];
    unsetenv("KILN_EMU_BLOCKS");
    multiply(kernel, few, ROWS, near);
    is_dry = true; /* only to learn how many thread blocks there are */
    multiply(kernel, all, ALL_ROWS, far);
    is_dry = false;
    const uint32_t last = launched.grid[0] - 1;
    snprintf(blocks, sizeof blocks, "%" PRIu32 "-%" PRIu32, last, last);
    setenv("KILN_EMU_BLOCKS", blocks, 1);
    multiply(kernel, all, ALL_ROWS, far);
    return near[0] != 0 && memcmp(near, far, sizeof near) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    make_inputs();
    bool fine[] = {try_activation("exact"), try_activation("q8")};
    printf("exact: %s, q8: %s\n", fine[0] ? "right" : "WRONG", fine[1] ? "right" : "WRONG");
    return kiln_close(&loader) != KILN_OK || !fine[0] || !fine[1];
}
