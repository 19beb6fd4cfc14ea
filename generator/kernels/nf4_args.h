/* Shared by both products with NF4 weights: arguments, the table, a lane's codes, partial sums. */
#ifndef KERNELS_NF4_ARGS_H
#define KERNELS_NF4_ARGS_H

#include "descriptor.h"
#include "device/nf4_nested.h"
#include "device/nf4_pairs.h"
#include "device/split.h"

enum {
    NF4_BLOCK_K_LOG2 = 6,
    NF4_BLOCK_K = 1 << NF4_BLOCK_K_LOG2, /* a quantised block: weights along k that share a scale */
    NF4_BLOCK_WORDS = NF4_BLOCK_K / 8,
    NF4_LANE_WORDS = 2, /* words of a quantised block's codes per lane on tensor cores */
    NF4_CODE_HINTS = PTX_NC | PTX_NO_ALLOCATE /* for loads of codes, which are read once */
};

typedef struct nf4_args {
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k;
    ptx_val a_stride, c_stride; /* elements from row to row */
    nf4_nested nested;          /* in place of scale, where is_nested */
    bool is_nested;
    ptx_type type, wide; /* of A and C; of sums */
    /* Thread blocks that share a sum; 0: as many as the grid has; 1: without workspace and tile_counters. */
    uint32_t split_k;
} nf4_args;

/* nf4_gemm_transposed has neither nested scales nor strides. */
nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v, bool is_transposed);

/* The descriptors' rows for nested scales. */
/* clang-format off */
#define NF4_SCALE_TYPE_PARAM                                                                                           \
    PARAM(WORD, CONTRACT, "scale_type", "f32 nested", "f32",                                                           \
          "how scales are stored\nnested: as bitsandbytes' double quantisation does, nested_code[scale_index] * nested_absmax + nested_offset, rounded after each step", \
          .numbers = "1", .is_later = true)
#define NF4_NESTED_ARGS(blocks, groups)                                                                                \
    {"scale_index", KILN_ARG_IN, "u8", blocks, 1, "scale_type == nested", "index of each scale in nested_code"}, \
    {"nested_code", KILN_ARG_IN, "f32", "256", 4, "scale_type == nested", "the value of each index"},                \
    {"nested_absmax", KILN_ARG_IN, "f32", groups, 4, "scale_type == nested", "a factor for each 256 scales, in memory order"}
#define NF4_NESTED_OFFSET                                                                                              \
    {"nested_offset", KILN_ARG_VALUE, "f32", NULL, 0, "scale_type == nested", "added to each scale"}
#define NF4_NESTED_BYTES_READ(blocks) blocks " + 4 * ceil_div(" blocks ", 256) + 1024"

/* The rules for sizes. */
#define NF4_SIZE_RULES                                                                                                 \
    {"k % 64 == 0", "k must be a multiple of 64"}, {"m <= 65535", "m must be at most 65535"},                          \
    {"n <= 2147483648", "n must be at most 2^31"}, {"k <= 2147483648", "k must be at most 2^31"}
/* clang-format on */

extern const kiln_value nf4_example[];

/* The table of a variant's nibbles and `table`, of `type`; up to `reserved` bytes of shared memory may precede it. */
nf4_pairs nf4_table(ptx_fn *f, const kiln_variant *v, ptx_type type, uint32_t reserved);

/* Adds the parts' sums, with split_k above 1. Each of the first `threads` threads passes `count` variables. The predicate that
 * it returns holds in all threads of the tile's last thread block; there the variables become the sums over all parts. All
 * threads must call it. */
ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, ptx_val tid, uint32_t threads, ptx_val sums[],
                      uint32_t count);

#endif
