/* How far a run is, and how long it still takes: on a terminal always, elsewhere a line each minute. On stderr. */
#ifndef VERIFY_PROGRESS_H
#define VERIFY_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

typedef struct progress {
    size_t variants, done;       /* earlier runs' included */
    uint64_t weight, weight_run; /* of those that this run has to run, and of those that it has run */
    double started, told;        /* in seconds */
} progress;

void progress_begin(const progress *p);
void progress_case(const char *variant, uint64_t cases); /* one begins */
void progress_variant(uint64_t weight);                  /* one has run */
void progress_clear(void);                               /* off the terminal: something else is printed */

/* "37 of 86 variants, about 4 min left", this many seconds after the beginning. */
void progress_describe(const progress *p, double seconds, char *text, size_t bytes);

#endif
