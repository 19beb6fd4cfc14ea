/* What an attention problem's parameters say: rows, codes, and how keys are cut. */
#ifndef VERIFY_ATTENTION_PROBLEM_H
#define VERIFY_ATTENTION_PROBLEM_H

#include "families.h"

enum {
    ATTENTION_MOST_DIM = 576,
    ATTENTION_MOST_PARTS = 256,
    ATTENTION_CHUNK = 4096 /* keys that tensor cores sum before a total takes them */
};

/* Elements of a row. */
uint64_t attention_dim(const problem *p, const char *matrix);

/* "k" or "v", or their codes; and their scales, of heads or, with kv int8_token, of keys: null where they have none. */
argument *attention_keys(problem *p, const char *matrix);
argument *attention_scales(problem *p, const char *matrix);

/* Whether K and V are codes; of e4m3; with a scale for each key. */
bool attention_has_codes(const problem *p);
bool attention_has_e4m3(const problem *p);
bool attention_has_key_scales(const problem *p);

bool attention_is_mma(const problem *p);

/* Warps of a thread block that share its keys. */
uint64_t attention_key_warps(const problem *p);

/* The most parts that the keys are cut into. */
uint64_t attention_parts(problem *p);

/* More keys in every part than tensor cores sum before a total takes them. */
bool attention_is_long(problem *p);

#endif
