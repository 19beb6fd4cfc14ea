/* Launches kiln's linear, then your own kernel on the same stream: y = gelu(x * W^T + bias). Usage: app [DRIVER]. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "encoder.h"

enum { ROWS = 2, MOST_COLUMNS = 8, K = 32, BLOCK_BYTES = 34 }; /* a Q8_0 block: a scale in f16, 32 bytes */

static kiln_driver driver;
static kiln_slot slots[ENCODER_SLOTS];
static kiln_loader loader;

/* Returns true if a driver call failed, and prints why. */
static int failed(const char *call, int result)
{
    char text[256];
    if (result != 0) {
        kiln_describe_driver(&driver, call, result, text, sizeof text);
        puts(text);
    }
    return result != 0;
}

/* Returns true if the runtime refused a call, and prints why. */
static int refused(kiln_status status)
{
    kiln_error error;
    char text[512];
    if (status != KILN_OK) {
        kiln_last_error(&loader, &error);
        kiln_describe_error(&loader, &error, NULL, text, sizeof text);
        puts(text);
    }
    return status != KILN_OK;
}

/* Opens the driver and makes a context current. On failure, prints why. */
static int no_device(const char *path)
{
    CUcontext context;
    const char *missing;
    kiln_status status = kiln_driver_load(&driver, path, &missing);
    if (status != KILN_OK)
        printf("%s: %s\n", kiln_status_string(status), missing ? missing : dlerror());
    return status != KILN_OK || failed("cuInit", driver.init(0)) ||
           failed("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, 0)) ||
           failed("cuCtxSetCurrent", driver.ctx_set_current(context));
}

static CUdeviceptr upload(const void *data, size_t bytes)
{
    CUdeviceptr at = 0;
    if (failed("cuMemAlloc", driver.mem_alloc(&at, bytes)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at, data, bytes)))
        return 0;
    return at;
}

/* Each element in row i of W is (i + 1) / 64 and each x is 1/2, so the product is (i + 1) / 4. */
static int run(uint32_t columns)
{
    static unsigned char weights[MOST_COLUMNS * BLOCK_BYTES];
    static float x[ROWS * K], bias[MOST_COLUMNS], y[ROWS * MOST_COLUMNS];
    const kiln_kernel *kernel;
    double error = 0;
    for (uint32_t i = 0; i < columns; i++) {
        memset(weights + i * BLOCK_BYTES, (int)i + 1, BLOCK_BYTES);
        memcpy(weights + i * BLOCK_BYTES, "\x00\x24", 2); /* 2^-6 */
        bias[i] = -1;
    }
    for (int i = 0; i < ROWS * K; i++)
        x[i] = 0.5F;
    const CUdeviceptr product = upload(y, sizeof y);
    const encoder_linear_args linear = {.in = upload(x, sizeof x),
                                        .w = upload(weights, sizeof weights),
                                        .out = product,
                                        .m = ROWS,
                                        .n = columns,
                                        .k = K};
    const encoder_bias_gelu_args gelu = {.out = upload(y, sizeof y),
                                         .x = product,
                                         .bias = upload(bias, sizeof bias),
                                         .rows = ROWS,
                                         .columns = columns};
    CUstream stream = NULL; /* one stream for both: the second launch waits for the first */
    if (refused(encoder_linear(&loader, stream, &linear)) ||
        refused(encoder_bias_gelu(&loader, stream, &gelu)) ||
        refused(encoder_bias_gelu_pick(&loader, &gelu, &kernel)) ||
        failed("cuMemcpyDtoH", driver.memcpy_dtoh(y, gelu.out, sizeof y)))
        return 1;
    for (uint32_t i = 0; i < ROWS * columns; i++) {
        const double t = (double)(i % columns + 1) / 4 - 1;
        error =
            fmax(error, fabs((double)y[i] - t / (1 + exp(-1.5957691216057308 * (t + 0.044715 * t * t * t)))));
    }
    printf("%s: %.4f %.4f %.4f, %s\n", kernel->id, (double)y[0], (double)y[1], (double)y[2],
           error < 1e-6 ? "right" : "wrong");
    return !(error < 1e-6);
}

int main(int argc, char **argv)
{
    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    if (refused(kiln_open(&loader, &driver, &encoder_bundle, slots, ENCODER_SLOTS, NULL)) || run(8) || run(6))
        return 1;
    const kiln_status status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(status);
}
