/* The running softmax.
 *
 * All exponents of a row subtract its largest score, times the factor and rounded. That rounded number is kept, so its
 * rounding cancels between the weights and their sum, also across tiles.
 */
#include "softmax.h"

enum { LN2_TERMS = 14, ATANH_TERMS = 11 };

static const double ln_2 = 0x1.62e42fefa39efp-1;

/* ---- exponentials and logarithms ---------------------------------------------------------------------------------- */

/* x = n + r with |r| <= 1/2: adding 1.5 * 2^52 leaves n in the low bits. 2^r is the Taylor series of e^(r ln 2); the omitted
 * terms are below 2^-57. */
static ptx_val exp2_f64(ptx_fn *f, ptx_val x)
{
    const double magic = 0x1.8p52;
    ptx_val moved = ptx_add(f, x, magic);
    ptx_val whole = ptx_sub(f, moved, magic);
    ptx_val r = ptx_sub(f, x, whole);
    double term[LN2_TERMS] = {1};
    for (int i = 1; i < LN2_TERMS; i++)
        term[i] = term[i - 1] * ln_2 / i;
    ptx_val sum = ptx_f64(term[LN2_TERMS - 1]);
    for (int i = LN2_TERMS - 2; i >= 0; i--)
        sum = ptx_fma(f, sum, r, term[i]);
    ptx_val exponent = ptx_add(f, ptx_as(f, PTX_U64, moved), 1023);
    ptx_val power = ptx_as(f, PTX_F64, ptx_shl(f, exponent, 52));
    ptx_val product = ptx_mul(f, sum, power);
    ptx_val is_tiny = ptx_lt(f, x, -1022);
    return ptx_select(f, is_tiny, 0, product);
}

ptx_val softmax_exp2(ptx_fn *f, ptx_type type, ptx_val x)
{
    return type == PTX_F64 ? exp2_f64(f, x) : ptx_ex2_approx_ftz(f, x);
}

/* x = 2^n * y with y in [3/4, 3/2); with z = (y - 1) / (y + 1), ln(y) = 2 * (z + z^3 / 3 + z^5 / 5 + ...). */
static ptx_val log_f64(ptx_fn *f, ptx_val x)
{
    ptx_val bits = ptx_as(f, PTX_U64, x);
    ptx_val up = ptx_add(f, bits, UINT64_C(1) << 51);
    ptx_val exponent = ptx_shr(f, up, 52);
    ptx_val lowered = ptx_shl(f, ptx_sub(f, exponent, 1023), 52);
    ptx_val y = ptx_as(f, PTX_F64, ptx_sub(f, bits, lowered));
    ptx_val above = ptx_sub(f, y, 1);
    ptx_val z = ptx_div(f, above, ptx_add(f, y, 1));
    ptx_val square = ptx_mul(f, z, z);
    ptx_val sum = ptx_f64(2.0 / (2 * ATANH_TERMS + 1));
    for (int i = ATANH_TERMS - 1; i >= 0; i--)
        sum = ptx_fma(f, sum, square, 2.0 / (2 * i + 1));
    ptx_val n = ptx_cvt(f, PTX_F64, ptx_as(f, PTX_S64, ptx_sub(f, exponent, 1023)));
    ptx_val of_power = ptx_mul(f, n, ln_2);
    return ptx_fma(f, sum, z, of_power);
}

ptx_val softmax_log(ptx_fn *f, ptx_type type, ptx_val x, ptx_val top)
{
    if (type == PTX_F32) {
        ptx_val both = ptx_add(f, ptx_lg2_approx(f, x), top);
        return ptx_mul(f, both, (float)ln_2);
    }
    ptx_val log = log_f64(f, x);
    ptx_val both = ptx_fma(f, top, ln_2, log);
    ptx_val is_none = ptx_eq(f, x, 0);
    ptx_val seen = ptx_select(f, is_none, top, both);
    ptx_val is_number = ptx_eq(f, x, x); /* without this, the bits of a NaN would give a logarithm */
    return ptx_select(f, is_number, seen, x);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

ptx_val softmax_none(ptx_type type)
{
    return type == PTX_F64 ? ptx_bits(PTX_F64, UINT64_C(0xfff) << 52) : ptx_bits(PTX_F32, 0xff800000);
}

void softmax_init_row(ptx_fn *f, ptx_type type, softmax_row *row)
{
    row->shift = ptx_var(f, softmax_none(type));
    row->sum = ptx_var(f, ptx_number(type, 0));
}

/* While no key is visible, 0 is subtracted: -inf less -inf would be a NaN. */
static ptx_val safe_shift(ptx_fn *f, ptx_type type, const softmax_row *row)
{
    ptx_val is_none = ptx_eq(f, row->shift, softmax_none(type));
    return ptx_select(f, is_none, ptx_number(type, 0), row->shift);
}

ptx_val softmax_raise(ptx_fn *f, ptx_type type, softmax_row *row, ptx_val shift)
{
    ptx_val old = ptx_var(f, row->shift);
    ptx_max_to(f, row->shift, shift);
    return softmax_exp2(f, type, ptx_sub(f, old, safe_shift(f, type, row)));
}

ptx_val softmax_minus(ptx_fn *f, ptx_type type, const softmax_row *row)
{
    return ptx_neg(f, safe_shift(f, type, row));
}

ptx_val softmax_add_sink(ptx_fn *f, ptx_type type, softmax_row *row, ptx_val score)
{
    ptx_val shrink = softmax_raise(f, type, row, score);
    ptx_val above = ptx_add(f, score, softmax_minus(f, type, row));
    ptx_mul_to(f, row->sum, shrink);
    ptx_add_to(f, row->sum, softmax_exp2(f, type, above));
    return shrink;
}

ptx_val softmax_share(ptx_fn *f, ptx_type type, ptx_val sum)
{
    ptx_val is_none = ptx_eq(f, sum, ptx_number(type, 0));
    return ptx_select(f, is_none, ptx_number(type, 0), ptx_rcp(f, sum));
}
