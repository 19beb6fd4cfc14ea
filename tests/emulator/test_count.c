/* Counters of instructions, on kernels whose counts are known. */
#include "count_test.h"

/* Each instruction is executed once by two whole warps. */
static void test_classes(void **state)
{
    static const struct {
        const char *class, *instruction;
    } rows[] = {
        {"integer", "add.u32 %r1, %r0, 1;"},
        {"integer", "mul.hi.u64 %p3, %p0, %p1;"},
        {"integer", "lop3.b32 %r1, %r0, %r0, %r0, 0x96;"},
        {"integer", "shf.l.wrap.b32 %r1, %r0, %r0, 3;"},
        {"integer", "prmt.b32 %r1, %r0, %r0, 0x3210;"},
        {"integer", "dp4a.u32.u32 %r1, %r0, %r0, %r0;"},
        {"integer", "popc.b64 %r1, %p0;"},
        {"integer", "setp.lt.u32 %q0, %r0, 5;"},
        {"integer", "add.u16 %h0, 1, 2;"},
        {"float", "fma.rn.f32 %f0, 0f3F800000, 0f40000000, 0f3F800000;"},
        {"float", "div.rn.f32 %f0, 0f3F800000, 0f40000000;"},
        {"float", "setp.lt.f32 %q0, 0f3F800000, 0f40000000;"},
        {"float", "set.lt.u32.f32 %r1, 0f3F800000, 0f40000000;"},
        {"double", "fma.rn.f64 %d0, 0d3FF0000000000000, 0d3FF0000000000000, 0d3FF0000000000000;"},
        {"double", "sqrt.rn.f64 %d0, 0d3FF0000000000000;"},
        {"double", "setp.lt.f64 %q0, 0d3FF0000000000000, 0d4000000000000000;"},
        {"half", "add.f16 %h0, %h1, %h2;"},
        {"half", "fma.rn.f16x2 %x0, %x1, %x2, %x3;"},
        {"half", "fma.rn.bf16x2 %x0, %x1, %x2, %x3;"},
        {"half", "setp.lt.f16 %q0, %h1, %h2;"},
        {"conversion", "cvt.rn.f32.u32 %f0, %r0;"},
        {"conversion", "cvt.rn.f16.f32 %h0, 0f3F800000;"},
        {"conversion", "cvt.u64.u32 %p3, %r0;"},
        {"conversion", "cvt.rn.bf16x2.f32 %x1, 0f3F800000, 0f3F800000;"},
        {"special", "ex2.approx.f32 %f0, 0f3F800000;"},
        {"special", "ex2.approx.f16 %h0, %h1;"},
        {"special", "tanh.approx.f32 %f0, 0f3F800000;"},
        {"special", "rcp.approx.f32 %f0, 0f3F800000;"},
        {"special", "sqrt.rn.f32 %f0, 0f3F800000;"},
        {"special", "rsqrt.approx.f32 %f0, 0f3F800000;"},
        {"move", "mov.b64 %p3, %p0;"},
        {"move", "selp.u32 %r1, 1, 2, 1;"},
        {"move", "cvta.to.global.u64 %p3, %p0;"},
        {"global", "ld.global.u32 %r1, [%p2];"},
        {"global", "st.global.u32 [%p2], %r0;"},
        {"global", "red.global.add.u32 [%p0], 1;"},
        {"shared", ".shared .b32 s[64]; st.shared.u32 [s], %r0;"},
        {"shared", ".shared .b32 s[64]; atom.shared.add.u32 %r1, [s], %r0;"},
        {"local", ".local .b32 l[4]; st.local.u32 [l+4], %r0;"},
        {"generic", "ld.u32 %r1, [%p2];"},
        {"control", "bra NEXT;\nNEXT:"},
        {"control", "bar.sync 0;"},
        {"control", "membar.gl;"},
        {"control", "cp.async.commit_group;"},
        {"warp", "shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;"},
        {"warp", "vote.sync.ballot.b32 %r1, 1, -1;"},
        {"warp", "match.any.sync.b32 %r1, %r0, -1;"},
        {"warp", "redux.sync.add.u32 %r1, %r0, -1;"},
        {"warp", "activemask.b32 %r1;"},
        {"warp", "bar.warp.sync -1;"},
        {"warp", "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;"},
        {"tensor", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r0}, {%r0}, {%r0, %r0};"},
    };
    static const struct {
        const char *class;
        long long of_head;
    } classes[] = {{"integer", 1},    {"float", 0},   {"double", 0}, {"half", 0},
                   {"conversion", 0}, {"special", 0}, {"move", 1},   {"global", 0},
                   {"shared", 0},     {"local", 0},   {"const", 0},  {"param", 2},
                   {"generic", 0},    {"control", 1}, {"warp", 0},   {"tensor", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        count(rows[i].instruction, 1, 64);
        expect_from(report, "thread_instructions=384 warp_instructions=12 lane_slots=384",
                    rows[i].instruction);
        for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
            long long n = classes[k].of_head + (strcmp(classes[k].class, rows[i].class) == 0);
            char expected[128];
            snprintf(expected, sizeof expected, "classes.%s.thread=%lld classes.%s.warp=%lld",
                     classes[k].class, 64 * n, classes[k].class, 2 * n);
            expect_from(report, expected, rows[i].instruction);
        }
    }
}

static void test_partial_warps(void **state)
{
    static const count_case cases[] = {
        /* a warp of 32 lanes and one of 16 in each of 3 blocks */
        {"add.u32 %r1, %r0, 1; cvt.rn.f32.u32 %f0, %r1; fma.rn.f32 %f0, %f0, %f0, %f0; rcp.approx.f32 %f1, "
         "%f0;",
         3, 48,
         "thread_instructions=1296 warp_instructions=54 lane_slots=1296 classes.integer.thread=288 "
         "classes.float.thread=144 classes.conversion.warp=6 classes.special.warp=6 "
         "classes.param.thread=288"},
        /* a warp whose guard is false in all lanes issues the instruction, but executes nothing */
        {"setp.gt.u32 %q0, %r0, 31; @%q0 add.f32 %f0, 0f3F800000, 0f3F800000;", 1, 64,
         "classes.float.thread=32 classes.float.warp=2 thread_instructions=416 lane_slots=448"},
        {"setp.lt.u32 %q0, %r0, 5; @!%q0 add.f32 %f0, 0f3F800000, 0f3F800000;", 1, 32,
         "classes.float.thread=27 classes.float.warp=1 thread_instructions=219 lane_slots=224"},
    };
    (void)state;
    RUN_CASES(cases);
}

static void test_branches(void **state)
{
    static const count_case cases[] = {
        /* all lanes execute 6 instructions, with the set and the ret; 8 lanes add, 8 branch, 24 add; false guards take slots */
        {"setp.lt.u32 %q0, %r0, 8; @%q0 add.u32 %r1, %r0, 1; @%q0 bra DONE; add.u32 %r1, %r0, 2;\nDONE:", 1,
         32,
         "thread_instructions=232 lane_slots=280 warp_instructions=9 branches.warp=1 branches.divergent=1"},
        /* each warp goes one way */
        {"setp.lt.u32 %q0, %r0, 32; @%q0 bra DONE; add.u32 %r1, %r0, 2;\nDONE:", 1, 64,
         "branches.warp=2 branches.divergent=0"},
        {"bra AGAIN;\nAGAIN: setp.lt.u32 %q0, %r0, 8; and.b32 %r1, %r0, 1; ts: .branchtargets A, B;\n"
         "brx.idx %r1, ts;\nA: ret;\nB:",
         1, 32, "branches.warp=2 branches.divergent=1"},
        /* lane i iterates i + 1 times: at three of four branches some lanes leave and some stay */
        {"mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1; setp.le.u32 %q0, %r1, %r0; @%q0 bra L;", 1, 4,
         "branches.warp=4 branches.divergent=3 classes.integer.thread=24 classes.control.thread=10 "
         "lane_slots=54 thread_instructions=50"},
        /* two sides that reconverge: the divergent branch separates 16 and 16 lanes; the code after them is one warp
           instruction */
        {"setp.lt.u32 %q0, %r0, 16; @%q0 bra A; add.f32 %f0, 0f3F800000, 0f3F800000; bra END;\nA: mul.f32 "
         "%f0, "
         "0f3F800000, 0f3F800000;\nEND: ex2.approx.f32 %f0, 0f3F800000;",
         1, 32,
         "branches.warp=2 branches.divergent=1 classes.float.warp=2 classes.float.thread=32 "
         "classes.special.warp=1"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* Lanes that reach a shuffle or barrier separately count there once, when they continue together. */
static void test_waits(void **state)
{
    static const count_case cases[] = {
        {"setp.lt.u32 %q0, %r0, 8; @%q0 bra DONE; add.u32 %r1, %r0, 2;\n"
         "DONE: shfl.sync.idx.b32 %r2, %r0, 0, 31, -1;\nbar.sync 0;",
         1, 64, "barriers.thread=64 barriers.warp=2 classes.warp.thread=64 classes.warp.warp=2"},
        {"bar.sync 0; bar.sync 0; barrier.sync 1;", 5, 128,
         "barriers.thread=1920 barriers.warp=60 classes.control.warp=80"},
        /* two warps meet at barrier 1, one of them without waiting; the other two never reach it */
        {"setp.ge.u32 %q0, %r0, 64; @%q0 bra END; setp.lt.u32 %q1, %r0, 32; @%q1 bar.arrive 1, 64; @!%q1 "
         "bar.sync "
         "1, 64;\nEND:",
         1, 128, "barriers.thread=64 barriers.warp=4 branches.divergent=0"},
        {"bar.warp.sync -1; bar.red.popc.u32 %r1, 0, 1;", 1, 64, "barriers.warp=2 classes.warp.warp=2"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* m*n*k for each warp that executes a product; mma.m8n8k4 of f16 multiplies four pairs of matrices. */
static void test_products(void **state)
{
#define F4 "{%f0, %f1, %f2, %f3}"
#define Z  "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
    static const count_case cases[] = {
        {Z "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", {%x0, %x0, %x0, %x0}, {%x0, %x0}, " F4
           ";",
         3, 64, "tensor.products=6 tensor.multiply_adds=12288 classes.tensor.thread=192"},
        {Z "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " F4 ", {%x0, %x0}, {%x0}, " F4 ";", 1, 32,
         "tensor.products=1 tensor.multiply_adds=1024"},
        {Z "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " F4 ", {%x0, %x0, %x0, %x0}, {%x0, %x0}, " F4
           ";",
         1, 32, "tensor.products=1 tensor.multiply_adds=1024"},
        {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r0, %r0, %r0, %r0}, {%r0, "
         "%r0}, {%r0, %r0, %r0, %r0};",
         1, 32, "tensor.products=1 tensor.multiply_adds=4096"},
        {"mov.f64 %d0, 0d0000000000000000;\n"
         "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d0}, {%d0}, {%d0, %d0};",
         1, 32, "tensor.products=1 tensor.multiply_adds=256"},
        {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%x0, %x1, %x2, %x3}, {%x0, %x0}, {%x0, %x0}, "
         "{%x0, %x0, %x0, %x0};",
         1, 32, "tensor.products=1 tensor.multiply_adds=1024"},
        {"mov.u32 %r5, 0;\nL: mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r0}, {%r0}, {%r0, "
         "%r0}; add.u32 %r5, %r5, 1; setp.lt.u32 %q0, %r5, 10; @%q0 bra L;",
         1, 32, "tensor.products=10 tensor.multiply_adds=10240 branches.warp=10 branches.divergent=0"},
        {"add.u32 %r1, %r0, 1;", 1, 32, "tensor.products=0 tensor.multiply_adds=0"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* One row per shape, whatever the operands. */
static void test_shapes(void **state)
{
    (void)state;
    count_for(
        NULL,
        "mov.u32 %r5, 0;\nmma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r0}, {%r0}, {%r0, %r0};\n"
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%r1, %r2}, {%r0}, {%r0}, {%r0, %r0};\n"
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r3, %r2}, {%r1}, {%r0}, {%r0, %r0};",
        3, 32);
    assert_contains(
        report,
        "\"shapes\":[{\"name\":\"mma.m8n8k16.row.col.s32.s8.s8.s32\",\"products\":6,\"multiply_adds\":6144,");
    assert_contains(
        report, "},{\"name\":\"mma.m8n8k16.row.col.s32.s8.u8.s32\",\"products\":3,\"multiply_adds\":3072,");
}

/* Four warps share a product: A has 2048 bytes, the rows of each warp; B has 512 bytes, which count once. The layout
   without a swizzle has no bank conflicts. */
static void test_warpgroup(void **state)
{
    (void)state;
    count_for(
        ".version 8.8\n.target sm_90a",
        ".shared .align 1024 .b8 s[4096]; .reg .b64 %a; mov.u32 %r1, s; cvt.u64.u32 %a, %r1;\n"
        "shr.u64 %a, %a, 4; or.b64 %a, %a, 0x1000080000;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %a, %a, "
        "0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
        2, 128);
    expect_from(
        report,
        "tensor.products=8 tensor.multiply_adds=32768 classes.tensor.thread=256 classes.tensor.warp=8 "
        "shared.read.bytes=5120 shared.read.wavefronts=40 shared.read.ideal_wavefronts=40 "
        "wavefronts.threads=0 wavefronts.products=40 wavefronts.bulk=0",
        "wgmma");
    assert_contains(
        report,
        "\"shapes\":[{\"name\":\"wgmma.m64n16k16.f32.f16.f16\",\"products\":8,\"multiply_adds\":32768,"
        "\"shared\":{\"requests\":");
}

/* Returns the JSON object of the first instruction whose PTX line begins with the text. */
static const char *line_of(const char *text)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"text\":\"%s", text);
    const char *at = strstr(report, quoted);
    if (!at)
        fail_msg("no %s in %s", quoted, strstr(report, "\"lines"));
    while (strncmp(at, "{\"line\":", 8) != 0)
        at--;
    return at;
}

static void test_lines(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"ld.param.u64 %p0", "line=7 thread=128 warp=4 slots=128"},
        {"setp.lt", "line=9 thread=128 warp=4 slots=128"},
        {"@%q0 bra OVER", "line=10 thread=16 warp=4 slots=128 divergent=2"},
        {"ld.global", "line=11 thread=112 warp=4 slots=112 allocations.requests=4 allocations.sectors=14 "
                      "allocations.distinct_sectors=7 allocations.bytes=448 allocations.bytes_used=448"},
        {"OVER: st.shared",
         "line=12 shared.requests=4 shared.bytes=512 shared.wavefronts=8 shared.ideal_wavefronts=4"},
        {"cp.async.ca",
         "line=13 allocations.requests=4 allocations.sectors=16 allocations.distinct_sectors=8 "
         "allocations.bytes=512 shared.requests=4 shared.bytes=512 shared.wavefronts=4"},
        {"st.local", "line=14 local.requests=4 local.bytes=512"},
        {"mma", "line=15 thread=128 warp=4 multiply_adds=4096"},
        {"ret", "line=16 thread=128 warp=4 slots=128"},
    };
    long long threads = 0, warps = 0, slots = 0;
    (void)state;
    setenv("KILN_EMU_REPORT_LINES", "1", 1);
    count(".shared .align 16 .b8 s[1024]; .local .b32 l[4]; mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 8, %r2; "
          "mad.lo.u32 "
          "%r4, %r0, 4, %r2;\n"
          "setp.lt.u32 %q0, %r0, 8;\n"
          "@%q0 bra OVER;\n"
          "ld.global.u32 %r1, [%p2];\n"
          "OVER: st.shared.u32 [%r3], %r0;\n"
          "cp.async.ca.shared.global [%r4], [%p2], 4;\n"
          "st.local.u32 [l+4], %r0;\n"
          "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r5, %r6}, {%r0}, {%r0}, {%r0, %r0};",
          2, 64);
    unsetenv("KILN_EMU_REPORT_LINES");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_from(line_of(rows[i].text), rows[i].expected, rows[i].text);
    for (const char *at = strstr(report, "{\"line\":"); at; at = strstr(at + 1, "{\"line\":")) {
        threads += number_from(at, "thread", 6);
        warps += number_from(at, "warp", 4);
        slots += number_from(at, "slots", 5);
    }
    assert_int_equal(threads, number("thread_instructions"));
    assert_int_equal(warps, number("warp_instructions"));
    assert_int_equal(slots, number("lane_slots"));
    count("", 1, 32);
    assert_null(strstr(report, "\"lines\""));
}

/* Every counter is a sum over blocks. */
static void test_host_threads(void **state)
{
    static const char *const host_threads[] = {"1", "2", "5"};
    static char first[sizeof report];
    const char *saved = getenv("KILN_EMU_THREADS");
    (void)state;
    setenv("KILN_EMU_REPORT_LINES", "1", 1);
    for (size_t i = 0; i < sizeof host_threads / sizeof *host_threads; i++) {
        setenv("KILN_EMU_THREADS", host_threads[i], 1);
        count(".shared .b32 s[64]; mov.u32 %r1, %ctaid.x; and.b32 %r1, %r1, 15; mov.u32 %r2, 0; mov.u32 %r3, "
              "s;\n"
              "mad.lo.u32 %r3, %r0, 4, %r3;\n"
              "L: ld.global.u32 %r4, [%p2]; st.shared.u32 [%r3], %r4; bar.sync 0; red.global.add.u32 [%p1], "
              "1;\n"
              "add.u32 %r2, %r2, 1; setp.le.u32 %q0, %r2, %r1; @%q0 bra L;",
              97, 64);
        /* 97 blocks iterate 6 * 136 + 1 times: six times blocks 0 to 15, and block 0 again */
        expect_from(report,
                    "branches.warp=1634 barriers.thread=52288 p0.read.requests=1634 p0.read.sectors=6536 "
                    "p0.read.distinct_sectors=8 shared.write.wavefronts=1634 p1.atomic.bytes=209152",
                    host_threads[i]);
        for (char *at = report; (at = strstr(at, "\"base\":")); at++) /* addresses may differ */
            memset(at, ' ', strcspn(at, ","));
        const char *counters = strstr(report, "\"thread_instructions\"");
        assert_non_null(counters);
        if (i == 0)
            strcpy(first, counters);
        assert_string_equal(counters, first);
    }
    unsetenv("KILN_EMU_REPORT_LINES");
    if (saved)
        setenv("KILN_EMU_THREADS", saved, 1);
    else
        unsetenv("KILN_EMU_THREADS");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),      cmocka_unit_test(test_partial_warps),
        cmocka_unit_test(test_branches),     cmocka_unit_test(test_waits),
        cmocka_unit_test(test_products),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_warpgroup),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_host_threads),
    };
    return run_count_tests(tests, sizeof tests / sizeof *tests);
}
