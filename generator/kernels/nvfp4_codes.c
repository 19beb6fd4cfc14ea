/* NVFP4's codes and scales. */
#include "nvfp4.h"

/* ---- e2m1 --------------------------------------------------------------------------------------------------------- */

/* prmt picks a byte of the table by three bits of each selector nibble. The fourth bit replicates that byte's sign, which
 * is 0: so codes with the other sign give 0. */
static ptx_val magnitudes(ptx_fn *f, ptx_val selector)
{
    return ptx_prmt(f, ptx_u32(0x03020100), ptx_u32(0x0c080604), selector);
}

nvfp4_bytes nvfp4_split(ptx_fn *f, ptx_val word)
{
    nvfp4_bytes bytes;
    ptx_val flipped = ptx_xor(f, word, ptx_u32(0x88888888));
    ptx_val word_high = ptx_shr(f, word, ptx_u32(16));
    ptx_val flipped_high = ptx_shr(f, flipped, ptx_u32(16));
    bytes.positive[0] = magnitudes(f, word);
    bytes.negative[0] = magnitudes(f, flipped);
    bytes.positive[1] = magnitudes(f, word_high);
    bytes.negative[1] = magnitudes(f, flipped_high);
    return bytes;
}

/* 128 + positive - negative in each byte borrows nothing from the next. */
ptx_val nvfp4_signed(ptx_fn *f, const nvfp4_bytes *bytes, uint32_t half)
{
    ptx_val raised = ptx_or(f, bytes->positive[half], ptx_u32(0x80808080));
    ptx_val difference = ptx_sub(f, raised, bytes->negative[half]);
    return ptx_xor(f, difference, ptx_u32(0x80808080));
}

void nvfp4_halves(ptx_fn *f, ptx_val word, ptx_val pairs[4])
{
    ptx_val bytes[4];
    ptx_unpack(f, PTX_B8, 4, bytes, word);
    for (uint32_t i = 0; i < 4; i++)
        pairs[i] = ptx_f16x2_from_e2m1x2(f, bytes[i]);
}

/* ---- e4m3 --------------------------------------------------------------------------------------------------------- */

/* f16 has one more exponent bit and a bias greater by 8. So the magnitude, shifted to leave the top exponent bit 0, is 2^-8
 * times the number, for subnormal ones too. */
nvfp4_scales nvfp4_widen_scales(ptx_fn *f, bool has_sm_89, ptx_val raw)
{
    nvfp4_scales scales = {{0}, {0}};
    if (has_sm_89) {
        ptx_val pair = raw.type == PTX_U16 ? raw : ptx_cvt(f, PTX_U16, raw);
        scales.pair = ptx_f16x2_from_e4m3x2(f, ptx_as(f, PTX_B16, pair));
        return scales;
    }
    ptx_val spread = ptx_prmt(f, raw, ptx_u32(0), ptx_u32(0x1404));
    ptx_val moved = ptx_shr(f, spread, ptx_u32(1));
    ptx_val magnitude = ptx_and(f, moved, ptx_u32(0x3f803f80));
    ptx_val bits = ptx_lop3(f, spread, ptx_u32(0x80008000), magnitude, 0xEA); /* (a & b) | c */
    scales.pair = ptx_as(f, PTX_F16X2, bits);
    scales.marks = ptx_add(f, magnitude, ptx_u32(0x00800080));
    return scales;
}

ptx_val nvfp4_vector_scales(ptx_fn *f, bool has_sm_89, ptx_val raw)
{
    nvfp4_scales scales = nvfp4_widen_scales(f, has_sm_89, raw);
    ptx_val factor = ptx_number(PTX_F16X2, has_sm_89 ? 0.25 : 0x1p14);
    ptx_val scaled = ptx_as(f, PTX_U32, ptx_mul(f, scales.pair, factor));
    if (has_sm_89)
        return scaled;
    ptx_val marked =
        ptx_and(f, scales.marks, ptx_u32(NVFP4_NAN_MARKS)); /* the highest exponent bits of two f16 */
    ptx_val spread = ptx_mul(f, ptx_shr(f, marked, ptx_u32(14)), ptx_u32(0x7fff));
    return ptx_or(f, scaled, spread);
}
