/* Shared memory. */
#include "shared.h"

ptx_val shared_at(ptx_fn *f, ptx_type type, ptx_val address, uint32_t bytes)
{
    return ptx_at_bytes(f, ptx_pointer(f, PTX_SHARED, type, address), bytes);
}

uint32_t shared_rows_bytes(shared_rows rows, uint32_t count)
{
    return count * rows.bytes + (rows.padded ? count / rows.padded * UNIT_BYTES : 0);
}

ptx_val shared_row(ptx_fn *f, shared_rows rows, ptx_val row)
{
    uint32_t bytes = rows.bytes + (rows.padded == 1 ? UNIT_BYTES : 0);
    ptx_val line = ptx_mul(f, row, ptx_u32(bytes));
    if (rows.padded <= 1)
        return line;
    ptx_val gaps = ptx_div(f, row, ptx_u32(rows.padded));
    return ptx_mad(f, gaps, ptx_u32(UNIT_BYTES), line);
}

void shared_toggle(ptx_fn *f, ptx_val variable, ptx_val sum)
{
    ptx_set(f, variable, ptx_sub(f, sum, variable));
}

ptx_val shared_sum(ptx_fn *f, ptx_val from, uint32_t count, uint32_t bytes)
{
    ptx_val sum = ptx_load(f, from);
    for (uint32_t i = 1; i < count; i++) {
        ptx_val next = ptx_load(f, ptx_at_bytes(f, from, i * bytes));
        sum = ptx_add(f, sum, next);
    }
    return sum;
}
