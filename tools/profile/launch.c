/* One launch on the emulated driver, which writes its report into the temporary folder. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CUdevice_attribute: ..._COUNT, MAX_THREADS_PER_..., MAX_SHARED_MEMORY_PER_..., ..._PER_BLOCK_OPTIN */
enum {
    MULTIPROCESSORS = 16,
    MULTIPROCESSOR_THREADS = 39,
    MULTIPROCESSOR_SHARED_BYTES = 81,
    MAX_SHARED_BYTES = 97
};
enum { MAX_DYNAMIC_SHARED_BYTES = 8 }; /* CUfunction_attribute */

static void try(kiln_driver *d, const char *what, int result)
{
    const char *name = NULL;
    if (result == 0)
        return;
    if (d->get_error_name)
        d->get_error_name(result, &name);
    die(1, "%s: %s", what, name ? name : "an unknown error");
}

static unsigned evaluate(const profile *p, const formula *f)
{
    char error[512];
    uint64_t value = 0;
    if (!problem_evaluate(&p->problem, f, &value, error, sizeof error))
        die(1, "%s: %s", formula_text(f), error);
    return (unsigned)value;
}

static const char *report_path(const profile *p, char path[1100])
{
    snprintf(path, 1100, "%s/report", p->folder);
    return path;
}

static uint32_t attribute(kiln_driver *d, int number, int device)
{
    int value = 0;
    try(d, "cuDeviceGetAttribute", d->device_get_attribute(&value, number, device));
    return (uint32_t)value;
}

/* Of the emulated driver, seen from this program: in the build folder, else where it was installed. */
static const char *own_driver(const profile *p, char path[1200])
{
    snprintf(path, 1200, "%s/../lib/emulator/libcuda.so.1", p->bin);
    if (access(path, R_OK) != 0)
        snprintf(path, 1200, "%s/" KILN_INSTALLED_EMULATOR "/libcuda.so.1", p->bin);
    return path;
}

void open_device(profile *p)
{
    kiln_driver *d = &p->driver;
    CUcontext context;
    char own[1200], name[16], report[1100];
    int device;
    p->device.sm = (uint32_t)strtoul(p->target + 3, NULL, 10);
    snprintf(name, sizeof name, "sm_%u", (unsigned)p->device.sm);
    setenv("KILN_EMU_DEVICE", name, 1);
    setenv("KILN_EMU_REPORT", report_path(p, report), 1);
    unsetenv("KILN_EMU_REPORT_LINES");
    const char *path = p->driver_path ? p->driver_path : own_driver(p, own);
    if (kiln_driver_load(d, path, NULL) != KILN_OK)
        die(1, "cannot load the driver %s", path);
    if (d->init(0) != 0 || d->device_get(&device, 0) != 0)
        die(1, "the driver %s has no device for %s", path, p->target);
    try(d, "cuDevicePrimaryCtxRetain", d->device_primary_ctx_retain(&context, device));
    try(d, "cuCtxSetCurrent", d->ctx_set_current(context));
    p->device.multiprocessors = attribute(d, MULTIPROCESSORS, device);
    p->device.max_shared_bytes = attribute(d, MAX_SHARED_BYTES, device);
    p->device.multiprocessor_shared_bytes = attribute(d, MULTIPROCESSOR_SHARED_BYTES, device);
    p->device.multiprocessor_threads = attribute(d, MULTIPROCESSOR_THREADS, device);
}

/* Fills in the kernel's parameters; pointers get device memory with the problem's bytes. */
static void upload(profile *p, kiln_driver *d, uint64_t values[MAX_ARGS], void *params[MAX_ARGS])
{
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        argument *a = &p->problem.args[i];
        params[i] = &values[i];
        if (manifest_is_pointer(a->about)) {
            CUdeviceptr address;
            try(d, "cuMemAlloc", d->mem_alloc(&address, a->bytes ? a->bytes : 1));
            try(d, "cuMemcpyHtoD", a->bytes ? d->memcpy_htod(address, a->host, a->bytes) : 0);
            values[i] = address;
        } else if (problem_is_size(a)) {
            element_set_bits(a->about->type, &values[i], 0, a->integer);
        } else {
            element_set(a->about->type, &values[i], 0, a->real);
        }
    }
}

void launch(profile *p)
{
    kiln_driver *d = &p->driver;
    const manifest_variant *v = p->problem.variant;
    CUmodule module;
    CUfunction f;
    uint64_t values[MAX_ARGS] = {0};
    void *params[MAX_ARGS] = {0};
    char path[1100];
    size_t length;
    try(d, "cuModuleLoadDataEx", d->module_load_data_ex(&module, p->ptx, 0, NULL, NULL));
    try(d, "cuModuleGetFunction", d->module_get_function(&f, module, v->entry));
    upload(p, d, values, params);
    unsigned shared = evaluate(p, v->shared_bytes), grid[3];
    for (int i = 0; i < 3; i++)
        grid[i] = evaluate(p, v->grid[i]);
    const unsigned needs = shared + (unsigned)v->static_shared_bytes;
    if (needs > p->device.max_shared_bytes)
        die(1, "%s takes %u bytes of shared memory, %s has %u", v->id, needs, p->target,
            (unsigned)p->device.max_shared_bytes);
    if (shared)
        try(d, "cuFuncSetAttribute", d->func_set_attribute(f, MAX_DYNAMIC_SHARED_BYTES, (int)shared));
    try(d, "cuLaunchKernel",
        d->launch_kernel(f, grid[0], grid[1], grid[2], v->block[0], v->block[1], v->block[2], shared, NULL,
                         params, NULL));
    try(d, "the kernel", d->ctx_synchronize());
    if (access(report_path(p, path), R_OK) != 0)
        die(1, "the driver wrote no report: it is not the emulated one");
    char *report = read_file(p, path, &length);
    report[strcspn(report, "\n")] = '\0';
    p->report = report;
}
