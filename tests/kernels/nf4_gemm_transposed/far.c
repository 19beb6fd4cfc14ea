/* nf4_gemm_transposed with more than 2^32 bytes and elements: the last row of A, and the codes and scales of the last block
 * along K, equal those of a small product, and so must the results.
 *
 *     nf4_gemm_transposed_far DRIVER
 *
 * Tests each strategy's kernels for f16, which have the most elements per byte. Left out, because they compute addresses like
 * the others: kernels that split n, where several thread blocks make the last tile; kernels for normal scales only; and, for
 * A's elements over the longest sum, the tile of 64 rows.
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

/* Computes the last block along K of C's last row. */
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
        .normal_scales = 1, /* few scales are below 2^-14, so every variant may be promised normal scales */
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
