/* Thread blocks that share a reduction: each has partial sums of the same tile, and the last to arrive adds them all, in
 * the order of their parts, so that the result does not depend on who that is.
 *
 * The kernel's arguments that this takes, of variants with more than one part:
 *     workspace  scratch, parts * threads * count of the sums' type per tile, 16-byte aligned
 *     tile_counters   in and out, u32 per tile: 0 before a launch, and again 0 after it
 */
#ifndef KERNELS_SPLIT_H
#define KERNELS_SPLIT_H

#include <stdint.h>

#include <kiln/ptx.h>

typedef struct split {
    ptx_fn *f;
    ptx_type type;    /* of the sums: F32 or F64 */
    uint32_t parts;   /* thread blocks per tile, at least 2 */
    uint32_t threads; /* of each that have sums: those with the lowest tid, all when it is `block_threads` */
    uint32_t block_threads;
    ptx_val workspace;     /* pointer to `type` */
    ptx_val tile_counters; /* pointer to U32 */
    ptx_val tile,
        part; /* which tile this thread block works on, and which part of its reduction; U32, uniform */
    ptx_val tid;
} split;

/* Takes each thread's `count` sums, variables, which become those over all parts where the predicate that is returned
 * holds: in all threads of the last thread block, and in no other. Has barriers; all threads of the block come here. */
ptx_val split_add(const split *s, ptx_val sums[], uint32_t count);

/* For those who keep their parts in their own way: after their stores; f, parts, tile_counters, tile and tid are asked for. The
 * predicate holds in all threads of the last thread block, and in no other: it may load what all have stored, with
 * PTX_CG. */
ptx_val split_arrive(const split *s);

#endif
