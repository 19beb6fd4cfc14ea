/* Tails. */
#include "tail.h"

ptx_val tail_clamp(ptx_fn *f, ptx_val index, ptx_val count)
{
    return ptx_min(f, index, ptx_sub(f, count, 1));
}

void tail_load(ptx_fn *f, ptx_type type, uint32_t count, ptx_val out[], ptx_val from,
               const ptx_val *in_bounds, int hints)
{
    ptx_val loaded[4], at = ptx_cast_ptr(f, from, type);
    if (!in_bounds) {
        ptx_load_vec(f, (int)count, out, at, hints);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = ptx_var(f, ptx_bits(type, 0));
    PTX_WHEN (f, *in_bounds) {
        ptx_load_vec(f, (int)count, loaded, at, hints);
        for (uint32_t i = 0; i < count; i++)
            ptx_set(f, out[i], loaded[i]);
    }
}
