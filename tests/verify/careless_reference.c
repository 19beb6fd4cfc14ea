/* References of the fixture's axpy with one mistake each, chosen by KILN_FAULT. The test checks message and place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/reference.h>

static bool careless(const char *name)
{
    const char *wanted = getenv("KILN_FAULT");
    return wanted && strcmp(wanted, name) == 0;
}

static void plan(kiln_size_plan *sizes)
{
    if (careless("plan-argument"))
        kiln_set_size(sizes, "m", 4);
    if (careless("plan-real"))
        kiln_set_size(sizes, "a", 4);
    kiln_set_size(sizes, "n", careless("plan-illegal") ? 7 : 10);
    kiln_add_sizes(sizes);
}

static void make(kiln_problem *p, const kiln_pattern *pattern, kiln_random s)
{
    kiln_fill_all(p, pattern, s);
    if (careless("make-output"))
        kiln_set_value(kiln_get_argument(p, "norm"), 0, 1);
    if (careless("make-index"))
        kiln_set_value(kiln_get_argument(p, "x"), 10, 1);
    if (careless("make-integer"))
        kiln_set_real(p, "n", 1);
    if (careless("make-expects"))
        kiln_expect_nothing(kiln_get_argument(p, "y"));
}

static void be_careless(kiln_problem *p, kiln_argument *x, kiln_argument *y)
{
    if (careless("argument"))
        kiln_get_argument(p, "z");
    if (careless("parameter"))
        kiln_get_param(p, "type");
    if (careless("index"))
        kiln_expect_value(y, 10, 0, 0);
    if (careless("bound"))
        kiln_expect_value(y, 3, 0, -1);
    if (careless("any-bound"))
        kiln_expect_value(y, 3, 0, HUGE_VAL);
    if (careless("input"))
        kiln_expect_value(x, 0, 0, 0);
    if (careless("scalar"))
        kiln_get_value(kiln_get_argument(p, "n"), 0);
    if (careless("reads-output"))
        kiln_get_value(kiln_get_argument(p, "norm"), 0);
    if (careless("sets-input"))
        kiln_set_value(x, 0, 0);
    if (careless("dimension"))
        kiln_get_extent(x, 1);
    if (careless("kinds")) {
        kiln_expect_bits(y, 0, 0);
        kiln_expect_value(y, 1, 0, 0);
    }
}

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    be_careless(p, x, y);
    for (uint64_t i = 0; !careless("nothing") && i < kiln_get_count(y) - careless("unsaid"); i++)
        kiln_expect_value(y, i, kiln_get_real(p, "a") * kiln_get_value(x, i) + kiln_get_value(y, i), 1);
    if (careless("nothing"))
        kiln_expect_nothing(y);
    if (!careless("unsaid-output"))
        kiln_expect_nothing(kiln_get_argument(p, "norm"));
}

KILN_REFERENCE(axpy, .plan = plan, .make = make, .expect = expect);
