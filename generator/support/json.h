/* Writes JSON incrementally: one member or element per line, two spaces a level, for readable diffs. */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

enum { JSON_DEPTH = 24 };

/* Begin with json_new, end each object and array with json_end; json_finish adds the last newline. */
typedef struct json {
    text *out;
    int depth;
    bool after_key;
    struct {
        char close; /* '}' or ']' */
        bool is_inline, has_content;
    } levels[JSON_DEPTH];
} json;

json json_new(text *out);
void json_finish(json *j);

void json_begin_object(json *j);
void json_begin_array(json *j);
void json_begin_inline_object(
    json *j); /* an object on one line with its contents, for values that are read as one */
void json_begin_inline_array(json *j);
void json_end(json *j);

void json_key(json *j, const char *key);
void json_string(json *j, const char *value); /* UTF-8; null is written as null */
void json_number(json *j, uint64_t value);
void json_boolean(json *j, bool value);
void json_null(json *j);

void json_string_member(json *j, const char *key, const char *value);
void json_words_member(json *j, const char *key, const char *words); /* an array of a list's words */
void json_number_member(json *j, const char *key, uint64_t value);
void json_boolean_member(json *j, const char *key, bool value);

#endif
