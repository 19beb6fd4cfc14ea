/* Fault injection: each driver call of a run fails in turn. Status and subject are right each time, nothing leaks, and the
 * same storage works again. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>

#include "fake_driver.h"
#include "mini.h"

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];
static char jit_log[64];

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static const mini_axpy_args axpy = {.type = MINI_AXPY_TYPE_F32, .x = 256, .y = 512, .a = 2, .n = 1000};

/* Needs over 48 KB of dynamic shared memory, so loading opts in. */
static const kiln_kernel *big_kernel(void)
{
    static kiln_kernel big;
    big = mini_axpy_f64_kernel;
    big.max_shared_bytes = 64 * 1024;
    return &big;
}

static kiln_status open_loader(void)
{
    const kiln_options options = {
        .check_image = kiln_check_image, .log = jit_log, .log_bytes = sizeof jit_log};
    return kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, &options);
}

static kiln_status preload_first(void)
{
    const kiln_kernel *const first = &mini_axpy_f32_kernel;
    return kiln_preload(&loader, &first, 1);
}

static kiln_status launch_first(void)
{
    return mini_axpy(&loader, NULL, &axpy);
}

static kiln_status load_and_launch_second(void)
{
    static const uint64_t grid[3] = {1, 1, 1};
    return kiln_launch(&loader, big_kernel(), NULL, grid, 60000, NULL);
}

/* A caller's error in between is reported, and does not hide later errors. */
static kiln_status refuse_a_launch(void)
{
    mini_axpy_args odd = axpy;
    odd.x++;
    return mini_axpy(&loader, NULL, &odd) == KILN_ERROR_MISALIGNED ? KILN_OK : KILN_ERROR_BAD_ARGUMENT;
}

static kiln_status close_loader(void)
{
    return kiln_close(&loader);
}

static kiln_status (*const steps[])(void) = {open_loader,     preload_first,          launch_first,
                                             refuse_a_launch, load_and_launch_second, close_loader};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* Runs from a step on, and stops at the first failure, as a program would. */
static kiln_status run_from(int first, int *stopped_at)
{
    kiln_status status = KILN_OK;
    for (int i = first; i < STEPS && status == KILN_OK; i++) {
        *stopped_at = i;
        status = steps[i]();
    }
    return status;
}

/* ---- expected results --------------------------------------------------------------------------------------------- */

#define FIRST  "axpy/type=f32"
#define SECOND "axpy/type=f64"

/* The calls of the run in order. Subject and detail: one of them names the call. */
static const struct {
    int step, calls;
    const char *symbol;
    kiln_status status;
    const char *subject, *detail;
} outcomes[] = {
    /* clang-format off */
    {0, 1, "cuCtxGetCurrent",      KILN_ERROR_DRIVER, "cuCtxGetCurrent",      ""},
    {0, 1, "cuDriverGetVersion",   KILN_ERROR_DRIVER, "cuDriverGetVersion",   ""},
    {0, 1, "cuCtxGetDevice",       KILN_ERROR_DRIVER, "cuCtxGetDevice",       ""},
    {0, 4, "cuDeviceGetAttribute", KILN_ERROR_DRIVER, "cuDeviceGetAttribute", ""},
    {0, 5, "cuDeviceGetAttribute", KILN_OK,           "",                     ""}, /* read only by estimates */
    {1, 1, "cuCtxGetCurrent",      KILN_ERROR_DRIVER, "cuCtxGetCurrent",      ""},
    {1, 1, "cuModuleLoadDataEx",   KILN_ERROR_LOAD,   FIRST,                  "cuModuleLoadDataEx"},
    {1, 1, "cuModuleGetFunction",  KILN_ERROR_LOAD,   FIRST,                  "cuModuleGetFunction"},
    {2, 1, "cuLaunchKernel",       KILN_ERROR_LAUNCH, FIRST,                  "cuLaunchKernel"},
    {4, 1, "cuCtxGetCurrent",      KILN_ERROR_DRIVER, "cuCtxGetCurrent",      ""},
    {4, 1, "cuModuleLoadDataEx",   KILN_ERROR_LOAD,   SECOND,                 "cuModuleLoadDataEx"},
    {4, 1, "cuModuleGetFunction",  KILN_ERROR_LOAD,   SECOND,                 "cuModuleGetFunction"},
    {4, 1, "cuFuncSetAttribute",   KILN_ERROR_LOAD,   SECOND,                 "cuFuncSetAttribute"},
    {4, 1, "cuLaunchKernel",       KILN_ERROR_LAUNCH, SECOND,                 "cuLaunchKernel"},
    {5, 1, "cuCtxGetCurrent",      KILN_ERROR_DRIVER, "cuCtxGetCurrent",      ""},
    {5, 2, "cuModuleUnload",       KILN_ERROR_DRIVER, "cuModuleUnload",       ""},
    /* clang-format on */
};
enum { OUTCOMES = sizeof outcomes / sizeof outcomes[0] };

static const char *const step_names[STEPS] = {
    "open", "preload the first", "launch it", "a refused launch", "load and launch the second", "close"};

static void start_over(void)
{
    fake_reset();
    fake.log = "ptxas: no";
    memset(&loader, 0, sizeof loader);
    memset(slots, 0xff, sizeof slots);
    strcpy(jit_log, "old");
}

/* The failing call is number `position` of the run. */
static void assert_outcome(size_t row, int position, int result)
{
    int stopped_at = -1;
    start_over();
    fake.fail_at = position;
    fake.fail_result = result;
    assert_status(run_from(0, &stopped_at), outcomes[row].status);
    if (outcomes[row].status == KILN_OK)
        return;
    assert_int_equal(stopped_at, outcomes[row].step);
    assert_string_equal(fake_call_symbol(fake.failed), outcomes[row].symbol);

    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_status(error.status, outcomes[row].status);
    assert_int_equal(error.driver_result, result);
    assert_string_equal(error.subject, outcomes[row].subject);
    assert_string_equal(error.detail, outcomes[row].detail);
    const bool logs = fake.failed == FAKE_module_load_data_ex;
    assert_int_equal(error.log_bytes, logs ? strlen(fake.log) : 0);
    if (logs)
        assert_string_equal(jit_log, fake.log);

    /* The rest of the run, from where it stopped; a closed loader starts over. Nothing is loaded twice. If the driver
     * refuses to unload a module, the module stays and is never unloaded again. */
    const int refused = fake.failed == FAKE_module_unload;
    assert_status(run_from(loader.state == 0 ? 0 : stopped_at, &stopped_at), KILN_OK);
    assert_int_equal(fake.loads, refused ? 4 : 2);
    assert_int_equal(fake.loads - fake.unloads, refused);
    /* The next run succeeds, too. */
    assert_status(run_from(0, &stopped_at), KILN_OK);
    assert_int_equal(fake.loads - fake.unloads, refused);
}

static void a_failure_at_every_call_is_reported_and_survived(void **state)
{
    (void)state;
    static const int results[] = {1, 2, 218, 700, 999, -1};
    int position = 0, stopped_at;
    int seen[FAKE_CALLS] = {0};
    printf("%-27s %-21s %-9s outcome, then the rest of the run, then another\n", "step", "call that fails",
           "positions");
    for (size_t row = 0; row < OUTCOMES; row++) {
        printf("%-27s %-21s %2d to %2d  %s: %s %s\n", step_names[outcomes[row].step], outcomes[row].symbol,
               position + 1, position + outcomes[row].calls, kiln_status_string(outcomes[row].status),
               outcomes[row].subject, outcomes[row].detail);
        for (int i = 0; i < outcomes[row].calls; i++) {
            position++;
            for (size_t r = 0; r < sizeof results / sizeof results[0]; r++)
                assert_outcome(row, position, results[r]);
            seen[fake.failed]++;
        }
    }
    start_over();
    assert_status(run_from(0, &stopped_at), KILN_OK);
    assert_int_equal(fake.calls, position); /* the table has every call of the run */
    for (int i = 0; i < FAKE_CALLS; i++)
        assert_int_not_equal(seen[i], 0); /* the run has every function that the runtime calls */
    printf("%d functions, %d positions, %zu results each: each time the status above, the next run works,\n"
           "and no module is left but one that the driver refused to unload\n",
           (int)FAKE_CALLS, position, sizeof results / sizeof results[0]);
}

/* Counts a module that the driver refused to unload. */
static void run_on(int *stopped_at, int *refused)
{
    (void)run_from(loader.state == 0 ? 0 : *stopped_at, stopped_at);
    if (fake.fail_at <= fake.calls)
        *refused += fake.failed == FAKE_module_unload;
}

/* A second failure hits the recovery from the first one, for every pair of calls. */
static void a_failure_while_recovering_is_survived(void **state)
{
    (void)state;
    int stopped_at;
    start_over();
    assert_status(run_from(0, &stopped_at), KILN_OK);
    const int calls = fake.calls;
    for (int first = 1; first <= calls; first++) {
        for (int second = 1; second <= calls; second++) {
            int refused = 0;
            start_over();
            fake.fail_at = first;
            run_on(&stopped_at, &refused);
            fake.fail_at = fake.calls + second;
            run_on(&stopped_at, &refused);
            fake.fail_at = 0;
            assert_status(run_from(loader.state == 0 ? 0 : stopped_at, &stopped_at), KILN_OK);
            assert_int_equal(fake.loads - fake.unloads, refused);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_at_every_call_is_reported_and_survived),
        cmocka_unit_test(a_failure_while_recovering_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
