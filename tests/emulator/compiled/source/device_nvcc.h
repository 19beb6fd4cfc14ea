/* What the functions use beyond CUDA's own names, for nvcc. */
#ifndef DEVICE_NVCC_H
#define DEVICE_NVCC_H

#include "kept.h" /* refresh.py writes it */

#define DEVICE                  static __device__
#define NOINLINE                __noinline__
#define CONSTANT                __constant__
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#define KERNEL(name, O, A, B)   KEPT_##name void name(O *out, const A *a, const B *b, uint32_t n)
#define KERNEL_WITH(name, O, A, B, S)                                                                        \
    KEPT_##name void name(O *out, const A *a, const B *b, uint32_t n, S with)

#define float_bits(x) __float_as_uint(x)
#define bits_float(x) __uint_as_float(x)

#endif
