/* kiln_check_image. */
#include "test.h"

#include "mini.h"

static void images_as_baked_pass(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < mini_bundle.kernel_count; k++) {
        const kiln_module *module = mini_index.kernels[k]->module;
        for (uint32_t i = 0; i < module->image_count; i++)
            assert_status(kiln_check_image(&module->images[i]), KILN_OK);
    }
}

static void every_flipped_bit_is_caught(void **state)
{
    (void)state;
    char copy[2048];
    kiln_image image = mini_axpy_f32_kernel.module->images[0];
    assert_in_range(image.bytes + 1, 2, sizeof copy);
    memcpy(copy, image.data, image.bytes + 1);
    image.data = copy;
    assert_status(kiln_check_image(&image), KILN_OK);
    for (size_t bit = 0; bit < 8 * (image.bytes + 1); bit++) { /* the NUL too */
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        assert_status(kiln_check_image(&image), KILN_ERROR_CORRUPT_IMAGE);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
    }
    assert_status(kiln_check_image(&image), KILN_OK);
}

static void both_halves_of_the_hash_and_the_length_count(void **state)
{
    (void)state;
    const kiln_image right = mini_axpy_f32_kernel.module->images[0];
    kiln_image image = right;
    image.hash_high ^= 1;
    assert_status(kiln_check_image(&image), KILN_ERROR_CORRUPT_IMAGE);
    image = right;
    image.hash_low ^= 1;
    assert_status(kiln_check_image(&image), KILN_ERROR_CORRUPT_IMAGE);
    image = right;
    image.bytes--;
    assert_status(kiln_check_image(&image), KILN_ERROR_CORRUPT_IMAGE);
}

static void null_is_refused(void **state)
{
    (void)state;
    assert_status(kiln_check_image(NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_check_image(&(kiln_image){.bytes = 1}), KILN_ERROR_NULL_POINTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_as_baked_pass),
        cmocka_unit_test(every_flipped_bit_is_caught),
        cmocka_unit_test(both_halves_of_the_hash_and_the_length_count),
        cmocka_unit_test(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
