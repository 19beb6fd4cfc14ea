/* Calls that nf4_gemm's generated functions refuse: the documented status, and no launch. And the picks of dispatch.
 *
 *     nf4_gemm_status DRIVER
 */
#include "../../calls.h"

#include "sample.h"

typedef sample_nf4_gemm_args arguments;

enum {
    M = 3,
    N = 5,
    K = 128,
    MANY_COLUMNS = 1 << 14,
    BYTES = 1 << 20,
    ALIGNED_BYTES = 66560,
    NO_SUCH_WORD = 99
};

static kiln_status call(const arguments *a)
{
    return sample_nf4_gemm(&loader, NULL, a);
}

/* Makes a correct call with one change. */
#define TRY(change, expected, launches)                                                                      \
    do {                                                                                                     \
        arguments a = right;                                                                                 \
        a.change;                                                                                            \
        expect(#change, call(&a), expected, launches);                                                       \
    } while (0)

static void try_arguments(const arguments right)
{
    TRY(m = M, KILN_OK, 1);
    TRY(m = 0, KILN_OK, 0);
    TRY(n = 0, KILN_OK, 0);
    TRY(k = 0, KILN_OK, 1); /* C is zero */
    arguments without_k = right;
    without_k.k = 0;
    without_k.in = without_k.packed = without_k.scale = 0; /* they have no elements */
    expect("k = 0, inputs null", call(&without_k), KILN_OK, 1);
    without_k.out = 0;
    expect("k = 0, all null", call(&without_k), KILN_ERROR_NULL_POINTER, 0);
    TRY(k = 1, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 63, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 96, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(m = 65536, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(n = 0x80000001, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 0x80000040, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(in = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(packed = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(scale = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(out = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(in += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(packed += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(scale += 2, KILN_ERROR_MISALIGNED, 0);
    TRY(scale += 4, KILN_OK, 1);
    TRY(out += 2, KILN_ERROR_MISALIGNED, 0);
    TRY(a = NO_SUCH_WORD, KILN_ERROR_NO_VARIANT, 0);
    TRY(nibbles = NO_SUCH_WORD, KILN_ERROR_NO_VARIANT, 0);
    arguments none = {.m = 0};
    expect("nothing but m = 0", call(&none), KILN_OK, 0);
    expect("no arguments", call(NULL), KILN_ERROR_NULL_POINTER, 0);
}

static void try_types(arguments right)
{
    right.acc = SAMPLE_NF4_GEMM_ACC_F64;
    TRY(m = M, KILN_OK, 1);
    TRY(a = SAMPLE_NF4_GEMM_A_F16, KILN_ERROR_NO_VARIANT, 0);
}

/* Dispatch takes the least estimate. It skips the aligned table if a thread block may not have that much shared memory. */
static void try_dispatch(arguments a, bool has_aligned)
{
    const uint32_t rows[] = {1, 8, 17};
    is_dry = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kiln_candidate list[32];
        const kiln_kernel *picked = NULL;
        size_t count = 0, ruled_out = 0;
        a.m = rows[i];
        a.n = MANY_COLUMNS;
        expect("the pick", sample_nf4_gemm_pick(&loader, &a, &picked), KILN_OK, 0);
        expect("the candidates", sample_nf4_gemm_candidates(&loader, &a, list, 32, &count), KILN_OK, 0);
        const kiln_candidate *best = NULL;
        for (size_t k = 0; k < count; k++) {
            if (!list[k].why_not && (!best || list[k].cycles < best->cycles))
                best = &list[k];
            ruled_out += list[k].why_not && strstr(list[k].kernel->id, "table=aligned");
        }
        judge(best && picked == best->kernel && (ruled_out == 0) == has_aligned, "the pick is the least",
              KILN_OK);
        expect("it is launched", call(&a), KILN_OK, 1);
    }
    is_dry = false;
}

/* A C with a larger row stride gets the same rows, and the gaps between them are unchanged. */
static void try_strided(arguments a, unsigned type, size_t bytes)
{
    enum { GAP = 3, FILLER = 0x5a };
    unsigned char together[M * N * 4], apart[M * (N + GAP) * 4], input[M * (K + 8) * 4];
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = (unsigned char)(i % 4 % bytes == bytes - 1 ? 0x3c : i * 7);
    upload_to(a.in, input, sizeof input);
    upload_to(a.packed, input, N * K / 2);
    upload_to(a.scale, input, N * K / 64 * 4);
    a.a = type;
    a.rows = SAMPLE_NF4_GEMM_ROWS_STRIDED;
    a.a_stride = K + 8;
    a.c_stride = N;
    expect("rows together", call(&a), KILN_OK, 1);
    download(together, a.out, sizeof together);
    set(a.out, FILLER, sizeof apart);
    a.c_stride = N + GAP;
    expect("rows apart", call(&a), KILN_OK, 1);
    download(apart, a.out, sizeof apart);
    for (size_t row = 0; row < M; row++) {
        const unsigned char *line = apart + row * (N + GAP) * bytes;
        bool is_right = memcmp(line, together + row * N * bytes, N * bytes) == 0;
        for (size_t i = N * bytes; i < (N + GAP) * bytes; i++)
            is_right = is_right && line[i] == FILLER;
        judge(is_right, "a row and what follows it", KILN_OK);
    }
    a.c_stride = N - 1;
    expect("c_stride below n", call(&a), KILN_ERROR_BAD_ARGUMENT, 0);
    a.c_stride = N;
    a.a_stride = K + 4;
    expect("a_stride no multiple of 8", call(&a), KILN_ERROR_BAD_ARGUMENT, 0);
    a.a_stride = K - 8;
    expect("a_stride below k", call(&a), KILN_ERROR_BAD_ARGUMENT, 0);
}

/* Strategy tiles takes rows of at most 2^24 elements; other variants for the same call take longer ones. */
static void try_long_rows(arguments a)
{
    enum { MOST = 1 << 24 };
    const kiln_kernel *picked = NULL;
    kiln_error error;
    is_dry = true;
    arguments packed = a;
    packed.a = SAMPLE_NF4_GEMM_A_F16;
    packed.k = MOST + 64;
    expect("the pick for long rows", sample_nf4_gemm_pick(&loader, &packed, &picked), KILN_OK, 0);
    judge(picked && !has(picked, "strategy=tiles"), "the pick has another strategy", KILN_OK);
    a.a = SAMPLE_NF4_GEMM_A_BF16; /* dispatch picks only strategy tiles for these */
    a.nibbles = SAMPLE_NF4_GEMM_NIBBLES_HIGH;
    a.rows = SAMPLE_NF4_GEMM_ROWS_STRIDED;
    a.c_stride = N;
    a.a_stride = MOST;
    expect("the longest rows", call(&a), KILN_OK, 1);
    a.a_stride = MOST + 8;
    expect("rows that are too long", call(&a), KILN_ERROR_BAD_ARGUMENT, 0);
    kiln_last_error(&loader, &error);
    judge(strcmp(error.detail, "with strategy tiles a_stride must be at most 2^24") == 0, error.detail,
          error.status);
    is_dry = false;
}

/* Calls the kernel with the aligned table by its own function. */
static void try_forced(const arguments *right, bool has_aligned)
{
    kiln_error error;
    kiln_status status = sample_nf4_gemm_f32_f32_low_simt_1_32_8_aligned_2_1(&loader, NULL, right);
    expect("the aligned table by its name", status, has_aligned ? KILN_OK : KILN_ERROR_BAD_ARGUMENT,
           has_aligned);
    if (has_aligned)
        return;
    kiln_last_error(&loader, &error);
    judge(error.needed > ALIGNED_BYTES && error.present == loader.device.max_shared_bytes, "its details",
          error.status);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    const bool has_aligned = loader.device.max_shared_bytes >= 101376;
    const arguments right = {.a = SAMPLE_NF4_GEMM_A_F32,
                             .in = allocate(BYTES),
                             .packed = allocate(BYTES),
                             .scale = allocate(BYTES),
                             .out = allocate(BYTES),
                             .m = M,
                             .n = N,
                             .k = K};
    try_arguments(right);
    try_types(right);
    try_dispatch(right, has_aligned);
    try_forced(&right, has_aligned);
    try_strided(right, SAMPLE_NF4_GEMM_A_F32, 4);
    try_strided(right, SAMPLE_NF4_GEMM_A_F16, 2);
    if (loader.device.sm >= 80)
        try_long_rows(right);
    return end_calls();
}
