/* The 4-bit quantisers with the group's size as an argument, from 1 to more than there are elements.
 *
 * PACK AND UNPACK go tile by tile, as for fixed groups. But a lane's elements may be of several groups, so each element
 * fetches its own numbers: from the lane that keeps them, or from memory if a tile has more groups than lanes.
 *
 * A position p is divided by the group's size in f32: (p + 0.5) * (1 / size) is at least 0.5 / size away from a whole
 * number, and with p < 2^15 its error is below 2^15 / size * 2^-22.
 *
 * SCALES, with the codes or without. A thread block owns whole groups: two large ones, or small ones that together have about
 * as many elements as it keeps in shared memory. Their number is even, so that two thread blocks never share a byte of codes.
 * A team of lanes (1 to 32, or the whole thread block) reads a group. An atomic maximum in shared memory joins the extremes
 * of its parts, as integers in the order of the floats; 0 means no number. The quantizer reads the elements of large groups
 * twice. Accesses to memory start at a sector, before the first element of the thread block or group.
 */
#include "device/narrow.h"
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
    bool is_kept;        /* lane i has the numbers of the tile's i-th group; else they are in memory */
    quant_numbers kept;
} finder;

/* In a tile only the end of a large group matters. So a large group counts as one of 4096 elements that ends there. */
static finder find_groups(quant *q)
{
    ptx_fn *f = q->f;
    finder w = {.is_kept = false};
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

/* How many groups the element `offset` after the tile's first is past the tile's first group, not yet rounded down. */
static ptx_val group_offset(quant *q, const finder *w, ptx_val offset)
{
    ptx_fn *f = q->f;
    ptx_val position = ptx_add(f, w->position, offset);
    ptx_val number = ptx_cvt(f, PTX_F32, position);
    ptx_val middle = ptx_add(f, number, 0.5f);
    return ptx_mul(f, middle, w->inverse);
}

/* The numbers of the i-th element after `offset`'s; from the lane that keeps them, if one does. Needs all lanes.
 * */
static quant_numbers element_numbers(quant *q, const finder *w, ptx_val offset, uint32_t i, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    ptx_val exact = i == 0 ? offset : ptx_fma(f, w->inverse, (float)i, offset);
    ptx_val group = ptx_cvt_rzi(f, PTX_U32, exact);
    if (!w->is_kept)
        return quant_load_numbers(q, w->first_group, group, &in_bounds);
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

static any_step init_step(quant *q, const finder *w, ptx_val start)
{
    ptx_fn *f = q->f;
    any_step s;
    ptx_val offset = ptx_mad(f, q->lane, q->lane_elements, start);
    ptx_val has = ptx_as(f, PTX_S32, ptx_sub(f, q->left, offset));
    s.is_full = ptx_ge(f, has, (int)q->lane_elements);
    s.tensor = ptx_at(f, quant_tile_at(q), start);
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

static void pack_step(quant *q, const any_step *s)
{
    ptx_val x[QUANT_MOST_LANE_ELEMENTS];
    load_lane(q, s, x);
    ptx_val codes = quant_codes(q, s->numbers, 1, x, q->lane_elements, QUANT_DIVIDE);
    store_lane_codes(q, s, codes);
}

static void unpack_step(quant *q, const any_step *s)
{
    ptx_fn *f = q->f;
    ptx_val x[QUANT_MOST_LANE_ELEMENTS], codes = load_lane_codes(q, s);
    for (uint32_t i = 0; i < q->lane_elements; i++)
        x[i] = quant_value(q, &s->numbers[i], codes, i);
    PTX_IF (f, s->is_full) {
        narrow_store(f, q->type, q->lane_elements, s->tensor, x, PTX_CS);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < q->lane_elements; i++)
            narrow_store_where(f, q->type, q->wide, ptx_at_const(f, s->tensor, i), x[i], s->in_bounds[i]);
    }
}

static void code_steps(quant *q, const finder *w)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, 0, q->left, q->step_elements) {
        any_step s = init_step(q, w, start);
        (q->makes_codes ? pack_step : unpack_step)(q, &s);
    }
}

/* Emits two bodies. If a tile has at most 32 groups, lane i keeps the numbers of the i-th and elements fetch them from there;
 * in the other one each element loads its numbers from memory. */
void quant_any_tiles(quant *q)
{
    ptx_fn *f = q->f;
    ptx_val in_bounds = quant_find_tile(q);
    PTX_IF (f, in_bounds) {
        quant_find_left(q);
        quant_load_tables(q);
        finder in_memory = find_groups(q), in_lanes = in_memory;
        ptx_val last = ptx_sub(f, q->left, 1);
        ptx_val last_group = ptx_cvt_rzi(f, PTX_U32, group_offset(q, &in_memory, last));
        PTX_IF (f, ptx_lt(f, last_group, 32)) {
            ptx_val has_group = ptx_le(f, q->lane, last_group);
            in_lanes.kept = quant_load_numbers(q, in_memory.first_group, q->lane, &has_group);
            in_lanes.is_kept = true;
            code_steps(q, &in_lanes);
        }
        PTX_ELSE (f) {
            code_steps(q, &in_memory);
        }
    }
}

/* ---- scales: what a thread block owns ------------------------------------------------------------------------------ */

typedef struct share {
    ptx_val size; /* of a group, U64 */
    ptx_val is_large;
    ptx_val groups;             /* capacity of the thread block, U32 */
    ptx_val first_group, first; /* U64 */
    ptx_val count;              /* elements in bounds, U64 */
    ptx_val thread;             /* in the thread block, U32 */
    ptx_val kept;               /* shared memory: the elements, unless groups are large */
    ptx_val numbers[2]; /* shared memory: keys of extremes, the smallest negated; then scales and zeros */
} share;

static share find_share(quant *q)
{
    ptx_fn *f = q->f;
    const uint32_t large = q->large_group;
    share s = {.thread = ptx_tid_x(f)};
    s.size = group_size(q);
    s.is_large = ptx_ge(f, s.size, large);
    ptx_val short_size = ptx_cvt(f, PTX_U32, ptx_min(f, s.size, large));
    ptx_val rounded_up = ptx_add(f, short_size, large / 2 - 1);
    ptx_val pairs = ptx_div(f, rounded_up, short_size);
    s.groups = ptx_shl(f, pairs, 1);
    ptx_val block = ptx_ctaid_x(f);
    s.first_group = ptx_mul_wide(f, block, s.groups);
    s.first = ptx_mul(f, s.first_group, s.size);
    ptx_val left = ptx_sub(f, q->n, s.first);
    ptx_val room = ptx_mul(f, ptx_cvt(f, PTX_U64, s.groups), s.size);
    s.count = ptx_min(f, left, room);
    ptx_type key = q->wide == PTX_F64 ? PTX_U64 : PTX_U32;
    s.kept = ptx_shared(f, q->wide, 2 * large, 16);
    for (uint32_t i = 0; i < q->stored; i++)
        s.numbers[i] = ptx_shared(f, key, large, 16); /* the most groups: those of one element */
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

/* All ones if the sign is set, else only the sign bit. */
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

/* Converts a U64 to an index: U32 for kept elements, U64 for memory. */
static ptx_val index_in(quant *q, bool is_kept, ptx_val index)
{
    return is_kept ? ptx_cvt(q->f, PTX_U32, index) : index;
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
    ptx_val in = ptx_at(f, q->tensor, s->first);
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

/* A NaN if out of bounds. */
static ptx_val load_kept(quant *q, ptx_val at, ptx_val in_bounds)
{
    return widen_load_where(q->f, q->wide, at, in_bounds, quant_nan(q), PTX_PLAIN);
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

/* This thread's part of `size` elements from `start`, both U64, in memory or kept. */
static void add_part(quant *q, const share *s, const team *t, ptx_val start, ptx_val size, bool is_kept,
                     quant_extremes *all)
{
    ptx_fn *f = q->f;
    ptx_val from, lanes = t->lanes, position = t->position, stride, end, lead = {0};
    if (is_kept) {
        from = ptx_at(f, s->kept, ptx_cvt(f, PTX_U32, start));
        stride = ptx_shl(f, lanes, 2);
        size = end = ptx_cvt(f, PTX_U32, size);
    } else {
        from = ptx_at(f, ptx_at(f, q->tensor, s->first), start);
        lanes = ptx_cvt(f, PTX_U64, lanes);
        stride = ptx_shl(f, lanes, 2);
        lead = lead_of(q, s, start);
        position = ptx_cvt(f, PTX_U64, position);
        end = ptx_add(f, size, lead);
    }
    PTX_FOR (f, first, position, end, stride) {
        quant_extremes e = *all;
        ptx_val x[UNROLL], behind = first;
        for (int i = 0; i < UNROLL; i++) {
            if (i > 0)
                behind = ptx_add(f, behind, lanes);
            ptx_val element = is_kept ? behind : ptx_sub(f, behind, lead);
            ptx_val in_bounds = ptx_lt(f, element, size);
            x[i] = (is_kept ? load_kept : quant_load_element)(q, ptx_at(f, from, element), in_bounds);
        }
        for (int i = 0; i < UNROLL; i++)
            quant_extremes_add(q, &e, x[i]);
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_set(f, all->at[i], e.at[i]);
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
            add_part(q, s, t, start, size, false, &all);
        }
        PTX_ELSE (f) {
            add_part(q, s, t, start, size, true, &all);
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
                ptx_store(f, quant_number_at(q, i, s->first_group, group), g.at[i]);
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

/* Loads two neighbours from memory, the first at an even index. The second may be out of bounds, or both. */
static void load_pair(quant *q, ptx_val at, const ptx_val in_bounds[2], ptx_val x[2])
{
    ptx_fn *f = q->f;
    x[0] = ptx_declare(f, q->wide);
    x[1] = ptx_var(f, quant_nan(q));
    PTX_IF (f, in_bounds[1]) {
        ptx_val two[2];
        if (q->lane_elements == 8)
            widen_pair(q->f, q->type, ptx_load_hint(f, ptx_cast_ptr(f, at, PTX_U32), PTX_NC), two);
        else
            ptx_load_vec(f, 2, two, at, PTX_NC);
        ptx_set(f, x[0], two[0]);
        ptx_set(f, x[1], two[1]);
    }
    PTX_ELSE (f) {
        ptx_set(f, x[0], quant_load_element(q, at, in_bounds[0]));
    }
}

/* Each round, each thread stores one byte, two codes; the first round starts at a sector boundary. All threads take
 * part in every round, for the coder's shuffles; an element out of bounds gets the numbers of any existing group. */
static void store_codes(quant *q, const share *s, ptx_val packed, bool is_kept)
{
    ptx_fn *f = q->f;
    ptx_val from = is_kept ? s->kept : ptx_at(f, q->tensor, s->first);
    ptx_val count = index_in(q, is_kept, s->count), inverse = {0}, last_group = {0};
    ptx_val lead = index_in(q, is_kept, ptx_and(f, s->first, 2 * SECTOR_ELEMENTS - 1));
    ptx_val end = ptx_add(f, count, lead);
    if (is_kept) {
        inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, ptx_cvt(f, PTX_U32, s->size)));
        last_group = ptx_sub(f, s->groups, 1);
    }
    PTX_FOR (f, base, 0, end, 2 * THREADS) {
        ptx_val behind = is_kept ? ptx_mad(f, s->thread, 2, base) : ptx_mad_wide(f, s->thread, 2, base);
        ptx_val first = ptx_sub(f, behind, lead);
        ptx_val second = ptx_add(f, first, 1), in_bounds[2], x[2], group[2];
        in_bounds[0] = ptx_lt(f, first, count);
        in_bounds[1] = ptx_lt(f, second, count);
        ptx_val at = ptx_at(f, from, first);
        if (is_kept) {
            for (int i = 0; i < 2; i++)
                x[i] = load_kept(q, ptx_at_const(f, at, i), in_bounds[i]);
            ptx_val middle = ptx_add(f, ptx_cvt(f, PTX_F32, first), 0.5f);
            group[0] = ptx_mul(f, middle, inverse);
            group[1] = ptx_add(f, group[0], inverse);
            for (int i = 0; i < 2; i++)
                group[i] = ptx_min(f, ptx_cvt_rzi(f, PTX_U32, group[i]), last_group);
        } else {
            load_pair(q, at, in_bounds, x);
            group[0] = ptx_ge(f, first, s->size);
            group[1] = ptx_ge(f, second, s->size);
            for (int i = 0; i < 2; i++)
                group[i] = ptx_select(f, group[i], ptx_u32(1), 0);
        }
        ptx_val to = ptx_at(f, packed, ptx_shr(f, first, 1));
        quant_numbers g[2] = {numbers_at(q, s, group[0])};
        g[1] = numbers_at(q, s, group[1]);
        ptx_val codes = quant_codes(q, g, 1, x, 2, QUANT_DIVIDE);
        PTX_WHEN (f, in_bounds[0]) {
            ptx_store(f, to, codes);
        }
    }
}

void quant_any_scale(quant *q)
{
    ptx_fn *f = q->f;
    share s = find_share(q);
    ptx_val is_small = ptx_lt(f, s.size, q->large_group);
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
    if (q->makes_codes) {
        ptx_barrier(f);
        q->lane = ptx_laneid(f);
        quant_load_tables(q);
        ptx_val packed = ptx_at(f, q->packed, ptx_shr(f, s.first, 1));
        PTX_IF (f, s.is_large) {
            store_codes(q, &s, packed, false);
        }
        PTX_ELSE (f) {
            store_codes(q, &s, packed, true);
        }
    }
}
