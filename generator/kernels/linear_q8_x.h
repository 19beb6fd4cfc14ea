/* Rows of x as codes and scales (q8_quantize makes them) in a ring in shared memory, a step of k at a time.
 *
 * A row's codes are contiguous; in tiles their units are swizzled. The scales of one block in all rows are contiguous. With sums
 * each scale is followed by the sum of its codes times the scale, computed by the threads that copy the codes.
 */
#ifndef KERNELS_LINEAR_Q8_X_H
#define KERNELS_LINEAR_Q8_X_H

#include "linear.h"

enum {
    Q8_X_ROWS = 8,  /* in one product */
    Q8_X_BLOCK = 32 /* elements under one scale */
};

/* Known to `shape` and `emit`. */
typedef struct q8_x_shape {
    uint32_t rows, threads;
    uint32_t k_warps, row_warps; /* warps that share the step's k, or the rows */
    uint32_t step;               /* elements of k */
    bool is_tiles, has_sums;
    uint32_t scales;                 /* of a row in a step: one per block of x, or with sums per part of W */
    uint32_t codes_byte, scale_byte; /* of the first stage */
    layout codes;
    layout blocks; /* of scales: a layout row per block, a unit per eight rows of x */
} q8_x_shape;

typedef struct q8_x {
    q8_x_shape of;
    ptx_fn *f;
    linear *l; /* arguments */
    const linear_tile *tile;

    /* This thread's copies of the next step. */
    ptx_val to, scale_to; /* in the first stage */
    ptx_val from, step;   /* U64: its first row's unit; bytes between its rows */
    ptx_val left, rows;   /* bytes from its unit on, rows from its first on, S32 */
    ptx_val scale_from, scale_step, scale_left, scale_rows; /* the same for scales */

    /* This lane's addresses in the first stage: row g's codes, and scales of rows 2t and 2t + 1 of the warp's rows. */
    ptx_val at, scale_at;
    ptx_val place; /* of its codes in a row; in tiles, else part of `at` */
} q8_x;

/* The layout of scales. In tiles threads copy the scales of four blocks of eight rows at once: padding, or without sums a swizzle,
 * puts the blocks into different banks. Copies of scales that alternate with sums use half the banks, and in mma a fourth. */
layout q8_x_blocks(uint32_t rows, bool is_tiles, bool has_sums);

/* Bytes of a scale, with its sum. */
static inline uint32_t q8_x_scale_bytes(const q8_x_shape *s)
{
    return s->has_sums ? 8 : 4;
}

/* The user sets the members down to `tile`. */
void q8_x_init(q8_x *x);

/* Starts to copy the next step to the stage at `offset`: zeros beyond the last row and element. Counts it. */
void q8_x_copy(q8_x *x, ptx_val offset);
void q8_x_advance(q8_x *x);

/* Makes the sums of a stage. Threads read only what they copied, so the call needs no barrier before it; the barrier that
 * follows the copies makes the sums visible too. */
void q8_x_add_up(q8_x *x, ptx_val offset);

/* Finds the addresses that this lane reads, from those of `unit` on; units are `unit_step` elements apart. */
void q8_x_init_reads(q8_x *x, ptx_val unit, uint32_t unit_step);

/* The lane's codes from an element of the step on: `byte` bytes after `at`. */
typedef struct q8_x_codes {
    ptx_val at;
    uint32_t byte;
} q8_x_codes;

/* `at` is x->at in the current stage. */
q8_x_codes q8_x_find(q8_x *x, uint32_t element, ptx_val at);

/* Loads `count` registers of codes of row g of a tile of eight rows. */
void q8_x_load(q8_x *x, const q8_x_codes from[], uint32_t count, uint32_t tile, ptx_val codes[]);

/* Loads the scales of an element, and the sums; without sums, the scales again. `at` is scale_at in the current stage. */
void q8_x_load_scales(q8_x *x, uint32_t element, uint32_t tile, ptx_val at, ptx_val scale[2], ptx_val sum[2]);

#endif
