/* Tensor cores: mma.sync, ldmatrix, stmatrix and movmatrix (ISA 9.7.14.5.14 to 9.7.14.5.17). Reads fragments from a warp's
   registers into matrices, multiplies, and writes the fragments of D. f64 uses chains of fused multiply-adds; integers are
   exact. */
#include "access.h"
#include "soft.h"
#include "tensor.h"

/* ---- mma.sync ------------------------------------------------------------------------------------------------------ */

/* Devices 9.0 to 11.x have no fp8 mma: ptxas 13.0 unpacks the two low bytes of each register to f16, then the two high
   ones, multiplies the low ones with C = 0, the high ones with that sum as C, and adds the real C with an ordinary
   addition. 12.x has fp8 mma. */
static inline tensor_model tensor_model_of(unsigned device, const emu_mma *f)
{
    bool narrow = f->a >= EMU_EL_E4M3 && f->a <= EMU_EL_E2M1_PACKED;
    if (narrow && device < 90)
        return (tensor_model){13, 16, 13, false};
    if (narrow && device < 120)
        return (tensor_model){25, TENSOR_MOST_TERMS, 23, true};
    if (device >= 90)
        return (tensor_model){25, TENSOR_MOST_TERMS, 23, false};
    return (tensor_model){24, f->a == EMU_EL_TF32 ? 4 : 8, 23, false};
}

/* The place of element `e` of a lane's register r. row: of A, or the column of B. k counts elements along the sum. */
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

/* Element i of a lane's part of C, as an f32. */
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

/* Inline, so that it is compiled for constant types. */
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

/* Reads the operands of a tile. Each register of A or B holds 8x8 elements of the warp: eight rows of A or columns of B,
   with eight elements along the sum. */
static bool read_tile(const emu_warp *w, const emu_mma *f, const fragments *g, tensor_model model, tile *t)
{
    enum { BLOCK = 8 };
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
    return tile_fill(t, model, f->a == EMU_EL_F16, a, b, c);
}

/* Returns false without a result if a value is not finite or too small. */
static bool multiply_tile(emu_warp *w, const emu_mma *f, const fragments *g, uint32_t mask)
{
    tensor_model model = tensor_model_of(w->block->launch->device_number, f);
    tile t;
    if (!read_tile(w, f, g, model, &t) || !tile_multiply(model, &t, f->k))
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

/* ---- block scaling (ISA 9.7.14.3) ---- */

/* Which byte of which threads of a quad holds the scales: the first such byte, and a pair of threads for A or one for B. */
typedef struct scale_selector {
    uint32_t byte, thread;
} scale_selector;

/* Returns false if the lanes' selectors differ, or the ISA does not define them. */
static bool read_selector(emu_warp *w, const emu_op *op, const emu_mma *f, char name, const uint32_t args[2],
                          uint32_t threads, scale_selector *s)
{
    const uint16_t *byte = emu_lanes(w, args[0]), *thread = emu_lanes(w, args[1]);
    *s = (scale_selector){byte[0], thread[0]};
    uint32_t unlike = 0;
    ACTIVE_LANES(EMU_ALL) unlike |= (uint32_t)(byte[i] != s->byte || thread[i] != s->thread) << i;
    bool is_defined = s->byte % f->chunks == 0 && s->byte + f->chunks <= 4 && s->thread < threads;
    if (unlike)
        emu_fault(w, op, unlike, CUDA_ERROR_LAUNCH_FAILED,
                  "gives other selectors of %c's scales than the warp's first lane", name);
    else if (!is_defined)
        emu_fault(w, op, EMU_ALL, CUDA_ERROR_LAUNCH_FAILED,
                  "selects %c's scales by {%u, %u}, which are undefined", name, s->byte, s->thread);
    return !unlike && is_defined;
}

static void scale_vector(const emu_mma *f, tensor_vector *v, uint32_t word, uint32_t first_byte)
{
    unsigned elements = f->k / f->chunks;
    for (unsigned n = 0; n < f->chunks; n++)
        tensor_scale(v, n * elements, (n + 1) * elements, f->flags & EMU_MMA_UE4M3,
                     word >> 8 * (first_byte + n) & 255);
}

/* Row g + 8 of A has its scales in the lane after row g's; column g of B in one lane of quad g. */
static void multiply_scaled(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_mma f = mma_of(op);
    fragments g = fragments_of(op, &f);
    scale_selector of_a, of_b;
    if (!read_selector(w, op, &f, 'A', &op->arg[1], 2, &of_a) ||
        !read_selector(w, op, &f, 'B', &op->arg[4], 4, &of_b))
        return;
    tensor_model model = tensor_model_of(w->block->launch->device_number, &f);
    tensor_vector a[MOST_ROWS], b[COLUMNS];
    for (unsigned n = 0; n < MOST_ROWS; n++)
        a[n].is_special = false;
    for (unsigned n = 0; n < COLUMNS; n++)
        b[n].is_special = false;
    read_vectors(w, &f, &g, f.a, f.b, a, b);
    for (unsigned n = 0; n < MOST_ROWS; n++)
        scale_vector(&f, &a[n], word_of(w, op->arg[0], n % 8 * 4 + 2 * of_a.thread + n / 8), of_a.byte);
    for (unsigned n = 0; n < COLUMNS; n++)
        scale_vector(&f, &b[n], word_of(w, op->arg[3], n * 4 + of_b.thread), of_b.byte);
    ACTIVE_LANES(mask)
    {
        uint32_t d[4];
        for (unsigned n = 0; n < 4; n++) {
            fragment_place at = place_in_c(i, n);
            d[n] = tensor_dot(model, &a[at.row], &b[at.k], f.k, c_value(w, &f, g.c, i, n), false);
        }
        for (unsigned n = 0; n < 4; n++)
            set_d(w, &f, g.d, i, n, d[n]);
    }
}

/* m8n8k4: product q is in the lanes 4q to 4q + 3, and 16 to 19 + 4q. Each lane has a row of A (or column of B) of four
   elements, or, with the other layout (`across`), one element of each of four rows (ISA 9.7.14.5.1). */
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

/* One-bit elements: XOR or AND, then the number of ones. */
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

/* D may overlap the registers of A, B and C, so each lane writes only after all operands have been read. */
#define MMA(name, multiply)                                                                                  \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        if (is_whole_warp(w, op, mask))                                                                      \
            multiply(w, op, mask);                                                                           \
    }
MMA(mma_float, multiply_float)
MMA(mma_scaled, multiply_scaled)
MMA(mma_quads, multiply_quads)
MMA(mma_double, multiply_double)
MMA(mma_integer, multiply_integer)
MMA(mma_bits, multiply_bits)

/* ---- ldmatrix, stmatrix, movmatrix --------------------------------------------------------------------------------- */

/* In the fragment of an 8x8 matrix, lane l holds elements 2 (l mod 4) and 2 (l mod 4) + 1 of row l / 4; with .trans, of
   column l / 4. */
#define MODE_TRANSPOSED 1

/* The addresses of the rows: lanes 0 to 7 for the first matrix, and so on. Before sm_80 all lanes need a valid address. */
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

/* The row of element e of a lane's fragment, and its place in the row. */
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
#define MMA_SCALED(modifiers, version)                                                                       \
    MMA_ROW(modifiers, version, 120, .only = "120f 121f", .run = mma_scaled)
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
    MMA_SCALED("m16n8k32 row col kind::mxf8f6f4 block_scale scale_vec::1X? f32 " F864 " " F864 " f32 ue8m0",
               87),
    MMA_SCALED("m16n8k64 row col kind::mxf4 block_scale scale_vec::2X? f32 e2m1 e2m1 f32 ue8m0", 87),
    MMA_SCALED("m16n8k64 row col kind::mxf4nvf4 block_scale scale_vec::2X f32 e2m1 e2m1 f32 ue8m0", 87),
    MMA_SCALED("m16n8k64 row col kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 f32 ue4m3", 87),
    MMA_SCALED("m16n8k64 row col kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 f32 ue8m0", 91),
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
