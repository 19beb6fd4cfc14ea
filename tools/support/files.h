/* Files, read whole, and written whole or not at all. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "pool.h"

/* Returns the bytes, followed by a NUL. Null, with errno and length 0, if the file cannot be read or has 256 MiB
 * or more. */
char *file_read(pool *p, const char *path, size_t *length);

/* Like file_read, for a stream, which may be a pipe, and with a limit other than 256 MiB: a power of two. */
char *file_read_all(pool *p, FILE *in, size_t most, size_t *length);

/* hex digits of an XXH3 hash */
enum { HASH_DIGITS = 32 };
void file_hash(const void *bytes, size_t length, char digits[HASH_DIGITS + 1]);

typedef struct out_file {
    FILE *out;
    const char *path;
    char temporary[4096]; /* a new file that replaces the file when it is closed; empty: written directly */
    size_t place_length;  /* of the file's name, with which the temporary one begins */
} out_file;

/* Opens an output; "-" is standard output. Anything but a plain file, such as a pipe, is written directly; a
 * symbolic link is followed. Both return false after a message. */
bool out_open(out_file *f, const char *path);
bool out_close(out_file *f);

/* How to recognise a program's own files: by their beginning, and by a text within their first 4 KB. */
typedef struct out_form {
    const char *begins, *holds;
} out_form;

/* Returns whether the file may be replaced: an existing plain file must be empty or of the form. False after a message. */
bool out_may_replace(const char *path, const out_form *form);

/* Returns whether out_open can and may write the file. A null form means any. False after a message. */
bool out_may_open(const char *path, const out_form *form);

/* Returns whether the path is, or would become, a plain file. */
bool is_plain_file(const char *path);

/* Returns whether both exist and are one file. */
bool is_same_file(const char *a, const char *b);

/* Returns whether both are one file or have the same name: such outputs would overwrite each other. */
bool is_same_output(const char *a, const char *b);

/* Prints the reason from errno; returns false. */
bool fail_write(const char *path);

#endif
