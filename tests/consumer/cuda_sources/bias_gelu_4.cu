#include "common.h"

/* bias_gelu with four elements per thread. All three arrays are aligned to 16 bytes; columns is a multiple of 4. */
extern "C" __global__ void bias_gelu_4(float4 *out, const float4 *x, const float4 *bias, unsigned rows, unsigned columns)
{
    const unsigned i = thread_number();
    if (i < rows * (columns / 4)) {
        const float4 a = x[i], b = bias[i % (columns / 4)];
        const float4 y = {gelu(a.x + b.x), gelu(a.y + b.y), gelu(a.z + b.z), gelu(a.w + b.w)};
        out[i] = y;
    }
}
