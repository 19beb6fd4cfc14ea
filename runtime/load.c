/* Opens and closes a loader, and loads a kernel once.
 *
 * Threads read only slots[kernel->slot].kernel without the lock: it is null until the function next to it is usable.
 * Everything else in the slots is read and written under load_lock.
 */
#include <string.h>

#include "internal.h"

static kiln_status check_open_arguments(kiln_loader *loader, const kiln_driver *driver,
                                        const kiln_bundle *bundle, const kiln_slot *slots, size_t slot_count);
static bool is_whole(const kiln_driver *driver);
static kiln_status query_device(kiln_loader *loader);
static ONCE kiln_status driver_failed(kiln_loader *loader, const char *entry_point, int result);
static kiln_status current_context(kiln_loader *loader, const char *subject, CUcontext *context);
static kiln_status check_context(kiln_loader *loader, const char *subject);
static kiln_status load_under_lock(kiln_loader *loader, const kiln_kernel *kernel, kiln_slot *slot);
static kiln_status load_module(kiln_loader *loader, const kiln_kernel *kernel, CUmodule *module);
static kiln_status load_function(kiln_loader *loader, const kiln_kernel *kernel, CUmodule module,
                                 CUfunction *function);
static kiln_status no_image(kiln_loader *loader, const kiln_kernel *kernel);

/* ---- public --------------------------------------------------------------------------------------------------- */

kiln_status kiln_open(kiln_loader *loader, const kiln_driver *driver, const kiln_bundle *bundle,
                      kiln_slot *slots, size_t slot_count, const kiln_options *options)
{
    if (loader == NULL)
        return KILN_ERROR_NULL_POINTER;
    if (loader->state == LOADER_OPEN)
        return kiln_fail(loader, KILN_ERROR_ALREADY_OPEN, loader->bundle->name, NULL);
    memset(loader, 0, sizeof *loader);
    if (options != NULL)
        loader->options = *options;

    kiln_status status = check_open_arguments(loader, driver, bundle, slots, slot_count);
    if (status != KILN_OK)
        return status;
    loader->driver = driver;
    loader->bundle = bundle;
    loader->slots = slots;
    status = current_context(loader, bundle->name, &loader->context);
    if (status == KILN_OK)
        status = query_device(loader);
    if (status != KILN_OK)
        return status;

    memset(slots, 0, bundle->slot_count * sizeof *slots);
    loader->state = LOADER_OPEN;
    return KILN_OK;
}

kiln_status kiln_close(kiln_loader *loader)
{
    if (loader == NULL)
        return KILN_ERROR_NULL_POINTER;
    if (loader->state != LOADER_OPEN)
        return KILN_OK;
    kiln_status status = check_context(loader, loader->bundle->name);
    if (status != KILN_OK)
        return status;

    for (uint32_t i = 0; i < loader->bundle->slot_count; i++) {
        if (loader->slots[i].module == NULL)
            continue;
        int result = loader->driver->module_unload(loader->slots[i].module);
        if (result != 0 && status == KILN_OK)
            status = driver_failed(loader, "cuModuleUnload", result);
    }
    kiln_forget(loader);
    return status;
}

void kiln_forget(kiln_loader *loader)
{
    if (loader == NULL)
        return;
    loader->state = LOADER_CLOSED;
    loader->driver = NULL; /* the caller may now free the table */
}

kiln_status kiln_begin(kiln_loader *loader, const void *args, const char *subject)
{
    if (loader == NULL || args == NULL)
        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, subject,
                         "the loader and its arguments are required");
    if (loader->state != LOADER_OPEN)
        return kiln_fail(loader, KILN_ERROR_CLOSED, subject, NULL);
    return KILN_OK;
}

kiln_status kiln_preload(kiln_loader *loader, const kiln_kernel *const *kernels, size_t count)
{
    kiln_status status = kiln_begin(loader, loader, "kiln_preload");
    if (status != KILN_OK)
        return status;
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        CUfunction function;
        if (kernels == NULL || kernels[i] == NULL)
            return kiln_fail(loader, KILN_ERROR_NULL_POINTER, "kiln_preload", "a kernel is null, or all are");
        status = kiln_load(loader, kernels[i], &function);
    }
    return status;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static kiln_status check_open_arguments(kiln_loader *loader, const kiln_driver *driver,
                                        const kiln_bundle *bundle, const kiln_slot *slots, size_t slot_count)
{
    if (driver == NULL || bundle == NULL || slots == NULL)
        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, "kiln_open",
                         "driver, bundle and slots are required");
    if (bundle->layout_version != KILN_LAYOUT_VERSION) /* so its name cannot be read */
        return kiln_fail_count(loader, KILN_ERROR_LAYOUT, "kiln_open", "", KILN_LAYOUT_VERSION,
                               bundle->layout_version);
    if (slot_count < bundle->slot_count)
        return kiln_fail_count(loader, KILN_ERROR_TOO_FEW_SLOTS, bundle->name, "", bundle->slot_count,
                               (uint32_t)slot_count);
    const kiln_options *options = &loader->options;
    const uint64_t scratch_bytes = options->scratch != NULL ? options->scratch_bytes : 0;
    if (scratch_bytes < bundle->scratch_bytes)
        return kiln_fail_count(loader, KILN_ERROR_SCRATCH_TOO_SMALL, bundle->name, "",
                               (uint32_t)bundle->scratch_bytes, (uint32_t)scratch_bytes);
    if ((uintptr_t)options->scratch % 16 != 0)
        return kiln_fail(loader, KILN_ERROR_MISALIGNED, bundle->name, "options.scratch: align to 16");
    if (!is_whole(driver))
        return kiln_fail(loader, KILN_ERROR_DRIVER_SYMBOL, bundle->name, "null in the driver table");
    return KILN_OK;
}

/* Checks the required entries, which come first; kiln_driver_load fills all of them. */
static bool is_whole(const kiln_driver *driver)
{
    enum { FIRST = offsetof(kiln_driver, driver_get_version), END = offsetof(kiln_driver, init) };
    for (size_t at = FIRST; at < END; at += sizeof driver->init) {
        const void *entry;
        memcpy(&entry, (const char *)driver + at, sizeof entry);
        if (entry == NULL)
            return false;
    }
    return true;
}

/* Queries the attributes that every device has, then those that only estimates read: a driver may lack the latter. */
static kiln_status query_device(kiln_loader *loader)
{
    enum {
        MAJOR,
        MINOR,
        MULTIPROCESSORS,
        SHARED,
        NEEDED,
        ALL_SHARED = NEEDED,
        THREADS,
        CLOCK,
        MEMORY_CLOCK,
        BUS,
        ALL
    };
    static const uint8_t attributes[ALL] = {DEVICE_COMPUTE_CAPABILITY_MAJOR,
                                            DEVICE_COMPUTE_CAPABILITY_MINOR,
                                            DEVICE_MULTIPROCESSOR_COUNT,
                                            DEVICE_MAX_SHARED_BYTES_OPTIN,
                                            DEVICE_MULTIPROCESSOR_SHARED_BYTES,
                                            DEVICE_MULTIPROCESSOR_THREADS,
                                            DEVICE_CLOCK_RATE,
                                            DEVICE_MEMORY_CLOCK_RATE,
                                            DEVICE_MEMORY_BUS_BITS};
    int values[ALL], ordinal, version;

    int result = loader->driver->driver_get_version(&version);
    if (result != 0)
        return driver_failed(loader, "cuDriverGetVersion", result);
    result = loader->driver->ctx_get_device(&ordinal);
    if (result != 0)
        return driver_failed(loader, "cuCtxGetDevice", result);
    for (int i = 0; i < ALL; i++) {
        result = loader->driver->device_get_attribute(&values[i], attributes[i], ordinal);
        if (result != 0 && i < NEEDED)
            return driver_failed(loader, "cuDeviceGetAttribute", result);
        if (result != 0 || values[i] < 0)
            values[i] = 0;
    }
    const uint32_t sm = 10u * (uint32_t)values[MAJOR] + (uint32_t)values[MINOR];
    /* Double data rate. */
    const uint64_t moved = (uint64_t)values[MEMORY_CLOCK] * (uint32_t)values[BUS] / 4;
    /* The cycles of a target's usual device (generator/target/devices.def). */
    const uint32_t mma = sm == 86 || sm == 89 || sm == 120 ? 4 : sm < 80 || sm > 120 ? 2 : 1;
    const uint32_t mma_s8 = sm == 103 ? 16 : mma > 1 ? 4 : 2;
    const uint64_t memory_cycles = moved && values[CLOCK] ? ((uint64_t)values[CLOCK] << 20) / moved : 1024;
    kiln_device *d = &loader->device;
    d->sm = sm;
    d->driver_version = (uint32_t)version;
    d->multiprocessors = (uint32_t)values[MULTIPROCESSORS];
    d->max_shared_bytes = (uint32_t)values[SHARED];
    d->ptx_only = loader->options.ptx_only != 0;
    d->multiprocessor_shared_bytes =
        values[ALL_SHARED] ? (uint32_t)values[ALL_SHARED] : (uint32_t)values[SHARED] + 1024;
    d->multiprocessor_threads = (uint32_t)(values[THREADS] ? values[THREADS] : 1024);
    d->memory_cycles = memory_cycles < UINT32_MAX ? (uint32_t)memory_cycles : UINT32_MAX;
    d->mma_cycles = mma;
    d->mma_s8_cycles = mma_s8;
    d->mma_fp4_cycles = 4;
    return KILN_OK;
}

static kiln_status driver_failed(kiln_loader *loader, const char *entry_point, int result)
{
    return kiln_fail_call(loader, KILN_ERROR_DRIVER, entry_point, "", result);
}

static kiln_status current_context(kiln_loader *loader, const char *subject, CUcontext *context)
{
    int result = loader->driver->ctx_get_current(context);
    if (result != 0)
        return driver_failed(loader, "cuCtxGetCurrent", result);
    if (*context == NULL)
        return kiln_fail(loader, KILN_ERROR_NO_CONTEXT, subject, NULL);
    return KILN_OK;
}

/* ---- loading -------------------------------------------------------------------------------------------------- */

kiln_status kiln_load(kiln_loader *loader, const kiln_kernel *kernel, CUfunction *function)
{
    uint32_t slot_count = loader->bundle->slot_count;
    if (kernel->slot >= slot_count || kernel->module->slot >= slot_count)
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, kernel->id, "a kernel of another bundle");

    if (function == NULL) /* the caller only wants to know whether there is an image */
        return kiln_select(&loader->device, kernel->module) != NULL ? KILN_OK : no_image(loader, kernel);
    kiln_slot *slot = &loader->slots[kernel->slot];
    if (__atomic_load_n(&slot->kernel, __ATOMIC_ACQUIRE) != kernel) {
        kiln_acquire(loader, &loader->load_lock);
        kiln_status status = load_under_lock(loader, kernel, slot);
        release_lock(&loader->load_lock);
        if (status != KILN_OK)
            return status;
    }
    *function = slot->function;
    return KILN_OK;
}

/* A failure leaves slot->kernel null, so that a later call tries again; it keeps a module that did load. */
static kiln_status load_under_lock(kiln_loader *loader, const kiln_kernel *kernel, kiln_slot *slot)
{
    if (slot->kernel == kernel) /* another thread has loaded it */
        return KILN_OK;
    if (slot->kernel != NULL)
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, kernel->id, "a kernel of another bundle");

    CUmodule *module = &loader->slots[kernel->module->slot].module;
    kiln_status status = check_context(loader, kernel->id);
    if (status == KILN_OK && *module == NULL)
        status = load_module(loader, kernel, module);
    if (status == KILN_OK)
        status = load_function(loader, kernel, *module, &slot->function);
    if (status == KILN_OK)
        __atomic_store_n(&slot->kernel, kernel, __ATOMIC_RELEASE);
    return status;
}

static kiln_status check_context(kiln_loader *loader, const char *subject)
{
    CUcontext context;
    kiln_status status = current_context(loader, subject, &context);
    if (status == KILN_OK && context != loader->context)
        status = kiln_fail(loader, KILN_ERROR_WRONG_CONTEXT, subject, NULL);
    return status;
}

static kiln_status load_module(kiln_loader *loader, const kiln_kernel *kernel, CUmodule *module)
{
    const kiln_image *image = kiln_select(&loader->device, kernel->module);
    if (image == NULL)
        return no_image(loader, kernel);
    const kiln_options *options = &loader->options;
    const char *data = image->data, *detail = "options.check_image refused it";
    kiln_status status = options->check_image != NULL ? options->check_image(image) : KILN_OK;
    if (status == KILN_OK && image->codec != NULL) {
        data = options->scratch;
        detail = "the codec refused it";
        status = image->codec(image, options->scratch, options->scratch_bytes);
    }
    if (status != KILN_OK)
        return kiln_fail(loader, status, kernel->id, detail);

    /* The driver takes the size, an unsigned int, in place of a pointer. */
    bool logs = options->log != NULL && options->log_bytes != 0;
    size_t log_bytes = options->log_bytes < UINT32_MAX ? options->log_bytes : UINT32_MAX;
    int names[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_BYTES};
    void *values[] = {options->log, (void *)(uintptr_t)log_bytes};
    if (logs)
        options->log[0] = '\0';
    CUmodule loaded = NULL;
    int result = loader->driver->module_load_data_ex(&loaded, data, logs ? 2 : 0, names, values);
    if (logs)
        options->log[log_bytes - 1] = '\0'; /* a driver that fills the buffer may omit the NUL */
    if (result != 0)
        return kiln_record(loader, &(kiln_error){.status = KILN_ERROR_LOAD,
                                                 .driver_result = result,
                                                 .subject = kernel->id,
                                                 .detail = "cuModuleLoadDataEx",
                                                 .log_bytes = logs ? strlen(options->log) : 0});
    *module = loaded;
    return KILN_OK;
}

static kiln_status no_image(kiln_loader *loader, const kiln_kernel *kernel)
{
    uint32_t needed = 0; /* the lowest version with which some image fits */
    bool has_ptx = false;
    for (uint32_t i = 0; i < kernel->module->image_count; i++) {
        const kiln_image *image = &kernel->module->images[i];
        has_ptx = has_ptx || image->format == KILN_IMAGE_PTX;
        if (kiln_image_fit(&loader->device, image) == KILN_FIT_DRIVER_TOO_OLD &&
            (needed == 0 || image->min_driver < needed))
            needed = image->min_driver;
    }
    if (needed == 0)
        return kiln_fail(loader, KILN_ERROR_NO_IMAGE, kernel->id,
                         has_ptx ? "add its target, or a variant that it can run, to the configuration"
                                 : "add its target, or ptx, to the configuration");
    return kiln_fail_count(loader, KILN_ERROR_DRIVER_TOO_OLD, kernel->id, "", needed,
                           loader->device.driver_version);
}

static kiln_status load_function(kiln_loader *loader, const kiln_kernel *kernel, CUmodule module,
                                 CUfunction *function)
{
    const kiln_driver *driver = loader->driver;
    const char *call = "cuModuleGetFunction";
    int result = driver->module_get_function(function, module, kernel->entry);

    /* A device with less than the kernel's maximum still runs launches that need less. */
    uint32_t fixed = kernel->static_shared_bytes, most = kernel->max_shared_bytes + fixed;
    if (most > loader->device.max_shared_bytes)
        most = loader->device.max_shared_bytes;
    if (result == 0 && most > SHARED_BYTES_WITHOUT_OPTIN) {
        call = "cuFuncSetAttribute";
        result =
            driver->func_set_attribute(*function, FUNCTION_MAX_DYNAMIC_SHARED_BYTES, (int)(most - fixed));
    }
    return result != 0 ? kiln_fail_call(loader, KILN_ERROR_LOAD, kernel->id, call, result) : KILN_OK;
}
