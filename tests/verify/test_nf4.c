/* The NF4 reference: thresholds computed by hand, and its error on normally distributed numbers. */
#include "test_verify.h"

#include <math.h>
#include <stdlib.h>

#include "families/four_bit.h"
#include "families/groups.h"
#include "families/nf4.h"

/* Midpoints of neighbouring table entries in float32, worked out with exact rational arithmetic. */
static void test_thresholds(void **state)
{
    (void)state;
    static const uint32_t expected[15] = {0xbf591cd8, 0xbf1c5270, 0xbeeb8480, 0xbeadea76, 0xbe703cec,
                                          0xbe0d38bc, 0xbd3a7871, 0x3d22faff, 0x3df64862, 0x3e5067e0,
                                          0x3e9582d4, 0x3ec753f9, 0x3f006d04, 0x3f248daf, 0x3f5c89da};
    for (int i = 0; i < 15; i++)
        assert_int_equal(number_encode(ELEMENT_F32, nf4_threshold(ELEMENT_F32, i)), expected[i]);
    assert_true(nf4_threshold(ELEMENT_F64, 14) == (nf4_table[14] + 1) / 2);
}

/* A threshold itself belongs to the lower code, the next number above to the higher one. */
static void test_codes(void **state)
{
    (void)state;
    for (int i = 0; i < 15; i++) {
        double t = nf4_threshold(ELEMENT_F32, i);
        uint64_t bits = number_encode(ELEMENT_F32, t);
        assert_int_equal(nf4_code(ELEMENT_F32, t), i);
        assert_int_equal(nf4_code(ELEMENT_F32, number_decode(ELEMENT_F32, number_step(ELEMENT_F32, bits, 1))),
                         i + 1);
        assert_int_equal(nf4_code(ELEMENT_F64, nf4_threshold(ELEMENT_F64, i)), i);
    }
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(nf4_code(ELEMENT_F32, nf4_table[i]), i);
    assert_int_equal(nf4_code(ELEMENT_F32, 0), 7);
    assert_int_equal(nf4_code(ELEMENT_F32, -0.0), 7);
}

static double scale_of(const argument *in, uint64_t first, uint64_t last)
{
    return four_bit_numbers_of(&four_bit_nf4, in, first, last).scale;
}

/* Error of quantising and unpacking 65,536 normal numbers in groups of 64, relative to their root mean square. The wrong
 * scale of a published kernel, absmax / 7, gives 0.730 where the right one gives 0.092. */
static double relative_error(double divisor)
{
    enum { COUNT = 65536, GROUP = 64 };
    random_stream s = random_open(1, "rmse");
    manifest_arg about = {.type = ELEMENT_F32};
    float *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    argument in = {.about = &about, .host = x, .count = COUNT};
    double error = 0, power = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        x[i] = (float)random_normal(s, i);
    for (uint64_t i = 0; i < COUNT; i++) {
        double scale = (double)(float)(scale_of(&in, i / GROUP * GROUP, (i / GROUP + 1) * GROUP) / divisor);
        unsigned code = nf4_code(ELEMENT_F32, groups_divide(ELEMENT_F32, (double)x[i], scale));
        double back = groups_multiply(ELEMENT_F32, nf4_table[code], scale);
        error += (back - (double)x[i]) * (back - (double)x[i]);
        power += (double)x[i] * (double)x[i];
    }
    free(x);
    return sqrt(error / power);
}

static void test_relative_error(void **state)
{
    (void)state;
    assert_true(fabs(relative_error(1) - 0.092) < 0.0005);
    assert_true(fabs(relative_error(7) - 0.730) < 0.005);
}

static void test_scale(void **state)
{
    (void)state;
    manifest_arg about = {.type = ELEMENT_F32};
    float x[4] = {0, -0.0f, 5e-13f, -3};
    argument in = {.about = &about, .host = x, .count = 4};
    assert_true(scale_of(&in, 0, 3) == (double)1e-12f);
    assert_true(scale_of(&in, 0, 4) == 3);
    about.type = ELEMENT_F64;
    double zero = 0;
    in.host = &zero;
    assert_true(scale_of(&in, 0, 1) == 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_relative_error),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
