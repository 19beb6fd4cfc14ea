/* Decodes the GGUF reference package's vectors with the generated functions: gguf_dequantize and gguf_rows for each format and
 * type. For Q4_K also q4k_dequantize, and rmsnorm_q4k_gemv, whose product with a unit vector is exactly one element of each row.
 *
 *     gguf_vectors DRIVER VECTORS
 *
 * VECTORS has a section for each format: its name in 8 bytes, elements and bytes of a block and the number of blocks, u32 each;
 * the blocks; their elements, f32. All are little-endian. make_vectors.py makes them.
 */
#include "../../calls.h"

#include <math.h>

#include "number.h"
#include "sample.h"

enum { Q4K_ELEMENTS = 256, BATCH = 8, TYPES = 3 };

typedef struct section {
    char name[9];
    uint32_t elements, bytes, blocks;
    uint32_t format; /* in calls */
    unsigned char *packed;
    float *expected;
} section;

/* The output types of the three functions, which have the same numbers in all calls. */
static const uint32_t types[TYPES] = {SAMPLE_GGUF_DEQUANTIZE_TYPE_F32, SAMPLE_GGUF_DEQUANTIZE_TYPE_F16,
                                      SAMPLE_GGUF_DEQUANTIZE_TYPE_BF16};
static const element_type elements[TYPES] = {ELEMENT_F32, ELEMENT_F16, ELEMENT_BF16};
static unsigned right, all;

static void tally(bool is_right)
{
    right += is_right;
    all++;
}

/* ---- vectors ------------------------------------------------------------------------------------------------------ */

static uint32_t format_of(const char *name)
{
    static const char *const names[] = {"q4_0", "q4_1", "q5_0", "q5_1",   "q8_0",   "q2_k",  "q3_k",
                                        "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "tq2_0"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return SAMPLE_GGUF_DEQUANTIZE_FORMAT_Q4_0 + i;
    need(false, name);
    return 0;
}

static void *read_bytes(FILE *file, size_t bytes)
{
    void *memory = malloc(bytes);
    need(memory != NULL && fread(memory, 1, bytes, file) == bytes, "reading vectors");
    return memory;
}

/* Reads a section. Returns false at the file's end. */
static bool read_section(FILE *file, section *s)
{
    uint32_t sizes[3];
    memset(s, 0, sizeof *s);
    if (fread(s->name, 1, 8, file) != 8)
        return false;
    need(fread(sizes, 1, sizeof sizes, file) == sizeof sizes, s->name);
    s->elements = sizes[0];
    s->bytes = sizes[1];
    s->blocks = sizes[2];
    s->format = format_of(s->name);
    s->packed = read_bytes(file, (size_t)s->blocks * s->bytes);
    s->expected = read_bytes(file, (size_t)s->blocks * s->elements * sizeof(float));
    return true;
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

static bool is_nan(element_type type, uint64_t bits)
{
    return isnan(number_decode(type, bits));
}

/* Whether `count` elements of `out` equal `expected`; null means NaNs. */
static bool compare(const char *what, const section *s, element_type type, CUdeviceptr out, size_t first,
                    const float *expected, size_t count)
{
    size_t size = element_bytes(type);
    unsigned char *seen = malloc(count * size);
    bool is_right = seen != NULL;
    download(seen, out + first * size, count * size);
    for (size_t i = 0; i < count && is_right; i++) {
        uint64_t got = element_bits(type, seen, i);
        uint64_t wanted = number_encode(type, expected ? (double)expected[i] : (double)NAN);
        is_right = got == wanted || (is_nan(type, got) && is_nan(type, wanted));
        if (!is_right)
            printf("WRONG %s %s %s: element %zu of block %zu is 0x%llx, expected 0x%llx\n", what, s->name,
                   element_name(type), i % s->elements, i / s->elements, (unsigned long long)got,
                   (unsigned long long)wanted);
    }
    free(seen);
    return is_right;
}

static void try_tensor(const section *s, size_t type, CUdeviceptr packed, CUdeviceptr out, uint32_t blocks)
{
    size_t n = (size_t)blocks * s->elements;
    kiln_status status = sample_gguf_dequantize(
        &loader, NULL,
        &(sample_gguf_dequantize_args){
            .packed = packed, .out = out, .n = n, .format = s->format, .type = types[type]});
    need(status == KILN_OK, "gguf_dequantize");
    tally(compare("gguf_dequantize", s, elements[type], out, 0, s->expected, n));
    if (s->format != SAMPLE_GGUF_DEQUANTIZE_FORMAT_Q4_K)
        return;
    status = sample_q4k_dequantize(
        &loader, NULL,
        &(sample_q4k_dequantize_args){.packed = packed, .out = out, .n = n, .type = types[type]});
    need(status == KILN_OK, "q4k_dequantize");
    tally(compare("q4k_dequantize", s, elements[type], out, 0, s->expected, n));
}

/* Looks up rows of `width` blocks in reverse order, then a row outside the tensor. */
static void try_rows(const section *s, size_t type, CUdeviceptr packed, CUdeviceptr out, uint32_t width)
{
    uint32_t rows = s->blocks / width, k = width * s->elements;
    uint32_t *index = malloc((rows + 1) * sizeof *index);
    bool is_right = true;
    need(index != NULL, "malloc");
    for (uint32_t i = 0; i < rows; i++)
        index[i] = rows - 1 - i;
    index[rows] = rows;
    CUdeviceptr at = upload(index, (rows + 1) * sizeof *index);
    kiln_status status = sample_gguf_rows(&loader, NULL,
                                          &(sample_gguf_rows_args){.packed = packed,
                                                                   .index = at,
                                                                   .out = out,
                                                                   .tensor_rows = rows,
                                                                   .n = rows + 1,
                                                                   .k = k,
                                                                   .format = s->format,
                                                                   .type = types[type]});
    need(status == KILN_OK, "gguf_rows");
    for (uint32_t i = 0; i <= rows && is_right; i++) {
        const float *expected = i < rows ? s->expected + (size_t)index[i] * k : NULL;
        is_right = compare("gguf_rows", s, elements[type], out, (size_t)i * k, expected, k);
    }
    tally(is_right);
    free(index);
}

/* A NaN or an infinity in a row makes all its products NaNs. */
static bool is_row_finite(const section *s, size_t block)
{
    for (size_t i = 0; i < s->elements; i++)
        if (!isfinite(s->expected[block * s->elements + i]))
            return false;
    return true;
}

/* Multiplies the super-blocks, as rows, by eight unit vectors from element `first` on. */
static bool try_units(const section *s, CUdeviceptr packed, CUdeviceptr out, CUdeviceptr in, size_t first)
{
    static float units[BATCH * Q4K_ELEMENTS], *products;
    size_t bytes = BATCH * s->blocks * sizeof *products;
    products = realloc(products, bytes);
    need(products != NULL, "malloc");
    memset(units, 0, sizeof units);
    for (size_t i = 0; i < BATCH; i++)
        units[i * Q4K_ELEMENTS + first + i] = 1;
    upload_to(in, units, sizeof units);
    kiln_status status = sample_rmsnorm_q4k_gemv(&loader, NULL,
                                                 &(sample_rmsnorm_q4k_gemv_args){
                                                     .in = in,
                                                     .w = packed,
                                                     .out = out,
                                                     .n = s->blocks,
                                                     .k = Q4K_ELEMENTS,
                                                     .norm = SAMPLE_RMSNORM_Q4K_GEMV_NORM_NONE,
                                                     .batch = BATCH,
                                                 });
    need(status == KILN_OK, "rmsnorm_q4k_gemv");
    download(products, out, bytes);
    for (size_t i = 0; i < BATCH * s->blocks; i++) {
        size_t element = first + i / s->blocks, block = i % s->blocks;
        float wanted = s->expected[block * Q4K_ELEMENTS + element];
        if (products[i] == wanted || !isfinite(wanted) || !is_row_finite(s, block))
            continue;
        printf("WRONG product: element %zu of super-block %zu is %a, expected %a\n", element, block,
               (double)products[i], (double)wanted);
        return false;
    }
    return true;
}

static void try_section(const section *s)
{
    const uint32_t counts[] = {1, 3, s->blocks};
    CUdeviceptr packed = upload(s->packed, (size_t)s->blocks * s->bytes);
    CUdeviceptr out = allocate((size_t)(s->blocks + 3) * s->elements * sizeof(float));
    for (size_t type = 0; type < TYPES; type++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            try_tensor(s, type, packed, out, counts[i]);
        for (uint32_t width = 1; width <= 3; width++)
            try_rows(s, type, packed, out, width);
    }
    if (s->format != SAMPLE_GGUF_DEQUANTIZE_FORMAT_Q4_K)
        return;
    CUdeviceptr in = allocate(BATCH * Q4K_ELEMENTS * sizeof(float));
    for (size_t first = 0; first < Q4K_ELEMENTS; first += BATCH)
        tally(try_units(s, packed, out, in, first));
}

int main(int argc, char **argv)
{
    section s;
    if (argc != 3)
        return 2;
    open_device(argv[1], &sample_bundle);
    FILE *file = fopen(argv[2], "rb");
    need(file != NULL, argv[2]);
    while (read_section(file, &s)) {
        try_section(&s);
        free(s.packed);
        free(s.expected);
    }
    fclose(file);
    printf("%u of %u right\n", right, all);
    return kiln_close(&loader) != KILN_OK || right != all || all == 0;
}
