/* Reading and writing whole files. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "diagnostics.h"
#include "spool.h"

/* Reads a whole file, or a pipe to its end, of at most `limit` bytes; "-" is stdin. False on failure, with the reason
 * in *why. */
bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why);

/* Whether an input path can be read only once: "-", a pipe, /dev/stdin, <(...). */
bool file_is_stream(const char *path);

/* The folder of a path, in a form to which "/NAME" can be appended. */
const char *folder_of(arena *a, const char *path);

/* Whether a file with this beginning was written by kiln. `front` is its first 64 KB, followed by a NUL. */
typedef bool file_form(const char *front, const char *mark);
bool file_begins(const char *front, const char *mark);
bool file_has_line(const char *front, const char *mark); /* a line that begins with it, after blanks */

/* A file that is generated piece by piece: a flush writes a piece and clears its arena. So files of one arena are
 * generated one after another. */
typedef struct file_output {
    const char *path;
    file_form *form; /* with the mark: recognises kiln's files, which may be replaced; null: any file may */
    const char *mark;
    bool is_stamp; /* written even if the bytes are unchanged */
    spool *spool;
    arena *arena; /* of the current piece */
    text text;
    arena *kept; /* of the pieces' ranges */
    spool_range *ranges;
    size_t range_count, range_capacity;
} file_output;

file_output file_begin(arena *a, arena *piece, const char *path, spool *s);
void file_flush(file_output *f);
void file_flush_to_front(file_output *f);         /* flushes a piece to the file's beginning */
void file_add(file_output *f, spool_range range); /* adds bytes that are already in the spool */

/* Replaces files that belong together, in order; they must be flushed. A file whose bytes are unchanged is left alone.
 * The others are first written under temporary names in their folders and renamed only when all are written, so that a
 * failure leaves the old files. So does a signal that ends the program, after the temporary files are removed. A file
 * that kiln did not write is a diagnostic, unless all may be replaced; so is anything but a regular file, which is not
 * opened, and a link to anything else. A link to a file, or a dangling one, is replaced, not followed. False after a
 * diagnostic, which names the file. */
bool files_write(arena *a, const file_output *files, size_t count, bool replaces_all, diagnostics *d);

/* Whether a file with these bytes is at the path or at the link's target. */
bool file_is_current(const file_output *f);

/* Whether no output would replace an input; otherwise diagnostics. */
bool files_spare_inputs(arena *a, const file_output *files, size_t count, const char *const *inputs,
                        size_t input_count, diagnostics *d);

/* Whether a file exists and has this form. */
bool file_is(const char *path, file_form *form, const char *mark);

/* Whether there is anything at the path. */
bool file_exists(const char *path);

/* Whether two paths are the same: equal names in the same folder. */
bool paths_are_one(arena *a, const char *x, const char *y);

/* Makes a folder, not its parents; an existing folder is kept, and is not new. False after a diagnostic. */
bool folder_make(const char *path, bool *is_new, diagnostics *d);

#endif
