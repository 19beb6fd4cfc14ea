#include "device.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, CAPTURE_RELAXED = 2 };

bool failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("kiln-lm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

/* ---- calls of the driver ------------------------------------------------------------------------------------------- */

static bool called(const device *d, const char *entry_point, int result)
{
    char text[256];
    const char *meaning = NULL;
    if (result == 0)
        return true;
    kiln_describe_driver(&d->driver, entry_point, result, text, sizeof text);
    if (d->driver.get_error_string)
        d->driver.get_error_string(result, &meaning);
    return failed("%s%s%s", text, meaning ? ": " : "", meaning ? meaning : "");
}

bool device_launched(device *d, kiln_status status)
{
    char text[4096];
    kiln_error error;
    if (status == KILN_OK)
        return true;
    kiln_last_error(&d->loader, &error);
    kiln_describe_error(&d->loader, &error, NULL, text, sizeof text);
    return failed("%s%s%s", text, error.log_bytes ? "\n" : "", error.log_bytes ? d->loader.options.log : "");
}

/* ---- opening and closing ------------------------------------------------------------------------------------------- */

static bool open_driver(device *d, const char *path)
{
    const char *missing = NULL;
    void *entry_point;
    const kiln_status status = kiln_driver_load(&d->driver, path, &missing);
    if (status == KILN_ERROR_DRIVER_NOT_FOUND)
        return failed("%s", dlerror());
    if (status != KILN_OK)
        return failed("%s: %s%s%s", path ? path : "libcuda.so.1", kiln_status_string(status),
                      missing ? ": " : "", missing ? missing : "");
#define GRAPH_ENTRY(member, symbol, parameters)                                                              \
    entry_point = dlsym(d->driver.library, symbol);                                                          \
    memcpy(&d->member, &entry_point, sizeof entry_point);                                                    \
    if (!entry_point)                                                                                        \
        return failed("%s: no %s; it is older than CUDA 11.4", path ? path : "libcuda.so.1", symbol);
    GRAPH_FUNCTIONS(GRAPH_ENTRY)
#undef GRAPH_ENTRY
    return true;
}

static bool open_context(device *d)
{
    const kiln_driver *cu = &d->driver;
    int count = 0;
    if (!called(d, "cuInit", cu->init(0)) || !called(d, "cuDeviceGetCount", cu->device_get_count(&count)))
        return false;
    if (count == 0)
        return failed("the driver has no device");
    if (!called(d, "cuDeviceGet", cu->device_get(&d->ordinal, 0)) ||
        !called(d, "cuDeviceGetName", cu->device_get_name(d->name, sizeof d->name, d->ordinal)) ||
        !called(d, "cuDriverGetVersion", cu->driver_get_version(&d->version)))
        return false;
    CUcontext context = NULL;
    if (!called(d, "cuDevicePrimaryCtxRetain", cu->device_primary_ctx_retain(&context, d->ordinal)))
        return false;
    d->context = context;
    return called(d, "cuCtxSetCurrent", cu->ctx_set_current(context)) &&
           called(d, "cuStreamCreate", d->stream_create(&d->stream, 0));
}

bool device_open(device *d, const char *path)
{
    static char jit_log[8192];
    kiln_options options = {.check_image = kiln_check_image, .log = jit_log, .log_bytes = sizeof jit_log};
#ifdef LM_KERNELS_SCRATCH_BYTES /* defined if the images are compressed */
    static _Alignas(16) char scratch[LM_KERNELS_SCRATCH_BYTES];
    options.scratch = scratch;
    options.scratch_bytes = sizeof scratch;
#endif
    return open_driver(d, path) && open_context(d) &&
           device_launched(d, kiln_open(&d->loader, &d->driver, &lm_kernels_bundle, d->slots,
                                        LM_KERNELS_SLOTS, &options));
}

void device_close(device *d)
{
    if (d->is_recording) /* a launch failed: drops the incomplete graph */
        d->end_capture(d->stream, &d->graph);
    if (d->recorded)
        d->graph_exec_destroy(d->recorded);
    if (d->graph)
        d->graph_destroy(d->graph);
    if (d->stream)
        d->stream_destroy(d->stream);
    kiln_close(&d->loader);
    while (d->allocation_count > 0)
        d->driver.mem_free(d->allocations[--d->allocation_count]);
    if (d->context)
        d->driver.device_primary_ctx_release(d->ordinal);
    if (d->driver.library)
        kiln_driver_close(&d->driver);
    memset(d, 0, sizeof *d);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

bool device_allocate(device *d, size_t bytes, const char *what, CUdeviceptr *address)
{
    if (d->allocation_count == MOST_ALLOCATIONS)
        return failed("too many allocations");
    const int result = d->driver.mem_alloc(&d->allocations[d->allocation_count], bytes);
    if (result == OUT_OF_MEMORY)
        return failed("the device has no room for %.1f MB of %s, beside %.1f MB that it has already",
                      (double)bytes / 1e6, what, (double)d->allocated / 1e6);
    if (!called(d, "cuMemAlloc", result))
        return false;
    *address = d->allocations[d->allocation_count++];
    d->allocated += bytes;
    return true;
}

bool device_upload(device *d, CUdeviceptr to, const void *from, size_t bytes)
{
    return called(d, "cuMemcpyHtoD", d->driver.memcpy_htod(to, from, bytes));
}

bool device_zero(device *d, CUdeviceptr at, size_t bytes)
{
    return called(d, "cuMemsetD8", d->driver.memset_d8(at, 0, bytes));
}

bool device_download(device *d, void *to, CUdeviceptr from, size_t bytes)
{
    return called(d, "cuMemcpyDtoH", d->driver.memcpy_dtoh(to, from, bytes));
}

bool device_wait(device *d)
{
    return called(d, "cuCtxSynchronize", d->driver.ctx_synchronize());
}

double device_bandwidth(const device *d)
{
    enum { MEMORY_CLOCK_KHZ = 36, BUS_BITS = 37, PER_CLOCK = 2 };
    int khz = 0, bits = 0;
    if (d->driver.device_get_attribute(&khz, MEMORY_CLOCK_KHZ, d->ordinal) != 0 ||
        d->driver.device_get_attribute(&bits, BUS_BITS, d->ordinal) != 0)
        return 0;
    return 1e3 * khz * PER_CLOCK * bits / 8;
}

/* ---- a graph ------------------------------------------------------------------------------------------------------- */

bool device_record(device *d)
{
    d->is_recording = called(d, "cuStreamBeginCapture", d->begin_capture(d->stream, CAPTURE_RELAXED));
    return d->is_recording;
}

bool device_recorded(device *d)
{
    d->is_recording = false;
    return called(d, "cuStreamEndCapture", d->end_capture(d->stream, &d->graph)) &&
           called(d, "cuGraphInstantiate", d->graph_instantiate(&d->recorded, d->graph, 0));
}

bool device_replay(device *d)
{
    return called(d, "cuGraphLaunch", d->graph_launch(d->recorded, d->stream));
}
