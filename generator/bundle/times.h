/* ptxas' time for a bundle's PTX: about the time of a driver's first load of the image. */
#ifndef BUNDLE_TIMES_H
#define BUNDLE_TIMES_H

#include "model.h"

typedef struct image_time {
    const char *variant; /* id */
    target target;
    uint64_t microseconds; /* of processor time */
} image_time;

typedef struct image_times {
    const char *ptxas; /* its version */
    image_time *rows;  /* slowest first */
    size_t count;
} image_times;

/* Runs the ptxas on the PATH over each PTX image, one at a time unless the plan sets jobs. False after a diagnostic: no
 * ptxas, or it rejects an image. */
bool times_measure(arena *a, const bundle_model *m, image_times *times, diagnostics *d);

/* Prints a heading and the rows on stdout, separated by tabs; then a sum, unless the rows are for a program. */
void times_print(const image_times *times, bool only_rows);

#endif
