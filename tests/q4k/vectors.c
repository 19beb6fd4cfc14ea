/* The vectors of the GGUF reference package through the generated function, in each type and a few numbers of super-blocks.
 *
 *     q4k_vectors DRIVER VECTORS
 */
#include <stdio.h>
#include <stdlib.h>

#include "number.h"
#include "q4k_sample.h"

enum {
    BLOCK_BYTES = 144,
    BLOCK_ELEMENTS = 256,
    MOST_BLOCKS = 64,
    MOST_ELEMENTS = MOST_BLOCKS * BLOCK_ELEMENTS
};

static unsigned char blocks[MOST_BLOCKS * BLOCK_BYTES], seen[MOST_ELEMENTS * sizeof(float)];
static float expected[MOST_ELEMENTS];

static kiln_driver driver;
static kiln_slot slots[Q4K_SAMPLE_SLOTS];
static kiln_loader loader;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void open_device(const char *path)
{
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0,
         "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context) == 0, "cuCtxSetCurrent");
    need(kiln_open(&loader, &driver, &q4k_sample_bundle, slots, Q4K_SAMPLE_SLOTS, NULL) == KILN_OK,
         "kiln_open");
}

static void read_vectors(const char *path)
{
    FILE *file = fopen(path, "rb");
    need(file != NULL, path);
    need(fread(blocks, 1, sizeof blocks, file) == sizeof blocks &&
             fread(expected, 1, sizeof expected, file) == sizeof expected && fgetc(file) == EOF,
         path);
    fclose(file);
}

typedef struct row {
    uint32_t type;
    element_type elements;
} row;

/* Super-blocks from `first` on. */
static bool try_blocks(const row *r, CUdeviceptr packed, CUdeviceptr out, size_t first, size_t count)
{
    size_t size = element_bytes(r->elements), n = count * BLOCK_ELEMENTS;
    kiln_status status = q4k_sample_q4k_dequantize(
        &loader, NULL,
        &(q4k_sample_q4k_dequantize_args){
            .packed = packed + first * BLOCK_BYTES, .out = out, .n = n, .type = r->type});
    need(status == KILN_OK, "q4k_dequantize");
    need(driver.ctx_synchronize() == 0 && driver.memcpy_dtoh(seen, out, n * size) == 0, "cuMemcpyDtoH");
    for (size_t i = 0; i < n; i++) {
        double value = (double)expected[first * BLOCK_ELEMENTS + i];
        uint64_t got = element_bits(r->elements, seen, i), wanted = number_encode(r->elements, value);
        if (got == wanted)
            continue;
        printf("WRONG %s: element %zu of super-block %zu is 0x%llx, expected 0x%llx\n",
               element_name(r->elements), i % BLOCK_ELEMENTS, first + i / BLOCK_ELEMENTS,
               (unsigned long long)got, (unsigned long long)wanted);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const row rows[] = {{Q4K_SAMPLE_Q4K_DEQUANTIZE_TYPE_F32, ELEMENT_F32},
                               {Q4K_SAMPLE_Q4K_DEQUANTIZE_TYPE_F16, ELEMENT_F16},
                               {Q4K_SAMPLE_Q4K_DEQUANTIZE_TYPE_BF16, ELEMENT_BF16}};
    static const size_t counts[] = {1, 3, 8, 13, MOST_BLOCKS};
    enum { ROWS = sizeof rows / sizeof rows[0], COUNTS = sizeof counts / sizeof counts[0] };
    CUdeviceptr packed = 0, out = 0;
    unsigned right = 0;
    if (argc != 3)
        return 2;
    open_device(argv[1]);
    read_vectors(argv[2]);
    need(driver.mem_alloc(&packed, sizeof blocks) == 0 && driver.mem_alloc(&out, sizeof seen) == 0,
         "cuMemAlloc");
    need(driver.memcpy_htod(packed, blocks, sizeof blocks) == 0, "cuMemcpyHtoD");
    for (size_t i = 0; i < ROWS * COUNTS; i++) {
        size_t count = counts[i % COUNTS];
        right += try_blocks(&rows[i / COUNTS], packed, out, MOST_BLOCKS - count, count);
    }
    printf("%u of %u right\n", right, ROWS * COUNTS);
    return kiln_close(&loader) != KILN_OK || right != ROWS * COUNTS;
}
