/* A file without a name, for data too large for memory: gone with the process, however it ends. */
#ifndef SUPPORT_SPOOL_H
#define SUPPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "diagnostics.h"

typedef struct spool spool;

typedef struct spool_range {
    uint64_t at, bytes;
} spool_range;

/* Opens a spool in a folder, or in the temporary folder if that one is not writable. Null after a diagnostic. */
spool *spool_open(arena *a, const char *folder, diagnostics *d);
void spool_close(spool *s);

/* Appends bytes. Several threads may at once. */
spool_range spool_add(spool *s, const char *data, size_t bytes);

/* Passes a range in pieces, in order, until its end or until `take` returns false. Returns false if `take` did, or if
 * the range could not be read, with errno. */
typedef bool spool_take(void *context, const char *data, size_t bytes);
bool spool_read(spool *s, spool_range range, spool_take *take, void *context);

/* Whether everything was added; otherwise a diagnostic. */
bool spool_is_whole(const spool *s, diagnostics *d);

/* TMPDIR, or /tmp. */
const char *temporary_folder(void);

#endif
