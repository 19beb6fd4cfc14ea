/* Work that is submitted to streams: kernels, copies, fills, events, host functions. It is done at once, or recorded if the
   stream is captured. The last part launches kernels: the driver's checks, and parameters. */
#include "../check/check.h"
#include "../count/count.h"
#include "../count/reach.h"
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_side(uint64_t address, size_t bytes, bool host)
{
    return emu_memory_holding(address, bytes) || (host && address && !emu_memory_contains(address));
}

CUresult emu_check_copy(const emu_work *w)
{
    bool is_right = is_side(w->copy.to, w->copy.bytes, w->copy.to_host) &&
                    is_side(w->copy.from, w->copy.bytes, w->copy.from_host);
    return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_blocking(void)
{
    const char *text = getenv("CUDA_LAUNCH_BLOCKING");
    return text && strcmp(text, "1") == 0;
}

/* Launches that a dependent launch may overlap with, by serial number: the preceding one on its stream; if that one let the
   next launch begin before it had waited itself, also the one before it, and so on. */
static uint64_t launches, ended_launches;

static uint64_t *overlap_of(CUcontext context, CUstream stream)
{
    return stream ? &stream->overlap : &context->default_overlap;
}

void emu_end_overlap(CUcontext context, CUstream stream)
{
    __atomic_store_n(overlap_of(context, stream), 0, __ATOMIC_RELAXED);
    if (!stream) /* other streams wait for the default stream, and copies by the host wait for it */
        emu_end_overlaps();
}

void emu_end_overlaps(void)
{
    __atomic_store_n(&ended_launches, __atomic_load_n(&launches, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static uint64_t first_overlap(uint64_t overlap)
{
    uint64_t first = __atomic_load_n(&ended_launches, __ATOMIC_RELAXED) + 1;
    return overlap == 0 ? UINT64_MAX : overlap > first ? overlap : first;
}

static CUresult run_kernel(CUcontext context, CUstream stream, const emu_work *work)
{
    uint64_t *overlap = overlap_of(context, stream), before = __atomic_load_n(overlap, __ATOMIC_RELAXED);
    CUfunction f = work->launch.function;
    const emu_device_model *model = context->device->model;
    emu_launch launch = {.program = f->program,
                         .dynamic_shared_bytes = work->launch.shared_bytes,
                         .parameters = work->launch.parameters,
                         .parameter_bytes = work->launch.parameter_bytes,
                         .multiprocessors = model->multiprocessors,
                         .device_number = model->number,
                         .shared_limit = model->shared_per_block_optin,
                         .registers = emu_entry_registers(f),
                         .is_dependent = work->launch.is_dependent,
                         .overlap_from = first_overlap(before),
                         .serial = __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED)};
    memcpy(launch.grid, work->launch.grid, sizeof launch.grid);
    memcpy(launch.block, work->launch.block, sizeof launch.block);
    memcpy(launch.cluster, work->launch.cluster, sizeof launch.cluster);
    launch.is_explicit_cluster = work->launch.is_explicit_cluster;
    launch.threads = launch.block[0] * launch.block[1] * launch.block[2];
    launch.max_resident_blocks = (unsigned)emu_occupancy(f, launch.threads, launch.dynamic_shared_bytes);
    if (f->module->const_bank) {
        launch.const_bank = (char *)(uintptr_t)f->module->const_bank->base;
        launch.const_bytes = f->module->const_bank->bytes;
    }
    emu_check_launch(&launch, emu_the_driver.checks);
    emu_count_launch(&launch);
    emu_reach_launch(&launch);
    emu_record *record = emu_begin_record(work);
    CUresult r = emu_run_launch(&launch);
    emu_end_record(record, r);
    emu_print_reports(&launch);
    if (before == 0 || !launch.lets_next_early)
        __atomic_store_n(overlap, launch.serial, __ATOMIC_RELAXED);
    if (r != CUDA_SUCCESS)
        context->error = r;
    /* as on a device, the launch itself succeeds; later calls return the error */
    return is_blocking() ? r : CUDA_SUCCESS;
}

static void fill(uint64_t to, uint32_t value, uint32_t element, size_t count)
{
    char *p = (char *)(uintptr_t)to;
    if (element == 1) {
        memset(p, (int)value, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(p + i * element, &value, element);
}

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static CUresult do_work(CUcontext context, CUstream stream, const emu_work *work)
{
    if (work->kind != EMU_WORK_LAUNCH && work->kind != EMU_WORK_RECORD)
        emu_end_overlap(context, stream);
    switch (work->kind) {
    case EMU_WORK_LAUNCH:
        return run_kernel(context, stream, work);
    case EMU_WORK_COPY:
        memmove((void *)(uintptr_t)work->copy.to, (const void *)(uintptr_t)work->copy.from, work->copy.bytes);
        emu_memory_copied(work->copy.to, work->copy.from, work->copy.bytes);
        return CUDA_SUCCESS;
    case EMU_WORK_SET:
        fill(work->set.to, work->set.value, work->set.element, work->set.count);
        emu_memory_copied(work->set.to, 0, (uint64_t)work->set.element * work->set.count);
        return CUDA_SUCCESS;
    case EMU_WORK_RECORD:
        emu_capture_forget_event(work->event);
        work->event->is_recorded = true;
        work->event->nanoseconds = nanoseconds();
        return CUDA_SUCCESS;
    case EMU_WORK_WAIT:
        return CUDA_SUCCESS; /* the work before the event has already ended */
    default:
        work->call(work->data);
        return CUDA_SUCCESS;
    }
}

CUresult emu_submit(CUcontext context, CUstream stream, emu_work *work)
{
    CUresult r;
    if (emu_is_captured(stream)) {
        r = emu_capture_work(stream, work);
    } else {
        r = stream ? CUDA_SUCCESS : emu_capture_allows_stream(context, NULL);
        if (r == CUDA_SUCCESS)
            r = do_work(context, stream, work);
    }
    free(work->launch.parameters);
    return r;
}

static bool is_grid_too_large(const uint32_t grid[3], const uint32_t block[3])
{
    return grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535 || block[0] > 1024 ||
           block[1] > 1024 || block[2] > 64;
}

static CUresult check_launch(CUcontext context, CUfunction f, const uint32_t grid[3], const uint32_t block[3],
                             uint32_t shared_bytes)
{
    if (!emu_is(f, EMU_FUNCTION) || f->module->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    const emu_function *k = f->function;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!threads || !grid[0] || !grid[1] || !grid[2] || is_grid_too_large(grid, block) ||
        threads > emu_max_threads(f))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (k->has_required_threads && block[i] != k->required_threads[i])
            return CUDA_ERROR_INVALID_VALUE;
    if ((int64_t)shared_bytes > f->max_dynamic_shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return emu_occupancy(f, (unsigned)threads, shared_bytes) > 0 ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* extra: pairs of a name and a value, which give one buffer and its size instead of a pointer per parameter. */
static CUresult parameters_from_buffer(const emu_function *k, void **extra, char *bytes)
{
    enum { END = 0, BUFFER = 1, SIZE = 2 };
    const char *buffer = NULL;
    const size_t *size = NULL;
    for (; (uintptr_t)extra[0] != END; extra += 2) {
        if ((uintptr_t)extra[0] == BUFFER)
            buffer = extra[1];
        else if ((uintptr_t)extra[0] == SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!buffer || !size || *size < k->parameter_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(bytes, buffer, k->parameter_bytes);
    return CUDA_SUCCESS;
}

static CUresult read_parameters(const emu_function *k, void **parameters, void **extra, char *bytes)
{
    if (k->parameter_count == 0)
        return CUDA_SUCCESS;
    if (parameters && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return parameters_from_buffer(k, extra, bytes);
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = 0;
    for (size_t i = 0; i < k->parameter_count; i++) {
        const emu_symbol *s = k->parameters[i];
        if (!parameters[i])
            return CUDA_ERROR_INVALID_VALUE;
        at = emu_align_up(at, s->alignment);
        memcpy(bytes + at, parameters[i], s->bytes);
        at += s->bytes;
    }
    return CUDA_SUCCESS;
}

/* cluster: its extents from the launch; NULL: not given. */
static CUresult launch_kernel(CUcontext context, const CUlaunchConfig *c, const uint32_t *cluster,
                              bool is_dependent, CUfunction f, void **parameters, void **extra)
{
    emu_work work = {.kind = EMU_WORK_LAUNCH};
    CUstream stream = c->hStream;
    uint32_t grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
    uint32_t block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
    CUresult r = check_launch(context, f, grid, block, c->sharedMemBytes);
    if (r == CUDA_SUCCESS)
        r = emu_check_stream(context, &stream);
    if (r == CUDA_SUCCESS)
        r = emu_choose_cluster(f, cluster, work.launch.cluster, &work.launch.is_explicit_cluster);
    if (r == CUDA_SUCCESS)
        r = emu_check_cluster(f, grid, work.launch.cluster);
    if (r != CUDA_SUCCESS)
        return r;
    work.launch.function = f;
    work.launch.serial = f->serial;
    work.launch.shared_bytes = c->sharedMemBytes;
    work.launch.is_dependent = is_dependent;
    memcpy(work.launch.grid, grid, sizeof grid);
    memcpy(work.launch.block, block, sizeof block);
    work.launch.parameter_bytes = (uint32_t)f->function->parameter_bytes;
    work.launch.parameters = emu_alloc(f->function->parameter_bytes + 16);
    r = read_parameters(f->function, parameters, extra, work.launch.parameters);
    if (r != CUDA_SUCCESS) {
        free(work.launch.parameters);
        return r;
    }
    return emu_submit(context, stream, &work);
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    EMU_ENTER(context);
    CUlaunchConfig c = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0};
    return launch_kernel(context, &c, NULL, false, f, parameters, extra);
}

static CUresult not_supported(const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "kiln emulator: CUDA_ERROR_NOT_SUPPORTED: cuLaunchKernelEx with %s\n", what);
    emu_print_report(text, 1);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Attributes that only streams have, and unknown ones, are invalid, as on a device. */
static CUresult check_attribute(CUcontext context, const CUlaunchAttribute *a)
{
    switch (a->id) {
    case CU_LAUNCH_IGNORE:
    case CU_LAUNCH_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_CLUSTER_SCHEDULING:
    case CU_LAUNCH_PRIORITY:
    case CU_LAUNCH_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_SHARED_CARVEOUT:
        return CUDA_SUCCESS; /* they change only the speed */
    case CU_LAUNCH_COOPERATIVE:
        return a->value.cooperative ? not_supported("a cooperative launch") : CUDA_SUCCESS;
    case CU_LAUNCH_CLUSTER_DIMENSION:
        if (a->value.cluster.x == 0 || a->value.cluster.y == 0 || a->value.cluster.z == 0)
            return CUDA_ERROR_INVALID_VALUE;
        return context->device->model->number < 90 &&
                       (a->value.cluster.x > 1 || a->value.cluster.y > 1 || a->value.cluster.z > 1)
                   ? not_supported("a cluster of several thread blocks, which is for sm_90 and newer")
                   : CUDA_SUCCESS;
    case CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION:
        return a->value.programmatic && context->device->model->number < 90
                   ? not_supported("a dependent launch, which is for sm_90 and newer")
                   : CUDA_SUCCESS;
    case CU_LAUNCH_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_COMPLETION_EVENT:
        return not_supported("an event of the launch");
    case CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION:
        return not_supported("a preferred cluster dimension");
    case CU_LAUNCH_DEVICE_UPDATABLE_NODE:
        return not_supported("a node that the device updates");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra)
{
    EMU_ENTER(context);
    bool is_dependent = false;
    const uint32_t *cluster = NULL;
    if (!c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        CUresult r = check_attribute(context, a);
        if (r != CUDA_SUCCESS)
            return r;
        if (a->id == CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)
            is_dependent = a->value.programmatic != 0;
        if (a->id == CU_LAUNCH_CLUSTER_DIMENSION)
            cluster = &a->value.cluster.x;
    }
    return launch_kernel(context, c, cluster, is_dependent, f, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void **parameters)
{
    EMU_ENTER(context);
    (void)f, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z,
        (void)shared_bytes, (void)stream, (void)parameters;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EMU_PER_THREAD(cuLaunchCooperativeKernel, _ptsz);
EMU_PER_THREAD(cuLaunchKernelEx, _ptsz);
EMU_PER_THREAD(cuLaunchKernel, _ptsz);
