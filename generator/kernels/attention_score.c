/* The softmax is made in powers of two, so a shaped score is one times log2(e), and `factor` is 1. What is multiplied by
 * scale * log2(e) before is `inner`. A softcap's tanh is 1 - 2 / (1 + 2^(inner * score)): there `inner` has 2 / softcap, too.
 */
#include "attention_score.h"
#include "device/narrow.h"
#include "device/softmax.h"
#include <float.h>

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
    a->q_end = ptx_select(f, is_zero, ptx_u32(0), a->rows);
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

static void cap_score(const attention *a, ptx_val *score)
{
    ptx_fn *f = a->f;
    ptx_val exponent = ptx_mul(f, *score, a->inner);
    if (a->wide == PTX_F64) { /* 2^x has no infinity there */
        ptx_val is_large = ptx_gt(f, exponent, ptx_f64(1000));
        exponent = ptx_select(f, is_large, ptx_f64(1000), exponent);
    }
    ptx_val power = softmax_exp2(f, a->wide, exponent);
    ptx_val share = ptx_add(f, power, ptx_number(a->wide, 1));
    share = a->wide == PTX_F64 ? ptx_rcp(f, share) : ptx_rcp_approx(f, share);
    ptx_set(f, *score, ptx_fma(f, times(a, share, -2), a->cap, a->cap));
}

static void add_distances(const attention *a, const attention_scores *s)
{
    ptx_fn *f = a->f;
    ptx_val own = attention_own_key(a, s->row), head = attention_head_of(a, s->row);
    ptx_val slope = ptx_load(f, ptx_at(f, a->alibi_slopes, head));
    ptx_val down = times(a, slope, -log2_e);
    ptx_val first = ptx_cvt(f, a->wide, ptx_sub(f, ptx_as(f, PTX_S32, s->first), own));
    for (uint32_t i = 0; i < s->count; i++) {
        ptx_val ahead = ptx_add(f, first, ptx_number(a->wide, s->offsets[i]));
        ptx_val score = ptx_mul(f, *s->score[i], a->inner);
        ptx_set(f, *s->score[i], ptx_fma(f, ptx_abs(f, ahead), down, score));
    }
}

/* An element of a key that no query of the tile sees is not read. */
static void add_mask(const attention *a, const attention_scores *s)
{
    ptx_fn *f = a->f;
    ptx_val in_rows = ptx_lt(f, s->row, a->rows);
    ptx_val row = attention_row_at(a, &a->mask, a->mask.first, s->row), at = ptx_at(f, row, s->first);
    for (uint32_t i = 0; i < s->count; i++) {
        ptx_val key = ptx_add(f, s->first, ptx_u32(s->offsets[i]));
        ptx_val is_key = ptx_lt(f, key, a->keys);
        ptx_mul_to(f, *s->score[i], a->inner);
        PTX_IF (f, ptx_and(f, is_key, in_rows)) {
            ptx_val from = ptx_at_const(f, at, s->offsets[i]);
            ptx_val element = a->type == PTX_F64 ? ptx_load(f, from) : widen_load(f, a->type, from);
            ptx_fma_to(f, *s->score[i], element, ptx_number(a->wide, log2_e));
        }
    }
}

void attention_shape_scores(const attention *a, const attention_scores rows[], uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; a->shaping == ATTENTION_SOFTCAP && i < rows[r].count; i++)
            cap_score(a, rows[r].score[i]);
        if (a->shaping == ATTENTION_ALIBI)
            add_distances(a, &rows[r]);
        if (a->shaping == ATTENTION_MASK)
            add_mask(a, &rows[r]);
    }
}

/* ---- sinks ----------------------------------------------------------------------------------------------------------- */

void attention_add_sinks(const attention *a, const ptx_val numbers[], softmax_row *const rows[],
                         ptx_val shrink[], uint32_t count)
{
    ptx_fn *f = a->f;
    const bool has_scales = attention_has_head_scales(a);
    for (uint32_t i = 0; i < count; i++)
        shrink[i] = ptx_var(f, !has_scales ? ptx_number(a->wide, 1)
                               : i == 0    ? attention_head_scale(a, a->v_scale)
                                           : shrink[0]);
    PTX_IF (f, ptx_ne(f, ptx_address(f, a->sinks), ptx_u64(0))) {
        ptx_rarely(f);
        for (uint32_t i = 0; i < count; i++) {
            ptx_val sink = ptx_load(f, ptx_at(f, a->sinks, attention_head_of(a, numbers[i])));
            ptx_val share = softmax_add_sink(f, a->wide, rows[i], times(a, sink, log2_e));
            if (has_scales)
                ptx_mul_to(f, shrink[i], share);
            else
                ptx_set(f, shrink[i], share);
        }
    }
}
