/* The keys of a thread block of attention, the keys that a row sees, and the shaping of a score between the product and the
 * softmax: a cap, ALiBi's distance, or an added mask. */
#ifndef KERNELS_ATTENTION_SCORE_H
#define KERNELS_ATTENTION_SCORE_H

#include "attention.h"

/* Finds the keys of the tile and of this part. Needs first, rows, the lengths and the window. */
void attention_find_keys(attention *a);

/* The number of the counted key `counted`, U32. */
ptx_val attention_key(const attention *a, ptx_val counted);

/* Declares the parameters of the shaping, after all others, and finds factor and Q's end. With scale 0 Q is zeros and the
 * scale that of 1, so that a mask's -inf stays -inf. */
void attention_init_scores(attention *a, ptx_val scale);

/* A lane's first score: its row's number in the tile's head, and its key's in the sequence; U32. */
typedef struct attention_origin {
    ptx_val row, key;
} attention_origin;

/* Shapes scores of the tile_k keys from `key` on, as exponents before `factor`, and sets a score to -inf if its row does not
 * see the key. Calls `find` for the lane's first score: at each use, to save registers, or once if finds_once. */
void attention_shape_and_mask(const attention *a, ptx_val key, bool finds_once, const attention_slice *scores,
                              attention_origin (*find)(const void *of, ptx_val key), const void *of);

/* Returns the shift of row i: the largest score of the `lanes` lanes that share it, times the factor. */
ptx_val attention_find_shift(const attention *a, const attention_slice *slice, uint32_t i, int lanes);

/* Adds the sinks' scores to the sums of rows, and finds the factors that turn the rows' sums of V into O; they include the
 * head's scale of V. */
void attention_find_shares(const attention *a, const ptx_val numbers[], softmax_row rows[], ptx_val shares[],
                           uint32_t count);

/* If `is_here` holds, stores the log-sum-exp of a row, if requested. */
void attention_store_log(const attention *a, ptx_val is_here, ptx_val number, const softmax_row *row);

#endif
