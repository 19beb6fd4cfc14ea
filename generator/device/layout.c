/* Layouts of tiles in shared memory. */
#include "layout.h"

/* 128 bytes cover all banks. The number of the 128-byte line that a row is in swizzles the row's units. */
layout layout_of_matrices(uint32_t units)
{
    enum { BANKS_UNITS = 8 };
    layout l = {.row_bytes = units * UNIT_BYTES, .unit_bytes = UNIT_BYTES};
    uint32_t row_bit = 0;
    while (units << row_bit < BANKS_UNITS)
        row_bit++;
    for (uint32_t bit = 0; 1U << bit < units; bit++)
        l.turns[l.turn_count++] = (layout_turn){.row_bit = row_bit + bit, .unit_bit = bit};
    return l;
}

layout layout_of_codes(void)
{
    return (layout){.row_bytes = 128,
                    .unit_bytes = UNIT_BYTES,
                    .turn_count = 3,
                    .turns = {{.row_bit = 0, .unit_bit = 2},
                              {.row_bit = 1, .unit_bit = 1},
                              {.row_bit = 2, .unit_bit = 0}}};
}

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

uint32_t layout_rows(const layout *l, uint32_t rows)
{
    return rows * l->row_bytes + (l->padded_rows ? rows / l->padded_rows * l->pad_bytes : 0);
}

uint32_t layout_unit(const layout *l, uint32_t unit)
{
    return l->start + (l->strip_bytes ? unit / 2 * l->strip_bytes : unit * l->unit_bytes);
}

uint32_t layout_end(const layout *l, uint32_t rows, uint32_t units)
{
    return l->strip_bytes ? layout_unit(l, units) : l->start + layout_rows(l, rows);
}

uint32_t layout_byte(const layout *l, uint32_t row, uint32_t unit)
{
    uint32_t place = unit;
    for (uint32_t i = 0; i < l->turn_count; i++)
        place ^= (row >> l->turns[i].row_bit & 1) << l->turns[i].unit_bit;
    const uint32_t in_strip = l->strip_bytes ? place % 2 * l->unit_bytes : 0;
    return layout_rows(l, row) + layout_unit(l, place) + in_strip;
}

/* ---- on the device ------------------------------------------------------------------------------------------------ */

ptx_val layout_row_at(ptx_fn *f, const layout *l, ptx_val row)
{
    ptx_val line = ptx_mul(f, row, l->row_bytes);
    return l->padded_rows ? ptx_mad(f, ptx_div(f, row, l->padded_rows), l->pad_bytes, line) : line;
}

/* Moves bit `t.row_bit` of the row to t.unit_bit, except for a remaining factor, which is returned in *factor. */
static ptx_val turn_of(ptx_fn *f, layout_turn t, ptx_val row, uint32_t *factor)
{
    if (t.row_bit > t.unit_bit) {
        *factor = 1U << t.unit_bit;
        return ptx_bfe(f, row, (int)t.row_bit, 1);
    }
    *factor = 1U << (t.unit_bit - t.row_bit);
    return ptx_and(f, row, 1U << t.row_bit);
}

ptx_val layout_place(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit)
{
    ptx_val turns[LAYOUT_MOST_TURNS];
    uint32_t factor[LAYOUT_MOST_TURNS] = {0};
    if (l->turn_count == 0)
        return unit;
    for (uint32_t i = 0; i < l->turn_count; i++)
        turns[i] = turn_of(f, l->turns[i], row, &factor[i]);
    ptx_val sum = turns[l->turn_count - 1];
    if (factor[l->turn_count - 1] > 1)
        sum = ptx_mul(f, sum, factor[l->turn_count - 1]);
    for (uint32_t i = l->turn_count - 1; i-- > 0;)
        sum = ptx_mad(f, turns[i], factor[i], sum);
    return ptx_xor(f, unit, sum);
}

ptx_val layout_at(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit)
{
    ptx_val line = layout_row_at(f, l, row);
    if (l->strip_bytes == 0)
        return ptx_mad(f, layout_place(f, l, row, unit), l->unit_bytes, line);
    ptx_val strip = ptx_mad(f, ptx_shr(f, unit, 1), l->strip_bytes, line);
    ptx_val in_strip = ptx_and(f, layout_place(f, l, row, unit), 1);
    return ptx_mad(f, in_strip, l->unit_bytes, strip);
}
