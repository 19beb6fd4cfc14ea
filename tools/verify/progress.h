/* Shows a run's progress and the remaining time on stderr: always on a terminal, otherwise a line each minute. */
#ifndef VERIFY_PROGRESS_H
#define VERIFY_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

typedef struct progress {
    size_t variants, done;       /* earlier runs included */
    uint64_t weight, weight_run; /* of the variants that this run executes, and of those finished */
    double started, told;        /* in seconds */
} progress;

void progress_begin(const progress *p);
void progress_case(const char *variant, uint64_t cases); /* a case begins */
void progress_variant(uint64_t weight);                  /* a variant has finished */
void progress_clear(void);                               /* on a terminal, before other output */

/* Writes "37 of 86 variants, about 4 min left", given the seconds since the start. */
void progress_describe(const progress *p, double seconds, char *text, size_t bytes);

#endif
