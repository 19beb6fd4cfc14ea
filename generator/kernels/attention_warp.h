/* A warp of attention on tensor cores: its work on a tile of keys in shared memory.
 *
 *              rows of scores and O       keys of a tile            columns of O
 *     mma      one block or two of 16     all                       all
 *     decode   all 16                     its own, in its own ring  all
 *     wide     of scores a block, else    those of its group        some
 *              all blocks
 *
 * Except in wide, scores stay in the registers of the first product: rounded to pairs they are the A operand of the second
 * one. Each lane has parts of two rows of a block, eight apart; four lanes share a row.
 *
 * OPERANDS are in strips of 16 columns, so that each step of a product takes its fragments from a strip, without bank
 * conflicts: see attention_copy.h. Every address is one that the lane computes once, plus a constant. A row has some steps of
 * 16 elements, and may have a tail of eight more: there ldmatrix's four registers are of 32 keys instead of 16.
 *
 * CODES of 8 bits take half the space: a unit of 16 bytes is a step. A register of ldmatrix has four neighbouring elements of
 * a row of K, which the product takes as its elements 2t, 2t + 1, 2t + 8 and 2t + 9 along k: a lane loads Q in the same
 * order. A register of V has two neighbouring columns of two keys: the even columns of a unit are one product, the odd ones
 * another, so that a lane has four neighbouring columns of O.
 */
#ifndef KERNELS_ATTENTION_WARP_H
#define KERNELS_ATTENTION_WARP_H

#include "attention_copy.h"
#include "device/fragment.h"

enum {
    BLOCK_ROWS = 16,
    MOST_BLOCKS = 4,
    MOST_SMALL = 128, /* largest head_dim for which registers hold Q, or two blocks */
    MOST_HELD = MOST_SMALL / 16 + 1,
    MOST_OCTETS = 128 / OCTET /* of keys in a tile */
};

/* Q, K or V, in shared memory. */
typedef struct attention_operand {
    layout lines;
    uint32_t steps; /* 16 elements of a row each */
    bool has_tail;
    attention_panel panel; /* which copies it */
    ptx_val at, tail;      /* this lane's row for ldmatrix; its row for tails, if any */
} attention_operand;

/* The strategies decode and wide have more members, after a warp's. */
typedef struct attention_warp attention_warp;
struct attention_warp {
    attention *a;
    /* The steps of a tile: weigh makes the weights of the keys from `key` on, add_values adds their values. */
    void (*weigh)(attention_warp *m, ptx_val key);
    void (*add_values)(attention_warp *m);
    ptx_type pairs;   /* of elements */
    uint32_t threads; /* of the thread block */
    uint32_t keys;    /* of a tile in shared memory */
    uint32_t groups;  /* of warps, which divide the keys; if several, warps also divide O's columns */
    bool has_codes;   /* K and V are codes */
    bool holds_q;     /* all of Q is in registers */
    bool v_in_k;      /* V takes K's place */
    layout out_lines;
    uint32_t scales_start; /* of the tile, with a scale for each key: see attention_copy_scales */
    uint32_t shared_bytes;
    attention_operand q, k, v;
    attention_copier copier; /* of K and V */
    ptx_val lane, warp, shared;
    ptx_val row_warp;    /* which rows of scores the warp has, a block or two: their number, U32 */
    ptx_val group;       /* the number of its group, U32 */
    ptx_val first_octet; /* of its group's keys, if there are several */
    /* Lane 8 * i + j points to row j of the i-th of ldmatrix's four matrices. upper: i / 2; in_16: j + 8 * (i % 2). */
    ptx_val upper, in_16;
    ptx_val key;       /* the tile's first, whose rows of K are in flight */
    ptx_val scales_at; /* of codes: this lane's first scale of K */
    ptx_val zero, q_of[MOST_HELD][4];
    attention_slice scores;
    ptx_val weight[MOST_BLOCKS][2 * MOST_OCTETS]; /* pairs: of two rows for each octet of keys */
    attention_rows rows;
};

/* One of several warps, with `blocks` blocks of rows, a tile's keys and all columns of O. f may be null before
 * attention_warp_init. */
attention_warp attention_warp_geometry(attention *a, uint32_t warps, uint32_t blocks, uint32_t keys);

/* Lays out shared memory. For copies by all threads: Q, which O later overlays, and after it K and V. With is_ring, for copies by
 * one warp: its ring of K and V, from 0 on, and Q. */
void attention_lay_out(attention_warp *m, bool is_ring, bool v_in_k);

/* ---- products -------------------------------------------------------------------------------------------------------- */

/* A slice of products on tensor cores: `blocks` of 16 rows by `octets` of eight columns. Lane (g, t), see device/fragment.h, has
 * rows g and g + 8 of each block, and columns 2t and 2t + 1 of each octet. With codes of V it has four neighbouring columns of O:
 * the even ones are in one octet, the odd ones in the next. */
static inline uint32_t attention_blocks(const attention_slice *s)
{
    return s->rows / 2;
}

static inline uint32_t attention_octets(const attention_slice *s)
{
    return attention_columns(s) / 2;
}

/* Element n of the lane's row i, in the order of products; a variable. */
static inline ptx_val *attention_sum(attention_slice *s, uint32_t i, uint32_t n)
{
    return &s->x[i][s->width == 4 ? n / 4 * 4 + n % 2 * 2 + n % 4 / 2 : n];
}

/* The lane's four sums of a product. */
static inline void attention_product(attention_slice *s, uint32_t block, uint32_t octet, ptx_val sums[4])
{
    for (uint32_t i = 0; i < 4; i++)
        sums[i] = *attention_sum(s, 2 * block + i / 2, 2 * octet + i % 2);
}

/* Initialises rows of O to no keys. */
void attention_init_rows(const attention *a, attention_rows *r);

/* Sets the resources of a kernel whose shared memory and warps are those of `m`. */
void attention_warp_shape(kiln_shape *s, const attention_warp *m);

/* Finds this thread, which copies K and V with all others, and initialises its rows to no keys. */
void attention_warp_init(attention_warp *m);

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

/* Finds the copiers' sources: Q for m->shared, K and V for `keys`. */
void attention_init_panels(attention_warp *m, const attention_copier *of_q, ptx_val keys);

/* Starts to copy Q and the first tile of K; waits for all copies of the thread block. */
void attention_start_copies(attention_warp *m);
void attention_wait_for_copies(const attention_warp *m);

/* Processes a tile of keys of a thread block: V is copied during `weigh`, the next K during `add_values`, which reads V. With
 * v_in_k, `weigh` copies V after all warps have their scores. */
void attention_add_tile(attention_warp *m, ptx_val counted);

/* ---- a lane ---------------------------------------------------------------------------------------------------------- */

/* The lane's place in fragments, see device/fragment.h: found at each use, since it would take registers. */
static inline ptx_val attention_lane_g(const attention_warp *m)
{
    return ptx_shr(m->a->f, m->lane, 2);
}

static inline ptx_val attention_lane_t(const attention_warp *m)
{
    return ptx_and(m->a->f, m->lane, FRAGMENT_LANES - 1);
}

/* Finds the lane's rows of Q, and those of K and V from `keys` on. */
void attention_init_operands(attention_warp *m, ptx_val keys);

/* The number of the lane's first row of scores. */
ptx_val attention_first_row(const attention_warp *m);

/* Adds sinks to the lane's rows, of which the first has number `first`, and stores O and its log-sum-exps. All threads of the
 * thread block must call it: it has barriers. */
void attention_store_results(void *warp, ptx_val first);

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */

/* Steps of `weigh` and `add_values`: the first makes shaped and masked scores; the second returns the pair of weights of the
 * lane's two keys of an octet, and adds them to row->sum; the third adds two octets' values. */
void attention_make_scores(attention_warp *m, ptx_val key);
ptx_val attention_weigh_pair(const attention_warp *m, const softmax_row *row, ptx_val minus, uint32_t i,
                             uint32_t octet);
void attention_add_keys(attention_warp *m, uint32_t octet);

/* Raises the shifts of rows of O where the scores need larger ones. If warps divide the keys, pass the shifts joined over all
 * warps, and a function that also raises the rows of scores; otherwise pass null. */
void attention_raise_rows(attention_warp *m, const ptx_val joined[], void (*raise_scores)(attention_warp *m));

/* ---- many keys ------------------------------------------------------------------------------------------------------- */

/* Loops over this part's keys in tiles of tile_k, and passes each tile's first counted key to `add`; if warps have their own
 * keys, the warp's first key of the tile, which is `ahead` (U32) keys further. The sums of all `count` rows cover all chunks of
 * keys: see attention_chunks.c. */
void attention_add_chunks(attention_warp *m, attention_rows *const rows[], uint32_t count,
                          const ptx_val *ahead, void (*add)(attention_warp *m, ptx_val counted));

/* attention_add_chunks for the warp's rows, with Q in registers if holds_q. Afterwards no copy is in flight, and all lanes of a
 * row have its sum of weights. */
void attention_add_tiles(attention_warp *m, const ptx_val *ahead,
                         void (*add)(attention_warp *m, ptx_val counted));

#endif
