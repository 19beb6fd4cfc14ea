/* Diagnostics, errors that end the program, and spelling suggestions. */
#include "diagnostics.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "family_code.h"

__attribute__((format(printf, 4, 0))) static void say(const diagnostics *d, place at, const char *kind,
                                                      const char *format, va_list arguments)
{
    fputs(at.file, d->out);
    if (at.line > 0)
        fprintf(d->out, ":%d:%d", at.line, at.column > 0 ? at.column : 1);
    fprintf(d->out, ": %s: ", kind);
    vfprintf(d->out, format, arguments);
    fputc('\n', d->out);
}

void diagnose(diagnostics *d, place at, const char *format, ...)
{
    if (d->count++ >= DIAGNOSTICS_SHOWN)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(d, at, "error", format, arguments);
    va_end(arguments);
}

void warn(diagnostics *d, place at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(d, at, "warning", format, arguments);
    va_end(arguments);
}

bool diagnostics_show_more(const diagnostics *d)
{
    return d->count < DIAGNOSTICS_SHOWN;
}

bool diagnostics_finish(diagnostics *d)
{
    int hidden = d->count - DIAGNOSTICS_SHOWN;
    if (hidden > 0)
        fprintf(d->out, "kiln: %d more error%s not shown\n", hidden, hidden == 1 ? "" : "s");
    return d->count == 0;
}

__attribute__((format(printf, 2, 0), noreturn)) static void end(const char *kind, const char *format,
                                                                va_list arguments)
{
    fprintf(stderr, "kiln: %s: ", kind);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(EXIT_BAD_KILN);
}

static _Thread_local jmp_buf *errors_jump_to;

void family_errors_jump_to(jmp_buf *where)
{
    errors_jump_to = where;
}

bool family_errors_are_silent(void)
{
    return errors_jump_to != NULL;
}

void family_error(const char *format, ...)
{
    family_code_end();
    if (errors_jump_to)
        longjmp(*errors_jump_to, 1);
    va_list arguments;
    va_start(arguments, format);
    end("error", format, arguments);
}

void internal_error(const char *format, ...)
{
    va_list arguments;
    family_code_end();
    va_start(arguments, format);
    end("internal error", format, arguments);
}

/* ---- nearest word ----------------------------------------------------------------------------------------------- */

enum { LONGEST_WORD = 64 };

static int least(int a, int b, int c)
{
    int d = a < b ? a : b;
    return d < c ? d : c;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        c = (char)(c + ('a' - 'A'));
    return c;
}

static bool same_letter(char a, char b)
{
    return lower(a) == lower(b);
}

/* The number of letters to add, drop, change or swap with a neighbour; case does not count. */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int rows[3][LONGEST_WORD + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            bool same = same_letter(a[i - 1], b[j - 1]);
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same);
            bool swapped =
                i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
            if (swapped && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b_length];
}

const char *nearest_word(const char *word, const char *candidates, char *buffer, size_t buffer_bytes)
{
    size_t length = strlen(word);
    if (length > LONGEST_WORD)
        return NULL;
    int best = (int)(length / 4) + 2; /* one mistake, and one more for every four letters, is near */
    bool found = false;
    for (const char *c = candidates; *c;) {
        size_t c_length = strcspn(c, " ");
        if (c_length > 0 && c_length <= LONGEST_WORD && c_length < buffer_bytes) {
            int distance = edit_distance(word, length, c, c_length);
            if (distance < best && (size_t)distance < c_length && (size_t)distance < length) {
                best = distance;
                memcpy(buffer, c, c_length);
                buffer[c_length] = '\0';
                found = true;
            }
        }
        c += c_length;
        c += *c == ' ';
    }
    return found ? buffer : NULL;
}
