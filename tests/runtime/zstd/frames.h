/* Makes frames like the generator's. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdlib.h>

#include <zstd.h>

#include <kiln/zstd.h>

/* Packs a text into `frame` as one frame with its size, and optionally its checksum. Returns the frame's bytes. */
static inline size_t pack(void *frame, size_t capacity, const void *text, size_t bytes, int has_checksum)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 19);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, has_checksum);
    const size_t packed = ZSTD_compress2(context, frame, capacity, text, bytes);
    ZSTD_freeCCtx(context);
    if (ZSTD_isError(packed))
        abort();
    return packed;
}

/* Returns the scratch of a bundle whose largest image has this many bytes. */
#define SCRATCH_BYTES(bytes) (KILN_ZSTD_CONTEXT_BYTES + ((bytes) | 15) + 1)

#endif
