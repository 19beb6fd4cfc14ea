/* A row is units of 16 bytes. A team of threads copies neighbouring units of a row; a thread's units are a team apart, at constant
 * offsets. From one of a thread's rows to the next the address grows by a constant step, except in pages and with pack_gqa. */
#include "attention_copy.h"
#include "device/copy.h"
#include "device/if_needed.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tail.h"

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

/* Threads of a team: 8, 4 or 2, or one per unit if the number of units is odd. If it is even, at least eight rows are copied at
 * once, so a thread's rows are whole octets apart, which pages and strips do not change. */
static uint32_t team_of(uint32_t units, uint32_t threads)
{
    return units % 8 == 0 && threads >= 8 * OCTET ? 8 : units % 4 == 0 ? 4 : units % 2 == 0 ? 2 : units;
}

uint32_t attention_strips(layout *lines, uint32_t start, uint32_t rows, uint32_t units, uint32_t threads)
{
    *lines = (layout){.start = start, .row_bytes = units * UNIT_BYTES, .unit_bytes = UNIT_BYTES};
    if (units % 2 == 0) {
        /* A team's strips begin in banks that its other rows leave free. */
        const uint32_t gap = 16 / team_of(units, threads) % 8 * UNIT_BYTES;
        lines->row_bytes = 2 * UNIT_BYTES;
        lines->strip_bytes = rows * 2 * UNIT_BYTES + gap;
        lines->turn_count = 1;
        lines->turns[0] = (layout_turn){.row_bit = 2, .unit_bit = 0};
    }
    return layout_end(lines, rows, units);
}

/* Bytes are U64. */
static ptx_val at_bytes(ptx_fn *f, const attention_matrix *m, ptx_val at, ptx_val bytes)
{
    return ptx_cast_ptr(f, ptx_at(f, ptx_cast_ptr(f, at, PTX_U8), bytes), m->type);
}

/* Returns `at` moved to a row within its octet. */
static ptx_val in_octet(ptx_fn *f, const attention_matrix *m, ptx_val at, ptx_val row)
{
    return ptx_at(f, at, ptx_mul_wide(f, ptx_and(f, row, OCTET - 1), m->row_stride));
}

ptx_val attention_line_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row)
{
    if (!m->is_paged)
        return attention_row_at(a, m, at, row);
    ptx_val octet = attention_load_octet(a, m, attention_octet_at(a, row), 0);
    return at_bytes(a->f, m, in_octet(a->f, m, at, row), octet);
}

/* ---- units ------------------------------------------------------------------------------------------------------------ */

/* Stores a unit of decoded codes. Without padding, neighbouring lanes store 64 bytes apart: then every other pair of lanes
 * begins with the second half, so that two lanes share banks, not four. */
static void store_widened(const attention_panel *p, ptx_val to, ptx_val x[UNIT_BYTES])
{
    enum { HALF = UNIT_BYTES / 2, HALF_BYTES = HALF * 4 };
    ptx_fn *f = p->by.a->f;
    ptx_val halves[2] = {to, ptx_at_bytes(f, to, HALF_BYTES)};
    if (p->lines.row_bytes == p->row_units * p->lines.unit_bytes) {
        ptx_val swaps = ptx_ne(f, ptx_and(f, p->by.tid, 2), 0), at = ptx_address(f, to);
        for (uint32_t i = 0; i < HALF; i++) {
            ptx_val first = x[i];
            x[i] = ptx_select(f, swaps, x[HALF + i], first);
            x[HALF + i] = ptx_select(f, swaps, first, x[HALF + i]);
        }
        ptx_val ahead = ptx_select(f, swaps, ptx_u32(HALF_BYTES), 0);
        halves[0] = shared_at(f, PTX_F32, ptx_add(f, at, ahead), 0);
        halves[1] = shared_at(f, PTX_F32, ptx_sub(f, at, ahead), HALF_BYTES);
    }
    for (uint32_t i = 0; i < UNIT_BYTES; i += 4)
        ptx_store_vec(f, 4, ptx_at_bytes(f, halves[i / HALF], i % HALF * 4), &x[i], PTX_PLAIN);
}

/* Copies a unit of elements, or zeros if out of bounds. */
static void copy_elements(const attention_panel *p, ptx_val from, ptx_val to, const ptx_val *in_bounds)
{
    const attention_copier *by = &p->by;
    const attention *a = by->a;
    const codes_values codes = attention_codes_of(a, PTX_F16, false);
    ptx_val words[4], x[UNIT_BYTES];
    if (p->from.type == a->wide || !by->widens) {
        (by->widens ? copy_now : copy_async)(a->f, UNIT_BYTES, to, from, in_bounds, PTX_NC);
        return;
    }
    tail_load(a->f, PTX_U32, 4, words, from, in_bounds, PTX_NC);
    to = ptx_cast_ptr(a->f, to, PTX_F32);
    if (p->from.type == PTX_S8) {
        for (uint32_t i = 0; i < 4; i++)
            codes_widen(a->f, &codes, words[i], &x[CODES * i]);
        store_widened(p, to, x);
        return;
    }
    widen_words(a->f, a->type, 4, words, x);
    ptx_store_vec(a->f, 4, to, &x[0], PTX_PLAIN);
    ptx_store_vec(a->f, 4, ptx_at_bytes(a->f, to, UNIT_BYTES), &x[4], PTX_PLAIN);
}

/* Copies one unit per thread, in the first `threads` of the busy threads. */
static void copy_units(const attention_panel *p, uint32_t threads, ptx_val from, ptx_val to,
                       const ptx_val *in_bounds)
{
    ptx_fn *f = p->by.a->f;
    IF_NEEDED (f, threads < p->busy, ptx_lt(f, p->by.tid, threads)) {
        copy_elements(p, from, to, in_bounds);
    }
}

/* With has_end, rows past the matrix's end are zeros; without it no row is past the end. */
static void copy_rounds(const attention_panel *p, ptx_val row, bool has_end, ptx_val element)
{
    ptx_fn *f = p->by.a->f;
    ptx_val mine[MOST_SLOTS] = {{0}}, from[MOST_SLOTS] = {{0}}, at[MOST_SLOTS] = {{0}};
    ptx_val step = {0}, octet = {0}, in_bounds;
    for (uint32_t s = 0; s < p->slots; s++) {
        mine[s] = ptx_add(f, p->row[s], row);
        from[s] = ptx_at(f, p->at[s], element);
        if (!p->from.is_paged)
            at[s] = attention_row_at(p->by.a, &p->from, from[s], mine[s]);
    }
    if (p->from.is_paged) /* a round's slots are in one octet */
        octet = attention_octet_at(p->by.a, mine[0]);
    if (p->round_rows < p->rows)
        step = ptx_mul_wide(f, p->from.row_stride, p->round_rows * p->from.bytes);
    for (uint32_t i = 0; i < p->rows / p->round_rows * p->slots; i++) {
        const uint32_t s = i % p->slots, first = i / p->slots * p->round_rows;
        if (first > 0 && (has_end || p->from.pack_gqa))
            mine[s] = ptx_add(f, mine[s], p->round_rows);
        if (p->from.is_paged) /* rows of a thread are a multiple of eight apart */
            at[s] = at_bytes(f, &p->from, from[s], attention_load_octet(p->by.a, &p->from, octet, first));
        else if (first > 0)
            at[s] = p->from.pack_gqa ? attention_row_at(p->by.a, &p->from, from[s], mine[s])
                                     : at_bytes(f, &p->from, at[s], step);
        if (has_end)
            in_bounds = ptx_lt(f, mine[s], p->from.end);
        for (uint32_t unit = 0; unit < p->row_units; unit += p->parts * p->team) {
            const uint32_t threads = (p->row_units - unit) * p->round_rows - s * p->by.threads;
            const uint32_t byte = first * p->lines.row_bytes + layout_unit(&p->lines, unit);
            ptx_val unit_at = ptx_at_const(f, at[s], unit * p->unit_elements);
            ptx_val to = shared_at(f, PTX_U32, p->to[s], byte);
            copy_units(p, threads, unit_at, to, has_end ? &in_bounds : NULL);
        }
    }
}

/* ---- panels ---------------------------------------------------------------------------------------------------------- */

/* Divides the threads into teams, and the copies into rounds. */
static void plan_rounds(attention_panel *p)
{
    const uint32_t threads = p->by.threads;
    p->team = team_of(p->row_units, threads);
    const bool is_odd = p->team % 2 != 0;
    uint32_t rows = is_odd ? OCTET : threads / p->team;
    while (is_odd && 2 * rows * p->team <= threads)
        rows *= 2;
    p->round_rows = rows < p->rows ? rows : p->rows;
    p->parts = is_odd ? 1 : threads / p->team / p->round_rows;
    p->slots = (p->round_rows * p->team + threads - 1) / threads;
    p->busy = p->slots > 1 ? threads : p->parts * p->round_rows * p->team;
}

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, layout lines)
{
    ptx_fn *f = by->a->f;
    attention_panel p = {.by = *by, .from = from, .rows = rows, .lines = lines};
    p.unit_elements = UNIT_BYTES / from.bytes;
    p.row_units = elements / p.unit_elements;
    if (by->widens)
        p.lines.unit_bytes = p.unit_elements * by->a->wide_bytes;
    plan_rounds(&p);
    for (uint32_t s = 0; s < p.slots; s++) {
        ptx_val unit = attention_plus(f, by->tid, s * by->threads), team = ptx_div(f, unit, p.team);
        ptx_val column = p.team % 2 == 0 ? ptx_and(f, unit, p.team - 1) : ptx_rem(f, unit, p.team);
        p.row[s] = team;
        if (p.parts > 1) {
            p.row[s] = ptx_and(f, team, p.round_rows - 1);
            column = ptx_mad(f, ptx_div(f, team, p.round_rows), p.team, column);
        }
        p.at[s] = ptx_at(f, from.first, ptx_mul(f, column, p.unit_elements));
        if (from.is_paged)
            p.at[s] = in_octet(f, &from, p.at[s], p.row[s]);
        p.to[s] = ptx_add(f, layout_at(f, &p.lines, p.row[s], column), to);
    }
    return p;
}

static void copy_bounded(const attention_panel *p, ptx_val row, ptx_val element)
{
    enum { FEW = 4 };
    ptx_fn *f = p->by.a->f;
    /* In asynchronous copies a bounds check takes an instruction or two. For a few copies ptxas would predicate both paths,
     * one without checks, and all warps would run both. */
    if (!p->by.widens && p->rows * p->row_units <= FEW * p->by.threads && ptx_has_sm(f, 80)) {
        copy_rounds(p, row, true, element);
        return;
    }
    ptx_val last = ptx_add(f, row, p->rows);
    PTX_IF (f, ptx_le(f, last, p->from.end)) {
        copy_rounds(p, row, false, element);
    }
    PTX_ELSE (f) {
        copy_rounds(p, row, true, element);
    }
}

void attention_copy_part(const attention_panel *p, ptx_val row, ptx_val element)
{
    ptx_fn *f = p->by.a->f;
    IF_NEEDED (f, p->busy < p->by.threads, ptx_lt(f, p->by.tid, p->busy)) {
        copy_bounded(p, row, element);
    }
}

/* ---- scales ---------------------------------------------------------------------------------------------------------- */

/* Copies scales from key `first` of the tile on, one of K and one of V per thread. */
static void copy_scales(const attention_copier *by, uint32_t first, uint32_t rows, ptx_val to, ptx_val row)
{
    enum { SCALE_BYTES = 4 };
    ptx_fn *f = by->a->f;
    const attention_matrix *const matrices[] = {&by->a->k_scales, &by->a->v_scales};
    for (uint32_t i = 0; i < 2; i++) {
        const attention_matrix *m = matrices[i];
        to = attention_plus(f, to, i * rows * SCALE_BYTES);
        ptx_val mine = attention_plus(f, by->tid, first), number = ptx_add(f, row, mine);
        ptx_val from = attention_line_at(by->a, m, m->first, number), in_bounds = ptx_lt(f, number, m->end);
        copy_word(f, shared_at(f, PTX_U32, ptx_mad(f, mine, SCALE_BYTES, to), 0), from, &in_bounds);
    }
}

void attention_copy_scales(const attention_copier *by, uint32_t rows, ptx_val to, ptx_val row)
{
    ptx_fn *f = by->a->f;
    for (uint32_t first = 0; first < rows; first += by->threads) {
        IF_NEEDED (f, first + by->threads > rows, ptx_lt(f, by->tid, rows - first)) {
            copy_scales(by, first, rows, to, row);
        }
    }
}

/* ---- O ----------------------------------------------------------------------------------------------------------------- */

void attention_store_rows(const attention *a, layout lines, ptx_val shared, ptx_val first, uint32_t rows,
                          ptx_val thread, uint32_t threads)
{
    ptx_fn *f = a->f;
    uint32_t units = a->head_dim_v / OCTET, team = team_of(units, ptx_block_x(f));
    for (uint32_t i = 0; i < rows * team; i += threads) {
        ptx_val has_unit, position = attention_plus(f, thread, i);
        ptx_val row = ptx_add(f, ptx_div(f, position, team), first);
        ptx_val of_team = ptx_rem(f, position, team);
        bool is_ragged = i + threads > rows * team;
        if (is_ragged)
            has_unit = ptx_lt(f, thread, rows * team - i);
        for (uint32_t n = 0; n < units; n += team) {
            ptx_val column = attention_plus(f, of_team, n);
            ptx_val from = ptx_add(f, layout_at(f, &lines, row, column), shared);
            ptx_val words[4], number = ptx_add(f, row, a->first);
            ptx_val in_bounds = ptx_lt(f, number, a->rows);
            if (is_ragged)
                in_bounds = ptx_and(f, in_bounds, has_unit);
            ptx_val out = attention_row_at(a, &a->out, a->out.first, number);
            ptx_val to = ptx_at(f, out, ptx_mul(f, column, OCTET));
            PTX_WHEN (f, in_bounds) {
                ptx_load_vec(f, 4, words, shared_at(f, PTX_U32, from, lines.start), PTX_PLAIN);
                ptx_store_vec(f, 4, ptx_cast_ptr(f, to, PTX_U32), words, PTX_PLAIN);
            }
        }
    }
}
