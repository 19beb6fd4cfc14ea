#include "line_info.h"

#include <string.h>

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* Behind the directive that a line begins with; null: another. */
static const char *behind(const char *line, const char *directive)
{
    const size_t length = strlen(directive);
    line = skip_blanks(line);
    return strncmp(line, directive, length) == 0 && strchr(" \t", line[length]) && line[length]
               ? line + length
               : NULL;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

const char *line_info_absolute_path(arena *a, const ptx_file *file, place *at)
{
    *at = (place){file->path, 1, 1};
    for (const char *line = file->ptx; *line; line = next_line(line), at->line++) {
        const char *number = behind(line, ".file"), *path = number ? strchr(number, '"') : NULL;
        if (!path || path > line + strcspn(line, "\n") || path[1] != '/')
            continue;
        at->column = (int)(path - line) + 1;
        return arena_string(a, path + 1, strcspn(path + 1, "\"\n"));
    }
    return NULL;
}

void line_info_leave_out(arena *a, ptx_file *file)
{
    text kept = text_new(a);
    bool in_section = false;
    for (const char *line = file->ptx; *line; line = next_line(line)) {
        const char *section = behind(line, ".section");
        in_section =
            in_section || (section && strncmp(skip_blanks(section), ".debug", strlen(".debug")) == 0);
        if (in_section || behind(line, ".loc") || behind(line, ".file"))
            text_add(&kept, "\n");
        else
            text_add_bytes(&kept, line, (size_t)(next_line(line) - line));
        in_section = in_section && *skip_blanks(line) != '}';
    }
    file->ptx = kept.data;
    file->bytes = kept.length;
}
