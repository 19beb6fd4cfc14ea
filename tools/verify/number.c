/* Element types of kernel arguments, and conversions between their bits and float64. */
#include "number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Rows in the order of element_type. Floats: significand bits without the hidden bit, exponent bits. */
static const struct {
    const char *name;
    unsigned char bytes, significand, exponent;
    bool is_signed;
} TYPES[] = {
    /* clang-format off */
    /* name  bytes significand exponent signed */
    {"none",     0,          0,       0, false},
    {"u8",       1,          0,       0, false},
    {"i8",       1,          0,       0, true},
    {"u16",      2,          0,       0, false},
    {"i16",      2,          0,       0, true},
    {"u32",      4,          0,       0, false},
    {"i32",      4,          0,       0, true},
    {"u64",      8,          0,       0, false},
    {"i64",      8,          0,       0, true},
    {"f16",      2,         10,       5, true},
    {"bf16",     2,          7,       8, true},
    {"f32",      4,         23,       8, true},
    {"f64",      8,         52,      11, true},
    /* clang-format on */
};
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0] };

element_type element_parse(const char *name)
{
    for (int t = 1; t < TYPE_COUNT; t++) {
        if (strcmp(name, TYPES[t].name) == 0)
            return (element_type)t;
    }
    return ELEMENT_NONE;
}

const char *element_name(element_type type)
{
    return TYPES[type].name;
}

size_t element_bytes(element_type type)
{
    return TYPES[type].bytes;
}

bool element_is_float(element_type type)
{
    return TYPES[type].exponent != 0;
}

bool element_is_signed(element_type type)
{
    return TYPES[type].is_signed;
}

uint64_t element_bits(element_type type, const void *base, uint64_t index)
{
    const unsigned char *at = (const unsigned char *)base + index * TYPES[type].bytes;
    uint64_t bits = 0;
    for (unsigned i = TYPES[type].bytes; i-- > 0;)
        bits = bits << 8 | at[i];
    return bits;
}

void element_set_bits(element_type type, void *base, uint64_t index, uint64_t bits)
{
    unsigned char *at = (unsigned char *)base + index * TYPES[type].bytes;
    for (unsigned i = 0; i < TYPES[type].bytes; i++)
        at[i] = (unsigned char)(bits >> (8 * i));
}

/* ---- floats ----------------------------------------------------------------------------------------------------- */

static uint64_t sign_bit(element_type type)
{
    return UINT64_C(1) << (8 * TYPES[type].bytes - 1);
}

static uint64_t infinity_bits(element_type type)
{
    return ((UINT64_C(1) << TYPES[type].exponent) - 1) << TYPES[type].significand;
}

/* Returns 2^exponent, a normal number. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double decode_float(element_type type, uint64_t bits)
{
    int significand_bits = TYPES[type].significand;
    int bias = (1 << (TYPES[type].exponent - 1)) - 1;
    uint64_t magnitude = bits & (sign_bit(type) - 1);
    uint64_t significand = magnitude & ((UINT64_C(1) << significand_bits) - 1);
    int exponent = (int)(magnitude >> significand_bits);
    double value;
    if (magnitude > infinity_bits(type))
        return NAN;
    if (type == ELEMENT_F64)
        memcpy(&value, &magnitude, sizeof value);
    else if (magnitude == infinity_bits(type))
        value = INFINITY;
    else if (exponent == 0)
        value = (double)significand * power_of_two(1 - bias - significand_bits);
    else
        value = (double)(significand | UINT64_C(1) << significand_bits) *
                power_of_two(exponent - bias - significand_bits);
    return bits & sign_bit(type) ? -value : value;
}

/* Encodes by one rounding. Scaling by a power of two is exact unless the result falls below the smallest
 * subnormal, so only nearbyint rounds: to nearest, ties to even. A carry out of the significand increments the
 * exponent. */
static uint64_t encode_float(element_type type, double value)
{
    int significand_bits = TYPES[type].significand;
    int bias = (1 << (TYPES[type].exponent - 1)) - 1;
    uint64_t sign = signbit(value) ? sign_bit(type) : 0;
    uint64_t hidden = UINT64_C(1) << significand_bits;
    if (isnan(value))
        return sign | infinity_bits(type) | hidden >> 1;
    if (isinf(value))
        return sign | infinity_bits(type);
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* in [0.5, 1), or 0 */
    exponent = fraction == 0 ? 1 - bias : exponent - 1;
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    uint64_t quanta = (uint64_t)nearbyint(ldexp(fabs(value), significand_bits - exponent));
    uint64_t bits =
        quanta < hidden ? quanta : ((uint64_t)(exponent + bias) << significand_bits) + (quanta - hidden);
    return sign | (bits > infinity_bits(type) ? infinity_bits(type) : bits);
}

/* ---- all types -------------------------------------------------------------------------------------------------- */

static int64_t sign_extend(element_type type, uint64_t bits)
{
    if (TYPES[type].bytes < 8 && (bits & sign_bit(type)))
        bits |= ~(2 * sign_bit(type) - 1);
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double number_decode(element_type type, uint64_t bits)
{
    if (element_is_float(type))
        return decode_float(type, bits);
    return TYPES[type].is_signed ? (double)sign_extend(type, bits) : (double)bits;
}

uint64_t number_encode(element_type type, double value)
{
    if (element_is_float(type))
        return encode_float(type, value);
    int bits = 8 * TYPES[type].bytes;
    double low = TYPES[type].is_signed ? -ldexp(1, bits - 1) : 0;
    double beyond = ldexp(1, TYPES[type].is_signed ? bits - 1 : bits);
    value = isnan(value) ? 0 : nearbyint(value);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (value >= beyond)
        return TYPES[type].is_signed ? mask >> 1 : mask;
    if (value <= low)
        value = low;
    return (value < 0 ? 0 - (uint64_t)-value : (uint64_t)value) & mask;
}

uint64_t number_step(element_type type, uint64_t bits, int steps)
{
    if (!element_is_float(type)) {
        uint64_t mask = 2 * sign_bit(type) - 1; /* 64 bits: 0 - 1 */
        return (bits + (uint64_t)(int64_t)steps) & mask;
    }
    uint64_t magnitude = bits & (sign_bit(type) - 1);
    int64_t place = bits & sign_bit(type) ? -(int64_t)magnitude : (int64_t)magnitude;
    int64_t limit = (int64_t)infinity_bits(type);
    place += steps;
    if (place > limit)
        place = limit;
    if (place < -limit)
        place = -limit;
    return place < 0 ? sign_bit(type) | (uint64_t)-place : (uint64_t)place;
}

bool number_is_less(element_type type, uint64_t left, uint64_t right)
{
    const uint64_t sign = (uint64_t)element_is_signed(type) << 63;
    return (left ^ sign) < (right ^ sign);
}

double number_largest(element_type type)
{
    return decode_float(type, infinity_bits(type) - 1);
}

double number_smallest(element_type type)
{
    return decode_float(type, 1);
}

double number_unit(element_type type)
{
    return ldexp(1, -TYPES[type].significand - 1);
}

double number_or_infinity(element_type type, long double sum, double bound)
{
    double largest = number_largest(type), limit = largest + ldexp(number_unit(type), ilogb(largest));
    return fabsl(sum) - bound >= limit ? copysign(INFINITY, (double)sum) : (double)sum;
}
