/* Shared by the tests of the counters: kernels with one report each, and expectations as text, such as
   "classes.half.thread=64 p1.read.sectors=4". tools/emulator/count/count.h defines the counters. */
#ifndef COUNT_TEST_H
#define COUNT_TEST_H

#include "emu_test.h"

/* The beginning of every body: per thread, 2 instructions of the class param, a move and an integer instruction. */
#define HEAD                                                                                                 \
    ".reg .u64 %p<8>; .reg .u32 %r<16>; .reg .f32 %f<16>; .reg .f64 %d<8>; .reg .b16 %h<4>; .reg .b32 "      \
    "%x<4>; .reg .pred "                                                                                     \
    "%q<4>;\n"                                                                                               \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x; mad.wide.u32 %p2, %r0, 4, %p0;\n"

typedef struct count_case {
    const char *body; /* the code between HEAD and a ret */
    unsigned grid, threads;
    const char *expected;
} count_case;

static char count_path[] = "/tmp/kiln_count_XXXXXX";
static char report[1 << 18];

/* Runs the body on two zeroed buffers of 8192 bytes; `report` has the launch's report. Without a header: for sm_90. */
static inline void count_for(const char *header, const char *body, unsigned grid, unsigned threads)
{
    static char text[16384], zeros[8192];
    snprintf(text, sizeof text, "%s%s\nret;", HEAD, body);
    CUfunction f = kernel_of(header, text);
    CUdeviceptr p0 = device_bytes(sizeof zeros, zeros), p1 = device_bytes(sizeof zeros, zeros);
    setenv("KILN_EMU_REPORT", count_path, 1);
    assert_int_equal(launch(f, grid, threads, p0, p1, threads), CUDA_SUCCESS);
    unsetenv("KILN_EMU_REPORT");
    FILE *file = fopen(count_path, "r");
    assert_non_null(file);
    while (fgets(report, sizeof report, file)) /* keeps the last line */
        ;
    fclose(file);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
}

static inline void count(const char *body, unsigned grid, unsigned threads)
{
    count_for(NULL, body, grid, threads);
}

/* Returns the number after these names, each of which is searched after the preceding one. p0 and p1: the allocations that
   the parameters point to. */
static inline long long number_from(const char *at, const char *path, size_t length)
{
    const char *end = path + length;
    while (path < end) {
        char quoted[64];
        size_t n = strcspn(path, ".=");
        if (n == 2 && path[0] == 'p' && (path[1] == '0' || path[1] == '1'))
            snprintf(quoted, sizeof quoted, "\"parameters\":[%c]", path[1]);
        else
            snprintf(quoted, sizeof quoted, "\"%.*s\":%s", (int)n, path, path + n < end ? "{" : "");
        const char *found = strstr(at, quoted);
        if (!found)
            fail_msg("no %s of %.*s in %s", quoted, (int)length, end - length, at);
        at = found + strlen(quoted);
        path += n + 1;
    }
    return strtoll(at, NULL, 10);
}

static inline long long number(const char *path)
{
    return number_from(report, path, strlen(path));
}

static inline void expect_from(const char *at, const char *expected, const char *what)
{
    for (const char *e = expected; *e; e += *e == ' ') {
        size_t n = strcspn(e, "=");
        char *end;
        long long want = strtoll(e + n + 1, &end, 10), got = number_from(at, e, n);
        if (want != got)
            fail_msg("%.*s is %lld, not %lld, in\n%s\n%s", (int)n, e, got, want, what, at);
        e = end;
    }
}

static inline void run_cases(const count_case *cases, size_t case_count)
{
    for (size_t i = 0; i < case_count; i++) {
        count(cases[i].body, cases[i].grid, cases[i].threads);
        expect_from(report, cases[i].expected, cases[i].body);
    }
}

#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof *(cases))

static inline int run_count_tests(const struct CMUnitTest *tests, size_t test_count)
{
    int file = mkstemp(count_path);
    if (file < 0)
        return 1;
    close(file);
    int failed = _cmocka_run_group_tests("count", tests, test_count, begin_context, end_context);
    unlink(count_path);
    return failed;
}

#endif
