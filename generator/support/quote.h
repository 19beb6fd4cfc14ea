/* What a diagnostic quotes and suggests. */
#ifndef SUPPORT_QUOTE_H
#define SUPPORT_QUOTE_H

#include "arena.h"

/* The user's text, short and on one line: control characters become '?', at most 40 characters. */
const char *quote_text(arena *a, const char *from);

/* A word for a shell: in single quotes if needed. */
const char *quote_shell(arena *a, const char *word);

/* "x y" -> "x, y". */
const char *list_text(arena *a, const char *words);

/* "; did you mean 'x'?", or all candidates: "; there are x, y". `candidates` are words. */
const char *suggest_text(arena *a, const char *written, const char *candidates);

/* Suggests a word as above; if there are too many names, those that contain the word, and the command that lists all,
 * "kiln families". */
const char *suggest_listed_text(arena *a, const char *written, const char *candidates, const char *command);

#endif
