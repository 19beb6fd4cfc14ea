/* Asynchronous copies: data arrives at the wait, not before; groups, zero fill; mbarrier phases. */
#include "emu_test.h"

#define HEAD                                                                                                 \
    ".reg .u64 %p<9>; .reg .u32 %r<19>; .reg .pred %q<5>; .reg .b64 %s<4>; .shared .align 16 .b8 s[4096];\n" \
    ".shared .b64 bar; ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x;\n"               \
    "mad.wide.u32 %p2, %r0, 16, %p0; mad.wide.u32 %p3, %r0, 16, %p1; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, "  \
    "16, %r1;\n"
#define RESULT "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2]; st.global.v4.b32 [%p2], {%r3, %r4, %r5, %r6};\n"

#define FIRST_ONLY "setp.ne.u32 %q0, %r0, 0; @%q0 ret;\n"

enum { THREADS = 64 };

static uint32_t in[THREADS][4], out[THREADS][4];

static void run(const char *body)
{
    for (uint32_t i = 0; i < THREADS * 4; i++)
        in[i / 4][i % 4] = 1000 + i;
    run_body(NULL, body, THREADS, in, sizeof in, out, sizeof out);
}

static void test_visibility(void **state)
{
    (void)state;
    run(HEAD "cp.async.cg.shared.global [%r2], [%p3], 16; cp.async.commit_group; bar.sync 0;\n" RESULT
             "ret;");
    assert_int_equal(out[5][1], 0);
    run(HEAD
        "cp.async.cg.shared.global [%r2], [%p3], 16; cp.async.commit_group; cp.async.wait_group 0;\n" RESULT
        "ret;");
    assert_memory_equal(out, in, sizeof in);
    run(HEAD "cp.async.ca.shared::cta.global.L2::128B [%r2], [%p3], 8; cp.async.ca.shared.global [%r2+8], "
             "[%p3+8], 4; cp.async.wait_all;\n" RESULT "ret;");
    assert_int_equal(out[7][2], in[7][2]);
    assert_int_equal(out[7][3], 0);
    /* waiting for groups does not wait for copies that are not committed */
    run(HEAD "cp.async.cg.shared.global [%r2], [%p3], 16; cp.async.wait_group 0;\n" RESULT "ret;");
    assert_int_equal(out[3][0], 0);
}

static void test_groups(void **state)
{
    (void)state;
    for (unsigned pending = 0; pending < 5; pending++) {
        char body[2048], wait[64];
        snprintf(wait, sizeof wait, "cp.async.wait_group %u;\n", pending);
        strcpy(body, HEAD "cp.async.ca.shared.global [%r2], [%p3], 4; cp.async.commit_group;\n"
                          "cp.async.ca.shared.global [%r2+4], [%p3+4], 4; cp.async.commit_group;\n"
                          "cp.async.ca.shared.global [%r2+8], [%p3+8], 4; cp.async.commit_group;\n"
                          "cp.async.commit_group;\n");
        strcat(body, wait);
        strcat(body, RESULT "ret;");
        run(body);
        for (unsigned group = 0; group < 4; group++) /* the last group is empty; word 4 is never copied */
            assert_int_equal(out[9][group], group + pending < 4 && group < 3 ? in[9][group] : 0);
    }
}

static void test_zero_fill(void **state)
{
    (void)state;
    run(HEAD "st.shared.v4.b32 [%r2], {7, 7, 7, 7}; rem.u32 %r7, %r0, 17;\n"
             "cp.async.cg.shared.global [%r2], [%p3], 16, %r7; cp.async.wait_all;\n" RESULT "ret;");
    for (unsigned i = 0; i < THREADS; i++)
        for (unsigned b = 0; b < 16; b++)
            assert_int_equal(((uint8_t *)out[i])[b], b < i % 17 ? ((uint8_t *)in[i])[b] : 0);
    run(HEAD "st.shared.v4.b32 [%r2], {7, 7, 7, 7}; setp.lt.u32 %q0, %r0, 9;\n"
             "cp.async.cg.shared.global [%r2], [%p3], 16, %q0; cp.async.wait_all;\n" RESULT "ret;");
    assert_int_equal(out[8][2], 0);
    assert_int_equal(out[9][2], in[9][2]);
}

/* Tests one phase by state and the next by parity; then reads the pending count. */
static void test_phases(void **state)
{
    (void)state;
    run(HEAD "setp.eq.u32 %q0, %r0, 0; @%q0 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;\n"
             "st.shared.u32 [%r2], %r0; mbarrier.arrive.shared.b64 %s0, [bar];\n"
             "W: mbarrier.test_wait.shared.b64 %q1, [bar], %s0; @!%q1 bra W;\n"
             "sub.u32 %r7, 63, %r0; mad.lo.u32 %r8, %r7, 16, %r1; ld.shared.u32 %r3, [%r8];\n"
             "mbarrier.arrive.shared.b64 _, [bar]; V: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 1; "
             "@!%q1 bra V;\n"
             "mbarrier.test_wait.parity.shared.b64 %q2, [bar], 0; selp.u32 %r4, 1, 0, %q2; bar.sync 0;\n"
             "@%q0 mbarrier.arrive.noComplete.shared.b64 %s1, [bar], 3; @%q0 "
             "mbarrier.arrive.noComplete.shared.b64 %s1, "
             "[bar], 1;\n"
             "@%q0 mbarrier.pending_count.b64 %r5, %s1; st.global.v4.b32 [%p2], {%r3, %r4, %r5, 0}; ret;");
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(out[i][0], 63 - i);
        assert_int_equal(out[i][1], 0);
        assert_int_equal(out[i][2], i ? 0 : 61);
    }
}

/* All threads' copies arrive at the mbarrier; no thread waits for groups. */
static void test_copies_arrive(void **state)
{
    (void)state;
    run(HEAD "setp.eq.u32 %q0, %r0, 0; @%q0 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;\n"
             "cp.async.cg.shared.global [%r2], [%p3], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
             "W: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra W;\n"
             "xor.b32 %r7, %r0, 63; mad.lo.u32 %r2, %r7, 16, %r1;\n" RESULT "ret;");
    for (unsigned i = 0; i < THREADS; i++)
        assert_memory_equal(out[i], in[i ^ 63], 16);
}

/* A phase does not end while transactions are pending. */
static void test_transactions(void **state)
{
    (void)state;
    run(HEAD "setp.ne.u32 %q0, %r0, 0; @%q0 ret; mbarrier.init.shared.b64 [bar], 1;\n"
             "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 96;\n"
             "mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0; selp.u32 %r3, 1, 0, %q1;\n"
             "mbarrier.complete_tx.shared.b64 [bar], 96;\n"
             "mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0; selp.u32 %r4, 1, 0, %q1;\n"
             "mbarrier.inval.shared.b64 [bar]; st.global.v4.b32 [%p2], {%r3, %r4, 5, 5}; ret;");
    assert_int_equal(out[0][0], 0);
    assert_int_equal(out[0][1], 1);
}

/* One thread, one object: how instructions change the counts (9.7.13.15). TEST stores whether the phase is complete. */
#define TEST(parity, to)                                                                                     \
    "mbarrier.test_wait.parity.shared.b64 %q1, [bar], " #parity "; selp.u32 %r" #to ", 1, 0, %q1;\n"

typedef struct script {
    const char *text;
    uint32_t want[4]; /* %r3 to %r6 */
} script;

static const script scripts[] = {
    /* arrive_drop lowers the expected count of later phases */
    {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive_drop.shared.b64 %s0, [bar];\n" TEST(
         0, 3) "mbarrier.arrive.shared.b64 _, [bar];\n" TEST(0, 4)
         TEST(1, 5) "mbarrier.arrive.shared.b64 _, [bar];\n" TEST(1, 6),
     {0, 1, 0, 1}},
    {"mbarrier.init.shared.b64 [bar], 7; mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [bar], "
     "4;\n"
     "mbarrier.arrive.shared.b64 _, [bar], 3;\n" TEST(
         0, 3) "mbarrier.arrive.shared.b64 %s0, [bar], 2;\n"
               "mbarrier.pending_count.b64 %r4, %s0; mbarrier.arrive.shared.b64 %s1, [bar]; "
               "mbarrier.pending_count.b64 %r5, %s1;\n" TEST(1, 6),
     {1, 3, 1, 1}},
    /* the state that an arrival returns belongs to the arrival's phase */
    {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %s0, [bar];\n"
     "mbarrier.test_wait.shared.b64 %q1, [bar], %s0; selp.u32 %r3, 1, 0, %q1; "
     "mbarrier.arrive.shared.b64 %s1, [bar];\n"
     "mbarrier.test_wait.acquire.cta.shared.b64 %q1, [bar], %s0; selp.u32 %r4, 1, 0, %q1;\n"
     "mbarrier.arrive.shared.b64 %s2, [bar]; mbarrier.try_wait.shared.b64 %q1, [bar], %s2; selp.u32 "
     "%r5, 1, 0, %q1;\n"
     "mbarrier.try_wait.shared.b64 %q1, [bar], %s1, 100; selp.u32 %r6, 1, 0, %q1;\n",
     {0, 1, 0, 1}},
    /* transactions keep a phase from ending, before and after its arrivals */
    {"mbarrier.init.shared.b64 [bar], 1; mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 48;\n"
     "mbarrier.arrive.shared.b64 _, [bar];\n" TEST(0, 3) "mbarrier.complete_tx.shared.b64 [bar], 16;\n" TEST(
         0, 4) "mbarrier.complete_tx.shared."
               "b64 [bar], 32;\n" TEST(0, 5) TEST(1, 6),
     {0, 0, 1, 0}},
    {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 _, [bar];\n"
     "mbarrier.arrive_drop.expect_tx.shared.b64 _, [bar], 8;\n" TEST(
         0, 3) "mbarrier.complete_tx.shared.b64 [bar], 8;\n" TEST(0, 4) "mbarrier.arrive.expect_tx.release."
                                                                        "cta.shared.b64 _, [bar], "
                                                                        "4;\n" TEST(1, 5) "mbarrier."
                                                                                          "complete_tx."
                                                                                          "shared.b64 "
                                                                                          "[bar], "
                                                                                          "4;\n" TEST(1, 6),
     {0, 1, 0, 1}},
    /* a test by parity is true for the phase before the current one */
    {"mbarrier.init.shared.b64 [bar], 1;\n" TEST(1, 3)
         TEST(0, 4) "mbarrier.arrive.shared.b64 _, [bar];\n"
                    "mbarrier.try_wait.parity.acquire.cta.shared.b64 %q1, [bar], 0, 1000000; "
                    "selp.u32 %r5, 1, 0, %q1;\n" TEST(1, 6),
     {1, 0, 1, 0}},
    /* init after inval; the largest count */
    {"mbarrier.init.shared.b64 [bar], 5; mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 "
     "[bar], 1048575;\n"
     "mbarrier.arrive.noComplete.shared.b64 %s0, [bar], 1048573; mbarrier.pending_count.b64 %r3, "
     "%s0;\n" TEST(0, 4) "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %s0, [bar], 1; mov.u32 %r5, "
                         "0; mov.u32 %r6, 0;\n",
     {1048575, 0, 0, 0}},
    /* without .noinc the arrival of the copies adds to the expected count; with .noinc it is one of the expected arrivals */
    {"mbarrier.init.shared.b64 [bar], 1; cp.async.mbarrier.arrive.shared.b64 [bar];\n" TEST(
         0, 3) "mbarrier.arrive.shared.b64 _, [bar];\n" TEST(0, 4) "mbarrier.arrive.shared.b64 _, "
                                                                   "[bar];\n" TEST(1, 5) "mov.u32 %r6, 0;\n",
     {0, 1, 1, 0}},
    {"mbarrier.init.shared.b64 [bar], 1; cp.async.mbarrier.arrive.noinc.shared::cta.b64 "
     "[bar];\n" TEST(0, 3) TEST(1, 4) "mov.u32 %r5, 7; mov.u32 %r6, 7;\n",
     {1, 0, 7, 7}},
    /* by a generic address */
    {"cvta.shared.u64 %p4, bar; mbarrier.init.b64 [%p4], 1; mbarrier.arrive.b64 %s0, [%p4];\n"
     "mbarrier.test_wait.b64 %q1, [%p4], %s0; selp.u32 %r3, 1, 0, %q1; mbarrier.test_wait.parity.b64 "
     "%q1, [%p4], 1;\n"
     "selp.u32 %r4, 1, 0, %q1; mbarrier.inval.b64 [%p4]; mov.u32 %r5, 0; mov.u32 %r6, 0;\n",
     {1, 0, 0, 0}},
};

static void test_scripts(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof scripts / sizeof *scripts; n++) {
        char body[4096];
        snprintf(body, sizeof body, "%s%s%s", HEAD FIRST_ONLY, scripts[n].text,
                 "st.global.v4.b32 [%p2], {%r3, %r4, %r5, %r6}; ret;");
        run(body);
        for (int i = 0; i < 4; i++)
            if (out[0][i] != scripts[n].want[i])
                fail_msg("%s%%r%d is %u, not %u", scripts[n].text, 3 + i, out[0][i], scripts[n].want[i]);
    }
}

typedef struct misuse {
    const char *text, *message;
    CUresult result;
} misuse;

static const misuse misuses[] = {
    {"mbarrier.init.shared.b64 [bar], 0;", "initialises an mbarrier object with the count 0",
     CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.init.shared.b64 [bar], 1048576;", "with the count 1048576", CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 _, [bar], 3;",
     "arrives with the count 3 at an mbarrier object that waits for 2 more arrivals",
     CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.noComplete.shared.b64 %s0, [bar], 2;",
     ".noComplete must not be the last", CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.arrive.shared.b64 _, [bar];", "uses an mbarrier object that is not initialised",
     CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; mbarrier.inval.shared.b64 [bar];",
     "uses an mbarrier object that is not initialised", CUDA_ERROR_LAUNCH_FAILED},
    {"mbarrier.init.b64 [%p1], 1;", "names an mbarrier object that is not in shared memory", (CUresult)717},
    {"mbarrier.init.shared.b64 [bar+-4], 1;", "which is not a multiple of 8", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"cp.async.cg.shared.global [%r2+8], [%p3], 16;", "which is not a multiple of 16",
     CUDA_ERROR_MISALIGNED_ADDRESS},
    {"cp.async.ca.shared.global [%r2], [%p3+2], 4;", "which is not a multiple of 4",
     CUDA_ERROR_MISALIGNED_ADDRESS},
    {"cp.async.ca.shared.global [%r2], [%p3+2], 4, 2;", "which is not a multiple of 4",
     CUDA_ERROR_MISALIGNED_ADDRESS},
    {"mov.u32 %r7, 9; cp.async.ca.shared.global [%r2], [%p3], 8, %r7;",
     "copies more bytes from the source than cp-size, which is 8", CUDA_ERROR_LAUNCH_FAILED},
    {"cp.async.cg.shared.global [%r2+4096], [%p3], 16;", "of .shared memory, which ends at",
     CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.cg.shared.global [%r2], [%p3+1024], 16;", "past the end of the allocation",
     CUDA_ERROR_ILLEGAL_ADDRESS},
};

static void test_misuse(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof misuses / sizeof *misuses; n++) {
        CUcontext context;
        char body[2048];
        snprintf(body, sizeof body, "%s%s\nret;", HEAD FIRST_ONLY, misuses[n].text);
        assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        CUfunction f = kernel_of(NULL, body);
        CUdeviceptr p0 = device_bytes(sizeof out, NULL), p1 = device_bytes(sizeof in, in);
        capture_stderr();
        CUresult r = launch(f, 1, 1, p0, p1, 0);
        captured_stderr();
        if (r != misuses[n].result)
            fail_msg("%s gave %d\n%s", misuses[n].text, (int)r, printed);
        assert_contains(printed, "in k, line ");
        assert_contains(printed, misuses[n].message);
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

/* Hints have no effect; source bytes that are not copied need not exist. */
static void test_copy_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "cp.async.cg.shared.global.L2::cache_hint [%r2], [%p3], 16, %p5;",
        "cp.async.ca.shared.global.L2::cache_hint.L2::256B [%r2], [%p3], 16, %p5;",
        "cp.async.cg.shared::cta.global.L2::cache_hint.L2::64B [%r2], [%p3], 16, 16, %p5;",
        "cp.async.ca.shared.global [%r2], [%p3], 8; cp.async.ca.shared.global [%r2+8], [%p3+8], 8, 8;",
        "setp.eq.u32 %q2, 0, 1; cp.async.cg.shared.global.L2::cache_hint [%r2], [%p3], 16, %q2, %p5;",
    };
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        char body[2048];
        snprintf(body, sizeof body, "%s%s%s%s", HEAD, "createpolicy.fractional.L2::evict_first.b64 %p5;\n",
                 forms[n], "cp.async.wait_all;\n" RESULT "ret;");
        run(body);
        assert_memory_equal(out, in, sizeof in);
    }
    run(HEAD
        "add.u64 %p3, %p1, 1016; cp.async.cg.shared.global [%r2], [%p1], 16; cp.async.ca.shared.global "
        "[%r2+8], [%p3], 8, 8;\n"
        "add.u64 %p3, %p3, 8; cp.async.ca.shared.global [%r2+4], [%p3], 4, 0; cp.async.wait_all;\n" RESULT
        "ret;");
    assert_int_equal(out[3][0], in[0][0]);
    assert_int_equal(out[3][1], 0);
    assert_int_equal(out[3][2], in[63][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visibility),    cmocka_unit_test(test_groups),
        cmocka_unit_test(test_zero_fill),     cmocka_unit_test(test_phases),
        cmocka_unit_test(test_copies_arrive), cmocka_unit_test(test_transactions),
        cmocka_unit_test(test_scripts),       cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_copy_forms),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
