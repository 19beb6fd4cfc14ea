/* What the sources share: the number of this thread, and the factor. */
#ifndef COMMON_H
#define COMMON_H

#define FACTOR 2.0f

#if defined(__clang__) && !defined(__CUDACC__) /* clang without the toolkit's headers */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#endif

static __device__ unsigned thread_number(void)
{
#if defined(__clang__)
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
#else
    return blockIdx.x * blockDim.x + threadIdx.x;
#endif
}

#endif
