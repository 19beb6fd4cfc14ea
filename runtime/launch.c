/* Functions that generated code calls. */
#include "internal.h"

static kiln_status check_geometry(kiln_loader *loader, const kiln_kernel *kernel, const uint64_t grid[3],
                                  uint64_t shared_bytes);
static bool may_overlap(const kiln_loader *loader, const kiln_kernel *kernel);

kiln_status kiln_launch(kiln_loader *loader, const kiln_kernel *kernel, CUstream stream, const uint64_t *grid,
                        uint64_t shared_bytes, const void *const *params)
{
    CUfunction function;
    kiln_status status = check_geometry(loader, kernel, grid, shared_bytes);
    if (status == KILN_OK)
        status = kiln_load(loader, kernel, stream != KILN_NO_LAUNCH ? &function : NULL);
    if (status != KILN_OK || stream == KILN_NO_LAUNCH)
        return status;

    launch_config c; /* block: the kernel's, or the caller's, which follows the grid */
    for (int i = 0; i < 3; i++)
        c.block[i] = kernel->block[0] != 0 ? kernel->block[i] : (unsigned)grid[3 + i];
    kiln_launch_event event;
    const bool is_traced = loader->options.launch_hook != NULL;
    if (is_traced) {
        event = (kiln_launch_event){kernel, params, stream, grid, c.block, (uint32_t)shared_bytes, 0, 0};
        loader->options.launch_hook(loader->options.launch_hook_context, &event);
    }
    void **values = (void **)(uintptr_t)params;
    const char *call = "cuLaunchKernel";
    int result;
    if (may_overlap(loader, kernel)) {
        launch_attribute overlaps; /* the driver reads the member that the number selects */
        overlaps.id = PROGRAMMATIC_STREAM_SERIALIZATION;
        overlaps.value.is_allowed = 1;
        c.grid[0] = (unsigned)grid[0];
        c.grid[1] = (unsigned)grid[1];
        c.grid[2] = (unsigned)grid[2];
        c.shared_bytes = (unsigned)shared_bytes;
        c.stream = stream;
        c.attributes = &overlaps;
        c.attribute_count = 1;
        call = "cuLaunchKernelEx";
        result = loader->driver->launch_kernel_ex((const void *)&c, function, values, NULL);
    } else {
        result = loader->driver->launch_kernel(function, (unsigned)grid[0], (unsigned)grid[1],
                                               (unsigned)grid[2], c.block[0], c.block[1], c.block[2],
                                               (unsigned)shared_bytes, stream, values, NULL);
    }
    if (is_traced) {
        event.is_after = 1;
        event.driver_result = result;
        loader->options.launch_hook(loader->options.launch_hook_context, &event);
    }
    return result != 0 ? kiln_fail_call(loader, KILN_ERROR_LAUNCH, kernel->id, call, result) : KILN_OK;
}

/* Images for older devices do not wait, even if a newer device runs one. */
static bool may_overlap(const kiln_loader *loader, const kiln_kernel *kernel)
{
    return loader->options.overlap_launches != 0 && (kernel->flags & KILN_KERNEL_DEPENDENT) != 0 &&
           loader->driver->launch_kernel_ex != NULL &&
           kiln_select(&loader->device, kernel->module)->sm >= FIRST_DEPENDENT_SM;
}

/* Reports null pointers before misaligned ones. */
kiln_status kiln_check_pointers(kiln_loader *loader, const char *subject, const kiln_pointers *pointers,
                                const void *args, uint32_t required)
{
    const kiln_pointer *null = NULL, *misaligned = NULL;
    for (uint32_t i = pointers->count; i-- > 0;) {
        const kiln_pointer *row = &pointers->rows[i];
        const CUdeviceptr address = *(const CUdeviceptr *)((const char *)args + row->offset);
        if (address == 0 && (required >> i & 1u) != 0)
            null = row;
        if ((address & (row->alignment - 1u)) != 0)
            misaligned = row;
    }
    if (null != NULL)
        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, subject, pointers->texts + null->is_null);
    if (misaligned != NULL)
        return kiln_fail(loader, KILN_ERROR_MISALIGNED, subject, pointers->texts + misaligned->misaligned);
    return KILN_OK;
}

int kiln_usable(const kiln_loader *loader, const kiln_kernel *kernel)
{
    return loader != NULL && kernel != NULL && loader->state == LOADER_OPEN &&
           kernel->static_shared_bytes + kernel->min_shared_bytes <= loader->device.max_shared_bytes &&
           kiln_select(&loader->device, kernel->module) != NULL;
}

static kiln_status check_geometry(kiln_loader *loader, const kiln_kernel *kernel, const uint64_t grid[3],
                                  uint64_t shared_bytes)
{
    /* CUDA programming guide, technical specifications per compute capability: the same for all. */
    static const uint32_t most[3] = {0x7fffffff, 0xffff, 0xffff};
    static const char *const too_large[3] = {"grid x is at most 2147483647 thread blocks",
                                             "grid y and z are at most 65535 thread blocks",
                                             "grid y and z are at most 65535 thread blocks"};
    for (int i = 0; i < 3; i++) {
        if (grid[i] > most[i])
            return kiln_fail(loader, KILN_ERROR_GRID_TOO_LARGE, kernel->id, too_large[i]);
        if (grid[i] == 0)
            return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, kernel->id, "the grid is empty");
    }
    if (shared_bytes > kernel->max_shared_bytes)
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, kernel->id,
                         "more dynamic shared memory than the kernel declares");
    uint32_t needed = kernel->static_shared_bytes + (uint32_t)shared_bytes;
    if (needed > loader->device.max_shared_bytes)
        return kiln_fail_count(loader, KILN_ERROR_BAD_ARGUMENT, kernel->id,
                               "bytes of shared memory per thread block", needed,
                               loader->device.max_shared_bytes);
    return KILN_OK;
}
