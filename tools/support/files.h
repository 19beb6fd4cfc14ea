/* Files, read whole, and written whole or not at all. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "pool.h"

/* A NUL follows the bytes. Null, with errno and length 0, if it cannot be read or has 256 MiB or more. */
char *file_read(pool *p, const char *path, size_t *length);

/* The same of a stream, which may be a pipe, and of another limit than 256 MiB: a power of two. */
char *file_read_all(pool *p, FILE *in, size_t most, size_t *length);

/* 32 hex digits of XXH3. */
enum { HASH_DIGITS = 32 };
void file_hash(const void *bytes, size_t length, char digits[HASH_DIGITS + 1]);

typedef struct out_file {
    FILE *out;
    const char *path;
    char temporary[4096]; /* what becomes the file at the end; empty: nothing does */
} out_file;

/* "-" is standard output. What is no plain file, such as a pipe, is written as it comes; of a symbolic link the file that it
 * stands for. Both false after a message. */
bool out_open(out_file *f, const char *path);
bool out_close(out_file *f);

/* How a program's files are recognised: by their beginning, and by a text within their first 4 KB. */
typedef struct out_form {
    const char *begins, *holds;
} out_form;

/* Whether out_open can write the file, and may: a file that is there must be empty or of the form. A null form means any.
 * False after a message. */
bool out_may_open(const char *path, const out_form *form);

/* Whether it is, or would be, a plain file. */
bool is_plain_file(const char *path);

/* Both are there, and one file under two names. */
bool is_same_file(const char *a, const char *b);

/* That, or the same name: outputs that would overwrite each other. */
bool is_same_output(const char *a, const char *b);

/* Why with errno; always false. */
bool fail_write(const char *path);

#endif
