/* NF4's table, codes and nested scales, and inputs of products. Contract: QLoRA (Dettmers and others, 2023),
 * section 3, with the midpoints between table entries as thresholds. */
#ifndef VERIFY_NF4_H
#define VERIFY_NF4_H

#include "families.h"

extern const double nf4_table[16];

/* Returns the midpoint between entries i and i + 1; rounded to float32 unless the arithmetic is float64. */
double nf4_threshold(element_type arithmetic, int i);

/* Returns the number of thresholds below r, which is x / scale rounded to the arithmetic's type. A NaN gives 0. */
unsigned nf4_code(element_type arithmetic, double r);

/* Returns scale i, from the argument `scale` or nested. */
double nf4_given_scale(problem *p, uint64_t i);

/* Fills nested_absmax and nested_offset: with powers of two and 0, or with typical numbers. */
void nf4_make_nested(problem *p, bool is_usual, random_stream s);

/* Inputs of products: a scale from 2^low to below 2^high with either sign, or 0; a scale near 1; the largest
 * element of A that its sums allow. */
double nf4_scale_between(int low, int high, random_stream s, uint64_t i);
double nf4_usual_scale(random_stream s, uint64_t i);
double nf4_large(element_type type, random_stream s, uint64_t i);

#endif
