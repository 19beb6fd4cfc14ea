/* Compressed images: Zstandard frames. */
#ifndef BUNDLE_COMPRESS_H
#define BUNDLE_COMPRESS_H

#include "support/arena.h"

/* The version of libzstd, since only the same version makes the same bytes; null: this kiln was built without it. */
const char *compress_version(void);

/* Makes one frame, with its size and its checksum. Several threads may at once. */
text compress(arena *a, const char *data, size_t bytes);

#endif
