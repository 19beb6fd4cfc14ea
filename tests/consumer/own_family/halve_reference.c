/* The reference of halve: exact, except for the last bit of a denormal number. */
#include <kiln/reference.h>

static const kiln_pattern patterns[] = {
    {"any-bits", KILN_PATTERN_LARGE, KILN_FILL_ANY_BITS},
    {"denormal", KILN_PATTERN_LARGE, KILN_FILL_DENORMAL},
    {"nonfinite", KILN_PATTERN_NONFINITE, KILN_FILL_NONFINITE},
    {0},
};

/* A few vectors, beside the usual sizes. */
static void plan(kiln_size_plan *sizes)
{
    const uint64_t vector = kiln_get_param_number(kiln_get_problem(sizes), "vector");
    for (uint64_t n = vector; n <= 9 * vector; n += vector) {
        kiln_set_size(sizes, "n", n);
        kiln_add_sizes(sizes);
    }
    kiln_add_default_sizes(sizes);
}

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++)
        kiln_expect_value(y, i, kiln_round(y, kiln_get_value(x, i) / 2), 0);
}

KILN_REFERENCE(halve, .patterns = patterns, .plan = plan, .expect = expect, .expects_nonfinite = true);
