/* The inputs of attention: what each is for is in attention_inputs.c. */
#ifndef VERIFY_ATTENTION_INPUTS_H
#define VERIFY_ATTENTION_INPUTS_H

#include "families.h"

/* Rows of Q that are so far apart ask for inputs of their own: for what goes from tile to tile, or from chunk to chunk; and for
 * which keys are seen. */
enum {
    ATTENTION_APART = 2000,    /* elements from row to row */
    ATTENTION_COUNTED_GAP = 24 /* between rows, where each key counts */
};

extern const input_pattern attention_patterns[];

void attention_make(problem *p, const input_pattern *pattern, random_stream s);

/* Whether the problem's inputs of a pattern are random; whether a lane's weights are one and many that are small beside it. */
bool attention_is_random(problem *p, const input_pattern *pattern);
bool attention_drifts(problem *p, const input_pattern *pattern);

#endif
