/* A row has U units of 16 bytes. If U is even, a team of gcd(U, 8) threads, 2, 4 or 8, and 4 of a single warp, takes
 * neighbouring units, and each thread the units of its row that are a team apart: these offsets are constants. If U is odd,
 * threads take units one by one, row after row. A thread's step from one unit to its next is always the same, except at the
 * end of a row. */
#include "attention_copy.h"
#include "attention_pages.h"
#include "device/copy.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tail.h"

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

/* The number of threads that take neighbouring units of a row: 8, 4 or 2, or one for each unit if their number is odd. At
 * least eight rows are taken at once: so a thread's rows are whole octets apart, unchanged by pages and strips. */
static uint32_t team_of(uint32_t units, uint32_t threads)
{
    return units % 8 == 0 && threads >= 8 * OCTET ? 8 : units % 4 == 0 ? 4 : units % 2 == 0 ? 2 : units;
}

layout attention_strips(uint32_t start, uint32_t rows, uint32_t units, uint32_t threads)
{
    const uint32_t team = team_of(units, threads);
    if (units % 2 != 0)
        return (layout){.start = start, .row_bytes = units * UNIT_BYTES, .unit_bytes = UNIT_BYTES};
    /* A team's strips begin in banks that its other rows leave free. */
    const uint32_t gap = 16 / team % 8 * UNIT_BYTES;
    return (layout){.start = start,
                    .row_bytes = 2 * UNIT_BYTES,
                    .unit_bytes = UNIT_BYTES,
                    .strip_bytes = rows * 2 * UNIT_BYTES + gap,
                    .turn_count = 1,
                    .turns = {{.row_bit = 2, .unit_bit = 0}}};
}

/* Bytes are U64. */
static ptx_val at_bytes(ptx_fn *f, const attention_matrix *m, ptx_val at, ptx_val bytes)
{
    return ptx_cast_ptr(f, ptx_at(f, ptx_cast_ptr(f, at, PTX_U8), bytes), m->type);
}

/* `at`, moved to a row within its octet. */
static ptx_val in_octet(ptx_fn *f, const attention_matrix *m, ptx_val at, ptx_val row)
{
    ptx_val in_octet = ptx_and(f, row, OCTET - 1);
    return ptx_at(f, at, ptx_mul_wide(f, in_octet, m->row_stride));
}

ptx_val attention_line_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row)
{
    if (!m->is_paged)
        return attention_row_at(a, m, at, row);
    ptx_val octet = attention_load_octet(a, m, attention_octet_at(a, row), 0);
    return at_bytes(a->f, m, in_octet(a->f, m, at, row), octet);
}

/* ---- even rows ------------------------------------------------------------------------------------------------------- */

/* There are parts * rows * team threads. The parts share the rounds that a team needs for a row. */
typedef struct teams {
    uint32_t team, rows, parts;
} teams;

static teams teams_of(const attention_panel *p)
{
    uint32_t team = team_of(p->row_units, p->by.threads), rows = p->by.threads;
    rows = rows / team < p->rows ? rows / team : p->rows;
    return (teams){team, rows, p->by.threads / team / rows};
}

/* Stores a unit of decoded codes. Without padding, neighbouring lanes store 64 bytes apart: then every other pair of lanes
 * begins with the second half, so that two lanes share banks, not four. */
static void store_widened(const attention_panel *p, ptx_val to, ptx_val x[UNIT_BYTES])
{
    enum { HALF = UNIT_BYTES / 2, HALF_BYTES = HALF * 4 };
    ptx_fn *f = p->by.a->f;
    ptx_val halves[2] = {to, ptx_at_bytes(f, to, HALF_BYTES)};
    if (p->lines.row_bytes == p->row_units * p->lines.unit_bytes) {
        ptx_val turns = ptx_ne(f, ptx_and(f, p->by.tid, 2), 0), at = ptx_address(f, to);
        for (uint32_t i = 0; i < HALF; i++) {
            ptx_val first = x[i];
            x[i] = ptx_select(f, turns, x[HALF + i], first);
            x[HALF + i] = ptx_select(f, turns, first, x[HALF + i]);
        }
        ptx_val ahead = ptx_select(f, turns, ptx_u32(HALF_BYTES), 0);
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
        (by->widens ? copy_unit_now : copy_unit)(a->f, to, from, in_bounds, PTX_NC);
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

/* Copies one unit per thread, for all threads or the first ones. */
static void copy_units(const attention_panel *p, uint32_t threads, ptx_val from, ptx_val address,
                       uint32_t bytes, const ptx_val *in_bounds)
{
    ptx_fn *f = p->by.a->f;
    ptx_val to = shared_at(f, PTX_U32, address, bytes);
    if (threads >= p->by.threads) {
        copy_elements(p, from, to, in_bounds);
        return;
    }
    PTX_IF (f, ptx_lt(f, p->by.tid, threads)) {
        copy_elements(p, from, to, in_bounds);
    }
}

static void copy_even(const attention_panel *p, ptx_val row, bool has_end, ptx_val element)
{
    ptx_fn *f = p->by.a->f;
    teams t = teams_of(p);
    uint32_t rounds = p->row_units / t.team, bytes = attention_bytes(&p->from);
    ptx_val mine = ptx_add(f, p->row, row), from = ptx_at(f, p->at, element), at, step, octet, in_bounds;
    if (p->from.is_paged)
        octet = attention_octet_at(p->by.a, mine);
    else
        at = attention_row_at(p->by.a, &p->from, from, mine);
    if (t.rows < p->rows)
        step = ptx_mul_wide(f, p->from.row_stride, t.rows * bytes);
    for (uint32_t first = 0; first < p->rows; first += t.rows) {
        if (first > 0 && (has_end || p->from.pack_gqa))
            mine = ptx_add(f, mine, t.rows);
        if (p->from.is_paged) /* rows of a thread are a multiple of eight apart */
            at = at_bytes(f, &p->from, from, attention_load_octet(p->by.a, &p->from, octet, first));
        else if (first > 0)
            at = p->from.pack_gqa ? attention_row_at(p->by.a, &p->from, from, mine)
                                  : at_bytes(f, &p->from, at, step);
        if (has_end)
            in_bounds = ptx_lt(f, mine, p->from.end);
        for (uint32_t round = 0; round < rounds; round += t.parts) {
            uint32_t units = round * t.team;
            copy_units(p, (rounds - round) * t.team * t.rows, ptx_at_const(f, at, units * p->unit_elements),
                       p->to, first * p->lines.row_bytes + layout_unit(&p->lines, units),
                       has_end ? &in_bounds : NULL);
        }
    }
}

/* ---- odd rows -------------------------------------------------------------------------------------------------------- */

/* A thread's unit, and the step to its next one. */
typedef struct walk {
    ptx_val from; /* the panel's first column */
    ptx_val row, column, at;
    ptx_val to;           /* without the units before it: only the padding before its row */
    bool has_hops;        /* else the next unit is computed from its row and column */
    ptx_val within, over; /* hops, bytes of global memory: within a row and into the next */
} walk;

static void find_unit(const attention_panel *p, walk *w)
{
    ptx_fn *f = p->by.a->f;
    ptx_val line = attention_line_at(p->by.a, &p->from, w->from, w->row);
    w->at = ptx_at(f, line, ptx_mul(f, w->column, p->unit_elements));
}

static void init_hops(const attention_panel *p, walk *w)
{
    ptx_fn *f = p->by.a->f;
    uint32_t units = p->row_units, rows = p->by.threads / units, columns = p->by.threads % units;
    ptx_val row = ptx_mul_wide(f, p->from.row_stride, attention_bytes(&p->from));
    ptx_val within = ptx_mul(f, row, rows);
    w->within = ptx_add(f, within, columns * UNIT_BYTES);
    w->over = ptx_sub(f, ptx_add(f, w->within, row), units * UNIT_BYTES);
}

/* Advances by the number of threads. If hops are enough, only a bounds check needs the row. */
static void step(const attention_panel *p, bool has_row, walk *w)
{
    ptx_fn *f = p->by.a->f;
    uint32_t units = p->row_units, rows = p->by.threads / units, columns = p->by.threads % units;
    uint32_t gap = p->lines.row_bytes - units * p->lines.unit_bytes;
    w->column = ptx_var(f, ptx_add(f, w->column, columns));
    if (has_row)
        w->row = ptx_var(f, ptx_add(f, w->row, rows));
    if (gap > 0)
        w->to = ptx_var(f, ptx_add(f, w->to, rows * gap));
    ptx_val is_over = ptx_ge(f, w->column, units);
    if (w->has_hops) {
        ptx_val hop = ptx_select(f, is_over, w->over, w->within);
        w->at = ptx_at(f, ptx_cast_ptr(f, w->at, PTX_U8), hop);
    }
    PTX_WHEN (f, is_over) {
        ptx_sub_to(f, w->column, units);
        if (has_row)
            ptx_add_to(f, w->row, 1);
        if (gap > 0)
            ptx_add_to(f, w->to, gap);
    }
    if (!w->has_hops)
        find_unit(p, w);
}

static void copy_odd(const attention_panel *p, ptx_val row, bool has_end, ptx_val element)
{
    ptx_fn *f = p->by.a->f;
    uint32_t units = p->rows * p->row_units, threads = p->by.threads;
    walk w = {.row = ptx_add(f, p->row, row), .column = p->column, .to = p->to};
    w.from = ptx_at(f, p->at, element);
    w.has_hops = units > threads && !p->from.pack_gqa && !p->from.is_paged;
    find_unit(p, &w);
    if (w.has_hops)
        init_hops(p, &w);
    for (uint32_t first = 0; first < units; first += threads) {
        ptx_val in_bounds;
        if (first > 0)
            step(p, has_end || !w.has_hops, &w);
        if (has_end)
            in_bounds = ptx_lt(f, w.row, p->from.end);
        copy_units(p, units - first, w.at, w.to, layout_unit(&p->lines, first), has_end ? &in_bounds : NULL);
    }
}

/* ---- panels ---------------------------------------------------------------------------------------------------------- */

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, layout lines)
{
    ptx_fn *f = by->a->f;
    attention_panel p = {.by = *by, .from = from, .rows = rows, .elements = elements, .lines = lines};
    p.unit_elements = UNIT_BYTES / attention_bytes(&from);
    p.row_units = elements / p.unit_elements;
    p.at = from.first;
    const bool is_even = p.row_units % 2 == 0;
    const teams t = teams_of(&p);
    ptx_val team = ptx_div(f, by->tid, t.team);
    p.row = team;
    p.column = is_even ? ptx_and(f, by->tid, t.team - 1) : ptx_rem(f, by->tid, t.team);
    if (is_even && t.parts > 1) {
        p.row = ptx_and(f, team, t.rows - 1);
        p.column = ptx_mad(f, ptx_div(f, team, t.rows), t.team, p.column);
    }
    if (is_even)
        p.at = ptx_at(f, from.first, ptx_mul(f, p.column, p.unit_elements));
    if (is_even && from.is_paged)
        p.at = in_octet(f, &from, p.at, p.row);
    p.to = ptx_add(f, layout_at(f, &lines, p.row, p.column), to);
    return p;
}

void attention_copy_part(const attention_panel *p, ptx_val row, ptx_val element)
{
    enum { FEW = 4 };
    ptx_fn *f = p->by.a->f;
    void (*const copy)(const attention_panel *, ptx_val, bool, ptx_val) =
        p->row_units % 2 == 0 ? copy_even : copy_odd;
    /* In asynchronous copies a bounds check takes an instruction or two. For a few copies ptxas would predicate both paths,
     * one without checks, and all warps would run both. */
    if (!p->by.widens && p->rows * p->row_units <= FEW * p->by.threads && ptx_has_sm(f, 80)) {
        copy(p, row, true, element);
        return;
    }
    ptx_val last = ptx_add(f, row, p->rows);
    PTX_IF (f, ptx_le(f, last, p->from.end)) {
        copy(p, row, false, element);
    }
    PTX_ELSE (f) {
        copy(p, row, true, element);
    }
}

void attention_copy_rows(const attention_panel *p, ptx_val row)
{
    attention_copy_part(p, row, ptx_u32(0));
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
        ptx_val at = shared_at(f, PTX_F32, ptx_mad(f, mine, SCALE_BYTES, to), 0), scale;
        if (ptx_has_sm(f, 80)) {
            ptx_val bytes = ptx_select(f, in_bounds, ptx_u32(SCALE_BYTES), 0);
            ptx_cp_async_zfill(f, at, from, SCALE_BYTES, bytes, PTX_CA);
        } else {
            tail_load(f, PTX_F32, 1, &scale, from, &in_bounds, PTX_NC);
            ptx_store(f, at, scale);
        }
    }
}

void attention_copy_scales(const attention_copier *by, uint32_t rows, ptx_val to, ptx_val row)
{
    ptx_fn *f = by->a->f;
    for (uint32_t first = 0; first < rows; first += by->threads) {
        if (first + by->threads <= rows) {
            copy_scales(by, first, rows, to, row);
            continue;
        }
        PTX_IF (f, ptx_lt(f, by->tid, rows - first)) {
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
