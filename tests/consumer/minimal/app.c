/* Quantises one group and prints its scale and codes: app [DRIVER]. */
#include <dlfcn.h>
#include <stdio.h>

#include "minimal.h"

enum { N = 64 };

static kiln_driver driver;
static kiln_slot slots[MINIMAL_SLOTS];
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

int main(int argc, char **argv)
{
    CUdeviceptr in, scale, packed;
    float x[N], s = 0;
    unsigned char codes[N / 2] = {0};
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 32) / 4;

    if (no_device(argc > 1 ? argv[1] : NULL)) {
        puts("no device; name the emulated driver: app DRIVER");
        return 77;
    }
    if (failed("cuMemAlloc", driver.mem_alloc(&in, sizeof x)) ||
        failed("cuMemAlloc", driver.mem_alloc(&scale, sizeof s)) ||
        failed("cuMemAlloc", driver.mem_alloc(&packed, sizeof codes)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(in, x, sizeof x)))
        return 1;

    kiln_status status = kiln_open(&loader, &driver, &minimal_bundle, slots, MINIMAL_SLOTS, NULL);
    if (status == KILN_OK)
        status = minimal_nf4_quantize(
            &loader, NULL, &(minimal_nf4_quantize_args){.in = in, .scale = scale, .packed = packed, .n = N});
    if (refused(status) || failed("cuMemcpyDtoH", driver.memcpy_dtoh(&s, scale, sizeof s)) ||
        failed("cuMemcpyDtoH", driver.memcpy_dtoh(codes, packed, sizeof codes)))
        return 1;
    printf("%s: %s, scale %g, codes", minimal_bundle.name, kiln_status_string(status), (double)s);
    for (int i = 0; i < N / 2; i += 8)
        printf(" %02x", codes[i]);
    puts("");
    status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(status);
}
