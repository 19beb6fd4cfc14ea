/* What the programs of this folder share: the emulated device, a loader of gemm_sample on it, and what was launched. */
#ifndef GEMM_TEST_H
#define GEMM_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_sample.h"

typedef gemm_sample_nf4_gemm_args arguments;

typedef int launch_function(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            CUstream, void **, void **);

static kiln_driver driver;
static kiln_slot slots[GEMM_SAMPLE_SLOTS];
static kiln_loader loader;
static launch_function *real_launch;

static inline void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

/* `launch` is called in the driver's place, and calls real_launch. */
static inline void open_device(const char *path, launch_function *launch)
{
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0,
         "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context) == 0, "cuCtxSetCurrent");
    real_launch = driver.launch_kernel;
    driver.launch_kernel = launch;
    need(kiln_open(&loader, &driver, &gemm_sample_bundle, slots, GEMM_SAMPLE_SLOTS, NULL) == KILN_OK,
         "kiln_open");
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, bytes) == 0, "cuMemAlloc");
    return address;
}

#endif
