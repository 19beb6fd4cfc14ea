/* Adds 2 * x to y with saxpy.c's kernel: app [DRIVER]. */
#include <dlfcn.h>
#include <stdio.h>

#include "mine.h"

enum { N = 1000 };

static kiln_driver driver;
static kiln_slot slots[MINE_SLOTS];
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
    static double x[N], y[N];
    CUdeviceptr at_x, at_y;
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 1;
    }
    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    if (failed("cuMemAlloc", driver.mem_alloc(&at_x, sizeof x)) ||
        failed("cuMemAlloc", driver.mem_alloc(&at_y, sizeof y)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_x, x, sizeof x)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_y, y, sizeof y)))
        return 1;

    kiln_status status = kiln_open(&loader, &driver, &mine_bundle, slots, MINE_SLOTS, NULL);
    if (status == KILN_OK)
        status =
            mine_saxpy(&loader, NULL,
                       &(mine_saxpy_args){.a = 2, .x = at_x, .y = at_y, .n = N, .type = MINE_SAXPY_TYPE_F64});
    if (refused(status) || failed("cuMemcpyDtoH", driver.memcpy_dtoh(y, at_y, sizeof y)))
        return 1;
    printf("%s: %s, %g %g %g\n", mine_bundle.name, kiln_status_string(status), y[0], y[1], y[N - 1]);
    status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(status);
}
