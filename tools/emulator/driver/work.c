/* What is submitted to streams: kernels, copies, fills, events, calls of the host. It is done at once, or recorded while the
   stream is being captured. */
#include "../check/check.h"
#include "../count/count.h"
#include "api.h"

#include <stdlib.h>
#include <string.h>

void emu_free_work(emu_work *work)
{
    while (work) {
        emu_work *next = work->next;
        free(work->launch.parameters);
        free(work);
        work = next;
    }
}

emu_work *emu_copy_work(const emu_work *work)
{
    emu_work *copy = emu_alloc(sizeof *copy);
    *copy = *work;
    copy->next = NULL;
    if (work->launch.parameters) {
        copy->launch.parameters = emu_alloc(work->launch.parameter_bytes + 16u);
        memcpy(copy->launch.parameters, work->launch.parameters, work->launch.parameter_bytes);
    }
    return copy;
}

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

static CUresult run_kernel(CUcontext context, const emu_work *work)
{
    static uint64_t serial;
    CUfunction f = work->launch.function;
    const emu_device_model *model = context->device->model;
    emu_launch launch = {.program = f->program,
                         .dynamic_shared_bytes = work->launch.shared_bytes,
                         .parameters = work->launch.parameters,
                         .parameter_bytes = work->launch.parameter_bytes,
                         .multiprocessors = model->multiprocessors,
                         .device_number = model->number,
                         .shared_limit = model->shared_per_block_optin,
                         .serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED)};
    memcpy(launch.grid, work->launch.grid, sizeof launch.grid);
    memcpy(launch.block, work->launch.block, sizeof launch.block);
    launch.threads = launch.block[0] * launch.block[1] * launch.block[2];
    launch.max_resident_blocks = (unsigned)emu_occupancy(f, launch.threads, launch.dynamic_shared_bytes);
    if (f->module->const_bank) {
        launch.const_bank = (char *)(uintptr_t)f->module->const_bank->base;
        launch.const_bytes = f->module->const_bank->bytes;
    }
    emu_check_launch(&launch, emu_the_driver.checks);
    emu_count_launch(&launch);
    CUresult r = emu_run_launch(&launch);
    emu_print_reports(&launch);
    if (r != CUDA_SUCCESS)
        context->error = r;
    /* as on a device, the launch itself has succeeded; what comes after it learns of the failure */
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

static CUresult do_work(CUcontext context, const emu_work *work)
{
    switch (work->kind) {
    case EMU_WORK_LAUNCH:
        return run_kernel(context, work);
    case EMU_WORK_COPY:
        memmove((void *)(uintptr_t)work->copy.to, (const void *)(uintptr_t)work->copy.from, work->copy.bytes);
        emu_memory_copied(work->copy.to, work->copy.from, work->copy.bytes);
        return CUDA_SUCCESS;
    case EMU_WORK_SET:
        fill(work->set.to, work->set.value, work->set.element, work->set.count);
        emu_memory_copied(work->set.to, 0, (uint64_t)work->set.element * work->set.count);
        return CUDA_SUCCESS;
    case EMU_WORK_RECORD:
        work->event->is_recorded = true;
        work->event->nanoseconds = emu_nanoseconds();
        return CUDA_SUCCESS;
    default:
        work->call(work->data);
        return CUDA_SUCCESS;
    }
}

static int captures; /* streams being captured in a mode that is not relaxed */

void emu_count_captures(int more)
{
    __atomic_add_fetch(&captures, more, __ATOMIC_RELAXED);
}

bool emu_capture_forbids(CUcontext context)
{
    (void)context;
    return __atomic_load_n(&captures, __ATOMIC_RELAXED) != 0;
}

CUresult emu_submit(CUcontext context, CUstream stream, emu_work *work)
{
    if (stream && stream->capture) {
        CUgraph g = stream->capture;
        emu_work *node = emu_copy_work(work);
        free(work->launch.parameters);
        *g->last = node;
        g->last = &node->next;
        g->count++;
        return CUDA_SUCCESS;
    }
    CUresult r =
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* the default stream waits for streams that are captured */
    if (stream || !emu_capture_forbids(context))
        r = do_work(context, work);
    free(work->launch.parameters);
    return r;
}
