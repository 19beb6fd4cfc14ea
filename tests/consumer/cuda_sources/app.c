/* Scales eight numbers, reverses them and prints the first three: app [DRIVER]. */
#include <dlfcn.h>
#include <stdio.h>

#include "vectors.h"

enum { N = 8 };

static kiln_driver driver;
static kiln_slot slots[VECTORS_SLOTS];
static kiln_loader loader;

/* Prints why a driver call failed, and says whether it did. */
static int failed(const char *call, int result)
{
    char text[256];
    if (result != 0) {
        kiln_describe_driver(&driver, call, result, text, sizeof text);
        puts(text);
    }
    return result != 0;
}

/* Prints why the runtime refused a call, and says whether it did. */
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

/* Opens the driver and makes a context current, or prints why not. */
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
    CUdeviceptr x, y;
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;

    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    if (failed("cuMemAlloc", driver.mem_alloc(&x, sizeof numbers)) ||
        failed("cuMemAlloc", driver.mem_alloc(&y, sizeof numbers)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(x, numbers, sizeof numbers)))
        return 1;

    kiln_status status = kiln_open(&loader, &driver, &vectors_bundle, slots, VECTORS_SLOTS, NULL);
    if (status == KILN_OK)
        status = vectors_scale(&loader, NULL, &(vectors_scale_args){.y = y, .x = x, .a = 3, .n = N});
    if (status == KILN_OK)
        status = vectors_reverse(&loader, NULL, &(vectors_reverse_args){.y = x, .x = y, .n = N});
    if (refused(status) || failed("cuMemcpyDtoH", driver.memcpy_dtoh(numbers, x, sizeof numbers)))
        return 1;
    printf("%s, %g %g %g\n", kiln_status_string(status), (double)numbers[0], (double)numbers[1],
           (double)numbers[2]);
    status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(status);
}
