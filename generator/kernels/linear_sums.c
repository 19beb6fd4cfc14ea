/* linear's tiles of sums on tensor cores: from registers by shared memory to y. */
#include "linear.h"

enum {
    ROWS = 8,    /* of x in one product */
    W_ROWS = 16, /* of W */
    SUM_PAD = 4  /* numbers */
};

/* Bytes of a row of sums. A lane's rows are two apart, so that the lanes' banks differ. */
static uint32_t row_bytes_of(uint32_t columns)
{
    return 4 * (columns + SUM_PAD);
}

uint32_t linear_sums_bytes(uint32_t rows, uint32_t columns, uint32_t k_warps)
{
    return k_warps * rows * row_bytes_of(columns);
}

/* Stores this warp's sums in shared memory. */
static void gather_sums(linear *l, const linear_sums *s)
{
    ptx_fn *f = l->f;
    const uint32_t row_bytes = row_bytes_of(s->columns);
    ptx_val column = ptx_mad(f, s->column_warp, ptx_u32(W_ROWS * LINEAR_MMA_TILES), s->g);
    ptx_val of_k_warp =
        s->k_warps == 1 ? s->shared : ptx_mad(f, s->k_warp, ptx_u32(s->rows * row_bytes), s->shared);
    ptx_val line = ptx_mad(f, s->t, ptx_u32(2 * row_bytes), of_k_warp);
    ptx_val to = ptx_mad(f, column, ptx_u32(4), line);
    for (uint32_t tile = 0; tile < s->rows / ROWS; tile++) {
        for (uint32_t i = 0; i < 4 * LINEAR_MMA_TILES; i++) {
            const uint32_t row = tile * ROWS + i % 2, in_warp = i / 4 * W_ROWS + i % 4 / 2 * 8;
            ptx_store(f, shared_at(f, PTX_F32, to, row * row_bytes + 4 * in_warp),
                      s->sum[tile][i / 4][i % 4]);
        }
    }
}

/* Neighbouring threads store neighbouring elements of a row of y. */
void linear_store_sums(linear *l, const linear_sums *s)
{
    ptx_fn *f = l->f;
    const uint32_t row_bytes = row_bytes_of(s->columns);
    ptx_barrier(f);
    gather_sums(l, s);
    ptx_barrier(f);
    ptx_val in_tile = ptx_and(f, l->tid, ptx_u32(s->columns - 1)),
            row = ptx_div(f, l->tid, ptx_u32(s->columns));
    ptx_val line = ptx_mad(f, row, ptx_u32(row_bytes), s->shared),
            from = ptx_var(f, ptx_mad(f, in_tile, ptx_u32(4), line));
    ptx_val column = ptx_add(f, in_tile, s->first_w), first = ptx_add(f, row, s->first_x);
    ptx_val column_64 = ptx_cvt(f, PTX_U64, column);
    PTX_IF (f, ptx_lt(f, column, l->n)) {
        ptx_val bias = linear_bias(l, column);
        ptx_val past = ptx_add(f, s->first_x, ptx_u32(s->rows)), end = ptx_min(f, past, l->m);
        PTX_FOR (f, vector, first, end, ptx_u32(s->k_warps)) {
            ptx_side_loop(f);
            ptx_val element = ptx_mad_wide(f, vector, l->n, column_64);
            ptx_val sum = shared_sum(f, shared_at(f, PTX_F32, from, 0), s->k_warps, s->rows * row_bytes);
            linear_store(l, sum, NULL, bias, element);
            ptx_add_to(f, from, ptx_u32(s->k_warps * row_bytes));
        }
    }
}
