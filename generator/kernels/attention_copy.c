/* A thread's units lie whole rows apart where a row's units divide the threads; else each has its own place. */
#include "attention_copy.h"

enum { UNIT_BYTES = 16 };

static uint32_t unit_elements(const attention *a)
{
    return a->type == PTX_F64 ? 2 : a->type == PTX_F32 ? 4 : 8;
}

/* Unit `number` of the panel: its row, and where it lies. */
static void find_unit(attention_panel *p, ptx_val number)
{
    ptx_fn *f = p->by->a->f;
    uint32_t unit = unit_elements(p->by->a), row_units = p->elements / unit;
    p->row = ptx_div(f, number, ptx_u32(row_units));
    ptx_val column = ptx_mul(f, ptx_rem(f, number, ptx_u32(row_units)), ptx_u32(unit));
    p->at = ptx_at(f, p->from, column);
    ptx_val line = ptx_mad(f, p->row, ptx_u32(p->row_bytes), p->to);
    p->place = ptx_mad(f, column, ptx_u32(p->by->bytes), line);
}

static uint32_t rows_apart(const attention_panel *p)
{
    uint32_t row_units = p->elements / unit_elements(p->by->a);
    return p->by->threads % row_units == 0 ? p->by->threads / row_units : 0;
}

attention_panel attention_open_panel(const attention_copier *by, ptx_val from, ptx_val stride,
                                     uint32_t elements, ptx_val to, uint32_t row_bytes)
{
    attention_panel p = {by, elements, row_bytes, .from = from, .stride = stride, .to = to};
    find_unit(&p, by->tid);
    if (rows_apart(&p))
        p.step = ptx_mul_wide(by->a->f, stride, ptx_u32(rows_apart(&p) * UNIT_BYTES / unit_elements(by->a)));
    return p;
}

static void copy_all(const attention_panel *p, ptx_val row, uint32_t rows, const ptx_val *end,
                     ptx_val element)
{
    const attention_copier *by = p->by;
    ptx_fn *f = by->a->f;
    uint32_t units = rows * (p->elements / unit_elements(by->a)), apart = rows_apart(p);
    ptx_val at = p->at, mine = p->row;
    for (uint32_t first = 0; first < units; first += by->threads) {
        uint32_t turn = first / by->threads;
        attention_panel unit = *p;
        if (!apart && first > 0)
            find_unit(&unit, ptx_add(f, by->tid, ptx_u32(first)));
        if (!apart || first == 0) {
            mine = ptx_add(f, unit.row, row);
            ptx_val line = ptx_at(f, unit.at, ptx_mul_wide(f, mine, p->stride));
            at = ptx_at(f, line, element);
        } else {
            at = ptx_at(f, ptx_cast_ptr(f, at, PTX_U8), p->step);
            if (end)
                mine = ptx_add(f, mine, ptx_u32(apart));
        }
        ptx_val to = ptx_pointer(f, PTX_SHARED, PTX_U32, unit.place), exists;
        to = ptx_at_bytes(f, to, turn * apart * p->row_bytes);
        if (end)
            exists = ptx_lt(f, mine, *end);
        if (units - first >= by->threads) {
            by->copy(by->a, at, to, end ? &exists : NULL);
        } else {
            PTX_IF (f, ptx_lt(f, by->tid, ptx_u32(units - first))) {
                by->copy(by->a, at, to, end ? &exists : NULL);
            }
        }
    }
}

void attention_copy_rows(const attention_panel *p, ptx_val row, uint32_t rows, ptx_val end, ptx_val element)
{
    ptx_fn *f = p->by->a->f;
    ptx_val last = ptx_add(f, row, ptx_u32(rows));
    PTX_IF (f, ptx_le(f, last, end)) {
        copy_all(p, row, rows, NULL, element);
    }
    PTX_ELSE (f) {
        copy_all(p, row, rows, &end, element);
    }
}

void attention_load_unit(ptx_fn *f, ptx_val from, const ptx_val *exists, ptx_val words[4])
{
    ptx_val loaded[4], at = ptx_cast_ptr(f, from, PTX_U32);
    if (!exists) {
        ptx_load_vec(f, 4, words, at, PTX_NC);
        return;
    }
    for (int i = 0; i < 4; i++)
        words[i] = ptx_var(f, ptx_u32(0));
    PTX_WHEN (f, *exists) {
        ptx_load_vec(f, 4, loaded, at, PTX_NC);
        for (int i = 0; i < 4; i++)
            ptx_set(f, words[i], loaded[i]);
    }
}
