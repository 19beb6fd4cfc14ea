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

/* What these give when they are rounded the other way; the same where nothing is rounded. The divisor is positive. */
double groups_other_sum(element_type arithmetic, double a, double b);
double groups_other_quotient(element_type arithmetic, double a, double b);

/* Elements per scale: the parameter `group`, or the argument group_size when that is "any". */
uint64_t groups_size(problem *p);

/* Elements [first, last) of group g; the last group may be short. */
typedef struct group_range {
    uint64_t first, last;
} group_range;
group_range groups_range(problem *p, uint64_t g);
uint64_t groups_count(problem *p); /* of its n elements */

/* Where the codes of even numbers lie in their bytes, 0 or 4; those of odd numbers have the other half. */
unsigned groups_even_shift(const problem *p);

static inline unsigned groups_shift(unsigned even_shift, uint64_t i)
{
    return even_shift ^ (i % 2 ? 4 : 0);
}

/* Sets the code of element i, in given codes. */
void groups_set_code(const problem *p, argument *packed, uint64_t i, unsigned code);

/* Inputs of every group-wise quantiser, beside those of inputs.h. */
enum {
    GROUPS_NAN = 50,        /* normal, one in 16 a NaN */
    GROUPS_INFINITY,        /* groups of one infinity, of either sign, some with NaNs */
    GROUPS_ANY_SCALE,       /* normal; given scales and zeros are any finite bits: negative, tiny, huge */
    GROUPS_NONFINITE_SCALE, /* normal; one in four given scales and zeros is a NaN or an infinity */
    GROUPS_TIE_SCALE, /* normal; given scales are half-way between two f16 or bf16 numbers, zeros are whole */
    GROUPS_NEAR_TIE,  /* given scales times a code's value are this except for a rounding, zeros are whole */
    GROUPS_THRESHOLDS = 100, /* from here on group by group: quotients at thresholds between codes */
    GROUPS_HARD,             /* codes depend on how quotients and their sums with the zero are rounded */
    GROUPS_NEAR_SMALLEST,    /* the range is about the smallest that has a scale of its own */
    GROUPS_EQUAL,            /* one number */
    GROUPS_HUGE,             /* up to 1e25 */
    GROUPS_FAR               /* far from 0 for their range */
};

/* Fills elements of any of these kinds below GROUPS_THRESHOLDS, or of inputs.h. */
void groups_fill_elements(problem *p, argument *in, int kind, random_stream s);

/* What a group is filled with: one of three with the input's own kind, the others with what shows most of how codes are
 * found, so that whichever input a size takes does. Which one begins is another one in each case: a kernel does the same
 * groups of a tile with the same instructions. `s`: of the case. */
typedef enum groups_share { GROUPS_OWN, GROUPS_NEAR, GROUPS_AT } groups_share;
groups_share groups_share_of(random_stream s, uint64_t g);

/* What group g is filled with, in an input of the kind `own`. */
int groups_kind_of(problem *p, random_stream s, uint64_t g, int own);

/* After all else is filled, what is small or infinite; and of half of the short last groups whose scale is made, the last
 * element is the largest: where the kernel loses it, that shows. Null `scale`: none is given. */
void groups_finish_blocks(problem *p, argument *in, argument *scale, random_stream s);

/* Where in a group of `count` its largest element is: in neighbouring groups far apart, and in those of neighbouring tiles at
 * places of all remainders and with both signs, since an instruction has every second to eighth element. */
uint64_t groups_extreme_place(problem *p, random_stream s, uint64_t g, uint64_t count);
bool groups_extreme_is_negative(problem *p, uint64_t g);

/* A normal number of the type, 1 to 2 times a power of two from 2^-6 to 2^6, with any mantissa. */
double groups_any_mantissa(element_type type, random_stream s, uint64_t i);

/* The number `steps` from x. */
double groups_step(element_type type, double x, int steps);

/* Fills given scales or zeros that do not belong to elements; those of 0 and denormal ones alternate with normal ones. */
void groups_fill_numbers(argument *numbers, int kind, random_stream s);

/* GROUPS_NEAR_TIE: a scale by which this value comes so near to a tie of the outputs' type, where that has 16 bits, that
 * what the product is rounded to decides. */
double groups_near_tie_scale(element_type outputs, double value, random_stream s, uint64_t g);

/* Notes sizes around every edge of groups and tiles, for several sizes of group where that is an argument. */
void groups_plan(size_plan *sizes);

#endif
