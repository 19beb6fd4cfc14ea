/* The reference of boxes: y is a copy of the first n elements of each row of x. */
#include <kiln/reference.h>

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    const uint64_t n = kiln_get_integer(p, "n"), stride = kiln_get_integer(p, "stride");
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++)
        kiln_expect_value(y, i, kiln_get_value(x, i / n * stride + i % n), 0);
}

KILN_REFERENCE(boxes, .expect = expect);
