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
void __nanosleep(unsigned nanoseconds);
void native_exchange(uint32_t mask, uint64_t value, uint64_t values[32]);
void native_shuffle(char kind, uint32_t mask, void *value, size_t bytes, uint32_t by, uint32_t width);
uint32_t __ballot_sync(uint32_t mask, int predicate);
uint32_t __match_any_sync(uint32_t mask, uint32_t value);
uint32_t __match_all_sync(uint32_t mask, uint32_t value, int *same);
uint32_t native_reduce(char kind, uint32_t mask, uint32_t value);
void __syncwarp(uint32_t mask);

#define __syncthreads_and(p)       (__syncthreads_count(!(p)) == 0)
#define __syncthreads_or(p)        (__syncthreads_count(!!(p)) != 0)
#define __any_sync(mask, p)        (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p)        (__ballot_sync(mask, p) == (mask))
#define __activemask()             (1u << (threadIdx.x & 31)) /* any set that contains the lane is allowed */
#define __reduce_add_sync(mask, v) native_reduce('+', mask, v)
#define __reduce_min_sync(mask, v) native_reduce('<', mask, v)
#define __reduce_max_sync(mask, v) native_reduce('>', mask, v)
#define __reduce_and_sync(mask, v) native_reduce('&', mask, v)
#define __reduce_or_sync(mask, v)  native_reduce('|', mask, v)
#define __reduce_xor_sync(mask, v) native_reduce('^', mask, v)
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

/* Integers (ISA 9.7.1, 9.7.8) */
#define __popc(x)   ((uint32_t)__builtin_popcount(x))
#define __popcll(x) ((uint32_t)__builtin_popcountll(x))
#define __clz(x)    ((x) ? (uint32_t)__builtin_clz(x) : 32u)
#define __clzll(x)  ((x) ? (uint32_t)__builtin_clzll(x) : 64u)
#define __ffs(x)    ((uint32_t)__builtin_ffs((int)(x)))
#define __ffsll(x)  ((uint32_t)__builtin_ffsll((s64)(x)))
uint32_t __brev(uint32_t x);
u64 __brevll(u64 x);
uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector);
uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by);
uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by);
uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t by);
uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t by);
int32_t dp4a_signed(uint32_t a, uint32_t b, uint32_t c);
uint32_t dp4a_unsigned(uint32_t a, uint32_t b, uint32_t c);
#define __mulhi(a, b)    ((int32_t)(((s64)(a) * (s64)(b)) >> 32))
#define __umulhi(a, b)   ((uint32_t)(((u64)(a) * (u64)(b)) >> 32))
#define __mul64hi(a, b)  ((s64)(((__int128)(a) * (__int128)(b)) >> 64))
#define __umul64hi(a, b) ((u64)(((unsigned __int128)(a) * (unsigned __int128)(b)) >> 64))
#define __mul24(a, b)                                                                                        \
    ((int32_t)(uint32_t)((s64)((int32_t)((uint32_t)(a) << 8) >> 8) * ((int32_t)((uint32_t)(b) << 8) >> 8)))
#define __umul24(a, b)  ((uint32_t)((u64)((a)&0xffffffu) * ((b)&0xffffffu)))
#define __usad(a, b, c) (((a) > (b) ? (a) - (b) : (b) - (a)) + (c))
#define __sad(a, b, c)                                                                                       \
    (((a) > (b) ? (uint32_t)(a) - (uint32_t)(b) : (uint32_t)(b) - (uint32_t)(a)) + (uint32_t)(c))

/* Floating point in every rounding, and conversions (ISA 9.7.3, 9.7.9.21) */
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

static inline u64 double_bits(double x)
{
    u64 u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double bits_double(u64 u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define FOR_ROUNDINGS(X) X(rn, FE_TONEAREST) X(rz, FE_TOWARDZERO) X(ru, FE_UPWARD) X(rd, FE_DOWNWARD)

#define DECLARE_ROUNDED(r, mode)                                                                             \
    float __fadd_##r(float a, float b);                                                                      \
    float __fsub_##r(float a, float b);                                                                      \
    float __fmul_##r(float a, float b);                                                                      \
    float __fdiv_##r(float a, float b);                                                                      \
    float __fmaf_##r(float a, float b, float c);                                                             \
    float __fsqrt_##r(float a);                                                                              \
    float __frcp_##r(float a);                                                                               \
    double __dadd_##r(double a, double b);                                                                   \
    double __dmul_##r(double a, double b);                                                                   \
    double __ddiv_##r(double a, double b);                                                                   \
    double __fma_##r(double a, double b, double c);                                                          \
    double __dsqrt_##r(double a);                                                                            \
    float __double2float_##r(double a);                                                                      \
    int32_t __float2int_##r(float a);                                                                        \
    uint32_t __float2uint_##r(float a);                                                                      \
    s64 __float2ll_##r(float a);                                                                             \
    u64 __float2ull_##r(float a);                                                                            \
    int32_t __double2int_##r(double a);                                                                      \
    uint32_t __double2uint_##r(double a);                                                                    \
    s64 __double2ll_##r(double a);                                                                           \
    u64 __double2ull_##r(double a);                                                                          \
    float __int2float_##r(int32_t a);                                                                        \
    float __uint2float_##r(uint32_t a);                                                                      \
    float __ll2float_##r(s64 a);                                                                             \
    float __ull2float_##r(u64 a);                                                                            \
    double __ll2double_##r(s64 a);                                                                           \
    double __ull2double_##r(u64 a);
FOR_ROUNDINGS(DECLARE_ROUNDED)

/* min and max: the number beside a NaN; -0 is below +0 */
float native_min(float a, float b);
float native_max(float a, float b);
double native_min_double(double a, double b);
double native_max_double(double a, double b);
#define fminf(a, b)    native_min(a, b)
#define fmaxf(a, b)    native_max(a, b)
#define fmin(a, b)     native_min_double(a, b)
#define fmax(a, b)     native_max_double(a, b)
#define __saturatef(x) native_min(native_max((x) == (x) ? (x) : 0.0f, 0.0f), 1.0f)

/* Correctly rounded to within a hair; what the bounds in functions.def are measured against */
#define approximate_ex2(x)   ((float)exp2((double)(x)))
#define approximate_lg2(x)   ((float)log2((double)(x)))
#define approximate_sin(x)   ((float)sin((double)(x)))
#define approximate_cos(x)   ((float)cos((double)(x)))
#define approximate_tanh(x)  ((float)tanh((double)(x)))
#define approximate_rcp(x)   (1.0f / (x))
#define approximate_rsqrt(x) ((float)(1.0 / sqrt((double)(x))))
#define approximate_sqrt(x)  sqrtf(x)

/* The C library's functions by a wider one: off by little more than half a unit in the last place */
#define expf(x)      ((float)exp((double)(x)))
#define logf(x)      ((float)log((double)(x)))
#define sinf(x)      ((float)sin((double)(x)))
#define cosf(x)      ((float)cos((double)(x)))
#define tanhf(x)     ((float)tanh((double)(x)))
#define cbrtf(x)     ((float)cbrt((double)(x)))
#define erff(x)      ((float)erf((double)(x)))
#define powf(x, y)   ((float)pow((double)(x), (double)(y)))
#define hypotf(x, y) ((float)hypot((double)(x), (double)(y)))
#define exp(x)       ((double)expl((long double)(x)))
#define log(x)       ((double)logl((long double)(x)))
#define sin(x)       ((double)sinl((long double)(x)))

/* Halves and bfloats (ISA 9.7.4): bits; every operation is done without error, then rounded once */
typedef struct half {
    uint16_t bits;
} half;

typedef struct half2 {
    half x, y;
} half2;

typedef struct bfloat {
    uint16_t bits;
} bfloat;

typedef struct bfloat2 {
    bfloat x, y;
} bfloat2;

enum { HALF = 10, BFLOAT = 7 }; /* bits of fraction */

double native_widen(int format, uint16_t bits);
uint16_t native_narrow(int format, double x); /* in the current rounding mode */
uint16_t native_fused(int format, double a, double b, double c);
uint16_t native_extreme(int format, uint16_t a, uint16_t b, bool largest);

half __float2half_rn(float x);
half __float2half_rz(float x);
half __float2half_ru(float x);
half __float2half_rd(float x);

static inline double number_of_half(half a)
{
    return native_widen(HALF, a.bits);
}

static inline double number_of_bfloat(bfloat a)
{
    return native_widen(BFLOAT, a.bits);
}

#define NUMBER(a)              _Generic((a), half : number_of_half, bfloat : number_of_bfloat)(a)
#define FORMAT(a)              _Generic((a), half : HALF, bfloat : BFLOAT)
#define LIKE(a, value)         ((__typeof__(a)){value})
#define __hfma(a, b, c)        LIKE(a, native_fused(FORMAT(a), NUMBER(a), NUMBER(b), NUMBER(c)))
#define __hadd(a, b)           LIKE(a, native_fused(FORMAT(a), NUMBER(a), 1.0, NUMBER(b)))
#define __hsub(a, b)           LIKE(a, native_fused(FORMAT(a), NUMBER(b), -1.0, NUMBER(a)))
#define __hmul(a, b)           LIKE(a, native_fused(FORMAT(a), NUMBER(a), NUMBER(b), -0.0))
#define __hmin(a, b)           LIKE(a, native_extreme(FORMAT(a), (a).bits, (b).bits, false))
#define __hmax(a, b)           LIKE(a, native_extreme(FORMAT(a), (a).bits, (b).bits, true))
#define __hlt(a, b)            (NUMBER(a) < NUMBER(b))
#define __hle(a, b)            (NUMBER(a) <= NUMBER(b))
#define __heq(a, b)            (NUMBER(a) == NUMBER(b))
#define __hne(a, b)            (NUMBER(a) < NUMBER(b) || NUMBER(a) > NUMBER(b)) /* ordered: false beside a NaN */
#define __hisnan(a)            (NUMBER(a) != NUMBER(a))
#define __half2float(a)        ((float)NUMBER(a))
#define __bfloat162float(a)    ((float)NUMBER(a))
#define __int2half_rn(x)       ((half){native_narrow(HALF, (double)(int32_t)(x))})
#define __uint2half_rn(x)      ((half){native_narrow(HALF, (double)(uint32_t)(x))})
#define __half2int_rn(a)       __double2int_rn(no_nan(NUMBER(a)))
#define __half2int_rz(a)       __double2int_rz(no_nan(NUMBER(a)))
#define __half2uint_rd(a)      __double2uint_rd(no_nan(NUMBER(a)))
#define __half2ll_ru(a)        __double2ll_ru(NUMBER(a))
#define __float2bfloat16_rn(x) ((bfloat){native_narrow(BFLOAT, (double)(x))})

/* To 32 bits a NaN that is not of .f64 becomes 0. */
static inline double no_nan(double x)
{
    return x == x ? x : 0.0;
}

#define EACH2(f, a, b)   ((__typeof__((a))){f((a).x, (b).x), f((a).y, (b).y)})
#define __hadd2(a, b)    EACH2(__hadd, a, b)
#define __hsub2(a, b)    EACH2(__hsub, a, b)
#define __hmul2(a, b)    EACH2(__hmul, a, b)
#define __hmin2(a, b)    EACH2(__hmin, a, b)
#define __hmax2(a, b)    EACH2(__hmax, a, b)
#define __hfma2(a, b, c) ((__typeof__((a))){__hfma((a).x, (b).x, (c).x), __hfma((a).y, (b).y, (c).y)})
#define swapped(a)       ((__typeof__((a))){(a).y, (a).x})

#endif
