/* What a diagnostic quotes and suggests. */
#ifndef SUPPORT_QUOTE_H
#define SUPPORT_QUOTE_H

#include "arena.h"

/* A text as the user wrote it, short and on one line: control characters as '?', at most 40 characters. */
const char *quote_text(arena *a, const char *from);

/* A word as a shell takes it: in single quotes where it has to be. */
const char *quote_shell(arena *a, const char *word);

/* "x y" -> "x, y". */
const char *list_text(arena *a, const char *words);

/* "; did you mean 'x'?", or all candidates: "; there are x, y". `candidates` are words. */
const char *suggest_text(arena *a, const char *written, const char *candidates);

/* The same; if there are too many names, those that contain the word, and the command that lists all of them,
 * "kiln families". */
const char *suggest_listed_text(arena *a, const char *written, const char *candidates, const char *command);

#endif
