/* CUDA's names for clang without a CUDA toolkit, over its builtins. */
#ifndef DEVICE_CLANG_H
#define DEVICE_CLANG_H

#define __device__              __attribute__((device))
#define __global__              __attribute__((global))
#define __shared__              __attribute__((shared))
#define DEVICE                  static __device__
#define INLINE                  static inline __device__ __attribute__((always_inline))
#define NOINLINE                __attribute__((noinline))
#define CONSTANT                __attribute__((constant))
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#define KERNEL(name, O, A, B)   extern "C" __global__ void name(O *out, const A *a, const B *b, uint32_t n)
#define KERNEL_WITH(name, O, A, B, S)                                                                        \
    extern "C" __global__ void name(O *out, const A *a, const B *b, uint32_t n, S with)

struct special {
    uint32_t x, y, z;
};
#define SPECIAL(name)                                                                                        \
    (special{(uint32_t)__nvvm_read_ptx_sreg_##name##_x(), (uint32_t)__nvvm_read_ptx_sreg_##name##_y(),       \
             (uint32_t)__nvvm_read_ptx_sreg_##name##_z()})
#define threadIdx SPECIAL(tid)
#define blockIdx  SPECIAL(ctaid)
#define blockDim  SPECIAL(ntid)
#define gridDim   SPECIAL(nctaid)

/* Waiting, warps */
#define __syncthreads_count(p)    __nvvm_bar0_popc(p)
#define __syncthreads_and(p)      __nvvm_bar0_and(p)
#define __syncthreads_or(p)       __nvvm_bar0_or(p)
#define __syncwarp(mask)          __nvvm_bar_warp_sync(mask)
#define __ballot_sync(mask, p)    ((uint32_t)__nvvm_vote_ballot_sync(mask, p))
#define __any_sync(mask, p)       __nvvm_vote_any_sync(mask, p)
#define __all_sync(mask, p)       __nvvm_vote_all_sync(mask, p)
#define __match_any_sync(m, v)    ((uint32_t)__nvvm_match_any_sync_i32(m, v))
#define __match_all_sync(m, v, p) ((uint32_t)__nvvm_match_all_sync_i32p(m, v, p))

INLINE uint32_t __activemask()
{
    uint32_t mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

#define SHUFFLE(name, builtin, clamp)                                                                        \
    template <typename T> INLINE T name(uint32_t mask, T v, uint32_t by, uint32_t width)                     \
    {                                                                                                        \
        union {                                                                                              \
            T whole;                                                                                         \
            int words[sizeof(T) / 4];                                                                        \
        } u;                                                                                                 \
        u.whole = v;                                                                                         \
        for (unsigned i = 0; i < sizeof(T) / 4; i++)                                                         \
            u.words[i] = builtin(mask, u.words[i], (int)by, (int)((32 - width) << 8 | (clamp)));             \
        return u.whole;                                                                                      \
    }
SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, 31)
SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, 0)
SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, 31)
SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, 31)

/* Memory */
#define memcpy                __builtin_memcpy
#define __threadfence()       __nvvm_membar_gl()
#define __threadfence_block() __nvvm_membar_cta()
#define ATOMIC(name, builtin)                                                                                \
    template <typename T> INLINE T name(T *p, T v)                                                           \
    {                                                                                                        \
        return builtin(p, v, __ATOMIC_RELAXED);                                                              \
    }
ATOMIC(atomicAdd, __atomic_fetch_add)
ATOMIC(atomicSub, __atomic_fetch_sub)
ATOMIC(atomicMin, __atomic_fetch_min)
ATOMIC(atomicMax, __atomic_fetch_max)
ATOMIC(atomicAnd, __atomic_fetch_and)
ATOMIC(atomicOr, __atomic_fetch_or)
ATOMIC(atomicXor, __atomic_fetch_xor)
ATOMIC(atomicExch, __atomic_exchange_n)
#define atomicInc(p, v) ((uint32_t)__nvvm_atom_inc_gen_ui(p, v))
#define atomicDec(p, v) ((uint32_t)__nvvm_atom_dec_gen_ui(p, v))

INLINE float atomicAdd(float *p, float v)
{
    return __nvvm_atom_add_gen_f(p, v);
}

template <typename T> INLINE T atomicCAS(T *p, T expected, T v)
{
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

/* Arithmetic */
#define INFINITY      __builtin_inff()
#define __popc(x)     ((uint32_t)__builtin_popcount(x))
#define __ffs(x)      ((uint32_t)__builtin_ffs((int)(x)))
#define fmaf(a, b, c) __nvvm_fma_rn_f(a, b, c)
#define fmaxf(a, b)   __nvvm_fmax_f(a, b)
#define float_bits(x) ((uint32_t)__nvvm_bitcast_f2i(x))
#define bits_float(x) __nvvm_bitcast_i2f((int)(x))

#endif
