/* The version as the header, the runtime and CMake tell it. */
#include "test.h"

#include <stdio.h>

static void header_runtime_and_cmake_agree(void **state)
{
    (void)state;
    const uint32_t version = kiln_version();
    char text[16];
    snprintf(text, sizeof text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    assert_string_equal(text, KILN_VERSION);
    assert_string_equal(text, PROJECT_VERSION);
}

static void the_preprocessor_can_compare_versions(void **state)
{
    (void)state;
#if KILN_VERSION_NUMBER < 100
    fail_msg("%u is less than 0.1.0", KILN_VERSION_NUMBER);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_runtime_and_cmake_agree),
        cmocka_unit_test(the_preprocessor_can_compare_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
