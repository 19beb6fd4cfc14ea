/* K and V as codes of 8 bits: in shared memory they are bytes, and become numbers on their way into registers. A head's scale
 * of K is a factor of its scores, and that of V one of its rows of O. Scales of keys come with the tile: those of K multiply
 * scores before they are shaped, those of V weights before they are rounded.
 */
#ifndef KERNELS_ATTENTION_CODES_H
#define KERNELS_ATTENTION_CODES_H

#include "attention.h"
#include "device/codes.h"

attention_kv attention_kv_of(const kiln_variant *v);

/* Whether the scales are those of heads, and not of keys. */
bool attention_has_head_scales(const attention *a);

/* Codes of K, or of V, as a kernel takes them in elements of `type`, F16 or BF16. */
codes_values attention_codes_of(const attention *a, ptx_type type, bool is_v);

/* A head's scale, F32, by a pointer to that of the first. */
ptx_val attention_head_scale(const attention *a, ptx_val scales);

/* What the scale of a key of V is multiplied by, for its codes to be divided by it: a power of two. Weights in F16 that are
 * multiplied by V's scales are as far from its ends as V's rows are. */
double attention_value_factor(const attention *a);

#endif
