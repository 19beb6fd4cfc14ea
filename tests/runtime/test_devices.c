/* Tests on the emulated driver, which computes results: threads race for the first use of kernels in several contexts on two
 * devices; CUDA graphs are captured with and without a preload; a process forks. */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mini.h"

enum { DEVICES = 2, CONTEXTS = 4, THREADS = 16, LAUNCHES = 6, ELEMENTS = 300 };

/* ---- the driver, with its loads counted --------------------------------------------------------------------------- */

static kiln_driver driver; /* its module_load_data_ex is count_load */
static int (*real_load)(CUmodule *, const void *, unsigned, int *, void **);
static int loads;

static int count_load(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    __atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
    return real_load(module, image, count, options, values);
}

static int traced[2]; /* calls of the hook before and after launches, in all loaders */

static void count_launch(void *context, const kiln_launch_event *event)
{
    (void)context;
    __atomic_add_fetch(&traced[event->is_after], 1, __ATOMIC_RELAXED);
}

/* Entry points that the table lacks. */
static int (*ctx_create)(CUcontext *, unsigned, int);
static int (*ctx_destroy)(CUcontext);
static int (*begin_capture)(CUstream, int);
static int (*end_capture)(CUstream, void **graph);
static int (*graph_instantiate)(void **exec, void *graph, unsigned long long flags);
static int (*graph_launch)(void *exec, CUstream);
static int (*graph_exec_destroy)(void *exec);
static int (*graph_destroy)(void *graph);
static int (*stream_create)(CUstream *stream, unsigned flags);
static int (*stream_synchronize)(CUstream stream);
static int (*stream_destroy)(CUstream stream);

static void find_symbols(void)
{
    static const struct {
        const char *symbol;
        void *function;
    } rows[] = {{"cuCtxCreate_v2", &ctx_create},
                {"cuCtxDestroy_v2", &ctx_destroy},
                {"cuStreamBeginCapture_v2", &begin_capture},
                {"cuStreamEndCapture", &end_capture},
                {"cuGraphInstantiateWithFlags", &graph_instantiate},
                {"cuGraphLaunch", &graph_launch},
                {"cuGraphExecDestroy", &graph_exec_destroy},
                {"cuGraphDestroy", &graph_destroy},
                {"cuStreamCreate", &stream_create},
                {"cuStreamSynchronize", &stream_synchronize},
                {"cuStreamDestroy_v2", &stream_destroy}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *address = dlsym(driver.library, rows[i].symbol);
        assert_non_null(address);
        memcpy(rows[i].function, &address, sizeof address);
    }
}

#define DO(call) assert_int_equal(call, 0)

static int set_up(void **state)
{
    (void)state;
    setenv("KILN_EMU_DEVICE", "sm_90,sm_80", 1);
    assert_status(kiln_driver_load(&driver, EMULATOR, NULL), KILN_OK);
    real_load = driver.module_load_data_ex;
    driver.module_load_data_ex = count_load;
    find_symbols();
    return driver.init(0);
}

static int tear_down(void **state)
{
    (void)state;
    kiln_driver_close(&driver);
    return 0;
}

/* ---- a loader in each context, and what a thread does in one ------------------------------------------------------- */

typedef struct place {
    CUcontext context;
    kiln_loader loader;
    kiln_slot slots[MINI_SLOTS];
} place;

static place places[CONTEXTS];
static pthread_barrier_t start;

typedef struct job {
    place *at;
    CUdeviceptr x, y;
    kiln_status status;
    int driver_result;
    int wrong; /* elements */
} job;

static mini_axpy_args args_of(const job *j, int launch)
{
    return (mini_axpy_args){.type = launch % 2 ? MINI_AXPY_TYPE_F64 : MINI_AXPY_TYPE_F32,
                            .x = j->x,
                            .y = j->y,
                            .a = 0,
                            .n = ELEMENTS};
}

/* Repeats y += 2 * x in f32, with launches of the f64 kernel in between that add 0. */
static void *work(void *given)
{
    job *j = given;
    static const float zero[2 * ELEMENTS];
    float x[2 * ELEMENTS], y[2 * ELEMENTS]; /* room for doubles */
    for (int i = 0; i < 2 * ELEMENTS; i++)
        x[i] = (float)i;
    j->driver_result = driver.ctx_set_current(j->at->context);
    j->driver_result |= driver.mem_alloc(&j->x, sizeof x) | driver.mem_alloc(&j->y, sizeof y);
    j->driver_result |= driver.memcpy_htod(j->x, x, sizeof x) | driver.memcpy_htod(j->y, zero, sizeof zero);
    pthread_barrier_wait(&start);
    for (int launch = 0; launch < LAUNCHES && j->driver_result == 0 && j->status == KILN_OK; launch++) {
        mini_axpy_args args = args_of(j, launch);
        args.a = launch % 2 ? 0 : 2;
        j->status = mini_axpy(&j->at->loader, NULL, &args);
    }
    j->driver_result |= driver.ctx_synchronize() | driver.memcpy_dtoh(y, j->y, sizeof y);
    for (int i = 0; i < 2 * ELEMENTS; i++)
        j->wrong += y[i] != (i < ELEMENTS ? (float)(LAUNCHES / 2 * 2 * i) : 0);
    j->driver_result |= driver.mem_free(j->x) | driver.mem_free(j->y);
    return NULL;
}

/* Two contexts on each device: the primary one and another. */
static void open_places(void)
{
    const kiln_options options = {.launch_hook = count_launch};
    traced[0] = traced[1] = 0;
    for (int p = 0; p < CONTEXTS; p++) {
        if (p < DEVICES)
            DO(driver.device_primary_ctx_retain(&places[p].context, p));
        else
            DO(ctx_create(&places[p].context, 0, p % DEVICES));
        DO(driver.ctx_set_current(places[p].context));
        assert_status(
            kiln_open(&places[p].loader, &driver, &mini_bundle, places[p].slots, MINI_SLOTS, &options),
            KILN_OK);
        assert_int_equal(places[p].loader.device.sm, p % DEVICES ? 80 : 90);
    }
}

static void close_places(void)
{
    for (int p = 0; p < CONTEXTS; p++) {
        DO(driver.ctx_set_current(places[p].context));
        assert_status(kiln_close(&places[p].loader), KILN_OK);
        DO(p < DEVICES ? driver.device_primary_ctx_release(p) : ctx_destroy(places[p].context));
    }
}

static void threads_race_in_contexts_on_two_devices(void **state)
{
    (void)state;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        job jobs[THREADS] = {0};
        loads = 0;
        open_places();
        for (int i = 0; i < THREADS; i++) {
            jobs[i].at = &places[i % CONTEXTS];
            DO(pthread_create(&threads[i], NULL, work, &jobs[i]));
        }
        for (int i = 0; i < THREADS; i++) {
            DO(pthread_join(threads[i], NULL));
            assert_status(jobs[i].status, KILN_OK);
            assert_int_equal(jobs[i].driver_result, 0);
            assert_int_equal(jobs[i].wrong, 0);
        }
        assert_int_equal(loads, CONTEXTS * MINI_KERNELS); /* once each */
        assert_int_equal(traced[0], THREADS * LAUNCHES);
        assert_int_equal(traced[1], THREADS * LAUNCHES);
        close_places();
    }
    pthread_barrier_destroy(&start);
}

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

static kiln_status launch_both(const job *j, CUstream stream)
{
    kiln_status status = KILN_OK;
    for (int launch = 0; launch < 2 && status == KILN_OK; launch++) {
        mini_axpy_args args = args_of(j, launch);
        args.a = launch % 2 ? 0 : 2;
        status = mini_axpy(&j->at->loader, stream, &args);
    }
    return status;
}

/* The error names the load, and the capture is invalid. */
static void expect_no_load_in_a_capture(job *j, CUstream stream)
{
    enum { UNSUPPORTED = 900, INVALIDATED = 901 }; /* CUDA_ERROR_STREAM_CAPTURE_... */
    kiln_error error;
    char text[256];
    void *graph = &graph;
    DO(begin_capture(stream, 0));
    assert_status(launch_both(j, stream), KILN_ERROR_LOAD);
    assert_status(kiln_last_error(&j->at->loader, &error), KILN_OK);
    assert_int_equal(error.driver_result, UNSUPPORTED);
    kiln_describe_error(&j->at->loader, &error, NULL, text, sizeof text);
    assert_non_null(strstr(text, ": cuModuleLoadDataEx: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"));
    assert_int_equal(end_capture(stream, &graph), INVALIDATED);
    assert_null(graph);
}

/* A capture forbids loads; once preloaded, launches make none, and the graph does their work each time it is launched. */
static void preloaded_kernels_are_captured_into_a_graph(void **state)
{
    (void)state;
    static const double zero[ELEMENTS];
    float x[ELEMENTS], y[ELEMENTS];
    job j = {.at = &places[0]};
    CUstream stream;
    void *graph, *exec;
    open_places();
    DO(driver.ctx_set_current(j.at->context));
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)i;
    DO(driver.mem_alloc(&j.x, sizeof zero));
    DO(driver.mem_alloc(&j.y, sizeof zero));
    DO(driver.memcpy_htod(j.x, zero, sizeof zero));
    DO(driver.memcpy_htod(j.x, x, sizeof x));
    DO(driver.memcpy_htod(j.y, zero, sizeof zero));
    DO(stream_create(&stream, 1));

    expect_no_load_in_a_capture(&j, stream);
    assert_status(kiln_preload(&j.at->loader, mini_index.kernels, MINI_KERNELS), KILN_OK);
    DO(begin_capture(stream, 0));
    assert_status(launch_both(&j, stream), KILN_OK);
    DO(end_capture(stream, &graph));
    assert_int_equal(traced[0], 2); /* only the captured launches */
    DO(driver.memcpy_dtoh(y, j.y, sizeof y));
    assert_memory_equal(y, zero, sizeof y); /* nothing has run yet */

    DO(graph_instantiate(&exec, graph, 0));
    for (int launch = 0; launch < 3; launch++)
        DO(graph_launch(exec, stream));
    DO(stream_synchronize(stream));
    assert_int_equal(traced[0], 2);
    assert_int_equal(traced[1], 2);
    DO(driver.memcpy_dtoh(y, j.y, sizeof y));
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(y[i] == (float)(3 * 2 * i));
    DO(graph_exec_destroy(exec));
    DO(graph_destroy(graph));
    DO(stream_destroy(stream));
    DO(driver.mem_free(j.x));
    DO(driver.mem_free(j.y));
    close_places();
}

/* ---- contexts that others destroy --------------------------------------------------------------------------------- */

/* The context took the modules with it, so the loader is abandoned, and opened again in another context. */
static void a_loader_outlives_its_context(void **state)
{
    (void)state;
    place *at = &places[0];
    kiln_error error;
    char text[128];
    job j = {.at = at};
    DO(driver.ctx_set_current(NULL));
    for (int round = 0; round < 2; round++) {
        DO(ctx_create(&at->context, 0, 0));
        assert_status(kiln_open(&at->loader, &driver, &mini_bundle, at->slots, MINI_SLOTS, NULL), KILN_OK);
        DO(driver.mem_alloc(&j.x, ELEMENTS * sizeof(float)) |
           driver.mem_alloc(&j.y, ELEMENTS * sizeof(float)));
        const mini_axpy_args args = args_of(&j, 0);
        assert_status(mini_axpy(&at->loader, NULL, &args), KILN_OK);
        DO(ctx_destroy(at->context));
        assert_status(kiln_close(&at->loader), KILN_ERROR_NO_CONTEXT);
        assert_status(kiln_last_error(&at->loader, &error), KILN_OK);
        kiln_describe_error(&at->loader, &error, NULL, text, sizeof text);
        assert_string_equal(text, "no context is current: mini");
        assert_status(kiln_open(&at->loader, &driver, &mini_bundle, at->slots, MINI_SLOTS, NULL),
                      KILN_ERROR_ALREADY_OPEN);
        kiln_forget(&at->loader);
    }
}

/* ---- processes that fork ------------------------------------------------------------------------------------------ */

static bool child_is_told(kiln_loader *loader, kiln_status status, const char *expected)
{
    kiln_error error;
    char text[128];
    if (status != KILN_ERROR_DRIVER || kiln_last_error(loader, &error) != KILN_OK)
        return false;
    kiln_describe_error(loader, &error, NULL, text, sizeof text);
    return strcmp(text, expected) == 0;
}

/* In a child forked after cuInit, kiln_open, launches and kiln_close return errors, and nothing hangs. */
static void a_forked_child_is_told(void **state)
{
    (void)state;
    static const char opened[] = "driver call failed: cuCtxGetCurrent: CUDA_ERROR_NOT_INITIALIZED (3)";
    place *at = &places[0];
    job j = {.at = at};
    int status = 0;
    open_places();
    DO(driver.ctx_set_current(at->context));
    assert_status(kiln_preload(&at->loader, mini_index.kernels, MINI_KERNELS), KILN_OK);
    DO(driver.mem_alloc(&j.x, ELEMENTS * sizeof(float)) | driver.mem_alloc(&j.y, ELEMENTS * sizeof(float)));
    const mini_axpy_args args = args_of(&j, 0);
    assert_status(mini_axpy(&at->loader, NULL, &args), KILN_OK);
    pid_t child = fork();
    if (child == 0) {
        kiln_slot slots[MINI_SLOTS];
        kiln_loader fresh = {0};
        bool is_right =
            child_is_told(&fresh, kiln_open(&fresh, &driver, &mini_bundle, slots, MINI_SLOTS, NULL),
                          opened) &&
            mini_axpy(&at->loader, NULL, &args) == KILN_ERROR_LAUNCH &&
            child_is_told(&at->loader, kiln_close(&at->loader), opened);
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_status(mini_axpy(&at->loader, NULL, &args), KILN_OK);
    DO(driver.mem_free(j.x) | driver.mem_free(j.y));
    close_places();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_race_in_contexts_on_two_devices),
        cmocka_unit_test(preloaded_kernels_are_captured_into_a_graph),
        cmocka_unit_test(a_loader_outlives_its_context),
        cmocka_unit_test(a_forked_child_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
