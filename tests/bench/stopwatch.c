/* The stopwatch on a fake driver: kernels take a given time, and launches on the host take longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/tune/stopwatch.h"

enum { MOST_RECORDED = 4096, ILLEGAL_STATE = 401, LAUNCH_FAILED = 719 };

#define LAUNCH_US 2.0

struct CUevent_st {
    double us;
};

/* The device's clock, and the recorded calls. */
static struct {
    double now_us, kernel_us;
    bool is_capturing, is_stopped; /* is_stopped: the clock stands still */
    uint64_t captured[MOST_RECORDED], ran[MOST_RECORDED];
    unsigned captured_count, ran_count, events, graphs, graph_launches;
    int begin_result, instantiate_result, submit_result; /* submit_result: during a capture */
} fake;

static int stream_create(CUstream *stream, unsigned flags)
{
    *stream = (CUstream)&fake;
    return flags == 1 ? 0 : -1;
}

static int stream_destroy(CUstream stream)
{
    return stream == (CUstream)&fake ? 0 : -1;
}

static int event_create(CUevent *event, unsigned flags)
{
    static struct CUevent_st events[MOST_SAMPLES + 1];
    *event = &events[fake.events++];
    return flags == 0 ? 0 : -1;
}

static int event_destroy(CUevent event)
{
    (void)event;
    fake.events--;
    return 0;
}

static int event_record(CUevent event, CUstream stream)
{
    (void)stream;
    event->us = fake.is_stopped ? 0 : fake.now_us;
    return fake.is_capturing ? ILLEGAL_STATE : 0;
}

static int event_synchronize(CUevent event)
{
    (void)event;
    return fake.is_capturing ? ILLEGAL_STATE : 0;
}

static int event_elapsed_time(float *milliseconds, CUevent start, CUevent end)
{
    *milliseconds = (float)((end->us - start->us) / 1000);
    return 0;
}

static int begin_capture(CUstream stream, int mode)
{
    (void)stream;
    if (fake.begin_result != 0)
        return fake.begin_result;
    fake.is_capturing = true;
    fake.captured_count = 0;
    return mode == 2 ? 0 : -1;
}

static int end_capture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    assert_true(fake.is_capturing);
    fake.is_capturing = false;
    *graph = (CUgraph)&fake;
    fake.graphs++;
    return 0;
}

static int instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    if (fake.instantiate_result != 0)
        return fake.instantiate_result;
    *exec = (CUgraphExec)&fake;
    fake.graphs++;
    return 0;
}

static void run(uint64_t iteration)
{
    if (fake.ran_count < MOST_RECORDED)
        fake.ran[fake.ran_count] = iteration;
    fake.ran_count++;
    fake.now_us += fake.kernel_us;
}

static int graph_launch(CUgraphExec exec, CUstream stream)
{
    (void)exec, (void)stream;
    fake.graph_launches++;
    fake.ran_count = 0;
    for (unsigned i = 0; i < fake.captured_count; i++)
        run(fake.captured[i]);
    return 0;
}

static int graph_destroy(CUgraph graph)
{
    (void)graph;
    fake.graphs--;
    return 0;
}

static int graph_exec_destroy(CUgraphExec exec)
{
    (void)exec;
    fake.graphs--;
    return 0;
}

static driver_tools tools = {.stream_create = stream_create,
                             .stream_destroy = stream_destroy,
                             .event_create = event_create,
                             .event_destroy = event_destroy,
                             .event_record = event_record,
                             .event_synchronize = event_synchronize,
                             .event_elapsed_time = event_elapsed_time,
                             .stream_begin_capture = begin_capture,
                             .stream_end_capture = end_capture,
                             .graph_instantiate = instantiate,
                             .graph_launch = graph_launch,
                             .graph_destroy = graph_destroy,
                             .graph_exec_destroy = graph_exec_destroy};

/* A plain launch is no faster than the host. */
static int submit(void *context, CUstream stream, uint64_t iteration)
{
    (void)context, (void)stream;
    if (fake.is_capturing) {
        if (fake.submit_result != 0 && fake.captured_count == 50)
            return fake.submit_result;
        fake.captured[fake.captured_count++] = iteration;
        return 0;
    }
    run(iteration);
    if (fake.kernel_us < LAUNCH_US)
        fake.now_us += LAUNCH_US - fake.kernel_us;
    return 0;
}

static int measure(double kernel_us, unsigned period, task *t)
{
    stopwatch w;
    fake.kernel_us = kernel_us;
    *t = (task){.submit = submit, .period = period};
    assert_int_equal(stopwatch_open(&w, &tools, 5, 0), 0);
    w.graph_below_us = 10 * LAUNCH_US;
    const int result = stopwatch_measure(&w, t);
    stopwatch_close(&w);
    assert_int_equal(fake.events, 0);
    assert_int_equal(fake.graphs, 0);
    assert_false(fake.is_capturing);
    return result;
}

static void expect_samples(const task *t, double us)
{
    for (int i = 0; i < 5; i++)
        assert_true(t->samples_us[i] > 0.999 * us && t->samples_us[i] < 1.001 * us);
}

static int reset(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    tools.graph_launch = graph_launch;
    return 0;
}

/* Plain launches take 2 us each. */
static void test_short_kernel_in_graph(void **state)
{
    static task t;
    (void)state;
    assert_int_equal(measure(0.5, 3, &t), 0);
    assert_true(t.is_graph);
    assert_int_equal(t.graph_result, 0);
    assert_int_equal(t.batch, 150);
    expect_samples(&t, 0.5);
    assert_int_equal(fake.graph_launches, 1 + 1 + 5);
}

/* The graph uses every set of buffers, even if a shorter batch would be long enough. */
static void test_graph_rotates_all_sets(void **state)
{
    static task t;
    (void)state;
    assert_int_equal(measure(0.5, 700, &t), 0);
    assert_int_equal(t.batch, 700);
    assert_int_equal(fake.captured_count, 700);
    for (unsigned i = 1; i < 700; i++)
        assert_int_equal(fake.captured[i], fake.captured[0] + i);
}

static void test_long_kernels_are_launched(void **state)
{
    static const struct {
        double us;
        unsigned batch;
    } rows[] = {{21, 15}, {100, 3}, {299, 2}, {300, 1}, {5000, 1}};
    static task t;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(measure(rows[i].us, 9, &t), 0);
        assert_false(t.is_graph);
        assert_int_equal(t.graph_result, 0);
        assert_int_equal(t.batch, rows[i].batch);
        expect_samples(&t, rows[i].us);
    }
    assert_int_equal(fake.graph_launches, 0);
}

static void expect_fallback(int result)
{
    static task t;
    assert_int_equal(measure(0.5, 3, &t), 0);
    assert_false(t.is_graph);
    assert_int_equal(t.graph_result, result);
    expect_samples(&t, LAUNCH_US);
}

static void test_capture_fails(void **state)
{
    (void)state;
    fake.begin_result = ILLEGAL_STATE;
    expect_fallback(ILLEGAL_STATE);
    fake.begin_result = 0;
    fake.instantiate_result = 2;
    expect_fallback(2);
    fake.instantiate_result = 0;
    fake.submit_result = -1;
    expect_fallback(-1);
    fake.submit_result = 0;
    tools.graph_launch = NULL;
    expect_fallback(801);
}

/* Measuring ends even if the device's clock stands still. */
static void test_no_time(void **state)
{
    static task t;
    (void)state;
    fake.is_stopped = true;
    assert_int_equal(measure(1, 1, &t), 0);
    assert_true(t.samples_us[0] == 0);
    assert_int_equal(t.batch, MOST_BATCH);
}

static int submit_failing(void *context, CUstream stream, uint64_t iteration)
{
    (void)context, (void)stream;
    return iteration < 100 ? submit(NULL, stream, iteration) : LAUNCH_FAILED;
}

static void test_launch_fails(void **state)
{
    static task t;
    stopwatch w;
    (void)state;
    fake.kernel_us = 50;
    t = (task){.submit = submit_failing, .period = 1};
    assert_int_equal(stopwatch_open(&w, &tools, 100, 0), 0);
    assert_int_equal(stopwatch_measure(&w, &t), LAUNCH_FAILED);
    stopwatch_close(&w);
}

static void test_median(void **state)
{
    static task t = {.samples_us = {5, 1, 4, 2}};
    (void)state;
    assert_true(stopwatch_median_us(&t, 4) == 3);
    assert_true(stopwatch_median_us(&t, 3) == 2);
    assert_int_equal(stopwatch_median_ns(&(task){.samples_us = {1e-9}}, 1), 1);
    assert_int_equal(stopwatch_median_ns(&(task){.samples_us = {4294967.295}}, 1), UINT32_MAX);
    assert_int_equal(stopwatch_median_ns(&(task){.samples_us = {4294967.296}}, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_short_kernel_in_graph, reset),
        cmocka_unit_test_setup(test_graph_rotates_all_sets, reset),
        cmocka_unit_test_setup(test_long_kernels_are_launched, reset),
        cmocka_unit_test_setup(test_capture_fails, reset),
        cmocka_unit_test_setup(test_no_time, reset),
        cmocka_unit_test_setup(test_launch_fails, reset),
        cmocka_unit_test_setup(test_median, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
