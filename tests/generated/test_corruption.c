/* Flips bits in the images of the default bundle: kiln finds them all before a driver sees the image. */
#include "fake_driver.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "kiln_default.h"

static kiln_loader loader;
static kiln_slot slots[KILN_DEFAULT_SLOTS];

static kiln_image copy_of(const kiln_image *image)
{
    kiln_image copy = *image;
    char *data = malloc((size_t)image->bytes + 1);
    assert_non_null(data);
    memcpy(data, image->data, (size_t)image->bytes + 1);
    copy.data = data;
    return copy;
}

static void flip(const kiln_image *copy, uint64_t bit)
{
    char *byte = (char *)copy->data + bit / 8;
    *byte = (char)(*byte ^ (1 << bit % 8));
}

/* The NUL after a PTX image counts too: the driver reads up to it. */
static uint64_t bits_of(const kiln_image *image)
{
    return 8 * (image->bytes + (image->format == KILN_IMAGE_PTX));
}

static const kiln_image *largest_image(void)
{
    const kiln_image *largest = NULL;
    for (uint32_t k = 0; k < kiln_default_bundle.kernel_count; k++) {
        const kiln_module *module = kiln_default_index.kernels[k]->module;
        for (uint32_t i = 0; i < module->image_count; i++)
            if (largest == NULL || module->images[i].bytes > largest->bytes)
                largest = &module->images[i];
    }
    return largest;
}

static void every_single_bit_of_an_image_is_guarded(void **state)
{
    (void)state;
    const kiln_image copy = copy_of(largest_image());
    uint64_t found = 0;
    for (uint64_t bit = 0; bit < bits_of(&copy); bit++) {
        flip(&copy, bit);
        found += kiln_check_image(&copy) == KILN_ERROR_CORRUPT_IMAGE;
        flip(&copy, bit);
    }
    assert_status(kiln_check_image(&copy), KILN_OK);
    printf("%llu of %llu single-bit flips of an image of %llu bytes are found\n", (unsigned long long)found,
           (unsigned long long)bits_of(&copy), (unsigned long long)copy.bytes);
    assert_int_equal(found, bits_of(&copy));
    free((void *)copy.data);
}

/* xorshift64 of Marsaglia, Xorshift RNGs, 2003: the same numbers in every run. */
static uint64_t next_random(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

/* Launches a kernel like this one with only this image. */
static kiln_status load(const kiln_kernel *kernel, const kiln_image *image)
{
    static const uint64_t grid[3] = {1, 1, 1};
    const kiln_module module = {.images = image, .image_count = 1, .slot = kernel->module->slot};
    kiln_kernel like = *kernel;
    like.module = &module;
    fake_reset();
    fake.major = image->sm / 10;
    fake.minor = image->sm % 10;
    fake.version = 99990;
    const kiln_options options = {.check_image = kiln_check_image};
    assert_status(kiln_open(&loader, &fake_table, &kiln_default_bundle, slots, KILN_DEFAULT_SLOTS, &options),
                  KILN_OK);
    kiln_status status = kiln_launch(&loader, &like, NULL, grid, 0, NULL);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], status == KILN_OK);
    assert_status(kiln_close(&loader), KILN_OK);
    return status;
}

/* Spreads the flips evenly over all images. A loader that checks must refuse each one, and accept the original image. */
static void random_flips_over_all_images_are_found(void **state)
{
    (void)state;
    enum { FLIPS = 10000 };
    uint32_t images = 0, flips = 0, found = 0;
    for (uint32_t k = 0; k < kiln_default_bundle.kernel_count; k++)
        images += kiln_default_index.kernels[k]->module->image_count;
    uint32_t place = 0;
    for (uint32_t k = 0; k < kiln_default_bundle.kernel_count; k++) {
        const kiln_kernel *kernel = kiln_default_index.kernels[k];
        for (uint32_t i = 0; i < kernel->module->image_count; i++, place++) {
            const kiln_image copy = copy_of(&kernel->module->images[i]);
            const uint32_t until = (uint32_t)((uint64_t)FLIPS * (place + 1) / images);
            for (; flips < until; flips++) {
                const uint64_t bit = next_random() % bits_of(&copy);
                flip(&copy, bit);
                found += load(kernel, &copy) == KILN_ERROR_CORRUPT_IMAGE;
                flip(&copy, bit);
            }
            assert_status(load(kernel, &copy), KILN_OK);
            free((void *)copy.data);
        }
    }
    printf("%u of %u random flips over %u images are found\n", (unsigned)found, (unsigned)flips,
           (unsigned)images);
    assert_int_equal(found, FLIPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_single_bit_of_an_image_is_guarded),
        cmocka_unit_test(random_flips_over_all_images_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
