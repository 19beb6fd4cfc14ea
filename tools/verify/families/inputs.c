/* Makes float inputs for every family. */
#include "inputs.h"

#include <math.h>

static const float *real_numbers;
static size_t real_count;

void inputs_set_real(const float *numbers, size_t count)
{
    real_numbers = numbers;
    real_count = count;
}

double inputs_nonfinite(random_stream s, uint64_t i)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    return values[random_below(s, i, 3)];
}

static double nonfinite_or_normal(random_stream s, uint64_t i)
{
    random_stream choice = random_fork(s, 1);
    if (random_below(choice, 2 * i, 16) != 0)
        return random_normal(s, i);
    return inputs_nonfinite(choice, 2 * i + 1);
}

/* Returns any finite bit pattern, all equally likely: the exponent's last value is replaced. */
static double any_finite(element_type type, random_stream s, uint64_t i)
{
    for (uint64_t attempt = 0;; attempt++) {
        double value = number_decode(type, random_bits(random_fork(s, attempt), i));
        if (isfinite(value))
            return value;
    }
}

static double make_value(element_type type, input_kind kind, random_stream s, uint64_t i, uint64_t start)
{
    double sign = random_bits(random_fork(s, 2), i) & 1 ? -1 : 1, lowest = log2(number_smallest(type));
    switch (kind) {
    case INPUT_UNIFORM:
        return 2 * random_uniform(s, i) - 1;
    case INPUT_REAL:
        return real_count ? (double)real_numbers[(start + i) % real_count] : random_normal(s, i);
    case INPUT_DENORMAL:
        return sign * number_smallest(type) * (double)random_below(s, i, 65);
    case INPUT_LARGEST:
        return sign * number_largest(type) * (random_bits(s, i) & 1 ? 1 : random_uniform(s, i));
    case INPUT_ZERO:
        return sign * 0.0;
    case INPUT_EQUAL:
        return random_normal(s, 0);
    case INPUT_ALTERNATING:
        return (i & 1 ? -1 : 1) * fabs(random_normal(s, i / 2));
    case INPUT_HUGE_TINY:
        return random_normal(s, i) * (i % 41 == 7 ? 0x1p12 : 0x1p-12);
    case INPUT_SPREAD:
        return sign * exp2(random_uniform(s, i) * (log2(number_largest(type)) / 2 - 10 - lowest) + lowest);
    case INPUT_ANY_BITS:
        return any_finite(type, s, i);
    case INPUT_NONFINITE:
        return nonfinite_or_normal(s, i);
    default:
        return random_normal(s, i);
    }
}

/* Makes one of the last elements a NaN or an infinity, in half of the cases the very last: tails after vectors and
 * groups. */
static void spoil_tail(argument *a, random_stream s)
{
    enum { TAIL = 8 };
    const uint64_t apart = random_below(s, 0, 2) ? 0 : random_below(s, 1, TAIL);
    if (a->count > apart)
        element_set(a->about->type, a->host, a->count - 1 - apart, inputs_nonfinite(s, 2));
}

void inputs_fill(argument *a, input_kind kind, random_stream s)
{
    uint64_t start = real_count ? random_below(s, 0, real_count) : 0;
    for (uint64_t i = 0; i < a->count; i++)
        element_set(a->about->type, a->host, i, make_value(a->about->type, kind, s, i, start));
    if (kind == INPUT_NONFINITE)
        spoil_tail(a, random_fork(s, 3));
}

bool inputs_is_spoiled(random_stream s, uint64_t row, uint64_t column, uint64_t columns)
{
    const random_stream of_row = random_fork(s, row);
    return random_bits(of_row, 0) & 1 ? column == random_below(of_row, 1, columns)
                                      : random_below(of_row, 2 + column, 16) == 0;
}

/* Returns one of the last four of some 128 numbers: those of a warp's last lane. */
static uint64_t last_lane(uint64_t count, random_stream s)
{
    enum { LANE_NUMBERS = 4, WARP_NUMBERS = 128 };
    const uint64_t warps = count / WARP_NUMBERS;
    const uint64_t end = warps ? WARP_NUMBERS * (1 + random_below(s, 0, warps)) : count;
    return end - 1 - random_below(s, 1, LANE_NUMBERS);
}

void inputs_raise_one(argument *a, uint64_t first, uint64_t count, int of_one, int of_others, random_stream s)
{
    const element_type type = a->about->type;
    const uint64_t place = last_lane(count, random_fork(s, 1));
    const double largest = number_largest(type), sign = random_bits(s, 0) & 1 ? -1 : 1;
    for (uint64_t i = 0; i < count; i++)
        element_set(type, a->host, first + i, ldexp(random_normal(random_fork(s, 2), i), of_others));
    element_set(type, a->host, first + place, sign * fmin(ldexp(1 + random_uniform(s, 1), of_one), largest));
}

void inputs_raise_some(argument *a, uint64_t k, random_stream s)
{
    for (uint64_t row = 0; row < a->count / k; row++) {
        if (random_bits(s, row) & 1)
            inputs_raise_one(a, row * k, k, 64, -20, random_fork(s, row));
    }
}

void inputs_fill_bytes(argument *a, random_stream s)
{
    for (size_t i = 0; i < a->bytes; i++)
        ((unsigned char *)a->host)[i] = (unsigned char)random_bits(s, i);
}
