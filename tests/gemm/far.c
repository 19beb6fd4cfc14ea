/* nf4_gemm where numbers of bytes and elements pass 2^32.
 *
 *     gemm_far DRIVER
 *
 * The emulated driver's memory takes no room until it is touched, and KILN_EMU_BLOCKS leaves out all thread blocks but
 * the one with the last tile. The last row of A, and the codes and scales of the last columns, are those of a small
 * product; the same kernel must make the same bits of them in both.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "gemm_test.h"

#include <stdint.h>

enum { COLUMNS = 3, MOST_K = 65600 };

typedef struct shape {
    const char *what;
    uint64_t m, n, k;
} shape;

static const shape shapes[] = {
    {"A: elements", 65535, COLUMNS, MOST_K},
    {"C: elements", 65535, 65600 + COLUMNS, 64},
    {"codes: bytes", 1, (UINT64_C(1) << 21) + 5, 4096},
    {"scales: bytes", 1, (UINT64_C(1) << 24) + 5, 4160},
};

static bool is_far;
static uint64_t tiles; /* of columns */

static int launch_last(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void **params, void **extra)
{
    char blocks[64];
    unsigned long long last = (unsigned long long)(grid_y - 1) * grid_x + (tiles - 1) % grid_x;
    snprintf(blocks, sizeof blocks, "%llu-%llu", last, last);
    if (is_far)
        setenv("KILN_EMU_BLOCKS", blocks, 1);
    else
        unsetenv("KILN_EMU_BLOCKS");
    return real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                       params, extra);
}

static uint64_t parameter(const kiln_kernel *kernel, const char *name)
{
    const char *at = strstr(kernel->id, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Numbers that are neither alike nor special, of any of the types. */
static void fill(void *to, size_t count, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i + 1) * 2654435761u + seed * 40503u;
        float x = (float)(int32_t)bits * 0x1p-31f;
        if (bytes == 1)
            ((uint8_t *)to)[i] = (uint8_t)(bits >> 24);
        else if (bytes == 2)
            ((uint16_t *)to)[i] = (uint16_t)(0x3c00 | (bits >> 22));
        else
            ((float *)to)[i] = x;
    }
}

/* The last COLUMNS of C's last row. All arrays end where the large product's do. */
static void multiply(const kiln_kernel *kernel, uint64_t m, uint64_t n, uint64_t k, unsigned char *c)
{
    static unsigned char a[4 * MOST_K], codes[COLUMNS * MOST_K / 2];
    static float scales[COLUMNS * MOST_K / 64];
    const size_t bytes = strstr(kernel->id, "a=f32") ? 4 : 2;
    arguments args = {.m = (uint32_t)m, .n = (uint32_t)n, .k = (uint32_t)k};
    args.in = allocate(m * k * bytes);
    args.packed = allocate(n * k / 2);
    args.scale = allocate(n * k / 64 * 4);
    args.out = allocate(m * n * bytes);
    fill(a, k, bytes, 1);
    fill(codes, COLUMNS * k / 2, 1, 2);
    fill(scales, COLUMNS * k / 64, 4, 3);
    const uint64_t first = n - COLUMNS;
    need(driver.memcpy_htod(args.in + (m - 1) * k * bytes, a, k * bytes) == 0 &&
             driver.memcpy_htod(args.packed + first * k / 2, codes, COLUMNS * k / 2) == 0 &&
             driver.memcpy_htod(args.scale + first * k / 64 * 4, scales, COLUMNS * k / 64 * 4) == 0,
         "cuMemcpyHtoD");
    tiles = (n + parameter(kernel, "tile_n=") - 1) / parameter(kernel, "tile_n=");
    need(kernel->launch(&loader, NULL, &args) == KILN_OK && driver.ctx_synchronize() == 0, kernel->id);
    need(driver.memcpy_dtoh(c, args.out + (m * n - COLUMNS) * bytes, COLUMNS * bytes) == 0, "cuMemcpyDtoH");
    const CUdeviceptr all[] = {args.in, args.packed, args.scale, args.out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        need(driver.mem_free(all[i]) == 0, "cuMemFree");
}

static bool try_shape(const kiln_kernel *kernel, const shape *s)
{
    static const unsigned char zero[4 * COLUMNS];
    unsigned char near[4 * COLUMNS] = {0}, far[4 * COLUMNS] = {0};
    is_far = false;
    multiply(kernel, 1, COLUMNS, s->k, near);
    is_far = true;
    multiply(kernel, s->m, s->n, s->k, far);
    bool is_right = memcmp(near, far, sizeof near) == 0 && memcmp(near, zero, sizeof near) != 0;
    if (!is_right)
        printf("WRONG %s of %s\n", s->what, kernel->id);
    return is_right;
}

int main(int argc, char **argv)
{
    unsigned right = 0, trials = 0;
    if (argc != 2)
        return 2;
    open_device(argv[1], launch_last);
    for (size_t i = 0; i < gemm_sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = gemm_sample_index.kernels[i];
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++, trials++)
            right += try_shape(kernel, &shapes[s]);
    }
    printf("%u of %u products right beyond 2^32\n", right, trials);
    return right != trials;
}
