/* A warp's lanes. */
#include "lanes.h"

ptx_val lanes_add(ptx_fn *f, ptx_val lane, ptx_val sums[], uint32_t count)
{
    uint32_t lanes = WARP_LANES;
    for (uint32_t half = count / 2; half > 0; half /= 2) {
        lanes /= 2;
        ptx_val bit = ptx_and(f, lane, ptx_u32(lanes));
        ptx_val is_upper = ptx_ne(f, bit, ptx_u32(0));
        for (uint32_t i = 0; i < half; i++) {
            ptx_val kept = ptx_select(f, is_upper, sums[i + half], sums[i]);
            ptx_val given = ptx_select(f, is_upper, sums[i], sums[i + half]);
            sums[i] = ptx_add(f, kept, ptx_shfl_xor(f, given, ptx_u32(lanes)));
        }
    }
    return ptx_reduce_lanes(f, PTX_OP_ADD, (int)lanes, sums[0]);
}
