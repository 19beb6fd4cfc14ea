/* Approximate instructions, and library functions made of them: within the bounds that functions.def states. */
#include "device.h"

#define APPROXIMATE_KERNEL(name)                                                                             \
    KERNEL(approximate_of_##name, float, float, float)                                                       \
    {                                                                                                        \
        EACH(i);                                                                                             \
        out[i] = approximate_##name(a[i]);                                                                   \
    }
APPROXIMATE_KERNEL(ex2)
APPROXIMATE_KERNEL(lg2)
APPROXIMATE_KERNEL(tanh)
APPROXIMATE_KERNEL(rcp)
APPROXIMATE_KERNEL(rsqrt)
APPROXIMATE_KERNEL(sqrt)

/* The ISA bounds them from -2 pi to 2 pi. */
#define CIRCULAR_KERNEL(name)                                                                                \
    KERNEL(approximate_of_##name, float, float, float)                                                       \
    {                                                                                                        \
        EACH(i);                                                                                             \
        bool promised = fabsf(a[i]) <= 6.2831853f || !(fabsf(a[i]) < INFINITY);                              \
        out[2 * i] = approximate_##name(promised ? a[i] : 1.0f);                                             \
        out[2 * i + 1] = approximate_##name(b[i] * 6.2831853f);                                              \
    }
CIRCULAR_KERNEL(sin)
CIRCULAR_KERNEL(cos)
