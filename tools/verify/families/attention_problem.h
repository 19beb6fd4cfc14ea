/* An attention problem's parameters: rows, codes, and how keys are divided. */
#ifndef VERIFY_ATTENTION_PROBLEM_H
#define VERIFY_ATTENTION_PROBLEM_H

#include "families.h"

enum {
    ATTENTION_MOST_DIM = 576,
    ATTENTION_MOST_PARTS = 256,
    ATTENTION_CHUNK = 4096 /* keys that tensor cores add before the sum goes to a total */
};

/* Elements of a row. */
uint64_t attention_dim(const problem *p, const char *matrix);

/* Return "k" or "v", or their codes; and their scales, per head or, with kv int8_token, per key: null if they have
 * none. */
argument *attention_keys(problem *p, const char *matrix);
argument *attention_scales(problem *p, const char *matrix);

/* Return whether K and V are codes; e4m3 codes; codes with a scale for each key. */
bool attention_has_codes(const problem *p);
bool attention_has_e4m3(const problem *p);
bool attention_has_key_scales(const problem *p);

bool attention_is_mma(const problem *p);

/* Returns the warps of a thread block that share its keys. */
uint64_t attention_key_warps(const problem *p);

/* Returns the largest number of parts into which the keys are divided. */
uint64_t attention_parts(problem *p);

/* Returns whether every part has more keys than tensor cores add before the sum goes to a total. */
bool attention_is_long(problem *p);

#endif
