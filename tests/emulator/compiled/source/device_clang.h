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
#define __reduce_add_sync(m, v)   ((uint32_t)__nvvm_redux_sync_add((int)(v), m))
#define __reduce_min_sync(m, v)   ((uint32_t)__nvvm_redux_sync_umin((int)(v), m))
#define __reduce_max_sync(m, v)   ((uint32_t)__nvvm_redux_sync_umax((int)(v), m))
#define __reduce_and_sync(m, v)   ((uint32_t)__nvvm_redux_sync_and((int)(v), m))
#define __reduce_or_sync(m, v)    ((uint32_t)__nvvm_redux_sync_or((int)(v), m))
#define __reduce_xor_sync(m, v)   ((uint32_t)__nvvm_redux_sync_xor((int)(v), m))

INLINE uint32_t __activemask()
{
    uint32_t mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

INLINE void __nanosleep(uint32_t t)
{
    asm volatile("nanosleep.u32 %0;" ::"r"(t));
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

/* Integers */
#define __popc(x)            ((uint32_t)__builtin_popcount(x))
#define __popcll(x)          ((uint32_t)__builtin_popcountll(x))
#define __ffs(x)             ((uint32_t)__builtin_ffs((int)(x)))
#define __ffsll(x)           ((uint32_t)__builtin_ffsll(x))
#define __brev(x)            __builtin_bitreverse32(x)
#define __brevll(x)          ((u64)__builtin_bitreverse64(x))
#define __byte_perm(a, b, s) ((uint32_t)__nvvm_prmt((int)(a), (int)(b), (int)(s)))
#define __mulhi(a, b)        __nvvm_mulhi_i(a, b)
#define __umulhi(a, b)       __nvvm_mulhi_ui(a, b)
#define __mul64hi(a, b)      __nvvm_mulhi_ll(a, b)
#define __umul64hi(a, b)     __nvvm_mulhi_ull(a, b)
#define __mul24(a, b)        __nvvm_mul24_i(a, b)
#define __umul24(a, b)       __nvvm_mul24_ui(a, b)

#define INSTRUCTION3(name, T, text)                                                                          \
    INLINE T name(uint32_t a, uint32_t b, uint32_t c)                                                        \
    {                                                                                                        \
        T d;                                                                                                 \
        asm(text " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));                                     \
        return d;                                                                                            \
    }
INSTRUCTION3(__funnelshift_l, uint32_t, "shf.l.wrap.b32")
INSTRUCTION3(__funnelshift_r, uint32_t, "shf.r.wrap.b32")
INSTRUCTION3(__funnelshift_lc, uint32_t, "shf.l.clamp.b32")
INSTRUCTION3(__funnelshift_rc, uint32_t, "shf.r.clamp.b32")
INSTRUCTION3(dp4a_signed, int32_t, "dp4a.s32.s32")
INSTRUCTION3(dp4a_unsigned, uint32_t, "dp4a.u32.u32")
INSTRUCTION3(__sad, uint32_t, "sad.s32")
INSTRUCTION3(__usad, uint32_t, "sad.u32")

INLINE uint32_t __clz(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : 32;
}

INLINE uint32_t __clzll(s64 x)
{
    return x ? (uint32_t)__builtin_clzll((u64)x) : 64;
}

/* Floating point */
#define INFINITY             __builtin_inff()
#define fmaf(a, b, c)        __nvvm_fma_rn_f(a, b, c)
#define fma(a, b, c)         __nvvm_fma_rn_d(a, b, c)
#define fminf(a, b)          __nvvm_fmin_f(a, b)
#define fmaxf(a, b)          __nvvm_fmax_f(a, b)
#define fmin(a, b)           __nvvm_fmin_d(a, b)
#define fmax(a, b)           __nvvm_fmax_d(a, b)
#define __saturatef(x)       __nvvm_saturate_f(x)
#define sqrtf(x)             __nvvm_sqrt_rn_f(x)
#define sqrt(x)              __nvvm_sqrt_rn_d(x)
#define fabsf(x)             __builtin_fabsf(x)
#define copysignf(x, y)      __builtin_copysignf(x, y)
#define floorf(x)            __nvvm_floor_f(x)
#define ceilf(x)             __nvvm_ceil_f(x)
#define truncf(x)            __nvvm_trunc_f(x)
#define rintf(x)             __builtin_rintf(x)
#define floor(x)             __nvvm_floor_d(x)
#define ceil(x)              __nvvm_ceil_d(x)
#define trunc(x)             __nvvm_trunc_d(x)
#define rint(x)              __builtin_rint(x)
#define float_bits(x)        ((uint32_t)__nvvm_bitcast_f2i(x))
#define bits_float(x)        __nvvm_bitcast_i2f((int)(x))
#define bits_double(x)       __nvvm_bitcast_ll2d((s64)(x))
#define approximate_ex2(x)   __nvvm_ex2_approx_f(x)
#define approximate_lg2(x)   __nvvm_lg2_approx_f(x)
#define approximate_sin(x)   __nvvm_sin_approx_f(x)
#define approximate_cos(x)   __nvvm_cos_approx_f(x)
#define approximate_rcp(x)   approximate_rcp_of(x)
#define approximate_rsqrt(x) __nvvm_rsqrt_approx_f(x)
#define approximate_sqrt(x)  __nvvm_sqrt_approx_f(x)

#define APPROXIMATE(name, instruction)                                                                       \
    INLINE float name(float x)                                                                               \
    {                                                                                                        \
        float y;                                                                                             \
        asm(instruction " %0, %1;" : "=f"(y) : "f"(x));                                                      \
        return y;                                                                                            \
    }
APPROXIMATE(approximate_tanh, "tanh.approx.f32")
APPROXIMATE(approximate_rcp_of, "rcp.approx.f32")

#define NAMED1(D, name, S, builtin)                                                                          \
    INLINE D name(S a)                                                                                       \
    {                                                                                                        \
        return builtin(a);                                                                                   \
    }
#define NAMED2(T, name, builtin)                                                                             \
    INLINE T name(T a, T b)                                                                                  \
    {                                                                                                        \
        return builtin(a, b);                                                                                \
    }
#define NAMED3(T, name, builtin)                                                                             \
    INLINE T name(T a, T b, T c)                                                                             \
    {                                                                                                        \
        return builtin(a, b, c);                                                                             \
    }
#define ROUNDING(r, x)                                                                                       \
    NAMED2(float, __fadd_##r, __nvvm_add_##x##_f)                                                            \
    NAMED2(float, __fmul_##r, __nvvm_mul_##x##_f)                                                            \
    NAMED2(float, __fdiv_##r, __nvvm_div_##x##_f)                                                            \
    NAMED3(float, __fmaf_##r, __nvvm_fma_##x##_f)                                                            \
    NAMED1(float, __fsqrt_##r, float, __nvvm_sqrt_##x##_f)                                                   \
    NAMED1(float, __frcp_##r, float, __nvvm_rcp_##x##_f)                                                     \
    NAMED2(double, __dadd_##r, __nvvm_add_##x##_d)                                                           \
    NAMED2(double, __dmul_##r, __nvvm_mul_##x##_d)                                                           \
    NAMED2(double, __ddiv_##r, __nvvm_div_##x##_d)                                                           \
    NAMED3(double, __fma_##r, __nvvm_fma_##x##_d)                                                            \
    NAMED1(double, __dsqrt_##r, double, __nvvm_sqrt_##x##_d)                                                 \
    NAMED1(float, __double2float_##r, double, __nvvm_d2f_##x)                                                \
    NAMED1(int32_t, __float2int_##r, float, __nvvm_f2i_##x)                                                  \
    NAMED1(uint32_t, __float2uint_##r, float, __nvvm_f2ui_##x)                                               \
    NAMED1(s64, __float2ll_##r, float, __nvvm_f2ll_##x)                                                      \
    NAMED1(u64, __float2ull_##r, float, __nvvm_f2ull_##x)                                                    \
    NAMED1(int32_t, __double2int_##r, double, __nvvm_d2i_##x)                                                \
    NAMED1(uint32_t, __double2uint_##r, double, __nvvm_d2ui_##x)                                             \
    NAMED1(s64, __double2ll_##r, double, __nvvm_d2ll_##x)                                                    \
    NAMED1(u64, __double2ull_##r, double, __nvvm_d2ull_##x)
ROUNDING(rn, rn)
ROUNDING(rz, rz)
ROUNDING(ru, rp)
ROUNDING(rd, rm)

/* clang 14 makes the nearest number of __nvvm_ll2d_rz and its like: it takes them for plain casts. */
#define FROM_INTEGER(name, D, d, S, s, instruction)                                                          \
    INLINE D name(S a)                                                                                       \
    {                                                                                                        \
        D r;                                                                                                 \
        asm(instruction " %0, %1;" : "=" d(r) : s(a));                                                       \
        return r;                                                                                            \
    }
#define FROM_INTEGERS(r, x)                                                                                  \
    FROM_INTEGER(__int2float_##r, float, "f", int32_t, "r", "cvt." #x ".f32.s32")                            \
    FROM_INTEGER(__uint2float_##r, float, "f", uint32_t, "r", "cvt." #x ".f32.u32")                          \
    FROM_INTEGER(__ll2float_##r, float, "f", s64, "l", "cvt." #x ".f32.s64")                                 \
    FROM_INTEGER(__ull2float_##r, float, "f", u64, "l", "cvt." #x ".f32.u64")                                \
    FROM_INTEGER(__ll2double_##r, double, "d", s64, "l", "cvt." #x ".f64.s64")                               \
    FROM_INTEGER(__ull2double_##r, double, "d", u64, "l", "cvt." #x ".f64.u64")
FROM_INTEGERS(rn, rn)
FROM_INTEGERS(rz, rz)
FROM_INTEGERS(ru, rp)
FROM_INTEGERS(rd, rm)

/* Halves */
typedef __fp16 half;
#define __hadd(a, b)      ((half)((a) + (b)))
#define __hsub(a, b)      ((half)((a) - (b)))
#define __hmul(a, b)      ((half)((a) * (b)))
#define __hlt(a, b)       ((a) < (b))
#define __hle(a, b)       ((a) <= (b))
#define __heq(a, b)       ((a) == (b))
#define __hne(a, b)       ((a) < (b) || (a) > (b))
#define __hisnan(a)       ((a) != (a))
#define __half2float(a)   ((float)(a))
#define __int2half_rn(x)  ((half)(int32_t)(x))
#define __uint2half_rn(x) ((half)(uint32_t)(x))

INLINE uint16_t half_bits(half h)
{
    return __builtin_bit_cast(uint16_t, h);
}

INLINE half bits_half(uint16_t bits)
{
    return __builtin_bit_cast(half, bits);
}

#define HALF_OPERATION(name, instruction)                                                                    \
    INLINE half name(half a, half b)                                                                         \
    {                                                                                                        \
        uint16_t r;                                                                                          \
        asm(instruction " %0, %1, %2;" : "=h"(r) : "h"(half_bits(a)), "h"(half_bits(b)));                    \
        return bits_half(r);                                                                                 \
    }
#define HALF_FROM(name, instruction)                                                                         \
    INLINE half name(float a)                                                                                \
    {                                                                                                        \
        uint16_t r;                                                                                          \
        asm(instruction " %0, %1;" : "=h"(r) : "f"(a));                                                      \
        return bits_half(r);                                                                                 \
    }
#define HALF_TO(name, T, constraint, instruction)                                                            \
    INLINE T name(half a)                                                                                    \
    {                                                                                                        \
        T r;                                                                                                 \
        asm(instruction " %0, %1;" : "=" constraint(r) : "h"(half_bits(a)));                                 \
        return r;                                                                                            \
    }
HALF_OPERATION(__hmin, "min.f16")
HALF_OPERATION(__hmax, "max.f16")
HALF_FROM(__float2half_rn, "cvt.rn.f16.f32")
HALF_FROM(__float2half_rz, "cvt.rz.f16.f32")
HALF_FROM(__float2half_ru, "cvt.rp.f16.f32")
HALF_FROM(__float2half_rd, "cvt.rm.f16.f32")
HALF_TO(__half2int_rn, int32_t, "r", "cvt.rni.s32.f16")
HALF_TO(__half2int_rz, int32_t, "r", "cvt.rzi.s32.f16")
HALF_TO(__half2uint_rd, uint32_t, "r", "cvt.rmi.u32.f16")
HALF_TO(__half2ll_ru, s64, "l", "cvt.rpi.s64.f16")

INLINE half __hfma(half a, half b, half c)
{
    uint16_t r;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r) : "h"(half_bits(a)), "h"(half_bits(b)), "h"(half_bits(c)));
    return bits_half(r);
}

#endif
