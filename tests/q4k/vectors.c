/* The vectors of the GGUF reference package through the generated functions: q4k_dequantize in each type and a few numbers of
 * super-blocks; rmsnorm_q4k_gemv, whose products of a unit vector are one element of each row, exactly.
 *
 *     q4k_vectors DRIVER VECTORS
 */
#include "../calls.h"

#include "number.h"
#include "q4k_sample.h"

enum {
    BLOCK_BYTES = 144,
    BLOCK_ELEMENTS = 256,
    MOST_BLOCKS = 64,
    BATCH = 8,
    MOST_ELEMENTS = MOST_BLOCKS * BLOCK_ELEMENTS
};

static unsigned char blocks[MOST_BLOCKS * BLOCK_BYTES], seen[MOST_ELEMENTS * sizeof(float)];
static float expected[MOST_ELEMENTS];

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
    download(seen, out, n * size);
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

/* Eight unit vectors, from element `first` on, times the super-blocks as rows. */
static bool try_units(CUdeviceptr packed, CUdeviceptr out, CUdeviceptr in, size_t first)
{
    static float units[BATCH * BLOCK_ELEMENTS], products[BATCH * MOST_BLOCKS];
    memset(units, 0, sizeof units);
    for (size_t i = 0; i < BATCH; i++)
        units[i * BLOCK_ELEMENTS + first + i] = 1;
    upload_to(in, units, sizeof units);
    kiln_status status = q4k_sample_rmsnorm_q4k_gemv(&loader, NULL,
                                                     &(q4k_sample_rmsnorm_q4k_gemv_args){
                                                         .in = in,
                                                         .w = packed,
                                                         .out = out,
                                                         .n = MOST_BLOCKS,
                                                         .k = BLOCK_ELEMENTS,
                                                         .norm = Q4K_SAMPLE_RMSNORM_Q4K_GEMV_NORM_NONE,
                                                         .batch = BATCH,
                                                     });
    need(status == KILN_OK, "rmsnorm_q4k_gemv");
    download(products, out, sizeof products);
    for (size_t i = 0; i < BATCH * MOST_BLOCKS; i++) {
        size_t element = first + i / MOST_BLOCKS, block = i % MOST_BLOCKS;
        float wanted = expected[block * BLOCK_ELEMENTS + element];
        if (products[i] == wanted)
            continue;
        printf("WRONG product: element %zu of super-block %zu is %a, expected %a\n", element, block,
               (double)products[i], (double)wanted);
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
    enum {
        ROWS = sizeof rows / sizeof rows[0],
        COUNTS = sizeof counts / sizeof counts[0],
        ALL = ROWS * COUNTS + BLOCK_ELEMENTS / BATCH
    };
    unsigned right = 0;
    if (argc != 3)
        return 2;
    open_device(argv[1], &q4k_sample_bundle);
    read_vectors(argv[2]);
    CUdeviceptr packed = upload(blocks, sizeof blocks), out = allocate(sizeof seen),
                in = allocate(BATCH * BLOCK_ELEMENTS * sizeof(float));
    for (size_t i = 0; i < ROWS * COUNTS; i++) {
        size_t count = counts[i % COUNTS];
        right += try_blocks(&rows[i / COUNTS], packed, out, MOST_BLOCKS - count, count);
    }
    for (size_t first = 0; first < BLOCK_ELEMENTS; first += BATCH)
        right += try_units(packed, out, in, first);
    printf("%u of %u right\n", right, ALL);
    return kiln_close(&loader) != KILN_OK || right != ALL;
}
