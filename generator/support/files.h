/* Reading and writing whole files. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "diagnostics.h"

/* Reads a whole file of at most `limit` bytes. False, with the reason in *why, when it cannot. */
bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why);

typedef struct file_output {
    const char *path;
    text content;
} file_output;

/* Writes files that belong together. A file whose bytes would not change is not touched. All others are written under
 * temporary names in their folders first and take their places only when every one was, so a failure leaves what was
 * there. False after a diagnostic that names the file. */
bool files_write(arena *a, const file_output *files, size_t count, diagnostics *d);

/* Makes a folder in one that is there; one that is there stays. False after a diagnostic. */
bool folder_make(const char *path, diagnostics *d);

/* Makes the file new, whatever was in it. False after a diagnostic. */
bool file_stamp(const char *path, diagnostics *d);

#endif
