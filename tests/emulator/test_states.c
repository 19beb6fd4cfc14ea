/* States that change what calls return: before cuInit, in a forked child, with CUDA_VISIBLE_DEVICES, with a destroyed or reset
   context, after a kernel has failed, and while the process exits. tools/emulator/README.md names the sources.

   usage: test_states [NAME] */
#include "states.h"

static const char *const store_misaligned = ADDRESS "st.global.u32 [%p+1], %r0; ret;";
static const char *const execute_trap = ADDRESS "trap; ret;";
static const char *const run_for_ever = ADDRESS "W: st.volatile.global.u32 [%p], %r0; bra W;";

/* ---- cuInit and fork ---------------------------------------------------------------------------------------------- */

/* A sample of entry points; every_call.py calls all of them. */
static void all_give(CUresult expected)
{
    int count;
    CUcontext current;
    GIVES(expected, cuDeviceGetCount(&count));
    GIVES(expected, cuDevicePrimaryCtxRetain(&current, 0));
    GIVES(expected, cuCtxGetCurrent(&current));
    GIVES(expected, cuCtxSetCurrent(context));
    GIVES(expected, cuCtxSynchronize());
    GIVES(expected, launch_on(NULL, kernel));
    GIVES(expected, allocate());
    GIVES(expected, cuMemFree_v2(memory));
    GIVES(expected, cuMemcpyHtoD_v2(memory, &count, 4));
    GIVES(expected, load_module());
    GIVES(expected, cuModuleUnload(module));
    GIVES(expected, cuGraphDestroy(NULL));
    GIVES(expected, cuDevicePrimaryCtxRelease_v2(0));
}

static void before_init(void)
{
    int version;
    all_give(CUDA_ERROR_NOT_INITIALIZED);
    OK(cuDriverGetVersion(&version));
}

static void fork_after_init(void)
{
    setenv("KILN_EMU_THREADS", "4", 1);
    begin();
    HOLDS(works());
    pid_t child = fork_child();
    if (child == 0) {
        GIVES(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
        all_give(CUDA_ERROR_NOT_INITIALIZED);
        exit(wrong);
    }
    await(child);
    HOLDS(works());
}

/* Parent and child each continue with their own copy of the state. */
static void fork_with_state(void)
{
    setenv("KILN_EMU_FORK", "1", 1);
    begin();
    HOLDS(works());
    pid_t child = fork_child();
    HOLDS(works());
    OK(allocate());
    OK(load_module());
    if (child == 0)
        exit(wrong);
    await(child);
}

static void fork_before_init(void)
{
    pid_t child = fork_child();
    begin();
    HOLDS(works());
    if (child == 0)
        exit(wrong);
    await(child);
}

static bool is_stopped; /* set by the main thread */

static void *launch_until_stopped(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    while (!__atomic_load_n(&is_stopped, __ATOMIC_RELAXED))
        OK(launch_on(NULL, kernel));
    return NULL;
}

/* The child has no threads of its parent, but may inherit locks that they held. */
static void fork_during_launches(void)
{
    pthread_t thread;
    setenv("KILN_EMU_THREADS", "4", 1);
    begin();
    HOLDS(pthread_create(&thread, NULL, launch_until_stopped, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork_child();
        if (child == 0) {
            GIVES(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
            all_give(CUDA_ERROR_NOT_INITIALIZED);
            _exit(wrong); /* not exit(): a leak checker would report the thread's memory */
        }
        await(child);
    }
    __atomic_store_n(&is_stopped, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

/* ---- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------------------------------- */

/* The devices are sm_75, sm_80 and sm_90; their UUIDs begin with 4b00, 5001 and 5a02. */
static const struct {
    const char *list;
    unsigned numbers[4]; /* the visible devices, in order */
} visible_rows[] = {
    {NULL, {75, 80, 90}},
    {"0", {75}},
    {"2,0", {90, 75}},
    {"0,2,-1,1", {75, 90}},
    {"1,3,0", {80}},
    {"GPU-5a02", {90}},
    {"GPU-5a,GPU-4b006b69-6c6e-2d65-6d75-6c617465642d", {90, 75}},
    {"GPU-50,GPU-ffff,GPU-4b", {80}},
    {"1,GPU-5,0", {80}}, /* ambiguous: a prefix of two UUIDs */
    {"", {0}},
    {"-1", {0}},
    {"3", {0}},
    {"none", {0}},
    {"GPU-", {0}},
    {"MIG-GPU-4b00", {0}},
    {"0,0", {0}},
    {"1,GPU-50", {0}},
};

static void visible(void)
{
    setenv("KILN_EMU_DEVICE", "sm_75,sm_80,sm_90", 1);
    for (size_t i = 0; i < sizeof visible_rows / sizeof *visible_rows; i++) {
        const char *list = visible_rows[i].list;
        const unsigned *numbers = visible_rows[i].numbers;
        int count = 0, expected = 0, major, minor;
        char name[64];
        snprintf(name, sizeof name, "visible %s", list ? list : "unset");
        state_name = name;
        pid_t child = fork_child();
        if (child) {
            await(child);
            continue;
        }
        while (numbers[expected])
            expected++;
        if (list)
            setenv("CUDA_VISIBLE_DEVICES", list, 1);
        capture_stderr();
        CUresult r = cuInit(0);
        captured_stderr();
        GIVES(expected ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE, r);
        if (!expected) {
            HOLDS(strstr(printed, "leaves none of 3 devices"));
            GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
        } else {
            OK(cuDeviceGetCount(&count));
            HOLDS(count == expected);
            for (int d = 0; d < expected; d++) {
                CUuuid uuid;
                OK(cuDeviceComputeCapability(&major, &minor, d));
                OK(cuDeviceGetUuid_v2(&uuid, d));
                HOLDS((unsigned)(10 * major + minor) == numbers[d] && (unsigned)uuid.bytes[0] == numbers[d]);
            }
            GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&count, expected));
        }
        exit(wrong);
    }
}

/* ---- contexts that end -------------------------------------------------------------------------------------------- */

static pthread_barrier_t step;

static void *keep_current(void *unused)
{
    (void)unused;
    CUcontext current;
    OK(cuCtxSetCurrent(context));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step); /* the context is destroyed */
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, allocate());
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch_on(NULL, kernel));
    OK(cuCtxPopCurrent_v2(&current));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    return NULL;
}

static void make_and_destroy(int count)
{
    CUcontext made[64] = {NULL};
    for (int i = 0; i < count; i++)
        OK(cuCtxCreate_v2(&made[i], 0, 0));
    for (int i = count; i-- > 0;) {
        HOLDS(made[i] != context);
        OK(cuCtxDestroy_v2(made[i]));
    }
}

/* No later context may get the destroyed one's handle. malloc caches the first freed blocks, so others are freed
 * before. */
static void destroyed_current_elsewhere(void)
{
    pthread_t thread;
    CUcontext made = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&made, 0, 0));
    use_context(made);
    pthread_barrier_init(&step, NULL, 2);
    HOLDS(pthread_create(&thread, NULL, keep_current, NULL) == 0);
    pthread_barrier_wait(&step);
    make_and_destroy(16);
    OK(cuCtxDestroy_v2(made));
    make_and_destroy(60);
    pthread_barrier_wait(&step);
    pthread_join(thread, NULL);
}

/* NVIDIA leaves handles of a destroyed context undefined; here they give errors. */
static void handles_of_destroyed(void)
{
    CUcontext made = NULL, other = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&made, 0, 0));
    use_context(made);
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 0));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(launch_on(stream, kernel));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuCtxDestroy_v2(made));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize()); /* the destroy popped it */
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(made));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(made));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(made));
    OK(cuCtxCreate_v2(&other, 0, 0));
    GIVES(CUDA_ERROR_INVALID_HANDLE, launch_on(NULL, kernel));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(event));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(memory));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(memory, 0, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* In most of these rounds, a later function gets the address of the unloaded one that the graph launches. */
static void graph_of_unloaded(void)
{
    CUstream stream = NULL;
    begin();
    OK(cuStreamCreate(&stream, 1));
    for (int i = 0; i < 50; i++) {
        CUgraph graph = NULL;
        CUgraphExec exec = NULL;
        CUfunction f = function_of(store);
        OK(cuStreamBeginCapture_v2(stream, 0));
        OK(launch_on(stream, f));
        OK(cuStreamEndCapture(stream, &graph));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuModuleUnload(module));
        function_of(store);
        GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, stream));
    }
}

static void primary_reset(void)
{
    unsigned flags;
    int active = 1;
    CUcontext again = NULL;
    begin();
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    HOLDS(!active);
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch_on(NULL, kernel));
    OK(cuDevicePrimaryCtxRelease_v2(0)); /* legal after a reset */
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    HOLDS(again == context);
    GIVES(CUDA_ERROR_INVALID_HANDLE, launch_on(NULL, kernel));
    use_context(again);
    HOLDS(works());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize()); /* the release does not pop it */
}

static void primary_reset_keeps_references(void)
{
    CUcontext again = NULL;
    begin();
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

/* ---- sticky errors ------------------------------------------------------------------------------------------------- */

static void expect_sticky(const char *body, CUdeviceptr address, CUresult error)
{
    CUstream stream = NULL;
    CUevent event = NULL;
    CUcontext current = NULL, other = NULL;
    CUgraph graph;
    int value;
    begin();
    CUfunction f = function_of(body);
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 0));
    CUdeviceptr own = memory;
    memory = address ? address : own;
    capture_stderr();
    OK(launch_on(stream, f)); /* the next call reports the failure */
    captured_stderr();
    memory = own;
    GIVES(error, cuStreamSynchronize(stream));
    GIVES(error, cuStreamQuery(stream));
    GIVES(error, cuCtxSynchronize());
    GIVES(error, launch_on(stream, kernel));
    GIVES(error, allocate());
    GIVES(error, cuMemFree_v2(memory));
    GIVES(error, cuMemcpyDtoH_v2(&value, memory, 4));
    GIVES(error, load_module());
    GIVES(error, cuModuleUnload(module));
    GIVES(error, cuEventRecord(event, stream));
    GIVES(error, cuEventSynchronize(event));
    GIVES(error, cuStreamBeginCapture_v2(stream, 0));
    GIVES(error, cuStreamEndCapture(stream, &graph));
    GIVES(error, cuStreamDestroy_v2(stream));
    GIVES(error, cuCtxGetDevice(&value));
    OK(cuDeviceGetCount(&value)); /* these need no context */
    OK(cuCtxGetCurrent(&current));
    HOLDS(current == context);
    OK(cuCtxCreate_v2(&other, 0, 0)); /* other contexts go on */
    use_context(other);
    HOLDS(works());
    OK(cuCtxDestroy_v2(other));
    GIVES(error, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&current, 0));
    use_context(current);
    HOLDS(works());
}

static void sticky_illegal_address(void)
{
    expect_sticky(store, 4096, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void sticky_misaligned_address(void)
{
    expect_sticky(store_misaligned, 0, CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void sticky_trap(void)
{
    expect_sticky(execute_trap, 0, CUDA_ERROR_LAUNCH_FAILED);
}

static void sticky_created_context(void)
{
    CUcontext made = NULL, other = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&made, 0, 0));
    use_context(made);
    CUfunction f = function_of(execute_trap);
    capture_stderr();
    OK(launch_on(NULL, f));
    captured_stderr();
    GIVES(CUDA_ERROR_LAUNCH_FAILED, allocate());
    OK(cuCtxDestroy_v2(made));
    OK(cuCtxCreate_v2(&other, 0, 0));
    use_context(other);
    HOLDS(works());
}

/* ---- exit --------------------------------------------------------------------------------------------------------- */

static bool is_checked; /* tells the destructor to test calls */

static void driver_is_gone(void)
{
    GIVES(CUDA_ERROR_DEINITIALIZED, cuInit(0));
    all_give(CUDA_ERROR_DEINITIALIZED);
    if (wrong)
        _exit(1);
}

__attribute__((destructor)) static void end_of_library(void)
{
    if (is_checked)
        driver_is_gone();
}

static void driver_is_there(void)
{
    HOLDS(works());
    if (wrong)
        _exit(1);
}

/* Handlers run in reverse order of registration; cuInit registers the driver's. */
static void exit_handlers(void)
{
    atexit(driver_is_gone);
    begin();
    atexit(driver_is_there);
    is_checked = true;
}

static void *exit_process(void *unused)
{
    (void)unused;
    exit(wrong);
}

static void exit_in_another_thread(void)
{
    pthread_t thread;
    setenv("KILN_EMU_THREADS", "4", 1);
    begin();
    is_checked = true;
    HOLDS(pthread_create(&thread, NULL, exit_process, NULL) == 0);
    for (CUresult r = CUDA_SUCCESS; r == CUDA_SUCCESS;)
        r = launch_on(NULL, kernel);
    pthread_join(thread, NULL); /* never returns: that thread exits the process */
}

static void *launch_for_ever(void *f)
{
    cuCtxSetCurrent(context);
    launch_on(NULL, f);
    return NULL;
}

static void exit_with_work_in_flight(void)
{
    pthread_t thread;
    setenv("KILN_EMU_JUMPS", "0", 1);
    begin();
    is_checked = true;
    CUfunction f = function_of(run_for_ever);
    HOLDS(pthread_create(&thread, NULL, launch_for_ever, f) == 0);
    while (__atomic_load_n((volatile uint32_t *)(uintptr_t)memory, __ATOMIC_RELAXED) != 7)
        sched_yield();
}

int main(int argc, char **argv)
{
    static const test_state states[] = {
        {"before_init", before_init},
        {"fork_after_init", fork_after_init},
        {"fork_with_state", fork_with_state},
        {"fork_before_init", fork_before_init},
        {"fork_during_launches", fork_during_launches},
        {"visible", visible},
        {"destroyed_current_elsewhere", destroyed_current_elsewhere},
        {"handles_of_destroyed", handles_of_destroyed},
        {"graph_of_unloaded", graph_of_unloaded},
        {"primary_reset", primary_reset},
        {"primary_reset_keeps_references", primary_reset_keeps_references},
        {"sticky_illegal_address", sticky_illegal_address},
        {"sticky_misaligned_address", sticky_misaligned_address},
        {"sticky_trap", sticky_trap},
        {"sticky_created_context", sticky_created_context},
        {"exit_handlers", exit_handlers},
        {"exit_in_another_thread", exit_in_another_thread},
        {"exit_with_work_in_flight", exit_with_work_in_flight},
    };
    return run_states(states, sizeof states / sizeof *states, argc, argv);
}
