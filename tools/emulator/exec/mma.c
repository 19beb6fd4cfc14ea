/* Tensor cores: mma.sync, and ldmatrix, stmatrix, movmatrix (ISA 9.7.14.5.14 to 9.7.14.5.17). Fragments from the registers of
   a warp to matrices, the product, and back. f64 is a chain of fused multiply-adds, integers are exact. */
#include "exec.h"

#include "access.h"
#include "half.h"
#include "mma.h"
#include "soft.h"

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

   From 9.0 to 11.x there is no fp8 product: ptxas 13.0 unpacks to f16 the two low bytes of each register, then the two high
   ones, multiplies the one set onto zero and the other onto that, and adds C with an ordinary addition. 12.x has one again.
   A sum of zero is +0. Subnormals take part. */
enum { TENSOR_MOST_TERMS = 32, TENSOR_EXPONENT_OF_ZERO = -1000 };

typedef struct tensor_model {
    uint8_t fraction_bits;
    uint8_t terms;       /* per step */
    uint8_t result_bits; /* of an f32 result's fraction */
    bool unpacks;        /* fp8 by way of f16 */
} tensor_model;

/* A row of A or a column of B. The exponent is the one that the format stores: a subnormal's is that of the least normal
   number, and a zero's is far below all others. */
typedef struct tensor_vector {
    double value[TENSOR_MOST_TERMS];
    int32_t exponent[TENSOR_MOST_TERMS];
    bool is_special; /* holds an infinity or NaN */
} tensor_vector;

static inline tensor_model tensor_model_of(unsigned device, const emu_mma *f)
{
    bool narrow = f->a >= EMU_EL_E4M3 && f->a <= EMU_EL_E2M1;
    if (narrow && device < 90)
        return (tensor_model){13, 16, 13, false};
    if (narrow && device < 120)
        return (tensor_model){25, TENSOR_MOST_TERMS, 23, true};
    if (device >= 90)
        return (tensor_model){25, TENSOR_MOST_TERMS, 23, false};
    return (tensor_model){24, f->a == EMU_EL_TF32 ? 4 : 8, 23, false};
}

typedef struct tensor_format {
    uint8_t exponent_bits, fraction_bits;
    uint8_t shift; /* where in its container */
    bool has_infinity, has_nan;
} tensor_format;

static const tensor_format tensor_formats[] = {
    [EMU_EL_F16] = {5, 10, 0, true, true},   [EMU_EL_BF16] = {8, 7, 0, true, true},
    [EMU_EL_TF32] = {8, 10, 13, true, true}, /* the 13 low bits are not looked at */
    [EMU_EL_E4M3] = {4, 3, 0, false, true},  [EMU_EL_E5M2] = {5, 2, 0, true, true},
    [EMU_EL_E3M2] = {3, 2, 0, false, false}, [EMU_EL_E2M3] = {2, 3, 0, false, false},
    [EMU_EL_E2M1] = {2, 1, 2, false, false},
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

/* sum / 2^25 * 2^exponent to f32, cut. The sum has fewer than 53 bits. */
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

/* The same to the nearest f16. */
static inline uint16_t tensor_round_half(int64_t sum, int exponent)
{
    double d = (double)sum * tensor_power(exponent - 25);
    uint16_t h = float_to_half(double_to_float_odd(d));
    return h & 0x7fff ? h : 0;
}

static inline double tensor_special(const tensor_vector *a, const tensor_vector *b, unsigned from,
                                    unsigned to, float c)
{
    double sum = (double)c; /* only what is not finite counts: products of doubles do not overflow here */
    for (unsigned n = from; n < to; n++)
        sum += a->value[n] * b->value[n];
    return sum;
}

/* Terms `from` on. `c` is of f32 or, with is_half, of f16 value; so is the result. Inline, for loops of a fixed count. */
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
        for (unsigned i = 0; i < 8 && n + i < count; i++) /* terms below 2^27 */
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

/* D's element as its bits. */
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

/* ---- the warp as a whole ------------------------------------------------------------------------------------------- */

/* True when no lane is missing. Otherwise the lanes wait for the others, or, when some have exited, the launch fails. */
static inline bool is_whole_warp(emu_warp *w, const emu_op *op, uint32_t mask)
{
    if (mask == EMU_ALL)
        return true;
    if (mask != w->alive) {
        emu_wait_at(w, op, (emu_fragment){.mask = mask, .members = EMU_ALL, .wait = EMU_WAIT_LANES});
        return false;
    }
    return !emu_is_misused(w, op, mask, EMU_PART_OF_WARP);
}

/* ---- mma.sync ------------------------------------------------------------------------------------------------------ */

enum { MOST_ROWS = 16, COLUMNS = 8, MOST_STEP = 16 /* of f16 and bf16, along the sum */ };

/* Where element `e` of register r of a lane lies. Rows of A, columns of B; k counts the elements of one register. */
typedef struct fragment_place {
    unsigned row, k;
} fragment_place;

static inline fragment_place place_in_a(const emu_mma *f, unsigned each, unsigned lane, unsigned r,
                                        unsigned e)
{
    unsigned half = f->m == 16 ? r >> 1 : r;
    return (fragment_place){lane / 4 + (f->m == 16 ? 8 * (r & 1) : 0), lane % 4 * each + e + half * 4 * each};
}

static inline fragment_place place_in_b(unsigned each, unsigned lane, unsigned r, unsigned e)
{
    return (fragment_place){lane / 4, lane % 4 * each + e + r * 4 * each};
}

static inline fragment_place place_in_c(unsigned lane, unsigned i)
{
    return (fragment_place){lane / 4 + 8 * (i >> 1), lane % 4 * 2 + (i & 1)};
}

static inline emu_mma mma_of(const emu_op *op)
{
    emu_mma form;
    memcpy(&form, &op->imm, sizeof form);
    return form;
}

typedef struct fragments {
    const uint32_t *d, *a, *b, *c; /* registers, in op->list */
    unsigned d_count, a_count, b_count;
} fragments;

static inline fragments fragments_of(const emu_op *op, const emu_mma *f)
{
    fragments g = {.d = op->list};
    g.d_count = emu_mma_c_registers(f, f->d);
    g.a_count = emu_mma_a_registers(f);
    g.b_count = emu_mma_b_registers(f);
    g.a = g.d + g.d_count;
    g.b = g.a + g.a_count;
    g.c = g.b + g.b_count;
    return g;
}

static inline uint32_t word_of(const emu_warp *w, uint32_t arg, unsigned lane)
{
    return ((const uint32_t *)emu_lanes(w, arg))[lane];
}

/* Element i of a lane's part of C: as the bits of an f32. */
static inline float c_value(const emu_warp *w, const emu_mma *f, const uint32_t *c, unsigned lane, unsigned i)
{
    if (f->c == EMU_F16)
        return half_to_float((uint16_t)(word_of(w, c[i / 2], lane) >> 16 * (i & 1)));
    return float_of_bits(word_of(w, c[i], lane));
}

static inline void set_d(const emu_warp *w, const emu_mma *f, const uint32_t *d, unsigned lane, unsigned i,
                         uint32_t bits)
{
    if (f->d == EMU_F16)
        memcpy((char *)emu_lanes(w, d[i / 2]) + 4 * lane + 2 * (i & 1), &(uint16_t){(uint16_t)bits}, 2);
    else
        ((uint32_t *)emu_lanes(w, d[i]))[lane] = bits;
}

/* Inline, for types that are known where it is compiled. */
__attribute__((always_inline)) static inline void read_vectors(const emu_warp *w, const emu_mma *f,
                                                               const fragments *g, unsigned of_a,
                                                               unsigned of_b, tensor_vector *a,
                                                               tensor_vector *b)
{
    unsigned bits = emu_element_bits(of_a), each = 32 / bits;
    uint32_t low = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
    for (unsigned n = 0; n < g->a_count * each; n++)
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
            fragment_place at = place_in_a(f, each, lane, n / each, n % each);
            tensor_set(&a[at.row], at.k, of_a, word_of(w, g->a[n / each], lane) >> n % each * bits & low);
        }
    for (unsigned n = 0; n < g->b_count * each; n++)
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
            fragment_place at = place_in_b(each, lane, n / each, n % each);
            tensor_set(&b[at.row], at.k, of_b, word_of(w, g->b[n / each], lane) >> n % each * bits & low);
        }
}

/* Products of f16 or bf16 onto f32, as most are, a row of D at once, in whole numbers of 32 bits: what tensor_step does as
   long as all is finite and no sum is tiny. */
typedef struct tile_numbers {
    int32_t exponent[MOST_ROWS * MOST_STEP], sign[MOST_ROWS * MOST_STEP]; /* sign: 0 or -1 */
    uint32_t magnitude[MOST_ROWS * MOST_STEP];
} tile_numbers;

typedef struct tile {
    tile_numbers a, b; /* A by row and k, B by k and column */
    float d[MOST_ROWS][COLUMNS];
    bool repeats[MOST_ROWS]; /* A's and C's rows are those before them, so D's is */
} tile;

/* False: one of them is an infinity or a NaN. */
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

/* A register of A or B is a block of eight rows of A, or columns of B, with eight elements along the sum. */
static bool read_tile(const emu_warp *w, const emu_mma *f, const fragments *g, tensor_model model, tile *t)
{
    enum { BLOCK = 8, OF_A = MOST_ROWS * MOST_STEP, OF_B = MOST_STEP * COLUMNS };
    uint16_t a[MOST_ROWS][MOST_STEP] = {{0}}, b[MOST_STEP][COLUMNS] = {{0}}, block[BLOCK][BLOCK];
    uint32_t c[MOST_ROWS][COLUMNS];
    for (unsigned r = 0; r < g->a_count; r++)
        for (unsigned n = 0; n < BLOCK; n++)
            memcpy(&a[(r & 1) * BLOCK + n][(r >> 1) * BLOCK],
                   (const uint16_t *)emu_lanes(w, g->a[r]) + n * BLOCK, sizeof block[0]);
    for (unsigned r = 0; r < g->b_count; r++) {
        memcpy(block, emu_lanes(w, g->b[r]), sizeof block);
        for (unsigned k = 0; k < BLOCK; k++)
            for (unsigned n = 0; n < BLOCK; n++)
                b[r * BLOCK + k][n] = block[n][k];
    }
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t *words = (const uint32_t *)emu_lanes(w, g->c[i]);
        for (unsigned lane = 0; lane < EMU_LANES; lane++)
            c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = words[lane];
    }
    memcpy(t->d, c, sizeof t->d);
    t->repeats[0] = false;
    for (unsigned row = 1; row < MOST_ROWS; row++)
        t->repeats[row] =
            memcmp(a[row], a[row - 1], sizeof a[0]) == 0 && memcmp(c[row], c[row - 1], sizeof c[0]) == 0;
    if (f->a == EMU_EL_F16)
        return read_numbers(a[0], OF_A, true, model.fraction_bits - 20u, &t->a) &&
               read_numbers(b[0], OF_B, true, 0, &t->b);
    return read_numbers(a[0], OF_A, false, model.fraction_bits - 14u, &t->a) &&
           read_numbers(b[0], OF_B, false, 0, &t->b);
}

/* A row of D: told to the compiler, which would rather go along the sum. */
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

/* False: C or the sum is not finite, or the sum is below the normal numbers. */
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

/* False: something is not finite or tiny, and nothing is done. */
static bool multiply_tile(emu_warp *w, const emu_mma *f, const fragments *g, uint32_t mask)
{
    tensor_model model = tensor_model_of(w->block->launch->device_number, f);
    tile t;
    bool fine = read_tile(w, f, g, model, &t), at_once = model.terms > 8 && f->k == 16;
    for (unsigned row = 0; row < MOST_ROWS && fine; row++) {
        if (t.repeats[row])
            memcpy(t.d[row], t.d[row - 1], sizeof t.d[0]);
        else
            fine = at_once ? step_row(model, &t, row, 0, 16)
                           : step_row(model, &t, row, 0, 8) && (f->k < 16 || step_row(model, &t, row, 8, 8));
    }
    if (!fine)
        return false;
    ACTIVE_LANES(mask)
    for (unsigned n = 0; n < 4; n++)
        set_d(w, f, g->d, i, n, bits_of_float(t.d[i / 4 + n / 2 * 8][i % 4 * 2 + n % 2]));
    return true;
}

static void multiply_float(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    if (f.a <= EMU_EL_BF16 && f.c == EMU_F32 && f.d == EMU_F32 && multiply_tile(w, &f, &g, mask))
        return;
    tensor_model model = tensor_model_of(w->block->launch->device_number, &f);
    tensor_vector a[MOST_ROWS], b[COLUMNS];
    for (unsigned n = 0; n < f.m; n++)
        a[n].is_special = false;
    for (unsigned n = 0; n < COLUMNS; n++)
        b[n].is_special = false;
    if (f.a == EMU_EL_F16)
        read_vectors(w, &f, &g, EMU_EL_F16, EMU_EL_F16, a, b);
    else if (f.a == EMU_EL_BF16)
        read_vectors(w, &f, &g, EMU_EL_BF16, EMU_EL_BF16, a, b);
    else if (f.a == EMU_EL_TF32)
        read_vectors(w, &f, &g, EMU_EL_TF32, EMU_EL_TF32, a, b);
    else
        read_vectors(w, &f, &g, f.a, f.b, a, b);
    ACTIVE_LANES(mask)
    {
        uint32_t d[4];
        for (unsigned n = 0; n < f.m / 4u; n++) {
            fragment_place at = place_in_c(i, n);
            float c = c_value(w, &f, g.c, i, n);
            d[n] = tensor_dot(model, &a[at.row], &b[at.k], f.k, c, f.d == EMU_F16);
        }
        for (unsigned n = 0; n < f.m / 4u; n++)
            set_d(w, &f, g.d, i, n, d[n]);
    }
}

/* m8n8k4: lanes 4q to 4q + 3 and the same plus 16 hold product q, each lane a row (or column) of four or, where the layout
   is the other one, one element of each of four rows (ISA 9.7.14.5.1). */
static void set_quad(tensor_vector v[8], const emu_warp *w, const uint32_t *registers, unsigned q,
                     bool across)
{
    for (unsigned n = 0; n < 8; n++)
        v[n].is_special = false;
    for (unsigned t = 0; t < 8; t++) {
        unsigned lane = 4 * q + t % 4 + t / 4 * 16;
        for (unsigned n = 0; n < 4; n++) {
            uint32_t element = word_of(w, registers[n / 2], lane) >> 16 * (n & 1) & 0xffff;
            if (across)
                tensor_set(&v[n + t / 4 * 4], t % 4, EMU_EL_F16, element);
            else
                tensor_set(&v[t], n, EMU_EL_F16, element);
        }
    }
}

static fragment_place place_in_quad(unsigned type, unsigned lane, unsigned i)
{
    unsigned high = lane / 16 * 4;
    if (type == EMU_F16)
        return (fragment_place){lane % 4 + high, i};
    return (fragment_place){(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
}

static void multiply_quads(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    tensor_model model = tensor_model_of(w->block->launch->device_number, &f);
    for (unsigned q = 0; q < 4; q++) {
        tensor_vector a[8], b[8];
        float c[8][8];
        set_quad(a, w, g.a, q, f.flags & EMU_MMA_A_COL);
        set_quad(b, w, g.b, q, f.flags & EMU_MMA_B_ROW);
        for (unsigned t = 0; t < 64; t++) {
            unsigned lane = 4 * q + t / 8 % 4 + t / 32 * 16;
            fragment_place at = place_in_quad(f.c, lane, t % 8);
            c[at.row][at.k] = c_value(w, &f, g.c, lane, t % 8);
        }
        for (unsigned t = 0; t < 64; t++) {
            unsigned lane = 4 * q + t / 8 % 4 + t / 32 * 16;
            fragment_place at = place_in_quad(f.d, lane, t % 8);
            uint32_t bits = tensor_dot(model, &a[at.row], &b[at.k], 4, c[at.row][at.k], f.d == EMU_F16);
            if (mask >> lane & 1)
                set_d(w, &f, g.d, lane, t % 8, bits);
        }
    }
}

static double fused(double a, double b, double c, unsigned round)
{
    if (round == EMU_RN)
        return canonical64(fma(a, b, c));
    emu_soft x = emu_soft_unpack(&emu_f64, bits_of_double(a)),
             y = emu_soft_unpack(&emu_f64, bits_of_double(b));
    emu_soft r = emu_soft_fma(x, y, emu_soft_unpack(&emu_f64, bits_of_double(c)), round);
    return double_of_bits(emu_soft_pack(&emu_f64, r, round));
}

static void multiply_double(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    double a[MOST_ROWS][16], b[COLUMNS][16];
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < g.a_count; r++) {
            fragment_place at = place_in_a(&f, 1, lane, r, 0);
            a[at.row][at.k] = ((const double *)emu_lanes(w, g.a[r]))[lane];
        }
        for (unsigned r = 0; r < g.b_count; r++) {
            fragment_place at = place_in_b(1, lane, r, 0);
            b[at.row][at.k] = ((const double *)emu_lanes(w, g.b[r]))[lane];
        }
    }
    ACTIVE_LANES(mask)
    {
        double d[4];
        for (unsigned n = 0; n < g.d_count; n++) {
            fragment_place at = place_in_c(i, n);
            double sum = ((const double *)emu_lanes(w, g.c[n]))[i];
            for (unsigned k = 0; k < f.k; k++)
                sum = fused(a[at.row][k], b[at.k][k], sum, op->mods.round);
            d[n] = sum;
        }
        for (unsigned n = 0; n < g.d_count; n++)
            ((double *)emu_lanes(w, g.d[n]))[i] = d[n];
    }
}

static int32_t small_integer(unsigned element, uint32_t bits)
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

static int64_t integer_dot(const emu_mma *f, const int32_t *a, const int32_t *b)
{
    int32_t sum = 0; /* at most 64 * 255 * 255 */
    for (unsigned k = 0; k < f->k; k++)
        sum += a[k] * b[k];
    return sum;
}

static void multiply_integer(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    int32_t a[MOST_ROWS][64], b[COLUMNS][64];
    unsigned bits = emu_element_bits(f.a), each = 32 / bits;
    uint32_t low = (1u << bits) - 1;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned n = 0; n < g.a_count * each; n++) {
            fragment_place at = place_in_a(&f, each, lane, n / each, n % each);
            a[at.row][at.k] = small_integer(f.a, word_of(w, g.a[n / each], lane) >> n % each * bits & low);
        }
        for (unsigned n = 0; n < g.b_count * each; n++) {
            fragment_place at = place_in_b(each, lane, n / each, n % each);
            b[at.row][at.k] = small_integer(f.b, word_of(w, g.b[n / each], lane) >> n % each * bits & low);
        }
    }
    ACTIVE_LANES(mask)
    {
        uint32_t d[4];
        for (unsigned n = 0; n < g.d_count; n++) {
            fragment_place at = place_in_c(i, n);
            int64_t sum = (int32_t)word_of(w, g.c[n], i) + integer_dot(&f, a[at.row], b[at.k]);
            if (op->mods.flags & EMU_SATFINITE)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            d[n] = (uint32_t)sum;
        }
        for (unsigned n = 0; n < g.d_count; n++)
            set_d(w, &f, g.d, i, n, d[n]);
    }
}

/* One bit per element: XOR or AND, and the count of ones. */
static void multiply_bits(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    uint32_t a[MOST_ROWS][8], b[COLUMNS][8];
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < g.a_count; r++) {
            fragment_place at = place_in_a(&f, 1, lane, r, 0);
            a[at.row][at.k] = word_of(w, g.a[r], lane);
        }
        for (unsigned r = 0; r < g.b_count; r++) {
            fragment_place at = place_in_b(1, lane, r, 0);
            b[at.row][at.k] = word_of(w, g.b[r], lane);
        }
    }
    ACTIVE_LANES(mask)
    {
        uint32_t d[4];
        for (unsigned n = 0; n < g.d_count; n++) {
            fragment_place at = place_in_c(i, n);
            uint32_t sum = word_of(w, g.c[n], i);
            for (unsigned k = 0; k < f.k / 32u; k++) {
                uint32_t x = a[at.row][k], y = b[at.k][k];
                sum += (uint32_t)__builtin_popcount(f.flags & EMU_MMA_AND ? x & y : x ^ y);
            }
            d[n] = sum;
        }
        for (unsigned n = 0; n < g.d_count; n++)
            set_d(w, &f, g.d, i, n, d[n]);
    }
}

/* D may lie in the registers of A, B and C: each lane writes after all that it needs has been read. */
#define MMA(name, multiply)                                                                                  \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        if (is_whole_warp(w, op, mask))                                                                      \
            multiply(w, op, mask);                                                                           \
    }
MMA(mma_float, multiply_float)
MMA(mma_quads, multiply_quads)
MMA(mma_double, multiply_double)
MMA(mma_integer, multiply_integer)
MMA(mma_bits, multiply_bits)

/* ---- ldmatrix, stmatrix, movmatrix --------------------------------------------------------------------------------- */

/* In the fragment of an 8x8 matrix lane l holds elements 2 (l mod 4) and the next of row l / 4; .trans makes that column
   l / 4. */
#define MODE_TRANSPOSED 1

/* The addresses of the rows: lanes 0 to 7 for the first matrix, and so on; before sm_80 all lanes have to hold one. */
static inline bool rows_of(emu_warp *w, const emu_op *op, bool writes, uint64_t at[EMU_LANES])
{
    uint32_t lanes = op->mods.count == 4 ? EMU_ALL : (1u << 8 * op->mods.count) - 1;
    if (!writes && w->block->launch->device_number < 80 &&
        !access_uncounted(w, op, op->arg[0], EMU_ALL, 16, false, at))
        return false;
    if (!access_resolve(w, op, op->arg[0], lanes, 16, writes, at))
        return false;
    uint64_t shared = (uint64_t)(uintptr_t)w->block->shared;
    uint32_t outside = 0;
    ACTIVE_LANES(lanes) outside |= (uint32_t)(at[i] - shared >= w->block->shared_bytes) << i;
    if (outside)
        emu_fault(w, op, outside, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names a row of a matrix that is not in shared memory");
    return !outside;
}

/* Row and place in the row of element e of a lane's fragment. */
static inline unsigned row_of(bool transposed, unsigned lane, unsigned e)
{
    return transposed ? lane % 4 * 2 + e : lane / 4;
}

static inline unsigned column_of(bool transposed, unsigned lane, unsigned e)
{
    return transposed ? lane / 4 : lane % 4 * 2 + e;
}

HANDLER(ldmatrix)
{
    uint64_t at[EMU_LANES];
    bool transposed = op->mods.mode == MODE_TRANSPOSED;
    if (!is_whole_warp(w, op, mask) || !rows_of(w, op, false, at))
        return;
    for (unsigned n = 0; n < op->mods.count; n++) {
        uint16_t *d = emu_lanes(w, op->list[n]);
        ACTIVE_LANES(mask)
        {
            for (unsigned e = 0; e < 2; e++)
                memcpy(&d[2 * i + e],
                       (const char *)(uintptr_t)at[8 * n + row_of(transposed, i, e)] +
                           2 * column_of(transposed, i, e),
                       2);
        }
    }
}

HANDLER(stmatrix)
{
    uint64_t at[EMU_LANES];
    bool transposed = op->mods.mode == MODE_TRANSPOSED;
    if (!is_whole_warp(w, op, mask) || !rows_of(w, op, true, at))
        return;
    w->block->stores++;
    for (unsigned n = 0; n < op->mods.count; n++) {
        const uint16_t *s = emu_lanes(w, op->list[n]);
        ACTIVE_LANES(mask)
        {
            for (unsigned e = 0; e < 2; e++)
                memcpy((char *)(uintptr_t)at[8 * n + row_of(transposed, i, e)] +
                           2 * column_of(transposed, i, e),
                       &s[2 * i + e], 2);
        }
    }
}

HANDLER(movmatrix)
{
    uint16_t t[2 * EMU_LANES];
    if (!is_whole_warp(w, op, mask))
        return;
    memcpy(t, emu_lanes(w, op->arg[1]), sizeof t);
    uint16_t *d = emu_lanes(w, op->arg[0]);
    ACTIVE_LANES(mask)
    {
        for (unsigned e = 0; e < 2; e++)
            d[2 * i + e] = t[8 * (i % 4 * 2 + e) + i / 4];
    }
}

#define MMA_ROW(modifiers, version, target, ...)                                                             \
    {                                                                                                        \
        "mma", "sync aligned " modifiers, "", version, target, .form = EMU_FORM_MMA, __VA_ARGS__             \
    }
#define F8     "e4m3|e5m2"
#define F864   "e4m3|e5m2|e3m2|e2m3|e2m1"
#define MATRIX "sync aligned m8n8 v:x1|x2|x4 m:-|trans? p:shared|shared::cta? b16"

static const emu_row rows[] = {
    MMA_ROW("m8n8k4 row|col row|col f16|f32 f16 f16 f16|f32", 64, 70, .run = mma_quads),
    MMA_ROW("m16n8k8 row col f16|f32 f16 f16 f16|f32", 65, 75, .run = mma_float),
    MMA_ROW("m16n8k16 row col f16|f32 f16 f16 f16|f32", 70, 80, .run = mma_float),
    MMA_ROW("m16n8k8|m16n8k16 row col f32 bf16 bf16 f32", 70, 80, .run = mma_float),
    MMA_ROW("m16n8k4|m16n8k8 row col f32 tf32 tf32 f32", 70, 80, .run = mma_float),
    MMA_ROW("m16n8k32 row col f32 " F8 " " F8 " f32", 84, 89, .run = mma_float),
    MMA_ROW("m16n8k32 row col f16 " F8 " " F8 " f16", 87, 89, .run = mma_float),
    MMA_ROW("m16n8k16 row col f16|f32 " F8 " " F8 " f16|f32", 87, 89, .run = mma_float),
    MMA_ROW("m16n8k32 row col kind::f8f6f4 f16|f32 " F864 " " F864 " f16|f32", 87, 120, .only = "120f 121f",
            .run = mma_float),
    MMA_ROW("m8n8k4 row col @rnd? f64 f64 f64 f64", 70, 80, .run = mma_double),
    MMA_ROW("m16n8k4|m16n8k8|m16n8k16 row col @rnd? f64 f64 f64 f64", 78, 90, .run = mma_double),
    MMA_ROW("m8n8k16 row col satfinite? s32 s8|u8 s8|u8 s32", 65, 75, .run = mma_integer),
    MMA_ROW("m16n8k16|m16n8k32 row col satfinite? s32 s8|u8 s8|u8 s32", 70, 80, .run = mma_integer),
    MMA_ROW("m8n8k32 row col satfinite? s32 s4|u4 s4|u4 s32", 65, 75, .run = mma_integer),
    MMA_ROW("m16n8k32|m16n8k64 row col satfinite? s32 s4|u4 s4|u4 s32", 70, 80, .run = mma_integer),
    MMA_ROW("m8n8k128 row col s32 b1 b1 s32 xor popc", 70, 75, .run = mma_bits),
    MMA_ROW("m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor popc", 70, 80, .run = mma_bits),
    MMA_ROW("m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 and popc", 71, 80, .run = mma_bits),
    {"ldmatrix", MATRIX, "", 65, 75, .run = ldmatrix, .form = EMU_FORM_MATRIX},
    {"stmatrix", MATRIX, "", 78, 90, .run = stmatrix, .form = EMU_FORM_MATRIX},
    {"movmatrix", "sync aligned m8n8 trans b16", "=b32 b32", 78, 75, .run = movmatrix},
};

EXPORT_ROWS(emu_rows_mma);
