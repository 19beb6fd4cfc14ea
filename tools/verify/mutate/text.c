/* Cuts a PTX text into functions and statements. */
#include "text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ptx_text *text;
    pool *memory;
    size_t at;
    size_t depth; /* nested braces */
    ptx_function *function;
} reader;

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

bool ptx_text_is(const ptx_text *t, text_span span, const char *word)
{
    return span.length == strlen(word) && memcmp(t->bytes + span.at, word, span.length) == 0;
}

bool ptx_text_same(const ptx_text *t, text_span a, text_span b)
{
    return a.length == b.length && memcmp(t->bytes + a.at, t->bytes + b.at, a.length) == 0;
}

size_t ptx_text_line(const ptx_text *t, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += t->bytes[i] == '\n';
    return line;
}

static size_t name_end(const ptx_text *t, size_t at, size_t end)
{
    while (++at < end && is_in_name(t->bytes[at]))
        ;
    return at;
}

/* Skips numbers: neither a number nor a letter in one is a name. */
bool ptx_text_next_name(const ptx_text *t, size_t from, size_t end, text_span *name)
{
    for (size_t at = from; at < end; at++) {
        char c = t->bytes[at];
        if (starts_name(c)) {
            *name = (text_span){at, name_end(t, at, end) - at};
            return true;
        }
        while (isdigit((unsigned char)c) && at + 1 < end && is_in_name(t->bytes[at + 1]))
            at++;
    }
    return false;
}

/* ---- spaces ------------------------------------------------------------------------------------------------------ */

/* Returns the end of a comment or string that begins here; `at` itself if none does. */
static size_t skip_opaque(const ptx_text *t, size_t at)
{
    const char *here = t->bytes + at, *end = NULL;
    if (here[0] == '/' && here[1] == '/')
        end = strchr(here, '\n');
    else if (here[0] == '/' && here[1] == '*')
        end = (end = strstr(here + 2, "*/")) ? end + 2 : NULL;
    else if (here[0] == '"')
        end = (end = strchr(here + 1, '"')) ? end + 1 : NULL;
    else
        return at;
    return end ? (size_t)(end - t->bytes) : t->length;
}

static size_t skip_space(const ptx_text *t, size_t at, size_t end)
{
    while (at < end) {
        size_t behind = t->bytes[at] == '"' ? at : skip_opaque(t, at);
        if (behind == at && !isspace((unsigned char)t->bytes[at]))
            break;
        at = behind == at ? at + 1 : behind;
    }
    return at < end ? at : end;
}

static text_span trim(const ptx_text *t, size_t from, size_t end)
{
    from = skip_space(t, from, end);
    while (end > from && isspace((unsigned char)t->bytes[end - 1]))
        end--;
    return (text_span){from, end - from};
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static bool is_in_opcode(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == ':' || c == '_';
}

/* Returns the opcode's end; modifiers may follow a space. */
static size_t opcode_end(const ptx_text *t, size_t at, size_t end)
{
    while (at < end && is_in_opcode(t->bytes[at]))
        at++;
    size_t next = skip_space(t, at, end);
    return next > at && next < end && t->bytes[next] == '.' ? opcode_end(t, next, end) : at;
}

static void add_operand(const reader *r, ptx_statement *s, size_t from, size_t end)
{
    s->operands = pool_grow(r->memory, s->operands, s->operand_count, sizeof *s->operands);
    s->operands[s->operand_count++] = trim(r->text, from, end);
}

static void read_operands(const reader *r, ptx_statement *s, size_t from, size_t end)
{
    int depth = 0;
    if (skip_space(r->text, from, end) == end)
        return;
    size_t begin = from;
    for (size_t at = from; at < end; at++) {
        char c = r->text->bytes[at];
        depth += (strchr("([{", c) != NULL) - (strchr(")]}", c) != NULL);
        if (c != ',' || depth)
            continue;
        add_operand(r, s, begin, at);
        begin = at + 1;
    }
    add_operand(r, s, begin, end);
}

static void read_instruction(reader *r, size_t from, size_t end)
{
    const ptx_text *t = r->text;
    ptx_function *f = r->function;
    ptx_statement s = {.whole = {from, end + 1 - from}};
    size_t at = from;
    if (t->bytes[at] == '@') {
        at = skip_space(t, at + 1, end);
        at = skip_space(t, at + (t->bytes[at] == '!'), end);
        s.guard = (text_span){from, name_end(t, at, end) - from};
        at = skip_space(t, from + s.guard.length, end);
    }
    s.opcode = (text_span){at, opcode_end(t, at, end) - at};
    if (s.opcode.length == 0)
        return;
    read_operands(r, &s, at + s.opcode.length, end);
    f->statements = pool_grow(r->memory, f->statements, f->statement_count, sizeof *f->statements);
    f->statements[f->statement_count++] = s;
}

/* ---- directives -------------------------------------------------------------------------------------------------- */

/* ".reg .b32 %r<9>, %x;": the type is everything before the first name. */
static void read_registers(reader *r, size_t from, size_t end)
{
    const ptx_text *t = r->text;
    ptx_function *f = r->function;
    text_span type = {0}, name;
    size_t at = from;
    while (at < end && t->bytes[at] == '.') {
        size_t begin = at;
        while (at < end && (t->bytes[at] == '.' || is_in_name(t->bytes[at])))
            at++;
        type = (text_span){begin, at - begin};
        at = skip_space(t, at, end);
    }
    while (ptx_text_next_name(t, at, end, &name)) {
        at = name.at + name.length;
        f->registers = pool_grow(r->memory, f->registers, f->register_count, sizeof *f->registers);
        f->registers[f->register_count++] =
            (ptx_registers){.name = name,
                            .type = type,
                            .count = t->bytes[at] == '<' ? strtoull(t->bytes + at + 1, NULL, 10) : 0};
    }
}

const ptx_registers *ptx_text_register(const ptx_text *t, const ptx_function *f, text_span name)
{
    for (size_t i = 0; i < f->register_count; i++) {
        const ptx_registers *d = &f->registers[i];
        if (d->count == 0 && ptx_text_same(t, d->name, name))
            return d;
        if (d->count == 0 || name.length <= d->name.length ||
            memcmp(t->bytes + name.at, t->bytes + d->name.at, d->name.length) != 0)
            continue;
        size_t digits = d->name.length;
        uint64_t number = 0;
        for (; digits < name.length && isdigit((unsigned char)t->bytes[name.at + digits]); digits++)
            number = 10 * number + (uint64_t)(t->bytes[name.at + digits] - '0');
        if (digits == name.length && number < d->count)
            return d;
    }
    return NULL;
}

static bool begins_with(const ptx_text *t, size_t at, const char *word)
{
    size_t length = strlen(word);
    return strncmp(t->bytes + at, word, length) == 0 && !is_in_name(t->bytes[at + length]);
}

/* Returns whether it ends with its line; all others end with a semicolon. */
static bool is_of_one_line(const ptx_text *t, size_t at)
{
    static const char *const some[] = {".version", ".target", ".address_size", ".file", ".loc", "@@DWARF"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (begins_with(t, at, some[i]))
            return true;
    return false;
}

/* Returns the semicolon of the statement that begins here, or, where a function's body may follow, its brace. */
static size_t statement_end(const ptx_text *t, size_t at, bool stops_at_brace)
{
    int depth = 0;
    while (at < t->length) {
        size_t behind = skip_opaque(t, at);
        char c = t->bytes[at];
        if (behind > at) {
            at = behind;
            continue;
        }
        if ((c == ';' && depth == 0) || (c == '{' && stops_at_brace))
            return at;
        depth += (c == '{') - (c == '}');
        at++;
    }
    return t->length;
}

/* Returns the name before the parameters: f in "(.param .b32 r) f (" and in "f(". */
static text_span function_name(const ptx_text *t, size_t at, size_t end)
{
    text_span name = {at, 0};
    at = skip_space(t, at, end);
    if (at < end && t->bytes[at] == '(') {
        while (at < end && t->bytes[at] != ')')
            at++;
    }
    ptx_text_next_name(t, at, end, &name);
    return name;
}

static bool find_directive(const ptx_text *t, size_t from, size_t end, const char *word, size_t *behind)
{
    for (size_t at = from; at < end; at++) {
        if (t->bytes[at] != '.' || !begins_with(t, at, word))
            continue;
        *behind = at + strlen(word);
        return true;
    }
    return false;
}

static void open_function(reader *r, text_span name, bool is_entry, size_t body)
{
    ptx_text *t = r->text;
    t->functions = pool_grow(r->memory, t->functions, t->function_count, sizeof *t->functions);
    r->function = &t->functions[t->function_count++];
    *r->function = (ptx_function){.name = name, .is_entry = is_entry, .body = {body, 0}};
    r->depth = 1;
}

/* Reads a declaration outside of functions, or a function's head. */
static void read_outside(reader *r)
{
    const ptx_text *t = r->text;
    size_t name, end = statement_end(t, r->at, false), brace = statement_end(t, r->at, true);
    bool is_entry = find_directive(t, r->at, brace, ".entry", &name);
    if ((is_entry || find_directive(t, r->at, brace, ".func", &name)) && brace < end)
        open_function(r, function_name(t, name, brace), is_entry, brace);
    else if (begins_with(t, r->at, ".section"))
        brace = (end = brace + strcspn(t->bytes + brace, "}")) < t->length ? end : t->length;
    else
        brace = end;
    r->at = brace < t->length ? brace + 1 : t->length;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static bool read_label(reader *r)
{
    const ptx_text *t = r->text;
    ptx_function *f = r->function;
    if (!starts_name(t->bytes[r->at]))
        return false;
    size_t end = name_end(t, r->at, t->length), colon = skip_space(t, end, t->length);
    if (colon >= t->length || t->bytes[colon] != ':' || t->bytes[colon + 1] == ':')
        return false;
    f->labels = pool_grow(r->memory, f->labels, f->label_count, sizeof *f->labels);
    f->labels[f->label_count++] = (text_span){r->at, end - r->at};
    r->at = colon + 1;
    return true;
}

static void close_brace(reader *r)
{
    if (--r->depth == 0) {
        r->function->body.length = r->at + 1 - r->function->body.at;
        r->function = NULL;
    }
    r->at++;
}

static void read_inside(reader *r)
{
    const ptx_text *t = r->text;
    char c = t->bytes[r->at];
    if (c == '{' || c == ';') {
        r->depth += c == '{';
        r->at++;
        return;
    }
    if (c == '}') {
        close_brace(r);
        return;
    }
    if (read_label(r))
        return;
    size_t end = statement_end(t, r->at, false);
    if (begins_with(t, r->at, ".reg"))
        read_registers(r, skip_space(t, r->at + 4, end), end);
    else if (c != '.' && end < t->length)
        read_instruction(r, r->at, end);
    r->at = end < t->length ? end + 1 : t->length;
}

void ptx_text_read(ptx_text *t, const char *bytes, size_t length, pool *memory)
{
    *t = (ptx_text){.bytes = bytes, .length = length};
    reader r = {.text = t, .memory = memory};
    while ((r.at = skip_space(t, r.at, length)) < length) {
        if (is_of_one_line(t, r.at))
            r.at += strcspn(bytes + r.at, "\n");
        else if (r.function)
            read_inside(&r);
        else
            read_outside(&r);
    }
}
