/* NAME.d: what the outputs were made from, for make, ninja and CMake. */
#include "write.h"

#include <string.h>

/* A path as make reads it: spaces and '#' are escaped with a backslash, '$' by doubling. */
static void add_path(text *out, const char *path)
{
    for (const char *c = path; *c; c++) {
        if (*c == ' ' || *c == '#')
            text_add(out, "\\");
        else if (*c == '$')
            text_add(out, "$");
        text_add_bytes(out, c, 1);
    }
}

static void add_paths(text *out, const char *const *paths, size_t count, const char *before_each)
{
    for (size_t i = 0; i < count; i++) {
        text_add(out, i > 0 || before_each[0] == ' ' ? " " : "");
        text_add(out, before_each[0] == ' ' ? "\\\n  " : "");
        add_path(out, paths[i]);
    }
}

void write_depfile(file_output *f, const char *const *outputs, size_t output_count, const char *const *inputs,
                   size_t input_count)
{
    add_paths(&f->text, outputs, output_count, "");
    text_add(&f->text, ":");
    add_paths(&f->text, inputs, input_count, " ");
    text_add(&f->text, "\n");
    file_flush(f);
}

/* Outputs, a colon, then one input per line; each line except the last ends in a backslash. */
bool is_depfile(const char *front, const char *mark)
{
    (void)mark;
    const char *end = strchr(front, '\n');
    if (!end || end == front)
        return false;
    if (end[-1] == ':')
        return !end[1];
    return end - front > 3 && strncmp(end - 3, ": \\\n  ", strlen(": \\\n  ")) == 0;
}
