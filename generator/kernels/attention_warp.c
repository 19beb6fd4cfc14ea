/* A warp of attention on tensor cores: attention_warp.h has its data and order, attention_mma.c a whole thread block. */
#include "attention_warp.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tensor.h"

typedef attention_warp warp;

/* ---- products ------------------------------------------------------------------------------------------------------ */

/* Points to matrices of an operand: of a step, or, after the last one, of the tail. */
static ptx_val matrices_at(const warp *m, const attention_operand *from, uint32_t octet, uint32_t step)
{
    const bool has_codes = m->has_codes && from != &m->q;
    const uint32_t row = layout_rows(&from->lines, octet * OCTET), unit = has_codes ? step : 2 * step;
    const ptx_type type = has_codes ? PTX_B32 : m->a->type;
    if (step == from->steps)
        return shared_at(m->a->f, type, from->tail, from->lines.start + row);
    return shared_at(m->a->f, type, from->at, row + layout_unit(&from->lines, unit));
}

/* The registers of a step of Q; all steps have their own, or two steps of each block. */
static ptx_val *q_of(warp *m, uint32_t block, uint32_t step)
{
    return m->q_of[m->holds_q ? step : 2 * block + step % 2];
}

static void load_q(warp *m, uint32_t block, uint32_t step)
{
    ptx_fn *f = m->a->f;
    ptx_val *q = q_of(m, block, step);
    if (!m->has_codes) {
        ptx_ldmatrix(f, step < m->q.steps ? 4 : 2, q, matrices_at(m, &m->q, 2 * block, step));
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val words[2], at = matrices_at(m, &m->q, 2 * block + i, step);
        ptx_load_vec(f, 2, words, ptx_cast_ptr(f, at, PTX_U32), PTX_PLAIN);
        for (uint32_t half = 0; half < 2; half++)
            q[fragment_a(i, half)] = ptx_as(f, m->pairs, words[half]);
    }
}

/* Adds a step, or the tail, to the scores of an octet of keys; the first step initialises them. */
static void multiply_octet(warp *m, uint32_t block, uint32_t octet, uint32_t step, const ptx_val k[2])
{
    ptx_fn *f = m->a->f;
    const ptx_type type = m->a->type;
    const ptx_val *q = q_of(m, block, step), zeros[4] = {m->zero, m->zero, m->zero, m->zero};
    ptx_val sums[4];
    attention_product(&m->scores, block, octet, sums);
    if (step == m->k.steps) {
        ptx_mma_to(f, tensor_shape(type, false), sums, q, k);
    } else if (step > 0) {
        tensor_multiply(f, type, sums, q, k, sums);
    } else {
        ptx_mma(f, tensor_shape(type, ptx_has_sm(f, 80)), sums, q, k, zeros);
        for (uint32_t i = 0; i < 4; i++)
            *attention_sum(&m->scores, 2 * block + i / 2, 2 * octet + i % 2) = sums[i] = ptx_var(f, sums[i]);
        if (!ptx_has_sm(f, 80))
            ptx_mma_to(f, tensor_shape(type, false), sums, q + 2, k + 1);
    }
}

/* Adds a step, two steps of codes, or the tail to all scores. ldmatrix loads four registers: an octet of keys takes two for a
 * step, one for a tail. A register of codes is decoded to both registers of a step, once for all blocks. */
static void multiply_step(warp *m, uint32_t step)
{
    ptx_fn *f = m->a->f;
    const codes_values codes = attention_codes_of(m->a, m->a->type, false);
    const bool is_tail = step == m->k.steps;
    const uint32_t registers = is_tail ? 1 : 2, steps = m->has_codes ? 2 : 1, all = m->scores.count;
    const uint32_t octets = all < 4 / registers ? all : 4 / registers; /* that are loaded at once */
    ptx_val words[4], k[2];
    for (uint32_t i = 0; i < steps * attention_blocks(&m->scores) && (!m->holds_q || is_tail); i++)
        load_q(m, i / steps, step + i % steps);
    for (uint32_t first = 0; first < all; first += octets) {
        ptx_ldmatrix(f, (int)(octets * registers), words, matrices_at(m, &m->k, first, step));
        for (uint32_t i = 0; i < 2 * octets && m->has_codes; i++) {
            const uint32_t odd = i / octets, octet = i % octets;
            codes_pairs(f, &codes, ptx_as(f, PTX_U32, words[2 * octet + odd]), false, k);
            for (uint32_t b = 0; b < attention_blocks(&m->scores); b++)
                multiply_octet(m, b, first + octet, step + odd, k);
        }
        for (uint32_t b = 0; b < attention_blocks(&m->scores) && !m->has_codes; b++)
            for (uint32_t octet = 0; octet < octets; octet++)
                multiply_octet(m, b, first + octet, step, &words[registers * octet]);
    }
}

/* Decodes a unit of V, of 16 keys: one operand has its even columns, the other the odd ones. */
static void decode_columns(const warp *m, const ptx_val words[2], ptx_val operands[2][2])
{
    ptx_fn *f = m->a->f;
    const codes_values codes = attention_codes_of(m->a, m->a->type, true);
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val pairs[2];
        codes_pairs(f, &codes, ptx_as(f, PTX_U32, words[half]), true, pairs);
        for (uint32_t odd = 0; odd < 2; odd++)
            operands[odd][half] = pairs[odd];
    }
}

/* Adds weights times V. A step is two octets of columns by 16 keys, a tail one octet by 32 keys. v keeps the codes of two
 * steps, which are loaded together. */
static void add_columns(warp *m, uint32_t octet, uint32_t step, ptx_val v[4])
{
    ptx_fn *f = m->a->f;
    attention_slice *o = &m->rows.o;
    const bool is_tail = step == m->v.steps;
    ptx_val decoded[2][2], sums[4];
    if (!m->has_codes || step % 2 == 0)
        ptx_ldmatrix_trans(f, 4, v, matrices_at(m, &m->v, octet, step));
    if (m->has_codes)
        decode_columns(m, &v[step % 2 * 2], decoded);
    for (uint32_t i = 0; i < 2 * attention_blocks(o); i++) {
        const uint32_t b = i / 2, odd = i % 2, keys = octet + (is_tail ? 2 * odd : 0);
        attention_product(o, b, 2 * step + (is_tail ? 0 : odd), sums);
        tensor_multiply(f, m->a->type, sums, &m->weight[b][2 * keys],
                        m->has_codes ? decoded[odd] : &v[2 * odd], sums);
    }
}

void attention_add_keys(warp *m, uint32_t octet)
{
    ptx_val v[4];
    for (uint32_t step = 0; step < m->v.steps; step++)
        add_columns(m, octet, step, v);
}

static void add_values(warp *m)
{
    ptx_val v[4];
    for (uint32_t o = 0; o < m->scores.count; o += 2)
        attention_add_keys(m, o);
    for (uint32_t o = 0; o < m->scores.count && m->v.has_tail; o += 4)
        add_columns(m, o, m->v.steps, v);
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

ptx_val attention_first_row(const warp *m)
{
    ptx_fn *f = m->a->f;
    ptx_val of_warp = ptx_mad(f, m->row_warp, m->scores.rows * OCTET, m->a->first);
    return ptx_add(f, of_warp, attention_lane_g(m));
}

static attention_origin find_origin(const void *of, ptx_val key)
{
    const warp *m = of;
    attention_origin at = {.row = attention_first_row(m)};
    if (m->groups > 1)
        key = ptx_mad(m->a->f, m->group, m->scores.count * OCTET, key);
    at.key = ptx_mad(m->a->f, attention_lane_t(m), 2, key);
    return at;
}

/* A softmax may subtract any number, as long as no weight gets too large. So the sums are scaled only after the largest
 * weight of some row has grown fourfold: in the first tile, and seldom later. */
void attention_raise_rows(warp *m, const ptx_val joined[], void (*raise_scores)(warp *m))
{
    enum { LOG2_FOURFOLD = 2 };
    ptx_fn *f = m->a->f;
    attention_rows *rows = &m->rows;
    ptx_val shift[2 * MOST_BLOCKS], has_grown = {0};
    for (uint32_t i = 0; i < rows->o.rows; i++) {
        shift[i] = joined ? joined[i] : attention_find_shift(m->a, &m->scores, i, FRAGMENT_LANES);
        ptx_val is_over = ptx_gt(f, shift[i], ptx_add(f, rows->row[i].shift, LOG2_FOURFOLD));
        has_grown = i == 0 ? is_over : ptx_or(f, has_grown, is_over);
    }
    PTX_IF (f, ptx_vote_any(f, has_grown)) {
        ptx_rarely(f);
        for (uint32_t i = 0; i < rows->o.rows; i++) {
            ptx_val shrink = softmax_raise(f, m->a->wide, &rows->row[i], shift[i]);
            if (!joined)
                ptx_mul_to(f, rows->row[i].sum, shrink);
            for (uint32_t n = 0; n < attention_columns(&rows->o); n++)
                ptx_mul_to(f, *attention_sum(&rows->o, i, n), shrink);
        }
        if (joined)
            raise_scores(m);
    }
}

/* The scales of the lane's keys: two per octet, of K or of V. */
static void load_scales(const warp *m, bool is_v, uint32_t octet, ptx_val scales[2])
{
    const uint32_t byte = (is_v * m->keys + octet * OCTET) * 4;
    ptx_load_vec(m->a->f, 2, scales, shared_at(m->a->f, PTX_F32, m->scales_at, byte), PTX_PLAIN);
}

void attention_make_scores(warp *m, ptx_val key)
{
    for (uint32_t step = 0; step < m->k.steps + m->k.has_tail; step += m->has_codes ? 2 : 1)
        multiply_step(m, step);
    for (uint32_t o = 0; o < m->scores.count && m->a->kv == ATTENTION_INT8_TOKEN; o++) {
        ptx_val scales[2];
        load_scales(m, false, o, scales);
        for (uint32_t i = 0; i < 2 * m->scores.rows; i++)
            ptx_mul_to(m->a->f, m->scores.x[i / 2][2 * o + i % 2], scales[i % 2]);
    }
    attention_shape_and_mask(m->a, key, m->groups > 1, &m->scores, find_origin, m);
}

ptx_val attention_weigh_pair(const warp *m, const softmax_row *row, ptx_val minus, uint32_t i, uint32_t octet)
{
    const attention *a = m->a;
    ptx_fn *f = a->f;
    ptx_val weights[2], scales[2];
    for (uint32_t n = 0; n < 2; n++) {
        ptx_val x = ptx_fma(f, m->scores.x[i][2 * octet + n], a->factor, minus);
        weights[n] = softmax_exp2(f, a->wide, x);
        ptx_add_to(f, row->sum, weights[n]);
    }
    if (a->kv == ATTENTION_INT8_TOKEN) {
        load_scales(m, true, octet, scales);
        for (uint32_t n = 0; n < 2; n++) {
            if (a->type == PTX_F16)
                scales[n] = ptx_mul(f, scales[n], 1 << attention_codes_of(a, a->type, true).down);
            weights[n] = ptx_mul(f, weights[n], scales[n]);
        }
    }
    return narrow_pair(f, a->type, weights[0], weights[1]);
}

static void weigh(warp *m, ptx_val key)
{
    attention_make_scores(m, key);
    attention_raise_rows(m, NULL, NULL);
    for (uint32_t i = 0; i < m->scores.rows; i++) {
        const softmax_row *row = &m->rows.row[i];
        ptx_val minus = softmax_minus(m->a->f, m->a->wide, row);
        for (uint32_t o = 0; o < m->scores.count; o++) {
            ptx_val word = attention_weigh_pair(m, row, minus, i, o);
            m->weight[i / 2][2 * o + i % 2] = ptx_as(m->a->f, m->pairs, word);
        }
    }
}

/* ---- copies -------------------------------------------------------------------------------------------------------- */

void attention_init_panels(warp *m, const attention_copier *of_q, ptx_val keys)
{
    attention *a = m->a;
    m->q.panel = attention_init_panel(of_q, a->q, a->tile_q, a->head_dim, m->shared, m->q.lines);
    m->k.panel = attention_init_panel(&m->copier, a->k, m->keys, a->head_dim, keys, m->k.lines);
    m->v.panel = attention_init_panel(&m->copier, a->v, m->keys, a->head_dim_v, keys, m->v.lines);
}

/* Copies K's and V's scales with the tile of K: weights need both. */
static void copy_scales(const warp *m, ptx_val key)
{
    if (m->a->kv == ATTENTION_INT8_TOKEN)
        attention_copy_scales(&m->copier, m->keys, ptx_add(m->a->f, m->shared, m->scales_start), key);
}

void attention_start_copies(warp *m)
{
    attention_init_pages(m->a, 0);
    attention_copy_rows(&m->q.panel, m->a->first);
    m->key = ptx_var(m->a->f, attention_key(m->a, m->a->first_key));
    attention_copy_rows(&m->k.panel, m->key);
    copy_scales(m, m->key);
}

void attention_wait_for_copies(const warp *m)
{
    if (ptx_has_sm(m->a->f, 80))
        ptx_cp_async_wait_all(m->a->f);
    ptx_barrier(m->a->f);
}

void attention_add_tile(warp *m, ptx_val counted)
{
    ptx_fn *f = m->a->f;
    attention_wait_for_copies(m);
    attention_select_pages(m->a, counted);
    if (!m->v_in_k)
        attention_copy_rows(&m->v.panel, m->key);
    attention_build_pages(m->a, counted);
    m->weigh(m, m->key);
    attention_wait_for_copies(m);
    /* After the last tile no row of K is in bounds: this copies zeros, which nothing reads. */
    ptx_val next_counted = ptx_add(f, counted, m->a->tile_k), next = attention_key(m->a, next_counted);
    attention_select_pages(m->a, next_counted);
    if (!m->v_in_k)
        attention_copy_rows(&m->k.panel, next);
    m->add_values(m);
    if (m->v_in_k) {
        ptx_barrier(f);
        attention_copy_rows(&m->k.panel, next);
    }
    copy_scales(m, next);
    ptx_set(f, m->key, next);
}

void attention_add_tiles(warp *m, const ptx_val *ahead, void (*add)(warp *m, ptx_val counted))
{
    ptx_fn *f = m->a->f;
    attention_rows *const rows = &m->rows;
    for (uint32_t step = 0; step < m->q.steps && m->holds_q; step++)
        load_q(m, 0, step);
    attention_add_chunks(m, &rows, 1, ahead, add);
    if (ptx_has_sm(f, 80))
        ptx_cp_async_wait_all(f);
    for (uint32_t i = 0; i < m->rows.o.rows; i++)
        m->rows.row[i].sum = ptx_var(f, ptx_reduce_lanes(f, PTX_OP_ADD, FRAGMENT_LANES, m->rows.row[i].sum));
}

/* ---- a lane -------------------------------------------------------------------------------------------------------- */

/* The lane's four neighbouring elements of a row's first 16: half of one of its first two 16-byte units. */
static ptx_val fours_at(const warp *m, const layout *lines, ptx_val row, ptx_val t)
{
    ptx_fn *f = m->a->f;
    ptx_val unit = layout_at(f, lines, row, ptx_shr(f, t, 1)), half = ptx_and(f, t, 1);
    return ptx_mad(f, half, UNIT_BYTES / 2, unit);
}

static ptx_val operand_at(const warp *m, const attention_operand *of, ptx_val row, ptx_val unit, ptx_val from)
{
    return ptx_add(m->a->f, layout_at(m->a->f, &of->lines, row, unit), from);
}

/* ldmatrix's four matrices of Q and V are rows 0-7 and 8-15 of the first unit, then of the second; those of K the two units
 * of keys 0-7, then of keys 8-15; those of keys' tails one unit of 32. */
void attention_init_operands(warp *m, ptx_val keys)
{
    ptx_fn *f = m->a->f;
    ptx_val in_octet = ptx_and(f, m->lane, OCTET - 1);
    m->upper = ptx_shr(f, m->lane, 4);
    ptx_val odd = ptx_bfe(f, m->lane, 3, 1);
    m->in_16 = ptx_and(f, m->lane, 2 * OCTET - 1);
    ptx_val q_row = ptx_mad(f, m->row_warp, m->scores.rows * OCTET, m->in_16);
    ptx_val k_row = in_octet, v_unit = m->upper;
    if (m->groups > 1) {
        m->first_octet = ptx_mul(f, m->group, m->scores.count);
        k_row = ptx_mad(f, m->first_octet, OCTET, k_row);
        v_unit = ptx_mad(f, m->warp, attention_octets(&m->rows.o), v_unit);
    }
    if (m->scores.count > 1)
        k_row = ptx_mad(f, m->upper, OCTET, k_row);
    if (!m->has_codes) {
        m->q.at = operand_at(m, &m->q, q_row, m->upper, m->shared);
    } else {
        ptx_val t = attention_lane_t(m), g = attention_lane_g(m);
        ptx_val row = ptx_mad(f, m->row_warp, m->scores.rows * OCTET, g);
        m->q.at = ptx_add(f, fours_at(m, &m->q.lines, row, t), m->shared);
        m->scales_at = ptx_mad(f, t, 8, ptx_add(f, keys, m->scales_start));
    }
    m->k.at = operand_at(m, &m->k, k_row, odd, keys);
    m->v.at = operand_at(m, &m->v, m->in_16, v_unit, keys);
    if (m->k.has_tail) {
        m->k.tail = operand_at(m, &m->k, m->lane, ptx_u32(2 * m->k.steps), keys);
        m->q.tail = operand_at(m, &m->q, q_row, ptx_u32(2 * m->q.steps), m->shared);
    }
    if (m->v.has_tail)
        m->v.tail = operand_at(m, &m->v, m->lane, ptx_u32(2 * m->v.steps), keys);
}

void attention_init_rows(const attention *a, attention_rows *r)
{
    const uint32_t of_block = 2 * attention_columns(&r->o);
    for (uint32_t b = 0; b < attention_blocks(&r->o); b++) {
        for (uint32_t i = 0; i < 2; i++)
            softmax_init_row(a->f, a->wide, &r->row[2 * b + i]);
        for (uint32_t i = 0; i < of_block; i++) /* product after product */
            *attention_sum(&r->o, 2 * b + i % 4 / 2, i / 4 * 2 + i % 2) = ptx_var(a->f, ptx_f32(0));
    }
}

void attention_warp_init(warp *m)
{
    ptx_fn *f = m->a->f;
    m->zero = ptx_var(f, ptx_f32(0));
    attention_init_rows(m->a, &m->rows);
    m->copier = (attention_copier){m->a, m->threads, false, ptx_tid_x(f)};
    m->shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    m->lane = ptx_laneid(f);
    m->warp = ptx_warpid_x(f);
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

static void store_logs(const warp *m, ptx_val is_mine, const ptx_val numbers[])
{
    const attention *a = m->a;
    ptx_fn *f = a->f;
    ptx_val wanted = ptx_ne(f, ptx_address(f, a->lse), 0);
    PTX_IF (f, ptx_and(f, is_mine, wanted)) {
        ptx_val at = attention_log_at(a, numbers[0]);
        for (uint32_t i = 0; i < m->rows.o.rows; i++) {
            ptx_val in_bounds = ptx_lt(f, numbers[i], a->rows);
            ptx_val log = softmax_log(f, a->wide, m->rows.row[i].sum, m->rows.row[i].shift);
            ptx_val to =
                a->pack_gqa && i > 0 ? attention_log_at(a, numbers[i]) : ptx_at_const(f, at, OCTET * i);
            PTX_WHEN (f, in_bounds) {
                ptx_store(f, to, log);
            }
        }
    }
}

/* Stages the lane's part of O over Q. */
static void stage_rows(const warp *m, const ptx_val shares[])
{
    const attention *a = m->a;
    const attention_slice *o = &m->rows.o;
    const layout *lines = &m->out_lines;
    const bool has_all_columns = m->groups == 1;
    ptx_fn *f = a->f;
    ptx_val words[2], row = attention_lane_g(m), t = attention_lane_t(m), unit = {0};
    if (has_all_columns)
        row = ptx_mad(f, m->row_warp, m->scores.rows * OCTET, row);
    else
        unit = ptx_mul(f, m->warp, attention_octets(o));
    /* The addresses of the lane's pairs in its first row, in the first even and the first odd unit; with
     * codes at[0] is that of its first four columns. */
    ptx_val at[2], pair = ptx_mad(f, t, 4, m->shared);
    for (uint32_t odd = 0; odd < 2 && !m->has_codes; odd++) {
        ptx_val mine = has_all_columns ? ptx_u32(odd) : ptx_add(f, unit, odd);
        at[odd] = ptx_add(f, layout_at(f, lines, row, mine), pair);
    }
    if (m->has_codes)
        at[0] = ptx_add(f, fours_at(m, lines, row, t), m->shared);
    if (has_all_columns && a->head_dim_v == a->head_dim)
        ptx_warp_barrier(f);
    else if (has_all_columns)
        ptx_barrier(f); /* O replaces other warps' rows of Q */
    for (uint32_t i = 0; i < o->rows; i++) {
        for (uint32_t n = 0; n < attention_octets(o); n++) {
            const uint32_t odd = n % 2, byte = layout_rows(lines, OCTET * i) + layout_unit(lines, n - odd);
            ptx_val low = ptx_mul(f, o->x[i][2 * n], shares[i]);
            ptx_val high = ptx_mul(f, o->x[i][2 * n + 1], shares[i]);
            words[odd] = narrow_pair(f, a->type, low, high);
            if (!m->has_codes)
                ptx_store(f, shared_at(f, PTX_U32, at[odd], byte), words[odd]);
            else if (odd)
                ptx_store_vec(f, 2, shared_at(f, PTX_U32, at[0], byte), words, PTX_PLAIN);
        }
    }
}

/* A warp that has all columns of its rows stores them; otherwise the thread block stores all rows together. */
void attention_store_results(void *of, ptx_val first)
{
    warp *m = of;
    const attention *a = m->a;
    const layout *lines = &m->out_lines;
    const uint32_t warp_rows = m->scores.rows * OCTET;
    ptx_fn *f = a->f;
    ptx_val numbers[ATTENTION_MOST_ROWS], shares[ATTENTION_MOST_ROWS];
    attention_number_rows(a, &m->rows.o, first, numbers);
    attention_find_shares(a, numbers, m->rows.row, shares, m->rows.o.rows);
    stage_rows(m, shares);
    if (m->groups == 1) {
        ptx_warp_barrier(f);
        ptx_val of_warp = ptx_mul(f, m->row_warp, warp_rows);
        attention_store_rows(a, *lines, m->shared, of_warp, warp_rows, m->lane, WARP_LANES);
        store_logs(m, ptx_eq(f, attention_lane_t(m), 0), numbers);
    } else {
        ptx_barrier(f);
        attention_store_rows(a, *lines, m->shared, ptx_u32(0), a->tile_q, m->copier.tid, m->threads);
        /* 0 in one of four lanes of the first warp. */
        ptx_val others = ptx_and(f, m->copier.tid, m->threads - WARP_LANES + FRAGMENT_LANES - 1);
        store_logs(m, ptx_eq(f, others, 0), numbers);
    }
}

/* ---- geometry ------------------------------------------------------------------------------------------------------ */

warp attention_warp_geometry(attention *a, uint32_t warps, uint32_t blocks, uint32_t keys)
{
    warp m = {.a = a, .weigh = weigh, .add_values = add_values, .keys = keys, .groups = 1};
    m.threads = warps * WARP_LANES;
    m.pairs = a->type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
    m.has_codes = a->kv != ATTENTION_SAME;
    m.q.steps = m.k.steps = a->head_dim / 16;
    m.q.has_tail = m.k.has_tail = a->head_dim % 16 != 0;
    m.v.steps = a->head_dim_v / 16;
    m.v.has_tail = a->head_dim_v % 16 != 0;
    const uint32_t rows = 2 * blocks, width = m.has_codes ? 4 : 2, step = 4 * width;
    m.scores = (attention_slice){rows, OCTET, keys / OCTET, 2, OCTET, {{{0}}}};
    m.rows.o = (attention_slice){rows, OCTET, a->head_dim_v / step, width, step, {{{0}}}};
    m.holds_q = blocks == 1 && a->head_dim <= MOST_SMALL;
    return m;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void attention_lay_out(warp *m, bool is_ring, bool v_in_k)
{
    const attention *a = m->a;
    const uint32_t threads = is_ring ? (uint32_t)WARP_LANES : m->threads;
    const uint32_t unit = m->has_codes ? UNIT_BYTES : UNIT_BYTES / 2; /* elements of K and V in a unit */
    const uint32_t q_end = attention_strips(&m->q.lines, 0, a->tile_q, a->head_dim / OCTET, threads);
    const uint32_t out_end = attention_strips(&m->out_lines, 0, a->tile_q, a->head_dim_v / OCTET, threads);
    const uint32_t start = is_ring ? 0 : larger(q_end, out_end);
    const uint32_t k_end = attention_strips(&m->k.lines, start, m->keys, a->head_dim / unit, threads);
    const uint32_t v_start = v_in_k ? start : k_end;
    const uint32_t v_end = attention_strips(&m->v.lines, v_start, m->keys, a->head_dim_v / unit, threads);
    m->v_in_k = v_in_k;
    m->scales_start = larger(k_end, v_end);
    m->shared_bytes = m->scales_start + (a->kv == ATTENTION_INT8_TOKEN ? 2 * m->keys * 4 : 0);
}

/* As many thread blocks per multiprocessor as leave enough registers per thread, 255 at most. ptxas counts warps in fours;
 * without a limit it fits more warps, and spills. Besides sums, scores and Q, registers hold addresses and offsets, more with a
 * tail; below sm_80 the copies in flight, more with pack_gqa or longer rows of K; and scales of keys, and elements of a mask. */
static uint32_t blocks_per_multiprocessor(const warp *m)
{
    const attention *a = m->a;
    bool is_old = !a->has_sm_80;
    uint32_t others = (a->split_k != 1 || (is_old && a->pack_gqa) ? 80U : 68U) + (is_old ? 8U : 0U) +
                      (a->kv == ATTENTION_INT8_TOKEN ? 12U : 0U) + (a->shaping == ATTENTION_MASK ? 12U : 0U);
    uint32_t columns = is_old ? larger(a->head_dim, a->head_dim_v) : a->head_dim_v;
    uint32_t numbers = attention_blocks(&m->scores) * (columns + m->keys) / 2 +
                       (m->holds_q ? a->head_dim / 4 : 0) + (m->k.has_tail || m->v.has_tail ? 12 : 0);
    uint32_t registers = numbers + others < 256 ? numbers + others : 256;
    uint32_t warps = MULTIPROCESSOR_REGISTERS / (WARP_LANES * registers) / 4 * 4;
    return lanes_blocks(m->threads, warps * WARP_LANES);
}

void attention_warp_shape(kiln_shape *s, const warp *m)
{
    s->block[0] = m->threads;
    s->shared_bytes = m->shared_bytes;
    s->trip = m->keys;
    s->blocks_per_multiprocessor = blocks_per_multiprocessor(m);
}
