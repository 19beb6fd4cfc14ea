/* See view.h. The text may be any bytes, so all reads are bounded and nothing is assumed. */
#include "view.h"

#include <stdio.h>
#include <string.h>

unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '%' || c == '.' || c == '$';
}

span view_word(const uint8_t *data, size_t end, size_t at)
{
    while (at < end && !is_word(data[at]))
        at++;
    span s = {at, 0};
    while (at + s.size < end &&
           (is_word(data[at + s.size]) || (data[at] != '%' && s.size && data[at + s.size] == ':' &&
                                           at + s.size + 1 < end && data[at + s.size + 1] == ':')))
        s.size += data[at + s.size] == ':' ? 2 : 1;
    if (at + s.size > end)
        s.size = end - at;
    return s;
}

static bool is(const uint8_t *data, span s, const char *text)
{
    return strlen(text) == s.size && memcmp(data + s.at, text, s.size) == 0;
}

static char class_of_type(const uint8_t *data, span type)
{
    static const struct {
        const char *words;
        char class;
    } types[] = {{".pred ", 'p'},
                 {".b16 .u16 .s16 .f16 .bf16 ", 'h'},
                 {".b32 .u32 .s32 .f16x2 .bf16x2 ", 'r'},
                 {".f32 ", 'f'},
                 {".b64 .u64 .s64 ", 'd'},
                 {".f64 ", 'F'},
                 {".b128 ", 'q'}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (const char *at = types[i].words; *at; at += strcspn(at, " ") + 1)
            if (strcspn(at, " ") == type.size && memcmp(at, data + type.at, type.size) == 0)
                return types[i].class;
    return 0;
}

static void add_name(view *v, span text, char class, unsigned count)
{
    if (v->name_count < MOST_NAMES && text.size && text.size < 48 && class)
        v->names[v->name_count++] = (name){text, class, count};
}

static unsigned number_at(const view *v, size_t at, size_t end)
{
    unsigned n = 0;
    for (; at < end && v->data[at] >= '0' && v->data[at] <= '9' && n < 100000; at++)
        n = 10 * n + (unsigned)(v->data[at] - '0');
    return n;
}

/* .reg .u32 %a<4>, b;   .shared .align 16 .b8 s[64];   .param .u64 out */
static void read_declaration(view *v, size_t at, size_t end)
{
    static const struct {
        const char *word;
        char class;
    } spaces[] = {{".shared", 'S'}, {".local", 'L'}, {".global", 'G'}, {".const", 'C'}, {".param", 'P'}};
    span first = view_word(v->data, end, at);
    bool is_register = is(v->data, first, ".reg");
    char class = 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (is(v->data, first, spaces[i].word))
            class = spaces[i].class;
    if (!is_register && !class)
        return;
    for (span s = view_word(v->data, end, first.at + first.size); s.size;
         s = view_word(v->data, end, s.at + s.size)) {
        uint8_t c = v->data[s.at], after = s.at + s.size < end ? v->data[s.at + s.size] : 0;
        if (c == '.' && is_register && class_of_type(v->data, s))
            class = class_of_type(v->data, s);
        if (c == '.' || (c >= '0' && c <= '9'))
            continue;
        add_name(v, s, class, after == '<' ? number_at(v, s.at + s.size + 1, end) : 0);
        if (!is_register)
            return;
    }
}

/* Returns the next place of a character in `stop`, or the end. */
static size_t skip_to(const view *v, size_t at, const char *stop)
{
    while (at < v->bytes && (!v->data[at] || !strchr(stop, v->data[at])))
        at++;
    return at;
}

static size_t read_directive(view *v, size_t at)
{
    span word = view_word(v->data, v->bytes, at);
    static const char *const lines[] = {".version", ".target", ".address_size", ".loc", ".file", ".pragma"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (is(v->data, word, lines[i]))
            return skip_to(v, at, "\n;");
    size_t end = skip_to(v, at, ";{");
    bool is_function = end < v->bytes && v->data[end] == '{' && memchr(v->data + at, '(', end - at);
    if (!is_function) {
        end = skip_to(v, at, ";");
        read_declaration(v, at, end);
        return end;
    }
    for (size_t from = at; from < end; from++)
        if (v->data[from] == '.' && end - from > 6 && memcmp(v->data + from, ".param", 6) == 0)
            read_declaration(v, from, end);
    return end;
}

static size_t read_statement(view *v, size_t at)
{
    span word = view_word(v->data, v->bytes, at);
    size_t after = word.at + word.size;
    while (after < v->bytes && is_space(v->data[after]))
        after++;
    if (word.at == at && after < v->bytes && v->data[after] == ':') {
        add_name(v, word, ':', 0);
        return after + 1;
    }
    size_t end = skip_to(v, at, ";");
    if (end < v->bytes && v->statement_count < MOST_STATEMENTS)
        v->statements[v->statement_count++] = (span){at, end + 1 - at};
    return end + 1;
}

void view_text(view *v, const uint8_t *data, size_t bytes)
{
    v->data = data;
    v->bytes = bytes;
    v->statement_count = v->name_count = 0;
    for (size_t at = 0; at < bytes;) {
        uint8_t c = data[at];
        if (is_space(c) || c == ';' || c == '{' || c == '}')
            at++;
        else if (c == '/' && at + 1 < bytes && data[at + 1] == '/')
            at = skip_to(v, at, "\n");
        else
            at = c == '.' ? read_directive(v, at) : read_statement(v, at);
    }
}

char view_class(const view *v, span word)
{
    size_t digits = 0;
    while (digits < word.size && v->data[word.at + word.size - 1 - digits] >= '0' &&
           v->data[word.at + word.size - 1 - digits] <= '9')
        digits++;
    for (unsigned i = 0; i < v->name_count; i++) {
        const name *n = &v->names[i];
        size_t size = n->text.size;
        bool fits = n->count ? size < word.size && word.size - size <= digits : size == word.size;
        if (fits && memcmp(v->data + n->text.at, v->data + word.at, size) == 0)
            return n->class;
    }
    return 0;
}

size_t view_random_name(const view *v, char class, unsigned *seed, char out[64])
{
    const name *found = NULL;
    unsigned seen = 0;
    for (unsigned i = 0; i < v->name_count; i++)
        if (v->names[i].class == class && next_random(seed) % ++seen == 0)
            found = &v->names[i];
    if (!found)
        return 0;
    int size = snprintf(out, 64, "%.*s", (int)found->text.size, (const char *)v->data + found->text.at);
    if (found->count)
        size += snprintf(out + size, 64 - (size_t)size, "%u", next_random(seed) % found->count);
    return (size_t)size;
}
