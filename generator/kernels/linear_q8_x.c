/* Codes and scales of x in shared memory. */
#include "linear_q8_x.h"
#include "device/copy.h"

enum { MOST_PASSES = 8 /* of threads over the rows */ };

layout q8_x_blocks(uint32_t rows, bool is_tiles, bool has_sums)
{
    enum { PAD_BYTES = 32 };
    const uint32_t bytes = has_sums ? 8 : 4;
    layout l = {.row_bytes = bytes * rows + (has_sums ? PAD_BYTES : 0), .unit_bytes = bytes * Q8_X_ROWS};
    if (is_tiles && !has_sums) {
        l.turn_count = 2;
        l.turns[0] = (layout_turn){.row_bit = 0, .unit_bit = 0};
        l.turns[1] = (layout_turn){.row_bit = 1, .unit_bit = 1};
    }
    return l;
}

/* The distance between the rows that a thread copies. */
static uint32_t rows_at_once(const q8_x_shape *s)
{
    return s->threads / (s->step / UNIT_BYTES);
}

/* Threads that share a sum of codes: each copies 16 of its codes. */
static uint32_t sum_lanes(const q8_x_shape *s)
{
    return s->step / UNIT_BYTES / s->scales;
}

/* The distance between the rows whose scales a thread copies, and their end. */
static uint32_t scale_rows_at_once(const q8_x_shape *s)
{
    return s->has_sums ? rows_at_once(s) : s->threads / s->scales;
}

static uint32_t scale_rows(const q8_x_shape *s)
{
    return s->has_sums ? s->rows / sum_lanes(s) : s->rows;
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Finds the scales that this thread copies. With sums they are those of the codes that it adds up, so it needs no barrier. */
static void init_scale_copies(q8_x *x, ptx_val unit, ptx_val row)
{
    ptx_fn *f = x->f;
    linear *l = x->l;
    const uint32_t blocks = x->of.step / Q8_X_BLOCK;
    ptx_val block, scale_row, place;
    if (x->of.has_sums) {
        const uint32_t lanes = sum_lanes(&x->of);
        block = ptx_div(f, unit, Q8_X_BLOCK / UNIT_BYTES);
        place = ptx_div(f, unit, lanes);
        scale_row = ptx_mad(f, ptx_and(f, unit, lanes - 1), x->of.rows / lanes, row);
    } else {
        block = place = ptx_and(f, l->tid, blocks - 1);
        scale_row = ptx_shr(f, l->tid, lanes_log2(blocks));
    }
    ptx_val scale_number = ptx_add(f, scale_row, x->tile->first_x),
            all = ptx_shr(f, l->k, lanes_log2(Q8_X_BLOCK));
    ptx_val first = l->split_k == 1 ? block : ptx_add(f, block, ptx_div(f, l->part_element, Q8_X_BLOCK));
    ptx_val scales = ptx_at(f, l->in_scale, ptx_mul_wide(f, scale_number, all));
    x->scale_from = ptx_var(f, ptx_address(f, ptx_at(f, scales, first)));
    x->scale_step = ptx_mul_wide(f, all, 4 * scale_rows_at_once(&x->of));
    ptx_val eight_rows = ptx_div(f, scale_row, Q8_X_ROWS);
    ptx_val to = ptx_add(f, layout_at(f, &x->of.blocks, place, eight_rows), x->tile->shared);
    ptx_val of_row = ptx_mad(f, ptx_and(f, scale_row, Q8_X_ROWS - 1), q8_x_scale_bytes(&x->of), to);
    x->scale_to = ptx_add(f, of_row, x->of.scale_byte);
    x->scale_left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, all, first)));
    x->scale_rows = ptx_as(f, PTX_S32, ptx_sub(f, l->m, scale_number));
}

/* Neighbouring threads copy neighbouring units of a row. Uses shifts: ptxas does not see that the divisor is a power of two. */
void q8_x_init(q8_x *x)
{
    ptx_fn *f = x->f;
    linear *l = x->l;
    const uint32_t units = x->of.step / UNIT_BYTES;
    ptx_val unit = ptx_and(f, l->tid, units - 1), row = ptx_shr(f, l->tid, lanes_log2(units));
    ptx_val number = ptx_add(f, row, x->tile->first_x), byte = ptx_mul(f, unit, UNIT_BYTES), place = byte;
    if (x->of.is_tiles)
        place = ptx_mul(f, layout_place(f, &x->of.codes, row, unit), UNIT_BYTES);
    ptx_val first = l->split_k == 1 ? byte : ptx_add(f, byte, l->part_element);
    ptx_val line = ptx_at(f, l->in, ptx_mul_wide(f, number, l->k));
    x->from = ptx_var(f, ptx_address(f, ptx_at(f, line, first)));
    x->step = ptx_mul_wide(f, l->k, rows_at_once(&x->of));
    ptx_val to = ptx_mad(f, row, x->of.codes.row_bytes, x->tile->shared);
    x->to = ptx_add(f, ptx_add(f, to, place), x->of.codes_byte);
    x->left = ptx_var(f, ptx_as(f, PTX_S32, ptx_sub(f, l->k, first)));
    x->rows = ptx_as(f, PTX_S32, ptx_sub(f, l->m, number));
    init_scale_copies(x, unit, row);
}

static void copy_codes(q8_x *x, ptx_val offset)
{
    ptx_fn *f = x->f;
    const uint32_t at_once = rows_at_once(&x->of);
    ptx_val to = ptx_add(f, x->to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, x->from);
    ptx_val in_k = ptx_gt(f, x->left, 0);
    for (uint32_t row = 0; row < x->of.rows; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, x->rows, row), in_k);
        if (row > 0)
            from = ptx_at(f, from, x->step);
        copy_unit(f, shared_at(f, PTX_U32, to, layout_rows(&x->of.codes, row)),
                  ptx_cast_ptr(f, from, PTX_U32), &in_bounds, PTX_NC);
    }
}

/* If there are more threads than scales, the others copy none. */
static void copy_scales(q8_x *x, ptx_val offset)
{
    ptx_fn *f = x->f;
    const uint32_t at_once = scale_rows_at_once(&x->of), rows = scale_rows(&x->of);
    ptx_val to = ptx_add(f, x->scale_to, offset), from = ptx_pointer(f, PTX_GLOBAL, PTX_U8, x->scale_from);
    ptx_val in_k = ptx_gt(f, x->scale_left, 0);
    for (uint32_t row = 0; row < rows; row += at_once) {
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, x->scale_rows, row), in_k);
        if (row > 0)
            from = ptx_at(f, from, x->scale_step);
        ptx_val word = ptx_cast_ptr(f, from, PTX_U32),
                word_to = shared_at(f, PTX_U32, to, q8_x_scale_bytes(&x->of) * row);
        if (at_once <= x->of.rows) {
            copy_word(f, word_to, word, &in_bounds);
            continue;
        }
        PTX_IF (f, ptx_lt(f, x->l->tid, x->of.rows * x->of.scales)) {
            copy_word(f, word_to, word, &in_bounds);
        }
    }
}

void q8_x_copy(q8_x *x, ptx_val offset)
{
    copy_codes(x, offset);
    copy_scales(x, offset);
}

void q8_x_advance(q8_x *x)
{
    ptx_fn *f = x->f;
    ptx_add_to(f, x->from, x->of.step);
    ptx_sub_to(f, x->left, x->of.step);
    ptx_add_to(f, x->scale_from, 4 * x->of.step / Q8_X_BLOCK);
    ptx_sub_to(f, x->scale_left, x->of.step / Q8_X_BLOCK);
}

void q8_x_add_up(q8_x *x, ptx_val offset)
{
    ptx_fn *f = x->f;
    const uint32_t at_once = rows_at_once(&x->of), passes = x->of.rows / at_once, lanes = sum_lanes(&x->of);
    ptx_val from = ptx_add(f, x->to, offset), to = ptx_add(f, x->scale_to, offset), sum[MOST_PASSES];
    for (uint32_t i = 0; i < passes; i++) {
        ptx_val codes[4];
        ptx_load_vec(f, 4, codes, shared_at(f, PTX_S32, from, layout_rows(&x->of.codes, i * at_once)),
                     PTX_PLAIN);
        sum[i] = ptx_s32(0);
        for (uint32_t word = 0; word < 4; word++)
            sum[i] = ptx_dp4a_us(f, ptx_u32(0x01010101), codes[word], sum[i]);
    }
    lanes_join(f, PTX_OP_ADD, lanes, passes, x->l->tid, sum);
    for (uint32_t i = 0; i < passes / lanes; i++) {
        const uint32_t byte = q8_x_scale_bytes(&x->of) * i * at_once;
        ptx_val scale = ptx_load(f, shared_at(f, PTX_F32, to, byte));
        ptx_store(f, shared_at(f, PTX_F32, to, byte + 4), ptx_mul(f, ptx_cvt(f, PTX_F32, sum[i]), scale));
    }
}

/* ---- reads -------------------------------------------------------------------------------------------------------- */

/* Moves an address to this warp's part of a step; to its rows. */
static ptx_val of_k_warp(q8_x *x, uint32_t bytes, ptx_val at)
{
    return x->of.k_warps == 1 ? at : ptx_mad(x->f, x->tile->k_warp, bytes, at);
}

static ptx_val of_row_warp(q8_x *x, uint32_t bytes, ptx_val at)
{
    return x->of.row_warps == 1 ? at : ptx_mad(x->f, x->tile->row_warp, bytes, at);
}

void q8_x_init_reads(q8_x *x, ptx_val unit, uint32_t unit_step)
{
    ptx_fn *f = x->f;
    const fragment_lane *lane = &x->tile->lane;
    const uint32_t warp_rows = x->of.rows / x->of.row_warps, scale_bytes = q8_x_scale_bytes(&x->of);
    ptx_val line = ptx_mad(f, lane->g, x->of.codes.row_bytes, x->tile->shared), of_lane;
    if (x->of.is_tiles) {
        ptx_val byte = ptx_mul(f, unit, unit_step);
        ptx_val place = layout_place(f, &x->of.codes, lane->g, ptx_div(f, byte, UNIT_BYTES));
        x->place = ptx_mad(f, place, UNIT_BYTES, ptx_and(f, byte, UNIT_BYTES - 1));
        of_lane = of_row_warp(x, layout_rows(&x->of.codes, warp_rows), line);
    } else {
        of_lane = ptx_mad(f, unit, unit_step, line);
    }
    ptx_val of_warp = of_k_warp(x, x->of.step / x->of.k_warps, of_lane);
    x->at = ptx_add(f, of_warp, x->of.codes_byte);
    ptx_val scale = of_k_warp(x, x->of.scales / x->of.k_warps * x->of.blocks.row_bytes, x->tile->shared);
    scale = of_row_warp(x, warp_rows * scale_bytes, scale);
    ptx_val of_rows = ptx_mad(f, lane->t, 2 * scale_bytes, scale);
    x->scale_at = ptx_add(f, of_rows, x->of.scale_byte);
}

q8_x_codes q8_x_find(q8_x *x, uint32_t element, ptx_val at)
{
    ptx_fn *f = x->f;
    if (!x->of.is_tiles)
        return (q8_x_codes){.at = at, .byte = element};
    ptx_val unit = ptx_xor(f, x->place, element / UNIT_BYTES * UNIT_BYTES);
    return (q8_x_codes){.at = ptx_add(f, unit, at), .byte = element % UNIT_BYTES};
}

void q8_x_load(q8_x *x, const q8_x_codes from[], uint32_t count, uint32_t tile, ptx_val codes[])
{
    ptx_fn *f = x->f;
    const uint32_t row = layout_rows(&x->of.codes, tile * Q8_X_ROWS);
    const bool is_pair = count == 2 && from[1].byte == from[0].byte + 4;
    if (is_pair)
        ptx_load_vec(f, 2, codes, shared_at(f, PTX_U32, from[0].at, row + from[0].byte), PTX_PLAIN);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_pair)
            codes[i] = ptx_load(f, shared_at(f, PTX_U32, from[i].at, row + from[i].byte));
        codes[i] = ptx_as(f, PTX_B32, codes[i]);
    }
}

void q8_x_load_scales(q8_x *x, uint32_t element, uint32_t tile, ptx_val at, ptx_val scale[2], ptx_val sum[2])
{
    const uint32_t block = element / (x->of.step / x->of.scales), count = q8_x_scale_bytes(&x->of) / 4;
    ptx_val numbers[4];
    ptx_load_vec(x->f, (int)(2 * count), numbers,
                 shared_at(x->f, PTX_F32, at, layout_byte(&x->of.blocks, block, tile)), PTX_PLAIN);
    for (uint32_t e = 0; e < 2; e++) {
        scale[e] = numbers[count * e];
        sum[e] = numbers[count * e + count - 1];
    }
}
