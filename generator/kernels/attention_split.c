/* For each row of O the workspace has, part after part, the sums of all columns, then the shift (they are scaled by
 * 2^-shift) and the sum of the weights. It has rows in bounds only, so one query takes little.
 */
#include "attention_split.h"
#include "device/split.h"

enum { ROW_NUMBERS = 8 }; /* after the columns: shift, sum, and padding to 16 bytes */

/* The first number of the row's first part. */
static ptx_val find_row(const attention *a, ptx_val number)
{
    ptx_fn *f = a->f;
    ptx_val row = ptx_add(f, a->before, ptx_cvt(f, PTX_U64, number));
    ptx_val before = ptx_mul(f, row, ptx_u64(a->split_k * (a->head_dim_v + ROW_NUMBERS)));
    return ptx_at(f, a->workspace, before);
}

static void store_slice(const attention *a, const attention_slice *s)
{
    ptx_fn *f = a->f;
    ptx_val first = find_row(a, s->number);
    ptx_val part = ptx_at(f, first, ptx_mul(f, a->part, ptx_u32(a->head_dim_v + ROW_NUMBERS)));
    ptx_val at = ptx_at(f, part, s->column);
    for (uint32_t i = 0; i < s->count; i++) {
        ptx_val in_bounds = ptx_le(f, s->column, ptx_u32(a->head_dim_v - s->width - i * s->step));
        PTX_WHEN (f, in_bounds) {
            ptx_store_vec(f, (int)s->width, ptx_at_const(f, at, i * s->step), &s->sums[i * s->width],
                          PTX_PLAIN);
        }
    }
    ptx_val numbers[2] = {s->row->shift, s->row->sum};
    PTX_WHEN (f, ptx_eq(f, s->column, ptx_u32(0))) {
        ptx_store_vec(f, 2, ptx_at_const(f, part, a->head_dim_v), numbers, PTX_PLAIN);
    }
}

ptx_val attention_leave_part(const attention *a, const attention_slice slices[], uint32_t count, ptx_val tid)
{
    ptx_fn *f = a->f;
    for (uint32_t i = 0; i < count; i++) {
        PTX_IF (f, ptx_lt(f, slices[i].number, a->rows)) {
            store_slice(a, &slices[i]);
        }
    }
    split s = {.f = f, .parts = a->split_k, .tile_counters = a->tile_counters, .tile = a->tile, .tid = tid};
    return split_arrive(&s);
}

/* sums = sums * shrink + part * weight; the larger of the two shifts becomes the row's. */
static void join_part(const attention *a, const attention_slice *s, ptx_val first, ptx_val part)
{
    ptx_fn *f = a->f;
    ptx_val numbers[2], at = ptx_at(f, first, ptx_mul(f, part, ptx_u32(a->head_dim_v + ROW_NUMBERS)));
    ptx_load_vec(f, 2, numbers, ptx_at_const(f, at, a->head_dim_v), PTX_CG);
    ptx_val most = ptx_max(f, s->row->shift, numbers[0]);
    ptx_val is_none = ptx_eq(f, most, softmax_none(a->wide));
    ptx_val safe = ptx_select(f, is_none, ptx_number(a->wide, 0), most);
    ptx_val shrink = softmax_exp2(f, a->wide, ptx_sub(f, s->row->shift, safe));
    ptx_val weight = softmax_exp2(f, a->wide, ptx_sub(f, numbers[0], safe));
    ptx_set(f, s->row->shift, most);
    ptx_mul_to(f, s->row->sum, shrink);
    ptx_fma_to(f, s->row->sum, numbers[1], weight);
    for (uint32_t i = 0; i < s->count; i++) {
        ptx_val x[4], column = i == 0 ? s->column : ptx_add(f, s->column, ptx_u32(i * s->step));
        ptx_val from = ptx_at(f, at, ptx_min(f, column, ptx_u32(a->head_dim_v - s->width)));
        ptx_load_vec(f, (int)s->width, x, from, PTX_CG);
        for (uint32_t e = 0; e < s->width; e++) {
            ptx_mul_to(f, s->sums[i * s->width + e], shrink);
            ptx_fma_to(f, s->sums[i * s->width + e], x[e], weight);
        }
    }
}

static void join_row(const attention *a, const attention_slice *s)
{
    ptx_fn *f = a->f;
    ptx_val first = find_row(a, s->number);
    ptx_set(f, s->row->shift, softmax_none(a->wide));
    ptx_set(f, s->row->sum, ptx_number(a->wide, 0));
    for (uint32_t n = 0; n < s->count * s->width; n++)
        ptx_set(f, s->sums[n], ptx_number(a->wide, 0));
    /* There are never fewer thread blocks than parts. ptxas does not know, so it does not hold all parts in registers. */
    ptx_val parts = ptx_min(f, ptx_nctaid_x(f), ptx_u32(a->split_k));
    PTX_FOR (f, part, ptx_u32(0), parts, ptx_u32(1)) {
        join_part(a, s, first, part);
    }
}

void attention_join_parts(const attention *a, const attention_slice slices[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        PTX_IF (a->f, ptx_lt(a->f, slices[i].number, a->rows)) {
            join_row(a, &slices[i]);
        }
    }
}
