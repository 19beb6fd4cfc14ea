/* Shared by nvfp4_gemv's strategies: e2m1 codes, two per byte, the low nibble first, with an e4m3 scale per 16; arguments, a
 * thread's rows, the vector, sums and their stores.
 *
 * A thread block has NVFP4_THREADS threads, and an equal share of the rows of one batch after another, which it takes in
 * passes. Each `k_warps` of its warps share `rows` rows of a pass; each takes every k_warps-th part along k. */
#ifndef KERNELS_NVFP4_H
#define KERNELS_NVFP4_H

#include <kiln/author/family.h>

enum {
    NVFP4_BLOCK = 16,    /* codes per scale */
    NVFP4_DEPTH = 16384, /* codes of b that are decoded at once */
    NVFP4_THREADS = 256, /* per thread block */
    NVFP4_WARPS = NVFP4_THREADS / 32,
    NVFP4_MOST_ROWS = 4 /* of a lane */
};

/* ---- codes and scales --------------------------------------------------------------------------------------------- */

/* Splits 8 codes by sign: bytes[0] has the magnitudes of the positive codes, times 2, and bytes[1] those of the negative ones. Each
 * is two words, U32, of four bytes; the bytes of codes with the other sign are 0. */
void nvfp4_split(ptx_fn *f, ptx_val word, ptx_val bytes[2][2]);

/* 8 codes as four F16X2, on targets with the conversion. */
void nvfp4_halves(ptx_fn *f, ptx_val word, ptx_val pairs[4]);

/* Two scales of b, from the low bytes of a U32, as F16X2 in a U32, scaled so that the product with scales of a
 * row is a quarter of the scales' product. That is exact: it has 8 bits and is between 2^-20 and 50176. NaNs stay NaNs.
 * */
ptx_val nvfp4_vector_scales(ptx_fn *f, ptx_val raw);

/* ---- rows --------------------------------------------------------------------------------------------------------- */

typedef struct nvfp4_rows {
    ptx_fn *f;
    ptx_type c_type;
    uint32_t rows, k_warps, pass_rows;
    uint32_t neighbours; /* rows whose scales a lane finds together, if they are in tiles */
    bool is_hardware, has_alpha;
    bool is_tiled; /* scales are in tiles (device/scale_tiles.h), and rows are taken by place */
    ptx_val a, sfa, b, sfb, c, m, k, l, b_rows, alpha;
    ptx_val tid, lane, warp;
    ptx_val slice;                        /* which of the warps that share rows */
    ptx_val first, end;                   /* rows of the thread block */
    ptx_val first_of_pass, first_of_warp; /* rows */
    ptx_val row_bytes;
    ptx_val tiles, tile_row_bytes; /* tiled: tiles down a matrix, U32; bytes of a row of tiles, U64 */
    ptx_val batch, first_batch, batches;
    ptx_val b_at, sfb_at; /* addresses of the batch's vector */
    /* The lane's rows: addresses, sums, and marks of NaNs. */
    ptx_val a_at[NVFP4_MOST_ROWS], sfa_at[NVFP4_MOST_ROWS], sum[NVFP4_MOST_ROWS], marks[NVFP4_MOST_ROWS];
} nvfp4_rows;

nvfp4_rows nvfp4_init(ptx_fn *f, const kiln_variant *v);

/* A warp's first row in a pass; the second function sets the rows of the pass that begins with row `first`. */
ptx_val nvfp4_first_of_warp(const nvfp4_rows *g, ptx_val first_of_pass);
void nvfp4_start_pass(nvfp4_rows *g, ptx_val first);

/* Sets the batch's addresses. A thread block has every batches-th from first_batch on, of l. */
void nvfp4_start_batch(nvfp4_rows *g, ptx_val batch);

/* The length of a warp's loop: `length`, or 0 if the warp has no rows from its first one on. */
ptx_val nvfp4_share_of_warp(const nvfp4_rows *g, ptx_val first_of_warp, ptx_val length);

/* Whether to decode b in this pass: in a thread block's first, or in all if shared memory does not hold all of b. */
ptx_val nvfp4_decodes(const nvfp4_rows *g);

/* The addresses of a row, clamped to the thread block's last one. Below too, a row of a tiled variant is a place in its
 * tiles. */
void nvfp4_find_row(const nvfp4_rows *g, ptx_val row, ptx_val *codes, ptx_val *scales);

/* The address of the scales of a group of 1 or 2 neighbouring blocks; `scales` is the row's first, `group` counts groups. */
ptx_val nvfp4_scales_at(const nvfp4_rows *g, ptx_val scales, ptx_val group, uint32_t blocks);

/* Sets row r's sum to 0. */
void nvfp4_start_row(nvfp4_rows *g, uint32_t r);

/* Multiplies two scales of row r, as for nvfp4_vector_scales, by two of b: F16X2. */
ptx_val nvfp4_multiply_scales(nvfp4_rows *g, uint32_t r, ptx_val raw, ptx_val of_b);

/* Stores a decoded block of b in vectors of 16 bytes, `apart` bytes apart. With decode=hardware: pairs, in two vectors; software:
 * signed bytes in one, and with_opposites the negated bytes in a second. */
void nvfp4_store_block(const nvfp4_rows *g, const ptx_val word[2], ptx_val at, uint32_t apart,
                       bool with_opposites);

/* Corrects a lane's sum of row r: a NaN if the marks say so; with decode=hardware times 4, since hardware adds codes and
 * software twice the codes. The products of scales are quarters in both. */
ptx_val nvfp4_finish(const nvfp4_rows *g, uint32_t r);

/* Stores sums, with k_warps above 1 added over all warps that share rows, in the order of their slices. Each thread with
 * is_first passes `count` sums, of these rows of its warp. All threads must call it. */
void nvfp4_store_sums(const nvfp4_rows *g, const ptx_val sums[], const ptx_val row_in_warp[], uint32_t count,
                      ptx_val is_first);

/* ---- strategies --------------------------------------------------------------------------------------------------- */

void nvfp4_emit_simt(ptx_fn *f, const kiln_variant *v);
void nvfp4_emit_mma(ptx_fn *f, const kiln_variant *v);

/* A chunk of b's dynamic shared memory: zero_bytes, and part_bytes for each started part_codes codes. */
typedef struct nvfp4_chunk {
    uint32_t zero_bytes, part_bytes, part_codes;
    uint32_t trip; /* codes of each row in a trip of a warp's main loop */
} nvfp4_chunk;
nvfp4_chunk nvfp4_simt_chunk(const kiln_variant *v);
nvfp4_chunk nvfp4_mma_chunk(const kiln_variant *v);

#endif
