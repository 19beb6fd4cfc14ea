/* What the generated functions of nf4_gemm refuse: the documented status, nothing launched; and what dispatch picks.
 *
 *     gemm_status DRIVER
 */
#include "gemm_test.h"

enum {
    M = 3,
    N = 5,
    K = 128,
    MANY_COLUMNS = 1 << 14,
    BYTES = 1 << 20,
    WINDOW_BYTES = 66560,
    NO_SUCH_WORD = 99
};

static unsigned launches, trials, wrong, threads, shared;

static int note_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void **params, void **extra)
{
    launches++;
    threads = block_x;
    shared = shared_bytes;
    return real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                       params, extra);
}

static void check(const char *what, bool is_right, kiln_status status)
{
    trials++;
    if (is_right)
        return;
    wrong++;
    printf("WRONG %s: \"%s\", %u launches, %u threads, %u bytes\n", what, kiln_status_string(status),
           launches, threads, shared);
}

static void expect(const char *what, const arguments *a, kiln_status expected, unsigned launched)
{
    launches = 0;
    kiln_status status = gemm_sample_nf4_gemm(&loader, NULL, a);
    check(what, status == expected && launches == launched, status);
}

/* The call that is right but for what is said. */
#define TRY(change, expected, launched)                                                                      \
    do {                                                                                                     \
        arguments a = right;                                                                                 \
        a.change;                                                                                            \
        expect(#change, &a, expected, launched);                                                             \
    } while (0)

static void try_arguments(const arguments right)
{
    TRY(m = M, KILN_OK, 1);
    TRY(m = 0, KILN_OK, 0);
    TRY(n = 0, KILN_OK, 0);
    TRY(k = 0, KILN_OK, 1); /* C is zero */
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
    expect("nothing but m = 0", &none, KILN_OK, 0);
    expect("no arguments", NULL, KILN_ERROR_NULL_POINTER, 0);
}

static void try_types(arguments right)
{
    right.acc = GEMM_SAMPLE_NF4_GEMM_ACC_F64;
    TRY(m = M, KILN_OK, 1);
    TRY(a = GEMM_SAMPLE_NF4_GEMM_A_F16, KILN_ERROR_NO_VARIANT, 0);
}

/* Tiles by the number of rows; a window where a thread block may have so much shared memory. */
static void try_dispatch(const arguments right)
{
    const bool has_window = loader.device.max_shared_bytes >= 101376;
    arguments a = right;
    a.m = 1;
    a.n = MANY_COLUMNS;
    expect("one row", &a, KILN_OK, 1);
    check("one row: the window", (shared > WINDOW_BYTES) == has_window && threads == (has_window ? 256 : 128),
          KILN_OK);
    a = right;
    a.m = 8;
    expect("eight rows", &a, KILN_OK, 1);
    check("eight rows: the window", (shared > WINDOW_BYTES) == has_window && threads == 128, KILN_OK);
    a.m = 17;
    expect("17 rows", &a, KILN_OK, 1);
    check("17 rows: 32 at once", shared == 80 * 4 * (32 + 64) + 272 * 64 && threads == 128, KILN_OK);
}

/* The kernel with the window, asked for by its name. */
static void try_forced(const arguments *right)
{
    const bool has_window = loader.device.max_shared_bytes >= 101376;
    kiln_error error;
    launches = 0;
    kiln_status status = gemm_sample_nf4_gemm_f32_f32_low_simt_1_32_8_window_2_1(&loader, NULL, right);
    kiln_status expected = has_window ? KILN_OK : KILN_ERROR_BAD_ARGUMENT;
    check("the window by its name", status == expected && launches == has_window, status);
    if (has_window)
        return;
    kiln_last_error(&loader, &error);
    check("its details", error.needed > 66560 && error.present == loader.device.max_shared_bytes,
          error.status);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], note_launch);
    const arguments right = {.a = GEMM_SAMPLE_NF4_GEMM_A_F32,
                             .in = allocate(BYTES),
                             .packed = allocate(BYTES),
                             .scale = allocate(BYTES),
                             .out = allocate(BYTES),
                             .m = M,
                             .n = N,
                             .k = K};
    try_arguments(right);
    try_types(right);
    try_dispatch(right);
    try_forced(&right);
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
    printf("%u of %u calls ended as documented\n", trials - wrong, trials);
    return wrong != 0;
}
