#include "shipped.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hashes the PTX that a device takes; "none" if it takes none. */
static void hash_ptx(const kiln_index *index, const kiln_kernel *kernel, const kiln_device *device,
                     void *scratch, char digits[HASH_DIGITS + 1])
{
    const kiln_image *image = kernel ? kiln_select(device, kernel->module) : NULL;
    const char *text = image ? image->data : NULL;
    if (image && image->codec)
        text = image->codec(image, scratch, index->bundle->scratch_bytes) == KILN_OK ? scratch : NULL;
    if (text)
        file_hash(text, strlen(text), digits);
    else
        snprintf(digits, HASH_DIGITS + 1, "none");
}

/* Checks each cubin that some device takes, with the newest driver, which takes all cubins. */
static bool check_variant(const manifest *cubins, const manifest_variant *v, const kiln_index *index,
                          void *scratch)
{
    const kiln_module module = {.images = v->cubin_images, .image_count = (uint32_t)v->cubin_count};
    bool ok = true;
    for (size_t i = 0; i < v->cubin_count; i++) {
        char digits[HASH_DIGITS + 1];
        const kiln_device device = {.sm = v->cubin_images[i].sm, .driver_version = UINT32_MAX};
        if (kiln_select(&device, &module) != &v->cubin_images[i])
            continue;
        hash_ptx(index, kiln_find_name(index, v->id), &device, scratch, digits);
        if (strcmp(digits, v->cubins[i].ptx) == 0)
            continue;
        fprintf(
            stderr,
            "kiln-verify: %s: the cubin for %s is of other PTX than runs here: ptxas %s made it of %s, this "
            "program has %s\n",
            v->id, v->cubins[i].target, cubins->ptxas, v->cubins[i].ptx, digits);
        ok = false;
    }
    return ok;
}

bool shipped_check(const manifest *cubins, const kiln_index *index)
{
    bool ok = cubins->variant_count == index->bundle->kernel_count && cubins->ptxas;
    if (!ok)
        fprintf(
            stderr,
            "kiln-verify: the bundle that ships has %zu variants and cubins of ptxas %s, this program %u\n",
            cubins->variant_count, cubins->ptxas ? cubins->ptxas : "(none)", index->bundle->kernel_count);
    void *scratch = malloc(index->bundle->scratch_bytes + 1);
    for (size_t i = 0; ok && i < cubins->variant_count; i++)
        ok = check_variant(cubins, &cubins->variants[i], index, scratch) && ok;
    free(scratch);
    return ok;
}

bool shipped_images(const manifest *cubins, const char *id, kiln_module *images)
{
    const manifest_variant *v = manifest_find_variant(cubins, id);
    if (v)
        *images = (kiln_module){.images = v->cubin_images, .image_count = (uint32_t)v->cubin_count};
    return v;
}
