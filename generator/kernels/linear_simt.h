/* Shared by linear's files on CUDA cores (linear.c): a variant during emission. */
#ifndef KERNELS_LINEAR_SIMT_H
#define KERNELS_LINEAR_SIMT_H

#include "linear.h"

enum {
    LINEAR_WARPS = 8, /* per thread block */
    LINEAR_THREADS = WARP_LANES * LINEAR_WARPS,
    LINEAR_PASS_ROWS = LINEAR_THREADS, /* rows of W that a thread block has at once: each thread stores one */
    LINEAR_MOST_ROWS = 4,              /* of W per warp */
    LINEAR_TRIP = 4 * LINEAR_THREADS,  /* elements of a vector that a thread block takes at once */
    LINEAR_DENORMAL = 26               /* linear_x.c */
};

/* The next tile of a row to copy. */
typedef struct linear_next {
    ptx_val from;       /* this lane's first piece, U64 */
    ptx_val left;       /* bytes from that piece to the row's end in this chunk, S32 */
    ptx_val numbers[2]; /* this lane's scale and zero, U64, in formats that have these in arrays */
} linear_next;

typedef struct linear_simt {
    linear *l; /* arguments */
    linear_geometry of;
    ptx_fn *f;
    bool may_scale; /* scales x by powers of two if its squares leave the range of f32 */
    ptx_val stages, sums, partials, scales, shares; /* addresses in shared memory */

    ptx_val first_vector, vectors;    /* this thread block's vectors in bounds */
    ptx_val x[LINEAR_MOST_VECTORS];   /* clamped to the last vector */
    ptx_val by[LINEAR_MOST_VECTORS];  /* the factor for x */
    ptx_val first_row, rows_here;     /* of this pass */
    ptx_val groups_of_rows;           /* of `rows` rows each */
    ptx_val chunk_first, chunk_count; /* elements */
    ptx_val chunk_byte, chunk_bytes;  /* the chunk's part of a row of W: start and length; U32 */
    ptx_val tiles;                    /* of a row in this chunk */
    ptx_val share_count;              /* of a row in this chunk */

    ptx_val next_group, next_tiles; /* to copy next: a group of rows, and the remaining tiles of its rows */
    linear_next next[LINEAR_MOST_ROWS];
    ptx_val has_last; /* whether this lane has a last piece of a row's tile */
    ptx_val stage;    /* offset of the current stage */

    format_lane w_lane;                   /* this lane's group */
    format_place place[LINEAR_MOST_ROWS]; /* place of this lane's quantised block in the first stage */
    ptx_val lane_share;                   /* address of this lane's share of the first tile */
    ptx_val sum[LINEAR_MOST_ROWS][LINEAR_MOST_VECTORS];
} linear_simt;

/* ---- linear_x.c --------------------------------------------------------------------------------------------------- */

/* Bytes of one vector's part of a share. */
uint32_t linear_vector_bytes(const weight_format *format, bool is_q8);

/* Makes the shares of the chunk. At the start of the first pass over the first chunk, also makes the norm's sums over all
 * of x. Ends with a barrier. */
void linear_make_shares(linear_simt *g, ptx_val is_start);

/* Returns the mean square of a vector's scaled elements, plus eps in the same scale. The norm multiplies the vector's sums by 1
 * over its square root. */
ptx_val linear_find_mean(linear_simt *g, uint32_t vector);

/* ---- linear_w.c --------------------------------------------------------------------------------------------------- */

/* Starts to copy the first tiles of this warp's first rows. */
void linear_init_stages(linear_simt *g);

/* Waits for the next tile, and starts to refill the previous one's stage. */
void linear_next_stage(linear_simt *g);

/* Finds this lane's quantised blocks of a group of rows. */
void linear_find_rows(linear_simt *g, ptx_val group);

/* Finds the numbers of this lane's group of row r; `codes` is the place of the group's codes. */
format_place linear_find_numbers(linear_simt *g, uint32_t r, const format_place *codes);

#endif
