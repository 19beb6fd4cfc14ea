/* Makes the inputs of attention; attention_inputs.c says what each tests. */
#ifndef VERIFY_ATTENTION_INPUTS_H
#define VERIFY_ATTENTION_INPUTS_H

#include "families.h"

/* Distances between rows of Q that request special inputs: for values carried from tile to tile or from chunk to
 * chunk; and for which keys are seen. */
enum {
    ATTENTION_APART = 2000,    /* elements between the starts of rows */
    ATTENTION_COUNTED_GAP = 24 /* gap between rows of a problem in which each key has weight */
};

extern const input_pattern attention_patterns[];

void attention_make(problem *p, const input_pattern *pattern, random_stream s);

/* Return whether the inputs of a pattern are random; and whether a lane's weights are a 1 and many small ones. */
bool attention_is_random(problem *p, const input_pattern *pattern);
bool attention_drifts(problem *p, const input_pattern *pattern);

#endif
