#include "device.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CAPTURE_RELAXED = 2 };

bool failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("orin-layer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

static bool called(const device *d, const char *entry_point, int result)
{
    char text[256];
    if (result == 0)
        return true;
    kiln_describe_driver(&d->driver, entry_point, result, text, sizeof text);
    return failed("%s", text);
}

bool device_launched(device *d, kiln_status status)
{
    char text[2048];
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
    const kiln_status status = kiln_driver_load(&d->driver, path, &missing);
    if (status != KILN_OK)
        return failed("%s: %s", kiln_status_string(status), missing ? missing : dlerror());
#define GRAPH_ENTRY(member, symbol, parameters)                                                              \
    {                                                                                                        \
        void *entry_point = dlsym(d->driver.library, symbol);                                                \
        memcpy(&d->member, &entry_point, sizeof entry_point);                                                \
        if (!entry_point)                                                                                    \
            return failed("the driver has no %s: it is older than CUDA 11.4", symbol);                       \
    }
    GRAPH_FUNCTIONS(GRAPH_ENTRY)
#undef GRAPH_ENTRY
    return true;
}

static bool open_context(device *d)
{
    const kiln_driver *cu = &d->driver;
    return called(d, "cuInit", cu->init(0)) &&
           called(d, "cuDeviceGetName", cu->device_get_name(d->name, sizeof d->name, 0)) &&
           called(d, "cuDriverGetVersion", cu->driver_get_version(&d->version)) &&
           called(d, "cuDevicePrimaryCtxRetain", cu->device_primary_ctx_retain(&d->context, 0)) &&
           called(d, "cuCtxSetCurrent", cu->ctx_set_current(d->context)) &&
           called(d, "cuStreamCreate", d->stream_create(&d->stream, 0));
}

bool device_open(device *d, const char *path, bool ptx_only)
{
    static char jit_log[8192];
    const kiln_options options = {
        .check_image = kiln_check_image, .log = jit_log, .log_bytes = sizeof jit_log, .ptx_only = ptx_only};
    return open_driver(d, path) && open_context(d) &&
           device_launched(d,
                           kiln_open(&d->loader, &d->driver, &orin_bundle, d->slots, ORIN_SLOTS, &options));
}

void device_close(device *d)
{
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
        d->driver.device_primary_ctx_release(0);
    kiln_driver_close(&d->driver);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

CUdeviceptr device_allocate(device *d, const void *data, size_t bytes)
{
    CUdeviceptr *address = &d->allocations[d->allocation_count];
    if (d->allocation_count == MOST_ALLOCATIONS) {
        failed("more than %d allocations", MOST_ALLOCATIONS);
        return 0;
    }
    if (!called(d, "cuMemAlloc", d->driver.mem_alloc(address, bytes ? bytes : 1)))
        return 0;
    d->allocation_count++;
    if (data)
        return device_upload(d, *address, data, bytes) ? *address : 0;
    return called(d, "cuMemsetD8", d->driver.memset_d8(*address, 0, bytes ? bytes : 1)) ? *address : 0;
}

bool device_upload(device *d, CUdeviceptr to, const void *from, size_t bytes)
{
    return called(d, "cuMemcpyHtoD", d->driver.memcpy_htod(to, from, bytes));
}

bool device_download(device *d, void *to, CUdeviceptr from, size_t bytes)
{
    return called(d, "cuCtxSynchronize", d->driver.ctx_synchronize()) &&
           called(d, "cuMemcpyDtoH", d->driver.memcpy_dtoh(to, from, bytes));
}

/* ---- a graph ------------------------------------------------------------------------------------------------------- */

bool device_record(device *d)
{
    return called(d, "cuStreamBeginCapture", d->begin_capture(d->stream, CAPTURE_RELAXED));
}

bool device_recorded(device *d)
{
    return called(d, "cuStreamEndCapture", d->end_capture(d->stream, &d->graph)) &&
           called(d, "cuGraphInstantiate", d->graph_instantiate(&d->recorded, d->graph, 0));
}

bool device_replay(device *d)
{
    return called(d, "cuGraphLaunch", d->graph_launch(d->recorded, d->stream));
}
