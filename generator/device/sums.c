/* Sums of products on tensor cores. */
#include "sums.h"
#include "shared.h"

enum { PAD = 4 /* numbers of padding after a row */ };

void sums_clear(ptx_fn *f, warp_sums *s)
{
    for (uint32_t i = 0; i < sums_count(s); i++)
        if (sums_has(s, i))
            s->of[i] = ptx_var(f, ptx_f32(0));
}

/* ---- in shared memory --------------------------------------------------------------------------------------------- */

layout shared_sums_layout(uint32_t columns)
{
    return (layout){.row_bytes = 4 * (columns + PAD), .unit_bytes = 4};
}

static uint32_t tile_bytes(const shared_sums *s)
{
    const layout l = shared_sums_layout(s->columns);
    return layout_rows(&l, s->rows);
}

uint32_t shared_sums_bytes(const shared_sums *s)
{
    return s->k_warps * tile_bytes(s);
}

ptx_val shared_sums_row(ptx_fn *f, const shared_sums *s, ptx_val row)
{
    const layout l = shared_sums_layout(s->columns);
    return ptx_mad(f, row, l.row_bytes, s->at);
}

ptx_val shared_sums_at(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns)
{
    const layout l = shared_sums_layout(s->columns);
    return shared_at(f, PTX_F32, from, layout_byte(&l, rows, columns));
}

ptx_val shared_sums_load(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns)
{
    return shared_sum(f, shared_sums_at(f, s, from, rows, columns), s->k_warps, tile_bytes(s));
}

static void store_product(ptx_fn *f, const shared_sums *s, ptx_val to, warp_sums *sums, uint32_t row_tile,
                          uint32_t column_tile)
{
    const ptx_val *product = sums_of(sums, row_tile, column_tile);
    for (uint32_t e = 0; e < 4; e++) {
        const uint32_t row = SUMS_ROWS * row_tile + e % 2, column = SUMS_COLUMNS * column_tile + e / 2 * 8;
        if (sums_has(sums, e))
            ptx_store(f, shared_sums_at(f, s, to, row, column), product[e]);
    }
}

void shared_sums_store(ptx_fn *f, const shared_sums *s, warp_sums *sums, ptx_val column, ptx_val t,
                       ptx_val k_warp)
{
    ptx_val tile = k_warp.type == PTX_NONE ? s->at : ptx_mad(f, k_warp, tile_bytes(s), s->at);
    const layout l = shared_sums_layout(s->columns);
    ptx_val line = ptx_mad(f, t, layout_rows(&l, 2), tile), to = ptx_mad(f, column, 4, line);
    for (uint32_t row_tile = 0; row_tile < sums->row_tiles; row_tile++)
        for (uint32_t column_tile = 0; column_tile < sums->column_tiles; column_tile++)
            store_product(f, s, to, sums, row_tile, column_tile);
}
