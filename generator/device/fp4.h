/* Codes of e2m1, eight in a word, the first in its low bits, and the scales of their blocks, on every target. */
#ifndef DEVICE_FP4_H
#define DEVICE_FP4_H

#include <kiln/author/ptx.h>

enum { FP4_CODES = 8 /* in a word */, FP4_PAIRS = FP4_CODES / 2 };

/* Decodes a word, U32, exactly: pairs of neighbouring codes, F16X2 or, from sm_80 on, BF16X2. */
void fp4_pairs(ptx_fn *f, ptx_type type, ptx_val word, ptx_val pairs[FP4_PAIRS]);

/* Decodes the scale in the low byte of a U32 whose other bytes are 0, e4m3 or e8m0, to a pair of two equal halves. E4m3 is
 * exact, with its sign, and a NaN is a NaN. E8m0 is rounded to the type: in F16 2^-24 to 2^15 are exact, smaller scales are 0 and
 * larger ones infinite; in BF16 all are exact. E8m0's NaN becomes an infinity. */
ptx_val fp4_scale(ptx_fn *f, ptx_type type, bool is_e8m0, ptx_val byte);

/* Multiplies a pair by a scale's pair, with one rounding; B32. Products of codes with e4m3, and in BF16 with e8m0, are exact. */
ptx_val fp4_weights(ptx_fn *f, ptx_type type, ptx_val pair, ptx_val scale);

#endif
