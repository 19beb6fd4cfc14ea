/* What a diagnostic quotes. */
#ifndef GENERATOR_FOUND_H
#define GENERATOR_FOUND_H

#include "support/arena.h"

/* A text as the user wrote it, short and on one line: control characters as '?', at most 40 characters. */
const char *found_text(arena *a, const char *from);

/* "x y" -> "x, y". */
const char *list_text(arena *a, const char *words);

/* "; did you mean 'x'?", or what could have stood there: "; there are x, y". `candidates` are words. */
const char *near_text(arena *a, const char *found, const char *candidates);

#endif
