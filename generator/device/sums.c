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

/* A warp has sums of at least one product. */
shared_sums shared_sums_init(uint32_t rows, uint32_t columns, uint32_t k_warps, ptx_val at)
{
    shared_sums s = {.k_warps = k_warps, .rows = shared_sums_layout(columns), .at = at};
    s.tile_bytes = layout_rows(&s.rows, rows < SUMS_ROWS ? SUMS_ROWS : rows);
    return s;
}

ptx_val shared_sums_row(ptx_fn *f, const shared_sums *s, ptx_val row)
{
    return ptx_mad(f, row, s->rows.row_bytes, s->at);
}

ptx_val shared_sums_at(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns)
{
    return shared_at(f, PTX_F32, from, layout_byte(&s->rows, rows, columns));
}

ptx_val shared_sums_load(ptx_fn *f, const shared_sums *s, ptx_val from, uint32_t rows, uint32_t columns)
{
    return shared_sum(f, shared_sums_at(f, s, from, rows, columns), s->k_warps, s->tile_bytes);
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
    ptx_val tile = k_warp.type == PTX_NONE ? s->at : ptx_mad(f, k_warp, s->tile_bytes, s->at);
    ptx_val line = ptx_mad(f, t, layout_rows(&s->rows, 2), tile), to = ptx_mad(f, column, 4, line);
    for (uint32_t row_tile = 0; row_tile < sums->row_tiles; row_tile++)
        for (uint32_t column_tile = 0; column_tile < sums->column_tiles; column_tile++)
            store_product(f, s, to, sums, row_tile, column_tile);
}
