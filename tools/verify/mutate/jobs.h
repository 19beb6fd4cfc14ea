/* Runs jobs in separate processes, several at a time, so that a crash ends only its job. */
#ifndef VERIFY_MUTATE_JOBS_H
#define VERIFY_MUTATE_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/* Runs in its own process and fills its result, which starts zeroed. */
typedef void job_function(void *context, size_t i, void *result);

/* How a process ended that did not return: by a signal, or with a status. */
typedef struct job_end {
    int signal, status; /* both 0: normally */
} job_end;

/* Runs the jobs 0 to count - 1. results: `count` of them, `result_bytes` each; for a job that died, whatever it
 * wrote before. False after a message: processes cannot be created. */
bool jobs_run(size_t count, size_t at_once, job_function *job, void *context, void *results,
              size_t result_bytes, job_end *ends);

#endif
