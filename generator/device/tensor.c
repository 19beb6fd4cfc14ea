/* Products on tensor cores. */
#include "tensor.h"

ptx_mma_shape tensor_shape(ptx_type type, bool is_deep)
{
    static const ptx_mma_shape shapes[2][2] = {{PTX_MMA_M16N8K8_F16_F32, PTX_MMA_M16N8K16_F16_F32},
                                               {PTX_MMA_M16N8K8_BF16_F32, PTX_MMA_M16N8K16_BF16_F32}};
    return shapes[type == PTX_BF16][is_deep];
}

void tensor_multiply(ptx_fn *f, ptx_type type, ptx_val d[4], const ptx_val a[4], const ptx_val b[2],
                     const ptx_val c[4])
{
    ptx_val half[4], *first = d == c ? d : half;
    if (ptx_has_sm(f, 80)) {
        ptx_mma(f, tensor_shape(type, true), d, a, b, c);
        return;
    }
    ptx_mma(f, tensor_shape(type, false), first, a, b, c);
    ptx_mma(f, tensor_shape(type, false), d, a + 2, b + 1, first);
}

void tensor_multiply_bytes(ptx_fn *f, bool is_signed, uint32_t count, ptx_val d[4], const ptx_val a[4],
                           const ptx_val b[2], const ptx_val c[4])
{
    static const ptx_mma_shape shapes[2][2] = {{PTX_MMA_M16N8K16_U8S8_S32, PTX_MMA_M16N8K32_U8S8_S32},
                                               {PTX_MMA_M16N8K16_S8_S32, PTX_MMA_M16N8K32_S8_S32}};
    if (ptx_has_sm(f, 80)) {
        ptx_mma(f, shapes[is_signed][count - 1], d, a, b, c);
        return;
    }
    const ptx_mma_shape shape = is_signed ? PTX_MMA_M8N8K16_S8_S32 : PTX_MMA_M8N8K16_U8S8_S32;
    for (uint32_t row = 0; row < 2; row++) {
        const ptx_val *sums = &c[2 * row];
        for (uint32_t i = 0; i < count; i++) {
            ptx_val next[2];
            ptx_mma(f, shape, next, &a[2 * i + row], &b[i], sums);
            d[2 * row] = next[0];
            d[2 * row + 1] = next[1];
            sums = &d[2 * row];
        }
    }
}
