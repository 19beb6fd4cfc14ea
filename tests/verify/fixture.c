/* A hand-written bundle for tests of kiln-verify itself: its kernels are C functions in fake_cuda.c, found by entry name.
 * KILN_FAULT plants a mistake in a launcher; kiln-verify must find each. */
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

static int fault(const char *name)
{
    static const char *wanted;
    if (!wanted)
        wanted = getenv("KILN_FAULT") ? getenv("KILN_FAULT") : "";
    return strcmp(wanted, name) == 0;
}

static const kiln_image image = {.data = "fixture",
                                 .bytes = 7,
                                 .hash_high = 0x849dd23abfe9a942,
                                 .hash_low = 0x54d0ed0ee0052e3a,
                                 .min_driver = 10020,
                                 .sm = 75};
static const kiln_module modules[3] = {{&image, 1, 0}, {&image, 1, 1}, {&image, 1, 2}};

/* ---- shared by the launchers -------------------------------------------------------------------------------------- */

typedef struct nf4_args {
    CUdeviceptr first, scale, last;
    uint64_t n;
    uint32_t type, group, nibbles;
} nf4_args;

static kiln_status check_nf4(kiln_loader *loader, const nf4_args *a)
{
    static const char subject[] = "nf4", broken[] = "n must be at most 2^40", null[] = "null",
                      least[] = "aligned to 4";
    kiln_status status = kiln_begin(loader, a, subject);
    if (status != KILN_OK)
        return status;
    if (a->n > 1099511627776 && !fault("rule-unchecked"))
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, subject, broken);
    if (a->n == 0)
        return KILN_OK;
    if ((a->first == 0 || a->scale == 0 || a->last == 0) && !fault("null-unchecked"))
        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, subject, null);
    return a->scale % 4 == 0 || fault("alignment-unchecked")
               ? KILN_OK
               : kiln_fail(loader, KILN_ERROR_MISALIGNED, subject, least);
}

static kiln_status launch_nf4(kiln_loader *loader, const kiln_kernel *kernel, CUstream stream,
                              const nf4_args *args, uint64_t per_block, uint64_t most_blocks, int is_aligned)
{
    static const char subject[] = "nf4", least[] = "aligned to 4";
    kiln_status status = check_nf4(loader, args);
    if (status != KILN_OK)
        return status;
    nf4_args a = *args;
    if (a.n == 0 && !fault("empty-launches"))
        return KILN_OK;
    if (!is_aligned)
        return kiln_fail(loader, KILN_ERROR_MISALIGNED, subject, least);
    uint64_t blocks = (a.n + per_block - 1) / per_block + (fault("one-block-more") || a.n == 0);
    const uint64_t grid[3] = {blocks < most_blocks ? blocks : most_blocks, 1, 1};
    const void *const params[] = {&a.first, &a.scale, &a.last, &a.n};
    return kiln_launch(loader, kernel, stream, grid, 0, params);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

extern const kiln_kernel verify_fixture_quantize_kernel, verify_fixture_unpack_kernel,
    verify_fixture_axpy_kernel;
kiln_status verify_fixture_nf4_quantize(kiln_loader *loader, CUstream stream, const void *args);
kiln_status verify_fixture_nf4_unpack(kiln_loader *loader, CUstream stream, const void *args);

static kiln_status launch_quantize(kiln_loader *loader, CUstream stream, const void *args)
{
    const nf4_args *a = args;
    return launch_nf4(loader, &verify_fixture_quantize_kernel, stream, a, 2048, UINT64_MAX,
                      a == NULL || a->first % 4 == 0);
}

static kiln_status launch_unpack(kiln_loader *loader, CUstream stream, const void *args)
{
    const nf4_args *a = args;
    return launch_nf4(loader, &verify_fixture_unpack_kernel, stream, a, 1024,
                      loader ? 4 * (uint64_t)loader->device.multiprocessors : 1,
                      a == NULL || a->last % 4 == 0);
}

typedef struct axpy_args {
    CUdeviceptr x, y, norm;
    float a;
    uint32_t n;
} axpy_args;

static kiln_status launch_axpy(kiln_loader *loader, CUstream stream, const void *args)
{
    static const char subject[] = "axpy", odd[] = "n must be even", null[] = "null", least[] = "aligned to 8",
                      wide[] = "x must be aligned to 16 bytes";
    kiln_status status = kiln_begin(loader, args, subject);
    if (status != KILN_OK)
        return status;
    axpy_args a = *(const axpy_args *)args;
    if (a.n % 2 != 0)
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, subject, odd);
    if (a.n >= 100 && a.x % 16 != 0 && !fault("aligned-rule-unchecked"))
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, subject, wide);
    if ((a.n > 0 || fault("empty-refused")) && (a.x == 0 || a.y == 0))
        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, subject, null);
    if (a.x % 8 || a.y % 8 || a.norm % 8)
        return kiln_fail(loader, KILN_ERROR_MISALIGNED, subject, least);
    const uint64_t blocks = (a.n + UINT64_C(255)) / 256, grid[3] = {blocks ? blocks : 1, 1, 1};
    const void *const params[] = {&a.x, &a.y, &a.norm, &a.a, &a.n};
    return kiln_launch(loader, &verify_fixture_axpy_kernel, stream, grid, UINT64_C(16) * a.n, params);
}

const kiln_kernel verify_fixture_quantize_kernel = {.key = 0xbd68b5aefb33a5b9,
                                                    .id = "nf4_quantize/type=f32,group=64,nibbles=low",
                                                    .entry = "nf4_quantize_f32_64_low",
                                                    .module = &modules[0],
                                                    .launch = launch_quantize,
                                                    .block = {32, 1, 1},
                                                    .slot = 0};
const kiln_kernel verify_fixture_unpack_kernel = {.key = 0xa25eefa747358c3c,
                                                  .id = "nf4_unpack/type=f32,group=64,nibbles=high",
                                                  .entry = "nf4_unpack_f32_64_high",
                                                  .module = &modules[1],
                                                  .launch = launch_unpack,
                                                  .block = {128, 1, 1},
                                                  .slot = 1};
const kiln_kernel verify_fixture_axpy_kernel = {.key = 0x70020ac917cc9f7d,
                                                .id = "axpy",
                                                .entry = "axpy",
                                                .module = &modules[2],
                                                .launch = launch_axpy,
                                                .block = {256, 1, 1},
                                                .slot = 2,
                                                .max_shared_bytes = 4194304};

/* ---- families' functions: the caller names the variant -------------------------------------------------------------- */

kiln_status verify_fixture_nf4_quantize(kiln_loader *loader, CUstream stream, const void *args)
{
    const nf4_args *a = args;
    if (a && (a->type != 3 || a->group != 64 || a->nibbles != 1))
        return KILN_ERROR_NO_VARIANT;
    return fault("dispatch") ? KILN_OK : launch_quantize(loader, stream, args);
}

kiln_status verify_fixture_nf4_unpack(kiln_loader *loader, CUstream stream, const void *args)
{
    const nf4_args *a = args;
    if (a && (a->type != 3 || a->group != 64 || a->nibbles != 2))
        return KILN_ERROR_NO_VARIANT;
    return launch_unpack(loader, stream, args);
}

/* ---- the bundle ---------------------------------------------------------------------------------------------------- */

static const kiln_kernel *const kernels[] = {&verify_fixture_quantize_kernel, &verify_fixture_unpack_kernel,
                                             &verify_fixture_axpy_kernel};
/* Places of the keys' low three bits, 1, 4 and 5. */
static const uint32_t table[8] = {0, 1, 0, 0, 2, 3, 0, 0};
static const kiln_bundle bundle = {KILN_LAYOUT_VERSION, 3, 3, 3, 0, "verify_fixture"};
extern const kiln_index verify_fixture_index;
const kiln_index verify_fixture_index = {
    .bundle = &bundle, .kernels = kernels, .table = table, .table_mask = 7};
