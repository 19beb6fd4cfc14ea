/* What the products with NF4 weights, either way, start and end with: arguments, the table, the sums over parts of a split. */
#ifndef KERNELS_NF4_ARGS_H
#define KERNELS_NF4_ARGS_H

#include "descriptor.h"
#include "device/nf4_nested.h"
#include "device/nf4_pairs.h"
#include "device/split.h"

typedef struct nf4_args {
    ptx_val in, packed, scale, out, workspace, tile_counters, m, n, k;
    ptx_val a_stride, c_stride; /* elements from row to row */
    nf4_nested nested;          /* in place of scale, where is_nested */
    bool is_nested;
    ptx_type type, wide; /* of A and C; of sums */
    uint32_t
        split_k; /* thread blocks that share a sum; 0: as the grid has it; 1: without workspace and tile_counters */
} nf4_args;

nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v, bool is_nested, bool is_strided);

/* The descriptors' parts of nested scales. */
/* clang-format off */
#define NF4_SCALE_TYPE_PARAM                                                                                           \
    PARAM(WORD, CONTRACT, "scale_type", "f32 nested", "f32",                                                           \
          "how scales are stored\nnested: as bitsandbytes' double quantisation does, nested_code[scale_index] * nested_absmax + nested_offset, rounded after each step", \
          .numbers = "1", .is_later = true)
#define NF4_NESTED_ARGS(blocks, groups)                                                                                \
    {"scale_index", KILN_ARG_IN, "u8", blocks, 1, "scale_type == nested", "of each scale, where it is in nested_code"}, \
    {"nested_code", KILN_ARG_IN, "f32", "256", 4, "scale_type == nested", "what each index stands for"},                \
    {"nested_absmax", KILN_ARG_IN, "f32", groups, 4, "scale_type == nested", "a factor for each 256 scales, in memory order"}
#define NF4_NESTED_OFFSET                                                                                              \
    {"nested_offset", KILN_ARG_VALUE, "f32", NULL, 0, "scale_type == nested", "is added to each scale"}
#define NF4_NESTED_BYTES_READ(blocks) blocks " + 4 * ceil_div(" blocks ", 256) + 1024"
/* clang-format on */

/* The table of a variant's nibbles and `table`, of `type`; `reserved` bytes may lie before it in shared memory. */
nf4_pairs nf4_table(ptx_fn *f, const kiln_variant *v, ptx_type type, uint32_t reserved);

/* Whether each column's scales, `blocks` of them, start at a multiple of 16 bytes. */
ptx_val nf4_has_aligned_scales(ptx_fn *f, const nf4_args *args, ptx_val blocks);

/* Where a sum is split: adds the parts' sums. Each of the first `threads` threads passes `count` variables. Where the predicate that it returns holds,
 * in all threads of the tile's last thread block, they become the sums over all parts. All threads must get here. */
ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, ptx_val tid, uint32_t threads, ptx_val sums[],
                      uint32_t count);

/* The same of a tile, U32, of a stretch; all threads have sums. */
ptx_val nf4_add_stretch(ptx_fn *f, const nf4_args *args, ptx_val tid, const split_stretch *of, ptx_val tile,
                        ptx_val sums[], uint32_t count);

/* Stretches of tiles of tile_m rows by tile_n columns; and of one of them the tile that quantised block `at` of all tiles is in. */
typedef struct nf4_stretch {
    split_stretch of;
    ptx_val blocks, rows; /* quantised blocks of a tile, tiles of a column */
    uint32_t tile_m, tile_n;
} nf4_stretch;

typedef struct nf4_tile {
    ptx_val number, first_row, first_column;
    ptx_val first_block, block_count; /* of the stretch's part of the tile's K, U32 */
} nf4_tile;

nf4_stretch nf4_find_stretch(ptx_fn *f, const nf4_args *args, uint32_t tile_m, uint32_t tile_n);
nf4_tile nf4_stretch_tile(ptx_fn *f, const nf4_stretch *s, ptx_val at);

#endif
