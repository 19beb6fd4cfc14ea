/* NF4's table, codes and nested scales, and inputs of the products with it. Contract: QLoRA (Dettmers and others, 2023),
 * section 3, with the midpoints between table entries as thresholds. */
#ifndef VERIFY_NF4_H
#define VERIFY_NF4_H

#include "families.h"

extern const double nf4_table[16];

/* The midpoint between entries i and i + 1; rounded to float32 unless the arithmetic is float64. */
double nf4_threshold(element_type arithmetic, int i);

/* The number of thresholds below r, which is x / scale in the arithmetic's own rounding. A NaN gives 0. */
unsigned nf4_code(element_type arithmetic, double r);

/* Scale i, of the argument `scale` or nested. */
double nf4_given_scale(problem *p, uint64_t i);

/* Fills nested_absmax and nested_offset: powers of two and 0, or anything usual. */
void nf4_make_nested(problem *p, bool is_usual, random_stream s);

/* Inputs of the products. A scale from 2^low to below 2^high, of both signs, and 0; one of about 1; an element of A as large
 * as its sums allow. */
double nf4_scale_between(int low, int high, random_stream s, uint64_t i);
double nf4_usual_scale(random_stream s, uint64_t i);
double nf4_large(element_type type, random_stream s, uint64_t i);

#endif
