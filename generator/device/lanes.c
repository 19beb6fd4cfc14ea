/* A warp's lanes. */
#include "lanes.h"

void lanes_join(ptx_fn *f, ptx_op op, uint32_t lanes, uint32_t count, ptx_val lane, ptx_val values[])
{
    while (lanes > 1 && count > 1) {
        lanes /= 2;
        count /= 2;
        ptx_val is_upper = ptx_ne(f, ptx_and(f, lane, lanes), 0);
        for (uint32_t i = 0; i < count; i++) {
            ptx_val kept = ptx_select(f, is_upper, values[i + count], values[i]);
            ptx_val given = ptx_select(f, is_upper, values[i], values[i + count]);
            values[i] = ptx_op2(f, op, kept, ptx_shfl_xor(f, given, lanes), PTX_HERE);
        }
    }
    if (lanes > 1)
        values[0] = ptx_reduce_lanes(f, op, (int)lanes, values[0]);
}

ptx_val lanes_first(ptx_fn *f, uint32_t lanes, uint32_t count, ptx_val lane)
{
    ptx_val in_group = ptx_and(f, lane, lanes - 1);
    return count > lanes ? ptx_mul(f, in_group, count / lanes) : ptx_div(f, in_group, lanes / count);
}
