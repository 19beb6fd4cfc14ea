/* Calls that the generated function of the transposed NF4 product refuses: the documented status, and no launch.
 *
 *     nf4_gemm_transposed_status DRIVER
 */
#include "../../calls.h"

#include "sample.h"

typedef sample_nf4_gemm_transposed_args arguments;

enum { M = 3, N = 5, K = 128, BYTES = 1 << 20, WORKSPACE = 1 * 4 * 512 };

static CUdeviceptr memory(void)
{
    CUdeviceptr address = allocate(BYTES);
    set(address, 0, BYTES);
    return address;
}

static kiln_status call(const arguments *a)
{
    return sample_nf4_gemm_transposed(&loader, NULL, a);
}

/* Makes a correct call with one change. */
#define TRY(change, expected, launches)                                                                      \
    do {                                                                                                     \
        arguments a = right;                                                                                 \
        a.change;                                                                                            \
        expect(#change, call(&a), expected, launches);                                                       \
    } while (0)

static void try_all(const arguments right)
{
    TRY(m = M, KILN_OK, 1);
    TRY(m = 0, KILN_OK, 0);
    TRY(k = 0, KILN_OK, 0);
    TRY(k = 96, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 1, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(m = 65536, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(n = 0x80000001, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 0x80000040, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(in = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(packed = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(scale = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(out = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(in += 1, KILN_ERROR_MISALIGNED, 0);
    TRY(packed += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(scale += 2, KILN_ERROR_MISALIGNED, 0);
    TRY(out += 1, KILN_ERROR_MISALIGNED, 0);
}

/* Without columns inputs may be null; C is zero. */
static void try_no_columns(arguments right)
{
    static unsigned char c[4 * M * K], zero[sizeof c];
    right.n = 0;
    TRY(in = 0, KILN_OK, 1);
    TRY(packed = 0, KILN_OK, 1);
    TRY(scale = 0, KILN_OK, 1);
    TRY(out = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(in += 1, KILN_ERROR_MISALIGNED, 0);
    set(right.out, 0xff, sizeof c);
    right.in = right.packed = right.scale = 0;
    TRY(n = 0, KILN_OK, 1);
    download(c, right.out, sizeof c);
    judge(memcmp(c, zero, sizeof c) == 0, "C is zero without columns", KILN_OK);
}

static bool picks(const arguments *a, const char *wanted)
{
    const kiln_kernel *kernel = NULL;
    const kiln_status status = sample_nf4_gemm_transposed_pick(&loader, a, &kernel);
    const bool is_right = status == KILN_OK && kernel && strstr(kernel->id, wanted);
    if (!is_right)
        printf("picked %s, not %s\n", kernel ? kernel->id : "nothing", wanted);
    return is_right;
}

/* f16 products need a caller's promise of normal scales. Without it tf32 runs, or CUDA cores before sm_80. */
static void try_scales(arguments right)
{
    const bool has_tf32 = loader.device.sm >= 80;
    right.a = SAMPLE_NF4_GEMM_TRANSPOSED_A_F16;
    right.m = 2048;
    right.n = right.k = 4096;
    judge(picks(&right, has_tf32
                            ? "strategy=mma,tile_m=64,k_warps=8,split_k=1,vector=1,table=compact,scales=any"
                            : "strategy=simt,"),
          "f16, any scales", KILN_OK);
    TRY(normal_scales = 2, KILN_ERROR_BAD_ARGUMENT, 0);
    kiln_status status =
        sample_nf4_gemm_transposed_f16_f32_low_mma_64_8_1_1_compact_normal(&loader, NULL, &right);
    judge(status == KILN_ERROR_BAD_ARGUMENT, "f16 products, any scales", status);
    right.normal_scales = 1;
    judge(picks(&right, "strategy=mma,tile_m=64,k_warps=8,split_k=1,vector=1,table=compact,scales=normal"),
          "f16, normal scales", KILN_OK);
    right.a = SAMPLE_NF4_GEMM_TRANSPOSED_A_F32; /* without f16 products the promise changes nothing */
    judge(picks(&right, "strategy=simt,"), "f32, normal scales", KILN_OK);
}

/* One row of many columns: four thread blocks together are faster than one, so dispatch splits n if it may. */
static void try_workspace(arguments right)
{
    is_dry = true;
    right.m = 1;
    right.n = 65536;
    right.workspace_size = WORKSPACE;
    TRY(m = 1, KILN_OK, 1);
    TRY(workspace = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(tile_counters = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(workspace += 4, KILN_ERROR_MISALIGNED, 0);
    TRY(tile_counters += 2, KILN_ERROR_MISALIGNED, 0);
    right.workspace = 0;
    TRY(workspace_size = WORKSPACE - 1, KILN_OK, 1); /* too small: ignored */
    TRY(workspace_size = 0, KILN_OK, 1);
    is_dry = false;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    const arguments right = {.a = SAMPLE_NF4_GEMM_TRANSPOSED_A_F32,
                             .in = memory(),
                             .packed = memory(),
                             .scale = memory(),
                             .out = memory(),
                             .workspace = memory(),
                             .tile_counters = memory(),
                             .m = M,
                             .n = N,
                             .k = K};
    try_all(right);
    try_no_columns(right);
    try_scales(right);
    try_workspace(right);
    return end_calls();
}
