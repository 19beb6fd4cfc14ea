/* Types and immediates. */
#include <math.h>
#include <string.h>

#include "ir.h"

/*                     name      bits    memory  bytes */
static const struct {
    const char *name, *bits, *memory;
    uint32_t bytes;
} types[] = {
    [PTX_NONE] = {"none", "none", "none", 0}, [PTX_PRED] = {"pred", "pred", "pred", 0},
    [PTX_B8] = {"b8", "b8", "b8", 1},         [PTX_U8] = {"u8", "b8", "u8", 1},
    [PTX_S8] = {"s8", "b8", "s8", 1},         [PTX_B16] = {"b16", "b16", "b16", 2},
    [PTX_U16] = {"u16", "b16", "u16", 2},     [PTX_S16] = {"s16", "b16", "s16", 2},
    [PTX_F16] = {"f16", "b16", "b16", 2},     [PTX_BF16] = {"bf16", "b16", "b16", 2},
    [PTX_B32] = {"b32", "b32", "b32", 4},     [PTX_U32] = {"u32", "b32", "u32", 4},
    [PTX_S32] = {"s32", "b32", "s32", 4},     [PTX_F32] = {"f32", "b32", "f32", 4},
    [PTX_F16X2] = {"f16x2", "b32", "b32", 4}, [PTX_BF16X2] = {"bf16x2", "b32", "b32", 4},
    [PTX_B64] = {"b64", "b64", "b64", 8},     [PTX_U64] = {"u64", "b64", "u64", 8},
    [PTX_S64] = {"s64", "b64", "s64", 8},     [PTX_F64] = {"f64", "b64", "f64", 8},
    [PTX_F32X2] = {"f32x2", "b64", "b64", 8}, [PTX_PTR] = {"ptr", "b64", "u64", 8},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* PTX_NONE for a number that is not a type: a value may be uninitialised. */
static size_t known(ptx_type type)
{
    return (size_t)type < TYPE_COUNT ? (size_t)type : PTX_NONE;
}

const char *ptx_type_name(ptx_type type)
{
    return types[known(type)].name;
}

ptx_type ptx_type_named(const char *word)
{
    for (int t = PTX_PRED; t < TYPE_COUNT; t++)
        if (strcmp(types[t].name, word) == 0)
            return (ptx_type)t;
    return PTX_NONE;
}

uint32_t ptx_type_bytes(ptx_type type)
{
    return types[known(type)].bytes;
}

const char *type_bits_name(ptx_type type)
{
    return types[known(type)].bits;
}

const char *type_memory_name(ptx_type type)
{
    return types[known(type)].memory;
}

ptx_type type_wide(ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return PTX_NONE;
    }
}

bool type_needs_register(ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16 || type == PTX_F16X2 || type == PTX_BF16X2 ||
           type == PTX_F32X2;
}

bool type_is_integer(ptx_type type)
{
    switch (type) {
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_F64:
    case PTX_F16X2:
    case PTX_BF16X2:
    case PTX_F32X2:
    case PTX_PRED:
    case PTX_PTR:
    case PTX_NONE:
        return false;
    default:
        return true;
    }
}

uint32_t type_bit(ptx_type type)
{
    return 1u << known(type);
}

/* ---- immediates ------------------------------------------------------------------------------------------------- */

ptx_val ptx_bits(ptx_type type, uint64_t bits)
{
    return (ptx_val){.kind = VAL_IMMEDIATE, .type = (uint8_t)type, .bits = bits};
}

ptx_val ptx_u16(uint16_t value)
{
    return ptx_bits(PTX_U16, value);
}

ptx_val ptx_s16(int16_t value)
{
    return ptx_bits(PTX_S16, (uint16_t)value);
}

ptx_val ptx_u32(uint32_t value)
{
    return ptx_bits(PTX_U32, value);
}

ptx_val ptx_s32(int32_t value)
{
    return ptx_bits(PTX_S32, (uint32_t)value);
}

ptx_val ptx_u64(uint64_t value)
{
    return ptx_bits(PTX_U64, value);
}

ptx_val ptx_s64(int64_t value)
{
    return ptx_bits(PTX_S64, (uint64_t)value);
}

ptx_val ptx_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ptx_bits(PTX_F32, bits);
}

ptx_val ptx_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ptx_bits(PTX_F64, bits);
}

/* Rounds a double once to a float of `exponent` and `fraction` bits, at most 16 in all, to nearest even. */
static uint16_t narrow_float(double value, int exponent, int fraction)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint64_t magnitude = bits & ~(1ull << 63), infinity = 0x7ffull << 52;
    int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
    uint16_t narrow_infinity = (uint16_t)(top << fraction);
    if (magnitude > infinity)
        return (uint16_t)(sign | narrow_infinity | 1u << (fraction - 1));
    int scale = (int)(magnitude >> 52) - 1023 + bias; /* the narrow exponent field, when normal */
    if (scale >= top)
        return (uint16_t)(sign | narrow_infinity);
    if (scale < -fraction)
        return sign;
    uint64_t significand = (magnitude & ((1ull << 52) - 1)) | 1ull << 52;
    int dropped = 52 - fraction + (scale < 1 ? 1 - scale : 0);
    uint64_t kept = significand >> dropped, rest = significand & ((1ull << dropped) - 1),
             half = 1ull << (dropped - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* The hidden bit adds one to the exponent field, and so does a carry out of the fraction. */
    uint64_t field = scale < 1 ? 0 : (uint64_t)(scale - 1);
    return (uint16_t)(sign | ((field << fraction) + kept));
}

/* An integer. If the number does not fit the type: a literal, which the operation reports. */
static ptx_val whole_number(ptx_type type, double value)
{
    const int bits = 8 * (int)ptx_type_bytes(type);
    const bool is_signed = type == PTX_S8 || type == PTX_S16 || type == PTX_S32 || type == PTX_S64;
    const double least = is_signed ? -ldexp(1, bits - 1) : 0, end = ldexp(1, is_signed ? bits - 1 : bits);
    if (!type_is_integer(type) || !(value >= least && value < end))
        return (ptx_val){.kind = VAL_REAL, .bits = ptx_f64(value).bits};
    const uint64_t whole = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    return ptx_bits(type, bits < 64 ? whole & ((UINT64_C(1) << bits) - 1) : whole);
}

ptx_val ptx_number(ptx_type type, double value)
{
    switch (type) {
    case PTX_F64:
        return ptx_f64(value);
    case PTX_F32:
        return ptx_f32((float)value);
    case PTX_F16:
        return ptx_bits(type, narrow_float(value, 5, 10));
    case PTX_BF16:
        return ptx_bits(type, narrow_float(value, 8, 7));
    case PTX_F16X2:
        return ptx_bits(type, UINT64_C(0x10001) * narrow_float(value, 5, 10));
    case PTX_BF16X2:
        return ptx_bits(type, UINT64_C(0x10001) * narrow_float(value, 8, 7));
    case PTX_F32X2:
        return ptx_bits(type, UINT64_C(0x100000001) * ptx_f32((float)value).bits);
    default:
        return whole_number(type, rint(value));
    }
}
