/* Opening, loading and closing on a scripted driver, and their errors. test_faults.c has the driver's failures. */
#include "test.h"

#include "fake_driver.h"
#include "mini.h"

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];
static const mini_axpy_args axpy = {.type = MINI_AXPY_TYPE_F32, .x = 256, .y = 512, .a = 2, .n = 1000};
static const mini_axpy_args axpy_f64 = {.type = MINI_AXPY_TYPE_F64, .x = 256, .y = 512, .a = 2, .n = 1000};

static int reset(void **state)
{
    (void)state;
    fake_reset();
    memset(&loader, 0, sizeof loader);
    memset(slots, 0xff, sizeof slots); /* kiln_open has to clear them */
    return 0;
}

static kiln_status open_mini(const kiln_options *options)
{
    return kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, options);
}

static kiln_error last_error(void)
{
    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_non_null(error.subject);
    assert_non_null(error.detail);
    return error;
}

static void assert_last_error(kiln_status status, const char *subject, const char *detail, int driver_result)
{
    kiln_error error = last_error();
    assert_status(error.status, status);
    assert_string_equal(error.subject, subject);
    assert_string_equal(error.detail, detail);
    assert_int_equal(error.driver_result, driver_result);
}

/* ---- the normal course ------------------------------------------------------------------------------------------ */

static void opening_reads_the_device_and_loads_nothing(void **state)
{
    (void)state;
    assert_status(open_mini(NULL), KILN_OK);
    assert_int_equal(loader.device.sm, 90);
    assert_int_equal(loader.device.driver_version, 12080);
    assert_int_equal(loader.device.multiprocessors, 132);
    assert_int_equal(loader.device.max_shared_bytes, 227 * 1024);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 0);
    assert_last_error(KILN_OK, "", "", 0);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.counts[FAKE_module_unload], 0);
}

static void a_kernel_is_loaded_on_its_first_launch_once(void **state)
{
    (void)state;
    assert_status(open_mini(NULL), KILN_OK);
    for (int i = 0; i < 3; i++)
        assert_status(mini_axpy(&loader, (CUstream)(uintptr_t)0x55, &axpy), KILN_OK);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 1);
    assert_int_equal(fake.counts[FAKE_module_get_function], 1);
    assert_int_equal(fake.counts[FAKE_func_set_attribute], 0);
    assert_int_equal(fake.counts[FAKE_launch_kernel], 3);
    assert_ptr_equal(fake.loaded_image, mini_axpy_f32_kernel.module->images[1].data); /* sm_90 before sm_75 */
    assert_int_equal(fake.option_count, 0);
    assert_ptr_equal(fake.launch.function, mini_axpy_f32_kernel.entry);
    assert_ptr_equal(fake.launch.stream, 0x55);
    assert_int_equal(fake.launch.grid[0], 4);
    assert_int_equal(fake.launch.grid[1], 1);
    assert_int_equal(fake.launch.grid[2], 1);
    assert_int_equal(fake.launch.block[0], 256);
    assert_int_equal(fake.launch.shared_bytes, 0);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.unloads, 1);
}

static void preloaded_kernels_only_launch(void **state)
{
    (void)state;
    assert_status(open_mini(NULL), KILN_OK);
    assert_status(kiln_preload(&loader, mini_index.kernels, mini_bundle.kernel_count), KILN_OK);
    assert_int_equal(fake.loads, 2);
    int calls = fake.calls;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy_f64), KILN_OK);
    assert_int_equal(fake.calls, calls + 2);
    assert_int_equal(fake.counts[FAKE_launch_kernel], 2);
    assert_status(kiln_preload(&loader, NULL, 0), KILN_OK);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.unloads, 2);
}

static void a_loader_can_be_opened_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_status(open_mini(NULL), KILN_OK);
        assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
        assert_status(kiln_close(&loader), KILN_OK);
    }
    assert_int_equal(fake.loads, 3);
    assert_int_equal(fake.unloads, 3);
}

/* A module with two entries, such as external PTX, is loaded once, for either kernel first. */
/* After someone else destroyed the context, the driver must not get its modules. */
static void a_forgotten_loader_can_be_opened_again(void **state)
{
    (void)state;
    assert_status(open_mini(NULL), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    fake.current = FAKE_OTHER_CONTEXT;
    assert_status(kiln_close(&loader), KILN_ERROR_WRONG_CONTEXT);
    assert_status(open_mini(NULL), KILN_ERROR_ALREADY_OPEN);
    const int calls = fake.calls;
    kiln_forget(&loader);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_CLOSED);
    assert_status(kiln_close(&loader), KILN_OK);
    kiln_forget(&loader);
    kiln_forget(NULL);
    assert_int_equal(fake.calls, calls);
    assert_status(open_mini(NULL), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    assert_int_equal(fake.loads, 2);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.unloads, 1);
}

static int most_of_everything(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 81 ? 0 : attribute == 36 || attribute == 37 ? 2 : INT32_MAX;
    return 0;
}

static void a_device_may_have_as_much_as_an_int_counts(void **state)
{
    (void)state;
    kiln_driver driver = fake_table;
    driver.device_get_attribute = most_of_everything;
    assert_status(kiln_open(&loader, &driver, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_OK);
    assert_int_equal(loader.device.max_shared_bytes, INT32_MAX);
    assert_int_equal(loader.device.multiprocessor_shared_bytes, UINT32_C(0x800003ff));
    assert_int_equal(loader.device.memory_cycles, UINT32_MAX); /* not 2^51, cut off */
    assert_int_equal(loader.device.sm, UINT32_C(0x7ffffff5));  /* 11 * (2^31 - 1), without its high bits */
}

static void kernels_of_one_module_share_it(void **state)
{
    (void)state;
    static const kiln_image image = {.data = "two", .bytes = 3, .sm = 75};
    static const kiln_module module = {.images = &image, .image_count = 1, .slot = 0};
    static const kiln_kernel first = {
        .id = "first", .entry = "first", .module = &module, .block = {1, 1, 1}, .slot = 0};
    static const kiln_kernel second = {
        .id = "second", .entry = "second", .module = &module, .block = {1, 1, 1}, .slot = 1};
    static const kiln_bundle bundle = {KILN_LAYOUT_VERSION, 2, 1, 2, 0, "two"};
    static const uint64_t grid[3] = {1, 1, 1};
    const kiln_kernel *orders[2][2] = {{&first, &second}, {&second, &first}};
    for (int order = 0; order < 2; order++) {
        fake_reset();
        assert_status(kiln_open(&loader, &fake_table, &bundle, slots, 2, NULL), KILN_OK);
        for (int i = 0; i < 2; i++) {
            assert_status(kiln_launch(&loader, orders[order][i], NULL, grid, 0, NULL), KILN_OK);
            assert_ptr_equal(fake.launch.function, orders[order][i]->entry);
        }
        assert_int_equal(fake.loads, 1);
        assert_int_equal(fake.counts[FAKE_module_get_function], 2);
        assert_status(kiln_close(&loader), KILN_OK);
        assert_int_equal(fake.unloads, 1);
    }
}

/* ---- compressed images ------------------------------------------------------------------------------------------ */

static _Alignas(16) uint64_t scratch[8];
static kiln_status codec_result;

/* "Packed" is one letter, which is repeated. */
static kiln_status repeat(const kiln_image *image, void *into, size_t bytes)
{
    assert_ptr_equal(into, scratch);
    assert_int_equal(bytes, sizeof scratch);
    memset(into, image->data[0], image->expanded_bytes);
    ((char *)into)[image->expanded_bytes] = '\0';
    return codec_result;
}

static const kiln_image packed_image = {
    .data = "x", .bytes = 1, .sm = 75, .expanded_bytes = 5, .codec = repeat};
static const kiln_module packed_module = {.images = &packed_image, .image_count = 1, .slot = 0};
static const kiln_kernel packed = {
    .id = "packed", .entry = "packed", .module = &packed_module, .block = {1, 1, 1}, .slot = 0};
static const kiln_bundle packed_bundle = {KILN_LAYOUT_VERSION, 1, 1, 1, sizeof scratch, "packing"};

static kiln_status open_packed(void *memory, size_t bytes)
{
    const kiln_options options = {.scratch = memory, .scratch_bytes = bytes};
    return kiln_open(&loader, &fake_table, &packed_bundle, slots, 1, &options);
}

static void the_driver_gets_what_the_codec_makes(void **state)
{
    (void)state;
    static const uint64_t grid[3] = {1, 1, 1};
    codec_result = KILN_OK;
    assert_status(open_packed(scratch, sizeof scratch), KILN_OK);
    assert_status(kiln_launch(&loader, &packed, NULL, grid, 0, NULL), KILN_OK);
    assert_ptr_equal(fake.loaded_image, scratch);
    assert_string_equal((const char *)scratch, "xxxxx");
    assert_status(kiln_close(&loader), KILN_OK);
}

static void an_image_that_its_codec_refuses_is_not_loaded(void **state)
{
    (void)state;
    const kiln_kernel *const kernels[] = {&packed};
    codec_result = KILN_ERROR_CORRUPT_IMAGE;
    assert_status(open_packed(scratch, sizeof scratch), KILN_OK);
    assert_status(kiln_preload(&loader, kernels, 1), KILN_ERROR_CORRUPT_IMAGE);
    assert_last_error(KILN_ERROR_CORRUPT_IMAGE, "packed", "the codec refused it", 0);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 0);
    codec_result = KILN_OK; /* a later call tries again */
    assert_status(kiln_preload(&loader, kernels, 1), KILN_OK);
}

static void scratch_has_to_be_as_large_as_the_bundle_says(void **state)
{
    (void)state;
    const struct {
        void *memory;
        size_t bytes, present;
    } cases[] = {{scratch, sizeof scratch - 1, sizeof scratch - 1}, {scratch, 0, 0}, {NULL, 64, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_status(open_packed(cases[i].memory, cases[i].bytes), KILN_ERROR_SCRATCH_TOO_SMALL);
        assert_last_error(KILN_ERROR_SCRATCH_TOO_SMALL, "packing", "", 0);
        assert_int_equal(last_error().needed, sizeof scratch);
        assert_int_equal(last_error().present, cases[i].present);
    }
    assert_status(kiln_open(&loader, &fake_table, &packed_bundle, slots, 1, NULL),
                  KILN_ERROR_SCRATCH_TOO_SMALL);
}

static void scratch_has_to_be_aligned(void **state)
{
    (void)state;
    assert_status(open_packed((char *)scratch + 8, sizeof scratch), KILN_ERROR_MISALIGNED);
    assert_last_error(KILN_ERROR_MISALIGNED, "packing", "options.scratch: align to 16", 0);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void null_arguments_are_refused(void **state)
{
    (void)state;
    kiln_error error;
    const kiln_kernel *null_kernel = NULL;
    assert_status(kiln_open(NULL, &fake_table, &mini_bundle, slots, 2, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_open(&loader, NULL, &mini_bundle, slots, 2, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_open(&loader, &fake_table, NULL, slots, 2, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_open(&loader, &fake_table, &mini_bundle, NULL, 2, NULL), KILN_ERROR_NULL_POINTER);
    assert_last_error(KILN_ERROR_NULL_POINTER, "kiln_open", "driver, bundle and slots are required", 0);
    assert_status(kiln_close(NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_preload(NULL, NULL, 0), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_last_error(NULL, &error), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_last_error(&loader, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_begin(NULL, &axpy, "x"), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_fail(NULL, KILN_ERROR_NOT_FOUND, NULL, NULL), KILN_ERROR_NOT_FOUND);
    assert_int_equal(kiln_usable(NULL, &mini_axpy_f32_kernel), 0);
    assert_status(mini_axpy(NULL, NULL, &axpy), KILN_ERROR_NULL_POINTER);

    assert_status(open_mini(NULL), KILN_OK);
    assert_status(kiln_preload(&loader, NULL, 1), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_preload(&loader, &null_kernel, 1), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_begin(&loader, NULL, "x"), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_fail(&loader, KILN_ERROR_NOT_FOUND, NULL, NULL), KILN_ERROR_NOT_FOUND);
    assert_last_error(KILN_ERROR_NOT_FOUND, "", "", 0);
    assert_int_equal(kiln_usable(&loader, NULL), 0);
    assert_status(mini_axpy(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 0);
    assert_status(open_mini(NULL), KILN_ERROR_ALREADY_OPEN);
    assert_status(mini_axpy(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER); /* the open loader is unchanged */
    assert_status(kiln_close(&loader), KILN_OK);
}

static void assert_closed(void)
{
    kiln_error error;
    assert_status(kiln_begin(&loader, &axpy, "x"), KILN_ERROR_CLOSED);
    assert_status(kiln_preload(&loader, mini_index.kernels, 2), KILN_ERROR_CLOSED);
    assert_status(kiln_preload(&loader, NULL, 0), KILN_ERROR_CLOSED);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_CLOSED);
    assert_status(mini_axpy_f32(&loader, NULL, &axpy), KILN_ERROR_CLOSED);
    assert_status(mini_axpy_f32_kernel.launch(&loader, NULL, &axpy), KILN_ERROR_CLOSED);
    assert_int_equal(kiln_usable(&loader, &mini_axpy_f32_kernel), 0);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_status(error.status, KILN_ERROR_CLOSED);
    assert_string_equal(error.subject, "axpy");
    assert_int_equal(fake.counts[FAKE_launch_kernel], 0);
}

static void a_closed_loader_refuses_everything(void **state)
{
    (void)state;
    assert_closed(); /* zeros */
    assert_status(open_mini(NULL), KILN_OK);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_closed();
    fake.current = NULL;
    assert_status(open_mini(NULL), KILN_ERROR_NO_CONTEXT);
    assert_closed();
}

static void a_bundle_of_another_layout_is_refused(void **state)
{
    (void)state;
    kiln_bundle other = mini_bundle;
    other.layout_version = KILN_LAYOUT_VERSION + 1;
    assert_status(kiln_open(&loader, &fake_table, &other, slots, 2, NULL), KILN_ERROR_LAYOUT);
    assert_int_equal(last_error().needed, KILN_LAYOUT_VERSION);
    assert_int_equal(last_error().present, KILN_LAYOUT_VERSION + 1);
    assert_int_equal(fake.calls, 0);
}

static void too_few_slots_are_refused(void **state)
{
    (void)state;
    assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, 1, NULL), KILN_ERROR_TOO_FEW_SLOTS);
    assert_string_equal(last_error().subject, "mini");
    assert_int_equal(last_error().needed, 2);
    assert_int_equal(last_error().present, 1);
}

static void a_table_without_a_function_is_refused(void **state)
{
    (void)state;
    kiln_driver table = fake_table;
    table.func_set_attribute = NULL;
    assert_status(kiln_open(&loader, &table, &mini_bundle, slots, 2, NULL), KILN_ERROR_DRIVER_SYMBOL);
    assert_last_error(KILN_ERROR_DRIVER_SYMBOL, "mini", "null in the driver table", 0);
}

static void contexts_are_checked(void **state)
{
    (void)state;
    fake.current = NULL;
    assert_status(open_mini(NULL), KILN_ERROR_NO_CONTEXT);
    assert_last_error(KILN_ERROR_NO_CONTEXT, "mini", "", 0);
    fake.current = FAKE_CONTEXT;
    assert_status(open_mini(NULL), KILN_OK);

    fake.current = FAKE_OTHER_CONTEXT;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_WRONG_CONTEXT);
    assert_last_error(KILN_ERROR_WRONG_CONTEXT, "axpy/type=f32", "", 0);
    fake.current = NULL;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_NO_CONTEXT);
    fake.current = FAKE_CONTEXT;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);

    /* Closing under another context would leak, so it does nothing and can be repeated. */
    fake.current = FAKE_OTHER_CONTEXT;
    assert_status(kiln_close(&loader), KILN_ERROR_WRONG_CONTEXT);
    assert_int_equal(fake.unloads, 0);
    fake.current = NULL;
    assert_status(kiln_close(&loader), KILN_ERROR_NO_CONTEXT);
    fake.current = FAKE_CONTEXT;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.unloads, 1);
}

static void images_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    fake.major = 7;
    fake.minor = 0;
    assert_status(open_mini(NULL), KILN_OK);
    assert_int_equal(kiln_usable(&loader, &mini_axpy_f32_kernel), 0);
    assert_status(mini_axpy_f32(&loader, NULL, &axpy), KILN_ERROR_NO_IMAGE);
    assert_last_error(KILN_ERROR_NO_IMAGE, "axpy/type=f32",
                      "add its target, or a variant that it can run, to the configuration", 0);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_NO_VARIANT);
    assert_last_error(KILN_ERROR_NO_VARIANT, "axpy", "no variant has this type or runs on this device", 0);
    assert_status(kiln_close(&loader), KILN_OK);

    fake.major = 9;
    fake.version = 9020;
    assert_status(open_mini(NULL), KILN_OK);
    assert_int_equal(kiln_usable(&loader, &mini_axpy_f32_kernel), 0);
    assert_status(mini_axpy_f32(&loader, NULL, &axpy), KILN_ERROR_DRIVER_TOO_OLD);
    assert_int_equal(last_error().needed, 10000); /* the lowest sufficient version, not sm_90's 11080 */
    assert_int_equal(last_error().present, 9020);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_int_equal(fake.loads, 0);
}

static kiln_status refuse(const kiln_image *image)
{
    assert_ptr_equal(image, &mini_axpy_f32_kernel.module->images[1]);
    return KILN_ERROR_CORRUPT_IMAGE;
}

static void images_are_checked_when_asked_for(void **state)
{
    (void)state;
    assert_status(open_mini(&(kiln_options){.check_image = refuse}), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_CORRUPT_IMAGE);
    assert_last_error(KILN_ERROR_CORRUPT_IMAGE, "axpy/type=f32", "options.check_image refused it", 0);
    assert_int_equal(fake.counts[FAKE_module_load_data_ex], 0);
    assert_status(kiln_close(&loader), KILN_OK);

    assert_status(open_mini(&(kiln_options){.check_image = kiln_check_image}), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    assert_status(kiln_close(&loader), KILN_OK);
}

/* A kernel of another bundle must not access memory beyond the slots or launch another kernel's function. */
static void kernels_of_other_bundles_are_refused(void **state)
{
    (void)state;
    static const uint64_t grid[3] = {1, 1, 1};
    const kiln_module far_module = {
        .images = mini_axpy_f32_kernel.module->images, .image_count = 1, .slot = 9};
    kiln_kernel other = mini_axpy_f32_kernel;
    assert_status(open_mini(NULL), KILN_OK);
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
    assert_status(kiln_launch(&loader, &other, NULL, grid, 0, NULL), KILN_ERROR_BAD_ARGUMENT);
    assert_last_error(KILN_ERROR_BAD_ARGUMENT, "axpy/type=f32", "a kernel of another bundle", 0);
    other.slot = 2;
    assert_status(kiln_launch(&loader, &other, NULL, grid, 0, NULL), KILN_ERROR_BAD_ARGUMENT);
    other.slot = 1;
    other.module = &far_module;
    assert_status(kiln_launch(&loader, &other, NULL, grid, 0, NULL), KILN_ERROR_BAD_ARGUMENT);
    assert_int_equal(fake.counts[FAKE_launch_kernel], 1);
    assert_status(kiln_close(&loader), KILN_OK);
}

/* ---- the JIT log -------------------------------------------------------------------------------------------------- */

static void the_jit_log_is_delivered(void **state)
{
    (void)state;
    char log[32];
    memset(log, 'x', sizeof log);
    fake.log = "ptxas: line 3: no";
    assert_status(open_mini(&(kiln_options){.log = log, .log_bytes = sizeof log}), KILN_OK);
    fake.fail_at = fake.calls + 2; /* after cuCtxGetCurrent */
    fake.fail_result = 218;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_LOAD);
    assert_last_error(KILN_ERROR_LOAD, "axpy/type=f32", "cuModuleLoadDataEx", 218);
    assert_int_equal(fake.option_count, 2);
    assert_int_equal(fake.log_bytes, sizeof log);
    assert_string_equal(log, fake.log);
    assert_int_equal(last_error().log_bytes, strlen(fake.log));

    /* A log that fills the buffer is truncated and terminated. */
    fake.log = "0123456789012345678901234567890123456789";
    fake.fail_at = fake.calls + 2;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_LOAD);
    assert_string_equal(log, "0123456789012345678901234567890");
    assert_int_equal(last_error().log_bytes, 31);

    /* If the driver writes no log, the text is empty, not the previous one. */
    fake.log = NULL;
    fake.fail_at = fake.calls + 2;
    assert_status(mini_axpy(&loader, NULL, &axpy), KILN_ERROR_LOAD);
    assert_string_equal(log, "");
    assert_int_equal(last_error().log_bytes, 0);
    assert_status(kiln_close(&loader), KILN_OK);
}

static void no_log_is_asked_for_without_a_buffer(void **state)
{
    (void)state;
    char log[4] = "abc";
    const kiln_options none[] = {{.log = log, .log_bytes = 0}, {.log = NULL, .log_bytes = 9}};
    for (int i = 0; i < 2; i++) {
        assert_status(open_mini(&none[i]), KILN_OK);
        assert_status(mini_axpy(&loader, NULL, &axpy), KILN_OK);
        assert_int_equal(fake.option_count, 0);
        assert_status(kiln_close(&loader), KILN_OK);
    }
    assert_string_equal(log, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opening_reads_the_device_and_loads_nothing, reset),
        cmocka_unit_test_setup(a_kernel_is_loaded_on_its_first_launch_once, reset),
        cmocka_unit_test_setup(preloaded_kernels_only_launch, reset),
        cmocka_unit_test_setup(a_loader_can_be_opened_again, reset),
        cmocka_unit_test_setup(a_forgotten_loader_can_be_opened_again, reset),
        cmocka_unit_test_setup(a_device_may_have_as_much_as_an_int_counts, reset),
        cmocka_unit_test_setup(kernels_of_one_module_share_it, reset),
        cmocka_unit_test_setup(the_driver_gets_what_the_codec_makes, reset),
        cmocka_unit_test_setup(an_image_that_its_codec_refuses_is_not_loaded, reset),
        cmocka_unit_test_setup(scratch_has_to_be_as_large_as_the_bundle_says, reset),
        cmocka_unit_test_setup(scratch_has_to_be_aligned, reset),
        cmocka_unit_test_setup(null_arguments_are_refused, reset),
        cmocka_unit_test_setup(a_closed_loader_refuses_everything, reset),
        cmocka_unit_test_setup(a_bundle_of_another_layout_is_refused, reset),
        cmocka_unit_test_setup(too_few_slots_are_refused, reset),
        cmocka_unit_test_setup(a_table_without_a_function_is_refused, reset),
        cmocka_unit_test_setup(contexts_are_checked, reset),
        cmocka_unit_test_setup(images_that_do_not_fit_are_refused, reset),
        cmocka_unit_test_setup(images_are_checked_when_asked_for, reset),
        cmocka_unit_test_setup(kernels_of_other_bundles_are_refused, reset),
        cmocka_unit_test_setup(the_jit_log_is_delivered, reset),
        cmocka_unit_test_setup(no_log_is_asked_for_without_a_buffer, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
