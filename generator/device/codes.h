/* F32 rounded to e2m1 and e4m3 in f32 arithmetic, on every target; as codes of 8 bits, e4m3 and signed bytes; and codes as pairs of
 * the 16-bit types. */
#ifndef DEVICE_CODES_H
#define DEVICE_CODES_H

#include <kiln/author/ptx.h>

typedef struct small_float {
    uint32_t fraction_bits;
    int least_exponent; /* of normal numbers */
    float largest;
} small_float;

extern const small_float small_float_e2m1, small_float_e4m3;

/* The magnitude of x, F32, rounded to nearest even, at most the largest number, which a NaN becomes too. F32. */
ptx_val small_float_round(ptx_fn *f, const small_float *to, ptx_val x);

/* The code of such a number, 23 - fraction_bits bits further up in a U32 that is else 0. */
ptx_val small_float_code(ptx_fn *f, const small_float *of, ptx_val rounded);

enum { CODES = 4 }; /* of a word, U32, the first in its lowest byte */

/* The lowest bytes of four words as one. */
ptx_val codes_join(ptx_fn *f, const ptx_val words[CODES]);

/* Rounded to nearest even; at most 448 in magnitude; a NaN is 0x7f. The same on all targets. */
ptx_val codes_e4m3(ptx_fn *f, const ptx_val x[CODES]);

/* Rounded to nearest even, from -128 to 127; a NaN is 0. */
ptx_val codes_int8(ptx_fn *f, const ptx_val x[CODES]);

/* The least absmax that signed bytes are scaled by: a 127th of it, and 127 times its inverse, are normal numbers. */
#define INT8_LEAST_ABSMAX 0x1p-118f

/* The bits of `code` with the sign bits, those in `mask`, of x: both U32. */
ptx_val codes_sign(ptx_fn *f, ptx_val x, uint32_t mask, ptx_val code);

/* E4M3 without a conversion: the bytes of a word that prmt's selector brings into the upper byte of each half, exactly, as
 * F16X2 times 2^-8 or BF16X2 times 2^-120; a NaN is 480. Sets the bits of their magnitudes, U32. */
enum { CODES_FIRST_TWO = 0x1404 /* a selector: bytes 0 and 1 */ };
ptx_val codes_small_e4m3(ptx_fn *f, ptx_type type, ptx_val word, uint32_t selector, ptx_val *magnitudes);

/* Codes as F16 or, from sm_80 on, BF16. */
typedef struct codes_values {
    ptx_type type;
    bool is_e4m3;  /* else signed bytes */
    uint32_t down; /* signed bytes in F16: the values are divided by 2^down, at most 8 */
} codes_values;

/* The values of a word's codes, exactly; a NaN is a NaN. `pairs` get codes 0 and 1, and 2 and 3; or, `apart`, 0 and 2, and 1
 * and 3: F16X2 or BF16X2. */
void codes_pairs(ptx_fn *f, const codes_values *of, ptx_val word, bool apart, ptx_val pairs[2]);

/* The values of a word's codes as F32. */
void codes_widen(ptx_fn *f, const codes_values *of, ptx_val word, ptx_val x[CODES]);

#endif
