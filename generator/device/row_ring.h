/* Copies rows of quantised weights, which may begin at any byte, into a ring in shared memory, a stage of each row at a time.
 * Pieces of 16 bytes keep their global layout; a row's tail is zeros.
 *
 * BANKS. Lane (g, t) of a warp loads words of row g's codes, and words of the scales of row g + 8t. tests/device/banks_test.c
 * lists the wavefronts of these accesses by format, for rows that begin at the same byte of a sector and for others.
 *
 * - A lane loads 4 bytes of codes: rows take an odd number of units, so eight rows are in different banks. But both halves of a
 *   sector go to the same 32 bytes only in every second row: L2 requests for W grow by half (this folder's README.md). Swapped
 *   halves in every second row would avoid that, but then offsets in rows that begin at any byte would not be constants.
 * - A lane loads 8 bytes of codes: rows take an odd number of sectors, so four rows are in different banks and sectors stay
 *   whole. Such loads take twice the fewest possible wavefronts where that needs too much shared memory, and in Q8_0, whose
 *   unaligned words are loaded one by one.
 * - Scales of 32 rows are in eight 16-byte units of the banks if rows begin at multiples of 16 bytes, in four at multiples of
 * 32: loads of
 *   a word take 4 or 8 times the fewest possible wavefronts, loads of 16 bytes 1 or 2 times.
 * - Copies take the fewest wavefronts: neighbouring threads copy rows that are half the banks apart. */
#ifndef DEVICE_ROW_RING_H
#define DEVICE_ROW_RING_H

#include "shared.h"

enum { ROW_RING_LANES = 4 /* the fewest lanes that copy a row together */, ROW_RING_MOST_PASSES = 8 };

/* A stage's part of each row. */
typedef struct row_ring_shape {
    uint32_t bytes, pieces; /* bytes of a row; its pieces of 16 bytes, at most */
    uint32_t alignment;     /* of rows in global memory */
    uint32_t start;         /* 16 or 32: copies begin at a multiple of it, at or before the row */
    uint32_t lane_bytes;    /* of a row's codes, 4 or 8, that a lane loads without bank conflicts */
    layout rows;            /* in shared memory */
} row_ring_shape;

/* The shape for `bytes` of each row, aligned to `alignment`, at most 16. A lane loads `lane_bytes` of codes at once, 4 or 8, and
 * number_bytes of scales, 0 to 16. If lane_bytes 8 would make rows longer than 5/4 of `bytes`, the shape's lane_bytes is 4. */
row_ring_shape row_ring_stage(uint32_t bytes, uint32_t alignment, uint32_t lane_bytes, uint32_t number_bytes);

/* The user sets the members down to `from`, and calls row_ring_plan once f, `of`, `threads` and `rows` are set. */
typedef struct row_ring {
    ptx_fn *f;
    row_ring_shape of;
    bool is_lean;                       /* copies the rows' last stage in a loop: less code */
    bool finds_starts;                  /* finds rows' starts in each stage, even if all are aligned alike */
    uint32_t threads, rows;             /* of the thread block; powers of two */
    uint32_t lanes, pass, passes;       /* lanes that copy a row; rows per pass, a multiple of 8; passes */
    ptx_val from[ROW_RING_MOST_PASSES]; /* U64: the next stage of this thread's row of each pass */
    ptx_val piece, to;                  /* this thread's: bytes to its first piece; its place in stage 0 */
    ptx_val left;                       /* remaining bytes of the rows, S32 */
} row_ring;

/* The bit in which the rows of neighbouring groups of four lanes differ: each group copies 64 bytes, to its half of the banks. */
uint32_t row_ring_row_bit(const row_ring_shape *s);

/* _plan sets lanes, pass and passes. _row_of returns a thread's row in the first pass. */
void row_ring_plan(row_ring *r);
ptx_val row_ring_row_of(const row_ring *r, ptx_val tid);

void row_ring_init(row_ring *r, ptx_val tid, ptx_val shared, ptx_val row_bytes);

/* Whether all rows begin at multiples of the shape's `start`. */
static inline bool row_ring_is_aligned(const row_ring_shape *s)
{
    return s->alignment >= s->start;
}

/* Starts to copy the next stage to `offset` in the ring, and counts it. */
void row_ring_copy(row_ring *r, ptx_val offset);
void row_ring_step(row_ring *r);

/* A row that a lane reads. */
typedef struct row_ring_row {
    ptx_val at; /* the row's start in the first stage, without `offset` */
    /* The row's offset from a multiple of the shape's `start`: the low bits of this variable, which each stage updates. Poison if
     * the offset is constant: `at` then includes it. */
    ptx_val offset;
} row_ring_row;

/* Finds the row at `address`, U64, whose first stage is at `at`. An aligned row is {.at = at}. */
row_ring_row row_ring_find(const row_ring *r, ptx_val at, ptx_val address);

/* The row's start in the stage at `offset`, one stage after the previous call's. */
ptx_val row_ring_next(const row_ring *r, const row_ring_row *row, ptx_val offset);

#endif
