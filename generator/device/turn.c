/* Sine and cosine of a fraction of a turn.
 *
 * The upper 32 bits of the fraction are cut into a quadrant and the rest, from -1/8 to 1/8 of a turn, by integers alone. So
 * the only errors are, of the result: 2^-29.3 for the bits that are cut off, 2^-24.3 for the rest as F32, 2^-24.8 for the
 * polynomials, and half an ulp for each of their last operations, 2^-25: together less than 2^-22.
 */
#include "turn.h"

/* sin(pi / 4 * z) / z and cos(pi / 4 * z) in powers of z^2, with the least largest error for |z| <= 1: 2^-29.6 and 2^-24.8. */
static const float sine_terms[] = {-3.587725840916309e-05f, 0.002489871967821371f, -0.0807453672709205f,
                                   0.7853981525427293f},
                   cosine_terms[] = {-0.0003191601610296707f, 0.01585039762005845f, -0.308424488492642f, 1};

enum { EIGHTH = 1 << 29, TERMS = 4 };

static ptx_val polynomial(ptx_fn *f, const float terms[TERMS], ptx_val x)
{
    ptx_val sum = ptx_f32(terms[0]);
    for (int i = 1; i < TERMS; i++)
        sum = ptx_fma(f, sum, x, ptx_f32(terms[i]));
    return sum;
}

/* The sign changes where bit 31 of `flip` is set. */
static ptx_val flip_sign(ptx_fn *f, ptx_val x, ptx_val flip)
{
    ptx_val bits = ptx_as(f, PTX_U32, x);
    return ptx_as(f, PTX_F32, ptx_lop3(f, bits, flip, ptx_u32(0x80000000), 0x78)); /* a ^ (b & c) */
}

turn_values turn_evaluate(ptx_fn *f, ptx_val turn)
{
    ptx_val parts[2];
    ptx_unpack(f, PTX_U32, 2, parts, turn);
    ptx_val raised = ptx_add(f, parts[1], ptx_u32(EIGHTH)); /* the quadrant is in bits 30 and 31 */
    ptx_val in_quadrant = ptx_and(f, raised, ptx_u32(2 * EIGHTH - 1));
    ptx_val rest = ptx_as(f, PTX_S32, ptx_sub(f, in_quadrant, ptx_u32(EIGHTH)));
    ptx_val z = ptx_mul(f, ptx_cvt(f, PTX_F32, rest), ptx_f32(1.0f / EIGHTH));
    ptx_val square = ptx_mul(f, z, z);
    ptx_val sine = ptx_mul(f, polynomial(f, sine_terms, square), z);
    ptx_val cosine = polynomial(f, cosine_terms, square);
    ptx_val odd = ptx_and(f, raised, ptx_u32(2 * EIGHTH));
    ptx_val is_odd = ptx_ne(f, odd, ptx_u32(0));
    ptx_val before = ptx_select(f, is_odd, sine, cosine);
    ptx_val after = ptx_select(f, is_odd, cosine, sine);
    turn_values values = {.sine = flip_sign(f, after, raised)};
    values.cosine = flip_sign(f, before, ptx_add(f, raised, ptx_u32(2 * EIGHTH)));
    return values;
}
