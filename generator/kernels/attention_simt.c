/* attention on CUDA cores: f32 and f64; f16 and bf16 widened to f32.
 *
 * A thread block of 128 threads makes tile_q rows of O; each group of 16 lanes makes an eighth of them. A lane has its
 * group's rows and every sixteenth key of the scores of a tile, and the same rows and every sixteenth vector of columns of O.
 * Both products are sums of outer products in registers. Their operands come through shared memory: Q and K in panels of 32
 * along head_dim, then V in the same bytes, in panels of some keys over all of head_dim. Q is read again, from the L2 cache,
 * for every tile of keys. K and V are read once per tile of queries, and only keys that some query sees. So every head_dim
 * fits into less than 48 KB.
 *
 * A group exchanges weights through its own shared memory; the barrier before V orders that.
 *
 * BANKS. Panels of Q and K have rows of an odd number of 16-byte units: eight lanes that read the same unit of eight
 * neighbouring rows have no bank conflict. The 16 lanes of a group share their rows of Q, and read one address.
 *
 * MASK AND BOUNDS. Keys that no query of the tile sees, and rows of Q past the last, are zeros in shared memory. Masked
 * scores are replaced by -inf after the product.
 */
#include "attention_copy.h"
#include "device/if_needed.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tail.h"

enum {
    THREADS = 128,
    GROUP_LANES = 16,
    GROUPS = THREADS / GROUP_LANES,
    PANEL = 32,           /* elements of head_dim */
    STEP = 8,             /* elements of a panel per iteration of the loop */
    GROUP_PAD_BYTES = 64, /* the two groups of a warp write weights into different banks */
    MOST_KEYS = 4,        /* per lane */
    MOST_COLUMNS = 16
};

/* Some columns of Q and of K. */
typedef struct panels {
    attention_panel q, k;
} panels;

typedef struct simt {
    attention *a;
    bool is_ragged;       /* the last vector of some lanes is out of bounds */
    uint32_t panel_keys;  /* of V */
    uint32_t group_bytes; /* of weights of a group's rows */
    uint32_t row_bytes;   /* of panels of Q and K */
    attention_copier copier;
    panels full; /* of PANEL elements, if rows have that many */
    attention_panel v;
    ptx_val lane, group;    /* this lane in its group; the group */
    ptx_val stage, weights; /* shared memory: panels; this group's weights */
    ptx_val q_from, k_from; /* this lane's rows of the panels */
    ptx_val v_from, v_last; /* its first vector of columns; its last one, where some lanes have none */
    ptx_val value_scale[MOST_KEYS]; /* with a scale for each key */
    attention_slice scores;
    attention_rows rows;
} simt;

/* Loads 16 bytes of elements. */
static void load_unit(const simt *s, ptx_val address, uint32_t byte, ptx_val out[4])
{
    ptx_load_vec(s->a->f, (int)s->a->unit, out, shared_at(s->a->f, s->a->wide, address, byte), PTX_PLAIN);
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* K follows Q in shared memory. */
static panels init_panels(const simt *s, uint32_t elements)
{
    const attention *a = s->a;
    const layout lines = {.row_bytes = s->row_bytes};
    panels p = {.q = attention_init_panel(&s->copier, a->q, a->tile_q, elements, s->stage, lines)};
    ptx_val to = ptx_add(a->f, s->stage, a->tile_q * s->row_bytes);
    p.k = attention_init_panel(&s->copier, a->k, a->tile_k, elements, to, lines);
    return p;
}

static void multiply_panels(simt *s, uint32_t elements)
{
    const attention *a = s->a;
    ptx_fn *f = a->f;
    PTX_FOR (f, offset, ptx_u32(0), elements * a->wide_bytes, STEP * a->wide_bytes) {
        ptx_val q_at = ptx_add(f, s->q_from, offset), k_at = ptx_add(f, s->k_from, offset);
        for (uint32_t u = 0; u < STEP / a->unit; u++) {
            ptx_val k[MOST_KEYS][4], q[4];
            for (uint32_t c = 0; c < s->scores.count; c++)
                load_unit(s, k_at, c * GROUP_LANES * s->row_bytes + u * UNIT_BYTES, k[c]);
            for (uint32_t r = 0; r < s->scores.rows; r++) {
                load_unit(s, q_at, r * s->row_bytes + u * UNIT_BYTES, q);
                for (uint32_t c = 0; c < s->scores.count; c++)
                    for (uint32_t e = 0; e < a->unit; e++)
                        ptx_fma_to(f, s->scores.x[r][c], q[e], k[c][e]);
            }
        }
    }
}

static void add_panels(simt *s, const panels *p, uint32_t elements, ptx_val key, ptx_val element)
{
    ptx_fn *f = s->a->f;
    ptx_barrier(f);
    attention_copy_part(&p->q, s->a->first, element);
    attention_copy_part(&p->k, key, element);
    ptx_barrier(f);
    multiply_panels(s, elements);
}

static void multiply_scores(simt *s, ptx_val key)
{
    ptx_fn *f = s->a->f;
    const uint32_t rest = s->a->head_dim % PANEL, full = s->a->head_dim - rest;
    for (uint32_t r = 0; r < s->rows.o.rows; r++)
        for (uint32_t c = 0; c < s->scores.count; c++)
            s->scores.x[r][c] = ptx_var(f, ptx_number(s->a->wide, 0));
    if (full > 0) {
        PTX_FOR (f, element, ptx_u32(0), full, PANEL) {
            add_panels(s, &s->full, PANEL, key, element);
        }
    }
    if (rest > 0) {
        const panels last = init_panels(s, rest);
        add_panels(s, &last, rest, key, ptx_u32(full));
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

static attention_origin find_origin(const void *of, ptx_val key)
{
    const simt *s = of;
    attention_origin at = {.row = ptx_mad(s->a->f, s->group, s->scores.rows, s->a->first)};
    at.key = ptx_add(s->a->f, key, s->lane);
    return at;
}

/* Also loads the scales of V. */
static void scale_scores(simt *s, ptx_val key)
{
    const attention *a = s->a;
    const attention_matrix *const matrices[2] = {&a->k_scales, &a->v_scales};
    ptx_fn *f = a->f;
    ptx_val mine = ptx_add(f, key, s->lane), scale[2];
    for (uint32_t c = 0; c < s->scores.count; c++) {
        ptx_val number = attention_plus(f, mine, c * GROUP_LANES);
        for (uint32_t i = 0; i < 2; i++) {
            ptx_val from = attention_line_at(a, matrices[i], matrices[i]->first, number);
            ptx_val in_bounds = ptx_lt(f, number, matrices[i]->end);
            tail_load(f, PTX_F32, 1, &scale[i], from, &in_bounds, PTX_NC);
        }
        for (uint32_t r = 0; r < s->scores.rows; r++)
            ptx_mul_to(f, s->scores.x[r][c], scale[0]);
        s->value_scale[c] = scale[1];
    }
}

static void weigh_row(simt *s, uint32_t r)
{
    ptx_fn *f = s->a->f;
    const attention *a = s->a;
    ptx_val shift = attention_find_shift(a, &s->scores, r, GROUP_LANES);
    ptx_val shrink = softmax_raise(f, a->wide, &s->rows.row[r], shift);
    ptx_val minus = softmax_minus(f, a->wide, &s->rows.row[r]);
    ptx_mul_to(f, s->rows.row[r].sum, shrink);
    for (uint32_t c = 0; c < s->scores.count; c++) {
        ptx_val x = ptx_fma(f, s->scores.x[r][c], a->factor, minus);
        ptx_val weight = softmax_exp2(f, a->wide, x);
        ptx_add_to(f, s->rows.row[r].sum, weight);
        if (a->kv == ATTENTION_INT8_TOKEN)
            weight = ptx_mul(f, weight, s->value_scale[c]);
        const uint32_t byte = (r * a->tile_k + c * GROUP_LANES) * a->wide_bytes;
        ptx_store(f, shared_at(f, a->wide, s->weights, byte), weight);
    }
    for (uint32_t i = 0; i < attention_columns(&s->rows.o); i++)
        ptx_mul_to(f, s->rows.o.x[r][i], shrink);
}

/* ---- O ------------------------------------------------------------------------------------------------------------- */

/* Loads the lane's columns of a row, given the addresses of the first and, if ragged, of the last vector. */
static void load_columns(const simt *s, ptx_val first, ptx_val last, uint32_t byte, ptx_val v[MOST_COLUMNS])
{
    const attention *a = s->a;
    const attention_slice *o = &s->rows.o;
    for (uint32_t i = 0; i < o->count; i++) {
        const bool is_last = i + 1 == o->count && s->is_ragged;
        const uint32_t ahead = is_last ? 0 : i * o->step * a->wide_bytes;
        ptx_val at = shared_at(a->f, a->wide, is_last ? last : first, byte + ahead);
        ptx_load_vec(a->f, (int)o->width, &v[i * o->width], at, PTX_PLAIN);
    }
}

/* Adds a panel of V; `weights`: this group's weights of the panel's first key. */
static void add_values(simt *s, ptx_val weights)
{
    const attention *a = s->a;
    ptx_fn *f = a->f;
    const attention_slice *o = &s->rows.o;
    const uint32_t row_bytes = s->v.lines.row_bytes;
    PTX_FOR (f, key, ptx_u32(0), s->panel_keys, a->unit) {
        ptx_val weight[ATTENTION_MOST_ROWS][4] = {{{0}}}, last = {0};
        ptx_val from = ptx_mad(f, key, a->wide_bytes, weights);
        ptx_val first = ptx_mad(f, key, row_bytes, s->v_from);
        if (s->is_ragged)
            last = ptx_mad(f, key, row_bytes, s->v_last);
        for (uint32_t r = 0; r < o->rows; r++)
            load_unit(s, from, r * a->tile_k * a->wide_bytes, weight[r]);
        for (uint32_t e = 0; e < a->unit; e++) {
            ptx_val v[MOST_COLUMNS];
            load_columns(s, first, last, e * row_bytes, v);
            for (uint32_t r = 0; r < o->rows; r++)
                for (uint32_t i = 0; i < attention_columns(o); i++)
                    ptx_fma_to(f, o->x[r][i], weight[r][e], v[i]);
        }
    }
}

static void multiply_values(simt *s, ptx_val key)
{
    const attention *a = s->a;
    ptx_fn *f = a->f;
    ptx_val of_group = ptx_sub(f, s->weights, ptx_mul(f, s->lane, a->wide_bytes));
    PTX_FOR (f, panel, ptx_u32(0), a->tile_k, s->panel_keys) {
        ptx_val row = ptx_add(f, key, panel);
        ptx_barrier(f);
        attention_copy_rows(&s->v, row);
        ptx_barrier(f);
        add_values(s, ptx_mad(f, panel, a->wide_bytes, of_group));
    }
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* Stores the lane's columns of row r of O. */
static void store_columns(const simt *s, uint32_t r, ptx_val row, ptx_val share)
{
    const attention *a = s->a;
    const attention_slice *o = &s->rows.o;
    ptx_fn *f = a->f;
    ptx_val line = attention_row_at(a, &a->out, a->out.first, row);
    for (uint32_t i = 0; i < o->count; i++) {
        ptx_val x[4], number = ptx_add(f, s->lane, i * GROUP_LANES);
        ptx_val column = ptx_mul(f, number, o->width);
        for (uint32_t e = 0; e < o->width; e++)
            x[e] = ptx_mul(f, o->x[r][i * o->width + e], share);
        ptx_val at = ptx_at(f, line, column);
        const bool is_ragged = s->is_ragged && i + 1 == o->count;
        IF_NEEDED (f, is_ragged, ptx_lt(f, column, a->head_dim)) {
            narrow_store(f, a->type, o->width, at, x, PTX_PLAIN);
        }
    }
}

static void store_rows(void *of, ptx_val first)
{
    simt *s = of;
    const attention *a = s->a;
    ptx_fn *f = a->f;
    for (uint32_t r = 0; r < s->rows.o.rows; r++) {
        ptx_val row = attention_plus(f, first, r), in_bounds = ptx_lt(f, row, a->rows), share;
        attention_find_shares(a, &row, &s->rows.row[r], &share, 1);
        PTX_IF (f, in_bounds) {
            store_columns(s, r, row, share);
            attention_store_log(a, ptx_eq(f, s->lane, 0), row, &s->rows.row[r]);
        }
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

static simt geometry(attention *a)
{
    simt s = {.a = a};
    s.rows.o.rows = a->tile_q / GROUPS;
    s.rows.o.row_step = 1;
    s.scores = (attention_slice){s.rows.o.rows, 1, a->tile_k / GROUP_LANES, 1, GROUP_LANES, {{{0}}}};
    s.rows.o.width = a->unit;
    while (a->head_dim % (GROUP_LANES * s.rows.o.width) != 0 && s.rows.o.width > 1)
        s.rows.o.width /= 2;
    s.rows.o.step = GROUP_LANES * s.rows.o.width;
    s.rows.o.count = (a->head_dim + s.rows.o.step - 1) / s.rows.o.step;
    s.is_ragged = a->head_dim % s.rows.o.step != 0;
    s.group_bytes = s.rows.o.rows * a->tile_k * a->wide_bytes + GROUP_PAD_BYTES;
    s.row_bytes = PANEL * a->wide_bytes + UNIT_BYTES;
    s.panel_keys = PANEL;
    while (s.panel_keys * a->head_dim * a->wide_bytes > (a->tile_q + a->tile_k) * s.row_bytes)
        s.panel_keys /= 2;
    return s;
}

static void shape(kiln_shape *s, attention *a)
{
    const simt g = geometry(a);
    s->block[0] = THREADS;
    s->shared_bytes = (a->tile_q + a->tile_k) * g.row_bytes + GROUPS * g.group_bytes;
    s->trip = a->tile_k;
    /* Without a limit, ptxas fits one more thread block and spills. */
    const bool has_more =
        a->wide_bytes == 8 || a->pack_gqa || a->layout == ATTENTION_PAGED || a->kv != ATTENTION_SAME;
    const uint32_t words =
        g.rows.o.rows * (attention_columns(&g.rows.o) + g.scores.count) * a->wide_bytes / 4;
    s->blocks_per_multiprocessor = words <= (has_more ? 56 : 64) ? 3 : words <= 128 ? 2 : 1;
}

/* Finds this thread's addresses in shared memory, and initialises its rows to no keys. */
static void init_thread(simt *s)
{
    attention *a = s->a;
    ptx_fn *f = a->f;
    attention_slice *o = &s->rows.o;
    const uint32_t k_start = a->tile_q * s->row_bytes, weights_start = k_start + a->tile_k * s->row_bytes;
    ptx_val tid = ptx_tid_x(f);
    s->lane = ptx_and(f, tid, GROUP_LANES - 1);
    s->group = ptx_div(f, tid, GROUP_LANES);
    s->stage = ptx_address(f, ptx_shared_dynamic(f, a->wide));
    s->copier = (attention_copier){a, THREADS, true, tid};
    if (a->head_dim >= PANEL)
        s->full = init_panels(s, PANEL);
    const layout v_lines = {.row_bytes = a->head_dim * a->wide_bytes};
    s->v = attention_init_panel(&s->copier, a->v, s->panel_keys, a->head_dim, s->stage, v_lines);
    s->q_from = ptx_mad(f, s->group, o->rows * s->row_bytes, s->stage);
    ptx_val k_row = ptx_mad(f, s->lane, s->row_bytes, s->stage);
    s->k_from = ptx_add(f, k_row, k_start);
    ptx_val of_group = ptx_mad(f, s->group, s->group_bytes, s->stage);
    ptx_val of_lane = ptx_mad(f, s->lane, a->wide_bytes, of_group);
    s->weights = ptx_add(f, of_lane, weights_start);
    s->v_from = ptx_mad(f, s->lane, o->width * a->wide_bytes, s->stage);
    if (s->is_ragged) { /* past the last column it is repeated, and not stored */
        ptx_val number = ptx_add(f, s->lane, (o->count - 1) * GROUP_LANES);
        ptx_val vector = ptx_min(f, number, a->head_dim / o->width - 1);
        s->v_last = ptx_mad(f, vector, o->width * a->wide_bytes, s->stage);
    }
    for (uint32_t r = 0; r < o->rows; r++) {
        softmax_init_row(f, a->wide, &s->rows.row[r]);
        for (uint32_t i = 0; i < attention_columns(o); i++)
            o->x[r][i] = ptx_var(f, ptx_number(a->wide, 0));
    }
}

static void emit(attention *a)
{
    ptx_fn *f = a->f;
    simt s = geometry(a);
    const attention_slice *o = &s.rows.o;
    init_thread(&s);
    attention_init_pages(a, 0);
    PTX_FOR (f, counted, a->first_key, a->end, a->tile_k) {
        ptx_main_loop(f);
        ptx_val key = attention_key(a, counted);
        attention_select_pages(a, counted);
        attention_build_pages(a, counted);
        multiply_scores(&s, key);
        if (a->kv == ATTENTION_INT8_TOKEN)
            scale_scores(&s, key);
        attention_shape_and_mask(a, key, false, &s.scores, find_origin, &s);
        for (uint32_t r = 0; r < o->rows; r++)
            weigh_row(&s, r);
        multiply_values(&s, key);
    }
    attention_find_before(a);
    ptx_val first = ptx_mad(f, s.group, o->rows, a->first);
    for (uint32_t r = 0; r < o->rows; r++)
        s.rows.row[r].sum = ptx_var(f, ptx_reduce_lanes(f, PTX_OP_ADD, GROUP_LANES, s.rows.row[r].sum));
    ptx_val column = ptx_mul(f, s.lane, o->width);
    attention_finish(a, &s.rows, first, column, s.copier.tid, store_rows, &s);
}

const attention_strategy attention_strategy_simt = {shape, emit};
