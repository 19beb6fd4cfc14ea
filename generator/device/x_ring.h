/* Rows of 16-bit activations on tensor cores, a step of 64 elements at a time in a ring in shared memory: each warp of a
 * thread block multiplies all of them by 32 rows of weights that it holds in registers.
 *
 * The weights are mma's first operand, 16 of their rows; activations are the second, eight of theirs: lane (g, t) has rows g,
 * g + 8, g + 16 and g + 24 of the weights, and loads row g's elements of each eight rows of activations. A step is four runs
 * of 16 elements, a product each. In a narrow ring lane (g, t) has elements 4t to 4t + 3 of each run, in a wide one elements
 * 8t to 8t + 7 of each two runs together, the first four for one product, the others for the other. In a wide, interleaved
 * (woven) ring lane (g, t) has the 16 elements from 16t of the step on, eight for each two runs.
 *
 * A row's step is eight units of 16 bytes, swizzled by the row's number so that the units of a sector stay together (this
 * folder's README.md). */
#ifndef DEVICE_X_RING_H
#define DEVICE_X_RING_H

#include "shared.h"
#include "sums.h"

enum {
    X_RING_STEP = 64,
    X_RING_RUNS = 4,
    X_RING_ROW_BYTES = 2 * X_RING_STEP,
    X_RING_TILES = 2 /* tiles of 16 rows of weights in a warp */
};

/* The user sets the members down to is_woven. */
typedef struct x_ring {
    ptx_fn *f;
    ptx_type type;
    uint32_t rows, threads; /* a multiple of 64 threads */
    uint32_t run_step;      /* elements between runs, 16 or more */
    bool is_wide, is_woven;
    ptx_val from, row_bytes;   /* U64: this thread's unit of its first row; bytes between its rows, U32 */
    ptx_val rows_left;         /* this thread's last row in bounds; later ones are clamped to it */
    ptx_val to;                /* its first copy in the first stage */
    ptx_val unit_element, end; /* element of this thread's unit, from the step's first; elements of a row */
    ptx_val at[X_RING_RUNS];   /* this lane's elements of the runs, in the first stage */
} x_ring;

layout x_ring_layout(bool is_woven);

static inline uint32_t x_ring_bytes(uint32_t rows)
{
    return rows * X_RING_ROW_BYTES;
}

/* Initialises a ring at `shared` for the rows of `in` from `first` up to, not including, `end`, `k` elements each. */
void x_ring_init(x_ring *x, ptx_val shared, ptx_val in, ptx_val first, ptx_val end, ptx_val k, ptx_val tid,
                 ptx_val lane);

/* Starts to copy the step whose first element is `element` to the stage at `offset`; elements past the row's end are 0. */
void x_ring_copy(x_ring *x, ptx_val element, ptx_val offset);

/* Adds the products of runs 2 * half and 2 * half + 1, each with its weights, to the sums. */
void x_ring_multiply(x_ring *x, ptx_val offset, uint32_t half, ptx_val w[X_RING_TILES][2][4],
                     warp_sums *sums);

#endif
