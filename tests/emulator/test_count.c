/* Counters on kernels whose counts are known by hand; tools/emulator/count.h has the definitions. */
#include "emu_test.h"

#define HEAD                                                                                                 \
    ".reg .u64 %p<4>; .reg .u32 %r<8>; .reg .f32 %f<4>; .reg .pred %q<2>;\n"                                 \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x; mad.wide.u32 %p2, %r0, 4, %p0;\n"
enum { HEAD_INSTRUCTIONS = 4 };

static char path[] = "/tmp/kiln_count_XXXXXX";
static char report[65536];

/* The report of one launch of the body by `threads` threads on two buffers of 4096 bytes. */
static void count(const char *body, unsigned grid, unsigned threads)
{
    CUfunction f = kernel_of(NULL, body);
    CUdeviceptr p0 = device_bytes(4096, NULL), p1 = device_bytes(4096, NULL);
    setenv("KILN_EMU_REPORT", path, 1);
    assert_int_equal(launch(f, grid, threads, p0, p1, threads), CUDA_SUCCESS);
    unsetenv("KILN_EMU_REPORT");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(report, sizeof report, file)) /* the last line stays */
        ;
    fclose(file);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
}

/* The number behind the names, found one after the other: "shared", "read", "wavefronts". */
static long number(const char *a, const char *b, const char *c)
{
    const char *names[] = {a, b, c}, *at = report;
    for (int i = 0; i < 3; i++) {
        char quoted[64];
        if (!names[i])
            continue;
        snprintf(quoted, sizeof quoted, "\"%s\":", names[i]);
        at = strstr(at, quoted);
        if (!at)
            fail_msg("no %s in %s", quoted, report);
        at += strlen(quoted);
    }
    return strtol(at, NULL, 10);
}

static void test_instructions(void **state)
{
    (void)state;
    count(HEAD
          "add.u32 %r1, %r0, 1; cvt.rn.f32.u32 %f0, %r1; fma.rn.f32 %f0, %f0, %f0, %f0; rcp.approx.f32 %f1, "
          "%f0;\nret;",
          3, 48); /* a warp of 32 and one of 16 lanes in each of 3 blocks */
    assert_int_equal(number("thread_instructions", NULL, NULL), 3 * 48 * (HEAD_INSTRUCTIONS + 5));
    assert_int_equal(number("warp_instructions", NULL, NULL), 3 * 2 * (HEAD_INSTRUCTIONS + 5));
    assert_int_equal(number("integer", "thread", NULL), 3 * 48 * 2);
    assert_int_equal(number("float", "thread", NULL), 3 * 48);
    assert_int_equal(number("conversion", "warp", NULL), 3 * 2);
    assert_int_equal(number("special", "warp", NULL), 3 * 2);
    assert_int_equal(number("move", "thread", NULL), 3 * 48);
    assert_int_equal(number("param", "thread", NULL), 3 * 48 * 2);
    assert_int_equal(number("control", "thread", NULL), 3 * 48);
}

static void test_guards_and_branches(void **state)
{
    (void)state;
    count(
        HEAD
        "setp.lt.u32 %q0, %r0, 8; @%q0 add.u32 %r1, %r0, 1; @%q0 bra DONE; add.u32 %r1, %r0, 2;\nDONE: ret;",
        1, 32);
    /* 6 for all lanes with the set and the ret, 8 lanes add, 8 branch, 24 add; the other lanes are slots twice */
    assert_int_equal(number("thread_instructions", NULL, NULL), 32 * 6 + 8 + 8 + 24);
    assert_int_equal(number("lane_slots", NULL, NULL), 32 * 8 + 24);
    assert_int_equal(number("warp_instructions", NULL, NULL), 9);
    assert_int_equal(number("branches", "warp", NULL), 1);
    assert_int_equal(number("branches", "divergent", NULL), 1);
    count(HEAD "setp.lt.u32 %q0, %r0, 32; @%q0 bra DONE; add.u32 %r1, %r0, 2;\nDONE: ret;", 1, 64);
    assert_int_equal(number("branches", "warp", NULL), 2);
    assert_int_equal(number("branches", "divergent", NULL), 0);
    count(HEAD "bra AGAIN;\nAGAIN: setp.lt.u32 %q0, %r0, 8; and.b32 %r1, %r0, 1; ts: .branchtargets A, B;\n"
               "brx.idx %r1, ts;\nA: ret;\nB: ret;",
          1, 32);
    assert_int_equal(number("branches", "warp", NULL), 2);
    assert_int_equal(number("branches", "divergent", NULL), 1);
}

/* Lanes that come to a shuffle or barrier apart are counted there once, when they go on together. */
static void test_waits(void **state)
{
    (void)state;
    count(HEAD "setp.lt.u32 %q0, %r0, 8; @%q0 bra DONE; add.u32 %r1, %r0, 2;\nDONE: shfl.sync.idx.b32 %r2, "
               "%r0, 0, 31, "
               "-1;\nbar.sync 0; ret;",
          1, 64);
    assert_int_equal(number("barriers", "thread", NULL), 64);
    assert_int_equal(number("barriers", "warp", NULL), 2);
    assert_int_equal(number("warp\":{\"thread", NULL, NULL), 64);
}

static void test_sectors(void **state)
{
    (void)state;
    count(HEAD "ld.global.u32 %r1, [%p2]; st.global.u8 [%p2], %r1; ret;", 1, 32); /* 128 bytes: 4 sectors */
    assert_int_equal(number("allocations", "read", "sectors"), 4);
    assert_int_equal(number("allocations", "read", "bytes_used"), 128);
    assert_int_equal(number("allocations", "write", "sectors"), 4);
    assert_int_equal(number("allocations", "write", "bytes_used"), 32);
    /* a stride of 64 bytes: a sector per lane; the same again: as many requested, no new ones */
    count(HEAD "mad.wide.u32 %p3, %r0, 64, %p0; ld.global.u32 %r1, [%p3]; ld.global.u32 %r2, [%p3+8]; ret;",
          1, 32);
    assert_int_equal(number("allocations", "read", "requests"), 2);
    assert_int_equal(number("allocations", "read", "sectors"), 64);
    assert_int_equal(number("allocations", "read", "distinct_sectors"), 32);
    assert_int_equal(number("allocations", "read", "bytes"), 256);
    /* all lanes read one word, and add to another one */
    count(HEAD "ld.global.u32 %r1, [%p0]; red.global.add.u32 [%p0+64], %r0; ret;", 2, 64);
    assert_int_equal(number("allocations", "read", "requests"), 4);
    assert_int_equal(number("allocations", "read", "sectors"), 4);
    assert_int_equal(number("allocations", "read", "bytes"), 4 * 128);
    assert_int_equal(number("allocations", "read", "bytes_used"), 4 * 4);
    assert_int_equal(number("allocations", "read", "distinct_sectors"), 1);
    assert_int_equal(number("allocations", "atomic", "requests"), 4);
    assert_int_equal(number("allocations", "atomic", "bytes"), 4 * 128);
    /* one request to two allocations is one to each */
    count(HEAD "setp.lt.u32 %q0, %r0, 8; selp.u64 %p3, %p0, %p1, %q0; ld.global.u32 %r1, [%p3]; ret;", 1, 32);
    assert_int_equal(number("allocations", "read", "bytes"), 32);
    assert_int_equal(number("parameters\":[1],\"read\":{\"requests", NULL, NULL), 1);
}

static void test_wavefronts(void **state)
{
    static const struct {
        const char *access;
        long wavefronts, ideal;
    } rows[] = {
        {"ld.shared.u32 %r2, [%r1];", 1, 1},                                        /* a word per bank */
        {"mul.lo.u32 %r1, %r0, 8; ld.shared.u32 %r2, [%r1+1024];", 2, 1},           /* every other bank */
        {"mul.lo.u32 %r1, %r0, 128; ld.shared.u32 %r2, [%r1+1024];", 32, 1},        /* one bank */
        {"mul.lo.u32 %r1, %r0, 132; ld.shared.u32 %r2, [%r1+1024];", 1, 1},         /* padded */
        {"ld.shared.u32 %r2, [1024];", 1, 1},                                       /* one word for all */
        {"mul.lo.u32 %r1, %r0, 8; ld.shared.v2.u32 {%r2, %r3}, [%r1+1024];", 2, 2}, /* 256 bytes */
        {"mul.lo.u32 %r1, %r0, 16; ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+1024];", 4, 4},
        {"mul.lo.u32 %r1, %r0, 32; ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+1024];", 8, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[1024];
        snprintf(body, sizeof body, "%s%s st.global.u32 [%%p2], %%r2; ret;",
                 HEAD ".shared .align 16 .b8 s[8192]; mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1;\n",
                 rows[i].access);
        count(body, 1, 32);
        assert_int_equal(number("shared\":{\"read", "wavefronts", NULL), rows[i].wavefronts);
        assert_int_equal(number("shared\":{\"read", "ideal_wavefronts", NULL), rows[i].ideal);
    }
    count(HEAD ".shared .b32 s[64]; red.shared.add.u32 [s], 1; st.shared.u32 [s], %r0; ret;", 1, 32);
    assert_int_equal(number("shared\":{\"read", "atomic", "wavefronts"), 32);
    assert_int_equal(number("shared\":{\"read", "write", "wavefronts"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions), cmocka_unit_test(test_guards_and_branches),
        cmocka_unit_test(test_waits),        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_wavefronts),
    };
    int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    int failed = cmocka_run_group_tests(tests, begin_context, end_context);
    unlink(path);
    return failed;
}
