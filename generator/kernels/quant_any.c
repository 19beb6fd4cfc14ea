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
 * A team of lanes (1 to 32, or the whole thread block) reads a group; shared memory joins the extremes of its warps. The
 * quantizer reads the elements of large groups twice. Accesses to memory start at a sector, before the first element of the
 * thread block or group.
 */
#include "device/lanes.h"
#include "device/narrow.h"
#include "quant.h"

enum {
    THREADS = 32 * QUANT_WARPS,
    UNROLL = 4,
    SECTOR_ELEMENTS = 32, /* elements of one byte in a sector; as many of any type fill whole sectors */
    BLOCK_TEAM = 512,     /* groups of this size and more get the whole thread block */
    MOST_SIZE = 4096 /* a longer group ends at most once in a tile, and its first elements do not matter */
};

/* The argument, or n when that is less: U64. */
static ptx_val group_size(quant *q)
{
    return ptx_min(q->f, q->group_size, q->n);
}

/* ---- which group a tile's element is in --------------------------------------------------------------------------- */

typedef struct finder {
    ptx_val first_group; /* of the tile's first element, U64 */
    ptx_val position;    /* position of that element in its group, U32 */
    ptx_val inverse;     /* 1 / group's size, F32 */
    bool is_kept;        /* lane i has the numbers of the tile's i-th group; else they are in memory */
    quant_numbers kept;
} finder;

/* A group longer than MOST_SIZE counts as its last elements: a tile before them does not reach its end. */
static finder find_groups(quant *q)
{
    ptx_fn *f = q->f;
    finder w = {.is_kept = false};
    ptx_val size = group_size(q);
    w.first_group = ptx_div(f, q->first, size);
    ptx_val start = ptx_mul(f, w.first_group, size);
    ptx_val position = ptx_sub(f, q->first, start);
    ptx_val taken = ptx_min(f, size, MOST_SIZE);
    ptx_val skipped = ptx_min(f, position, ptx_sub(f, size, taken));
    w.position = ptx_cvt(f, PTX_U32, ptx_sub(f, position, skipped));
    w.inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, ptx_cvt(f, PTX_U32, taken)));
    return w;
}

/* How many groups, not yet rounded down, the element at `offset` in the tile is past the tile's first group. */
static ptx_val group_offset(quant *q, const finder *w, ptx_val offset)
{
    ptx_fn *f = q->f;
    ptx_val position = ptx_add(f, w->position, offset);
    ptx_val number = ptx_cvt(f, PTX_F32, position);
    ptx_val middle = ptx_add(f, number, 0.5f);
    return ptx_mul(f, middle, w->inverse);
}

/* The numbers of the i-th element from `offset` on; from the lane that keeps them, if one does. Needs all lanes. */
static quant_numbers element_numbers(quant *q, const finder *w, ptx_val offset, uint32_t i)
{
    ptx_fn *f = q->f;
    ptx_val exact = i == 0 ? offset : ptx_fma(f, w->inverse, (float)i, offset);
    ptx_val group = ptx_cvt_rzi(f, PTX_U32, exact);
    if (!w->is_kept) {
        ptx_val in_bounds = quant_in_bounds(q, 0, i);
        return quant_load_numbers(q, w->first_group, group, &in_bounds);
    }
    quant_numbers g = {.at = {{0}}};
    for (uint32_t n = 0; n < q->stored; n++)
        g.at[n] = ptx_shfl_idx(f, w->kept.at[n], group);
    return g;
}

/* ---- pack and unpack ---------------------------------------------------------------------------------------------- */

static void code_steps(quant *tile, const finder *w)
{
    ptx_fn *f = tile->f;
    PTX_FOR (f, start, 0, tile->left, tile->step_elements) {
        quant step = quant_cut(tile, start, 1), *q = &step;
        quant_numbers numbers[QUANT_MOST_LANE_ELEMENTS];
        ptx_val groups = group_offset(q, w, q->offset), x[QUANT_MOST_LANE_ELEMENTS];
        for (uint32_t i = 0; i < q->lane_elements; i++)
            numbers[i] = element_numbers(q, w, groups, i);
        ptx_val tensor = quant_tile_at(q), packed = quant_packed_at(q);
        if (q->makes_codes) {
            quant_load_cut(q, tensor, 0, x);
            quant_store_codes(q, packed, 0, quant_codes(q, numbers, 1, x, q->lane_elements));
        } else {
            ptx_val codes = quant_load_codes(q, packed, 0);
            for (uint32_t i = 0; i < q->lane_elements; i++)
                x[i] = quant_value(q, &numbers[i], codes, i);
            quant_store_elements(q, tensor, 0, x);
        }
    }
}

/* Emits two bodies. If a tile has at most 32 groups, lane i keeps the numbers of the i-th and elements fetch them from there;
 * in the other one each element loads its numbers from memory. */
void quant_any_tiles(quant *q)
{
    ptx_fn *f = q->f;
    PTX_IF (f, quant_find_tile(q)) {
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

/* A thread block's groups. A team of its threads reads one of them at a time. */
typedef struct share {
    ptx_val size; /* of a group, U64 */
    ptx_val is_large;
    ptx_val groups;             /* the most groups of the thread block, U32 */
    ptx_val first_group, first; /* U64 */
    ptx_val count;              /* elements in bounds, U64 */
    ptx_val thread;             /* in the thread block, U32 */
    ptx_val lanes_log, lanes;   /* of a team, U32 */
    ptx_val parts_log;          /* log2 of the team's warps */
    ptx_val kept;               /* shared memory: the elements, unless groups are large */
    ptx_val numbers[2]; /* shared memory: a place per warp and group for extremes, then for scale and zero */
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
    s.first_group = ptx_mul_wide(f, ptx_ctaid_x(f), s.groups);
    s.first = ptx_mul(f, s.first_group, s.size);
    ptx_val left = ptx_sub(f, q->n, s.first);
    ptx_val room = ptx_mul(f, ptx_cvt(f, PTX_U64, s.groups), s.size);
    s.count = ptx_min(f, left, room);
    ptx_val quarter = ptx_min(f, ptx_shr(f, short_size, 2), 32);
    ptx_val is_for_block = ptx_ge(f, short_size, BLOCK_TEAM);
    s.parts_log = ptx_select(f, is_for_block, ptx_u32(lanes_log2(QUANT_WARPS)), 0);
    s.lanes_log = ptx_add(f, ptx_bfind(f, ptx_max(f, quarter, 1)), s.parts_log);
    s.lanes = ptx_shl(f, ptx_u32(1), s.lanes_log);
    s.kept = ptx_shared(f, q->wide, 2 * large, 16);
    for (uint32_t i = 0; i < q->stored; i++)
        s.numbers[i] = ptx_shared(f, q->wide, large, 16); /* the most groups: those of one element */
    return s;
}

/* The first element of the thread block's group g, from the thread block's first, U64. */
static ptx_val group_start(quant *q, const share *s, ptx_val group)
{
    return ptx_mul(q->f, ptx_cvt(q->f, PTX_U64, group), s->size);
}

/* The place of a group's number i. */
static ptx_val kept_number(quant *q, const share *s, uint32_t i, ptx_val group)
{
    return ptx_at(q->f, s->numbers[i], ptx_shl(q->f, group, s->parts_log));
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Converts a U32 or U64 to an index: U32 for kept elements, U64 for memory. */
static ptx_val index_in(quant *q, bool is_kept, ptx_val index)
{
    const ptx_type type = is_kept ? PTX_U32 : PTX_U64;
    return index.type == type ? index : ptx_cvt(q->f, type, index);
}

/* Elements from the start of a sector to the thread block's element `from`: U64. */
static ptx_val lead_of(quant *q, const share *s, ptx_val from)
{
    return ptx_and(q->f, ptx_add(q->f, s->first, from), SECTOR_ELEMENTS - 1);
}

static void keep_elements(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    ptx_val in = ptx_at(f, q->tensor, s->first);
    ptx_val lead = index_in(q, true, lead_of(q, s, ptx_u64(0)));
    ptx_val count = index_in(q, true, s->count);
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

/* Loads an element; a NaN if out of bounds. */
static ptx_val load_kept(quant *q, ptx_val at, ptx_val in_bounds)
{
    return widen_load_where(q->f, q->wide, at, in_bounds, quant_nan(q), PTX_PLAIN);
}

/* ---- extremes ----------------------------------------------------------------------------------------------------- */

/* Adds this thread's part of `size` elements from `start`, both U64, in memory or kept. */
static void add_part(quant *q, const share *s, ptx_val position, ptx_val start, ptx_val size, bool is_kept,
                     ptx_val extremes[2])
{
    ptx_fn *f = q->f;
    ptx_val from = is_kept ? s->kept : ptx_at(f, q->tensor, s->first);
    from = ptx_at(f, from, index_in(q, is_kept, start));
    ptx_val lanes = index_in(q, is_kept, s->lanes), stride = ptx_shl(f, lanes, lanes_log2(UNROLL));
    ptx_val count = index_in(q, is_kept, size), end = count, lead = {0};
    if (!is_kept) {
        lead = lead_of(q, s, start);
        end = ptx_add(f, count, lead);
    }
    PTX_FOR (f, first, index_in(q, is_kept, position), end, stride) {
        ptx_val all[2] = {extremes[0], extremes[1]}, x[UNROLL], ahead = first;
        for (int i = 0; i < UNROLL; i++) {
            if (i > 0)
                ahead = ptx_add(f, ahead, lanes);
            ptx_val element = is_kept ? ahead : ptx_sub(f, ahead, lead);
            ptx_val in_bounds = ptx_lt(f, element, count);
            x[i] = (is_kept ? load_kept : quant_load_element)(q, ptx_at(f, from, element), in_bounds);
        }
        for (int i = 0; i < UNROLL; i++)
            quant_extremes_add(q, all, x[i]);
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_set(f, extremes[i], all[i]);
    }
}

/* Reduces over the team's lanes in this warp. */
static ptx_val reduce_team(quant *q, const share *s, ptx_op op, ptx_val value)
{
    ptx_fn *f = q->f;
    for (uint32_t distance = 1; distance < WARP_LANES; distance *= 2) {
        ptx_val other = ptx_shfl_xor(f, value, distance);
        ptx_val joined = ptx_op2(f, op, value, other, PTX_HERE);
        value = ptx_select(f, ptx_gt(f, s->lanes, distance), joined, value);
    }
    return value;
}

static void find_extremes(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    ptx_val position = ptx_and(f, s->thread, ptx_sub(f, s->lanes, 1));
    ptx_val warp = ptx_shr(f, position, lanes_log2(WARP_LANES));
    ptx_val leads = ptx_eq(f, ptx_and(f, position, WARP_LANES - 1), 0);
    ptx_val team = ptx_shr(f, s->thread, s->lanes_log), teams = ptx_shr(f, ptx_u32(THREADS), s->lanes_log);
    PTX_FOR (f, base, 0, s->groups, teams) {
        ptx_val group = ptx_add(f, base, team), extremes[2], at[2];
        ptx_val start = group_start(q, s, group);
        ptx_val in_bounds = ptx_lt(f, start, s->count);
        for (uint32_t i = 0; i < q->stored; i++)
            extremes[i] = ptx_var(f, quant_nan(q));
        PTX_IF (f, in_bounds) {
            ptx_val left = ptx_sub(f, s->count, start);
            ptx_val size = ptx_min(f, left, s->size);
            PTX_IF (f, s->is_large) {
                add_part(q, s, position, start, size, false, extremes);
            }
            PTX_ELSE (f) {
                add_part(q, s, position, start, size, true, extremes);
            }
        }
        for (uint32_t i = 0; i < q->stored; i++) {
            extremes[i] = reduce_team(q, s, quant_extreme(q, i), extremes[i]);
            at[i] = ptx_at(f, kept_number(q, s, i, group), warp);
        }
        PTX_WHEN (f, ptx_and(f, leads, in_bounds)) {
            for (uint32_t i = 0; i < q->stored; i++)
                ptx_store(f, at[i], extremes[i]);
        }
    }
    ptx_barrier(f);
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static void store_scales(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    ptx_val parts = ptx_shl(f, ptx_u32(1), s->parts_log);
    PTX_FOR (f, group, s->thread, s->groups, THREADS) {
        PTX_IF (f, ptx_lt(f, group_start(q, s, group), s->count)) {
            ptx_val at[2], extremes[2];
            for (uint32_t i = 0; i < q->stored; i++) {
                at[i] = kept_number(q, s, i, group);
                extremes[i] = ptx_var(f, ptx_load(f, at[i]));
            }
            PTX_FOR (f, part, 1, parts, 1) {
                for (uint32_t i = 0; i < q->stored; i++)
                    ptx_update_at(f, quant_extreme(q, i), extremes[i], ptx_load(f, ptx_at(f, at[i], part)),
                                  PTX_HERE);
            }
            quant_numbers g = quant_numbers_of(q, extremes);
            for (uint32_t i = 0; i < q->stored; i++) {
                ptx_store(f, quant_number_at(q, i, s->first_group, group), g.at[i]);
                ptx_store(f, at[i], g.at[i]);
            }
        }
    }
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* Each round, each thread stores one byte, two codes; the first round starts at a sector boundary. All threads take
 * part in every round, for the coder's shuffles; an element out of bounds gets the numbers of the last group. */
static void store_codes(quant *q, const share *s, bool is_kept)
{
    ptx_fn *f = q->f;
    ptx_val from = is_kept ? s->kept : ptx_at(f, q->tensor, s->first);
    ptx_val packed = ptx_at(f, q->packed, ptx_shr(f, s->first, 1));
    ptx_val count = index_in(q, is_kept, s->count), last = ptx_sub(f, count, 1), inverse = {0};
    ptx_val lead = index_in(q, is_kept, ptx_and(f, s->first, 2 * SECTOR_ELEMENTS - 1));
    ptx_val end = ptx_add(f, count, lead);
    if (is_kept)
        inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, ptx_cvt(f, PTX_U32, s->size)));
    PTX_FOR (f, base, 0, end, 2 * THREADS) {
        ptx_val ahead = is_kept ? ptx_mad(f, s->thread, 2, base) : ptx_mad_wide(f, s->thread, 2, base);
        ptx_val element[2], in_bounds[2], x[2];
        quant_numbers g[2] = {{.at = {{0}}}, {.at = {{0}}}};
        element[0] = ptx_sub(f, ahead, lead);
        element[1] = ptx_add(f, element[0], 1);
        ptx_val at = ptx_at(f, from, element[0]);
        for (uint32_t i = 0; i < 2; i++)
            in_bounds[i] = ptx_lt(f, element[i], count);
        if (!is_kept)
            quant_load_elements(q, 2, at, in_bounds, x);
        for (uint32_t i = 0; i < 2; i++) {
            ptx_val clamped = ptx_min(f, element[i], last), group;
            if (is_kept) {
                x[i] = load_kept(q, ptx_at_const(f, at, i), in_bounds[i]);
                ptx_val middle = ptx_add(f, ptx_cvt(f, PTX_F32, clamped), 0.5f);
                group = ptx_cvt_rzi(f, PTX_U32, ptx_mul(f, middle, inverse));
            } else {
                group = ptx_select(f, ptx_ge(f, clamped, s->size), ptx_u32(1), 0);
            }
            for (uint32_t n = 0; n < q->stored; n++)
                g[i].at[n] = ptx_load(f, kept_number(q, s, n, group));
        }
        ptx_val to = ptx_at(f, packed, ptx_shr(f, element[0], 1));
        ptx_val codes = quant_codes(q, g, 1, x, 2);
        PTX_WHEN (f, in_bounds[0]) {
            ptx_store(f, to, codes);
        }
    }
}

void quant_any_scale(quant *q)
{
    ptx_fn *f = q->f;
    share s = find_share(q);
    PTX_IF (f, ptx_lt(f, s.size, q->large_group)) {
        keep_elements(q, &s);
    }
    ptx_barrier(f);
    find_extremes(q, &s);
    store_scales(q, &s);
    if (q->makes_codes) {
        ptx_barrier(f);
        q->lane = ptx_laneid(f);
        quant_load_tables(q);
        PTX_IF (f, s.is_large) {
            store_codes(q, &s, false);
        }
        PTX_ELSE (f) {
            store_codes(q, &s, true);
        }
    }
}
