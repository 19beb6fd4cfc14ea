/* Decides which images run on a device, and which of them is best. */
#include "internal.h"

kiln_fit kiln_image_fit(const kiln_device *device, const kiln_image *image)
{
    if (device == NULL || image == NULL)
        return KILN_FIT_OTHER_DEVICE;
    uint32_t has = device->sm, wants = image->sm;
    if (image->format == KILN_IMAGE_CUBIN && device->ptx_only)
        return KILN_FIT_NOT_PTX;
    if (image->format == KILN_IMAGE_CUBIN || image->kind == KILN_TARGET_ARCH) {
        if (has != wants)
            return KILN_FIT_OTHER_DEVICE;
    } else if (image->kind == KILN_TARGET_FAMILY) {
        /* the same major number, and its own or a higher minor number; 10.1 is the name of 11.0 in drivers before CUDA
         * 13 */
        if (has / 10 != wants / 10 || has < wants || has == 101)
            return KILN_FIT_OTHER_DEVICE;
    } else if (has < wants) {
        return KILN_FIT_DEVICE_TOO_OLD;
    }
    return device->driver_version < image->min_driver ? KILN_FIT_DRIVER_TOO_OLD : KILN_FIT;
}

/* Higher is better: first the class, then the newest target, then "a" before "f". */
static uint32_t rank(const kiln_image *image)
{
    uint32_t within = image->sm * 2u + (image->kind == KILN_TARGET_ARCH);
    if (image->format == KILN_IMAGE_CUBIN)
        return (3u << 24) + within;
    return ((image->kind == KILN_TARGET_BASE ? 1u : 2u) << 24) + within;
}

const kiln_image *kiln_select(const kiln_device *device, const kiln_module *module)
{
    if (device == NULL || module == NULL)
        return NULL;
    const kiln_image *best = NULL;
    for (uint32_t i = 0; i < module->image_count; i++) {
        const kiln_image *image = &module->images[i];
        if (kiln_image_fit(device, image) == KILN_FIT && (best == NULL || rank(image) > rank(best)))
            best = image;
    }
    return best;
}
