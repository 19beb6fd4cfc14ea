/* Copies rows of quantised weights, which may begin at any byte, into a ring in shared memory, a stage of each row at a time.
 * Pieces of 16 bytes keep their global layout, from the sector with the row's first byte in the stage on; a row's tail is zeros. */
#ifndef DEVICE_ROW_RING_H
#define DEVICE_ROW_RING_H

#include "shared.h"

enum {
    ROW_RING_LANES = 4 /* that copy a row together, by default */,
    ROW_RING_MOST_PASSES = 8,
    ROW_RING_SECTOR = 32
};

/* A stage's part of each row. */
typedef struct row_ring_shape {
    uint32_t bytes, pieces; /* of a row; 16 bytes each, at most */
    layout rows;            /* in shared memory */
} row_ring_shape;

row_ring_shape row_ring_stage(uint32_t bytes);

/* The user sets the members down to `from`. */
typedef struct row_ring {
    ptx_fn *f;
    row_ring_shape of;
    uint32_t lanes;                     /* that copy a row together; 0: ROW_RING_LANES */
    bool is_lean;                       /* copies the rows' last stage in a loop: less code */
    bool finds_starts;                  /* finds rows' starts in each stage, even if all are aligned alike */
    uint32_t threads, passes;           /* passes of the threads over the rows */
    ptx_val from[ROW_RING_MOST_PASSES]; /* U64: the next stage of this thread's row of each pass */
    ptx_val piece, to;                  /* bytes to its first piece; its place in stage 0 */
    ptx_val left;                       /* remaining bytes of the rows, S32 */
} row_ring;

/* Rows per pass; and this thread's row of a pass. */
uint32_t row_ring_pass(const row_ring *r);
ptx_val row_ring_row_of(const row_ring *r, ptx_val tid);

/* Rows of `row_bytes` each, U32. */
void row_ring_init(row_ring *r, ptx_val tid, ptx_val shared, ptx_val row_bytes);

/* Whether there is a next stage. */
ptx_val row_ring_has_next(const row_ring *r);

/* Starts to copy the next stage to the one at `offset`, and counts it. */
void row_ring_copy(row_ring *r, ptx_val offset);
void row_ring_step(row_ring *r);

/* A row that a lane reads. */
typedef struct row_ring_row {
    ptx_val at; /* the row's start in the first stage, without `behind` */
    /* The offset in a sector: the low bits of this variable, which each stage updates. Poison: it is constant, and part of
     * `at`. */
    ptx_val behind;
} row_ring_row;

/* Finds the row at `address`, U64, whose first stage is at `at`. */
row_ring_row row_ring_find(const row_ring *r, ptx_val at, ptx_val address);

/* The row's start in the stage at `offset`, one stage after the previous call's. */
ptx_val row_ring_next(const row_ring *r, const row_ring_row *row, ptx_val offset);

#endif
