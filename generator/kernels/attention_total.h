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

/* Goes over this part's keys: `add` takes a tile of keys, given its first as keys are counted. Of each tile_k a warp has those that
 * are *ahead of the first, U32; null: all. A chunk of the thread block has chunk_keys keys; in the end the sums are those of
 * all chunks. */
void attention_add_tiles(const attention_total totals[], uint32_t count, uint32_t chunk_keys,
                         const ptx_val *ahead, void (*add)(void *of, ptx_val counted), void *of);

#endif
