/* KILN_EMU_JUMPS: how many backward jumps a block may make before it is reported as endless. KILN_EMU_ORDER: the order in
   which blocks begin. */
#include "emu_test.h"

#define COUNT_TO_P1                                                                                          \
    ".reg .u64 %p<2>; .reg .u32 %r<3>; .reg .pred %q; ld.param.u64 %p0, [p0]; ld.param.u32 %r0, [n];\n"      \
    "mov.u32 %r1, 0; mov.u32 %r2, %tid.x;\n"                                                                 \
    "W: add.u32 %r1, %r1, 1;\n"                                                                              \
    "setp.lt.u32 %q, %r1, %r0;\n"                                                                            \
    "@%q bra W;\n"                                                                                           \
    "st.global.u32 [%p0], %r1; ret;"

/* Counts to n, with n - 1 backward jumps, in one warp of each block. */
static CUresult count_to(const char *limit, unsigned n, unsigned blocks)
{
    CUcontext context;
    if (limit)
        setenv("KILN_EMU_JUMPS", limit, 1);
    else
        unsetenv("KILN_EMU_JUMPS");
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    CUfunction f = kernel_of(NULL, COUNT_TO_P1);
    CUdeviceptr p = device_bytes(4, NULL);
    capture_stderr();
    CUresult r = launch(f, blocks, 32, p, p, n);
    captured_stderr();
    uint32_t value = 0;
    if (r == CUDA_SUCCESS) {
        assert_int_equal(cuMemcpyDtoH_v2(&value, p, sizeof value), CUDA_SUCCESS);
        assert_int_equal(value, n);
    }
    unsetenv("KILN_EMU_JUMPS");
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    return r;
}

static void test_within(void **state)
{
    (void)state;
    assert_int_equal(count_to("1000", 1001, 1), CUDA_SUCCESS);
    assert_string_equal(printed, "");
    assert_int_equal(count_to("1000", 1001, 5), CUDA_SUCCESS); /* the limit is per block */
    assert_int_equal(count_to(NULL, 300000, 1), CUDA_SUCCESS);
    assert_int_equal(count_to("18446744073709551615", 1001, 1), CUDA_SUCCESS);
}

static void test_beyond(void **state)
{
    (void)state;
    assert_int_equal(count_to("1000", 1002, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(printed,
                    "CUDA_ERROR_LAUNCH_TIMEOUT in kernel k: a block jumped back more than 1000 times, "
                    "which is the limit of KILN_EMU_JUMPS\n");
    assert_contains(printed, "thread (0,0,0) of block (0,0,0) (lanes 0xffffffff of warp 0) still runs\n");
    assert_contains(printed, "in k, line 8: W: add.u32 %r1, %r1, 1;");
    assert_int_equal(count_to("1", 3, 2), CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(printed, "more than 1 times");
}

/* 2^26 backward jumps without a store count as an endless wait, unless a limit is set or lifted. */
static void test_idle(void **state)
{
    (void)state;
    enum { JUMPS = 1 << 26 };
    assert_int_equal(count_to(NULL, JUMPS + (1 << 20), 1), CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(
        printed,
        "the launch makes no progress: its warps only jump back (KILN_EMU_JUMPS=0 lifts this limit)\n");
    assert_int_equal(count_to("0", JUMPS + (1 << 20), 1), CUDA_SUCCESS);
    assert_int_equal(count_to("100000000", JUMPS + (1 << 20), 1), CUDA_SUCCESS);
}

/* A value that is not a number is reported, and nothing runs. */
static void test_not_a_number(void **state)
{
    (void)state;
    static const char *const wrong[] = {"-1", "abc", "10x", " 10", "1e6", "0x10", "18446744073709551616"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char words[128];
        snprintf(words, sizeof words, "KILN_EMU_JUMPS=%s: expected a number from 0 to ", wrong[i]);
        assert_int_equal(count_to(wrong[i], 3, 1), CUDA_ERROR_INVALID_VALUE);
        assert_contains(printed, words);
    }
    assert_int_equal(count_to("", 3, 1), CUDA_SUCCESS); /* an empty value counts as not set */
}

/* The error belongs to the context; a new context works. */
static void test_afterwards(void **state)
{
    (void)state;
    CUcontext context;
    assert_int_equal(count_to("1000", 100000, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    assert_ptr_equal(context, test_context);
    assert_int_equal(count_to("1000", 7, 1), CUDA_SUCCESS);
}

/* ---- the order of blocks ---------------------------------------------------------------------------------------- */

#define STORE_TURN                                                                                           \
    ".reg .u64 %p<3>; .reg .u32 %r<3>; ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1];\n"                    \
    "mov.u32 %r0, %ctaid.x; atom.global.add.u32 %r1, [%p1], 1;\n"                                            \
    "mul.wide.u32 %p2, %r1, 4; add.u64 %p0, %p0, %p2; st.global.u32 [%p0], %r0; ret;"

/* Runs on one host thread. Element i of `taken` is the block that took number i. */
static void find_order(const char *order, const char *blocks, unsigned count, unsigned taken[])
{
    unsigned zero = 0;
    CUfunction f = kernel_of(NULL, STORE_TURN);
    CUdeviceptr turns = device_bytes(count * sizeof *taken, NULL), next = device_bytes(4, &zero);
    setenv("KILN_EMU_THREADS", "1", 1);
    setenv("KILN_EMU_ORDER", order, 1);
    setenv("KILN_EMU_BLOCKS", blocks, 1);
    assert_int_equal(launch(f, count, 1, turns, next, 0), CUDA_SUCCESS);
    unsetenv("KILN_EMU_BLOCKS");
    unsetenv("KILN_EMU_ORDER");
    unsetenv("KILN_EMU_THREADS");
    assert_int_equal(cuMemcpyDtoH_v2(&taken[count], next, 4), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(taken, turns, taken[count] * sizeof *taken), CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(turns), CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(next), CUDA_SUCCESS);
}

static void test_orders(void **state)
{
    (void)state;
    enum { MOST = 40 };
    unsigned taken[MOST + 1];
    for (unsigned count = 1; count <= MOST; count++) {
        bool seen[MOST] = {false};
        find_order("", "", count, taken);
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(taken[i], i);
        find_order("reverse", "", count, taken);
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(taken[i], count - 1 - i);
        find_order("shuffle", "", count, taken);
        for (unsigned i = 0; i < count; i++) {
            assert_true(taken[i] < count && !seen[taken[i]]);
            seen[taken[i]] = true;
        }
    }
    find_order("shuffle", "", 32, taken); /* neighbours are far apart */
    for (unsigned i = 1; i < 32; i++)
        assert_true(taken[i] > taken[i - 1] + 8 || taken[i] + 8 < taken[i - 1]);
}

static void test_order_of_some(void **state)
{
    (void)state;
    unsigned taken[11];
    static const char *const orders[] = {"forward", "reverse", "shuffle"};
    static const unsigned wanted[][3] = {{4, 5, 6}, {6, 5, 4}, {5, 6, 4}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        find_order(orders[i], "4-6", 10, taken);
        assert_int_equal(taken[10], 3);
        assert_memory_equal(taken, wanted[i], sizeof wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within),        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_idle),          cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_afterwards),    cmocka_unit_test(test_orders),
        cmocka_unit_test(test_order_of_some),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
