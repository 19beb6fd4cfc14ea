/* Two halves in a register, and bfloats, as nvcc's headers make them. */
#include "device.h"

KERNEL(packed_half_arithmetic, half2, half2, half2)
{
    EACH(i);
    out[3 * i] = __hadd2(a[i], b[i]);
    out[3 * i + 1] = __hsub2(a[i], b[i]);
    out[3 * i + 2] = __hmul2(a[i], b[i]);
}

KERNEL(packed_half_fused, half2, half2, half2)
{
    EACH(i);
    half2 c = swapped(a[n - 1 - i]);
    out[i] = __hfma2(a[i], b[i], c);
}

KERNEL(packed_half_extremes, half2, half2, half2)
{
    EACH(i);
    out[2 * i] = __hmin2(a[i], b[i]);
    out[2 * i + 1] = __hmax2(a[i], b[i]);
}

KERNEL(bfloat_arithmetic, bfloat, bfloat, bfloat)
{
    EACH(i);
    out[3 * i] = __hadd(a[i], b[i]);
    out[3 * i + 1] = __hsub(a[i], b[i]);
    out[3 * i + 2] = __hmul(a[i], b[i]);
}

KERNEL(bfloat_fused, bfloat, bfloat, bfloat)
{
    EACH(i);
    out[i] = __hfma(a[i], b[i], a[n - 1 - i]);
}

KERNEL(bfloat_compare, uint32_t, bfloat, bfloat)
{
    EACH(i);
    out[i] = (uint32_t)__hlt(a[i], b[i]) | (uint32_t)__heq(a[i], b[i]) << 1 | (uint32_t)__hisnan(a[i]) << 2;
}

KERNEL(bfloat_extremes, bfloat, bfloat, bfloat)
{
    EACH(i);
    out[2 * i] = __hmin(a[i], b[i]);
    out[2 * i + 1] = __hmax(a[i], b[i]);
}

KERNEL(bfloat_convert, bfloat, float, bfloat)
{
    EACH(i);
    out[2 * i] = __float2bfloat16_rn(a[i]);
    out[2 * i + 1] = __float2bfloat16_rn(__bfloat162float(b[i]) * 3.0f);
}

KERNEL(packed_bfloat_fused, bfloat2, bfloat2, bfloat2)
{
    EACH(i);
    bfloat2 c = swapped(b[i]);
    out[2 * i] = __hfma2(a[i], b[i], c);
    out[2 * i + 1] = __hadd2(a[i], c);
}
