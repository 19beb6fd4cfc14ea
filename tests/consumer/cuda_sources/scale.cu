#include "common.h"

extern "C" __global__ void scale(float *y, const float *x, float a, unsigned n)
{
    const unsigned i = thread_number();
    if (i < n)
        y[i] = FACTOR * a * x[i];
}
