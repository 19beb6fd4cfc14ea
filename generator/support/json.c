/* The JSON writer. Calls in the wrong order are an internal error. */
#include "json.h"

#include <inttypes.h>
#include <string.h>

#include "diagnostics.h"
#include "utf8.h"
#include "words.h"

json json_new(text *out)
{
    return (json){.out = out};
}

void json_finish(json *j)
{
    if (j->depth != 0 || j->after_key)
        internal_error("JSON ends inside a value");
    text_add(j->out, "\n");
}

static void new_line(json *j)
{
    text_add(j->out, "\n");
    for (int i = 0; i < j->depth; i++)
        text_add(j->out, "  ");
}

/* Writes the separator before the next value, or its key. */
static void separate(json *j)
{
    if (j->depth == 0)
        return;
    bool first = !j->levels[j->depth - 1].has_content;
    j->levels[j->depth - 1].has_content = true;
    if (!first)
        text_add(j->out, ",");
    if (!j->levels[j->depth - 1].is_inline)
        new_line(j);
    else if (!first)
        text_add(j->out, " ");
}

static void before_value(json *j)
{
    bool in_object = j->depth > 0 && j->levels[j->depth - 1].close == '}';
    if (in_object != j->after_key)
        internal_error(in_object ? "a JSON member without a key" : "a JSON key outside an object");
    if (j->after_key)
        j->after_key = false;
    else
        separate(j);
}

static void begin(json *j, char open, char close, bool is_inline)
{
    before_value(j);
    if (j->depth == JSON_DEPTH)
        internal_error("JSON nested deeper than %d", JSON_DEPTH);
    bool inside_inline = j->depth > 0 && j->levels[j->depth - 1].is_inline;
    text_add_bytes(j->out, &open, 1);
    j->levels[j->depth].close = close;
    j->levels[j->depth].is_inline = is_inline || inside_inline;
    j->levels[j->depth].has_content = false;
    j->depth++;
}

void json_begin_object(json *j)
{
    begin(j, '{', '}', false);
}

void json_begin_array(json *j)
{
    begin(j, '[', ']', false);
}

void json_begin_inline_object(json *j)
{
    begin(j, '{', '}', true);
}

void json_begin_inline_array(json *j)
{
    begin(j, '[', ']', true);
}

void json_end(json *j)
{
    if (j->depth == 0 || j->after_key)
        internal_error("json_end without an open value");
    j->depth--;
    if (j->levels[j->depth].has_content && !j->levels[j->depth].is_inline)
        new_line(j);
    text_add_bytes(j->out, &j->levels[j->depth].close, 1);
}

/* Names of files may have bytes that are not UTF-8; JSON may not. */
static void add_escaped(text *out, const char *s)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    text_add(out, "\"");
    for (size_t left = strlen(s), length; left > 0; s += length, left -= length) {
        length = utf8_sequence(s, left);
        if (length == 0) {
            text_add(out, replacement);
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            text_printf(out, "\\%c", *s);
        } else if (*s == '\n') {
            text_add(out, "\\n");
        } else if ((unsigned char)*s < 0x20) {
            text_printf(out, "\\u%04x", (unsigned)*s);
        } else {
            text_add_bytes(out, s, length);
        }
    }
    text_add(out, "\"");
}

void json_key(json *j, const char *key)
{
    if (j->after_key || j->depth == 0 || j->levels[j->depth - 1].close != '}')
        internal_error("the JSON key \"%s\" outside an object", key);
    separate(j);
    add_escaped(j->out, key);
    text_add(j->out, ": ");
    j->after_key = true;
}

void json_string(json *j, const char *value)
{
    if (!value) {
        json_null(j);
        return;
    }
    before_value(j);
    add_escaped(j->out, value);
}

void json_number(json *j, uint64_t value)
{
    before_value(j);
    text_printf(j->out, "%" PRIu64, value);
}

void json_boolean(json *j, bool value)
{
    before_value(j);
    text_add(j->out, value ? "true" : "false");
}

void json_null(json *j)
{
    before_value(j);
    text_add(j->out, "null");
}

void json_string_member(json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_string(j, value);
}

void json_words_member(json *j, const char *key, const char *words)
{
    size_t length;
    json_key(j, key);
    json_begin_inline_array(j);
    for (const char *w; (w = words_next(&words, &length));)
        json_string(j, arena_string(j->out->arena, w, length));
    json_end(j);
}

void json_number_member(json *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_number(j, value);
}

void json_boolean_member(json *j, const char *key, bool value)
{
    json_key(j, key);
    json_boolean(j, value);
}
