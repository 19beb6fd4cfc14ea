/* The Q4_K reference: the vectors of the GGUF reference package, the layout by hand, and the error of real weights. */
#include "test_verify.h"

#include <math.h>
#include <stdio.h>

#include "families/q4k.h"

enum { MOST_BYTES = 1 << 20, RECORD_BYTES = Q4K_BLOCK_BYTES + Q4K_BLOCK_ELEMENTS * sizeof(float) };

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

/* N super-blocks, then what the package makes of them, bit for bit. */
static void test_vectors(void **state)
{
    (void)state;
    size_t size = read_file(VECTORS), count = size / RECORD_BYTES;
    assert_int_equal(size % RECORD_BYTES, 0);
    assert_int_equal(count, 64);
    for (size_t at = 0; at < count; at++) {
        q4k_block b;
        q4k_read(&b, bytes + at * Q4K_BLOCK_BYTES);
        for (unsigned i = 0; i < Q4K_BLOCK_ELEMENTS; i++) {
            uint64_t index = at * Q4K_BLOCK_ELEMENTS + i;
            uint64_t expected = element_bits(ELEMENT_F32, bytes + count * Q4K_BLOCK_BYTES, index);
            assert_int_equal(number_encode(ELEMENT_F32, q4k_value(&b, i)), expected);
        }
    }
}

/* A field at a time, set to all ones: which bits it has. */
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

/* Any bytes come back as they were. */
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

/* Real weights lose what 4 bits lose: 0.078 of their root mean square. */
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
