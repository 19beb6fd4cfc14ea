/* GGUF's formats whose codes are nibbles that pick one of sixteen numbers, in Q4_0's order of elements.
 *
 *     IQ4_NL  d, f16; 16 bytes of codes
 *     IQ4_XS  d, f16; 16 bits: the high two of each 6-bit scale; 4 bytes: the low four; 8 times 16 bytes; a scale is 32 more
 *             than it is
 *     MXFP4   e, a byte; 16 bytes of codes: e2m1 numbers, here times 2, so that the scale is 2^(e - 128)
 */
#include "decoder.h"

/* As four words. */
static const uint64_t iq4_values[4] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};
static const uint64_t e2m1_values[4] = {0x0f0e0d0c, 0x18141210, 0x090a0b0c,
                                        0x00040608}; /* 12 more than they are */

/* value: the words of the table. They are loaded, for of constants ptxas makes registers again and again. */
static void init_values(ptx_fn *f, format_lane *lane, const uint64_t values[4])
{
    ptx_val table = ptx_const_table(f, PTX_U32, 4, values);
    for (uint32_t i = 0; i < 4; i++)
        lane->value[i] = ptx_load(f, ptx_at_const(f, table, i));
}

static void init_iq4(ptx_fn *f, format_lane *lane)
{
    init_values(f, lane, iq4_values);
}

static void init_mxfp4(ptx_fn *f, format_lane *lane)
{
    init_values(f, lane, e2m1_values);
}

/* Bytes of a word's nibbles 0 to 3 and 4 to 7: those of both quads in turn. */
static void sort_quads(ptx_fn *f, const ptx_val four[2], ptx_val quads[2])
{
    quads[0] = ptx_prmt(f, four[0], four[1], ptx_u32(0x6420));
    quads[1] = ptx_prmt(f, four[0], four[1], ptx_u32(0x7531));
}

/* prmt picks one of eight bytes by three bits of a nibble; another one picks by the fourth between two of these. */
static void split_iq4(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)unit;
    ptx_val in_eight = ptx_and(f, word[0], ptx_u32(0x77777777));
    ptx_val which = ptx_shr(f, word[0], ptx_u32(1));
    ptx_val between = ptx_lop3(f, which, ptx_u32(0x44444444), ptx_u32(0x32103210), 0xEA);
    ptx_val four[2];
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val index = decode_shift(f, in_eight, 16 * (int)i);
        ptx_val choice = decode_shift(f, between, 16 * (int)i);
        ptx_val low = ptx_prmt(f, lane->value[0], lane->value[1], index);
        ptx_val high = ptx_prmt(f, lane->value[2], lane->value[3], index);
        four[i] = ptx_prmt(f, low, high, choice);
    }
    sort_quads(f, four, quads);
}

/* Where the fourth bit is set prmt gives the sign of the byte eight times: 0 of all these. So the other eight, picked with that
 * bit inverted, need only be joined. */
static void split_mxfp4(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                        ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)unit;
    ptx_val inverted = ptx_xor(f, word[0], ptx_u32(0x88888888)), four[2];
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val index = decode_shift(f, word[0], 16 * (int)i);
        ptx_val other = decode_shift(f, inverted, 16 * (int)i);
        ptx_val low = ptx_prmt(f, lane->value[0], lane->value[1], index);
        ptx_val high = ptx_prmt(f, lane->value[2], lane->value[3], other);
        four[i] = ptx_or(f, low, high);
    }
    sort_quads(f, four, quads);
}

static void numbers_iq4nl(ptx_fn *f, const format_lane *lane, const format_place *place,
                          ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)lane, (void)minimum;
    scale[0] = decode_low_half(f, bytes_load_low(f, &place->order, place->block, 0));
}

/* And shift, turn: right, to bits 0 and 4 of the low and high bits of the group's scale. */
static void init_iq4xs(ptx_fn *f, format_lane *lane)
{
    init_iq4(f, lane);
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
    decode_products(f, lane, decode_low_half(f, word[0]), bits, 0, 32, true, scale);
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

const format_decoder format_decode_iq4nl = {init_iq4, split_iq4, numbers_iq4nl};
const format_decoder format_decode_iq4xs = {init_iq4xs, split_iq4, numbers_iq4xs};
const format_decoder format_decode_mxfp4 = {init_mxfp4, split_mxfp4, numbers_mxfp4};
