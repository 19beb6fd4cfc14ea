/* Approximate functions in double arithmetic, with only +, -, * and /: more accurate than the ISA requires, and the same
   bits on every host. Without branches, so that loops over lanes vectorise. */
#ifndef EMU_APPROXIMATE_H
#define EMU_APPROXIMATE_H

#include "exec.h"

#define NAN_BITS 0x7fffffff

static inline double power_of_two(int32_t n) /* n from -1022 to 1023 */
{
    return double_of_bits((uint64_t)(n + 1023) << 52);
}

/* 2^f for |f| <= 0.5: the Taylor series of exp(f ln 2); the first omitted term is below 2^-36. */
static inline double exp2_fraction(double f)
{
    double x = f * 0.69314718055994530942, p = 1.0 / 40320;
    p = p * x + 1.0 / 5040;
    p = p * x + 1.0 / 720;
    p = p * x + 1.0 / 120;
    p = p * x + 1.0 / 24;
    p = p * x + 1.0 / 6;
    p = p * x + 0.5;
    p = p * x + 1.0;
    return p * x + 1.0;
}

static inline double exp2_double(double x) /* 2^x for x from -400 to 400 */
{
    double n = (x + 0x1.8p52) - 0x1.8p52; /* rounds to the nearest integer */
    return exp2_fraction(x - n) * power_of_two((int32_t)n);
}

static inline float approximate_ex2(float a)
{
    double x = (double)a;
    x = x > 200 ? 200 : x < -200 ? -200 : x;
    x = a == a ? x : 0;
    float r = (float)exp2_double(x);
    return a == a ? r : float_of_bits(NAN_BITS);
}

/* log2 of a positive finite number: reduces it to m in [sqrt(1/2), sqrt(2)), then uses the series of atanh((m-1)/(m+1)). */
static inline float approximate_lg2(float a)
{
    uint64_t u = bits_of_double((double)a);
    int64_t shifted = (int64_t)(u - UINT64_C(0x3fe6a09e667f3bcd)) >> 52; /* bits of sqrt(1/2) */
    double m = double_of_bits(u - ((uint64_t)shifted << 52));
    double t = (m - 1) / (m + 1), s = t * t, p = 1.0 / 15;
    p = p * s + 1.0 / 13;
    p = p * s + 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s + 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s + 1.0 / 3;
    p = p * s + 1.0;
    float r = (float)((double)shifted + p * t * 2.8853900817779268147);
    r = a == 0 ? float_of_bits(0xff800000) : r;
    r = bits_of_float(a) == 0x7f800000 ? a : r;
    return a >= 0 ? r : float_of_bits(NAN_BITS);
}

/* sin(x + quarter * pi/2), for |x| up to 2^30. For larger values the ISA promises nothing, and the reduction is inexact. */
static inline float approximate_circular(float a, int32_t quarter)
{
    double x = (double)a;
    bool far = !(x < 0x1p30 && x > -0x1p30);
    x = far ? 0 : x;
    double n = (x * 0.63661977236758134308 + 0x1.8p52) - 0x1.8p52;
    double r =
        (x - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34; /* pi/2 in two parts; n * the first is exact */
    int32_t turn = ((int32_t)n + quarter) & 3;
    double s = r * r;
    double sine =
        r * (1 + s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 - s / 39916800)))));
    double cosine = 1 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 - s / 3628800))));
    double v = turn & 1 ? cosine : sine;
    float result = (float)(turn & 2 ? -v : v);
    bool finite = (bits_of_float(a) & 0x7f800000) != 0x7f800000;
    return finite ? result : float_of_bits(NAN_BITS);
}

static inline float approximate_sin(float a)
{
    return a == 0 ? a : approximate_circular(a, 0);
}

static inline float approximate_cos(float a)
{
    return approximate_circular(a, 1);
}

static inline float approximate_tanh(float a)
{
    double x = (double)a, magnitude = x < 0 ? -x : x;
    double clamped = magnitude < 20 ? magnitude : 20;
    double e = exp2_double(clamped * 2.8853900817779268147);
    double large = (e - 1) / (e + 1), s = x * x;
    double small = x * (1 - s * (1.0 / 3 - s * (2.0 / 15)));
    float r = (float)(magnitude < 0x1p-6 ? small : x < 0 ? -large : large);
    return a == a ? r : float_of_bits(NAN_BITS);
}

#endif
