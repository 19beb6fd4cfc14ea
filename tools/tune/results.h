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
    size_t count, capacity;
} results;

/* 0: it was not measured. */
uint32_t results_find(const results *r, const char *family, const char *shape, const char *id);
void results_add(results *r, const char *family, const char *shape, const char *id, uint32_t nanoseconds);

/* Adds what an earlier run wrote; a file that is not there is none. False after a message: it is of another device, or no
 * tuned file. */
bool results_read(results *r, const char *path);

/* In order of family, then of shape as each was first added. The file is whole or as it was: it is written under another name
 * first. False after a message. */
bool results_write(const results *r, const char *path);

/* Whether a file can be made there; else after a message. */
bool results_may_write(const char *path);

#endif
