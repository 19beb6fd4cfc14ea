/* linear's elements of y: from a sum, or the two sums of a gated pair. */
#include "device/narrow.h"
#include "linear.h"

/* ---- a variant ---------------------------------------------------------------------------------------------------- */

void linear_set_epilogue(linear *g, const kiln_variant *v)
{
    const bool has_both = kiln_is(v, "epilogue", "bias_residual");
    g->y_type = kiln_type(v, "y");
    g->has_bias = has_both || kiln_is(v, "epilogue", "bias");
    g->has_residual = has_both || kiln_is(v, "epilogue", "residual");
    g->is_gelu = kiln_is(v, "epilogue", "geglu");
    g->is_pair = g->is_gelu || kiln_is(v, "epilogue", "swiglu");
    g->column_rows = g->matrices = g->is_pair ? 2 : 1;
    g->split_k = kiln_int(v, "split_k");
}

void linear_read_each(linear *g, uint32_t count, bool is_pointer, ptx_type type, const char *const names[],
                      ptx_val of[])
{
    for (uint32_t i = 0; i < count && i < LINEAR_MOST_MATRICES; i++)
        of[i] = is_pointer ? ptx_param_ptr(g->f, type, names[i]) : ptx_param(g->f, type, names[i]);
}

void linear_read_y(linear *g)
{
    const char *const bias[] = {"bias", "bias_2", "bias_3"}, *const out[] = {"out", "out_2", "out_3"},
                      *const n[] = {"n", "n_2", "n_3"};
    const uint32_t outs = g->is_pair ? 1 : g->matrices;
    ptx_fn *f = g->f;
    if (g->has_bias)
        linear_read_each(g, outs, true, g->y_type, bias, g->bias);
    if (g->has_residual)
        g->residual = ptx_param_ptr(f, g->y_type, "residual");
    linear_read_each(g, outs, true, g->y_type, out, g->out);
    if (g->split_k != 1) {
        g->workspace = ptx_param_ptr(f, PTX_F32, "workspace");
        g->tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    g->m = ptx_param(f, PTX_U32, "m");
    linear_read_each(g, outs, false, PTX_U32, n, g->n);
    g->k = ptx_param(f, PTX_U32, "k");
}

/* ---- columns ------------------------------------------------------------------------------------------------------ */

/* The row's pointer, to elements of y's type. */
static ptx_val pick_pointer(linear *g, const linear_row *row, const ptx_val pointers[])
{
    return ptx_pointer(g->f, PTX_GLOBAL, g->y_type, linear_pick_address(g, row, pointers));
}

linear_column linear_find_column(linear *g, ptx_val w_row)
{
    const linear_row row = linear_find_row(g, w_row);
    linear_column column = {.row = row.number,
                            .row_64 = ptx_cvt(g->f, PTX_U64, row.number),
                            .stride = g->y_stride.type == PTX_NONE ? g->n[0] : g->y_stride,
                            .out = g->out[0],
                            .bias = g->bias[0],
                            .scale = {g->scale[0], g->scale[1]}};
    if (g->is_pair || g->matrices == 1)
        return column;
    column.stride = linear_pick(g, &row, g->n);
    column.out = pick_pointer(g, &row, g->out);
    if (g->has_bias)
        column.bias = pick_pointer(g, &row, g->bias);
    if (g->has_scale)
        column.scale[0] = linear_pick(g, &row, g->scale);
    return column;
}

ptx_val linear_bias(linear *g, const linear_column *column)
{
    return g->has_bias ? widen_load(g->f, g->y_type, ptx_at(g->f, column->bias, column->row)) : (ptx_val){0};
}

/* ---- gates -------------------------------------------------------------------------------------------------------- */

/* SiLU is x / (1 + e^-x). GELU in its tanh form, x / 2 * (1 + tanh(u)), is x / (1 + e^-2u), which has no cancellation for
 * negative x. If the power is infinite, the result is 0. */
static ptx_val activate(linear *g, ptx_val x)
{
    ptx_fn *f = g->f;
    const double log2_e = 1.4426950408889634, twice_root = 1.5957691216057308 /* of 2 / pi */;
    ptx_val factor = ptx_f32((float)-log2_e);
    if (g->is_gelu)
        factor = ptx_fma(f, ptx_mul(f, x, x), (float)(-0.044715 * twice_root * log2_e),
                         (float)(-twice_root * log2_e));
    ptx_val power = ptx_ex2_approx(f, ptx_mul(f, x, factor));
    return ptx_mul(f, x, ptx_rcp_approx(f, ptx_add(f, power, 1)));
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Makes an infinite sum a NaN: so non-finite values of h or W always give NaN, whatever the factors. */
static ptx_val make_nan(linear *g, ptx_val sum)
{
    return g->keeps_infinity ? sum : ptx_fma(g->f, sum, 0, sum);
}

/* Multiplies a sum by the norm's factor and the matrix's factor. */
static ptx_val scale_sum(linear *g, ptx_val sum, const ptx_val *factor, ptx_val scale)
{
    if (factor)
        sum = ptx_mul(g->f, sum, *factor);
    return g->has_scale ? ptx_mul(g->f, sum, scale) : sum;
}

void linear_store(linear *g, const linear_column *column, const ptx_val sum[], ptx_val bias,
                  const ptx_val *factor, ptx_val element)
{
    ptx_fn *f = g->f;
    ptx_val y = make_nan(g, sum[0]), at = ptx_at(f, column->out, element);
    y = scale_sum(g, y, factor, column->scale[0]);
    if (g->is_pair) {
        ptx_val gate = scale_sum(g, make_nan(g, sum[1]), factor, column->scale[1]);
        y = ptx_mul(f, activate(g, gate), y);
    }
    if (g->has_bias)
        y = ptx_add(f, y, bias);
    if (g->has_residual)
        y = ptx_add(f, y, widen_load(g->f, g->y_type, ptx_at(f, g->residual, element)));
    narrow_value(f, g->y_type, PTX_F32, &y, &at);
    ptx_store(f, at, y);
}
