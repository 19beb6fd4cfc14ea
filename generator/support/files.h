/* Reading and writing whole files. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "diagnostics.h"
#include "spool.h"

/* Reads a whole file, or a pipe to its end, of at most `limit` bytes; "-" is stdin. False, with the reason in *why, when it
 * cannot. */
bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why);

/* Whether a path that is read names no file that will be there again: "-", a pipe, /dev/stdin, <(...). */
bool file_is_stream(const char *path);

/* The folder that a path is in, as it can be written before "/NAME". */
const char *folder_of(arena *a, const char *path);

/* Whether a file that begins so is one of ours. `front` is its first 64 KB, with a NUL behind them. */
typedef bool file_form(const char *front, const char *mark);
bool file_begins(const char *front, const char *mark);
bool file_has_line(const char *front, const char *mark); /* one that begins with it, after blanks */

/* A file as it is made, piece by piece: a piece is gone from memory once it is flushed, with all that its arena has. So
 * files of one arena are made one after another. */
typedef struct file_output {
    const char *path;
    file_form *form; /* with the mark: how a file of ours looks, which is replaced; null: any file is */
    const char *mark;
    bool is_stamp; /* written even where its bytes are there */
    spool *spool;
    arena *arena; /* of a piece */
    text text;
    arena *kept; /* of the ranges that pieces have */
    spool_range *ranges;
    size_t range_count, range_capacity;
} file_output;

file_output file_begin(arena *a, arena *piece, const char *path, spool *s);
void file_flush(file_output *f);
void file_flush_to_front(file_output *f);         /* before all that it has */
void file_add(file_output *f, spool_range range); /* what is in the spool already */

/* Writes files that belong together and are flushed, in their order. A file whose bytes would not change is not touched. All
 * others are written under temporary names in their folders first and take their places only when every one was, so a
 * failure leaves what was there; so does a signal that ends the program, which waits until nothing temporary is left. A
 * file that is not ours is a diagnostic, unless all are replaced; so is what is no regular file, which is not opened. A
 * link is replaced, not followed. False after a diagnostic, which names the file. */
bool files_write(arena *a, const file_output *files, size_t count, bool replaces_all, diagnostics *d);

/* Whether none of the files would replace an input; else after diagnostics. */
bool files_spare_inputs(arena *a, const file_output *files, size_t count, const char *const *inputs,
                        size_t input_count, diagnostics *d);

/* Whether a file is there and is of this form. */
bool file_is(const char *path, file_form *form, const char *mark);

/* Whether two paths name one place: the same name in the same folder. */
bool paths_are_one(arena *a, const char *x, const char *y);

/* Makes a folder in one that is there; one that is there stays, and is not new. False after a diagnostic. */
bool folder_make(const char *path, bool *is_new, diagnostics *d);

#endif
