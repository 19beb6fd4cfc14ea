/* Between f32 and the 16-bit types. */
#include "narrow.h"

/* For targets without a conversion, into the upper half of a U32: adds half an ulp minus one, plus one if the lowest kept bit
 * is set, so that ties go to even. A NaN becomes 0x7fff. */
static ptx_val narrow_to_bf16(ptx_fn *f, ptx_val x)
{
    ptx_val bits = ptx_as(f, PTX_U32, x);
    ptx_val lowest = ptx_bfe(f, bits, 16, 1);
    ptx_val half = ptx_add(f, bits, 0x7fff);
    ptx_val rounded = ptx_add(f, half, lowest);
    ptx_val is_number = ptx_ordered(f, x, x);
    return ptx_select(f, is_number, rounded, 0x7fff0000);
}

void narrow_value(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val *x, ptx_val *at)
{
    if (type == PTX_BF16 && !ptx_has_sm(f, 80)) {
        *x = ptx_shr(f, narrow_to_bf16(f, *x), 16);
        *at = ptx_cast_ptr(f, *at, PTX_U16);
    } else if (type != wide) {
        *x = ptx_cvt(f, type, *x);
    }
}

void narrow_store_where(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val at, ptx_val x, ptx_val in_bounds)
{
    narrow_value(f, type, wide, &x, &at);
    PTX_WHEN (f, in_bounds) {
        ptx_store(f, at, x);
    }
}

ptx_val narrow_pair(ptx_fn *f, ptx_type type, ptx_val low, ptx_val high)
{
    bool is_bf16 = type == PTX_BF16;
    if (ptx_has_sm(f, 80))
        return ptx_as(f, PTX_U32, ptx_cvt_pair(f, is_bf16 ? PTX_BF16X2 : PTX_F16X2, low, high));
    if (is_bf16) {
        ptx_val upper[2];
        upper[0] = narrow_to_bf16(f, low);
        upper[1] = narrow_to_bf16(f, high);
        return ptx_prmt(f, upper[0], upper[1], 0x7632);
    }
    ptx_val halves[2];
    halves[0] = ptx_cvt(f, PTX_F16, low);
    halves[1] = ptx_cvt(f, PTX_F16, high);
    return ptx_pack(f, PTX_U32, 2, halves);
}

void narrow_store(ptx_fn *f, ptx_type type, uint32_t count, ptx_val at, const ptx_val x[], int hints)
{
    ptx_val words[4];
    if (type != PTX_F16 && type != PTX_BF16) {
        ptx_store_vec(f, (int)count, at, x, hints);
        return;
    }
    for (uint32_t i = 0; i < count; i += 2)
        words[i / 2] = narrow_pair(f, type, x[i], x[count == 1 ? i : i + 1]);
    if (count == 1)
        ptx_store_hint(f, ptx_cast_ptr(f, at, PTX_U16), words[0], hints);
    else
        ptx_store_vec(f, (int)count / 2, ptx_cast_ptr(f, at, PTX_U32), words, hints);
}

/* A bf16 is the upper half of an f32, so this needs no bf16 instruction. */
void widen_pair(ptx_fn *f, ptx_type type, ptx_val word, ptx_val x[2])
{
    if (type == PTX_BF16) {
        x[0] = ptx_as(f, PTX_F32, ptx_shl(f, word, 16));
        x[1] = ptx_as(f, PTX_F32, ptx_and(f, word, 0xffff0000));
        return;
    }
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, word);
    x[0] = ptx_cvt(f, PTX_F32, halves[0]);
    x[1] = ptx_cvt(f, PTX_F32, halves[1]);
}

void widen_words(ptx_fn *f, ptx_type type, uint32_t count, const ptx_val words[], ptx_val x[])
{
    for (uint32_t i = 0; i < count; i++) {
        if (type == PTX_F16 || type == PTX_BF16)
            widen_pair(f, type, words[i], &x[2 * i]);
        else
            x[i] = ptx_as(f, type, words[i]);
    }
}

ptx_val widen_load(ptx_fn *f, ptx_type type, ptx_val at)
{
    if (type == PTX_F32)
        return ptx_load(f, at);
    if (type == PTX_F16)
        return ptx_cvt(f, PTX_F32, ptx_load(f, at));
    ptx_val bits = ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, at, PTX_U16), PTX_PLAIN);
    return ptx_as(f, PTX_F32, ptx_shl(f, bits, 16));
}

ptx_val widen_load_where(ptx_fn *f, ptx_type type, ptx_val at, ptx_val in_bounds, ptx_val otherwise,
                         int hints)
{
    ptx_val raw = ptx_var(f, otherwise);
    PTX_WHEN (f, in_bounds) {
        if (type == PTX_BF16)
            ptx_set(f, raw, ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, at, PTX_U16), hints));
        else
            ptx_set(f, raw, ptx_load_hint(f, ptx_cast_ptr(f, at, raw.type), hints));
    }
    if (type == PTX_BF16)
        return ptx_as(f, PTX_F32, ptx_shl(f, raw, 16));
    return type == PTX_F16 ? ptx_cvt(f, PTX_F32, ptx_as(f, PTX_F16, raw)) : raw;
}
