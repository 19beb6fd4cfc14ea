/* Diagnostics with a place. Up to 20 are shown; the run continues to find more and then exits with status 1. */
#ifndef SUPPORT_DIAGNOSTICS_H
#define SUPPORT_DIAGNOSTICS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct place {
    const char *file; /* as the user gave it; or an option, or the program */
    int line, column; /* from 1; line 0: no line */
} place;

typedef struct diagnostics {
    FILE *out; /* stderr */
    int count;
    bool has_usage; /* an option's value was wrong: the exit status is EXIT_BAD_USAGE */
} diagnostics;

enum { DIAGNOSTICS_SHOWN = 20 };

/* The program's exit status. 3: a mistake in kiln or in a family. */
enum { EXIT_BAD_INPUT = 1, EXIT_BAD_USAGE = 2, EXIT_BAD_KILN = 3, EXIT_DIFFERENT = 4 };

/* "file:line:column: error: text", or "file: error: text" */
__attribute__((format(printf, 3, 4))) void diagnose(diagnostics *d, place at, const char *format, ...);

/* "file:line:column: warning: text"; not a failure. */
__attribute__((format(printf, 3, 4))) void warn(diagnostics *d, place at, const char *format, ...);

/* Whether one more diagnostic would be shown; if not, callers can skip looking for a suggestion. */
bool diagnostics_show_more(const diagnostics *d);

/* Prints how many were not shown; true if there were none at all. */
bool diagnostics_finish(diagnostics *d);

/* A mistake of a family's author: prints "kiln: error: ..." and exits with status 3. */
__attribute__((format(printf, 1, 2), noreturn)) void family_error(const char *format, ...);

/* Makes family errors of this thread jump silently; null, the initial state: they end the generator. */
void family_errors_jump_to(jmp_buf *where);

bool family_errors_are_silent(void);

/* A contradiction inside kiln: prints "kiln: internal error: ..." and exits with status 3. */
__attribute__((format(printf, 1, 2), noreturn)) void internal_error(const char *format, ...);

/* The candidate (words separated by single spaces) with the smallest edit distance to `word`, or null if none is near.
 * */
const char *nearest_word(const char *word, const char *candidates, char *buffer, size_t buffer_bytes);

#endif
