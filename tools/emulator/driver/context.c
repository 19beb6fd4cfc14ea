/* Contexts: primary and created ones, and their properties. */
#include "api.h"

#include <stdlib.h>

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

static CUcontext make(emu_device *device, unsigned flags, bool is_primary)
{
    CUcontext c = emu_alloc(sizeof *c);
    c->device = device;
    c->flags = flags;
    c->is_primary = is_primary;
    emu_register(c, EMU_CONTEXT, c);
    return c;
}

static void destroy(CUcontext c)
{
    while (c->modules)
        emu_unload_module(c->modules);
    emu_free_streams_and_events(c);
    emu_memory_free_context(c);
    emu_unregister(c);
}

/* Never frees a destroyed context: it may still be current on threads, and no later context may get its handle. */
static void keep_handle(CUcontext c)
{
    static CUcontext destroyed;
    pthread_mutex_lock(&primary_lock);
    c->next_destroyed = destroyed;
    destroyed = c;
    pthread_mutex_unlock(&primary_lock);
}

static bool is_active(const emu_device *d)
{
    return d->primary && emu_is(d->primary, EMU_CONTEXT);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
    emu_device *d;
    CUresult r = emu_find_device(ordinal, &d);
    if (r != CUDA_SUCCESS || !context)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&primary_lock);
    if (!d->primary) {
        d->primary = make(d, d->primary_flags, true);
    } else if (!is_active(d)) {
        *d->primary = (struct CUctx_st){.device = d, .flags = d->primary_flags, .is_primary = true};
        emu_register(d->primary, EMU_CONTEXT, d->primary);
    }
    d->primary_references++;
    *context = d->primary;
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    emu_device *d;
    CUresult r = emu_find_device(ordinal, &d);
    if (r != CUDA_SUCCESS)
        return r;
    pthread_mutex_lock(&primary_lock);
    if (!d->primary_references)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (--d->primary_references == 0 && is_active(d))
        destroy(d->primary);
    pthread_mutex_unlock(&primary_lock);
    return r;
}

/* References stay: each retain still needs a release. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    emu_device *d;
    EMU_CHECK(emu_find_device(ordinal, &d));
    pthread_mutex_lock(&primary_lock);
    if (is_active(d))
        destroy(d->primary);
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active)
{
    emu_device *d;
    CUresult r = emu_find_device(ordinal, &d);
    if (r != CUDA_SUCCESS || !flags || !active)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    *flags = d->primary_flags;
    *active = is_active(d);
    return CUDA_SUCCESS;
}

#define KNOWN_FLAGS 0xffu

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags)
{
    emu_device *d;
    CUresult r = emu_find_device(ordinal, &d);
    if (r != CUDA_SUCCESS || (flags & ~KNOWN_FLAGS))
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    d->primary_flags = flags;
    if (is_active(d))
        d->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice ordinal)
{
    emu_device *d;
    CUresult r = emu_find_device(ordinal, &d);
    if (r != CUDA_SUCCESS || !context || (flags & ~KNOWN_FLAGS))
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    CUcontext made = make(d, flags, false);
    r = cuCtxPushCurrent_v2(made);
    if (r == CUDA_SUCCESS) {
        *context = made;
    } else {
        destroy(made);
        free(made);
    }
    return r;
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned flags, CUdevice device)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || affinity || count)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return cuCtxCreate_v2(context, flags, device);
}

/* A context without special parameters is a plain one; others are refused. */
CUresult cuCtxCreate_v4(CUcontext *context, const CUctxCreateParams *parameters, unsigned flags,
                        CUdevice device)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || (parameters && parameters->cigParams))
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v3(context, parameters ? parameters->execAffinityParams : NULL,
                          parameters ? parameters->numExecAffinityParams : 0, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    EMU_CHECK(emu_ready());
    if (!emu_is(context, EMU_CONTEXT) || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (emu_current_context() == context)
        cuCtxPopCurrent_v2(NULL);
    destroy(context);
    keep_handle(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    EMU_ENTER(context);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

/* NULL means the current context. */
static CUresult find_context(CUcontext *context)
{
    EMU_CHECK(emu_ready());
    if (!*context)
        return emu_enter(context);
    return emu_is(*context, EMU_CONTEXT) ? (*context)->error : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    CUresult r = find_context(&context);
    if (r != CUDA_SUCCESS || !device)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    EMU_ENTER(context);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

/* Work is done when it is submitted, so this only reports whether it succeeded. */
static CUresult synchronize(CUcontext context)
{
    EMU_CHECK(emu_capture_allows_context(context));
    emu_end_overlaps();
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    EMU_ENTER(context);
    return synchronize(context);
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    EMU_CHECK(find_context(&context));
    return synchronize(context);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    EMU_CHECK(emu_ready());
    if (!context)
        context = emu_current_context();
    if (!emu_is(context, EMU_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020; /* the version of contexts that the _v2 entry points make */
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    EMU_ENTER(context);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, int limit)
{
    EMU_ENTER(context);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit < 0 || limit >= (int)(sizeof context->limits / sizeof *context->limits))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
    EMU_ENTER(context);
    if (limit < 0 || limit >= (int)(sizeof context->limits / sizeof *context->limits))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(int *config)
{
    EMU_ENTER(context);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(int config)
{
    EMU_ENTER(context);
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
