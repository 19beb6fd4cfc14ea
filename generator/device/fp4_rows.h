/* Copies rows of e2m1 or e4m3 codes and their blocks' scales, an operand of a product, into shared memory in stages of 128
 * elements.
 *
 * A row of a stage is 64 bytes of e2m1 codes, or 128 of e4m3, in swizzled units of 16 bytes, and its scales. Scales may begin at
 * any byte of global memory, and keep their offset from a multiple of 4, so a stage's scales may end in one word more; in tiles
 * (scale_tiles.h) the offset is 0. Codes and scales past a row's end are 0.
 *
 * Scales as rows are copied in one of two ways. Decoded products: a thread copies all words of a row, up to 12 bytes; the next
 * stage has the last word again. Block-scaled products: neighbouring threads copy a word each, so that an instruction reads fewer
 * rows, and a stage holds only new words: the scales are carried, which means that the reader keeps each row's last word. */
#ifndef DEVICE_FP4_ROWS_H
#define DEVICE_FP4_ROWS_H

#include "layout.h"

enum {
    FP4_STAGE = 128, /* elements */
    FP4_ROW_BYTES = FP4_STAGE / 2,
    FP4_ROW_UNITS = FP4_ROW_BYTES / UNIT_BYTES,
    FP4_SCALE_BYTES = 12, /* a decoded row's scales: three words, so eight rows differ in banks */
    FP4_MOST_PASSES = 4   /* passes whose rows have addresses of their own */
};

/* The layout of a stage of e2m1. Lane (g, t) loads 8 bytes of row g, and a row's four lanes 32 contiguous bytes; or ldmatrix
 * loads units of eight rows. E4m3 uses layout_of_codes. */
layout fp4_rows_layout(bool for_matrices);

typedef enum fp4_rows_part { FP4_ROWS_CODES, FP4_ROWS_SCALES, FP4_ROWS_PARTS } fp4_rows_part;

/* The user passes the members down to `codes` to fp4_rows_plan, and then sets those from `code_byte` to `scale_pass_rows`. */
typedef struct fp4_rows {
    ptx_fn *f;
    uint32_t rows, threads; /* at least as many threads as rows */
    bool is_mx, is_tiled;   /* a scale for 32 elements, not 16; scales in tiles */
    bool is_block_scaled;   /* predicated copies of scales, which ptxas interleaves with products */
    layout codes;           /* rows of codes; row_bytes tells e2m1 from e4m3 */

    bool is_carried;                      /* scales are carried: block-scaled and not in tiles */
    uint32_t block;                       /* elements under a scale */
    uint32_t units, scales_of_stage;      /* of a row in a stage */
    uint32_t scale_bytes;                 /* of a row's scales in a stage */
    uint32_t row_threads[FP4_ROWS_PARTS]; /* neighbouring threads that copy a row */
    uint32_t pass[FP4_ROWS_PARTS];        /* rows that the threads copy in one pass */
    uint32_t passes[FP4_ROWS_PARTS];      /* over all rows; scales take one or two */

    uint32_t code_byte, scale_byte; /* in a stage */
    ptx_val k, first, end;          /* elements of a row; those to copy, from a multiple of a stage on */
    ptx_val from[FP4_MOST_PASSES];  /* U64: this thread's row of each pass */
    ptx_val pass_bytes,
        passes_left; /* with more passes only from[0]: bytes from pass to pass, U32; how many later passes have a row */
    ptx_val scales,
        scale_row; /* U64: the matrix's scales; the number of the row whose scales this thread copies */
    ptx_val scale_pass_rows; /* U32, two passes of scales: from a thread's first row to its second; 0: none */

    ptx_val to, left;         /* this thread's unit in the first stage; elements from the unit on, S32 */
    ptx_val scale_pass_bytes; /* from the first pass's row to the second's, U64 */
    ptx_val scale_from, scale_to, scale_left; /* this thread's scales, U64, and bytes from them on, S32 */
    ptx_val has[FP4_ROWS_PARTS];              /* whether this thread copies any; poison: all threads do */
    ptx_val is_narrow;                        /* whether rows begin at multiples of 8 bytes only */
} fp4_rows;

fp4_rows fp4_rows_plan(fp4_rows r);

/* Returns a thread's row in the first pass. */
ptx_val fp4_rows_row_of(const fp4_rows *r, fp4_rows_part part, ptx_val tid);

void fp4_rows_init(fp4_rows *r, ptx_val tid, ptx_val shared);

/* Starts to copy the next stage to `offset` in the ring, and counts it; from `end` on it copies zeros. */
void fp4_rows_copy(fp4_rows *r, ptx_val offset);

/* Does fp4_rows_copy in fp4_rows_pieces pieces, which must be copied in order. */
uint32_t fp4_rows_pieces(const fp4_rows *r);
void fp4_rows_copy_piece(fp4_rows *r, ptx_val offset, uint32_t piece);

/* If carried: starts to copy each row's word before the first stage to `offset`. Call it once, before the first stage is copied. */
void fp4_rows_copy_carried(fp4_rows *r, ptx_val offset, ptx_val tid);

/* The address of a row's first scale in the first stage; if carried, of its fifth, since the word before holds the first four.
 * `number` is the row's number in the matrix. */
ptx_val fp4_rows_scales(const fp4_rows *r, ptx_val shared, ptx_val row, ptx_val number);

#endif
