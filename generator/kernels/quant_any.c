/* The 4-bit quantisers where the group's size is an argument, from 1 to more than there are elements.
 *
 * PACK AND UNPACK go tile by tile, as for fixed groups. But a lane's elements may be of several groups, so each element fetches
 * its own numbers: from the lane that keeps them, or from memory where a tile has more groups than there are lanes.
 *
 * A position p is divided by the group's size in f32: (p + 0.5) * (1 / size) is at least 0.5 / size away from a whole
 * number, and with p < 2^15 its error is below 2^15 / size * 2^-22.
 *
 * SCALES, with the codes or without. A thread block owns whole groups: two large ones, or small ones that together have about
 * as many elements as it keeps in shared memory. Their number is even, so that two thread blocks never share a byte of codes.
 * A team of lanes (1 to 32, or the whole thread block) reads a group. An atomic maximum in shared memory joins the extremes of
 * its parts, as integers in the order of the floats; 0 means that there was no number. The quantizer reads the elements of
 * large groups twice. Accesses to memory start at a sector, before the first element of the thread block or group.
 */
#include "quant.h"

enum {
    THREADS = 32 * QUANT_WARPS,
    UNROLL = 4,
    SECTOR_ELEMENTS = 32, /* of one byte: that many of any type fill whole sectors */
    BLOCK_TEAM = 512,     /* groups of this size and more get the whole thread block */
    LARGE_GROUP = 2048    /* a group of this size or more ends at most once in a tile */
};

/* The argument, or n when that is less: U64. */
static ptx_val group_size(quant *q)
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
    ptx_val size = group_size(q);
    w.first_group = ptx_div(f, q->first, size);
    ptx_val start = ptx_mul(f, w.first_group, size);
    ptx_val position = ptx_sub(f, q->first, start);
    ptx_val left = ptx_sub(f, size, position);
    ptx_val left_short = ptx_cvt(f, PTX_U32, ptx_min(f, left, 2 * LARGE_GROUP));
    ptx_val position_before_end = ptx_sub(f, 2 * LARGE_GROUP, left_short);
    ptx_val is_small = ptx_lt(f, size, LARGE_GROUP);
    ptx_val position_short = ptx_cvt(f, PTX_U32, position);
    w.position = ptx_select(f, is_small, position_short, position_before_end);
    ptx_val size_short = ptx_cvt(f, PTX_U32, size);
    ptx_val size_taken = ptx_select(f, is_small, size_short, 2 * LARGE_GROUP);
    w.inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, size_taken));
    return w;
}

/* Groups from the tile's first to the one of the element `offset` after the tile's first, not yet rounded down. */
static ptx_val group_offset(quant *q, const finder *w, ptx_val offset)
{
    ptx_fn *f = q->f;
    ptx_val position = ptx_add(f, w->position, offset);
    ptx_val number = ptx_cvt(f, PTX_F32, position);
    ptx_val middle = ptx_add(f, number, 0.5f);
    return ptx_mul(f, middle, w->inverse);
}

/* The numbers of a group, counted from the tile's first; 1 where the group is out of bounds. */
static quant_numbers load_numbers(quant *q, const finder *w, ptx_val group, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    quant_numbers g = {.at = {{0}}};
    if (q->is_nested)
        g.at[QUANT_SCALE] = quant_nested_scale(q, w->first_group, group, &in_bounds);
    for (uint32_t i = 0; i < q->stored && !q->is_nested; i++) {
        ptx_val at = ptx_at(f, ptx_at(f, q->number[i], w->first_group), group);
        g.at[i] = ptx_var(f, ptx_number(q->wide, 1));
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, g.at[i], ptx_load_hint(f, at, PTX_NC));
        }
    }
    return g;
}

/* The numbers of the i-th element after the one that `offset` belongs to; from the lane that keeps them, where one does.
 * Needs all lanes. */
static quant_numbers element_numbers(quant *q, const finder *w, ptx_val offset, uint32_t i, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    ptx_val exact = i == 0 ? offset : ptx_fma(f, w->inverse, (float)i, offset);
    ptx_val group = ptx_cvt_rzi(f, PTX_U32, exact);
    if (w->kept.at[QUANT_SCALE].type == PTX_NONE)
        return load_numbers(q, w, group, in_bounds);
    quant_numbers g = {.at = {{0}}};
    for (uint32_t n = 0; n < q->stored; n++)
        g.at[n] = ptx_shfl_idx(f, w->kept.at[n], group);
    return g;
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
    ptx_val offset = ptx_mad(f, q->lane, q->lane_elements, start);
    ptx_val has = ptx_as(f, PTX_S32, ptx_sub(f, q->left, offset));
    s.is_full = ptx_ge(f, has, (int)q->lane_elements);
    s.tensor = ptx_at(f, quant_tile_at(q, tensor), start);
    ptx_val byte = ptx_shr(f, start, 1);
    s.packed = ptx_at(f, quant_packed_at(q), byte);
    ptx_val groups = group_offset(q, w, offset);
    for (uint32_t i = 0; i < q->lane_elements; i++) {
        s.in_bounds[i] = ptx_gt(f, has, (int)i);
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
            ptx_val two = i == 0 ? codes : ptx_shr(f, codes, 4 * i);
            PTX_WHEN (f, s->in_bounds[i]) {
                ptx_store(f, ptx_at_const(f, s->packed, i / 2), two);
            }
        }
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
            ptx_mad_to(f, codes, two, UINT32_C(1) << 4 * i);
        }
    }
    return codes;
}

static void pack_step(quant *q, const any_step *s, const quant_tables *tables)
{
    ptx_val x[QUANT_MOST_LANE_ELEMENTS];
    load_lane(q, s, x);
    ptx_val codes = quant_codes(q, tables, s->numbers, 1, x, q->lane_elements, QUANT_DIVIDE);
    store_lane_codes(q, s, codes);
}

static void unpack_step(quant *q, const any_step *s, ptx_val values)
{
    ptx_fn *f = q->f;
    ptx_val x[QUANT_MOST_LANE_ELEMENTS], codes = load_lane_codes(q, s);
    for (uint32_t i = 0; i < q->lane_elements; i++)
        x[i] = quant_value(q, values, &s->numbers[i], codes, i);
    PTX_IF (f, s->is_full) {
        quant_store_step(q, s->tensor, x);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i++)
            quant_store_element(q, ptx_at_const(f, s->tensor, i), x[i], s->in_bounds[i]);
    }
}

/* Packs by tables, or unpacks. */
static void code_steps(quant *q, const finder *w, const quant_tables *tables, ptx_val values)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, 0, q->left, q->step_elements) {
        any_step s = init_step(q, w, tables ? q->in : q->out, start);
        if (tables)
            pack_step(q, &s, tables);
        else
            unpack_step(q, &s, values);
    }
}

/* Emits two bodies. Where a tile has at most 32 groups, lane i keeps the numbers of the i-th and elements fetch them from
 * there; in the other one each element loads its numbers from memory. */
void quant_any_tiles(quant *q, bool packs)
{
    ptx_fn *f = q->f;
    ptx_val in_bounds = quant_find_tile(q);
    PTX_IF (f, in_bounds) {
        quant_tables tables = {.threshold = {0}};
        ptx_val values = {0};
        quant_find_left(q);
        if (packs)
            tables = quant_load_tables(q);
        else
            values = quant_load_values(q);
        finder w = find_groups(q);
        ptx_val last = ptx_sub(f, q->left, 1);
        ptx_val last_group = ptx_cvt_rzi(f, PTX_U32, group_offset(q, &w, last));
        PTX_IF (f, ptx_lt(f, last_group, 32)) {
            ptx_val has_group = ptx_le(f, q->lane, last_group);
            w.kept = load_numbers(q, &w, q->lane, has_group);
            code_steps(q, &w, packs ? &tables : NULL, values);
            w.kept.at[QUANT_SCALE] = (ptx_val){0};
        }
        PTX_ELSE (f) {
            code_steps(q, &w, packs ? &tables : NULL, values);
        }
    }
}

/* ---- scales: what a thread block owns ------------------------------------------------------------------------------ */

typedef struct share {
    ptx_val size;   /* of a group, U64 */
    uint32_t large; /* least elements of a group that is not kept in shared memory */
    ptx_val is_large;
    ptx_val groups;             /* that the thread block has room for, U32 */
    ptx_val first_group, first; /* U64 */
    ptx_val count;              /* elements in bounds, U64 */
    ptx_val thread;             /* in the thread block, U32 */
    ptx_val kept;               /* shared memory: the elements, unless groups are large */
    ptx_val numbers[2]; /* shared memory: keys of extremes, the smallest negated; then scales and zeros */
} share;

static share find_share(quant *q)
{
    ptx_fn *f = q->f;
    share s = {.thread = ptx_tid_x(f), .large = q->wide == PTX_F64 ? 1024 : 2048};
    s.size = group_size(q);
    s.is_large = ptx_ge(f, s.size, s.large);
    ptx_val short_size = ptx_cvt(f, PTX_U32, ptx_min(f, s.size, s.large));
    ptx_val rounded_up = ptx_add(f, short_size, s.large / 2 - 1);
    ptx_val pairs = ptx_div(f, rounded_up, short_size);
    s.groups = ptx_shl(f, pairs, 1);
    ptx_val block = ptx_ctaid_x(f);
    s.first_group = ptx_mul_wide(f, block, s.groups);
    s.first = ptx_mul(f, s.first_group, s.size);
    ptx_val left = ptx_sub(f, q->n, s.first);
    ptx_val room = ptx_mul(f, ptx_cvt(f, PTX_U64, s.groups), s.size);
    s.count = ptx_min(f, left, room);
    ptx_type key = q->wide == PTX_F64 ? PTX_U64 : PTX_U32;
    s.kept = ptx_shared(f, q->wide, 2 * s.large, 16);
    for (uint32_t i = 0; i < q->stored; i++)
        s.numbers[i] = ptx_shared(f, key, s.large, 16); /* the most groups: those of one element */
    return s;
}

/* The first element of the thread block's group g, from the thread block's first, U64. */
static ptx_val group_start(quant *q, const share *s, ptx_val group)
{
    ptx_val wide = ptx_cvt(q->f, PTX_U64, group);
    return ptx_mul(q->f, wide, s->size);
}

/* ---- keys: unsigned integers in the order of floats --------------------------------------------------------------- */

static ptx_val key_number(const quant *q, uint64_t bits)
{
    return q->wide == PTX_F64 ? ptx_u64(bits) : ptx_u32((uint32_t)(bits >> 32));
}

/* All ones where the sign is set, else the sign's bit. */
static ptx_val key_mask(quant *q, ptx_val bits)
{
    ptx_fn *f = q->f;
    bool is_f64 = q->wide == PTX_F64;
    ptx_val sign = ptx_shr(f, ptx_as(f, is_f64 ? PTX_S64 : PTX_S32, bits), is_f64 ? 63 : 31);
    return ptx_or(f, ptx_as(f, is_f64 ? PTX_U64 : PTX_U32, sign), key_number(q, UINT64_C(1) << 63));
}

static ptx_val key_of(quant *q, ptx_val x)
{
    ptx_fn *f = q->f;
    ptx_val bits = ptx_as(f, q->wide == PTX_F64 ? PTX_U64 : PTX_U32, x);
    ptx_val mask = key_mask(q, bits);
    ptx_val key = ptx_xor(f, bits, mask);
    ptx_val is_number = ptx_ordered(f, x, x);
    return ptx_select(f, is_number, key, key_number(q, 0));
}

/* A NaN for 0. */
static ptx_val float_of(quant *q, ptx_val key)
{
    ptx_fn *f = q->f;
    ptx_val flipped = ptx_not(f, key);
    ptx_val mask = key_mask(q, flipped);
    return ptx_as(f, q->wide, ptx_xor(f, key, mask));
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Elements from the start of a sector to the thread block's element `from`: U64. */
static ptx_val lead_of(quant *q, const share *s, ptx_val from)
{
    ptx_val element = ptx_add(q->f, s->first, from);
    return ptx_and(q->f, element, SECTOR_ELEMENTS - 1);
}

static void keep_elements(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    ptx_val in = ptx_at(f, q->in, s->first);
    ptx_val lead = ptx_cvt(f, PTX_U32, lead_of(q, s, ptx_u64(0)));
    ptx_val count = ptx_cvt(f, PTX_U32, s->count);
    ptx_val end = ptx_add(f, count, lead);
    PTX_FOR (f, from, s->thread, end, UNROLL * THREADS) {
        ptx_val x[UNROLL], in_bounds[UNROLL], element[UNROLL];
        for (uint32_t i = 0; i < UNROLL; i++) {
            element[i] = ptx_sub(f, i == 0 ? from : ptx_add(f, from, i * THREADS), lead);
            in_bounds[i] = ptx_lt(f, element[i], count); /* before the first it wraps to a huge number */
            x[i] = quant_load_element(q, ptx_at(f, in, element[i]), in_bounds[i]);
        }
        for (uint32_t i = 0; i < UNROLL; i++) {
            ptx_val to = ptx_at(f, s->kept, element[i]);
            PTX_WHEN (f, in_bounds[i]) {
                ptx_store(f, to, x[i]);
            }
        }
    }
}

/* A NaN where it is out of bounds. */
static ptx_val load_kept(quant *q, ptx_val at, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    ptx_val x = ptx_var(f, quant_nan(q));
    PTX_WHEN (f, in_bounds) {
        ptx_set(f, x, ptx_load(f, at));
    }
    return x;
}

/* ---- extremes ----------------------------------------------------------------------------------------------------- */

/* Lanes that read a group together. */
typedef struct team {
    ptx_val lanes, log;  /* U32 */
    ptx_val position;    /* of this thread in its team */
    ptx_val first_group; /* of this thread's team */
    ptx_val teams;       /* in the thread block */
    ptx_val joins[5];    /* whether lanes 1, 2, ... 16 apart are of one team */
} team;

static team find_team(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    team t;
    ptx_val quarter = ptx_shr(f, ptx_min(f, s->size, 32 * UNROLL), 2);
    ptx_val most_lanes = ptx_max(f, ptx_cvt(f, PTX_U32, quarter), 1);
    ptx_val log_small = ptx_bfind(f, most_lanes);
    ptx_val is_for_block = ptx_ge(f, s->size, BLOCK_TEAM);
    t.log = ptx_select(f, is_for_block, 8, log_small);
    t.lanes = ptx_shl(f, ptx_u32(1), t.log);
    ptx_val mask = ptx_sub(f, t.lanes, 1);
    t.position = ptx_and(f, s->thread, mask);
    t.first_group = ptx_shr(f, s->thread, t.log);
    t.teams = ptx_shr(f, ptx_u32(THREADS), t.log);
    for (uint32_t i = 0; i < 5; i++)
        t.joins[i] = ptx_gt(f, t.lanes, 1u << i);
    return t;
}

static void add_elements(quant *q, const ptx_val x[UNROLL], quant_extremes *all)
{
    quant_extremes e = *all;
    for (int i = 0; i < UNROLL; i++)
        quant_extremes_add(q, &e, x[i]);
    for (uint32_t i = 0; i < q->stored; i++)
        ptx_set(q->f, all->at[i], e.at[i]);
}

/* This thread's part of `size` elements from `start`, both U64, in memory. */
static void add_part(quant *q, const share *s, const team *t, ptx_val start, ptx_val size,
                     quant_extremes *all)
{
    ptx_fn *f = q->f;
    ptx_val in = ptx_at(f, ptx_at(f, q->in, s->first), start);
    ptx_val lanes = ptx_cvt(f, PTX_U64, t->lanes);
    ptx_val stride = ptx_shl(f, lanes, 2);
    ptx_val lead = lead_of(q, s, start);
    ptx_val position = ptx_cvt(f, PTX_U64, t->position);
    ptx_val end = ptx_add(f, size, lead);
    PTX_FOR (f, from, position, end, stride) {
        ptx_val x[UNROLL], behind = from;
        for (int i = 0; i < UNROLL; i++) {
            if (i > 0)
                behind = ptx_add(f, behind, lanes);
            ptx_val element = ptx_sub(f, behind, lead);
            ptx_val in_bounds = ptx_lt(f, element, size);
            x[i] = quant_load_element(q, ptx_at(f, in, element), in_bounds);
        }
        add_elements(q, x, all);
    }
}

/* The same for elements in shared memory. */
static void add_kept_part(quant *q, const share *s, const team *t, ptx_val start, ptx_val size,
                          quant_extremes *all)
{
    ptx_fn *f = q->f;
    ptx_val kept = ptx_at(f, s->kept, ptx_cvt(f, PTX_U32, start));
    ptx_val stride = ptx_shl(f, t->lanes, 2);
    ptx_val end = ptx_cvt(f, PTX_U32, size);
    PTX_FOR (f, from, t->position, end, stride) {
        ptx_val x[UNROLL], element = from;
        for (int i = 0; i < UNROLL; i++) {
            if (i > 0)
                element = ptx_add(f, element, t->lanes);
            ptx_val in_bounds = ptx_lt(f, element, end);
            x[i] = load_kept(q, ptx_at(f, kept, element), in_bounds);
        }
        add_elements(q, x, all);
    }
}

static quant_extremes extremes_of_part(quant *q, const share *s, const team *t, ptx_val start, ptx_val end)
{
    ptx_fn *f = q->f;
    quant_extremes all = {.nan_wins = false};
    for (uint32_t i = 0; i < 2; i++)
        all.at[i] = ptx_var(f, quant_nan(q));
    ptx_val in_bounds = ptx_lt(f, start, end);
    PTX_IF (f, in_bounds) {
        ptx_val size = ptx_sub(f, end, start);
        PTX_IF (f, s->is_large) {
            add_part(q, s, t, start, size, &all);
        }
        PTX_ELSE (f) {
            add_kept_part(q, s, t, start, size, &all);
        }
    }
    return all;
}

/* Reduces over the team's lanes in this warp. */
static ptx_val reduce_team(quant *q, const team *t, ptx_op op, ptx_val value)
{
    ptx_fn *f = q->f;
    for (uint32_t i = 0; i < 5; i++) {
        ptx_val other = ptx_shfl_xor(f, value, 1u << i);
        ptx_val joined = ptx_op2(f, op, value, other, PTX_HERE);
        value = ptx_select(f, t->joins[i], joined, value);
    }
    return value;
}

static void find_extremes(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    team t = find_team(q, s);
    ptx_val in_warp = ptx_and(f, t.position, 31);
    ptx_val leads = ptx_eq(f, in_warp, 0);
    PTX_FOR (f, base, 0, s->groups, t.teams) {
        ptx_val group = ptx_add(f, base, t.first_group);
        ptx_val start = group_start(q, s, group);
        ptx_val end = ptx_min(f, ptx_add(f, start, s->size), s->count);
        quant_extremes e = extremes_of_part(q, s, &t, start, end);
        ptx_val key[2], at[2];
        for (uint32_t i = 0; i < q->stored; i++) {
            ptx_val extreme = reduce_team(q, &t, quant_extreme[false][i], e.at[i]);
            key[i] = key_of(q, i == 0 ? extreme : ptx_neg(f, extreme));
        }
        ptx_val in_bounds = ptx_lt(f, start, s->count);
        ptx_val tells = ptx_and(f, leads, in_bounds);
        for (uint32_t i = 0; i < q->stored; i++)
            at[i] = ptx_at(f, s->numbers[i], group);
        PTX_WHEN (f, tells) {
            for (uint32_t i = 0; i < q->stored; i++)
                ptx_red_max(f, at[i], key[i], PTX_PLAIN);
        }
    }
    ptx_barrier(f);
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static void store_scales(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, group, s->thread, s->groups, THREADS) {
        ptx_val start = group_start(q, s, group);
        ptx_val in_bounds = ptx_lt(f, start, s->count);
        PTX_IF (f, in_bounds) {
            quant_extremes e = {.nan_wins = false};
            for (uint32_t i = 0; i < q->stored; i++) {
                ptx_val extreme = float_of(q, ptx_load(f, ptx_at(f, s->numbers[i], group)));
                e.at[i] = i == 0 ? extreme : ptx_neg(f, extreme);
            }
            quant_numbers g = quant_numbers_of(q, e);
            for (uint32_t i = 0; i < q->stored; i++) {
                ptx_val first = ptx_at(f, q->number[i], s->first_group);
                ptx_store(f, ptx_at(f, first, group), g.at[i]);
                ptx_store(f, ptx_at(f, ptx_cast_ptr(f, s->numbers[i], q->wide), group), g.at[i]);
            }
        }
    }
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

static quant_numbers numbers_at(quant *q, const share *s, ptx_val group)
{
    ptx_fn *f = q->f;
    quant_numbers g = {.at = {{0}}};
    for (uint32_t i = 0; i < q->stored; i++)
        g.at[i] = ptx_load(f, ptx_at(f, ptx_cast_ptr(f, s->numbers[i], q->wide), group));
    return g;
}

/* Two elements, one byte, per thread and round. All threads take part in every round, for the coder's shuffles. */
typedef struct pair {
    ptx_val in_bounds[2];
    ptx_val x[2];
    ptx_val group[2]; /* U32; of an element out of bounds any group that there is */
    ptx_val at;       /* of the byte */
} pair;

static void store_pair(quant *q, const share *s, const quant_tables *t, const pair *p)
{
    quant_numbers g[2] = {numbers_at(q, s, p->group[0])};
    g[1] = numbers_at(q, s, p->group[1]);
    ptx_val codes = quant_codes(q, t, g, 1, p->x, 2, QUANT_DIVIDE);
    PTX_WHEN (q->f, p->in_bounds[0]) {
        ptx_store(q->f, p->at, codes);
    }
}

/* Elements from the start of a sector of codes to the thread block's first: U64. */
static ptx_val lead_of_codes(quant *q, const share *s)
{
    return ptx_and(q->f, s->first, 2 * SECTOR_ELEMENTS - 1);
}

static void store_large_codes(quant *q, const share *s, const quant_tables *t, ptx_val packed)
{
    ptx_fn *f = q->f;
    ptx_val in = ptx_at(f, q->in, s->first);
    ptx_val lead = lead_of_codes(q, s);
    ptx_val end = ptx_add(f, s->count, lead);
    PTX_FOR (f, base, 0, end, 2 * THREADS) {
        pair p;
        ptx_val behind = ptx_mad_wide(f, s->thread, 2, base);
        ptx_val first = ptx_sub(f, behind, lead);
        ptx_val second = ptx_add(f, first, 1);
        p.in_bounds[0] = ptx_lt(f, first, s->count);
        p.in_bounds[1] = ptx_lt(f, second, s->count);
        quant_load_pair(q, ptx_at(f, in, first), p.in_bounds, p.x);
        ptx_val is_behind[2] = {ptx_ge(f, first, s->size)};
        is_behind[1] = ptx_ge(f, second, s->size);
        for (int i = 0; i < 2; i++)
            p.group[i] = ptx_select(f, is_behind[i], ptx_u32(1), 0);
        p.at = ptx_at(f, packed, ptx_shr(f, first, 1));
        store_pair(q, s, t, &p);
    }
}

static void store_kept_codes(quant *q, const share *s, const quant_tables *t, ptx_val packed)
{
    ptx_fn *f = q->f;
    ptx_val count = ptx_cvt(f, PTX_U32, s->count);
    ptx_val lead = ptx_cvt(f, PTX_U32, lead_of_codes(q, s));
    ptx_val end = ptx_add(f, count, lead);
    ptx_val inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, ptx_cvt(f, PTX_U32, s->size)));
    ptx_val last_group = ptx_sub(f, s->groups, 1);
    PTX_FOR (f, base, 0, end, 2 * THREADS) {
        pair p;
        ptx_val behind = ptx_mad(f, s->thread, 2, base);
        ptx_val first = ptx_sub(f, behind, lead);
        ptx_val second = ptx_add(f, first, 1);
        p.in_bounds[0] = ptx_lt(f, first, count);
        p.in_bounds[1] = ptx_lt(f, second, count);
        ptx_val at = ptx_at(f, s->kept, first);
        p.x[0] = load_kept(q, at, p.in_bounds[0]);
        p.x[1] = load_kept(q, ptx_at_const(f, at, 1), p.in_bounds[1]);
        ptx_val middle = ptx_add(f, ptx_cvt(f, PTX_F32, first), 0.5f);
        ptx_val exact[2] = {ptx_mul(f, middle, inverse)};
        exact[1] = ptx_add(f, exact[0], inverse);
        for (int i = 0; i < 2; i++)
            p.group[i] = ptx_min(f, ptx_cvt_rzi(f, PTX_U32, exact[i]), last_group);
        p.at = ptx_at(f, packed, ptx_shr(f, first, 1));
        store_pair(q, s, t, &p);
    }
}

void quant_any_scale(quant *q, bool packs)
{
    ptx_fn *f = q->f;
    share s = find_share(q);
    ptx_val is_small = ptx_lt(f, s.size, s.large);
    PTX_IF (f, is_small) {
        keep_elements(q, &s);
    }
    PTX_FOR (f, group, s.thread, s.groups, THREADS) {
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_store(f, ptx_at(f, s.numbers[i], group), key_number(q, 0));
    }
    ptx_barrier(f);
    find_extremes(q, &s);
    store_scales(q, &s);
    if (packs) {
        ptx_barrier(f);
        q->lane = ptx_laneid(f);
        quant_tables tables = quant_load_tables(q);
        ptx_val packed = ptx_at(f, q->packed, ptx_shr(f, s.first, 1));
        PTX_IF (f, s.is_large) {
            store_large_codes(q, &s, &tables, packed);
        }
        PTX_ELSE (f) {
            store_kept_codes(q, &s, &tables, packed);
        }
    }
}
