/* How unlike two texts are. */
#ifndef SUPPORT_DISTANCE_H
#define SUPPORT_DISTANCE_H

#include <stddef.h>

/* How many characters have to be added, dropped or changed. Each text ends before the first character of `end` in it. */
size_t text_distance(const char *a, const char *b, const char *end);

#endif
