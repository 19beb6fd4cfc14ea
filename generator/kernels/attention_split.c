/* The workspace has the records of a row of O part after part, and rows in bounds only, so one query takes little. What joins
 * a group of parts stores its columns over those of the group's first part, and its shift and sum beside that part's.
 *
 * A thread joins some columns of a row, one vector at a time, and has AT_ONCE records on the way: a join takes one round trip
 * to the L2 cache for so many parts. With 16 parts to a group at most, a thread block reads 16 records of a row twice at most,
 * not 256.
 */
#include "attention_split.h"
#include "attention_score.h"
#include "device/narrow.h"
#include "device/split.h"

enum {
    ROW_NUMBERS = 8, /* of a record behind the columns: of a part, of a group */
    GROUP_NUMBERS = 4,
    AT_ONCE = 8,
    FEW_PARTS = 64, /* are joined in groups of 8; more in groups of 16 */
    COUNTERS = 17   /* of a tile: of groups, of the parts of each group */
};

uint32_t attention_record(const attention *a)
{
    return a->head_dim + ROW_NUMBERS;
}

/* ---- records --------------------------------------------------------------------------------------------------------- */

/* Records of the tile's rows. */
typedef struct records {
    ptx_val first;              /* of the tile's first row */
    ptx_val row_stride, stride; /* from row to row; from a row's record to its next; in numbers, U32 */
    ptx_val count;              /* of a row */
    uint32_t known_count;       /* where it is known; else 0 */
    ptx_val numbers;            /* where shift and sum are in each */
    int hints;
} records;

/* What is joined of a row: a vector of its columns. */
typedef struct joined {
    softmax_row row;
    ptx_val x[4];
} joined;

static uint32_t vector_of(const attention *a)
{
    return a->wide == PTX_F64 ? 2 : 4;
}

/* The tile's records of this part. */
static records of_part(const attention *a)
{
    ptx_fn *f = a->f;
    const uint32_t record = attention_record(a);
    ptx_val row = ptx_add(f, a->before, ptx_cvt(f, PTX_U64, a->first));
    ptx_val row_stride = ptx_mul(f, a->parts, ptx_u32(record));
    ptx_val before = ptx_mul(f, row, ptx_cvt(f, PTX_U64, row_stride));
    ptx_val tile = ptx_at(f, a->workspace, before);
    return (records){.first = ptx_at(f, tile, ptx_mul(f, a->part, ptx_u32(record))),
                     .row_stride = row_stride,
                     .stride = ptx_u32(record),
                     .numbers = ptx_u32(a->head_dim),
                     .hints = PTX_CG};
}

void attention_store_slice(const attention *a, const attention_slice *s, ptx_val record)
{
    ptx_fn *f = a->f;
    ptx_val at = ptx_at(f, record, s->column);
    for (uint32_t i = 0; i < s->count; i++) {
        ptx_val in_bounds = ptx_le(f, s->column, ptx_u32(a->head_dim - s->width - i * s->step));
        PTX_WHEN (f, in_bounds) {
            ptx_store_vec(f, (int)s->width, ptx_at_const(f, at, i * s->step), &s->sums[i * s->width],
                          PTX_PLAIN);
        }
    }
    ptx_val numbers[2] = {s->row->shift, s->row->sum};
    PTX_WHEN (f, ptx_eq(f, s->column, ptx_u32(0))) {
        ptx_store_vec(f, 2, ptx_at_const(f, record, a->head_dim), numbers, PTX_PLAIN);
    }
}

/* Adds records from `first` on, as many as are loaded at once: row = row * shrink + record * weight. The largest of the shifts
 * becomes the row's. A record that there is not counts as one without keys. */
static void join_some(const attention *a, const records *r, ptx_val row, ptx_val column, ptx_val first,
                      uint32_t count, joined *j)
{
    ptx_fn *f = a->f;
    ptx_val numbers[AT_ONCE][2], x[AT_ONCE][4], most = j->row.shift;
    for (uint32_t i = 0; i < count; i++) {
        ptx_val number = i == 0 ? first : ptx_add(f, first, ptx_u32(i)), in_bounds = {0};
        if (!r->known_count) {
            in_bounds = ptx_lt(f, number, r->count);
            number = ptx_select(f, in_bounds, number, first);
        }
        ptx_val at = ptx_at(f, row, ptx_mul(f, number, r->stride));
        ptx_load_vec(f, (int)vector_of(a), x[i], ptx_at(f, at, column), r->hints);
        ptx_load_vec(f, 2, numbers[i], ptx_at(f, at, r->numbers), r->hints);
        if (!r->known_count)
            numbers[i][0] = ptx_select(f, in_bounds, numbers[i][0], softmax_none(a->wide));
    }
    for (uint32_t i = 0; i < count; i++)
        most = ptx_max(f, most, numbers[i][0]);
    ptx_val shrink = softmax_raise(f, a->wide, &j->row, most);
    ptx_val minus = softmax_minus(f, a->wide, &j->row);
    ptx_mul_to(f, j->row.sum, shrink);
    for (uint32_t e = 0; e < vector_of(a); e++)
        ptx_mul_to(f, j->x[e], shrink);
    for (uint32_t i = 0; i < count; i++) {
        ptx_val weight = softmax_exp2(f, a->wide, ptx_add(f, numbers[i][0], minus));
        ptx_fma_to(f, j->row.sum, numbers[i][1], weight);
        for (uint32_t e = 0; e < vector_of(a); e++)
            ptx_fma_to(f, j->x[e], x[i][e], weight);
    }
}

static joined join_row(const attention *a, const records *r, ptx_val row, ptx_val column)
{
    ptx_fn *f = a->f;
    joined j;
    softmax_init_row(f, a->wide, &j.row);
    for (uint32_t e = 0; e < vector_of(a); e++)
        j.x[e] = ptx_var(f, ptx_number(a->wide, 0));
    if (r->known_count) {
        for (uint32_t first = 0; first < r->known_count; first += AT_ONCE)
            join_some(a, r, row, column, ptx_u32(first),
                      r->known_count - first < AT_ONCE ? r->known_count - first : AT_ONCE, &j);
        return j;
    }
    PTX_FOR (f, first, ptx_u32(0), r->count, ptx_u32(AT_ONCE)) {
        join_some(a, r, row, column, first, AT_ONCE, &j);
    }
    return j;
}

static void store_record(const attention *a, const joined *j, ptx_val record, ptx_val column,
                         uint32_t numbers)
{
    ptx_fn *f = a->f;
    const ptx_val of_row[2] = {j->row.shift, j->row.sum};
    ptx_store_vec(f, (int)vector_of(a), ptx_at(f, record, column), j->x, PTX_PLAIN);
    PTX_WHEN (f, ptx_eq(f, column, ptx_u32(0))) {
        ptx_store_vec(f, 2, ptx_at_const(f, record, numbers), of_row, PTX_PLAIN);
    }
}

static void store_out(const attention *a, joined *j, ptx_val number, ptx_val column)
{
    ptx_fn *f = a->f;
    softmax_row *row = &j->row;
    ptx_val shrink, x[4];
    attention_add_sinks(a, &number, &row, &shrink, 1);
    ptx_val share = ptx_mul(f, softmax_share(f, a->wide, row->sum), shrink);
    for (uint32_t e = 0; e < vector_of(a); e++)
        x[e] = ptx_mul(f, j->x[e], share);
    ptx_val out = ptx_at(f, attention_row_at(a, &a->out, a->out.first, number), column);
    narrow_store(f, a->type, a->has_sm_80, vector_of(a), out, x, PTX_PLAIN);
    ptx_val is_first = ptx_eq(f, column, ptx_u32(0));
    ptx_val wanted = ptx_ne(f, ptx_address(f, a->lse), ptx_u64(0));
    PTX_IF (f, ptx_and(f, is_first, wanted)) {
        ptx_val at = attention_log_at(a, number);
        ptx_store(f, at, softmax_log(f, a->wide, row->sum, row->shift));
    }
}

/* Joins the records of all rows in bounds, a vector of columns per thread. They go to O, or, where `keeps` holds, to `to`,
 * which may be where the first of them are. */
static void join(const attention *a, const records *from, const records *to, uint32_t numbers, ptx_val keeps,
                 ptx_val tid)
{
    ptx_fn *f = a->f;
    const uint32_t vectors = a->head_dim / vector_of(a);
    ptx_val rows = ptx_min(f, ptx_sub(f, a->rows, a->first), ptx_u32(a->tile_q));
    ptx_val count = ptx_mul(f, rows, ptx_u32(vectors));
    PTX_FOR (f, i, tid, count, ptx_u32(ptx_block_x(f))) {
        ptx_val row = ptx_div(f, i, ptx_u32(vectors));
        ptx_val column = ptx_mul(f, ptx_rem(f, i, ptx_u32(vectors)), ptx_u32(vector_of(a)));
        ptx_val number = ptx_add(f, a->first, row);
        joined j = join_row(a, from, ptx_at(f, from->first, ptx_mul(f, row, from->row_stride)), column);
        if (!to) {
            store_out(a, &j, number, column);
            continue;
        }
        PTX_IF (f, keeps) {
            ptx_val record = ptx_at(f, to->first, ptx_mul(f, row, to->row_stride));
            store_record(a, &j, record, column, numbers);
        }
        PTX_ELSE (f) {
            store_out(a, &j, number, column);
        }
    }
}

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

ptx_val attention_is_split(const attention *a)
{
    return ptx_gt(a->f, a->parts, ptx_u32(1));
}

/* A number of parts that is known: they are one group. */
static void join_parts(const attention *a, records part, ptx_val tid)
{
    ptx_fn *f = a->f;
    split s = {.f = f, .parts = a->split_k, .tile_counters = a->tile_counters, .tile = a->tile, .tid = tid};
    PTX_IF (f, split_arrive(&s)) {
        ptx_rarely(f);
        ptx_val before = ptx_mul(f, a->part, ptx_u32(attention_record(a)));
        part.first = ptx_at(f, part.first, ptx_neg(f, ptx_as(f, PTX_S32, before)));
        part.known_count = a->split_k;
        join(a, &part, NULL, 0, (ptx_val){0}, tid);
    }
}

/* Turn after turn the last thread block of a group joins it, and the last of these the groups. */
static void join_groups(const attention *a, records part, ptx_val tid)
{
    ptx_fn *f = a->f;
    const uint32_t record = attention_record(a);
    ptx_val is_few = ptx_le(f, a->parts, ptx_u32(FEW_PARTS));
    ptx_val log = ptx_select(f, is_few, ptx_u32(3), ptx_u32(4)), group = ptx_shr(f, a->part, log);
    ptx_val first = ptx_shl(f, group, log), size = ptx_shl(f, ptx_u32(1), log);
    ptx_val up = ptx_add(f, a->parts, ptx_sub(f, size, ptx_u32(1)));
    ptx_val groups = ptx_shr(f, up, log), of_tile = ptx_mul(f, a->tile, ptx_u32(COUNTERS));
    ptx_val counter = ptx_var(f, ptx_add(f, ptx_add(f, of_tile, group), ptx_u32(1)));
    ptx_val left = ptx_var(f, ptx_select(f, ptx_gt(f, groups, ptx_u32(1)), ptx_u32(1), ptx_u32(0)));
    ptx_val back = ptx_var(f, ptx_mul(f, ptx_sub(f, a->part, first), ptx_u32(record)));
    part.stride = ptx_var(f, part.stride);
    part.numbers = ptx_var(f, part.numbers);
    part.count = ptx_var(f, ptx_min(f, ptx_sub(f, a->parts, first), size));
    ptx_val own = part.first;
    PTX_LOOP (f) {
        ptx_val last = ptx_sub(f, part.count, ptx_u32(1));
        ptx_val is_last = split_arrive_at(f, tid, a->tile_counters, counter, last);
        ptx_val has_next = ptx_gt(f, left, ptx_u32(0));
        PTX_IF (f, is_last) {
            ptx_rarely(f);
            part.first = ptx_at(f, own, ptx_neg(f, ptx_as(f, PTX_S32, back)));
            join(a, &part, &part, a->head_dim + GROUP_NUMBERS, has_next, tid);
        }
        ptx_set(f, counter, of_tile);
        ptx_set(f, left, ptx_u32(0));
        ptx_set(f, back, ptx_mul(f, a->part, ptx_u32(record)));
        ptx_set(f, part.stride, ptx_mul(f, size, ptx_u32(record)));
        ptx_set(f, part.numbers, ptx_u32(a->head_dim + GROUP_NUMBERS));
        ptx_set(f, part.count, groups);
        ptx_repeat_if(f, ptx_and(f, is_last, has_next));
    }
}

static void join_all(const attention *a, records part, ptx_val tid)
{
    (a->split_k ? join_parts : join_groups)(a, part, tid);
}

void attention_leave_part(const attention *a, const attention_slice slices[], uint32_t count, ptx_val tid)
{
    ptx_fn *f = a->f;
    records part = of_part(a);
    for (uint32_t i = 0; i < count; i++) {
        PTX_IF (f, ptx_lt(f, slices[i].number, a->rows)) {
            ptx_val row = ptx_sub(f, slices[i].number, a->first);
            attention_store_slice(a, &slices[i], ptx_at(f, part.first, ptx_mul(f, row, part.row_stride)));
        }
    }
    join_all(a, part, tid);
}

void attention_leave_warps(const attention *a, ptx_val of_warps, uint32_t warps, ptx_val tid)
{
    ptx_fn *f = a->f;
    const uint32_t record = attention_record(a);
    const records shared = {.first = of_warps,
                            .row_stride = ptx_u32(record),
                            .stride = ptx_u32(a->tile_q * record),
                            .known_count = warps,
                            .numbers = ptx_u32(a->head_dim),
                            .hints = PTX_PLAIN};
    if (a->split_k == 1) {
        join(a, &shared, NULL, 0, (ptx_val){0}, tid);
        return;
    }
    ptx_val is_split = attention_is_split(a);
    records part = of_part(a);
    join(a, &shared, &part, a->head_dim, is_split, tid);
    PTX_IF (f, is_split) {
        join_all(a, part, tid);
    }
}
