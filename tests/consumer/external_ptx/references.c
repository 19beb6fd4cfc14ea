/* The references of the external PTX kernels. */
#include <math.h>

#include <kiln/reference.h>

/* ---- saxpy: nvcc fuses it into one fma --------------------------------------------------------------------------- */

static void make_saxpy(kiln_problem *p, const kiln_pattern *pattern, kiln_random s)
{
    kiln_fill_all(p, pattern, s);
    kiln_set_real(p, "a", kiln_random_normal(s, 0));
}

static void expect_saxpy(kiln_problem *p, const kiln_pattern *pattern)
{
    const double a = kiln_get_real(p, "a");
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++) {
        const double exact = fma(a, kiln_get_value(x, i), kiln_get_value(y, i));
        kiln_expect_value(y, i, exact, kiln_get_unit(y) * fabs(exact) + kiln_get_smallest(y));
    }
}

KILN_REFERENCE(saxpy, .make = make_saxpy, .expect = expect_saxpy);

/* ---- transpose: bit for bit ---------------------------------------------------------------------------------------- */

static const kiln_pattern any_bits[] = {
    {"any-bits", KILN_PATTERN_LARGE, KILN_FILL_ANY_BITS},
    {"nonfinite", KILN_PATTERN_NONFINITE, KILN_FILL_NONFINITE},
    {0},
};

static void expect_transpose(kiln_problem *p, const kiln_pattern *pattern)
{
    const uint64_t rows = kiln_get_integer(p, "rows"), columns = kiln_get_integer(p, "columns");
    kiln_argument *in = kiln_get_argument(p, "in"), *out = kiln_get_argument(p, "out");
    (void)pattern;
    for (uint64_t i = 0; i < rows * columns; i++)
        kiln_expect_bits(out, i % columns * rows + i / columns, kiln_get_bits(in, i));
}

KILN_REFERENCE(transpose, .patterns = any_bits, .expect = expect_transpose, .expects_nonfinite = true);
KILN_REFERENCE(transpose_rows, .patterns = any_bits, .expect = expect_transpose, .expects_nonfinite = true);

/* ---- softmax: ex2.approx of rounded differences, which flushes results below 2^-126 -------------- ----------------- */

static void expect_row(kiln_argument *x, kiln_argument *out, uint64_t first, uint64_t columns)
{
    const double u = kiln_get_unit(out);
    double largest = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < columns; i++)
        largest = fmax(largest, kiln_get_value(x, first + i));
    for (uint64_t i = 0; i < columns; i++)
        sum += exp(kiln_get_value(x, first + i) - largest);
    for (uint64_t i = 0; i < columns; i++) {
        const double below = largest - kiln_get_value(x, first + i), share = exp(-below) / sum;
        kiln_expect_value(out, first + i, share, u * share * (2 * below + 16) + 0x1p-125);
    }
}

static void expect_softmax(kiln_problem *p, const kiln_pattern *pattern)
{
    kiln_argument *x = kiln_get_argument(p, "x"), *out = kiln_get_argument(p, "out");
    const uint64_t columns = kiln_get_extent(x, 1);
    (void)pattern;
    for (uint64_t row = 0; row < kiln_get_extent(x, 0); row++)
        expect_row(x, out, row * columns, columns);
}

KILN_REFERENCE(softmax, .args = "x out", .expect = expect_softmax);
