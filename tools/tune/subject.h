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
    uint64_t bytes_read, bytes_written; /* compulsory: the manifest's cost */
    uint64_t elements;                  /* likewise; 0: the manifest states none */
    uint64_t set_bytes, sets;           /* of one set of buffers, and how many there are */
    bool is_too_large;                  /* why subject_open failed: the device has no room for a set */
    CUdeviceptr memory;
    argument_struct *arguments; /* of each set */
    pool pool;
} subject;

/* `p` must have its sizes; the subject takes it over. The sets of buffers together exceed twice l2_bytes,
 * unless that takes more than MOST_SETS sets or more memory than the device has free. False after writing a
 * message. */
bool subject_open(subject *s, device *d, const driver_tools *tools, const kiln_kernel *kernel, problem *p,
                  uint64_t l2_bytes, char *error, size_t error_bytes);
void subject_close(subject *s);

/* A task's function (stopwatch.h); the context is the subject. A kiln_status other than KILN_OK comes back as -1: the
 * loader has the details. */
int subject_submit(void *context, CUstream stream, uint64_t iteration);

#endif
