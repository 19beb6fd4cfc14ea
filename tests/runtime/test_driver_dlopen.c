/* kiln_driver_load with stub libraries: complete, and without one entry point. */
#include "test.h"

#include <dlfcn.h>

static const kiln_driver zeros;

static void fill(kiln_driver *driver)
{
    memset(driver, 0xff, sizeof *driver);
}

static int is_mapped(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL)
        dlclose(library);
    return library != NULL;
}

static void a_whole_library_fills_every_row_with_its_own_function(void **state)
{
    (void)state;
    kiln_driver driver;
    const char *missing = "";
    fill(&driver);
    assert_status(kiln_driver_load(&driver, STUB_LIBRARY, &missing), KILN_OK);
    assert_null(missing);
    assert_non_null(driver.library);
    int row = 0;
    /* The stubs take no arguments and return their row's number. */
#define CHECK_ROW(member, symbol, parameters)                                                                \
    {                                                                                                        \
        int (*stub)(void);                                                                                   \
        memcpy(&stub, &driver.member, sizeof stub);                                                          \
        assert_int_equal(stub(), ++row);                                                                     \
    }
    KILN_DRIVER_FUNCTIONS(CHECK_ROW)
    kiln_driver_close(&driver);
    assert_memory_equal(&driver, &zeros, sizeof driver);
    assert_false(is_mapped(STUB_LIBRARY));
}

static void a_missing_entry_point_is_named_and_nothing_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *path, *symbol;
    } rows[] = {{STUB_WITHOUT_FIRST, "cuDriverGetVersion"}, {STUB_WITHOUT_LAST, "cuMemsetD8_v2"}};
    for (int i = 0; i < 2; i++) {
        kiln_driver driver;
        const char *missing = NULL;
        fill(&driver);
        assert_status(kiln_driver_load(&driver, rows[i].path, &missing), KILN_ERROR_DRIVER_SYMBOL);
        assert_string_equal(missing, rows[i].symbol);
        assert_memory_equal(&driver, &zeros, sizeof driver);
        assert_false(is_mapped(rows[i].path));
        assert_status(kiln_driver_load(&driver, rows[i].path, NULL), KILN_ERROR_DRIVER_SYMBOL);
    }
}

static void what_is_optional_may_be_missing(void **state)
{
    (void)state;
    kiln_driver driver;
    const char *missing = "";
    fill(&driver);
    assert_status(kiln_driver_load(&driver, STUB_WITHOUT_OPTIONAL, &missing), KILN_OK);
    assert_null(missing);
#define CHECK_NULL(member, symbol, parameters) assert_true(driver.member == NULL);
    KILN_DRIVER_OPTIONAL_FUNCTIONS(CHECK_NULL)
#define CHECK_NOT_NULL(member, symbol, parameters) assert_true(driver.member != NULL);
    KILN_DRIVER_APPLICATION_FUNCTIONS(CHECK_NOT_NULL)
    kiln_driver_close(&driver);
}

static void a_library_that_is_not_there_is_reported(void **state)
{
    (void)state;
    kiln_driver driver;
    const char *missing = "";
    fill(&driver);
    assert_status(kiln_driver_load(&driver, "/nowhere/libcuda.so.1", &missing), KILN_ERROR_DRIVER_NOT_FOUND);
    assert_null(missing);
    assert_memory_equal(&driver, &zeros, sizeof driver);
    assert_status(kiln_driver_load(&driver, __FILE__, NULL), KILN_ERROR_DRIVER_NOT_FOUND); /* not a library */
}

static void null_is_refused(void **state)
{
    (void)state;
    const char *missing = "";
    assert_status(kiln_driver_load(NULL, STUB_LIBRARY, &missing), KILN_ERROR_NULL_POINTER);
    assert_null(missing);
    kiln_driver_close(NULL);
    kiln_driver by_hand = {0};
    kiln_driver_close(&by_hand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_library_fills_every_row_with_its_own_function),
        cmocka_unit_test(a_missing_entry_point_is_named_and_nothing_is_left),
        cmocka_unit_test(what_is_optional_may_be_missing),
        cmocka_unit_test(a_library_that_is_not_there_is_reported),
        cmocka_unit_test(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
