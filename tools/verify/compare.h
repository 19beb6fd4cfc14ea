/* Element by element: what a kernel wrote against what its family's reference says. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "execute.h"

typedef struct comparison {
    uint64_t elements, wrong;
    double
        worst_ratio; /* largest error, of one element or of all, as a share of its bound; 0 where bits are compared */
    bool has_bounds; /* some bound was not 0 */
} comparison;

/* Adds to `c`. The message describes the first wrong element: its place, what was got and expected, the inputs around. */
void compare_outcome(const problem *p, const outcome *o, comparison *c, char *message, size_t message_bytes);

/* Whether two executions wrote the same bytes; if not, the message says where. */
bool compare_outcomes(const problem *p, const outcome *a, const outcome *b, char *message,
                      size_t message_bytes);

#endif
