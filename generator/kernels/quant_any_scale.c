/* Scales of groups whose size is an argument, and the quantizer that goes on to the codes.
 *
 * A thread block owns whole groups: two large ones, or enough small ones to keep its warps busy, always an even number, so
 * that it shares no byte of codes with another block. A team of lanes (1 to 32; all of the block for a large group) goes
 * along a group, and the extremes of its parts meet in shared memory, as integers in the order of the floats, under an
 * atomic maximum. 0 stands for no number at all. The quantizer reads the elements again, from cache when it is lucky.
 */
#include "quant.h"

enum {
    LARGE_GROUP = 2048,
    BLOCK_GROUPS = 2048, /* most groups of a block: those of one element */
    THREADS = 32 * QUANT_WARPS,
    UNROLL = 4
};

/* What a thread block owns. */
typedef struct share {
    ptx_val size; /* of a group, U64 */
    ptx_val is_large;
    ptx_val groups;             /* that the block has room for, U32 */
    ptx_val first_group, first; /* U64 */
    ptx_val count;              /* elements that there are, U64 */
    ptx_val thread;             /* in the block, U32 */
    ptx_val most, minus_least;  /* shared memory: keys of extremes, then scales and zeros */
} share;

static share find_share(quant *q)
{
    ptx_fn *f = q->f;
    share s = {.thread = ptx_tid_x(f)};
    s.size = quant_group_size(q);
    s.is_large = ptx_ge(f, s.size, ptx_u64(LARGE_GROUP));
    ptx_val short_size = ptx_cvt(f, PTX_U32, ptx_min(f, s.size, ptx_u64(LARGE_GROUP)));
    ptx_val rounded_up = ptx_add(f, short_size, ptx_u32(LARGE_GROUP / 2 - 1));
    ptx_val pairs = ptx_div(f, rounded_up, short_size);
    ptx_val enough = ptx_max(f, ptx_shl(f, pairs, ptx_u32(1)), ptx_u32(QUANT_WARPS));
    s.groups = ptx_select(f, s.is_large, ptx_u32(2), enough);
    ptx_val block = ptx_ctaid_x(f);
    s.first_group = ptx_mul_wide(f, block, s.groups);
    s.first = ptx_mul(f, s.first_group, s.size);
    ptx_val left = ptx_sub(f, q->n, s.first);
    ptx_val room = ptx_mul(f, ptx_cvt(f, PTX_U64, s.groups), s.size);
    s.count = ptx_min(f, left, room);
    ptx_type key = q->wide == PTX_F64 ? PTX_U64 : PTX_U32;
    s.most = ptx_shared(f, key, BLOCK_GROUPS, 16);
    if (q->coder == QUANT_INT4_ASYM)
        s.minus_least = ptx_shared(f, key, BLOCK_GROUPS, 16);
    return s;
}

/* The first element of the block's group g, from the block's first, U64. */
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

/* All ones where the sign is set, and the sign's bit anyway. */
static ptx_val key_mask(quant *q, ptx_val bits)
{
    ptx_fn *f = q->f;
    bool is_f64 = q->wide == PTX_F64;
    ptx_val sign = ptx_shr(f, ptx_as(f, is_f64 ? PTX_S64 : PTX_S32, bits), ptx_u32(is_f64 ? 63 : 31));
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

/* Of 0 a NaN. */
static ptx_val float_of(quant *q, ptx_val key)
{
    ptx_fn *f = q->f;
    ptx_val flipped = ptx_not(f, key);
    ptx_val mask = key_mask(q, flipped);
    return ptx_as(f, q->wide, ptx_xor(f, key, mask));
}

/* ---- extremes ----------------------------------------------------------------------------------------------------- */

static void clear_keys(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, group, s->thread, s->groups, ptx_u32(THREADS)) {
        ptx_store(f, ptx_at(f, s->most, group), key_number(q, 0));
        if (q->coder == QUANT_INT4_ASYM)
            ptx_store(f, ptx_at(f, s->minus_least, group), key_number(q, 0));
    }
    ptx_barrier(f);
}

/* Lanes that go along a group together. */
typedef struct team {
    ptx_val lanes, log;  /* U32 */
    ptx_val place;       /* of this thread in its team */
    ptx_val first_group; /* of this thread's team */
    ptx_val teams;       /* in the block */
    ptx_val joins[5];    /* whether lanes of a distance of 1, 2, ... 16 are of one team */
} team;

static team find_team(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    team t;
    ptx_val most_lanes = ptx_cvt(f, PTX_U32, ptx_min(f, s->size, ptx_u64(32)));
    ptx_val log_small = ptx_bfind(f, most_lanes);
    t.log = ptx_select(f, s->is_large, ptx_u32(8), log_small);
    t.lanes = ptx_shl(f, ptx_u32(1), t.log);
    ptx_val mask = ptx_sub(f, t.lanes, ptx_u32(1));
    t.place = ptx_and(f, s->thread, mask);
    t.first_group = ptx_shr(f, s->thread, t.log);
    t.teams = ptx_shr(f, ptx_u32(THREADS), t.log);
    for (uint32_t i = 0; i < 5; i++)
        t.joins[i] = ptx_gt(f, t.lanes, ptx_u32(1u << i));
    return t;
}

/* This thread's part of elements [start, end). */
static quant_extremes extremes_of_part(quant *q, const share *s, const team *t, ptx_val start, ptx_val end)
{
    ptx_fn *f = q->f;
    ptx_val nan = ptx_bits(q->wide, q->wide == PTX_F64 ? UINT64_C(0x7fffffffffffffff) : 0x7fffffff);
    quant_extremes all = {.most = ptx_var(f, nan), .least = ptx_var(f, nan)};
    ptx_val tensor = ptx_at(f, q->in, s->first);
    ptx_val lanes = ptx_cvt(f, PTX_U64, t->lanes);
    ptx_val stride = ptx_shl(f, lanes, ptx_u32(2));
    ptx_val mine = ptx_add(f, start, ptx_cvt(f, PTX_U64, t->place));
    PTX_FOR (f, from, mine, end, stride) {
        ptx_val x[UNROLL], at = from;
        for (int i = 0; i < UNROLL; i++) {
            if (i > 0)
                at = ptx_add(f, at, lanes);
            ptx_val exists = ptx_lt(f, at, end);
            x[i] = quant_load_element(q, ptx_at(f, tensor, at), exists);
        }
        quant_extremes e = all;
        for (int i = 0; i < UNROLL; i++)
            quant_extremes_add(q, &e, x[i]);
        ptx_set(f, all.most, e.most);
        if (q->coder == QUANT_INT4_ASYM)
            ptx_set(f, all.least, e.least);
    }
    return all;
}

/* Of the team's lanes in this warp. */
static ptx_val reduce_team(quant *q, const team *t, ptx_op op, ptx_val value)
{
    ptx_fn *f = q->f;
    for (uint32_t i = 0; i < 5; i++) {
        ptx_val other = ptx_shfl_xor(f, value, ptx_u32(1u << i));
        ptx_val both = ptx_op2(f, op, value, other, PTX_HERE);
        value = ptx_select(f, t->joins[i], both, value);
    }
    return value;
}

static void find_extremes(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    bool is_asym = q->coder == QUANT_INT4_ASYM;
    team t = find_team(q, s);
    ptx_val in_warp = ptx_and(f, t.place, ptx_u32(31));
    ptx_val leads = ptx_eq(f, in_warp, ptx_u32(0));
    PTX_FOR (f, base, ptx_u32(0), s->groups, t.teams) {
        ptx_val group = ptx_add(f, base, t.first_group);
        ptx_val start = group_start(q, s, group);
        ptx_val end = ptx_min(f, ptx_add(f, start, s->size), s->count);
        quant_extremes e = extremes_of_part(q, s, &t, start, end);
        e.most = reduce_team(q, &t, PTX_OP_MAX, e.most);
        ptx_val most = key_of(q, e.most), minus_least = most;
        if (is_asym) {
            e.least = reduce_team(q, &t, PTX_OP_MIN, e.least);
            minus_least = key_of(q, ptx_neg(f, e.least));
        }
        ptx_val exists = ptx_lt(f, start, s->count);
        ptx_val tells = ptx_and(f, leads, exists);
        ptx_val most_at = ptx_at(f, s->most, group);
        ptx_val least_at = is_asym ? ptx_at(f, s->minus_least, group) : most_at;
        PTX_WHEN (f, tells) {
            ptx_red_max(f, most_at, most, PTX_PLAIN);
            if (is_asym)
                ptx_red_max(f, least_at, minus_least, PTX_PLAIN);
        }
    }
    ptx_barrier(f);
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static void store_number(quant *q, const share *s, ptx_val tensor, ptx_val shared, ptx_val group,
                         ptx_val value)
{
    ptx_fn *f = q->f;
    ptx_val first = ptx_at(f, tensor, s->first_group);
    ptx_store(f, ptx_at(f, first, group), value);
    ptx_store(f, ptx_at(f, ptx_cast_ptr(f, shared, q->wide), group), value);
}

static void store_scales(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    bool is_asym = q->coder == QUANT_INT4_ASYM;
    PTX_FOR (f, group, s->thread, s->groups, ptx_u32(THREADS)) {
        ptx_val start = group_start(q, s, group);
        ptx_val exists = ptx_lt(f, start, s->count);
        PTX_IF (f, exists) {
            quant_extremes e;
            e.most = float_of(q, ptx_load(f, ptx_at(f, s->most, group)));
            if (is_asym)
                e.least = ptx_neg(f, float_of(q, ptx_load(f, ptx_at(f, s->minus_least, group))));
            quant_numbers g = quant_numbers_of(q, e);
            store_number(q, s, q->scale, s->most, group, g.at[QUANT_SCALE]);
            if (is_asym)
                store_number(q, s, q->zero, s->minus_least, group, g.at[QUANT_ZERO]);
        }
    }
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* The block's group that an element is in; `inverse` is 1 / size, for small groups. */
static ptx_val group_of(quant *q, const share *s, ptx_val inverse, ptx_val element)
{
    ptx_fn *f = q->f;
    ptx_val place = ptx_cvt(f, PTX_U32, element);
    ptx_val middle = ptx_add(f, ptx_cvt(f, PTX_F32, place), ptx_f32(0.5f));
    ptx_val small = ptx_cvt_rzi(f, PTX_U32, ptx_mul(f, middle, inverse));
    ptx_val is_second = ptx_ge(f, element, s->size);
    ptx_val large = ptx_select(f, is_second, ptx_u32(1), ptx_u32(0));
    return ptx_select(f, s->is_large, large, small);
}

static quant_numbers numbers_at(quant *q, const share *s, ptx_val group)
{
    ptx_fn *f = q->f;
    quant_numbers g = {.has = 1u << QUANT_SCALE};
    g.at[QUANT_SCALE] = ptx_load(f, ptx_at(f, ptx_cast_ptr(f, s->most, q->wide), group));
    if (q->coder == QUANT_INT4_ASYM) {
        g.at[QUANT_ZERO] = ptx_load(f, ptx_at(f, ptx_cast_ptr(f, s->minus_least, q->wide), group));
        g.has |= 1u << QUANT_ZERO;
    }
    return g;
}

/* Two elements, one byte, per thread and round. All threads take part in every round, for the coder's shuffles. */
static void store_codes(quant *q, const share *s)
{
    ptx_fn *f = q->f;
    q->lane = ptx_laneid(f);
    quant_tables tables = quant_load_tables(q);
    ptx_val in = ptx_at(f, q->in, s->first);
    ptx_val packed = ptx_at(f, q->packed, ptx_shr(f, s->first, ptx_u32(1)));
    ptx_val short_size = ptx_cvt(f, PTX_U32, ptx_min(f, s->size, ptx_u64(LARGE_GROUP)));
    ptx_val inverse = ptx_rcp(f, ptx_cvt(f, PTX_F32, short_size));
    PTX_FOR (f, base, ptx_u64(0), s->count, ptx_u64(2 * THREADS)) {
        ptx_val first = ptx_mad_wide(f, s->thread, ptx_u32(2), base);
        ptx_val second = ptx_add(f, first, ptx_u64(1));
        ptx_val exists[2] = {ptx_lt(f, first, s->count)};
        exists[1] = ptx_lt(f, second, s->count);
        ptx_val x[2];
        quant_load_pair(q, ptx_at(f, in, first), exists, x);
        ptx_val first_or_none = ptx_select(f, exists[0], first, ptx_u64(0));
        ptx_val second_or_none = ptx_select(f, exists[1], second, first_or_none);
        quant_numbers g[2] = {numbers_at(q, s, group_of(q, s, inverse, first_or_none))};
        g[1] = numbers_at(q, s, group_of(q, s, inverse, second_or_none));
        ptx_val codes = quant_codes(q, &tables, g, 1, x, 2, QUANT_DIVIDE);
        ptx_val to = ptx_at(f, packed, ptx_shr(f, first, ptx_u32(1)));
        PTX_WHEN (f, exists[0]) {
            ptx_store(f, to, codes);
        }
    }
}

void quant_any_scale(quant *q, bool packs)
{
    share s = find_share(q);
    clear_keys(q, &s);
    find_extremes(q, &s);
    store_scales(q, &s);
    if (packs) {
        ptx_barrier(q->f);
        store_codes(q, &s);
    }
}
