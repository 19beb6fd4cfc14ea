#include "line_info.h"

#include <string.h>

static const char blanks[] = " \t\r\n";
static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.%";

/* Skips a comment, a string, a name, or one character. */
static const char *skip_token(const char *s)
{
    const char *end = NULL;
    if (strncmp(s, "//", 2) == 0)
        return s + strcspn(s, "\n");
    if (strncmp(s, "/*", 2) == 0)
        end = strstr(s + 2, "*/");
    else if (*s == '"')
        end = strchr(s + 1, '"');
    if (end)
        return end + (*s == '"' ? 1 : 2);
    const size_t length = strspn(s, name_characters);
    return s + (length ? length : 1);
}

/* The token after blanks and comments; empty at the end of the text. */
static const char *next_token(const char *s)
{
    for (;;) {
        s += strspn(s, blanks);
        if (strncmp(s, "//", 2) != 0 && strncmp(s, "/*", 2) != 0)
            return s;
        s = skip_token(s);
    }
}

static bool is(const char *s, const char *word)
{
    const size_t length = strlen(word);
    return strncmp(s, word, length) == 0 && strspn(s, name_characters) == length;
}

static const char *skip_numbers(const char *s)
{
    for (const char *t = next_token(s); *t >= '0' && *t <= '9'; t = next_token(s))
        s = skip_token(t);
    return s;
}

/* ", function_name $L__info_string0 + 4, inlined_at 1 2 3" */
static const char *skip_attributes(const char *s)
{
    for (const char *t = next_token(s); *t == ','; t = next_token(s)) {
        const char *word = next_token(t + 1);
        if (!is(word, "function_name") && !is(word, "inlined_at"))
            break;
        s = skip_token(word);
        if (is(word, "function_name")) {
            s = skip_token(next_token(s));
            if (*next_token(s) == '+')
                s = next_token(s) + 1;
        }
        s = skip_numbers(s);
    }
    return s;
}

/* Skips a statement of line information that begins here (PTX ISA, debugging directives); null: there is none. */
static const char *skip_statement(const char *s)
{
    if (is(s, ".loc"))
        return skip_attributes(skip_numbers(skip_token(s)));
    if (is(s, ".file")) { /* a number, the path, and possibly ", time, size" */
        s = skip_token(next_token(skip_numbers(skip_token(s))));
        for (const char *t = next_token(s); *t == ','; t = next_token(s))
            s = skip_numbers(t + 1);
        return s;
    }
    if (is(s, ".section") && strncmp(next_token(skip_token(s)), ".debug", strlen(".debug")) == 0) {
        while (*s && *s != '}')
            s = skip_token(s);
        return s + (*s == '}');
    }
    return NULL;
}

const char *line_info_absolute_path(arena *a, const ptx_file *file, place *at)
{
    const char *line_start = file->ptx;
    *at = (place){file->path, 1, 1};
    for (const char *s = file->ptx; *s; s = skip_token(s)) {
        const char *path = is(s, ".file") ? next_token(skip_numbers(skip_token(s))) : "";
        if (*path != '"' || path[1] != '/')
            continue;
        for (const char *c = file->ptx; c < path; c++)
            if (*c == '\n') {
                at->line++;
                line_start = c + 1;
            }
        at->column = (int)(path - line_start) + 1;
        return arena_string(a, path + 1, strcspn(path + 1, "\"\n"));
    }
    return NULL;
}

void line_info_leave_out(arena *a, ptx_file *file)
{
    text kept = text_new(a);
    for (const char *s = file->ptx, *end; *s; s = end) {
        const char *behind = skip_statement(s);
        end = behind ? behind : skip_token(s);
        if (!behind)
            text_add_bytes(&kept, s, (size_t)(end - s));
        for (; behind && s < end; s++)
            if (*s == '\n')
                text_add(&kept, "\n");
    }
    file->ptx = kept.data;
    file->bytes = kept.length;
}
