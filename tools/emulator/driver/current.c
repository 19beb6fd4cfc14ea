/* What nearly every entry point begins with: the calling thread's context, from its stack of current ones, and the stream. */
#include "api.h"

#define DEEPEST 64

static _Thread_local CUcontext stack[DEEPEST];
static _Thread_local int depth;
CUcontext emu_current_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult emu_enter(CUcontext *context)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUcontext c = emu_current_context();
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!emu_is(c, EMU_CONTEXT))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = c;
    return c->error;
}

CUresult emu_check_stream(CUcontext context, CUstream *stream)
{
    uintptr_t handle = (uintptr_t)*stream;
    if (handle <= CU_STREAM_PER_THREAD_HANDLE) {
        *stream = NULL;
        return CUDA_SUCCESS;
    }
    if (!emu_is(*stream, EMU_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    return (*stream)->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!emu_is(context, EMU_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == DEEPEST)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext popped = stack[--depth];
    if (context)
        *context = popped;
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; NULL removes it. */
CUresult cuCtxSetCurrent(CUcontext context)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context && !emu_is(context, EMU_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    depth += depth == 0;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = emu_current_context();
    return CUDA_SUCCESS;
}
