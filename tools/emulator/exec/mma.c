/* mma.sync (ISA 9.7.14.5.14): fragments from the registers of a warp to matrices, the product, and back. The arithmetic of
   floating point is in tensor_sum.h; f64 is a chain of fused multiply-adds, integers are exact. */
#include "exec.h"

#include "soft.h"
#include "tensor_sum.h"
#include "warp_op.h"

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
        const uint32_t *c = (const uint32_t *)emu_lanes(w, g->c[i]);
        for (unsigned lane = 0; lane < EMU_LANES; lane++)
            t->d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = float_of_bits(c[lane]);
    }
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
    for (unsigned row = 0; row < MOST_ROWS && fine; row++)
        fine = at_once ? step_row(model, &t, row, 0, 16) : step_row(model, &t, row, 0, 8);
    for (unsigned row = 0; row < MOST_ROWS && fine && !at_once && f->k == 16; row++)
        fine = step_row(model, &t, row, 8, 8);
    if (!fine)
        return false;
    ACTIVE_LANES(mask)
    for (unsigned n = 0; n < 4; n++)
        set_d(w, f, g->d, i, n, bits_of_float(t.d[i / 4 + n / 2 * 8][i % 4 * 2 + n % 2]));
    return true;
}

static void multiply_float(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = emu_mma_of(op);
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
    emu_mma f = emu_mma_of(op);
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
    if (round == EMU_RN) {
        double r = fma(a, b, c);
        return r == r ? r : double_of_bits(0x7fffffffffffffff);
    }
    emu_soft x = emu_soft_unpack(&emu_f64, bits_of_double(a)),
             y = emu_soft_unpack(&emu_f64, bits_of_double(b));
    emu_soft r = emu_soft_fma(x, y, emu_soft_unpack(&emu_f64, bits_of_double(c)), round);
    return double_of_bits(emu_soft_pack(&emu_f64, r, round));
}

static void multiply_double(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = emu_mma_of(op);
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
    emu_mma f = emu_mma_of(op);
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
    emu_mma f = emu_mma_of(op);
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
        if (emu_whole_warp(w, op, mask))                                                                     \
            multiply(w, op, mask);                                                                           \
    }
MMA(mma_float, multiply_float)
MMA(mma_quads, multiply_quads)
MMA(mma_double, multiply_double)
MMA(mma_integer, multiply_integer)
MMA(mma_bits, multiply_bits)

#define MMA_ROW(modifiers, version, target, ...)                                                             \
    {                                                                                                        \
        "mma", "sync aligned " modifiers, "", version, target, .form = EMU_FORM_MMA, __VA_ARGS__             \
    }
#define F8   "e4m3|e5m2"
#define F864 "e4m3|e5m2|e3m2|e2m3|e2m1"

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
};

EXPORT_ROWS(emu_rows_mma);
