/* Stream capture: which streams record into which graph, which calls a capture forbids, and how such a call invalidates it.
   Sources: NVIDIA, CUDA programming guide, "Creating a Graph Using Stream Capture"; cuThreadExchangeStreamCaptureMode. */
#include "api.h"

#include <stdlib.h>

enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };
enum { STATUS_NONE, STATUS_ACTIVE, STATUS_INVALIDATED };

struct emu_capture {
    emu_capture *next;
    uint64_t serial;
    CUstream origin, streams; /* includes the origin until it is destroyed */
    CUgraph graph;
    pthread_t thread; /* the thread that began the capture */
    int mode;
    bool is_invalidated;
};

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards all captures, and their fields in streams and events */
static emu_capture *captures;
static _Thread_local int thread_mode = MODE_GLOBAL;

/* ---- sets of nodes ---- */

static void make_room(emu_node_set *set, size_t count)
{
    if (count > set->count)
        set->words = emu_with_room(set->words, count - 1, &set->count, sizeof *set->words);
}

static void add(emu_node_set *set, size_t node)
{
    make_room(set, node / 64 + 1);
    set->words[node / 64] |= (uint64_t)1 << node % 64;
}

static void unite(emu_node_set *set, const emu_node_set *other)
{
    make_room(set, other->count);
    for (size_t i = 0; i < other->count; i++)
        set->words[i] |= other->words[i];
}

static void clear(emu_node_set *set)
{
    free(set->words);
    *set = (emu_node_set){0};
}

static bool has_all(const emu_node_set *set, size_t nodes)
{
    size_t found = 0;
    for (size_t i = 0; i < set->count; i++)
        found += (size_t)__builtin_popcountll(set->words[i]);
    return found == nodes;
}

/* ---- forbidden calls ---- */

static CUresult invalidate(emu_capture *c, CUresult error)
{
    if (c->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    c->is_invalidated = true;
    return error;
}

/* Invalidates every capture that forbids the call; returns `error` if there is one. */
static CUresult forbid(bool (*forbids)(const emu_capture *, CUcontext), CUcontext context, CUresult error)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (emu_capture *c = captures; c; c = c->next)
        if (forbids(c, context)) {
            c->is_invalidated = true;
            result = error;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool forbids_unsafe(const emu_capture *c, CUcontext unused)
{
    bool is_own = pthread_equal(c->thread, pthread_self());
    (void)unused;
    return (is_own && thread_mode != MODE_RELAXED && c->mode != MODE_RELAXED) ||
           (!is_own && thread_mode == MODE_GLOBAL && c->mode == MODE_GLOBAL);
}

static bool forbids_context(const emu_capture *c, CUcontext context)
{
    bool found = false;
    for (CUstream s = c->streams; s; s = s->next_captured)
        found |= s->context == context;
    return found;
}

/* The legacy stream waits for all streams of its context that were not created as non-blocking. */
static bool forbids_legacy(const emu_capture *c, CUcontext context)
{
    bool found = false;
    for (CUstream s = c->streams; s; s = s->next_captured)
        found |= s->context == context && !(s->flags & EMU_STREAM_NON_BLOCKING);
    return found;
}

CUresult emu_capture_allows_unsafe(void)
{
    return forbid(forbids_unsafe, NULL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult emu_capture_allows_context(CUcontext context)
{
    return forbid(forbids_context, context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult emu_capture_allows_stream(CUcontext context, CUstream stream)
{
    if (!stream)
        return forbid(forbids_legacy, context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    pthread_mutex_lock(&lock);
    CUresult r =
        stream->capture ? invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return r;
}

static emu_capture *capture_of(CUevent event)
{
    emu_capture *c = captures;
    while (c && c->serial != event->capture)
        c = c->next;
    return c;
}

CUresult emu_capture_allows_event(CUevent event)
{
    pthread_mutex_lock(&lock);
    bool is_captured = event->capture != 0;
    emu_capture *c = capture_of(event);
    if (c)
        c->is_invalidated = true;
    pthread_mutex_unlock(&lock);
    return is_captured ? CUDA_ERROR_CAPTURED_EVENT : emu_capture_allows_unsafe();
}

/* ---- captured work ---- */

bool emu_is_captured(CUstream stream)
{
    return stream && __atomic_load_n(&stream->capture, __ATOMIC_RELAXED) != NULL;
}

static void join(CUstream stream, emu_capture *c)
{
    stream->next_captured = c->streams;
    c->streams = stream;
    __atomic_store_n(&stream->capture, c, __ATOMIC_RELAXED);
}

static void leave(CUstream stream)
{
    CUstream *at = &stream->capture->streams;
    while (*at != stream)
        at = &(*at)->next_captured;
    *at = stream->next_captured;
    __atomic_store_n(&stream->capture, NULL, __ATOMIC_RELAXED);
    clear(&stream->after);
}

static CUresult append(CUstream stream, const emu_work *work)
{
    if (stream->capture->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraph graph = stream->capture->graph;
    add(&stream->after, graph->count);
    emu_add_node(graph, work);
    return CUDA_SUCCESS;
}

CUresult emu_capture_work(CUstream stream, const emu_work *work)
{
    pthread_mutex_lock(&lock);
    CUresult r = append(stream, work);
    pthread_mutex_unlock(&lock);
    return r;
}

/* Adds no node: the event stands for the nodes that the stream has captured so far. */
CUresult emu_capture_record(CUstream stream, CUevent event)
{
    pthread_mutex_lock(&lock);
    bool is_valid = !stream->capture->is_invalidated;
    if (is_valid) {
        clear(&event->after);
        unite(&event->after, &stream->after);
        event->capture = stream->capture->serial;
    }
    pthread_mutex_unlock(&lock);
    return is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUresult wait_in(emu_capture *c, CUstream stream, CUevent event)
{
    emu_capture *other = capture_of(event);
    if (other != c && other)
        other->is_invalidated = true;
    if (other != c)
        return invalidate(c, other ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (c->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    unite(&stream->after, &event->after);
    return CUDA_SUCCESS;
}

/* A stream that waits for a captured event is captured too. */
static CUresult wait_outside(CUstream stream, CUevent event)
{
    emu_capture *c = capture_of(event);
    if (!c)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!stream)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (c->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    join(stream, c);
    unite(&stream->after, &event->after);
    return CUDA_SUCCESS;
}

CUresult emu_capture_wait(CUcontext context, CUstream stream, CUevent event, bool *goes_on)
{
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    emu_capture *c = stream ? stream->capture : NULL;
    *goes_on = !c && !event->capture;
    if (!*goes_on)
        r = c ? wait_in(c, stream, event) : wait_outside(stream, event);
    pthread_mutex_unlock(&lock);
    return *goes_on && !stream ? emu_capture_allows_stream(context, NULL) : r;
}

/* ---- beginning and end ---- */

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    static uint64_t serials;
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS || mode < MODE_GLOBAL || mode > MODE_RELAXED)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (!stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    if (stream->capture) {
        r = CUDA_ERROR_ILLEGAL_STATE;
    } else {
        emu_capture *c = emu_alloc(sizeof *c);
        *c = (emu_capture){.next = captures,
                           .serial = ++serials,
                           .origin = stream,
                           .graph = emu_make_graph(context),
                           .thread = pthread_self(),
                           .mode = mode};
        captures = c;
        join(stream, c);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* Takes all streams out of the capture; returns its graph. */
static CUgraph end(emu_capture *c)
{
    CUgraph graph = c->graph;
    while (c->streams)
        leave(c->streams);
    for (emu_capture **at = &captures; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    free(c);
    return graph;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS || !graph)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    CUgraph made = NULL;
    pthread_mutex_lock(&lock);
    emu_capture *c = stream ? stream->capture : NULL;
    if (!c)
        r = CUDA_ERROR_ILLEGAL_STATE;
    else if (stream != c->origin)
        r = invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    else if (c->mode != MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        r = invalidate(c, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    else {
        r = c->is_invalidated                          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            : has_all(&stream->after, c->graph->count) ? CUDA_SUCCESS
                                                       : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        made = end(c);
    }
    pthread_mutex_unlock(&lock);
    if (made && r != CUDA_SUCCESS) {
        emu_free_graph(made);
        made = NULL;
    }
    *graph = made;
    return r;
}

void emu_capture_forget_stream(CUstream stream)
{
    CUgraph graph = NULL;
    pthread_mutex_lock(&lock);
    emu_capture *c = stream->capture;
    if (c && c->origin == stream)
        graph = end(c);
    else if (c)
        leave(stream);
    pthread_mutex_unlock(&lock);
    if (graph)
        emu_free_graph(graph);
}

void emu_capture_forget_event(CUevent event)
{
    pthread_mutex_lock(&lock);
    event->capture = 0;
    clear(&event->after);
    pthread_mutex_unlock(&lock);
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS || !status)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const emu_capture *c = stream ? stream->capture : NULL;
    *status = !c ? STATUS_NONE : c->is_invalidated ? STATUS_INVALIDATED : STATUS_ACTIVE;
    for (c = stream ? NULL : captures; c && r == CUDA_SUCCESS; c = c->next)
        if (forbids_legacy(c, context))
            r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* does not invalidate the capture */
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

EMU_PER_THREAD(cuStreamBeginCapture_v2, _ptsz);
EMU_PER_THREAD(cuStreamEndCapture, _ptsz);
EMU_PER_THREAD(cuStreamIsCapturing, _ptsz);
