/* attention: a thread block's tile and sequence, and the addresses of its matrices' rows. */
#include "attention.h"

enum {
    HEADS_TOGETHER = 16,
    F16_DOWN = 5 /* a weight is at most 4, and a code 128 */
};

/* ---- the tile -------------------------------------------------------------------------------------------------------- */

/* With split_k, the thread blocks of a tile of queries are neighbours. */
static ptx_val find_part(attention *a)
{
    ptx_fn *f = a->f;
    ptx_val number = ptx_ctaid_x(f), count = ptx_nctaid_x(f);
    if (a->split_k > 1) {
        a->parts = ptx_u32(a->split_k);
        a->tiles = ptx_div(f, count, a->parts);
    } else {
        ptx_val most = a->pack_gqa ? ptx_mul(f, a->most_queries, a->group) : a->most_queries;
        a->tiles = ptx_div(f, ptx_add(f, most, a->tile_q - 1), a->tile_q);
        a->parts = ptx_div(f, count, a->tiles);
    }
    ptx_val tile = ptx_div(f, number, a->parts);
    a->part = ptx_sub(f, number, ptx_mul(f, tile, a->parts));
    return tile;
}

/* Causal tiles differ in length. The longest of all heads begin first, so that short ones fill the gaps at the end; 16 heads
 * at a time, so that enough tiles of a head run at once to share K and V in the L2 cache. */
void attention_order_blocks(attention *a)
{
    ptx_fn *f = a->f;
    if (!a->has_order)
        return;
    ptx_val tiles = ptx_nctaid_x(f), block = ptx_ctaid_y(f);
    ptx_val first_head = ptx_and(f, block, ~(HEADS_TOGETHER - 1U));
    ptx_val in_heads = ptx_and(f, block, HEADS_TOGETHER - 1);
    ptx_val number = ptx_mad(f, in_heads, tiles, ptx_ctaid_x(f));
    ptx_val left = ptx_sub(f, ptx_special(f, PTX_NCTAID_Y), first_head);
    ptx_val heads = ptx_min(f, left, HEADS_TOGETHER);
    ptx_val tile = ptx_div(f, number, heads), before = ptx_mul(f, tile, heads);
    a->grid_head = ptx_add(f, first_head, ptx_sub(f, number, before));
    a->tile_in_head = ptx_sub(f, ptx_sub(f, tiles, 1), tile);
}

ptx_val attention_find_tile(attention *a)
{
    ptx_fn *f = a->f;
    if (a->has_order)
        return a->tile_in_head;
    ptx_val tile = a->split_k == 1 ? ptx_ctaid_x(f) : find_part(a);
    if (!a->is_causal)
        return tile;
    ptx_val last = ptx_sub(f, a->tiles, 1); /* the longest first */
    return ptx_sub(f, last, tile);
}

ptx_val attention_grid_head(const attention *a)
{
    return a->has_order ? a->grid_head : ptx_ctaid_y(a->f);
}

/* ---- the sequence ---------------------------------------------------------------------------------------------------- */

static ptx_val is_given(const attention *a, ptx_val pointer)
{
    return ptx_ne(a->f, ptx_address(a->f, pointer), 0);
}

/* Number `i` of an array on the device, uniform in the thread block; `otherwise` if the array is null. */
static ptx_val load_or(const attention *a, ptx_val given, ptx_val numbers, ptx_val i, ptx_val otherwise,
                       int hints)
{
    ptx_fn *f = a->f;
    ptx_val number = ptx_var(f, otherwise), at = ptx_at(f, numbers, i);
    PTX_WHEN (f, given) {
        ptx_set(f, number, ptx_load_hint(f, at, hints));
    }
    return ptx_uniform(f, number);
}

/* The first row and the number of rows from two offsets; `rows` each if there are none. */
typedef struct row_range {
    ptx_val first, count;
} row_range;

static row_range find_rows(const attention *a, ptx_val given, ptx_val offsets, ptx_val first, ptx_val rows,
                           int hints)
{
    ptx_fn *f = a->f;
    ptx_val batch = ptx_ctaid_z(f), next = ptx_add(f, first, rows);
    ptx_val begin = load_or(a, given, offsets, batch, first, hints);
    ptx_val end = load_or(a, given, ptx_at_const(f, offsets, 1), batch, next, hints);
    return (row_range){begin, ptx_min(f, ptx_sub(f, end, begin), rows)};
}

static row_range find_queries(const attention *a, int hints)
{
    ptx_fn *f = a->f;
    ptx_val even = ptx_mul(f, ptx_ctaid_z(f), a->most_queries);
    return find_rows(a, is_given(a, a->q_offsets), a->q_offsets, even, a->most_queries, hints);
}

void attention_find_sequence(attention *a)
{
    ptx_fn *f = a->f;
    const bool is_ragged = a->layout == ATTENTION_RAGGED;
    ptx_val k_offsets, none = ptx_u32(0);
    a->most_queries = a->q_length;
    a->most_keys = a->k_length;
    if (a->layout == ATTENTION_DENSE)
        return;
    a->q_offsets = ptx_param_ptr(f, PTX_U32, "sequences_q_offsets");
    if (is_ragged)
        k_offsets = ptx_param_ptr(f, PTX_U32, "sequences_k_offsets");
    ptx_val k_lengths = ptx_param_ptr(f, PTX_U32, "sequences_k_lengths");
    a->q_rows = ptx_param(f, PTX_U32, "sequences_q_rows");
    if (is_ragged)
        ptx_param(f, PTX_U32, "sequences_k_rows");
    ptx_val batch = ptx_ctaid_z(f);
    row_range q = find_queries(a, PTX_NC), k = {none, a->most_keys};
    if (is_ragged) {
        ptx_val has_offsets = is_given(a, k_offsets);
        k = find_rows(a, has_offsets, k_offsets, none, a->most_keys, PTX_NC);
        a->kv_batch = ptx_select(f, has_offsets, none, batch);
    } else {
        a->page_table = ptx_param_ptr(f, PTX_S32, "pages_table");
        ptx_val starts = ptx_param_ptr(f, PTX_U32, "pages_starts");
        ptx_param(f, PTX_U32, "pages_entries");
        ptx_val first = ptx_mul(f, batch, ptx_param(f, PTX_U32, "pages_stride"));
        ptx_param(f, PTX_U32, "pages_count");
        a->page_size = ptx_param(f, PTX_U32, "pages_size");
        a->first_page = load_or(a, is_given(a, starts), starts, batch, first, PTX_NC);
    }
    ptx_val length = load_or(a, is_given(a, k_lengths), k_lengths, batch, k.count, PTX_NC);
    a->q.first_row = q.first;
    a->k.first_row = a->v.first_row = a->k_scales.first_row = a->v_scales.first_row = k.first;
    a->q_length = q.count;
    a->k_length = ptx_min(f, length, a->most_keys);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

void attention_find_before(attention *a)
{
    ptx_fn *f = a->f;
    if (a->split_k != 1) {
        ptx_val tile = find_part(a), block = ptx_ctaid_y(f), batch = ptx_ctaid_z(f);
        ptx_val head = ptx_mad(f, batch, ptx_special(f, PTX_NCTAID_Y), block);
        a->tile = ptx_mad(f, head, a->tiles, tile);
    }
    ptx_val block = attention_grid_head(a), batch = ptx_ctaid_z(f);
    ptx_val head = a->pack_gqa ? ptx_mul(f, block, a->group) : block;
    if (a->layout == ATTENTION_DENSE) {
        ptx_val of_all = ptx_mad(f, batch, a->q_heads, head);
        a->before = a->log_before = ptx_mul_wide(f, of_all, a->q_length);
        a->log_rows = a->q_length;
        return;
    }
    /* Without PTX_NC: with it, ptxas would keep the results of the first loads in registers. */
    row_range q = find_queries(a, PTX_PLAIN);
    a->out.first_row = q.first;
    a->rows = a->pack_gqa ? ptx_mul(a->f, q.count, a->group) : q.count;
    ptx_val query = a->out.first_row, of_heads = ptx_mul_wide(f, head, a->q_rows);
    ptx_val element = ptx_mul(f, ptx_cvt(f, PTX_U64, head), a->out.head_stride);
    a->out.first = ptx_at(f, a->out.first, ptx_mad_wide(f, query, a->out.row_stride, element));
    a->before = a->log_before = ptx_add(f, of_heads, ptx_cvt(f, PTX_U64, query));
    if (a->pack_gqa)
        a->before = ptx_mad_wide(f, query, a->group, of_heads);
    a->log_rows = a->q_rows;
}

ptx_val attention_head_of(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val block = attention_grid_head(a);
    if (!a->pack_gqa)
        return block;
    return ptx_mad(f, block, a->group, ptx_rem(f, row, a->group));
}

ptx_val attention_row_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row)
{
    ptx_fn *f = a->f;
    if (!m->pack_gqa)
        return ptx_at(f, at, ptx_mul_wide(f, row, m->row_stride));
    ptx_val query = ptx_div(f, row, a->group), head = ptx_rem(f, row, a->group);
    ptx_val of_query = ptx_mul_wide(f, query, m->row_stride);
    head = ptx_cvt(f, PTX_U64, head);
    return ptx_at(f, at, ptx_mad(f, head, m->head_stride, of_query));
}

ptx_val attention_log_at(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val at = ptx_at(f, a->lse, a->log_before);
    if (!a->pack_gqa)
        return ptx_at(f, at, row);
    ptx_val query = ptx_div(f, row, a->group), head = ptx_rem(f, row, a->group);
    return ptx_at(f, ptx_at(f, at, ptx_mul_wide(f, head, a->log_rows)), query);
}

void attention_number_rows(const attention *a, const attention_slice *s, ptx_val first, ptx_val numbers[])
{
    for (uint32_t i = 0; i < s->rows; i++)
        numbers[i] = attention_plus(a->f, first, s->row_step * i);
}

/* ---- codes ----------------------------------------------------------------------------------------------------------- */

codes_values attention_codes_of(const attention *a, ptx_type type, bool is_v)
{
    const bool is_down = is_v && a->kv == ATTENTION_INT8_TOKEN && a->type == PTX_F16;
    return (codes_values){type, a->kv == ATTENTION_E4M3, is_down ? F16_DOWN : 0};
}

ptx_val attention_head_scale(const attention *a, ptx_val scales)
{
    ptx_fn *f = a->f;
    ptx_val block = attention_grid_head(a), head = a->pack_gqa ? block : ptx_div(f, block, a->group);
    return ptx_load_hint(f, ptx_at(f, scales, head), PTX_NC);
}
