/* What the functions use beyond CUDA's own names, for nvcc. */
#ifndef DEVICE_NVCC_H
#define DEVICE_NVCC_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kept.h" /* refresh.py writes it */

typedef __nv_bfloat16 bfloat;
typedef __nv_bfloat162 bfloat2;

#define DEVICE                  static __device__
#define NOINLINE                __noinline__
#define CONSTANT                __constant__
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#define KERNEL(name, O, A, B)   KEPT_##name void name(O *out, const A *a, const B *b, uint32_t n)
#define KERNEL_WITH(name, O, A, B, S)                                                                        \
    KEPT_##name void name(O *out, const A *a, const B *b, uint32_t n, S with)

#define APPROXIMATE(name, instruction)                                                                       \
    DEVICE float name(float x)                                                                               \
    {                                                                                                        \
        float y;                                                                                             \
        asm(instruction " %0, %1;" : "=f"(y) : "f"(x));                                                      \
        return y;                                                                                            \
    }
APPROXIMATE(approximate_ex2, "ex2.approx.f32")
APPROXIMATE(approximate_lg2, "lg2.approx.f32")
APPROXIMATE(approximate_sin, "sin.approx.f32")
APPROXIMATE(approximate_cos, "cos.approx.f32")
APPROXIMATE(approximate_tanh, "tanh.approx.f32")
APPROXIMATE(approximate_rcp, "rcp.approx.f32")
APPROXIMATE(approximate_rsqrt, "rsqrt.approx.f32")
APPROXIMATE(approximate_sqrt, "sqrt.approx.f32")

#define dp4a_signed(a, b, c)   __dp4a((int)(a), (int)(b), (int)(c))
#define dp4a_unsigned(a, b, c) __dp4a((uint32_t)(a), (uint32_t)(b), (uint32_t)(c))
#define volatile_fence()       __threadfence()
#define float_bits(x)          __float_as_uint(x)
#define bits_float(x)          __uint_as_float(x)
#define double_bits(x)         ((u64)__double_as_longlong(x))
#define bits_double(x)         __longlong_as_double((s64)(x))

DEVICE half2 swapped(half2 a)
{
    return __lowhigh2highlow(a);
}
DEVICE bfloat2 swapped(bfloat2 a)
{
    return __lowhigh2highlow(a);
}

#endif
