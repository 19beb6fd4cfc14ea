/* Numbers rounded to a few bits, in f32 arithmetic, on every target: e2m1 and e4m3. */
#ifndef DEVICE_SMALL_FLOAT_H
#define DEVICE_SMALL_FLOAT_H

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

#endif
