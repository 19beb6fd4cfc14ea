/* The images of "packed", the sample with compressed images, expand to the sample's texts. */
#include "../runtime/test.h"

#include <kiln/zstd.h>

#include "../runtime/fake_driver.h"
#include "packed.h"
#include "sample.h"

static _Alignas(16) char scratch[PACKED_SCRATCH_BYTES];

static void images_are_those_of_the_sample(void **state)
{
    (void)state;
    assert_int_equal(packed_bundle.kernel_count, sample_bundle.kernel_count);
    for (uint32_t k = 0; k < sample_bundle.kernel_count; k++) {
        const kiln_kernel *plain = sample_index.kernels[k], *packed = packed_index.kernels[k];
        assert_string_equal(packed->id, plain->id);
        assert_int_equal(packed->module->image_count, plain->module->image_count);
        for (uint32_t i = 0; i < plain->module->image_count; i++) {
            const kiln_image *text = &plain->module->images[i], *frame = &packed->module->images[i];
            assert_int_equal(frame->sm, text->sm);
            assert_int_equal(frame->expanded_bytes, text->bytes);
            assert_true(frame->bytes < text->bytes);
            assert_true(frame->codec == kiln_zstd);
            assert_status(frame->codec(frame, scratch, sizeof scratch), KILN_OK);
            assert_string_equal(scratch, text->data);
        }
    }
}

static void assert_every_flip_is_found(const kiln_image *image)
{
    static char copy[1 << 16];
    kiln_image flipped = *image;
    assert_in_range(image->bytes, 1, sizeof copy - 1);
    memcpy(copy, image->data, image->bytes + 1);
    flipped.data = copy;
    assert_status(kiln_check_image(&flipped), KILN_OK);
    for (size_t bit = 0; bit < 8 * image->bytes; bit++) {
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        assert_status(kiln_check_image(&flipped), KILN_ERROR_CORRUPT_IMAGE);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
    }
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < packed_bundle.kernel_count; k++) {
        const kiln_module *module = packed_index.kernels[k]->module;
        for (uint32_t i = 0; i < module->image_count; i++)
            assert_every_flip_is_found(&module->images[i]);
    }
}

static void all_kernels_load(void **state)
{
    (void)state;
    static kiln_loader loader;
    static kiln_slot slots[PACKED_SLOTS];
    const kiln_options options = {
        .check_image = kiln_check_image, .scratch = scratch, .scratch_bytes = sizeof scratch};
    fake_reset();
    assert_status(kiln_open(&loader, &fake_table, &packed_bundle, slots, PACKED_SLOTS, NULL),
                  KILN_ERROR_SCRATCH_TOO_SMALL);
    assert_status(kiln_open(&loader, &fake_table, &packed_bundle, slots, PACKED_SLOTS, &options), KILN_OK);
    assert_status(kiln_preload(&loader, packed_index.kernels, packed_bundle.kernel_count), KILN_OK);
    assert_int_equal(fake.loads, packed_bundle.module_count);
    assert_ptr_equal(fake.loaded_image, scratch);
    assert_status(kiln_close(&loader), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_those_of_the_sample),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(all_kernels_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
