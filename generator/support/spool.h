/* A file without a name, for what is too much to be held in memory: gone with the process, however that ends. */
#ifndef SUPPORT_SPOOL_H
#define SUPPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "diagnostics.h"

typedef struct spool spool;

/* Bytes that lie in one. */
typedef struct spool_range {
    uint64_t at, bytes;
} spool_range;

/* In a folder, or where nothing may be made in that, in the one for temporary files. Null after a diagnostic. */
spool *spool_open(arena *a, const char *folder, diagnostics *d);
void spool_close(spool *s);

/* Puts bytes behind those that are there. Several threads may at once. */
spool_range spool_add(spool *s, const char *data, size_t bytes);

/* Hands a range on in pieces, in their order, until there is no more or `take` says that it is enough. False where it did,
 * and where the range could not be read, with errno. */
typedef bool spool_take(void *context, const char *data, size_t bytes);
bool spool_read(spool *s, spool_range range, spool_take *take, void *context);

/* Whether everything was added; else after a diagnostic. */
bool spool_is_whole(const spool *s, diagnostics *d);

/* TMPDIR, or /tmp. */
const char *temporary_folder(void);

#endif
