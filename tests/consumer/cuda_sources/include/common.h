/* Shared by both kernels: the thread's number in the grid, and the tanh form of GELU. */
#ifndef COMMON_H
#define COMMON_H

#define CUBE 0.044715f

#if defined(__clang__) && !defined(__CUDACC__) /* clang without the toolkit's headers */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
#endif

static __device__ unsigned thread_number(void)
{
#if defined(__clang__)
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
#else
    return blockIdx.x * blockDim.x + threadIdx.x;
#endif
}

/* x / (1 + e^(-2u)), with u = sqrt(2 / pi) * (x + CUBE * x^3); computed as a power of 2. */
static __device__ float gelu(float x)
{
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(-2.3022082f * (x + CUBE * x * x * x)));
    return x / (1 + power);
}

#endif
