/* attention: arguments, and a thread block's tile. */
#include "attention.h"
#include "attention_codes.h"
#include "attention_keys.h"
#include "attention_layout.h"
#include "attention_score.h"

enum { MATRICES = 6 }; /* Q, K, V, O; scales of K and V */

/* Elements of a matrix from batch to batch and from head to head, U64. */
typedef struct matrix_strides {
    ptx_val batch, head;
} matrix_strides;

/* With pack_gqa, a thread block has a head of K and V, and all heads of Q and O that share it. */
static void init_head(attention *a, ptx_val q_heads, ptx_val kv_heads, const matrix_strides strides[MATRICES])
{
    ptx_fn *f = a->f;
    ptx_val block = attention_grid_head(a), batch = ptx_ctaid_z(f);
    a->group = ptx_div(f, q_heads, kv_heads);
    ptx_val head = a->pack_gqa ? ptx_mul(f, block, a->group) : block;
    ptx_val kv_head = a->pack_gqa ? block : ptx_div(f, block, a->group);
    a->q_heads = q_heads;
    a->rows = a->pack_gqa ? ptx_mul(f, a->q_length, a->group) : a->q_length;
    head = ptx_cvt(f, PTX_U64, head);
    kv_head = ptx_cvt(f, PTX_U64, kv_head);
    bool is_dense = a->layout == ATTENTION_DENSE, is_paged = a->layout == ATTENTION_PAGED;
    batch = ptx_cvt(f, PTX_U64, a->layout == ATTENTION_RAGGED ? a->kv_batch : batch);
    attention_matrix *const all[MATRICES] = {&a->q, &a->k, &a->v, &a->out, &a->k_scales, &a->v_scales};
    for (int i = 0; i < (a->kv == ATTENTION_INT8_TOKEN ? MATRICES : 4); i++) {
        bool is_q = i == 0 || i == 3;
        all[i]->head_stride = strides[i].head;
        all[i]->pack_gqa = is_q && a->pack_gqa;
        all[i]->is_paged = !is_q && is_paged;
        all[i]->page_stride = strides[i].batch;
        all[i]->in_entry = i >= 4 ? 16 : i == 2 ? 8 : 0;
        if (i == 3 && !is_dense)
            continue; /* until attention_find_before */
        ptx_val element = ptx_mul(f, is_q ? head : kv_head, strides[i].head);
        if (is_dense || (!is_q && !is_paged))
            element = ptx_mad(f, batch, strides[i].batch, element);
        if (!is_dense && (is_q || !is_paged))
            element = ptx_mad_wide(f, all[i]->first_row, all[i]->row_stride, element);
        all[i]->first = ptx_at(f, all[i]->first, element);
    }
}

attention attention_geometry(ptx_fn *f, const kiln_variant *v)
{
    attention a = {.f = f,
                   .type = kiln_type(v, "type"),
                   .has_sm_80 = kiln_has_sm(v, 80),
                   .has_sm_89 = kiln_has_sm(v, 89),
                   .head_dim = kiln_int(v, "head_dim"),
                   .head_dim_v = kiln_int(v, kiln_int(v, "head_dim_v") ? "head_dim_v" : "head_dim"),
                   .tile_q = kiln_int(v, "tile_q"),
                   .tile_k = kiln_int(v, "tile_k"),
                   .split_k = kiln_int(v, "split_k"),
                   .is_causal = kiln_bool(v, "causal"),
                   .pack_gqa = kiln_bool(v, "pack_gqa"),
                   .layout = kiln_is(v, "layout", "paged")    ? ATTENTION_PAGED
                             : kiln_is(v, "layout", "ragged") ? ATTENTION_RAGGED
                                                              : ATTENTION_DENSE,
                   .kv = attention_kv_of(v),
                   .shaping = attention_shaping_of(v)};
    a.wide = a.type == PTX_F64 ? PTX_F64 : PTX_F32;
    a.q.type = a.out.type = a.type;
    a.k.type = a.v.type = a.kv == ATTENTION_SAME ? a.type : PTX_S8;
    a.k_scales.type = a.v_scales.type = PTX_F32;
    return a;
}

attention attention_init(ptx_fn *f, const kiln_variant *v)
{
    attention a = attention_geometry(f, v);
    matrix_strides strides[MATRICES];
    a.q.first = ptx_param_ptr(f, a.type, "q");
    if (a.kv == ATTENTION_SAME) {
        a.k.first = ptx_param_ptr(f, a.type, "k");
        a.v.first = ptx_param_ptr(f, a.type, "v");
    }
    a.out.first = ptx_param_ptr(f, a.type, "out");
    a.lse = ptx_param_ptr(f, a.wide, "lse");
    ptx_param(f, PTX_U32, "batch");
    ptx_val q_heads = ptx_param(f, PTX_U32, "q_heads");
    ptx_val kv_heads = ptx_param(f, PTX_U32, "kv_heads");
    a.q_length = ptx_param(f, PTX_U32, "q_length");
    a.k_length = ptx_param(f, PTX_U32, "k_length");
    ptx_val scale = ptx_param(f, a.wide, "scale");
    a.q.row_stride = ptx_param(f, PTX_U32, "q_row_stride");
    a.k.row_stride = ptx_param(f, PTX_U32, "k_row_stride");
    a.v.row_stride = ptx_param(f, PTX_U32, "v_row_stride");
    a.out.row_stride = ptx_param(f, PTX_U32, "out_row_stride");
    strides[0].batch = ptx_param(f, PTX_U64, "q_batch_stride");
    strides[0].head = ptx_param(f, PTX_U64, "q_head_stride");
    strides[1].batch = ptx_param(f, PTX_U64, "k_batch_stride");
    strides[1].head = ptx_param(f, PTX_U64, "k_head_stride");
    strides[2].batch = ptx_param(f, PTX_U64, "v_batch_stride");
    strides[2].head = ptx_param(f, PTX_U64, "v_head_stride");
    strides[3].batch = ptx_param(f, PTX_U64, "out_batch_stride");
    strides[3].head = ptx_param(f, PTX_U64, "out_head_stride");
    if (a.split_k != 1) {
        a.workspace = ptx_param_ptr(f, a.wide, "workspace");
        a.tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    ptx_param(f, PTX_U64, "workspace_size"); /* for dispatch */
    a.window_left = ptx_as(f, PTX_S32, ptx_param(f, PTX_U32, "window_left"));
    a.window_right = ptx_as(f, PTX_S32, ptx_param(f, PTX_U32, "window_right"));
    a.first_keys = ptx_param(f, PTX_U32, "first_keys");
    a.causal_offset = ptx_param(f, PTX_S32, "causal_offset");
    a.sinks = ptx_param_ptr(f, a.wide, "sinks");
    ptx_param(f, PTX_U32, "splits"); /* for the grid */
    attention_find_sequence(&a);
    if (a.kv != ATTENTION_SAME) {
        a.k.first = ptx_param_ptr(f, PTX_S8, "k_codes");
        a.v.first = ptx_param_ptr(f, PTX_S8, "v_codes");
    }
    if (attention_has_head_scales(&a)) {
        a.k_scale = ptx_param_ptr(f, PTX_F32, "k_scale");
        a.v_scale = ptx_param_ptr(f, PTX_F32, "v_scale");
    }
    if (a.kv == ATTENTION_INT8_TOKEN) {
        a.k_scales.first = ptx_param_ptr(f, PTX_F32, "k_scales");
        a.v_scales.first = ptx_param_ptr(f, PTX_F32, "v_scales");
        a.k_scales.row_stride = a.v_scales.row_stride = ptx_param(f, PTX_U32, "scale_row_stride");
        strides[4].batch = ptx_param(f, PTX_U64, "scale_batch_stride");
        strides[4].head = ptx_param(f, PTX_U64, "scale_head_stride");
        strides[5] = strides[4];
    }
    attention_order_blocks(&a);
    init_head(&a, q_heads, kv_heads, strides);
    if (attention_has_head_scales(&a))
        scale = ptx_mul(f, scale, attention_head_scale(&a, a.k_scale));
    a.first = ptx_mul(f, attention_find_tile(&a), ptx_u32(a.tile_q));
    attention_find_keys(&a);
    attention_init_scores(&a, scale);
    return a;
}
