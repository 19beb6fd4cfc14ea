/* Conversions of half-precision formats to float and back, and flushing, without branches so that loops vectorise. Rounds
   to nearest even. */
#ifndef EMU_HALF_H
#define EMU_HALF_H

#include "exec.h"

static inline float flush_float(float f)
{
    uint32_t u = bits_of_float(f);
    return float_of_bits(u & 0x7f800000 ? u : u & 0x80000000);
}

static inline uint16_t half_flush(uint16_t h)
{
    return h & 0x7c00 ? h : h & 0x8000;
}

static inline float half_to_float(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112f); /* also right for subnormals */
    uint32_t special = magnitude | 0x7f800000;
    uint32_t bits = (h & 0x7c00) == 0x7c00 ? special : scaled;
    return float_of_bits(bits | (uint32_t)(h & 0x8000) << 16);
}

static inline uint16_t float_to_half(float f)
{
    uint32_t u = bits_of_float(f), sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    /* adding 0.5 rounds the value to a multiple of 2^-24 */
    uint32_t subnormal = bits_of_float(float_of_bits(u) + 0.5f) - 0x3f000000;
    uint32_t normal = (u - (112u << 23) + 0xfff + (u >> 13 & 1)) >> 13;
    uint32_t h = u < 0x38800000 ? subnormal : u >= 0x477ff000 ? 0x7c00 : normal;
    return (uint16_t)(u > 0x7f800000 ? 0x7fff : h | sign);
}

static inline float bf16_to_float(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

static inline uint16_t float_to_bf16(float f)
{
    uint32_t u = bits_of_float(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

/* Rounds to odd: a later rounding to fewer bits is then correct. */
static inline float double_to_float_odd(double d)
{
    float f = (float)d;
    double back = (double)f, magnitude = d < 0 ? -d : d, back_magnitude = back < 0 ? -back : back;
    uint32_t u = bits_of_float(f), odd = (u - (back_magnitude > magnitude)) | 1;
    return back == d || d != d ? f : float_of_bits(odd);
}

#endif
