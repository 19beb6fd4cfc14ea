/* Shared memory. */
#include "shared.h"

ptx_val shared_at(ptx_fn *f, ptx_type type, ptx_val address, uint32_t bytes)
{
    return ptx_at_bytes(f, ptx_pointer(f, PTX_SHARED, type, address), bytes);
}

void shared_toggle(ptx_fn *f, ptx_val variable, ptx_val sum)
{
    ptx_set(f, variable, ptx_sub(f, sum, variable));
}

ptx_val shared_sum(ptx_fn *f, ptx_val from, uint32_t count, uint32_t bytes)
{
    ptx_val sum = ptx_load(f, from);
    for (uint32_t i = 1; i < count; i++)
        sum = ptx_add(f, sum, ptx_load(f, ptx_at_bytes(f, from, i * bytes)));
    return sum;
}

void shared_next(ptx_fn *f, ptx_val offset, uint32_t stage_bytes, uint32_t count)
{
    ptx_val next = ptx_add(f, offset, stage_bytes);
    ptx_val is_end = ptx_eq(f, next, count * stage_bytes);
    ptx_set(f, offset, ptx_select(f, is_end, 0, next));
}

void shared_store_warp(ptx_fn *f, ptx_val lane, ptx_val warp, ptx_val to, uint32_t byte, ptx_val value)
{
    ptx_val is_first = ptx_eq(f, lane, 0);
    ptx_val mine = ptx_mad(f, warp, 4, to);
    PTX_WHEN (f, is_first) {
        ptx_store(f, shared_at(f, PTX_F32, mine, byte), value);
    }
}

ptx_val shared_join_warps(ptx_fn *f, ptx_op op, ptx_val from, uint32_t byte, uint32_t warps)
{
    enum { MOST_WARPS = 32 };
    ptx_val part[MOST_WARPS] = {{0}};
    for (uint32_t i = 0; i < warps; i += 4)
        ptx_load_vec(f, 4, &part[i], shared_at(f, PTX_F32, from, byte + 4 * i), PTX_PLAIN);
    ptx_val joined = ptx_var(f, ptx_op2(f, op, part[0], part[1], PTX_HERE));
    for (uint32_t i = 2; i < warps; i++)
        ptx_update_at(f, op, joined, part[i], PTX_HERE);
    return joined;
}
