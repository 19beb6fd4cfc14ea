/* The reference of saxpy, in float64. The bound is one rounding to the type. */
#include <math.h>

#include <kiln/reference.h>

static void make(kiln_problem *p, const kiln_pattern *pattern, kiln_random s)
{
    kiln_fill_all(p, pattern, s);
    kiln_set_real(p, "a", kiln_random_normal(s, 0));
}

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    const double a = kiln_get_real(p, "a");
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++) {
        const double exact = fma(a, kiln_get_value(x, i), kiln_get_value(y, i));
        kiln_expect_value(y, i, exact, kiln_get_unit(y) * fabs(exact) + kiln_get_smallest(y));
    }
}

KILN_REFERENCE(saxpy, .make = make, .expect = expect);
