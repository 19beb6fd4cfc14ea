/* Warps, and how many fit on a multiprocessor. */
#ifndef DEVICE_LANES_H
#define DEVICE_LANES_H

#include <kiln/author/ptx.h>

enum { WARP_LANES = 32, MULTIPROCESSOR_REGISTERS = 65536 };

/* Thread blocks that put `resident` threads on a multiprocessor, at least one: each thread has MULTIPROCESSOR_REGISTERS /
 * resident registers, rounded down to a multiple of eight, and 255 at most. Without a limit, ptxas fits one block more and
 * spills, or hoists loads until no register is left. */
static inline uint32_t lanes_blocks(uint32_t threads, uint32_t resident)
{
    return resident > threads ? resident / threads : 1;
}

static inline uint32_t lanes_log2(uint32_t power_of_two)
{
    uint32_t log = 0;
    while (power_of_two >> (log + 1))
        log++;
    return log;
}

/* Reduces each of `count` values over groups of `lanes` neighbouring lanes, both powers of two. Each step halves the lanes
 * that have a value and the values that a lane has, which takes fewer shuffles than one value at a time. At the end a lane
 * has the first lanes_share(lanes, count) of `values`: those from lanes_first on. */
void lanes_join(ptx_fn *f, ptx_op op, uint32_t lanes, uint32_t count, ptx_val lane, ptx_val values[]);
ptx_val lanes_first(ptx_fn *f, uint32_t lanes, uint32_t count, ptx_val lane);

static inline uint32_t lanes_share(uint32_t lanes, uint32_t count)
{
    return count > lanes ? count >> lanes_log2(lanes) : 1;
}

#endif
