/* A warp of attention on tensor cores: what it makes of a tile of keys that is in shared memory.
 *
 * Scores stay in the registers in which the first product leaves them: rounded to pairs they are the A operand of the second one.
 * Each lane has parts of two rows of a block, eight apart; four lanes share a row.
 *
 * OPERANDS lie in strips of 16 columns, so that each step of a product takes its fragments from a strip, and there are no bank
 * conflicts: see layout. Every address is one that the lane makes once, plus a constant. A row has some steps of 16
 * elements, and may have a tail of eight more: there four registers of ldmatrix are of 32 keys instead of 16.
 *
 * CODES of 8 bits take half of the space: a unit of 16 bytes is a step. A register of ldmatrix has four neighbouring elements of a
 * row of K, which the product takes as its elements 2t, 2t + 1, 2t + 8 and 2t + 9 along the sum: a lane takes those of Q. Of V it
 * has two neighbouring columns of two keys: the even columns of a unit are one product, the odd ones another, so that a
 * lane has four neighbouring columns of O.
 */
#ifndef KERNELS_ATTENTION_WARP_H
#define KERNELS_ATTENTION_WARP_H

#include "attention_copy.h"
#include "attention_pages.h"
#include "attention_rows.h"
#include "attention_score.h"

enum {
    MOST_SMALL = 128, /* up to this head_dim registers hold Q, or two blocks */
    MOST_HELD = MOST_SMALL / 16 + 1,
    MOST_OCTETS = 128 / OCTET /* of keys in a tile */
};

/* Q, K or V, in shared memory. */
typedef struct attention_operand {
    layout lines;
    uint32_t steps; /* 16 elements of a row each */
    bool has_tail;
    attention_panel panel; /* which copies it */
    ptx_val at, tail;      /* this lane's row for ldmatrix; that for tails, where there are some */
} attention_operand;

typedef struct attention_warp {
    attention *a;
    uint32_t keys; /* of a tile in shared memory */
    uint32_t groups;
    bool has_codes; /* K and V are codes */
    bool holds_q;   /* in registers, all of it */
    bool v_in_k;    /* V takes K's place */
    layout out_lines;
    uint32_t scales_start; /* of the tile, with a scale for each key: see attention_copy_scales */
    uint32_t shared_bytes;
    attention_operand q, k, v;
    attention_copier copier; /* of K and V */
    attention_pages pages;
    ptx_val lane, shared;
    ptx_val row_warp;  /* U32: the warp's scores are of this block of rows, or pair of blocks */
    ptx_val group;     /* and, where groups of warps share the keys of a tile, of this group's */
    ptx_val key;       /* the tile's first, whose rows of K are on their way */
    ptx_val scales_at; /* of codes: this lane's first scale of K */
    ptx_val zero, q_of[MOST_HELD][4];
    attention_sums scores;                        /* of the warp's rows and keys */
    ptx_val weight[MOST_BLOCKS][2 * MOST_OCTETS]; /* pairs: of two rows for each octet of keys */
    attention_rows rows;
} attention_warp;

/* ---- known before a launch, where f is null -------------------------------------------------------------------------- */

/* So many blocks of rows, and all columns of O. */
attention_warp attention_warp_geometry(attention *a, uint32_t blocks, uint32_t keys);

/* Lays out Q, in whose place O is staged, and ends there; then from `start` on K and V. So many threads copy them. */
uint32_t attention_lay_out_q(attention_warp *m, uint32_t threads);
void attention_lay_out_keys(attention_warp *m, uint32_t threads, uint32_t start, bool v_in_k);

/* Thread blocks of a multiprocessor that leave a thread enough registers. */
uint32_t attention_warp_blocks(const attention_warp *m, uint32_t threads);

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

/* Finds what the copiers' threads copy: Q to `shared`, K and V to `keys`, where their layouts begin. */
void attention_init_panels(attention_warp *m, const attention_copier *of_q, ptx_val keys);

/* Starts to copy Q and the first tile of K. */
void attention_start_copies(attention_warp *m);

/* Waits for all copies of the thread block. */
void attention_wait_for_copies(const attention_warp *m);

/* A tile of keys of a thread block: V is copied while `weigh` makes weights, the next K while `add_values` takes V. With v_in_k,
 * `weigh` copies V when all warps have their scores. */
void attention_add_tile(attention_warp *m, ptx_val counted, void (*weigh)(void *of, ptx_val key),
                        void (*add_values)(void *of), void *of);

/* ---- rows and keys --------------------------------------------------------------------------------------------------- */

/* Of four matrices for ldmatrix, lane 8 * i + j points to row j of matrix i. */
typedef struct attention_matrix_lane {
    ptx_val in_octet, upper, odd, in_16; /* j, i / 2, i % 2, j + 8 * (i % 2) */
} attention_matrix_lane;

static inline attention_matrix_lane attention_find_matrix(ptx_fn *f, ptx_val lane)
{
    attention_matrix_lane of;
    of.in_octet = ptx_and(f, lane, OCTET - 1);
    of.upper = ptx_shr(f, lane, 4);
    of.odd = ptx_bfe(f, lane, 3, 1);
    of.in_16 = ptx_and(f, lane, 2 * OCTET - 1);
    return of;
}

/* Finds where the lane's rows are, in Q, and in K and V from `keys` on. Of a warp that does not have all keys or columns of a tile
 * *octet is the first of its keys, and *column_warp which warp's its columns are; null: 0. */
void attention_init_operands(attention_warp *m, const attention_matrix_lane *of, ptx_val keys,
                             const ptx_val *octet, const ptx_val *column_warp);

/* Where the lane's four neighbouring elements of a row's first 16 are: one of two units, and a half of it. */
ptx_val attention_fours_at(const attention_warp *m, const layout *lines, ptx_val row, ptx_val t);

/* Registers take Q, if they hold it. */
void attention_hold_q(attention_warp *m);

/* The number of the lane's first row of scores. */
ptx_val attention_first_row(const attention_warp *m);

/* Initialises the rows, and the sums of a warp that has all columns of them. */
void attention_warp_init(attention_warp *m);

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */

/* Makes scores of the keys from `key` on, shaped and masked. */
void attention_make_scores(attention_warp *m, ptx_val key);

/* The shift that suits the lane's row i of scores: the largest, times the factor. */
ptx_val attention_find_shift(const attention_warp *m, uint32_t i);

/* The weights of an octet's two keys in row i of scores, as a pair; they join the row's sum. */
ptx_val attention_weigh_pair(const attention_warp *m, const softmax_row *row, ptx_val minus, uint32_t i,
                             uint32_t octet);

/* Adds weights times V, of the 16 keys of two octets. */
void attention_add_step(attention_warp *m, uint32_t octet);

/* Makes weights, in registers, of the keys from `key` on; and adds their values. */
void attention_weigh(void *warp, ptx_val key);
void attention_add_values(void *warp);

/* Goes over this part's keys: `add` takes a tile of m->keys, given its first as keys are counted. Of each tile_k the warp has
 * those that are *ahead of the first, U32; null: all. In the end no copy is on the way, and all lanes of a row have the sum of its weights. */
void attention_add_tiles(attention_warp *m, const ptx_val *ahead, void (*add)(void *of, ptx_val counted),
                         void *of);

/* The lane's slices of its rows. */
attention_slices attention_warp_slices(const attention_warp *m);

#endif
