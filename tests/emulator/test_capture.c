/* Stream capture: which calls it forbids on which threads, and its state after such a call. Sources: tools/emulator/README.md.

   usage: test_capture [NAME] */
#include "states.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { BLOCKING, NON_BLOCKING };

static CUstream captured, other_stream; /* the capture begins on `captured` */
static CUevent in_capture, outside;     /* recorded in the capture; recorded outside */

static CUresult free_memory(void)
{
    return cuMemFree_v2(memory);
}

static CUresult allocate_pinned(void)
{
    void *p;
    return cuMemAllocHost_v2(&p, 64);
}

static CUresult free_pinned(void)
{
    return cuMemFreeHost(pinned);
}

static CUresult unload_module(void)
{
    return cuModuleUnload(module);
}

static CUresult copy_and_wait(void)
{
    uint32_t value;
    return cuMemcpyDtoH_v2(&value, memory, 4);
}

static CUresult launch_captured(void)
{
    return launch_on(captured, kernel);
}

static CUresult launch_legacy(void)
{
    return launch_on(NULL, kernel);
}

static CUresult wait_for_captured(void)
{
    return cuStreamSynchronize(captured);
}

static CUresult query_captured(void)
{
    return cuStreamQuery(captured);
}

static CUresult wait_for_other(void)
{
    return cuStreamSynchronize(other_stream);
}

static CUresult wait_for_event(void)
{
    return cuEventSynchronize(outside);
}

static CUresult query_event(void)
{
    return cuEventQuery(outside);
}

static CUresult record_captured(void)
{
    return cuEventRecord(in_capture, captured);
}

static CUresult wait_for_captured_event(void)
{
    OK(record_captured());
    return cuEventSynchronize(in_capture);
}

static CUresult query_captured_event(void)
{
    OK(record_captured());
    return cuEventQuery(in_capture);
}

static CUresult is_legacy_capturing(void)
{
    int status;
    return cuStreamIsCapturing(NULL, &status);
}

static void call_back(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

static CUresult add_callback(void)
{
    return cuStreamAddCallback(captured, call_back, NULL, 0);
}

static CUresult allocate_async(void)
{
    CUdeviceptr p;
    return cuMemAllocAsync(&p, 4, other_stream);
}

static CUresult free_async(void)
{
    return cuMemFreeAsync(memory, captured);
}

static CUresult depend_on_outside(void)
{
    return cuStreamWaitEvent(captured, outside, 0);
}

static CUresult depend_on_outside_as_node(void)
{
    return cuStreamWaitEvent(captured, outside, 1);
}

static CUresult external_outside(void)
{
    return cuEventRecordWithFlags(outside, other_stream, 1);
}

/* Makes the other stream join the capture and capture a launch. */
static CUresult branch(void)
{
    OK(record_captured());
    OK(cuStreamWaitEvent(other_stream, in_capture, 0));
    return launch_on(other_stream, kernel);
}

static CUresult branch_and_join(void)
{
    CUevent joined = NULL;
    OK(branch());
    OK(cuEventCreate(&joined, 0));
    OK(cuEventRecord(joined, other_stream));
    return cuStreamWaitEvent(captured, joined, 0);
}

static CUresult join_too_early(void)
{
    OK(branch_and_join());
    return launch_on(other_stream, kernel);
}

static CUresult end_on_branch(void)
{
    CUgraph graph;
    OK(branch());
    return cuStreamEndCapture(other_stream, &graph);
}

static CUresult legacy_depends(void)
{
    OK(record_captured());
    return cuStreamWaitEvent(NULL, in_capture, 0);
}

static CUresult merge(void)
{
    CUgraph graph;
    OK(record_captured());
    OK(cuStreamBeginCapture_v2(other_stream, RELAXED));
    CUresult r = cuStreamWaitEvent(other_stream, in_capture, 0);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(other_stream, &graph));
    return r;
}

static CUresult begin_again(void)
{
    return cuStreamBeginCapture_v2(captured, GLOBAL);
}

static CUresult begin_legacy(void)
{
    return cuStreamBeginCapture_v2(NULL, GLOBAL);
}

static CUresult from_thread; /* the result of the other thread's call */

static void *allocate_in_thread(void *mode)
{
    OK(cuCtxSetCurrent(context));
    OK(cuThreadExchangeStreamCaptureMode(mode));
    from_thread = allocate();
    return NULL;
}

static CUresult other_allocates(void)
{
    in_thread(allocate_in_thread, &(int){GLOBAL});
    return from_thread;
}

static CUresult thread_local_other_allocates(void)
{
    in_thread(allocate_in_thread, &(int){THREAD_LOCAL});
    return from_thread;
}

static CUresult relaxed_allocates(void)
{
    int mode = RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    HOLDS(mode == GLOBAL);
    CUresult r = allocate();
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    HOLDS(mode == RELAXED);
    return r;
}

static void *end_in_thread(void *unused)
{
    CUgraph graph = NULL;
    (void)unused;
    OK(cuCtxSetCurrent(context));
    from_thread = cuStreamEndCapture(captured, &graph);
    return NULL;
}

static CUresult other_ends(void)
{
    in_thread(end_in_thread, NULL);
    return from_thread;
}

/* A call during a capture, its result, and the result of ending the capture afterwards. */
static const struct {
    const char *name;
    int mode, flags; /* capture mode; stream flags */
    CUresult (*call)(void);
    int result, end;
} capture_rows[] = {
    {"launch", GLOBAL, BLOCKING, launch_captured, 0, 0},
    {"allocate", GLOBAL, NON_BLOCKING, allocate, 900, 901},
    {"allocate, thread local", THREAD_LOCAL, NON_BLOCKING, allocate, 900, 901},
    {"allocate, relaxed", RELAXED, NON_BLOCKING, allocate, 0, 0},
    {"allocate, thread relaxed", GLOBAL, NON_BLOCKING, relaxed_allocates, 0, 0},
    {"allocate elsewhere", GLOBAL, NON_BLOCKING, other_allocates, 900, 901},
    {"allocate elsewhere, thread local", THREAD_LOCAL, NON_BLOCKING, other_allocates, 0, 0},
    {"allocate elsewhere, its thread local", GLOBAL, NON_BLOCKING, thread_local_other_allocates, 0, 0},
    {"free", GLOBAL, NON_BLOCKING, free_memory, 900, 901},
    {"allocate pinned", GLOBAL, NON_BLOCKING, allocate_pinned, 900, 901},
    {"free pinned", GLOBAL, NON_BLOCKING, free_pinned, 900, 901},
    {"load", GLOBAL, NON_BLOCKING, load_module, 900, 901},
    {"load, thread local", THREAD_LOCAL, NON_BLOCKING, load_module, 900, 901},
    {"load, relaxed", RELAXED, NON_BLOCKING, load_module, 0, 0},
    {"unload", GLOBAL, NON_BLOCKING, unload_module, 900, 901},
    {"allocate asynchronously elsewhere", GLOBAL, NON_BLOCKING, allocate_async, 0, 0},
    {"free memory outside the graph", GLOBAL, NON_BLOCKING, free_async, 1, 0},
    {"copy and wait", GLOBAL, NON_BLOCKING, copy_and_wait, 900, 901},
    {"copy and wait, blocking", RELAXED, BLOCKING, copy_and_wait, 906, 901},
    {"copy and wait, relaxed", RELAXED, NON_BLOCKING, copy_and_wait, 0, 0},
    {"legacy launch, blocking", RELAXED, BLOCKING, launch_legacy, 906, 901},
    {"legacy launch", GLOBAL, NON_BLOCKING, launch_legacy, 0, 0},
    {"legacy wait for an event", RELAXED, NON_BLOCKING, legacy_depends, 906, 901},
    {"status of legacy, blocking", GLOBAL, BLOCKING, is_legacy_capturing, 906, 0},
    {"status of legacy", GLOBAL, NON_BLOCKING, is_legacy_capturing, 0, 0},
    {"wait for the stream", RELAXED, NON_BLOCKING, wait_for_captured, 900, 901},
    {"query the stream", RELAXED, NON_BLOCKING, query_captured, 900, 901},
    {"wait for another stream", GLOBAL, NON_BLOCKING, wait_for_other, 0, 0},
    {"wait for the context", RELAXED, NON_BLOCKING, cuCtxSynchronize, 900, 901},
    {"wait for an event", GLOBAL, NON_BLOCKING, wait_for_event, 900, 901},
    {"query an event", GLOBAL, NON_BLOCKING, query_event, 900, 901},
    {"query an event, relaxed", RELAXED, NON_BLOCKING, query_event, 0, 0},
    {"wait for a captured event", RELAXED, NON_BLOCKING, wait_for_captured_event, 907, 901},
    {"query a captured event", RELAXED, NON_BLOCKING, query_captured_event, 907, 901},
    {"callback", RELAXED, NON_BLOCKING, add_callback, 900, 901},
    {"depend on an event outside", RELAXED, NON_BLOCKING, depend_on_outside, 905, 901},
    {"depend on an event outside, as a node", GLOBAL, NON_BLOCKING, depend_on_outside_as_node, 0, 0},
    {"external event outside", GLOBAL, NON_BLOCKING, external_outside, 1, 0},
    {"branch without join", GLOBAL, NON_BLOCKING, branch, 0, 904},
    {"branch and join", GLOBAL, NON_BLOCKING, branch_and_join, 0, 0},
    {"join too early", GLOBAL, NON_BLOCKING, join_too_early, 0, 904},
    {"end on the branch", GLOBAL, NON_BLOCKING, end_on_branch, 903, 901},
    {"merge", RELAXED, NON_BLOCKING, merge, 902, 901},
    {"begin again", GLOBAL, NON_BLOCKING, begin_again, 401, 0},
    {"begin on legacy", GLOBAL, NON_BLOCKING, begin_legacy, 900, 0},
    {"end elsewhere", GLOBAL, NON_BLOCKING, other_ends, 908, 901},
    {"end elsewhere, thread local", THREAD_LOCAL, NON_BLOCKING, other_ends, 908, 901},
    {"end elsewhere, relaxed", RELAXED, NON_BLOCKING, other_ends, 0, 401},
};

/* After a forbidden call, the capture's streams and events are unusable until the capture ends. */
static void check_captured(int mode, CUresult (*call)(void), CUresult result, CUresult end)
{
    const bool is_invalid = end == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraph graph = (CUgraph)&graph;
    int status = -1;
    OK(cuStreamBeginCapture_v2(captured, mode));
    OK(launch_on(captured, kernel));
    GIVES(result, call());
    OK(cuStreamIsCapturing(captured, &status));
    HOLDS(status == (end == CUDA_ERROR_ILLEGAL_STATE ? 0 : is_invalid ? 2 : 1));
    if (is_invalid) {
        GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch_captured());
        GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, record_captured());
        GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, wait_for_captured());
    }
    GIVES(end, cuStreamEndCapture(captured, &graph));
    HOLDS((graph == NULL) == (end != CUDA_SUCCESS));
    OK(cuStreamIsCapturing(captured, &status));
    HOLDS(status == 0);
    OK(launch_on(captured, kernel));
    OK(launch_on(other_stream, kernel));
    OK(cuEventRecord(in_capture, captured));
    OK(cuEventSynchronize(in_capture));
    OK(allocate());
    OK(cuCtxSynchronize());
}

static void captures(void)
{
    for (size_t i = 0; i < sizeof capture_rows / sizeof *capture_rows; i++) {
        char name[128];
        snprintf(name, sizeof name, "capture: %s", capture_rows[i].name);
        state_name = name;
        pid_t child = fork_child();
        if (child) {
            await(child);
            continue;
        }
        begin();
        OK(cuStreamCreate(&captured, (unsigned)capture_rows[i].flags));
        OK(cuStreamCreate(&other_stream, 1));
        OK(cuEventCreate(&in_capture, 0));
        OK(cuEventCreate(&outside, 0));
        OK(cuEventRecord(outside, other_stream));
        check_captured(capture_rows[i].mode, capture_rows[i].call, (CUresult)capture_rows[i].result,
                       (CUresult)capture_rows[i].end);
        exit(wrong);
    }
}

/* The graph of a capture over two streams runs the work of both, in order. */
static void capture_of_two_streams(void)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUevent back = NULL;
    uint32_t value = 0;
    size_t nodes = 0;
    begin();
    OK(cuStreamCreate(&captured, 1));
    OK(cuStreamCreate(&other_stream, 1));
    OK(cuEventCreate(&in_capture, 0));
    OK(cuEventCreate(&back, 0));
    OK(cuMemsetD32_v2(memory, 1, 1));
    OK(cuStreamBeginCapture_v2(captured, GLOBAL));
    OK(cuMemsetD32Async(memory, 2, 1, captured));
    OK(record_captured());
    OK(cuStreamWaitEvent(other_stream, in_capture, 0));
    OK(launch_on(other_stream, kernel));
    OK(cuEventRecord(back, other_stream));
    OK(cuStreamWaitEvent(captured, back, 0));
    OK(cuMemcpyDtoHAsync_v2(&value, memory, 4, captured));
    OK(cuStreamEndCapture(captured, &graph));
    HOLDS(value == 0);
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    HOLDS(nodes == 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, captured));
    OK(cuStreamSynchronize(captured));
    HOLDS(value == 7);
    GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(in_capture)); /* until it is recorded again */
    GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventElapsedTime(&(float){0}, in_capture, back));
    OK(cuEventRecord(in_capture, captured));
    OK(cuEventQuery(in_capture));
}

int main(int argc, char **argv)
{
    static const test_state states[] = {
        {"captures", captures},
        {"capture_of_two_streams", capture_of_two_streams},
    };
    return run_states(states, sizeof states / sizeof *states, argc, argv);
}
