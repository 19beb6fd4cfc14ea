/* Reductions over a warp in one instruction, from sm_80 on. */
#include "device.h"

KERNEL(redux_add, uint32_t, uint32_t, uint32_t)
{
    out[GLOBAL] = __reduce_add_sync(FULL_WARP, a[GLOBAL]);
}

KERNEL(redux_extremes, uint32_t, uint32_t, uint32_t)
{
    out[GLOBAL] = __reduce_min_sync(FULL_WARP, a[GLOBAL]) ^ 3 * __reduce_max_sync(FULL_WARP, b[GLOBAL]);
}

KERNEL(redux_logic, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL] | b[GLOBAL];
    out[GLOBAL] = __reduce_and_sync(FULL_WARP, v) ^ 3 * __reduce_or_sync(FULL_WARP, v & 0xff) ^
                  5 * __reduce_xor_sync(FULL_WARP, v);
}

KERNEL(redux_halves, uint32_t, uint32_t, uint32_t)
{
    if (LANE & 1)
        out[GLOBAL] = __reduce_add_sync(0xaaaaaaaau, a[GLOBAL]);
    else
        out[GLOBAL] = __reduce_max_sync(0x55555555u, a[GLOBAL]);
}
