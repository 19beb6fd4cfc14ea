/* Measures times on the device, by events around batches of submissions to one stream. */
#include "stopwatch.h"

#include <math.h>
#include <stdlib.h>

#include "../support/clock.h"

/* An event's clock ticks about twice a microsecond; a batch of this length makes that error small. */
#define BATCH_US 300.0

/* An idle device takes a while to raise its clocks. */
#define FIRST_WARM_UP_US 300e3

enum { EMPTY_BATCH = 200, EMPTIES_BELOW_GRAPH = 10 };

/* cuda.h: CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_NOT_SUPPORTED */
enum { STREAM_NON_BLOCKING = 1, CAPTURE_RELAXED = 2, ERROR_NOT_SUPPORTED = 801 };

int stopwatch_open(stopwatch *w, const driver_tools *driver, unsigned samples, double warm_up_us)
{
    *w = (stopwatch){.driver = driver, .samples = samples, .warm_up_us = warm_up_us};
    int result = driver->stream_create(&w->stream, STREAM_NON_BLOCKING);
    for (unsigned i = 0; result == 0 && i <= samples; i++)
        result = driver->event_create(&w->events[i], 0);
    if (result != 0)
        stopwatch_close(w);
    return result;
}

static void destroy_graph(stopwatch *w)
{
    if (w->graph)
        w->driver->graph_exec_destroy(w->graph);
    w->graph = NULL;
}

void stopwatch_close(stopwatch *w)
{
    destroy_graph(w);
    for (unsigned i = 0; i <= MOST_SAMPLES && w->events[i]; i++)
        w->driver->event_destroy(w->events[i]);
    if (w->stream)
        w->driver->stream_destroy(w->stream);
    *w = (stopwatch){.driver = w->driver};
}

/* ---- batches ------------------------------------------------------------------------------------------------------- */

static int submit_each(stopwatch *w, task *t)
{
    int result = 0;
    for (unsigned i = 0; result == 0 && i < t->batch; i++)
        result = t->submit(t->context, w->stream, t->iteration++);
    return result;
}

static int submit_batch(stopwatch *w, task *t)
{
    return w->graph ? w->driver->graph_launch(w->graph, w->stream) : submit_each(w, t);
}

/* Times batches. Waits once, after all of them: the host submits ahead of the device, so launching adds no time
 * between two events. */
static int time_batches(stopwatch *w, task *t, unsigned count, double *us)
{
    const driver_tools *d = w->driver;
    int result = d->event_record(w->events[0], w->stream);
    for (unsigned i = 1; result == 0 && i <= count; i++) {
        result = submit_batch(w, t);
        if (result == 0)
            result = d->event_record(w->events[i], w->stream);
    }
    if (result == 0)
        result = d->event_synchronize(w->events[count]);
    for (unsigned i = 0; result == 0 && i < count; i++) {
        float milliseconds = 0;
        result = d->event_elapsed_time(&milliseconds, w->events[i], w->events[i + 1]);
        us[i] = (double)milliseconds * 1000 / t->batch;
    }
    return result;
}

/* ---- warming up ---------------------------------------------------------------------------------------------------- */

/* Returns how many submissions of `us` each make a batch. */
static unsigned batch_for(double us)
{
    return us * MOST_BATCH <= BATCH_US ? MOST_BATCH : us >= BATCH_US ? 1 : (unsigned)ceil(BATCH_US / us);
}

/* Ignores the first batch, which may load the kernel. Batches grow in steps, because short ones take too
 * long. */
static int warm_up(stopwatch *w, task *t, double *us)
{
    enum { STEP = 8 };
    const double start = seconds_now();
    bool is_sized = false;
    t->batch = 1;
    int result = time_batches(w, t, 1, us);
    while (result == 0 && (!is_sized || 1e6 * (seconds_now() - start) < w->warm_up_us)) {
        result = time_batches(w, t, 1, us);
        const unsigned wanted = batch_for(*us);
        is_sized = wanted <= t->batch + t->batch / 4;
        t->batch = wanted < STEP * t->batch ? wanted : STEP * t->batch;
    }
    return result;
}

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

/* Captures a batch. Relaxed mode, since the driver may load kernels lazily. */
static int capture(stopwatch *w, task *t)
{
    const driver_tools *d = w->driver;
    CUgraph graph = NULL;
    if (!d->stream_begin_capture || !d->stream_end_capture || !d->graph_instantiate || !d->graph_launch ||
        !d->graph_destroy || !d->graph_exec_destroy)
        return ERROR_NOT_SUPPORTED;
    int result = d->stream_begin_capture(w->stream, CAPTURE_RELAXED);
    if (result != 0)
        return result;
    result = submit_each(w, t);
    const int ended = d->stream_end_capture(w->stream, &graph); /* also after a failure, to free the stream */
    result = result != 0 ? result : ended;
    if (result == 0)
        result = d->graph_instantiate(&w->graph, graph, 0);
    if (result != 0)
        w->graph = NULL;
    if (graph)
        d->graph_destroy(graph);
    return result;
}

/* Uses a graph for the task. Buffers must rotate within the graph, since each launch of it uses the same
 * addresses. */
static void use_graph(stopwatch *w, task *t)
{
    double us;
    const unsigned plain = t->batch;
    t->batch = t->batch > t->period ? t->batch : t->period;
    t->graph_result = capture(w, t);
    if (t->graph_result == 0)
        t->graph_result = time_batches(w, t, 1, &us); /* the first launch also uploads it */
    t->is_graph = t->graph_result == 0;
    if (t->is_graph)
        return;
    destroy_graph(w);
    t->batch = plain;
}

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

int stopwatch_measure(stopwatch *w, task *t)
{
    double us = 0;
    int result = warm_up(w, t, &us);
    if (result == 0 && us < w->graph_below_us)
        use_graph(w, t);
    if (result ==
        0) /* one extra batch before the samples keeps the device busy while the host submits them */
        result = submit_batch(w, t);
    if (result == 0)
        result = time_batches(w, t, w->samples, t->samples_us);
    destroy_graph(w);
    return result;
}

static int compare_numbers(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

double stopwatch_median_us(task *t, unsigned samples)
{
    qsort(t->samples_us, samples, sizeof *t->samples_us, compare_numbers);
    return (t->samples_us[(samples - 1) / 2] + t->samples_us[samples / 2]) / 2;
}

uint32_t stopwatch_median_ns(task *t, unsigned samples)
{
    const double nanoseconds = floor(stopwatch_median_us(t, samples) * 1000 + 0.5);
    return nanoseconds < 1 ? 1 : nanoseconds > UINT32_MAX ? 0 : (uint32_t)nanoseconds;
}

/* ---- an empty kernel ----------------------------------------------------------------------------------------------- */

static const char empty_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

typedef struct empty_kernel {
    const kiln_driver *driver;
    CUmodule module;
    CUfunction function;
} empty_kernel;

static int submit_empty(void *context, CUstream stream, uint64_t iteration)
{
    const empty_kernel *e = context;
    (void)iteration;
    return e->driver->launch_kernel(e->function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

int stopwatch_calibrate(stopwatch *w, const kiln_driver *driver, task *plain, task *graph)
{
    empty_kernel empty = {.driver = driver};
    *plain = (task){.submit = submit_empty, .context = &empty};
    *graph = (task){.submit = submit_empty, .context = &empty, .period = EMPTY_BATCH};
    int result = driver->module_load_data_ex(&empty.module, empty_ptx, 0, NULL, NULL);
    if (result != 0)
        return result;
    result = driver->module_get_function(&empty.function, empty.module, "empty");
    const double warm_up_us = w->warm_up_us;
    w->warm_up_us = warm_up_us > 0 ? FIRST_WARM_UP_US : 0;
    w->graph_below_us = 0;
    if (result == 0)
        result = stopwatch_measure(w, plain);
    w->warm_up_us = warm_up_us;
    w->graph_below_us = HUGE_VAL;
    if (result == 0)
        result = stopwatch_measure(w, graph);
    w->graph_below_us = EMPTIES_BELOW_GRAPH * stopwatch_median_us(plain, w->samples);
    driver->module_unload(empty.module);
    return result;
}
