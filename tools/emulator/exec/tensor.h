/* The arithmetic of tensor cores: the sums of mma.sync and wgmma. */
#ifndef EMU_TENSOR_H
#define EMU_TENSOR_H

#include "exec.h"

#include "half.h"
#include "mma.h"

#include <math.h>

/* ---- sums of products in floating point ---------------------------------------------------------------------------- */

/* What a tensor core does to a row of A, a column of B and an element of C in floating point.

   Published measurements (arXiv 2511.10909 and its simulator, MMA-Sim) agree on one scheme. The products are exact and not
   normalised; they and C are aligned to the largest exponent among them, cut after a fixed number of fractional bits, and
   added exactly; the sum is cut to f32 or rounded to the nearest f16. What differs is how many terms one such step takes:

     device       fractional bits   terms per step                            f32 result
     7.5          24                8 (f16)                                   cut to 23 fractional bits
     8.0 to 8.9   24                8 (f16, bf16), 4 (tf32)                   the same
     8.9, fp8     13                16                                        cut to 13 fractional bits
     9.0 on       25                all                                       cut to 23 fractional bits
     9.0 wgmma, fp8 13             all                                       cut to 13 fractional bits

   A sum of zero is +0. Subnormals take part. Nothing is published about block-scaled products: they are assumed to be added in
   the same way after the scales have multiplied the elements. */
enum { TENSOR_MOST_TERMS = 64, TENSOR_EXPONENT_OF_ZERO = -1000 };

typedef struct tensor_model {
    uint8_t fraction_bits;
    uint8_t terms;       /* per step */
    uint8_t result_bits; /* fractional bits of an f32 result */
    bool unpacks;        /* unpacks fp8 to f16 */
} tensor_model;

/* A row of A or a column of B. Exponents are those that the format stores: for a subnormal that of the smallest normal
   number, for zero one far below all others. */
typedef struct tensor_vector {
    double value[TENSOR_MOST_TERMS];
    int32_t exponent[TENSOR_MOST_TERMS];
    bool is_special; /* holds an infinity or NaN */
} tensor_vector;

typedef struct tensor_format {
    uint8_t exponent_bits, fraction_bits;
    uint8_t shift; /* lowest bit in its container */
    bool has_infinity, has_nan;
} tensor_format;

static const tensor_format tensor_formats[] = {
    [EMU_EL_F16] = {5, 10, 0, true, true},   [EMU_EL_BF16] = {8, 7, 0, true, true},
    [EMU_EL_TF32] = {8, 10, 13, true, true}, /* the 13 low bits are ignored */
    [EMU_EL_E4M3] = {4, 3, 0, false, true},  [EMU_EL_E5M2] = {5, 2, 0, true, true},
    [EMU_EL_E3M2] = {3, 2, 0, false, false}, [EMU_EL_E2M3] = {2, 3, 0, false, false},
    [EMU_EL_E2M1] = {2, 1, 2, false, false}, [EMU_EL_E2M1_PACKED] = {2, 1, 0, false, false},
};

static inline double tensor_power(int exponent)
{
    return double_of_bits((uint64_t)(exponent + 1023) << 52);
}

static inline void tensor_set(tensor_vector *v, unsigned n, unsigned element, uint32_t bits)
{
    tensor_format f = tensor_formats[element];
    bits >>= f.shift;
    int top = (1 << f.exponent_bits) - 1, bias = top >> 1;
    int fraction = (int)(bits & ((1u << f.fraction_bits) - 1)), e = (int)(bits >> f.fraction_bits) & top;
    bool is_nan =
        f.has_nan && e == top && fraction && (f.has_infinity || fraction == (1 << f.fraction_bits) - 1);
    bool is_infinite = f.has_infinity && e == top && !fraction;
    int magnitude = e ? fraction | 1 << f.fraction_bits : fraction, exponent = (e ? e : 1) - bias;
    double value = magnitude * tensor_power(exponent - f.fraction_bits);
    v->exponent[n] = magnitude ? exponent : TENSOR_EXPONENT_OF_ZERO;
    if (is_nan || is_infinite) {
        value = is_nan ? NAN : INFINITY;
        v->is_special = true;
    }
    v->value[n] = bits >> (f.exponent_bits + f.fraction_bits) & 1 ? -value : value;
}

/* Multiplies elements `from` to `to` by a scale: its exponent, biased by 127 (.ue8m0), or a number of four exponent and three
   fraction bits (.ue4m3), which has a sign bit of 0. An element that such a number multiplies has one more bit before the point. */
static inline void tensor_scale(tensor_vector *v, unsigned from, unsigned to, bool is_ue4m3, uint32_t bits)
{
    int e = is_ue4m3 ? (int)(bits >> 3) : (int)bits, fraction = is_ue4m3 ? (int)(bits & 7) : 0;
    int exponent = is_ue4m3 ? (e ? e : 1) - 7 : e - 127;
    bool is_nan = is_ue4m3 ? bits >= 0x7f : bits == 0xff;
    double scale = is_ue4m3 ? ((e ? 8 : 0) + fraction) * tensor_power(exponent - 3) : tensor_power(exponent);
    v->is_special |= is_nan;
    for (unsigned n = from; n < to; n++) {
        v->value[n] = is_nan ? (double)NAN : v->value[n] * scale;
        v->exponent[n] = v->value[n] != 0 ? v->exponent[n] + exponent + is_ue4m3 : TENSOR_EXPONENT_OF_ZERO;
    }
}

/* sum / 2^25 * 2^exponent, truncated to f32. The sum has fewer than 53 bits. */
static inline float tensor_cut(int64_t sum, int exponent, unsigned result_bits)
{
    uint64_t bits = bits_of_double((double)sum * tensor_power(exponent - 25));
    int e = (int)(bits >> 52 & 2047) - 1023;
    int kept = e < -126 ? (int)result_bits + e + 126 : (int)result_bits;
    if (!sum || kept < 0)
        return 0;
    if (e > 127)
        return sum < 0 ? -INFINITY : INFINITY;
    return (float)double_of_bits(bits >> (52 - kept) << (52 - kept));
}

/* The same, rounded to the nearest f16. */
static inline uint16_t tensor_round_half(int64_t sum, int exponent)
{
    double d = (double)sum * tensor_power(exponent - 25);
    uint16_t h = float_to_half(double_to_float_odd(d));
    return h & 0x7fff ? h : 0;
}

static inline double tensor_special(const tensor_vector *a, const tensor_vector *b, unsigned from,
                                    unsigned to, float c)
{
    double sum = (double)c; /* finite if all terms are: doubles do not overflow here */
    for (unsigned n = from; n < to; n++)
        sum += a->value[n] * b->value[n];
    return sum;
}

/* Adds `count` terms from `from` on. `c` and the result have f32 precision, or f16 with is_half. Inline, for loops with a
   constant count. */
__attribute__((always_inline)) static inline float tensor_step(tensor_model model, const tensor_vector *a,
                                                               const tensor_vector *b, unsigned from,
                                                               unsigned count, float c, bool is_half)
{
    uint32_t bits = bits_of_float(c), biased = bits >> 23 & 255;
    if (a->is_special || b->is_special || biased == 255) {
        double special = tensor_special(a, b, from, from + count, c);
        if (special != special)
            return float_of_bits(0x7fffffff);
        if (special - special != 0)
            return (float)special;
    }
    int largest = biased ? (int)biased - 127 : -126;
    if (is_half && biased && largest < -14) /* an f16 subnormal */
        largest = -14;
    if (!(bits & 0x7fffffff))
        largest = -126;
    for (unsigned n = 0; n < count; n++) {
        int exponent = a->exponent[from + n] + b->exponent[from + n];
        largest = exponent > largest ? exponent : largest;
    }
    int cut = 25 - model.fraction_bits;
    double unit = tensor_power(model.fraction_bits - largest);
    int64_t sum = (int64_t)((double)c * unit);
    for (unsigned n = 0; n < count; n += 8) {
        int32_t part = 0;
        for (unsigned i = 0; i < 8 && n + i < count; i++) /* each term is below 2^27 */
            part += (int32_t)(a->value[from + n + i] * b->value[from + n + i] * unit);
        sum += part;
    }
    sum *= INT64_C(1) << cut;
    if (is_half) {
        uint16_t h = tensor_round_half(sum, largest);
        return half_to_float(h);
    }
    return tensor_cut(sum, largest, model.result_bits);
}

/* Returns the bits of an element of D. */
static inline uint32_t tensor_dot(tensor_model model, const tensor_vector *a, const tensor_vector *b,
                                  unsigned k, float c, bool is_half)
{
    float sum = c;
    if (model.unpacks) {
        tensor_vector low[2], high[2];
        const tensor_vector *of[2] = {a, b};
        for (unsigned v = 0; v < 2; v++) {
            low[v].is_special = high[v].is_special = of[v]->is_special;
            for (unsigned n = 0; n < k; n++) {
                tensor_vector *to = n & 2 ? &high[v] : &low[v];
                unsigned at = n / 4 * 2 + (n & 1);
                to->exponent[at] = of[v]->exponent[n];
                to->value[at] = of[v]->value[n];
            }
        }
        sum = tensor_step(model, &low[0], &low[1], 0, k / 2, 0, is_half);
        sum = tensor_step(model, &high[0], &high[1], 0, k / 2, sum, is_half) + c;
        if (sum != sum)
            sum = float_of_bits(0x7fffffff);
    } else {
        unsigned step = model.terms < k ? model.terms : k;
        for (unsigned n = 0; n < k; n += step)
            sum = step == 4    ? tensor_step(model, a, b, n, 4, sum, is_half)
                  : step == 8  ? tensor_step(model, a, b, n, 8, sum, is_half)
                  : step == 16 ? tensor_step(model, a, b, n, 16, sum, is_half)
                               : tensor_step(model, a, b, n, step, sum, is_half);
    }
    return is_half ? float_to_half(sum) : bits_of_float(sum);
}

/* ---- a whole tile ------------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 16, COLUMNS = 8, MOST_STEP = 16 /* MOST_STEP: elements of f16 and bf16 along the sum */ };

/* A fast path for products of f16 or bf16 onto f32: computes a row of D at once, in 32-bit integers. Same results as
   tensor_step, if all values are finite and no sum is too small. */
typedef struct tile_numbers {
    int32_t exponent[MOST_ROWS * MOST_STEP], sign[MOST_ROWS * MOST_STEP]; /* sign: 0 or -1 */
    uint32_t magnitude[MOST_ROWS * MOST_STEP];
} tile_numbers;

typedef struct tile {
    tile_numbers a, b; /* A by row and k, B by k and column */
    float d[MOST_ROWS][COLUMNS];
    bool repeats[MOST_ROWS]; /* the rows of A and C equal the preceding ones, so D's row does too */
} tile;

/* Returns false if an element is infinite or NaN. */
__attribute__((always_inline)) static inline bool read_numbers(const uint16_t *bits, unsigned count,
                                                               bool is_half, unsigned up, tile_numbers *to)
{
    const uint32_t fraction = is_half ? 10 : 7, top = is_half ? 31 : 255;
    uint32_t is_special = 0;
    for (unsigned n = 0; n < count; n++) {
        uint32_t magnitude = bits[n] & 0x7fffu, e = magnitude >> fraction, is_normal = e != 0;
        int32_t exponent = (int32_t)(e + !is_normal) - (int32_t)(top >> 1);
        to->exponent[n] = magnitude ? exponent : TENSOR_EXPONENT_OF_ZERO;
        to->magnitude[n] = ((magnitude & ((1u << fraction) - 1)) | is_normal << fraction) << up;
        to->sign[n] = -(int32_t)(bits[n] >> 15);
        is_special |= e == top;
    }
    return !is_special;
}

/* Returns false if an operand is infinite or NaN. */
static inline bool tile_fill(tile *t, tensor_model model, bool is_half, uint16_t a[MOST_ROWS][MOST_STEP],
                             uint16_t b[MOST_STEP][COLUMNS], uint32_t c[MOST_ROWS][COLUMNS])
{
    enum { OF_A = MOST_ROWS * MOST_STEP, OF_B = MOST_STEP * COLUMNS };
    memcpy(t->d, c, sizeof t->d);
    t->repeats[0] = false;
    for (unsigned row = 1; row < MOST_ROWS; row++)
        t->repeats[row] =
            memcmp(a[row], a[row - 1], sizeof a[0]) == 0 && memcmp(c[row], c[row - 1], sizeof c[0]) == 0;
    if (is_half)
        return read_numbers(a[0], OF_A, true, model.fraction_bits - 20u, &t->a) &&
               read_numbers(b[0], OF_B, true, 0, &t->b);
    return read_numbers(a[0], OF_A, false, model.fraction_bits - 14u, &t->a) &&
           read_numbers(b[0], OF_B, false, 0, &t->b);
}

/* A row of D. An explicit vector type, since the compiler would vectorise along the sum. */
typedef int32_t integers __attribute__((vector_size(4 * COLUMNS)));
typedef uint32_t naturals __attribute__((vector_size(4 * COLUMNS)));

static inline void load(void *to, const void *from)
{
    memcpy(to, from, sizeof(integers));
}

/* Eight products; each is below 2^27. */
__attribute__((always_inline)) static inline void add_products(const tile *t, unsigned row, unsigned from,
                                                               const integers *largest, double sum[COLUMNS])
{
    integers part = {0}, exponent, sign;
    naturals magnitude;
    for (unsigned k = from; k < from + 8; k++) {
        unsigned n = row * MOST_STEP + k;
        load(&exponent, &t->b.exponent[k * COLUMNS]);
        load(&sign, &t->b.sign[k * COLUMNS]);
        load(&magnitude, &t->b.magnitude[k * COLUMNS]);
        integers shift = *largest - t->a.exponent[n] - exponent, is_far = shift > 31;
        naturals cut = magnitude * t->a.magnitude[n] >> (naturals)((shift & ~is_far) | (is_far & 31));
        sign ^= t->a.sign[n];
        part += ((integers)cut ^ sign) - sign;
    }
    for (unsigned i = 0; i < COLUMNS; i++)
        sum[i] += part[i];
}

/* Returns false if C or the sum is not finite, or the sum is subnormal. */
__attribute__((always_inline)) static inline bool step_row(tensor_model model, tile *t, unsigned row,
                                                           unsigned from, unsigned count)
{
    double sum[COLUMNS];
    integers largest, exponent;
    uint32_t is_odd = 0;
    load(&largest, t->d[row]);
    largest = largest >> 23 & 255;
    for (unsigned i = 0; i < COLUMNS; i++)
        is_odd |= largest[i] == 255;
    if (is_odd)
        return false;
    largest += -127 - (largest == 0);
    for (unsigned k = from; k < from + count; k++) {
        load(&exponent, &t->b.exponent[k * COLUMNS]);
        exponent += t->a.exponent[row * MOST_STEP + k];
        integers is_larger = exponent > largest;
        largest = (exponent & is_larger) | (largest & ~is_larger);
    }
    for (unsigned i = 0; i < COLUMNS; i++)
        sum[i] = (int32_t)(t->d[row][i] * tensor_power(model.fraction_bits - largest[i]));
    for (unsigned k = from; k < from + count; k += 8)
        add_products(t, row, k, &largest, sum);
    for (unsigned i = 0; i < COLUMNS; i++) {
        uint64_t bits = bits_of_double(sum[i] * tensor_power(largest[i] - model.fraction_bits));
        uint32_t biased = (uint32_t)(bits >> 52) & 2047;
        is_odd |= (uint32_t)(sum[i] != 0) & (biased - (1023 - 126) > 253);
        t->d[row][i] = (float)double_of_bits(bits >> 29 << 29);
    }
    return !is_odd;
}

/* D = A * B + D. Returns false, with D overwritten, if a value is not finite or too small. */
static inline bool tile_multiply(tensor_model model, tile *t, unsigned k)
{
    bool fine = true, at_once = model.terms > 8 && k == 16;
    for (unsigned row = 0; row < MOST_ROWS && fine; row++) {
        if (t->repeats[row])
            memcpy(t->d[row], t->d[row - 1], sizeof t->d[0]);
        else
            fine = at_once ? step_row(model, t, row, 0, 16)
                           : step_row(model, t, row, 0, 8) && (k < 16 || step_row(model, t, row, 8, 8));
    }
    return fine;
}

static inline int32_t small_integer(unsigned element, uint32_t bits)
{
    switch (element) {
    case EMU_EL_S8:
        return (int8_t)bits;
    case EMU_EL_S4:
        return (int32_t)((bits & 15) ^ 8) - 8;
    default:
        return (int32_t)bits;
    }
}

#endif
