/* GGUF's super-blocks of 256 elements. A group g of Q4_K and Q5_K is 64 neighbouring elements: sub-blocks 2g and 2g + 1, of 32.
 * One of the others is every second sub-block of 16 of a half, four of them: h = g / 2 is the half, o = g % 2 its first one.
 * Words w of a group's codes are its units' (w = 4o + u in a half where groups are two of a run of 32 bytes).
 *
 *     Q4_K  d, dmin; 12 bytes s of scales and minima; codes: word w of 8 of a group has sub-block 2g in its low nibbles and
 *           2g + 1 in its high ones. Sub-block j < 4: scale s[j] & 63, minimum s[j + 4] & 63; j >= 4: low four bits in
 *           the nibbles of s[j + 4], the high two above those of s[j - 4] and s[j]
 *     Q5_K  the same with 8 words before the codes, whose word w has in bit j of each byte bit 4 of sub-block j's codes
 *     Q6_K  codes' low nibbles: words w and 8 + w of 16 of a half have quads 0, 2 and 1, 3; high two bits: bits 2q of word w
 *           of 8; 16 signed scales; d
 *     Q2_K  16 bytes: scale and, above, minimum; codes: bits 2q of word w of 8 of a half; d, dmin
 *     Q3_K  bit 2 of codes: bit 4h + q of word w of 8; low bits as Q2_K's; 12 bytes s: of scale i the low four bits in
 *           the nibble i / 8 of s[i % 8], the high two in bits 2 * (i / 4) of s[8 + i % 4]; 32 more than it is; d
 *     TQ2_0 codes as Q2_K's; d, the scale of all
 */
#include "decoder.h"

enum { NIBBLES = 0x0f0f0f0f, PAIRS = 0x03030303 };

/* Fields of `bits` bits, the lowest first; left where they are as far as the lane's rule says. */
static void split_word(ptx_fn *f, const format_lane *lane, ptx_val word, uint32_t mask, uint32_t bits,
                       uint32_t count, ptx_val quads[])
{
    for (uint32_t q = 0; q < count; q++) {
        uint32_t up = decode_raise(lane, q);
        ptx_val low = decode_shift(f, word, (int)(bits * q - up));
        quads[q] = ptx_and(f, low, ptx_u32(mask << up));
    }
}

/* ---- Q4_K, Q5_K --------------------------------------------------------------------------------------------------- */

/* select: the bytes of this lane's two sub-blocks in two words; shift, down to the bits of these bytes that are used, `first`;
 * `last`: those of the nibbles. */
static void init_q4k(ptx_fn *f, format_lane *lane)
{
    ptx_val odd_bit = ptx_and(f, lane->group, ptx_u32(1));
    ptx_val is_odd = ptx_ne(f, odd_bit, ptx_u32(0));
    lane->shift = ptx_and(f, lane->group, ptx_u32(2));
    ptx_val is_late = ptx_ne(f, lane->shift, ptx_u32(0));
    lane->select = ptx_select(f, is_odd, ptx_u32(0x7632), ptx_u32(0x5410));
    lane->first = ptx_select(f, is_late, ptx_u32(0x30303030), ptx_u32(0x3f3f3f3f));
    lane->last = ptx_select(f, is_late, ptx_u32(NIBBLES), ptx_u32(0));
}

/* And turn: left, from bit 2g to bit 4 of each byte. */
static void init_q5k(ptx_fn *f, format_lane *lane)
{
    init_q4k(f, lane);
    ptx_val bit = ptx_shl(f, lane->group, ptx_u32(1));
    lane->turn = ptx_sub(f, ptx_u32(4), bit);
}

static void split_q4k(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)unit;
    split_word(f, lane, word[0], NIBBLES, 4, 2, quads);
}

static void split_q5k(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    split_q4k(f, lane, unit, word, quads);
    ptx_val high = ptx_shf_l(f, word[1], word[1], lane->turn);
    for (uint32_t q = 0; q < 2; q++)
        quads[q] = ptx_lop3(f, decode_shift(f, high, (int)q), ptx_u32(0x10101010), quads[q], 0xEA);
}

static void numbers_q4k(ptx_fn *f, const format_lane *lane, const format_place *place,
                        ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    uint32_t header = lane->format->runs[1].kind == RUN_SCALES ? 1 : 2;
    ptx_val word[4], d[2];
    decode_load(f, lane, place, header, 0, 4, word);
    ptx_val low = ptx_prmt(f, word[1], word[2], lane->select);
    ptx_val high_nibbles = ptx_shr(f, word[3], ptx_u32(4));
    ptx_val last = ptx_prmt(f, word[3], high_nibbles, lane->select);
    ptx_val shifted = ptx_shr(f, low, lane->shift);
    ptx_val first = ptx_and(f, shifted, lane->first);
    ptx_val bytes = ptx_lop3(f, last, lane->last, first, 0xEA);
    decode_halves(f, word[0], d);
    decode_products(f, lane, d[0], bytes, 0, 0, true, scale);
    decode_products(f, lane, ptx_neg(f, d[1]), bytes, 2, 0, false, minimum);
}

/* ---- Q6_K, Q2_K, Q3_K --------------------------------------------------------------------------------------------- */

/* select: every second of eight bytes, from `o` on. */
static void init_sixteens(ptx_fn *f, format_lane *lane)
{
    ptx_val odd_bit = ptx_and(f, lane->group, ptx_u32(1));
    lane->select = ptx_mad(f, odd_bit, ptx_u32(0x1111), ptx_u32(0x6420));
}

/* A byte of each of the group's four sub-blocks, out of the eight of its half. */
static ptx_val load_four_scales(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t run)
{
    ptx_val words[2];
    decode_load(f, lane, place, run, 0, 2, words);
    return ptx_prmt(f, words[0], words[1], lane->select);
}

static void split_q6k(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)lane, (void)unit;
    for (uint32_t q = 0; q < 4; q++) {
        ptx_val low = ptx_and(f, decode_shift(f, word[q % 2], q < 2 ? 0 : 4), ptx_u32(NIBBLES));
        ptx_val high = decode_shift(f, word[2], 2 * (int)q - 4);
        quads[q] = ptx_lop3(f, high, ptx_u32(0x30303030), low, 0xEA);
    }
}

static void numbers_q6k(ptx_fn *f, const format_lane *lane, const format_place *place,
                        ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)minimum;
    ptx_val bytes = load_four_scales(f, lane, place, 3);
    ptx_val biased = ptx_xor(f, bytes, ptx_u32(0x80808080));
    ptx_val d = decode_low_half(f, bytes_load_low(f, &place->order, place->block, 208));
    decode_products(f, lane, d, biased, 0, 128, true, scale);
}

static void split_q2k(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)unit;
    split_word(f, lane, word[0], PAIRS, 2, 4, quads);
}

static void numbers_q2k(ptx_fn *f, const format_lane *lane, const format_place *place,
                        ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    ptx_val bytes = load_four_scales(f, lane, place, 1), d[2];
    ptx_val low = ptx_and(f, bytes, ptx_u32(NIBBLES));
    ptx_val high = ptx_and(f, ptx_shr(f, bytes, ptx_u32(4)), ptx_u32(NIBBLES));
    decode_halves(f, bytes_load_low(f, &place->order, place->block, 80), d);
    decode_products(f, lane, d[0], low, 0, 0, true, scale);
    decode_products(f, lane, ptx_neg(f, d[1]), high, 0, 0, false, minimum);
}

static void numbers_tq2(ptx_fn *f, const format_lane *lane, const format_place *place,
                        ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)minimum;
    ptx_val d = decode_low_half(f, bytes_load_low(f, &place->order, place->block, 64));
    for (uint32_t part = 0; part < lane->format->parts; part++)
        scale[part] = d;
}

/* shift: 4h. turn: left, from bit 4h to bit 2 of each byte. first: left, from bit 4h to bit 4. */
static void init_q3k(ptx_fn *f, format_lane *lane)
{
    init_sixteens(f, lane);
    ptx_val half = ptx_shr(f, lane->group, ptx_u32(1));
    lane->shift = ptx_shl(f, half, ptx_u32(2));
    lane->turn = ptx_sub(f, ptx_u32(2), lane->shift);
    lane->first = ptx_sub(f, ptx_u32(4), lane->shift);
}

static void split_q3k(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                      ptx_val quads[FORMAT_MOST_QUADS])
{
    split_q2k(f, lane, unit, word, quads);
    ptx_val high = ptx_shf_l(f, word[1], word[1], lane->turn);
    for (uint32_t q = 0; q < 4; q++)
        quads[q] = ptx_lop3(f, decode_shift(f, high, (int)q), ptx_u32(0x04040404), quads[q], 0xEA);
}

/* Sub-blocks o, o + 2 of a half have their high bits in bytes o and o + 2 of the last word, o + 4 and o + 6 two bits above. */
static void numbers_q3k(ptx_fn *f, const format_lane *lane, const format_place *place,
                        ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    (void)minimum;
    ptx_val word[3];
    decode_load(f, lane, place, 2, 0, 3, word);
    ptx_val low = ptx_prmt(f, word[0], word[1], lane->select);
    ptx_val high = ptx_prmt(f, word[2], ptx_shr(f, word[2], ptx_u32(2)), lane->select);
    ptx_val low_bits = ptx_and(f, ptx_shr(f, low, lane->shift), ptx_u32(NIBBLES));
    ptx_val turned = ptx_shf_l(f, high, high, lane->first);
    ptx_val bytes = ptx_lop3(f, turned, ptx_u32(0x30303030), low_bits, 0xEA);
    ptx_val d = decode_low_half(f, bytes_load_low(f, &place->order, place->block, 108));
    decode_products(f, lane, d, bytes, 0, 32, true, scale);
}

const format_decoder format_decode_q2k = {init_sixteens, split_q2k, numbers_q2k};
const format_decoder format_decode_q3k = {init_q3k, split_q3k, numbers_q3k};
const format_decoder format_decode_q4k = {init_q4k, split_q4k, numbers_q4k};
const format_decoder format_decode_q5k = {init_q5k, split_q5k, numbers_q4k};
const format_decoder format_decode_q6k = {init_sixteens, split_q6k, numbers_q6k};
const format_decoder format_decode_tq2 = {NULL, split_q2k, numbers_tq2};
