/* Shared by fp4_gemm's files. */
#ifndef KERNELS_FP4_GEMM_H
#define KERNELS_FP4_GEMM_H

#include "device/fp4_rows.h"
#include "linear.h"

/* Known to `shape` and `emit`. */
typedef struct fp4_gemm_geometry {
    uint32_t tile_m, tile_n, stages, threads;
    bool is_mx, is_tiled;    /* W is MXFP4; scales are in tiles */
    bool has_codes, is_e4m3; /* x has codes and scales, as W; e4m3 and not e2m1 */
    bool is_block_scaled;    /* tensor cores multiply by the scales */
    ptx_type type;           /* of decoded operands */
    uint32_t x_row_bytes;    /* in a stage, without scales */
    uint32_t x_byte, w_scale_byte, x_scale_byte, stage_bytes; /* in a stage; W's codes are first */
    uint32_t carried_offset; /* of the words before the first stage, as if they were the scales of a stage */
    uint32_t scale_words;    /* of a row and stage, if block-scaled */
    uint32_t last_tiles; /* block-scaled: tiles of eight rows of x whose products follow a trip's barrier */
    bool fills_early; /* a fill begins right after the barrier that frees its stage, not in the next trip */
    uint32_t fill_parts;   /* parts in which a stage is filled: one before the products of each tile of x */
    uint32_t rows_at_once; /* rows of sums that are stored at once, after the loop */
    uint32_t shared_bytes; /* dynamic */
} fp4_gemm_geometry;

fp4_gemm_geometry fp4_gemm_plan(const kiln_variant *v);

/* The products. The caller sets l's types, matrices and epilogue, and the arguments; `in_scales` is null unless x has codes. */
void fp4_gemm_emit(linear *l, const fp4_gemm_geometry *g, ptx_val in_scales);

/* linear's functions for tiles and rows take a format, for a row's bytes. It has no decoder: device/fp4.h decodes. */
extern const weight_format fp4_gemm_codes;

#endif
