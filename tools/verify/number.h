/* Element types of kernel arguments, and conversions between their bits and float64.
 *
 * Written from the formats' definitions (IEEE 754 binary16, binary32, binary64; bfloat16 is binary32's upper half), and
 * shared with nothing that makes kernels, so that it can judge them.
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

/* ELEMENT_NONE for a name that is none of "u8" "i8" ... "f64". */
element_type element_parse(const char *name);
const char *element_name(element_type type);
size_t element_bytes(element_type type);
bool element_is_float(element_type type);
bool element_is_signed(element_type type); /* an integer below 0 is one of its values */

/* The bits of element `index` of an array at `base`, zero-extended. */
uint64_t element_bits(element_type type, const void *base, uint64_t index);
void element_set_bits(element_type type, void *base, uint64_t index, uint64_t bits);

/* The value that bits stand for; 64-bit integers beyond 2^53 are rounded. */
double number_decode(element_type type, uint64_t bits);

/* The bits nearest to a value: floats to nearest even, overflowing to infinity; integers to nearest, clamped, NaN to 0. */
uint64_t number_encode(element_type type, double value);

/* The neighbouring bits: `steps` representable floats up or down, through zero; stops at infinity. Integers likewise. */
uint64_t number_step(element_type type, uint64_t bits, int steps);

/* Compares two integers of a type, as int64_t if it is signed. */
bool number_is_less(element_type type, uint64_t left, uint64_t right);

/* Largest finite and smallest positive (subnormal) value of a float type. */
double number_largest(element_type type);
double number_smallest(element_type type);

/* A sum before it is rounded, or the infinity that it becomes: where it is half an ulp beyond the largest number, by
 * `bound` or more. */
double number_or_infinity(element_type type, long double sum, double bound);

/* Half an ulp, relative: 2^-24 f32, 2^-11 f16, 2^-8 bf16 (and 2^-53 f64); u_T of the accuracy bounds. */
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
