/* Reports give the source line from .loc and .file, next to the line of the PTX. */
#include "emu_test.h"

#define FUNCTION_WITH_LOC                                                                                    \
    ".func f()\n"                                                                                            \
    "{\n"                                                                                                    \
    ".loc 1 70 1\n"                                                                                          \
    "ret;\n"                                                                                                 \
    "}\n"
#define STORE "st.global.u32 [%p], 7;" /* to a null pointer */
#define RACE                                                                                                 \
    ".loc 1 11 3\n"                                                                                          \
    "st.shared.u32 [s], %r;\n"                                                                               \
    ".loc 2 12 3\n"                                                                                          \
    "ld.shared.u32 %r, [s];"
#define PART                                                                                                 \
    "setp.eq.u32 %q, %r, 0;\n"                                                                               \
    "@%q bra A;\n"                                                                                           \
    ".loc 1 21 5, function_name $name, inlined_at 2 22 1\n"                                                  \
    "bar.sync 0;\n"                                                                                          \
    "bra B;\n"                                                                                               \
    "A:\n"                                                                                                   \
    ".loc 1 23 5\n"                                                                                          \
    "bar.sync 0;\n"                                                                                          \
    "B:"

static const struct {
    const char *body, *expected;
} rows[] = {
    {STORE, "  in k, line 11: " STORE "\n  thread"}, /* .loc of another function is ignored */
    {".loc 1 3 5\n" STORE, ", line 12: " STORE " (axpy.cu:3:5)\n  thread"},
    {".loc 2 3 0\n" STORE, ", line 12: " STORE " (dir/axpy.cuh:3:0)\n  thread"},
    {".loc 1 3 5 // why\n" STORE " ret;", ", line 12: " STORE " ret; (axpy.cu:3:5)\n"},
    {".loc 1 3 5\n.loc 2 9 1, function_name $name + 4, inlined_at 1 4 9\n" STORE,
     STORE " (dir/axpy.cuh:9:1, inlined at axpy.cu:4:9)\n"},
    {".loc 1 3 5\nmov.u32 %r, 1;\n.loc 1 0 0\n" STORE, ", line 14: " STORE "\n  thread"}, /* no line */
    {".loc 3 3 5\n" STORE, STORE " (?:3:5)\n"},
    {".loc 1 3 5\n{ // a scope\n" STORE "\n}", STORE " (axpy.cu:3:5)\n"},
    {RACE, ", line 14: ld.shared.u32 %r, [s]; (dir/axpy.cuh:12:3)\n"},
    {RACE, " of block (0,0,0) writes in line 12 (axpy.cu:11:3) with nothing to order the two\n"},
    {PART, ", line 14: bar.sync 0; (axpy.cu:21:5, inlined at dir/axpy.cuh:22:1)\n"},
    {PART, "wait at another one, in line 18 (axpy.cu:23:5)\n"},
};

/* Runs the body; the report is in `printed`. */
static void report(const char *files, const char *body)
{
    char text[4096];
    CUcontext context;
    CUmodule module;
    CUfunction f;
    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_90\n.address_size 64\n" FUNCTION_WITH_LOC ".visible .entry k() {\n"
             ".reg .u64 %%p; .reg .u32 %%r; .reg .pred %%q; .shared .b32 s; mov.u64 %%p, 0; mov.u32 %%r, "
             "%%tid.x;\n%s\nret;\n}\n%s",
             body, files);
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    if (load_text(text, &module) != CUDA_SUCCESS)
        fail_msg("%s\n%s", body, test_log);
    assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
    capture_stderr();
    CUresult r = cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
    r = r != CUDA_SUCCESS ? r : cuCtxSynchronize();
    captured_stderr();
    assert_int_not_equal(r, CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

static void test_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        report(".file 1 \"axpy.cu\"\n.file 2 \"dir/axpy.cuh\", 1234, 99\n", rows[i].body);
        if (!strstr(printed, rows[i].expected))
            fail_msg("row %zu: expected\n%s\nin\n%s", i, rows[i].expected, printed);
    }
}

/* Reports stay complete with names of any length. */
static void test_long_name(void **state)
{
    char file[2048];
    (void)state;
    snprintf(file, sizeof file, ".file 1 \"%01999d\"\n", 0);
    report(file, ".loc 1 3 5, function_name x, inlined_at 1 4 9\n" STORE);
    assert_contains(printed, "00000000)\n  thread (0,0,0) of block (0,0,0) writes 4 bytes at ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_long_name)};
    setenv("KILN_EMU_CHECK", "all", 1);
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
