/* Thread blocks that share a reduction (split-K): each has partial sums of the same tile, and the last to arrive adds all of
 * them in the order of their parts, so that the result does not depend on which one is last.
 *
 * Arguments of the kernel, in variants with more than one part:
 *     workspace  scratch, parts * threads * count of the sums' type per tile, 16-byte aligned
 *     tile_counters   in and out, u32 per tile: 0 before a launch, and again 0 after it
 */
#ifndef DEVICE_SPLIT_H
#define DEVICE_SPLIT_H

#include <stdint.h>

#include <kiln/author/ptx.h>

typedef struct split {
    ptx_fn *f;
    ptx_type type;         /* of the sums: F32 or F64 */
    uint32_t parts;        /* thread blocks per tile, at least 2 */
    uint32_t threads;      /* threads of each thread block that have sums: those with the lowest tid */
    ptx_val workspace;     /* pointer to `type` */
    ptx_val tile_counters; /* pointer to U32 */
    ptx_val tile, part;    /* this thread block's tile, and its part of the reduction; U32, uniform */
    ptx_val tid;
} split;

/* Static shared memory of split_add and split_arrive, padded to the alignment of dynamic memory after it. */
enum { SPLIT_SHARED_BYTES = 32 };

/* Adds the parts' sums. Each thread passes `count` variables. If the predicate that it returns holds, they become the sums
 * over all parts: in all threads of the last thread block, and in no other. All threads of the thread block must call it: it
 * has barriers. */
ptx_val split_add(const split *s, ptx_val sums[], uint32_t count);

/* The steps in a part of a reduction: U32. If they do not divide evenly, the first parts have one more. */
typedef struct split_part {
    ptx_val first, count;
} split_part;

split_part split_find_part(ptx_fn *f, ptx_val steps, ptx_val part, uint32_t parts);

/* Reductions of many tiles, concatenated and cut into stretches of equal length, one per thread block (stream-K). A tile's
 * parts belong to neighbouring thread blocks; a tile within one stretch has no parts to add. Required arguments:
 *     workspace       2 * thread blocks * threads * count
 *     tile_counters   one per thread block */
typedef struct split_stretch {
    ptx_val length;     /* steps of a tile, at least 1; below 2^32 in total; all members are U32, uniform */
    ptx_val each;       /* steps of a stretch */
    ptx_val first, end; /* this thread block's stretch, which may be empty */
} split_stretch;

split_stretch split_find_stretch(ptx_fn *f, ptx_val tiles, ptx_val length);

/* split_add for tile s->tile; parts, part and threads are unused: all threads have sums. */
ptx_val split_add_stretch(const split *s, const split_stretch *of, ptx_val sums[], uint32_t count);

/* For kernels that store their parts themselves; call it after the stores. Uses f, parts, tile_counters, tile and tid.
 * The predicate holds in all threads of the last thread block, and in no other; these may load all parts with PTX_CG. */
ptx_val split_arrive(const split *s);

/* split_arrive for any number of parts: `last` is their number minus 1, `counter` the index of their counter. U32,
 * uniform. */
ptx_val split_arrive_at(ptx_fn *f, ptx_val tid, ptx_val tile_counters, ptx_val counter, ptx_val last);

#endif
