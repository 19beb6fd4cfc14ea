/* linear's rows of W on tensor cores, in a ring: codes (device/row_ring.h), followed by the scales and zeros of a stage's
 * rows if the format has them in arrays.
 *
 * A thread copies a few neighbouring scales of one row, one at a time, since an array's rows may begin at any multiple of 4
 * bytes; the L1 cache keeps the rest of their sectors.
 */
#include "device/copy.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/tail.h"
#include "linear.h"

/* ---- numbers in arrays -------------------------------------------------------------------------------------------- */

/* Rows g + 8t are in different banks (with zeros, the rows of 16 lanes): a row takes an odd number of units, and with zeros
 * padding follows every eight rows. */
layout linear_numbers_layout(const weight_format *format, uint32_t stage)
{
    const uint32_t bytes = format_numbers_bytes(format);
    return (layout){.row_bytes = bytes * (stage / format->scale_elements | 1),
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

/* The address of a tile row's numbers in the first stage. */
static ptx_val row_numbers_at(const linear_ring *r, ptx_val row)
{
    ptx_fn *f = r->l->f;
    const layout l = linear_numbers_layout(r->l->of.format, r->tile->stage);
    return ptx_add(f, ptx_add(f, layout_row_at(f, &l, row), r->number_byte), r->shared);
}

/* Several threads copy a row's numbers. Addresses are recomputed for each stage: the products leave no registers to keep them. */
static void copy_numbers(linear_ring *r, ptx_val offset)
{
    linear *l = r->l;
    ptx_fn *f = l->f;
    const weight_format *format = l->of.format;
    const uint32_t bytes = format_numbers_bytes(format), numbers = r->tile->stage / format->scale_elements;
    const uint32_t all_threads = r->codes.threads / r->codes.rows;
    const uint32_t threads = all_threads < numbers ? all_threads : numbers; /* threads that copy a row */
    const uint32_t copies = numbers / threads;                              /* of a thread */
    ptx_val row = ptx_shr(f, l->tid, lanes_log2(threads));
    ptx_val first = ptx_mul(f, ptx_and(f, l->tid, threads - 1), copies);
    ptx_val to = ptx_add(f, row_numbers_at(r, row), offset);
    to = ptx_mad(f, first, bytes, to);
    ptx_val left_of_row = ptx_div(f, ptx_as(f, PTX_U32, r->codes.left), format->scale_elements / 2);
    ptx_val left = ptx_as(f, PTX_S32, ptx_sub(f, left_of_row, first));
    ptx_val number = ptx_sub(f, l->row_numbers, ptx_as(f, PTX_U32, left));
    const linear_row of = linear_find_row(l, tail_clamp(f, ptx_add(f, row, r->tile->first_w), l->w_rows));
    for (uint32_t array = 0; array < format_arrays(format); array++) {
        ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, linear_numbers_at(l, &of, array, number));
        for (uint32_t i = 0; i < copies; i++) {
            ptx_val in_bounds = ptx_gt(f, left, i), word = ptx_at_const(f, from, i);
            ptx_val word_to = shared_at(f, PTX_U32, to, i * bytes + 4 * array);
            /* a row may have fewer numbers than threads */
            IF_NEEDED (f, threads < all_threads, ptx_lt(f, row, r->codes.rows)) {
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

linear_ring linear_init_ring(linear *l, const linear_tile *tile, row_ring codes, uint32_t number_byte,
                             ptx_val shared)
{
    ptx_fn *f = l->f;
    codes.f = f;
    codes.threads = ptx_block_x(f);
    codes.rows = tile->columns;
    row_ring_plan(&codes);
    ptx_val row = ptx_add(f, row_ring_row_of(&codes, l->tid), tile->first_w);
    for (uint32_t i = 0; i < codes.passes; i++)
        codes.from[i] = linear_row_address(l, ptx_add(f, row, i * codes.pass));
    row_ring_init(&codes, l->tid, shared,
                  l->split_k == 1 ? l->w_row_bytes : ptx_sub(f, l->w_row_bytes, l->part_byte));
    return (linear_ring){.l = l, .tile = tile, .codes = codes, .number_byte = number_byte, .shared = shared};
}

ptx_val linear_has_stage(const linear_ring *ring, uint32_t ahead)
{
    ptx_fn *f = ring->l->f;
    return ring->l->split_k == 1 ? ptx_gt(f, ring->codes.left, 0) : ptx_gt(f, ring->left, ahead);
}

void linear_copy_ring(linear_ring *ring, ptx_val offset)
{
    row_ring_copy(&ring->codes, offset);
    if (ring->l->of.format->scale_elements > 0)
        copy_numbers(ring, offset);
}

void linear_fill_ring(linear_ring *ring, ptx_val offset, uint32_t ahead)
{
    PTX_IF (ring->l->f, linear_has_stage(ring, ahead)) {
        linear_copy_ring(ring, offset);
        row_ring_step(&ring->codes);
    }
}

/* ---- a lane's rows ------------------------------------------------------------------------------------------------ */

static row_ring_row find_row(const linear_ring *ring, ptx_val row, ptx_val at)
{
    if (row_ring_is_aligned(&ring->codes.of))
        return (row_ring_row){.at = at};
    ptx_val number = ptx_add(ring->l->f, row, ring->tile->first_w);
    return row_ring_find(&ring->codes, at, linear_row_address(ring->l, number));
}

/* The numbers of a row, from this warp's first on. */
static ptx_val find_numbers(const linear_ring *ring, ptx_val row)
{
    ptx_fn *f = ring->l->f;
    const linear_tile *tile = ring->tile;
    const weight_format *format = ring->l->of.format;
    const uint32_t elements = tile->stage / tile->k_warps, bytes = format_numbers_bytes(format);
    ptx_val at = row_numbers_at(ring, row);
    if (tile->k_warps == 1)
        return at;
    if (elements >= format->scale_elements)
        return ptx_mad(f, tile->k_warp, elements / format->scale_elements * bytes, at);
    ptx_val number = ptx_shr(f, tile->k_warp, lanes_log2(format->scale_elements / elements));
    return ptx_mad(f, number, bytes, at);
}

void linear_find_lane_rows(linear_ring *ring, ptx_val index, uint32_t bytes)
{
    ptx_fn *f = ring->l->f;
    const fragment_lane *lane = &ring->tile->lane;
    const layout *rows = &ring->codes.of.rows;
    const uint32_t step = layout_rows(rows, 8);
    ptx_val mine = ptx_mad(f, ring->tile->column_warp, LINEAR_WARP_COLUMNS, lane->g), first = ring->shared;
    if (index.type != PTX_NONE)
        first = ptx_mad(f, index, bytes, first);
    ptx_val row_at = ptx_add(f, layout_row_at(f, rows, mine), first);
    for (uint32_t r = 0; r < LINEAR_LANE_ROWS; r++) {
        ptx_val at = ptx_add(f, row_at, r * step);
        ring->rows[r] = find_row(ring, ptx_add(f, mine, 8 * r), at);
    }
    if (ring->l->of.format->scale_elements > 0) {
        ptx_val row = ptx_mad(f, lane->t, 8, mine);
        ring->number_row = (row_ring_row){.at = find_numbers(ring, row)};
        return;
    }
    ptx_val numbers_at = ptx_mad(f, lane->t, step, row_at);
    ring->number_row = find_row(ring, ptx_mad(f, lane->t, 8, mine), numbers_at);
}

void linear_next_lane_rows(linear_ring *ring, ptx_val offset)
{
    ring->number_row_at = row_ring_next(&ring->codes, &ring->number_row, offset);
    for (uint32_t r = 0; r < LINEAR_LANE_ROWS; r++)
        ring->row_at[r] = row_ring_next(&ring->codes, &ring->rows[r], offset);
}
