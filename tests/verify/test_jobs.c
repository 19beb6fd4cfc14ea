/* Jobs in child processes: results come back, and a crash is distinguished from an exit. */
#include "test_verify.h"

#include <signal.h>
#include <stdlib.h>

#include "mutate/jobs.h"

enum { COUNT = 12 };

static void square(void *context, size_t i, void *result)
{
    int *number = result;
    assert_int_equal(*number, 0);
    *number = (int)(i * i) + *(int *)context;
    if (i == 3)
        raise(SIGTERM);
    if (i == 5)
        exit(3);
}

static void check_with(size_t at_once)
{
    int results[COUNT] = {0}, one = 1;
    job_end ends[COUNT];
    assert_true(jobs_run(COUNT, at_once, square, &one, results, sizeof *results, ends));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i], i * i + 1);
        assert_int_equal(ends[i].signal, i == 3 ? SIGTERM : 0);
        assert_int_equal(ends[i].status, i == 5 ? 3 : 0);
    }
}

static void test_jobs(void **state)
{
    (void)state;
    check_with(1);
    check_with(2);
    check_with(COUNT + 1);
    assert_true(jobs_run(0, 1, square, NULL, NULL, 4, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
