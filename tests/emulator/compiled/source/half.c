/* Half precision. */
#include "device.h"

KERNEL(half_arithmetic, half, half, half)
{
    EACH(i);
    out[3 * i] = __hadd(a[i], b[i]);
    out[3 * i + 1] = __hsub(a[i], b[i]);
    out[3 * i + 2] = __hmul(a[i], b[i]);
}

KERNEL(half_fused, half, half, half)
{
    EACH(i);
    out[2 * i] = __hfma(a[i], b[i], a[n - 1 - i]);
    out[2 * i + 1] = __hfma(b[i], b[n - 1 - i], a[i]);
}

KERNEL(half_compare, uint32_t, half, half)
{
    EACH(i);
    out[i] = (uint32_t)__hlt(a[i], b[i]) | (uint32_t)__hle(a[i], b[i]) << 1 |
             (uint32_t)__heq(a[i], b[i]) << 2 | (uint32_t)__hne(a[i], b[i]) << 3 |
             (uint32_t)__hisnan(a[i]) << 4;
}

KERNEL(half_extremes, half, half, half)
{
    EACH(i);
    out[2 * i] = __hmin(a[i], b[i]);
    out[2 * i + 1] = __hmax(a[i], b[i]);
}

KERNEL(half_to_float, float, half, half)
{
    EACH(i);
    out[i] = __half2float(a[i]) + __half2float(b[i]);
}

KERNEL(half_from_float, half, float, float)
{
    EACH(i);
    out[4 * i] = __float2half_rn(a[i]);
    out[4 * i + 1] = __float2half_rz(a[i]);
    out[4 * i + 2] = __float2half_ru(a[i]);
    out[4 * i + 3] = __float2half_rd(a[i]);
}

KERNEL(half_from_integer, half, uint32_t, uint32_t)
{
    EACH(i);
    out[2 * i] = __int2half_rn((int32_t)a[i]);
    out[2 * i + 1] = __uint2half_rn(a[i] % 70000);
}

KERNEL(half_to_integer, u64, half, half)
{
    EACH(i);
    out[4 * i] = (uint32_t)__half2int_rn(a[i]);
    out[4 * i + 1] = (uint32_t)__half2int_rz(a[i]);
    out[4 * i + 2] = __half2uint_rd(a[i]);
    out[4 * i + 3] = (u64)__half2ll_ru(a[i]);
}

KERNEL(half_dot, half, half, half)
{
    EACH(i);
    half sum = __int2half_rn(0);
    for (uint32_t k = 0; k < 16; k++)
        sum = __hfma(a[(i + k) % n], b[(i + 3 * k) % n], sum);
    out[i] = sum;
}

/* Halves in, floats between, halves out. */
KERNEL(half_mixed, half, half, half)
{
    EACH(i);
    float sum = 0.0f;
    for (uint32_t k = 0; k < 8; k++)
        sum = fmaf(__half2float(a[(i + k) % n]), __half2float(b[(i + k) % n]), sum);
    out[i] = __float2half_rn(sum * 0.125f);
}

/* The largest finite half of a block, through shared memory. */
KERNEL(half_largest, half, half, half)
{
    __shared__ half part[128];
    part[THREAD] = a[GLOBAL];
    for (uint32_t step = 64; step; step /= 2) {
        __syncthreads();
        if (THREAD < step)
            part[THREAD] = __hmax(part[THREAD], part[THREAD + step]);
    }
    if (THREAD == 0)
        out[blockIdx.x] = part[0];
}
