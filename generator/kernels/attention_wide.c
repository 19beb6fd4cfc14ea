/* attention on tensor cores with rows of more than 256 elements, from sm_80 on: sums of O for such rows do not fit the
 * registers of a warp that makes whole rows.
 *
 * Eight warps share a tile. For the scores they divide rows and keys: a warp has a block of 16 rows, and the keys of its
 * group. For O they divide the columns: a warp has some columns of all rows. So weights go through shared memory, rounded
 * to pairs, and so do the largest score and the sum of weights of a row, of each group. Each lane has parts of two rows of
 * a block, eight apart; four lanes share a row.
 *
 * SHARED MEMORY holds the tile of Q, in whose place O is staged, and one tile each of K, V and weights. V is copied during
 * the first product, the next K during the second. Where that is more than 99 KB with 32 queries, V takes K's place: it is
 * copied behind the first product, the next K behind the second. Tiles lie in strips: see layout.
 *
 * SHIFTS. All warps keep the shifts of all rows, for their sums, and raise them alike, since they read the same numbers.
 * A warp keeps those of its block of scores once more.
 *
 * MANY KEYS: as attention_mma.c has it.
 */
#include "attention_copy.h"
#include "attention_pages.h"
#include "attention_score.h"
#include "attention_split.h"
#include "attention_total.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tensor.h"

enum {
    WARPS = 8,
    THREADS = WARPS * WARP_LANES,
    BLOCK_ROWS = 16,
    UNIT = 8, /* elements of 16 bytes, a row of a matrix of ldmatrix */
    MOST_BLOCKS = 4,
    MOST_OCTETS = 2,                     /* of keys, of a warp */
    MOST_FRAGMENTS = 512 / UNIT / WARPS, /* of columns, of a warp */
    ROW_NUMBERS = 16,                    /* a lane's: one of each row and group */
    ROW_STRIDE = ROW_NUMBERS + 4         /* eight lanes load four of them without a bank conflict */
};

typedef struct wide {
    attention a;
    ptx_fn *f;
    uint32_t blocks, groups; /* of rows; of keys */
    uint32_t steps, octets;  /* 16 elements of head_dim; 8 keys of a warp */
    uint32_t fragments;      /* 8 columns of a warp */
    bool shares;             /* V takes K's place */
    layout q_lines, k_lines, v_lines, out_lines, weight_lines;
    uint32_t numbers, shared_bytes; /* where the rows' numbers begin; where they end */
    attention_copier copier;
    attention_panel k, v;
    attention_pages pages;
    ptx_val lane, warp, block, group, shared;
    ptx_val key;                         /* the tile's first, whose rows of K are on their way */
    ptx_val q_at, k_at, v_at, weight_at; /* this lane's rows for ldmatrix */
    ptx_val weight_to[MOST_OCTETS];      /* its first row's pair of each octet */
    ptx_val numbers_at,
        number_to; /* its rows' numbers, of all blocks; its own group's, of its block's first row */
    ptx_val zero;
    softmax_row own[2];               /* of its scores: the sums are of the warp's keys */
    softmax_row row[2 * MOST_BLOCKS]; /* of its sums of V */
    ptx_val score[MOST_OCTETS][4], sum[MOST_BLOCKS][MOST_FRAGMENTS][4];
    ptx_val shrink[2 * MOST_BLOCKS]; /* of the rows' sums of V, by sinks */
} wide;

/* ---- products ------------------------------------------------------------------------------------------------------ */

static void multiply_scores(wide *w)
{
    ptx_fn *f = w->f;
    const ptx_val zeros[4] = {w->zero, w->zero, w->zero, w->zero};
    ptx_val q[4], k[4];
    for (uint32_t step = 0; step < w->steps; step++) {
        ptx_ldmatrix(f, 4, q, shared_at(f, w->a.type, w->q_at, layout_unit(&w->q_lines, 2 * step)));
        ptx_ldmatrix(f, 2 * (int)w->octets, k,
                     shared_at(f, w->a.type, w->k_at, layout_unit(&w->k_lines, 2 * step)));
        for (uint32_t o = 0; o < w->octets; o++) {
            ptx_val first[4];
            if (step > 0) {
                tensor_multiply(f, w->a.type, w->score[o], q, &k[2 * o], w->score[o]);
                continue;
            }
            ptx_mma(f, tensor_shape(w->a.type, true), first, q, &k[2 * o], zeros);
            for (int i = 0; i < 4; i++)
                w->score[o][i] = ptx_var(f, first[i]);
        }
    }
}

/* O += weights * V. */
static void multiply_values(wide *w)
{
    ptx_fn *f = w->f;
    ptx_val weight[MOST_BLOCKS][4], v[4];
    for (uint32_t step = 0; step < w->a.tile_k / 16; step++) {
        for (uint32_t b = 0; b < w->blocks; b++) {
            uint32_t byte = b * BLOCK_ROWS * w->weight_lines.row_bytes;
            byte += layout_unit(&w->weight_lines, 2 * step);
            ptx_ldmatrix(f, 4, weight[b], shared_at(f, w->a.type, w->weight_at, byte));
        }
        for (uint32_t n = 0; n < w->fragments; n += 2) {
            uint32_t byte = step * 16 * w->v_lines.row_bytes + layout_unit(&w->v_lines, n);
            ptx_ldmatrix_trans(f, 4, v, shared_at(f, w->a.type, w->v_at, byte));
            for (uint32_t b = 0; b < w->blocks; b++) {
                tensor_multiply(f, w->a.type, w->sum[b][n], weight[b], &v[0], w->sum[b][n]);
                tensor_multiply(f, w->a.type, w->sum[b][n + 1], weight[b], &v[2], w->sum[b][n + 1]);
            }
        }
    }
}

/* ---- numbers of rows ------------------------------------------------------------------------------------------------- */

/* A number of each of this warp's rows of scores, for all warps; four lanes have the same ones. */
static void share_numbers(wide *w, const ptx_val number[2])
{
    ptx_fn *f = w->f;
    PTX_IF (f, ptx_eq(f, ptx_and(f, w->lane, 3), 0)) {
        for (uint32_t r = 0; r < 2; r++)
            ptx_store(f, shared_at(f, PTX_F32, w->number_to, r * w->groups * 4), number[r]);
    }
}

/* Those of the lane's rows, of all groups. */
static void join_numbers(wide *w, ptx_op op, ptx_val joined[2 * MOST_BLOCKS])
{
    ptx_fn *f = w->f;
    ptx_val number[ROW_NUMBERS];
    for (uint32_t i = 0; i < ROW_NUMBERS; i += 4)
        ptx_load_vec(f, 4, &number[i], shared_at(f, PTX_F32, w->numbers_at, 4 * i), PTX_PLAIN);
    for (uint32_t i = 0; i < 2 * w->blocks; i++) {
        joined[i] = number[i * w->groups];
        for (uint32_t g = 1; g < w->groups; g++)
            joined[i] = ptx_op2(f, op, joined[i], number[i * w->groups + g], PTX_HERE);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* Of each row the lane has keys 2 * quarter and the next of each octet. */
static void shape_and_mask(wide *w, ptx_val key)
{
    ptx_fn *f = w->f;
    const attention *a = &w->a;
    attention_scores rows[2];
    ptx_val of_block = ptx_mad(f, w->block, BLOCK_ROWS, a->first);
    ptx_val row = ptx_add(f, of_block, ptx_shr(f, w->lane, 2));
    ptx_val of_group = ptx_mad(f, w->group, w->octets * UNIT, key);
    ptx_val mine = ptx_mad(f, ptx_and(f, w->lane, 3), 2, of_group);
    for (uint32_t r = 0; r < 2; r++) {
        ptx_val number = r == 0 ? row : ptx_add(f, row, 8);
        rows[r] = (attention_scores){.row = number, .first = mine, .count = 2 * w->octets};
        for (uint32_t n = 0; n < 2 * w->octets; n++) {
            rows[r].offsets[n] = n / 2 * UNIT + n % 2;
            rows[r].score[n] = &w->score[n / 2][2 * r + n % 2];
        }
    }
    attention_shape_scores(a, rows, 2);
    PTX_IF (f, attention_is_masked(a, key)) {
        ptx_rarely(f);
        attention_mask_scores(a, key, rows, 2);
    }
}

/* Only where the largest weight of some row of the tile has grown fourfold: as attention_mma.c has it. */
static void raise_rows(wide *w)
{
    ptx_fn *f = w->f;
    ptx_val most[2 * MOST_BLOCKS], has_grown = {0};
    join_numbers(w, PTX_OP_MAX, most);
    for (uint32_t i = 0; i < 2 * w->blocks; i++) {
        ptx_val is_over = ptx_gt(f, most[i], ptx_add(f, w->row[i].shift, 2));
        has_grown = i == 0 ? is_over : ptx_or(f, has_grown, is_over);
    }
    PTX_IF (f, ptx_vote_any(f, has_grown)) {
        ptx_rarely(f);
        for (uint32_t i = 0; i < 2 * w->blocks; i++) {
            ptx_val shrink = softmax_raise(f, w->a.wide, &w->row[i], most[i]);
            for (uint32_t n = 0; n < 2 * w->fragments; n++)
                ptx_mul_to(f, w->sum[i / 2][n / 2][i % 2 * 2 + n % 2], shrink);
        }
        /* Raises the shifts of the warp's scores: again from shared memory, since the block's number is no constant. */
        ptx_val first = ptx_sub(f, w->number_to, ptx_mul(f, w->group, 4));
        for (uint32_t r = 0; r < 2; r++) {
            ptx_val of_row = ptx_load(f, shared_at(f, PTX_F32, first, r * w->groups * 4));
            for (uint32_t g = 1; g < w->groups; g++)
                of_row =
                    ptx_max(f, of_row, ptx_load(f, shared_at(f, PTX_F32, first, (r * w->groups + g) * 4)));
            ptx_mul_to(f, w->own[r].sum, softmax_raise(f, w->a.wide, &w->own[r], of_row));
        }
    }
}

static void weigh_rows(wide *w)
{
    ptx_fn *f = w->f;
    for (uint32_t r = 0; r < 2; r++) {
        ptx_val minus = softmax_minus(f, w->a.wide, &w->own[r]);
        for (uint32_t o = 0; o < w->octets; o++) {
            ptx_val pair[2];
            for (uint32_t i = 0; i < 2; i++) {
                ptx_val x = ptx_fma(f, w->score[o][2 * r + i], w->a.factor, minus);
                pair[i] = softmax_exp2(f, w->a.wide, x);
                ptx_add_to(f, w->own[r].sum, pair[i]);
            }
            ptx_val word = narrow_pair(f, w->a.type, pair[0], pair[1]);
            ptx_store(f,
                      shared_at(f, PTX_U32, w->weight_to[o],
                                w->weight_lines.start + r * 8 * w->weight_lines.row_bytes),
                      word);
        }
    }
}

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

static void wait_for_copies(wide *w)
{
    ptx_cp_async_wait_all(w->f);
    ptx_barrier(w->f);
}

static void add_tile(void *of, ptx_val counted)
{
    wide *w = of;
    ptx_fn *f = w->f;
    const attention *a = &w->a;
    ptx_val none = ptx_u32(0), key = w->key;
    wait_for_copies(w);
    attention_turn_pages(&w->pages, counted);
    if (!w->shares)
        attention_copy_rows(&w->v, key, a->keys, none);
    attention_lay_out_next(&w->pages, counted);
    multiply_scores(w);
    shape_and_mask(w, key);
    /* The largest scores of this warp's keys, times the factor. */
    ptx_val most[2];
    for (uint32_t r = 0; r < 2; r++) {
        most[r] = ptx_max(f, w->score[0][2 * r], w->score[0][2 * r + 1]);
        for (uint32_t n = 2; n < 2 * w->octets; n++)
            most[r] = ptx_max(f, most[r], w->score[n / 2][2 * r + n % 2]);
        most[r] = ptx_mul(f, ptx_reduce_lanes(f, PTX_OP_MAX, 4, most[r]), w->a.factor);
    }
    share_numbers(w, most);
    ptx_barrier(f);
    if (w->shares)
        attention_copy_rows(&w->v, key, a->keys, none);
    raise_rows(w);
    weigh_rows(w);
    wait_for_copies(w);
    ptx_val behind = ptx_add(f, counted, a->tile_k), next = attention_key(a, behind);
    attention_turn_pages(&w->pages, behind);
    if (!w->shares)
        attention_copy_rows(&w->k, next, a->keys, none);
    multiply_values(w);
    if (w->shares) {
        ptx_barrier(f);
        attention_copy_rows(&w->k, next, a->keys, none);
    }
    ptx_set(f, w->key, next);
}

/* The total of V's sums has the rows' shifts, that of the weights' sums the sums. */
static void add_tiles(wide *w)
{
    const attention *a = &w->a;
    attention_sums sums[MOST_BLOCKS], own = {w->own, NULL};
    for (uint32_t b = 0; b < w->blocks; b++)
        sums[b] = (attention_sums){&w->row[2 * b], w->sum[b]};
    attention_total total[2];
    total[0] = attention_init_total(a, sums, w->blocks, w->fragments);
    total[1] = attention_init_total(a, &own, 1, 0);
    attention_add_tiles(total, 2, ATTENTION_CHUNK, NULL, add_tile, w);
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* The number of each of the lane's rows. */
static void number_rows(const wide *w, ptx_val numbers[2 * MOST_BLOCKS])
{
    ptx_fn *f = w->f;
    numbers[0] = ptx_add(f, ptx_shr(f, w->lane, 2), w->a.first);
    for (uint32_t i = 1; i < 2 * w->blocks; i++)
        numbers[i] = ptx_add(f, numbers[0], 8 * i);
}

static void join_sums(wide *w)
{
    ptx_fn *f = w->f;
    ptx_val sum[2], joined[2 * MOST_BLOCKS];
    for (uint32_t r = 0; r < 2; r++)
        sum[r] = ptx_reduce_lanes(f, PTX_OP_ADD, 4, w->own[r].sum);
    wait_for_copies(w);
    share_numbers(w, sum);
    ptx_barrier(f);
    join_numbers(w, PTX_OP_ADD, joined);
    for (uint32_t i = 0; i < 2 * w->blocks; i++)
        ptx_set(f, w->row[i].sum, joined[i]);
}

/* Stores O where Q was; a warp has whole strips. */
static void stage_rows(wide *w)
{
    ptx_fn *f = w->f;
    ptx_val row = ptx_shr(f, w->lane, 2), quarter = ptx_and(f, w->lane, 3);
    ptx_val unit = ptx_mul(f, w->warp, w->fragments), first = ptx_mad(f, quarter, 4, w->shared);
    ptx_val at[2];
    for (uint32_t odd = 0; odd < 2; odd++)
        at[odd] = ptx_add(f, layout_at(f, &w->out_lines, row, ptx_add(f, unit, odd)), first);
    for (uint32_t i = 0; i < 2 * w->blocks; i++) {
        ptx_val share = ptx_mul(f, softmax_share(f, w->a.wide, w->row[i].sum), w->shrink[i]);
        for (uint32_t n = 0; n < w->fragments; n++) {
            uint32_t byte = 8 * i * w->out_lines.row_bytes + layout_unit(&w->out_lines, n - n % 2);
            const ptx_val *sum = &w->sum[i / 2][n][i % 2 * 2];
            ptx_val low = ptx_mul(f, sum[0], share), high = ptx_mul(f, sum[1], share);
            ptx_val word = narrow_pair(f, w->a.type, low, high);
            ptx_store(f, shared_at(f, PTX_U32, at[n % 2], byte), word);
        }
    }
}

static void store_results(void *of)
{
    wide *w = of;
    ptx_fn *f = w->f;
    ptx_val numbers[2 * MOST_BLOCKS];
    softmax_row *rows[2 * MOST_BLOCKS];
    number_rows(w, numbers);
    for (uint32_t i = 0; i < 2 * w->blocks; i++)
        rows[i] = &w->row[i];
    attention_add_sinks(&w->a, numbers, rows, w->shrink, 2 * w->blocks);
    stage_rows(w);
    ptx_barrier(f);
    attention_store_rows(&w->a, w->out_lines, w->shared, ptx_u32(0), w->a.tile_q, w->copier.tid, THREADS);
    /* One lane of four, of the first warp. */
    ptx_val wanted = ptx_ne(f, ptx_address(f, w->a.lse), 0);
    ptx_val is_mine = ptx_eq(f, ptx_and(f, w->copier.tid, THREADS - WARP_LANES + 3), 0);
    PTX_IF (f, ptx_and(f, is_mine, wanted)) {
        for (uint32_t i = 0; i < 2 * w->blocks; i++) {
            ptx_val to = attention_log_at(&w->a, numbers[i]);
            ptx_val log = softmax_log(f, w->a.wide, w->row[i].sum, w->row[i].shift);
            PTX_WHEN (f, ptx_lt(f, numbers[i], w->a.rows)) {
                ptx_store(f, to, log);
            }
        }
    }
}

/* Stores this part: pairs of columns, eight apart, of each of the lane's rows. */
static void store_parts(void *of)
{
    wide *w = of;
    ptx_fn *f = w->f;
    attention_slice slices[2 * MOST_BLOCKS];
    ptx_val sums[2 * MOST_BLOCKS][2 * MOST_FRAGMENTS], numbers[2 * MOST_BLOCKS];
    ptx_val of_warp = ptx_mul(f, w->warp, w->fragments * UNIT);
    ptx_val column = ptx_mad(f, ptx_and(f, w->lane, 3), 2, of_warp);
    number_rows(w, numbers);
    for (uint32_t i = 0; i < 2 * w->blocks; i++) {
        for (uint32_t n = 0; n < 2 * w->fragments; n++)
            sums[i][n] = w->sum[i / 2][n / 2][i % 2 * 2 + n % 2];
        slices[i] = (attention_slice){numbers[i], column, 2, UNIT, w->fragments, &w->row[i], sums[i]};
    }
    attention_leave_part(&w->a, slices, 2 * w->blocks, w->copier.tid);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* Q, in whose place O is staged, then K, V, weights and numbers. */
static void lay_out_tiles(wide *w, bool shares)
{
    const uint32_t rows = w->a.tile_q, keys = w->a.tile_k, units = w->a.head_dim / UNIT;
    const uint32_t v_units = w->a.head_dim_v / UNIT;
    w->shares = shares;
    w->q_lines = attention_strips(0, rows, units, THREADS);
    w->out_lines = attention_strips(0, rows, v_units, THREADS);
    const uint32_t q_end = layout_end(&w->q_lines, rows, units);
    const uint32_t out_end = layout_end(&w->out_lines, rows, v_units);
    w->k_lines = attention_strips(q_end > out_end ? q_end : out_end, keys, units, THREADS);
    const uint32_t k_end = layout_end(&w->k_lines, keys, units);
    w->v_lines = attention_strips(shares ? w->k_lines.start : k_end, keys, v_units, THREADS);
    const uint32_t v_end = layout_end(&w->v_lines, keys, v_units);
    w->weight_lines = attention_strips(v_end > k_end ? v_end : k_end, rows, keys / UNIT, THREADS);
    w->numbers = layout_end(&w->weight_lines, rows, keys / UNIT);
    w->shared_bytes = w->numbers + 8 * ROW_STRIDE * 4;
}

static wide geometry(attention of)
{
    wide w = {.a = of, .f = of.f};
    const attention *a = &w.a;
    w.blocks = a->tile_q / BLOCK_ROWS;
    w.groups = WARPS / w.blocks;
    w.steps = a->head_dim / 16;
    w.octets = a->tile_k / UNIT / w.groups;
    w.fragments = a->head_dim_v / UNIT / WARPS;
    lay_out_tiles(&w, false);
    if (a->tile_q == 32 && w.shared_bytes > SHARED_SM_86)
        lay_out_tiles(&w, true);
    return w;
}

/* Lane 8 * i + j points to row j of matrix i. For Q, V and weights the matrices are rows 0-7 and 8-15 of the first unit, then
 * of the second; for K the two units of keys 0-7, then of keys 8-15. */
static void init_lane(wide *w)
{
    ptx_fn *f = w->f;
    ptx_val shared = w->shared;
    ptx_val in_octet = ptx_and(f, w->lane, 7), upper = ptx_shr(f, w->lane, 4);
    ptx_val odd = ptx_bfe(f, w->lane, 3, 1), in_16 = ptx_and(f, w->lane, 15);
    ptx_val row = ptx_shr(f, w->lane, 2), first_octet = ptx_mul(f, w->group, w->octets);
    ptx_val q_row = ptx_mad(f, w->block, BLOCK_ROWS, in_16);
    ptx_val k_row = ptx_mad(f, first_octet, UNIT, in_octet);
    if (w->octets > 1)
        k_row = ptx_mad(f, upper, UNIT, k_row);
    ptx_val v_unit = ptx_mad(f, w->warp, w->fragments, upper);
    w->q_at = ptx_add(f, layout_at(f, &w->q_lines, q_row, upper), shared);
    w->k_at = ptx_add(f, layout_at(f, &w->k_lines, k_row, odd), shared);
    w->v_at = ptx_add(f, layout_at(f, &w->v_lines, in_16, v_unit), shared);
    w->weight_at = ptx_add(f, layout_at(f, &w->weight_lines, in_16, upper), shared);
    ptx_val own_row = ptx_mad(f, w->block, BLOCK_ROWS, row);
    ptx_val pair = ptx_mad(f, ptx_and(f, w->lane, 3), 4, shared);
    for (uint32_t o = 0; o < w->octets; o++) {
        ptx_val octet = ptx_add(f, first_octet, o);
        w->weight_to[o] = ptx_add(f, layout_at(f, &w->weight_lines, own_row, octet), pair);
    }
    ptx_val numbers = ptx_add(f, shared, w->numbers);
    w->numbers_at = ptx_mad(f, row, ROW_STRIDE * 4, numbers);
    ptx_val of_block = ptx_mad(f, w->block, 2 * w->groups * 4, w->numbers_at);
    w->number_to = ptx_mad(f, w->group, 4, of_block);
}

static void shape(kiln_shape *s, const attention *a)
{
    const wide w = geometry(*a);
    s->block[0] = THREADS;
    s->shared_bytes = w.shared_bytes;
    s->blocks_per_multiprocessor = 1;
    s->trip = a->tile_k;
}

static void emit(const attention *a)
{
    ptx_fn *f = a->f;
    wide w = geometry(*a);
    w.copier = (attention_copier){&w.a, THREADS, 2, true, ptx_tid_x(f)};
    w.shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    w.lane = ptx_laneid(f);
    w.warp = ptx_warpid_x(f);
    w.block = ptx_rem(f, w.warp, w.blocks);
    w.group = ptx_div(f, w.warp, w.blocks);
    w.zero = ptx_var(f, ptx_f32(0));
    for (uint32_t r = 0; r < 2; r++)
        softmax_init_row(f, w.a.wide, &w.own[r]);
    for (uint32_t i = 0; i < 2 * w.blocks; i++)
        softmax_init_row(f, w.a.wide, &w.row[i]);
    for (uint32_t i = 0; i < w.blocks * w.fragments * 4; i++)
        w.sum[i / 4 / w.fragments][i / 4 % w.fragments][i % 4] = ptx_var(f, ptx_f32(0));
    ptx_val none = ptx_u32(0);
    attention_panel q = attention_init_panel(&w.copier, w.a.q, w.a.tile_q, w.a.head_dim, w.shared, w.q_lines);
    w.k = attention_init_panel(&w.copier, w.a.k, w.a.tile_k, w.a.head_dim, w.shared, w.k_lines);
    w.v = attention_init_panel(&w.copier, w.a.v, w.a.tile_k, w.a.head_dim_v, w.shared, w.v_lines);
    init_lane(&w);
    w.pages = attention_init_pages(&w.a, 0);
    attention_copy_rows(&q, w.a.first, w.a.q_end, none);
    w.key = ptx_var(f, attention_key(&w.a, w.a.first_key));
    attention_copy_rows(&w.k, w.key, w.a.keys, none);
    add_tiles(&w);
    join_sums(&w);
    attention_find_before(&w.a);
    attention_finish(&w.a, store_parts, store_results, &w);
}

const attention_strategy attention_strategy_wide = {shape, emit};
