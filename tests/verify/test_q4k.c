/* The references of GGUF's formats: the vectors of the GGUF reference package. For Q4_K also the layout, derived by hand, and the
 * error on real weights. */
#include "test_verify.h"

#include <math.h>
#include <stdio.h>

#include "families/gguf_blocks.h"
#include "families/q4k.h"

enum { MOST_BYTES = 1 << 20 };

static unsigned char bytes[MOST_BYTES];

static size_t read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(count, 1, sizeof bytes - 1);
    return count;
}

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)element_bits(ELEMENT_U32, at, 0);
}

/* Q4_K is read by two references. */
static double value_of(const gguf_format *f, const unsigned char *block, unsigned i)
{
    gguf_block b;
    gguf_read(f, &b, block);
    if (strcmp(f->name, "q4_k") == 0) {
        q4k_block again;
        q4k_read(&again, block);
        uint64_t twice = number_encode(ELEMENT_F32, q4k_value(&again, i));
        assert_int_equal(number_encode(ELEMENT_F32, gguf_value(&b, i)), twice);
    }
    return gguf_value(&b, i);
}

/* Compares a format's blocks with the package's elements, bit for bit except NaNs. Returns the section's end. */
static const unsigned char *check_section(const gguf_format *f, const unsigned char *at)
{
    assert_string_equal((const char *)at, f->name);
    uint32_t elements = read_u32(at + 8), size = read_u32(at + 12), count = read_u32(at + 16);
    const unsigned char *blocks = at + 20, *numbers = blocks + (size_t)size * count;
    assert_int_equal(elements, f->elements);
    assert_int_equal(size, f->bytes);
    assert_in_range(count, 8, 64);
    for (size_t i = 0; i < (size_t)count * elements; i++) {
        double value = value_of(f, blocks + i / elements * size, (unsigned)(i % elements));
        double expected = element_get(ELEMENT_F32, numbers, i);
        if (isnan(expected))
            assert_true(isnan(value));
        else
            assert_int_equal(number_encode(ELEMENT_F32, value), element_bits(ELEMENT_F32, numbers, i));
    }
    return numbers + (size_t)count * elements * sizeof(float);
}

static void test_vectors(void **state)
{
    (void)state;
    size_t size = read_file(VECTORS);
    const unsigned char *at = bytes;
    for (size_t i = 0; gguf_at(i); i++)
        at = check_section(gguf_at(i), at);
    assert_int_equal(at - bytes, size);
}

/* Sets one field at a time to all ones, to find its bits. */
static void test_layout(void **state)
{
    (void)state;
    static const struct {
        int byte;
        unsigned char bits;
        int scale, minimum, code; /* the one that is not 0, or -1 */
        unsigned value;
    } rows[] = {
        {4, 0x3f, 0, -1, -1, 63},     {4, 0xc0, 4, -1, -1, 48},   {7, 0x3f, 3, -1, -1, 63},
        {7, 0xc0, 7, -1, -1, 48},     {8, 0x3f, -1, 0, -1, 63},   {8, 0xc0, -1, 4, -1, 48},
        {12, 0x0f, 4, -1, -1, 15},    {12, 0xf0, -1, 4, -1, 15},  {15, 0x0f, 7, -1, -1, 15},
        {15, 0xf0, -1, 7, -1, 15},    {16, 0x0f, -1, -1, 0, 15},  {16, 0xf0, -1, -1, 32, 15},
        {47, 0xf0, -1, -1, 63, 15},   {48, 0x0f, -1, -1, 64, 15}, {143, 0x0f, -1, -1, 223, 15},
        {143, 0xf0, -1, -1, 255, 15},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        unsigned char block[Q4K_BLOCK_BYTES] = {0}, again[Q4K_BLOCK_BYTES];
        q4k_block b, expected = {0};
        block[rows[r].byte] = rows[r].bits;
        if (rows[r].scale >= 0)
            expected.scale[rows[r].scale] = (unsigned char)rows[r].value;
        if (rows[r].minimum >= 0)
            expected.minimum[rows[r].minimum] = (unsigned char)rows[r].value;
        if (rows[r].code >= 0)
            expected.code[rows[r].code] = (unsigned char)rows[r].value;
        q4k_read(&b, block);
        assert_memory_equal(&b, &expected, sizeof b);
        q4k_write(&b, again);
        assert_memory_equal(again, block, sizeof block);
    }
}

/* Any bytes survive unpacking and packing. */
static void test_write(void **state)
{
    (void)state;
    random_stream s = random_open(1, "q4k");
    for (uint64_t round = 0; round < 100; round++) {
        unsigned char block[Q4K_BLOCK_BYTES], again[Q4K_BLOCK_BYTES];
        q4k_block b;
        for (unsigned i = 0; i < sizeof block; i++)
            block[i] = (unsigned char)random_bits(s, round * sizeof block + i);
        q4k_read(&b, block);
        q4k_write(&b, again);
        assert_memory_equal(again, block, sizeof block);
    }
}

/* Real weights have the error of 4 bits: 0.078 of their root mean square. */
static void test_quantize(void **state)
{
    (void)state;
    size_t count = read_file(WEIGHTS) / sizeof(float) / Q4K_BLOCK_ELEMENTS;
    double error = 0, power = 0;
    for (size_t at = 0; at < count; at++) {
        double x[Q4K_BLOCK_ELEMENTS];
        q4k_block b;
        for (unsigned i = 0; i < Q4K_BLOCK_ELEMENTS; i++)
            x[i] = element_get(ELEMENT_F32, bytes, at * Q4K_BLOCK_ELEMENTS + i);
        q4k_quantize(&b, x);
        for (unsigned i = 0; i < Q4K_BLOCK_ELEMENTS; i++) {
            error += (q4k_value(&b, i) - x[i]) * (q4k_value(&b, i) - x[i]);
            power += x[i] * x[i];
        }
    }
    assert_true(fabs(sqrt(error / power) - 0.078) < 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_quantize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
