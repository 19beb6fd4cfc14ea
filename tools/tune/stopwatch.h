/* Times on the device: events around batches of submissions to one stream. */
#ifndef TUNE_STOPWATCH_H
#define TUNE_STOPWATCH_H

#include <kiln/kiln.h>

#include "driver_tools.h"

enum { MOST_SAMPLES = 1000, MOST_BATCH = 256 };

/* Work that can be submitted again and again: a launch, a copy. */
typedef struct task {
    /* Submits it once; `iteration` counts on from call to call, so that buffers can rotate. Returns the driver's result, 0
     * for success. */
    int (*submit)(void *context, CUstream stream, uint64_t iteration);
    void *context;
    uint64_t iteration;
    unsigned batch;                  /* submissions per sample */
    double samples_us[MOST_SAMPLES]; /* microseconds per submission */
} task;

typedef struct stopwatch {
    const driver_tools *driver;
    CUstream stream;
    CUevent start, end;
    unsigned samples;  /* of each task; at most MOST_SAMPLES */
    double warm_up_us; /* of each task, before its samples */
} stopwatch;

/* Both return the driver's result, 0 for success. */
int stopwatch_open(stopwatch *w, const driver_tools *driver, unsigned samples, double warm_up_us);
void stopwatch_close(stopwatch *w);

/* Warms each task up, sizes its batches, then samples the tasks in turns, so that they see the same clocks. */
int stopwatch_measure(stopwatch *w, task *tasks, size_t count);

#endif
