/* Lanes of a warp with each other. */
#include "device.h"

KERNEL(warp_shuffle_index, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    out[GLOBAL] = __shfl_sync(FULL_WARP, v, b[GLOBAL], 32) + 3 * __shfl_sync(FULL_WARP, v, 5, 8);
}

KERNEL(warp_shuffle_up, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    out[GLOBAL] = __shfl_up_sync(FULL_WARP, v, 1, 32) ^ __shfl_up_sync(FULL_WARP, v, 3, 16);
}

KERNEL(warp_shuffle_down, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    out[GLOBAL] = __shfl_down_sync(FULL_WARP, v, 1, 32) ^ __shfl_down_sync(FULL_WARP, v, 2, 4);
}

KERNEL(warp_shuffle_xor, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    out[GLOBAL] = __shfl_xor_sync(FULL_WARP, v, 1, 32) + __shfl_xor_sync(FULL_WARP, v, 12, 8) +
                  __shfl_xor_sync(FULL_WARP, v, 31, 32);
}

KERNEL(warp_shuffle_wide, u64, u64, u64)
{
    out[GLOBAL] =
        __shfl_sync(FULL_WARP, a[GLOBAL], 31 - LANE, 32) + __shfl_up_sync(FULL_WARP, b[GLOBAL], 7, 32);
}

KERNEL(warp_votes, uint32_t, uint32_t, uint32_t)
{
    bool odd = a[GLOBAL] & 1;
    uint32_t r = __ballot_sync(FULL_WARP, odd);
    r ^= __any_sync(FULL_WARP, a[GLOBAL] == 12345) ? 0x80000000u : 0;
    r ^= __all_sync(FULL_WARP, b[GLOBAL] != 6) ? 0x40000000u : 0;
    out[GLOBAL] = r;
}

KERNEL(warp_match, uint32_t, uint32_t, uint32_t)
{
    int same;
    uint32_t peers = __match_any_sync(FULL_WARP, a[GLOBAL] % 5);
    uint32_t all = __match_all_sync(FULL_WARP, b[GLOBAL] / 64, &same);
    out[GLOBAL] = peers ^ all ^ (uint32_t)same;
}

/* Peers sum up among themselves. */
KERNEL(warp_group_sums, uint32_t, uint32_t, uint32_t)
{
    uint32_t peers = __match_any_sync(FULL_WARP, b[GLOBAL] % 4), sum = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t v = __shfl_sync(FULL_WARP, a[GLOBAL], lane, 32);
        sum += peers >> lane & 1 ? v : 0;
    }
    out[GLOBAL] = sum;
}

/* Halves of the warp go different ways, each with its own mask. */
KERNEL(warp_halves, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    if (LANE < 16) {
        for (uint32_t by = 8; by; by /= 2)
            v += __shfl_xor_sync(0x0000ffffu, v, by, 32);
    } else {
        v ^= __ballot_sync(0xffff0000u, (int)(v & 1));
        v += __shfl_down_sync(0xffff0000u, v, 1, 16);
    }
    out[GLOBAL] = v;
}

KERNEL(warp_exchange, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t words[128];
    words[THREAD] = a[GLOBAL];
    __syncwarp(FULL_WARP);
    uint32_t v = words[THREAD ^ 1];
    __syncwarp(FULL_WARP);
    words[THREAD] = v + b[GLOBAL];
    __syncwarp(FULL_WARP);
    out[GLOBAL] = words[(THREAD & ~31u) + (31 - LANE)];
}

KERNEL(warp_sort, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL];
    for (uint32_t size = 2; size <= 32; size *= 2)
        for (uint32_t by = size / 2; by; by /= 2) {
            uint32_t other = __shfl_xor_sync(FULL_WARP, v, by, 32);
            bool wants_less = ((LANE & by) == 0) == ((LANE & size) == 0);
            v = (other < v) == wants_less ? other : v;
        }
    out[GLOBAL] = v;
}

KERNEL(warp_broadcast_loop, uint32_t, uint32_t, uint32_t)
{
    uint32_t todo = __ballot_sync(FULL_WARP, a[GLOBAL] & 1), sum = 0;
    while (todo) {
        uint32_t lane = (uint32_t)__ffs((int)todo) - 1;
        sum = sum * 5 + __shfl_sync(FULL_WARP, b[GLOBAL], lane, 32);
        todo &= todo - 1;
    }
    out[GLOBAL] = sum;
}

/* The last warp of a block is not full. */
KERNEL(warp_partial, uint32_t, uint32_t, uint32_t)
{
    uint32_t here = blockDim.x - (THREAD & ~31u), mask = here < 32 ? (1u << here) - 1 : FULL_WARP,
             v = a[GLOBAL];
    uint32_t next = __shfl_sync(mask, v, (LANE + 1) % (here < 32 ? here : 32), 32);
    out[GLOBAL] = next + (uint32_t)__popc(__ballot_sync(mask, v > 100));
}

KERNEL(warp_ends_early, uint32_t, uint32_t, uint32_t)
{
    uint32_t left = __ballot_sync(FULL_WARP, LANE % 3 != 1);
    if (LANE % 3 == 1)
        return;
    out[GLOBAL] = a[GLOBAL] + (uint32_t)__popc(__ballot_sync(left, a[GLOBAL] & 1));
}
