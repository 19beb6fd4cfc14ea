/* attention on tensor cores with rows of more than 256 elements, from sm_80 on: the sums of O of such rows do not fit into
 * the registers of a warp that makes whole rows.
 *
 * Eight warps share a tile. For the scores they divide rows and keys: a warp has a block of 16 rows, and the keys of its
 * group. For O they divide the columns: a warp has some columns of all rows. So weights go through shared memory, rounded to
 * pairs, and so do each group's largest score and sum of weights per row. Each lane has parts of two rows of a block, eight
 * apart; four lanes share a row.
 *
 * SHARED MEMORY holds the tile of Q, which O later overlays, and one tile each of K, V and weights. V is copied during the
 * first product, the next K during the second. If that is more than 99 KB with 32 queries, V overlays K: it is copied after
 * the first product, the next K after the second. Tiles have strips: see attention_strips.
 *
 * SHIFTS. All warps keep the shifts of all rows, for their sums; all compute the same new maximum. A warp has a second copy
 * for its block of scores: sums of weights use it, sums of V the shifts of all rows.
 */
#include "attention_warp.h"
#include "device/shared.h"

enum {
    WARPS = 8,
    MOST_WARP_OCTETS = 2,         /* of keys */
    ROW_NUMBERS = 16,             /* numbers that a lane joins: one of each row and group */
    ROW_STRIDE = ROW_NUMBERS + 4, /* eight lanes load four of them without a bank conflict */
    NUMBER_BYTES = 4
};

typedef struct wide {
    attention_warp m; /* its block of scores, its columns of the rows of O */
    layout weight_lines;
    uint32_t numbers_start;
    ptx_val weight_at;                   /* this lane's row of weights for ldmatrix */
    ptx_val weight_to[MOST_WARP_OCTETS]; /* address of this lane's two weights of each octet, first row */
    ptx_val numbers_at;                  /* address of the numbers of this lane's rows, all blocks */
    ptx_val number_to;                   /* address of its group's number of its block's first row */
    attention_rows own; /* rows of its scores: no sums of V; sums of weights over the warp's keys */
} wide;

/* ---- numbers of rows ------------------------------------------------------------------------------------------------- */

static uint32_t number_byte(const wide *w, uint32_t row, uint32_t group)
{
    return (row * w->m.groups + group) * NUMBER_BYTES;
}

/* Shares a number for each of this warp's rows of scores with all warps: stores it, and waits for theirs. Four lanes have the
 * same numbers. */
static void share_numbers(wide *w, const ptx_val number[2])
{
    ptx_fn *f = w->m.a->f;
    PTX_IF (f, ptx_eq(f, attention_lane_t(&w->m), 0)) {
        for (uint32_t i = 0; i < 2; i++)
            ptx_store(f, shared_at(f, PTX_F32, w->number_to, number_byte(w, i, 0)), number[i]);
    }
    ptx_barrier(f);
}

static void join_numbers(wide *w, ptx_op op, ptx_val joined[2 * MOST_BLOCKS])
{
    ptx_fn *f = w->m.a->f;
    ptx_val number[ROW_NUMBERS];
    for (uint32_t i = 0; i < ROW_NUMBERS; i += 4)
        ptx_load_vec(f, 4, &number[i], shared_at(f, PTX_F32, w->numbers_at, i * NUMBER_BYTES), PTX_PLAIN);
    for (uint32_t i = 0; i < ROW_NUMBERS / w->m.groups; i++) {
        joined[i] = number[i * w->m.groups];
        for (uint32_t g = 1; g < w->m.groups; g++)
            joined[i] = ptx_op2(f, op, joined[i], number[i * w->m.groups + g], PTX_HERE);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* Raises the shifts of the warp's scores: from shared memory, since the block's number is not constant. */
static void raise_own(attention_warp *m)
{
    wide *w = (wide *)m;
    ptx_fn *f = m->a->f;
    ptx_val first = ptx_sub(f, w->number_to, ptx_mul(f, m->group, NUMBER_BYTES));
    for (uint32_t i = 0; i < 2; i++) {
        softmax_row *row = &w->own.row[i];
        ptx_val shift = ptx_load(f, shared_at(f, PTX_F32, first, number_byte(w, i, 0)));
        for (uint32_t g = 1; g < m->groups; g++)
            shift = ptx_max(f, shift, ptx_load(f, shared_at(f, PTX_F32, first, number_byte(w, i, g))));
        ptx_mul_to(f, row->sum, softmax_raise(f, m->a->wide, row, shift));
    }
}

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

static void weigh(attention_warp *m, ptx_val key)
{
    wide *w = (wide *)m;
    const attention *a = m->a;
    ptx_fn *f = a->f;
    attention_make_scores(m, key);
    ptx_val shift[2], joined[2 * MOST_BLOCKS]; /* for this warp's keys, and for all */
    for (uint32_t i = 0; i < 2; i++)
        shift[i] = attention_find_shift(a, &m->scores, i, FRAGMENT_LANES);
    share_numbers(w, shift);
    if (m->v_in_k)
        attention_copy_rows(&m->v.panel, key);
    join_numbers(w, PTX_OP_MAX, joined);
    attention_raise_rows(m, joined, raise_own);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t byte = w->weight_lines.start + layout_rows(&w->weight_lines, OCTET * i);
        ptx_val minus = softmax_minus(f, a->wide, &w->own.row[i]);
        for (uint32_t o = 0; o < m->scores.count; o++) {
            ptx_val word = attention_weigh_pair(m, &w->own.row[i], minus, i, o);
            ptx_store(f, shared_at(f, PTX_U32, w->weight_to[o], byte), word);
        }
    }
}

static void add_values(attention_warp *m)
{
    const wide *w = (const wide *)m;
    const layout *lines = &w->weight_lines;
    ptx_fn *f = m->a->f;
    for (uint32_t o = 0; o < m->keys / OCTET; o += 2) {
        for (uint32_t b = 0; b < attention_blocks(&m->rows.o); b++) {
            const uint32_t byte = layout_rows(lines, b * BLOCK_ROWS) + layout_unit(lines, o);
            ptx_ldmatrix(f, 4, &m->weight[b][2 * o], shared_at(f, m->a->type, w->weight_at, byte));
        }
        attention_add_keys(m, o);
    }
}

/* One total has V's sums and the rows' shifts, the other the sums of weights, added over the groups afterwards. */
static void add_tiles(wide *w)
{
    attention_warp *m = &w->m;
    ptx_fn *f = m->a->f;
    attention_rows *const both[] = {&m->rows, &w->own};
    attention_add_chunks(m, both, 2, NULL, attention_add_tile);
    ptx_val sum[2], joined[2 * MOST_BLOCKS];
    for (uint32_t i = 0; i < 2; i++)
        sum[i] = ptx_reduce_lanes(f, PTX_OP_ADD, FRAGMENT_LANES, w->own.row[i].sum);
    attention_wait_for_copies(m);
    share_numbers(w, sum);
    join_numbers(w, PTX_OP_ADD, joined);
    for (uint32_t i = 0; i < m->rows.o.rows; i++)
        ptx_set(f, m->rows.row[i].sum, joined[i]);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* Q, which O later overlays, then K, V, weights and numbers. Returns their end. */
static uint32_t lay_out(wide *w, bool v_in_k)
{
    const uint32_t rows = w->m.a->tile_q, units = w->m.keys / OCTET;
    attention_lay_out(&w->m, false, v_in_k);
    w->numbers_start = attention_strips(&w->weight_lines, w->m.shared_bytes, rows, units, w->m.threads);
    return w->numbers_start + OCTET * ROW_STRIDE * NUMBER_BYTES;
}

static wide geometry(attention *a)
{
    const uint32_t blocks = a->tile_q / BLOCK_ROWS, groups = WARPS / blocks;
    wide w = {.m = attention_warp_geometry(a, WARPS, blocks, a->tile_k)};
    w.m.weigh = weigh;
    w.m.add_values = add_values;
    w.m.groups = groups;
    w.m.holds_q = false;
    w.m.scores.rows = w.own.o.rows = 2;
    w.m.scores.count /= groups;
    w.m.rows.o.count /= WARPS;
    w.m.v.steps /= WARPS;
    w.m.shared_bytes = lay_out(&w, false);
    if (a->tile_q == 32 && w.m.shared_bytes > SHARED_SM_86)
        w.m.shared_bytes = lay_out(&w, true);
    return w;
}

static void shape(kiln_shape *s, attention *a)
{
    const wide w = geometry(a);
    attention_warp_shape(s, &w.m);
    s->blocks_per_multiprocessor = 1;
}

static void emit(attention *a)
{
    ptx_fn *f = a->f;
    wide w = geometry(a);
    attention_warp *m = &w.m;
    attention_rows *rows = &m->rows;
    attention_warp_init(m);
    attention_init_rows(a, &w.own);
    m->row_warp = ptx_rem(f, m->warp, attention_blocks(&rows->o));
    m->group = ptx_div(f, m->warp, attention_blocks(&rows->o));
    attention_init_panels(m, &m->copier, m->shared);
    ptx_val g = attention_lane_g(m);
    attention_init_operands(m, m->shared);
    w.weight_at = ptx_add(f, layout_at(f, &w.weight_lines, m->in_16, m->upper), m->shared);
    ptx_val own_row = ptx_mad(f, m->row_warp, BLOCK_ROWS, g);
    ptx_val pair = ptx_mad(f, attention_lane_t(m), 4, m->shared);
    for (uint32_t o = 0; o < m->scores.count; o++) {
        ptx_val octet = ptx_add(f, m->first_octet, o);
        w.weight_to[o] = ptx_add(f, layout_at(f, &w.weight_lines, own_row, octet), pair);
    }
    ptx_val numbers = ptx_add(f, m->shared, w.numbers_start);
    w.numbers_at = ptx_mad(f, g, ROW_STRIDE * NUMBER_BYTES, numbers);
    ptx_val of_block = ptx_mad(f, m->row_warp, number_byte(&w, 2, 0), w.numbers_at);
    w.number_to = ptx_mad(f, m->group, NUMBER_BYTES, of_block);
    attention_start_copies(m);
    add_tiles(&w);
    attention_find_before(a);
    ptx_val of_warp = ptx_mul(f, m->warp, rows->o.count * OCTET);
    ptx_val column = ptx_mad(f, attention_lane_t(m), 2, of_warp);
    ptx_val first = ptx_add(f, attention_lane_g(m), a->first);
    attention_finish(a, rows, first, column, m->copier.tid, attention_store_results, m);
}

const attention_strategy attention_strategy_wide = {shape, emit};
