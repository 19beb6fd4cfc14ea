/* F32 as codes of 8 bits: e4m3, and signed bytes. */
#ifndef DEVICE_CODES_H
#define DEVICE_CODES_H

#include <kiln/author/ptx.h>

enum { CODES = 4 }; /* of a word, U32, the first in its lowest byte */

/* Rounded to nearest even; at most 448 in magnitude; a NaN is 0x7f. The same on all targets. */
ptx_val codes_e4m3(ptx_fn *f, bool has_sm_89, const ptx_val x[CODES]);

/* Rounded to nearest even, from -128 to 127; a NaN is 0. */
ptx_val codes_int8(ptx_fn *f, const ptx_val x[CODES]);

#endif
