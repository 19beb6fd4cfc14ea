/* Samples the next token from logits. */
#ifndef LM_SAMPLE_H
#define LM_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sampler {
    float temperature; /* 0: always the best token */
    uint32_t top_k;    /* samples only from this many best tokens; 0: all */
    float top_p; /* then only from the best whose probabilities, before the temperature, sum to it; 1: all */
    uint64_t random;    /* state of the random generator, initially the seed */
    uint32_t *order;    /* uint32_t[count]: the caller's */
    uint64_t nan_count; /* number of NaN logits so far */
} sampler;

/* Chooses one of `count` logits; of equal logits the first wins. A NaN becomes -INFINITY and is never chosen, so a wrong row
 * of weights spoils one token, not the answer. Returns false if the best logit is infinite. */
bool sample(sampler *s, float *logits, uint32_t count, uint32_t *token);

#endif
