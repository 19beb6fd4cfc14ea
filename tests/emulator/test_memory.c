/* Memory: accesses out of bounds in every way, their reports, large and generic addresses, atomics. */
#include "emu_test.h"

/* Runs the body in a new context with p0, an allocation of 400 bytes, and p1. Returns the result; the report is in
   `printed`. */
static CUresult run_faulty(const char *body, unsigned threads, CUdeviceptr p1, size_t offset)
{
    CUcontext context;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    CUfunction f = kernel_of(NULL, body);
    CUdeviceptr p0 = device_bytes(400, NULL);
    capture_stderr();
    CUresult r = launch(f, 1, threads, p0 + offset, p1 ? p1 : p0, threads);
    captured_stderr();
    assert_int_equal(cuCtxSynchronize(), r); /* the error is sticky in its context */
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    return r;
}

#define HEAD                                                                                                 \
    ".reg .u64 %p<9>; .reg .u32 %r<9>; .reg .f32 %f<9>; .reg .pred %q<3>; .reg .b16 %h<3>;\n"                \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x; mad.wide.u32 %p2, %r0, 4, %p0;\n"

static void test_past_the_end(void **state)
{
    (void)state;
    assert_int_equal(run_faulty(HEAD "st.global.u32 [%p2], %r0; ret;", 128, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed,
                    "CUDA_ERROR_ILLEGAL_ADDRESS in kernel k\n  in k, line 8: st.global.u32 [%p2], %r0; ret;\n"
                    "  thread (100,0,0) of block (0,0,0) writes 4 bytes at 0x");
    assert_contains(printed, ": 0 bytes past the end of the allocation ");
    assert_contains(printed, "(400 bytes at 0x");
    assert_contains(printed, "and 27 more lanes of its warp");
    assert_int_equal(run_faulty(HEAD "ld.global.u32 %r1, [%p2]; ret;", 1, 0, 398),
                     CUDA_ERROR_MISALIGNED_ADDRESS);
    assert_contains(printed, "reads 4 bytes at 0x");
    assert_contains(printed, "which is not a multiple of 4");
    assert_int_equal(run_faulty(HEAD "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%p2]; ret;", 1, 0, 384),
                     CUDA_SUCCESS);
    assert_int_equal(run_faulty(HEAD "ld.global.v2.u32 {%r1,%r2}, [%p2]; ret;", 1, 0, 4),
                     CUDA_ERROR_MISALIGNED_ADDRESS);
    assert_int_equal(run_faulty(HEAD "ld.global.u8 %r1, [%p0+-1]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(run_faulty(HEAD "ld.global.u8 %r1, [%p0+400]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(run_faulty(HEAD "ld.global.u8 %r1, [%p0+399]; ret;", 1, 0, 0), CUDA_SUCCESS);
}

static void test_null_and_host(void **state)
{
    (void)state;
    int local = 0;
    assert_int_equal(run_faulty(HEAD "mov.u64 %p1, 8; ld.u32 %r1, [%p1]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "a null pointer plus 8");
    assert_int_equal(run_faulty(HEAD "ld.u32 %r1, [%p1]; ret;", 1, (CUdeviceptr)(uintptr_t)&local, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "this is no device address");
}

/* An address that the device may have, but without an allocation before it. */
static void test_far(void **state)
{
    (void)state;
    assert_int_equal(
        run_faulty(HEAD "add.u64 %p0, %p0, 0x20000000000; ld.global.u32 %r1, [%p0]; ret;", 1, 0, 0),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "no allocation is near");
}

static void test_freed(void **state)
{
    (void)state;
    CUdeviceptr p = device_bytes(64, NULL);
    assert_int_equal(cuMemFree_v2(p), CUDA_SUCCESS);
    assert_int_equal(run_faulty(HEAD "ld.global.u32 %r1, [%p1]; ret;", 1, p, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "inside the freed allocation");
}

static void test_windows(void **state)
{
    (void)state;
    assert_int_equal(run_faulty(HEAD ".shared .b32 s[4]; ld.shared.u32 %r1, [s+16]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "of .shared memory, which ends at 0x410");
    assert_int_equal(run_faulty(HEAD ".shared .b8 s[5]; ld.shared.u8 %r1, [s+5]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "of .shared memory, which ends at 0x405");
    /* a 32-bit address wraps, a 64-bit one does not */
    assert_int_equal(
        run_faulty(
            HEAD
            ".shared .b32 s[4]; mov.u32 %r2, s; sub.u32 %r2, %r2, 4096; ld.shared.u32 %r1, [%r2+4096]; ret;",
            1, 0, 0),
        CUDA_SUCCESS);
    /* from sm_90 on, the system reserves the first kilobyte */
    assert_int_equal(
        run_faulty(HEAD ".shared .b32 s[4]; mov.u32 %r2, 0; st.shared.u32 [%r2], %r1; ret;", 1, 0, 0),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "of .shared memory, below its start at 0x400");
    assert_int_equal(
        run_faulty(HEAD ".local .b32 l[4]; mov.u32 %r2, l; st.local.u32 [%r2+16], %r1; ret;", 1, 0, 0),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "of .local memory");
    assert_int_equal(run_faulty(HEAD "mov.u64 %p1, n; ld.param.u32 %r1, [%p1+4]; ret;", 1, 0, 0),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_contains(printed, "of .param memory, which ends at 0x14");
    /* a generic pointer to shared memory is no global address */
    assert_int_equal(
        run_faulty(HEAD ".shared .b32 s[4]; cvta.shared.u64 %p1, s; ld.global.u32 %r1, [%p1]; ret;", 1, 0, 0),
        CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* One generic load whose lanes point to global, shared, local and parameter memory. */
static void test_generic(void **state)
{
    (void)state;
    uint32_t out[4];
    static const char body[] =
        HEAD ".shared .b32 s; .local .b32 l;\n"
             "st.shared.u32 [s], 11; st.local.u32 [l], 22; st.global.u32 [%p0+12], 33; bar.sync 0;\n"
             "cvta.shared.u64 %p3, s; cvta.local.u64 %p4, l; cvta.param.u64 %p5, n; add.u64 %p6, %p0, 12;\n"
             "setp.eq.u32 %q0, %r0, 0; selp.b64 %p7, %p3, %p6, %q0; setp.eq.u32 %q0, %r0, 1; selp.b64 %p7, "
             "%p4, %p7, %q0;\n"
             "setp.eq.u32 %q0, %r0, 2; selp.b64 %p7, %p5, %p7, %q0; ld.u32 %r1, [%p7]; st.global.u32 [%p2], "
             "%r1; ret;";
    run_body(NULL, body, 4, NULL, 0, out, sizeof out);
    assert_memory_equal(out, ((uint32_t[]){11, 22, 4, 33}), sizeof out);
}

/* 64-bit addresses: 16 GB of which almost no page is touched. */
static void test_large(void **state)
{
    (void)state;
    size_t bytes = (size_t)16 << 30;
    CUdeviceptr p;
    assert_int_equal(cuMemAlloc_v2(&p, bytes), CUDA_SUCCESS);
    CUfunction f = kernel_of(
        NULL, HEAD "mov.u64 %p3, 0x3fffffffc; add.u64 %p3, %p3, %p0; st.global.u32 [%p3], 77; ret;");
    assert_int_equal(launch(f, 1, 1, p, p, 1), CUDA_SUCCESS);
    uint32_t last;
    assert_int_equal(cuMemcpyDtoH_v2(&last, p + bytes - 4, 4), CUDA_SUCCESS);
    assert_int_equal(last, 77);
    size_t free_bytes, total;
    assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    assert_true(total - free_bytes >= bytes);
    assert_int_equal(cuMemAlloc_v2(&p, total), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemFree_v2(p), CUDA_SUCCESS);
}

/* Widths: sign and zero extension into wider registers, chopping on store. */
static void test_widths(void **state)
{
    (void)state;
    static const uint8_t in[4] = {0x80, 0xff, 0x7f, 0x01};
    uint64_t out[4];
    static const char body[] =
        ".reg .u64 %p<9>; .reg .s64 %s; .reg .u32 %r<9>; .reg .b32 %w;\n"
        "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1];\n"
        "ld.global.s8 %s, [%p1]; st.global.u64 [%p0], %s; ld.global.u8 %s, [%p1]; st.global.u64 [%p0+8], "
        "%s;\n"
        "ld.global.s16 %w, [%p1]; st.global.u32 [%p0+16], %w; ld.global.u32 %w, [%p1]; st.global.u8 "
        "[%p0+20], %w;\n"
        "st.global.u8 [%p0+21], 0x1ff; st.global.u16 [%p0+22], 0; ld.global.v2.s8 {%r1, %r2}, [%p1+2];\n"
        "st.global.v2.u32 [%p0+24], {%r1, %r2}; ret;";
    run_body(NULL, body, 1, in, sizeof in, out, sizeof out);
    assert_true(out[0] == 0xffffffffffffff80);
    assert_true(out[1] == 0x80);
    assert_true(out[2] == 0x0000ff80ffffff80);
    assert_true(out[3] == 0x000000010000007f);
}

static void test_atomics(void **state)
{
    (void)state;
    enum { WORDS = 16 };
    CUfunction f = kernel_of(
        NULL, HEAD "atom.global.add.u32 %r1, [%p0], 1; red.global.min.s32 [%p0+4], -3; red.global.max.u32 "
                   "[%p0+8], %r0;\n"
                   "atom.global.inc.u32 %r1, [%p0+12], 16; red.global.or.b32 [%p0+16], 6; red.global.xor.b32 "
                   "[%p0+20], 1;\n"
                   "red.global.add.f32 [%p0+24], 0f3f800000; atom.global.dec.u32 %r1, [%p0+28], 5; "
                   "red.global.add.u64 [%p0+32], 2;\n"
                   "mov.b16 %h1, 0x3c00; .reg .b32 %hh; mov.b32 %hh, {%h1,%h1}; red.global.add.noftz.f16x2 "
                   "[%p0+40], %hh;\n"
                   ".reg .f32 %z; mov.f32 %z, 0f3f000000; red.global.add.v2.f32 [%p0+48], {%z, %z};\n"
                   "red.global.v2.f32.add [%p0+48], {%z, %z}; ret;");
    CUdeviceptr p = device_bytes(4 * WORDS, NULL);
    assert_int_equal(launch(f, 4, 64, p, p, 0), CUDA_SUCCESS);
    uint32_t w[WORDS];
    cuMemcpyDtoH_v2(w, p, sizeof w);
    assert_int_equal(w[0], 256);
    assert_int_equal((int)w[1], -3);
    assert_int_equal(w[2], 63);
    assert_int_equal(w[3], 256 % 17);
    assert_int_equal(w[4], 6);
    assert_int_equal(w[5], 0);
    assert_int_equal(w[6], 0x43800000); /* 256.0 */
    assert_int_equal(w[7], 2);          /* 0 -> 5 -> 4 ...: 256 steps of 6 */
    assert_int_equal(w[8], 512);
    assert_int_equal(w[10], 0x5c005c00); /* 256.0 twice */
    assert_int_equal(w[12], 0x43800000);
    assert_int_equal(w[13], 0x43800000);
    cuMemFree_v2(p);
}

/* Static arrays come first; dynamic memory begins after them, at the next multiple of its alignment. */
static void test_shared_layout(void **state)
{
    (void)state;
    CUdeviceptr p = device_bytes(8, NULL);
    for (uint32_t alignment = 16; alignment <= 128; alignment *= 2) {
        char text[1024];
        CUmodule module;
        CUfunction f;
        uint32_t at[2];
        snprintf(text, sizeof text,
                 ".version 8.8\n.target sm_90\n.address_size 64\n.extern .shared .align %u .b8 d[];\n"
                 ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n)\n{\n"
                 ".reg .u64 %%p; .reg .u32 %%r<2>; .shared .align 16 .b8 s[16];\n"
                 "ld.param.u64 %%p, [p0]; mov.u32 %%r0, d; mov.u32 %%r1, s;\n"
                 "st.global.v2.u32 [%%p], {%%r0, %%r1}; ret;\n}\n",
                 alignment);
        assert_int_equal(load_text(text, &module), CUDA_SUCCESS);
        assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
        assert_int_equal(launch(f, 1, 1, p, p, 0), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH_v2(at, p, sizeof at), CUDA_SUCCESS);
        assert_int_equal(at[0], at[1] + alignment);
    }
    cuMemFree_v2(p);
}

/* Vectors of every size, copied by full warps and by 27 lanes; a store does not change the elements of `_`. */
static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *form, *loaded, *stored;
        unsigned bytes, kept; /* words of each element that the store leaves: a bit each */
    } rows[] = {
        {"global.v2.b16", "{%h0, %h1}", "{%h0, %h1}", 4, 0},
        {"global.v4.b16", "{%h0, %h1, %h2, %h3}", "{%h0, %h1, %h2, %h3}", 8, 0},
        {"global.b128", "%x", "%x", 16, 0},
        {"global.v4.b64", "{%d0, %d1, %d2, %d3}", "{%d0, %d1, %d2, %d3}", 32, 0},
        {"global.v8.b32", "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, _}", "{%r1, %r2, %r3, _, %r5, %r6, %r7, _}",
         32, 0x88},
        {"relaxed.gpu.global.v2.b16", "{%h0, %h1}", "{%h0, %h1}", 4, 0},
        {"relaxed.gpu.global.b128", "%x", "%x", 16, 0},
        {"relaxed.gpu.global.v4.b64", "{%d0, %d1, %d2, %d3}", "{%d0, _, %d2, %d3}", 32, 0x0c},
    };
    enum { MOST = 64 * 8 };
    CUcontext context;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 1), CUDA_SUCCESS); /* sm_100 */
    uint32_t in[MOST], out[MOST];
    for (unsigned i = 0; i < MOST; i++)
        in[i] = (uint32_t)random_bits() | 1;
    CUdeviceptr p0 = device_bytes(sizeof out, NULL), p1 = device_bytes(sizeof in, in);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 ".reg .u64 %%p<2>; .reg .b64 %%d<4>; .reg .u32 %%r<8>; .reg .b16 %%h<4>; .reg .b128 %%x;\n"
                 "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r0, %%tid.x;\n"
                 "mad.wide.u32 %%p0, %%r0, %u, %%p0; mad.wide.u32 %%p1, %%r0, %u, %%p1;\n"
                 "ld.%s %s, [%%p1];\nst.%s [%%p0], %s;\nret;",
                 rows[i].bytes, rows[i].bytes, rows[i].form, rows[i].loaded, rows[i].form, rows[i].stored);
        CUfunction f = kernel_of(".version 8.8\n.target sm_100", body);
        assert_int_equal(cuMemsetD32_v2(p0, 0, MOST), CUDA_SUCCESS);
        assert_int_equal(launch(f, 1, 32 + 27, p0, p1, 0), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH_v2(out, p0, sizeof out), CUDA_SUCCESS);
        for (unsigned k = 0; k < MOST; k++) {
            bool is_stored = k < (32 + 27) * rows[i].bytes / 4 && !(rows[i].kept >> k % 8 & 1);
            if (out[k] != (is_stored ? in[k] : 0))
                fail_msg("%s: word %u is %x", rows[i].form, k, out[k]);
        }
    }
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

static int begin_two_devices(void **state)
{
    setenv("KILN_EMU_DEVICE", "sm_90,sm_100", 1);
    return begin_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_past_the_end), cmocka_unit_test(test_null_and_host),
        cmocka_unit_test(test_far),          cmocka_unit_test(test_freed),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_generic),
        cmocka_unit_test(test_large),        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_atomics),      cmocka_unit_test(test_shared_layout),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, begin_two_devices, end_context);
}
