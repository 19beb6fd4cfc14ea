/* The 4-bit quantisers where the group's size is an argument, from 1 to more than there are elements.
 *
 * The kernels go tile by tile, as for fixed groups. But a lane's elements may be of several groups, so each element fetches
 * its own numbers: from the lane that keeps them, or from memory where a tile has more groups than there are lanes.
 * quant_any_scale.c makes scales.
 *
 * A position p is divided by the group's size in f32: (p + 0.5) * (1 / size) is at least 0.5 / size away from a whole
 * number, and with p < 2^15 its error is below 2^15 / size * 2^-22.
 */
#include "quant.h"

enum {
    LARGE_GROUP = 2048 /* a group of this size or more ends at most once in a tile */
};

/* No group is larger than the tensor. */
ptx_val quant_group_size(quant *q)
{
    return ptx_min(q->f, q->group_size, q->n);
}

/* ---- which group a tile's element is in --------------------------------------------------------------------------- */

typedef struct finder {
    ptx_val first_group; /* of the tile's first element, U64 */
    ptx_val position;    /* of that element in its group, U32 */
    ptx_val inverse;     /* 1 / group's size, F32 */
    quant_numbers kept;  /* of the group that this lane owns; poison: numbers are in memory */
} finder;

/* Of a large group only its end matters, where a tile has it: so it counts as a group of 4096 that ends there. */
static finder find_groups(quant *q)
{
    ptx_fn *f = q->f;
    finder w = {.kept = {.at = {{0}}}};
    ptx_val size = quant_group_size(q);
    w.first_group = ptx_div(f, q->first, size);
    ptx_val start = ptx_mul(f, w.first_group, size);
    ptx_val position = ptx_sub(f, q->first, start);
    ptx_val left = ptx_sub(f, size, position);
    ptx_val left_short = ptx_cvt(f, PTX_U32, ptx_min(f, left, ptx_u64(2 * LARGE_GROUP)));
    ptx_val position_before_end = ptx_sub(f, ptx_u32(2 * LARGE_GROUP), left_short);
    ptx_val is_small = ptx_lt(f, size, ptx_u64(LARGE_GROUP));
    ptx_val position_short = ptx_cvt(f, PTX_U32, position);
    w.position = ptx_select(f, is_small, position_short, position_before_end);
    ptx_val size_short = ptx_cvt(f, PTX_U32, size);
    ptx_val size_taken = ptx_select(f, is_small, size_short, ptx_u32(2 * LARGE_GROUP));
    w.inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, size_taken));
    return w;
}

/* Groups from the tile's first to the one of the element `offset` after the tile's first, not yet rounded down. */
static ptx_val group_offset(quant *q, const finder *w, ptx_val offset)
{
    ptx_fn *f = q->f;
    ptx_val position = ptx_add(f, w->position, offset);
    ptx_val number = ptx_cvt(f, PTX_F32, position);
    ptx_val middle = ptx_add(f, number, ptx_f32(0.5f));
    return ptx_mul(f, middle, w->inverse);
}

/* Calls `find` for each number that the coder has. */
static quant_numbers each_number(quant *q,
                                 ptx_val (*find)(quant *, const finder *, uint32_t, ptx_val, ptx_val),
                                 const finder *w, ptx_val group, ptx_val in_bounds)
{
    quant_numbers g = {.at = {{0}}};
    for (uint32_t i = 0; i < q->stored; i++)
        g.at[i] = find(q, w, i, group, in_bounds);
    return g;
}

/* A number of a group, counted from the tile's first; 1 where the group is out of bounds. */
static ptx_val load_number(quant *q, const finder *w, uint32_t number, ptx_val group, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    if (q->is_nested)
        return quant_nested_scale(q, w->first_group, group, &in_bounds);
    ptx_val first = ptx_at(f, q->number[number], w->first_group);
    ptx_val at = ptx_at(f, first, group);
    ptx_val value = ptx_var(f, ptx_number(q->wide, 1));
    PTX_WHEN (f, in_bounds) {
        ptx_set(f, value, ptx_load_hint(f, at, PTX_NC));
    }
    return value;
}

/* The same from the lane that keeps it. Needs all lanes. */
static ptx_val fetch_number(quant *q, const finder *w, uint32_t number, ptx_val group, ptx_val in_bounds)
{
    (void)in_bounds;
    return ptx_shfl_idx(q->f, w->kept.at[number], group);
}

/* The numbers of the i-th element after the one that `offset` belongs to. */
static quant_numbers element_numbers(quant *q, const finder *w, ptx_val offset, uint32_t i, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    ptx_val exact = i == 0 ? offset : ptx_fma(f, w->inverse, ptx_f32((float)i), offset);
    ptx_val group = ptx_cvt_rzi(f, PTX_U32, exact);
    return each_number(q, w->kept.at[QUANT_SCALE].type != PTX_NONE ? fetch_number : load_number, w, group,
                       in_bounds);
}

/* Emits two bodies. Where a tile has at most 32 groups, lane i keeps the numbers of the i-th and elements fetch them from
 * there; in the other one each element loads its numbers from memory. */
static void with_numbers(quant *q, finder *w, void (*emit)(quant *, const finder *, const void *),
                         const void *tables)
{
    ptx_fn *f = q->f;
    ptx_val last = ptx_sub(f, q->left, ptx_u32(1));
    ptx_val last_group = ptx_cvt_rzi(f, PTX_U32, group_offset(q, w, last));
    ptx_val are_few = ptx_lt(f, last_group, ptx_u32(32));
    PTX_IF (f, are_few) {
        ptx_val in_bounds = ptx_le(f, q->lane, last_group);
        w->kept = each_number(q, load_number, w, q->lane, in_bounds);
        emit(q, w, tables);
        w->kept.at[QUANT_SCALE] = (ptx_val){0};
    }
    PTX_ELSE (f) {
        emit(q, w, tables);
    }
}

/* ---- pack and unpack ---------------------------------------------------------------------------------------------- */

/* One step of a tile, as a lane sees it. */
typedef struct any_step {
    ptx_val in_bounds[QUANT_MOST_LANE_ELEMENTS]; /* each of the lane's elements */
    ptx_val is_full;                             /* all of them */
    ptx_val tensor, packed;                      /* where they are */
    quant_numbers numbers[QUANT_MOST_LANE_ELEMENTS];
} any_step;

static any_step init_step(quant *q, const finder *w, ptx_val tensor, ptx_val start)
{
    ptx_fn *f = q->f;
    any_step s;
    ptx_val offset = ptx_mad(f, q->lane, ptx_u32(q->lane_elements), start);
    ptx_val has = ptx_as(f, PTX_S32, ptx_sub(f, q->left, offset));
    s.is_full = ptx_ge(f, has, ptx_s32((int)q->lane_elements));
    s.tensor = ptx_at(f, quant_tile_at(q, tensor), start);
    ptx_val byte = ptx_shr(f, start, ptx_u32(1));
    s.packed = ptx_at(f, quant_packed_at(q), byte);
    ptx_val groups = group_offset(q, w, offset);
    for (uint32_t i = 0; i < q->lane_elements; i++) {
        s.in_bounds[i] = ptx_gt(f, has, ptx_s32((int)i));
        s.numbers[i] = element_numbers(q, w, groups, i, s.in_bounds[i]);
    }
    return s;
}

static void load_lane(quant *q, const any_step *s, ptx_val x[])
{
    ptx_fn *f = q->f;
    for (uint32_t i = 0; i < q->lane_elements; i++)
        x[i] = ptx_declare(f, q->wide);
    PTX_IF (f, s->is_full) {
        ptx_val all[QUANT_MOST_LANE_ELEMENTS];
        quant_load_step(q, s->tensor, all);
        for (uint32_t i = 0; i < q->lane_elements; i++)
            ptx_set(f, x[i], all[i]);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i++)
            ptx_set(f, x[i], quant_load_element(q, ptx_at_const(f, s->tensor, i), s->in_bounds[i]));
    }
}

static void store_lane_codes(quant *q, const any_step *s, ptx_val codes)
{
    ptx_fn *f = q->f;
    PTX_IF (f, s->is_full) {
        ptx_store(f, ptx_cast_ptr(f, s->packed, quant_word_type(q)), codes);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i += 2) {
            ptx_val two = i == 0 ? codes : ptx_shr(f, codes, ptx_u32(4 * i));
            PTX_WHEN (f, s->in_bounds[i]) {
                ptx_store(f, ptx_at_const(f, s->packed, i / 2), two);
            }
        }
    }
}

static void pack_steps(quant *q, const finder *w, const void *tables)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, ptx_u32(0), q->left, ptx_u32(q->step_elements)) {
        any_step s = init_step(q, w, q->in, start);
        ptx_val x[QUANT_MOST_LANE_ELEMENTS];
        load_lane(q, &s, x);
        ptx_val codes = quant_codes(q, tables, s.numbers, 1, x, q->lane_elements, QUANT_DIVIDE);
        store_lane_codes(q, &s, codes);
    }
}

void quant_any_pack(quant *q)
{
    ptx_fn *f = q->f;
    ptx_val in_bounds = quant_find_tile(q);
    PTX_IF (f, in_bounds) {
        quant_find_left(q);
        quant_tables t = quant_load_tables(q);
        finder w = find_groups(q);
        with_numbers(q, &w, pack_steps, &t);
    }
}

static ptx_val load_lane_codes(quant *q, const any_step *s)
{
    ptx_fn *f = q->f;
    ptx_val codes = ptx_var(f, ptx_u32(0));
    PTX_IF (f, s->is_full) {
        ptx_set(f, codes, ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, s->packed, quant_word_type(q)), PTX_NC));
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i += 2) {
            ptx_val two = ptx_var(f, ptx_u32(0));
            PTX_WHEN (f, s->in_bounds[i]) {
                ptx_set(f, two, ptx_load_hint(f, ptx_at_const(f, s->packed, i / 2), PTX_NC));
            }
            ptx_mad_to(f, codes, two, ptx_u32(UINT32_C(1) << 4 * i));
        }
    }
    return codes;
}

static void unpack_steps(quant *q, const finder *w, const void *values)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, ptx_u32(0), q->left, ptx_u32(q->step_elements)) {
        any_step s = init_step(q, w, q->out, start);
        ptx_val codes = load_lane_codes(q, &s);
        ptx_val x[QUANT_MOST_LANE_ELEMENTS];
        for (uint32_t i = 0; i < q->lane_elements; i++)
            x[i] = quant_value(q, *(const ptx_val *)values, &s.numbers[i], codes, i);
        PTX_IF (f, s.is_full) {
            quant_store_step(q, s.tensor, x);
        }
        PTX_ELSE (f) {
            for (uint32_t i = 0; i < q->lane_elements; i++)
                quant_store_element(q, ptx_at_const(f, s.tensor, i), x[i], s.in_bounds[i]);
        }
    }
}

void quant_any_unpack(quant *q)
{
    ptx_fn *f = q->f;
    ptx_val in_bounds = quant_find_tile(q);
    PTX_IF (f, in_bounds) {
        quant_find_left(q);
        ptx_val values = quant_load_values(q);
        finder w = find_groups(q);
        with_numbers(q, &w, unpack_steps, &values);
    }
}
