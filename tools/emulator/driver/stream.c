/* Streams and events. Work is done when it is submitted, so streams are in order and events complete at once. */
#include "api.h"

#include <stdlib.h>

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    EMU_ENTER(context);
    if (!stream || flags > EMU_STREAM_NON_BLOCKING)
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
    emu_capture_forget_stream(stream);
    emu_unregister(stream);
    free(stream);
}

static void free_event(CUevent event)
{
    emu_capture_forget_event(event);
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
    EMU_CHECK(emu_check_stream(context, &stream));
    EMU_CHECK(emu_capture_allows_stream(context, stream));
    emu_end_overlap(context, stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

/* CUevent_record_flags and CUevent_wait_flags: in a capture the event becomes a node of the graph. */
enum { EVENT_EXTERNAL = 1 };

static bool are_event_flags(CUstream stream, unsigned flags)
{
    return flags == 0 || (flags == EVENT_EXTERNAL && emu_is_captured(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!emu_is(event, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!are_event_flags(stream, flags))
        return CUDA_ERROR_INVALID_VALUE;
    emu_work work = {.kind = EMU_WORK_WAIT, .event = event};
    if (flags == EVENT_EXTERNAL)
        return emu_submit(context, stream, &work);
    bool goes_on;
    CUresult r = emu_capture_wait(context, stream, event, &goes_on);
    if (r == CUDA_SUCCESS && goes_on)
        emu_end_overlap(context, stream);
    return r;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *result)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!result)
        return CUDA_ERROR_INVALID_VALUE;
    *result = context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL; /* contexts of a part of the device are not supported */
    return cuStreamGetCtx(stream, context);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream ? stream->flags : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream ? stream->priority : 0;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    emu_work work = {.kind = EMU_WORK_CALL, .call = function, .data = data};
    return emu_submit(context, stream, &work);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags)
{
    EMU_ENTER(context);
    CUstream given = stream;
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    EMU_CHECK(emu_capture_allows_stream(context, stream));
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

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (!emu_is(event, EMU_EVENT) || event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!are_event_flags(stream, flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (emu_is_captured(stream) && flags != EVENT_EXTERNAL)
        return emu_capture_record(stream, event);
    emu_work work = {.kind = EMU_WORK_RECORD, .event = event};
    return emu_submit(context, stream, &work);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventSynchronize(CUevent event)
{
    EMU_ENTER(context);
    if (!emu_is(event, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    EMU_CHECK(emu_capture_allows_event(event));
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
    if (!emu_is(start, EMU_EVENT) || !emu_is(end, EMU_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (start->capture || end->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (((start->flags | end->flags) & EVENT_WITHOUT_TIME) || !start->is_recorded || !end->is_recorded)
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
