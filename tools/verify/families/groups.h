/* Shared by the references of the group-wise quantisers (int4, nf4): arithmetic, groups, nibbles, sizes, given
 * scales. */
#ifndef VERIFY_GROUPS_H
#define VERIFY_GROUPS_H

#include "families.h"
#include "inputs.h"

/* Returns float64 for float64 elements, float32 for all others. */
element_type groups_arithmetic(element_type elements);

/* Each rounds once to the arithmetic's type. */
double groups_add(element_type arithmetic, double a, double b);
double groups_subtract(element_type arithmetic, double a, double b);
double groups_multiply(element_type arithmetic, double a, double b);
double groups_divide(element_type arithmetic, double a, double b);

/* Return the result rounded the other way, or the same if it is exact. The divisor is positive. */
double groups_other_sum(element_type arithmetic, double a, double b);
double groups_other_quotient(element_type arithmetic, double a, double b);

/* Returns elements per scale: the parameter `group`, or the argument group_size if that is "any". */
uint64_t groups_size(problem *p);

/* Elements [first, last) of group g; the last group may be short. */
typedef struct group_range {
    uint64_t first, last;
} group_range;
group_range groups_range(problem *p, uint64_t g);
uint64_t groups_count(problem *p); /* groups in its n elements */

/* Returns the shift of even-numbered codes in their bytes, 0 or 4; odd-numbered codes have the other half. */
unsigned groups_even_shift(const problem *p);

static inline unsigned groups_shift(unsigned even_shift, uint64_t i)
{
    return even_shift ^ (i % 2 ? 4 : 0);
}

void groups_set_code(const problem *p, argument *packed, uint64_t i, unsigned code);

/* Inputs of every group-wise quantiser, in addition to those of inputs.h. */
enum {
    GROUPS_NAN = 50,        /* normal, one in 16 a NaN */
    GROUPS_INFINITY,        /* groups of one infinity with either sign, some with NaNs */
    GROUPS_ANY_SCALE,       /* normal; given scales and zeros are any finite bits: negative, tiny, huge */
    GROUPS_NONFINITE_SCALE, /* normal; one in four given scales and zeros is a NaN or an infinity */
    GROUPS_TIE_SCALE, /* normal; given scales are half-way between two f16 or bf16 numbers, zeros are integers */
    GROUPS_NEAR_TIE,         /* given scales times a code's value are nearly half-way, zeros are integers */
    GROUPS_THRESHOLDS = 100, /* from here on per group: quotients at thresholds between codes */
    GROUPS_HARD,             /* codes depend on the rounding of quotients and of their sums with the zero */
    GROUPS_NEAR_SMALLEST,    /* the range is near the smallest that determines a scale */
    GROUPS_EQUAL,            /* all elements equal */
    GROUPS_HUGE,             /* up to 1e25 */
    GROUPS_FAR               /* far from 0, relative to their range */
};

/* Fills elements of a kind below GROUPS_THRESHOLDS, or of inputs.h. */
void groups_fill_elements(problem *p, argument *in, int kind, random_stream s);

/* The kinds of a group's elements: one group in three has the input's own kind, the others the kinds that show
 * most mistakes in codes, whichever input a size takes. The first group's kind differs between cases, since a
 * kernel executes the same groups of a tile with the same instructions. `s`: the case's stream. */
typedef enum groups_share { GROUPS_OWN, GROUPS_NEAR, GROUPS_AT } groups_share;
groups_share groups_share_of(random_stream s, uint64_t g);

/* Returns the kind of group g's elements, in an input of the kind `own`. */
int groups_kind_of(problem *p, random_stream s, uint64_t g, int own);

/* Returns whether elements of group g may be NaNs. In some tiles none are: a NaN sends the whole tile to a slow path
 * where a kernel finds extremes of 16-bit elements two at a time. */
bool groups_may_have_nans(problem *p, random_stream s, uint64_t g);

/* Makes small and infinite groups, after everything else is filled. In three quarters of the short last groups whose
 * scale is computed, makes the last element the largest, so that a kernel that skips it is wrong. Null `scale`: none is
 * given. */
void groups_finish_blocks(problem *p, argument *in, argument *scale, random_stream s);

/* Returns the index of the largest element in a group of `count`: far apart in adjacent groups, and in adjacent
 * tiles with all remainders and both signs, since an instruction processes every second to eighth element. */
uint64_t groups_extreme_place(problem *p, random_stream s, uint64_t g, uint64_t count);
bool groups_extreme_is_negative(problem *p, uint64_t g);

/* Returns a normal number of the type, 1 to 2 times a power of two from 2^-6 to 2^6, with any mantissa. */
double groups_any_mantissa(element_type type, random_stream s, uint64_t i);

/* Returns the number `steps` representable numbers from x. */
double groups_step(element_type type, double x, int steps);

/* Fills given scales or zeros independently of the elements; zero and denormal numbers alternate with normal
 * ones. */
void groups_fill_numbers(argument *numbers, int kind, random_stream s);

/* GROUPS_NEAR_TIE: returns a scale whose product with this value is so close to a tie of a 16-bit outputs' type
 * that the product's rounding decides. */
double groups_near_tie_scale(element_type outputs, double value, random_stream s, uint64_t g);

/* Notes sizes around every edge of groups and tiles, for several group sizes if that is an argument. */
void groups_plan(size_plan *sizes);

#endif
