/* The reference of the fixture's kernel outside kiln's families: y = a*x + y, and the sum of its squares. */
#include <math.h>

#include <kiln/reference.h>

static const kiln_pattern patterns[] = {
    {"usual", KILN_PATTERN_RANDOM | KILN_PATTERN_LARGE, KILN_FILL_NORMAL},
    {"spread", KILN_PATTERN_RANDOM, KILN_FILL_SPREAD},
    {"nonfinite", KILN_PATTERN_NONFINITE, KILN_FILL_NONFINITE},
    {0},
};

static void make(kiln_problem *p, const kiln_pattern *pattern, kiln_random s)
{
    kiln_fill_all(p, pattern, s);
    kiln_set_real(p, "a", kiln_random_normal(s, 0));
}

/* A rounding of the product and one of the sum. */
static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    const double a = kiln_get_real(p, "a"), u = kiln_get_unit(y);
    double squares = 0, bound = 0;
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++) {
        const double product = a * kiln_get_value(x, i), sum = product + kiln_get_value(y, i);
        const double error = u * (fabs(product) + fabs(sum)) + 2 * kiln_get_smallest(y);
        kiln_expect_value(y, i, sum, error);
        squares += sum * sum;
        bound += 2 * fabs(sum) * error + error * error;
    }
    kiln_expect_value(kiln_get_argument(p, "norm"), 0, squares,
                      bound + 0x1p-52 * (double)kiln_get_count(y) * squares);
}

KILN_REFERENCE(axpy, .args = "a x y n", .patterns = patterns, .make = make, .expect = expect);
