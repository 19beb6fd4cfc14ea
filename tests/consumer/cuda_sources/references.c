/* The reference of bias_gelu, in float64. */
#include <math.h>

#include <kiln/reference.h>

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    kiln_argument *x = kiln_get_argument(p, "x"), *bias = kiln_get_argument(p, "bias");
    kiln_argument *out = kiln_get_argument(p, "out");
    const uint64_t columns = kiln_get_integer(p, "columns");
    const double u = kiln_get_unit(out);
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(out); i++) {
        const double t = kiln_get_value(x, i) + kiln_get_value(bias, i % columns);
        const double power = 1.5957691216057308 * (t + 0.044715 * t * t * t); /* 2 * sqrt(2 / pi) */
        const double exact = t / (1 + exp(-power));
        /* The sum is rounded, and gelu is at most 1.13 times as steep; ex2.approx is within 2 ulp; 8 roundings of its argument,
         * 4 of the quotient; and what is below the normal numbers may count as 0. */
        const double bound = 1.13 * u * fabs(t) + fabs(exact) * (0x1p-22 + u * (8 * fabs(power) + 4));
        kiln_expect_value(out, i, exact, bound + 0x1p-125 * (1 + fabs(t)));
    }
}

KILN_REFERENCE(bias_gelu, .expect = expect);
