/* A table of the CUDA Driver API entry points that kiln calls.
 *
 * This header never includes <cuda.h> and declares none of its enumerations or macro-renamed functions. So it compiles
 * on machines without a CUDA toolkit, and together with <cuda.h> in one file, in either order, in C11 and C++17: the
 * typedefs below are identical to cuda.h's. Results are plain int (a CUresult; 0 is success).
 */
#ifndef KILN_DRIVER_H
#define KILN_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr; /* a device address in bytes */
struct CUlaunchConfig_st;               /* cuda.h: CUlaunchConfig */
struct CUtensorMap_st;                  /* cuda.h: CUtensorMap, 128 bytes aligned to 64 */

/* The oldest driver with every required entry point: CUDA 11.0 added cuDevicePrimaryCtxRelease_v2. In the format of
 * cuDriverGetVersion. */
#define KILN_OLDEST_DRIVER 11000

/* One row per entry point: member of kiln_driver, exported (versioned) symbol, parameters. The result is an int. These
 * are the required entry points: a table filled by hand needs no others. */
#define KILN_DRIVER_RUNTIME_FUNCTIONS(X)                                                                     \
    X(driver_get_version, "cuDriverGetVersion", (int *version))                                              \
    X(ctx_get_current, "cuCtxGetCurrent", (CUcontext * context))                                             \
    X(ctx_get_device, "cuCtxGetDevice", (int *device))                                                       \
    X(device_get_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                 \
    X(module_load_data_ex, "cuModuleLoadDataEx",                                                             \
      (CUmodule * module, const void *image, unsigned int count, int *options, void **values))               \
    X(module_unload, "cuModuleUnload", (CUmodule module))                                                    \
    X(module_get_function, "cuModuleGetFunction",                                                            \
      (CUfunction * function, CUmodule module, const char *name))                                            \
    X(func_set_attribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))             \
    X(launch_kernel, "cuLaunchKernel",                                                                       \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,                   \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,          \
       CUstream stream, void **params, void **extra))

/* Entry points for the application's own setup: a device, a context, memory. */
#define KILN_DRIVER_APPLICATION_FUNCTIONS(X)                                                                 \
    X(init, "cuInit", (unsigned int flags))                                                                  \
    X(device_get_count, "cuDeviceGetCount", (int *count))                                                    \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                                 \
    X(device_get_name, "cuDeviceGetName", (char *name, int bytes, int device))                               \
    X(device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", (CUcontext * context, int device))              \
    X(device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", (int device))                              \
    X(ctx_set_current, "cuCtxSetCurrent", (CUcontext context))                                               \
    X(ctx_synchronize, "cuCtxSynchronize", (void))                                                           \
    X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t bytes))                                     \
    X(mem_free, "cuMemFree_v2", (CUdeviceptr address))                                                       \
    X(memcpy_htod, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes))                      \
    X(memcpy_dtoh, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t bytes))                            \
    X(memset_d8, "cuMemsetD8_v2", (CUdeviceptr to, unsigned char value, size_t bytes))

/* Entry points that only some features of the runtime call. Null if the driver lacks one: the feature then fails or has
 * a fallback. */
#define KILN_DRIVER_OPTIONAL_FUNCTIONS(X)                                                                    \
    X(launch_kernel_ex, "cuLaunchKernelEx",                                                                  \
      (const struct CUlaunchConfig_st *config, CUfunction function, void **params, void **extra))            \
    X(get_error_name, "cuGetErrorName", (int result, const char **text))                                     \
    X(get_error_string, "cuGetErrorString", (int result, const char **text))                                 \
    X(tensor_map_encode_tiled, "cuTensorMapEncodeTiled",                                                     \
      (struct CUtensorMap_st * map, int type, unsigned int rank, void *address, const uint64_t *sizes,       \
       const uint64_t *strides, const unsigned int *box, const unsigned int *element_strides,                \
       int interleave, int swizzle, int promotion, int fill))

#define KILN_DRIVER_FUNCTIONS(X)                                                                             \
    KILN_DRIVER_RUNTIME_FUNCTIONS(X) KILN_DRIVER_APPLICATION_FUNCTIONS(X) KILN_DRIVER_OPTIONAL_FUNCTIONS(X)

/* Filled by kiln_driver_load (kiln.h), or by hand: by a test's stub, or a program that links libcuda. Read-only after
 * that, so threads may share it. `library` is the dlopen handle, or null. With the linker's addresses (gcc and clang):
 *
 *     #define DECLARE(member, symbol, parameters) extern int linked_##member parameters __asm__(symbol);
 *     KILN_DRIVER_FUNCTIONS(DECLARE)
 *     #define ENTRY(member, symbol, parameters) .member = linked_##member,
 *     static const kiln_driver driver = {KILN_DRIVER_FUNCTIONS(ENTRY)};
 */
typedef struct kiln_driver {
    void *library;
#define KILN_DRIVER_MEMBER(member, symbol, parameters) int(*member) parameters;
    KILN_DRIVER_FUNCTIONS(KILN_DRIVER_MEMBER)
#undef KILN_DRIVER_MEMBER
} kiln_driver;

#ifdef __cplusplus
}
#endif

#endif
