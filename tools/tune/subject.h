/* One variant at one shape, ready to be launched again and again on buffers that rotate past the L2 cache. */
#ifndef TUNE_SUBJECT_H
#define TUNE_SUBJECT_H

#include "../verify/device.h"
#include "../verify/execute.h"
#include "driver_tools.h"

typedef struct subject {
    device *device;
    const driver_tools *tools;
    const kiln_kernel *kernel;
    problem problem;
    uint64_t bytes_read, bytes_written; /* compulsory: the manifest's cost */
    uint64_t set_bytes, sets;           /* of one set of buffers, and how many there are */
    bool is_too_large;                  /* why subject_open failed: the device has no room for the sets */
    CUdeviceptr memory;
    argument_struct *arguments; /* of each set */
    pool pool;
} subject;

/* The shape is text, "n=67108864 group_size=64", and names every argument that is a size. All sets together pass twice
 * l2_bytes, unless that takes more than 4096 of them. False after writing a message. */
bool subject_open(subject *s, device *d, const driver_tools *tools, const manifest_variant *v,
                  const kiln_kernel *kernel, const char *shape, uint64_t l2_bytes, char *error,
                  size_t error_bytes);
void subject_close(subject *s);

/* A task's function (stopwatch.h); the context is the subject. A kiln_status other than KILN_OK comes back as -1: the
 * loader has the details. */
int subject_submit(void *context, CUstream stream, uint64_t iteration);

#endif
