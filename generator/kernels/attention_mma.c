/* attention on tensor cores: f16 from sm_75 on, bf16 from sm_80 on.
 *
 * A warp makes a block of 16 rows of O. It makes two where registers allow, so that a fragment of K or V serves 32 rows:
 * with one, loads of fragments keep the multiprocessor's shared memory as busy as the products keep its tensor cores. But
 * tile_q 32 would be a single warp; nor does tile_q 64 leave enough warps with more than 32 keys. All warps of a thread
 * block go over the keys together, in tiles of tile_k. Scores stay in the registers in which the first product leaves
 * them: rounded to pairs they are the A operand of the second one. Each lane has parts of two rows of a block, eight apart;
 * four lanes share a row.
 *
 * SHARED MEMORY holds the tile of Q, and one tile each of K and V. V is copied during the first product, the next K during
 * the second; from sm_80 on cp.async does it in the background. A tile takes two barriers. Tiles lie in strips of 16
 * columns, so that each step of a product takes its fragments from a strip, and there are no bank conflicts: see
 * layout. Every address is one that the lane makes once, plus a constant.
 *
 * CODES of 8 bits take half of the space. A register of ldmatrix has four neighbouring elements of a row of K, which the product
 * takes as its elements 2t, 2t + 1, 2t + 8 and 2t + 9 along the sum: a lane takes those of Q. Of V it has two neighbouring columns
 * of two keys: the even columns of a unit are one product, the odd ones another, so that a lane has four neighbouring columns
 * of O.
 *
 * MANY KEYS. Tensor cores truncate what they add. So a sum of O takes at most ATTENTION_CHUNK keys and then joins a total
 * that is rounded; so do the sums of weights, which are one addition for each key of a lane. See attention_total.h.
 *
 * MASK AND BOUNDS. Keys that no query of the tile sees, and rows of Q beyond the last, are zeros in shared memory. In tiles
 * with masked scores, these are replaced by -inf after the product.
 *
 * INSTRUCTIONS. A score takes at least 4.5, besides the products: a maximum, an fma, an exponential, an addition and half of a
 * conversion. Scaling the sums of O would take head_dim / 64 more, and is done only where a largest score has grown enough.
 */
#include "attention_mma.h"
#include "attention_score.h"
#include "attention_total.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tensor.h"

typedef attention_mma mma;

/* ---- products ------------------------------------------------------------------------------------------------------ */

/* sums += A * B, 16 along the sum, low and high halves of B; sums = A * B where `starts`. */
static void multiply_16(mma *m, const ptx_val a[4], ptx_val low, ptx_val high, ptx_val sums[4], bool starts)
{
    ptx_fn *f = m->f;
    const ptx_val b[2] = {low, high}, zeros[4] = {m->zero, m->zero, m->zero, m->zero};
    if (!starts) {
        tensor_multiply(f, m->a.type, sums, a, b, sums);
        return;
    }
    ptx_val first[4];
    ptx_mma(f, tensor_shape(m->a.type, ptx_has_sm(f, 80)), first, a, b, zeros);
    for (int i = 0; i < 4; i++)
        sums[i] = ptx_var(f, first[i]);
    if (!ptx_has_sm(f, 80))
        ptx_mma_to(f, tensor_shape(m->a.type, false), sums, a + 2, b + 1);
}

/* Where the lane's four neighbouring elements of a row's first 16 are: one of two units, and a half of it. */
static ptx_val fours_at(const mma *m, layout lines, ptx_val row, ptx_val quarter)
{
    ptx_fn *f = m->f;
    ptx_val unit = layout_at(f, &lines, row, ptx_shr(f, quarter, 1));
    ptx_val half = ptx_and(f, quarter, 1);
    return ptx_mad(f, half, UNIT_BYTES / 2, unit);
}

/* Elements of a row of Q as codes of K have them: four neighbours are 2t, 2t + 1, 2t + 8 and 2t + 9 of a step. */
static void load_turned_q(mma *m, uint32_t rows, uint32_t step, ptx_val q[4])
{
    const ptx_type pairs = m->a.type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t byte = rows + i * layout_rows(&m->q_lines, UNIT) + layout_unit(&m->q_lines, 2 * step);
        ptx_val words[2];
        ptx_load_vec(m->f, 2, words, shared_at(m->f, PTX_U32, m->q_at, byte), PTX_PLAIN);
        q[i] = ptx_as(m->f, pairs, words[0]);
        q[2 + i] = ptx_as(m->f, pairs, words[1]);
    }
}

static void load_q(mma *m, uint32_t block, uint32_t step, ptx_val q[4])
{
    uint32_t rows = 2 * block * layout_rows(&m->q_lines, UNIT);
    if (m->has_codes)
        load_turned_q(m, rows, step, q);
    else if (step < m->steps)
        ptx_ldmatrix(m->f, 4, q,
                     shared_at(m->f, m->a.type, m->q_at, rows + layout_unit(&m->q_lines, 2 * step)));
    else
        ptx_ldmatrix(m->f, 2, q, shared_at(m->f, m->a.type, m->q_tail, rows));
}

/* Two steps at a time: a unit of codes is one. */
static void multiply_code_scores(mma *m)
{
    ptx_fn *f = m->f;
    const codes_values codes = attention_codes_of(&m->a, m->a.type, false);
    ptx_val q[MOST_BLOCKS][2][4], words[4], k[2];
    for (uint32_t step = 0; step < m->steps; step += 2) {
        uint32_t column = layout_unit(&m->k_lines, step);
        for (uint32_t i = 0; i < 2 * m->blocks && !m->q_stays; i++)
            load_q(m, i / 2, step + i % 2, q[i / 2][i % 2]);
        for (uint32_t o = 0; o < m->octets; o += 2) {
            ptx_ldmatrix(f, 4, words,
                         shared_at(f, PTX_B32, m->k_at, o * layout_rows(&m->k_lines, UNIT) + column));
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t odd = i / 2, octet = o + i % 2; /* one sum after the other */
                codes_pairs(f, &codes, ptx_as(f, PTX_U32, words[2 * (i % 2) + odd]), false, k);
                for (uint32_t b = 0; b < m->blocks; b++)
                    multiply_16(m, m->q_stays ? m->q[step + odd] : q[b][odd], k[0], k[1], m->score[b][octet],
                                step + odd == 0);
            }
        }
    }
}

static void multiply_scores(mma *m)
{
    if (m->has_codes) {
        multiply_code_scores(m);
        return;
    }
    ptx_fn *f = m->f;
    ptx_val q[MOST_BLOCKS][4], k[4];
    for (uint32_t step = 0; step < m->steps; step++) {
        uint32_t column = layout_unit(&m->k_lines, 2 * step);
        for (uint32_t b = 0; b < m->blocks && !m->q_stays; b++)
            load_q(m, b, step, q[b]);
        for (uint32_t o = 0; o < m->octets; o += 2) {
            ptx_ldmatrix(f, 4, k,
                         shared_at(f, m->a.type, m->k_at, o * layout_rows(&m->k_lines, UNIT) + column));
            for (uint32_t b = 0; b < m->blocks; b++) {
                const ptx_val *rows = m->q_stays ? m->q[step] : q[b];
                multiply_16(m, rows, k[0], k[1], m->score[b][o], step == 0);
                multiply_16(m, rows, k[2], k[3], m->score[b][o + 1], step == 0);
            }
        }
    }
    if (!m->has_tail)
        return;
    for (uint32_t b = 0; b < m->blocks; b++)
        load_q(m, b, m->steps, q[b]);
    for (uint32_t o = 0; o < m->octets; o += 4) {
        ptx_ldmatrix(
            f, 4, k,
            shared_at(f, m->a.type, m->k_tail, m->k_lines.start + o * layout_rows(&m->k_lines, UNIT)));
        for (uint32_t i = 0; i < 4 * m->blocks; i++)
            ptx_mma_to(f, tensor_shape(m->a.type, false), m->score[i / 4][o + i % 4], q[i / 4], &k[i % 4]);
    }
}

/* Two units of columns at a time: of each a product has the even columns, and one the odd ones. */
static void add_code_values(mma *m)
{
    ptx_fn *f = m->f;
    const codes_values codes = attention_codes_of(&m->a, m->a.type, true);
    ptx_val words[4], low[2], high[2];
    for (uint32_t o = 0; o < m->octets; o += 2) {
        for (uint32_t unit = 0; unit < m->v_steps; unit += 2) {
            uint32_t byte = o * layout_rows(&m->v_lines, UNIT) + layout_unit(&m->v_lines, unit);
            ptx_ldmatrix_trans(f, 4, words, shared_at(f, PTX_B32, m->v_at, byte));
            for (uint32_t i = 0; i < 2; i++) {
                codes_pairs(f, &codes, ptx_as(f, PTX_U32, words[2 * i]), true, low);
                codes_pairs(f, &codes, ptx_as(f, PTX_U32, words[2 * i + 1]), true, high);
                for (uint32_t n = 0; n < 2 * m->blocks; n++)
                    multiply_16(m, &m->weight[n / 2][2 * o], low[n % 2], high[n % 2],
                                m->sum[n / 2][2 * (unit + i) + n % 2], false);
            }
        }
    }
}

/* O += weights * V. */
void attention_mma_add_values(mma *m)
{
    if (m->has_codes) {
        add_code_values(m);
        return;
    }
    ptx_fn *f = m->f;
    ptx_val v[4];
    for (uint32_t o = 0; o < m->octets; o += 2) {
        for (uint32_t step = 0; step < m->v_steps; step++) {
            uint32_t byte = o * layout_rows(&m->v_lines, UNIT) + layout_unit(&m->v_lines, 2 * step);
            ptx_ldmatrix_trans(f, 4, v, shared_at(f, m->a.type, m->v_at, byte));
            for (uint32_t b = 0; b < m->blocks; b++) {
                multiply_16(m, &m->weight[b][2 * o], v[0], v[1], m->sum[b][2 * step], false);
                multiply_16(m, &m->weight[b][2 * o], v[2], v[3], m->sum[b][2 * step + 1], false);
            }
        }
    }
    for (uint32_t o = 0; m->v_has_tail && o < m->octets; o += 4) {
        ptx_ldmatrix_trans(
            f, 4, v,
            shared_at(f, m->a.type, m->v_tail, m->v_lines.start + o * layout_rows(&m->v_lines, UNIT)));
        for (uint32_t b = 0; b < m->blocks; b++) {
            multiply_16(m, &m->weight[b][2 * o], v[0], v[1], m->sum[b][2 * m->v_steps], false);
            multiply_16(m, &m->weight[b][2 * o + 4], v[2], v[3], m->sum[b][2 * m->v_steps], false);
        }
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* This lane's first row of the block. */
static ptx_val first_row(const mma *m, uint32_t block)
{
    ptx_fn *f = m->f;
    ptx_val of_warp = ptx_mad(f, m->warp, m->blocks * BLOCK_ROWS, m->a.first);
    ptx_val row = ptx_add(f, of_warp, ptx_shr(f, m->lane, 2));
    return block == 0 ? row : ptx_add(f, row, block * BLOCK_ROWS);
}

/* Of each row the lane has keys 2 * quarter and the next of each octet. */
static void find_scores(void *of, ptx_val key, attention_scores rows[])
{
    mma *m = of;
    ptx_fn *f = m->f;
    ptx_val row = first_row(m, 0), quarter = ptx_and(f, m->lane, 3);
    ptx_val mine = ptx_mad(f, quarter, 2, key);
    for (uint32_t i = 0; i < 2 * m->blocks; i++) {
        ptx_val number = i == 0 ? row : ptx_add(f, row, 8 * i);
        rows[i] = (attention_scores){.row = number, .first = mine, .count = 2 * m->octets};
        for (uint32_t n = 0; n < 2 * m->octets; n++) {
            rows[i].offsets[n] = n / 2 * UNIT + n % 2;
            rows[i].score[n] = &m->score[i / 2][n / 2][i % 2 * 2 + n % 2];
        }
    }
}

/* A softmax may subtract any number, as long as no weight gets too large. So the sums are scaled only where the largest
 * weight of some row of the warp has grown fourfold: in the first tile, and seldom later. */
static void raise_rows(mma *m)
{
    ptx_fn *f = m->f;
    ptx_val shift[2 * MOST_BLOCKS], has_grown = {0};
    for (uint32_t i = 0; i < 2 * m->blocks; i++) {
        const uint32_t b = i / 2, r = i % 2;
        ptx_val most = ptx_max(f, m->score[b][0][2 * r], m->score[b][0][2 * r + 1]);
        for (uint32_t n = 2; n < 2 * m->octets; n++)
            most = ptx_max(f, most, m->score[b][n / 2][2 * r + n % 2]);
        shift[i] = ptx_mul(f, ptx_reduce_lanes(f, PTX_OP_MAX, 4, most), m->a.factor);
        ptx_val enough = ptx_add(f, m->row[b][r].shift, 2);
        ptx_val is_over = ptx_gt(f, shift[i], enough);
        has_grown = i == 0 ? is_over : ptx_or(f, has_grown, is_over);
    }
    PTX_IF (f, ptx_vote_any(f, has_grown)) {
        ptx_rarely(f);
        for (uint32_t i = 0; i < 2 * m->blocks; i++) {
            ptx_val shrink = softmax_raise(f, m->a.wide, &m->row[i / 2][i % 2], shift[i]);
            ptx_mul_to(f, m->row[i / 2][i % 2].sum, shrink);
            for (uint32_t n = 0; n < 2 * m->fragments; n++)
                ptx_mul_to(f, m->sum[i / 2][n / 2][2 * (i % 2) + n % 2], shrink);
        }
    }
}

/* The scales of the lane's keys: two of each octet, of K or of V. */
static void load_scales(const mma *m, bool is_v, uint32_t octet, ptx_val scales[2])
{
    const uint32_t byte = (is_v * m->keys + octet * UNIT) * 4;
    ptx_load_vec(m->f, 2, scales, shared_at(m->f, PTX_F32, m->scales_at, byte), PTX_PLAIN);
}

static void weigh_row(mma *m, uint32_t b, uint32_t r)
{
    ptx_fn *f = m->f;
    ptx_type pairs = m->a.type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
    ptx_val minus = softmax_minus(f, m->a.wide, &m->row[b][r]);
    for (uint32_t o = 0; o < m->octets; o++) {
        ptx_val pair[2];
        for (uint32_t i = 0; i < 2; i++) {
            ptx_val x = ptx_fma(f, m->score[b][o][2 * r + i], m->a.factor, minus);
            pair[i] = softmax_exp2(f, m->a.wide, x);
            ptx_add_to(f, m->row[b][r].sum, pair[i]);
        }
        if (m->a.kv == ATTENTION_INT8_TOKEN) {
            ptx_val scales[2]; /* of V */
            load_scales(m, true, o, scales);
            for (uint32_t i = 0; i < 2; i++) {
                if (m->a.type == PTX_F16)
                    scales[i] = ptx_mul(m->f, scales[i], (float)attention_value_factor(&m->a));
                pair[i] = ptx_mul(m->f, pair[i], scales[i]);
            }
        }
        ptx_val word = narrow_pair(f, m->a.type, pair[0], pair[1]);
        m->weight[b][2 * o + r] = ptx_as(f, pairs, word);
    }
}

void attention_mma_weigh(mma *m, ptx_val key)
{
    multiply_scores(m);
    if (m->a.kv == ATTENTION_INT8_TOKEN) {
        for (uint32_t o = 0; o < m->octets; o++) {
            ptx_val scales[2];
            load_scales(m, false, o, scales);
            for (uint32_t b = 0; b < m->blocks; b++)
                for (uint32_t i = 0; i < 4; i++)
                    ptx_mul_to(m->f, m->score[b][o][i], scales[i % 2]);
        }
    }
    attention_shape_and_mask(&m->a, key, 2 * m->blocks, find_scores, m);
    raise_rows(m);
    for (uint32_t i = 0; i < 2 * m->blocks; i++)
        weigh_row(m, i / 2, i % 2);
}

/* ---- copies -------------------------------------------------------------------------------------------------------- */

static void wait_for_copies(mma *m)
{
    if (ptx_has_sm(m->f, 80))
        ptx_cp_async_wait_all(m->f);
    ptx_barrier(m->f);
}

/* With the tile of K: weights need those of V too. */
static void copy_scales(const mma *m, ptx_val key)
{
    if (m->a.kv == ATTENTION_INT8_TOKEN)
        attention_copy_scales(&m->copier, m->keys, ptx_add(m->f, m->shared, m->scales_start), key, m->a.keys);
}

static void add_tile(void *of, ptx_val counted)
{
    mma *m = of;
    ptx_fn *f = m->f;
    const attention *a = &m->a;
    ptx_val none = ptx_u32(0), key = m->key;
    wait_for_copies(m);
    attention_turn_pages(&m->pages, counted);
    attention_copy_rows(&m->v, key, a->keys, none);
    attention_lay_out_next(&m->pages, counted);
    attention_mma_weigh(m, key);
    wait_for_copies(m);
    ptx_val behind = ptx_add(f, counted, a->tile_k), next = attention_key(a, behind);
    attention_turn_pages(&m->pages, behind);
    attention_copy_rows(&m->k, next, a->keys, none);
    attention_mma_add_values(m);
    copy_scales(m, next);
    ptx_set(f, m->key, next);
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* Column n of the lane's columns of a row. */
static ptx_val sum_of(const mma *m, uint32_t b, uint32_t r, uint32_t n)
{
    if (m->has_codes)
        return m->sum[b][2 * (n / 4) + n % 2][2 * r + n % 4 / 2];
    return m->sum[b][n / 2][2 * r + n % 2];
}

/* Stores a block's sums of O where its rows of Q were; `at` are the lane's first pairs of an even and an odd unit, or with
 * codes at[0] its first four columns. */
static void stage_block(mma *m, uint32_t b, const ptx_val at[2])
{
    ptx_fn *f = m->f;
    for (uint32_t r = 0; r < 2; r++) {
        ptx_val share = softmax_share(f, m->a.wide, m->row[b][r].sum);
        share = ptx_mul(f, share, m->shrink[2 * b + r]);
        ptx_val words[2];
        for (uint32_t n = 0; n < m->fragments; n++) {
            ptx_val low = ptx_mul(f, sum_of(m, b, r, 2 * n), share);
            ptx_val high = ptx_mul(f, sum_of(m, b, r, 2 * n + 1), share);
            words[n % 2] = narrow_pair(f, m->a.type, low, high);
            uint32_t byte =
                layout_unit(&m->out_lines, n - n % 2) + (2 * b + r) * layout_rows(&m->out_lines, UNIT);
            if (!m->has_codes)
                ptx_store(f, ptx_at_bytes(f, at[n % 2], byte), words[n % 2]);
            else if (n % 2 == 1)
                ptx_store_vec(f, 2, ptx_at_bytes(f, at[0], byte), words, PTX_PLAIN);
        }
    }
}

static void stage_rows(mma *m)
{
    ptx_fn *f = m->f;
    ptx_val shared = m->shared;
    ptx_val row = ptx_shr(f, m->lane, 2), quarter = ptx_and(f, m->lane, 3);
    ptx_val in_tile = ptx_mad(f, m->warp, m->blocks * BLOCK_ROWS, row);
    ptx_val first = ptx_mad(f, quarter, 4, shared), at[2];
    for (uint32_t odd = 0; odd < 2 && !m->has_codes; odd++) {
        ptx_val unit = layout_at(f, &m->out_lines, in_tile, ptx_u32(odd));
        at[odd] = shared_at(f, PTX_U32, ptx_add(f, unit, first), 0);
    }
    if (m->has_codes)
        at[0] = shared_at(f, PTX_U32, ptx_add(f, fours_at(m, m->out_lines, in_tile, quarter), shared), 0);
    if (m->a.head_dim_v == m->a.head_dim)
        ptx_warp_barrier(f);
    else
        ptx_barrier(f); /* it takes the place of other warps' rows of Q */
    for (uint32_t b = 0; b < m->blocks; b++)
        stage_block(m, b, at);
    ptx_warp_barrier(f);
}

static void store_logs(mma *m)
{
    ptx_fn *f = m->f;
    const attention *a = &m->a;
    ptx_val quarter = ptx_and(f, m->lane, 3);
    ptx_val is_first = ptx_eq(f, quarter, 0);
    ptx_val wanted = ptx_ne(f, ptx_address(f, a->lse), 0);
    ptx_val row = first_row(m, 0);
    PTX_IF (f, ptx_and(f, is_first, wanted)) {
        ptx_val at = attention_log_at(a, row);
        for (uint32_t i = 0; i < 2 * m->blocks; i++) {
            const softmax_row *of = &m->row[i / 2][i % 2];
            ptx_val number = i == 0 ? row : ptx_add(f, row, 8 * i);
            ptx_val in_bounds = ptx_lt(f, number, a->rows);
            ptx_val log = softmax_log(f, a->wide, of->sum, of->shift);
            ptx_val to = a->pack_gqa && i > 0 ? attention_log_at(a, number) : ptx_at_const(f, at, 8 * i);
            PTX_WHEN (f, in_bounds) {
                ptx_store(f, to, log);
            }
        }
    }
}

static void store_results(void *of)
{
    mma *m = of;
    const uint32_t of_warp = m->blocks * BLOCK_ROWS;
    ptx_val numbers[2 * MOST_BLOCKS], first = first_row(m, 0);
    softmax_row *rows[2 * MOST_BLOCKS];
    for (uint32_t i = 0; i < 2 * m->blocks; i++) {
        numbers[i] = i == 0 ? first : ptx_add(m->f, first, 8 * i);
        rows[i] = &m->row[i / 2][i % 2];
    }
    attention_add_sinks(&m->a, numbers, rows, m->shrink, 2 * m->blocks);
    stage_rows(m);
    ptx_val start = ptx_mul(m->f, m->warp, of_warp);
    attention_store_rows(&m->a, m->out_lines, m->shared, start, of_warp, m->lane, WARP_LANES);
    store_logs(m);
}

/* Pairs of columns, eight apart, of each of the lane's rows; of codes fours, 16 apart. */
void attention_mma_slice(mma *m, attention_mma_slices *slices)
{
    ptx_fn *f = m->f;
    const uint32_t width = m->has_codes ? 4 : 2;
    ptx_val row = first_row(m, 0), column = ptx_mul(f, ptx_and(f, m->lane, 3), width);
    for (uint32_t i = 0; i < 2 * m->blocks; i++) {
        uint32_t count = m->fragments, block = i / 2, r = i % 2;
        ptx_val *sums = slices->sums[i];
        for (uint32_t n = 0; n < 2 * count; n++)
            sums[n] = sum_of(m, block, r, n);
        ptx_val number = i == 0 ? row : ptx_add(f, row, 8 * i);
        slices->of[i] =
            (attention_slice){number, column, width, 4 * width, 2 * count / width, &m->row[block][r], sums};
    }
}

static void store_parts(void *of)
{
    mma *m = of;
    attention_mma_slices slices;
    attention_mma_slice(m, &slices);
    attention_leave_part(&m->a, slices.of, 2 * m->blocks, m->copier.tid);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* The head_dim up to which registers hold two blocks. Decoded codes, scales of keys and elements of a mask
 * take registers too. */
static uint32_t most_of_two(const mma *m)
{
    enum { MOST_BESIDE_OTHERS = 64 };
    const bool is_short = m->a.kv == ATTENTION_SAME || (m->keys == 32 && m->a.kv != ATTENTION_INT8_TOKEN);
    return is_short && m->a.shaping != ATTENTION_MASK ? MOST_SMALL : MOST_BESIDE_OTHERS;
}

mma attention_mma_geometry(attention of, uint32_t keys)
{
    mma m = {.a = of, .f = of.f, .keys = keys};
    m.steps = m.a.head_dim / 16;
    m.has_tail = m.a.head_dim % 16 != 0;
    m.v_steps = m.a.head_dim_v / 16;
    m.v_has_tail = m.a.head_dim_v % 16 != 0;
    m.fragments = 2 * m.v_steps + m.v_has_tail;
    m.octets = keys / 8;
    m.has_codes = m.a.kv != ATTENTION_SAME;
    bool has_two = m.a.tile_q == 128 || (m.a.tile_q == 64 && m.a.tile_k == 32);
    m.blocks = has_two && m.a.head_dim <= most_of_two(&m) && m.a.head_dim_v <= most_of_two(&m) ? 2 : 1;
    m.threads = m.a.tile_q / BLOCK_ROWS / m.blocks * WARP_LANES;
    const bool is_shared = keys == m.a.tile_k; /* else a warp has a ring of its own */
    const uint32_t all = m.threads, copiers = is_shared ? all : WARP_LANES;
    const uint32_t units = m.a.head_dim / UNIT, v_units = m.a.head_dim_v / UNIT;
    m.q_lines = attention_strips(0, m.a.tile_q, units, all);
    m.out_lines = attention_strips(0, m.a.tile_q, v_units, all); /* in Q's place */
    const uint32_t q_end = layout_end(&m.q_lines, m.a.tile_q, units);
    const uint32_t out_end = layout_end(&m.out_lines, m.a.tile_q, v_units);
    const uint32_t end = q_end > out_end ? q_end : out_end;
    const uint32_t per = m.has_codes ? 2 : 1, of_k = units / per, of_v = v_units / per;
    m.k_lines = attention_strips(is_shared ? end : 0, keys, of_k, copiers);
    const uint32_t k_end = layout_end(&m.k_lines, keys, of_k);
    m.v_lines = attention_strips(is_shared ? k_end : 0, keys, of_v, copiers);
    m.scales_start = layout_end(&m.v_lines, keys, of_v);
    if (!is_shared && k_end > m.scales_start)
        m.scales_start = k_end;
    m.shared_bytes = m.scales_start + (m.a.kv == ATTENTION_INT8_TOKEN ? 2 * keys * 4 : 0);
    m.q_stays = m.blocks == 1 && m.a.head_dim <= MOST_SMALL;
    return m;
}

mma attention_mma_init(const attention *of, uint32_t keys)
{
    ptx_fn *f = of->f;
    mma m = attention_mma_geometry(*of, keys);
    m.zero = ptx_var(f, ptx_f32(0));
    for (uint32_t b = 0; b < m.blocks; b++) {
        for (uint32_t r = 0; r < 2; r++)
            softmax_init_row(f, m.a.wide, &m.row[b][r]);
        for (uint32_t i = 0; i < 4 * m.fragments; i++)
            m.sum[b][i / 4][i % 4] = ptx_var(f, ptx_f32(0));
    }
    return m;
}

/* Lane 8 * i + j points to row j of matrix i. For Q and V the matrices are rows 0-7 and 8-15 of the first unit, then of the
 * second; for K the two units of keys 0-7, then of keys 8-15; for the tails one unit of 32 keys. */
void attention_mma_init_lane(mma *m, ptx_val q, ptx_val keys)
{
    ptx_fn *f = m->f;
    ptx_val in_octet = ptx_and(f, m->lane, 7), upper = ptx_shr(f, m->lane, 4);
    ptx_val odd = ptx_bfe(f, m->lane, 3, 1), in_16 = ptx_and(f, m->lane, 15);
    ptx_val q_row = ptx_mad(f, m->warp, m->blocks * BLOCK_ROWS, in_16);
    ptx_val k_row = ptx_mad(f, upper, 8, in_octet);
    if (!m->has_codes) {
        m->q_at = ptx_add(f, layout_at(f, &m->q_lines, q_row, upper), q);
    } else {
        ptx_val quarter = ptx_and(f, m->lane, 3), in_warp = ptx_shr(f, m->lane, 2);
        ptx_val row = ptx_mad(f, m->warp, m->blocks * BLOCK_ROWS, in_warp);
        m->q_at = ptx_add(f, fours_at(m, m->q_lines, row, quarter), q);
        m->scales_at = ptx_mad(f, quarter, 8, ptx_add(f, keys, m->scales_start));
    }
    m->k_at = ptx_add(f, layout_at(f, &m->k_lines, k_row, odd), keys);
    m->v_at = ptx_add(f, layout_at(f, &m->v_lines, in_16, upper), keys);
    if (m->has_tail) {
        ptx_val tail = layout_at(f, &m->k_lines, m->lane, ptx_u32(2 * m->steps));
        m->k_tail = ptx_add(f, tail, keys);
        tail = layout_at(f, &m->q_lines, q_row, ptx_u32(2 * m->steps));
        m->q_tail = ptx_add(f, tail, q);
    }
    if (m->v_has_tail) {
        ptx_val tail = layout_at(f, &m->v_lines, m->lane, ptx_u32(2 * m->v_steps));
        m->v_tail = ptx_add(f, tail, keys);
    }
}

void attention_mma_hold_q(mma *m)
{
    for (uint32_t step = 0; step < m->steps && m->q_stays; step++)
        load_q(m, 0, step, m->q[step]);
}

static void init_copies(mma *m, ptx_val shared, ptx_val tid)
{
    ptx_fn *f = m->f;
    const attention *a = &m->a;
    ptx_val none = ptx_u32(0);
    m->lane = ptx_laneid(f);
    m->warp = ptx_warpid_x(f);
    m->shared = shared;
    m->copier = (attention_copier){a, m->threads, 2, ptx_has_sm(f, 80), tid};
    attention_panel q = attention_init_panel(&m->copier, a->q, a->tile_q, a->head_dim, shared, m->q_lines);
    m->k = attention_init_panel(&m->copier, a->k, a->tile_k, a->head_dim, shared, m->k_lines);
    m->v = attention_init_panel(&m->copier, a->v, a->tile_k, a->head_dim_v, shared, m->v_lines);
    attention_mma_init_lane(m, shared, shared);
    m->pages = attention_init_pages(&m->a, 0);
    attention_copy_rows(&q, a->first, a->q_end, none);
    m->key = ptx_var(f, attention_key(a, a->first_key));
    attention_copy_rows(&m->k, m->key, a->keys, none);
    copy_scales(m, m->key);
    wait_for_copies(m);
    attention_mma_hold_q(m);
}

/* As many as leave enough registers to a thread. ptxas counts warps by fours; left to itself, it fits more and spills.
 * A thread has 255 at most. Besides sums, scores and Q there are addresses and offsets, more with a tail; below sm_80 also
 * the data being copied, and more with pack_gqa or longer rows of K; and scales of keys, and elements of a mask. */
uint32_t attention_mma_blocks(const mma *m, uint32_t threads)
{
    const attention *a = &m->a;
    bool is_old = !a->has_sm_80;
    uint32_t others = (a->split_k != 1 || (is_old && a->pack_gqa) ? 80U : 68U) + (is_old ? 8U : 0U) +
                      (a->kv == ATTENTION_INT8_TOKEN ? 12U : 0U) + (a->shaping == ATTENTION_MASK ? 12U : 0U);
    uint32_t columns = is_old && a->head_dim > a->head_dim_v ? a->head_dim : a->head_dim_v;
    uint32_t numbers = m->blocks * (columns + m->keys) / 2 + (m->q_stays ? a->head_dim / 4 : 0) +
                       (m->has_tail || m->v_has_tail ? 12 : 0);
    uint32_t registers = numbers + others < 256 ? numbers + others : 256;
    uint32_t warps = MULTIPROCESSOR_REGISTERS / (WARP_LANES * registers) / 4 * 4;
    uint32_t blocks = warps * WARP_LANES / threads;
    return blocks < 1 ? 1 : blocks;
}

void attention_mma_add_tiles(mma *m, const ptx_val *ahead, void (*add)(void *of, ptx_val counted), void *of)
{
    ptx_fn *f = m->f;
    const attention *a = &m->a;
    attention_sums sums[MOST_BLOCKS];
    for (uint32_t b = 0; b < m->blocks; b++)
        sums[b] = (attention_sums){m->row[b], m->sum[b]};
    attention_total total = attention_init_total(a, sums, m->blocks, m->fragments);
    attention_add_tiles(&total, 1, ATTENTION_CHUNK / m->keys * a->tile_k, ahead, add, of);
    if (ptx_has_sm(f, 80))
        ptx_cp_async_wait_all(f);
    for (uint32_t i = 0; i < 2 * m->blocks; i++) {
        softmax_row *row = &m->row[i / 2][i % 2];
        row->sum = ptx_var(f, ptx_reduce_lanes(f, PTX_OP_ADD, 4, row->sum));
    }
}

static void shape(kiln_shape *s, const attention *a)
{
    const mma m = attention_mma_geometry(*a, a->tile_k);
    s->block[0] = m.threads;
    s->shared_bytes = m.shared_bytes;
    s->blocks_per_multiprocessor = attention_mma_blocks(&m, m.threads);
    s->trip = a->tile_k;
}

static void emit(const attention *a)
{
    ptx_fn *f = a->f;
    mma m = attention_mma_init(a, a->tile_k);
    ptx_val tid = ptx_tid_x(f), shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    init_copies(&m, shared, tid);
    attention_mma_add_tiles(&m, NULL, add_tile, &m);
    attention_find_before(&m.a);
    attention_finish(&m.a, store_parts, store_results, &m);
}

const attention_strategy attention_strategy_mma = {shape, emit};
