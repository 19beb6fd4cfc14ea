/* Asynchronous operations between the blocks of a cluster: st.async, red.async, and bulk copies to several blocks and from
   shared memory to shared memory: values of every form, then each rule, broken and kept. */
#include "rules.h"

static const char header[] = ".version 8.8\n.target sm_90a";

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)
#define SYNC     "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

/* ---- values of a ring ---------------------------------------------------------------------------------------------- */

enum { RING = 3, THREADS = 32, WORDS = 4 };

/* Each thread sends a value to its 16 bytes of s in the next block of the ring. r4: s; r5 to r8, d5 and d6: the value; r10: its
   destination; r11: the mbarrier there; d10, d11: the same as generic addresses; r12: s of the next block. */
static const char ring_head[] =
    ".reg .u64 %p<3>; .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .f32 %f<9>; .reg .f64 %e<9>; .reg .pred %q<3>;\n"
    ".shared .align 128 .b8 s[512]; .shared .align 128 .b8 t[512]; .shared .align 8 .b64 b;\n"
    "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank;\n"
    "add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, %r2; mov.u32 %r4, s; shl.b32 %r9, %r0, 4; setp.eq.u32 %q0, %r0, 0;\n"
    "mul.lo.u32 %r13, %r0, 3; add.u32 %r13, %r13, 1; add.u32 %r14, %r13, 1; add.u32 %r15, %r13, 2; add.u32 %r16, %r13, 3;\n"
    "add.u32 %r17, %r4, %r9; st.shared.v4.u32 [%r17], {%r13, %r14, %r15, %r16};\n"
    "mul.lo.u32 %r5, %r1, 1000; mad.lo.u32 %r5, %r0, 7, %r5; add.u32 %r5, %r5, 5; and.b32 %r18, %r0, 1;\n"
    "setp.ne.u32 %q1, %r18, 0; @%q1 neg.s32 %r5, %r5; add.u32 %r6, %r5, 1; add.u32 %r7, %r5, 2; add.u32 %r8, %r5, 3;\n"
    "mov.b64 %d5, {%r5, %r6}; mov.b64 %d6, {%r7, %r8}; mov.b32 %f5, %r5; mov.b32 %f6, %r6; mov.b32 %f7, %r7;\n"
    "mov.b32 %f8, %r8; mov.b64 %e5, %d5; mov.b64 %e6, %d6; mov.u32 %r19, t; add.u32 %r20, %r19, %r9;\n"
    "st.shared.v4.u32 [%r20], {%r5, %r6, %r7, %r8};\n"
    "mapa.shared::cluster.u32 %r12, %r4, %r3; add.u32 %r10, %r12, %r9; mapa.shared::cluster.u32 %r11, b, %r3;\n"
    "cvt.u64.u32 %d10, %r10; cvta.shared::cluster.u64 %d10, %d10; cvt.u64.u32 %d11, %r11; cvta.shared::cluster.u64 %d11, %d11;\n"
    "@%q0 mbarrier.init.shared.b64 [b], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n" SYNC;
static const char ring_tail[] =
    "LOOP: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra LOOP;\n"
    "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r17]; mov.u32 %r20, %ctaid.x; mad.lo.u32 %r20, %r20, 32, %r0;\n"
    "mad.wide.u32 %p0, %r20, 16, %p0; st.global.v4.u32 [%p0], {%r5, %r6, %r7, %r8};\n" SYNC "ret;";

static void run_ring(const char *instructions, unsigned bytes, uint32_t out[RING][THREADS][WORDS])
{
    char body[8192];
    snprintf(body, sizeof body, "%s@%%q0 mbarrier.arrive.expect_tx.shared.b64 _, [b], %u;\n%s\n%s", ring_head,
             bytes, instructions, ring_tail);
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p = device_bytes(RING * THREADS * WORDS * 4, NULL);
    CUresult r = launch_clusters(f, RING, RING, THREADS, p, p, 0);
    if (r != CUDA_SUCCESS)
        fail_msg("%s: %d", instructions, (int)r);
    OK(cuMemcpyDtoH_v2(out, p, RING * THREADS * WORDS * 4));
    OK(cuMemFree_v2(p));
}

/* Word k of the value that a thread sends, and of what s holds before. */
static uint32_t sent(unsigned rank, unsigned thread, unsigned k)
{
    uint32_t v = rank * 1000 + thread * 7 + 5;
    return (thread & 1 ? 0 - v : v) + k;
}

static uint32_t held(unsigned thread, unsigned k)
{
    return thread * 3 + 1 + k;
}

#define WAITED "mbarrier::complete_tx::bytes"

static void test_stores(void **state)
{
    static const struct {
        const char *instruction;
        unsigned words;
    } rows[] = {
        {"st.async.shared::cluster." WAITED ".b32 [%r10], %r5, [%r11];", 1},
        {"st.async.weak.shared::cluster." WAITED ".u32 [%r10], %r5, [%r11];", 1},
        {"st.async.shared::cluster." WAITED ".s32 [%r10], %r5, [%r11];", 1},
        {"st.async.shared::cluster." WAITED ".f32 [%r10], %f5, [%r11];", 1},
        {"st.async.shared::cluster." WAITED ".b64 [%r10], %d5, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".u64 [%r10], %d5, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".s64 [%r10], %d5, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".f64 [%r10], %e5, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".v2.b32 [%r10], {%r5, %r6}, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".v4.u32 [%r10], {%r5, %r6, %r7, %r8}, [%r11];", 4},
        {"st.async.shared::cluster." WAITED ".v4.f32 [%r10], {%f5, %f6, %f7, %f8}, [%r11];", 4},
        {"st.async.shared::cluster." WAITED ".v2.b64 [%r10], {%d5, %d6}, [%r11];", 4},
        {"st.async.shared::cluster." WAITED ".v2.f64 [%r10], {%e5, %e6}, [%r11];", 4},
        {"st.async." WAITED ".b32 [%d10], %r5, [%d11];", 1},
        {"st.async.cluster.shared::cluster." WAITED ".b32 [%r10], %r5, [%r11];", 1},
        {"st.async.weak." WAITED ".v4.s32 [%d10], {%r5, %r6, %r7, %r8}, [%d11];", 4},
        {"st.async.shared::cluster." WAITED ".v2.s32 [%r10], {%r5, %r6}, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".v2.f32 [%r10], {%f5, %f6}, [%r11];", 2},
        {"st.async.shared::cluster." WAITED ".v2.s64 [%r10], {%d5, %d6}, [%r11];", 4},
        {"st.async.weak." WAITED ".v2.u64 [%d10], {%d5, %d6}, [%d11];", 4},
    };
    static uint32_t out[RING][THREADS][WORDS];
    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        run_ring(rows[n].instruction, 4 * THREADS * rows[n].words, out);
        for (unsigned rank = 0; rank < RING; rank++)
            for (unsigned t = 0; t < THREADS; t++)
                for (unsigned k = 0; k < WORDS; k++)
                    if (out[rank][t][k] !=
                        (k < rows[n].words ? sent((rank + RING - 1) % RING, t, k) : held(t, k)))
                        fail_msg("%s: block %u, thread %u, word %u: %u", rows[n].instruction, rank, t, k,
                                 out[rank][t][k]);
    }
}

typedef enum operation { ADD, MIN_U, MAX_U, MIN_S, MAX_S, INC, DEC, AND, OR, XOR, ADD_64 } operation;

static uint64_t reduced(operation o, uint64_t a, uint64_t b)
{
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    switch (o) {
    case ADD:
        return x + y;
    case MIN_U:
        return x < y ? x : y;
    case MAX_U:
        return x > y ? x : y;
    case MIN_S:
        return (int32_t)x < (int32_t)y ? x : y;
    case MAX_S:
        return (int32_t)x > (int32_t)y ? x : y;
    case INC:
        return x >= y ? 0 : x + 1;
    case DEC:
        return x == 0 || x > y ? y : x - 1;
    case AND:
        return x & y;
    case OR:
        return x | y;
    case XOR:
        return x ^ y;
    default:
        return a + b;
    }
}

/* Checks the first `count` elements of each thread's place. */
static void check_reduced(const char *what, operation o, unsigned count, uint32_t out[RING][THREADS][WORDS])
{
    unsigned each = o == ADD_64 ? 2 : 1;
    for (unsigned rank = 0; rank < RING; rank++)
        for (unsigned t = 0; t < THREADS; t++)
            for (unsigned k = 0; k < WORDS; k += each) {
                unsigned from = (rank + RING - 1) % RING;
                uint64_t a = held(t, k) | (uint64_t)held(t, k + 1) << 32,
                         b = sent(from, t, k) | (uint64_t)sent(from, t, k + 1) << 32;
                uint64_t expected = k < count * each ? reduced(o, a, b) : a, got = out[rank][t][k];
                if (each == 2)
                    got |= (uint64_t)out[rank][t][k + 1] << 32;
                if (got != (each == 2 ? expected : (uint32_t)expected))
                    fail_msg("%s: block %u, thread %u, word %u: %llx", what, rank, t, k,
                             (unsigned long long)got);
            }
}

static const struct {
    const char *words; /* of the instruction */
    operation operation;
} operations[] = {
    {"add.u32", ADD},   {"add.s32", ADD},   {"add.u64", ADD_64}, {"min.u32", MIN_U},
    {"max.u32", MAX_U}, {"min.s32", MIN_S}, {"max.s32", MAX_S},  {"inc.u32", INC},
    {"dec.u32", DEC},   {"and.b32", AND},   {"or.b32", OR},      {"xor.b32", XOR},
};

static void test_reductions(void **state)
{
    static uint32_t out[RING][THREADS][WORDS];
    (void)state;
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++)
        for (int generic = 0; generic < 2; generic++) {
            char text[256];
            bool is_64 = operations[n].operation == ADD_64;
            snprintf(text, sizeof text, "red.async.relaxed.cluster%s." WAITED ".%s [%s], %s, [%s];",
                     generic ? "" : ".shared::cluster", operations[n].words, generic ? "%d10" : "%r10",
                     is_64 ? "%d5" : "%r5", generic ? "%d11" : "%r11");
            run_ring(text, (is_64 ? 8 : 4) * THREADS, out);
            check_reduced(text, operations[n].operation, 1, out);
        }
    run_ring("red.async.relaxed.cluster.shared::cluster." WAITED ".add.s64 [%r10], %d5, [%r11];", 8 * THREADS,
             out);
    check_reduced("add.s64", ADD_64, 1, out);
    run_ring("red.async.relaxed.cluster." WAITED ".add.s64 [%d10], %d5, [%d11];", 8 * THREADS, out);
    check_reduced("generic add.s64", ADD_64, 1, out);
}

/* Copies 512 bytes of t to s of the next block. */
static void test_shared_copies(void **state)
{
    static uint32_t out[RING][THREADS][WORDS];
    (void)state;
    run_ring("@%q0 cp.async.bulk.shared::cluster.shared::cta." WAITED " [%r12], [%r19], 512, [%r11];", 512,
             out);
    for (unsigned rank = 0; rank < RING; rank++)
        for (unsigned t = 0; t < THREADS; t++)
            for (unsigned k = 0; k < WORDS; k++)
                assert_int_equal(out[rank][t][k], sent((rank + RING - 1) % RING, t, k));
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
        char text[256];
        snprintf(text, sizeof text,
                 "@%%q0 cp.reduce.async.bulk.shared::cluster.shared::cta." WAITED
                 ".%s [%%r12], [%%r19], 512, [%%r11];",
                 operations[n].words);
        run_ring(text, 512, out);
        check_reduced(text, operations[n].operation, WORDS, out);
    }
}

/* ---- multicast ----------------------------------------------------------------------------------------------------- */

/* Block 1 of four copies 256 bytes, or a tensor's box, to the blocks of a mask. Each block stores its s. */
static void check_multicast(const char *instruction, unsigned mask)
{
    enum { BLOCKS = 4, BYTES = 256 };
    static uint8_t in[BYTES], out[BLOCKS][BYTES];
    char text[8192];
    CUmodule module;
    CUfunction f;
    CUtensorMap map;
    const bool is_2d = strstr(instruction, ".2d") != NULL;
    const uint64_t size[] = {is_2d ? 16 : BYTES / 4, 4}, stride[] = {64};
    const uint32_t box[] = {(uint32_t)size[0], 4}, step[] = {1, 1};
    for (unsigned n = 0; n < BYTES; n++)
        in[n] = (uint8_t)random_bits();
    CUdeviceptr p0 = device_bytes(sizeof out, NULL), p1 = device_bytes(sizeof in, in);
    OK(cuTensorMapEncodeTiled(&map, 2, is_2d ? 2 : 1, (void *)(uintptr_t)p1, size, stride, box, step, 0, 0, 0,
                              0));
    snprintf(
        text, sizeof text,
        "%s\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 m[128])\n{\n"
        ".reg .u64 %%p<6>; .reg .b32 %%r<12>; .reg .b16 %%h<2>; .reg .pred %%q<5>;\n"
        ".shared .align 128 .b8 s[256]; .shared .align 8 .b64 b;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%cluster_ctarank;\n"
        "mov.u32 %%r2, s; shl.b32 %%r3, %%r0, 3; add.u32 %%r4, %%r2, %%r3; st.shared.v2.u32 [%%r4], {0x11111111, 0x11111111};\n"
        "setp.eq.u32 %%q0, %%r0, 0; setp.eq.and.u32 %%q1, %%r1, 1, %%q0; mov.u32 %%r5, b; mov.b16 %%h0, %u; mov.b64 %%p2, m;\n"
        "cvta.param.u64 %%p2, %%p2; mov.u32 %%r7, 0; mov.u64 %%p4, 0;\n"
        "shr.u32 %%r6, %u, %%r1; and.b32 %%r6, %%r6, 1; setp.ne.u32 %%q2, %%r6, 0; and.pred %%q3, %%q2, %%q0;\n"
        "@%%q0 mbarrier.init.shared.b64 [b], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n"
        "@%%q3 mbarrier.arrive.expect_tx.shared.b64 _, [b], 256;\n" SYNC "@%%q1 %s\n"
        "@!%%q2 bra DONE;\nLOOP: mbarrier.try_wait.parity.shared.b64 %%q4, [b], 0; @!%%q4 bra LOOP;\nDONE:\n"
        "ld.shared.v2.u32 {%%r8, %%r9}, [%%r4]; mad.lo.u32 %%r10, %%r1, 256, %%r3; cvt.u64.u32 %%p3, %%r10;\n"
        "add.u64 %%p3, %%p3, %%p0; st.global.v2.u32 [%%p3], {%%r8, %%r9};\n" SYNC "ret;\n}\n",
        header, mask, mask, instruction);
    OK(load_text(text, &module));
    OK(cuModuleGetFunction(&f, module, "k"));
    void *parameters[] = {&p0, &p1, &map};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {BLOCKS, 1, 1}};
    CUlaunchConfig config = {BLOCKS, 1, 1, 32, 1, 1, 0, NULL, &attribute, 1};
    OK(cuLaunchKernelEx(&config, f, parameters, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(out, p0, sizeof out));
    for (unsigned rank = 0; rank < BLOCKS; rank++)
        for (unsigned n = 0; n < BYTES; n++)
            if (out[rank][n] != (mask >> rank & 1 ? in[n] : 0x11))
                fail_msg("%s, mask 0x%x: block %u, byte %u", instruction, mask, rank, n);
    OK(cuMemFree_v2(p0));
    OK(cuMemFree_v2(p1));
}

static void test_multicast(void **state)
{
    static const char *const instructions[] = {
        "cp.async.bulk.shared::cluster.global." WAITED ".multicast::cluster [%r2], [%p1], 256, [%r5], %h0;",
        "cp.async.bulk.shared::cluster.global." WAITED
        ".multicast::cluster.L2::cache_hint [%r2], [%p1], 256, [%r5], %h0, %p4;",
        "cp.async.bulk.tensor.1d.shared::cluster.global." WAITED
        ".multicast::cluster [%r2], [%p2, {%r7}], [%r5], %h0;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile." WAITED
        ".multicast::cluster.L2::cache_hint [%r2], [%p2, {%r7}], [%r5], %h0, %p4;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile." WAITED
        ".multicast::cluster [%r2], [%p2, {%r7, %r7}], [%r5], %h0;",
    };
    (void)state;
    for (size_t n = 0; n < sizeof instructions / sizeof *instructions; n++)
        for (unsigned mask = 1; mask < 16; mask += 2 + (unsigned)n)
            check_multicast(instructions[n], mask);
}

/* ---- rules --------------------------------------------------------------------------------------------------------- */

/* q0, q1: lane 0 of block 0 and of block 1; r3, r4: s of this block and of the other one; r5, r6: their mbarriers; r7: t; x0 is
   undefined. */
#define PROLOGUE                                                                                                        \
    ".reg .u64 %p<4>; .reg .u32 %r<24>; .reg .pred %q<6>; .reg .b32 %x<2>; .reg .b16 %h<2>;\n"                          \
    ".shared .align 128 .b8 s[256]; .shared .align 128 .b8 t[256]; .shared .align 8 .b64 b;\n"                          \
    "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;\n"                \
    "mov.u32 %r3, s; mapa.shared::cluster.u32 %r4, %r3, %r2; mov.u32 %r5, b; mapa.shared::cluster.u32 %r6, %r5, %r2;\n" \
    "mov.u32 %r7, t; setp.eq.u32 %q4, %r0, 0; setp.eq.and.u32 %q0, %r1, 0, %q4; setp.eq.and.u32 %q1, %r1, 1, %q4;\n"    \
    "shl.b32 %r8, %r0, 3; add.u32 %r9, %r3, %r8; st.shared.v2.u32 [%r9], {0, 0}; add.u32 %r10, %r7, %r8;\n"             \
    "st.shared.v2.u32 [%r10], {0, 0}; mov.u32 %r11, 7; mov.u16 %h0, 3; add.u32 %r12, %r7, 0;\n"
#define INIT                                                                                                 \
    "@%q4 mbarrier.init.shared.b64 [b], 1;\nfence.mbarrier_init.release.cluster; fence.proxy.async;\n"
#define EXPECT(n) "@%q1 mbarrier.arrive.expect_tx.shared.b64 _, [b], " #n ";\n"
#define SEND      "@%q0 st.async.shared::cluster." WAITED ".u32 [%r4], %r11, [%r6];\n"
#define REDUCE    "@%q0 red.async.relaxed.cluster.shared::cluster." WAITED ".add.u32 [%r4], %r11, [%r6];\n"
#define COPY      "@%q0 cp.async.bulk.shared::cluster.shared::cta." WAITED " [%r4], [%r7], 128, [%r6];\n"
#define MULTI                                                                                                \
    "@%q0 cp.async.bulk.shared::cluster.global." WAITED ".multicast::cluster [%r3], [%p0], 128, [%r5], %h0;\n"
#define UNTIL                                                                                                \
    "setp.eq.u32 %q5, %r1, 0; @%q5 bra DONE;\nLOOP: mbarrier.try_wait.parity.shared.b64 %q3, [b], 0; @!%q3 bra LOOP;\nDONE:\n"
#define ALL_EXPECT "@%q4 mbarrier.arrive.expect_tx.shared.b64 _, [b], 128;\n"
#define ALL_WAIT   "LOOP: mbarrier.try_wait.parity.shared.b64 %q3, [b], 0; @!%q3 bra LOOP;\n"
#define DELAY                                                                                                \
    "mov.u32 %r14, 0;\nSPIN: nanosleep.u32 10; add.u32 %r14, %r14, 1; setp.lt.u32 %q5, %r14, 20; @%q5 bra SPIN;\n"
#define LOAD "@%q1 ld.shared.u32 %r13, [%r3];\n"

static const rule rules[] = {
    {"a store is read before it has arrived", INIT EXPECT(4) SYNC SEND LOAD UNTIL SYNC, "races: ", 0, 0},
    {"", INIT EXPECT(4) SYNC SEND UNTIL LOAD SYNC, NULL, 0, 0},
    {"a reduction is read before it has arrived", INIT EXPECT(4) SYNC REDUCE LOAD UNTIL SYNC, "races: ", 0,
     0},
    {"", INIT EXPECT(4) SYNC REDUCE UNTIL LOAD SYNC, NULL, 0, 0},
    {"a barrier of the cluster does not wait for a store", INIT EXPECT(4) SYNC SEND SYNC LOAD UNTIL SYNC,
     "races: ", 0, 0},
    {"no thread waits for the store", INIT EXPECT(4) SYNC SEND SYNC,
     "the destination's block ends before any thread has seen the end of the mbarrier's phase", 0, 0},
    {"the store and the destination's own",
     INIT EXPECT(4) SYNC SEND "@%q1 st.shared.u32 [%r3], 1;\n" UNTIL SYNC, "races: ", 0, 0},
    {"", INIT EXPECT(4) SYNC SEND "@%q1 st.shared.u32 [%r3+4], 1;\n" UNTIL SYNC, NULL, 0, 0},
    {"two stores to the same bytes",
     INIT EXPECT(8) SYNC SEND "@%q0 st.async.shared::cluster." WAITED ".u32 [%r4], %r0, [%r6];\n" UNTIL SYNC,
     "races: ", 0, 0},
    {"two reductions", INIT EXPECT(8) SYNC REDUCE REDUCE UNTIL SYNC, NULL, 0, 0},
    {"a store before the other block has started",
     INIT "bar.sync 0; @%q0 mbarrier.arrive.expect_tx.shared.b64 _, [b], 4;\n"
          "@%q1 st.async.shared::cluster." WAITED ".u32 [%r4], %r11, [%r6];\n"
          "setp.eq.u32 %q5, %r1, 1; @%q5 bra END;\n" ALL_WAIT "END:\n" SYNC,
     "may not have started", 0, 0},
    {"an mbarrier of another block than the destination",
     INIT EXPECT(4) SYNC "@%q0 st.async.shared::cluster." WAITED ".u32 [%r4], %r11, [%r5];\n" UNTIL SYNC,
     "names an mbarrier object that is not in the destination's block", 0, 0},
    {"a cluster of one block", INIT "@%q0 st.async.shared::cluster." WAITED ".u32 [%r3], %r11, [%r5];\n",
     "in a cluster of one block", 0, 1},
    {"a store to the own block",
     INIT EXPECT(4) SYNC "@%q1 st.async.shared::cluster." WAITED ".u32 [%r3], %r11, [%r5];\n" UNTIL SYNC,
     NULL, 0, 0},
    {"a reduction in the own block",
     INIT EXPECT(4) SYNC "@%q1 red.async.relaxed.cluster.shared::cluster." WAITED
                         ".add.u32 [%r3], %r11, [%r5];\n" UNTIL SYNC,
     "reduces into its own block's shared memory", 0, 0},
    {"a misaligned vector",
     INIT EXPECT(8) SYNC "@%q0 st.async.shared::cluster." WAITED
                         ".v2.u32 [%r4+4], {%r11, %r11}, [%r6];\n" UNTIL SYNC,
     "which is not a multiple of 8", 0, 0},
    {"an undefined value",
     INIT EXPECT(4) SYNC "@%q0 st.async.shared::cluster." WAITED ".b32 [%r4], %x0, [%r6];\n" UNTIL SYNC,
     "uses an uninitialised register as an operand of this", 0, 0},
    {"an mbarrier that no thread has initialised", SYNC SEND SYNC,
     "uses an mbarrier object that is not initialised", 0, 0},
    {"more bytes than are expected",
     INIT EXPECT(4) SYNC SEND "@%q0 st.async.shared::cluster." WAITED
                              ".u32 [%r4+8], %r11, [%r6];\n" UNTIL DELAY SYNC,
     "the phase expects fewer bytes than are copied", 0, 0},
    /* bulk copies from shared memory */
    {"a copy inside of a block",
     INIT EXPECT(128) SYNC "@%q1 cp.async.bulk.shared::cluster.shared::cta." WAITED
                           " [%r3], [%r7], 128, [%r5];\n" UNTIL SYNC,
     "the destination must be in another block", 0, 0},
    {"", INIT EXPECT(128) SYNC COPY UNTIL LOAD SYNC, NULL, 0, 0},
    {"the source is overwritten too early",
     INIT EXPECT(128) SYNC COPY "@%q0 st.shared.u32 [%r7], 1;\n" UNTIL SYNC, "races: ", 0, 0},
    {"", INIT EXPECT(128) SYNC COPY UNTIL SYNC "@%q0 st.shared.u32 [%r7], 1;\n", NULL, 0, 0},
    {"the source is written in the other proxy",
     INIT EXPECT(128) SYNC "@%q0 st.shared.u32 [%r7], 1;\n" COPY UNTIL SYNC,
     "with no fence.proxy.async between the two", 0, 0},
    {"", INIT EXPECT(128) SYNC "@%q0 st.shared.u32 [%r7], 1;\nfence.proxy.async;\n" COPY UNTIL SYNC, NULL, 0,
     0},
    {"",
     INIT EXPECT(128) SYNC
     "@%q0 st.shared.u32 [%r7], 1;\n"
     "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n" COPY UNTIL
     "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n" SYNC,
     NULL, 0, 0},
    {"a destination in the own block by its mbarrier",
     INIT EXPECT(128) SYNC "@%q0 cp.async.bulk.shared::cluster.shared::cta." WAITED
                           " [%r4], [%r7], 128, [%r5];\n" UNTIL SYNC,
     "names an mbarrier object that is not in the destination's block", 0, 0},
    {"a copy that crosses the end of the other block's memory",
     INIT EXPECT(128) SYNC "@%q0 cp.async.bulk.shared::cluster.shared::cta." WAITED
                           " [%r4+4096], [%r7], 128, [%r6];\n" UNTIL SYNC,
     "of .shared::cluster memory, which ends at", 0, 0},
    /* multicast */
    {"a multicast to a block that the cluster does not have",
     INIT ALL_EXPECT SYNC "mov.u16 %h0, 5;\n" MULTI ALL_WAIT SYNC, "but its cluster has only 2 blocks", 0, 0},
    {"", INIT ALL_EXPECT SYNC MULTI ALL_WAIT "ld.shared.u32 %r13, [%r3];\n" SYNC, NULL, 0, 0},
    {"a multicast to a block that has ended", INIT SYNC "setp.eq.u32 %q5, %r1, 1; @%q5 exit;\n" DELAY MULTI,
     "which has ended", 0, 0},
    {"a block does not wait for what is multicast to it",
     INIT ALL_EXPECT SYNC MULTI "setp.eq.u32 %q5, %r1, 1; @%q5 bra END;\n" ALL_WAIT
                                "END:\n" SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC SYNC,
     "the destination's block ends before any thread has seen", 0, 0},
    {"a block reads what is multicast to it too early",
     INIT ALL_EXPECT SYNC MULTI "@%q1 ld.shared.u32 %r13, [%r3];\n" ALL_WAIT SYNC, "races: ", 0, 0},
    {"a multicast to a block that may not have started",
     INIT "bar.sync 0; mov.u16 %h0, 1;\n@%q0 mbarrier.arrive.expect_tx.shared.b64 _, [b], 128;\n"
          "@%q1 cp.async.bulk.shared::cluster.global." WAITED
          ".multicast::cluster [%r3], [%p0], 128, [%r5], %h0;\n"
          "setp.eq.u32 %q5, %r1, 1; @%q5 bra END;\n" ALL_WAIT "END:\n" SYNC,
     "may not have started", 0, 0},
};

enum { RULES = sizeof rules / sizeof *rules };

static void test_rules(void **state)
{
    (void)state;
    check_rules(header, "", PROLOGUE, rules, RULES);
}

static void test_ptxas(void **state)
{
    (void)state;
    check_ptxas(header, "", PROLOGUE, rules, RULES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stores),        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_shared_copies), cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_rules),         cmocka_unit_test(test_ptxas),
    };
    setenv("KILN_EMU_CHECK", "all,same", 1);
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
