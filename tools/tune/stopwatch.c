/* Times on the device: events around batches of submissions to one stream. */
#include "stopwatch.h"

/* An event's clock ticks about once a microsecond and a launch takes a few: a batch of this length makes both small. */
#define BATCH_US 1000.0

int stopwatch_open(stopwatch *w, const driver_tools *driver, unsigned samples, double warm_up_us)
{
    *w = (stopwatch){.driver = driver, .samples = samples, .warm_up_us = warm_up_us};
    int result = driver->stream_create(&w->stream, 1); /* without implied waits for the null stream */
    if (result == 0)
        result = driver->event_create(&w->start, 0);
    if (result == 0)
        result = driver->event_create(&w->end, 0);
    if (result != 0)
        stopwatch_close(w);
    return result;
}

void stopwatch_close(stopwatch *w)
{
    if (w->end)
        w->driver->event_destroy(w->end);
    if (w->start)
        w->driver->event_destroy(w->start);
    if (w->stream)
        w->driver->stream_destroy(w->stream);
    *w = (stopwatch){.driver = w->driver};
}

static int time_batch(stopwatch *w, task *t, double *us)
{
    float milliseconds = 0;
    int result = w->driver->event_record(w->start, w->stream);
    for (unsigned i = 0; result == 0 && i < t->batch; i++)
        result = t->submit(t->context, w->stream, t->iteration++);
    if (result == 0)
        result = w->driver->event_record(w->end, w->stream);
    if (result == 0)
        result = w->driver->event_synchronize(w->end);
    if (result == 0)
        result = w->driver->event_elapsed_time(&milliseconds, w->start, w->end);
    *us = (double)milliseconds * 1000 / t->batch;
    return result;
}

/* The first batch loads the kernel: it says nothing. */
static int warm_up(stopwatch *w, task *t)
{
    double us, spent_us = 0;
    t->batch = 1;
    int result = time_batch(w, t, &us);
    do {
        if (result == 0)
            result = time_batch(w, t, &us);
        spent_us += us * t->batch;
        if (us * t->batch < BATCH_US && t->batch < MOST_BATCH)
            t->batch *= 2;
    } while (result == 0 && spent_us < w->warm_up_us);
    return result;
}

int stopwatch_measure(stopwatch *w, task *tasks, size_t count)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++)
        result = warm_up(w, &tasks[i]);
    for (unsigned sample = 0; result == 0 && sample < w->samples; sample++) {
        for (size_t i = 0; result == 0 && i < count; i++)
            result = time_batch(w, &tasks[i], &tasks[i].samples_us[sample]);
    }
    return result;
}
