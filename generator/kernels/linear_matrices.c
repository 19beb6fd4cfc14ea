/* linear's matrices: one, up to three that share x, or a gated pair. Their rows are one range, so that one wave covers all of them.
 *
 * Several matrices are concatenated: row n of the range is the first row of w_2. A pair is interleaved: rows 2i and 2i + 1
 * are row i of w and row i of gate, so that one thread block has both sums of an element of y. Each row finds its own matrix,
 * and a warp's rows may be of two.
 */
#include "device/tail.h"
#include "linear.h"

void linear_find_threads(linear *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->lane = ptx_laneid(f);
    g->warp = ptx_warpid_x(f);
    ptx_val blocks = ptx_div(f, g->k, g->of.format->elements);
    g->w_row_bytes = ptx_mul(f, blocks, g->of.format->bytes);
    if (g->of.format->scale_elements > 0)
        g->row_numbers = ptx_div(f, g->k, g->of.format->scale_elements);
    g->first_row_of[0] = ptx_u32(0);
    g->w_rows = g->n[0];
    for (uint32_t i = 1; i < g->matrices && !g->is_pair; i++) {
        g->first_row_of[i] = g->w_rows;
        g->w_rows = ptx_add(f, g->w_rows, g->n[i]);
    }
    if (g->is_pair)
        g->w_rows = ptx_mul(f, g->n[0], g->column_rows);
}

linear_row linear_find_row(linear *g, ptx_val row)
{
    ptx_fn *f = g->f;
    linear_row of = {.number = row};
    if (g->is_pair) {
        of.is_from[1] = ptx_ne(f, ptx_and(f, row, 1), 0);
        of.number = ptx_div(f, row, g->column_rows);
        return of;
    }
    for (uint32_t i = 1; i < g->matrices; i++)
        of.is_from[i] = ptx_ge(f, row, g->first_row_of[i]);
    if (g->matrices > 1)
        of.number = ptx_sub(f, row, linear_pick(g, &of, g->first_row_of));
    return of;
}

ptx_val linear_pick(linear *g, const linear_row *row, const ptx_val of_matrices[])
{
    ptx_val value = of_matrices[0];
    for (uint32_t i = 1; i < g->matrices; i++)
        value = ptx_select(g->f, row->is_from[i], of_matrices[i], value);
    return value;
}

ptx_val linear_pick_address(linear *g, const linear_row *row, const ptx_val pointers[])
{
    ptx_val addresses[LINEAR_MOST_MATRICES] = {{0}};
    for (uint32_t i = 0; i < g->matrices; i++)
        addresses[i] = ptx_address(g->f, pointers[i]);
    return linear_pick(g, row, addresses);
}

ptx_val linear_numbers_at(linear *g, const linear_row *row, uint32_t array, ptx_val number)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_cvt(f, PTX_U64, ptx_mul(f, number, 4));
    ptx_val start = ptx_add(f, linear_pick_address(g, row, g->arrays[array]), first);
    return ptx_mad_wide(f, row->number, ptx_mul(f, g->row_numbers, 4), start);
}

ptx_val linear_row_address(linear *g, ptx_val row)
{
    const linear_row of = linear_find_row(g, tail_clamp(g->f, row, g->w_rows));
    ptx_val at = ptx_mad_wide(g->f, of.number, g->w_row_bytes, linear_pick_address(g, &of, g->w));
    return g->split_k == 1 ? at : ptx_add(g->f, at, ptx_cvt(g->f, PTX_U64, g->part_byte));
}
