/* Asynchronous copies: nothing arrives before the wait, everything after it; groups, zero fill; mbarrier phases. */
#include "emu_test.h"

#define HEAD                                                                                                 \
    ".reg .u64 %p<9>; .reg .u32 %r<19>; .reg .pred %q<5>; .reg .b64 %s<4>; .shared .align 16 .b8 s[4096];\n" \
    ".shared .b64 bar; ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x;\n"               \
    "mad.wide.u32 %p2, %r0, 16, %p0; mad.wide.u32 %p3, %r0, 16, %p1; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, "  \
    "16, %r1;\n"
#define RESULT "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2]; st.global.v4.b32 [%p2], {%r3, %r4, %r5, %r6};\n"

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
    /* a wait for groups does not see what has not been committed */
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
        for (unsigned group = 0; group < 4; group++) /* the last one is empty, the fourth word never copied */
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

/* One phase by state, the next by parity; then a count of pending arrivals. */
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

/* The copies of all threads arrive through the barrier; nobody waits for groups. */
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

/* Transactions hold a phase back. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visibility),    cmocka_unit_test(test_groups),
        cmocka_unit_test(test_zero_fill),     cmocka_unit_test(test_phases),
        cmocka_unit_test(test_copies_arrive), cmocka_unit_test(test_transactions),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
