/* What registers and local memory hold before something is written to them, where that is watched. */
#include "emu_test.h"

static int begin_watched(void **state)
{
    setenv("KILN_EMU_CHECK", "init", 1);
    return begin_context(state);
}

/* A vector store is reported when none of it is defined: what is not there shows as NaN. */
static void test_vector(void **state)
{
    (void)state;
    float out[4];
    const char *body = ".reg .f32 %f<4>; .reg .u64 %p; .local .align 4 .b8 l[4]; ld.param.u64 %p, [p0];\n"
                       "mov.f32 %f0, 0f3f800000; add.f32 %f2, %f1, %f0; ld.local.f32 %f3, [l];\n"
                       "st.global.v4.f32 [%p], {%f0, %f1, %f2, %f3}; ret;";
    run_body(NULL, body, 1, NULL, 0, out, sizeof out);
    assert_true(out[0] == 1);
    for (int i = 1; i < 4; i++)
        assert_true(out[i] != out[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector)};
    return cmocka_run_group_tests(tests, begin_watched, end_context);
}
