/* Tails. */
#include "tail.h"

ptx_val tail_clamp(ptx_fn *f, ptx_val index, ptx_val count)
{
    return ptx_min(f, index, ptx_sub(f, count, 1));
}

void tail_load(ptx_fn *f, ptx_type type, uint32_t count, ptx_val out[], ptx_val from,
               const ptx_val *in_bounds, int hints)
{
    ptx_val at = ptx_cast_ptr(f, from, type);
    if (!in_bounds) {
        ptx_load_vec(f, (int)count, out, at, hints);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = ptx_var(f, ptx_bits(type, 0));
    PTX_WHEN (f, *in_bounds) {
        tail_set(f, count, out, at, hints);
    }
}

void tail_set(ptx_fn *f, uint32_t count, const ptx_val variables[], ptx_val from, int hints)
{
    ptx_val loaded[4];
    ptx_load_vec(f, (int)count, loaded, from, hints);
    for (uint32_t i = 0; i < count; i++)
        ptx_set(f, variables[i], loaded[i]);
}
