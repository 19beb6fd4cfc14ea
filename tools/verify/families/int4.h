/* INT4: 4-bit integers with a scale, or a scale and a zero, per group.
 *
 * Symmetric: scale = max(|x|, 1e-12) / 7, x' = (code - 8) * scale. Asymmetric: scale = max(largest - smallest, 1e-12) / 15,
 * zero = -smallest / scale, unrounded, x' = (code - zero) * scale. Codes are x / scale (+ zero), rounded to nearest even.
 */
#ifndef VERIFY_INT4_H
#define VERIFY_INT4_H

#include "families.h"

extern const family_row int4_scale_row, int4_pack_row, int4_quantize_row, int4_unpack_row;

#endif
