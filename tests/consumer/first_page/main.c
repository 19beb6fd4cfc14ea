/* Multiplies NF4 weights on the GPU, or on the emulated driver, and prints an element beside its exact value. */
#include <stdio.h>
#include <stdlib.h>

#include "appkernels.h"

enum { N = 64, K = 1024 };

static kiln_driver driver; /* the caller owns all storage */
static kiln_loader loader;
static kiln_slot slots[APPKERNELS_SLOTS];
static float w[N * K], x[K], y[N];

static void need(const char *call, int result)
{
    char text[256];
    if (result == 0)
        return;
    kiln_describe_driver(&driver, call, result, text, sizeof text);
    puts(text);
    exit(1);
}

/* A call of the runtime, or of a generated function. */
static void check(kiln_status status)
{
    char text[512];
    kiln_error error = {.status = status};
    if (status == KILN_OK)
        return;
    kiln_last_error(&loader, &error);
    kiln_describe_error(&loader, &error, NULL, text, sizeof text);
    puts(text);
    exit(1);
}

static CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr to;
    need("cuMemAlloc", driver.mem_alloc(&to, bytes));
    need("cuMemcpyHtoD", driver.memcpy_htod(to, from, bytes));
    return to;
}

static void open_device(void)
{
    CUcontext context;
    const char *missing;
    const kiln_status status = kiln_driver_load(&driver, NULL, &missing); /* libcuda.so.1 */
    if (status != KILN_OK) {
        printf("%s%s%s\n", kiln_status_string(status), missing ? ": " : "", missing ? missing : "");
        exit(1);
    }
    need("cuInit", driver.init(0));
    need("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, 0));
    need("cuCtxSetCurrent", driver.ctx_set_current(context));
}

int main(void)
{
    double exact = 0;
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i % 3 - 1); /* NF4 holds -1, 0 and 1 exactly */
    for (int k = 0; k < K; k++)
        exact += (x[k] = (float)k) * w[k];
    open_device();

    /* As narrow as a column of the first page. */
    /* clang-format off */
    check(kiln_open(&loader, &driver,
        &appkernels_bundle, slots,
        APPKERNELS_SLOTS, NULL));

    appkernels_nf4_quantize_args q = {
        .in = upload(w, N*K*4), .n = N*K,
        .packed = upload(w, N*K/2),
        .scale = upload(w, N*K/64*4)};
    check(appkernels_nf4_quantize(
        &loader, NULL, &q));

    appkernels_nf4_gemm_args g = {
        .in = upload(x, K*4), .m = 1,
        .packed = q.packed, .n = N,
        .scale = q.scale, .k = K,
        .out = upload(y, N*4)};
    check(appkernels_nf4_gemm(
        &loader, NULL, &g));

    /* clang-format on */
    need("cuMemcpyDtoH", driver.memcpy_dtoh(y, g.out, N * 4));
    printf("y[0] = %g, exactly %g\n", y[0], exact);

    check(kiln_close(&loader));
    return (double)y[0] != exact;
}
