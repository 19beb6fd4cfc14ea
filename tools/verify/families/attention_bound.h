/* Bounds on the errors of a kernel's O and of the logarithms of its sums. */
#ifndef VERIFY_ATTENTION_BOUND_H
#define VERIFY_ATTENTION_BOUND_H

#include "attention_problem.h"
#include "attention_query.h"

typedef struct attention_arithmetic {
    double unit, out, product; /* u; u_T; (D / 16) * 2^-20 with mma */
    double codes;              /* u, where K and V are codes */
    double parts;
    double tiny_weight, least_normal, smallest, smallest_out;
    bool is_mma, is_random, drifts, rounds_even; /* rounds_even: weights of exactly 1 are rounded, too */
} attention_arithmetic;

/* Returns the arithmetic for O's type. Inputs may be random, or have weights that drift in a lane
 * (attention_inputs.h). */
attention_arithmetic attention_arithmetic_of(problem *p, element_type type, bool is_random, bool drifts);

/* Computes the losses of the weights, after the weights are known. */
void attention_find_losses(attention_query *t, const attention_arithmetic *a);

/* Computes the bounds of a row of O, whose exact elements are r, and of the logarithm of its sum of exponentials.
 * Scores are finite. */
void attention_bound_row(const attention_query *t, const attention_arithmetic *a, const double r[],
                         double bound[]);
double attention_bound_log(const attention_query *t, const attention_arithmetic *a, long double log);

#endif
