/* Overlapping launches of linear: a chain of three. Each reads what the preceding launch writes, and the last one overwrites the
 * input of the launch before it. Passes all checks, with the same bits as without overlap.
 *
 * usage: linear_overlap DRIVER, on sm_90 or newer
 */
#include "../../calls.h"

#include "sample.h"

enum { ROWS = 3, N = 512, W_BYTES = N * N * 34 / 32, OUT_BYTES = ROWS * N * 2 };

static unsigned overlapping; /* launches */

static int (*real_launch_ex)(const struct CUlaunchConfig_st *, CUfunction, void **, void **);

static int see_launch_ex(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                         void **extra)
{
    overlapping++;
    return real_launch_ex(config, function, params, extra);
}

static CUdeviceptr make_bytes(size_t count, unsigned period)
{
    unsigned char *bytes = malloc(count); /* read as 16-bit numbers, they are below 1 */
    need(bytes != NULL, "malloc");
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 7 % period);
    CUdeviceptr address = upload(bytes, count);
    free(bytes);
    return address;
}

static void run_chain(const kiln_kernel *kernel, const sample_linear_args *with, CUdeviceptr x, bool overlaps,
                      unsigned char out[OUT_BYTES])
{
    static kiln_slot slots[SAMPLE_SLOTS];
    const kiln_options options = {.overlap_launches = overlaps};
    sample_linear_args args = *with;
    const CUdeviceptr y[2] = {args.out, allocate(OUT_BYTES)};
    kiln_status status = kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, &options);
    overlapping = 0;
    for (unsigned i = 0; i < 3 && status == KILN_OK; i++) {
        args.in = i == 0 ? x : y[(i + 1) % 2];
        args.out = y[i % 2];
        status = kernel->launch(&loader, NULL, &args);
    }
    download(out, y[0], OUT_BYTES);
    judge(status == KILN_OK && overlapping == (overlaps ? 3 : 0), kernel->id, status);
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
}

int main(int argc, char **argv)
{
    static unsigned char alone[OUT_BYTES], overlapped[OUT_BYTES];
    need(argc == 2, "linear_overlap DRIVER");
    open_device(argv[1], &sample_bundle);
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
    real_launch_ex = driver.launch_kernel_ex;
    driver.launch_kernel_ex = see_launch_ex;
    const CUdeviceptr w = make_bytes(W_BYTES, 41), other = make_bytes(W_BYTES, 43),
                      x = make_bytes(OUT_BYTES, 37);
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        if (!has(kernel, "linear/format=q") || !has(kernel, "x=f16") || !has(kernel, "overlap=true"))
            continue;
        const sample_linear_args args = {.w = w,
                                         .w_2 = other,
                                         .gate = other,
                                         .out = allocate(OUT_BYTES),
                                         .out_2 = allocate(OUT_BYTES),
                                         .m = ROWS,
                                         .n = N,
                                         .n_2 = N,
                                         .k = N};
        run_chain(kernel, &args, x, false, alone);
        run_chain(kernel, &args, x, true, overlapped);
        judge(memcmp(alone, overlapped, OUT_BYTES) == 0, kernel->id, KILN_OK);
    }
    printf("%u of %u calls ended as documented\n", trials - wrong, trials);
    return wrong || !trials;
}
