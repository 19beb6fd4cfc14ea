/* What the compiled functions are given: element types, and values that hurt. */
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
    INDEX, /* u32 below n, each once, shuffled */
} value_type;

size_t value_bytes(value_type type);

/* Fills n elements: all pairs of the values that hurt, then random bits. `second` picks the other of each pair. */
void value_fill(value_type type, void *elements, uint32_t n, int second);

/* The element as a number, for bounds; only of the floating-point types. */
double value_number(value_type type, const void *elements, size_t i);

typedef struct value_bound {
    double ulps, relative, absolute; /* the widest counts; all zero: bit-exact */
} value_bound;

/* Same bits; any NaN for a NaN; or within the bound. */
int value_agrees(value_type type, const void *got, const void *want, size_t i, const value_bound *bound);

#endif
