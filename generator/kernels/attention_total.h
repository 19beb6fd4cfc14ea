/* Sums of O over more keys than one set of accumulators may take. Tensor cores truncate at every step: after k keys a sum
 * falls short by a relative error that grows with k. So after every ATTENTION_CHUNK keys the sums are added to a total,
 * with rounding, and restart at 0. Each thread has its total in local memory, since no registers are left, and touches it
 * once per chunk where there is more than one. */
#ifndef KERNELS_ATTENTION_TOTAL_H
#define KERNELS_ATTENTION_TOTAL_H

#include "attention.h"
#include "device/softmax.h"

enum { ATTENTION_CHUNK = 4096 /* keys; a multiple of every tile_k */ };

/* A lane's share of 16 rows of O: fragments of two columns of row[0], then the same two of row[1]. */
typedef struct attention_sums {
    softmax_row *row; /* two */
    ptx_val (*fragment)[4];
} attention_sums;

typedef struct attention_total {
    const attention *a;
    const attention_sums *sums;
    uint32_t blocks, fragments; /* sets of sums; fragments in each */
    ptx_val at;
} attention_total;

attention_total attention_init_total(const attention *a, const attention_sums sums[], uint32_t blocks,
                                     uint32_t fragments);

/* Sets the total to that of no keys. */
void attention_clear_total(const attention_total *t);

/* Adds the sums of a chunk, scaled by the shift that their row has now. They restart at 0. */
void attention_add_to_total(const attention_total *t);

/* Replaces the sums by the total. */
void attention_take_total(const attention_total *t);

#endif
