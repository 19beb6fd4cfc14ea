/* INT4 references: scale, pack, quantize and unpack. All results are exact, bit for bit. */
#include "int4.h"

#include <math.h>

#include "groups.h"
#include "inputs.h"

/* ---- the arithmetic, one element or group at a time -------------------------------------------------------------- */

typedef enum int4_mode { INT4_SYM, INT4_ASYM } int4_mode;

typedef struct int4_numbers {
    double scale, zero; /* zero: asymmetric only */
} int4_numbers;

static double largest_of(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

/* `most`: the largest element, or of a symmetric group the largest magnitude. */
static int4_numbers numbers_of(int4_mode mode, element_type arithmetic, double most, double minus_least)
{
    double least_range = arithmetic == ELEMENT_F64 ? 1e-12 : (double)1e-12f;
    double range = mode == INT4_ASYM ? groups_add(arithmetic, most, minus_least) : most;
    if (!(range >= least_range))
        range = least_range;
    int4_numbers g = {.scale = groups_divide(arithmetic, range, mode == INT4_ASYM ? 15 : 7)};
    g.zero = groups_divide(arithmetic, minus_least + 0.0, g.scale); /* + 0: a zero without a sign */
    return g;
}

/* Those of elements [first, last) of an array. A NaN has no part in them; where there is nothing else, zero is a NaN. */
static int4_numbers numbers_in(int4_mode mode, const argument *in, uint64_t first, uint64_t last)
{
    element_type arithmetic = groups_arithmetic(in->about->type);
    double most = NAN, minus_least = NAN, magnitude = NAN;
    for (uint64_t i = first; i < last; i++) {
        double x = element_get(in->about->type, in->host, i);
        if (isnan(x))
            continue;
        most = largest_of(most, x);
        minus_least = largest_of(minus_least, -x);
        magnitude = largest_of(magnitude, fabs(x));
    }
    return numbers_of(mode, arithmetic, mode == INT4_ASYM ? most : magnitude, minus_least);
}

/* The code of a quotient to which a zero was added. */
static unsigned code_of_sum(int4_mode mode, double q)
{
    double low = mode == INT4_ASYM ? 0 : -8, high = low + 15;
    q = nearbyint(q);
    if (!(q > low))
        return 0;
    return (unsigned)((q < high ? q : high) - low);
}

static unsigned code_of_quotient(int4_mode mode, element_type arithmetic, int4_numbers g, double q)
{
    return code_of_sum(mode, mode == INT4_ASYM ? groups_add(arithmetic, q, g.zero) : q);
}

/* 0 to 15; a NaN gives 0. */
static unsigned code_of(int4_mode mode, element_type arithmetic, int4_numbers g, double x)
{
    return code_of_quotient(mode, arithmetic, g, groups_divide(arithmetic, x, g.scale));
}

static double value_of(int4_mode mode, element_type arithmetic, int4_numbers g, unsigned code)
{
    double q = mode == INT4_ASYM ? groups_subtract(arithmetic, code, g.zero) : (double)code - 8;
    return groups_multiply(arithmetic, q, g.scale);
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static int4_mode mode_of(const problem *p)
{
    return problem_has_parameter(p, "mode", "asym") ? INT4_ASYM : INT4_SYM;
}

/* From arrays of scales and zeros in the kernel's type. */
static int4_numbers numbers_at(element_type type, const void *scales, const void *zeros, uint64_t g)
{
    int4_numbers numbers = {.scale = element_get(type, scales, g)};
    if (zeros)
        numbers.zero = element_get(type, zeros, g);
    return numbers;
}

static void expect_numbers(problem *p)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    element_type type = scale->about->type;
    expect_bits(p, scale);
    if (zero)
        expect_bits(p, zero);
    for (uint64_t g = 0; g < scale->count; g++) {
        group_range range = groups_range(p, g);
        int4_numbers numbers = numbers_in(mode_of(p), in, range.first, range.last);
        element_set(type, scale->expected_bits, g, numbers.scale);
        if (zero)
            element_set(type, zero->expected_bits, g, numbers.zero);
    }
}

static void expect_codes(problem *p, const void *scales, const void *zeros)
{
    argument *in = problem_find(p, "in"), *packed = problem_find(p, "packed");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(in->about->type);
    expect_bits(p, packed);
    unsigned char *bytes = packed->expected_bits;
    const unsigned even_shift = groups_even_shift(p);
    const element_type type = problem_find(p, "scale")->about->type;
    const int4_mode mode = mode_of(p);
    for (uint64_t i = 0; i < n; i++) {
        double x = element_get(in->about->type, in->host, i);
        int4_numbers numbers = numbers_at(type, scales, zeros, i / group);
        unsigned code = code_of(mode, arithmetic, numbers, x);
        bytes[i / 2] = (unsigned char)(bytes[i / 2] | code << groups_shift(even_shift, i));
    }
}

static void expect_scale(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    expect_numbers(p);
}

static void expect_pack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *zero = problem_find(p, "zero");
    expect_codes(p, problem_find(p, "scale")->host, zero ? zero->host : NULL);
}

static void expect_quantize(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *zero = problem_find(p, "zero");
    expect_numbers(p);
    expect_codes(p, problem_find(p, "scale")->expected_bits, zero ? zero->expected_bits : NULL);
}

/* The product is rounded to the arithmetic's type, then to the elements'. */
static void expect_unpack(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    argument *packed = problem_find(p, "packed"), *out = problem_find(p, "out"),
             *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    uint64_t n = problem_integer(p, "n"), group = groups_size(p);
    element_type arithmetic = groups_arithmetic(out->about->type);
    const unsigned char *bytes = packed->host;
    const unsigned even_shift = groups_even_shift(p);
    const int4_mode mode = mode_of(p);
    expect_bits(p, out);
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> groups_shift(even_shift, i) & 15;
        int4_numbers numbers =
            numbers_at(scale->about->type, scale->host, zero ? zero->host : NULL, i / group);
        element_set(out->about->type, out->expected_bits, i, value_of(mode, arithmetic, numbers, code));
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

enum { INT4_TIES = 100, INT4_HARD, INT4_NEAR_SMALLEST, INT4_EQUAL_GROUPS, INT4_HUGE, INT4_FAR };

/* Quotients of k + 0.5: a group's extremes are 7 (asymmetric: 15) times an odd number m, and its elements odd numbers
 * of m / 2, all exact in the type; every other one is one ulp above or below that. */
static double tie_element(int4_mode mode, element_type type, bool is_negative, random_stream s, uint64_t g,
                          uint64_t place)
{
    bool is_asym = mode == INT4_ASYM;
    int bits = (type == ELEMENT_BF16 ? 8 : type == ELEMENT_F16 ? 11 : 20) - (is_asym ? 5 : 4);
    double m = ldexp((double)(2 * random_below(s, 2 * g, UINT64_C(1) << (bits - 1)) + 1),
                     (int)random_below(s, 2 * g + 1, 9) - 4 - bits / 2);
    double low = is_asym ? -(double)random_below(random_fork(s, 1), g, 16) : -7;
    uint64_t levels = is_asym ? 15 : 14;
    random_stream choice = random_fork(random_fork(s, 2), g);
    if (place == 0)
        return m * (is_asym || is_negative ? low : -low);
    if (place == 1 && is_asym)
        return m * (low + (double)levels);
    double x = m * (low + (double)random_below(choice, place, levels) + 0.5);
    static const int steps[] = {0, -1, 0, 1};
    return groups_step(type, x, steps[random_below(random_fork(choice, 1), place, 4)]);
}

/* A group whose codes hang on how quotients are rounded, or their sums with the zero. */
typedef struct hard_group {
    int4_mode mode;
    element_type type, arithmetic;
    bool has_half; /* the zero is k + 0.5: tiny elements are near a tie */
    int4_numbers numbers;
    double least, most; /* that an element may be: of these come numbers that are not given */
    double middle;      /* next to a tie where any element of its type is */
    bool is_negative;   /* the extreme of a symmetric one */
} hard_group;

/* Whether another rounding of the quotient or the sum gives another code. */
static bool is_hard(const hard_group *h, double x)
{
    const element_type a = h->arithmetic;
    const double q = groups_divide(a, x, h->numbers.scale), zero = h->numbers.zero;
    const double other = groups_other_quotient(a, x, h->numbers.scale);
    if (code_of_quotient(h->mode, a, h->numbers, q) != code_of_quotient(h->mode, a, h->numbers, other))
        return true;
    return h->mode == INT4_ASYM &&
           code_of_sum(h->mode, groups_add(a, q, zero)) != code_of_sum(h->mode, groups_other_sum(a, q, zero));
}

/* The mantissas of scales, and of elements, with which alone it shows in codes how the scale's inverse is rounded: down in
 * the first, up in the other. */
typedef struct rare_pair {
    double scale, element;
} rare_pair;
static const rare_pair rare_pairs[] = {{0x1.fffffep0, 1}, {0x1.fffff8p0, 0x1.3ffffcp2}};

static void make_rare(hard_group *h, random_stream s)
{
    const rare_pair pair = rare_pairs[random_below(s, 10, 2)];
    const double power = ldexp(1, (int)random_below(s, 11, 9) - 4);
    h->numbers.scale = pair.scale * power;
    h->middle = pair.element * power;
}

/* One in 8 has a rare scale, where that can come of an extreme of the type. */
static void make_own_symmetric(hard_group *h, random_stream s)
{
    double most = groups_any_mantissa(h->type, s, 0);
    const bool is_rare = random_below(s, 2, 8) == 0;
    if (is_rare) {
        make_rare(h, s);
        most = number_decode(h->type, number_encode(h->type, 7 * h->numbers.scale));
    }
    h->numbers = numbers_of(h->mode, h->arithmetic, most, 0);
    h->most = most;
    h->least = -most;
    h->middle = is_rare && h->type == ELEMENT_F32 ? h->middle : most / 2;
}

/* Half of them have zeros of k + 0.5, of scales of few bits; a quarter 0, and others any. */
static void make_own_asymmetric(hard_group *h, random_stream s)
{
    const uint64_t choice = random_below(s, 2, 4);
    double least = 0, most = groups_any_mantissa(h->type, s, 0);
    bool is_rare = false;
    h->has_half = choice < 2;
    if (h->has_half) {
        const double scale = ldexp(1 + 2 * (double)random_below(s, 3, 4), 1 + (int)random_below(s, 4, 7));
        least = -scale * ((double)random_below(s, 5, 15) + 0.5);
        most = least + 15 * scale;
    } else if (choice == 2) {
        least = -groups_any_mantissa(h->type, s, 3);
    } else if (random_below(s, 6, 4) == 0) {
        make_rare(h, s);
        most = number_decode(h->type, number_encode(h->type, 15 * h->numbers.scale));
        is_rare = h->type == ELEMENT_F32;
    }
    h->numbers = numbers_of(h->mode, h->arithmetic, most, -least);
    h->most = most;
    h->least = least;
    if (!is_rare)
        h->middle = number_decode(h->type, number_encode(h->type, least + (most - least) / 2));
}

/* So that an element of few bits comes next to a tie of the quotient or of the sum. */
static void make_given(hard_group *h, random_stream s)
{
    const bool is_asym = h->mode == INT4_ASYM;
    const uint64_t choice = is_asym ? random_below(s, 2, 4) : 3;
    h->has_half = choice < 2;
    h->numbers.zero = h->has_half   ? (double)random_below(s, 3, 15) + 0.5
                      : choice == 2 ? groups_add(h->arithmetic, 17 * random_uniform(s, 3), -1)
                                    : 0;
    double quotient = (double)random_below(s, 4, 15) + 0.5 - (is_asym ? h->numbers.zero : 7);
    if (quotient == 0)
        quotient = 0.5;
    h->middle = copysign(groups_any_mantissa(h->type, s, 5), quotient);
    h->numbers.scale = groups_step(h->arithmetic, h->middle / quotient, (int)random_below(s, 6, 5) - 2);
    if (random_below(s, 7, 8) == 0)
        make_rare(h, s);
    h->most = INFINITY;
    h->least = -INFINITY;
}

/* Whether the product with the scale's inverse, with which kernels begin, does not give the quotient's code. */
static bool is_product_wrong(const hard_group *h, double x)
{
    const element_type a = h->arithmetic;
    const double product = groups_multiply(a, x, groups_divide(a, 1, h->numbers.scale));
    return code_of_quotient(h->mode, a, h->numbers, product) != code_of(h->mode, a, h->numbers, x);
}

static hard_group make_hard_group(int4_mode mode, element_type type, bool is_given, random_stream s,
                                  uint64_t g)
{
    enum { ATTEMPTS = 32, THOROUGH = 16 };
    hard_group h;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        const random_stream here = random_fork(random_fork(s, g), attempt);
        h = (hard_group){.mode = mode, .type = type, .arithmetic = groups_arithmetic(type)};
        if (is_given)
            make_given(&h, here);
        else if (mode == INT4_ASYM)
            make_own_asymmetric(&h, here);
        else
            make_own_symmetric(&h, here);
        const bool is_thorough = g % 2 && attempt < THOROUGH;
        if (h.has_half || (is_hard(&h, h.middle) && (!is_thorough || is_product_wrong(&h, h.middle))))
            break;
    }
    return h;
}

static double hard_candidate(const hard_group *h, random_stream s, uint64_t i)
{
    const uint64_t choice = random_below(s, 4 * i, 8);
    const double scale = h->numbers.scale, sign = random_below(s, 4 * i + 1, 2) ? 1 : -1;
    if (h->has_half && choice < 6)
        return sign * scale *
               ldexp(1 + random_uniform(s, 4 * i + 2), -20 - (int)random_below(s, 4 * i + 3, 8));
    if (choice < 3)
        return h->mode == INT4_SYM ? sign * h->middle : h->middle;
    const double tie =
        (double)random_below(s, 4 * i + 2, 19) - 1.5 - (h->mode == INT4_SYM ? 8 : h->numbers.zero);
    return groups_step(h->type, tie * scale, (int)random_below(s, 4 * i + 3, 3) - 1);
}

/* Where the code may end, or far beyond. */
static double far_element(const hard_group *h, random_stream s, uint64_t place)
{
    const double code = random_uniform(s, 3 * place + 1) * 32 - 8,
                 q = code - (h->mode == INT4_SYM ? 8 : h->numbers.zero);
    const double largest = number_largest(h->type);
    return random_below(s, 3 * place + 2, 4) ? q * h->numbers.scale : q < 0 ? -largest : largest;
}

/* The first hard one of a few; the extremes first, some NaNs, whose code is found in the same way, and where there are none some that may be beyond the codes. */
static double hard_element(const hard_group *h, random_stream s, uint64_t place)
{
    enum { ATTEMPTS = 6 };
    double x = 0;
    if (place < 2 && !isinf(h->most) && (place == 0 || h->mode == INT4_ASYM))
        return place == 1 || (h->mode == INT4_SYM && h->is_negative) ? h->least : h->most;
    if (random_below(random_fork(s, 0), place, 12) == 0)
        return NAN;
    if (isinf(h->most) && random_below(s, 3 * place, 8) == 0)
        return far_element(h, s, place);
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        x = hard_candidate(h, random_fork(s, 1 + attempt), place);
        x = fmin(fmax(number_decode(h->type, number_encode(h->type, x)), h->least), h->most);
        if (is_hard(h, x))
            break;
    }
    return x;
}

/* The largest magnitude, or the range, just below, at and just above 1e-12. */
static double near_smallest(element_type type, random_stream s, uint64_t g, uint64_t place)
{
    double most = number_decode(type, number_step(type, number_encode(type, 1e-12), (int)(g % 5) - 2));
    return place == 0 ? most : place == 1 ? 0 : most * random_uniform(random_fork(s, g), place);
}

/* What all elements of a group have in common. */
typedef struct group_makings {
    int4_mode mode;
    element_type type;
    int kind;
    bool is_negative; /* its extreme */
    uint64_t g;
    group_range range;
    uint64_t extreme; /* where that is */
} group_makings;

static group_makings makings_of(problem *p, const argument *in, int kind, random_stream s, uint64_t g)
{
    const group_range range = groups_range(p, g);
    return (group_makings){.mode = mode_of(p),
                           .type = in->about->type,
                           .kind = kind,
                           .is_negative = groups_extreme_is_negative(p, g),
                           .g = g,
                           .range = range,
                           .extreme = groups_extreme_place(p, s, g, range.last - range.first)};
}

/* A group's first two, its extremes where it has them, are anywhere in it. */
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
    case INT4_TIES:
        return tie_element(m->mode, m->type, m->is_negative, s, g, place);
    case INT4_NEAR_SMALLEST:
        return (m->is_negative ? -1 : 1) * near_smallest(m->type, s, g, place);
    case INT4_EQUAL_GROUPS: /* smallest and largest are one number, of any size up to 1e25 */
        return random_normal(here, 0) * ldexp(1, (int)random_below(here, 1, 166) - 83);
    case INT4_HUGE:
        return (2 * random_uniform(here, place) - 1) * 1e25;
    default: /* far from 0 for their range, so that the zero is large */
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

/* And its numbers, where they are given. */
static void fill_hard_group(problem *p, argument *in, random_stream s, uint64_t g)
{
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero");
    const bool is_given = scale->about->direction == DIRECTION_IN;
    const group_makings m = makings_of(p, in, INT4_HARD, s, g);
    hard_group h = make_hard_group(m.mode, m.type, is_given, s, g);
    h.is_negative = m.is_negative;
    for (uint64_t i = m.range.first; i < m.range.last; i++)
        element_set(m.type, in->host, i, hard_element(&h, random_fork(s, ~g), place_of(&m, i)));
    if (is_given)
        element_set(scale->about->type, scale->host, g, h.numbers.scale);
    if (is_given && zero)
        element_set(zero->about->type, zero->host, g, h.numbers.zero);
}

static const groups_kinds kinds = {INT4_HARD, INT4_TIES, INT4_NEAR_SMALLEST, INT4_FAR};

static void fill_elements(problem *p, argument *in, int kind, random_stream s)
{
    const uint64_t group = groups_size(p);
    if (kind < INT4_TIES)
        groups_fill_elements(p, in, kind, s);
    for (uint64_t g = 0; in->count > 0 && g <= (in->count - 1) / group; g++) {
        const int here = groups_kind_of(p, s, g, kind, &kinds);
        if (here >= INT4_TIES && here != INT4_HARD)
            fill_group(p, in, here, s, g);
    }
}

static void fill_hard_groups(problem *p, argument *in, int kind, random_stream s)
{
    const uint64_t group = groups_size(p);
    for (uint64_t g = 0; in->count > 0 && g <= (in->count - 1) / group; g++) {
        if (groups_kind_of(p, s, g, kind, &kinds) == INT4_HARD)
            fill_hard_group(p, in, s, g);
    }
}

/* What goes into a kernel: the numbers of the elements at hand, or moved a little, or random ones. */
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
        int4_numbers numbers = numbers_in(mode_of(p), in, range.first, range.last);
        double ratio = kind == INPUT_UNIFORM ? 2 * random_uniform(s, g) + 0.01 : 1;
        element_set(scale->about->type, scale->host, g, ratio * numbers.scale);
        if (zero)
            element_set(zero->about->type, zero->host, g, numbers.zero);
    }
}

/* Three quarters of the group's codes are this, or `most` and those below it. */
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

/* Scales by which a code comes next to a tie, and whole zeros; every other group of zeros has those that are rounded to a tie
 * when codes from 8 on are taken less them, and a scale of 1. */
static void fill_near_tie(problem *p, uint64_t g, random_stream s)
{
    static const unsigned values[] = {3, 5, 6, 7}; /* not the powers of two, by which nothing is rounded */
    argument *scale = problem_find(p, "scale"), *zero = problem_find(p, "zero"),
             *out = problem_find(p, "out");
    const element_type outputs = out->about->type;
    const bool is_brief = outputs == ELEMENT_BF16 || (outputs != ELEMENT_F16 && random_below(s, g, 2));
    const int bits = is_brief ? 5 : 8; /* of a tie's fraction, below 8 */
    const unsigned value = values[random_below(s, g, 4)];
    const random_stream here = random_fork(s, g);
    const double tie = ldexp(1 + 2 * (double)random_below(here, 0, UINT64_C(1) << (bits - 1)), -bits);
    if (zero && random_below(here, 1, 2)) {
        const double near = ldexp(1 + random_uniform(here, 2), random_below(here, 3, 2) ? -23 : -22);
        element_set(zero->about->type, zero->host, g, tie + (random_below(here, 4, 2) ? near : -near));
        element_set(scale->about->type, scale->host, g, 1);
        fill_codes(p, g, 8, 15, random_fork(here, 5));
        return;
    }
    const double whole = zero ? (double)random_below(here, 6, 16 - value) : 8;
    element_set(scale->about->type, scale->host, g, groups_near_tie_scale(outputs, value, here, 0));
    if (zero)
        element_set(zero->about->type, zero->host, g, whole);
    fill_codes(p, g, (unsigned)whole + value, (unsigned)whole + value, random_fork(here, 7));
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *in = problem_find(p, "in"), *scale = problem_find(p, "scale"),
             *packed = problem_find(p, "packed");
    if (in)
        fill_elements(p, in, pattern->number, random_fork(s, 1));
    if (scale->about->direction == DIRECTION_IN)
        fill_numbers(p, in, pattern->number, random_fork(s, 2));
    if (in) {
        const bool is_given = scale->about->direction == DIRECTION_IN;
        fill_hard_groups(p, in, pattern->number, random_fork(s, 1));
        groups_finish_blocks(p, in, is_given ? scale : NULL, random_fork(s, 1));
    }
    if (!packed || packed->about->direction != DIRECTION_IN)
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
    {"ties",          PATTERN_LARGE,                  INT4_TIES},
    {"hard",          0,                              INT4_HARD},
    {"near-smallest", 0,                              INT4_NEAR_SMALLEST},
    {"equal-groups",  0,                              INT4_EQUAL_GROUPS},
    {"huge",          PATTERN_RANDOM,                 INT4_HUGE},
    {"far",           PATTERN_RANDOM,                 INT4_FAR},
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
    {"ties",            PATTERN_LARGE,                  INT4_TIES},
    {"hard",            0,                              INT4_HARD},
    {"equal-groups",    0,                              INT4_EQUAL_GROUPS},
    {"huge",            PATTERN_RANDOM,                 INT4_HUGE},
    {"far",             PATTERN_RANDOM,                 INT4_FAR},
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

const family_row int4_scale_row = {.name = "int4_scale",
                                   .args = "in scale n",
                                   .patterns = element_patterns,
                                   .plan = groups_plan,
                                   .make = make,
                                   .expect = expect_scale,
                                   .expects_nonfinite = true};
const family_row int4_pack_row = {.name = "int4_pack",
                                  .args = "in scale packed n",
                                  .patterns = pack_patterns,
                                  .plan = groups_plan,
                                  .make = make,
                                  .expect = expect_pack,
                                  .expects_nonfinite = true};
const family_row int4_quantize_row = {.name = "int4_quantize",
                                      .args = "in scale packed n",
                                      .patterns = element_patterns,
                                      .plan = groups_plan,
                                      .make = make,
                                      .expect = expect_quantize,
                                      .expects_nonfinite = true};
const family_row int4_unpack_row = {.name = "int4_unpack",
                                    .args = "packed scale out n",
                                    .patterns = code_patterns,
                                    .plan = groups_plan,
                                    .make = make,
                                    .expect = expect_unpack,
                                    .expects_nonfinite = true};
