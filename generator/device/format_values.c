/* GGUF's formats whose codes are nibbles that pick one of sixteen signed bytes, in Q4_0's order of elements.
 *
 *     IQ4_NL  d, f16; 16 bytes of codes
 *     IQ4_XS  d, f16; 16 bits: the high two of each 6-bit scale; 4 bytes: the low four; 8 times 16 bytes; a scale is 32 more
 *             than it is
 *     MXFP4   e, a byte; 16 bytes of codes: e2m1 numbers, here times 2, so that the scale is 2^(e - 128)
 */
#include "decoder.h"

static const uint32_t iq4_values[4] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};
static const uint32_t e2m1_values[4] = {0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc};

/* prmt picks one of eight bytes by three bits of a nibble; the fourth picks between the two eights. Of four nibbles at a time:
 * so the bytes of both quads come in turn, and two more prmt sort them. */
static void look_up(ptx_fn *f, const uint32_t values[4], ptx_val word, ptx_val quads[2])
{
    ptx_val in_eight = ptx_and(f, word, ptx_u32(0x77777777));
    ptx_val which = ptx_shr(f, word, ptx_u32(1));
    ptx_val between = ptx_lop3(f, which, ptx_u32(0x44444444), ptx_u32(0x32103210), 0xEA);
    ptx_val four[2];
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val index = decode_shift(f, in_eight, 16 * (int)i);
        ptx_val choice = decode_shift(f, between, 16 * (int)i);
        ptx_val low = ptx_prmt(f, ptx_u32(values[0]), ptx_u32(values[1]), index);
        ptx_val high = ptx_prmt(f, ptx_u32(values[2]), ptx_u32(values[3]), index);
        four[i] = ptx_prmt(f, low, high, choice);
    }
    quads[0] = ptx_prmt(f, four[0], four[1], ptx_u32(0x6420));
    quads[1] = ptx_prmt(f, four[0], four[1], ptx_u32(0x7531));
}

static void split_iq4(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)lane, (void)unit;
    look_up(f, iq4_values, word[0], quads);
}

static void split_mxfp4(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                        ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)lane, (void)unit;
    look_up(f, e2m1_values, word[0], quads);
}

static void numbers_iq4nl(ptx_fn *f, const format_lane *lane, const format_place *place,
                          ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)lane, (void)minimum;
    scale[0] = decode_low_half(f, bytes_load_low(f, &place->order, place->block, 0));
}

/* shift, turn: right, to bits 0 and 4 of the low and high bits of the group's scale. */
static void init_iq4xs(ptx_fn *f, format_lane *lane)
{
    lane->shift = ptx_shl(f, lane->group, ptx_u32(2));
    lane->turn = ptx_mad(f, lane->group, ptx_u32(2), ptx_u32(12));
}

static void numbers_iq4xs(ptx_fn *f, const format_lane *lane, const format_place *place,
                          ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)minimum;
    ptx_val word[2];
    decode_load(f, lane, place, 1, 0, 2, word);
    ptx_val low = ptx_shr(f, word[1], lane->shift);
    ptx_val high = ptx_shr(f, word[0], lane->turn);
    ptx_val low_bits = ptx_and(f, low, ptx_u32(0xf));
    ptx_val bits = ptx_lop3(f, high, ptx_u32(0x30), low_bits, 0xEA);
    byte_factor scales = decode_factor(f, lane, decode_low_half(f, word[0]), 32);
    scale[0] = decode_product(f, lane, &scales, bits, 0);
}

/* 2^(e - 128) by its bits: of e 0 and 1 they are a denormal number's. */
static void numbers_mxfp4(ptx_fn *f, const format_lane *lane, const format_place *place,
                          ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)lane, (void)minimum;
    ptx_val word = bytes_load_low(f, &place->order, place->block, 0);
    ptx_val e = ptx_and(f, word, ptx_u32(0xff));
    ptx_val is_denormal = ptx_lt(f, e, ptx_u32(2));
    ptx_val denormal = ptx_shl(f, ptx_u32(0x00200000), e);
    ptx_val normal = ptx_mad(f, e, ptx_u32(1u << 23), ptx_u32(0u - (1u << 23)));
    scale[0] = ptx_as(f, PTX_F32, ptx_select(f, is_denormal, denormal, normal));
}

const format_decoder format_decode_iq4nl = {NULL, split_iq4, numbers_iq4nl};
const format_decoder format_decode_iq4xs = {init_iq4xs, split_iq4, numbers_iq4xs};
const format_decoder format_decode_mxfp4 = {NULL, split_mxfp4, numbers_mxfp4};
