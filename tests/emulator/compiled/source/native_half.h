/* CUDA's half and bfloat names for the host. A half is stored as its bits; every operation is exact, then rounded once. */
#ifndef NATIVE_HALF_H
#define NATIVE_HALF_H

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

enum { HALF = 10, BFLOAT = 7 }; /* fraction bits */

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
#define __hne(a, b)            (NUMBER(a) < NUMBER(b) || NUMBER(a) > NUMBER(b)) /* ordered: false if an operand is NaN */
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

/* A NaN that is converted to 32 bits becomes 0, unless it is an .f64. */
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
