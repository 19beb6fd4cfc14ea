/* KEYS. Query i's own key is p = i + k_length - q_length + causal_offset. It sees the keys j below k_length with j - p <
 * window_right and p - j < window_left, where a limit of 0 is none and causal is a window_right of 1; window_left does not
 * hide the first_keys.
 *
 * So a tile of queries has a window of keys, and some first keys before it. Counted keys omit the gap between the
 * two, which is a multiple of tile_k; parts share the counted keys. First keys fill whole tiles: the excess is
 * masked.
 *
 * RANGE. Lengths are at most 2^30, limits and the offset 2^29: positions, plus or minus a limit, are S32.
 *
 * POWERS OF TWO. The softmax uses base 2, so a shaped score is multiplied by log2(e), and `factor` is 1. `inner`
 * multiplies a score before it is shaped: scale * log2(e). A softcap's tanh is 1 - 2 / (1 + 2^(inner * score)): there
 * `inner` includes 2 / softcap.
 */
#include "attention.h"
#include "device/narrow.h"
#include <float.h>

/* A lane's scores, with the numbers of its rows and its first key. */
typedef struct scores {
    const attention_slice *slice;
    ptx_val row[ATTENTION_MOST_ROWS], key;
} scores;

/* The key of a row's score i, from the lane's first. */
static uint32_t ahead_of(const scores *s, uint32_t i)
{
    return i / s->slice->width * s->slice->step + i % s->slice->width;
}

static void find_scores(const attention *a, attention_origin at, scores *s)
{
    s->key = at.key;
    attention_number_rows(a, s->slice, at.row, s->row);
}

/* ---- a row ----------------------------------------------------------------------------------------------------------- */

/* The own key of a row's query, S32; it may not exist. */
static ptx_val own_key(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val query = a->pack_gqa ? ptx_div(f, row, a->group) : row;
    return ptx_add(f, ptx_as(f, PTX_S32, query), a->diagonal);
}

/* Whether a window has a bound; 0 means none. */
static ptx_val has_limit(const attention *a, ptx_val window)
{
    return ptx_ne(a->f, window, 0);
}

/* The end of the keys that a row sees; may be below 0. */
static ptx_val end_of(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val length = ptx_as(f, PTX_S32, a->k_length), own = own_key(a, row);
    if (a->is_causal)
        return ptx_min(f, ptx_add(f, own, 1), length);
    ptx_val limited = ptx_min(f, ptx_add(f, own, a->window_right), length);
    return ptx_select(f, has_limit(a, a->window_right), limited, length);
}

/* The first key of a row's window; may be below 0. */
static ptx_val begin_of(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val after_own = ptx_add(f, own_key(a, row), 1);
    ptx_val limited = ptx_sub(f, after_own, a->window_left);
    return ptx_select(f, has_limit(a, a->window_left), limited, 0);
}

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */

static ptx_val not_below_0(const attention *a, ptx_val number)
{
    return ptx_as(a->f, PTX_U32, ptx_max(a->f, number, 0));
}

/* The keys that parts share. With split_k 0, or with lengths per sequence, it is the maximum over all tiles and sequences: so
 * their parts, and with them the bits of the result, do not depend on each other. */
static ptx_val shared_keys(const attention *a)
{
    ptx_fn *f = a->f;
    if (a->layout == ATTENTION_DENSE && a->split_k != 0)
        return a->end;
    ptx_val first = ptx_min(f, a->first_keys, a->most_keys);
    ptx_val more = ptx_add(f, ptx_as(f, PTX_U32, a->window_left), a->tile_q + 2 * a->tile_k);
    ptx_val most = ptx_add(f, first, more), has_both = has_limit(a, a->window_left);
    if (!a->is_causal) {
        most = ptx_add(f, most, ptx_as(f, PTX_U32, a->window_right));
        has_both = ptx_and(f, has_both, has_limit(a, a->window_right));
    }
    return ptx_select(f, has_both, ptx_min(f, most, a->most_keys), a->most_keys);
}

void attention_find_keys(attention *a)
{
    ptx_fn *f = a->f;
    const uint32_t whole_tiles = ~(a->tile_k - 1);
    ptx_val ahead = ptx_as(f, PTX_S32, ptx_sub(f, a->k_length, a->q_length));
    ptx_val offset = ptx_max(f, a->causal_offset, -(1 << 29));
    a->diagonal = ptx_add(f, ahead, ptx_min(f, offset, 1 << 29));
    ptx_val last_of_tile = ptx_add(f, a->first, a->tile_q - 1);
    ptx_val last = ptx_min(f, last_of_tile, ptx_sub(f, a->rows, 1));
    a->k.end = not_below_0(a, end_of(a, last));
    ptx_val begin = ptx_min(f, not_below_0(a, begin_of(a, a->first)), a->k.end);
    begin = ptx_and(f, begin, whole_tiles);
    ptx_val kept = ptx_and(f, ptx_add(f, a->first_keys, a->tile_k - 1), whole_tiles);
    a->kept = ptx_min(f, kept, begin);
    a->gap = ptx_sub(f, begin, a->kept);
    a->end = ptx_sub(f, a->k.end, a->gap);
    a->first_key = ptx_u32(0);
    a->full_first = not_below_0(a, begin_of(a, last));
    ptx_val full_end = ptx_sub(f, end_of(a, a->first), (int32_t)a->tile_k - 1);
    a->full_count = not_below_0(a, ptx_sub(f, full_end, ptx_as(f, PTX_S32, a->full_first)));
    if (a->split_k != 1) {
        /* Whole tiles of keys; the last parts may have none. */
        ptx_val keys = shared_keys(a), at_once = ptx_mul(f, a->parts, a->tile_k);
        ptx_val up = ptx_add(f, keys, ptx_sub(f, at_once, 1));
        ptx_val tiles = ptx_div(f, up, at_once);
        ptx_val count = ptx_mul(f, tiles, a->tile_k);
        a->first_key = ptx_mul(f, a->part, count);
        a->end = ptx_min(f, a->end, ptx_add(f, a->first_key, count));
        a->k.end = ptx_min(f, a->k.end, attention_key(a, a->end));
    }
    a->v.end = a->k_scales.end = a->v_scales.end = a->k.end;
}

ptx_val attention_key(const attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    ptx_val is_after_gap = ptx_ge(f, counted, a->kept);
    return ptx_add(f, counted, ptx_select(f, is_after_gap, a->gap, 0));
}

/* ---- masks ----------------------------------------------------------------------------------------------------------- */

static void hide_unless(const attention *a, ptx_val is_seen, ptx_val score)
{
    ptx_set(a->f, score, ptx_select(a->f, is_seen, score, softmax_none(a->wide)));
}

/* Sets scores to -inf if their row does not see the key. */
static void mask_scores(const attention *a, ptx_val key, const scores *s)
{
    ptx_fn *f = a->f;
    for (uint32_t r = 0; r < s->slice->rows; r++) {
        ptx_val end = end_of(a, s->row[r]);
        ptx_val beyond = ptx_sub(f, ptx_as(f, PTX_S32, s->key), end);
        for (uint32_t i = 0; i < attention_columns(s->slice); i++)
            hide_unless(a, ptx_lt(f, beyond, -(int32_t)ahead_of(s, i)), s->slice->x[r][i]);
    }
    PTX_IF (f, ptx_lt(f, key, a->full_first)) {
        ptx_rarely(f);
        for (uint32_t r = 0; r < s->slice->rows; r++) {
            ptx_val begin = begin_of(a, s->row[r]);
            ptx_val within = ptx_sub(f, ptx_as(f, PTX_S32, s->key), begin);
            ptx_val beyond = ptx_as(f, PTX_S32, ptx_sub(f, s->key, a->first_keys));
            for (uint32_t i = 0; i < attention_columns(s->slice); i++) {
                ptx_val is_within = ptx_ge(f, within, -(int32_t)ahead_of(s, i));
                ptx_val is_kept = ptx_lt(f, beyond, -(int32_t)ahead_of(s, i));
                hide_unless(a, ptx_or(f, is_within, is_kept), s->slice->x[r][i]);
            }
        }
    }
}

/* ---- the arguments of the shaping ------------------------------------------------------------------------------------- */

static const double log2_e = 0x1.71547652b82fep+0;

static ptx_val times(const attention *a, ptx_val x, double factor)
{
    return ptx_mul(a->f, x, ptx_number(a->wide, factor));
}

void attention_init_scores(attention *a, ptx_val scale)
{
    ptx_fn *f = a->f;
    ptx_val one = ptx_number(a->wide, 1), is_zero = ptx_eq(f, scale, ptx_number(a->wide, 0));
    ptx_val factor = times(a, ptx_select(f, is_zero, one, scale), log2_e);
    a->q.end = ptx_select(f, is_zero, 0, a->rows);
    a->factor = a->shaping == ATTENTION_PLAIN ? factor : one;
    a->inner = factor;
    if (a->shaping == ATTENTION_SOFTCAP) {
        ptx_val cap = ptx_param(f, a->wide, "softcap");
        ptx_val most = ptx_number(a->wide, a->wide == PTX_F64 ? DBL_MAX : (double)FLT_MAX);
        a->cap = times(a, cap, log2_e);
        a->inner = ptx_min(f, ptx_div(f, times(a, factor, 2), cap), most); /* a cap of 0 makes all scores 0 */
    }
    if (a->shaping == ATTENTION_ALIBI)
        a->alibi_slopes = ptx_param_ptr(f, a->wide, "alibi_slopes");
    if (a->shaping == ATTENTION_MASK) {
        ptx_val first = ptx_param_ptr(f, a->type, "mask");
        a->mask.row_stride = ptx_param(f, PTX_U32, "mask_row_stride");
        a->mask.head_stride = ptx_param(f, PTX_U64, "mask_head_stride");
        ptx_val batch_stride = ptx_param(f, PTX_U64, "mask_batch_stride");
        ptx_val head = attention_grid_head(a), batch = ptx_cvt(f, PTX_U64, ptx_ctaid_z(f));
        a->mask.pack_gqa = a->pack_gqa;
        if (a->pack_gqa)
            head = ptx_mul(f, head, a->group);
        ptx_val in_batch = ptx_mul(f, ptx_cvt(f, PTX_U64, head), a->mask.head_stride);
        a->mask.first = ptx_at(f, first, ptx_mad(f, batch, batch_stride, in_batch));
    }
}

/* ---- shapes ---------------------------------------------------------------------------------------------------------- */

static void cap_scores(const attention *a, const attention_slice *slice, uint32_t r)
{
    ptx_fn *f = a->f;
    for (uint32_t i = 0; i < attention_columns(slice); i++) {
        ptx_val exponent = ptx_mul(f, slice->x[r][i], a->inner);
        if (a->wide == PTX_F64) { /* exp2 in F64 does not overflow to infinity */
            ptx_val is_large = ptx_gt(f, exponent, 1000);
            exponent = ptx_select(f, is_large, 1000, exponent);
        }
        ptx_val power = softmax_exp2(f, a->wide, exponent);
        ptx_val share = ptx_add(f, power, ptx_number(a->wide, 1));
        share = a->wide == PTX_F64 ? ptx_rcp(f, share) : ptx_rcp_approx(f, share);
        ptx_set(f, slice->x[r][i], ptx_fma(f, times(a, share, -2), a->cap, a->cap));
    }
}

static void add_distances(const attention *a, const scores *s, uint32_t r)
{
    ptx_fn *f = a->f;
    ptx_val own = own_key(a, s->row[r]), head = attention_head_of(a, s->row[r]);
    ptx_val slope = ptx_load(f, ptx_at(f, a->alibi_slopes, head));
    ptx_val down = times(a, slope, -log2_e);
    ptx_val first = ptx_cvt(f, a->wide, ptx_sub(f, ptx_as(f, PTX_S32, s->key), own));
    for (uint32_t i = 0; i < attention_columns(s->slice); i++) {
        ptx_val ahead = ptx_add(f, first, ptx_number(a->wide, ahead_of(s, i)));
        ptx_val score = ptx_mul(f, s->slice->x[r][i], a->inner);
        ptx_set(f, s->slice->x[r][i], ptx_fma(f, ptx_abs(f, ahead), down, score));
    }
}

/* Does not read elements for keys that no query of the tile sees. A mask's -infinity replaces the score, since added to a NaN
 * or +infinity it would give a NaN. */
static void add_mask(const attention *a, const scores *s, uint32_t r)
{
    ptx_fn *f = a->f;
    ptx_val in_rows = ptx_lt(f, s->row[r], a->rows);
    ptx_val row = attention_row_at(a, &a->mask, a->mask.first, s->row[r]), at = ptx_at(f, row, s->key);
    for (uint32_t i = 0; i < attention_columns(s->slice); i++) {
        ptx_val key = ptx_add(f, s->key, ahead_of(s, i)), score = s->slice->x[r][i];
        ptx_val is_key = ptx_lt(f, key, a->k.end);
        ptx_mul_to(f, score, a->inner);
        PTX_IF (f, ptx_and(f, is_key, in_rows)) {
            ptx_val from = ptx_at_const(f, at, ahead_of(s, i));
            ptx_val element = a->type == PTX_F64 ? ptx_load(f, from) : widen_load(f, a->type, from);
            ptx_fma_to(f, score, element, ptx_number(a->wide, log2_e));
            PTX_WHEN (f, ptx_eq(f, element, softmax_none(a->wide))) {
                ptx_set(f, score, softmax_none(a->wide));
            }
        }
    }
}

void attention_shape_and_mask(const attention *a, ptx_val key, bool finds_once, const attention_slice *slice,
                              attention_origin (*find)(const void *of, ptx_val key), const void *of)
{
    scores s = {.slice = slice};
    if (finds_once || a->shaping != ATTENTION_PLAIN) {
        find_scores(a, find(of, key), &s);
        for (uint32_t r = 0; r < slice->rows; r++) {
            if (a->shaping == ATTENTION_SOFTCAP)
                cap_scores(a, slice, r);
            if (a->shaping == ATTENTION_ALIBI)
                add_distances(a, &s, r);
            if (a->shaping == ATTENTION_MASK)
                add_mask(a, &s, r);
        }
    }
    PTX_IF (a->f, ptx_ge(a->f, ptx_sub(a->f, key, a->full_first), a->full_count)) {
        ptx_rarely(a->f);
        if (!finds_once)
            find_scores(a, find(of, key), &s);
        mask_scores(a, key, &s);
    }
}

ptx_val attention_find_shift(const attention *a, const attention_slice *slice, uint32_t i, int lanes)
{
    ptx_fn *f = a->f;
    ptx_val most = slice->x[i][0];
    for (uint32_t n = 1; n < attention_columns(slice); n++)
        most = ptx_max(f, most, slice->x[i][n]);
    return ptx_mul(f, ptx_reduce_lanes(f, PTX_OP_MAX, lanes, most), a->factor);
}

/* ---- ends of rows ---------------------------------------------------------------------------------------------------- */

void attention_find_shares(const attention *a, const ptx_val numbers[], softmax_row rows[], ptx_val shares[],
                           uint32_t count)
{
    ptx_fn *f = a->f;
    for (uint32_t i = 0; i < count; i++)
        shares[i] = ptx_var(f, !a->has_head_scales ? ptx_number(a->wide, 1)
                               : i == 0            ? attention_head_scale(a, a->v_scale)
                                                   : shares[0]);
    PTX_IF (f, ptx_ne(f, ptx_address(f, a->sinks), 0)) {
        ptx_rarely(f);
        for (uint32_t i = 0; i < count; i++) {
            ptx_val sink = ptx_load(f, ptx_at(f, a->sinks, attention_head_of(a, numbers[i])));
            ptx_val shrink = softmax_add_sink(f, a->wide, &rows[i], times(a, sink, log2_e));
            if (a->has_head_scales)
                ptx_mul_to(f, shares[i], shrink);
            else
                ptx_set(f, shares[i], shrink);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        shares[i] = ptx_mul(f, softmax_share(f, a->wide, rows[i].sum), shares[i]);
}

void attention_store_log(const attention *a, ptx_val is_here, ptx_val number, const softmax_row *row)
{
    ptx_fn *f = a->f;
    ptx_val is_wanted = ptx_ne(f, ptx_address(f, a->lse), 0);
    PTX_IF (f, ptx_and(f, is_here, is_wanted)) {
        ptx_val at = attention_log_at(a, number);
        ptx_store(f, at, softmax_log(f, a->wide, row->sum, row->shift));
    }
}
