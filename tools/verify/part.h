/* The parts of a run that is spread over several: each variant is in one of them. */
#ifndef VERIFY_PART_H
#define VERIFY_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct part_share {
    uint64_t number, of; /* from 1 on */
} part_share;

enum { MOST_PARTS = 65536 };

/* Sets in_part[i] where the i-th variant is in the part. It depends on the weights and on their order alone. Each variant,
 * the heaviest first, goes to the part that has the least so far. A part may stay empty. */
void part_choose(part_share share, const uint64_t *weights, size_t count, bool *in_part);

#endif
