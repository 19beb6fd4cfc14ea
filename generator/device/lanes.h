/* Warps, and what a multiprocessor holds of them. */
#ifndef DEVICE_LANES_H
#define DEVICE_LANES_H

#include <kiln/author/ptx.h>

enum { WARP_LANES = 32, MULTIPROCESSOR_REGISTERS = 65536 };

/* Adds each of `count` sums, a power of two, over the warp. Lanes from i * 32 / count on get sum i: each step halves the lanes
 * of a sum and the sums of a lane. What `sums` holds is lost. */
ptx_val lanes_add(ptx_fn *f, ptx_val lane, ptx_val sums[], uint32_t count);

/* Thread blocks of a multiprocessor that leave each thread so many registers; at least one. Left to itself, ptxas fits one
 * more and spills, or hoists loads until no register is left. */
static inline uint32_t lanes_blocks(uint32_t threads, uint32_t registers)
{
    const uint32_t blocks = MULTIPROCESSOR_REGISTERS / (threads * registers);
    return blocks ? blocks : 1;
}

/* The logarithm of a power of two. */
static inline uint32_t lanes_log2(uint32_t power_of_two)
{
    uint32_t log = 0;
    while (power_of_two >> (log + 1))
        log++;
    return log;
}

#endif
