/* GGUF's blocks of 32 elements: d, f16, in the first two bytes, m, where there is a minimum, in the next two, then codes.
 *
 *     Q4_0 Q4_1   16 bytes: element i is the low nibble of byte i, element 16 + i the high one
 *     Q5_0 Q5_1   a word whose bit i is bit 4 of element i, then the same
 *     Q8_0        32 signed bytes
 */
#include "decoder.h"

#define NIBBLES 0x0f0f0f0fu

static void numbers_before(ptx_fn *f, const format_lane *lane, const format_place *place,
                           ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS])
{
    ptx_val word = bytes_load_low(f, &place->order, place->block, 0), both[2];
    if (!lane->format->has_minimum) {
        scale[0] = decode_low_half(f, word);
        return;
    }
    decode_halves(f, word, both);
    scale[0] = both[0];
    minimum[0] = both[1];
}

static void split_nibbles(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                          ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)unit;
    quads[0] = ptx_and(f, word[0], ptx_u32(NIBBLES));
    const bool is_up = decode_raise(lane, 1) == 4;
    ptx_val high = is_up ? word[0] : ptx_shr(f, word[0], ptx_u32(4));
    quads[1] = ptx_and(f, high, ptx_u32(is_up ? NIBBLES << 4 : NIBBLES));
}

/* Four neighbouring bits to bit 4 of each byte. They are at `at`, 0 or 4: bit i there times 2^(4 - at + 7i) is bit 4 + 8i; no
 * two of the products of bits and terms meet. */
static ptx_val spread(ptx_fn *f, ptx_val bits, uint32_t at)
{
    ptx_val four = ptx_and(f, bits, ptx_u32(0xfu << at));
    return ptx_mul(f, four, ptx_u32(0x02040810u >> at));
}

/* shift: 4 * the lane's unit. */
static void init_fives(ptx_fn *f, format_lane *lane)
{
    if (lane->unit.type != PTX_NONE)
        lane->shift = ptx_shl(f, lane->unit, ptx_u32(2));
}

static void split_fives(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                        ptx_val quads[FORMAT_MOST_QUADS])
{
    ptx_val high = word[1];
    if (lane->unit.type != PTX_NONE)
        high = ptx_shr(f, high, lane->shift);
    split_nibbles(f, lane, unit, word, quads);
    for (uint32_t q = 0; q < 2; q++) {
        uint32_t bit = 4 * unit + 16 * q;
        ptx_val near = decode_shift(f, high, (int)(bit / 8 * 8));
        ptx_val fifth = spread(f, near, bit % 8);
        quads[q] = ptx_lop3(f, fifth, ptx_u32(0x10101010), quads[q], 0xEA);
    }
}

static void split_bytes(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                        ptx_val quads[FORMAT_MOST_QUADS])
{
    (void)f, (void)lane, (void)unit;
    quads[0] = word[0];
}

const format_decoder format_decode_nibbles = {NULL, split_nibbles, numbers_before};
const format_decoder format_decode_fives = {init_fives, split_fives, numbers_before};
const format_decoder format_decode_bytes = {NULL, split_bytes, numbers_before};
