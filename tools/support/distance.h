/* The edit distance of two texts. */
#ifndef SUPPORT_DISTANCE_H
#define SUPPORT_DISTANCE_H

#include <stddef.h>

/* Returns how many characters must be added, dropped or changed. Each text ends before the first of its characters
 * that is in `end`. */
size_t text_distance(const char *a, const char *b, const char *end);

#endif
