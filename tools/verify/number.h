/* Element types of kernel arguments, and conversions between their bits and float64.
 *
 * Written from the formats' definitions (IEEE 754 binary16, binary32, binary64; bfloat16 is binary32's upper half).
 * No code that generates kernels uses it, so that it can judge them.
 */
#ifndef VERIFY_NUMBER_H
#define VERIFY_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum element_type {
    /* clang-format off */
    ELEMENT_NONE,
    ELEMENT_U8, ELEMENT_I8, ELEMENT_U16, ELEMENT_I16, ELEMENT_U32, ELEMENT_I32, ELEMENT_U64, ELEMENT_I64,
    ELEMENT_F16, ELEMENT_BF16, ELEMENT_F32, ELEMENT_F64
    /* clang-format on */
} element_type;

/* Returns ELEMENT_NONE for a name other than "u8" "i8" ... "f64". */
element_type element_parse(const char *name);
const char *element_name(element_type type);
size_t element_bytes(element_type type);
bool element_is_float(element_type type);
bool element_is_signed(element_type type); /* Returns whether it is a signed integer type. */

/* Returns the bits of element `index` of an array at `base`, zero-extended. */
uint64_t element_bits(element_type type, const void *base, uint64_t index);
void element_set_bits(element_type type, void *base, uint64_t index, uint64_t bits);

/* Returns the value of the bits; 64-bit integers beyond 2^53 are rounded. */
double number_decode(element_type type, uint64_t bits);

/* Returns the bits nearest to a value: floats round to nearest even and overflow to infinity; integers round to
 * nearest and are clamped; a NaN becomes 0. */
uint64_t number_encode(element_type type, double value);

/* Returns the bits of the number `steps` representable floats up or down, through zero; stops at infinity. Same
 * for integers. */
uint64_t number_step(element_type type, uint64_t bits, int steps);

/* Compares two integers of a type, as int64_t if it is signed. */
bool number_is_less(element_type type, uint64_t left, uint64_t right);

/* Largest finite and smallest positive (subnormal) value of a float type. */
double number_largest(element_type type);
double number_smallest(element_type type);

/* Returns a sum before rounding, or the infinity that it becomes if it exceeds the largest number by at least half
 * an ulp plus `bound`. */
double number_or_infinity(element_type type, long double sum, double bound);

/* Returns half an ulp, relative: 2^-24 f32, 2^-11 f16, 2^-8 bf16 (and 2^-53 f64); u_T of the accuracy bounds. */
double number_unit(element_type type);

static inline double element_get(element_type type, const void *base, uint64_t index)
{
    return number_decode(type, element_bits(type, base, index));
}

static inline void element_set(element_type type, void *base, uint64_t index, double value)
{
    element_set_bits(type, base, index, number_encode(type, value));
}

#endif
