/* The launch hook, and trace.h's texts for its events. */
#include "test.h"

#include <kiln/trace.h>

#include "fake_driver.h"
#include "mini.h"

enum { REFUSED = 719 };

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];
static int calls; /* of the hook */
static int driver_calls[2], overlapping;
static kiln_launch_event seen[2]; /* the last two events, with the arrays that they point at */
static uint64_t grids[2][3];
static uint32_t blocks[2][3];
static char lines[2][256];

static void note(void *context, const kiln_launch_event *event)
{
    assert_ptr_equal(context, &calls);
    const int i = event->is_after;
    assert_int_equal(calls++ % 2, i);
    seen[i] = *event;
    memcpy(grids[i], event->grid, sizeof grids[i]);
    memcpy(blocks[i], event->block, sizeof blocks[i]);
    driver_calls[i] = fake.counts[FAKE_launch_kernel] + overlapping;
    const size_t length = kiln_describe_launch(event, lines[i], sizeof lines[i]);
    assert_int_equal(length, strlen(lines[i]));
}

static int launch_overlapping(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                              void **extra)
{
    (void)config, (void)function, (void)params, (void)extra;
    overlapping++;
    return 0;
}

static int open_traced(void **state)
{
    (void)state;
    fake_reset();
    driver = fake_table;
    driver.launch_kernel_ex = launch_overlapping;
    calls = overlapping = 0;
    const kiln_options options = {.launch_hook = note, .launch_hook_context = &calls, .overlap_launches = 1};
    return (int)kiln_open(&loader, &driver, &mini_bundle, slots, MINI_SLOTS, &options);
}

static int close_traced(void **state)
{
    (void)state;
    return (int)kiln_close(&loader);
}

static const mini_axpy_args args = {.type = MINI_AXPY_TYPE_F32, .x = 0x100, .y = 0x200, .a = 2, .n = 1000};
#define STREAM ((CUstream)(uintptr_t)0x30)

static void the_hook_is_called_before_and_after(void **state)
{
    (void)state;
    assert_status(mini_axpy(&loader, STREAM, &args), KILN_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(driver_calls[0], 0);
    assert_int_equal(driver_calls[1], 1);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(seen[i].kernel, &mini_axpy_f32_kernel);
        assert_ptr_equal(seen[i].params, fake.launch.params);
        assert_ptr_equal(seen[i].stream, STREAM);
        assert_memory_equal(grids[i], ((uint64_t[]){4, 1, 1}), sizeof grids[i]);
        assert_memory_equal(blocks[i], ((uint32_t[]){256, 1, 1}), sizeof blocks[i]);
        assert_int_equal(seen[i].shared_bytes, 0);
        assert_int_equal(seen[i].driver_result, 0);
        assert_string_equal(lines[i], "axpy n=1000 grid 4 block 256 shared 0 axpy/type=f32");
    }
}

static void a_launch_that_fails_has_its_result(void **state)
{
    (void)state;
    assert_status(kiln_preload(&loader, mini_index.kernels, MINI_KERNELS), KILN_OK);
    fake.fail_at = fake.calls + 1;
    fake.fail_result = REFUSED;
    assert_status(mini_axpy(&loader, NULL, &args), KILN_ERROR_LAUNCH);
    assert_int_equal(calls, 2);
    assert_int_equal(seen[0].driver_result, 0);
    assert_int_equal(seen[1].driver_result, REFUSED);
    assert_string_equal(lines[1], "axpy n=1000 grid 4 block 256 shared 0 axpy/type=f32: driver result 719");
}

static void what_reaches_no_driver_is_no_launch(void **state)
{
    (void)state;
    mini_axpy_args misaligned = args, empty = args;
    misaligned.x = 1;
    empty.n = 0;
    assert_status(mini_axpy(&loader, NULL, &misaligned), KILN_ERROR_MISALIGNED);
    assert_status(mini_axpy(&loader, NULL, &empty), KILN_OK);
    assert_status(mini_axpy(&loader, KILN_NO_LAUNCH, &args), KILN_OK);
    fake.fail_at = fake.calls + 2; /* the load */
    assert_status(mini_axpy(&loader, NULL, &args), KILN_ERROR_LOAD);
    assert_status(kiln_preload(&loader, mini_index.kernels, MINI_KERNELS), KILN_OK);
    assert_int_equal(calls, 0);
}

static void launches_that_may_overlap_are_seen_too(void **state)
{
    (void)state;
    kiln_kernel dependent = mini_axpy_f32_kernel;
    dependent.flags = KILN_KERNEL_DEPENDENT;
    const void *const params[] = {&args.x, &args.y, &args.a, &args.n};
    assert_status(kiln_launch(&loader, &dependent, STREAM, (uint64_t[]){1, 2, 3}, 0, params), KILN_OK);
    assert_int_equal(overlapping, 1);
    assert_int_equal(calls, 2);
    assert_int_equal(driver_calls[0], 0);
    assert_int_equal(driver_calls[1], 1);
    assert_string_equal(lines[1], "axpy n=1000 grid 1x2x3 block 256 shared 0 axpy/type=f32");
}

static void a_block_of_the_launch_is_seen(void **state)
{
    (void)state;
    kiln_kernel kernel = mini_axpy_f32_kernel;
    kernel.sizes = NULL;
    kernel.max_shared_bytes = 48;
    memset(kernel.block, 0, sizeof kernel.block);
    assert_status(kiln_launch(&loader, &kernel, NULL, (uint64_t[]){5, 7, 1, 16, 4, 1}, 48, NULL), KILN_OK);
    assert_string_equal(lines[0], "axpy grid 5x7 block 16x4 shared 48 axpy/type=f32");
}

/* ---- texts ---------------------------------------------------------------------------------------------------------- */

static const int64_t far = INT64_MIN;
static const int32_t near = -2;
static const uint32_t rows = UINT32_MAX;
static const uint16_t columns = 40000;
static const uint8_t level = 200;
static const int8_t tilt = -128;
static const uint64_t most = UINT64_MAX;
static const void *const values[] = {&rows, NULL, &near, &columns, &level, &tilt, &far, &most};
static const kiln_kernel all_types = {
    .id = "all", .sizes = "0:rows:u32 2:near:s32 3:columns:u16 4:level:u8 5:tilt:s8 6:far:s64 7:most:u64"};
static const uint64_t one[3] = {1, 1, 1};
static const uint32_t two[3] = {2, 1, 1};
static const kiln_launch_event event = {&all_types, values, NULL, one, two, 12, 0, 0};

static void sizes_are_found_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t value;
    } found[] = {{"rows", UINT32_MAX},       {"near", UINT64_MAX - 1},   {"columns", 40000},  {"level", 200},
                 {"tilt", UINT64_MAX - 127}, {"far", UINT64_C(1) << 63}, {"most", UINT64_MAX}};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        uint64_t value = 7;
        assert_int_equal(kiln_find_size(&event, found[i].name, &value), 1);
        assert_int_equal(value, found[i].value);
    }
    static const char *const absent[] = {"", "row", "rowss", "0", "u32", "x"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        uint64_t value = 7;
        assert_int_equal(kiln_find_size(&event, absent[i], &value), 0);
        assert_int_equal(value, 7);
    }
    const kiln_kernel none = {.id = "none"};
    uint64_t value;
    assert_int_equal(kiln_find_size(&(kiln_launch_event){.kernel = &none}, "rows", &value), 0);
}

static void lines_are_cut(void **state)
{
    (void)state;
    static const char whole[] =
        "all rows=4294967295 near=-2 columns=40000 level=200 tilt=-128 "
        "far=-9223372036854775808 most=18446744073709551615 grid 1 block 2 shared 12 all";
    for (size_t bytes = 0; bytes <= sizeof whole + 1; bytes++) {
        char text[sizeof whole + 2];
        memset(text, '#', sizeof text);
        assert_int_equal(kiln_describe_launch(&event, text, bytes), strlen(whole));
        const size_t kept = bytes == 0 ? 0 : bytes - 1 < strlen(whole) ? bytes - 1 : strlen(whole);
        assert_memory_equal(text, whole, kept);
        assert_int_equal(text[kept], bytes == 0 ? '#' : '\0');
        assert_int_equal(text[bytes], '#');
    }
    assert_int_equal(kiln_describe_launch(&event, NULL, 100), strlen(whole));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_hook_is_called_before_and_after, open_traced, close_traced),
        cmocka_unit_test_setup_teardown(a_launch_that_fails_has_its_result, open_traced, close_traced),
        cmocka_unit_test_setup_teardown(what_reaches_no_driver_is_no_launch, open_traced, close_traced),
        cmocka_unit_test_setup_teardown(launches_that_may_overlap_are_seen_too, open_traced, close_traced),
        cmocka_unit_test_setup_teardown(a_block_of_the_launch_is_seen, open_traced, close_traced),
        cmocka_unit_test(sizes_are_found_by_name),
        cmocka_unit_test(lines_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
