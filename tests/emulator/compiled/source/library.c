/* The C library's functions, as nvcc puts them into PTX: long code of tables, loops and exact steps. Its bounds are those of
   the CUDA programming guide, in units in the last place. */
#include "device.h"

#define LIBRARY(T, name)                                                                                     \
    KERNEL(library_##name, T, T, T)                                                                          \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[i] = name(a[i]);                                                                                 \
    }
LIBRARY(float, expf)
LIBRARY(float, logf)
LIBRARY(float, sinf)
LIBRARY(float, tanhf)
LIBRARY(float, cbrtf)
LIBRARY(float, erff)
LIBRARY(float, roundf)
LIBRARY(double, exp)
LIBRARY(double, log)
LIBRARY(double, sin)

KERNEL(library_powf, float, float, float)
{
    EACH(i);
    out[i] = powf(fabsf(a[i]), b[i]);
}

KERNEL(library_fmodf, float, float, float)
{
    EACH(i);
    out[i] = fmodf(a[i], b[i]);
}

KERNEL(library_hypotf, float, float, float)
{
    EACH(i);
    out[i] = hypotf(a[i], b[i]);
}
