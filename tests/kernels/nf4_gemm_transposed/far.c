/* nf4_gemm_transposed where numbers of bytes and elements pass 2^32: the last row of A, and the codes and scales of the
 * last block along K, are those of a small product.
 *
 *     nf4_gemm_transposed_far DRIVER
 *
 * Of each strategy the kernels for f16, which has the most elements to a byte; not those with parts of n, of whose thread
 * blocks more than one make the last tile, nor those whose callers promise normal scales: they find memory as others do.
 * Nor for A's elements, over the longest sum, the tile of 64 rows, which finds them as that of 16 does.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "../nf4_gemm/far.h"

#include "sample.h"

enum { BLOCK = 64, MOST_N = 65608, TILE_K = 512 };

static const trial trials_of_all[] = {
    {"A: elements", {1, MOST_N, BLOCK}, {65535, MOST_N, BLOCK}},
    {"C: elements", {1, 8, BLOCK}, {65535, 8, 65600}},
    {"codes: bytes", {1, 520, BLOCK}, {1, 520, UINT64_C(1) << 24}},
    {"scales: bytes", {1, 520, BLOCK}, {1, 520, UINT64_C(1) << 27}},
};

/* The last block along K of C's last row. */
static void multiply(const kiln_kernel *kernel, product p, unsigned char c[MOST_BYTES])
{
    static unsigned char a[2 * MOST_N], codes[MOST_N * BLOCK / 2];
    static float scales[MOST_N];
    fill(a, p.n, 2, 1);
    fill(codes, p.n * BLOCK / 2, 1, 2);
    fill(scales, p.n, 4, 3);
    sample_nf4_gemm_transposed_args args = {
        .in = upload_ends(1, p.m * p.n * 2, a, p.n * 2),
        .packed = upload_ends(p.n, p.k / 2, codes, BLOCK / 2),
        .scale = upload_ends(p.n, p.k / BLOCK * 4, scales, 4),
        .out = allocate(p.m * p.k * 2),
        .m = (uint32_t)p.m,
        .n = (uint32_t)p.n,
        .k = (uint32_t)p.k,
        .normal_scales = 1, /* hardly one is below 2^-14; every variant takes the promise */
    };
    tiles = (p.k + TILE_K - 1) / TILE_K;
    finish(kernel, &args, (CUdeviceptr[]){args.in, args.packed, args.scale, args.out},
           args.out + p.m * p.k * 2, c, BLOCK * 2);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    before_launch = leave_blocks_out;
    for (size_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        bool is_tried = strstr(kernel->id, "a=f16,") && strstr(kernel->id, "split_k=1,") &&
                        !strstr(kernel->id, "scales=normal");
        bool is_large = strstr(kernel->id, "tile_m=64,");
        for (size_t t = is_large ? 1 : 0; is_tried && t < sizeof trials_of_all / sizeof trials_of_all[0]; t++)
            try_far(kernel, multiply, &trials_of_all[t]);
    }
    return end_calls();
}
