/* Work in processes of its own, several at a time: what dies there ends nothing here. */
#ifndef VERIFY_MUTATE_JOBS_H
#define VERIFY_MUTATE_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/* Runs in its process and fills its result, which is zeroed before. */
typedef void job_function(void *context, size_t i, void *result);

/* How a process ended that did not come back: by a signal, else with a status. */
typedef struct job_end {
    int signal, status; /* both 0: as it should */
} job_end;

/* Runs the jobs 0 to count - 1. results: `count` of them, `result_bytes` each; of a job that died it has what was
 * written before. False after a message: no processes can be made. */
bool jobs_run(size_t count, size_t at_once, job_function *job, void *context, void *results,
              size_t result_bytes, job_end *ends);

#endif
