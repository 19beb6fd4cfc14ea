/* INT4: 4-bit integers with a scale, or a scale and a zero, per group.
 *
 * Symmetric: scale = max(|x|, 1e-12) / 7, x' = (code - 8) * scale. Asymmetric: scale = max(largest - smallest, 1e-12) / 15,
 * zero = -smallest / scale as it is, x' = (code - zero) * scale. Codes are x / scale (+ zero), rounded to nearest even.
 */
#ifndef VERIFY_INT4_H
#define VERIFY_INT4_H

#include "families.h"

extern const family_row int4_scale_row, int4_pack_row, int4_quantize_row, int4_unpack_row;

typedef enum int4_mode { INT4_SYM, INT4_ASYM } int4_mode;

typedef struct int4_numbers {
    double scale, zero; /* zero: asymmetric only */
} int4_numbers;

/* Those of elements [first, last) of an array. A NaN has no part in them; where there is nothing else, zero is a NaN. */
int4_numbers int4_numbers_of(int4_mode mode, const argument *in, uint64_t first, uint64_t last);

/* 0 to 15; a NaN gives 0. */
unsigned int4_code(int4_mode mode, element_type arithmetic, int4_numbers g, double x);

double int4_value(int4_mode mode, element_type arithmetic, int4_numbers g, unsigned code);

#endif
