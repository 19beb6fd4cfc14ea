/* A reference sees all arguments of the call, even if the variant that served it lacks some. */
#include "test_verify.h"

#include <stdio.h>

#include "manifest.h"
#include "problem.h"
#include "reference.h"

static bool has_factor, has_limit;

static void look_for_arguments(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    has_factor = kiln_has_argument(p, "factor");
    has_limit = kiln_has_argument(p, "limit");
}

static void test_arguments_of_the_call(void **state)
{
    (void)state;
    static char text[1 << 18];
    static problem p;
    pool memory = {NULL};
    char error[512] = "", mistake[MISTAKE_BYTES];
    FILE *in = fopen(GENERATED_MANIFEST, "rb");
    assert_non_null(in);
    const size_t length = fread(text, 1, sizeof text, in);
    fclose(in);
    const manifest *m = manifest_read(&memory, text, length, error, sizeof error);
    assert_non_null(m);
    const family_row row = {.name = "blend", .expect = look_for_arguments};
    const kiln_device device = {.multiprocessors = 1};
    assert_true(problem_open(&p, &m->variants[1], &device, error, sizeof error));
    p.variant = &m->variants[0]; /* as if it had served the call */
    assert_null(manifest_find_arg(p.variant, "factor"));
    assert_true(reference_expect(&row, &p, NULL, mistake));
    assert_true(has_factor);
    assert_false(has_limit);
    problem_close(&p);
    pool_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments_of_the_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
