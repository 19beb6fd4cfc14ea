/* Conversions between float64 and the element types. f32 is compared with the machine's own conversion; f16 and bf16 with
 * values from IEEE 754-2008 and from rounding by hand; every bit pattern goes there and back. */
#include "test_verify.h"

#include <math.h>

#include "number.h"
#include "random.h"

static void test_round_trip(void **state)
{
    (void)state;
    static const element_type types[] = {ELEMENT_F16, ELEMENT_BF16};
    for (size_t t = 0; t < 2; t++) {
        for (uint64_t bits = 0; bits < 65536; bits++) {
            double value = number_decode(types[t], bits);
            if (isnan(value))
                assert_true(isnan(number_decode(types[t], number_encode(types[t], value))));
            else
                assert_int_equal(number_encode(types[t], value), bits);
        }
    }
}

/* The midpoint of two neighbours rounds to the even one; anything to one side rounds to that side. */
static void test_ties(void **state)
{
    (void)state;
    static const element_type types[] = {ELEMENT_F16, ELEMENT_BF16};
    static const uint64_t infinities[] = {0x7c00, 0x7f80};
    for (size_t t = 0; t < 2; t++) {
        for (uint64_t bits = 0; bits + 1 < infinities[t]; bits++) {
            double low = number_decode(types[t], bits), high = number_decode(types[t], bits + 1);
            double middle = low + (high - low) / 2;
            assert_int_equal(number_encode(types[t], middle), bits % 2 ? bits + 1 : bits);
            assert_int_equal(number_encode(types[t], nextafter(middle, 0)), bits);
            assert_int_equal(number_encode(types[t], nextafter(middle, INFINITY)), bits + 1);
            assert_int_equal(number_encode(types[t], -middle) & 0x7fff, bits % 2 ? bits + 1 : bits);
        }
    }
}

static void test_known(void **state)
{
    (void)state;
    static const struct {
        element_type type;
        double value;
        uint64_t bits;
    } rows[] = {
        /* clang-format off */
        {ELEMENT_F16, 1, 0x3c00}, {ELEMENT_F16, -2, 0xc000}, {ELEMENT_F16, 65504, 0x7bff}, {ELEMENT_F16, 65519.99, 0x7bff},
        {ELEMENT_F16, 65520, 0x7c00}, {ELEMENT_F16, 0x1p-24, 1}, {ELEMENT_F16, 0x1p-25, 0}, {ELEMENT_F16, 0x1.8p-25, 1},
        {ELEMENT_F16, -0.0, 0x8000}, {ELEMENT_F16, 1.0 / 3, 0x3555}, {ELEMENT_F16, 1e300, 0x7c00}, {ELEMENT_F16, 0x1p-14, 0x0400},
        {ELEMENT_BF16, 1, 0x3f80}, {ELEMENT_BF16, 1.0 / 3, 0x3eab}, {ELEMENT_BF16, 3.4e38, 0x7f80}, {ELEMENT_BF16, 0x1p-133, 1},
        {ELEMENT_F32, 0x1p-149, 1}, {ELEMENT_F32, 1e39, 0x7f800000}, {ELEMENT_F32, 0.1, 0x3dcccccd},
        {ELEMENT_F64, 0x1p-1074, 1}, {ELEMENT_F64, 0.1, 0x3fb999999999999a}, {ELEMENT_F64, -INFINITY, 0xfff0000000000000},
        {ELEMENT_U8, 255.4, 255}, {ELEMENT_U8, 256, 255}, {ELEMENT_U8, -3, 0}, {ELEMENT_I8, -200, 0x80}, {ELEMENT_I8, -1, 0xff},
        {ELEMENT_I32, -2, 0xfffffffe}, {ELEMENT_U64, 1e30, UINT64_MAX}, {ELEMENT_I64, -1, UINT64_MAX}, {ELEMENT_U32, NAN, 0},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(number_encode(rows[i].type, rows[i].value), rows[i].bits);
}

static void test_f32_like_the_machine(void **state)
{
    (void)state;
    random_stream s = random_open(7, "f32");
    for (uint64_t i = 0; i < 1000000; i++) {
        uint64_t bits = random_bits(s, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (i % 2)
            value = ldexp(random_normal(s, i), (int)(bits % 300) - 160);
        if (isnan(value))
            continue;
        float narrow = (float)value;
        uint32_t expected;
        memcpy(&expected, &narrow, sizeof expected);
        assert_int_equal(number_encode(ELEMENT_F32, value), expected);
        assert_true(number_decode(ELEMENT_F32, expected) == (double)narrow);
    }
}

static void test_steps(void **state)
{
    (void)state;
    assert_int_equal(number_step(ELEMENT_F32, 0x3f800000, 1), 0x3f800001);
    assert_int_equal(number_step(ELEMENT_F32, 0xbf800000, 1), 0xbf7fffff);
    assert_int_equal(number_step(ELEMENT_F16, 0, -1), 0x8001);
    assert_int_equal(number_step(ELEMENT_F16, 0x8001, 2), 0x0001);
    assert_int_equal(number_step(ELEMENT_F16, 0x7bff, 5), 0x7c00);
    assert_int_equal(number_step(ELEMENT_BF16, 0xff80, -1), 0xff80);
    assert_int_equal(number_step(ELEMENT_U8, 255, 1), 0);
    assert_int_equal(number_step(ELEMENT_U64, 0, -1), UINT64_MAX);
    assert_true(number_largest(ELEMENT_F16) == 65504);
    assert_true(number_smallest(ELEMENT_BF16) == 0x1p-133);
    assert_true(number_unit(ELEMENT_F32) == 0x1p-24 && number_unit(ELEMENT_F16) == 0x1p-11);
    assert_true(number_unit(ELEMENT_BF16) == 0x1p-8 && number_unit(ELEMENT_F64) == 0x1p-53);
}

/* Values of these streams are part of every report that names a seed: they must never change. */
static void test_random_is_pinned(void **state)
{
    (void)state;
    random_stream s = random_open(1, "nf4_quantize");
    assert_int_equal(random_bits(s, 0), UINT64_C(8979151950412582593));
    assert_int_equal(random_bits(random_fork(s, 3), 1000), UINT64_C(767276629461639759));
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 65536; i++) {
        double x = random_normal(s, i);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 65536) < 4.0 / 256);                 /* four deviations of the mean */
    assert_true(fabs(squares / 65536 - 1) < 4 * sqrt(2) / 256); /* four deviations of the variance */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_ties),
        cmocka_unit_test(test_known),      cmocka_unit_test(test_f32_like_the_machine),
        cmocka_unit_test(test_steps),      cmocka_unit_test(test_random_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
