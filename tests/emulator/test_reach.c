/* KILN_EMU_UNREACHED: the instructions that no launch reached, for launches of two kernels from several modules. A child
   process launches, because the file is written at exit. */
#include "emu_test.h"

#include <sys/wait.h>

static const char *const body = ".reg .u64 %p<2>; .reg .u32 %r<4>; .reg .pred %q<4>;\n"
                                "ld.param.u32 %r0, [n];\n"
                                "setp.eq.u32 %q0, %r0, 1;\n"
                                "setp.eq.u32 %q1, %r0, %r0;\n"
                                "@%q0 bra ONE;\n"
                                "@!%q1 mov.u32 %r1, 1;\n"
                                "@%q1 mov.u32 %r1, 2;\n"
                                "bra END;\n"
                                "ONE: mov.u32 %r1, 3;\n"
                                "END: ret;\n";
static const char *const other = "mov.u32 %r0, %tid.x;\nbra END;\nEND: ret;\n";

static char path[] = "/tmp/kiln_reach_XXXXXX";

/* Returns the report of a process that launches the body once for each value of n. */
static const char *reached(const char *values)
{
    static char text[8192];
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *state = NULL;
        char all[2048];
        setenv("KILN_EMU_UNREACHED", path, 1);
        begin_context(&state);
        for (const char *n = values; *n; n++)
            launch(kernel_of(NULL, body), 2, 40, 0, 0, (unsigned)(*n - '0'));
        snprintf(all, sizeof all, ".reg .u32 %%r<1>;\n%s", other);
        launch(kernel_of(NULL, all), 1, 1, 0, 0, 0);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Each expected line is what never happened, and the instruction. */
static void expect(const char *values, const char *expected)
{
    char found[1024] = "";
    const char *report = reached(values), *second = strchr(report, '\n');
    assert_non_null(second);
    assert_contains(report, "{\"unreached\":\"k\",\"device\":\"sm_90\",\"launches\":");
    for (const char *at = report; (at = strstr(at, "\"never\":\"")) && at < second; at++) {
        const char *words = strstr(at, "\"text\":\"");
        snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s %.*s\n",
                 (int)strcspn(at + 9, "\""), at + 9, (int)strcspn(words + 8, "\""), words + 8);
    }
    assert_string_equal(found, expected);
    assert_contains(second, "\"launches\":1,\"instructions\":3,\"lines\":[]}\n");
}

static void test_one_way(void **state)
{
    (void)state;
    expect("0", "true @%q0 bra ONE;\ntrue @!%q1 mov.u32 %r1, 1;\nfalse @%q1 mov.u32 %r1, 2;\n"
                "reached ONE: mov.u32 %r1, 3;\n");
    assert_contains(reached("0"), "\"launches\":1,\"instructions\":9,");
}

static void test_other_way(void **state)
{
    (void)state;
    expect("1", "false @%q0 bra ONE;\nreached @!%q1 mov.u32 %r1, 1;\nreached @%q1 mov.u32 %r1, 2;\n"
                "reached bra END;\n");
}

/* Modules with the same text share one count. */
static void test_both_ways(void **state)
{
    (void)state;
    expect("101", "true @!%q1 mov.u32 %r1, 1;\nfalse @%q1 mov.u32 %r1, 2;\n");
    assert_contains(reached("101"), "\"launches\":3,");
}

static void test_kept(void **state)
{
    (void)state;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("mine\n", file);
    fclose(file);
    assert_string_equal(reached("0"), "mine\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_other_way),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_kept),
    };
    setenv("KILN_EMU_DEVICE", "sm_90", 1);
    const int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
