/* A driver library that wraps the emulated driver; its device does not look emulated. It counts calls, and writes the numbers
 * to the file KILN_DISGUISE_CALLS. KILN_DISGUISE_EARLY removes the waits for the preceding launch from all kernels. With
 * KILN_DISGUISE_WORST a kernel ends before the preceding writer begins, as it may on a device. The linked emulated driver does
 * everything else. If linked with a GPU's driver, KILN_DISGUISE_EARLY shows whether --overlap finds such kernels there. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/driver.h>

#include "expect_lock.h"

enum { PARAMETER_BYTES = 1536 };

#define COUNTED(X)                                                                                           \
    X(mem_alloc, "cuMemAlloc_v2")                                                                            \
    X(mem_free, "cuMemFree_v2")                                                                              \
    X(memcpy_htod, "cuMemcpyHtoD_v2")                                                                        \
    X(memcpy_dtoh, "cuMemcpyDtoH_v2")                                                                        \
    X(memset_d8, "cuMemsetD8_v2")                                                                            \
    X(ctx_synchronize, "cuCtxSynchronize")                                                                   \
    X(launch_kernel, "cuLaunchKernel")                                                                       \
    X(launch_kernel_ex, "cuLaunchKernelEx")

#define MEMBER(name, symbol) unsigned long name;
static struct {
    COUNTED(MEMBER)
} calls;

__attribute__((destructor)) static void write_calls(void)
{
    const char *path = getenv("KILN_DISGUISE_CALLS");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out)
        return;
#define LINE(name, symbol) fprintf(out, "%s %lu\n", #name, calls.name);
    COUNTED(LINE)
    fclose(out);
}

/* Returns the emulated driver's function. */
static void *real(const char *symbol)
{
    return dlsym(RTLD_NEXT, symbol);
}

#define EXPORT(name, symbol, ...)                                                                            \
    int name(__VA_ARGS__) __asm__(symbol);                                                                   \
    int name(__VA_ARGS__)

#define PASS(symbol, types, values) return ((int(*) types)(uintptr_t)real(symbol))values

EXPORT(hide_name, "cuDeviceGetName", char *name, int bytes, int device)
{
    (void)device;
    snprintf(name, (size_t)bytes, "a device in disguise");
    return 0;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

EXPORT(count_alloc, "cuMemAlloc_v2", CUdeviceptr *at, size_t bytes)
{
    calls.mem_alloc++;
    PASS("cuMemAlloc_v2", (CUdeviceptr *, size_t), (at, bytes));
}

EXPORT(count_free, "cuMemFree_v2", CUdeviceptr at)
{
    calls.mem_free++;
    PASS("cuMemFree_v2", (CUdeviceptr), (at));
}

EXPORT(count_htod, "cuMemcpyHtoD_v2", CUdeviceptr to, const void *from, size_t bytes)
{
    calls.memcpy_htod++;
    PASS("cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t), (to, from, bytes));
}

EXPORT(count_dtoh, "cuMemcpyDtoH_v2", void *to, CUdeviceptr from, size_t bytes)
{
    calls.memcpy_dtoh++;
    PASS("cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t), (to, from, bytes));
}

EXPORT(count_memset, "cuMemsetD8_v2", CUdeviceptr to, unsigned char value, size_t bytes)
{
    calls.memset_d8++;
    PASS("cuMemsetD8_v2", (CUdeviceptr, unsigned char, size_t), (to, value, bytes));
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

static CUfunction writer;
static int launched; /* whether there was a launch since the last synchronisation */

static struct {
    int is_held;
    unsigned grid_x, grid_y, threads;
    unsigned char parameters[PARAMETER_BYTES];
} held;

static int launch_held(void)
{
    void *params[] = {held.parameters};
    if (!held.is_held)
        return 0;
    held.is_held = 0;
    PASS("cuLaunchKernel",
         (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
          void **),
         (writer, held.grid_x, held.grid_y, 1, held.threads, 1, 1, 0, NULL, params, NULL));
}

EXPORT(plant_load, "cuModuleLoadDataEx", CUmodule *module, const void *image, unsigned count, int *options,
       void **values)
{
    static const char wait[] = "griddepcontrol.wait;";
    expect_lock(0);
    const int plants = getenv("KILN_DISGUISE_EARLY") != NULL;
    char *text = plants ? strdup(image) : NULL;
    for (char *at = text; at && (at = strstr(at, wait));)
        memset(at, ' ', sizeof wait - 1);
    const int result = ((int (*)(CUmodule *, const void *, unsigned, int *, void **))(uintptr_t)real(
        "cuModuleLoadDataEx"))(module, plants ? text : image, count, options, values);
    free(text);
    return result;
}

EXPORT(find_writer, "cuModuleGetFunction", CUfunction *function, CUmodule module, const char *name)
{
    const int result =
        ((int (*)(CUfunction *, CUmodule, const char *))(uintptr_t)real("cuModuleGetFunction"))(function,
                                                                                                module, name);
    if (result == 0 && strcmp(name, "writer") == 0)
        writer = *function;
    return result;
}

EXPORT(hold_writer, "cuLaunchKernel", CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
       void **params, void **extra)
{
    calls.launch_kernel++;
    launched = 1;
    expect_lock(1);
    if (getenv("KILN_DISGUISE_WORST") && writer && function == writer) {
        held.is_held = 1;
        held.grid_x = grid_x;
        held.grid_y = grid_y;
        held.threads = block_x;
        memcpy(held.parameters, params[0], sizeof held.parameters);
        return 0;
    }
    const int result = launch_held();
    if (result != 0)
        return result;
    PASS("cuLaunchKernel",
         (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
          void **),
         (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra));
}

EXPORT(launch_early, "cuLaunchKernelEx", const struct CUlaunchConfig_st *config, CUfunction function,
       void **params, void **extra)
{
    calls.launch_kernel_ex++;
    launched = 1;
    expect_lock(1);
    const int result = ((int (*)(const struct CUlaunchConfig_st *, CUfunction, void **, void **))(
        uintptr_t)real("cuLaunchKernelEx"))(config, function, params, extra);
    return result != 0 ? result : launch_held();
}

EXPORT(finish, "cuCtxSynchronize", void)
{
    calls.ctx_synchronize++;
    expect_lock(launched);
    launched = 0;
    const int result = launch_held();
    if (result != 0)
        return result;
    PASS("cuCtxSynchronize", (void), ());
}
