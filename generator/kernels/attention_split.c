/* The workspace has the records of a row of O part after part, and only rows in bounds, so one query takes little. Joining a
 * group of parts stores its columns over those of the group's first part, and its shift and sum next to that part's.
 *
 * Sixteen lanes join a row of 16 records at most. Each takes shift and sum of one record, and then columns of all of them,
 * with all loads in flight at once: a join takes one round trip to the L2 cache. Of 256 parts a thread block reads 16, the
 * last one 16 more.
 */
#include "attention.h"
#include "device/narrow.h"
#include "device/split.h"
#include "device/tail.h"

enum {
    GROUP_NUMBERS = 4, /* offset after a record's columns: the part's numbers come first */
    LANES = 16,
    MOST_RECORDS = LANES, /* records of a row joined at once */
    MOST_AHEAD = 2,       /* vectors of columns that a lane loads ahead */
    FEW_PARTS = 64,       /* 17 to this many parts are joined in groups of 8; others in groups of 16 */
    COUNTERS = 17         /* of a tile: one for its groups, 16 for the parts of each group */
};

/* ---- records --------------------------------------------------------------------------------------------------------- */

typedef struct records {
    ptx_val first;              /* of the tile's first row */
    ptx_val row_stride, stride; /* between rows; between a row's records; in numbers, U32 */
    ptx_val count;              /* of a row */
    uint32_t most;              /* at most */
    ptx_val numbers;            /* offset of shift and sum in each */
    int hints;
} records;

/* A vector of columns of a row. */
typedef struct columns {
    ptx_val first, in_bounds;
    ptx_val sums[4];
} columns;

typedef struct joined {
    ptx_val number, in_bounds; /* the row's */
    ptx_val first;             /* its first record */
    softmax_row row;
    ptx_val weight[MOST_RECORDS];
    ptx_val share, out; /* variables: the row's share, and its destination in O */
} joined;

/* The tile's records of this part. */
static records of_part(const attention *a)
{
    ptx_fn *f = a->f;
    ptx_val row = ptx_add(f, a->before, ptx_cvt(f, PTX_U64, a->first));
    ptx_val row_stride = ptx_mul(f, a->parts, a->record);
    ptx_val before = ptx_mul(f, row, ptx_cvt(f, PTX_U64, row_stride));
    ptx_val tile = ptx_at(f, a->workspace, before);
    return (records){.first = ptx_at(f, tile, ptx_mul(f, a->part, a->record)),
                     .row_stride = row_stride,
                     .stride = ptx_u32(a->record),
                     .numbers = ptx_u32(a->head_dim_v),
                     .hints = PTX_CG};
}

static void store_numbers(const attention *a, const softmax_row *row, ptx_val is_here, ptx_val record,
                          uint32_t offset)
{
    const ptx_val numbers[2] = {row->shift, row->sum};
    PTX_WHEN (a->f, is_here) {
        ptx_store_vec(a->f, 2, ptx_at_const(a->f, record, offset), numbers, PTX_PLAIN);
    }
}

static void store_sums(const attention *a, const ptx_val sums[], uint32_t count, ptx_val in_bounds,
                       ptx_val to)
{
    PTX_WHEN (a->f, in_bounds) {
        ptx_store_vec(a->f, (int)count, to, sums, PTX_PLAIN);
    }
}

void attention_store_record(const attention *a, const attention_rows *r, uint32_t i, ptx_val column,
                            ptx_val record)
{
    ptx_fn *f = a->f;
    const attention_slice *s = &r->o;
    ptx_val at = ptx_at(f, record, column);
    for (uint32_t n = 0; n < s->count; n++) {
        ptx_val in_bounds = ptx_le(f, column, a->head_dim_v - s->width - n * s->step);
        store_sums(a, &s->x[i][n * s->width], s->width, in_bounds, ptx_at_const(f, at, n * s->step));
    }
    store_numbers(a, &r->row[i], ptx_eq(f, column, 0), record, a->head_dim_v);
}

/* ---- joins ----------------------------------------------------------------------------------------------------------- */

/* Each lane computes the weight of one record. The shift, sum and weights of the row are then the same in all lanes. */
static void weigh_records(const attention *a, const records *r, ptx_val lane, joined *j)
{
    ptx_fn *f = a->f;
    ptx_val numbers[2], is_record = ptx_and(f, j->in_bounds, ptx_lt(f, lane, r->count));
    ptx_val at = ptx_at(f, j->first, ptx_mul(f, lane, r->stride));
    tail_load(f, a->wide, 2, numbers, ptx_at(f, at, r->numbers), &is_record, r->hints);
    ptx_val shift = ptx_select(f, is_record, numbers[0], softmax_none(a->wide));
    j->row.shift = ptx_var(f, ptx_reduce_lanes(f, PTX_OP_MAX, LANES, shift));
    ptx_val minus = softmax_minus(f, a->wide, &j->row);
    ptx_val weight = softmax_exp2(f, a->wide, ptx_add(f, shift, minus));
    ptx_val weighed = ptx_mul(f, numbers[1], weight);
    j->row.sum = ptx_var(f, ptx_reduce_lanes(f, PTX_OP_ADD, LANES, weighed));
    for (uint32_t i = 0; i < r->most; i++)
        j->weight[i] = ptx_shfl_idx_in(f, weight, i, LANES);
}

/* Joins `count` of a lane's vectors, from `v` on; a lane has every sixteenth one. The first call weighs the records. */
static void join_columns(const attention *a, const records *r, joined *j, ptx_val lane, uint32_t v,
                         uint32_t count, columns c[MOST_AHEAD])
{
    ptx_fn *f = a->f;
    const uint32_t vectors = a->head_dim_v / a->unit;
    ptx_val x[MOST_AHEAD][MOST_RECORDS][4] = {{{{0}}}};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t before = v + i * LANES;
        ptx_val vector = attention_plus(f, lane, before);
        c[i].first = ptx_mul(f, vector, a->unit);
        c[i].in_bounds = j->in_bounds;
        if (before + LANES > vectors)
            c[i].in_bounds = ptx_and(f, j->in_bounds, ptx_lt(f, vector, vectors));
        /* Columns of all records; zeros out of bounds: another lane may store its sums over a joined record. */
        ptx_val at = ptx_at(f, j->first, c[i].first);
        ptx_val records_here = ptx_select(f, c[i].in_bounds, r->count, 0);
        for (uint32_t n = 0; n < r->most; n++) {
            ptx_val is_record = ptx_gt(f, records_here, n);
            if (n > 0)
                at = ptx_at(f, at, r->stride);
            tail_load(f, a->wide, a->unit, x[i][n], at, &is_record, r->hints);
        }
    }
    if (v == 0)
        weigh_records(a, r, lane, j);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t e = 0; e < a->unit; e++) {
            c[i].sums[e] = ptx_var(f, ptx_mul(f, x[i][0][e], j->weight[0]));
            for (uint32_t n = 1; n < r->most; n++)
                ptx_fma_to(f, c[i].sums[e], x[i][n][e], j->weight[n]);
        }
    }
}

static void store_out(const attention *a, joined *j, ptx_val lane, bool is_start, uint32_t count,
                      const columns c[])
{
    ptx_fn *f = a->f;
    if (is_start) {
        ptx_val share; /* includes the row's sink, as the log-sum-exp does */
        attention_find_shares(a, &j->number, &j->row, &share, 1);
        ptx_set(f, j->share, share);
        attention_store_log(a, ptx_and(f, j->in_bounds, ptx_eq(f, lane, 0)), j->number, &j->row);
    }
    for (uint32_t i = 0; i < count; i++) {
        PTX_IF (f, c[i].in_bounds) {
            ptx_val x[4], to = ptx_at(f, j->out, c[i].first);
            for (uint32_t e = 0; e < a->unit; e++)
                x[e] = ptx_mul(f, c[i].sums[e], j->share);
            narrow_store(f, a->type, a->unit, to, x, PTX_PLAIN);
        }
    }
}

/* Where joined rows go: to these records if `keeps` holds, otherwise to O. These records may be the first of those
 * joined. */
typedef struct destination {
    const records *to;
    ptx_val keeps;
    uint32_t numbers; /* offset of shift and sum */
} destination;

/* A null destination is O. */
static void join_row(const attention *a, const records *from, const destination *d, ptx_val row, ptx_val lane,
                     joined *j)
{
    ptx_fn *f = a->f;
    /* A small tile waits for its loads, so more of them precede a store. A large one has no registers for that. */
    const uint32_t vectors = a->head_dim_v / a->unit, ahead = a->tile_q == 16 ? MOST_AHEAD : 1;
    ptx_val record = {0};
    if (d)
        record = ptx_at(f, d->to->first, ptx_mul(f, row, d->to->row_stride));
    j->first = ptx_at(f, from->first, ptx_mul(f, row, from->row_stride));
    j->share = ptx_var(f, ptx_number(a->wide, 0));
    j->out = attention_row_at(a, &a->out, a->out.first, j->number);
    for (uint32_t v = 0; v < vectors; v += ahead * LANES) {
        const uint32_t left = (vectors - v + LANES - 1) / LANES, count = left < ahead ? left : ahead;
        columns c[MOST_AHEAD];
        join_columns(a, from, j, lane, v, count, c);
        if (!d) {
            store_out(a, j, lane, v == 0, count, c);
            continue;
        }
        PTX_IF (f, d->keeps) {
            if (v == 0)
                store_numbers(a, &j->row, ptx_and(f, j->in_bounds, ptx_eq(f, lane, 0)), record, d->numbers);
            for (uint32_t i = 0; i < count; i++)
                store_sums(a, c[i].sums, a->unit, c[i].in_bounds, ptx_at(f, record, c[i].first));
        }
        PTX_ELSE (f) {
            store_out(a, j, lane, v == 0, count, c);
        }
    }
}

static void join(const attention *a, const records *from, const destination *d, ptx_val tid)
{
    ptx_fn *f = a->f;
    ptx_val rows = ptx_min(f, ptx_sub(f, a->rows, a->first), a->tile_q);
    ptx_val lane = ptx_and(f, tid, LANES - 1), team = ptx_div(f, tid, LANES);
    PTX_FOR (f, first, 0, rows, ptx_block_x(f) / LANES) {
        ptx_val row = ptx_add(f, first, team);
        joined j = {.number = ptx_add(f, a->first, row), .in_bounds = ptx_lt(f, row, rows)};
        join_row(a, from, d, row, lane, &j);
    }
}

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

/* A constant number of parts: they are one group. */
static void join_parts(const attention *a, records part, ptx_val tid)
{
    ptx_fn *f = a->f;
    split s = {.f = f, .parts = a->split_k, .tile_counters = a->tile_counters, .tile = a->tile, .tid = tid};
    PTX_IF (f, split_arrive(&s)) {
        ptx_rarely(f);
        ptx_val before = ptx_mul(f, a->part, a->record);
        part.first = ptx_at(f, part.first, ptx_neg(f, ptx_as(f, PTX_S32, before)));
        part.count = ptx_u32(a->split_k);
        part.most = a->split_k;
        join(a, &part, NULL, tid);
    }
}

/* The last thread block of a group joins it; then the last of these joins the groups. */
static void join_groups(const attention *a, records part, ptx_val tid)
{
    ptx_fn *f = a->f;
    ptx_val more = ptx_sub(f, a->parts, LANES + 1);
    ptx_val is_few = ptx_lt(f, more, FEW_PARTS - LANES);
    ptx_val log = ptx_select(f, is_few, ptx_u32(3), 4), group = ptx_shr(f, a->part, log);
    ptx_val first = ptx_shl(f, group, log), size = ptx_shl(f, ptx_u32(1), log);
    ptx_val up = ptx_add(f, a->parts, ptx_sub(f, size, 1));
    ptx_val groups = ptx_shr(f, up, log), of_tile = ptx_mul(f, a->tile, COUNTERS);
    ptx_val counter = ptx_var(f, ptx_add(f, ptx_add(f, of_tile, group), 1));
    ptx_val left = ptx_var(f, ptx_select(f, ptx_gt(f, groups, 1), ptx_u32(1), 0));
    ptx_val back = ptx_var(f, ptx_mul(f, ptx_sub(f, a->part, first), a->record));
    part.stride = ptx_var(f, part.stride);
    part.numbers = ptx_var(f, part.numbers);
    part.most = MOST_RECORDS;
    part.count = ptx_var(f, ptx_min(f, ptx_sub(f, a->parts, first), size));
    ptx_val own = part.first;
    PTX_LOOP (f) {
        ptx_val last = ptx_sub(f, part.count, 1);
        ptx_val is_last = split_arrive_at(f, tid, a->tile_counters, counter, last);
        ptx_val has_next = ptx_gt(f, left, 0);
        PTX_IF (f, is_last) {
            ptx_rarely(f);
            part.first = ptx_at(f, own, ptx_neg(f, ptx_as(f, PTX_S32, back)));
            join(a, &part, &(destination){&part, has_next, a->head_dim_v + GROUP_NUMBERS}, tid);
        }
        ptx_set(f, counter, of_tile);
        ptx_set(f, left, 0);
        ptx_set(f, back, ptx_mul(f, a->part, a->record));
        ptx_set(f, part.stride, ptx_mul(f, size, a->record));
        ptx_set(f, part.numbers, a->head_dim_v + GROUP_NUMBERS);
        ptx_set(f, part.count, groups);
        ptx_repeat_if(f, ptx_and(f, is_last, has_next));
    }
}

static void store_part(const attention *a, const attention_rows *r, ptx_val first, ptx_val column,
                       ptx_val tid)
{
    ptx_fn *f = a->f;
    ptx_val number[ATTENTION_MOST_ROWS];
    attention_number_rows(a, &r->o, first, number);
    records part = of_part(a);
    for (uint32_t i = 0; i < r->o.rows; i++) {
        PTX_IF (f, ptx_lt(f, number[i], a->rows)) {
            ptx_val row = ptx_sub(f, number[i], a->first);
            attention_store_record(a, r, i, column, ptx_at(f, part.first, ptx_mul(f, row, part.row_stride)));
        }
    }
    (a->split_k ? join_parts : join_groups)(a, part, tid);
}

void attention_finish(const attention *a, const attention_rows *r, ptx_val first, ptx_val column, ptx_val tid,
                      void (*store_results)(void *of, ptx_val first), void *of)
{
    if (a->split_k == 1) {
        store_results(of, first);
    } else if (a->split_k > 1) {
        store_part(a, r, first, column, tid);
    } else {
        PTX_IF (a->f, ptx_gt(a->f, a->parts, 1)) {
            store_part(a, r, first, column, tid);
        }
        PTX_ELSE (a->f) {
            store_results(of, first);
        }
    }
}

void attention_leave_warps(const attention *a, ptx_val of_warps, uint32_t warps, ptx_val tid)
{
    ptx_fn *f = a->f;
    const records shared = {.first = of_warps,
                            .row_stride = ptx_u32(a->shared_record),
                            .stride = ptx_u32(a->tile_q * a->shared_record),
                            .count = ptx_u32(warps),
                            .most = warps,
                            .numbers = ptx_u32(a->head_dim_v),
                            .hints = PTX_PLAIN};
    if (a->split_k == 1) {
        join(a, &shared, NULL, tid);
        return;
    }
    ptx_val has_parts = ptx_gt(f, a->parts, 1);
    records part = of_part(a);
    join(a, &shared, &(destination){&part, has_parts, a->head_dim_v}, tid);
    PTX_IF (f, has_parts) {
        join_groups(a, part, tid);
    }
}
