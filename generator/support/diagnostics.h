/* Diagnostics with a place. Up to 20 are shown; the run goes on to find more and then exits with status 1. */
#ifndef SUPPORT_DIAGNOSTICS_H
#define SUPPORT_DIAGNOSTICS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct place {
    const char *file; /* as the user named it; or an option, or the program */
    int line, column; /* from 1; line 0: no place in it */
} place;

typedef struct diagnostics {
    FILE *out; /* stderr */
    int count;
    bool has_usage; /* an option's value was wrong: the exit status is EXIT_BAD_USAGE */
} diagnostics;

enum { DIAGNOSTICS_SHOWN = 20 };

/* What the program's exit status means. */
enum { EXIT_BAD_INPUT = 1, EXIT_BAD_USAGE = 2, EXIT_BAD_KILN = 3 /* as it was built */, EXIT_DIFFERENT = 4 };

/* "file:line:column: error: text", or "file: error: text" */
__attribute__((format(printf, 3, 4))) void diagnose(diagnostics *d, place at, const char *format, ...);

/* "file:line:column: warning: text"; nothing fails. */
__attribute__((format(printf, 3, 4))) void warn(diagnostics *d, place at, const char *format, ...);

/* Whether one more diagnostic would be shown; if not, callers can skip looking for a suggestion. */
bool diagnostics_show_more(const diagnostics *d);

/* Says how many were not shown; true when there was none at all. */
bool diagnostics_finish(diagnostics *d);

/* A mistake of a family's author: prints "kiln: error: ..." and exits with status 3. */
__attribute__((format(printf, 1, 2), noreturn)) void family_error(const char *format, ...);

/* Family errors of this thread then say nothing and jump; null: they end the generator, as they do at first. */
void family_errors_jump_to(jmp_buf *where);
bool family_errors_are_silent(void);

/* A contradiction inside kiln: prints "kiln: internal error: ..." and exits with status 3. */
__attribute__((format(printf, 1, 2), noreturn)) void internal_error(const char *format, ...);

/* The candidate (words separated by single spaces) with the least edit distance to `word`, or null when none is near. */
const char *nearest_word(const char *word, const char *candidates, char *buffer, size_t buffer_bytes);

#endif
