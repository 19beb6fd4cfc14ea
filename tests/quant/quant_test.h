/* What the programs of this folder that call generated functions share: the emulated device, and a loader of
 * quant_sample on it. */
#ifndef QUANT_TEST_H
#define QUANT_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant_sample.h"

static kiln_driver driver;
static kiln_slot slots[QUANT_SAMPLE_SLOTS];
static kiln_loader loader;

static inline void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static inline void open_device(const char *path)
{
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0,
         "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context) == 0, "cuCtxSetCurrent");
    need(kiln_open(&loader, &driver, &quant_sample_bundle, slots, QUANT_SAMPLE_SLOTS, NULL) == KILN_OK,
         "kiln_open");
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, bytes) == 0, "cuMemAlloc");
    return address;
}

static inline CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr address = allocate(bytes);
    need(driver.memcpy_htod(address, from, bytes) == 0, "cuMemcpyHtoD");
    return address;
}

static inline void download(void *to, CUdeviceptr from, size_t bytes)
{
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    need(driver.memcpy_dtoh(to, from, bytes) == 0, "cuMemcpyDtoH");
}

#endif
