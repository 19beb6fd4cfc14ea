/* Reading and writing whole files. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "diagnostics.h"
#include "spool.h"

/* Reads a whole file of at most `limit` bytes. False, with the reason in *why, when it cannot. */
bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why);

/* A file as it is made, piece by piece: a piece is gone from memory once it is flushed, with all that its arena has. So
 * files of one arena are made one after another. */
typedef struct file_output {
    const char *path;
    const char *mark; /* what a file of ours begins with: another is left alone; null: any is replaced */
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

/* Writes files that belong together and are flushed. A file whose bytes would not change is not touched. All others are
 * written under temporary names in their folders first and take their places only when every one was, so a failure leaves
 * what was there; so does a signal that ends the program, which waits until nothing temporary is left. A file that is not
 * ours is a diagnostic. False after one, which names the file. */
bool files_write(arena *a, const file_output *files, size_t count, diagnostics *d);

/* Whether a file is there and begins so. */
bool file_is_marked(const char *path, const char *mark);

/* Makes a folder in one that is there; one that is there stays, and is not new. False after a diagnostic. */
bool folder_make(const char *path, bool *is_new, diagnostics *d);

/* Makes the file new, whatever was in it. False after a diagnostic. */
bool file_stamp(const char *path, diagnostics *d);

#endif
