/* The next token from logits. */
#ifndef LM_SAMPLE_H
#define LM_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sampler {
    float temperature;  /* 0: the best token, always */
    uint32_t top_k;     /* only that many of the best; 0: all */
    float top_p;        /* of these the best whose probabilities, before the temperature, sum to it; 1: all */
    uint64_t random;    /* the state of the generator; at first the seed */
    uint32_t *order;    /* uint32_t[count]: the caller's */
    uint64_t nan_count; /* NaN logits so far */
} sampler;

/* Chooses one of `count` logits; among equal ones the first is better. A NaN becomes -INFINITY, so it is never chosen: a
 * wrong row of weights spoils one token, not the answer. False if the best is infinite: there is nothing to choose. */
bool sample(sampler *s, float *logits, uint32_t count, uint32_t *token);

#endif
