/* The device: driver, context, loader and memory, as in any application. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>

kiln_loader device_loader;

static kiln_driver driver; /* the caller owns all storage */
static kiln_slot slots[LAYER_KERNELS_SLOTS];
static char jit_log[4096];
static int device, allocations; /* allocations that are not freed */

static void need(const char *call, int result)
{
    char text[256];
    if (result == 0)
        return;
    kiln_describe_driver(&driver, call, result, text, sizeof text);
    fprintf(stderr, "kiln-layer: %s\n", text);
    exit(1);
}

void device_need(kiln_status status)
{
    char text[2048];
    kiln_error error;
    if (status == KILN_OK)
        return;
    kiln_last_error(&device_loader, &error);
    kiln_describe_error(&device_loader, &error, NULL, text, sizeof text);
    fprintf(stderr, "kiln-layer: %s\n%s", text, error.log_bytes ? jit_log : "");
    exit(1);
}

static bool find_device(const char *path)
{
    const char *missing = NULL;
    int count = 0;
    kiln_status status = kiln_driver_load(&driver, path, &missing);
    if (status != KILN_OK) {
        fprintf(stderr, "kiln-layer: %s: %s%s%s\n", path ? path : "libcuda.so.1", kiln_status_string(status),
                missing ? ": " : "", missing ? missing : "");
        return false;
    }
    char text[256] = "the driver has no device";
    const int result = driver.init(0);
    if (result == 0 && driver.device_get_count(&count) == 0 && count > 0)
        return true;
    if (result != 0)
        kiln_describe_driver(&driver, "cuInit", result, text, sizeof text);
    fprintf(stderr, "kiln-layer: %s\n", text);
    kiln_driver_close(&driver);
    return false;
}

bool device_open(const char *driver_path)
{
    CUcontext context;
    char name[128] = "";
    const kiln_options options = {
        .check_image = kiln_check_image, .log = jit_log, .log_bytes = sizeof jit_log};
    if (!find_device(driver_path))
        return false;
    need("cuDeviceGet", driver.device_get(&device, 0));
    need("cuDeviceGetName", driver.device_get_name(name, (int)sizeof name, device));
    need("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, device));
    need("cuCtxSetCurrent", driver.ctx_set_current(context));
    device_need(
        kiln_open(&device_loader, &driver, &layer_kernels_bundle, slots, LAYER_KERNELS_SLOTS, &options));
    printf("device    %s (sm_%u)\n", name, (unsigned)device_loader.device.sm);
    return true;
}

void device_close(void)
{
    device_need(kiln_close(&device_loader));
    need("cuDevicePrimaryCtxRelease", driver.device_primary_ctx_release(device));
    kiln_driver_close(&driver);
    if (allocations) {
        fprintf(stderr, "kiln-layer: %d pieces of device memory were not freed\n", allocations);
        exit(1);
    }
}

void device_reverse_blocks(bool are_reversed)
{
    if (are_reversed)
        setenv("KILN_EMU_ORDER", "reverse", 1);
    else
        unsetenv("KILN_EMU_ORDER");
}

CUdeviceptr device_new(size_t bytes, const void *contents)
{
    CUdeviceptr address = 0;
    need("cuMemAlloc", driver.mem_alloc(&address, bytes));
    allocations++;
    if (contents)
        device_write(address, contents, bytes);
    else
        need("cuMemsetD8", driver.memset_d8(address, 0, bytes));
    return address;
}

void device_write(CUdeviceptr to, const void *contents, size_t bytes)
{
    need("cuMemcpyHtoD", driver.memcpy_htod(to, contents, bytes));
}

void device_take(void *to, CUdeviceptr from, size_t bytes)
{
    need("cuCtxSynchronize", driver.ctx_synchronize());
    need("cuMemcpyDtoH", driver.memcpy_dtoh(to, from, bytes));
    device_free(from);
}

void device_free(CUdeviceptr address)
{
    need("cuMemFree", driver.mem_free(address));
    allocations--;
}

void *host_new(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) {
        fprintf(stderr, "kiln-layer: out of memory\n");
        exit(1);
    }
    return memory;
}
