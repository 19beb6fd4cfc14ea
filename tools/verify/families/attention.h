/* The parts of attention's row, besides those of attention_inputs.h. */
#ifndef VERIFY_ATTENTION_H
#define VERIFY_ATTENTION_H

#include "families.h"

/* Computes the exact results, and their bounds. */
void attention_expect(problem *p, const input_pattern *pattern);

/* Chooses the sizes. */
void attention_plan(size_plan *plan);

#endif
