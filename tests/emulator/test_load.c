/* Loading: which texts are refused, with which result, and the JIT error log. */
#include "emu_test.h"

typedef struct load_case {
    const char *header; /* NULL: .version 8.8, .target sm_90 */
    const char *body;
    CUresult result;
    const char *message; /* a part of the log */
} load_case;

/* Beside refused.txt: the body starts in line 6. ptxas 13.0 refuses each of these too, and accepts each of the texts below. */
static const load_case refused[] = {
    {NULL, ".reg .u32 %u<9>;\nadd.u32 %u1, %u2, 1.5;", CUDA_ERROR_INVALID_PTX,
     "a floating-point constant cannot be of type .u32"},
    {NULL, ".reg .u16 %h<9>;\nadd.f16 %h1, %h1, %h2;", CUDA_ERROR_INVALID_PTX, "expected .f16"},
    {NULL, ".reg .u32 %u<9>;\nadd.f16x2 %u1, %u1, %u2;", CUDA_ERROR_INVALID_PTX, "expected .f16x2"},
    {NULL, ".reg .b32 %r<9>; .reg .b64 %d<9>;\nshl.b32 %r1, %r2, %d1;", CUDA_ERROR_INVALID_PTX,
     "expected .u32"},
    {NULL, ".reg .b32 %r<9>;\n.reg .b32 %r<4>;", CUDA_ERROR_INVALID_PTX,
     "'%r' is declared twice; first in line 6"},
    {NULL, ".reg .b32 %r1;\n.reg .b32 %r<2>;", CUDA_ERROR_INVALID_PTX,
     "'%r1' is declared twice; first in line 6"},
    {NULL, ".reg .b32 %r<2>;\n.reg .b32 %r1;", CUDA_ERROR_INVALID_PTX,
     "'%r1' is declared twice; first in line 6"},
    {NULL, ".reg .v2 .b32 %t;\nmov.b64 %t, %t;", CUDA_ERROR_INVALID_PTX, "'%t' is a vector; expected .b32"},
    {NULL, "L: ret;\nL: ret;", CUDA_ERROR_INVALID_PTX, "'L' is declared twice; first in line 6"},
    {NULL, ".reg .b32 %q_u32<28>;\nmov.b32 %q_u325, 1;", CUDA_ERROR_INVALID_PTX,
     "'%q_u325' is not a declared register"},
    {NULL, ".reg .u32 %u<9>; .shared .b32 s[4];\nld.global.u32 %u1, [s];", CUDA_ERROR_INVALID_PTX,
     "'s' is in .shared, the instruction accesses .global"},
    {NULL, ".reg .u32 %u<9>; .reg .u64 %d;\nst.const.u32 [%d], %u1;", CUDA_ERROR_INVALID_PTX, "'.const'"},
    {NULL, ".reg .u32 %u<9>; .reg .f32 %f;\ncvt.f32.u32 %f, %u1;", CUDA_ERROR_INVALID_PTX,
     "combination of modifiers"},
    {NULL, ".reg .f32 %f<3>;\ncvt.rn.f32.f32 %f1, %f2;", CUDA_ERROR_INVALID_PTX, "combination of modifiers"},
    {NULL, ".reg .f32 %f<3>;\nfma.f32 %f1, %f2, %f1, %f2;", CUDA_ERROR_INVALID_PTX,
     "'fma' needs one more modifier: rn|rz|rm|rp"},
    {NULL, ".shared .b8 s[50000];\n.reg .b32 %r; mov.u32 %r, s;", CUDA_ERROR_INVALID_PTX,
     "declares 50000 bytes of shared memory; the limit is 49152"},
    {NULL, ".maxntid 128;", CUDA_ERROR_INVALID_PTX, "'.maxntid' is not a directive of function bodies"},
    {NULL, "/* never closed", CUDA_ERROR_INVALID_PTX, "this comment is never closed"},
    {NULL, ".reg .u32 %u;\nmov.u32 %u, 1/0;", CUDA_ERROR_INVALID_PTX,
     "division by zero in a constant expression"},
    {".version 8.8\n.target sm_75", ".reg .b32 %r<9>;\nredux.sync.add.s32 %r1, %r2, %r3;",
     CUDA_ERROR_INVALID_PTX, "'redux' needs .target sm_80"},
    {".version 6.3\n.target sm_75", ".reg .b16 %h<9>;\nabs.f16 %h1, %h2;", CUDA_ERROR_INVALID_PTX,
     "'abs' needs .version 6.5"},
    {".version 6.3\n.target sm_80", "ret;", CUDA_ERROR_INVALID_PTX, ".target sm_80 needs .version 7.0"},
    {".version 3.9\n.target sm_30", "ret;", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "there is no .version 3.9"},
    {".version 6.6\n.target sm_75", "ret;", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "there is no .version 6.6"},
    {".version 9.9\n.target sm_80", "frob;", CUDA_ERROR_INVALID_PTX,
     "note: .version 9.9 is newer than 9.1, whose rules apply\nline 6: error: 'frob' is not"},
    {".version 1.4\n.target sm_10", "ret;", CUDA_ERROR_INVALID_PTX, "'.address_size' needs .version 2.3"},
    {".version 4.0\n.target sm_14", "ret;", CUDA_ERROR_INVALID_PTX, "there is no .target sm_14"},
    {".version 4.0\n.target sm_9", "ret;", CUDA_ERROR_INVALID_PTX, "'sm_9' is not a target"},
    {".version 8.8\n.target sm_100", "ret;", CUDA_ERROR_NO_BINARY_FOR_GPU,
     ".target sm_100 does not run on this device"},
    {".version 8.8\n.target sm_89", "ret;", CUDA_SUCCESS, ""},
    {".version 8.8\n.target sm_90a", "ret;", CUDA_SUCCESS, ""},
    {".version 8.8\n.target sm_91", "ret;", CUDA_ERROR_INVALID_PTX, "there is no .target sm_91"},
    {".version 8.8\n.target sm_100f", "ret;", CUDA_ERROR_NO_BINARY_FOR_GPU, "does not run on this device"},
    {"", "ret;", CUDA_ERROR_INVALID_PTX, "expected '.version'"},
    {".version 8.0\n.target sm_80\n.entry l(.param .b8 a[4353]) { ret; }", "ret;", CUDA_ERROR_INVALID_PTX,
     "line 3: error: the parameters take 4353 bytes; 4352 is the most at .version 8.0"},
    {".version 8.1\n.target sm_80\n.entry l(.param .b8 a[32765]) { ret; }", "ret;", CUDA_ERROR_INVALID_PTX,
     "32764 is the most at .version 8.1"},
};

static const char *const accepted[] = {
    ".reg .b32 a; .reg .f16 a<2>; .reg .b64 b<2>; .reg .pred b; a5: ret; .reg .b32 c05; .reg .b32 c<6>;",
    ".reg .v2 .b64 t; .reg .b128 q; mov.b128 t, q; mov.b128 q, t; .reg .v2 .b8 u; .reg .b16 h; mov.b16 u, h;",
    ".reg .v2 .f32 t; .reg .f64 d; .reg .pred p; @p mov.b64 d, t; @!p mov.b64 t, d; mov.b64 t, %clock64;",
    ".reg .v4 .b32 t<2>; .reg .b32 a; ldmatrix.sync.aligned.m8n8.x4.shared.b16 t1, [a];",
    ".align 8 .shared .b32 s; .align 8 .shared .align 16 .b32 t; .reg .b32; .local .v2 .b32;",
    ".reg .b32 %q<28>; mov.b32 %q03, 1;",
    ".reg .b32 %r<9>; { .reg .b32 %r1; mov.u32 %r1, 1; }",
    ".reg .u32 %u<3>; .reg .s32 %s<3>; .reg .b32 %r<3>; add.u32 %u1, %s2, %r1;",
    ".reg .b32 %r<3>; .reg .f32 %f<3>; add.f32 %r1, %f2, %f1; add.ftz.rn.f32 %f1, %f1, 1.5;",
    ".reg .b32 %r<3>; mov.b32 %r1, 0f3f800000; mov.b32 %r1, WARP_SZ; mov.b32 %r1, (1+2)*3 << 4 | 0b101;",
    ".reg .b64 %d<3>; mov.b64 %d1, 1.0; mov.b64 %d1, -1U; mov.b64 %d1, ~0 ? 017 : 0x1F;",
    ".reg .f32 %f; mov.f32 %f, 0d3ff0000000000000; mov.f32 %f, .5e-3;",
    ".reg .u16 %h; mov.u16 %h, %tid.x; cvt.u16.u32 %h, %tid.x;",
    ".reg .pred %p<4>; .reg .b32 %r<3>; setp.eq.and.s32 %p1|%p2, %r1, %r2, !%p3; selp.b32 %r1, 1, 0, !%p1;",
    ".reg .pred %p<4>; mov.pred %p1, 1; and.pred %p1, %p2, !%p3; not.pred %p1, %p2;",
    ".reg .u64 %d<3>; .reg .u32 %u; ld.param.u64 %d1, [p0]; ld.global.u32 %u, [%d1+-4]; ld.global.u32 %d2, "
    "[%d1+4+4];",
    ".reg .u64 %d; .reg .u32 %u<4>; ld.global.v4.u32 {%u0, %u1, %u2, %u3}, [%d]; st.global.v2.u32 [%d], "
    "{%u1, 1};",
    ".reg .b32 %r; .reg .b16 %h<2>; .reg .b8 %c<2>; mov.b32 %r, {%h0, %h1}; mov.b32 {%h0, _}, %r; mov.b32 "
    "%r, {%c0,%c1,%c0,%c1};",
    ".shared .b32 s[4]; .reg .u32 %u; .reg .u64 %d; mov.u32 %u, s+4; mov.u64 %d, s; cvta.shared.u64 %d, s; "
    "ld.shared.u32 %u, s[1];",
    ".shared .b32 s[4]; .reg .u32 %u; ld.u32 %u, [s];",
    ".reg .v4 .f32 %v<2>; mov.f32 %v0.x, %v1.w; mov.v4.f32 %v0, %v1;",
    ".loc 1 2 3\n.pragma \"nounroll\";\nL1: ret; // comment\n/* another */ bra.uni L1;",
    ".reg .u32 %i; .reg .b32 %r; T: .branchtargets A, B;\nbrx.idx %i, T;\nA: mov.b32 %r, 1;\nB: ret;",
    ".reg .u64 %d; .reg .b32 %r; ld.global.nc.L1::no_allocate.L2::128B.u32 %r, [%d]; "
    "ld.relaxed.gpu.global.u32 %r, [%d];",
    ".reg .u64 %d<2>; .reg .b32 %r; ld.global.L2::cache_hint.b32 %r, [%d0], %d1; st.release.sys.global.b32 "
    "[%d0], %r;",
    ".reg .u64 %d; .reg .b32 %r; atom.global.cas.b32 %r, [%d], 0, 1; red.relaxed.gpu.global.add.u32 [%d], 1; "
    "atom.add.u32 _, [%d], %r;",
};

/* Inserted between the module's header and a kernel. ptxas 13.0 accepts each of these. */
static const char *const accepted_items[] = {
    ".align 8 .global .b32 g; .visible .align 16 .global .b32 h; .global .b32;",
    ".global .u32 a; .global .u32 a<2>; .global .u64 p[2] = {a, a1}; .const .align 8 .b32 c<2>;",
    ".func f(.align 8 .param .b32 a) { ret; } .entry e(.align 8 .param .b32 a) { ret; }",
    ".func f() { ret; } .func g(); .alias g, f; .visible .entry e() { call g; ret; }",
    ".func f(); .func g(); .alias g, f; .func f() { ret; } .visible .entry e() { call g; ret; }",
    ".func f() { ret; } .func g(); .func h(); .alias g, f; .alias h, g;",
};

/* ptxas refuses each of these too. */
static const struct {
    const char *items, *message;
} refused_items[] = {
    {".func f(.reg .b32 a) { ret; } .func g(); .alias g, f;", "'g' and 'f' have different parameters"},
    {".func g(); .alias g, f; .func f() { ret; }", "'f' is not a declared function other than a kernel"},
    {".func f() { ret; } .func g() { ret; } .alias g, f;", "'g' has a body already"},
    {".func f() { ret; } .func g(); .alias g, f; .alias g, f;", "'g' has a body already"},
    {".entry f() { ret; } .entry g(); .alias g, f;", "'g' is not a declared function other than a kernel"},
    {".global .b32 g<2>; .global .b32 g1;", "'g1' is declared twice; first in line 4"},
    {".global .b32 g<2>[4];", "expected ';', found '['"},
};

static CUresult load_items(const char *items)
{
    char text[512];
    CUmodule module;
    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_90\n.address_size 64\n%s\n.visible .entry k() { ret; }\n", items);
    CUresult r = load_text(text, &module);
    if (r == CUDA_SUCCESS)
        cuModuleUnload(module);
    return r;
}

static void test_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted_items / sizeof *accepted_items; i++)
        if (load_items(accepted_items[i]) != CUDA_SUCCESS)
            fail_msg("%s\n%s", accepted_items[i], test_log);
    for (size_t i = 0; i < sizeof refused_items / sizeof *refused_items; i++) {
        if (load_items(refused_items[i].items) != CUDA_ERROR_INVALID_PTX)
            fail_msg("taken: %s", refused_items[i].items);
        assert_contains(test_log, "line 4: error: ");
        assert_contains(test_log, refused_items[i].message);
    }
}

#define LOAD_D                                                                                               \
    ".reg .u64 %p<2>; .reg .b64 d; ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.global.b64 d, [%p1];\n"
#define STORE_D "\nst.global.b64 [%p0], d; ret;"

static uint64_t map_bits(const char *body, uint64_t in)
{
    uint64_t out = 0;
    run_body(NULL, body, 1, &in, sizeof in, &out, sizeof out);
    return out;
}

/* Moves a declared vector to one register and back; element 0 is the lowest part. */
static void test_vector_moves(void **state)
{
    (void)state;
    const uint64_t in = 0x1122334455667788;
    assert_true(map_bits(LOAD_D
                         ".reg .v2 .b32 t; .reg .b32 r; mov.b64 t, d; mov.b32 r, t.x; mov.b32 t.x, t.y; "
                         "mov.b32 t.y, r; mov.b64 d, t;" STORE_D,
                         in) == 0x5566778811223344);
    assert_true(map_bits(LOAD_D ".reg .v4 .b16 t; mov.b64 t, d; mov.b16 t.w, t.x; mov.b64 d, t;" STORE_D,
                         in) == 0x7788334455667788);
    assert_true(map_bits(LOAD_D ".reg .v2 .b32 t<3>; mov.b64 t2, 0x100000002; mov.b64 d, t2;" STORE_D, in) ==
                0x100000002);
}

/* a<2> declares a0 and a1; `a` is a different name. */
static void test_numbered_names(void **state)
{
    (void)state;
    const uint64_t in = 0x1122334455667788;
    assert_true(map_bits(LOAD_D ".reg .b32 a; .reg .b16 a<2>; mov.b64 {a, _}, d; mov.b32 {a0, a1}, a; "
                                "mov.b32 a, {a1, a0}; mov.b64 d, {a, a};" STORE_D,
                         in) == 0x7788556677885566);
    assert_true(map_bits(LOAD_D ".shared .b64 s<3>; .local .b64 s; .reg .b64 e; st.shared.b64 [s0], 5; "
                                "st.shared.b64 [s2], d; st.local.b64 [s], 7; ld.shared.b64 d, [s2]; "
                                "ld.local.b64 e, [s]; add.u64 d, d, e; ld.shared.b64 e, [s0]; "
                                "add.u64 d, d, e;" STORE_D,
                         in) == in + 12);
}

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CUmodule module;
        CUresult r = load_body(refused[i].header, refused[i].body, &module);
        if (r != refused[i].result)
            fail_msg("case %zu: %s\ngave %d, expected %d\n%s", i, refused[i].body, (int)r,
                     (int)refused[i].result, test_log);
        if (r == CUDA_SUCCESS)
            cuModuleUnload(module);
        else
            assert_contains(test_log, refused[i].message);
    }
}

static void test_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        CUmodule module;
        CUresult r = load_body(NULL, accepted[i], &module);
        if (r != CUDA_SUCCESS)
            fail_msg("%s\ngave %d\n%s", accepted[i], (int)r, test_log);
        cuModuleUnload(module);
    }
}

/* A target older than all devices runs on all of them. A .version newer than the ISA that the emulator knows is accepted
   with a note. */
static void test_versions(void **state)
{
    (void)state;
    static const char *const targets[] = {"1.4\n.target sm_10", "1.4\n.target sm_11",
                                          "1.5\n.target sm_12", "1.4\n.target sm_13, map_f64_to_f32",
                                          "2.0\n.target sm_20", "2.0\n.target sm_21",
                                          "3.0\n.target sm_30", "4.0\n.target sm_32",
                                          "3.1\n.target sm_35", "4.1\n.target sm_37",
                                          "4.0\n.target sm_50", "4.1\n.target sm_52",
                                          "4.2\n.target sm_53", "5.0\n.target sm_60",
                                          "5.0\n.target sm_61", "5.0\n.target sm_62",
                                          "6.0\n.target sm_70", "6.1\n.target sm_72",
                                          "9.2\n.target sm_80", "9.9\n.target sm_90a",
                                          "10.0\n.target sm_75"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char text[512], note[96];
        CUmodule m;
        CUfunction f;
        uint32_t out = 0;
        snprintf(text, sizeof text,
                 ".version %s\n.entry k(.param .u64 a)\n{ .reg .u64 %%d; .reg .u32 %%r; ld.param.u64 %%d, "
                 "[a]; mov.u32 %%r, 41; add.u32 %%r, %%r, 1; st.global.u32 [%%d], %%r; ret; }\n",
                 targets[i]);
        if (load_text(text, &m) != CUDA_SUCCESS)
            fail_msg("%s: %s", targets[i], test_log);
        snprintf(note, sizeof note, "note: .version %.*s is newer than 9.1, whose rules apply\n",
                 (int)strcspn(targets[i], "\n"), targets[i]);
        assert_string_equal(test_log, i < 18 ? "" : note);
        CUdeviceptr to = device_bytes(4, NULL);
        void *parameters[] = {&to};
        assert_int_equal(cuModuleGetFunction(&f, m, "k"), CUDA_SUCCESS);
        assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH_v2(&out, to, 4), CUDA_SUCCESS);
        assert_int_equal(out, 42);
        cuModuleUnload(m);
    }
}

/* One load reports many mistakes, each with its line. */
static void test_many_errors(void **state)
{
    (void)state;
    CUmodule module;
    assert_int_equal(
        load_body(NULL, ".reg .b32 %r<3>;\nadd.u32 %r1, %r2, %r9;\nadd.u32 %r1, %r2;\nmul.u32 %r1, %r2, 1;",
                  &module),
        CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "line 7: error: '%r9' is not declared\n     7 | add.u32 %r1, %r2, %r9;\n");
    assert_contains(test_log, "line 8: error:");
    assert_contains(test_log, "line 9: error: 'mul' needs one more modifier: lo");
}

static void test_globals(void **state)
{
    (void)state;
    static const char text[] = ".version 8.8\n.target sm_90\n.address_size 64\n"
                               ".global .align 8 .u32 a[] = {1, 2, 3};\n"
                               ".global .f32 f[2][3] = {{1.5}, {2.5, -3.5}};\n"
                               ".const .b16 c[4] = {0x1234, -1};\n"
                               ".global .u64 address = generic(a)+4;\n"
                               ".global .u8 byte = 0xff00(0x1234);\n"
                               ".visible .entry k() { ret; }\n";
    CUmodule m;
    assert_int_equal(load_text(text, &m), CUDA_SUCCESS);
    CUdeviceptr a, p;
    size_t bytes;
    uint32_t ints[3];
    float floats[6];
    uint16_t halves[4];
    uint64_t address;
    uint8_t byte;
    assert_int_equal(cuModuleGetGlobal_v2(&a, &bytes, m, "a"), CUDA_SUCCESS);
    assert_int_equal(bytes, 12);
    cuMemcpyDtoH_v2(ints, a, sizeof ints);
    assert_memory_equal(ints, ((uint32_t[]){1, 2, 3}), sizeof ints);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "f"), CUDA_SUCCESS);
    cuMemcpyDtoH_v2(floats, p, sizeof floats);
    assert_memory_equal(floats, ((float[]){1.5f, 0, 0, 2.5f, -3.5f, 0}), sizeof floats);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "c"), CUDA_SUCCESS);
    cuMemcpyDtoH_v2(halves, p, sizeof halves);
    assert_memory_equal(halves, ((uint16_t[]){0x1234, 0xffff, 0, 0}), sizeof halves);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "address"), CUDA_SUCCESS);
    cuMemcpyDtoH_v2(&address, p, sizeof address);
    assert_true(address == a + 4);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "byte"), CUDA_SUCCESS);
    cuMemcpyDtoH_v2(&byte, p, 1);
    assert_int_equal(byte, 0x12);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "nothing"), CUDA_ERROR_NOT_FOUND);
    cuModuleUnload(m);
}

static void test_machine_code(void **state)
{
    (void)state;
    CUmodule m;
    assert_int_equal(load_text("\177ELF...", &m), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_contains(test_log, "takes PTX only: with kiln, set ptx_only of kiln_options");
}

#define RIGHT                                                                                                \
    ".entry right(.param .u64 a) { .reg .u64 %d; ld.param.u64 %d, [a]; st.global.u32 [%d], 7; ret; }\n"

static void check_right(CUmodule m)
{
    CUfunction f;
    uint32_t out = 0;
    CUdeviceptr to = device_bytes(4, NULL);
    void *parameters[] = {&to};
    assert_int_equal(cuModuleGetFunction(&f, m, "right"), CUDA_SUCCESS);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(&out, to, 4), CUDA_SUCCESS);
    assert_int_equal(out, 7);
    cuMemFree_v2(to);
}

static void load_right_and(const char *more, CUresult result, CUmodule *m)
{
    char text[2048];
    snprintf(text, sizeof text, ".version 8.8\n.target sm_90a\n.address_size 64\n%s%s\n", RIGHT, more);
    if (load_text(text, m) != result)
        fail_msg("%s\n%s", more, test_log);
}

/* Kernels that are valid but not emulated are refused when the program asks for them, because of their own lines or those
   of their callees. The module's other kernels run. */
static void test_unsupported(void **state)
{
    (void)state;
    static const struct {
        const char *text, *log;
    } cases[] = {
        {".entry k() { tcgen05.wait::ld.sync.aligned; ret; }",
         "line 5: error: 'tcgen05' is not emulated\n     5 | "},
        {".func f() { tcgen05.wait::ld.sync.aligned; ret; }\n.entry k() { call f; ret; }",
         "line 5: error: 'tcgen05' is not"},
        {".func f() { tcgen05.wait::ld.sync.aligned; ret; }\n.func g() { call f; ret; }\n.entry k() { call g; "
         "ret; }",
         "line 5: error: 'tcgen05' is not"},
        {".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
         ".entry k() { .param .b32 r; .param .b64 a; call (r), vprintf, (a, a); ret; }",
         "line 6: error: 'vprintf', a function of the device runtime, is not emulated\n"},
        {".func f() { call f; ret; }\n.entry k() { call f; ret; }",
         "line 5: error: 'f', called by itself (recursion), is not emulated\n"},
        {".entry k() { .reg .u32 %r; mov.b32 %r, %reserved_smem_offset_0; ret; }",
         "line 5: error: '%reserved_smem_offset_0' is not emulated\n"},
        {".entry k()\n.blocksareclusters .reqntid 32 .reqnctapercluster 2 { ret; }",
         "line 6: error: '.blocksareclusters' is not emulated\n     6 | .blocksareclusters .reqntid"},
        {".entry k(.param .texref t) { ret; }", "line 5: error: parameters for textures are not emulated\n"},
        {".global .texref t; .global .surfref u[2];\n.entry k() { .reg .b32 %r<5>; tex.1d.v4.u32.s32 {%r0, "
         "%r1, %r2, %r3}, [t, {%r4}]; ret; }",
         "line 6: error: 'tex' is not emulated\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUmodule m;
        CUfunction f = NULL;
        unsigned count = 0;
        load_right_and(cases[i].text, CUDA_SUCCESS, &m);
        assert_memory_equal(test_log, "kernel 'k' is refused:\n", 23);
        if (strncmp(test_log + 23, cases[i].log, strlen(cases[i].log)) != 0)
            fail_msg("expected %s, got %s", cases[i].log, test_log);
        assert_int_equal(cuModuleGetFunctionCount(&count, m), CUDA_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(cuModuleGetFunction(&f, m, "k"), CUDA_ERROR_NOT_SUPPORTED);
        assert_null(f);
        check_right(m);
        assert_int_equal(cuModuleUnload(m), CUDA_SUCCESS);
    }
}

/* Without a log, the reason is printed with the refusal. */
static void test_unsupported_without_log(void **state)
{
    (void)state;
    CUmodule m;
    CUfunction f;
    static const char text[] = ".version 8.8\n.target sm_90a\n.address_size 64\n" RIGHT
                               ".entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n";
    capture_stderr();
    CUresult loaded = cuModuleLoadData(&m, text), got = cuModuleGetFunction(&f, m, "k");
    assert_string_equal(captured_stderr(),
                        "kernel 'k' is refused:\nline 5: error: 'tcgen05' is not emulated\n"
                        "     5 | .entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n");
    assert_int_equal(loaded, CUDA_SUCCESS);
    assert_int_equal(got, CUDA_ERROR_NOT_SUPPORTED);
    check_right(m);
    cuModuleUnload(m);
}

/* A mistake refuses the module, even after any number of instructions that are not emulated. */
static void test_wrong_beside_unsupported(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {".entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n.entry l() { frob; ret; }",
         "line 6: error: 'frob' is not"},
        {".entry k() { tcgen05.wait::ld.sync.aligned; frob; ret; }", "line 5: error: 'frob' is not"},
        {".entry k()\n.blocksareclusters { frob; ret; }", "line 6: error: 'frob' is not"},
        {".func f() { frob; ret; }", "line 5: error: 'frob' is not"},
        {".extern .func f();\n.entry k() { call f; ret; }", "line 6: error: function 'f' has no body"},
        {".global .samplerref s;", "line 5: error: '.samplerref' needs .target texmode_independent"},
        {".shared .texref t;", "line 5: error: '.texref' is a type of .global and of parameters"},
    };
    CUmodule m;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load_right_and(cases[i][0], CUDA_ERROR_INVALID_PTX, &m);
        assert_contains(test_log, cases[i][1]);
    }
    char text[2048] = ".entry k() {\n";
    for (int i = 0; i < 25; i++)
        strcat(text, "tcgen05.wait::ld.sync.aligned;\n");
    load_right_and(strcat(text, "frob; }"), CUDA_ERROR_INVALID_PTX, &m);
    assert_contains(test_log, "line 31: error: 'frob' is not an instruction");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_vector_moves),
        cmocka_unit_test(test_numbered_names),
        cmocka_unit_test(test_many_errors),
        cmocka_unit_test(test_globals),
        cmocka_unit_test(test_machine_code),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_unsupported_without_log),
        cmocka_unit_test(test_wrong_beside_unsupported),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
