/* f32 to narrower types, where a target has no conversion. */
#include "narrow.h"

ptx_val narrow_to_bf16(ptx_fn *f, ptx_val x)
{
    ptx_val bits = ptx_as(f, PTX_U32, x);
    ptx_val lowest = ptx_bfe(f, bits, ptx_u32(16), ptx_u32(1));
    ptx_val half = ptx_add(f, bits, ptx_u32(0x7fff));
    ptx_val rounded = ptx_add(f, half, lowest);
    ptx_val is_number = ptx_ordered(f, x, x);
    return ptx_select(f, is_number, rounded, ptx_u32(0x7fff0000));
}
