/* Reads JSON: members of objects by name. Stops at the first mistake, since programs write these files. */
#ifndef VERIFY_READER_H
#define VERIFY_READER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libfyaml.h>

#include "../support/pool.h"

typedef struct fy_node fy_node;

typedef struct reader {
    pool *memory;      /* holds the texts that are read */
    const char *what;  /* for messages: "manifest", a file's name */
    const char *where; /* the part being read; empty: none */
    size_t line;       /* of the file, if the text is one line of it; 0: the text is the whole file */
    char *error;
    size_t error_bytes;
    jmp_buf failed;
    struct fy_document *document;
} reader;

/* False after a message with its place, if the text is not JSON. Otherwise call reader_close at the end. A mistake
 * found later jumps to `failed`, which the caller sets. */
bool reader_open(reader *r, const char *text, size_t length);
void reader_close(reader *r);

_Noreturn void reader_refuse(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns null if the member is missing or null. */
fy_node *reader_find_member(reader *r, fy_node *object, const char *name);
const char *reader_find_text(reader *r, fy_node *object, const char *name);

fy_node *reader_get_member(reader *r, fy_node *object, const char *name);
const char *reader_get_text(reader *r, fy_node *node, const char *name);
const char *reader_get_text_member(reader *r, fy_node *object, const char *name);
uint64_t reader_parse_number(reader *r, const char *text, const char *name, int base);
uint64_t reader_get_number_member(reader *r, fy_node *object, const char *name);

/* Returns the number of an array's members. */
size_t reader_get_count(reader *r, fy_node *array, const char *name);

#endif
