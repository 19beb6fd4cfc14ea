/* Opens a driver, a device and a context. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static const char ORDER[] = "KILN_EMU_ORDER";

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* Static: the driver table has no context pointer, and this program has one thread and one driver. */
static launch_record record;
static bool is_held_back;
static int (*real_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          CUstream, void **, void **);

static int launch_and_record(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                             CUstream stream, void **params, void **extra)
{
    record = (launch_record){.count = record.count + 1,
                             .function = function,
                             .grid = {grid_x, grid_y, grid_z},
                             .block = {block_x, block_y, block_z},
                             .shared_bytes = shared_bytes};
    if (is_held_back)
        return 0;
    watch_begin(); /* the module is loaded */
    return real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                       params, extra);
}

/* The members of cuda.h's CUlaunchConfig and CUlaunchAttribute that this file reads. */
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
typedef struct launch_attributes {
    unsigned sizes[7];
    CUstream stream;
    const struct {
        int id, padding, value;
    } * first;
    unsigned count;
} launch_attributes;

static int (*real_launch_ex)(const struct CUlaunchConfig_st *, CUfunction, void **, void **);

static int launch_ex_and_record(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                                void **extra)
{
    unsigned first[7]; /* a CUlaunchConfig's grid, block and shared memory */
    memcpy(first, config, sizeof first);
    const launch_attributes *attributes = (const void *)config;
    record = (launch_record){.count = record.count + 1,
                             .function = function,
                             .grid = {first[0], first[1], first[2]},
                             .block = {first[3], first[4], first[5]},
                             .shared_bytes = first[6],
                             .overlaps = attributes->count == 1 &&
                                         attributes->first->id == PROGRAMMATIC_STREAM_SERIALIZATION &&
                                         attributes->first->value == 1};
    if (is_held_back)
        return 0;
    watch_begin();
    return real_launch_ex(config, function, params, extra);
}

void launch_record_clear(void)
{
    record = (launch_record){.count = 0};
}

const launch_record *launch_record_read(void)
{
    return &record;
}

void launch_hold_back(bool held)
{
    is_held_back = held;
}

const kiln_kernel *launch_record_kernel(const device *d)
{
    for (uint32_t i = 0; i < d->index->bundle->kernel_count; i++) {
        const kiln_kernel *k = d->index->kernels[i];
        if (record.count && d->slots[k->slot].function == record.function)
            return k;
    }
    return NULL;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const void *replaced;
static const char *replacement;
static int (*real_load)(CUmodule *, const void *, unsigned, int *, void **);

static int load_or_replace(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    return real_load(module, image == replaced ? replacement : image, count, options, values);
}

const char *device_image_data(const device *d, const kiln_image *image)
{
    if (!image->codec)
        return image->data;
    return image->codec(image, d->scratch, d->index->bundle->scratch_bytes) == KILN_OK ? d->scratch : NULL;
}

void device_replace_image(const device *d, const kiln_image *image, const char *text)
{
    replaced = !image ? NULL : image->codec ? d->scratch : image->data;
    replacement = text;
}

/* ---- driver and context ------------------------------------------------------------------------------------------ */

void device_describe_target(const kiln_image *image, char *text, size_t bytes)
{
    static const char *const kinds[] = {
        [KILN_TARGET_BASE] = "", [KILN_TARGET_ARCH] = "a", [KILN_TARGET_FAMILY] = "f"};
    snprintf(text, bytes, "sm_%u%s", image->sm, kinds[image->kind]);
}

void device_describe_result(const device *d, int result, char *text, size_t bytes)
{
    const char *name = NULL, *meaning = NULL;
    if (d->driver.get_error_name)
        d->driver.get_error_name(result, &name);
    if (d->driver.get_error_string)
        d->driver.get_error_string(result, &meaning);
    snprintf(text, bytes, "%s (%d): %s", name ? name : "unknown error", result, meaning ? meaning : "");
}

void device_describe_failure(device *d, const kiln_kernel *kernel, int result, char *text, size_t bytes)
{
    kiln_error details;
    if (result >= 0) {
        device_describe_result(d, result, text, bytes);
        return;
    }
    kiln_last_error(&d->loader, &details);
    const size_t length = kiln_describe_error(&d->loader, &details, kernel, text, bytes);
    if (details.log_bytes && length < bytes)
        snprintf(text + length, bytes - length, "\n%s", d->log);
}

static device_status fail_call(const device *d, const char *call, int result, char *error, size_t error_bytes)
{
    char what[256];
    device_describe_result(d, result, what, sizeof what);
    snprintf(error, error_bytes, "%s: %s", call, what);
    return DEVICE_FAILED;
}

static device_status open_loader(device *d, char *error, size_t error_bytes);

static device_status open_context(device *d, char *error, size_t error_bytes)
{
    int result = d->driver.device_primary_ctx_retain(&d->context, d->ordinal);
    if (result != 0)
        return fail_call(d, "cuDevicePrimaryCtxRetain", result, error, error_bytes);
    result = d->driver.ctx_set_current(d->context);
    if (result != 0)
        return fail_call(d, "cuCtxSetCurrent", result, error, error_bytes);
    return open_loader(d, error, error_bytes);
}

static device_status open_loader(device *d, char *error, size_t error_bytes)
{
    kiln_options options = {.check_image = kiln_check_image,
                            .log = d->log,
                            .log_bytes = sizeof d->log,
                            .scratch = d->scratch,
                            .scratch_bytes = d->index->bundle->scratch_bytes,
                            .ptx_only = d->is_emulated,
                            .overlap_launches = d->overlaps};
    memset(d->slots, 0, d->index->bundle->slot_count * sizeof *d->slots);
    kiln_status status =
        kiln_open(&d->loader, &d->driver, d->index->bundle, d->slots, d->index->bundle->slot_count, &options);
    if (status != KILN_OK) {
        device_describe_failure(d, NULL, -1, error, error_bytes);
        return DEVICE_FAILED;
    }
    d->is_open = true;
    return DEVICE_OK;
}

static void close_context(device *d)
{
    if (d->arena)
        d->driver.mem_free(d->arena);
    d->arena = 0;
    if (d->is_open)
        kiln_close(&d->loader);
    d->is_open = false;
    d->writer = NULL;
    d->driver.ctx_set_current(NULL);
    d->driver.device_primary_ctx_release(d->ordinal);
}

/* Fails instead of skipping where the user named a driver or device, since the name may be mistyped. */
static device_status none(const device *d)
{
    return d->is_named ? DEVICE_FAILED : DEVICE_NONE;
}

static device_status find_device(device *d, int ordinal, char *error, size_t error_bytes)
{
    int count = 0, result = d->driver.init(0);
    if (result == 0)
        result = d->driver.device_get_count(&count);
    if (result != 0) {
        fail_call(d, "cuInit", result, error, error_bytes);
        return none(d);
    }
    if (ordinal >= count) {
        snprintf(error, error_bytes, "there is no device %d: the driver has %d", ordinal, count);
        return none(d);
    }
    result = d->driver.device_get(&d->ordinal, ordinal);
    if (result == 0)
        result = d->driver.device_get_name(d->name, (int)sizeof d->name, d->ordinal);
    if (result == 0)
        result = d->driver.driver_get_version(&d->version);
    return result == 0 ? DEVICE_OK : fail_call(d, "cuDeviceGet", result, error, error_bytes);
}

void device_order_blocks(const device *d, block_order order)
{
    static const char *const words[] = {"forward", "reverse", "shuffle"};
    if (!d->has_order && d->is_emulated)
        setenv(ORDER, words[order], 1);
}

device_status device_open(device *d, const char *path, uint64_t ordinal, const kiln_index *index, char *error,
                          size_t error_bytes)
{
    const char *missing = NULL;
    *d = (device){.index = index, .is_named = path || ordinal != DEVICE_UNNAMED};
    kiln_status loaded = kiln_driver_load(&d->driver, path, &missing);
    if (loaded != KILN_OK) {
        snprintf(error, error_bytes, "%s: %s%s%s", path ? path : "libcuda.so.1", kiln_status_string(loaded),
                 missing ? ": " : "", missing ? missing : "");
        return none(d);
    }
    real_launch = d->driver.launch_kernel;
    d->driver.launch_kernel = launch_and_record;
    real_launch_ex = d->driver.launch_kernel_ex;
    if (real_launch_ex)
        d->driver.launch_kernel_ex = launch_ex_and_record;
    real_load = d->driver.module_load_data_ex;
    d->driver.module_load_data_ex = load_or_replace;
    device_status status = find_device(d, ordinal == DEVICE_UNNAMED ? 0 : (int)ordinal, error, error_bytes);
    if (status == DEVICE_OK) {
        d->is_emulated = strstr(d->name, "emulated") || strstr(d->name, "Emulated");
        d->overlaps = d->is_emulated;
        d->has_order = getenv(ORDER) && *getenv(ORDER);
        d->slots = calloc(index->bundle->slot_count + 1, sizeof *d->slots);
        d->scratch = malloc(index->bundle->scratch_bytes + 1);
        status = d->slots && d->scratch ? open_context(d, error, error_bytes) : DEVICE_FAILED;
    }
    if (status != DEVICE_OK) {
        free(d->slots);
        free(d->scratch);
        kiln_driver_close(&d->driver);
    }
    return status;
}

void device_close(device *d)
{
    close_context(d);
    free(d->slots);
    free(d->scratch);
    free(d->image);
    kiln_driver_close(&d->driver);
}

bool device_overlap(device *d)
{
    char error[256];
    if (d->loader.device.sm < DEVICE_FIRST_OVERLAP_SM || !d->driver.launch_kernel_ex)
        return false;
    if (d->overlaps)
        return true;
    kiln_close(&d->loader);
    d->overlaps = true;
    d->is_open = false;
    return open_loader(d, error, sizeof error) == DEVICE_OK;
}

device_status device_reopen(device *d, char *error, size_t error_bytes)
{
    close_context(d);
    return open_context(d, error, error_bytes);
}
