/* Expands a Zstandard frame. Separate from the runtime, so that only programs with compressed images link the decoder.
 * */
#include <stdbool.h>

#include <kiln/zstd.h>

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticDCtx */
#include <zstd.h>

static bool is_whole_frame(const kiln_image *image);

kiln_status kiln_zstd(const kiln_image *image, void *scratch, size_t scratch_bytes)
{
    /* The text first, with its NUL, followed by the context. */
    if (image->expanded_bytes >= scratch_bytes)
        return KILN_ERROR_SCRATCH_TOO_SMALL;
    const size_t bytes = (size_t)image->expanded_bytes;
    const size_t context_at = (bytes | 15) + 1;
    ZSTD_DCtx *context = NULL;
    if (context_at < scratch_bytes)
        context = ZSTD_initStaticDCtx((char *)scratch + context_at, scratch_bytes - context_at);
    if (context == NULL)
        return KILN_ERROR_SCRATCH_TOO_SMALL;

    if (!is_whole_frame(image) ||
        ZSTD_decompressDCtx(context, scratch, bytes, image->data, (size_t)image->bytes) != bytes)
        return KILN_ERROR_CORRUPT_IMAGE;
    ((char *)scratch)[bytes] = '\0';
    return KILN_OK;
}

/* Accepts exactly one frame of the current format, with the size that the bundle states and a checksum. libzstd also
 * accepts several frames, skippable ones and old formats. */
static bool is_whole_frame(const kiln_image *image)
{
    ZSTD_frameHeader header;
    return ZSTD_getFrameHeader(&header, image->data, (size_t)image->bytes) == 0 &&
           header.frameType == ZSTD_frame && header.frameContentSize == image->expanded_bytes &&
           header.checksumFlag != 0 &&
           ZSTD_findFrameCompressedSize(image->data, (size_t)image->bytes) == image->bytes;
}
