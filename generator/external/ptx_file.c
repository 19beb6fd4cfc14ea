/* Scans PTX text (PTX ISA, "Syntax" and "Directives"): reads the text outside of bodies, and skips bodies. */
#include "ptx_file.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/builder.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

enum {
    LARGEST_PTX_BYTES = 64 * 1024 * 1024,
    OLDEST_SM = 10,
    NEWEST_VERSION = 91,
    LARGEST_PARAM_BYTES = 32764, /* all parameters of a kernel together */
    LARGEST_ALIGNMENT = 16384
};

/* Functions that the driver itself defines. */
static const char driver_functions[] = "vprintf malloc free __assertfail";

typedef struct scanner {
    arena *arena;
    diagnostics *d;
    ptx_file *file;
    const char *at, *line_start;
    int line;
    const char *token; /* a word or one other character */
    size_t length;     /* of the token; 0 at the end */
    place token_at;
    name_table dynamic;       /* names of .extern .shared arrays */
    bool in_function_dynamic; /* a .func uses one of them */
    bool has_version, has_target, failed;
} scanner;

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool is_word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

static void step(scanner *s)
{
    if (*s->at == '\n') {
        s->line++;
        s->line_start = s->at + 1;
    }
    s->at++;
}

static void skip_until(scanner *s, const char *end)
{
    while (*s->at && strncmp(s->at, end, strlen(end)) != 0)
        step(s);
}

static void skip_blanks(scanner *s)
{
    while (*s->at) {
        if (*s->at == ' ' || (*s->at >= '\t' && *s->at <= '\r')) {
            step(s);
        } else if (strncmp(s->at, "//", 2) == 0) {
            skip_until(s, "\n");
        } else if (strncmp(s->at, "/*", 2) == 0) {
            s->at += 2; /* the opening star cannot close the comment */
            skip_until(s, "*/");
            s->at += *s->at ? 2 : 0;
        } else {
            return;
        }
    }
}

/* Skips strings: they contain no names, and a backslash does not escape the quote. */
static void skip_strings(scanner *s)
{
    for (skip_blanks(s); *s->at == '"'; skip_blanks(s)) {
        step(s);
        skip_until(s, "\"");
        if (*s->at)
            step(s);
    }
}

/* A dot begins a directive, also after a blank, or is within a number. */
static size_t token_length(const char *token)
{
    const bool has_dots = token[0] >= '0' && token[0] <= '9';
    size_t length = token[0] != '\0';
    if (!is_word_character(token[0]) && token[0] != '.')
        return length;
    while (is_word_character(token[length]) || (has_dots && token[length] == '.'))
        length++;
    return length;
}

static void next(scanner *s)
{
    skip_strings(s);
    s->token_at = (place){s->file->path, s->line, (int)(s->at - s->line_start) + 1};
    s->token = s->at;
    s->length = token_length(s->at);
    s->at += s->length;
}

static bool is(const scanner *s, const char *token)
{
    return strncmp(s->token, token, s->length) == 0 && token[s->length] == '\0';
}

static bool is_number(const scanner *s)
{
    return s->length > 0 && s->token[0] >= '0' && s->token[0] <= '9';
}

/* A name that the file defines, not a directive or a number. */
static bool is_name(const scanner *s)
{
    return s->length > 0 && is_word_character(s->token[0]) && !is_number(s);
}

static const char *copy(const scanner *s)
{
    return arena_string(s->arena, s->token, s->length);
}

static bool accept(scanner *s, const char *token)
{
    const bool found = is(s, token);
    if (found)
        next(s);
    return found;
}

static void fail(scanner *s, const char *expected)
{
    const char *found =
        s->length ? arena_format(s->arena, "'%s'", quote_text(s->arena, copy(s))) : "the end of the file";
    if (!s->failed)
        diagnose(s->d, s->token_at, message_ptx_syntax, expected, found);
    s->failed = true;
}

static bool expect(scanner *s, const char *token)
{
    if (s->failed || accept(s, token))
        return !s->failed;
    fail(s, arena_format(s->arena, "'%s'", token));
    return false;
}

/* 24, 0x18, 030 or 0b11000; a U may follow. */
static uint32_t take_number(scanner *s)
{
    const bool is_binary = strncmp(s->token, "0b", 2) == 0 || strncmp(s->token, "0B", 2) == 0;
    char *end;
    const unsigned long value = strtoul(s->token + (is_binary ? 2 : 0), &end, is_binary ? 2 : 0);
    end += *end == 'U';
    if (!is_number(s) || end != s->token + s->length || value > UINT32_MAX) {
        fail(s, "a number");
        return 0;
    }
    next(s);
    return (uint32_t)value;
}

static uint32_t take_alignment(scanner *s)
{
    const scanner before = *s;
    const uint32_t alignment = take_number(s);
    if (!s->failed &&
        (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > LARGEST_ALIGNMENT)) {
        *s = before;
        fail(s, arena_format(s->arena, "a power of two up to %d", LARGEST_ALIGNMENT));
    }
    return alignment;
}

static const char *take_name(scanner *s)
{
    const char *name = copy(s);
    if (is_name(s))
        next(s);
    else
        fail(s, "a name");
    return name;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static void read_version(scanner *s)
{
    const char *word = copy(s), *dot = strchr(word, '.');
    const unsigned long major = strtoul(word, NULL, 10), minor = dot ? strtoul(dot + 1, NULL, 10) : 0;
    const unsigned long version = 10 * major + minor;
    if (!dot || major == 0 || major > 99 || minor > 9 || version > NEWEST_VERSION) {
        fail(s, arena_format(s->arena, "a .version up to %d.%d, whose first driver is known",
                             NEWEST_VERSION / 10, NEWEST_VERSION % 10));
        return;
    }
    s->has_version = true;
    s->file->version = (uint16_t)version;
    /* every driver that supports sm_75 accepts versions older than the builder's */
    s->file->min_driver = ptx_min_driver(version < 63 ? 63 : (uint16_t)version);
    if (s->file->min_driver == 0)
        fail(s, "a .version that there is");
    next(s);
}

static void read_target(scanner *s)
{
    char *end = NULL;
    const char *word = copy(s);
    const bool is_sm = strncmp(word, "sm_", 3) == 0;
    const unsigned long sm = is_sm ? strtoul(word + 3, &end, 10) : 0;
    if (sm < OLDEST_SM || sm > 999 || (*end && (end[1] || !strchr("af", *end)))) {
        fail(s, "a target such as sm_80");
        return;
    }
    const target found = {(uint16_t)sm, !*end ? TARGET_BASE : *end == 'a' ? TARGET_ARCH : TARGET_FAMILY};
    if (!s->has_target || target_compare(s->file->says, found) < 0) /* the highest of several counts */
        s->file->says = s->file->made_for = found;
    if (s->file->says.sm == 101)
        s->file->made_for.sm = 110; /* its name since CUDA 13 */
    s->has_target = true;
    for (next(s); accept(s, ","); next(s)) /* texmode_unified, debug, ... */
        if (is(s, "debug"))
            s->file->debug_at = s->token_at;
}

static void read_address_size(scanner *s)
{
    if (!is(s, "64"))
        fail(s, "64-bit addresses");
    next(s);
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static bool is_dynamic(const scanner *s)
{
    return names_find(&s->dynamic, s->token, s->length) != NAME_NONE;
}

/* Skips from an opening bracket past its closing one. Returns whether an array of dynamic shared memory is named
 * inside. */
static bool skip_block(scanner *s)
{
    bool has_dynamic = false, was_extern = false;
    int depth = 0;
    do {
        depth += is(s, "{") || is(s, "(");
        depth -= is(s, "}") || is(s, ")");
        has_dynamic = has_dynamic || is_dynamic(s) || (was_extern && is(s, ".shared"));
        was_extern = is(s, ".extern");
        next(s);
    } while (depth > 0 && s->length);
    if (depth > 0)
        fail(s, "a closing bracket");
    return has_dynamic;
}

static void declare_extern(scanner *s, bool is_shared)
{
    const char *name = copy(s);
    if (is_shared) {
        names_add(s->arena, &s->dynamic, name, 0);
    } else if (!words_contain(driver_functions, name)) {
        diagnose(s->d, s->token_at, message_ptx_extern, quote_text(s->arena, name));
        s->failed = true;
    }
}

/* Variables, or a function, whose result, parameters and attributes are in brackets. */
static void read_extern(scanner *s)
{
    bool is_shared = false;
    for (int depth = 0; s->length && !is(s, ";"); next(s)) {
        depth += is(s, "(") || is(s, "[");
        depth -= is(s, ")") || is(s, "]");
        is_shared = is_shared || is(s, ".shared");
        if (depth == 0 && is_name(s))
            declare_extern(s, is_shared);
    }
}

static uint32_t scalar_bytes(const char *type)
{
    static const char sizes[] = "8 16 32 64";
    const size_t digits = strcspn(type, "0123456789");
    const bool is_float = type[0] == 'f' && strcmp(type, "f8") != 0;
    if (digits != 1 || !(strchr("bus", type[0]) || is_float) || !words_contain(sizes, type + 1))
        return 0;
    return (uint32_t)strtoul(type + 1, NULL, 10) / 8;
}

/* .ptr .global .align 16 */
static void read_pointer(scanner *s, ptx_file_param *p)
{
    p->is_pointer = true;
    p->alignment = 0;
    while (is(s, ".global") || is(s, ".const") || is(s, ".local") || is(s, ".shared"))
        next(s);
    if (accept(s, ".align"))
        p->alignment = take_alignment(s);
}

static void read_param(scanner *s, ptx_file_entry *e)
{
    ptx_file_param p = {0};
    uint32_t alignment = 0;
    if (!expect(s, ".param"))
        return;
    if (accept(s, ".align"))
        alignment = take_alignment(s);
    const char *type = copy(s);
    const uint32_t element = type[0] == '.' ? scalar_bytes(type + 1) : 0;
    if (element == 0) {
        fail(s, "a number, a pointer or bytes as parameter");
        return;
    }
    uint64_t bytes = element;
    p.type = type + 1;
    p.alignment = alignment > element ? alignment : element;
    next(s);
    if (accept(s, ".align")) { /* in either order */
        const uint32_t asked = take_alignment(s);
        p.alignment = asked > p.alignment ? asked : p.alignment;
    }
    if (accept(s, ".ptr"))
        read_pointer(s, &p);
    p.name = take_name(s);
    if (accept(s, "[")) {
        p.is_array = true;
        bytes *= take_number(s);
        expect(s, "]");
    }
    if (!s->failed && (bytes == 0 || bytes > LARGEST_PARAM_BYTES))
        fail(s, arena_format(s->arena, "a parameter of 1 to %d bytes", LARGEST_PARAM_BYTES));
    p.bytes = (uint32_t)bytes;
    *(ptx_file_param *)arena_push(s->arena, (void **)&e->params, &e->param_count, &e->param_capacity,
                                  sizeof p) = p;
}

static void read_threads(scanner *s, uint32_t threads[3])
{
    for (int i = 0; i < 3; i++)
        threads[i] = 1;
    for (int i = 0; i < 3; i++) {
        threads[i] = take_number(s);
        if (!accept(s, ","))
            return;
    }
}

/* Ignores a limit that every device already has. */
static void read_most_threads(scanner *s, uint32_t threads[3])
{
    read_threads(s, threads);
    const uint64_t plane = (uint64_t)threads[0] * threads[1];
    if (plane > MOST_THREADS || plane * threads[2] > MOST_THREADS)
        memset(threads, 0, 3 * sizeof *threads);
}

static void skip_statement(scanner *s)
{
    while (s->length && !is(s, ";"))
        next(s);
    next(s);
}

/* .entry name (params) directives { body }; one that ends with a semicolon only declares another, unless the semicolon
 * is a .pragma's. */
static void read_entry(scanner *s)
{
    ptx_file_entry e = {.at = s->token_at};
    e.name = take_name(s);
    if (accept(s, "(") && !accept(s, ")")) {
        do
            read_param(s, &e);
        while (!s->failed && accept(s, ","));
        expect(s, ")");
    }
    while (!s->failed && s->length && !is(s, "{") && !is(s, ";")) {
        if (accept(s, ".reqntid"))
            read_threads(s, e.reqntid);
        else if (accept(s, ".maxntid"))
            read_most_threads(s, e.maxntid);
        else if (is(s, ".pragma"))
            skip_statement(s);
        else
            next(s);
    }
    if (s->failed || accept(s, ";"))
        return;
    if (!is(s, "{")) {
        fail(s, "a body");
        return;
    }
    const ptx_file_entry *same = ptx_file_find(s->file, e.name);
    if (same) {
        diagnose(s->d, e.at, message_ptx_entry_twice, e.name, same->at.line);
        s->failed = true;
        return;
    }
    e.has_dynamic_shared = skip_block(s);
    names_add(s->arena, &s->file->entry_names, e.name, s->file->entry_count);
    *(ptx_file_entry *)arena_push(s->arena, (void **)&s->file->entries, &s->file->entry_count,
                                  &s->file->entry_capacity, sizeof e) = e;
}

static void read_statement(scanner *s)
{
    bool is_function = false;
    while (is(s, ".func") || is(s, ".visible") || is(s, ".weak") || is(s, ".common")) {
        is_function = is_function || is(s, ".func");
        next(s);
    }
    if (accept(s, ".version"))
        read_version(s);
    else if (accept(s, ".target"))
        read_target(s);
    else if (accept(s, ".address_size"))
        read_address_size(s);
    else if (accept(s, ".extern"))
        read_extern(s);
    else if (accept(s, ".entry"))
        read_entry(s);
    else if (is_function)
        while (s->length && !is(s, ";") && !is(s, "{"))
            next(s);
    else if (!is(s, "{"))
        next(s);
    if (!s->failed &&
        is(s, "{")) { /* a body; or an initialiser or debug information, which name what they describe */
        const bool has_dynamic = skip_block(s);
        s->in_function_dynamic = s->in_function_dynamic || (is_function && has_dynamic);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void check_whole(scanner *s)
{
    const place top = {s->file->path, 1, 1};
    if (!s->has_version || !s->has_target)
        diagnose(s->d, top, message_ptx_header, s->has_version ? ".target" : ".version");
    else if (s->file->entry_count == 0)
        diagnose(s->d, top, message_ptx_no_entry);
    else
        return;
    s->failed = true;
}

/* ptxas accepts only ASCII, even in comments. */
static bool is_ascii(const ptx_file *file, size_t bytes, diagnostics *d)
{
    place at = {file->path, 1, 1};
    for (size_t i = 0; i < bytes; i++, at.column++) {
        const unsigned char c = (unsigned char)file->ptx[i];
        if (c >= 0x80 || (c == 0 && i + 1 < bytes)) {
            diagnose(d, at, message_ptx_not_ascii, c);
            return false;
        }
        if (c == '\n')
            at = (place){file->path, at.line + 1, 0};
    }
    return true;
}

ptx_file *ptx_file_read_text(arena *a, const char *path, const char *asked, const char *data, size_t bytes,
                             diagnostics *d)
{
    ptx_file *file = arena_alloc(a, sizeof *file);
    const size_t length = strlen(data); /* NVRTC's PTX ends with a NUL */
    *file = (ptx_file){
        .path = path, .asked = asked, .source = data, .source_bytes = bytes, .ptx = data, .bytes = length};
    if (!is_ascii(file, bytes, d))
        return NULL;
    scanner s = {.arena = a, .d = d, .file = file, .at = data, .line_start = data, .line = 1};
    for (next(&s); s.length && !s.failed;)
        read_statement(&s);
    if (!s.failed)
        check_whole(&s);
    for (size_t i = 0; i < file->entry_count; i++)
        file->entries[i].has_dynamic_shared |= s.in_function_dynamic;
    return s.failed ? NULL : file;
}

ptx_file *ptx_file_read(arena *a, const char *path, const char *asked, place at, diagnostics *d)
{
    text data;
    const char *why;
    if (file_read(a, path, LARGEST_PTX_BYTES, &data, &why))
        return ptx_file_read_text(a, path, asked, data.data, data.length, d);
    const bool is_name = !strpbrk(asked, "./"); /* in the form of --ptx and kiln_add_ptx */
    diagnose(d, at, message_ptx_unreadable, quote_text(a, path), why,
             is_name ? "; if it is a name, --ptx gives its files" : "");
    return NULL;
}

const ptx_file_entry *ptx_file_find(const ptx_file *file, const char *name)
{
    const size_t i = names_find(&file->entry_names, name, strlen(name));
    return i == NAME_NONE ? NULL : &file->entries[i];
}
