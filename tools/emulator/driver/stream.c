/* Streams and events. Work is done when it is submitted, so streams are in order and events are at once. */
#include "api.h"

#include <stdlib.h>

#define CHECK_STREAM(context, stream)                                                                        \
    do {                                                                                                     \
        CUresult checked_ = emu_check_stream(context, &stream);                                              \
        if (checked_ != CUDA_SUCCESS)                                                                        \
            return checked_;                                                                                 \
    } while (0)

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    EMU_ENTER(context);
    if (!stream || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream s = emu_alloc(sizeof *s);
    s->context = context;
    s->flags = flags;
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    emu_register(s, EMU_STREAM, context);
    *stream = s;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

static void free_stream(CUstream stream)
{
    emu_abandon_capture(stream);
    emu_unregister(stream);
    free(stream);
}

static void free_event(CUevent event)
{
    emu_unregister(event);
    free(event);
}

void emu_free_streams_and_events(CUcontext context)
{
    for (CUstream s; (s = emu_any_of(EMU_STREAM, context)) != NULL;)
        free_stream(s);
    for (CUevent e; (e = emu_any_of(EMU_EVENT, context)) != NULL;)
        free_event(e);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    EMU_ENTER(context);
    if (!emu_is(stream, EMU_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    free_stream(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (stream && stream->capture) {
        stream->is_invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    emu_end_overlap(context, stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!emu_is(event, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    emu_end_overlap(context, stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *result)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!result)
        return CUDA_ERROR_INVALID_VALUE;
    *result = context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL; /* the context is none of a part of the device */
    return cuStreamGetCtx(stream, context);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream ? stream->flags : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream ? stream->priority : 0;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    emu_work work = {.kind = EMU_WORK_CALL, .call = function, .data = data};
    return emu_submit(context, stream, &work);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags)
{
    EMU_ENTER(context);
    CUstream given = stream;
    CHECK_STREAM(context, stream);
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream && stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    callback(given, CUDA_SUCCESS, data);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    EMU_ENTER(context);
    if (!event || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = emu_alloc(sizeof *e);
    e->context = context;
    e->flags = flags;
    emu_register(e, EMU_EVENT, context);
    *event = e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    EMU_ENTER(context);
    if (!emu_is(event, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    free_event(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    EMU_ENTER(context);
    CHECK_STREAM(context, stream);
    if (!emu_is(event, EMU_EVENT) || event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    emu_work work = {.kind = EMU_WORK_RECORD, .event = event};
    return emu_submit(context, stream, &work);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : cuEventRecord(event, stream);
}

CUresult cuEventSynchronize(CUevent event)
{
    EMU_ENTER(context);
    if (!emu_is(event, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    emu_end_overlaps();
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    return cuEventSynchronize(event);
}

#define EVENT_WITHOUT_TIME 2u

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    EMU_ENTER(context);
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(start, EMU_EVENT) || !emu_is(end, EMU_EVENT) ||
        ((start->flags | end->flags) & EVENT_WITHOUT_TIME) || !start->is_recorded || !end->is_recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->nanoseconds - start->nanoseconds) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

EMU_PER_THREAD(cuEventRecordWithFlags, _ptsz);
EMU_PER_THREAD(cuEventRecord, _ptsz);
EMU_PER_THREAD(cuLaunchHostFunc, _ptsz);
EMU_PER_THREAD(cuStreamAddCallback, _ptsz);
EMU_PER_THREAD(cuStreamGetCtx, _ptsz);
EMU_PER_THREAD(cuStreamGetFlags, _ptsz);
EMU_PER_THREAD(cuStreamGetPriority, _ptsz);
EMU_PER_THREAD(cuStreamQuery, _ptsz);
EMU_PER_THREAD(cuStreamSynchronize, _ptsz);
EMU_PER_THREAD(cuStreamWaitEvent, _ptsz);
EMU_PER_THREAD(cuStreamGetCtx_v2, _ptsz);
