/* Computes the exact results of attention, and their bounds. */
#ifndef VERIFY_ATTENTION_REFERENCE_H
#define VERIFY_ATTENTION_REFERENCE_H

#include "families.h"

void attention_expect(problem *p, const input_pattern *pattern);

#endif
