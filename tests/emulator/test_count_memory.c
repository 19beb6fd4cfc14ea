/* Counters of memory accesses, on kernels whose counts are known. */
#include "count_test.h"

/* Sectors of 32 bytes, and the bytes used of them; p0 and p1 are aligned to 256 bytes. */
static void test_sectors(void **state)
{
    static const count_case cases[] = {
        {"ld.global.u32 %r1, [%p2]; st.global.u8 [%p2], %r1;", 1, 32,
         "p0.read.requests=1 p0.read.sectors=4 p0.read.distinct_sectors=4 p0.read.bytes=128 "
         "p0.read.bytes_used=128 "
         "p0.write.sectors=4 p0.write.bytes_used=32 p1.read.requests=0"},
        /* 128 bytes that begin 4 bytes into a sector touch a fifth sector */
        {"ld.global.u32 %r1, [%p2+4];", 1, 32, "p0.read.sectors=5 p0.read.bytes_used=128"},
        {"mad.wide.u32 %p3, %r0, 1, %p0; ld.global.u8 %r1, [%p3];", 1, 32,
         "p0.read.sectors=1 p0.read.bytes_used=32"},
        {"mad.wide.u32 %p3, %r0, 1, %p0; ld.global.u8 %r1, [%p3+16];", 1, 32,
         "p0.read.sectors=2 p0.read.bytes_used=32"},
        {"mad.wide.u32 %p3, %r0, 8, %p0; ld.global.v2.f32 {%f0, %f1}, [%p3];", 1, 32,
         "p0.read.requests=1 p0.read.sectors=8 p0.read.bytes=256"},
        {"mad.wide.u32 %p3, %r0, 8, %p0; ld.global.f64 %d0, [%p3];", 1, 32,
         "p0.read.sectors=8 p0.read.bytes=256"},
        {"mad.wide.u32 %p3, %r0, 16, %p0; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%p3];", 1, 32,
         "p0.read.requests=1 p0.read.sectors=16 p0.read.bytes=512 p0.read.bytes_used=512"},
        {"mad.wide.u32 %p3, %r0, 16, %p0; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%p3+16];", 1, 32,
         "p0.read.sectors=17 p0.read.bytes_used=512"},
        /* half of each sector */
        {"mad.wide.u32 %p3, %r0, 32, %p0; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%p3];", 1, 32,
         "p0.read.sectors=32 p0.read.bytes_used=512"},
        /* a stride of 64 bytes: a sector per lane; the second load requests the same sectors again */
        {"mad.wide.u32 %p3, %r0, 64, %p0; ld.global.u32 %r1, [%p3]; ld.global.u32 %r2, [%p3+8];", 1, 32,
         "p0.read.requests=2 p0.read.sectors=64 p0.read.distinct_sectors=32 p0.read.bytes=256"},
        /* lanes in reverse order; lanes that overlap by half */
        {"sub.u32 %r1, 31, %r0; mad.wide.u32 %p3, %r1, 4, %p0; ld.global.u32 %r1, [%p3];", 1, 32,
         "p0.read.sectors=4 p0.read.bytes_used=128"},
        {"shr.u32 %r1, %r0, 1; mad.wide.u32 %p3, %r1, 8, %p0; ld.global.u64 %p4, [%p3];", 1, 32,
         "p0.read.sectors=4 p0.read.bytes=256 p0.read.bytes_used=128"},
        /* all lanes of 4 warps read one word, and add to another one */
        {"ld.global.u32 %r1, [%p0]; red.global.add.u32 [%p0+64], %r0; atom.global.exch.b32 %r1, [%p1], %r0;",
         2, 64,
         "p0.read.requests=4 p0.read.sectors=4 p0.read.distinct_sectors=1 p0.read.bytes=512 "
         "p0.read.bytes_used=16 "
         "p0.atomic.requests=4 p0.atomic.bytes=512 p0.atomic.sectors=4 p0.write.requests=0 "
         "p1.atomic.requests=4 "
         "p1.read.requests=0"},
        /* guards: 8 lanes read; none reads */
        {"setp.lt.u32 %q0, %r0, 8; @%q0 ld.global.u32 %r1, [%p2]; setp.gt.u32 %q0, %r0, 99; @%q0 "
         "ld.global.u32 %r1, "
         "[%p1];",
         1, 32, "p0.read.requests=1 p0.read.sectors=1 p0.read.bytes=32 p1.read.requests=0"},
        /* a request to two allocations counts as one to each */
        {"setp.lt.u32 %q0, %r0, 8; selp.u64 %p3, %p0, %p1, %q0; ld.global.u32 %r1, [%p3];", 1, 32,
         "p0.read.requests=1 p0.read.bytes=32 p0.read.bytes_used=4 p1.read.requests=1 p1.read.bytes=96"},
        /* after a branch, each side makes a request; each block makes its own */
        {"setp.lt.u32 %q0, %r0, 16; @%q0 bra A; ld.global.u32 %r1, [%p2]; bra END;\nA: ld.global.u32 %r1, "
         "[%p2];\nEND:",
         5, 32, "p0.read.requests=10 p0.read.sectors=20 p0.read.distinct_sectors=4"},
        /* a generic address counts for its allocation; so does a table of the module */
        {"ld.u32 %r1, [%p2]; st.u32 [%p2], %r1;", 1, 32, "p0.read.sectors=4 p0.write.sectors=4"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* 32 banks of 4 bytes; s is aligned to 1024 bytes, %r1 points to it, %r2 = 4 * lane. */
static void test_wavefronts(void **state)
{
#define S                     ".shared .align 1024 .b8 s[8192]; mov.u32 %r1, s;\n"
#define AT_(stride)           S "mad.lo.u32 %r2, %r0, " #stride ", %r1;\n"
#define V2                    "ld.shared.v2.u32 {%r3, %r4}, [%r2];"
#define V4                    "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"
#define IS(wavefronts, ideal) "shared.read.wavefronts=" #wavefronts " shared.read.ideal_wavefronts=" #ideal
    static const count_case cases[] = {
        {AT_(4) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(1, 1) " shared.read.requests=1 shared.read.bytes=128"},
        {AT_(8) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(2, 1)}, /* 2 words per bank, 4, ... */
        {AT_(16) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(4, 1)},
        {AT_(32) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(8, 1)},
        {AT_(64) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(16, 1)},
        {AT_(128) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(32, 1)},
        {AT_(132) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(1, 1)}, /* padded */
        {AT_(12) "ld.shared.u32 %r3, [%r2];", 1, 32, IS(1, 1)},  /* an odd number of words */
        {S "ld.shared.u32 %r3, [%r1+64];", 1, 32, IS(1, 1)},     /* all lanes read one word */
        {AT_(1) "ld.shared.u8 %r3, [%r2];", 1, 32, IS(1, 1)},    /* lanes share words */
        {AT_(2) "ld.shared.u16 %h0, [%r2];", 1, 32, IS(1, 1)},
        {AT_(128) "setp.lt.u32 %q0, %r0, 3; @%q0 ld.shared.u32 %r3, [%r2];", 1, 32,
         IS(3, 1)},                                            /* the other lanes are inactive */
        {AT_(8) "ld.shared.u64 %p3, [%r2];", 1, 32, IS(2, 2)}, /* 256 bytes: two parts */
        {AT_(16) "ld.shared.u64 %p3, [%r2];", 1, 32, IS(4, 2)},
        {AT_(128) "ld.shared.u64 %p3, [%r2];", 1, 32, IS(32, 2)},
        {AT_(8) V2, 1, 32, IS(2, 2) " shared.read.requests=1 shared.read.bytes=256"},
        {AT_(8) "setp.lt.u32 %q0, %r0, 16; @%q0 " V2, 1, 32, IS(1, 1)},
        {S "ld.shared.u64 %p3, [%r1+64];", 1, 32, IS(2, 2)},
        {AT_(16) V4, 1, 32, IS(4, 4) " shared.read.bytes=512"},
        {AT_(32) V4, 1, 32, IS(8, 4)},
        {AT_(128) V4, 1, 32, IS(32, 4)},
        {AT_(144) V4, 1, 32, IS(4, 4)}, /* padded by 16 bytes */
        {AT_(4) "st.shared.u32 [%r2], %r0; st.shared.u32 [%r1], %r0;", 2, 64,
         "shared.write.requests=8 shared.write.wavefronts=8 shared.read.requests=0"},
        {AT_(8) "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};", 1, 32, "shared.write.wavefronts=4"},
        /* atomics to one word are serialised */
        {AT_(4) "red.shared.add.u32 [%r1], 1;", 1, 32,
         "shared.atomic.requests=1 shared.atomic.wavefronts=32"},
        {AT_(4) "atom.shared.add.u32 %r3, [%r2], 1;", 1, 32,
         "shared.atomic.wavefronts=1 shared.read.requests=0 shared.write.requests=0"},
        {AT_(8) "atom.shared.add.u32 %r3, [%r2], 1;", 1, 32, "shared.atomic.wavefronts=2"},
        {S "mbarrier.init.shared.b64 [%r1], 32; mbarrier.arrive.shared.b64 %p3, [%r1];", 1, 1,
         "shared.atomic.requests=2 shared.atomic.bytes=16 shared.write.requests=0"},
        /* by generic addresses */
        {S "cvta.shared.u64 %p3, s; mad.wide.u32 %p3, %r0, 8, %p3; ld.u32 %r3, [%p3];", 1, 32, IS(2, 1)},
    };
    (void)state;
    RUN_CASES(cases);
}

/* Each matrix is a part of 8 lanes, whose rows have 16 bytes. */
static void test_matrices(void **state)
{
#define X1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];"
#define X2 "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r2];"
#define X4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];"
    static const count_case cases[] = {
        {AT_(16) X1, 1, 32, IS(1, 1) " shared.read.requests=1 shared.read.bytes=128"},
        {AT_(16) X2, 1, 32, IS(2, 2) " shared.read.bytes=256"},
        {AT_(16) X4, 1, 32, IS(4, 4) " shared.read.bytes=512"},
        {AT_(128) X1, 1, 32, IS(8, 1)}, /* all rows in the same four banks */
        {AT_(128) X4, 1, 32, IS(32, 4)},
        {AT_(32) X4, 1, 32, IS(8, 4)},
        {AT_(144) X4, 1, 32, IS(4, 4)},
        {AT_(16) "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];", 1, 32,
         IS(4, 4)},
        {AT_(64) "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r2], {%r0, %r0};", 1, 32,
         "shared.write.requests=1 shared.write.bytes=256 shared.write.wavefronts=8 "
         "shared.write.ideal_wavefronts=2"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* Before sm_80 all lanes need a valid address; only the first rows are read. */
static void test_matrices_sm_75(void **state)
{
    CUcontext context;
    (void)state;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 1), CUDA_SUCCESS);
    count_for(".version 6.5\n.target sm_75", AT_(16) X1, 1, 32);
    expect_from(report, IS(1, 1) " shared.read.requests=1 shared.read.bytes=128", X1);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(test_context), CUDA_SUCCESS);
}

/* cp.async: one request to its source and one to shared memory, which gets cp-size bytes even if fewer are read. */
static void test_copies(void **state)
{
#define COPY(modifier, sizes) "cp.async." modifier ".shared.global [%r2], [%p3], " sizes ";"
#define FROM(stride)          "mad.wide.u32 %p3, %r0, " #stride ", %p0;\n"
#define SHARED_512            "shared.write.requests=1 shared.write.bytes=512 shared.write.wavefronts=4"
    static const count_case cases[] = {
        {AT_(16) FROM(16) COPY("cg", "16"), 1, 32,
         SHARED_512 " p0.read.requests=1 p0.read.sectors=16 p0.read.bytes=512 p0.read.bytes_used=512"},
        {AT_(4) FROM(4) COPY("ca", "4"), 1, 32,
         "shared.write.bytes=128 shared.write.wavefronts=1 p0.read.sectors=4 p0.read.bytes=128"},
        {AT_(128) FROM(16) COPY("cg", "16"), 1, 32, "shared.write.wavefronts=32 p0.read.sectors=32"},
        {AT_(16) FROM(32) COPY("ca", "16, 8"), 1, 32,
         SHARED_512 " p0.read.requests=1 p0.read.sectors=32 p0.read.bytes=256 p0.read.bytes_used=256"},
        /* 8 lanes read 16 bytes, 8 read 4, 16 read nothing */
        {AT_(16) FROM(
             16) "setp.lt.u32 %q0, %r0, 8; selp.u32 %r3, 16, 4, %q0; setp.lt.u32 %q0, %r0, 16; selp.u32 %r3, "
                 "%r3, 0, %q0; " COPY("ca", "16, %r3"),
         1, 32, SHARED_512 " p0.read.requests=2 p0.read.sectors=8 p0.read.bytes=160 p0.read.bytes_used=160"},
        {AT_(16) FROM(16) COPY("cg", "16, 0"), 1, 32, SHARED_512 " p0.read.requests=0"},
        {AT_(16) FROM(16) "setp.lt.u32 %q0, %r0, 2; @%q0 " COPY("cg", "16"), 1, 32,
         "shared.write.bytes=32 shared.write.wavefronts=1 p0.read.sectors=1 classes.global.thread=2"},
        {AT_(16) FROM(16) COPY("cg", "16") " cp.async.commit_group; cp.async.wait_group 0;", 4, 64,
         "shared.write.requests=8 p0.read.sectors=128 p0.read.distinct_sectors=32 classes.control.warp=24"},
        /* in bulk: thread 0 loads 48 bytes from the middle of a sector, waits, stores 256 bytes and reduces 16 */
        {".shared .align 128 .b8 s[1024]; .shared .b64 bar; mov.u32 %r1, s; setp.ne.u32 %q0, %r0, 0; @%q0 ret;\n"
         "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%p0+16], 48, [bar];\n"
         "W: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra W;\n"
         "cp.async.bulk.global.shared::cta.bulk_group [%p1], [%r1], 256;\n"
         "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p1+1024], [%r1], 16;\n"
         "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
         2, 32,
         "waits.passed=2 waits.groups=2 wavefronts.bulk=8 bulk.load.copies=2 bulk.load.global_bytes=96 bulk.load.shared_bytes=96 "
         "bulk.store.copies=2 bulk.store.global_bytes=512 bulk.store.shared_bytes=512 bulk.reduction.copies=2 "
         "bulk.reduction.global_bytes=32 p0.read.requests=2 p0.read.bytes=96 p0.read.sectors=4 "
         "p0.read.distinct_sectors=2 p1.write.requests=2 p1.write.bytes=512 p1.write.sectors=16 p1.atomic.bytes=32 "
         "p1.atomic.sectors=2 shared.read.wavefronts=6 shared.write.bytes=96 shared.write.wavefronts=2"},
        /* four tests of an mbarrier, of which the last one sees the end of the phase */
        {".shared .align 128 .b8 s[1024]; .shared .b64 bar; mov.u32 %r1, s; setp.ne.u32 %q0, %r0, 0; @%q0 ret;\n"
         "mbarrier.init.shared.b64 [bar], 1; cp.async.bulk.global.shared::cta.bulk_group [%p1], [%r1], 64; mov.u32 %r2, 0;\n"
         "T: mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0; add.u32 %r2, %r2, 1; setp.lt.u32 %q0, %r2, 3; @%q0 bra T;\n"
         "mbarrier.arrive.shared.b64 _, [bar]; mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0;\n"
         "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
         1, 32, "waits.tests=4 waits.passed=1 waits.groups=1"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* A sector whose halves go to different 32 bytes of shared memory counts twice. */
static void test_split_sectors(void **state)
{
    /* the first two lanes copy the halves of a sector to s plus %r2 */
#define HALVES FROM(16) "setp.lt.u32 %q0, %r0, 2; @%q0 " COPY("cg", "16")
    static const count_case cases[] = {
        {AT_(16) HALVES, 1, 32, "p0.read.sectors=1 p0.read.bytes_used=32"},
        {AT_(16) "xor.b32 %r2, %r2, 16;" HALVES, 1, 32, "p0.read.sectors=1"},
        {AT_(16) "add.u32 %r2, %r2, 16;" HALVES, 1, 32,
         "p0.read.sectors=2 p0.read.distinct_sectors=1 p0.read.bytes_used=32"},
        {AT_(128) HALVES, 1, 32, "p0.read.sectors=2"},
        /* 32-byte rows with a stride of 48: every other row is split */
        {AT_(16) "shr.u32 %r3, %r0, 1; mad.lo.u32 %r2, %r3, 16, %r2;" FROM(16) COPY("ca", "16"), 1, 32,
         "p0.read.sectors=24 p0.read.distinct_sectors=16 p0.read.bytes_used=512"},
        /* the same half to two places; smaller copies */
        {AT_(32) "mad.wide.u32 %p3, %r0, 0, %p0;" COPY("cg", "16"), 1, 32, "p0.read.sectors=32"},
        {AT_(32) FROM(8) COPY("ca", "8"), 1, 32, "p0.read.sectors=8"},
        {AT_(32) FROM(4) COPY("ca", "4"), 1, 32, "p0.read.sectors=4"},
        /* a load has no destination in memory */
        {FROM(16) "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%p3];", 1, 32, "p0.read.sectors=16"},
    };
    (void)state;
    RUN_CASES(cases);
}

static void test_local(void **state)
{
    static const count_case cases[] = {
        {".local .align 16 .b8 l[64];\nst.local.u32 [l], %r0; st.local.v4.u32 [l+16], {%r0, %r0, %r0, %r0}; "
         "ld.local.u64 %p3, [l+16];",
         2, 48,
         "shared.atomic.local.read.requests=4 shared.atomic.local.read.bytes=768 "
         "shared.atomic.local.write.requests=8 shared.atomic.local.write.bytes=1920 "
         "classes.local.thread=288 p0.read.requests=0"},
        {".local .align 16 .b8 l[64];\nsetp.eq.u32 %q0, %r0, 3; @%q0 st.local.u32 [l], %r0;", 1, 32,
         "shared.atomic.local.write.requests=1 shared.atomic.local.write.bytes=4 "
         "shared.atomic.local.read.requests=0"},
    };
    (void)state;
    RUN_CASES(cases);
}

/* Tables of the module are allocations that no parameter points to. */
static void test_tables(void **state)
{
    (void)state;
    static const char text[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n.const .b32 c[64]; .global .align 32 .b32 g[64];\n"
        ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n)\n{\n" HEAD
        "ld.const.u32 %r1, [c+128]; mov.u64 %p3, g; mad.wide.u32 %p3, %r0, 4, %p3; ld.global.u32 %r1, [%p3]; "
        "ret;\n}\n";
    CUmodule module;
    CUfunction f;
    CUdeviceptr p = device_bytes(8, NULL);
    assert_int_equal(load_text(text, &module), CUDA_SUCCESS);
    assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
    setenv("KILN_EMU_REPORT", count_path, 1);
    assert_int_equal(launch(f, 1, 32, p, p, 0), CUDA_SUCCESS);
    unsetenv("KILN_EMU_REPORT");
    FILE *file = fopen(count_path, "r");
    assert_non_null(file);
    while (fgets(report, sizeof report, file))
        ;
    fclose(file);
    const char *global = strstr(report, "\"name\":\"g\"");
    assert_non_null(global);
    expect_from(global, "read.requests=1 read.sectors=4 read.bytes=128", "g");
    expect_from(report, "classes.const.thread=32 classes.global.thread=32", "k");
    assert_contains(report, "\"parameters\":[0,1]");
    cuMemFree_v2(p);
}

int main(void)
{
    setenv("KILN_EMU_DEVICE", "sm_90,sm_75", 1);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sectors),  cmocka_unit_test(test_wavefronts),
        cmocka_unit_test(test_matrices), cmocka_unit_test(test_matrices_sm_75),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_split_sectors),
        cmocka_unit_test(test_local),    cmocka_unit_test(test_tables),
    };
    return run_count_tests(tests, sizeof tests / sizeof *tests);
}
