/* f32 to narrower types, where a target has no conversion. */
#ifndef KERNELS_NARROW_H
#define KERNELS_NARROW_H

#include <kiln/ptx.h>

/* F32 to bf16 in integers: half an ulp less one, plus one when the lowest kept bit is set, so that ties go to even. The
 * bits are the upper half of the U32. A NaN becomes 0x7fff. */
ptx_val narrow_to_bf16(ptx_fn *f, ptx_val x);

#endif
