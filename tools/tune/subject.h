/* One variant at one shape, ready to be launched again and again on buffers that rotate past the L2 cache. */
#ifndef TUNE_SUBJECT_H
#define TUNE_SUBJECT_H

#include "../verify/device.h"
#include "../verify/execute.h"
#include "driver_tools.h"

enum { MOST_SETS = 1024 };

typedef struct subject {
    device *device;
    const driver_tools *tools;
    const kiln_kernel *kernel;
    problem problem;
    uint64_t bytes_read, bytes_written; /* minimum bytes by the manifest's cost */
    uint64_t elements;                  /* by the manifest's cost; 0: not stated */
    uint64_t set_bytes, sets;           /* bytes of one set of buffers, and the number of sets */
    bool is_too_large;                  /* subject_open failed because the device has no room for a set */
    CUdeviceptr memory;
    argument_struct *arguments; /* per set */
    pool pool;
} subject;

/* Prepares a variant. `p` must have its sizes; the subject takes it over. The sets of buffers together exceed
 * twice l2_bytes, unless that takes more than MOST_SETS sets or more memory than the device has free. False after
 * a message. */
bool subject_open(subject *s, device *d, const driver_tools *tools, const kiln_kernel *kernel, problem *p,
                  uint64_t l2_bytes, char *error, size_t error_bytes);
void subject_close(subject *s);

/* Launches once: a task's function (stopwatch.h) whose context is the subject. Returns -1 for a kiln_status other
 * than KILN_OK: the loader has the details. */
int subject_submit(void *context, CUstream stream, uint64_t iteration);

#endif
