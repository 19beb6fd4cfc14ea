/* Exact texts of statuses and of errors in one line. The header, the runtime and CMake have the same version. */
#include "test.h"

#include <stdio.h>

#include "fake_driver.h"
#include "mini.h"

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];

static int open_mini(void **state)
{
    (void)state;
    fake_reset();
    memset(&loader, 0, sizeof loader);
    return (int)kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL);
}

static const kiln_status all[] = {KILN_OK,
                                  KILN_ERROR_NULL_POINTER,
                                  KILN_ERROR_BAD_ARGUMENT,
                                  KILN_ERROR_MISALIGNED,
                                  KILN_ERROR_GRID_TOO_LARGE,
                                  KILN_ERROR_TOO_FEW_SLOTS,
                                  KILN_ERROR_CLOSED,
                                  KILN_ERROR_ALREADY_OPEN,
                                  KILN_ERROR_SCRATCH_TOO_SMALL,
                                  KILN_ERROR_LAYOUT,
                                  KILN_ERROR_NOT_FOUND,
                                  KILN_ERROR_NO_VARIANT,
                                  KILN_ERROR_NO_IMAGE,
                                  KILN_ERROR_CORRUPT_IMAGE,
                                  KILN_ERROR_DRIVER_NOT_FOUND,
                                  KILN_ERROR_DRIVER_SYMBOL,
                                  KILN_ERROR_DRIVER_TOO_OLD,
                                  KILN_ERROR_NO_CONTEXT,
                                  KILN_ERROR_WRONG_CONTEXT,
                                  KILN_ERROR_LOAD,
                                  KILN_ERROR_LAUNCH,
                                  KILN_ERROR_DRIVER};
enum { STATUSES = sizeof all / sizeof all[0] };

static void every_status_has_a_text_of_its_own(void **state)
{
    (void)state;
    static const int numbers[STATUSES] = {0,  10, 11, 12, 13, 14, 15, 16, 17, 30, 31,
                                          32, 33, 34, 50, 51, 52, 53, 54, 55, 56, 57};
    for (int i = 0; i < STATUSES; i++) {
        assert_int_equal(all[i], numbers[i]); /* fixed */
        const char *text = kiln_status_string(all[i]);
        assert_string_not_equal(text, "unknown status");
        assert_null(strchr(text, '\n'));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(text, kiln_status_string(all[j]));
    }
    assert_string_equal(kiln_status_string((kiln_status)1), "unknown status");
    assert_string_equal(kiln_status_string((kiln_status)63), "unknown status");
}

static void assert_text(const kiln_loader *of, const kiln_error *error, const kiln_kernel *kernel,
                        const char *wanted)
{
    char text[512];
    assert_int_equal(kiln_describe_error(of, error, kernel, text, sizeof text), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void errors_read_well(void **state)
{
    (void)state;
    static const struct {
        kiln_error error;
        const char *text;
    } rows[] = {
        {{.status = KILN_ERROR_BAD_ARGUMENT, .subject = "nf4_gemm", .detail = "k must be a multiple of 64"},
         "bad argument: nf4_gemm: k must be a multiple of 64"},
        {{.status = KILN_ERROR_BAD_ARGUMENT,
          .subject = "a",
          .detail = "b",
          .needed = 4294967295,
          .present = 0},
         "bad argument: a: b: needs 4294967295, has 0"},
        {{.status = KILN_ERROR_TOO_FEW_SLOTS, .subject = "mini", .detail = "", .needed = 2, .present = 1},
         "too few slots: mini: needs 2, has 1"},
        {{.status = KILN_ERROR_LAYOUT, .subject = "kiln_open", .detail = "", .needed = 1, .present = 7},
         "bundle and runtime differ in layout: kiln_open: needs 1, has 7"},
        {{.status = KILN_ERROR_DRIVER_TOO_OLD,
          .subject = "x",
          .detail = "",
          .needed = 12100,
          .present = 9020},
         "driver too old: x: needs 12.10, has 9.2"},
        {{.status = KILN_ERROR_LOAD, .driver_result = 218, .subject = "x", .detail = "cuModuleLoadDataEx"},
         "load failed: x: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)"},
        {{.status = KILN_ERROR_LAUNCH, .driver_result = 999, .subject = "x", .detail = "cuLaunchKernel"},
         "launch failed: x: cuLaunchKernel: driver result 999"},
        {{.status = KILN_ERROR_DRIVER, .driver_result = INT32_MIN, .subject = "cuInit", .detail = ""},
         "driver call failed: cuInit: driver result -2147483648"},
        {{.status = KILN_ERROR_NO_CONTEXT}, "no context is current"},
        {{.status = (kiln_status)999, .subject = "", .detail = ""}, "unknown status"},
        {{.status = KILN_OK}, "success"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_text(&loader, &rows[i].error, NULL, rows[i].text);
    /* A loader that was never opened, or is closed, has no driver to ask for names. */
    assert_text(NULL, &rows[5].error, NULL, "load failed: x: cuModuleLoadDataEx: driver result 218");
    assert_text(&(kiln_loader){0}, &rows[5].error, NULL,
                "load failed: x: cuModuleLoadDataEx: driver result 218");
    assert_status(kiln_close(&loader), KILN_OK);
    assert_text(&loader, &rows[5].error, NULL, "load failed: x: cuModuleLoadDataEx: driver result 218");
}

/* A loader that failed to open has a driver, and says why it failed. */
static void a_loader_that_did_not_open_names_the_result(void **state)
{
    (void)state;
    kiln_error error;
    memset(&loader, 0, sizeof loader);
    fake_reset();
    fake.fail_at = 1;
    fake.fail_result = 218;
    assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_ERROR_DRIVER);
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_text(&loader, &error, NULL, "driver call failed: cuCtxGetCurrent: CUDA_ERROR_INVALID_PTX (218)");
}

static void a_driver_call_reads_as_the_runtimes_own(void **state)
{
    (void)state;
    static const kiln_driver nameless;
    static const struct {
        const kiln_driver *driver;
        int result;
        const char *text;
    } rows[] = {
        {&fake_table, 218, "driver call failed: cuInit: CUDA_ERROR_INVALID_PTX (218)"},
        {&fake_table, 999, "driver call failed: cuInit: driver result 999"},
        {&nameless, 100, "driver call failed: cuInit: driver result 100"},
        {NULL, 100, "driver call failed: cuInit: driver result 100"},
        {&fake_table, 34, "driver call failed: cuInit: the CUDA toolkit's stub library (34)"},
        {NULL, 34, "driver call failed: cuInit: the CUDA toolkit's stub library (34)"},
        {&fake_table, 0, "success: cuInit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[128], cut[8];
        assert_int_equal(kiln_describe_driver(rows[i].driver, "cuInit", rows[i].result, text, sizeof text),
                         strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
        assert_int_equal(kiln_describe_driver(rows[i].driver, "cuInit", rows[i].result, cut, sizeof cut),
                         strlen(rows[i].text));
        assert_memory_equal(cut, rows[i].text, sizeof cut - 1);
        assert_int_equal(cut[7], '\0');
    }
    const kiln_error error = {.status = KILN_ERROR_DRIVER, .driver_result = 34, .subject = "cuInit"};
    assert_text(NULL, &error, NULL, rows[4].text);
    assert_int_equal(kiln_describe_driver(NULL, NULL, 1, NULL, 100),
                     strlen("driver call failed: driver result 1"));
}

static void a_miss_says_why_each_image_was_not_taken(void **state)
{
    (void)state;
    static const kiln_image images[] = {
        {.sm = 75, .min_driver = 13000},
        {.sm = 120},
        {.sm = 90, .kind = KILN_TARGET_ARCH, .min_driver = 13010},
        {.sm = 100, .kind = KILN_TARGET_FAMILY},
        {.sm = 80, .format = KILN_IMAGE_CUBIN},
    };
    const kiln_module module = {.images = images, .image_count = 5};
    const kiln_kernel kernel = {.id = "x/y=1", .module = &module};
    assert_status(kiln_preload(&loader, (const kiln_kernel *[]){&kernel}, 1), KILN_ERROR_DRIVER_TOO_OLD);
    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_text(&loader, &error, &kernel,
                "driver too old: x/y=1: needs 13.0, has 12.8; device sm_90; sm_75 needs driver 13.0; "
                "sm_120 is for newer devices; sm_90a needs driver 13.1; sm_100f is for other devices; "
                "cubin sm_80 is for other devices");

    const kiln_module misfits = {.images = images + 3, .image_count = 2};
    const kiln_kernel misfit = {.id = "x/y=2", .module = &misfits};
    assert_status(kiln_preload(&loader, (const kiln_kernel *[]){&misfit}, 1), KILN_ERROR_NO_IMAGE);
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_text(
        &loader, &error, &misfit,
        "no image runs on this device: x/y=2: add its target, or a variant that it can run, to the configuration; device sm_90; "
        "sm_100f is for other devices; cubin sm_80 is for other devices");
    assert_text(
        &loader, &error, NULL,
        "no image runs on this device: x/y=2: add its target, or a variant that it can run, to the configuration");
    assert_text(
        NULL, &error, &misfit,
        "no image runs on this device: x/y=2: add its target, or a variant that it can run, to the configuration");

    const kiln_module cubins = {.images = images + 4, .image_count = 1};
    const kiln_kernel cubin = {.id = "x/y=3", .module = &cubins};
    assert_status(kiln_preload(&loader, (const kiln_kernel *[]){&cubin}, 1), KILN_ERROR_NO_IMAGE);
    kiln_error without_ptx;
    assert_status(kiln_last_error(&loader, &without_ptx), KILN_OK);
    assert_text(&loader, &without_ptx, NULL,
                "no image runs on this device: x/y=3: add its target, or ptx, to the configuration");

    const kiln_kernel large = {.id = "x/y=2", .module = &misfits, .max_shared_bytes = 300000};
    assert_text(
        &loader, &error, &large,
        "no image runs on this device: x/y=2: add its target, or a variant that it can run, to the configuration; device sm_90; "
        "sm_100f is for other devices; cubin sm_80 is for other devices; takes up to 300000 bytes of shared memory, the device has 232448");

    loader.device.ptx_only = 1;
    assert_text(
        &loader, &error, &misfit,
        "no image runs on this device: x/y=2: add its target, or a variant that it can run, to the configuration; device sm_90; "
        "sm_100f is for other devices; cubin sm_80 is not PTX");
    loader.device.ptx_only = 0;

    /* The hand-written bundle: both images run on this device. */
    error = (kiln_error){.status = KILN_ERROR_NO_IMAGE, .subject = "s", .detail = "d"};
    assert_text(&loader, &error, &mini_axpy_f32_kernel,
                "no image runs on this device: s: d; device sm_90; sm_75 fits; sm_90 fits");
}

static void the_text_is_cut_to_the_room_there_is(void **state)
{
    (void)state;
    const kiln_error error = {.status = KILN_ERROR_CLOSED, .subject = "axpy", .detail = ""};
    static const char whole[] = "the loader is not open: axpy";
    for (size_t bytes = 0; bytes <= sizeof whole + 2; bytes++) {
        char text[64];
        memset(text, '#', sizeof text);
        assert_int_equal(kiln_describe_error(&loader, &error, NULL, text, bytes), sizeof whole - 1);
        size_t kept = bytes == 0 ? 0 : bytes < sizeof whole ? bytes - 1 : sizeof whole - 1;
        assert_memory_equal(text, whole, kept);
        assert_int_equal(text[kept], bytes == 0 ? '#' : '\0');
        assert_int_equal(text[bytes], '#');
    }
    assert_int_equal(kiln_describe_error(&loader, &error, NULL, NULL, 100), sizeof whole - 1);
    char text[4] = "abc";
    assert_int_equal(kiln_describe_error(&loader, NULL, NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(kiln_describe_error(NULL, NULL, NULL, NULL, 0), 0);
}

/* ---- the version ---------------------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test_setup(errors_read_well, open_mini),
        cmocka_unit_test(a_loader_that_did_not_open_names_the_result),
        cmocka_unit_test(a_driver_call_reads_as_the_runtimes_own),
        cmocka_unit_test_setup(a_miss_says_why_each_image_was_not_taken, open_mini),
        cmocka_unit_test_setup(the_text_is_cut_to_the_room_there_is, open_mini),
        cmocka_unit_test(header_runtime_and_cmake_agree),
        cmocka_unit_test(the_preprocessor_can_compare_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
