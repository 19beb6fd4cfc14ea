/* Query i stands at key p = i + k_length - q_length + causal_offset. It sees the keys j below k_length with
 * j - p < window_right and p - j < window_left, where a limit of 0 is none and causal is a window_right of 1; window_left
 * does not hide the first_keys.
 *
 * So a tile of queries has a window of keys, and some first keys in front of it. They are counted without the gap between
 * the two, which is a multiple of tile_k; parts share what is counted. First keys fill whole tiles: what they have too much
 * is masked.
 *
 * RANGE. Lengths are at most 2^30, limits and the offset 2^29: positions, and a limit more or less, are S32.
 */
#include "attention_keys.h"
#include "device/softmax.h"

/* ---- a row ----------------------------------------------------------------------------------------------------------- */

ptx_val attention_own_key(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val query = a->pack_gqa ? ptx_div(f, row, a->group) : row;
    return ptx_add(f, ptx_as(f, PTX_S32, query), a->diagonal);
}

static ptx_val has_limit(const attention *a, ptx_val limit)
{
    return ptx_ne(a->f, limit, ptx_s32(0));
}

/* The end of the keys that a row sees; may be below 0. */
static ptx_val end_of(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val length = ptx_as(f, PTX_S32, a->k_length), own = attention_own_key(a, row);
    if (a->is_causal)
        return ptx_min(f, ptx_add(f, own, ptx_s32(1)), length);
    ptx_val limited = ptx_min(f, ptx_add(f, own, a->window_right), length);
    return ptx_select(f, has_limit(a, a->window_right), limited, length);
}

/* The first key of its window; may be below 0. */
static ptx_val begin_of(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val behind = ptx_add(f, attention_own_key(a, row), ptx_s32(1));
    ptx_val limited = ptx_sub(f, behind, a->window_left);
    return ptx_select(f, has_limit(a, a->window_left), limited, ptx_s32(0));
}

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */

static ptx_val not_below_0(const attention *a, ptx_val number)
{
    return ptx_as(a->f, PTX_U32, ptx_max(a->f, number, ptx_s32(0)));
}

static ptx_val round_down(const attention *a, ptx_val keys)
{
    return ptx_and(a->f, keys, ptx_u32(~(a->tile_k - 1)));
}

/* The keys that parts share. With split_k 0, and of sequences with lengths of their own, it is the most that any tile of any
 * of them may have: so their parts, and with them the bits of the result, do not depend on each other. */
static ptx_val shared_keys(const attention *a)
{
    ptx_fn *f = a->f;
    if (a->layout == ATTENTION_DENSE && a->split_k != 0)
        return a->end;
    ptx_val first = ptx_min(f, a->first_keys, a->most_keys);
    ptx_val more = ptx_add(f, ptx_as(f, PTX_U32, a->window_left), ptx_u32(a->tile_q + 2 * a->tile_k));
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
    ptx_val ahead = ptx_as(f, PTX_S32, ptx_sub(f, a->k_length, a->q_length));
    ptx_val offset = ptx_max(f, a->causal_offset, ptx_s32(-(1 << 29)));
    a->diagonal = ptx_add(f, ahead, ptx_min(f, offset, ptx_s32(1 << 29)));
    ptx_val behind = ptx_add(f, a->first, ptx_u32(a->tile_q - 1));
    ptx_val last = ptx_min(f, behind, ptx_sub(f, a->rows, ptx_u32(1)));
    a->keys = not_below_0(a, end_of(a, last));
    ptx_val begin = ptx_min(f, not_below_0(a, begin_of(a, a->first)), a->keys);
    begin = round_down(a, begin);
    ptx_val kept = round_down(a, ptx_add(f, a->first_keys, ptx_u32(a->tile_k - 1)));
    a->kept = ptx_min(f, kept, begin);
    a->gap = ptx_sub(f, begin, a->kept);
    a->end = ptx_sub(f, a->keys, a->gap);
    a->first_key = ptx_u32(0);
    a->full_first = not_below_0(a, begin_of(a, last));
    ptx_val full_end = ptx_sub(f, end_of(a, a->first), ptx_s32((int32_t)a->tile_k - 1));
    a->full_count = not_below_0(a, ptx_sub(f, full_end, ptx_as(f, PTX_S32, a->full_first)));
    if (a->split_k != 1) {
        /* Whole tiles of keys; the last parts may have none. */
        ptx_val keys = shared_keys(a), at_once = ptx_mul(f, a->parts, ptx_u32(a->tile_k));
        ptx_val up = ptx_add(f, keys, ptx_sub(f, at_once, ptx_u32(1)));
        ptx_val tiles = ptx_div(f, up, at_once);
        ptx_val count = ptx_mul(f, tiles, ptx_u32(a->tile_k));
        a->first_key = ptx_mul(f, a->part, count);
        a->end = ptx_min(f, a->end, ptx_add(f, a->first_key, count));
        a->keys = ptx_min(f, a->keys, attention_key(a, a->end));
    }
}

ptx_val attention_key(const attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    ptx_val is_behind = ptx_ge(f, counted, a->kept);
    return ptx_add(f, counted, ptx_select(f, is_behind, a->gap, ptx_u32(0)));
}

ptx_val attention_is_masked(const attention *a, ptx_val key)
{
    return ptx_ge(a->f, ptx_sub(a->f, key, a->full_first), a->full_count);
}

/* ---- masks ----------------------------------------------------------------------------------------------------------- */

static void hide_unless(const attention *a, ptx_val is_seen, ptx_val *score)
{
    ptx_set(a->f, *score, ptx_select(a->f, is_seen, *score, softmax_none(a->wide)));
}

void attention_mask_scores(const attention *a, ptx_val key, const attention_scores rows[], uint32_t count)
{
    ptx_fn *f = a->f;
    for (uint32_t r = 0; r < count; r++) {
        ptx_val end = end_of(a, rows[r].row);
        ptx_val beyond = ptx_sub(f, ptx_as(f, PTX_S32, rows[r].first), end);
        for (uint32_t i = 0; i < rows[r].count; i++)
            hide_unless(a, ptx_lt(f, beyond, ptx_s32(-(int32_t)rows[r].offsets[i])), rows[r].score[i]);
    }
    PTX_IF (f, ptx_lt(f, key, a->full_first)) {
        ptx_rarely(f);
        for (uint32_t r = 0; r < count; r++) {
            ptx_val begin = begin_of(a, rows[r].row);
            ptx_val within = ptx_sub(f, ptx_as(f, PTX_S32, rows[r].first), begin);
            ptx_val beyond = ptx_as(f, PTX_S32, ptx_sub(f, rows[r].first, a->first_keys));
            for (uint32_t i = 0; i < rows[r].count; i++) {
                ptx_val is_within = ptx_ge(f, within, ptx_s32(-(int32_t)rows[r].offsets[i]));
                ptx_val is_kept = ptx_lt(f, beyond, ptx_s32(-(int32_t)rows[r].offsets[i]));
                hide_unless(a, ptx_or(f, is_within, is_kept), rows[r].score[i]);
            }
        }
    }
}
