/* attention: which tile a thread block makes, and where rows of Q, O, the logarithms and a mask lie. */
#include "attention_layout.h"

enum { HEADS_TOGETHER = 16 };

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
        ptx_val up = ptx_add(f, most, ptx_u32(a->tile_q - 1));
        a->tiles = ptx_div(f, up, ptx_u32(a->tile_q));
        a->parts = ptx_div(f, count, a->tiles);
    }
    ptx_val tile = ptx_div(f, number, a->parts);
    a->part = ptx_sub(f, number, ptx_mul(f, tile, a->parts));
    return tile;
}

/* Causal tiles differ in length. The longest of all heads begin first, so that the short ones fill what is left at the end;
 * of 16 heads at a time, so that enough tiles of a head run at once to share K and V in the L2 cache. */
static attention_block longest_first(const attention *a)
{
    ptx_fn *f = a->f;
    ptx_val tiles = ptx_nctaid_x(f), block = ptx_ctaid_y(f);
    ptx_val first_head = ptx_and(f, block, ptx_u32(~(HEADS_TOGETHER - 1U)));
    ptx_val in_heads = ptx_and(f, block, ptx_u32(HEADS_TOGETHER - 1));
    ptx_val number = ptx_mad(f, in_heads, tiles, ptx_ctaid_x(f));
    ptx_val left = ptx_sub(f, ptx_special(f, PTX_NCTAID_Y), first_head);
    ptx_val heads = ptx_min(f, left, ptx_u32(HEADS_TOGETHER));
    ptx_val tile = ptx_div(f, number, heads), before = ptx_mul(f, tile, heads);
    ptx_val head = ptx_add(f, first_head, ptx_sub(f, number, before));
    return (attention_block){ptx_sub(f, ptx_sub(f, tiles, ptx_u32(1)), tile), head};
}

static bool has_order(const attention *a)
{
    return a->is_causal && a->split_k == 1;
}

void attention_order_blocks(attention *a)
{
    if (has_order(a))
        a->block = longest_first(a);
}

ptx_val attention_find_tile(attention *a)
{
    ptx_fn *f = a->f;
    if (has_order(a))
        return a->block.tile;
    ptx_val tile = a->split_k == 1 ? ptx_ctaid_x(f) : find_part(a);
    if (!a->is_causal)
        return tile;
    ptx_val last = ptx_sub(f, a->tiles, ptx_u32(1)); /* the longest first */
    return ptx_sub(f, last, tile);
}

ptx_val attention_grid_head(const attention *a)
{
    return has_order(a) ? a->block.head : ptx_ctaid_y(a->f);
}

static void find_place(attention *a)
{
    ptx_fn *f = a->f;
    ptx_val tile = find_part(a), block = ptx_ctaid_y(f), batch = ptx_ctaid_z(f);
    ptx_val head = ptx_mad(f, batch, ptx_special(f, PTX_NCTAID_Y), block);
    a->tile = ptx_mad(f, head, a->tiles, tile);
}

void attention_find_before(attention *a)
{
    ptx_fn *f = a->f;
    if (a->split_k != 1)
        find_place(a);
    ptx_val block = attention_grid_head(a), batch = ptx_ctaid_z(f);
    ptx_val head = a->pack_gqa ? ptx_mul(f, block, a->group) : block;
    if (a->layout == ATTENTION_DENSE) {
        ptx_val of_all = ptx_mad(f, batch, a->q_heads, head);
        a->before = a->log_before = ptx_mul_wide(f, of_all, a->q_length);
        a->log_rows = a->q_length;
        return;
    }
    attention_find_queries_again(a);
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
    ptx_val in_group = ptx_rem(f, row, a->group);
    return ptx_mad(f, block, a->group, in_group);
}

uint32_t attention_bytes(const attention_matrix *m)
{
    return m->type == PTX_F64 ? 8 : m->type == PTX_F32 ? 4 : m->type == PTX_S8 ? 1 : 2;
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
