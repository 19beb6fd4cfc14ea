/* What the references of the group-wise quantisers (int4, nf4) share: arithmetic, groups, nibbles, sizes, given scales. */
#ifndef VERIFY_GROUPS_H
#define VERIFY_GROUPS_H

#include "families.h"
#include "inputs.h"

/* float64 for float64 elements, float32 for all others. */
element_type groups_arithmetic(element_type elements);

/* Each rounded once to the arithmetic's type. */
double groups_add(element_type arithmetic, double a, double b);
double groups_subtract(element_type arithmetic, double a, double b);
double groups_multiply(element_type arithmetic, double a, double b);
double groups_divide(element_type arithmetic, double a, double b);

/* Elements per scale: the parameter `group`, or the argument group_size when that is "any". */
uint64_t groups_size(problem *p);

/* Elements [first, last) of group g; the last group may be short. */
typedef struct group_range {
    uint64_t first, last;
} group_range;
group_range groups_range(problem *p, uint64_t g);

/* Where the codes of even numbers lie in their bytes, 0 or 4; those of odd numbers have the other half. */
unsigned groups_even_shift(const problem *p);

static inline unsigned groups_shift(unsigned even_shift, uint64_t i)
{
    return even_shift ^ (i % 2 ? 4 : 0);
}

/* Inputs of every group-wise quantiser, beside those of inputs.h. */
enum {
    GROUPS_NAN = 50,        /* normal, one in 16 a NaN */
    GROUPS_ANY_SCALE,       /* normal; given scales and zeros are any finite bits: negative, tiny, huge */
    GROUPS_NONFINITE_SCALE, /* normal; given scales and zeros are one in 16 a NaN or an infinity */
    GROUPS_TIE_SCALE /* normal; given scales are half-way between two f16 or bf16 numbers, zeros are whole */
};

/* Fills elements of any of these kinds, or of inputs.h. */
void groups_fill_elements(argument *in, int kind, random_stream s);

/* Fills given scales or zeros that do not belong to elements. */
void groups_fill_numbers(argument *numbers, int kind, random_stream s);

/* Notes sizes around every edge of groups and tiles, for several sizes of group where that is an argument. */
void groups_plan(size_plan *sizes);

#endif
