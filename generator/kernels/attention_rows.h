/* A warp's rows of O on tensor cores, in registers: in the loop over the keys, and from there to memory.
 *
 * MANY KEYS. Tensor cores truncate at every step: after k keys a sum falls short by a relative error that grows with k; and a
 * sum of weights takes one addition per key of a lane. So every ATTENTION_CHUNK keys the sums are added to a total, with
 * rounding, and restart at 0. Each thread has its total in local memory, since no registers are left, and touches it once per
 * chunk if there is more than one.
 */
#ifndef KERNELS_ATTENTION_ROWS_H
#define KERNELS_ATTENTION_ROWS_H

#include "attention_split.h"

enum {
    BLOCK_ROWS = 16,
    MOST_BLOCKS = 4,
    MOST_PRODUCTS = 32,
    ATTENTION_CHUNK = 4096 /* keys; a multiple of every tile_k */
};

/* Sums of products: `blocks` of 16 rows by `octets` of eight columns. Lane (g, t), see device/fragment.h, has rows g and g + 8 of each
 * block, its rows 2 * block and 2 * block + 1, and columns 2t and 2t + 1 of each octet. */
typedef struct attention_sums {
    uint32_t blocks, octets;
    ptx_val of[MOST_PRODUCTS][4];
} attention_sums;

static inline ptx_val *attention_product(attention_sums *s, uint32_t block, uint32_t octet)
{
    return s->of[block * s->octets + octet];
}

/* Number n of the lane's row i. */
static inline ptx_val attention_sum(const attention_sums *s, uint32_t i, uint32_t n)
{
    return s->of[i / 2 * s->octets + n / 2][i % 2 * 2 + n % 2];
}

/* Rows of O, not yet divided by the sums of their weights. A lane has two pairs of each 16 columns, in two octets; or, with
 * codes of V, four neighbours, the even ones in one octet and the odd ones in the next. */
typedef struct attention_rows {
    attention_sums sums;
    uint32_t width; /* 2 or 4 neighbouring columns */
    softmax_row row[2 * MOST_BLOCKS];
} attention_rows;

/* Initialises the two rows of a block to no keys; and its sums. */
void attention_init_rows(const attention *a, attention_rows *r, uint32_t block);
void attention_clear_sums(const attention *a, attention_rows *r, uint32_t block);

/* ---- many keys ------------------------------------------------------------------------------------------------------- */

/* Loops over this part's keys in tiles of tile_k: `add` takes a tile, by its first counted key, or, if warps have their own
 * keys, by the warp's first, `ahead` more, a U32. A chunk of the thread block has chunk_keys keys; at the end the sums of all
 * rows cover all chunks. */
enum { MOST_TOTALS = 2 };
void attention_add_chunks(const attention *a, attention_rows *const rows[], uint32_t count,
                          uint32_t chunk_keys, const ptx_val *ahead, void (*add)(void *of, ptx_val counted),
                          void *of);

/* ---- results --------------------------------------------------------------------------------------------------------- */

/* The numbers of the lane's rows, starting at `first`. */
void attention_number_rows(const attention *a, const attention_rows *r, ptx_val first, ptx_val numbers[]);

/* Column n of the lane's columns in its row i. */
ptx_val attention_column(const attention_rows *r, uint32_t i, uint32_t n);

/* The lane's slices, with its first row and column. */
attention_slices attention_slice_rows(const attention *a, const attention_rows *r, ptx_val first,
                                      ptx_val column);

#endif
