/* The next token from logits. */
#ifndef LM_SAMPLE_H
#define LM_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sampler {
    float temperature; /* 0: the best token, always */
    uint32_t top_k;    /* only that many of the best; 0: all */
    float top_p;       /* of these the best whose probabilities, before the temperature, sum to it; 1: all */
    uint64_t random;   /* the state of the generator; at first the seed */
    uint32_t *order;   /* uint32_t[count]: the caller's */
} sampler;

/* One of `count` logits, of equal ones the first before the others. False when one is a NaN or the best is infinite. */
bool sample(sampler *s, const float *logits, uint32_t count, uint32_t *token);

#endif
