/* nf4_gemm with more than 2^32 bytes and elements: the last row of A, and the codes and scales of the last columns, equal those
 * of a small product, and so must the results.
 *
 *     nf4_gemm_far DRIVER
 *
 * Tests the kernels for f16, which have the most elements per byte, and the wide tiles of f32. Other kernels compute addresses
 * alike.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "far.h"

#include "sample.h"

enum { COLUMNS = 3, MOST_K = 65600 };

static const trial trials_of_all[] = {
    {"A: elements", {1, COLUMNS, MOST_K}, {65535, COLUMNS, MOST_K}},
    {"C: elements", {1, COLUMNS, 64}, {65535, 65600 + COLUMNS, 64}},
    {"codes: bytes", {1, COLUMNS, 4096}, {1, (UINT64_C(1) << 21) + 5, 4096}},
    {"scales: bytes", {1, COLUMNS, 4160}, {1, (UINT64_C(1) << 24) + 5, 4160}},
};

static uint64_t parameter(const kiln_kernel *kernel, const char *name)
{
    const char *at = strstr(kernel->id, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Computes the last COLUMNS of C's last row. */
static void multiply(const kiln_kernel *kernel, product p, unsigned char c[MOST_BYTES])
{
    static unsigned char a[4 * MOST_K], codes[COLUMNS * MOST_K / 2];
    static float scales[COLUMNS * MOST_K / 64];
    const uint64_t bytes = strstr(kernel->id, "a=f32") ? 4 : 2, tile_n = parameter(kernel, "tile_n=");
    fill(a, p.k, bytes, 1);
    fill(codes, COLUMNS * p.k / 2, 1, 2);
    fill(scales, COLUMNS * p.k / 64, 4, 3);
    sample_nf4_gemm_args args = {
        .in = upload_ends(1, p.m * p.k * bytes, a, p.k * bytes),
        .packed = upload_ends(1, p.n * p.k / 2, codes, COLUMNS * p.k / 2),
        .scale = upload_ends(1, p.n * p.k / 64 * 4, scales, COLUMNS * p.k / 64 * 4),
        .out = allocate(p.m * p.n * bytes),
        .m = (uint32_t)p.m,
        .n = (uint32_t)p.n,
        .k = (uint32_t)p.k,
        .a_stride = (uint32_t)p.k,
        .c_stride = (uint32_t)p.n,
    };
    tiles = (p.n + tile_n - 1) / tile_n;
    finish(kernel, &args, (CUdeviceptr[]){args.in, args.packed, args.scale, args.out},
           args.out + p.m * p.n * bytes, c, COLUMNS * bytes);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    before_launch = leave_blocks_out;
    for (size_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        bool is_tried = strstr(kernel->id, "a=f16,") || parameter(kernel, "tile_m=") >= 16;
        for (size_t t = 0; is_tried && t < sizeof trials_of_all / sizeof trials_of_all[0]; t++)
            try_far(kernel, multiply, &trials_of_all[t]);
    }
    return end_calls();
}
