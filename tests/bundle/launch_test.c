/* Launches the sample bundle on the runtime's scripted driver and checks the calls that reach the driver. Launches that overlap
 * run on the emulated driver. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kiln/choose.h>

#include "fake_driver.h"
#include "test.h"

#include "sample.h"

/* ---- a loader, and a launch that records the parameters ----------------------------------------------------------- */

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[SAMPLE_SLOTS];
static int launches;

static struct {
    unsigned grid[3], block[3], shared_bytes;
    uint64_t words[8]; /* the parameters; parameter i has sizes[i] bytes */
} seen;
static const size_t *sizes; /* ends with 0 */

static int launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                  void **extra)
{
    (void)function, (void)stream, (void)extra;
    launches++;
    memset(&seen, 0, sizeof seen);
    memcpy(seen.grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof seen.grid);
    memcpy(seen.block, (unsigned[]){block_x, block_y, block_z}, sizeof seen.block);
    seen.shared_bytes = shared_bytes;
    for (size_t i = 0; sizes && sizes[i]; i++)
        memcpy(&seen.words[i], params[i], sizes[i]);
    return 0;
}

static void open_on_with(int sm, int max_shared_bytes)
{
    kiln_close(&loader);
    fake_reset();
    fake.max_shared_bytes = max_shared_bytes;
    fake.major = sm / 10;
    fake.minor = sm % 10;
    fake.multiprocessors = 100;
    driver = fake_table;
    driver.launch_kernel = launch;
    launches = 0;
    sizes = NULL;
    assert_status(kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, NULL), KILN_OK);
}

static void open_on(int sm)
{
    open_on_with(sm, 227 * 1024);
}

static int set_up(void **state)
{
    (void)state;
    open_on(90);
    return 0;
}

static void expect_failure(kiln_status got, kiln_status wanted, const char *subject, const char *detail)
{
    kiln_error error;
    assert_status(got, wanted);
    kiln_last_error(&loader, &error);
    assert_string_equal(error.subject, subject);
    assert_string_equal(error.detail, detail);
    assert_int_equal(launches, 0);
}

static void expect_loaded(const char *entry)
{
    char line[128];
    snprintf(line, sizeof line, ".visible .entry %s(", entry);
    assert_non_null(strstr(fake.loaded_image, line));
}

static sample_axpy_args axpy_args(void)
{
    return (sample_axpy_args){.n = 1000, .a = 1.5f, .x = 0x100, .y = 0x200};
}

static sample_blend_args blend_args(void)
{
    return (sample_blend_args){.x = 0x1000, .y = 0x2000, .factor = 0.1, .rows = 100, .stride = 4096};
}

/* ---- axpy ---------------------------------------------------------------------------------------------------------- */

static void launches_with_its_arguments(void **state)
{
    (void)state;
    const sample_axpy_args args = axpy_args();
    sizes = (const size_t[]){8, 4, 8, 8, 0};
    assert_status(sample_axpy(&loader, NULL, &args), KILN_OK);
    assert_int_equal(launches, 1);
    assert_int_equal(seen.grid[0], 4); /* ceil(1000 / 256) */
    assert_int_equal(seen.grid[1], 1);
    assert_int_equal(seen.block[0], 256);
    assert_int_equal(seen.shared_bytes, 0);
    assert_int_equal(seen.words[0], 1000);
    assert_memory_equal(&seen.words[1], &args.a, 4);
    assert_int_equal(seen.words[2], 0x100);
    assert_int_equal(seen.words[3], 0x200);
    expect_loaded("axpy");
}

/* ---- launches that may overlap ------------------------------------------------------------------------------------- */

enum { LAUNCH_FAILED = 719 };
static int overlapping, overlap_result;

/* The layout of cuda.h's CUlaunchConfig, repeated here to check the runtime's copy. */
static int launch_ex(const struct CUlaunchConfig_st *config, CUfunction function, void **params, void **extra)
{
    struct {
        unsigned id, padding;
        int value;
    } attribute;
    struct {
        unsigned grid[3], block[3], shared_bytes;
        CUstream stream;
        const void *attributes;
        unsigned attribute_count;
    } c;
    memcpy(&c, config, sizeof c);
    memcpy(&attribute, c.attributes, sizeof attribute);
    assert_int_equal(c.attribute_count, 1);
    assert_int_equal(attribute.id, 6);
    assert_int_equal(attribute.value, 1);
    overlapping++;
    launch(function, c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1], c.block[2], c.shared_bytes,
           c.stream, params, extra);
    return overlap_result;
}

/* The launch attribute is set if the selected image waits for the preceding launch. */
static void overlaps_launches_where_asked(void **state)
{
    (void)state;
    static const struct {
        int sm, version, is_asked, has_entry, overlaps;
    } rows[] = {
        {90, 12080, 1, 1, 1}, {100, 12080, 1, 1, 1}, {90, 12080, 0, 1, 0},
        {90, 12080, 1, 0, 0}, {80, 12080, 1, 1, 0},  {90, 11000, 1, 1, 0} /* takes the image for sm_75 */,
    };
    static const size_t axpy_sizes[] = {8, 4, 8, 8, 0};
    const sample_axpy_args args = axpy_args();
    sample_blend_args blend = blend_args();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_on(rows[i].sm);
        kiln_close(&loader);
        fake.version = rows[i].version;
        driver.launch_kernel_ex = rows[i].has_entry ? launch_ex : NULL;
        overlapping = overlap_result = 0;
        sizes = axpy_sizes;
        const kiln_options options = {.overlap_launches = rows[i].is_asked};
        assert_status(kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, &options), KILN_OK);
        assert_status(sample_axpy(&loader, NULL, &args), KILN_OK);
        assert_int_equal(launches, 1);
        assert_int_equal(overlapping, rows[i].overlaps);
        assert_int_equal(seen.grid[0], 4);
        assert_int_equal(seen.block[0], 256);
        assert_int_equal(seen.words[0], 1000);
        assert_int_equal(seen.words[3], 0x200);
        sizes = NULL;
        assert_status(sample_blend(&loader, NULL, &blend), KILN_OK); /* this image does not wait */
        assert_int_equal(launches, 2);
        assert_int_equal(overlapping, rows[i].overlaps);
    }
    open_on(90);
    kiln_close(&loader);
    const kiln_options options = {.overlap_launches = 1};
    driver.launch_kernel_ex = launch_ex;
    assert_status(kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, &options), KILN_OK);
    overlap_result = LAUNCH_FAILED;
    assert_status(sample_axpy(&loader, NULL, &args), KILN_ERROR_LAUNCH);
    kiln_error error;
    kiln_last_error(&loader, &error);
    assert_string_equal(error.detail, "cuLaunchKernelEx");
    assert_int_equal(error.driver_result, LAUNCH_FAILED);
}

/* On the emulated driver, under all checks: a launch adds to y of the preceding launch and waits for it. If the preceding launch
 * wrote x, which counts as constant, the next launch reads it too early. */
static void overlapping_launches_are_in_order(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float ones[N], sums[N];
    CUcontext context;
    CUdeviceptr x, y;
    kiln_driver emulated;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    setenv("KILN_EMU_CHECK", "all", 1);
    setenv("KILN_EMU_DEVICE", "sm_90", 1);
    setenv("KILN_EMU_VERBOSE", "0", 1);
    assert_status(kiln_driver_load(&emulated, EMULATOR, NULL), KILN_OK);
    assert_int_equal(emulated.init(0), 0);
    assert_int_equal(emulated.device_primary_ctx_retain(&context, 0), 0);
    assert_int_equal(emulated.ctx_set_current(context), 0);
    assert_int_equal(emulated.mem_alloc(&x, sizeof ones), 0);
    assert_int_equal(emulated.mem_alloc(&y, sizeof ones), 0);
    assert_int_equal(emulated.memcpy_htod(x, ones, sizeof ones), 0);
    assert_int_equal(emulated.memcpy_htod(y, ones, sizeof ones), 0);
    kiln_close(&loader);
    const kiln_options options = {.overlap_launches = 1};
    assert_status(kiln_open(&loader, &emulated, &sample_bundle, slots, SAMPLE_SLOTS, &options), KILN_OK);

    const sample_axpy_args right = {.n = N, .a = 2, .x = x, .y = y}, wrong = {.n = N, .a = 2, .x = y, .y = x};
    for (int i = 0; i < 3; i++)
        assert_status(sample_axpy(&loader, NULL, &right), KILN_OK);
    assert_int_equal(emulated.ctx_synchronize(), 0);
    assert_int_equal(emulated.memcpy_dtoh(sums, y, sizeof sums), 0);
    for (int i = 0; i < N; i++)
        assert_true(sums[i] == 7);

    assert_status(sample_axpy(&loader, NULL, &wrong), KILN_OK); /* the host has waited */
    assert_int_equal(emulated.ctx_synchronize(), 0);
    assert_status(sample_axpy(&loader, NULL, &right), KILN_OK);
    assert_status(sample_axpy(&loader, NULL, &wrong), KILN_OK);
    assert_int_equal(emulated.ctx_synchronize(), LAUNCH_FAILED);
    kiln_close(&loader); /* may fail in a failed context */
    memset(&loader, 0, sizeof loader);
}

static void does_nothing_when_empty(void **state)
{
    (void)state;
    assert_status(sample_axpy(&loader, NULL, &(sample_axpy_args){.n = 0}), KILN_OK);
    assert_int_equal(launches, 0);
    assert_int_equal(fake.loads, 0);
}

static void refuses_null(void **state)
{
    (void)state;
    sample_axpy_args args = axpy_args();
    args.y = 0;
    expect_failure(sample_axpy(&loader, NULL, &args), KILN_ERROR_NULL_POINTER, "axpy", "y is null");
    assert_status(sample_axpy(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(sample_axpy(NULL, NULL, &args), KILN_ERROR_NULL_POINTER);
    assert_status(sample_blend(NULL, NULL, NULL), KILN_ERROR_NULL_POINTER);
}

static void refuses_misaligned_pointers(void **state)
{
    (void)state;
    sample_axpy_args args = axpy_args();
    args.x += 2;
    expect_failure(sample_axpy(&loader, NULL, &args), KILN_ERROR_MISALIGNED, "axpy",
                   "x must be aligned to 4 bytes");
}

/* ---- blend --------------------------------------------------------------------------------------------------------- */

static void refuses_arrays_that_are_too_large(void **state)
{
    (void)state;
    sample_axpy_args args = axpy_args();
    args.n = UINT64_C(1) << 61;
    expect_failure(sample_axpy(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "axpy",
                   "x would have 2^63 bytes or more");
    sample_blend_args blend = blend_args();
    blend.rows = 1 << 20;
    blend.stride = UINT64_C(1) << 41;
    expect_failure(sample_blend(&loader, NULL, &blend), KILN_ERROR_BAD_ARGUMENT, "blend",
                   "x would have 2^63 bytes or more");
}

static void checks_rules_before_pointers(void **state)
{
    (void)state;
    sample_blend_args args = {.rows = 1, .stride = 12};
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "blend",
                   "stride must be a multiple of 8");
}

static void checks_rules_of_the_variant(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    args.stride = 56;
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "blend",
                   "stride must be at least \"width\"");
    args.stride = 72;
    expect_failure(sample_blend_f32_f32_64_noclamp_wide(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT,
                   "blend", "with strategy wide stride must be a multiple of 16");
    assert_status(sample_blend_f32_f32_64_noclamp_narrow(&loader, NULL, &args), KILN_OK);
}

/* A finite argument stays finite when it is narrowed to the variant's type; an infinity stays infinite. */
static void refuses_what_narrowing_makes_infinite(void **state)
{
    (void)state;
    static const double beyond[] = {1e39, -1e39};
    sample_blend_args args = blend_args();
    for (int i = 0; i < 2; i++) {
        args.factor = beyond[i];
        expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "blend",
                       "factor is beyond the range of f32");
    }
    args.factor = INFINITY;
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
}

static void takes_zero_for_the_default(void **state)
{
    (void)state;
    const sample_blend_args args = blend_args();
    sizes = (const size_t[]){8, 8, 8, 4, 4, 8, 0};
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    expect_loaded("blend_f32_f32_64_noclamp_narrow");
    const float factor = 0.1f; /* a double in the struct, narrowed for this variant */
    assert_memory_equal(&seen.words[3], &factor, 4);
    assert_int_equal(seen.words[2], 0); /* norm may be null */
    assert_int_equal(seen.words[4], 100);
    assert_int_equal(seen.words[5], 4096);
    assert_int_equal(seen.grid[0], 2); /* ceil(100 / 64) */
    assert_int_equal(seen.grid[1], 2); /* ceil(4096 / 2048) */
    assert_int_equal(seen.block[0], 64);
    assert_int_equal(seen.block[1], 2);
    assert_int_equal(seen.shared_bytes, 256);
}

/* Arguments that the call leaves out get their values. Defaults are set before expressions that use them. */
static void asks_for_less(void **state)
{
    (void)state;
    const sample_blend_one_args args = {.x = 0x1000, .y = 0x2000, .copies = 0, .factor = 0.1};
    sizes = (const size_t[]){8, 8, 8, 4, 4, 8, 0};
    assert_status(sample_blend_one(&loader, NULL, &args), KILN_OK);
    expect_loaded("blend_f32_f32_64_noclamp_narrow");
    assert_int_equal(seen.words[0], 0x1000);
    assert_int_equal(seen.words[1], 0x2000);
    assert_int_equal(seen.words[2], 0);
    assert_int_equal(seen.words[4], 1);
    assert_int_equal(seen.words[5], 128); /* twice the default width */
    assert_status(sample_blend_one(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER);
}

static void dispatches_by_arguments_and_device(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    args.type = SAMPLE_BLEND_TYPE_F16;
    args.width = 128;
    args.rows = 1u << 20;
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    expect_loaded("blend_f16_f32_128_noclamp_wide");
    assert_int_equal(seen.grid[0], 400); /* 4 thread blocks per multiprocessor */
    assert_int_equal(seen.shared_bytes, 65536);
    assert_int_equal(fake.attribute_value, 131072); /* the opt-in limit of shared memory */

    args.rows = 1023;
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    expect_loaded("blend_f16_f32_128_noclamp_narrow");

    open_on(75); /* wide variants need sm_80 */
    args.rows = 1u << 20;
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    expect_loaded("blend_f16_f32_128_noclamp_narrow");
    assert_status(sample_blend_f16_f32_128_noclamp_wide(&loader, NULL, &args), KILN_ERROR_NO_IMAGE);
}

/* The call's shared memory counts, not the variant's maximum. */
static void dispatches_by_room(void **state)
{
    (void)state;
    const struct {
        int max_shared_bytes;
        uint64_t stride;
        unsigned shared_bytes; /* 512 for the narrow variant, 16 * stride for the wide one */
    } rows[] = {{232448, 4096, 65536},  {232448, 8192, 131072}, {131072, 8192, 131072}, {131056, 8192, 512},
                {131056, 8176, 130816}, {101376, 6336, 101376}, {101376, 6352, 512},    {65536, 4096, 65536}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_on_with(86, rows[i].max_shared_bytes);
        sample_blend_args args = blend_args();
        args.type = SAMPLE_BLEND_TYPE_F16;
        args.width = 128;
        args.rows = 1024;
        args.stride = rows[i].stride;
        assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
        assert_int_equal(seen.shared_bytes, rows[i].shared_bytes);
    }
    open_on_with(86, 101376);
    assert_int_equal(kiln_usable(&loader, &sample_blend_f16_f32_128_noclamp_wide_kernel), 1);
    sample_blend_args args = blend_args();
    args.stride = 8192;
    kiln_error error; /* the variant's own function says what is missing */
    assert_status(sample_blend_f16_f32_128_noclamp_wide(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT);
    kiln_last_error(&loader, &error);
    assert_int_equal(error.needed, 131072);
    assert_int_equal(error.present, 101376);
}

/* ---- picking without launching ------------------------------------------------------------------------------------- */

/* The picked kernel is the launched kernel. Picking does not call the driver. */
static void expect_picked(const sample_blend_args *args, const kiln_kernel *wanted)
{
    const kiln_kernel *kernel = NULL;
    const int calls = fake.calls, launched = launches;
    assert_status(sample_blend_pick(&loader, args, &kernel), KILN_OK);
    assert_ptr_equal(kernel, wanted);
    assert_int_equal(fake.calls, calls);
    assert_int_equal(launches, launched);
    assert_status(sample_blend(&loader, NULL, args), KILN_OK);
    assert_int_equal(launches, launched + 1);
    expect_loaded(wanted->entry);
}

static void tells_which_kernel_it_would_launch(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    expect_picked(&args, &sample_blend_f32_f32_64_noclamp_narrow_kernel);
    args.type = SAMPLE_BLEND_TYPE_F16;
    args.width = 128;
    expect_picked(&args, &sample_blend_f16_f32_128_noclamp_narrow_kernel);
    args.rows = 1024;
    expect_picked(&args, &sample_blend_f16_f32_128_noclamp_wide_kernel);
    open_on(75);
    expect_picked(&args, &sample_blend_f16_f32_128_noclamp_narrow_kernel);
    kiln_candidate list[2];
    size_t count = 0;
    assert_status(sample_blend_candidates(&loader, &args, list, 2, &count), KILN_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(list[i].why_not == NULL,
                         list[i].kernel == &sample_blend_f16_f32_128_noclamp_narrow_kernel);
    open_on(70); /* older than all targets: no candidate can run */
    assert_status(sample_blend_candidates(&loader, &args, list, 2, &count), KILN_OK);
    for (size_t i = 0; i < count; i++)
        assert_non_null(list[i].why_not);
    const kiln_kernel *none = &sample_axpy_kernel;
    assert_status(sample_blend_pick(&loader, &args, &none), KILN_ERROR_NO_IMAGE);
    assert_null(none);
    open_on(75);
    const sample_parts_args parts = {.n = 1};
    const kiln_kernel *kernel = &sample_parts_2_kernel; /* the kernel that a workspace would allow */
    const int calls = fake.calls;
    assert_status(sample_parts_pick(&loader, &parts, &kernel), KILN_ERROR_BAD_ARGUMENT);
    assert_null(kernel);
    assert_int_equal(fake.calls, calls);
}

static void tells_why_a_kernel_cannot_run(void **state)
{
    (void)state;
    static const struct {
        uint64_t stride;
        CUdeviceptr norm;
        const char *why_not;
    } rows[] = {{4096, 0, NULL},
                {4104, 0, "with strategy wide stride must be a multiple of 16"},
                {4096, 0x4004, "norm must be aligned to 16 bytes"},
                {8192, 0, "the device has less shared memory than this call takes"}};
    open_on_with(86, 101376);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kiln_candidate list[2];
        size_t count = 0;
        sample_blend_args args = blend_args();
        args.type = SAMPLE_BLEND_TYPE_F16;
        args.width = 128;
        args.stride = rows[i].stride;
        args.norm = rows[i].norm;
        assert_status(sample_blend_candidates(&loader, &args, list, 2, &count), KILN_OK);
        assert_int_equal(count, 2);
        assert_null(list[0].why_not);
        assert_ptr_equal(list[1].kernel, &sample_blend_f16_f32_128_noclamp_wide_kernel);
        assert_string_equal(list[1].why_not ? list[1].why_not : "", rows[i].why_not ? rows[i].why_not : "");
    }
}

/* The variant whose launch reports the error: on a device that runs neither, the one whose rules the call meets. */
static void blames_the_device_before_a_rule(void **state)
{
    (void)state;
    const kiln_kernel *const wide = &sample_blend_f16_f32_128_noclamp_wide_kernel;
    const kiln_kernel *const narrow = &sample_blend_f16_f32_128_noclamp_narrow_kernel;
    const struct {
        int sm;
        const kiln_kernel *blamed;
    } rows[] = {{70, narrow}, {75, narrow}, {90, wide}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_on(rows[i].sm);
        kiln_choice choice = {.loader = &loader, .limit = KILN_NO_LIMIT};
        kiln_take(&choice, wide, 0, "a rule", KILN_RULED_OUT);
        kiln_take(&choice, narrow, 0, rows[i].sm == 70 ? NULL : "a rule", KILN_RULED_OUT);
        assert_ptr_equal(choice.fallback, rows[i].blamed);
    }
}

static void picks_nothing_when_there_is_nothing_to_launch(void **state)
{
    (void)state;
    static const kiln_kernel *const stale = &sample_axpy_kernel;
    const kiln_kernel *kernel = stale;
    sample_blend_args args = blend_args();
    args.rows = 0;
    assert_status(sample_blend_pick(&loader, &args, &kernel), KILN_OK);
    assert_null(kernel);
    args = blend_args();
    args.stride = 12;
    kernel = stale;
    expect_failure(sample_blend_pick(&loader, &args, &kernel), KILN_ERROR_BAD_ARGUMENT, "blend",
                   "stride must be a multiple of 8");
    assert_null(kernel);
    args = blend_args();
    args.width = 32;
    kernel = stale;
    expect_failure(
        sample_blend_pick(&loader, &args, &kernel), KILN_ERROR_NO_VARIANT, "blend",
        "width differs; the bundle has type f32 f16 f64, acc f32 f64, width 64 128, clamp false true; not every combination");
    assert_null(kernel);
    expect_failure(sample_blend_pick(&loader, &args, NULL), KILN_ERROR_NULL_POINTER, "blend",
                   "kernel is null");
    assert_status(sample_blend_pick(&loader, NULL, &kernel), KILN_ERROR_NULL_POINTER);
    assert_status(sample_blend_pick(NULL, &args, &kernel), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_close(&loader), KILN_OK);
    args = blend_args();
    assert_status(sample_blend_pick(&loader, &args, &kernel), KILN_ERROR_CLOSED);
    assert_int_equal(launches, 0);
}

static void another_kernel_can_be_forced(void **state)
{
    (void)state;
    const sample_blend_args args = blend_args(); /* few rows: the narrow kernel is picked */
    const kiln_kernel *const forced = &sample_blend_f32_f32_64_noclamp_wide_kernel;
    const kiln_kernel *kernel = NULL;
    assert_status(sample_blend_pick(&loader, &args, &kernel), KILN_OK);
    assert_ptr_not_equal(kernel, forced);
    assert_status(forced->launch(&loader, NULL, &args), KILN_OK);
    expect_loaded(forced->entry);
    open_on(90);
    assert_status(sample_blend_f32_f32_64_noclamp_wide(&loader, NULL, &args), KILN_OK);
    expect_loaded(forced->entry);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

static void names_what_there_is(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    args.width = 32;
    expect_failure(
        sample_blend(&loader, NULL, &args), KILN_ERROR_NO_VARIANT, "blend",
        "width differs; the bundle has type f32 f16 f64, acc f32 f64, width 64 128, clamp false true; not every combination");
    static const struct {
        uint32_t type, acc, width, clamp;
        const char *differs;
    } nearest[] = {
        {SAMPLE_BLEND_TYPE_F16, 0, 128, 1, "clamp differs; "},
        {SAMPLE_BLEND_TYPE_F64, 0, 128, 0, "type differs; "},
        {SAMPLE_BLEND_TYPE_F64, SAMPLE_BLEND_ACC_F64, 64, 0, "clamp differs; "},
        {SAMPLE_BLEND_TYPE_F64, SAMPLE_BLEND_ACC_F64, 128, 1, "width differs; "},
        {SAMPLE_BLEND_TYPE_F16, SAMPLE_BLEND_ACC_F64, 128, 0, "acc differs; "},
        {0, 0, 96, 1, "width differs; "}, /* the first of two mistakes */
    };
    for (size_t i = 0; i < sizeof nearest / sizeof *nearest; i++) {
        kiln_error error;
        args.type = nearest[i].type;
        args.acc = nearest[i].acc;
        args.width = nearest[i].width;
        args.clamp = nearest[i].clamp;
        assert_status(sample_blend(&loader, NULL, &args), KILN_ERROR_NO_VARIANT);
        assert_status(kiln_last_error(&loader, &error), KILN_OK);
        assert_memory_equal(error.detail, nearest[i].differs, strlen(nearest[i].differs));
    }
    args = blend_args();
    args.width = 128; /* a variant's own function accepts its own selectors, and zeros */
    expect_failure(sample_blend_f32_f32_64_noclamp_narrow(&loader, NULL, &args), KILN_ERROR_NO_VARIANT,
                   "blend", "this variant has type f32, acc f32, width 64, clamp false");
    args.width = 64;
    args.clamp = 1;
    expect_failure(sample_blend_f32_f32_64_noclamp_narrow(&loader, NULL, &args), KILN_ERROR_NO_VARIANT,
                   "blend", "this variant has type f32, acc f32, width 64, clamp false");
    args.clamp = 2;
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "blend",
                   "clamp must be 0 or 1");
}

static void checks_pointers_that_only_some_variants_have(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    args.type = SAMPLE_BLEND_TYPE_F64;
    args.acc = SAMPLE_BLEND_ACC_F64;
    args.clamp = 1;
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_NULL_POINTER, "blend", "limit is null");
    args.limit = 0x3002;
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_MISALIGNED, "blend",
                   "limit must be aligned to 4 bytes");
    args.limit = 0x3000;
    args.norm = 0x4002;
    expect_failure(sample_blend(&loader, NULL, &args), KILN_ERROR_MISALIGNED, "blend",
                   "norm must be aligned to 4 bytes");
    args.norm = 0x4000;
    sizes = (const size_t[]){8, 8, 8, 8, 8, 4, 8, 0};
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    assert_int_equal(seen.words[2], 0x3000);
    assert_int_equal(seen.words[3], 0x4000);
    assert_memory_equal(&seen.words[4], &args.factor, 8);
}

/* Narrow variants need norm aligned to one element, wide ones to four. */
static void checks_alignments_that_depend_on_the_variant(void **state)
{
    (void)state;
    sample_blend_args args = blend_args();
    args.norm = 0x4002;
    expect_failure(sample_blend_f32_f32_64_noclamp_narrow(&loader, NULL, &args), KILN_ERROR_MISALIGNED,
                   "blend", "norm must be aligned to 4 bytes");
    args.norm = 0x4004;
    expect_failure(sample_blend_f32_f32_64_noclamp_wide(&loader, NULL, &args), KILN_ERROR_MISALIGNED, "blend",
                   "norm must be aligned to 16 bytes");
    assert_status(sample_blend_f32_f32_64_noclamp_narrow(&loader, NULL, &args), KILN_OK);
    args.norm = 0x4010;
    assert_status(sample_blend_f32_f32_64_noclamp_wide(&loader, NULL, &args), KILN_OK);
}

/* Every variant of this bundle has the pointer, but the rule gives the more helpful message. */
static void says_how_large_a_workspace_is_missing(void **state)
{
    (void)state;
    sample_parts_args args = {.n = 1000};
    expect_failure(sample_parts(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, "parts",
                   "workspace_size must be at least ceil_div(n, 16) * 16 * split_k, with split_k=2");
    args.workspace_size = 2016;
    expect_failure(sample_parts(&loader, NULL, &args), KILN_ERROR_NULL_POINTER, "parts", "workspace is null");
    args.workspace = 0x1000;
    args.tile_counters = 0x2000;
    assert_status(sample_parts(&loader, NULL, &args), KILN_OK);
}

/* Works without pointers, and refuses what the rules of all variants refuse. */
static void tells_how_large_a_workspace_is(void **state)
{
    (void)state;
    sample_parts_args args = {.n = 1000};
    uint64_t bytes = 1, counters = 1;
    assert_status(sample_parts_workspace(&loader, &args, &bytes, &counters), KILN_OK);
    assert_int_equal(bytes, 4 * 2016);
    assert_int_equal(counters, 4 * 504);
    assert_status(sample_parts_workspace_max(&loader, &args, &bytes, &counters), KILN_OK);
    assert_int_equal(bytes, 4 * 2016);
    assert_int_equal(counters, 4 * 504);
    assert_int_equal(launches, 0);
    open_on(70); /* older than all targets: the launch's error */
    assert_status(sample_parts_workspace(&loader, &args, &bytes, &counters), KILN_ERROR_NO_IMAGE);
    open_on(75);
    expect_failure(sample_parts_workspace(&loader, &args, NULL, &counters), KILN_ERROR_NULL_POINTER, "parts",
                   "workspace_bytes or counter_bytes is null");
    assert_status(sample_parts_workspace(&loader, &args, &bytes, NULL), KILN_ERROR_NULL_POINTER);
    assert_status(sample_parts_workspace(&loader, NULL, &bytes, &counters), KILN_ERROR_NULL_POINTER);
    assert_int_equal(bytes, 0);
    assert_status(sample_parts_workspace(NULL, &args, &bytes, &counters), KILN_ERROR_NULL_POINTER);
    assert_status(kiln_close(&loader), KILN_OK);
    assert_status(sample_parts_workspace_max(&loader, &args, &bytes, &counters), KILN_ERROR_CLOSED);
}

static void picks_the_image_for_the_device(void **state)
{
    (void)state;
    const sample_blend_args args = blend_args();
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    assert_non_null(strstr(fake.loaded_image, "for sm_90 \\ and \"newer\""));
    open_on(86);
    assert_status(sample_blend(&loader, NULL, &args), KILN_OK);
    assert_non_null(strstr(fake.loaded_image, "for all, what?\?!"));
}

/* ---- the index ----------------------------------------------------------------------------------------------------- */

static void finds_every_kernel(void **state)
{
    (void)state;
    const sample_axpy_args args = axpy_args();
    assert_int_equal(sample_bundle.kernel_count, SAMPLE_KERNELS);
    for (uint32_t i = 0; i < SAMPLE_KERNELS; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        assert_ptr_equal(kiln_find(&sample_index, kernel->key), kernel);
        assert_ptr_equal(kiln_find_name(&sample_index, kernel->id), kernel);
        for (uint32_t k = 0; k < kernel->module->image_count; k++)
            assert_status(kiln_check_image(&kernel->module->images[k]), KILN_OK);
    }
    assert_null(kiln_find_name(&sample_index, "axpy/type=f32"));
    assert_status(kiln_find_name(&sample_index, "axpy")->launch(&loader, NULL, &args), KILN_OK);
    assert_status(kiln_preload(&loader, sample_index.kernels, SAMPLE_KERNELS), KILN_OK);
    assert_int_equal(fake.loads, SAMPLE_KERNELS);
}

/* Finds "type" -> f16 -> 1, for programs without the bundle's header. */
static void tells_families_and_the_numbers_of_words(void **state)
{
    (void)state;
    const kiln_index *index = &sample_index;
    const kiln_index_family *blend = kiln_find_family(index, "blend");
    uint32_t kernels = 0;
    assert_null(kiln_find_family(index, "blen"));
    assert_null(kiln_find_family(index, NULL));
    assert_null(kiln_find_family(NULL, "blend"));
    assert_null(kiln_find_family(index, "axpy")->pick); /* a family with one kernel has none */
    for (uint32_t i = 0; i < index->family_count; i++) {
        const kiln_index_family *f = &index->families[i];
        const char *name = index->texts + f->text;
        assert_ptr_equal(kiln_find_family(index, name), f);
        assert_int_equal(f->first_kernel, kernels);
        for (uint32_t k = 0; k < f->kernel_count; k++) {
            const kiln_kernel *kernel = index->kernels[index->family_kernels[kernels++]];
            assert_memory_equal(kernel->id, name, strlen(name));
        }
    }
    assert_int_equal(kernels, SAMPLE_KERNELS);
    assert_string_equal(index->texts + blend->text, "blend");
    assert_int_equal(blend->args_bytes, sizeof(sample_blend_args));
    assert_int_equal(blend->selector_count, 4);
    const kiln_selector *type = &index->selectors[blend->first_selector];
    assert_string_equal(index->texts + type->text, "type");
    assert_int_equal(type->offset, offsetof(sample_blend_args, type));
    static const struct {
        const char *word;
        uint32_t number;
    } words[] = {
        {"f32", SAMPLE_BLEND_TYPE_F32}, {"f16", SAMPLE_BLEND_TYPE_F16}, {"f64", SAMPLE_BLEND_TYPE_F64}};
    assert_int_equal(type->word_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const kiln_word *word = &index->words[type->first_word + i];
        assert_string_equal(index->texts + word->text, words[i].word);
        assert_int_equal(word->number, words[i].number);
    }
    const kiln_selector *width = &index->selectors[blend->first_selector + 2];
    assert_string_equal(index->texts + width->text, "width");
    assert_int_equal(width->word_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(launches_with_its_arguments, set_up),
        cmocka_unit_test_setup(overlaps_launches_where_asked, set_up),
        cmocka_unit_test(overlapping_launches_are_in_order),
        cmocka_unit_test_setup(does_nothing_when_empty, set_up),
        cmocka_unit_test_setup(refuses_null, set_up),
        cmocka_unit_test_setup(refuses_misaligned_pointers, set_up),
        cmocka_unit_test_setup(refuses_arrays_that_are_too_large, set_up),
        cmocka_unit_test_setup(checks_rules_before_pointers, set_up),
        cmocka_unit_test_setup(checks_rules_of_the_variant, set_up),
        cmocka_unit_test_setup(refuses_what_narrowing_makes_infinite, set_up),
        cmocka_unit_test_setup(takes_zero_for_the_default, set_up),
        cmocka_unit_test_setup(asks_for_less, set_up),
        cmocka_unit_test_setup(dispatches_by_arguments_and_device, set_up),
        cmocka_unit_test_setup(dispatches_by_room, set_up),
        cmocka_unit_test_setup(tells_which_kernel_it_would_launch, set_up),
        cmocka_unit_test_setup(tells_why_a_kernel_cannot_run, set_up),
        cmocka_unit_test_setup(blames_the_device_before_a_rule, set_up),
        cmocka_unit_test_setup(picks_nothing_when_there_is_nothing_to_launch, set_up),
        cmocka_unit_test_setup(another_kernel_can_be_forced, set_up),
        cmocka_unit_test_setup(names_what_there_is, set_up),
        cmocka_unit_test_setup(checks_pointers_that_only_some_variants_have, set_up),
        cmocka_unit_test_setup(checks_alignments_that_depend_on_the_variant, set_up),
        cmocka_unit_test_setup(says_how_large_a_workspace_is_missing, set_up),
        cmocka_unit_test_setup(tells_how_large_a_workspace_is, set_up),
        cmocka_unit_test_setup(picks_the_image_for_the_device, set_up),
        cmocka_unit_test_setup(finds_every_kernel, set_up),
        cmocka_unit_test_setup(tells_families_and_the_numbers_of_words, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
