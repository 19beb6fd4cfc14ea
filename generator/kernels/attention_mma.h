/* A warp of attention on tensor cores: 16 or 32 rows of O, and what becomes of a tile of keys that is in shared memory. */
#ifndef KERNELS_ATTENTION_MMA_H
#define KERNELS_ATTENTION_MMA_H

#include "attention_copy.h"
#include "attention_pages.h"
#include "attention_split.h"

enum {
    BLOCK_ROWS = 16,
    MOST_BLOCKS = 2,
    UNIT = 8,              /* elements of 16 bytes, a row of a matrix of ldmatrix */
    MOST_STEPS = 256 / 16, /* 16 elements of head_dim each */
    MOST_OCTETS = 128 / 8, /* of keys in a tile */
    MOST_SMALL = 128       /* up to this head_dim registers hold rows of Q, or two blocks */
};

typedef struct attention_mma {
    attention a;
    ptx_fn *f;
    bool q_stays;                    /* in registers */
    uint32_t blocks;                 /* of 16 rows, per warp */
    uint32_t fragments;              /* of a block's sums of O, eight columns each */
    uint32_t threads;                /* of a thread block whose warps have rows of their own */
    uint32_t keys;                   /* of a tile: tile_k, or the part of them that a warp has for itself */
    uint32_t steps, v_steps, octets; /* 16 elements of head_dim, of head_dim_v; 8 keys */
    bool has_codes;                  /* K and V are codes */
    bool has_tail, v_has_tail;       /* they have 8 elements more */
    layout q_lines, k_lines, v_lines, out_lines;
    uint32_t scales_start; /* with a scale for each key: of the tile's, see attention_copy_scales */
    uint32_t shared_bytes;
    attention_copier copier;
    attention_panel k, v;
    attention_pages pages;
    ptx_val lane, warp, shared;
    ptx_val key;                                      /* the tile's first, whose rows of K are on their way */
    ptx_val q_at, k_at, v_at, q_tail, k_tail, v_tail; /* this lane's rows for ldmatrix */
    ptx_val scales_at;                                /* this lane's first one of K */
    ptx_val zero, q[MOST_STEPS][4];
    softmax_row row[MOST_BLOCKS][2];
    ptx_val score[MOST_BLOCKS][MOST_OCTETS][4], sum[MOST_BLOCKS][2 * MOST_STEPS][4];
    ptx_val weight[MOST_BLOCKS][2 * MOST_OCTETS]; /* pairs: of two rows for each octet */
    ptx_val shrink[2 * MOST_BLOCKS];              /* of the rows' sums of V, by sinks */
} attention_mma;

/* Only what is known before a launch, where f is null. */
attention_mma attention_mma_geometry(attention of, uint32_t keys);

/* The same, with rows that have seen no key. */
attention_mma attention_mma_init(const attention *of, uint32_t keys);

/* Finds where the lane's rows are in the tile of Q, and in those of K and V. Needs lane, and warp: whose rows of Q it makes. */
void attention_mma_init_lane(attention_mma *m, ptx_val q, ptx_val keys);

/* Registers take the rows of Q, if they stay there. */
void attention_mma_hold_q(attention_mma *m);

/* Makes weights of the keys from `key` on, the tile at k_at with its scales at scales_at; and adds their values, the tile at v_at. */
void attention_mma_weigh(attention_mma *m, ptx_val key);
void attention_mma_add_values(attention_mma *m);

/* Goes over this part's keys: `add` takes a tile of m->keys, given its first as keys are counted. Of each tile_k the warp has
 * those that are *ahead of the first, U32; null: all. In the end no copy is on the way, and all lanes of a row have the sum of its weights. */
void attention_mma_add_tiles(attention_mma *m, const ptx_val *ahead, void (*add)(void *of, ptx_val counted),
                             void *of);

/* A lane's slices of its rows, two for each block. */
typedef struct attention_mma_slices {
    attention_slice of[2 * MOST_BLOCKS];
    ptx_val sums[2 * MOST_BLOCKS][4 * MOST_STEPS];
} attention_mma_slices;

/* Thread blocks of a multiprocessor that leave a thread enough registers. */
uint32_t attention_mma_blocks(const attention_mma *m, uint32_t threads);

void attention_mma_slice(attention_mma *m, attention_mma_slices *slices);

#endif
