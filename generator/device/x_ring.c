/* Activations in a ring. */
#include "x_ring.h"

#include "copy.h"
#include "tail.h"
#include "tensor.h"

enum { UNITS = X_RING_STEP / 8, MOST_TILES_AT_ONCE = 4 };

layout x_ring_layout(bool is_woven)
{
    layout l = {.row_bytes = X_RING_ROW_BYTES, .unit_bytes = UNIT_BYTES, .turn_count = 1};
    if (is_woven)
        return l; /* bit 0 flips bit 0 */
    l.turn_count = 2;
    l.turns[0] = (layout_turn){.row_bit = 0, .unit_bit = 2};
    l.turns[1] = (layout_turn){.row_bit = 1, .unit_bit = 1};
    return l;
}

static ptx_val unit_element(x_ring *x, ptx_val unit)
{
    ptx_fn *f = x->f;
    if (x->is_woven)
        return ptx_mul(f, unit, 8);
    ptx_val run = ptx_div(f, unit, 2), half = ptx_and(f, unit, 1);
    return ptx_mad(f, run, x->run_step, ptx_mul(f, half, 8));
}

static void init_reads(x_ring *x, ptx_val shared, ptx_val lane)
{
    ptx_fn *f = x->f;
    const fragment_lane of = fragment_find_lane(f, lane);
    const layout rows = x_ring_layout(x->is_woven);
    ptx_val unit = x->is_woven ? ptx_mul(f, of.t, 2) : x->is_wide ? of.t : ptx_shr(f, of.t, 1);
    ptx_val line = ptx_mad(f, of.g, X_RING_ROW_BYTES, shared);
    if (!x->is_wide)
        line = ptx_mad(f, ptx_and(f, of.t, 1), UNIT_BYTES / 2, line);
    ptx_val place = layout_place(f, &rows, of.g, unit);
    for (uint32_t run = 0; run < X_RING_RUNS; run += x->is_wide ? 2 : 1) {
        const uint32_t units = x->is_woven ? run / 2 : 2 * run; /* from the first run's units */
        x->at[run] = ptx_mad(f, ptx_xor(f, place, units), UNIT_BYTES, line);
    }
}

/* Neighbouring threads copy the units of a row. */
void x_ring_init(x_ring *x, ptx_val shared, ptx_val in, ptx_val first, ptx_val end, ptx_val k, ptx_val tid,
                 ptx_val lane)
{
    ptx_fn *f = x->f;
    const uint32_t step = x->threads / UNITS;
    const layout rows = x_ring_layout(x->is_woven);
    ptx_val unit = ptx_and(f, tid, UNITS - 1), row = ptx_div(f, tid, UNITS);
    ptx_val number = tail_clamp(f, ptx_add(f, row, first), end);
    x->end = k;
    x->unit_element = unit_element(x, unit);
    x->from = ptx_address(f, tail_element(f, in, number, k, x->unit_element));
    x->row_bytes = ptx_mul(f, k, 2 * step);
    ptx_val left = ptx_sub(f, ptx_sub(f, end, 1), number);
    x->rows_left = ptx_div(f, left, step);
    ptx_val place = layout_place(f, &rows, row, unit);
    ptx_val to = ptx_mad(f, row, X_RING_ROW_BYTES, shared);
    x->to = ptx_mad(f, place, UNIT_BYTES, to);
    init_reads(x, shared, lane);
}

void x_ring_copy(x_ring *x, ptx_val element, ptx_val offset)
{
    ptx_fn *f = x->f;
    const uint32_t step = x->threads / UNITS;
    ptx_val in_bounds = ptx_lt(f, ptx_add(f, element, x->unit_element), x->end);
    ptx_val from = ptx_mad_wide(f, element, 2, x->from), to = ptx_add(f, x->to, offset);
    for (uint32_t i = 0; i < x->rows / step; i++) {
        ptx_val row = i == 0 ? from : ptx_mad_wide(f, ptx_min(f, x->rows_left, i), x->row_bytes, from);
        copy_unit(f, shared_at(f, PTX_U32, to, i * step * X_RING_ROW_BYTES),
                  ptx_pointer(f, PTX_GLOBAL, PTX_U32, row), &in_bounds, PTX_NC);
    }
}

/* The two runs' elements of eight rows. */
static void load_rows(x_ring *x, const ptx_val at[2], uint32_t tile, ptx_val out[2][2])
{
    ptx_fn *f = x->f;
    const uint32_t byte = tile * SUMS_ROWS * X_RING_ROW_BYTES;
    ptx_val words[4];
    if (x->is_wide)
        ptx_load_vec(f, 4, words, shared_at(f, PTX_U32, at[0], byte), PTX_PLAIN);
    for (uint32_t run = 0; run < 2 && !x->is_wide; run++)
        ptx_load_vec(f, 2, &words[2 * run], shared_at(f, PTX_U32, at[run], byte), PTX_PLAIN);
    for (uint32_t i = 0; i < 4; i++)
        out[i / 2][i % 2] = ptx_as(f, PTX_B32, words[i]);
}

/* Interleaves products of a few tiles, so that none waits for the previous one. */
void x_ring_multiply(x_ring *x, ptx_val offset, uint32_t half, ptx_val w[X_RING_TILES][2][4], warp_sums *sums)
{
    const uint32_t tiles = sums->row_tiles, at_once = tiles < MOST_TILES_AT_ONCE ? tiles : MOST_TILES_AT_ONCE;
    ptx_val at[2], rows[MOST_TILES_AT_ONCE][2][2];
    for (uint32_t run = 0; run < (x->is_wide ? 1 : 2); run++)
        at[run] = ptx_add(x->f, x->at[2 * half + run], offset);
    for (uint32_t first = 0; first < tiles; first += at_once) {
        for (uint32_t i = 0; i < at_once; i++)
            load_rows(x, at, first + i, rows[i]);
        for (uint32_t run = 0; run < 2; run++)
            for (uint32_t i = 0; i < at_once; i++)
                for (uint32_t tile = 0; tile < X_RING_TILES; tile++) {
                    ptx_val *sum = sums_of(sums, first + i, tile);
                    tensor_multiply(x->f, x->type, sum, w[tile][run], rows[i][run], sum);
                }
    }
}
