/* Which keys a thread block of attention goes over, and which of them a row sees. */
#ifndef KERNELS_ATTENTION_KEYS_H
#define KERNELS_ATTENTION_KEYS_H

#include "attention.h"

/* Finds the keys of the tile and of this part. Needs first, rows, the lengths and the window. */
void attention_find_keys(attention *a);

/* The key at which a row's query stands, S32; it may be none. */
ptx_val attention_own_key(const attention *a, ptx_val row);

/* The number of the key that is counted as `counted`, U32. */
ptx_val attention_key(const attention *a, ptx_val counted);

/* Whether some query of the tile does not see some of the tile_k keys from `key` on. */
ptx_val attention_is_masked(const attention *a, ptx_val key);

/* Sets scores of a row to -inf where it does not see the key: score i is that of key first + offsets[i]. For all scores of
 * a lane at once, so that `is_windowed` is found once; tile_k keys begin at `key`. */
typedef struct attention_scores {
    ptx_val row;             /* number */
    ptx_val first;           /* the lane's first key; U32 */
    const uint32_t *offsets; /* keys behind it */
    ptx_val **score;         /* variables */
    uint32_t count;
} attention_scores;

void attention_mask_scores(const attention *a, ptx_val key, const attention_scores rows[], uint32_t count);

#endif
