/* CUDA's names for the host: the functions run as plain C, with a coroutine for each thread of a block, one block after
   another. Written from the PTX ISA's text; shares no code with the emulated driver that it tests. */
#ifndef NATIVE_H
#define NATIVE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct native_dim {
    unsigned x, y, z;
} native_dim;

typedef struct native_arguments {
    void *out;
    const void *a, *b, *with;
    uint32_t n;
} native_arguments;

typedef void native_kernel(const native_arguments *arguments);

/* Runs the whole grid. Ends the process if no thread can continue. */
void native_run(native_kernel *kernel, const native_arguments *arguments, native_dim grid, native_dim block);

extern native_dim threadIdx, blockIdx, blockDim, gridDim;
extern _Alignas(16) char native_shared[49152];

#define DEVICE                  static
#define NOINLINE                __attribute__((noinline))
#define CONSTANT                static const
#define __shared__              static
#define DYNAMIC_SHARED(T, name) T *name = (T *)(void *)native_shared
#define KERNEL(name, O, A, B)                                                                                \
    static void name##_body(O *out, const A *a, const B *b, uint32_t n);                                     \
    void name(const native_arguments *g);                                                                    \
    void name(const native_arguments *g)                                                                     \
    {                                                                                                        \
        name##_body(g->out, g->a, g->b, g->n);                                                               \
    }                                                                                                        \
    static void name##_body(O *out, const A *a, const B *b, uint32_t n)
#define KERNEL_WITH(name, O, A, B, S)                                                                        \
    static void name##_body(O *out, const A *a, const B *b, uint32_t n, S with);                             \
    void name(const native_arguments *g);                                                                    \
    void name(const native_arguments *g)                                                                     \
    {                                                                                                        \
        name##_body(g->out, g->a, g->b, g->n, *(const S *)g->with);                                          \
    }                                                                                                        \
    static void name##_body(O *out, const A *a, const B *b, uint32_t n, S with)

/* Waiting for others */
void __syncthreads(void);
int __syncthreads_count(int predicate);
void native_exchange(uint32_t mask, uint64_t value, uint64_t values[32]);
void native_shuffle(char kind, uint32_t mask, void *value, size_t bytes, uint32_t by, uint32_t width);
uint32_t __ballot_sync(uint32_t mask, int predicate);
uint32_t __match_any_sync(uint32_t mask, uint32_t value);
uint32_t __match_all_sync(uint32_t mask, uint32_t value, int *same);
void __syncwarp(uint32_t mask);

#define __syncthreads_and(p) (__syncthreads_count(!(p)) == 0)
#define __syncthreads_or(p)  (__syncthreads_count(!!(p)) != 0)
#define __any_sync(mask, p)  (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p)  (__ballot_sync(mask, p) == (mask))
#define __activemask()       (1u << (threadIdx.x & 31)) /* any set that contains the lane is allowed */
#define NATIVE_SHUFFLE(kind, mask, v, by, width)                                                             \
    ({                                                                                                       \
        __typeof__((v) + 0) v_ = (v);                                                                        \
        native_shuffle(kind, mask, &v_, sizeof v_, (uint32_t)(by), width);                                   \
        v_;                                                                                                  \
    })
#define __shfl_sync(mask, v, lane, width)    NATIVE_SHUFFLE('i', mask, v, lane, width)
#define __shfl_up_sync(mask, v, by, width)   NATIVE_SHUFFLE('u', mask, v, by, width)
#define __shfl_down_sync(mask, v, by, width) NATIVE_SHUFFLE('d', mask, v, by, width)
#define __shfl_xor_sync(mask, v, by, width)  NATIVE_SHUFFLE('x', mask, v, by, width)

/* Memory: one coroutine runs at a time, and switches only where it waits */
#define __threadfence()
#define __threadfence_block()
#define NATIVE_ATOMIC(p, v, next)                                                                            \
    ({                                                                                                       \
        __typeof__(p) at_ = (p);                                                                             \
        __typeof__(*at_) old = *at_, value = (v);                                                            \
        (void)value;                                                                                         \
        *at_ = next;                                                                                         \
        old;                                                                                                 \
    })
#define atomicAdd(p, v)  NATIVE_ATOMIC(p, v, old + value)
#define atomicSub(p, v)  NATIVE_ATOMIC(p, v, old - value)
#define atomicMin(p, v)  NATIVE_ATOMIC(p, v, old < value ? old : value)
#define atomicMax(p, v)  NATIVE_ATOMIC(p, v, old > value ? old : value)
#define atomicAnd(p, v)  NATIVE_ATOMIC(p, v, old &value)
#define atomicOr(p, v)   NATIVE_ATOMIC(p, v, old | value)
#define atomicXor(p, v)  NATIVE_ATOMIC(p, v, old ^ value)
#define atomicExch(p, v) NATIVE_ATOMIC(p, v, value)
#define atomicInc(p, v)  NATIVE_ATOMIC(p, v, old >= value ? 0 : old + 1)
#define atomicDec(p, v)  NATIVE_ATOMIC(p, v, old == 0 || old > value ? value : old - 1)
#define atomicCAS(p, expected, v)                                                                            \
    ({                                                                                                       \
        __typeof__(*(p)) expected_ = (expected);                                                             \
        NATIVE_ATOMIC(p, v, old == expected_ ? value : old);                                                 \
    })

/* Arithmetic */
#define __popc(x) ((uint32_t)__builtin_popcount(x))
#define __ffs(x)  ((uint32_t)__builtin_ffs((int)(x)))

static inline uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
