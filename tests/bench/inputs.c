/* Timed inputs are ordinary tensors: no values make kernels take slow paths. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/tune/shapes.h"
#include "../../tools/tune/subject.h"

extern const kiln_index bench_timing_index;

static void test_inputs(void **state)
{
    enum { GROUP = 32, ELEMENTS = 1 << 17 };
    static char text[1 << 20];
    static float in[ELEMENTS];
    static device d;
    char error[256] = "";
    pool memory = {0};
    driver_tools tools;
    problem p;
    subject s;
    (void)state;
    FILE *f = fopen(BENCH_MANIFEST, "rb");
    assert_non_null(f);
    const size_t bytes = fread(text, 1, sizeof text, f);
    fclose(f);
    const manifest *bundle = manifest_read(&memory, text, bytes, error, sizeof error);
    assert_non_null(bundle);
    const manifest_variant *v = bundle->variants;
    while (strncmp(v->id, "int4_scale/type=f32,mode=sym,group=32", 37) != 0)
        v++;
    assert_int_equal(device_open(&d, BENCH_DRIVER, 0, &bench_timing_index, error, sizeof error), DEVICE_OK);
    assert_null(driver_tools_load(&tools, &d.driver));
    assert_true(problem_open(&p, v, &d.loader.device, error, sizeof error));
    problem_find(&p, "n")->integer = ELEMENTS;
    assert_int_equal(problem_measure(&p, NULL, error, sizeof error), PROBLEM_LEGAL);
    assert_true(
        subject_open(&s, &d, &tools, kiln_find(&bench_timing_index, v->key), &p, 1, error, sizeof error));
    assert_int_equal(d.driver.memcpy_dtoh(in, s.memory, sizeof in), 0);
    for (size_t i = 0; i < ELEMENTS; i += GROUP) {
        double most = 0;
        for (size_t j = i; j < i + GROUP; j++) {
            assert_true(isfinite(in[j]));
            most = fmax(most, fabs((double)in[j]));
        }
        assert_true(most > 0.5 && most < 8); /* the largest of normal floats */
    }
    subject_close(&s);
    device_close(&d);
    pool_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
