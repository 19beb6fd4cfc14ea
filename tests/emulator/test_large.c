/* Extremely large texts: deep nesting and large arrays are refused with their place; long texts load in time. */
#include "emu_test.h"

#include <pthread.h>
#include <time.h>

static char *text;
static size_t text_bytes;

static void append(const char *piece)
{
    static size_t room;
    const size_t bytes = strlen(piece);
    if (text_bytes + bytes >= room) {
        room = 2 * (text_bytes + bytes) + 1024;
        text = realloc(text, room);
        assert_non_null(text);
    }
    memcpy(text + text_bytes, piece, bytes + 1);
    text_bytes += bytes;
}

/* %u in the piece is the number of the repetition, from 0. */
static void append_many(unsigned times, const char *piece)
{
    char numbered[256];
    for (unsigned i = 0; i < times; i++) {
        char *to = numbered;
        for (const char *from = piece; *from; from++) {
            if (from[0] == '%' && from[1] == 'u')
                to += snprintf(to, 16, "%u", i), from++;
            else
                *to++ = *from;
        }
        *to = '\0';
        append(numbered);
    }
}

static void begin(const char *items)
{
    text_bytes = 0;
    append(".version 8.8\n.target sm_90\n.address_size 64\n");
    append(items);
}

/* The next statement is in line 7. */
static void begin_kernel(void)
{
    begin(".visible .entry k()\n{\n.reg .u32 %r; .reg .b64 %d; .reg .pred %p;\n");
}

static CUresult load(void)
{
    CUmodule module;
    CUresult r = load_text(text, &module);
    if (r == CUDA_SUCCESS)
        cuModuleUnload(module);
    return r;
}

/* ---- depth ------------------------------------------------------------------------------------------------------ */

static void *load_in_thread(void *result)
{
    if (cuCtxSetCurrent(test_context) == CUDA_SUCCESS)
        *(CUresult *)result = load();
    return NULL;
}

/* Loads on a stack smaller than that of any main thread. */
static CUresult load_on_small_stack(void)
{
    CUresult r = CUDA_ERROR_UNKNOWN;
    pthread_t thread;
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
    assert_int_equal(pthread_create(&thread, &attributes, load_in_thread, &r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    return r;
}

static const struct {
    const char *before, *open, *middle, *close;
} deep[] = {
    {"mov.u32 %r, ", "(", "1", ")"},
    {"mov.u32 %r, ", "- ", "1", ""},
    {"mov.u32 %r, ", "~", "1", ""},
    {"mov.u32 %r, ", "!", "1", ""},
    {"mov.u32 %r, ", "(.u64)", "1", ""},
    {"mov.u32 %r, ", "1 ? 2 : ", "1", ""},
    {"mov.u32 %r, ", "1 ? ", "1", " : 2"},
    {"mov.u32 %r, ", "1 + 2 * (", "1", ")"},
    {"mov.b64 %d, ", "{", "%r, %r", "}"},
    {"ld.global.u32 %r, ", "[", "%d", "]"},
    {"call ", "(", "%r", ")"},
    {".global .u32 g = ", "0xff(", "1", ")"},
};

static void write_deep(size_t i, unsigned depth)
{
    begin_kernel();
    append(deep[i].before);
    append_many(depth, deep[i].open);
    append(deep[i].middle);
    append_many(depth, deep[i].close);
    append(";\n}\n");
}

static void test_depth(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        write_deep(i, 50000);
        assert_int_equal(load_on_small_stack(), CUDA_ERROR_INVALID_PTX);
        assert_contains(test_log, "line 7: error: this is nested more than 100 deep\n     7 | ");
        write_deep(i, 90); /* refused, whatever else is wrong with it */
        load_on_small_stack();
        assert_null(strstr(test_log, "nested"));
    }
    write_deep(0, 99);
    assert_int_equal(load(), CUDA_SUCCESS);
}

/* A depth error must not affect later statements. */
static void test_depth_after_error(void **state)
{
    (void)state;
    begin_kernel();
    for (int i = 0; i < 5; i++) {
        append("mov.u32 %r, ");
        append_many(60, "(");
        append(";\n");
    }
    append("}\n");
    assert_int_equal(load(), CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "line 11: error: expected a constant, found ';'");
    assert_null(strstr(test_log, "nested"));
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *declaration, *message;
    } sizes[] = {
        {".shared .b8 s[4294968320];",
         "line 7: error: the array is too large\n     7 | .shared .b8 s[4294968320];"},
        {".local .b8 s[4294968320];", "line 7: error: the array is too large"},
        {".shared .b32 s[65536][65537];", "line 7: error: the array is too large"},
        {".shared .b8 s[4294967296][4294967296];", "line 7: error: the array is too large"},
        {".shared .b8 s[18446744073709551615];", "line 7: error: the array is too large"},
        {".param .b8 s[4294968320];", "line 7: error: the array is too large"},
        {".global .v4 .b32 s[4294967296][4294967296];", "line 7: error: the array is too large"},
        {".global .b8 s[][8589934592] = {{1}, {2}, {3}};", "line 7: error: the array is too large"},
        {".shared .b8 s[50000];", "declares 50000 bytes of shared memory; the limit is 49152"},
        {".local .b8 s[524272]; .local .b8 t[1];\nld.local.u8 %r, [t];",
         "line 7: error: 's' does not fit: the .local variables take more than 524288 bytes"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin_kernel();
        append(sizes[i].declaration);
        append("\nmov.u64 %d, s;\n}\n");
        if (load() != CUDA_ERROR_INVALID_PTX)
            fail_msg("not refused: %s\n%s", sizes[i].declaration, test_log);
        assert_contains(test_log, sizes[i].message);
    }
}

/* The sum of the sizes would overflow; no single size does. */
static void test_sum_of_sizes(void **state)
{
    (void)state;
    begin_kernel();
    append_many(128, ".shared .b8 s%u[33554431]; mov.u32 %r, s%u;\n");
    append("}\n");
    assert_int_equal(load(), CUDA_ERROR_INVALID_PTX);
    assert_contains(
        test_log,
        "line 71: error: 's64' does not fit: the .shared variables take more than 2147483647 bytes");
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Limits of processor time, far above what the loads need, also under sanitizers; with quadratic time each load would
   exceed its limit. */
static void expect_fast(const char *what)
{
    enum { MOST_SECONDS = 20 };
    const clock_t start = clock();
    if (load() != CUDA_SUCCESS)
        fail_msg("%s: %s", what, test_log);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds > MOST_SECONDS)
        fail_msg("%s took %g s", what, seconds);
}

static void test_call_chain(void **state)
{
    (void)state;
    begin(".func f0(.reg .u32 a)\n{\nret;\n}\n");
    for (unsigned i = 1; i < 20000; i++) {
        char function[128];
        snprintf(function, sizeof function, ".func f%u(.reg .u32 a)\n{\ncall f%u, (a);\nret;\n}\n", i, i - 1);
        append(function);
    }
    append(".visible .entry k()\n{\n.reg .u32 %a;\nmov.u32 %a, 1;\ncall f19999, (%a);\nret;\n}\n");
    expect_fast("a chain of calls");
}

static void test_recursion(void **state)
{
    (void)state;
    begin("");
    append_many(20000, ".func f%u();\n");
    for (unsigned i = 0; i < 20000; i++) {
        char function[128];
        snprintf(function, sizeof function, ".func f%u()\n{\ncall f%u;\nret;\n}\n", i, (i + 1) % 20000);
        append(function);
    }
    append(".visible .entry k()\n{\ncall f0;\nret;\n}\n");
    expect_fast("a circle of calls");
    assert_contains(test_log, "called by itself (recursion), is not emulated");
}

static void test_many(void **state)
{
    (void)state;
    begin("");
    append_many(50000, ".visible .entry k%u()\n{\nret;\n}\n");
    expect_fast("kernels");
    begin_kernel();
    append_many(50000, "L%u: @%p bra L%u; ");
    append("\n}\n");
    expect_fast("branches in one line");
    begin_kernel();
    append_many(100000, "mov.u32 %r, %u;\n");
    append("}\n");
    expect_fast("constants");
}

/* A message about a long line shows only the part around the mistake. */
static void test_long_line(void **state)
{
    (void)state;
    begin_kernel();
    append_many(1000, "mov.u32 %r, %u; ");
    append("frob; ");
    append_many(1000, "mov.u32 %r, %u; ");
    append("\n}\n");
    assert_int_equal(load(), CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "line 7: error: 'frob' is not an instruction\n     7 | ");
    assert_contains(test_log, "mov.u32 %r, 999; frob; mov.u32 %r, 0;");
    assert_true(strlen(test_log) < 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depth),      cmocka_unit_test(test_depth_after_error),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_sum_of_sizes),
        cmocka_unit_test(test_call_chain), cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_many),       cmocka_unit_test(test_long_line),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
