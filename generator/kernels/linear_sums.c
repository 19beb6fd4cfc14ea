/* linear's tiles of sums on tensor cores: from registers through shared memory to y. */
#include "linear.h"

linear_tile linear_find_tile(linear *l, uint32_t rows, uint32_t columns, uint32_t warp_columns,
                             uint32_t k_warps, uint32_t stage)
{
    ptx_fn *f = l->f;
    const uint32_t column_warps = columns / warp_columns;
    linear_tile s = {.rows = rows,
                     .columns = columns,
                     .warp_columns = warp_columns,
                     .k_warps = k_warps,
                     .row_warps = 1,
                     .stage = stage};
    s.shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    s.lane = fragment_find_lane(f, l->lane);
    s.column_warp = l->warp;
    if (k_warps > 1) {
        s.k_warp = ptx_div(f, l->warp, column_warps);
        s.column_warp = ptx_and(f, l->warp, column_warps - 1);
    }
    if (l->split_k == 0)
        return s;
    s.first_x = ptx_mul(f, ptx_ctaid_y(f), rows);
    s.first_w = ptx_mul(f, ptx_ctaid_x(f), columns);
    return s;
}

void linear_share_rows(linear *l, linear_tile *s, uint32_t row_warps)
{
    const uint32_t column_warps = s->columns / s->warp_columns;
    s->row_warps = row_warps;
    s->row_warp = ptx_div(l->f, l->warp, column_warps);
    s->column_warp = ptx_and(l->f, l->warp, column_warps - 1);
}

warp_sums linear_init_sums(ptx_fn *f, uint32_t rows)
{
    warp_sums s = {.row_tiles = rows / SUMS_ROWS, .column_tiles = LINEAR_MMA_TILES};
    sums_clear(f, &s);
    return s;
}

/* With the sums of `slices` groups of warps that share k. */
static shared_sums shared_of(const linear_tile *s, uint32_t slices)
{
    const uint32_t rows = s->rows < SUMS_ROWS ? SUMS_ROWS : s->rows;
    return (shared_sums){.rows = rows, .columns = s->columns, .k_warps = slices, .at = s->shared};
}

uint32_t linear_sums_bytes(uint32_t rows, uint32_t columns, uint32_t k_warps)
{
    const linear_tile s = {.rows = rows, .columns = columns};
    const shared_sums sums = shared_of(&s, k_warps);
    return shared_sums_bytes(&sums);
}

static void gather_sums(linear *l, const linear_tile *s, warp_sums *sums)
{
    shared_sums to = shared_of(s, s->k_warps);
    if (s->row_warps > 1) {
        const layout rows = shared_sums_layout(s->columns);
        to.at = ptx_mad(l->f, s->row_warp, layout_rows(&rows, s->rows / s->row_warps), to.at);
    }
    ptx_val column = ptx_mad(l->f, s->column_warp, s->warp_columns, s->lane.g);
    shared_sums_store(l->f, &to, sums, column, s->lane.t, s->k_warp);
}

/* Neighbouring threads store neighbouring elements of a row of y. Adds the sums of `slices` warps that share k. */
static void store_sums(linear *l, const linear_tile *s, uint32_t slices)
{
    ptx_fn *f = l->f;
    const shared_sums sums = shared_of(s, slices);
    const uint32_t columns = s->columns / l->column_rows,
                   rows_at_once = linear_rows_at_once(s) * l->column_rows;
    ptx_val in_tile = ptx_and(f, l->tid, columns - 1), row = ptx_div(f, l->tid, columns);
    ptx_val line = shared_sums_row(f, &sums, row),
            from = ptx_var(f, ptx_mad(f, in_tile, 4 * l->column_rows, line));
    if (l->is_pair)
        in_tile = ptx_mul(f, in_tile, l->column_rows);
    ptx_val row_of_w = ptx_add(f, in_tile, s->first_w), first = ptx_add(f, row, s->first_x);
    const linear_column column = linear_find_column(l, row_of_w);
    PTX_IF (f, ptx_lt(f, row_of_w, l->w_rows)) {
        ptx_val bias = linear_bias(l, &column);
        ptx_val past = ptx_add(f, s->first_x, s->rows), end = ptx_min(f, past, l->m);
        PTX_FOR (f, vector, first, end, rows_at_once) {
            ptx_side_loop(f);
            ptx_val element = ptx_mad_wide(f, vector, column.stride, column.row_64), whole[2];
            for (uint32_t i = 0; i < l->column_rows; i++)
                whole[i] = shared_sums_load(f, &sums, from, 0, i);
            linear_store(l, &column, whole, bias, NULL, element);
            ptx_set(f, from, ptx_address(f, shared_sums_at(f, &sums, from, rows_at_once, 0)));
        }
    }
}

/* Adds the sums of the warps that share k, then those of the thread blocks: the last one then has the tile's in shared memory. */
static ptx_val add_parts(linear *l, const linear_tile *s)
{
    enum { MOST_SUMS = 128 };
    ptx_fn *f = l->f;
    const shared_sums tiles = shared_of(s, s->k_warps);
    const uint32_t at_once = linear_rows_at_once(s), count = at_once < s->rows ? s->rows / at_once : 1;
    ptx_val row = ptx_div(f, l->tid, s->columns), column = ptx_and(f, l->tid, s->columns - 1);
    if (at_once > s->rows) /* the threads that do not store load the same sums */
        row = ptx_and(f, row, s->rows - 1);
    ptx_val from = ptx_mad(f, column, 4, shared_sums_row(f, &tiles, row)), sums[MOST_SUMS];
    for (uint32_t i = 0; i < count; i++)
        sums[i] = ptx_var(f, shared_sums_load(f, &tiles, from, i * at_once, 0));
    ptx_val has_all = linear_add_parts(l, s, sums, count), stores = has_all;
    if (at_once > s->rows)
        stores = ptx_and(f, has_all, ptx_lt(f, l->tid, linear_store_threads(s)));
    PTX_IF (f, stores) {
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, shared_sums_at(f, &tiles, from, i * at_once, 0), sums[i]);
        if (l->is_pair) /* else each thread stores the sums that it wrote */
            ptx_barrier(f);
    }
    return has_all;
}

void linear_store_whole_sums(linear *l, const linear_tile *s, warp_sums *sums)
{
    ptx_barrier(l->f);
    gather_sums(l, s, sums);
    ptx_barrier(l->f);
    store_sums(l, s, s->k_warps);
}

void linear_store_sums(linear *l, linear_tile *s, warp_sums *sums)
{
    ptx_fn *f = l->f;
    if (l->split_k == 1) {
        linear_store_whole_sums(l, s, sums);
        return;
    }
    ptx_barrier(f);
    gather_sums(l, s, sums);
    ptx_barrier(f);
    linear_find_tile_again(l, s);
    ptx_val has_all = add_parts(l, s);
    PTX_IF (f, has_all) {
        store_sums(l, s, 1);
    }
}
