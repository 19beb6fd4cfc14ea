/* Checks an image against its hash in the bundle. Only programs that pass it to a loader link it. */
#include "hash.h"
#include "internal.h"

kiln_status kiln_check_image(const kiln_image *image)
{
    if (image == NULL || image->data == NULL)
        return KILN_ERROR_NULL_POINTER;
    XXH128_hash_t hash = XXH3_128bits(image->data, (size_t)image->bytes);
    if (hash.high64 != image->hash_high || hash.low64 != image->hash_low)
        return KILN_ERROR_CORRUPT_IMAGE;
    /* The hash ends before the NUL, but the driver reads up to it. */
    if (image->format == KILN_IMAGE_PTX && image->data[image->bytes] != '\0')
        return KILN_ERROR_CORRUPT_IMAGE;
    return KILN_OK;
}
