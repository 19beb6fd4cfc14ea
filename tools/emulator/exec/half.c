/* f16 and bf16 arithmetic, single and packed (ISA 9.7.4), done in float or double so that each result is rounded once: see
   half.h. */
#include "exec.h"

#include "approximate.h"
#include "half.h"

#include <math.h>

/* a + b as a double, rounded to odd if it is inexact. */
static inline double add_odd(double a, double b)
{
    double s = a + b, t = s - a, error = (a - (s - t)) + (b - t);
    uint64_t u = bits_of_double(s);
    bool away = (error < 0) != (s < 0), inexact = error != 0 && error == error;
    return inexact ? double_of_bits((u - (away ? 1 : 0)) | 1) : s;
}

/* A slot of halves is an array of 32 values, or of 64 if packed; handlers treat both alike. */
enum { MOST = 2 * EMU_LANES };

typedef struct half_operands {
    unsigned count; /* 32 or 64 */
    bool is_bf16;
    float x[3][MOST];
} half_operands;

static inline bool is_packed(unsigned type)
{
    return type == EMU_F16X2 || type == EMU_BF16X2;
}

static inline void widen(half_operands *h, const emu_warp *w, const emu_op *op, unsigned sources)
{
    h->count = is_packed(op->mods.type) ? MOST : EMU_LANES;
    h->is_bf16 = op->mods.type == EMU_BF16 || op->mods.type == EMU_BF16X2;
    bool flush = op->mods.flags & EMU_FTZ;
    for (unsigned n = 0; n < sources; n++) {
        const uint16_t *in = LANES_OF(const uint16_t, n + 1);
        float *out = h->x[n];
        if (h->is_bf16)
            for (unsigned i = 0; i < h->count; i++)
                out[i] = bf16_to_float(in[i]);
        else if (flush)
            for (unsigned i = 0; i < h->count; i++)
                out[i] = half_to_float(half_flush(in[i]));
        else
            for (unsigned i = 0; i < h->count; i++)
                out[i] = half_to_float(in[i]);
    }
}

static inline uint16_t apply_modifiers(const emu_mods *m, uint16_t h, bool is_bf16)
{
    uint16_t one = is_bf16 ? 0x3f80 : 0x3c00, infinity = is_bf16 ? 0x7f80 : 0x7c00;
    bool is_nan = (h & 0x7fff) > infinity;
    if (m->flags & EMU_FTZ)
        h = h & infinity ? h : h & 0x8000;
    if (m->flags & EMU_SAT)
        h = is_nan || h & 0x8000 ? 0 : h > one ? one : h;
    if (m->flags & EMU_RELU)
        h = !is_nan && h & 0x8000 ? 0 : h;
    return h;
}

/* Rounds the values and writes the active lanes. */
static inline void narrow(emu_warp *w, const emu_op *op, uint32_t mask, const half_operands *h,
                          const float *r)
{
    uint16_t t[MOST], *d = LANES_OF(uint16_t, 0);
    if (h->is_bf16)
        for (unsigned i = 0; i < h->count; i++)
            t[i] = float_to_bf16(r[i]);
    else
        for (unsigned i = 0; i < h->count; i++)
            t[i] = float_to_half(r[i]);
    if (op->mods.flags & (EMU_FTZ | EMU_SAT | EMU_RELU))
        for (unsigned i = 0; i < h->count; i++)
            t[i] = apply_modifiers(&op->mods, t[i], h->is_bf16);
    unsigned each = h->count / EMU_LANES;
    if (mask == EMU_ALL)
        memcpy(d, t, h->count * sizeof *t);
    else
        ACTIVE_LANES(mask) memcpy(d + each * i, t + each * i, each * sizeof *t);
}

#define HALF2(name, value)                                                                                   \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        half_operands h;                                                                                     \
        float r[MOST];                                                                                       \
        widen(&h, w, op, 2);                                                                                 \
        for (unsigned i = 0; i < h.count; i++) {                                                             \
            float a = h.x[0][i], b = h.x[1][i];                                                              \
            r[i] = value;                                                                                    \
        }                                                                                                    \
        narrow(w, op, mask, &h, r);                                                                          \
    }

#define HALF1(name, value)                                                                                   \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        half_operands h;                                                                                     \
        float r[MOST];                                                                                       \
        widen(&h, w, op, 1);                                                                                 \
        for (unsigned i = 0; i < h.count; i++) {                                                             \
            float a = h.x[0][i];                                                                             \
            r[i] = value;                                                                                    \
        }                                                                                                    \
        narrow(w, op, mask, &h, r);                                                                          \
    }

/* Rounding sums of two halves, and f16 products, twice gives the correct result: float has 24 bits, more than 2*11 + 1. */
HALF2(add, a + b)
HALF2(sub, a - b)
HALF2(mul_f16, a *b)
HALF2(mul_bf16, double_to_float_odd((double)a *(double)b))
HALF1(ex2, approximate_ex2(a))
HALF1(tanh_, approximate_tanh(a))

#define OOB_NAN 0xffff /* ISA 5.5.3.3: the NaN that stands for "outside the tensor" */

HANDLER(fma_)
{
    half_operands h;
    float r[MOST];
    widen(&h, w, op, 3);
    for (unsigned i = 0; i < h.count; i++)
        r[i] = double_to_float_odd(add_odd((double)h.x[0][i] * (double)h.x[1][i], (double)h.x[2][i]));
    if (op->mods.flags & EMU_OOB) {
        const uint16_t *a = LANES_OF(const uint16_t, 1), *b = LANES_OF(const uint16_t, 2);
        for (unsigned i = 0; i < h.count; i++)
            if (a[i] == OOB_NAN || b[i] == OOB_NAN)
                r[i] = 0;
    }
    narrow(w, op, mask, &h, r);
}

static uint16_t extreme(const emu_mods *m, bool is_max, uint16_t a, uint16_t b, uint16_t infinity)
{
    uint16_t sign = (a ^ b) & 0x8000;
    if (m->flags & EMU_FTZ) {
        a = half_flush(a);
        b = half_flush(b);
    }
    if (m->flags & EMU_XORSIGN) {
        a &= 0x7fff;
        b &= 0x7fff;
    }
    bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    if ((nan_a && nan_b) || ((m->flags & EMU_NAN) && (nan_a || nan_b)))
        return 0x7fff;
    /* sign-magnitude to an integer that orders the same way */
    int x = a & 0x8000 ? -(a & 0x7fff) - 1 : a, y = b & 0x8000 ? -(b & 0x7fff) - 1 : b;
    uint16_t r = nan_a ? b : nan_b ? a : (x < y) != is_max ? a : b;
    return m->flags & EMU_XORSIGN ? (uint16_t)((r & 0x7fff) | sign) : r;
}

static void extreme_all(emu_warp *w, const emu_op *op, uint32_t mask, bool is_max)
{
    const uint16_t *a = LANES_OF(const uint16_t, 1), *b = LANES_OF(const uint16_t, 2);
    uint16_t *d = LANES_OF(uint16_t, 0);
    unsigned each = is_packed(op->mods.type) ? 2 : 1;
    uint16_t infinity = op->mods.type == EMU_BF16 || op->mods.type == EMU_BF16X2 ? 0x7f80 : 0x7c00;
    ACTIVE_LANES(mask)
    {
        for (unsigned n = each * i; n < each * i + each; n++)
            d[n] = extreme(&op->mods, is_max, a[n], b[n], infinity);
    }
}

HANDLER_CALLS(min, extreme_all, false)
HANDLER_CALLS(max, extreme_all, true)

DEFINE1(neg_16, uint16_t, uint16_t, a ^ 0x8000)
DEFINE1(abs_16, uint16_t, uint16_t, a & 0x7fff)
DEFINE1(neg_16_ftz, uint16_t, uint16_t, half_flush(a) ^ 0x8000)
DEFINE1(abs_16_ftz, uint16_t, uint16_t, half_flush(a) & 0x7fff)
DEFINE1(neg_32, uint32_t, uint32_t, a ^ 0x80008000)
DEFINE1(abs_32, uint32_t, uint32_t, a & 0x7fff7fff)
#define FLUSH_PAIR(a)                                                                                        \
    ((uint32_t)half_flush((uint16_t)(a)) | (uint32_t)half_flush((uint16_t)((a) >> 16)) << 16)
DEFINE1(neg_32_ftz, uint32_t, uint32_t, FLUSH_PAIR(a) ^ 0x80008000)
DEFINE1(abs_32_ftz, uint32_t, uint32_t, FLUSH_PAIR(a) & 0x7fff7fff)

#define F16S  "t:f16|f16x2"
#define BF16S "t:bf16|bf16x2"

static emu_handler *pick_neg(const emu_mods *m)
{
    if (m->flags & EMU_FTZ)
        return is_packed(m->type) ? neg_32_ftz : neg_16_ftz;
    return is_packed(m->type) ? neg_32 : neg_16;
}

static emu_handler *pick_abs(const emu_mods *m)
{
    if (m->flags & EMU_FTZ)
        return is_packed(m->type) ? abs_32_ftz : abs_16_ftz;
    return is_packed(m->type) ? abs_32 : abs_16;
}

static const emu_row rows[] = {
    {"add", "r:rn? ftz? sat? " F16S, "=t t t", 42, 53, .run = add},
    {"add", "r:rn? " BF16S, "=x x x", 78, 90, .run = add},
    {"sub", "r:rn? ftz? sat? " F16S, "=t t t", 42, 53, .run = sub},
    {"sub", "r:rn? " BF16S, "=x x x", 78, 90, .run = sub},
    {"mul", "r:rn? ftz? sat? " F16S, "=t t t", 42, 53, .run = mul_f16},
    {"mul", "r:rn? " BF16S, "=x x x", 78, 90, .run = mul_bf16},
    {"fma", "r:rn ftz? sat? " F16S, "=t t t t", 42, 53, .run = fma_},
    {"fma", "r:rn ftz? relu " F16S, "=t t t t", 70, 80, .run = fma_},
    {"fma", "r:rn relu? " BF16S, "=x x x x", 70, 80, .run = fma_},
    {"fma", "r:rn oob relu? @half", "=x x x x", 81, 90, .run = fma_},
    {"neg", "ftz? " F16S, "=t t", 60, 53, .pick = pick_neg},
    {"neg", BF16S, "=x x", 70, 80, .pick = pick_neg},
    {"abs", "ftz? " F16S, "=t t", 65, 53, .pick = pick_abs},
    {"abs", BF16S, "=x x", 70, 80, .pick = pick_abs},
    {"min", "ftz? NaN? " F16S, "=t t t", 70, 80, .run = min},
    {"min", "ftz? NaN? xorsign abs " F16S, "=t t t", 72, 86, .run = min},
    {"min", "NaN? " BF16S, "=x x x", 70, 80, .run = min},
    {"min", "NaN? xorsign abs " BF16S, "=x x x", 72, 86, .run = min},
    {"max", "ftz? NaN? " F16S, "=t t t", 70, 80, .run = max},
    {"max", "ftz? NaN? xorsign abs " F16S, "=t t t", 72, 86, .run = max},
    {"max", "NaN? " BF16S, "=x x x", 70, 80, .run = max},
    {"max", "NaN? xorsign abs " BF16S, "=x x x", 72, 86, .run = max},
    {"ex2", "approx " F16S, "=t t", 70, 75, .run = ex2},
    {"ex2", "approx ftz " BF16S, "=x x", 78, 90, .run = ex2},
    {"tanh", "approx " F16S, "=t t", 70, 75, .run = tanh_},
    {"tanh", "approx " BF16S, "=x x", 78, 90, .run = tanh_},
};

EXPORT_ROWS(emu_rows_half);
