/* kiln.h's promise for real-time threads: after kiln_preload a call takes no lock, allocates nothing, loads nothing and
 * makes no system call, and calls the driver once per launch. Uses the sample bundle and a driver that counts calls.
 *
 * All locks are held throughout, so a call that takes a lock would never return. options.wait releases them, so that a test can
 * see the checks fail. A system call ends its process (seccomp). */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/trace.h>

#include "fake_driver.h"
#include "test.h"

#include "sample.h"

enum { THREADS = 8, ROUNDS = 1000 };

/* ---- watched resources ---------------------------------------------------------------------------------------------- */

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED 1
#endif

static _Thread_local bool is_watched;
static int allocations, waits, launches, overlapping, described;

/* A sanitizer has its own allocator and system calls, so under one only locks and driver calls are checked. */
#ifndef IS_SANITIZED
#define WATCHED(type, name, parameters, call)                                                                \
    extern type __libc_##name parameters;                                                                    \
    type name parameters                                                                                     \
    {                                                                                                        \
        if (is_watched)                                                                                      \
            __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);                                           \
        call;                                                                                                \
    }
WATCHED(void *, malloc, (size_t bytes), return __libc_malloc(bytes))
WATCHED(void *, calloc, (size_t count, size_t bytes), return __libc_calloc(count, bytes))
WATCHED(void *, realloc, (void *memory, size_t bytes), return __libc_realloc(memory, bytes))
WATCHED(void, free, (void *memory), __libc_free(memory))
#endif

static int count_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **params, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes;
    (void)stream, (void)params, (void)extra;
    __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
    return function == NULL;
}

static int count_overlapping(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                             void **extra)
{
    (void)config, (void)params, (void)extra;
    __atomic_add_fetch(&overlapping, 1, __ATOMIC_RELAXED);
    return function == NULL;
}

static void describe(void *context, const kiln_launch_event *event)
{
    char line[256];
    uint64_t size;
    (void)context;
    const int has_size = kiln_find_size(event, "rows", &size) || kiln_find_size(event, "n", &size);
    if (kiln_describe_launch(event, line, sizeof line) < sizeof line && has_size)
        __atomic_add_fetch(&described, 1, __ATOMIC_RELAXED);
}

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[SAMPLE_SLOTS];

static void hold_locks(void)
{
    __atomic_store_n(&loader.load_lock, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&loader.error_lock, 1, __ATOMIC_RELEASE);
}

static void count_wait(void *context)
{
    (void)context;
    __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&loader.load_lock, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&loader.error_lock, 0, __ATOMIC_RELEASE);
}

static void open_sample(const kiln_options *options)
{
    fake_reset();
    driver = fake_table;
    driver.launch_kernel = count_launch;
    driver.launch_kernel_ex = count_overlapping;
    allocations = waits = launches = overlapping = described = 0;
    kiln_forget(&loader);
    assert_status(kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, options), KILN_OK);
}

static void preload(void)
{
    assert_status(kiln_preload(&loader, sample_index.kernels, SAMPLE_KERNELS), KILN_OK);
    hold_locks();
}

/* ---- the calls ------------------------------------------------------------------------------------------------------ */

enum { LAUNCHES = 6, OVERLAPPING = 3 }; /* launches of call_all */

/* Calls each kind of function that kiln.h names. Returns the first failure, or KILN_OK. */
static kiln_status call_all(void)
{
    static const uint64_t grid[3] = {1, 1, 1};
    const sample_axpy_args axpy = {.n = 1000, .a = 1.5f, .x = 0x100, .y = 0x200};
    const sample_blend_args blend = {.x = 0x1000, .y = 0x2000, .factor = 0.1, .rows = 100, .stride = 4096};
    const sample_blend_one_args one = {.x = 0x1000, .y = 0x2000, .factor = 0.1, .copies = 3};
    sample_parts_args parts = {.n = 100, .workspace = 0x1000, .tile_counters = 0x2000};
    const kiln_kernel *kernel = NULL;
    kiln_candidate candidates[SAMPLE_KERNELS];
    size_t count;
    uint64_t bytes, counters;
    const void *const params[] = {&axpy.n, &axpy.a, &axpy.x, &axpy.y};
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const kiln_status status = (call);                                                                   \
        if (status != KILN_OK)                                                                               \
            return status;                                                                                   \
    } while (0)
    TRY(sample_axpy(&loader, NULL, &axpy)); /* may overlap */
    TRY(kiln_find_name(&sample_index, "axpy")->launch(&loader, NULL, &axpy));
    TRY(sample_blend(&loader, NULL, &blend));
    TRY(sample_blend_one(&loader, NULL, &one));
    TRY(sample_blend_f32_f32_64_noclamp_wide(&loader, NULL, &blend));
    TRY(sample_blend_pick(&loader, &blend, &kernel));
    TRY(sample_blend_candidates(&loader, &blend, candidates, SAMPLE_KERNELS, &count));
    TRY(kiln_launch(&loader, &sample_axpy_kernel, NULL, grid, 0, params));
    TRY(sample_blend(&loader, KILN_NO_LAUNCH, &blend));
    TRY(sample_parts_workspace(&loader, &parts, &bytes, &counters));
    parts.workspace_size = bytes / 4;
    TRY(sample_parts(&loader, NULL, &parts));
    TRY(sample_parts_workspace_max(&loader, &parts, &bytes, &counters));
    TRY(kiln_find_family(&sample_index, "blend")->call(&loader, NULL, &blend));
    TRY(kiln_find(&sample_index, sample_blend_f32_f32_64_noclamp_wide_kernel.key)
            ->run(&loader, NULL, &blend));
    TRY(kiln_preload(&loader, sample_index.kernels, SAMPLE_KERNELS));
    TRY(kiln_check_image(kiln_select(&loader.device, kernel->module)));
    return kiln_usable(&loader, kernel) ? KILN_OK : KILN_ERROR_NO_IMAGE;
}

static pthread_barrier_t start;

static void *call_often(void *result)
{
    kiln_status status = KILN_OK;
    pthread_barrier_wait(&start);
    is_watched = true;
    for (int i = 0; i < ROUNDS && status == KILN_OK; i++)
        status = call_all();
    is_watched = false;
    *(kiln_status *)result = status;
    return NULL;
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

static void preloaded_calls_only_launch(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    kiln_status results[THREADS];
    open_sample(&(kiln_options){.wait = count_wait, .overlap_launches = 1, .launch_hook = describe});
    preload();
    const fake_driver before = fake;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &results[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_status(results[i], KILN_OK);
    }
    assert_int_equal(launches, THREADS * ROUNDS * LAUNCHES);
    assert_int_equal(overlapping, THREADS * ROUNDS * OVERLAPPING);
    assert_int_equal(described, 2 * (launches + overlapping));
    assert_memory_equal(&fake, &before, sizeof fake); /* no other driver call */
    assert_int_equal(waits, 0);
    assert_int_equal(loader.load_lock, 1); /* still held */
    assert_int_equal(loader.error_lock, 1);
    assert_int_equal(allocations, 0);
}

static void without_a_preload_a_call_waits(void **state)
{
    (void)state;
    open_sample(&(kiln_options){.wait = count_wait, .overlap_launches = 1});
    hold_locks();
    assert_status(call_all(), KILN_OK);
    assert_int_equal(waits, 1); /* the wait released the lock */
    assert_true(fake.loads > 0);
}

static void a_failed_call_waits_for_the_error_lock_alone(void **state)
{
    (void)state;
    const sample_axpy_args misaligned = {.n = 1000, .x = 0x101, .y = 0x200};
    open_sample(&(kiln_options){.wait = count_wait});
    preload();
    loader.error_lock = 0;
    assert_status(sample_axpy(&loader, NULL, &misaligned), KILN_ERROR_MISALIGNED);
    assert_int_equal(waits, 0);
    loader.error_lock = 1;
    assert_status(sample_axpy(&loader, NULL, &misaligned), KILN_ERROR_MISALIGNED);
    assert_int_equal(waits, 1);
    assert_int_equal(launches, 0);
}

static void allocations_are_noticed(void **state)
{
    (void)state;
#ifdef IS_SANITIZED
    skip();
#endif
    allocations = 0;
    is_watched = true;
    void *volatile memory = malloc(1);
    free(memory);
    is_watched = false;
    assert_int_equal(allocations, 2);
}

/* Calls everything in a process that may only read, write and exit. Returns its exit status, or -1 after a signal. */
enum { CALLED = 0, FAILED = 1, NO_SECCOMP = 77, KILLED = -1 };
static int call_without_system_calls(void)
{
    const pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
            _exit(NO_SECCOMP);
        kiln_status status = KILN_OK;
        for (int i = 0; i < 3 && status == KILN_OK; i++)
            status = call_all();
        syscall(SYS_exit, status == KILN_OK ? CALLED : FAILED);
    }
    int result;
    while (waitpid(child, &result, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(result) ? WEXITSTATUS(result) : KILLED;
}

static void preloaded_calls_make_no_system_call(void **state)
{
    (void)state;
#ifdef IS_SANITIZED
    skip();
#endif
    open_sample(&(kiln_options){.launch_hook = describe});
    preload();
    const int result = call_without_system_calls();
    if (result == NO_SECCOMP)
        skip();
    assert_int_equal(result, CALLED);

    open_sample(NULL);
    hold_locks(); /* locked and nothing preloaded: calls sched_yield */
    assert_int_equal(call_without_system_calls(), KILLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preloaded_calls_only_launch),
        cmocka_unit_test(without_a_preload_a_call_waits),
        cmocka_unit_test(a_failed_call_waits_for_the_error_lock_alone),
        cmocka_unit_test(allocations_are_noticed),
        cmocka_unit_test(preloaded_calls_make_no_system_call),
    };
    pthread_barrier_init(&start, NULL, THREADS);
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    pthread_barrier_destroy(&start);
    return failures;
}
