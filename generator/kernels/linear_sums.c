/* linear's tiles of sums on tensor cores: from registers by shared memory to y. */
#include "linear.h"

enum {
    ROWS = 8,    /* of x in one product */
    W_ROWS = 16, /* of W */
    SUM_PAD = 4  /* numbers */
};

linear_tile linear_find_tile(linear *l, uint32_t rows, uint32_t columns, uint32_t k_warps, uint32_t stage)
{
    ptx_fn *f = l->f;
    const uint32_t column_warps = columns / (W_ROWS * LINEAR_MMA_TILES);
    linear_tile s = {.rows = rows, .columns = columns, .k_warps = k_warps, .stage = stage};
    s.shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    s.g = ptx_shr(f, l->lane, 2);
    s.t = ptx_and(f, l->lane, 3);
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

/* Bytes of a row of sums. A lane's rows are two apart, so that the lanes' banks differ. */
static uint32_t row_bytes_of(uint32_t columns)
{
    return 4 * (columns + SUM_PAD);
}

void linear_init_sums(ptx_fn *f, uint32_t rows, ptx_val sum[][LINEAR_MMA_TILES][4])
{
    for (uint32_t tile = 0; tile < rows / ROWS; tile++)
        for (uint32_t i = 0; i < 4 * LINEAR_MMA_TILES; i++)
            sum[tile][i / 4][i % 4] = ptx_var(f, ptx_f32(0));
}

uint32_t linear_sums_bytes(uint32_t rows, uint32_t columns, uint32_t k_warps)
{
    return k_warps * rows * row_bytes_of(columns);
}

/* Stores this warp's sums in shared memory. */
static void gather_sums(linear *l, const linear_tile *s, ptx_val sum[][LINEAR_MMA_TILES][4])
{
    ptx_fn *f = l->f;
    const uint32_t row_bytes = row_bytes_of(s->columns);
    ptx_val column = ptx_mad(f, s->column_warp, W_ROWS * LINEAR_MMA_TILES, s->g);
    ptx_val of_k_warp = s->k_warps == 1 ? s->shared : ptx_mad(f, s->k_warp, s->rows * row_bytes, s->shared);
    ptx_val line = ptx_mad(f, s->t, 2 * row_bytes, of_k_warp);
    ptx_val to = ptx_mad(f, column, 4, line);
    for (uint32_t tile = 0; tile < s->rows / ROWS; tile++) {
        for (uint32_t i = 0; i < 4 * LINEAR_MMA_TILES; i++) {
            const uint32_t row = tile * ROWS + i % 2, in_warp = i / 4 * W_ROWS + i % 4 / 2 * 8;
            ptx_store(f, shared_at(f, PTX_F32, to, row * row_bytes + 4 * in_warp), sum[tile][i / 4][i % 4]);
        }
    }
}

/* Neighbouring threads store neighbouring elements of a row of y. Those of `slices` warps that share k are added. */
static void store_sums(linear *l, const linear_tile *s, uint32_t slices)
{
    ptx_fn *f = l->f;
    const uint32_t row_bytes = row_bytes_of(s->columns), columns = s->columns / l->column_rows,
                   rows_at_once = s->k_warps * l->column_rows;
    ptx_val in_tile = ptx_and(f, l->tid, columns - 1), row = ptx_div(f, l->tid, columns);
    ptx_val line = ptx_mad(f, row, row_bytes, s->shared),
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
            ptx_val element = ptx_mad_wide(f, vector, column.n, column.row_64), whole[2];
            for (uint32_t i = 0; i < l->column_rows; i++)
                whole[i] = shared_sum(f, shared_at(f, PTX_F32, from, 4 * i), slices, s->rows * row_bytes);
            linear_store(l, &column, whole, bias, NULL, element);
            ptx_add_to(f, from, rows_at_once * row_bytes);
        }
    }
}

/* Adds the sums of the warps that share k, and then those of the thread blocks: the last of these has the tile's in shared memory. */
static ptx_val add_parts(linear *l, const linear_tile *s)
{
    enum { MOST_SUMS = 128 };
    ptx_fn *f = l->f;
    const uint32_t row_bytes = row_bytes_of(s->columns), count = s->rows / s->k_warps;
    ptx_val row = ptx_div(f, l->tid, s->columns), column = ptx_and(f, l->tid, s->columns - 1);
    ptx_val line = ptx_mad(f, row, row_bytes, s->shared);
    ptx_val from = ptx_mad(f, column, 4, line), sums[MOST_SUMS];
    for (uint32_t i = 0; i < count; i++) {
        ptx_val at = shared_at(f, PTX_F32, from, i * s->k_warps * row_bytes);
        sums[i] = ptx_var(f, shared_sum(f, at, s->k_warps, s->rows * row_bytes));
    }
    ptx_val has_all = linear_add_parts(l, s, sums, count);
    PTX_IF (f, has_all) {
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, shared_at(f, PTX_F32, from, i * s->k_warps * row_bytes), sums[i]);
        if (l->is_pair) /* else each thread stores what it has written */
            ptx_barrier(f);
    }
    return has_all;
}

void linear_store_sums(linear *l, linear_tile *s, ptx_val sum[][LINEAR_MMA_TILES][4])
{
    ptx_fn *f = l->f;
    ptx_barrier(f);
    gather_sums(l, s, sum);
    ptx_barrier(f);
    if (l->split_k == 1) {
        store_sums(l, s, s->k_warps);
        return;
    }
    linear_find_tile_again(l, s);
    ptx_val has_all = add_parts(l, s);
    PTX_IF (f, has_all) {
        store_sums(l, s, 1);
    }
}
