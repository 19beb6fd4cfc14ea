/* Scales in tiles of 128 rows and 4 blocks. */
#include "scale_tiles.h"

ptx_val scale_tiles_row(ptx_fn *f, ptx_val place)
{
    ptx_val in_quarter = ptx_bfe(f, place, 2, 5);
    ptx_val in_tile = ptx_bfi(f, place, in_quarter, 5, 2);
    return ptx_bfi(f, in_tile, place, 0, 7);
}

static ptx_val ceil_div(ptx_fn *f, ptx_val count, uint32_t shift)
{
    return ptx_shr(f, ptx_add(f, count, (UINT32_C(1) << shift) - 1), shift);
}

ptx_val scale_tiles_down(ptx_fn *f, ptx_val rows)
{
    return ceil_div(f, rows, 7);
}

ptx_val scale_tiles_across(ptx_fn *f, ptx_val blocks)
{
    return ceil_div(f, blocks, 2);
}
