/* One language for three compilers: the functions beside this file are kernels for nvcc and for clang, and C11 for the host.
   They use CUDA's names. Only what C has no word for is a macro here:

       KERNEL(name, O, A, B) { ... }   a kernel with the arguments O *out, const A *a, const B *b, uint32_t n
       DEVICE                          before a function that kernels call; NOINLINE keeps it a call
       DYNAMIC_SHARED(T, name);        shared memory whose size the launch gives
       EACH(i)                         leaves the threads whose global index i is not below n

   Signed arithmetic that could overflow is written in unsigned types, so that every language defines it. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stdint.h>

typedef unsigned long long u64; /* what CUDA's 64-bit atomics take */
typedef long long s64;

/* A kernel takes it by value. */
struct mixture {
    uint32_t scale;
    uint8_t bytes[5];
    int16_t offset;
    u64 big;
    float factor;
};

#if defined(__NVCC__)
#include "device_nvcc.h"
#elif defined(__CUDA__)
#include "device_clang.h"
#else
#include "native.h"
#endif

#define FULL_WARP 0xffffffffu
#define THREAD    (threadIdx.x)
#define LANE      (threadIdx.x & 31)
#define GLOBAL    (blockIdx.x * blockDim.x + threadIdx.x)

#define EACH(i)                                                                                              \
    const uint32_t i = GLOBAL;                                                                               \
    if (i >= n)                                                                                              \
    return

#endif
