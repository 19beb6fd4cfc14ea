#include "common.h"

/* out = gelu(x + bias). Each row is a token; each thread computes one element. */
extern "C" __global__ void bias_gelu(float *out, const float *x, const float *bias, unsigned rows, unsigned columns)
{
    const unsigned i = thread_number();
    if (i < rows * columns)
        out[i] = gelu(x[i] + bias[i % columns]);
}
