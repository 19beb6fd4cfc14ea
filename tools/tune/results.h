/* Times by variant and shape: a tuned file in memory. */
#ifndef TUNE_RESULTS_H
#define TUNE_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/pool.h"

typedef struct tune_time {
    const char *family, *shape; /* "m: 1, n: 4096" */
    const char *id;
    uint32_t nanoseconds;
} tune_time;

typedef struct results {
    pool *memory;
    const char *device;
    uint32_t sm, multiprocessors;
    bool is_emulated;
    tune_time *items;
    size_t count;
} results;

/* Returns the time in nanoseconds; 0: not measured. */
uint32_t results_find(const results *r, const char *family, const char *shape, const char *id);
void results_add(results *r, const char *family, const char *shape, const char *id, uint32_t nanoseconds);

/* Adds an earlier run's results; a missing file has none. False after a message: the file is for another device,
 * or is not a tuned file. */
bool results_read(results *r, const char *path);

/* Writes the file, ordered by family, then by shape as first added. It is written under another name first, so the
 * file is complete or unchanged. False after a message. */
bool results_write(const results *r, const char *path);

/* Returns whether the file can be created; false after a message. */
bool results_may_write(const char *path);

#endif
