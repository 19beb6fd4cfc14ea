/* A driver, a device of it, a context, and buffers in its memory. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static const char ORDER[] = "KILN_EMU_ORDER";

enum { GUARD_BYTES = 512, GUARD_VALUE = 0xC5 };

/* A million short executions: asking a real driver for memory each time takes longer than they do. */
enum { ARENA_BYTES = 64 << 20, ARENA_ALIGNMENT = 512 };

/* What every allocation is a multiple of: the CUDA programming guide's 256 bytes, and the emulated driver's pages. */
enum { DRIVER_ALIGNMENT = 256, EMULATED_ALIGNMENT = 4096 };

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* The driver table has no room for a context, and this program has one thread and one driver. */
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

static int (*real_launch_ex)(const struct CUlaunchConfig_st *, CUfunction, void **, void **);

static int launch_ex_and_record(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                                void **extra)
{
    unsigned first[7]; /* of a CUlaunchConfig: the grid, the block, shared memory */
    memcpy(first, config, sizeof first);
    record = (launch_record){.count = record.count + 1,
                             .function = function,
                             .grid = {first[0], first[1], first[2]},
                             .block = {first[3], first[4], first[5]},
                             .shared_bytes = first[6]};
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

/* ---- what a launch in front would have written ------------------------------------------------------------------- */

/* A thread block per buffer. */
static const char rewrite_ptx[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry rewrite(.param .align 8 .b8 buffers[1024])\n{\n"
    ".reg .u64 %a, %b, %i, %n; .reg .u32 %r; .reg .pred %p;\n"
    "mov.u32 %r, %ctaid.x; mul.wide.u32 %a, %r, 16; mov.u64 %b, buffers; add.u64 %b, %b, %a;\n"
    "ld.param.u64 %a, [%b]; ld.param.u64 %n, [%b+8];\n"
    "mov.u32 %r, %tid.x; cvt.u64.u32 %i, %r;\n"
    "NEXT: setp.ge.u64 %p, %i, %n; @%p ret;\n"
    "add.u64 %b, %a, %i; ld.global.u8 %r, [%b]; st.global.u8 [%b], %r;\n"
    "add.u64 %i, %i, 256; bra NEXT;\n}\n";

int device_rewrite(device *d, const device_buffer *const *buffers, size_t count)
{
    struct {
        uint64_t address, bytes;
    } ranges[DEVICE_MOST_REWRITTEN] = {{0}};
    CUmodule module;
    int result = 0;
    if (!d->rewrite)
        result = real_load(&module, rewrite_ptx, 0, NULL, NULL);
    if (!d->rewrite && result == 0)
        result = d->driver.module_get_function(&d->rewrite, module, "rewrite");
    for (size_t i = 0; i < count; i++) {
        ranges[i].address = buffers[i]->address;
        ranges[i].bytes = buffers[i]->bytes;
    }
    void *params[] = {ranges};
    if (result != 0 || count == 0)
        return result;
    watch_begin();
    return real_launch(d->rewrite, (unsigned)count, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}

/* ---- driver and context ------------------------------------------------------------------------------------------ */

void device_describe_result(const device *d, int result, char *text, size_t bytes)
{
    const char *name = NULL, *meaning = NULL;
    if (d->driver.get_error_name)
        d->driver.get_error_name(result, &name);
    if (d->driver.get_error_string)
        d->driver.get_error_string(result, &meaning);
    snprintf(text, bytes, "%s (%d): %s", name ? name : "unknown error", result, meaning ? meaning : "");
}

static device_status fail_call(const device *d, const char *call, int result, char *error, size_t error_bytes)
{
    char what[256];
    device_describe_result(d, result, what, sizeof what);
    snprintf(error, error_bytes, "%s: %s", call, what);
    return DEVICE_FAILED;
}

static device_status open_context(device *d, char *error, size_t error_bytes)
{
    int result = d->driver.device_primary_ctx_retain(&d->context, d->ordinal);
    if (result != 0)
        return fail_call(d, "cuDevicePrimaryCtxRetain", result, error, error_bytes);
    result = d->driver.ctx_set_current(d->context);
    if (result != 0)
        return fail_call(d, "cuCtxSetCurrent", result, error, error_bytes);
    kiln_options options = {.check_image = kiln_check_image,
                            .log = d->log,
                            .log_bytes = sizeof d->log,
                            .scratch = d->scratch,
                            .scratch_bytes = d->index->bundle->scratch_bytes,
                            .ptx_only = d->is_emulated,
                            .overlap_launches = d->is_emulated};
    memset(d->slots, 0, d->index->bundle->slot_count * sizeof *d->slots);
    kiln_status status =
        kiln_open(&d->loader, &d->driver, d->index->bundle, d->slots, d->index->bundle->slot_count, &options);
    if (status != KILN_OK) {
        kiln_error details;
        kiln_last_error(&d->loader, &details);
        kiln_describe_error(&d->loader, &details, NULL, error, error_bytes);
        return DEVICE_FAILED;
    }
    d->is_open = true;
    return DEVICE_OK;
}

static void close_context(device *d)
{
    if (d->arena)
        d->driver.mem_free(d->arena);
    d->arena = d->arena_used = 0;
    if (d->is_open)
        kiln_close(&d->loader);
    d->is_open = false;
    d->rewrite = NULL;
    d->driver.ctx_set_current(NULL);
    d->driver.device_primary_ctx_release(d->ordinal);
}

static device_status find_device(device *d, int ordinal, char *error, size_t error_bytes)
{
    int count = 0, result = d->driver.init(0);
    if (result == 0)
        result = d->driver.device_get_count(&count);
    if (result != 0) {
        fail_call(d, "cuInit", result, error, error_bytes);
        return DEVICE_NONE;
    }
    if (ordinal >= count) {
        snprintf(error, error_bytes, "there is no device %d: the driver has %d", ordinal, count);
        return DEVICE_NONE;
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

device_status device_open(device *d, const char *path, int ordinal, const kiln_index *index, char *error,
                          size_t error_bytes)
{
    const char *missing = NULL;
    *d = (device){.index = index};
    kiln_status loaded = kiln_driver_load(&d->driver, path, &missing);
    if (loaded != KILN_OK) {
        snprintf(error, error_bytes, "%s: %s%s%s", path ? path : "libcuda.so.1", kiln_status_string(loaded),
                 missing ? ": " : "", missing ? missing : "");
        return DEVICE_NONE;
    }
    real_launch = d->driver.launch_kernel;
    d->driver.launch_kernel = launch_and_record;
    real_launch_ex = d->driver.launch_kernel_ex;
    if (real_launch_ex)
        d->driver.launch_kernel_ex = launch_ex_and_record;
    real_load = d->driver.module_load_data_ex;
    d->driver.module_load_data_ex = load_or_replace;
    device_status status = find_device(d, ordinal, error, error_bytes);
    if (status == DEVICE_OK) {
        d->is_emulated = strstr(d->name, "emulated") || strstr(d->name, "Emulated");
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
    kiln_driver_close(&d->driver);
}

device_status device_reopen(device *d, char *error, size_t error_bytes)
{
    close_context(d);
    return open_context(d, error, error_bytes);
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static int allocate_from_arena(device *d, device_buffer *b, size_t total)
{
    int result = d->arena ? 0 : d->driver.mem_alloc(&d->arena, ARENA_BYTES);
    if (result != 0)
        return result;
    b->is_in_arena = true;
    b->base = d->arena + d->arena_used;
    d->arena_used += (total + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    d->arena_buffers++;
    return 0;
}

int device_allocate(device *d, device_buffer *b, size_t bytes, size_t alignment, size_t shift)
{
    const size_t guard = d->is_emulated ? 0 : GUARD_BYTES;
    const size_t given = d->is_emulated ? EMULATED_ALIGNMENT : DRIVER_ALIGNMENT;
    const size_t room = alignment > given ? alignment : 0;
    *b = (device_buffer){.bytes = bytes, .before = guard + shift, .after = guard};
    size_t total = b->before + room + bytes + b->after;
    int result = guard && total <= ARENA_BYTES - d->arena_used
                     ? allocate_from_arena(d, b, total)
                     : d->driver.mem_alloc(&b->base, total ? total : 1);
    if (result != 0)
        return result;
    if (room) {
        const size_t beyond = (size_t)(b->base + guard) % alignment;
        b->before += beyond ? alignment - beyond : 0;
    }
    b->address = b->base + b->before;
    return guard ? d->driver.memset_d8(b->base, GUARD_VALUE, total) : 0;
}

void device_free(device *d, device_buffer *b)
{
    if (b->is_in_arena && --d->arena_buffers == 0)
        d->arena_used = 0;
    if (b->base && !b->is_in_arena)
        d->driver.mem_free(b->base);
    *b = (device_buffer){0};
}

int device_upload(device *d, const device_buffer *b, const void *from)
{
    return b->bytes ? d->driver.memcpy_htod(b->address, from, b->bytes) : 0;
}

int device_fill(device *d, const device_buffer *b, unsigned char value)
{
    return b->bytes ? d->driver.memset_d8(b->address, value, b->bytes) : 0;
}

static bool is_guard(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != GUARD_VALUE)
            return false;
    }
    return true;
}

int device_download(device *d, const device_buffer *b, void *to, bool *intact)
{
    *intact = true;
    if (b->after == 0)
        return b->bytes ? d->driver.memcpy_dtoh(to, b->address, b->bytes) : 0;
    pool scratch = {NULL};
    unsigned char *all = pool_allocate(&scratch, b->before + b->bytes + b->after);
    int result = d->driver.memcpy_dtoh(all, b->base, b->before + b->bytes + b->after);
    *intact = is_guard(all, b->before) && is_guard(all + b->before + b->bytes, b->after);
    memcpy(to, all + b->before, b->bytes);
    pool_free(&scratch);
    return result;
}
