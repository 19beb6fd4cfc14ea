/* nf4_gemm_transposed where numbers of bytes and elements pass 2^32.
 *
 *     transposed_far DRIVER
 *
 * The emulated driver's memory takes no room until it is touched, and KILN_EMU_BLOCKS leaves out all thread blocks but
 * the one with the last tile. The last row of A, and the codes and scales of the last block along K, are those of a
 * small product; the same kernel must make the same bits of them in both. Of each strategy those for f16, which has the
 * most elements to a byte; not those with parts of n, whose thread blocks are no window.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdint.h>

#include "transposed_test.h"

enum { BLOCK = 64, MOST_N = 65608 };

typedef struct shape {
    const char *what;
    uint64_t m, n, k;
} shape;

static const shape shapes[] = {
    {"A: elements", 65535, MOST_N, BLOCK},
    {"C: elements", 65535, 8, 65600},
    {"codes: bytes", 1, 520, UINT64_C(1) << 24},
    {"scales: bytes", 1, 520, UINT64_C(1) << 27},
};

static bool is_far;

static int launch_last(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void **params, void **extra)
{
    char blocks[64];
    unsigned long long last = (unsigned long long)grid_x * grid_y * grid_z - 1;
    snprintf(blocks, sizeof blocks, "%llu-%llu", last, last);
    if (is_far)
        setenv("KILN_EMU_BLOCKS", blocks, 1);
    else
        unsetenv("KILN_EMU_BLOCKS");
    return real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                       params, extra);
}

/* Numbers that are neither alike nor special, of any of the types. */
static void fill(void *to, size_t count, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i + 1) * 2654435761u + seed * 40503u;
        if (bytes == 1)
            ((uint8_t *)to)[i] = (uint8_t)(bits >> 24);
        else if (bytes == 2)
            ((uint16_t *)to)[i] = (uint16_t)(0x3c00 | (bits >> 24));
        else
            ((float *)to)[i] = (float)(int32_t)bits * 0x1p-31f;
    }
}

/* The last block along K of every column. */
static void upload_columns(CUdeviceptr to, const void *from, uint64_t columns, uint64_t column_bytes,
                           uint64_t bytes)
{
    const char *next = from;
    if (column_bytes == bytes) {
        need(driver.memcpy_htod(to, from, columns * bytes) == 0, "cuMemcpyHtoD");
        return;
    }
    for (uint64_t i = 0; i < columns; i++)
        need(driver.memcpy_htod(to + (i + 1) * column_bytes - bytes, next + i * bytes, bytes) == 0,
             "cuMemcpyHtoD");
}

/* The last block along K of C's last row. */
static void multiply(const kiln_kernel *kernel, uint64_t m, uint64_t n, uint64_t k, unsigned char *c)
{
    static unsigned char a[4 * MOST_N], codes[MOST_N * BLOCK / 2];
    static float scales[MOST_N];
    const size_t bytes = strstr(kernel->id, "a=f32") ? 4 : 2;
    arguments args = {.m = (uint32_t)m, .n = (uint32_t)n, .k = (uint32_t)k};
    args.in = allocate(m * n * bytes);
    args.packed = allocate(n * k / 2);
    args.scale = allocate(n * k / BLOCK * 4);
    args.out = allocate(m * k * bytes);
    fill(a, n, bytes, 1);
    fill(codes, n * BLOCK / 2, 1, 2);
    fill(scales, n, 4, 3);
    need(driver.memcpy_htod(args.in + (m - 1) * n * bytes, a, n * bytes) == 0, "cuMemcpyHtoD");
    upload_columns(args.packed, codes, n, k / 2, BLOCK / 2);
    upload_columns(args.scale, scales, n, k / BLOCK * 4, 4);
    need(kernel->launch(&loader, NULL, &args) == KILN_OK && driver.ctx_synchronize() == 0, kernel->id);
    need(driver.memcpy_dtoh(c, args.out + (m * k - BLOCK) * bytes, BLOCK * bytes) == 0, "cuMemcpyDtoH");
    const CUdeviceptr all[] = {args.in, args.packed, args.scale, args.out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        need(driver.mem_free(all[i]) == 0, "cuMemFree");
}

static bool try_shape(const kiln_kernel *kernel, const shape *s)
{
    static const unsigned char zero[4 * BLOCK];
    unsigned char near[4 * BLOCK] = {0}, far[4 * BLOCK] = {0};
    is_far = false;
    multiply(kernel, 1, s->n, BLOCK, near);
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
    for (size_t i = 0; i < transposed_sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = transposed_sample_index.kernels[i];
        bool is_tried = strstr(kernel->id, "a=f16,") && strstr(kernel->id, "splits=1,");
        for (size_t s = 0; is_tried && s < sizeof shapes / sizeof shapes[0]; s++, trials++)
            right += try_shape(kernel, &shapes[s]);
    }
    printf("%u of %u products right beyond 2^32\n", right, trials);
    return right != trials || !trials;
}
