/* Makers of float inputs that every family uses. */
#ifndef VERIFY_INPUTS_H
#define VERIFY_INPUTS_H

#include "families.h"

/* kiln/reference.h says what they are. */
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

/* A NaN or an infinity. */
double inputs_nonfinite(random_stream s, uint64_t i);

/* Whether an element of a row is to be a NaN or an infinity: in half of the rows one element is, in the others about one in 16. */
bool inputs_is_spoiled(random_stream s, uint64_t row, uint64_t column, uint64_t columns);

/* Fills `count` numbers from `first` on. One of them is about 2^of_one, the others are about 2^of_others. A kernel overflows if it
 * misses the one when it looks for the largest. The last lane of a warp has it, so that a reduction needs all its steps. */
void inputs_raise_one(argument *a, uint64_t first, uint64_t count, int of_one, int of_others,
                      random_stream s);

/* The same in about half of the rows of k numbers: one is about 2^64, the others 2^-20. */
void inputs_raise_some(argument *a, uint64_t k, random_stream s);

/* Random bytes. */
void inputs_fill_bytes(argument *a, random_stream s);

/* Numbers of a real model for INPUT_REAL; they must stay where they are. */
void inputs_set_real(const float *numbers, size_t count);

#endif
