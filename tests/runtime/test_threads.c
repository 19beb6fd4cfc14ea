/* Threads that race for one loader. Also built with the thread sanitizer. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "fake_driver.h"
#include "mini.h"

enum { THREADS = 16, ROUNDS = 20 };

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];
static pthread_barrier_t start;
static int waits;

static void count_wait(void *context)
{
    assert_ptr_equal(context, &waits);
    __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
    sched_yield();
}

static void *launch_both(void *result)
{
    mini_axpy_args args = {.x = 256, .y = 512, .a = 2, .n = 1000};
    kiln_status status = KILN_OK;
    pthread_barrier_wait(&start);
    for (int i = 0; i < 8 && status == KILN_OK; i++) {
        args.type = i % 2 ? MINI_AXPY_TYPE_F32 : MINI_AXPY_TYPE_F64;
        status = mini_axpy(&loader, NULL, &args);
    }
    *(kiln_status *)result = status;
    return NULL;
}

/* Every launch of these threads fails; errors are written and read at once. */
static void *fail_and_ask(void *result)
{
    const mini_axpy_args args = {.type = MINI_AXPY_TYPE_F32, .x = 1, .y = 512, .n = 1000};
    kiln_status status = KILN_OK;
    pthread_barrier_wait(&start);
    for (int i = 0; i < 200 && status == KILN_OK; i++) {
        kiln_error error;
        if (mini_axpy(&loader, NULL, &args) != KILN_ERROR_MISALIGNED)
            status = KILN_ERROR_LAUNCH;
        kiln_last_error(&loader, &error);
        if (error.status != KILN_ERROR_MISALIGNED ||
            strcmp(error.detail, "x must be aligned to 4 bytes") != 0)
            status = KILN_ERROR_BAD_ARGUMENT;
    }
    *(kiln_status *)result = status;
    return NULL;
}

static void race(void *(*run)(void *))
{
    pthread_t threads[THREADS];
    kiln_status results[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, &results[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_status(results[i], KILN_OK);
    }
}

static void racing_threads_load_a_kernel_once(void **state)
{
    (void)state;
    waits = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fake_reset();
        fake.load_yields = 50;
        const kiln_options options = {.wait = round % 2 ? count_wait : NULL, .wait_context = &waits};
        assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, &options), KILN_OK);
        race(launch_both);
        assert_int_equal(fake.loads, 2);
        assert_int_equal(fake.counts[FAKE_module_get_function], 2);
        assert_int_equal(fake.counts[FAKE_launch_kernel], 8 * THREADS);
        assert_status(kiln_close(&loader), KILN_OK);
        assert_int_equal(fake.unloads, 2);
    }
    assert_int_not_equal(waits, 0);
}

static void a_failed_load_does_not_stop_the_other_threads(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        fake_reset();
        assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_OK);
        fake.fail_at = fake.calls + 2; /* the first load: whichever thread makes it fails */
        pthread_t threads[THREADS];
        kiln_status results[THREADS];
        int failed = 0;
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, launch_both, &results[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            failed += results[i] == KILN_ERROR_LOAD;
        }
        assert_int_equal(failed, 1);
        assert_int_equal(fake.loads, 2);
        assert_status(kiln_close(&loader), KILN_OK);
        assert_int_equal(fake.unloads, 2);
    }
}

static void errors_are_never_torn(void **state)
{
    (void)state;
    fake_reset();
    assert_status(kiln_open(&loader, &fake_table, &mini_bundle, slots, MINI_SLOTS, NULL), KILN_OK);
    race(fail_and_ask);
    assert_status(kiln_close(&loader), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racing_threads_load_a_kernel_once),
        cmocka_unit_test(a_failed_load_does_not_stop_the_other_threads),
        cmocka_unit_test(errors_are_never_torn),
    };
    pthread_barrier_init(&start, NULL, THREADS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    pthread_barrier_destroy(&start);
    return failures;
}
