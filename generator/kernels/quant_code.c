/* Numbers to codes and back.
 *
 * DIVISION. y = 1/s is rounded correctly, once per group. Then x/s takes three operations, each rounded once: q = x*y, r = x
 * - q*s, q + r*y. They give the correctly rounded quotient for all x and s as long as nothing overflows or underflows with
 * loss of bits (Markstein 1990; Brisebarre, Muller and Raina, IEEE Trans. Computers 53(8), 2004). Groups whose numbers may do
 * that are not plain, and use div.rn.
 *
 * LIFTING. 16-bit elements divided by the scale of their own group give few quotients. So one operation is
 * enough for symmetric codes: x*y + 24, rounded once, lies between 16 and 32, where numbers are 2^-19 apart.
 * That absorbs the error of y: ties come out as ties, and the nearest quotient that is not a tie is much
 * farther away. One tie remains, that of half the largest magnitude m: the scale is m/7 rounded, so the rounded
 * quotient may be next to 7/2, as m's quotient is then next to 7. A group with this tie has no other, and y is
 * moved by about 2^-17, the same way. tests/kernels/quantisers tries all pairs.
 *
 * ROUNDING. Adding 1.5 * 2^23 (f64: 2^52) rounds to an integer, ties to even, in the low bits of the sum. An even number
 * added to the constant shifts the code and preserves ties.
 */
#include "device/nf4_pairs.h"
#include "quant.h"

#define SMALLEST_RANGE 1e-12

/* Per coder. Quotients are clamped to low and high; a code is its quotient plus `shift`. */
static const struct coder {
    double low, high, shift;
    double levels; /* scale = range / levels */
} coders[] = {
    [QUANT_INT4_SYM] = {-8, 7, 8, 7},
    [QUANT_INT4_ASYM] = {0, 15, 0, 15},
    [QUANT_NF4] = {-1, 1, 0, 1},
};

static ptx_val number(const quant *q, double value)
{
    return ptx_number(q->wide, value);
}

/* ---- numbers of a group ------------------------------------------------------------------------------------------- */

static bool has_zero(const quant *q)
{
    return q->coder == QUANT_INT4_ASYM;
}

/* With pairs a NaN wins: a group with one gets a NaN as its scale, and is not plain. */
ptx_op quant_extreme(const quant *q, uint32_t i)
{
    static const ptx_op ops[2][2] = {{PTX_OP_MAX, PTX_OP_MIN}, {PTX_OP_MAX_NAN, PTX_OP_MIN_NAN}};
    return ops[q->has_pairs && q->makes_codes][i];
}

void quant_extremes_add(quant *q, ptx_val extremes[2], ptx_val x)
{
    if (!has_zero(q))
        x = ptx_abs(q->f, x);
    for (uint32_t i = 0; i < q->stored; i++)
        extremes[i] =
            extremes[i].type == PTX_NONE ? x : ptx_op2(q->f, quant_extreme(q, i), extremes[i], x, PTX_HERE);
}

/* The zero is (0 - least) / scale, not -least / scale: so it is +0 for either zero. */
quant_numbers quant_numbers_of(quant *q, const ptx_val extremes[2])
{
    ptx_fn *f = q->f;
    quant_numbers g = {.at = {{0}}};
    ptx_val spread = has_zero(q) ? ptx_sub(f, extremes[0], extremes[1]) : extremes[0];
    g.at[QUANT_RANGE] = ptx_op2(f, quant_extreme(q, 0), spread, number(q, SMALLEST_RANGE), PTX_HERE);
    g.at[QUANT_SCALE] = g.at[QUANT_RANGE];
    if (coders[q->coder].levels != 1)
        g.at[QUANT_SCALE] = ptx_div(f, g.at[QUANT_RANGE], number(q, coders[q->coder].levels));
    if (has_zero(q)) {
        ptx_val negative = ptx_sub(f, number(q, 0), extremes[1]);
        g.at[QUANT_ZERO] = ptx_div(f, negative, g.at[QUANT_SCALE]);
    }
    return g;
}

/* Whether one operation gives the quotient: for NF4 and any scale, the product with the inverse; for symmetric codes and a plain
 * scale, the product plus a lift (see LIFTING). quantisers.product tries all pairs of an element and a scale. */
static bool is_brief(const quant *q)
{
    return !has_zero(q) && q->makes_scales && q->lane_elements == 8;
}

static double lift(const quant *q)
{
    return q->coder == QUANT_INT4_SYM && is_brief(q) ? 24 : 0;
}

/* Within these bounds inverse, quotient and remainder do not overflow, and lose no bits that matter. A NaN scale is outside
 * all of them. */
ptx_val quant_is_plain(quant *q, const quant_numbers *g)
{
    ptx_fn *f = q->f;
    const bool is_f64 = q->wide == PTX_F64;
    ptx_val is_plain = ptx_le(f, g->at[QUANT_SCALE], number(q, is_f64 ? 0x1p1000 : 0x1p120));
    if (!q->makes_scales) {
        ptx_val is_large = ptx_ge(f, g->at[QUANT_SCALE], number(q, is_f64 ? 0x1p-800 : 0x1p-60));
        is_plain = ptx_and(f, is_plain, is_large);
    }
    if (has_zero(q)) {
        ptx_val distance = ptx_abs(f, g->at[QUANT_ZERO]);
        const bool is_clamped = !q->makes_scales || !q->has_pairs;
        ptx_val is_bounded = ptx_le(f, distance, number(q, is_clamped ? 0x1p60 : 0x1p18));
        is_plain = ptx_and(f, is_plain, is_bounded);
    }
    return is_plain;
}

/* See DIVISION. */
static ptx_val exact_quotient(quant *q, ptx_val x, ptx_val inverse, ptx_val minus_scale)
{
    ptx_val approximate = ptx_mul(q->f, x, inverse);
    ptx_val rest = ptx_fma(q->f, approximate, minus_scale, x);
    return ptx_fma(q->f, rest, inverse, approximate);
}

/* See LIFTING: the quotient of the range is 7, or 2^-21 beside it. */
static ptx_val moved_inverse(quant *q, ptx_val range, ptx_val inverse, ptx_val minus_scale)
{
    ptx_val largest = exact_quotient(q, range, inverse, minus_scale);
    ptx_val beside = ptx_sub(q->f, largest, number(q, coders[q->coder].levels));
    ptx_val by = ptx_mul(q->f, beside, number(q, 0x1p4));
    return ptx_fma(q->f, by, inverse, inverse);
}

quant_numbers quant_invert(quant *q, const quant_numbers *g)
{
    const bool is_product = is_brief(q) && lift(q) == 0;
    if (q->is_cut && !is_product)
        return *g;
    quant_numbers made = {.at = {[QUANT_ZERO] = g->at[QUANT_ZERO]}};
    ptx_val inverse = ptx_rcp(q->f, g->at[QUANT_SCALE]), minus_scale = {0};
    if (!is_product)
        minus_scale = ptx_neg(q->f, g->at[QUANT_SCALE]);
    if (lift(q) != 0)
        inverse = moved_inverse(q, g->at[QUANT_RANGE], inverse, minus_scale);
    made.at[QUANT_INVERSE] = inverse;
    if (!is_brief(q))
        made.at[QUANT_MINUS_SCALE] = minus_scale;
    return made;
}

static bool is_inverted(const quant_numbers *g)
{
    return g->at[QUANT_INVERSE].type != PTX_NONE;
}

/* ---- nf4's thresholds --------------------------------------------------------------------------------------------- */

/* The code of a normalised value r in [-1, 1] is the number of thresholds below it. It comes from 32 buckets: bucket
 * rne(14.625 r + 16) has the number of thresholds in the buckets before it (base), and the only threshold within it.
 * Rounding is monotone, so this is exact wherever the buckets' borders are. Lane i holds bucket i. */
#define BUCKETS_PER_UNIT 14.625
#define MIDDLE_BUCKET    16

static double threshold_at(const quant *q, int i)
{
    double middle = (nf4_values[i] + nf4_values[i + 1]) / 2;
    return q->wide == PTX_F64 ? middle : (double)(float)middle;
}

static void load_thresholds(quant *q)
{
    ptx_fn *f = q->f;
    uint64_t thresholds[32], bases[32];
    int below = 0;
    for (int bucket = 0; bucket < 32; bucket++) {
        bases[bucket] = (uint64_t)below;
        thresholds[bucket] = number(q, 2).bits; /* no threshold: r is never above 2 */
        /* The nearest integer is also the nearest even one here: no threshold is half-way. */
        if (below < 15 && (int)(threshold_at(q, below) * BUCKETS_PER_UNIT + MIDDLE_BUCKET + 0.5) == bucket)
            thresholds[bucket] = number(q, threshold_at(q, below++)).bits;
    }
    ptx_val threshold_table = ptx_global_table(f, q->wide, 32, thresholds);
    ptx_val base_table = ptx_global_table(f, PTX_U32, 32, bases);
    ptx_val threshold_address = ptx_at(f, threshold_table, q->lane);
    ptx_val base_address = ptx_at(f, base_table, q->lane);
    q->threshold = ptx_load_hint(f, threshold_address, PTX_NC);
    q->base = ptx_load_hint(f, base_address, PTX_NC);
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* The low 32 bits of a sum that includes a rounder. */
static ptx_val whole_bits(quant *q, ptx_val sum)
{
    if (q->wide != PTX_F64)
        return ptx_as(q->f, PTX_U32, sum);
    ptx_val halves[2];
    ptx_unpack(q->f, PTX_U32, 2, halves, sum);
    return halves[0];
}

/* The constant that rounds by addition, and adds `more` to the integer. */
static ptx_val rounder(const quant *q, double more)
{
    return number(q, (q->wide == PTX_F64 ? 0x1.8p52 : 0x1.8p23) + more);
}

/* Elements beyond these have the limit's code: for a given scale, with arbitrary elements. */
typedef struct limits {
    ptx_val low, high;
} limits;

static limits element_limits(quant *q, const quant_numbers *g)
{
    ptx_fn *f = q->f;
    const struct coder *c = &coders[q->coder];
    ptx_val minus_scale = g->at[QUANT_MINUS_SCALE];
    limits l;
    if (has_zero(q)) { /* far beyond any zero, but nothing overflows */
        double largest = q->wide == PTX_F64 ? 0x1.fffffffffffffp1023 : 0x1.fffffep127;
        ptx_val far = ptx_mul(f, minus_scale, number(q, -0x1p80));
        l.high = ptx_min(f, far, number(q, largest));
        l.low = ptx_neg(f, l.high);
    } else if (q->coder == QUANT_NF4) {
        l.low = minus_scale;
        l.high = ptx_neg(f, minus_scale);
    } else {
        l.low = ptx_mul(f, minus_scale, number(q, -c->low));
        l.high = ptx_mul(f, minus_scale, number(q, -c->high));
    }
    return l;
}

/* The quotient, plus the lift. */
static ptx_val quotient(quant *q, const quant_numbers *g, const limits *l, ptx_val x)
{
    ptx_fn *f = q->f;
    if (!is_inverted(g))
        return ptx_div(f, x, g->at[QUANT_SCALE]);
    if (!q->makes_scales) {
        x = ptx_max(f, x, l->low);
        x = ptx_min(f, x, l->high);
    }
    if (lift(q) != 0)
        return ptx_fma(f, x, g->at[QUANT_INVERSE], number(q, lift(q)));
    if (is_brief(q))
        return ptx_mul(f, x, g->at[QUANT_INVERSE]);
    return exact_quotient(q, x, g->at[QUANT_INVERSE], g->at[QUANT_MINUS_SCALE]);
}

/* Clamps to the coder's low and high if r can be outside; a NaN becomes low. With pairs no group with a NaN gets here with
 * its own scale, and zeros are so small that their rounding changes no code. */
static ptx_val clamp(quant *q, bool is_divided, double lift_of_r, ptx_val r)
{
    ptx_fn *f = q->f;
    const struct coder *c = &coders[q->coder];
    if (!is_divided && (q->makes_scales ? q->has_pairs : !has_zero(q)))
        return r;
    r = ptx_max(f, r, number(q, c->low + lift_of_r));
    return is_divided || has_zero(q) ? ptx_min(f, r, number(q, c->high)) : r;
}

/* The nibble of a lane's word that holds its i-th code. */
static uint32_t nibble_of(const quant *q, uint32_t i)
{
    return q->is_high_first ? i ^ 1 : i;
}

/* Adds the code of r - lift, times 16^nibble, to the word; nibble 0 sets the word, minus the excess. */
static void add_code(quant *q, ptx_val r, double lift_of_r, uint32_t nibble, uint32_t excess, ptx_val *word)
{
    ptx_fn *f = q->f;
    ptx_val weight = ptx_u32(UINT32_C(1) << 4 * nibble);
    if (q->coder != QUANT_NF4) {
        ptx_val sum = ptx_add(f, r, rounder(q, coders[q->coder].shift - lift_of_r));
        ptx_val bits = whole_bits(q, sum);
        if (nibble == 0)
            *word = excess == 0 ? bits : ptx_sub(f, bits, excess);
        else
            *word = ptx_mad(f, bits, weight, *word);
        return;
    }
    ptx_val sum = ptx_fma(f, r, number(q, BUCKETS_PER_UNIT), rounder(q, MIDDLE_BUCKET));
    ptx_val bucket = whole_bits(q, sum); /* a shuffle takes its low five bits */
    ptx_val threshold = ptx_shfl_idx(f, q->threshold, bucket);
    ptx_val base = ptx_shfl_idx(f, q->base, bucket);
    *word = ptx_var(f, nibble == 0 ? base : ptx_mad(f, base, weight, *word));
    ptx_val is_above = ptx_gt(f, r, threshold);
    PTX_WHEN (f, is_above) {
        ptx_add_to(f, *word, weight);
    }
}

ptx_val quant_codes(quant *q, const quant_numbers *g, uint32_t stride, const ptx_val x[], uint32_t count)
{
    ptx_fn *f = q->f;
    const double lifted = is_inverted(g) ? lift(q) : 0;
    limits l = {0};
    if (is_inverted(g) && !q->makes_scales)
        l = element_limits(q, g);
    /* The sum of the rounders' own bits, times 1, 16, ... 16^7. With fewer than 8 codes, the sum's bits are
     * above the codes. */
    uint32_t excess = 0;
    for (uint32_t i = 0; i < count && count == 8 && q->coder != QUANT_NF4; i++)
        excess += (uint32_t)rounder(q, 0).bits << 4 * i;
    ptx_val word = ptx_u32(0);
    for (uint32_t nibble = 0; nibble < count; nibble++) {
        uint32_t i = nibble_of(q, nibble); /* nibble_of is its own inverse */
        const quant_numbers *of_x = &g[i * stride];
        ptx_val r = quotient(q, of_x, &l, x[i]);
        if (has_zero(q))
            r = ptx_add(f, r, of_x->at[QUANT_ZERO]);
        r = clamp(q, !is_inverted(g), lifted, r);
        add_code(q, r, lifted, nibble, excess, &word);
    }
    return word;
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static ptx_val load_values(quant *q)
{
    ptx_fn *f = q->f;
    if (q->coder != QUANT_NF4) {
        ptx_val code = ptx_and(f, q->lane, 15);
        ptx_val value = ptx_cvt(f, PTX_F32, code);
        return q->coder == QUANT_INT4_SYM ? ptx_sub(f, value, 8) : value;
    }
    uint64_t values[32];
    for (int i = 0; i < 32; i++)
        values[i] = ptx_f32((float)nf4_values[i % 16]).bits;
    ptx_val table = ptx_global_table(f, PTX_F32, 32, values);
    return ptx_load_hint(f, ptx_at(f, table, q->lane), PTX_NC);
}

ptx_val quant_value(quant *q, const quant_numbers *g, ptx_val codes, uint32_t i)
{
    ptx_fn *f = q->f;
    uint32_t nibble = nibble_of(q, i);
    ptx_val code = nibble == 0 ? codes : ptx_shr(f, codes, 4 * nibble);
    ptx_val value = ptx_shfl_idx(f, q->value, code);
    if (q->wide == PTX_F64)
        value = ptx_cvt(f, PTX_F64, value);
    if (has_zero(q))
        value = ptx_sub(f, value, g->at[QUANT_ZERO]);
    return ptx_mul(f, value, g->at[QUANT_SCALE]);
}

void quant_load_tables(quant *q)
{
    if (q->makes_codes && q->coder == QUANT_NF4)
        load_thresholds(q);
    if (!q->makes_codes && !q->makes_scales)
        q->value = load_values(q);
}
