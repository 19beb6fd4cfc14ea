/* What the strategies of nvfp4_gemv share: arguments, a thread's rows, the vector, sums and their stores.
 *
 * A thread block has NVFP4_THREADS threads, and an equal share of the rows of one batch after the other, which it takes in
 * passes. Each `k_warps` of its warps share `rows` rows of a pass; each takes every k_warps-th part along k. */
#ifndef KERNELS_NVFP4_ROWS_H
#define KERNELS_NVFP4_ROWS_H

#include "nvfp4.h"

enum { NVFP4_WARPS = NVFP4_THREADS / 32 };

typedef struct nvfp4_rows {
    ptx_fn *f;
    ptx_type c_type;
    bool has_sm_80, has_sm_89;
    uint32_t rows, k_warps;
    uint32_t neighbours; /* rows that a lane finds the scales of together, where they lie in tiles */
    bool is_hardware, has_alpha;
    bool is_tiled; /* scales lie in tiles (device/scale_tiles.h), and rows are taken by their places there */
    ptx_val a, sfa, b, sfb, c, m, k, l, b_rows, alpha;
    ptx_val tid, lane, warp;
    ptx_val slice;                        /* which of the warps that share rows */
    ptx_val first, end;                   /* rows of the thread block */
    ptx_val first_of_pass, first_of_warp; /* rows, set by nvfp4_start_pass */
    ptx_val row_bytes;
    ptx_val tiles, tile_row_bytes; /* tiled: of 128 rows; of a matrix, U32; all of those rows, U64 */
    ptx_val batch;                 /* set by the strategy's loop, from first_batch on by batches */
    ptx_val first_batch, batches;
    ptx_val b_at, sfb_at; /* addresses of the batch's vector */
} nvfp4_rows;

nvfp4_rows nvfp4_init(ptx_fn *f, const kiln_variant *v);

/* Rows of a pass; those of a thread block are from `first` to before `end`. */
uint32_t nvfp4_pass_rows(const nvfp4_rows *g);
void nvfp4_start_pass(nvfp4_rows *g, ptx_val first);

/* The length of a warp's loop: `length`, or 0 where it has no rows in the pass. */
ptx_val nvfp4_share_of_warp(const nvfp4_rows *g, ptx_val length);

/* Whether b is to be decoded in this pass: in a thread block's first, or in all where shared memory does not hold all of b. */
ptx_val nvfp4_decodes(const nvfp4_rows *g);

/* Sets b_at and sfb_at. */
void nvfp4_find_vector(nvfp4_rows *g);

/* The addresses of a row, or of the thread block's last one where the row is out of bounds. In what follows too, a row of a tiled variant is a
 * place in its tiles. */
void nvfp4_find_row(const nvfp4_rows *g, ptx_val row, ptx_val *codes, ptx_val *scales);

/* The address of the scales of a group of 1 or 2 neighbouring blocks; `scales` is the row's first, `group` counts groups. */
ptx_val nvfp4_scales_at(const nvfp4_rows *g, ptx_val scales, ptx_val group, uint32_t blocks);

/* Corrects a lane's sum: a NaN where the marks of nvfp4_scales say so; with decode=hardware times 4, since that adds codes
 * where software adds twice the codes. The products of scales are quarters in either. */
ptx_val nvfp4_finish(const nvfp4_rows *g, ptx_val sum, ptx_val marks);

void nvfp4_store(const nvfp4_rows *g, ptx_val sum, ptx_val row, ptx_val is_here);

/* Where k_warps is more than 1: adds the sums of the warps that share rows, in the order of their slices, and stores them.
 * Each thread where is_first holds passes `count` sums, of these rows of its warp. All threads must get here. */
void nvfp4_join_warps(const nvfp4_rows *g, const ptx_val sums[], const ptx_val row_in_warp[], uint32_t count,
                      ptx_val is_first);

#endif
