/* The reference of product, in float64. The bound is one rounding to the type, plus the truncation of tensor cores per sum of eight. */
#include <math.h>

#include <kiln/reference.h>

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    const uint64_t n = kiln_get_integer(p, "n"), k = kiln_get_integer(p, "k");
    kiln_argument *x = kiln_get_argument(p, "x"), *w = kiln_get_argument(p, "w"),
                  *y = kiln_get_argument(p, "y"), *bias = kiln_get_argument(p, "bias");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++) {
        double exact = kiln_get_value(bias, i % n), size = fabs(exact);
        for (uint64_t j = 0; j < k; j++) {
            const double term = kiln_get_value(x, i / n * k + j) * kiln_get_value(w, i % n * k + j);
            exact += term;
            size += fabs(term);
        }
        kiln_expect_value(y, i, exact,
                          kiln_get_unit(y) * fabs(exact) + kiln_get_smallest(y) +
                              ((double)k / 8 + 4) * 0x1p-22 * size);
    }
}

KILN_REFERENCE(product, .expect = expect);
