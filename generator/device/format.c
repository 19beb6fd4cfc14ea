/* GGUF's weight formats: a lane's codes, its scales and minima, the table of formats, and the addresses of a lane's words. */
#include "format.h"
#include "narrow.h"
#include "nf4_pairs.h"
#include "shared.h"

#include <string.h>

enum {
    DECODE_RAISED = 0x4B000000, /* 2^23: a byte in its low bits adds its value */
    RAISED_EIGHT = 0x47000000,
    NIBBLES = 0x0f0f0f0f,
    OR_MASKED = 0xEA /* lop3: (a & b) | c */
};

/* The words of a unit, one from each run. */
typedef struct format_unit {
    uint32_t number; /* its number in the group */
    ptx_val word[FORMAT_RUNS];
} format_unit;

enum { SCALE, MINIMUM }; /* results of format_decoder.numbers, per part */

struct format_decoder {
    const uint64_t *values; /* sixteen bytes in four words, for lane->value; null: unused */
    /* Sets select, shift, rotation, first, last for the functions below; null: unused. */
    void (*init)(ptx_fn *f, format_lane *lane);
    void (*split)(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[]);
    void (*numbers)(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2]);
};

/* word >> shift, or a left shift if it is negative. */
static ptx_val decode_shift(ptx_fn *f, ptx_val word, int shift)
{
    if (shift == 0)
        return word;
    return shift > 0 ? ptx_shr(f, word, (uint32_t)shift) : ptx_shl(f, word, (uint32_t)-shift);
}

/* The left shift of quad q's codes; with FORMAT_SCALED_SHIFT its scale is divided by the same power. */
static uint32_t left_shift(const format_lane *lane, uint32_t q)
{
    return lane->rule == FORMAT_SCALED_SHIFT  ? lane->format->scaled_shift * q
           : lane->rule == FORMAT_PLAIN_SHIFT ? lane->format->plain_shift * q
                                              : 0;
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* A block of 32 elements has the codes' low bits in 16 bytes (Q8_0: 32 signed bytes): element i in the low nibble of byte i,
 * element 16 + i in the high one. Q5_0 and Q5_1 have a word before them, whose bit i is bit 4 of element i.
 *
 * A group g of a super-block of 256 elements is 64 neighbouring elements in Q4_K and Q5_K, sub-blocks 2g and 2g + 1 of 32, and 32
 * in IQ4_XS, as in a block of 32. In the other formats it is four sub-blocks of 16: every second one of half h = g / 2,
 * from sub-block o = g % 2 on. Word w of a group's codes is that of unit w; if two groups share a run of 32 bytes in a half,
 * unit u has word 4o + u.
 *
 *     Q4_K  word w of 8 of a group has sub-block 2g in its low nibbles and 2g + 1 in its high ones
 *     Q5_K  the same after 8 words: bit j of each byte of the w-th of these is bit 4 of a code of sub-block j
 *     Q6_K  low nibbles: words w and 8 + w of 16 of a half have quads 0, 2 and 1, 3; high two bits: bits 2q of word w of 8
 *     Q2_K  bits 2q of word w of 8 of a half; TQ2_0 too
 *     Q3_K  the same, and bit 2 of codes: bit 4h + q of word w of 8
 */

/* Each byte of a word has a field per quad, quad 0's lowest. Quads are left-shifted as the lane's rule says: left_shift. */
static void split_fields(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    const uint32_t bits = 8u / lane->format->quads, mask = bits == 4 ? NIBBLES : 0x03030303;
    for (uint32_t q = 0; q < lane->format->quads; q++) {
        uint32_t up = left_shift(lane, q);
        ptx_val low = decode_shift(f, u->word[0], (int)(bits * q - up));
        quads[q] = ptx_and(f, low, mask << up);
    }
}

/* The quads' high bits are neighbours in each byte of the second word. rotation: the left rotation that moves quad 0's high bit
 * above its field. */
static void split_rotated(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    const uint32_t high_bits = 0x01010101u << 8 / lane->format->quads;
    split_fields(f, lane, u, quads);
    ptx_val high = ptx_shf_l(f, u->word[1], u->word[1], lane->rotation);
    for (uint32_t q = 0; q < lane->format->quads; q++)
        quads[q] = ptx_lop3(f, decode_shift(f, high, (int)q), high_bits, quads[q], OR_MASKED);
}

/* shift: 4 * the lane's unit. */
static void init_fives(ptx_fn *f, format_lane *lane)
{
    if (lane->unit.type != PTX_NONE)
        lane->shift = ptx_shl(f, lane->unit, 2);
}

/* One multiply moves bit i of four neighbouring bits to bit 4 + 8i; the cross terms do not collide. */
static void split_fives(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    ptx_val high = u->word[1];
    if (lane->unit.type != PTX_NONE)
        high = ptx_shr(f, high, lane->shift);
    split_fields(f, lane, u, quads);
    for (uint32_t q = 0; q < 2; q++) {
        uint32_t bit = 4 * u->number + 16 * q, at = bit % 8;
        ptx_val near = decode_shift(f, high, (int)(bit - at));
        ptx_val four = ptx_and(f, near, 0xfu << at);
        ptx_val fifth = ptx_mul(f, four, 0x02040810u >> at);
        quads[q] = ptx_lop3(f, fifth, 0x10101010, quads[q], OR_MASKED);
    }
}

static void split_bytes(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    (void)f, (void)lane;
    quads[0] = u->word[0];
}

static void split_q6k(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    (void)lane;
    for (uint32_t q = 0; q < 4; q++) {
        ptx_val low = ptx_and(f, decode_shift(f, u->word[q % 2], q < 2 ? 0 : 4), NIBBLES);
        ptx_val high = decode_shift(f, u->word[2], 2 * (int)q - 4);
        quads[q] = ptx_lop3(f, high, 0x30303030, low, OR_MASKED);
    }
}

/* Interleaves the bytes of two words: pairs[0] has the lower two of each, pairs[1] the upper two. */
static void join_bytes(ptx_fn *f, ptx_val first, ptx_val second, ptx_val pairs[2])
{
    pairs[0] = ptx_prmt(f, first, second, 0x5140);
    pairs[1] = ptx_prmt(f, first, second, 0x7362);
}

/* int4: a byte holds two neighbouring codes, so 16 bytes hold 32 elements: four units of eight. */
static void split_pairs(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    ptx_val low = ptx_and(f, u->word[0], NIBBLES), high = ptx_and(f, ptx_shr(f, u->word[0], 4), NIBBLES);
    if (lane->format->is_high_first)
        join_bytes(f, high, low, quads);
    else
        join_bytes(f, low, high, quads);
}

/* ---- codes that are indices --------------------------------------------------------------------------------------- */

/* The nibbles of IQ4_NL, IQ4_XS and MXFP4 index sixteen integers, in Q4_0's order of elements; nf4's index sixteen floats. */
static const uint64_t iq4_values[4] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};
static const uint64_t e2m1_values[4] = {0x0f0e0d0c, 0x18141210, 0x090a0b0c,
                                        0x00040608}; /* twice e2m1, plus the offset 12 */

/* Loads the words of a table: ptxas would move constants into registers at each use. */
static void load_values(ptx_fn *f, const uint64_t words[4], ptx_val value[4])
{
    ptx_val table = ptx_const_table(f, PTX_U32, 4, words);
    for (uint32_t i = 0; i < 4; i++)
        value[i] = ptx_load(f, ptx_at_const(f, table, i));
}

/* Looks up one byte of the values of four codes: a code's low three bits select a byte from each half of the table, and its
 * fourth bit selects the half. */
static ptx_val pick_bytes(ptx_fn *f, const ptx_val value[4], ptx_val in_eight, ptx_val between)
{
    ptx_val low = ptx_prmt(f, value[0], value[1], in_eight);
    ptx_val high = ptx_prmt(f, value[2], value[3], in_eight);
    return ptx_prmt(f, low, high, between);
}

/* Splits the values of a word's nibbles into two quads, even nibbles and odd ones. four[0] has nibbles 0 to 3, four[1] 4 to 7. */
static void sort_quads(ptx_fn *f, const ptx_val four[2], ptx_val quads[2])
{
    quads[0] = ptx_prmt(f, four[0], four[1], 0x6420);
    quads[1] = ptx_prmt(f, four[0], four[1], 0x7531);
}

static void split_iq4(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    ptx_val in_eight = ptx_and(f, u->word[0], 0x77777777), which = ptx_shr(f, u->word[0], 1), four[2];
    ptx_val between = ptx_lop3(f, which, 0x44444444, 0x32103210, OR_MASKED);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val index = decode_shift(f, in_eight, 16 * (int)i);
        ptx_val choice = decode_shift(f, between, 16 * (int)i);
        four[i] = pick_bytes(f, lane->value, index, choice);
    }
    sort_quads(f, four, quads);
}

/* With the fourth bit set prmt replicates the byte's sign: 0 for these bytes. So the other eight, picked with that bit
 * inverted, only need to be combined. */
static void split_mxfp4(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    ptx_val inverted = ptx_xor(f, u->word[0], 0x88888888), four[2];
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val index = decode_shift(f, u->word[0], 16 * (int)i);
        ptx_val other = decode_shift(f, inverted, 16 * (int)i);
        ptx_val low = ptx_prmt(f, lane->value[0], lane->value[1], index);
        ptx_val high = ptx_prmt(f, lane->value[2], lane->value[3], other);
        four[i] = ptx_or(f, low, high);
    }
    sort_quads(f, four, quads);
}

/* nf4: codes stay packed, the first of each pair in the low nibble. A quad's four codes are its lower 16 bits. */
static void split_values(ptx_fn *f, const format_lane *lane, const format_unit *u, ptx_val quads[])
{
    quads[0] = u->word[0];
    if (lane->format->is_high_first) {
        ptx_val down = ptx_and(f, ptx_shr(f, u->word[0], 4), NIBBLES), up = ptx_shl(f, u->word[0], 4);
        quads[0] = ptx_lop3(f, up, (uint32_t)NIBBLES << 4, down, OR_MASKED);
    }
    quads[1] = ptx_shr(f, quads[0], 16);
}

bool format_has_values(const weight_format *w)
{
    return w->decoder->split == split_values;
}

/* Loads nf4's table: four words for each byte of the type. */
void format_lane_values(ptx_fn *f, format_lane *lane, ptx_type type)
{
    const uint32_t bytes = type == PTX_F32 ? 4 : 2;
    for (uint32_t byte = 0; format_has_values(lane->format) && byte < bytes; byte++) {
        uint64_t words[4] = {0};
        for (uint32_t i = 0; i < 16; i++)
            words[i / 4] |= (ptx_number(type, nf4_values[i]).bits >> 8 * byte & 0xff) << i % 4 * 8;
        load_values(f, words, &lane->value[4 * byte]);
    }
}

/* Looks up the values of a quad's codes, two pairs of 16 bits. For F32, first come the pairs of the values' lower halves,
 * then those of the upper ones. */
static void pick_pairs(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val pairs[])
{
    ptx_val in_eight = ptx_and(f, quad, 0x7777), which = ptx_shr(f, quad, 1);
    ptx_val between = ptx_lop3(f, which, 0x4444, 0x3210, OR_MASKED);
    for (uint32_t half = 0; half < (type == PTX_F32 ? 2U : 1U); half++) {
        const ptx_val *value = &lane->value[8 * half];
        ptx_val low = pick_bytes(f, value, in_eight, between);
        ptx_val high = pick_bytes(f, value + 4, in_eight, between);
        join_bytes(f, low, high, &pairs[2 * half]);
    }
}

static void value_floats(ptx_fn *f, const format_lane *lane, ptx_val quad, ptx_val x[4])
{
    ptx_val pairs[4];
    pick_pairs(f, lane, PTX_F32, quad, pairs);
    for (uint32_t i = 0; i < 4; i++)
        x[i] = ptx_as(f, PTX_F32, ptx_prmt(f, pairs[i / 2], pairs[2 + i / 2], i % 2 ? 0x7632 : 0x5410));
}

/* ---- scales and minima -------------------------------------------------------------------------------------------- */

/* d, F16, and the minima's factor after it, at d_byte, are the scale and the minimum, or multiply small integers:
 *
 *     Q4_K    sub-block j < 4: scale s[j] & 63, minimum s[j + 4] & 63; j >= 4: low four bits in the nibbles of s[j + 4], the
 *     Q5_K    high two above those of s[j - 4] and s[j]; s are the 12 bytes after d and dmin
 *     Q6_K    16 signed scales
 *     Q2_K    16 bytes: scale and, above, minimum
 *     Q3_K    12 bytes s: of scale i the low four bits in the nibble i / 8 of s[i % 8], the high two in bits 2 * (i / 4) of
 *             s[8 + i % 4]; stored as scale + 32
 *     IQ4_XS  16 bits after d: the high two of each 6-bit scale; then 4 bytes: the low four; stored as scale + 32
 *
 * NUMBERS FROM BYTES need no conversion: 2^23 + byte is a float whose low bits are the byte, so one prmt puts the byte under
 * 0x4B000000, and one subtraction removes 2^23 and the offset. Multiplying by a factor takes one fma instead, if the factor
 * times the subtrahend is exact: with the byte under 0x47, shifted by eight bits, the subtrahend is 2^15 + bias, at most 9
 * bits times the factor's 11. But then 0 * factor is +0, and an infinite factor is lost: infinity - infinity. */

/* factor * (byte - bias) * 2^-down, exact in F32, for each part's byte, from byte `first` of the word on. `down` is the
 * left shift of the part's quads if `is_scale`, otherwise 0. */
static void decode_products(ptx_fn *f, const format_lane *lane, ptx_val factor, ptx_val bytes, uint32_t first,
                            uint32_t bias, bool is_scale, ptx_val products[])
{
    ptx_val scaled = factor, minus_raised = {0};
    for (uint32_t part = 0; part < lane->format->parts; part++) {
        uint32_t i = first + part,
                 down = is_scale && lane->rule == FORMAT_SCALED_SHIFT ? left_shift(lane, part) : 0;
        if (lane->rule == FORMAT_EXACT) {
            ptx_val raised = ptx_prmt(f, bytes, DECODE_RAISED, 0x7440 + i);
            ptx_val number = ptx_sub(f, ptx_as(f, PTX_F32, raised), 0x1p23f + (float)bias);
            products[part] = ptx_mul(f, number, factor);
            continue;
        }
        if (down > 0)
            scaled = ptx_mul(f, factor, 1.0f / (float)(1u << down));
        if (part == 0 || down > 0)
            minus_raised = ptx_mul(f, scaled, -(0x1p15f + (float)bias));
        ptx_val raised = ptx_prmt(f, bytes, RAISED_EIGHT, 0x7404 + (i << 4));
        products[part] = ptx_fma(f, ptx_as(f, PTX_F32, raised), scaled, minus_raised);
    }
}

/* Widens a word's d and, if the format has minima, their factor to F32. */
static void widen_d(ptx_fn *f, const format_lane *lane, ptx_val word, ptx_val d[2])
{
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, word);
    for (uint32_t i = 0; i < 1u + lane->format->has_minimum; i++)
        d[i] = ptx_cvt(f, PTX_F32, halves[i]);
}

static void load_d(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val d[2])
{
    widen_d(f, lane, bytes_load_low(f, &place->order, place->block, lane->format->d_byte), d);
}

static void numbers_d(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val d[2];
    load_d(f, lane, place, d);
    for (uint32_t part = 0; part < lane->format->parts; part++) {
        to[SCALE][part] = d[0];
        if (lane->format->has_minimum)
            to[MINIMUM][part] = d[1];
    }
}

/* Loads `count` words of run `run`, from its byte `byte` on. */
static void load_run(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t run,
                     uint32_t byte, uint32_t count, ptx_val words[])
{
    bytes_load(f, &place->order, place->run[run], lane->alignment[run], lane->format->runs[run].byte + byte,
               count, words);
}

static void load_scales(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t count,
                        ptx_val words[])
{
    uint32_t run = 0;
    while (lane->format->runs[run].kind != RUN_SCALES)
        run++;
    load_run(f, lane, place, run, 0, count, words);
}

/* select: a prmt selector of the bytes of this lane's two sub-blocks in two words. shift: the right shift to the used bits
 * of these bytes. first, last: masks of the used bits and of the nibbles. */
static void init_q4k(ptx_fn *f, format_lane *lane)
{
    ptx_val odd_bit = ptx_and(f, lane->group, 1);
    ptx_val is_odd = ptx_ne(f, odd_bit, 0);
    lane->shift = ptx_and(f, lane->group, 2);
    ptx_val is_late = ptx_ne(f, lane->shift, 0);
    lane->select = ptx_select(f, is_odd, ptx_u32(0x7632), 0x5410);
    lane->first = ptx_select(f, is_late, ptx_u32(0x30303030), 0x3f3f3f3f);
    lane->last = ptx_select(f, is_late, ptx_u32(NIBBLES), 0);
}

/* Also sets rotation: the left rotation that moves bit 2g of each byte to bit 4. */
static void init_q5k(ptx_fn *f, format_lane *lane)
{
    init_q4k(f, lane);
    ptx_val bit = ptx_shl(f, lane->group, 1);
    lane->rotation = ptx_sub(f, 4, bit);
}

static void numbers_q4k(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val word[4], d[2];
    load_scales(f, lane, place, 4, word);
    ptx_val low = ptx_prmt(f, word[1], word[2], lane->select);
    ptx_val last = ptx_prmt(f, word[3], ptx_shr(f, word[3], 4), lane->select);
    ptx_val first = ptx_and(f, ptx_shr(f, low, lane->shift), lane->first);
    ptx_val bytes = ptx_lop3(f, last, lane->last, first, OR_MASKED);
    widen_d(f, lane, word[0], d);
    decode_products(f, lane, d[0], bytes, 0, 0, true, to[SCALE]);
    decode_products(f, lane, ptx_neg(f, d[1]), bytes, 2, 0, false, to[MINIMUM]);
}

/* select: the prmt selector of the bytes of the group's four sub-blocks: every second of eight, from byte o on. */
static void init_sixteens(ptx_fn *f, format_lane *lane)
{
    lane->select = ptx_mad(f, ptx_and(f, lane->group, 1), 0x1111, 0x6420);
}

static void numbers_q6k(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val word[2], d[2];
    load_scales(f, lane, place, 2, word);
    ptx_val bytes = ptx_prmt(f, word[0], word[1], lane->select);
    ptx_val biased = ptx_xor(f, bytes, 0x80808080);
    load_d(f, lane, place, d);
    decode_products(f, lane, d[0], biased, 0, 128, true, to[SCALE]);
}

static void numbers_q2k(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val word[2], d[2];
    load_scales(f, lane, place, 2, word);
    ptx_val bytes = ptx_prmt(f, word[0], word[1], lane->select);
    ptx_val low = ptx_and(f, bytes, NIBBLES);
    ptx_val high = ptx_and(f, ptx_shr(f, bytes, 4), NIBBLES);
    load_d(f, lane, place, d);
    decode_products(f, lane, d[0], low, 0, 0, true, to[SCALE]);
    decode_products(f, lane, ptx_neg(f, d[1]), high, 0, 0, false, to[MINIMUM]);
}

/* shift: 4h. rotation, first: the left rotations that move bit 4h of each byte to bit 2, and to bit 4. */
static void init_q3k(ptx_fn *f, format_lane *lane)
{
    init_sixteens(f, lane);
    lane->shift = ptx_shl(f, ptx_shr(f, lane->group, 1), 2);
    lane->rotation = ptx_sub(f, 2, lane->shift);
    lane->first = ptx_sub(f, 4, lane->shift);
}

/* High bits of sub-blocks o and o + 2 of a half: bytes o and o + 2 of the last word; of o + 4 and o + 6: two bits higher. */
static void numbers_q3k(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val word[3], d[2];
    load_scales(f, lane, place, 3, word);
    ptx_val low = ptx_prmt(f, word[0], word[1], lane->select);
    ptx_val high = ptx_prmt(f, word[2], ptx_shr(f, word[2], 2), lane->select);
    ptx_val low_bits = ptx_and(f, ptx_shr(f, low, lane->shift), NIBBLES);
    ptx_val turned = ptx_shf_l(f, high, high, lane->first);
    ptx_val bytes = ptx_lop3(f, turned, 0x30303030, low_bits, OR_MASKED);
    load_d(f, lane, place, d);
    decode_products(f, lane, d[0], bytes, 0, 32, true, to[SCALE]);
}

/* shift, rotation: right shifts that move the low bits of the group's scale to bit 0, and its high bits to bit 4. */
static void init_iq4xs(ptx_fn *f, format_lane *lane)
{
    lane->shift = ptx_shl(f, lane->group, 2);
    lane->rotation = ptx_mad(f, lane->group, 2, 12);
}

static void numbers_iq4xs(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    ptx_val word[2], d[2];
    load_scales(f, lane, place, 2, word);
    ptx_val low = ptx_shr(f, word[1], lane->shift);
    ptx_val high = ptx_shr(f, word[0], lane->rotation);
    ptx_val low_bits = ptx_and(f, low, 0xf);
    ptx_val bits = ptx_lop3(f, high, 0x30, low_bits, OR_MASKED);
    widen_d(f, lane, word[0], d);
    decode_products(f, lane, d[0], bits, 0, 32, true, to[SCALE]);
}

/* Builds 2^(e - 128) from e, the first byte, since the values are twice e2m1's. It is subnormal if e is 0 or 1. */
static void numbers_mxfp4(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val *const to[2])
{
    (void)lane;
    ptx_val word = bytes_load_low(f, &place->order, place->block, 0);
    ptx_val e = ptx_and(f, word, 0xff);
    ptx_val is_denormal = ptx_lt(f, e, 2);
    ptx_val denormal = ptx_shl(f, ptx_u32(0x00200000), e);
    ptx_val normal = ptx_mad(f, e, 1u << 23, 0u - (1u << 23));
    to[SCALE][0] = ptx_as(f, PTX_F32, ptx_select(f, is_denormal, denormal, normal));
}

/* An infinity becomes a NaN, as in other formats. */
static ptx_val finite_or_nan(ptx_fn *f, ptx_val number)
{
    return ptx_fma(f, number, 0, number);
}

/* scale * (code - zero) is scale * code + minimum. An infinite scale makes the minimum a NaN too. */
static void numbers_of_arrays(ptx_fn *f, const format_lane *lane, const format_place *place,
                              ptx_val *const to[2])
{
    if (!lane->format->has_minimum) {
        to[SCALE][0] = finite_or_nan(f, ptx_load(f, place->block));
        return;
    }
    ptx_val numbers[2];
    ptx_load_vec(f, 2, numbers, place->block, PTX_PLAIN);
    to[SCALE][0] = numbers[0];
    to[MINIMUM][0] = finite_or_nan(f, ptx_mul(f, ptx_neg(f, numbers[1]), numbers[0]));
}

/* ---- the tables --------------------------------------------------------------------------------------------------- */

static const format_decoder decode_plain = {NULL, NULL, split_fields, numbers_d};
static const format_decoder decode_fives = {NULL, init_fives, split_fives, numbers_d};
static const format_decoder decode_bytes = {NULL, NULL, split_bytes, numbers_d};
static const format_decoder decode_q2k = {NULL, init_sixteens, split_fields, numbers_q2k};
static const format_decoder decode_q3k = {NULL, init_q3k, split_rotated, numbers_q3k};
static const format_decoder decode_q4k = {NULL, init_q4k, split_fields, numbers_q4k};
static const format_decoder decode_q5k = {NULL, init_q5k, split_rotated, numbers_q4k};
static const format_decoder decode_q6k = {NULL, init_sixteens, split_q6k, numbers_q6k};
static const format_decoder decode_iq4nl = {iq4_values, NULL, split_iq4, numbers_d};
static const format_decoder decode_iq4xs = {iq4_values, init_iq4xs, split_iq4, numbers_iq4xs};
static const format_decoder decode_mxfp4 = {e2m1_values, NULL, split_mxfp4, numbers_mxfp4};
static const format_decoder decode_int4 = {NULL, NULL, split_pairs, numbers_of_arrays};
static const format_decoder decode_nf4 = {NULL, NULL, split_values, numbers_of_arrays};

/* clang-format off */
#define UNITS(...)  {RUN_UNITS, .byte = __VA_ARGS__}
#define GROUP(...)  {RUN_GROUP, .byte = __VA_ARGS__}
#define SCALES(...) {RUN_SCALES, .byte = __VA_ARGS__}

#define ELEMENTS(name, number, elements, bytes) name##_elements = elements,
#define BYTES(name, number, elements, bytes)    name##_bytes = bytes * elements / 256,
enum { GGUF_FORMATS(ELEMENTS, ELEMENTS) GGUF_FORMATS(BYTES, BYTES) };
#define GGUF(name, numbers, d, groups, parts, quads, step, offset, scaled, plain, is_signed, has_minimum, decoder, ...)          \
    {#name, name##_elements, name##_bytes, numbers, groups, name##_elements / (4 * quads * groups), parts, quads, step, 4,      \
     offset, scaled, plain, is_signed, has_minimum, false, d, 0, decoder, {__VA_ARGS__}}

static const weight_format table[] = {
    /*   name    numbers          d   groups parts quads step offset shifts    signed minimum decoder, runs */
    GGUF(q4_0,   NUMBERS_F16,     0,    1,    1,    2,    16,  8,     0,    4,   false, false, &decode_plain, UNITS(2)),
    GGUF(q4_1,   NUMBERS_F16,     0,    1,    1,    2,    16,  0,     0,    4,   false, true,  &decode_plain, UNITS(4)),
    GGUF(q5_0,   NUMBERS_F16,     0,    1,    1,    2,    16,  16,    0,    0,   false, false, &decode_fives, UNITS(6), GROUP(2)),
    GGUF(q5_1,   NUMBERS_F16,     0,    1,    1,    2,    16,  0,     0,    0,   false, true,  &decode_fives, UNITS(8), GROUP(4)),
    GGUF(q8_0,   NUMBERS_F16,     0,    1,    1,    1,    0,   0,     0,    0,   true,  false, &decode_bytes, UNITS(2)),
    GGUF(q2_k,   NUMBERS_PRODUCT, 80,   4,    4,    4,    32,  0,     2,    2,   false, true,  &decode_q2k,
         UNITS(16, .group = 16), SCALES(0, .half = 8)),
    GGUF(q3_k,   NUMBERS_PRODUCT, 108,  4,    4,    4,    32,  4,     0,    0,   false, false, &decode_q3k,
         UNITS(32, .group = 16), UNITS(0, .odd = 16), SCALES(96)),
    GGUF(q4_k,   NUMBERS_PRODUCT, 0,    4,    2,    2,    32,  0,     4,    4,   false, true,  &decode_q4k,
         UNITS(16, .group = 32), SCALES(0)),
    GGUF(q5_k,   NUMBERS_PRODUCT, 0,    4,    2,    2,    32,  0,     0,    0,   false, true,  &decode_q5k,
         UNITS(48, .group = 32), UNITS(16), SCALES(0)),
    GGUF(q6_k,   NUMBERS_PRODUCT, 208,  4,    4,    4,    32,  32,    0,    0,   false, false, &decode_q6k,
         UNITS(0, .half = 64, .odd = 16), UNITS(32, .half = 64, .odd = 16), UNITS(128, .group = 16), SCALES(192, .half = 8)),
    GGUF(iq4_nl, NUMBERS_F16,     0,    1,    1,    2,    16,  0,     0,    0,   true,  false, &decode_iq4nl, UNITS(2)),
    GGUF(iq4_xs, NUMBERS_PRODUCT, 0,    8,    1,    2,    16,  0,     0,    0,   true,  false, &decode_iq4xs,
         UNITS(8, .group = 16), SCALES(0)),
    GGUF(mxfp4,  NUMBERS_E8M0,    0,    1,    1,    2,    16,  12,    0,    0,   false, false, &decode_mxfp4, UNITS(1)),
    GGUF(tq2_0,  NUMBERS_F16,     64,   4,    4,    4,    32,  1,     0,    0,   false, false, &decode_plain,
         UNITS(0, .group = 16)),
};

/* Blocks of 32 elements whose numbers are in arrays. Tables are indexed by is_high_first, then by the elements per scale. */
#define ARRAYS(name, offset, has_zeros, decoder, group, is_high_first) \
    {name, 32, 16, NUMBERS_F32, 1, 4, 1, 2, 4, 8, offset, 0, 0, false, has_zeros, is_high_first, 0, group, decoder, {UNITS(0)}}
#define ARRAYS_OF(is_high_first, ...)                                                     \
    {ARRAYS(__VA_ARGS__, 32, is_high_first), ARRAYS(__VA_ARGS__, 64, is_high_first),      \
     ARRAYS(__VA_ARGS__, 128, is_high_first), ARRAYS(__VA_ARGS__, 256, is_high_first)}
#define ORDERS(...) {ARRAYS_OF(false, __VA_ARGS__), ARRAYS_OF(true, __VA_ARGS__)}

static const weight_format int4_table[2][2][4] = {ORDERS("int4", 8, false, &decode_int4), ORDERS("int4", 0, true, &decode_int4)};
static const weight_format nf4_table[2][4] = ORDERS("nf4", 0, false, &decode_nf4);
/* clang-format on */

static const weight_format *of_group(const weight_format *of, uint32_t group)
{
    while (of->scale_elements != group)
        of++;
    return of;
}

const weight_format *format_int4(bool has_zeros, bool is_high_first, uint32_t group)
{
    return of_group(int4_table[has_zeros][is_high_first], group);
}

const weight_format *format_nf4(bool is_high_first, uint32_t group)
{
    return of_group(nf4_table[is_high_first], group);
}

const weight_format *format_at(uint32_t i)
{
    return i < sizeof table / sizeof table[0] ? &table[i] : NULL;
}

const weight_format *format_named(const char *name)
{
    const weight_format *w = table;
    while (strcmp(w->name, name) != 0)
        w++;
    return w;
}

/* Groups of 4 parts are the even and the odd sixteens of each half of a super-block. */
ptx_val format_group_element(ptx_fn *f, const weight_format *w, ptx_val group)
{
    if (w->groups == 1)
        return ptx_u32(0);
    if (w->parts < 4)
        return ptx_mul(f, group, format_group_elements(w));
    ptx_val half = ptx_shr(f, group, 1);
    ptx_val odd = ptx_and(f, group, 1);
    return ptx_mad(f, odd, 16, ptx_shl(f, half, 7));
}

uint32_t format_row_element(const weight_format *w, uint32_t group)
{
    return w->parts < 4 ? group * format_group_elements(w) : group / 2 * 128 + group % 2 * 16;
}

/* ---- the lane ----------------------------------------------------------------------------------------------------- */

/* Alignment of a lane's words. `unit_bytes` is the distance of possible first units, or 0 if there is only one. */
static uint32_t run_alignment(const weight_format *w, const format_run *r, uint32_t unit_bytes)
{
    const uint32_t steps[] = {r->group, r->half, r->odd, unit_bytes};
    uint32_t alignment = format_alignment(w);
    for (uint32_t i = 0; i < 4; i++)
        while (steps[i] % alignment != 0)
            alignment /= 2;
    return alignment;
}

static void add_term(ptx_fn *f, ptx_val *offset, ptx_val count, uint32_t step)
{
    *offset = offset->type == PTX_NONE ? ptx_mul(f, count, step) : ptx_mad(f, count, step, *offset);
}

static bool same_steps(const format_run *a, const format_run *b)
{
    return a->kind == b->kind && a->group == b->group && a->half == b->half && a->odd == b->odd;
}

static void find_offset(ptx_fn *f, format_lane *lane, uint32_t run, uint32_t units)
{
    const format_run *r = &lane->format->runs[run];
    const bool has_unit = lane->unit.type != PTX_NONE && r->kind == RUN_UNITS;
    ptx_val *offset = &lane->offset[run];
    lane->alignment[run] = run_alignment(lane->format, r, has_unit ? 4 * units : 0);
    if (run > 0 && same_steps(r, r - 1)) {
        *offset = lane->offset[run - 1];
        return;
    }
    if (r->group > 0)
        add_term(f, offset, lane->group, r->group);
    if (r->half > 0)
        add_term(f, offset, ptx_shr(f, lane->group, 1), r->half);
    if (r->odd > 0)
        add_term(f, offset, ptx_and(f, lane->group, 1), r->odd);
    if (has_unit)
        add_term(f, offset, lane->unit, 4);
}

format_lane format_lane_init(ptx_fn *f, const weight_format *w, ptx_val group, ptx_val unit, uint32_t units,
                             format_rule rule)
{
    format_lane lane = {.format = w, .rule = rule, .group = group, .unit = unit};
    for (uint32_t run = 0; run < FORMAT_RUNS && w->runs[run].kind != RUN_NONE; run++)
        find_offset(f, &lane, run, units);
    if (w->decoder->values != NULL)
        load_values(f, w->decoder->values, lane.value);
    if (w->decoder->init != NULL)
        w->decoder->init(f, &lane);
    return lane;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

static ptx_val further(ptx_fn *f, ptx_val pointer, ptx_val bytes)
{
    ptx_val moved = ptx_at(f, ptx_cast_ptr(f, pointer, PTX_U8), bytes);
    return ptx_cast_ptr(f, moved, PTX_U32);
}

static void find_runs(ptx_fn *f, const format_lane *lane, format_place *p)
{
    for (uint32_t i = 0; i < FORMAT_RUNS && lane->format->runs[i].kind != RUN_NONE; i++) {
        bool is_like_last = i > 0 && same_steps(&lane->format->runs[i], &lane->format->runs[i - 1]);
        if (is_like_last)
            p->run[i] = p->run[i - 1];
        else if (lane->offset[i].type == PTX_NONE)
            p->run[i] = p->block;
        else
            p->run[i] = further(f, p->block, lane->offset[i]);
    }
}

format_place format_find(ptx_fn *f, const format_lane *lane, ptx_val block)
{
    uint32_t alignment = format_alignment(lane->format);
    /* The phase of the words: runs at multiples of 4 have phase 0, all others the first run's phase. */
    format_place p = {.order = bytes_order(f, block, alignment, lane->format->runs[0].byte % 4)};
    p.block = bytes_round(f, block, alignment);
    find_runs(f, lane, &p);
    return p;
}

format_place format_move(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val bytes)
{
    format_place p = {.order = place->order, .block = further(f, place->block, bytes)};
    find_runs(f, lane, &p);
    return p;
}

/* Blocks with equal addresses modulo 4 are found once, then moved. */
format_place format_find_group(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group)
{
    const weight_format *w = lane->format;
    const uint32_t alignment = format_alignment(w), alike = alignment >= 4 ? 1 : 4 / alignment;
    const uint32_t block = group / w->groups, first = block % alike;
    format_place place = format_find(f, lane, shared_at(f, PTX_U8, row, first * w->bytes));
    return format_move(f, lane, &place, ptx_s32((int32_t)((block - first) * w->bytes)));
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

void format_codes(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t first,
                  uint32_t count, ptx_val quads[][FORMAT_MOST_QUADS])
{
    const weight_format *w = lane->format;
    ptx_val words[FORMAT_RUNS][FORMAT_MOST_UNITS] = {{{0}}};
    for (uint32_t run = 0; run < FORMAT_RUNS; run++) {
        if (w->runs[run].kind == RUN_UNITS)
            load_run(f, lane, place, run, 4 * first, count, words[run]);
        else if (w->runs[run].kind == RUN_GROUP)
            load_run(f, lane, place, run, 0, 1, words[run]);
    }
    for (uint32_t u = 0; u < count; u++) {
        format_unit unit = {.number = first + u};
        for (uint32_t run = 0; run < FORMAT_RUNS; run++)
            unit.word[run] = words[run][w->runs[run].kind == RUN_UNITS ? u : 0];
        w->decoder->split(f, lane, &unit, quads[u]);
        for (uint32_t q = 0; q < w->quads && w->is_signed; q++)
            quads[u][q] = ptx_as(f, PTX_S32, quads[u][q]);
    }
}

/* Returns the codes as unsigned bytes, and sets their offset. */
static ptx_val unsigned_codes(ptx_fn *f, const weight_format *w, ptx_val quad, float *offset)
{
    ptx_val bytes = ptx_as(f, PTX_U32, quad);
    *offset = w->is_signed ? 128.0f : (float)w->offset;
    return w->is_signed ? ptx_xor(f, bytes, 0x80808080) : bytes;
}

void format_floats(ptx_fn *f, const format_lane *lane, ptx_val quad, ptx_val x[4])
{
    if (format_has_values(lane->format)) {
        value_floats(f, lane, quad, x);
        return;
    }
    float offset;
    ptx_val bytes = unsigned_codes(f, lane->format, quad, &offset);
    for (uint32_t i = 0; i < 4; i++) {
        ptx_val raised = ptx_prmt(f, bytes, DECODE_RAISED, 0x7440 + i);
        x[i] = ptx_sub(f, ptx_as(f, PTX_F32, raised), 0x1p23f + offset);
    }
}

void format_denormals(ptx_fn *f, ptx_val quad, ptx_val x[4])
{
    for (uint32_t i = 0; i < 4; i++)
        x[i] = ptx_as(f, PTX_F32, ptx_prmt(f, quad, 0, 0x4440 + i));
}

enum { F16_1024 = 0x64, BF16_128 = 0x43 };

/* Puts the byte of each code under the upper byte of a power of two with ulp 1. */
static void raise_codes(ptx_fn *f, ptx_val bytes, ptx_type pair, uint32_t upper, ptx_val raised[2])
{
    for (uint32_t i = 0; i < 2; i++)
        raised[i] = ptx_as(f, pair, ptx_prmt(f, bytes, upper, 0x4140 + 0x202 * i));
}

/* 1024 as an F16 has ten zero bits for the code, 128 as a BF16 has seven. So a BF16 of a signed byte is its low seven bits
 * raised, minus its high bit raised, whose value is 128 or, if the bit is set, 256. */
void format_pairs(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val pairs[2])
{
    const weight_format *w = lane->format;
    ptx_val bytes = ptx_as(f, PTX_U32, quad), raised[2], high[2];
    if (format_has_values(w)) {
        pick_pairs(f, lane, type, quad, pairs);
    } else if (type == PTX_F16) {
        float offset;
        raise_codes(f, unsigned_codes(f, w, quad, &offset), PTX_F16X2, F16_1024, raised);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = ptx_sub(f, raised[i], ptx_number(PTX_F16X2, 1024 + offset));
    } else if (w->is_signed) {
        raise_codes(f, ptx_and(f, bytes, 0x7f7f7f7f), PTX_BF16X2, BF16_128, raised);
        raise_codes(f, ptx_and(f, bytes, 0x80808080), PTX_BF16X2, BF16_128, high);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = ptx_fma(f, high[i], ptx_number(PTX_BF16X2, -1), raised[i]);
    } else {
        ptx_val offset = ptx_number(PTX_BF16X2, -128 - w->offset);
        raise_codes(f, bytes, PTX_BF16X2, BF16_128, raised);
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = ptx_fma(f, raised[i], ptx_number(PTX_BF16X2, 1), offset);
    }
    for (uint32_t i = 0; i < 2; i++)
        pairs[i] = ptx_as(f, PTX_B32, pairs[i]);
}

/* One fma computes scale * (code - offset) from raise_codes' 128 + code if (128 + offset) * scale is exact. MXFP4's scales are
 * too large for that, and F32 scales have too many bits. */
void format_weights(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val scale,
                    ptx_val minimum, ptx_val pairs[2])
{
    const weight_format *w = lane->format;
    const bool has_short_scales = w->numbers == NUMBERS_F16 || w->numbers == NUMBERS_PRODUCT;
    ptx_val x[4];
    if (!w->is_signed && !w->has_minimum && has_short_scales) {
        enum { RAISED_128 = 0x43 };
        ptx_val minus_raised = ptx_mul(f, scale, -128.0f - (float)w->offset);
        for (uint32_t i = 0; i < 4; i++) {
            ptx_val raised = ptx_prmt(f, quad, RAISED_128, 0x4077 | i << 8);
            x[i] = ptx_fma(f, ptx_as(f, PTX_F32, raised), scale, minus_raised);
        }
    } else {
        format_floats(f, lane, quad, x);
        for (uint32_t i = 0; i < 4; i++)
            x[i] = w->has_minimum ? ptx_fma(f, x[i], scale, minimum) : ptx_mul(f, x[i], scale);
    }
    for (uint32_t i = 0; i < 2; i++)
        pairs[i] = ptx_as(f, PTX_B32, narrow_pair(f, type, x[2 * i], x[2 * i + 1]));
}

void format_half_weights(ptx_fn *f, const weight_format *w, ptx_val quad, uint32_t shift, ptx_val scale,
                         ptx_val minimum, ptx_val pairs[2])
{
    const double down = 1.0 / (1 << shift);
    float offset;
    ptx_val codes[2];
    raise_codes(f, unsigned_codes(f, w, quad, &offset), PTX_F16X2, F16_1024, codes);
    ptx_val taken = ptx_number(PTX_F16X2, -1024 * down - offset);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val code = shift > 0 ? ptx_fma(f, codes[i], ptx_number(PTX_F16X2, down), taken)
                                 : ptx_add(f, codes[i], taken);
        ptx_val scaled = w->has_minimum ? ptx_fma(f, code, scale, minimum) : ptx_mul(f, code, scale);
        pairs[i] = ptx_as(f, PTX_B32, scaled);
    }
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

format_place format_find_numbers(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group)
{
    const weight_format *w = lane->format;
    if (w->scale_elements == 0)
        return format_find_group(f, lane, row, group);
    const uint32_t number = group * format_group_elements(w) / w->scale_elements;
    return (format_place){.block = shared_at(f, PTX_F32, row, number * format_numbers_bytes(w))};
}

void format_numbers(ptx_fn *f, const format_lane *lane, const format_place *place,
                    ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    ptx_val *const to[2] = {scale, minimum};
    lane->format->decoder->numbers(f, lane, place, to);
}
