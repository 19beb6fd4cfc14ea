/* Texts of expressions for products whose thread blocks make tiles of y and may share a tile's k (linear_tile.c). The family
 * defines TILE_COUNT, its tiles, and GUESSED_SHARERS, the most thread blocks that share k with split_k 0: more would cost
 * workspace, and hardly save time. PART_STAGES also needs STAGES, the stages of a tile's k.
 *
 * Constants named GUESSED were never measured on a GPU; where kiln-tune has measured times, they replace the estimates. */
#ifndef KERNELS_SHARING_H
#define KERNELS_SHARING_H

/* linear's epilogues, which fp4_gemm has too. */
#define HAS_BIAS     "epilogue == bias || epilogue == bias_residual"
#define HAS_RESIDUAL "epilogue == residual || epilogue == bias_residual"
#define IS_PAIR      "(epilogue == swiglu || epilogue == geglu)"

#define AT_ONCE "multiprocessors * blocks_per_multiprocessor"

/* The thread blocks that share k with split_k 0: at most 8 per tile, and at most as many as fit the device. Each has parts of two
 * tiles. */
#define MOST_SHARING "min(8 * " TILE_COUNT ", " GUESSED_SHARERS ")"
#define SHARING      "min(" AT_ONCE ", " MOST_SHARING ")"
#define WORKSPACE    "(" TILE_COUNT " * split_k + (split_k == 0) * 2 * " MOST_SHARING ") * tile_m * tile_n"

/* Stages of a part of k, which is whole stages. */
#define PART_STAGES                                                                                          \
    "select(split_k == 0, ceil_div(" TILE_COUNT " * " STAGES ", max(1, " SHARING ")), ceil_div(" STAGES      \
    ", max(1, split_k)))"

/* Cycles that parts of k add: partial sums go through the L2 cache, and counters find the last part; with split_k 0 each tile of a
 * thread block begins with no loads in flight, and its sums leave at once. */
#define GUESSED_JOIN                                                                                         \
    "select(split_k == 1, 0, 4000 + select(split_k == 0, ceil_div(" TILE_COUNT ", max(1, " SHARING           \
    ")) * (1000 + tile_m * tile_n * 3 / 2), split_k * tile_m * tile_n / 8))"

#endif
