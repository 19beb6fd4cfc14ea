/* Inputs of the compiled functions: element types, and edge values. */
#ifndef VALUES_H
#define VALUES_H

#include <stddef.h>
#include <stdint.h>

typedef enum value_type {
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    UNIT,  /* f32 in [-1, 1] */
    UNIT2, /* f16 in (-2, 2) */
    WHOLE, /* f32, small integers: sums of them are exact in any order */
    INDEX, /* a permutation of 0 to n - 1 */
} value_type;

size_t value_bytes(value_type type);

/* Fills n elements with all pairs of edge values, then with random bits. `second` selects the second of each pair. */
void value_fill(value_type type, void *elements, uint32_t n, int second);

/* Returns an element of a floating-point type as a number, for bounds. */
double value_number(value_type type, const void *elements, size_t i);

typedef struct value_bound {
    double ulps, relative, absolute; /* the widest one counts; all 0: bit-exact */
} value_bound;

/* True if the bits are equal, both are NaNs, or the difference is within the bound. */
int value_agrees(value_type type, const void *got, const void *want, size_t i, const value_bound *bound);

#endif
