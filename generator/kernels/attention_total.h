/* Sums of O over more keys than one set of accumulators may take. Tensor cores cut what they add, at every step: after k
 * keys a sum falls short by up to a share of itself that grows with k. So after every ATTENTION_CHUNK keys the sums are
 * added to a total, rounded, and begin again at 0. It is each thread's own, in local memory, since no registers are left
 * for it; only where there is more than one chunk is it touched, once in each. */
#ifndef KERNELS_ATTENTION_TOTAL_H
#define KERNELS_ATTENTION_TOTAL_H

#include "attention.h"

enum { ATTENTION_CHUNK = 4096 /* keys; a multiple of every tile_k */ };

/* What a lane has of 16 rows of O: fragments of two columns of row[0], then the same two of row[1]. */
typedef struct attention_sums {
    attention_row *row; /* two */
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

/* A total of no keys. */
void attention_clear_total(const attention_total *t);

/* The sums of a chunk join it, by the shift that their row has now, and begin again at 0. */
void attention_add_to_total(const attention_total *t);

/* The sums become the total. */
void attention_take_total(const attention_total *t);

#endif
