/* linear's rows of W on tensor cores, in a ring: codes (device/row_ring.h), followed by the scales and zeros of a stage's
 * rows if the format has them in arrays.
 *
 * A thread copies a few neighbouring scales of one row, one at a time, since an array's rows may begin at any multiple of 4
 * bytes; the L1 cache keeps the rest of their sectors.
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/tail.h"
#include "linear.h"

/* ---- numbers in arrays -------------------------------------------------------------------------------------------- */

/* Numbers of a row in a stage. */
static uint32_t numbers_of(const weight_format *format, uint32_t stage)
{
    return stage / format->scale_elements;
}

/* Rows g + 8t are in different banks (with zeros, the rows of 16 lanes): a row takes an odd number of units, and with zeros
 * padding follows every eight rows. */
layout linear_numbers_layout(const weight_format *format, uint32_t stage)
{
    const uint32_t bytes = format_numbers_bytes(format);
    return (layout){.row_bytes = bytes * (numbers_of(format, stage) | 1),
                    .unit_bytes = bytes,
                    .padded_rows = format->has_minimum ? 8 : 0,
                    .pad_bytes = 4 * bytes};
}

uint32_t linear_numbers_bytes(const weight_format *format, uint32_t stage, uint32_t rows)
{
    if (format->scale_elements == 0)
        return 0;
    const layout l = linear_numbers_layout(format, stage);
    return layout_rows(&l, rows);
}

/* Threads that copy a row's numbers together. */
static uint32_t row_threads(const linear_ring *r)
{
    const uint32_t all = r->codes.threads / r->rows, numbers = numbers_of(r->format, r->stage);
    return all < numbers ? all : numbers;
}

/* Numbers of a thread. */
static uint32_t copies_of(const linear_ring *r)
{
    return numbers_of(r->format, r->stage) / row_threads(r);
}

/* Recomputes addresses for each stage: the products leave no registers to keep them. */
static void copy_numbers(linear_ring *r, ptx_val offset)
{
    ptx_fn *f = r->codes.f;
    const weight_format *format = r->format;
    const uint32_t bytes = format_numbers_bytes(format), all_threads = r->codes.threads / r->rows;
    ptx_val row = ptx_shr(f, r->l->tid, lanes_log2(row_threads(r)));
    ptx_val first = ptx_mul(f, ptx_and(f, r->l->tid, row_threads(r) - 1), copies_of(r));
    ptx_val to = ptx_add(f, ptx_add(f, linear_row_numbers(f, r, row), r->shared), offset);
    to = ptx_mad(f, first, bytes, to);
    ptx_val left_of_row = ptx_div(f, ptx_as(f, PTX_U32, r->codes.left), format->scale_elements / 2);
    ptx_val left = ptx_as(f, PTX_S32, ptx_sub(f, left_of_row, first));
    ptx_val number = ptx_sub(f, r->l->row_numbers, ptx_as(f, PTX_U32, left));
    const linear_row of = linear_find_row(r->l, tail_clamp(f, ptx_add(f, row, r->first), r->l->w_rows));
    for (uint32_t array = 0; array < format_arrays(format); array++) {
        ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, linear_numbers_at(r->l, &of, array, number));
        for (uint32_t i = 0; i < copies_of(r); i++) {
            ptx_val in_bounds = ptx_gt(f, left, i), word = ptx_at_const(f, from, i);
            ptx_val word_to = shared_at(f, PTX_U32, to, i * bytes + 4 * array);
            if (row_threads(r) == all_threads) {
                copy_word(f, word_to, word, &in_bounds);
                continue;
            }
            PTX_IF (f, ptx_lt(f, row, r->rows)) { /* a row has fewer numbers than threads */
                copy_word(f, word_to, word, &in_bounds);
            }
        }
    }
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

row_ring_shape linear_ring_stage(const weight_format *format, uint32_t elements, bool is_paired)
{
    enum { WORD = 4 };
    const uint32_t bytes = elements / format->elements * format->bytes, alignment = format_alignment(format);
    const uint32_t number_bytes = format->numbers == NUMBERS_F32       ? 0
                                  : format->numbers == NUMBERS_PRODUCT ? alignment
                                                                       : WORD;
    return row_ring_stage(bytes, alignment, is_paired ? 2 * WORD : WORD, number_bytes);
}

void linear_init_ring(linear *g, linear_ring *ring, ptx_val shared, ptx_val first)
{
    row_ring *codes = &ring->codes;
    ring->l = g;
    ring->shared = shared;
    ring->first = first;
    ptx_val row = ptx_add(g->f, row_ring_row_of(codes, g->tid), first);
    for (uint32_t i = 0; i < codes->passes; i++)
        codes->from[i] = linear_row_address(g, ptx_add(g->f, row, i * row_ring_pass(codes)));
    row_ring_init(codes, g->tid, shared,
                  g->split_k == 1 ? g->w_row_bytes : ptx_sub(g->f, g->w_row_bytes, g->part_byte));
}

void linear_copy_ring(linear_ring *ring, ptx_val offset)
{
    row_ring_copy(&ring->codes, offset);
    if (ring->format->scale_elements > 0)
        copy_numbers(ring, offset);
}

/* ---- a lane's rows ------------------------------------------------------------------------------------------------ */

static row_ring_row find_row(linear *l, const linear_ring *ring, const linear_tile *tile, ptx_val row,
                             ptx_val at)
{
    if (row_ring_is_aligned(&ring->codes.of))
        return (row_ring_row){.at = at};
    return row_ring_find(&ring->codes, at, linear_row_address(l, ptx_add(l->f, row, tile->first_w)));
}

/* The numbers of a row, from this warp's first on. */
static ptx_val find_numbers(linear *l, const linear_ring *ring, const linear_tile *tile, ptx_val row)
{
    ptx_fn *f = l->f;
    const weight_format *format = ring->format;
    const uint32_t elements = tile->stage / tile->k_warps, bytes = format_numbers_bytes(format);
    ptx_val at = ptx_add(f, linear_row_numbers(f, ring, row), ring->shared);
    if (tile->k_warps == 1)
        return at;
    if (elements >= format->scale_elements)
        return ptx_mad(f, tile->k_warp, elements / format->scale_elements * bytes, at);
    ptx_val number = ptx_shr(f, tile->k_warp, lanes_log2(format->scale_elements / elements));
    return ptx_mad(f, number, bytes, at);
}

ptx_val linear_row_numbers(ptx_fn *f, const linear_ring *ring, ptx_val row)
{
    const layout l = linear_numbers_layout(ring->format, ring->stage);
    return ptx_add(f, layout_row_at(f, &l, row), ring->number_byte);
}

linear_rows linear_find_lane_rows(linear *l, const linear_ring *ring, const linear_tile *tile, ptx_val mine,
                                  ptx_val first)
{
    ptx_fn *f = l->f;
    const uint32_t step = layout_rows(&ring->codes.of.rows, 8);
    linear_rows rows;
    ptx_val row_at = ptx_add(f, layout_row_at(f, &ring->codes.of.rows, mine), first);
    for (uint32_t r = 0; r < LINEAR_LANE_ROWS; r++) {
        ptx_val at = ptx_add(f, row_at, r * step);
        rows.codes[r] = find_row(l, ring, tile, ptx_add(f, mine, 8 * r), at);
    }
    if (ring->format->scale_elements > 0) {
        ptx_val row = ptx_mad(f, tile->lane.t, 8, mine);
        rows.numbers = (row_ring_row){.at = find_numbers(l, ring, tile, row)};
        return rows;
    }
    ptx_val numbers_at = ptx_mad(f, tile->lane.t, step, row_at);
    rows.numbers = find_row(l, ring, tile, ptx_mad(f, tile->lane.t, 8, mine), numbers_at);
    return rows;
}

void linear_next_lane_rows(const linear_ring *ring, const linear_rows *rows, ptx_val offset,
                           ptx_val codes[LINEAR_LANE_ROWS], ptx_val *numbers)
{
    *numbers = row_ring_next(&ring->codes, &rows->numbers, offset);
    for (uint32_t r = 0; r < LINEAR_LANE_ROWS; r++)
        codes[r] = row_ring_next(&ring->codes, &rows->codes[r], offset);
}
