/* Measures times on the device, by events around batches of submissions to one stream. */
#ifndef TUNE_STOPWATCH_H
#define TUNE_STOPWATCH_H

#include <stdbool.h>

#include <kiln/kiln.h>

#include "driver_tools.h"

enum { MOST_SAMPLES = 1000, MOST_BATCH = 1024 };

/* Work to submit repeatedly, such as a launch or a copy. */
typedef struct task {
    /* Submits it once. `iteration` keeps counting from call to call, so that buffers can rotate. Returns the
     * driver's result, 0 for success. */
    int (*submit)(void *context, CUstream stream, uint64_t iteration);
    void *context;
    unsigned period; /* iterations until buffers repeat: a graph holds at least as many; at most MOST_BATCH */
    uint64_t iteration;
    unsigned batch;                  /* submissions per sample */
    bool is_graph;                   /* each sample launched one graph of the whole batch */
    int graph_result;                /* why a short task has no graph; 0: it has one, or needs none */
    double samples_us[MOST_SAMPLES]; /* microseconds per submission */
} task;

typedef struct stopwatch {
    const driver_tools *driver;
    CUstream stream;
    CUevent events[MOST_SAMPLES + 1];
    CUgraphExec graph;     /* of the current task; null: none */
    unsigned samples;      /* per task; at most MOST_SAMPLES */
    double warm_up_us;     /* host time before each task's samples; 0 on an emulated device */
    double graph_below_us; /* shorter tasks are timed in a graph; 0: never */
} stopwatch;

/* These functions return the result of the driver or of a task's function; 0 is success. */
int stopwatch_open(stopwatch *w, const driver_tools *driver, unsigned samples, double warm_up_us);
void stopwatch_close(stopwatch *w);

/* Times an empty kernel, by plain launches and in a graph of 200 launches. After that, tasks shorter than ten
 * plain launches are timed in graphs. The first warm-up is longer, so that an idle device can raise its
 * clocks. */
int stopwatch_calibrate(stopwatch *w, const kiln_driver *driver, task *plain, task *graph);

/* Warms up, sizes the batch, then samples. If the capture fails, launches are plain and graph_result says
 * why. */
int stopwatch_measure(stopwatch *w, task *t);

/* Sorts the samples. */
double stopwatch_median_us(task *t, unsigned samples);
/* Returns at least 1; 0: it does not fit 32 bits. */
uint32_t stopwatch_median_ns(task *t, unsigned samples);

#endif
