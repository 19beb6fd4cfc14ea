/* Checks of nearly every entry point: is a handle that of a live object, and which context is current? */
#include "api.h"

#include <stdlib.h>

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct entry {
    struct entry *next;
    const void *object;
    emu_kind kind;
    CUcontext context; /* the context that owns it */
} entry;

static entry *registry[1024];

static entry **bucket_of(const void *object)
{
    return &registry[((uintptr_t)object >> 4) % (sizeof registry / sizeof *registry)];
}

void emu_register(void *object, emu_kind kind, CUcontext context)
{
    entry *e = emu_alloc(sizeof *e);
    pthread_mutex_lock(&registry_lock);
    *e = (entry){*bucket_of(object), object, kind, context};
    *bucket_of(object) = e;
    pthread_mutex_unlock(&registry_lock);
}

void emu_unregister(void *object)
{
    pthread_mutex_lock(&registry_lock);
    for (entry **e = bucket_of(object); *e; e = &(*e)->next)
        if ((*e)->object == object) {
            entry *gone = *e;
            *e = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&registry_lock);
}

bool emu_is(const void *object, emu_kind kind)
{
    bool found = false;
    pthread_mutex_lock(&registry_lock);
    for (entry *e = *bucket_of(object); e; e = e->next)
        found |= e->object == object && e->kind == kind;
    pthread_mutex_unlock(&registry_lock);
    return found;
}

void *emu_any_of(emu_kind kind, CUcontext context)
{
    const void *found = NULL;
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < sizeof registry / sizeof *registry; i++)
        for (entry *e = registry[i]; e; e = e->next)
            if (e->kind == kind && e->context == context)
                found = e->object;
    pthread_mutex_unlock(&registry_lock);
    return (void *)(uintptr_t)found;
}

/* The contexts of the calling thread; the last one is current. */
#define DEEPEST 64

static _Thread_local CUcontext stack[DEEPEST];
static _Thread_local int depth;
CUcontext emu_current_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult emu_enter(CUcontext *context)
{
    EMU_CHECK(emu_ready());
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
    EMU_CHECK(emu_ready());
    if (!emu_is(context, EMU_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == DEEPEST)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    EMU_CHECK(emu_ready());
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
    EMU_CHECK(emu_ready());
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
    EMU_CHECK(emu_ready());
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = emu_current_context();
    return CUDA_SUCCESS;
}
