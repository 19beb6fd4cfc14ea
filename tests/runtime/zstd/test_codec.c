/* kiln_zstd: valid, broken and hostile frames. */
#include "../test.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "../fake_driver.h"
#include "../mini.h"
#include "frames.h"

enum { MOST_BYTES = 4096 };

static char text[MOST_BYTES], frame[MOST_BYTES];
static _Alignas(16) unsigned char scratch[SCRATCH_BYTES(MOST_BYTES)];
static kiln_image image;

/* mini's PTX, packed. */
static int reset(void **state)
{
    (void)state;
    const kiln_image *plain = &mini_axpy_f32_kernel.module->images[0];
    assert_in_range(plain->bytes, 100, sizeof text - 1);
    memcpy(text, plain->data, plain->bytes + 1);
    image = *plain;
    image.data = frame;
    image.expanded_bytes = plain->bytes;
    image.codec = kiln_zstd;
    image.bytes = pack(frame, sizeof frame, text, plain->bytes, 1);
    memset(scratch, 0xcc, sizeof scratch);
    return 0;
}

static kiln_status expand(void)
{
    return image.codec(&image, scratch, SCRATCH_BYTES(image.expanded_bytes));
}

static void a_text_comes_back(void **state)
{
    (void)state;
    assert_true(image.bytes < image.expanded_bytes);
    assert_status(expand(), KILN_OK);
    assert_string_equal((char *)scratch, text);
}

static void every_length_comes_back(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < MOST_BYTES / 2; bytes++) {
        for (size_t i = 0; i < bytes; i++)
            text[i] = (char)('a' + (i * i >> 3) % 26);
        image.expanded_bytes = bytes;
        image.bytes = pack(frame, sizeof frame, text, bytes, 1);
        assert_status(expand(), KILN_OK);
        assert_memory_equal(scratch, text, bytes);
        assert_int_equal(scratch[bytes], '\0');
    }
}

static void a_loader_hands_the_driver_the_text(void **state)
{
    (void)state;
    static const uint64_t grid[3] = {1, 1, 1};
    static kiln_loader loader;
    kiln_slot slots[1];
    const kiln_module module = {.images = &image, .image_count = 1};
    const kiln_kernel kernel = {.id = "axpy", .entry = "axpy", .module = &module, .block = {1, 1, 1}};
    const kiln_bundle bundle = {KILN_LAYOUT_VERSION, 1, 1, 1, SCRATCH_BYTES(image.expanded_bytes), "packed"};
    const kiln_options options = {.scratch = scratch, .scratch_bytes = sizeof scratch};
    fake_reset();
    assert_status(kiln_open(&loader, &fake_table, &bundle, slots, 1, &options), KILN_OK);
    assert_status(kiln_launch(&loader, &kernel, NULL, grid, 0, NULL), KILN_OK);
    assert_ptr_equal(fake.loaded_image, scratch);
    assert_string_equal((char *)scratch, text);
    assert_status(kiln_close(&loader), KILN_OK);
}

/* A few bits of a frame do not matter, and the text stays right. kiln_check_image finds all flipped bits, because it hashes
 * the frame. */
static void no_flipped_bit_gives_another_text(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * image.bytes; bit++) {
        frame[bit / 8] = (char)(frame[bit / 8] ^ (1 << bit % 8));
        const kiln_status status = expand();
        if (status == KILN_OK)
            assert_string_equal((char *)scratch, text);
        else
            assert_status(status, KILN_ERROR_CORRUPT_IMAGE);
        frame[bit / 8] = (char)(frame[bit / 8] ^ (1 << bit % 8));
    }
    assert_status(expand(), KILN_OK);
}

static void every_truncated_frame_is_refused(void **state)
{
    (void)state;
    while (image.bytes-- > 0)
        assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
}

static void another_size_than_the_bundle_states_is_refused(void **state)
{
    (void)state;
    const uint64_t right = image.expanded_bytes;
    const uint64_t wrong[] = {0, 1, right - 1, right + 1, MOST_BYTES};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        image.expanded_bytes = wrong[i];
        assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
    }
}

static void a_frame_without_checksum_is_refused(void **state)
{
    (void)state;
    image.bytes = pack(frame, sizeof frame, text, image.expanded_bytes, 0);
    assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
}

static void a_frame_without_its_size_is_refused(void **state)
{
    (void)state;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    image.bytes = ZSTD_compress2(context, frame, sizeof frame, text, image.expanded_bytes);
    ZSTD_freeCCtx(context);
    assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
}

static void a_frame_of_a_dictionary_is_refused(void **state)
{
    (void)state;
    static const unsigned char first[] = {0x28, 0xb5, 0x2f, 0xfd,
                                          0x25 /* one segment, checksum, id of 1 byte */};
    /* the id, 3 bytes of text, and one raw block of them, the last */
    static const unsigned char rest[] = {7, 3, 0x19, 0, 0, 'p', 't', 'x', 0, 0, 0, 0};
    memcpy(frame, first, sizeof first);
    memcpy(frame + sizeof first, rest, sizeof rest);
    image.bytes = sizeof first + sizeof rest;
    image.expanded_bytes = 3;
    assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
}

/* libzstd decodes consecutive frames, and skips skippable frames. */
static void more_than_one_frame_is_refused(void **state)
{
    (void)state;
    static const unsigned char to_skip[] = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'};
    const size_t bytes = image.bytes;
    const struct {
        const void *data;
        size_t bytes;
    } behind[] = {{"x", 1}, {to_skip, sizeof to_skip}, {frame, bytes}};
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        memmove(frame + bytes, behind[i].data, behind[i].bytes);
        image.bytes = bytes + behind[i].bytes;
        assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
    }
    memmove(frame + sizeof to_skip, frame, bytes);
    memcpy(frame, to_skip, sizeof to_skip);
    image.bytes = bytes + sizeof to_skip;
    assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
}

/* Magic numbers of libzstd 0.1 to 0.7, whose decoders allocate. */
static void frames_of_old_formats_are_refused(void **state)
{
    (void)state;
    static const unsigned char first[][4] = {{0xfd, 0x2f, 0xb5, 0x1e}, {0x22, 0xb5, 0x2f, 0xfd},
                                             {0x23, 0xb5, 0x2f, 0xfd}, {0x24, 0xb5, 0x2f, 0xfd},
                                             {0x25, 0xb5, 0x2f, 0xfd}, {0x26, 0xb5, 0x2f, 0xfd},
                                             {0x27, 0xb5, 0x2f, 0xfd}};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        memcpy(frame, first[i], sizeof first[i]);
        assert_status(expand(), KILN_ERROR_CORRUPT_IMAGE);
    }
}

static void too_little_scratch_is_refused_and_none_beyond_it_written(void **state)
{
    (void)state;
    const size_t context_bytes = ZSTD_estimateDCtxSize();
    const size_t needed = SCRATCH_BYTES(image.expanded_bytes) - KILN_ZSTD_CONTEXT_BYTES + context_bytes;
    const size_t less[] = {0, 1, image.expanded_bytes, image.expanded_bytes + 1, needed - 1};
    assert_true(context_bytes <= KILN_ZSTD_CONTEXT_BYTES);
    for (size_t i = 0; i < sizeof less / sizeof *less; i++) {
        assert_status(kiln_zstd(&image, scratch, less[i]), KILN_ERROR_SCRATCH_TOO_SMALL);
        assert_int_equal(scratch[less[i]], 0xcc);
    }
    assert_status(kiln_zstd(&image, scratch, needed), KILN_OK);
    assert_string_equal((char *)scratch, text);
    for (size_t i = needed; i < sizeof scratch; i++)
        assert_int_equal(scratch[i], 0xcc);
    image.expanded_bytes = UINT64_MAX;
    assert_status(kiln_zstd(&image, scratch, sizeof scratch), KILN_ERROR_SCRATCH_TOO_SMALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_text_comes_back, reset),
        cmocka_unit_test_setup(every_length_comes_back, reset),
        cmocka_unit_test_setup(a_loader_hands_the_driver_the_text, reset),
        cmocka_unit_test_setup(no_flipped_bit_gives_another_text, reset),
        cmocka_unit_test_setup(every_truncated_frame_is_refused, reset),
        cmocka_unit_test_setup(another_size_than_the_bundle_states_is_refused, reset),
        cmocka_unit_test_setup(a_frame_without_checksum_is_refused, reset),
        cmocka_unit_test_setup(a_frame_without_its_size_is_refused, reset),
        cmocka_unit_test_setup(a_frame_of_a_dictionary_is_refused, reset),
        cmocka_unit_test_setup(more_than_one_frame_is_refused, reset),
        cmocka_unit_test_setup(frames_of_old_formats_are_refused, reset),
        cmocka_unit_test_setup(too_little_scratch_is_refused_and_none_beyond_it_written, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
