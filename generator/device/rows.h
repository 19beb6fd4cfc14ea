/* Copies of a stretch of a tensor's bytes, from any byte on, into shared memory: 16 bytes at a time, and none that is not the
 * tensor's. */
#ifndef DEVICE_ROWS_H
#define DEVICE_ROWS_H

#include <kiln/author/ptx.h>

/* The threads that copy together: a warp, or a thread block. */
typedef struct row_copier {
    bool
        has_sm_80; /* copies run in the background, in the group of each thread that the caller commits and waits for */
    uint32_t threads; /* at least 16 */
    ptx_val thread;   /* U32, below `threads` */
} row_copier;

/* Shared memory that a copy of so many bytes takes at most. */
static inline uint32_t rows_room(uint32_t most_bytes)
{
    return (most_bytes + 31 + 15) / 16 * 16;
}

/* Copies `bytes` (a U32, at most `most_bytes`) from a U8 pointer to global memory to rows_room(most_bytes) bytes at `to`, a
 * multiple of 16 in shared memory. The tensor's address is a multiple of 16. Returns where the first byte is: as far behind `to`
 * as its address is behind a multiple of 32, so that a warp's copies begin at sectors. Up to 15 bytes behind the last are 0. */
ptx_val rows_copy(ptx_fn *f, const row_copier *c, ptx_val to, ptx_val from, ptx_val bytes,
                  uint32_t most_bytes);

#endif
