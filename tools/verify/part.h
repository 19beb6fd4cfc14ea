/* Divides a run into parts: each variant is in one of them. */
#ifndef VERIFY_PART_H
#define VERIFY_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct part_share {
    uint64_t number, of; /* from 1 on */
} part_share;

enum { MOST_PARTS = 65536 };

/* Sets in_part[i] if the i-th variant is in the part. The result depends only on the weights and their order.
 * Variants go, heaviest first, to the part with the smallest sum so far. A part may stay empty. */
void part_choose(part_share share, const uint64_t *weights, size_t count, bool *in_part);

#endif
