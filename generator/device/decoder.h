/* What the files of the weight formats share, for format.c: a decoder for formats of one structure. */
#ifndef DEVICE_DECODER_H
#define DEVICE_DECODER_H

#include "format.h"

struct format_decoder {
    /* Sets select, shift, turn, first, last as the functions below use them; null: they use none. */
    void (*init)(ptx_fn *f, format_lane *lane);
    /* The quads of unit `unit` of the group from its words, one of each run. */
    void (*split)(ptx_fn *f, const format_lane *lane, uint32_t unit, const ptx_val word[FORMAT_RUNS],
                  ptx_val quads[FORMAT_MOST_QUADS]);
    void (*numbers)(ptx_fn *f, const format_lane *lane, const format_place *place,
                    ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS]);
};

enum { DECODE_RAISED = 0x4B000000 }; /* 2^23: with a byte in its low bits, that number more */

/* format_small.c: blocks of 32, d (and m) before the codes. */
extern const format_decoder format_decode_nibbles, format_decode_fives, format_decode_bytes;
/* format_k.c: super-blocks of 256. */
extern const format_decoder format_decode_q2k, format_decode_q3k, format_decode_q4k, format_decode_q5k,
    format_decode_q6k, format_decode_tq2;
/* format_values.c: codes that are indices of sixteen values. */
extern const format_decoder format_decode_iq4nl, format_decode_iq4xs, format_decode_mxfp4;

/* The two F16 of a word as F32. */
void decode_halves(ptx_fn *f, ptx_val word, ptx_val x[2]);
ptx_val decode_low_half(ptx_fn *f, ptx_val word);

/* By how many bits the codes of quad q are up; with FORMAT_RAISED its scale is as much down. */
static inline uint32_t decode_raise(const format_lane *lane, uint32_t q)
{
    return lane->rule == FORMAT_RAISED   ? lane->format->raise * q
           : lane->rule == FORMAT_LIFTED ? lane->format->lift * q
                                         : 0;
}

/* factor * (byte - bias) * 2^-down for each of `count` bytes from the word's byte `first` on, F32, exactly; down is that of quads
 * where `is_scale`. */
void decode_products(ptx_fn *f, const format_lane *lane, ptx_val factor, ptx_val bytes, uint32_t first,
                     uint32_t bias, bool is_scale, ptx_val products[]);

/* Words that are no run of a word per unit: `count` from byte `byte` behind run `run`'s. */
void decode_load(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t run, uint32_t byte,
                 uint32_t count, ptx_val words[]);

/* word >> shift, a left shift where it is negative. */
ptx_val decode_shift(ptx_fn *f, ptx_val word, int shift);

#endif
