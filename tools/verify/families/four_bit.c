/* References of INT4 and NF4: scale, pack, quantize and unpack. All results are exact, bit for bit. */
#include "four_bit.h"

#include <math.h>

#include "groups.h"
#include "inputs.h"
#include "nf4.h"

const four_bit_format four_bit_int4_sym = {.range = 7}, four_bit_int4_asym = {.range = 15, .has_zero = true},
                      four_bit_nf4 = {.range = 1, .levels = nf4_table};

/* ---- the arithmetic, one element or group at a time -------------------------------------------------------------- */

typedef four_bit_format format;
typedef four_bit_numbers numbers;

static double largest_of(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

/* Computes a group's numbers. `most`: the largest element; for a format without a zero, the largest magnitude. */
static numbers numbers_from(const format *f, element_type arithmetic, double most, double minus_least)
{
    double least_range = arithmetic == ELEMENT_F64 ? 1e-12 : (double)1e-12f;
    double range = f->has_zero ? groups_add(arithmetic, most, minus_least) : most;
    if (!(range >= least_range))
        range = least_range;
    numbers g = {.scale = groups_divide(arithmetic, range, f->range)};
    if (f->has_zero)
        g.zero = groups_divide(arithmetic, minus_least + 0.0, g.scale); /* + 0 turns -0 into 0 */
    return g;
}

numbers four_bit_numbers_of(const format *f, const argument *in, uint64_t first, uint64_t last)
{
    double most = NAN, minus_least = NAN, magnitude = NAN;
    for (uint64_t i = first; i < last; i++) {
        double x = element_get(in->about->type, in->host, i);
        if (isnan(x))
            continue;
        most = largest_of(most, x);
        minus_least = largest_of(minus_least, -x);
        magnitude = largest_of(magnitude, fabs(x));
    }
    return numbers_from(f, groups_arithmetic(in->about->type), f->has_zero ? most : magnitude, minus_least);
}

/* Returns the code of a quotient plus its zero. A NaN gives 0. */
static unsigned code_of_sum(const format *f, element_type arithmetic, double q)
{
    double low = f->has_zero ? 0 : -8, high = low + 15;
    if (f->levels)
        return nf4_code(arithmetic, q);
    q = nearbyint(q);
    if (!(q > low))
        return 0;
    return (unsigned)((q < high ? q : high) - low);
}

static unsigned code_of_quotient(const format *f, element_type arithmetic, numbers g, double q)
{
    return code_of_sum(f, arithmetic, f->has_zero ? groups_add(arithmetic, q, g.zero) : q);
}

static unsigned code_of(const format *f, element_type arithmetic, numbers g, double x)
{
    return code_of_quotient(f, arithmetic, g, groups_divide(arithmetic, x, g.scale));
}

static double value_of(const format *f, element_type arithmetic, numbers g, unsigned code)
{
    double q = f->levels     ? f->levels[code]
               : f->has_zero ? groups_subtract(arithmetic, code, g.zero)
                             : (double)code - 8;
    return groups_multiply(arithmetic, q, g.scale);
}

/* Returns the quotient between codes i and i + 1. */
static double threshold_of(const format *f, element_type arithmetic, double zero, uint64_t i)
{
    return f->levels ? nf4_threshold(arithmetic, (int)i) : (double)i + 0.5 - (f->has_zero ? zero : 8);
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static const format *format_of(const problem *p)
{
    return problem_has_parameter(p, "mode", "asym")  ? &four_bit_int4_asym
           : problem_has_parameter(p, "mode", "sym") ? &four_bit_int4_sym
                                                     : &four_bit_nf4;
}

static bool is_given(const argument *a)
{
    return a->about->direction == DIRECTION_IN;
}

/* Returns number g of an array: the given one, or the expected one. */
static double number_at(const argument *a, uint64_t g)
{
    return element_get(a->about->type, is_given(a) ? a->host : a->expected_bits, g);
}

static numbers numbers_at(problem *p, uint64_t g)
{
    const argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    return (numbers){.scale = scale ? number_at(scale, g) : nf4_given_scale(p, g),
                     .zero = zero ? number_at(zero, g) : 0};
}

static void expect_numbers(problem *p)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    expect_bits(p, scale);
    if (zero)
        expect_bits(p, zero);
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        numbers made = four_bit_numbers_of(format_of(p), in, range.first, range.last);
        element_set(scale->about->type, scale->expected_bits, g, made.scale);
        if (zero)
            element_set(zero->about->type, zero->expected_bits, g, made.zero);
    }
}

static void expect_codes(problem *p)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed");
    const element_type arithmetic = groups_arithmetic(in->about->type);
    const unsigned even_shift = groups_even_shift(p);
    expect_bits(p, packed);
    unsigned char *bytes = packed->expected_bits;
    for (uint64_t g = 0; g < groups_count(p); g++) {
        const group_range range = groups_range(p, g);
        const numbers here = numbers_at(p, g);
        for (uint64_t i = range.first; i < range.last; i++) {
            unsigned code =
                code_of(format_of(p), arithmetic, here, element_get(in->about->type, in->host, i));
            bytes[i / 2] = (unsigned char)(bytes[i / 2] | code << groups_shift(even_shift, i));
        }
    }
}

/* Expects elements: the product is rounded to the arithmetic's type, then to the elements' type. */
static void expect_elements(problem *p)
{
    argument *packed = problem_find(p, "packed"), *out = problem_find(p, "out");
    const element_type arithmetic = groups_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    expect_bits(p, out);
    for (uint64_t g = 0; g < groups_count(p); g++) {
        const group_range range = groups_range(p, g);
        const numbers here = numbers_at(p, g);
        for (uint64_t i = range.first; i < range.last; i++) {
            unsigned code = bytes[i / 2] >> groups_shift(even_shift, i) & 15;
            element_set(out->about->type, out->expected_bits, i,
                        value_of(format_of(p), arithmetic, here, code));
        }
    }
}

static void expect(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    const argument *scale = problem_find(p, "scale"), *packed = problem_find(p, "packed");
    if (scale && !is_given(scale))
        expect_numbers(p);
    if (packed && !is_given(packed))
        expect_codes(p);
    if (problem_find(p, "out"))
        expect_elements(p);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Returns an element with a quotient at a threshold between codes: a group's extremes are the format's range times
 * an odd number m with few bits, its elements thresholds times m. Every other element is one ulp above or below
 * its product. */
static double threshold_element(const format *f, element_type type, bool is_negative, random_stream s,
                                uint64_t g, uint64_t place)
{
    const int fraction = type == ELEMENT_BF16 ? 8 : type == ELEMENT_F16 ? 11 : 20;
    const int bits = f->levels ? 1 : fraction - (f->has_zero ? 5 : 4); /* so that products are exact */
    const double m = ldexp((double)(2 * random_below(s, 2 * g, UINT64_C(1) << (bits - 1)) + 1),
                           (int)random_below(s, 2 * g + 1, 9) - 4 - bits / 2);
    const double zero = f->has_zero ? (double)random_below(random_fork(s, 1), g, 16) : 0;
    const random_stream choice = random_fork(random_fork(s, 2), g);
    if (place == 0)
        return m * (f->has_zero ? -zero : is_negative ? -f->range : f->range);
    if (place == 1 && f->has_zero)
        return m * (f->range - zero);
    const uint64_t first =
        f == &four_bit_int4_sym; /* its first threshold is outside the range of the elements */
    const uint64_t i = first + random_below(choice, place, 15 - first);
    static const int steps[] = {0, -1, 0, 1};
    return groups_step(type, m * threshold_of(f, groups_arithmetic(type), zero, i),
                       steps[random_below(random_fork(choice, 1), place, 4)]);
}

/* A group whose codes depend on the rounding of quotients, or of their sums with the zero. */
typedef struct hard_group {
    const format *format;
    element_type type, arithmetic;
    bool has_half; /* the zero is k + 0.5: tiny elements are near a threshold */
    numbers numbers;
    double least, most; /* bounds of the elements; infinite where the numbers are given */
    double middle;      /* an element adjacent to a threshold, if the type has such an element */
    double distance;    /* from a chosen threshold to the middle's quotient */
    bool is_negative;   /* sign of the extreme of a group without a zero */
    bool has_nans;
} hard_group;

/* Returns whether rounding the quotient or the sum the other way gives another code. */
static bool is_hard(const hard_group *h, double x)
{
    const element_type a = h->arithmetic;
    const double q = groups_divide(a, x, h->numbers.scale), zero = h->numbers.zero;
    const double other = groups_other_quotient(a, x, h->numbers.scale);
    if (code_of_quotient(h->format, a, h->numbers, q) != code_of_quotient(h->format, a, h->numbers, other))
        return true;
    return h->format->has_zero && code_of_sum(h->format, a, groups_add(a, q, zero)) !=
                                      code_of_sum(h->format, a, groups_other_sum(a, q, zero));
}

/* Returns whether the product with the scale's inverse, which kernels compute first, gives another code than the
 * quotient. */
static bool is_product_wrong(const hard_group *h, double x)
{
    const element_type a = h->arithmetic;
    const double product = groups_multiply(a, x, groups_divide(a, 1, h->numbers.scale));
    return code_of_quotient(h->format, a, h->numbers, product) != code_of(h->format, a, h->numbers, x);
}

/* The only mantissas of scales and elements whose codes show how the scale's inverse is rounded; for f32, down and
 * up. For f16 kernels may use only the product with the inverse: for NF4 this is the only pair whose quotient
 * rounds to a threshold. */
typedef struct rare_pair {
    double scale, element;
} rare_pair;
static const rare_pair int4_rare[] = {{0x1.fffffep0, 1}, {0x1.fffff8p0, 0x1.3ffffcp2}},
                       nf4_rare[] = {{0x1.a7d1c2p0, -0x1.02cc4cp0}, {0x1.b79026p0, -0x1.74cab6p0}},
                       nf4_rare_f16 = {0x1.edcp0, -0x1.2d8p0};

/* Makes a rare pair in one group of 4, if the type has one. */
static bool make_rare(hard_group *h, random_stream s)
{
    const bool is_nf4 = h->format->levels, is_f16 = h->type == ELEMENT_F16;
    const double power = ldexp(1, (int)random_below(s, 11, 9) - 4);
    const uint64_t i = random_below(s, 10, 2);
    const rare_pair pair = !is_nf4 ? int4_rare[i] : is_f16 ? nf4_rare_f16 : nf4_rare[i];
    if (random_below(s, 7, 4) != 0 || (is_nf4 && !is_f16 && h->type != ELEMENT_F32))
        return false;
    h->numbers.scale = pair.scale * power;
    h->middle = pair.element * power;
    return true;
}

static double rounded(const hard_group *h, double x)
{
    return number_decode(h->type, number_encode(h->type, x));
}

/* Makes numbers that follow from the elements. Half of the zeros are k + 0.5, with scales of few bits; a quarter
 * are 0, the rest any number. */
static void make_own(hard_group *h, random_stream s)
{
    const format *f = h->format;
    const uint64_t choice = f->has_zero ? random_below(s, 2, 4) : 3;
    const bool may_be_rare = h->type == ELEMENT_F32 || (f->levels && h->type == ELEMENT_F16);
    bool is_rare = false;
    h->has_half = choice < 2;
    h->most = groups_any_mantissa(h->type, s, 0);
    if (h->has_half) {
        const double scale = ldexp(1 + 2 * (double)random_below(s, 3, 4), 1 + (int)random_below(s, 4, 7));
        h->least = -scale * ((double)random_below(s, 5, 15) + 0.5);
        h->most = h->least + f->range * scale;
    } else if (choice == 2) {
        h->least = -groups_any_mantissa(h->type, s, 3);
    } else if (may_be_rare && make_rare(h, s)) {
        h->most = rounded(h, f->range * h->numbers.scale);
        is_rare = true;
    }
    h->numbers = numbers_from(f, h->arithmetic, h->most, -h->least);
    const double threshold = threshold_of(f, h->arithmetic, 0, random_below(s, 8, 15));
    if (!is_rare)
        h->middle =
            rounded(h, f->levels ? threshold * h->numbers.scale : h->least + (h->most - h->least) / 2);
    if (f->levels)
        h->distance = fabs(h->middle / h->numbers.scale - threshold);
    if (!f->has_zero)
        h->least = -h->most;
}

/* Makes numbers with which an element of few bits is close to a threshold of the quotient or of the sum. */
static void make_given(hard_group *h, random_stream s)
{
    const uint64_t choice = h->format->has_zero ? random_below(s, 2, 4) : 3;
    h->has_half = choice < 2;
    h->numbers.zero = h->has_half   ? (double)random_below(s, 3, 15) + 0.5
                      : choice == 2 ? groups_add(h->arithmetic, 17 * random_uniform(s, 3), -1)
                                    : 0;
    double quotient = threshold_of(h->format, h->arithmetic, h->numbers.zero, random_below(s, 4, 15));
    if (quotient == 0)
        quotient = 0.5;
    h->middle = copysign(groups_any_mantissa(h->type, s, 5), quotient);
    h->numbers.scale = groups_step(h->arithmetic, h->middle / quotient, (int)random_below(s, 6, 5) - 2);
    make_rare(h, s);
    h->most = INFINITY;
    h->least = -INFINITY;
}

/* Makes a hard group. If none is found, which for 16-bit elements is usual: the one whose middle is closest to a threshold. */
static hard_group make_hard_group(const format *f, element_type type, bool has_numbers, random_stream s,
                                  uint64_t g)
{
    enum { ATTEMPTS = 32, THOROUGH = 16 };
    hard_group closest = {.distance = INFINITY};
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        const random_stream here = random_fork(random_fork(s, g), attempt);
        hard_group h = {.format = f, .type = type, .arithmetic = groups_arithmetic(type)};
        if (has_numbers)
            make_given(&h, here);
        else
            make_own(&h, here);
        const bool is_thorough = g % 2 && attempt < THOROUGH;
        if (h.has_half || (is_hard(&h, h.middle) && (!is_thorough || is_product_wrong(&h, h.middle))))
            return h;
        if (h.distance < closest.distance)
            closest = h;
    }
    return closest;
}

static double hard_candidate(const hard_group *h, random_stream s, uint64_t i)
{
    const uint64_t choice = random_below(s, 4 * i, 8);
    const double scale = h->numbers.scale, sign = random_below(s, 4 * i + 1, 2) ? 1 : -1;
    if (h->has_half && choice < 6)
        return sign * scale *
               ldexp(1 + random_uniform(s, 4 * i + 2), -20 - (int)random_below(s, 4 * i + 3, 8));
    if (choice < 3)
        return h->format == &four_bit_int4_sym ? sign * h->middle : h->middle;
    const double threshold =
        threshold_of(h->format, h->arithmetic, h->numbers.zero, random_below(s, 4 * i + 2, 15));
    return groups_step(h->type, threshold * scale, (int)random_below(s, 4 * i + 3, 3) - 1);
}

/* Returns an element near the ends of the codes, or far outside. */
static double far_element(const hard_group *h, random_stream s, uint64_t place)
{
    const double code = random_uniform(s, 3 * place + 1) * 32 - 8;
    const double q = h->format->levels ? code / 8 - 1 : code - (h->format->has_zero ? h->numbers.zero : 8);
    const double largest = number_largest(h->type);
    return random_below(s, 3 * place + 2, 4) ? q * h->numbers.scale : q < 0 ? -largest : largest;
}

/* Returns an element of a hard group: first the extremes, if the numbers follow from the elements; then some NaNs,
 * some elements outside the codes if the numbers are given, and otherwise the first hard element of a few random
 * ones. */
static double hard_element(const hard_group *h, random_stream s, uint64_t place)
{
    enum { ATTEMPTS = 6 };
    const bool has_zero = h->format->has_zero;
    double x = 0;
    if (place < 2 && !isinf(h->most) && (place == 0 || has_zero))
        return place == 1 || (!has_zero && h->is_negative) ? h->least : h->most;
    if (h->has_nans && random_below(random_fork(s, 0), place, 12) == 0)
        return NAN;
    if (isinf(h->most) && random_below(s, 3 * place, 8) == 0)
        return far_element(h, s, place);
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        x = hard_candidate(h, random_fork(s, 1 + attempt), place);
        x = fmin(fmax(rounded(h, x), h->least), h->most);
        if (is_hard(h, x))
            break;
    }
    return x;
}

/* Makes the largest magnitude, or the range, just below, at or just above 1e-12. F16 has only 0 below it: most groups get that. */
static double near_smallest(element_type type, random_stream s, uint64_t g, uint64_t place)
{
    const int steps = (int)(g % 5) - 2;
    double most = groups_step(type, 1e-12, type == ELEMENT_F16 ? steps / 2 : steps);
    return place == 0 ? most : place == 1 ? 0 : most * random_uniform(random_fork(s, g), place);
}

/* What the elements of a group share. */
typedef struct group_makings {
    const format *format;
    element_type type;
    int kind;
    bool is_negative; /* sign of its extreme */
    uint64_t g;
    group_range range;
    uint64_t extreme; /* index of the extreme */
} group_makings;

static group_makings makings_of(problem *p, const argument *in, int kind, random_stream s, uint64_t g)
{
    const group_range range = groups_range(p, g);
    return (group_makings){.format = format_of(p),
                           .type = in->about->type,
                           .kind = kind,
                           .is_negative = groups_extreme_is_negative(p, g),
                           .g = g,
                           .range = range,
                           .extreme = groups_extreme_place(p, s, g, range.last - range.first)};
}

/* Returns an element's index in its group. The first two are its extremes, if it has any, and can be anywhere. */
static uint64_t place_of(const group_makings *m, uint64_t i)
{
    const uint64_t count = m->range.last - m->range.first;
    return (i - m->range.first + count - m->extreme) % count;
}

static double make_element(const group_makings *m, random_stream s, uint64_t place)
{
    const uint64_t g = m->g;
    random_stream here = random_fork(s, g);
    switch (m->kind) {
    case GROUPS_THRESHOLDS:
        return threshold_element(m->format, m->type, m->is_negative, s, g, place);
    case GROUPS_NEAR_SMALLEST:
        return (m->is_negative ? -1 : 1) * near_smallest(m->type, s, g, place);
    case GROUPS_EQUAL: /* smallest and largest are equal, of any size up to 1e25 */
        return random_normal(here, 0) * ldexp(1, (int)random_below(here, 1, 166) - 83);
    case GROUPS_HUGE:
        return (2 * random_uniform(here, place) - 1) * 1e25;
    default: /* the range is far from 0, so the zero is large */
        return random_normal(here, 0) * ldexp(1, (int)random_below(here, 1, 40) - 20) *
               (1 + ldexp(random_uniform(here, place + 2), -(int)random_below(here, 2, 30)));
    }
}

static void fill_group(problem *p, argument *in, int kind, random_stream s, uint64_t g)
{
    const group_makings m = makings_of(p, in, kind, s, g);
    for (uint64_t i = m.range.first; i < m.range.last; i++)
        element_set(m.type, in->host, i, make_element(&m, s, place_of(&m, i)));
}

/* Makes the elements of a hard group, and its numbers if they are given. */
static void fill_hard_group(problem *p, argument *in, random_stream s, uint64_t g)
{
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    const group_makings m = makings_of(p, in, GROUPS_HARD, s, g);
    hard_group h = make_hard_group(m.format, m.type, is_given(scale), s, g);
    h.is_negative = m.is_negative;
    h.has_nans = groups_may_have_nans(p, s, g);
    for (uint64_t i = m.range.first; i < m.range.last; i++)
        element_set(m.type, in->host, i, hard_element(&h, random_fork(s, ~g), place_of(&m, i)));
    if (is_given(scale))
        element_set(scale->about->type, scale->host, g, h.numbers.scale);
    if (zero && is_given(zero))
        element_set(zero->about->type, zero->host, g, h.numbers.zero);
}

static void fill_elements(problem *p, argument *in, int kind, random_stream s)
{
    if (kind < GROUPS_THRESHOLDS)
        groups_fill_elements(p, in, kind, s);
    for (uint64_t g = 0; g < groups_count(p); g++) {
        const int here = groups_kind_of(p, s, g, kind);
        if (here >= GROUPS_THRESHOLDS && here != GROUPS_HARD)
            fill_group(p, in, here, s, g);
    }
}

static void fill_hard_groups(problem *p, argument *in, int kind, random_stream s)
{
    for (uint64_t g = 0; g < groups_count(p); g++) {
        if (groups_kind_of(p, s, g, kind) == GROUPS_HARD)
            fill_hard_group(p, in, s, g);
    }
}

/* Fills given numbers: those that follow from the elements, slightly changed ones, or random ones. */
static void fill_numbers(problem *p, argument *in, int kind, random_stream s)
{
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    if (!in || kind == GROUPS_ANY_SCALE || kind == GROUPS_NONFINITE_SCALE) {
        groups_fill_numbers(scale, kind, s);
        if (zero)
            groups_fill_numbers(zero, kind, random_fork(s, 1));
        return;
    }
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        numbers here = four_bit_numbers_of(format_of(p), in, range.first, range.last);
        double ratio = kind == INPUT_UNIFORM ? 2 * random_uniform(s, g) + 0.01 : 1;
        element_set(scale->about->type, scale->host, g, ratio * here.scale);
        if (zero)
            element_set(zero->about->type, zero->host, g, here.zero);
    }
}

/* Gives three quarters of the group's elements a code from `code` to `most`. */
static void fill_codes(problem *p, uint64_t g, unsigned code, unsigned most, random_stream s)
{
    argument *packed = problem_find(p, "packed");
    const group_range range = groups_range(p, g);
    for (uint64_t i = range.first; i < range.last; i++) {
        const unsigned here = code + (unsigned)random_below(s, 2 * i, most - code + 1);
        if (random_below(s, 2 * i + 1, 4))
            groups_set_code(p, packed, i, here);
    }
}

/* Makes a scale of 1, and a zero near a tie of the outputs' type for codes from 8 on: the kernel rounds a code minus the
 * zero to that type. */
static void fill_near_tie_of_sum(problem *p, uint64_t g, bool is_brief, random_stream s)
{
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    const int bits = is_brief ? 5 : 8; /* bits of a tie's fraction, below 8 */
    const double tie = ldexp(1 + 2 * (double)random_below(s, 0, UINT64_C(1) << (bits - 1)), -bits);
    const double near = ldexp(1 + random_uniform(s, 2), random_below(s, 3, 2) ? -23 : -22);
    element_set(zero->about->type, zero->host, g, tie + (random_below(s, 4, 2) ? near : -near));
    element_set(scale->about->type, scale->host, g, 1);
    fill_codes(p, g, 8, 15, random_fork(s, 5));
}

/* Makes a scale with which a code's value is close to a tie, and an integer zero. The value is not a power of two,
 * since such products are not rounded. In half of the groups with a zero the sum is close to a tie instead. */
static void fill_near_tie(problem *p, uint64_t g, random_stream s)
{
    static const unsigned values[] = {3, 5, 6, 7};
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    const element_type outputs = problem_find(p, "out")->about->type;
    const bool is_brief = outputs == ELEMENT_BF16 || (outputs != ELEMENT_F16 && random_below(s, g, 2));
    const random_stream here = random_fork(s, g);
    if (zero && random_below(here, 1, 2)) {
        fill_near_tie_of_sum(p, g, is_brief, here);
        return;
    }
    const double *levels = format_of(p)->levels;
    const unsigned level = 1 + (unsigned)random_below(here, 8, 13), value = values[random_below(s, g, 4)],
                   whole = zero ? (unsigned)random_below(here, 6, 16 - value) : 8,
                   code = !levels     ? whole + value
                          : level < 7 ? level
                                      : level + 1; /* skips -1, 0, 1 */
    element_set(scale->about->type, scale->host, g,
                groups_near_tie_scale(outputs, levels ? fabs(levels[code]) : value, here, 0));
    if (zero)
        element_set(zero->about->type, zero->host, g, whole);
    fill_codes(p, g, code, code, random_fork(here, 7));
}

static void make_nested_codes(problem *p, const input_pattern *pattern, random_stream s)
{
    const bool is_usual = pattern->number == INPUT_NORMAL || pattern->number == INPUT_UNIFORM;
    groups_fill_numbers(problem_find(p, "nested_code"), pattern->number, random_fork(s, 2));
    nf4_make_nested(p, is_usual, random_fork(s, 4));
    inputs_fill_bytes(problem_find(p, "packed"), random_fork(s, 3));
    inputs_fill_bytes(problem_find(p, "scale_index"), random_fork(s, 5));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"),
             *packed = problem_find(p, "packed");
    if (!scale) {
        make_nested_codes(p, pattern, s);
        return;
    }
    if (in)
        fill_elements(p, in, pattern->number, random_fork(s, 1));
    if (is_given(scale))
        fill_numbers(p, in, pattern->number, random_fork(s, 2));
    if (in) {
        fill_hard_groups(p, in, pattern->number, random_fork(s, 1));
        groups_finish_blocks(p, in, is_given(scale) ? scale : NULL, random_fork(s, 1));
    }
    if (!packed || !is_given(packed))
        return;
    inputs_fill_bytes(packed, random_fork(s, 3));
    for (uint64_t g = 0; g < scale->count; g++) {
        if (pattern->number == GROUPS_NEAR_TIE || groups_share_of(s, g) != GROUPS_OWN)
            fill_near_tie(p, g, random_fork(s, 4));
    }
}

/* clang-format off */
static const input_pattern element_patterns[] = {
    {"normal",        PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"thresholds",    PATTERN_LARGE,                  GROUPS_THRESHOLDS},
    {"hard",          0,                              GROUPS_HARD},
    {"near-smallest", 0,                              GROUPS_NEAR_SMALLEST},
    {"equal-groups",  0,                              GROUPS_EQUAL},
    {"huge",          PATTERN_RANDOM,                 GROUPS_HUGE},
    {"far",           PATTERN_RANDOM,                 GROUPS_FAR},
    {"uniform",       PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",          PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",      0,                              INPUT_DENORMAL},
    {"largest",       0,                              INPUT_LARGEST},
    {"zero",          0,                              INPUT_ZERO},
    {"equal",         0,                              INPUT_EQUAL},
    {"alternating",   0,                              INPUT_ALTERNATING},
    {"huge-tiny",     0,                              INPUT_HUGE_TINY},
    {"any-bits",      PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"nonfinite",     PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",           PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",      PATTERN_NONFINITE,              GROUPS_INFINITY},
    {NULL,            0,                              0},
};

static const input_pattern pack_patterns[] = {
    {"normal",          PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"thresholds",      PATTERN_LARGE,                  GROUPS_THRESHOLDS},
    {"hard",            0,                              GROUPS_HARD},
    {"equal-groups",    0,                              GROUPS_EQUAL},
    {"huge",            PATTERN_RANDOM,                 GROUPS_HUGE},
    {"far",             PATTERN_RANDOM,                 GROUPS_FAR},
    {"uniform",         PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"real",            PATTERN_LARGE,                  INPUT_REAL},
    {"denormal",        0,                              INPUT_DENORMAL},
    {"largest",         0,                              INPUT_LARGEST},
    {"any-bits",        PATTERN_RANDOM,                 INPUT_ANY_BITS},
    {"any-scale",       PATTERN_RANDOM | PATTERN_LARGE, GROUPS_ANY_SCALE},
    {"nonfinite",       PATTERN_NONFINITE,              INPUT_NONFINITE},
    {"nan",             PATTERN_NONFINITE,              GROUPS_NAN},
    {"infinity",        PATTERN_NONFINITE,              GROUPS_INFINITY},
    {"nonfinite-scale", PATTERN_NONFINITE,              GROUPS_NONFINITE_SCALE},
    {NULL,              0,                              0},
};

static const input_pattern code_patterns[] = {
    {"normal",    PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"ties",      PATTERN_LARGE,                  GROUPS_TIE_SCALE},
    {"near-ties", PATTERN_LARGE,                  GROUPS_NEAR_TIE},
    {"uniform",   PATTERN_RANDOM,                 INPUT_UNIFORM},
    {"denormal",  0,                              INPUT_DENORMAL},
    {"largest",   0,                              INPUT_LARGEST},
    {"zero",      0,                              INPUT_ZERO},
    {"any-bits",  PATTERN_RANDOM | PATTERN_LARGE, INPUT_ANY_BITS},
    {"nonfinite", PATTERN_NONFINITE,              INPUT_NONFINITE},
    {NULL,        0,                              0},
};
/* clang-format on */

#define ROW(family, of_args, of_patterns)                                                                    \
    const family_row family##_row = {.name = #family,                                                        \
                                     .args = of_args,                                                        \
                                     .patterns = of_patterns,                                                \
                                     .plan = groups_plan,                                                    \
                                     .make = make,                                                           \
                                     .expect = expect,                                                       \
                                     .expects_nonfinite = true};
ROW(int4_scale, "in scale n", element_patterns)
ROW(int4_pack, "in scale packed n", pack_patterns)
ROW(int4_quantize, "in scale packed n", element_patterns)
ROW(int4_unpack, "packed scale out n", code_patterns)
ROW(nf4_scale, "in scale n", element_patterns)
ROW(nf4_pack, "in scale packed n", pack_patterns)
ROW(nf4_quantize, "in scale packed n", element_patterns)
ROW(nf4_unpack, "packed out n", code_patterns)
/* clang-format on */
