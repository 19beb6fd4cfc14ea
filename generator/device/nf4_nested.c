/* Nested scales. */
#include "nf4_nested.h"

#include "shared.h"

enum { CODES = 256, SHARE_LOG2 = 8 /* log2 of the quantised blocks that share an absmax */ };

nf4_nested nf4_nested_pointers(ptx_fn *f)
{
    nf4_nested s = {.f = f};
    s.index = ptx_param_ptr(f, PTX_U8, "scale_index");
    s.code = ptx_param_ptr(f, PTX_F32, "nested_code");
    s.absmax = ptx_param_ptr(f, PTX_F32, "nested_absmax");
    return s;
}

void nf4_nested_offset(nf4_nested *s)
{
    s->offset = ptx_param(s->f, PTX_F32, "nested_offset");
}

void nf4_nested_fill(nf4_nested *s, ptx_val table, ptx_val tid)
{
    ptx_fn *f = s->f;
    s->table = table;
    PTX_FOR (f, i, tid, CODES, ptx_block_x(f)) {
        ptx_val value = ptx_load_hint(f, ptx_at(f, s->code, i), PTX_NC);
        ptx_store(f, shared_at(f, PTX_F32, ptx_mad(f, i, 4, table), 0), value);
    }
    ptx_barrier(f);
}

static ptx_val look_up(const nf4_nested *s, ptx_val index)
{
    ptx_fn *f = s->f;
    if (s->table.type == PTX_NONE)
        return ptx_load_hint(f, ptx_at(f, s->code, index), PTX_NC);
    return ptx_load(f, shared_at(f, PTX_F32, ptx_mad(f, index, 4, s->table), 0));
}

void nf4_nested_load(const nf4_nested *s, uint32_t count, const ptx_val number[], const ptx_val in_bounds[],
                     ptx_val out[])
{
    ptx_fn *f = s->f;
    ptx_val index[NF4_NESTED_AT_ONCE], absmax[NF4_NESTED_AT_ONCE];
    for (uint32_t i = 0; i < count; i++) {
        ptx_val index_at = ptx_at(f, s->index, number[i]);
        ptx_val absmax_at = ptx_at(f, s->absmax, ptx_shr(f, number[i], SHARE_LOG2));
        if (!in_bounds) {
            index[i] = ptx_load_as(f, PTX_U32, index_at, PTX_NC);
            absmax[i] = ptx_load_hint(f, absmax_at, PTX_NC);
            continue;
        }
        index[i] = ptx_var(f, ptx_u32(0));
        absmax[i] = ptx_var(f, ptx_f32(0));
        PTX_WHEN (f, in_bounds[i]) {
            ptx_set(f, index[i], ptx_load_as(f, PTX_U32, index_at, PTX_NC));
            ptx_set(f, absmax[i], ptx_load_hint(f, absmax_at, PTX_NC));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ptx_val scaled = ptx_mul(f, look_up(s, index[i]), absmax[i]);
        out[i] = ptx_add(f, scaled, s->offset);
        if (in_bounds)
            out[i] = ptx_select(f, in_bounds[i], out[i], 0);
    }
}
