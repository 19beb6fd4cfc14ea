#include "common.h"

extern "C" __global__ void reverse(float *y, const float *x, unsigned n)
{
    const unsigned i = thread_number();
    if (i < n)
        y[i] = x[n - 1 - i];
}
