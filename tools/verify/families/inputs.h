/* Makes float inputs for every family. */
#ifndef VERIFY_INPUTS_H
#define VERIFY_INPUTS_H

#include "families.h"

/* kiln/reference.h describes them. */
typedef enum input_kind {
    INPUT_NORMAL = KILN_FILL_NORMAL,
    INPUT_UNIFORM = KILN_FILL_UNIFORM,
    INPUT_REAL = KILN_FILL_REAL, /* the numbers given to inputs_set_real */
    INPUT_DENORMAL = KILN_FILL_DENORMAL,
    INPUT_LARGEST = KILN_FILL_LARGEST,
    INPUT_ZERO = KILN_FILL_ZERO,
    INPUT_EQUAL = KILN_FILL_EQUAL,
    INPUT_ALTERNATING = KILN_FILL_ALTERNATING,
    INPUT_HUGE_TINY = KILN_FILL_HUGE_TINY,
    INPUT_SPREAD = KILN_FILL_SPREAD,
    INPUT_ANY_BITS = KILN_FILL_ANY_BITS,
    INPUT_NONFINITE = KILN_FILL_NONFINITE
} input_kind;

void inputs_fill(argument *a, input_kind kind, random_stream s);

/* Returns a NaN or an infinity. */
double inputs_nonfinite(random_stream s, uint64_t i);

/* Returns whether to make an element of a row a NaN or an infinity: one element in half of the rows, in the others
 * about one in 16. */
bool inputs_is_spoiled(random_stream s, uint64_t row, uint64_t column, uint64_t columns);

/* Fills `count` numbers from `first` on. One is about 2^of_one, the others about 2^of_others, so a kernel
 * overflows if its maximum misses that one. It is in a warp's last lane, so that a reduction needs all its steps. */
void inputs_raise_one(argument *a, uint64_t first, uint64_t count, int of_one, int of_others,
                      random_stream s);

/* In about half of the rows of k numbers, raises one number to about 2^64; the others are about 2^-20. */
void inputs_raise_some(argument *a, uint64_t k, random_stream s);

void inputs_fill_bytes(argument *a, random_stream s);

/* Sets the numbers of a real model for INPUT_REAL; they must stay valid. */
void inputs_set_real(const float *numbers, size_t count);

#endif
