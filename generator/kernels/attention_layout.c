#include "attention_layout.h"

static ptx_val is_given(const attention *a, ptx_val pointer)
{
    return ptx_ne(a->f, ptx_address(a->f, pointer), ptx_u64(0));
}

/* Number `i` of an array on the device, which is the same for the thread block; `otherwise` where there is none. */
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

/* The first row and the number of rows that two offsets say; `rows` each where there are none. */
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

/* Loads without PTX_NC: ptxas would find those of the first time, and keep what they gave. */
void attention_find_queries_again(attention *a)
{
    row_range q = find_queries(a, PTX_PLAIN);
    a->out.first_row = q.first;
    a->rows = a->pack_gqa ? ptx_mul(a->f, q.count, a->group) : q.count;
}

static void find_pages(attention *a, ptx_val batch)
{
    ptx_fn *f = a->f;
    a->page_table = ptx_param_ptr(f, PTX_S32, "pages_table");
    ptx_val starts = ptx_param_ptr(f, PTX_U32, "pages_starts");
    ptx_param(f, PTX_U32, "pages_entries");
    ptx_val first = ptx_mul(f, batch, ptx_param(f, PTX_U32, "pages_stride"));
    ptx_param(f, PTX_U32, "pages_count");
    a->page_size = ptx_param(f, PTX_U32, "pages_size");
    a->first_page = load_or(a, is_given(a, starts), starts, batch, first, PTX_NC);
}

void attention_find_sequence(attention *a)
{
    ptx_fn *f = a->f;
    const bool is_ragged = a->layout == ATTENTION_RAGGED;
    ptx_val k_offsets, k_rows, none = ptx_u32(0);
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
        k_rows = ptx_param(f, PTX_U32, "sequences_k_rows");
    ptx_val batch = ptx_ctaid_z(f);
    row_range q = find_queries(a, PTX_NC), k = {none, a->most_keys};
    if (is_ragged) {
        ptx_val has_offsets = ptx_ne(f, k_rows, none);
        k = find_rows(a, has_offsets, k_offsets, none, a->most_keys, PTX_NC);
        a->kv_batch = ptx_select(f, has_offsets, none, batch);
    } else {
        find_pages(a, batch);
    }
    ptx_val length = load_or(a, is_given(a, k_lengths), k_lengths, batch, k.count, PTX_NC);
    a->q.first_row = q.first;
    a->k.first_row = a->v.first_row = a->k_scales.first_row = a->v_scales.first_row = k.first;
    a->q_length = q.count;
    a->k_length = ptx_min(f, length, a->most_keys);
}
