/* Compares a kernel's output with its family's reference, element by element. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "execute.h"

typedef struct comparison {
    uint64_t elements, wrong;
    double
        worst_ratio; /* largest error divided by its bound, over elements and norms; 0 where bits are compared */
    bool has_bounds; /* some bound is not 0 */
} comparison;

/* Adds to `c`. The message describes the first wrong element: its index, the actual and expected values, the
 * inputs nearby. */
void compare_outcome(const problem *p, const outcome *o, comparison *c, char *message, size_t message_bytes);

/* Returns whether two executions wrote the same bytes; if not, the message says where. */
bool compare_outcomes(const problem *p, const outcome *a, const outcome *b, char *message,
                      size_t message_bytes);

#endif
