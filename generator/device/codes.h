/* Rounds F32 to e2m1 and e4m3 in f32 arithmetic, on every target; encodes 8-bit codes, e4m3 and signed bytes; decodes them to
 * pairs of the 16-bit types. */
#ifndef DEVICE_CODES_H
#define DEVICE_CODES_H

#include <kiln/author/ptx.h>

typedef struct small_float {
    uint32_t fraction_bits;
    int least_exponent; /* of normal numbers */
    float largest;
} small_float;

extern const small_float small_float_e2m1, small_float_e4m3;

/* Rounds the magnitude of x, F32, to nearest even, clamped to the largest number; a NaN becomes the largest
 * number too. F32. */
ptx_val small_float_round(ptx_fn *f, const small_float *to, ptx_val x);

/* The code of a rounded number, shifted left by 23 - fraction_bits in a U32. */
ptx_val small_float_code(ptx_fn *f, const small_float *of, ptx_val rounded);

enum { CODES = 4 }; /* codes in a word, U32, the first in its lowest byte */

/* Joins the lowest bytes of four words. */
ptx_val codes_join(ptx_fn *f, const ptx_val words[CODES]);

/* Rounds to nearest even; clamps the magnitude to 448; a NaN is 0x7f. The same on all targets. */
ptx_val codes_e4m3(ptx_fn *f, const ptx_val x[CODES]);

/* Rounds to nearest even, clamped to -128 to 127; a NaN is 0. */
ptx_val codes_int8(ptx_fn *f, const ptx_val x[CODES]);

/* The smallest absmax for scaling signed bytes: absmax / 127, and 127 / absmax, are normal numbers. */
#define INT8_LEAST_ABSMAX 0x1p-118f

/* The absmax of `count` F32 of each of `lanes` neighbouring lanes, at least INT8_LEAST_ABSMAX; a NaN if any of them is. */
ptx_val codes_absmax(ptx_fn *f, const ptx_val x[], uint32_t count, uint32_t lanes);

/* Combines `code` with the sign bits of x, selected by `mask`: both U32. */
ptx_val codes_sign(ptx_fn *f, ptx_val x, uint32_t mask, ptx_val code);

/* Decodes E4M3 without a conversion: prmt's selector moves bytes of a word to the upper byte of each half. The result is
 * exact, as F16X2 times 2^-8 or BF16X2 times 2^-120; a NaN is 480. Also sets the bits of their magnitudes, U32. */
enum { CODES_FIRST_TWO = 0x1404 /* a selector: bytes 0 and 1 */ };
ptx_val codes_small_e4m3(ptx_fn *f, ptx_type type, ptx_val word, uint32_t selector, ptx_val *magnitudes);

/* Codes as F16 or, from sm_80 on, BF16. */
typedef struct codes_values {
    ptx_type type;
    bool is_e4m3;  /* else signed bytes */
    uint32_t down; /* signed bytes in F16: the values are divided by 2^down, at most 8 */
} codes_values;

/* Decodes a word's codes exactly; a NaN is a NaN. `pairs` get codes 0 and 1, and 2 and 3; or, `apart`, 0 and 2, and 1 and 3:
 * F16X2 or BF16X2. */
void codes_pairs(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, ptx_val pairs[2]);

/* Decodes a word's codes to F32. */
void codes_widen(ptx_fn *f, const codes_values *of, ptx_val word, ptx_val x[CODES]);

#endif
