/* Barriers, divergence, spin locks, warp-level operations, and launches that never end. */
#include "emu_test.h"

#define HEAD                                                                                                 \
    ".reg .u64 %p<9>; .reg .u32 %r<19>; .reg .pred %q<5>;\n"                                                 \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u32 %r9, [n]; mov.u32 %r0, %tid.x;\n"          \
    "mad.wide.u32 %p2, %r0, 4, %p0;\n"

static CUresult run_faulty(const char *body, unsigned threads)
{
    CUcontext context;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    CUfunction f = kernel_of(NULL, body);
    CUdeviceptr p0 = device_bytes(4096, NULL);
    capture_stderr();
    CUresult r = launch(f, 1, threads, p0, p0, threads);
    captured_stderr();
    cuCtxDestroy_v2(context);
    return r;
}

static void test_block_barrier(void **state)
{
    (void)state;
    uint32_t out[256];
    run_body(NULL,
             HEAD ".shared .b32 s[256]; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], "
                  "%r0; bar.sync 0;\n"
                  "sub.u32 %r3, 255, %r0; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2]; "
                  "st.global.u32 [%p2], %r4; ret;",
             256, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(out[i], 255 - i);
}

/* Barriers do not wait for threads that have exited (ISA 9.7.13.1); an aligned barrier still requires all threads. */
static void test_exited_threads(void **state)
{
    (void)state;
    uint32_t out[96];
    run_body(NULL, HEAD "setp.ge.u32 %q0, %r0, 40; @%q0 exit; barrier.sync 0; st.global.u32 [%p2], 5; ret;",
             96, NULL, 0, out, sizeof out);
    assert_int_equal(out[39], 5);
    assert_int_equal(out[40], 0);
    static const char skipped[] = HEAD "setp.ge.u32 %q0, %r0, 40; @%q0 exit; bar.sync 0; ret;";
    assert_int_equal(run_faulty(skipped, 96), CUDA_ERROR_LAUNCH_FAILED);
    assert_contains(printed, "is at an aligned barrier that 56 threads of its block skip by ending, first "
                             "thread (40,0,0) of block (0,0,0)");
    assert_int_equal(run_faulty(skipped, 40), CUDA_SUCCESS); /* the block has no other threads */
    assert_int_equal(run_faulty(HEAD "setp.ge.u32 %q0, %r0, 0; @%q0 exit; bar.sync 0; ret;", 96),
                     CUDA_SUCCESS);
}

static void test_reductions(void **state)
{
    (void)state;
    uint32_t out[64];
    run_body(NULL,
             HEAD "setp.lt.u32 %q0, %r0, 10; bar.red.popc.u32 %r1, 0, %q0; barrier.sync 1; bar.red.and.pred "
                  "%q1, 2, %q0;\n"
                  "bar.red.or.pred %q2, 2, 64, !%q0; selp.u32 %r2, 100, 0, %q1; selp.u32 %r3, 1000, 0, %q2;\n"
                  "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%p2], %r1; ret;",
             64, NULL, 0, out, sizeof out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 1010);
}

/* Producer warps arrive, the consumer warp waits. */
static void test_arrive(void **state)
{
    (void)state;
    uint32_t out[96];
    run_body(NULL,
             HEAD ".shared .b32 s[96]; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1;\n"
                  "setp.lt.u32 %q0, %r0, 32; @%q0 bra CONSUMER;\n"
                  "st.shared.u32 [%r2], %r0; bar.arrive 3, 96; ret;\n"
                  "CONSUMER: bar.sync 3, 96; ld.shared.u32 %r3, [%r2+128]; ld.shared.u32 %r4, [%r2+256];\n"
                  "add.u32 %r3, %r3, %r4; st.global.u32 [%p2], %r3; ret;",
             96, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 2 * i + 96);
}

static void test_divergence(void **state)
{
    (void)state;
    uint32_t out[64];
    /* a loop with a different trip count in each lane, then a shuffle that needs all lanes */
    run_body(NULL,
             HEAD "mov.u32 %r1, 0; mov.u32 %r2, 0; L: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; "
                  "setp.le.u32 %q0, %r2, %r0;\n"
                  "@%q0 bra L; shfl.sync.idx.b32 %r3, %r1, 5, 31, 0xffffffff; add.u32 %r1, %r1, %r3; "
                  "st.global.u32 [%p2], %r1; ret;",
             64, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 64; i++) {
        unsigned of = i < 32 ? 5 : 37;
        assert_int_equal(out[i], i * (i + 1) / 2 + of * (of + 1) / 2);
    }
}

static void test_shuffles(void **state)
{
    (void)state;
    uint32_t out[32];
    run_body(NULL,
             HEAD
             "shfl.sync.up.b32 %r1|%q0, %r0, 1, 0, -1; shfl.sync.down.b32 %r2|%q1, %r0, 1, 31, -1;\n"
             "shfl.sync.bfly.b32 %r3, %r0, 16, 31, -1; shfl.sync.idx.b32 %r4, %r0, 3, 0x181f, -1;\n"
             "mad.lo.u32 %r1, %r1, 100, %r2; mad.lo.u32 %r1, %r1, 100, %r3; mad.lo.u32 %r1, %r1, 100, %r4;\n"
             "selp.u32 %r5, 1, 0, %q0; selp.u32 %r6, 2, 0, %q1; add.u32 %r5, %r5, %r6; shl.b32 %r5, %r5, 28; "
             "or.b32 %r1, %r1, %r5;\n"
             "st.global.u32 [%p2], %r1; ret;",
             32, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 32; i++) {
        unsigned up = i ? i - 1 : i, down = i < 31 ? i + 1 : i;
        unsigned want = ((up * 100 + down) * 100 + (i ^ 16)) * 100 + (i / 8 * 8 + 3);
        want |= (unsigned)(i > 0) << 28 | (unsigned)(i < 31) << 29;
        assert_int_equal(out[i], want);
    }
}

static void test_warp_operations(void **state)
{
    (void)state;
    uint32_t out[32 * 6];
    run_body(
        NULL,
        HEAD
        "mad.wide.u32 %p2, %r0, 24, %p0; and.b32 %r1, %r0, 3; setp.eq.u32 %q0, %r1, 1;\n"
        "vote.sync.ballot.b32 %r2, %q0, -1; vote.sync.any.pred %q1, %q0, -1; vote.sync.all.pred %q2, !%q0, "
        "-1;\n"
        "match.any.sync.b32 %r3, %r1, -1; match.all.sync.b32 %r4|%q3, %r9, -1; redux.sync.add.s32 %r5, %r0, "
        "-1;\n"
        "redux.sync.min.s32 %r6, -7, -1; elect.sync %r7|%q4, -1; activemask.b32 %r8;\n"
        "selp.u32 %r10, 1, 0, %q1; selp.u32 %r11, 2, 0, %q2; selp.u32 %r12, 4, 0, %q3; selp.u32 %r13, 8, 0, "
        "%q4;\n"
        "or.b32 %r10, %r10, %r11; or.b32 %r12, %r12, %r13; or.b32 %r10, %r10, %r12; add.u32 %r5, %r5, %r6;\n"
        "st.global.v2.u32 [%p2], {%r2, %r3}; st.global.v2.u32 [%p2+8], {%r4, %r5}; st.global.v2.u32 "
        "[%p2+16], {%r8, %r10}; ret;",
        32, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 32; i++) {
        const uint32_t *o = out + 6 * i;
        assert_int_equal(o[0], 0x22222222);
        assert_int_equal(o[1], 0x11111111u << (i & 3));
        assert_int_equal(o[2], 0xffffffff);
        assert_int_equal(o[3], 31 * 16 - 7);
        assert_int_equal(o[4], 0xffffffff);
        assert_int_equal(o[5], 1u | 4u | (i == 0 ? 8u : 0u));
    }
}

/* Each half of a warp synchronises in its own branch. */
static void test_partial_masks(void **state)
{
    (void)state;
    uint32_t out[32];
    run_body(
        NULL,
        HEAD
        "setp.lt.u32 %q0, %r0, 7; @%q0 bra A; bar.warp.sync 0xffffff80; shfl.sync.idx.b32 %r1, %r0, 9, 31, "
        "0xffffff80; bra B;\n"
        "A: bar.warp.sync 0x7f; shfl.sync.idx.b32 %r1, %r0, 3, 31, 0x7f; B: st.global.u32 [%p2], %r1; ret;",
        32, NULL, 0, out, sizeof out);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 7 ? 3 : 9);
}

/* Every lane takes the same lock. The lane that holds it must make progress although others spin. */
static void test_spin_lock(void **state)
{
    (void)state;
    CUfunction f = kernel_of(
        NULL, HEAD
        "TRY: atom.global.cas.b32 %r1, [%p0], 0, 1; setp.ne.u32 %q0, %r1, 0; @%q0 bra TRY;\n"
        "ld.volatile.global.u32 %r2, [%p0+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%p0+4], %r2;\n"
        "membar.gl; atom.global.exch.b32 %r1, [%p0], 0; ret;");
    CUdeviceptr p = device_bytes(8, NULL);
    assert_int_equal(launch(f, 4, 96, p, p, 0), CUDA_SUCCESS);
    uint32_t words[2];
    cuMemcpyDtoH_v2(words, p, sizeof words);
    assert_int_equal(words[1], 4 * 96);
    cuMemFree_v2(p);
}

/* One warp waits for a store of another one. */
static void test_flag(void **state)
{
    (void)state;
    uint32_t out[64];
    run_body(NULL,
             HEAD ".shared .b32 flag; setp.ge.u32 %q0, %r0, 32; @%q0 bra SET; WAIT: ld.volatile.shared.u32 "
                  "%r1, [flag];\n"
                  "setp.eq.u32 %q1, %r1, 0; @%q1 bra WAIT; st.global.u32 [%p2], %r1; ret;\n"
                  "SET: st.volatile.shared.u32 [flag], 9; ret;",
             64, NULL, 0, out, sizeof out);
    assert_int_equal(out[0], 9);
}

/* A block waits for a later one, so both must be resident at once. */
static void test_block_waits_for_later_block(void **state)
{
    (void)state;
    CUfunction f = kernel_of(
        NULL, HEAD
        "mov.u32 %r1, %ctaid.x; setp.eq.u32 %q0, %r1, 3; @%q0 st.volatile.global.u32 [%p0], 1; @%q0 exit;\n"
        "W: ld.volatile.global.u32 %r2, [%p0]; setp.eq.u32 %q1, %r2, 0; @%q1 bra W; red.global.add.u32 "
        "[%p0+4], 1; ret;");
    CUdeviceptr p = device_bytes(8, NULL);
    cuMemsetD32_v2(p, 0, 2);
    assert_int_equal(launch(f, 4, 32, p, p, 0), CUDA_SUCCESS);
    uint32_t words[2];
    cuMemcpyDtoH_v2(words, p, sizeof words);
    assert_int_equal(words[1], 96);
    cuMemFree_v2(p);
}

static void test_divergent_barrier(void **state)
{
    (void)state;
    assert_int_equal(
        run_faulty(HEAD "setp.lt.u32 %q0, %r0, 16; @%q0 bra A; bar.sync 0; bra B; A: bar.sync 0; B: ret;",
                   32),
        CUDA_ERROR_LAUNCH_FAILED);
    assert_contains(printed, "waits at an aligned barrier while lanes 0x");
    /* allowed without .aligned */
    assert_int_equal(
        run_faulty(HEAD
                   "setp.lt.u32 %q0, %r0, 16; @%q0 bra A; barrier.sync 0; bra B; A: barrier.sync 0; B: ret;",
                   32),
        CUDA_SUCCESS);
}

static void test_missing_warp(void **state)
{
    (void)state;
    assert_int_equal(
        run_faulty(HEAD "setp.lt.u32 %q0, %r0, 32; @%q0 bra A; bar.sync 1; ret; A: bar.sync 2, 64; ret;", 64),
        CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(printed, "the launch makes no progress");
    assert_contains(
        printed, "thread (0,0,0) of block (0,0,0) (lanes 0xffffffff of warp 0) waits at barrier 2: 32 of 64 "
                 "threads have arrived\n");
    assert_contains(printed, "A: bar.sync 2, 64;");
    assert_contains(printed, "thread (32,0,0) of block (0,0,0)");
}

static void test_member_masks(void **state)
{
    (void)state;
    assert_int_equal(run_faulty(HEAD "shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xff; ret;", 32),
                     CUDA_ERROR_LAUNCH_FAILED);
    assert_contains(printed, "without being in its own member mask");
    assert_int_equal(
        run_faulty(HEAD
                   "setp.lt.u32 %q0, %r0, 16; @%q0 bra A; bra B; A: shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\n"
                   "B: bar.sync 0; ret;",
                   32),
        CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(
        printed, "waits for other lanes of its warp: members 0xffffffff, of these 0x00000000 have exited and "
                 "0xffff0000 are elsewhere");
    assert_int_equal(run_faulty(HEAD "shfl.sync.idx.b32 %r1, %r0, 20, 31, -1; ret;", 16),
                     CUDA_ERROR_LAUNCH_FAILED);
    assert_contains(printed, "takes a value from a lane that does not take part");
}

static void test_endless_wait(void **state)
{
    (void)state;
    assert_int_equal(
        run_faulty(HEAD "W: ld.volatile.global.u32 %r1, [%p0]; setp.eq.u32 %q0, %r1, 0; @%q0 bra W; ret;", 1),
        CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_contains(printed, "runs without storing anything");
}

static void test_uniform_branch(void **state)
{
    (void)state;
    assert_int_equal(run_faulty(HEAD "setp.lt.u32 %q0, %r0, 16; @%q0 bra.uni A; A: ret;", 32),
                     CUDA_ERROR_LAUNCH_FAILED);
    assert_contains(printed, "takes a .uni branch that other active lanes (0xffff0000) do not take");
    assert_int_equal(run_faulty(HEAD "trap;", 32), CUDA_ERROR_LAUNCH_FAILED);
}

static void test_calls(void **state)
{
    (void)state;
    static const char text[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n"
        ".func (.param .b32 r) twice(.param .b32 x);\n"
        ".func (.reg .u32 r) plus(.reg .u32 a, .reg .u32 b) { add.u32 r, a, b; ret; }\n"
        ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n)\n{\n"
        ".reg .u64 %p<3>; .reg .u32 %r<5>; .reg .pred %q; .param .b32 a; .param .b32 b;\n"
        "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mad.wide.u32 %p1, %r0, 4, %p0; st.param.b32 [a], %r0;\n"
        "setp.lt.u32 %q, %r0, 5; @%q bra S; call (b), twice, (a); ld.param.b32 %r1, [b]; bra D;\n"
        "S: { .param .b32 c; call (c), twice, (7); ld.param.b32 %r1, [c]; }\n"
        "D: call (%r2), plus, (%r1, 1); st.global.u32 [%p1], %r2; ret;\n}\n"
        ".func (.param .b32 r) twice(.param .b32 x)\n{ .reg .u32 %r<2>; ld.param.b32 %r0, [x]; add.u32 %r1, "
        "%r0, %r0;\n"
        "st.param.b32 [r], %r1; ret; }\n";
    CUmodule m;
    CUfunction f;
    CUresult r = load_text(text, &m);
    if (r != CUDA_SUCCESS)
        fail_msg("%s", test_log);
    assert_int_equal(cuModuleGetFunction(&f, m, "k"), CUDA_SUCCESS);
    CUdeviceptr p = device_bytes(128, NULL);
    assert_int_equal(launch(f, 1, 32, p, p, 0), CUDA_SUCCESS);
    uint32_t out[32];
    cuMemcpyDtoH_v2(out, p, sizeof out);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 5 ? 15 : 2 * i + 1);
    cuMemFree_v2(p);
}

static void test_indexed_branch(void **state)
{
    (void)state;
    uint32_t out[32];
    run_body(NULL,
             HEAD
             "rem.u32 %r1, %r0, 3; T: .branchtargets A, B, C; brx.idx %r1, T; A: mov.u32 %r2, 10; bra E;\n"
             "B: mov.u32 %r2, 20; bra E; C: mov.u32 %r2, 30; E: vote.sync.ballot.b32 %r3, 1, -1; add.u32 "
             "%r2, %r2, %r3;\n"
             "st.global.u32 [%p2], %r2; ret;",
             32, NULL, 0, out, sizeof out);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 10 * (i % 3 + 1) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_barrier),
        cmocka_unit_test(test_exited_threads),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_arrive),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_warp_operations),
        cmocka_unit_test(test_partial_masks),
        cmocka_unit_test(test_spin_lock),
        cmocka_unit_test(test_flag),
        cmocka_unit_test(test_block_waits_for_later_block),
        cmocka_unit_test(test_divergent_barrier),
        cmocka_unit_test(test_missing_warp),
        cmocka_unit_test(test_member_masks),
        cmocka_unit_test(test_endless_wait),
        cmocka_unit_test(test_uniform_branch),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_indexed_branch),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
