/* The checks before a launch, and the typed functions of the hand-written bundle. */
#include "test.h"

#include "fake_driver.h"
#include "mini.h"

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];

static int open_mini(void **state)
{
    (void)state;
    fake_reset();
    return (int)kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL);
}

static int close_mini(void **state)
{
    (void)state;
    int status = (int)kiln_close(&loader);
    return status != 0 || fake.loads != fake.unloads;
}

static void assert_last_error(kiln_status status, const char *subject, const char *detail)
{
    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_status(error.status, status);
    assert_string_equal(error.subject, subject);
    assert_string_equal(error.detail, detail);
}

static void grids_have_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t grid[3];
        kiln_status status;
        const char *detail;
    } rows[] = {
        {{1, 1, 1}, KILN_OK, ""},
        {{2147483647, 65535, 65535}, KILN_OK, ""},
        {{2147483648, 1, 1}, KILN_ERROR_GRID_TOO_LARGE, "grid x is at most 2147483647 thread blocks"},
        {{UINT64_C(1) << 32, 1, 1}, KILN_ERROR_GRID_TOO_LARGE, "grid x is at most 2147483647 thread blocks"},
        {{UINT64_MAX, 1, 1}, KILN_ERROR_GRID_TOO_LARGE, "grid x is at most 2147483647 thread blocks"},
        {{1, 65536, 1}, KILN_ERROR_GRID_TOO_LARGE, "grid y and z are at most 65535 thread blocks"},
        {{1, 1, 65536}, KILN_ERROR_GRID_TOO_LARGE, "grid y and z are at most 65535 thread blocks"},
        {{0, 1, 1}, KILN_ERROR_BAD_ARGUMENT, "the grid is empty"},
        {{1, 0, 1}, KILN_ERROR_BAD_ARGUMENT, "the grid is empty"},
        {{1, 1, 0}, KILN_ERROR_BAD_ARGUMENT, "the grid is empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int launches = fake.counts[FAKE_launch_kernel];
        assert_status(kiln_launch(&loader, &mini_axpy_f32_kernel, NULL, rows[i].grid, 0, NULL),
                      rows[i].status);
        if (rows[i].status == KILN_OK) {
            for (int axis = 0; axis < 3; axis++)
                assert_int_equal(fake.launch.grid[axis], rows[i].grid[axis]);
        } else {
            assert_last_error(rows[i].status, "axpy/type=f32", rows[i].detail);
            assert_int_equal(fake.counts[FAKE_launch_kernel], launches);
        }
    }
}

static void a_kernel_without_a_block_takes_the_launch_s(void **state)
{
    (void)state;
    static const uint64_t given[6] = {2, 3, 4, 1, 16, 64}; /* blocks, threads */
    kiln_kernel kernel = mini_axpy_f32_kernel;
    assert_status(kiln_launch(&loader, &mini_axpy_f32_kernel, NULL, given, 0, NULL), KILN_OK);
    assert_int_equal(fake.launch.block[0], 256);
    assert_int_equal(fake.launch.block[2], 1);
    kernel.slot = mini_axpy_f64_kernel.slot;
    kernel.block[0] = kernel.block[1] = kernel.block[2] = 0;
    assert_status(kiln_launch(&loader, &kernel, NULL, given, 0, NULL), KILN_OK);
    for (int axis = 0; axis < 3; axis++) {
        assert_int_equal(fake.launch.grid[axis], given[axis]);
        assert_int_equal(fake.launch.block[axis], given[3 + axis]);
    }
}

/* Returns a kernel that may use `most` bytes of dynamic shared memory. */
static kiln_kernel kernel_sharing(uint32_t most)
{
    kiln_kernel kernel = mini_axpy_f32_kernel;
    kernel.max_shared_bytes = most;
    return kernel;
}

static void shared_memory_over_48_kb_is_opted_in_at_load(void **state)
{
    (void)state;
    static const struct {
        uint32_t most;
        int device;
        int opted_in; /* 0: no opt-in */
    } rows[] = {
        {0, 232448, 0},           {49152, 232448, 0},     {49153, 232448, 49153},
        {232448, 232448, 232448}, {100000, 65536, 65536}, /* sm_75: the device's limit; launches that need less still run */
        {65536, 49152, 0},
    };
    static const uint64_t grid[3] = {1, 1, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_status(kiln_close(&loader), KILN_OK);
        fake_reset();
        fake.max_shared_bytes = rows[i].device;
        assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_OK);
        const kiln_kernel kernel = kernel_sharing(rows[i].most);
        assert_status(kiln_launch(&loader, &kernel, NULL, grid, 0, NULL), KILN_OK);
        assert_status(kiln_launch(&loader, &kernel, NULL, grid, 0, NULL), KILN_OK);
        assert_int_equal(fake.counts[FAKE_func_set_attribute], rows[i].opted_in != 0);
        assert_int_equal(fake.attribute, rows[i].opted_in != 0 ? 8 : 0);
        assert_int_equal(fake.attribute_value, rows[i].opted_in);
    }
}

static void shared_memory_has_limits(void **state)
{
    (void)state;
    static const uint64_t grid[3] = {1, 1, 1};
    const kiln_kernel small = kernel_sharing(1000), large = kernel_sharing(300000);
    assert_status(kiln_launch(&loader, &small, NULL, grid, 1001, NULL), KILN_ERROR_BAD_ARGUMENT);
    assert_last_error(KILN_ERROR_BAD_ARGUMENT, "axpy/type=f32",
                      "more dynamic shared memory than the kernel declares");
    assert_status(kiln_launch(&loader, &small, NULL, grid, UINT64_C(1) << 32, NULL), KILN_ERROR_BAD_ARGUMENT);
    assert_last_error(KILN_ERROR_BAD_ARGUMENT, "axpy/type=f32",
                      "more dynamic shared memory than the kernel declares");
    assert_status(kiln_launch(&loader, &small, NULL, grid, 1000, NULL), KILN_OK);
    assert_int_equal(fake.launch.shared_bytes, 1000);
    assert_status(kiln_launch(&loader, &large, NULL, grid, 232449, NULL), KILN_ERROR_BAD_ARGUMENT);
    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_int_equal(error.needed, 232449);
    assert_int_equal(error.present, 232448);
}

/* Static and dynamic shared memory are added for the launch limit, the opt-in, and kiln_usable. */
static void static_shared_memory_counts(void **state)
{
    (void)state;
    static const struct {
        uint32_t most, fixed, words; /* words: minimum, in 4-byte words */
        int device, is_usable, opted_in;
        uint64_t shared_bytes; /* of the launch */
        kiln_status status;
    } rows[] = {
        {49152, 0, 12288, 65536, 1, 0, 49152, KILN_OK},
        {49152, 4, 12288, 65536, 1, 49152, 49152, KILN_OK},
        {65532, 4, 16383, 65536, 1, 65532, 65532, KILN_OK},
        {65536, 4, 16384, 65536, 0, 65532, 65536, KILN_ERROR_BAD_ARGUMENT},
        {65536, 4, 16000, 65536, 1, 65532, 65532, KILN_OK},
        {65536, 4, 16000, 65536, 1, 65532, 65533, KILN_ERROR_BAD_ARGUMENT},
        {108288, 16, 27072, 101376, 0, 101360, 108288, KILN_ERROR_BAD_ARGUMENT},
        {108288, 16, 27072, 166912, 1, 108288, 108288, KILN_OK},
    };
    static const uint64_t grid[3] = {1, 1, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kiln_kernel kernel = kernel_sharing(rows[i].most);
        kernel.static_shared_bytes = rows[i].fixed;
        kernel.min_shared_bytes = 4 * rows[i].words;
        assert_status(kiln_close(&loader), KILN_OK);
        fake_reset();
        fake.max_shared_bytes = rows[i].device;
        assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_OK);
        assert_int_equal(kiln_usable(&loader, &kernel), rows[i].is_usable);
        assert_status(kiln_launch(&loader, &kernel, NULL, grid, rows[i].shared_bytes, NULL), rows[i].status);
        assert_status(kiln_launch(&loader, &kernel, NULL, grid, 0, NULL), KILN_OK);
        assert_int_equal(fake.attribute_value, rows[i].opted_in);
    }
}

static void a_refused_launch_is_reported(void **state)
{
    (void)state;
    const mini_axpy_args args = {.type = MINI_AXPY_TYPE_F32, .x = 256, .y = 512, .n = 1};
    assert_status(kiln_preload(&loader, mini_index.kernels, 2), KILN_OK);
    fake.fail_at = fake.calls + 1;
    fake.fail_result = 1;
    assert_status(mini_axpy(&loader, NULL, &args), KILN_ERROR_LAUNCH);
    assert_last_error(KILN_ERROR_LAUNCH, "axpy/type=f32", "cuLaunchKernel");
    assert_status(mini_axpy(&loader, NULL, &args), KILN_OK);
}

static void arguments_are_checked_before_anything(void **state)
{
    (void)state;
    static const struct {
        mini_axpy_args args;
        kiln_status status;
        const char *detail;
    } rows[] = {
        {{MINI_AXPY_TYPE_F32, 0, 512, 1, 10}, KILN_ERROR_NULL_POINTER, "x is null"},
        {{MINI_AXPY_TYPE_F32, 512, 0, 1, 10}, KILN_ERROR_NULL_POINTER, "y is null"},
        {{MINI_AXPY_TYPE_F32, 513, 512, 1, 10}, KILN_ERROR_MISALIGNED, "x must be aligned to 4 bytes"},
        {{MINI_AXPY_TYPE_F64, 512, 516, 1, 10}, KILN_ERROR_MISALIGNED, "y must be aligned to 8 bytes"},
        {{MINI_AXPY_TYPE_F32, 512, 512, 1, (UINT64_C(1) << 40) + 1},
         KILN_ERROR_BAD_ARGUMENT,
         "n is at most 2^40"},
        {{(enum mini_axpy_type)9, 512, 512, 1, 10},
         KILN_ERROR_NO_VARIANT,
         "no variant has this type or runs on this device"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_status(mini_axpy(&loader, NULL, &rows[i].args), rows[i].status);
        assert_last_error(rows[i].status, "axpy", rows[i].detail);
    }
    /* n breaks one rule, and the grid breaks another. */
    const mini_axpy_args most = {MINI_AXPY_TYPE_F32, 512, 512, 1, UINT64_C(1) << 40};
    assert_status(mini_axpy(&loader, NULL, &most), KILN_ERROR_GRID_TOO_LARGE);
    /* An empty problem succeeds. */
    const mini_axpy_args empty = {MINI_AXPY_TYPE_F32, 0, 0, 1, 0};
    assert_status(mini_axpy(&loader, NULL, &empty), KILN_OK);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 0);
    assert_int_equal(fake.counts[FAKE_launch_kernel], 0);
}

/* Three pointers of a struct; with the condition under which each is required. */
static void pointers_are_checked_by_a_table(void **state)
{
    (void)state;
    static const char texts[] = "a null\0a odd\0b null\0c odd";
    static const kiln_pointer of[] = {{0, 4, 0, 7}, {8, 1, 13, 0}, {16, 256, 0, 20}};
    static const kiln_pointers table = {texts, of, 3};
    static const struct {
        CUdeviceptr args[3];
        uint32_t required;
        kiln_status status;
        const char *detail;
    } rows[] = {
        {{4, 1, 256}, 7, KILN_OK, ""},
        {{0, 0, 0}, 0, KILN_OK, ""},
        {{0, 0, 0}, 3, KILN_ERROR_NULL_POINTER, "a null"},
        {{0, 0, 0}, 2, KILN_ERROR_NULL_POINTER, "b null"},
        {{2, 0, 128}, 2, KILN_ERROR_NULL_POINTER, "b null"},
        {{2, 0, 128}, 0, KILN_ERROR_MISALIGNED, "a odd"},
        {{4, 3, 128}, 7, KILN_ERROR_MISALIGNED, "c odd"},
        {{4, 3, 257}, 0, KILN_ERROR_MISALIGNED, "c odd"},
        {{4, 3, UINT64_C(0xffffffffffffff00)}, 7, KILN_OK, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_status(kiln_check_pointers(&loader, "it", &table, rows[i].args, rows[i].required),
                      rows[i].status);
        if (rows[i].status != KILN_OK)
            assert_last_error(rows[i].status, "it", rows[i].detail);
    }
}

static void the_launcher_of_a_found_kernel_is_the_typed_function(void **state)
{
    (void)state;
    const mini_axpy_args args = {.type = MINI_AXPY_TYPE_F64, .x = 256, .y = 512, .a = 3, .n = 257};
    const kiln_kernel *kernel = kiln_find_name(&mini_index, "axpy/type=f64");
    assert_status(kernel->launch(&loader, NULL, &args), KILN_OK);
    assert_ptr_equal(fake.launch.function, kernel->entry);
    assert_int_equal(fake.launch.grid[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grids_have_limits, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(a_kernel_without_a_block_takes_the_launch_s, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(shared_memory_over_48_kb_is_opted_in_at_load, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(shared_memory_has_limits, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(static_shared_memory_counts, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(a_refused_launch_is_reported, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(arguments_are_checked_before_anything, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(pointers_are_checked_by_a_table, open_mini, close_mini),
        cmocka_unit_test_setup_teardown(the_launcher_of_a_found_kernel_is_the_typed_function, open_mini,
                                        close_mini),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
