/* linear's elements of y: what becomes of a sum. */
#include "device/narrow.h"
#include "linear.h"

/* An element of bias or residual, which have y's type. */
static ptx_val load_as_y(linear *g, ptx_val at)
{
    ptx_fn *f = g->f;
    if (g->y_type == PTX_F32)
        return ptx_load(f, at);
    if (g->y_type == PTX_F16)
        return ptx_cvt(f, PTX_F32, ptx_load(f, at));
    ptx_val bits = ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, at, PTX_U16), PTX_PLAIN);
    return ptx_as(f, PTX_F32, ptx_shl(f, bits, ptx_u32(16)));
}

ptx_val linear_bias(linear *g, ptx_val row)
{
    return g->has_bias ? load_as_y(g, ptx_at(g->f, g->bias, row)) : (ptx_val){0};
}

/* An infinite sum is made a NaN: what was not finite in h or W always is one then, whatever it was multiplied by. */
void linear_store(linear *g, ptx_val sum, const ptx_val *factor, ptx_val bias, ptx_val element)
{
    ptx_fn *f = g->f;
    ptx_val y = ptx_fma(f, sum, ptx_f32(0), sum), at = ptx_at(f, g->out, element);
    if (factor)
        y = ptx_mul(f, y, *factor);
    if (g->has_bias)
        y = ptx_add(f, y, bias);
    if (g->has_residual)
        y = ptx_add(f, y, load_as_y(g, ptx_at(f, g->residual, element)));
    narrow_value(f, g->y_type, PTX_F32, g->of.has_sm_80, &y, &at);
    ptx_store(f, at, y);
}
