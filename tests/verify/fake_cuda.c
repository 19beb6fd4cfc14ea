/* A driver library whose device is the host: memory comes from malloc, and kernels are C functions found by entry name.
 * KILN_FAULT plants a mistake in a kernel; kiln-verify must find each of them. */
#define _DEFAULT_SOURCE /* flock */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/driver.h>

#include "expect_lock.h"

enum { ERROR_NOT_FOUND = 500, ERROR_ILLEGAL_ADDRESS = 700 };

static int pending_error;
static unsigned launches;

static int fault(const char *name)
{
    static const char *wanted;
    if (!wanted)
        wanted = getenv("KILN_FAULT") ? getenv("KILN_FAULT") : "";
    return strcmp(wanted, name) == 0;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

static const float table[16] = {-1.0f,
                                -0.6961928009986877f,
                                -0.5250730514526367f,
                                -0.39491748809814453f,
                                -0.28444138169288635f,
                                -0.18477343022823334f,
                                -0.09105003625154495f,
                                0.0f,
                                0.07958029955625534f,
                                0.16093020141124725f,
                                0.24611230194568634f,
                                0.33791524171829224f,
                                0.44070982933044434f,
                                0.5626170039176941f,
                                0.7229568362236023f,
                                1.0f};

static unsigned code_of(float r)
{
    unsigned code = 0;
    for (int i = 0; i < 15; i++) {
        float threshold = (float)(((double)table[i] + (double)table[i + 1]) / 2);
        code += fault("threshold-included") ? r >= threshold : r > threshold;
    }
    return code;
}

static float scale_of(const float *x, uint64_t first, uint64_t last)
{
    float most = fault("smallest-scale") ? 1e-13f : 1e-12f;
    for (uint64_t i = first; i < last; i++)
        most = fmaxf(most, fault("signed-maximum") ? x[i] : fabsf(x[i]));
    return fault("int4-scale") ? most / 7 : most;
}

static void plant_in_quantize(float *x, float *scale, unsigned char *packed, uint64_t n)
{
    uint64_t groups = (n + 63) / 64, bytes = (n + 1) / 2;
    if (fault("write-past-end"))
        packed[bytes] = 0;
    if (fault("write-before"))
        scale[-1] = 0;
    if (fault("input-changed"))
        x[n / 2] += 1;
    if (fault("chance"))
        packed[0] = (unsigned char)(packed[0] ^ launches % 2);
    if (fault("absent-nibble") && n % 2)
        packed[bytes - 1] |= 0x10;
    if (fault("last-scale-lost") && n > 64)
        memset(&scale[groups - 1], 0xff, sizeof *scale);
}

static void quantize(float *x, float *scale, unsigned char *packed, uint64_t n)
{
    uint64_t done = fault("tail-dropped") ? n / 64 * 64 : n;
    for (uint64_t g = 0; g * 64 < n; g++)
        scale[g] = scale_of(x, g * 64, (g + 1) * 64 < n ? (g + 1) * 64 : n);
    for (uint64_t i = 0; i < done; i++) {
        float s = scale[i / 64];
        unsigned code = code_of(fault("reciprocal") ? x[i] * (1 / s) : x[i] / s);
        unsigned shift = (i % 2 != 0) != fault("nibbles-swapped") ? 4 : 0;
        packed[i / 2] = (unsigned char)(i % 2 == 0 ? code << shift : packed[i / 2] | code << shift);
    }
    plant_in_quantize(x, scale, packed, n);
}

static void unpack(const unsigned char *packed, const float *scale, float *out, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = packed[i / 2] >> (i % 2 ? 0 : 4) & 15;
        float value = table[code] *
                      scale[fault("group-shifted") ? (i + 1) / 64 * 64 < n ? (i + 1) / 64 : i / 64 : i / 64];
        if (fault("table-entry") && code == 11)
            value = nextafterf(value, 0);
        if (fault("denormals-flushed") && fabsf(value) < 0x1p-126f)
            value = 0;
        out[i] = value;
    }
    if (fault("killed") && n > 4096)
        raise(SIGKILL);
    if (fault("one-too-many") && n % 1024 == 0)
        out[n] = 0;
    if (fault("stopped-at-4096") && n > 4096)
        memset(out + 4096, 0, (size_t)(n - 4096) * sizeof *out);
}

static void axpy(const float *x, float *y, double *norm, float a, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        y[i] += (fault("axpy-sign") ? -a : a) * x[fault("axpy-neighbour") && i == n - 1 ? 0 : i];
        sum += (double)y[i] * (double)y[i];
    }
    if (norm || fault("optional-required"))
        *norm = fault("axpy-norm") ? sum * (1 + 0x1p-20) : sum;
}

#define PARAM(type, i) (*(type *)params[i])

static void run(const char *entry, void **params)
{
    launches++;
    expect_lock(1);
    while (fault("hangs"))
        pause();
    if (strcmp(entry, "nf4_quantize_f32_64_low") == 0)
        quantize(PARAM(float *, 0), PARAM(float *, 1), PARAM(unsigned char *, 2), PARAM(uint64_t, 3));
    else if (strcmp(entry, "nf4_unpack_f32_64_high") == 0)
        unpack(PARAM(unsigned char *, 0), PARAM(float *, 1), PARAM(float *, 2), PARAM(uint64_t, 3));
    else if ((fault("optional-required") && !PARAM(double *, 2)) ||
             (fault("empty-read") && !PARAM(float *, 0)))
        pending_error = ERROR_ILLEGAL_ADDRESS;
    else
        axpy(PARAM(float *, 0), PARAM(float *, 1), PARAM(double *, 2), PARAM(float, 3), PARAM(uint32_t, 4));
    if (fault("kernel-fails"))
        pending_error = ERROR_ILLEGAL_ADDRESS;
}

/* ---- entry points ---------------------------------------------------------------------------------------------------- */

/* Handles are small numbers or names in disguise. */
#define HANDLE(type, value) ((type)(uintptr_t)(value))
#define EXPORT(name, symbol, ...)                                                                            \
    int name(__VA_ARGS__) __asm__(symbol);                                                                   \
    int name(__VA_ARGS__)

static CUcontext current;

EXPORT(fake_init, "cuInit", unsigned flags)
{
    return (int)flags;
}
EXPORT(fake_driver_get_version, "cuDriverGetVersion", int *version)
{
    *version = 12040;
    return 0;
}
EXPORT(fake_device_get_count, "cuDeviceGetCount", int *count)
{
    *count = 1;
    return 0;
}
EXPORT(fake_device_get, "cuDeviceGet", int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}
EXPORT(fake_ctx_get_current, "cuCtxGetCurrent", CUcontext *context)
{
    *context = current;
    return 0;
}
EXPORT(fake_ctx_set_current, "cuCtxSetCurrent", CUcontext context)
{
    current = context;
    return 0;
}
EXPORT(fake_ctx_get_device, "cuCtxGetDevice", int *device)
{
    *device = 0;
    return 0;
}
EXPORT(fake_ctx_release, "cuDevicePrimaryCtxRelease_v2", int device)
{
    pending_error = 0;
    return device;
}
EXPORT(fake_ctx_synchronize, "cuCtxSynchronize", void)
{
    return pending_error;
}
EXPORT(fake_module_unload, "cuModuleUnload", CUmodule module)
{
    (void)module;
    return 0;
}
EXPORT(fake_mem_free, "cuMemFree_v2", CUdeviceptr at)
{
    free(HANDLE(void *, at));
    return 0;
}
EXPORT(fake_stream_synchronize, "cuStreamSynchronize", CUstream stream)
{
    (void)stream;
    return pending_error;
}

EXPORT(fake_device_get_name, "cuDeviceGetName", char *name, int bytes, int device)
{
    int is_emulated = fault("lacks-on-emulator") || fault("refused-on-emulator");
    const char *text = is_emulated ? "the host, emulated" : "the host in disguise";
    if (bytes <= (int)strlen(text))
        return 1;
    strcpy(name, text);
    return device;
}

EXPORT(fake_device_get_attribute, "cuDeviceGetAttribute", int *value, int attribute, int device)
{
    switch (attribute) {
    case 16:
        *value = 3;
        break; /* multiprocessors */
    case 75:
        *value = fault("device-too-old") ? 5 : 9;
        break; /* compute capability, major */
    case 76:
        *value = 0;
        break; /* and minor */
    case 97:
        *value = 1 << 24;
        break; /* shared memory per block, after opt-in: more than any device has */
    default:
        return 1;
    }
    return device;
}

EXPORT(fake_ctx_retain, "cuDevicePrimaryCtxRetain", CUcontext *context, int device)
{
    *context = HANDLE(CUcontext, 1);
    return device;
}

EXPORT(fake_module_load, "cuModuleLoadDataEx", CUmodule *module, const void *image, unsigned count,
       int *options, void **values)
{
    (void)options;
    expect_lock(0);
    *module = HANDLE(CUmodule, image);
    if (fault("refused-on-emulator") && count)
        strcpy(values[0], "kernel 'other' is refused:\nline 3: error: 'tex' is not emulated\n"
                          "kernel 'axpy' is refused:\nline 7: error: 'wgmma' is not emulated\n");
    if (!fault("lacks") && !fault("lacks-on-emulator"))
        return fault("load-fails") ? 218 : 0;
    if (count)
        strcpy(values[0], "line 7: error: 'wgmma' is not emulated\n     7 | wgmma.fence.sync.aligned;\n");
    return 801;
}

EXPORT(fake_get_function, "cuModuleGetFunction", CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = HANDLE(CUfunction, name);
    if (fault("refused-on-emulator") && strcmp(name, "axpy") == 0)
        return 801;
    return name ? 0 : ERROR_NOT_FOUND;
}

EXPORT(fake_func_set, "cuFuncSetAttribute", CUfunction function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

EXPORT(fake_func_get, "cuFuncGetAttribute", int *value, int attribute, CUfunction function)
{
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}

EXPORT(fake_launch, "cuLaunchKernel", CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
       void **params, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)extra;
    if (fault("launch-fails"))
        return 1;
    run(HANDLE(const char *, function), params);
    return 0;
}

EXPORT(fake_error_name, "cuGetErrorName", int result, const char **text)
{
    *text = result == ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return 0;
}

EXPORT(fake_error_string, "cuGetErrorString", int result, const char **text)
{
    *text = result == ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "other";
    return 0;
}

EXPORT(fake_mem_alloc, "cuMemAlloc_v2", CUdeviceptr *at, size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    *at = (CUdeviceptr)(uintptr_t)memory;
    return memory ? 0 : 2;
}

EXPORT(fake_mem_info, "cuMemGetInfo_v2", size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 30;
    return 0;
}

EXPORT(fake_htod, "cuMemcpyHtoD_v2", CUdeviceptr to, const void *from, size_t bytes)
{
    expect_lock(0);
    memcpy(HANDLE(void *, to), from, bytes);
    return pending_error;
}

EXPORT(fake_dtoh, "cuMemcpyDtoH_v2", void *to, CUdeviceptr from, size_t bytes)
{
    expect_lock(0);
    memcpy(to, HANDLE(void *, from), bytes);
    return pending_error;
}

EXPORT(fake_dtod, "cuMemcpyDtoDAsync_v2", CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    memmove(HANDLE(void *, to), HANDLE(void *, from), bytes);
    return 0;
}

EXPORT(fake_memset, "cuMemsetD8_v2", CUdeviceptr to, unsigned char value, size_t bytes)
{
    memset(HANDLE(void *, to), value, bytes);
    return pending_error;
}

/* Streams and events, which verification does not use. */
EXPORT(fake_stream_create, "cuStreamCreate", void)
{
    return 801;
}
EXPORT(fake_stream_destroy, "cuStreamDestroy_v2", void)
{
    return 801;
}
EXPORT(fake_event_create, "cuEventCreate", void)
{
    return 801;
}
EXPORT(fake_event_destroy, "cuEventDestroy_v2", void)
{
    return 801;
}
EXPORT(fake_event_record, "cuEventRecord", void)
{
    return 801;
}
EXPORT(fake_event_synchronize, "cuEventSynchronize", void)
{
    return 801;
}
EXPORT(fake_event_elapsed, "cuEventElapsedTime", void)
{
    return 801;
}
