#include "frames.h"

#include <stdlib.h>

#include <zstd.h>

size_t pack(void *frame, size_t capacity, const void *text, size_t bytes, int has_checksum)
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
