/* Products of matrices with more than 2^32 bytes or elements.
 *
 * The emulated driver allocates memory when it is touched, and KILN_EMU_BLOCKS leaves out all thread blocks except the one
 * with the last tile. That thread block reads the same A, codes and scales as a small product, so the same kernel must give
 * the same bits. */
#ifndef GEMM_FAR_H
#define GEMM_FAR_H

#include "../../calls.h"

typedef struct product {
    uint64_t m, n, k;
} product;

typedef struct trial {
    const char *what;
    product near, far;
} trial;

enum { MOST_BYTES = 256 };

/* The last bytes of C, at most MOST_BYTES. */
typedef void multiply_function(const kiln_kernel *kernel, product p, unsigned char c[MOST_BYTES]);

static bool is_far;
static uint64_t tiles; /* tiles in a row; a row of thread blocks may pass over it more than once */

static inline void leave_blocks_out(void)
{
    char blocks[64];
    unsigned long long x = launched.grid[0], last = (launched.grid[1] - 1) * x + (tiles - 1) % x;
    snprintf(blocks, sizeof blocks, "%llu-%llu", last, last);
    if (is_far)
        setenv("KILN_EMU_BLOCKS", blocks, 1);
    else
        unsetenv("KILN_EMU_BLOCKS");
}

/* Writes varied, ordinary numbers of any type. */
static inline void fill(void *to, size_t count, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i + 1) * 2654435761u + seed * 40503u;
        if (bytes == 1)
            ((uint8_t *)to)[i] = (uint8_t)(bits >> 24);
        else if (bytes == 2)
            ((uint16_t *)to)[i] = (uint16_t)(0x3c00 | (bits >> 22));
        else
            ((float *)to)[i] = (float)(int32_t)bits * 0x1p-31f;
    }
}

/* Allocates this many columns; each ends with these bytes. */
static inline CUdeviceptr upload_ends(uint64_t columns, uint64_t column_bytes, const void *from,
                                      uint64_t bytes)
{
    CUdeviceptr address = allocate(columns * column_bytes);
    if (column_bytes == bytes) {
        upload_to(address, from, columns * bytes);
        return address;
    }
    for (uint64_t i = 0; i < columns; i++)
        upload_to(address + (i + 1) * column_bytes - bytes, (const char *)from + i * bytes, bytes);
    return address;
}

/* Launches, copies the last bytes of an array back, and frees everything. */
static inline void finish(const kiln_kernel *kernel, const void *args, const CUdeviceptr all[4],
                          CUdeviceptr end, unsigned char *c, size_t bytes)
{
    need(kernel->launch(&loader, NULL, args) == KILN_OK, kernel->id);
    download(c, end - bytes, bytes);
    for (size_t i = 0; i < 4; i++)
        need(driver.mem_free(all[i]) == 0, "cuMemFree");
}

static inline void try_far(const kiln_kernel *kernel, multiply_function *multiply, const trial *t)
{
    static const unsigned char zero[MOST_BYTES];
    unsigned char near[MOST_BYTES] = {0}, far[MOST_BYTES] = {0};
    is_far = false;
    multiply(kernel, t->near, near);
    is_far = true;
    multiply(kernel, t->far, far);
    bool is_right = memcmp(near, far, sizeof near) == 0 && memcmp(near, zero, sizeof near) != 0;
    judge(is_right, t->what, KILN_OK);
    if (!is_right)
        printf("    %s\n", kernel->id);
}

#endif
