/* Fills arrays of indices at full size. */
#ifndef TUNE_INDICES_H
#define TUNE_INDICES_H

#include "../verify/problem.h"

/* Returns the elements of an argument that holds indices, in the pool's memory. Null: it holds no indices, or they
 * have no bound. */
void *indices_make(pool *p, const problem *whole, const argument *a);

#endif
