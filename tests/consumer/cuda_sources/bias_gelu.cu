#include "common.h"

/* out = gelu(x + bias), a row for each token. An element for each thread. */
extern "C" __global__ void bias_gelu(float *out, const float *x, const float *bias, unsigned rows, unsigned columns)
{
    const unsigned i = thread_number();
    if (i < rows * columns)
        out[i] = gelu(x[i] + bias[i % columns]);
}
