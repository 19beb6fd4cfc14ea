/* Pieces of C as text: literals, comments, expressions, prototypes. */
#include "c_text.h"

#include <string.h>

const char *upper_case(arena *a, const char *s)
{
    char *upper = arena_string(a, s, strlen(s));
    for (char *c = upper; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    return upper;
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */

/* A tab needs no escape; PTX has many. A trigraph begins with two question marks. */
static bool stands_as_it_is(const char *s, size_t i)
{
    const unsigned char c = (unsigned char)s[i];
    return (c >= 0x20 || c == '\t') && c <= 0x7e && c != '"' && c != '\\' &&
           !(c == '?' && i > 0 && s[i - 1] == '?');
}

void c_add_escaped(text *out, const char *s, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t run = i;
        while (run < length && stands_as_it_is(s, run))
            run++;
        text_add_bytes(out, s + i, run - i);
        if ((i = run) == length)
            return;
        const unsigned char c = (unsigned char)s[i];
        if (c == '\n')
            text_add(out, "\\n");
        else if (c == '"' || c == '\\' || c == '?')
            text_printf(out, "\\%c", c);
        else
            text_printf(out, "\\%o%o%o", c >> 6u, (c >> 3u) & 7u, c & 7u);
    }
}

void c_add_literal_lines(text *out, const char *s)
{
    while (*s) {
        const size_t length = strcspn(s, "\n");
        const size_t with_newline = length + (s[length] == '\n');
        text_add(out, "\n\"");
        c_add_escaped(out, s, with_newline);
        text_add(out, "\"");
        s += with_newline;
    }
}

void c_add_literal_bytes(text *out, const char *bytes, size_t count)
{
    enum { PER_LINE = 64 };
    for (size_t i = 0; i < count; i += PER_LINE) {
        text_add(out, "\n\"");
        c_add_escaped(out, bytes + i, count - i < PER_LINE ? count - i : PER_LINE);
        text_add(out, "\"");
    }
}

/* ---- comments ---------------------------------------------------------------------------------------------------- */

/* The length that fits into `room` columns: up to the last space, or the whole first word if it is longer. */
static size_t fitting(const char *line, size_t length, size_t room)
{
    if (length <= room)
        return length;
    size_t at = room;
    while (at > 0 && line[at] != ' ')
        at--;
    if (at > 0)
        return at;
    const char *space = memchr(line, ' ', length);
    return space ? (size_t)(space - line) : length;
}

static void start_comment_line(text *out, int column)
{
    text_printf(out, "\n%*s *", column, "");
}

/* Adds a comment's text, so that no comment begins or ends in it. */
static void add_comment_text(text *out, const char *s, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const bool is_mark = i > 0 && ((s[i - 1] == '*' && s[i] == '/') || (s[i - 1] == '/' && s[i] == '*'));
        if (is_mark)
            text_add(out, " ");
        text_add_bytes(out, &s[i], 1);
    }
}

void c_add_comment(text *out, int column, const char *body)
{
    const size_t room = (size_t)(C_COLUMNS - column - 6); /* minus three characters at either end */
    text_add(out, "/*");
    while (*body) {
        const size_t length = strcspn(body, "\n");
        const size_t now = fitting(body, length, room);
        if (now > 0)
            text_add(out, " ");
        add_comment_text(out, body, now);
        body += now;
        if (*body && body[1]) /* a trailing newline starts no line */
            start_comment_line(out, column);
        body += *body != '\0';
    }
    text_add(out, " */");
}

/* Like fitting, but breaks after a semicolon outside braces if one fits. */
static size_t fitting_statements(const char *line, size_t room)
{
    size_t best = 0;
    int depth = 0;
    for (size_t i = 0; line[i] && i < room; i++) {
        depth += (line[i] == '{') - (line[i] == '}');
        if (line[i] == ';' && depth == 0 && (line[i + 1] == ' ' || !line[i + 1]))
            best = i + 1;
    }
    return best ? best : fitting(line, strlen(line), room);
}

void c_add_statements(text *out, const char *indent, const char *statements)
{
    for (const char *s = statements, *further = ""; *s;) {
        const size_t length = fitting_statements(s, (size_t)C_COLUMNS - strlen(indent) - strlen(further));
        text_printf(out, "%s%s%.*s%s", indent, further, (int)length, s, s[length] ? "\n" : "");
        further = s[length - 1] == ';' ? "" : "    ";
        s += length + (s[length] == ' ');
    }
}

/* ---- functions and values ---------------------------------------------------------------------------------------- */

/* The length of a list's next piece, including its ", ", "&& " or "|| ". Only separators inside at most
 * `deepest` parentheses count. */
static size_t piece_length(const char *list, int deepest)
{
    int depth = 0;
    size_t i = 0;
    for (; list[i]; i++) {
        depth += (list[i] == '(') - (list[i] == ')');
        const bool ends_operator =
            i > 1 && list[i - 2] == list[i - 1] && (list[i - 1] == '&' || list[i - 1] == '|');
        if (list[i] == ' ' && i > 0 && depth <= deepest && (list[i - 1] == ',' || ends_operator))
            return i + 1;
    }
    return i;
}

void c_add_wrapped(text *out, const char *head, const char *list, const char *tail)
{
    const size_t start = strlen(head), tail_length = strcspn(tail, "\n");
    size_t column = start;
    text_add(out, head);
    while (*list) {
        size_t length = piece_length(list, 0);
        for (int deepest = 1; deepest < 4 && start + length + tail_length > C_COLUMNS; deepest++)
            length = piece_length(list, deepest);
        const size_t shown = list[length] ? length - 1 : length + tail_length;
        if (column > start && column + shown > C_COLUMNS) {
            out->length--; /* the space at the line's end */
            text_printf(out, "\n%*s", (int)start, "");
            column = start;
        }
        text_add_bytes(out, list, length);
        column += length;
        list += length;
    }
    text_add(out, tail);
}

void c_add_text_constant(text *out, int indent, const char *name, const char *s)
{
    const size_t start = out->length;
    text_printf(out, "%*sstatic const char %s[] = \"", indent, "", name);
    const size_t head = out->length - start;
    text value = text_new(out->arena);
    c_add_escaped(&value, s, strlen(s));
    if (head + value.length + strlen("\";") > C_COLUMNS) {
        out->length -= strlen(" \"");
        text_printf(out, "\n%*s\"", indent + 4, "");
    }
    text_printf(out, "%s\";\n", value.data);
}

void c_add_prototype(text *out, const char *function, const char *args_struct, const char *tail)
{
    arena *a = out->arena;
    c_add_wrapped(out, arena_format(a, "kiln_status %s(", function),
                  arena_format(a, "kiln_loader *loader, CUstream stream, const %s *args", args_struct), tail);
}

/* The queries, and their arguments after loader and args: in a prototype, in a call, and in the example. */
static const struct query {
    const char *name, *params, *values, *example;
} queries[] = {
    {"pick", "const kiln_kernel **kernel", "kernel", ", &kernel"},
    {"candidates", "kiln_candidate *list, size_t capacity, size_t *count", "list, capacity, count",
     ", list, 8, &count"},
    {"workspace", "uint64_t *workspace_bytes, uint64_t *counter_bytes", "workspace_bytes, counter_bytes",
     ", &bytes, &counters"},
    {"workspace_max", "uint64_t *workspace_bytes, uint64_t *counter_bytes", "workspace_bytes, counter_bytes",
     ", &bytes, &counters"},
};

static const struct query *find_query(const char *name)
{
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        if (strcmp(queries[i].name, name) == 0)
            return &queries[i];
    internal_error("no query %s", name);
}

void c_add_query_prototype(text *out, const bundle_family *f, const char *query, const char *tail)
{
    arena *a = out->arena;
    c_add_wrapped(
        out, arena_format(a, "kiln_status %s_%s(", f->function, query),
        arena_format(a, "kiln_loader *loader, const %s *args, %s", f->args_struct, find_query(query)->params),
        tail);
}

const char *c_in_both(arena *a, const char *c, const char *cpp)
{
    const bool fits = strlen(c) + strlen(cpp) + strlen("/* C:   C++:  */") <= C_COLUMNS;
    return arena_format(a, "C: %s%sC++: %s", c, fits ? "  " : "\n", cpp);
}

const char *c_example_call(arena *a, const char *function, const char *before, const char *after)
{
    return c_in_both(a, arena_format(a, "%s(%s&args%s);", function, before, after),
                     arena_format(a, "%s(%sargs%s);", function, before, after));
}

void c_add_call_comment(text *out, const char *what, const char *function, const char *before,
                        const char *after)
{
    const char *call = c_example_call(out->arena, function, before, after);
    const bool fits = strlen(what) + strlen(call) + strlen("/*   */") <= C_COLUMNS;
    c_add_comment(out, 0, arena_format(out->arena, "%s%s%s", what, fits ? " " : "\n", call));
    text_add(out, "\n");
}

void c_add_query_comment(text *out, const bundle_family *f, const char *query, const char *what)
{
    c_add_call_comment(out, what, arena_format(out->arena, "%s_%s", f->function, query), "&loader, ",
                       find_query(query)->example);
}

void c_add_query_macros(text *out)
{
    arena *a = out->arena;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        text_printf(out,
                    "#define KILN_%s(function, args_type) \\\n"
                    "    inline kiln_status function(kiln_loader *loader, const args_type &args, %s) \\\n"
                    "    { \\\n"
                    "        return function(loader, &args, %s); \\\n"
                    "    }\n",
                    upper_case(a, queries[i].name), queries[i].params, queries[i].values);
}

void c_add_query_undefs(text *out)
{
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        text_printf(out, "#undef KILN_%s\n", upper_case(out->arena, queries[i].name));
}

void c_add_query_overload(text *out, const bundle_family *f, const char *query)
{
    text_printf(out, "KILN_%s(%s_%s, %s)\n", upper_case(out->arena, find_query(query)->name), f->function,
                query, f->args_struct);
}

const char *c_expression(arena *a, const expression *e, const char *prefix)
{
    return c_expression_on(a, e, prefix, "loader->device.");
}

const char *c_expression_on(arena *a, const expression *e, const char *prefix, const char *device_prefix)
{
    uint64_t value;
    if (expression_is_constant(e, &value) && value <= INT32_MAX) /* a lone literal needs no type */
        return arena_format(a, "%u", (unsigned)value);
    text printed = text_new(a);
    expression_print_c(&printed, e, prefix, device_prefix);
    return printed.data;
}

const char *c_enumerator(arena *a, const bundle_family *f, const kiln_param *param, const char *word)
{
    return arena_format(a, "%s%s_%s", f->enum_prefix, upper_case(a, param->name), upper_case(a, word));
}

const char *c_value(arena *a, const bundle_family *f, const kiln_param *param, const char *value)
{
    return param->type == KILN_PARAM_WORD ? c_enumerator(a, f, param, value) : value;
}

void c_add_license(text *out, const char *license)
{
    if (license)
        text_printf(out, "/* SPDX-License-Identifier: %s */\n", license);
}
