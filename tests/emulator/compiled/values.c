/* See values.h. Random numbers: splitmix64 with a fixed seed. */
#include "values.h"

#include <math.h>
#include <string.h>

static const unsigned char type_bytes[] = {
    [U8] = 1,  [U16] = 2, [U32] = 4,  [U64] = 8,   [F16] = 2,   [BF16] = 2,
    [F32] = 4, [F64] = 8, [UNIT] = 4, [UNIT2] = 2, [WHOLE] = 4, [INDEX] = 4};

/* clang-format off */
static const uint64_t integers[] = {
    0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
    0x80000000, 0x80000001, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
    0x8000000000000001, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa, 0xfffffffffffffff9, 0xfffffffffffffffe,
    0xffffffffffffffff
};

static const uint16_t halves[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x3800, 0x3555, 0x4248,
    0x6400, 0x67ff, 0x6800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7d00, 0x3e00
};

static const uint16_t bfloats[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80, 0xbf80, 0x3f81, 0x3f00, 0x3eab, 0x4049,
    0x4300, 0x437f, 0x4f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7fa0, 0x3fc0
};

static const float floats[] = {
    0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, -0x1p-126f, 0x1p127f,
    INFINITY, -INFINITY, NAN, 0x1.fffffep127f, 0.5f, -0.5f, 1.5f, 2.5f, 0x1.fffffep-1f, 0x1p23f,
    0x1.000002p23f, 0x1p24f, 0x1p31f, -0x1p31f, 0x1p32f, 0x1p63f, -0x1p63f, 0x1p64f, 3.14159265f,
    0.333333343f, 1e-30f, -7.75f, 65504.0f
};

static const double doubles[] = {
    0.0, -0.0, 1.0, -1.0, 0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, INFINITY, -INFINITY,
    NAN, 0.5, -0.5, 1.5, 2.5, 0x1p52, 0x1p53, 0x1p31, -0x1p31, 0x1p32, 0x1p63, -0x1p63, 0x1p64,
    0x1.fffffep127, 0x1.ffffffp127, 0x1p-149, 0x1p-150, 0x1.8p-127, 1.0 / 3, 1e-300, 1e300, 0x1.000001p0
};
/* clang-format on */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t value_bytes(value_type type)
{
    return type_bytes[type];
}

#define PICK(table)  memcpy(bytes, &table[at % (sizeof table / sizeof *table)], sizeof *table)
#define COUNT(table) (sizeof table / sizeof *table)

static size_t count_of(value_type type)
{
    return type == F16 || type == BF16 ? COUNT(halves)
           : type == F32               ? COUNT(floats)
           : type == F64               ? COUNT(doubles)
                                       : COUNT(integers);
}

static void put_hurting(value_type type, void *bytes, size_t at)
{
    if (type == F16)
        PICK(halves);
    else if (type == BF16)
        PICK(bfloats);
    else if (type == F32)
        PICK(floats);
    else if (type == F64)
        PICK(doubles);
    else
        memcpy(bytes, &integers[at % COUNT(integers)], type_bytes[type]); /* the low bytes */
}

static void put_random(value_type type, void *bytes, uint64_t random)
{
    float f = type == UNIT ? (float)(int32_t)random * 0x1p-31f : (float)((int32_t)(random % 33) - 16);
    uint16_t half = random & 0xbfff; /* clears the highest bit of the exponent */
    if (type == UNIT2)
        memcpy(bytes, &half, sizeof half);
    else if (type == UNIT || type == WHOLE)
        memcpy(bytes, &f, sizeof f);
    else
        memcpy(bytes, &random, type_bytes[type]);
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t *random)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(next_random(random) % i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

void value_fill(value_type type, void *elements, uint32_t n, int second)
{
    uint64_t random = second ? 77 : 1;
    size_t count = count_of(type);
    if (type == INDEX) {
        shuffle(elements, n, &random);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *bytes = (char *)elements + i * type_bytes[type];
        if (type < UNIT && i < count * count)
            put_hurting(type, bytes, second ? i / count : i);
        else
            put_random(type, bytes, next_random(&random));
    }
}

static double half_number(uint16_t bits, int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1),
        fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 2 * bias + 1)
        return fraction ? NAN : sign * INFINITY;
    return sign * ldexp(exponent ? fraction + (1 << fraction_bits) : fraction,
                        (exponent ? exponent : 1) - bias - fraction_bits);
}

double value_number(value_type type, const void *elements, size_t i)
{
    if (value_bytes(type) == 2)
        return half_number(((const uint16_t *)elements)[i], type == BF16 ? 7 : 10);
    return type == F64 ? ((const double *)elements)[i] : (double)((const float *)elements)[i];
}

static double unit_in_last_place(value_type type, double x)
{
    int fraction_bits = type == F64 ? 52 : type == F16 ? 10 : type == BF16 ? 7 : 23;
    int least = type == F64 ? -1022 : type == F16 ? -14 : -126;
    int exponent = x == 0 || ilogb(x) < least ? least : ilogb(x);
    return ldexp(1, exponent - fraction_bits);
}

int value_agrees(value_type type, const void *got, const void *want, size_t i, const value_bound *bound)
{
    size_t bytes = type_bytes[type];
    if (memcmp((const char *)got + i * bytes, (const char *)want + i * bytes, bytes) == 0)
        return 1;
    if (type < F16 || type > WHOLE)
        return 0;
    double g = value_number(type, got, i), w = value_number(type, want, i), distance = fabs(g - w);
    if (isnan(g) || isnan(w))
        return isnan(g) && isnan(w);
    if (isinf(g) || isinf(w))
        return 0;
    return (bound->ulps > 0 && distance <= bound->ulps * unit_in_last_place(type, w)) ||
           (bound->relative > 0 && distance <= bound->relative * fabs(w)) ||
           (bound->absolute > 0 && distance <= bound->absolute);
}
