/* Shared by the app.c files of projects that are only tests: opens the driver, and prints why a call failed. */
#ifndef APP_H
#define APP_H

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
static inline int refused(kiln_loader *by, kiln_status status)
{
    kiln_error error;
    char text[512];
    if (status != KILN_OK) {
        kiln_last_error(by, &error);
        kiln_describe_error(by, &error, NULL, text, sizeof text);
        puts(text);
    }
    return status != KILN_OK;
}

/* Opens the driver and makes a context current. On failure, prints why. */
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

#endif
