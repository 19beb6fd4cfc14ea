/* What the programs of these projects share: a driver, a current context, and failed calls in words. */
#include <dlfcn.h>
#include <stdio.h>

#include <kiln/kiln.h>

static kiln_driver driver;

/* Returns true if a driver call failed, and prints why. */
static inline int failed(const char *call, int result)
{
    char text[256];
    if (result != 0) {
        kiln_describe_driver(&driver, call, result, text, sizeof text);
        puts(text);
    }
    return result != 0;
}

/* Returns true if the runtime refused a call, and prints why. */
static inline int refused(kiln_loader *loader, kiln_status status)
{
    kiln_error error;
    char text[512];
    if (status != KILN_OK) {
        kiln_last_error(loader, &error);
        kiln_describe_error(loader, &error, NULL, text, sizeof text);
        puts(text);
    }
    return status != KILN_OK;
}

/* Opens the driver at `path` (null: libcuda.so.1) and makes a context current. On failure, returns true and prints why. */
static inline int no_device(const char *path)
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

/* Returns a copy of the data in device memory; 0 after a failure, and kiln then refuses the launch. */
static inline CUdeviceptr upload(const void *data, size_t bytes)
{
    CUdeviceptr at = 0;
    if (!failed("cuMemAlloc", driver.mem_alloc(&at, bytes)))
        failed("cuMemcpyHtoD", driver.memcpy_htod(at, data, bytes));
    return at;
}

/* Closes the loader, the context and the driver; returns the program's exit status. */
static inline int closed(kiln_loader *loader)
{
    kiln_status status = kiln_close(loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(loader, status);
}
