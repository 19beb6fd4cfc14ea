/* Shared by programs that call the driver: opens it and its first device's context, and copies to and from the device. A step
 * that fails ends the program. */
#ifndef TEST_DRIVER_H
#define TEST_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <kiln/kiln.h>

static kiln_driver driver;

static inline void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static inline void open_driver(const char *path)
{
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0,
         "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context) == 0, "cuCtxSetCurrent");
}

static inline CUfunction load_kernel(const char *ptx, const char *name, CUmodule *module)
{
    CUfunction function = NULL;
    need(driver.module_load_data_ex(module, ptx, 0, NULL, NULL) == 0, "cuModuleLoadDataEx");
    need(driver.module_get_function(&function, *module, name) == 0, "cuModuleGetFunction");
    return function;
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, bytes) == 0, "cuMemAlloc");
    return address;
}

static inline void set(CUdeviceptr to, unsigned char value, size_t bytes)
{
    need(driver.memset_d8(to, value, bytes) == 0, "cuMemsetD8");
}

static inline void upload_to(CUdeviceptr to, const void *from, size_t bytes)
{
    need(driver.memcpy_htod(to, from, bytes) == 0, "cuMemcpyHtoD");
}

static inline CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr address = allocate(bytes);
    upload_to(address, from, bytes);
    return address;
}

static inline void download(void *to, CUdeviceptr from, size_t bytes)
{
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    need(driver.memcpy_dtoh(to, from, bytes) == 0, "cuMemcpyDtoH");
}

#endif
