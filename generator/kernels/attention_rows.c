/* attention: where rows of Q, O, the logarithms and a mask lie. */
#include "attention_layout.h"

/* With split_k, the thread blocks of a tile of queries are neighbours. */
ptx_val attention_find_part(attention *a)
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

static void find_place(attention *a)
{
    ptx_fn *f = a->f;
    ptx_val tile = attention_find_part(a), block = ptx_ctaid_y(f), batch = ptx_ctaid_z(f);
    ptx_val head = ptx_mad(f, batch, ptx_special(f, PTX_NCTAID_Y), block);
    a->tile = ptx_mad(f, head, a->tiles, tile);
}

void attention_find_before(attention *a)
{
    ptx_fn *f = a->f;
    if (a->split_k != 1)
        find_place(a);
    ptx_val block = ptx_ctaid_y(f), batch = ptx_ctaid_z(f);
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
    ptx_val block = ptx_ctaid_y(f);
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
