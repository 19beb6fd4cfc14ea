/* ldmatrix, stmatrix and movmatrix (ISA 9.7.14.5.15 to .17): every count, order and form of address, with rows scattered
   over shared memory and distinct elements; the report of a bad row; refusals by name. */
#include "emu_test.h"

enum { ROWS = 128, LANES = 32, BAD = 0x00fff000 };

typedef struct memory { /* inputs of the kernel below in p1, and its results in p0 */
    uint16_t rows[ROWS][8];
    uint32_t at[LANES]; /* offset of each lane's row in bytes */
    uint16_t registers[LANES][4][2];
} memory;

#define AT        "2048"
#define REGISTERS "2176"

/* A kernel that copies rows to shared memory, loads %r0 to %r3 and the address in %r5 (shared) and %p5 (generic), executes
   INSTRUCTION, and copies all back. */
static const char *body_of(const char *instruction)
{
    static char body[2048];
    snprintf(body, sizeof body,
             ".reg .u64 %%p<9>; .reg .u32 %%r<12>; .shared .align 16 .b8 s[2048];\n"
             "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r6, %%tid.x; mov.u32 %%r7, s;\n"
             "mad.wide.u32 %%p2, %%r6, 4, %%p1; ld.global.u32 %%r5, [%%p2+" AT
             "]; add.u32 %%r5, %%r5, %%r7;\n"
             "mad.wide.u32 %%p2, %%r6, 16, %%p1; mad.wide.u32 %%p3, %%r6, 16, %%p0; mad.lo.u32 %%r8, %%r6, "
             "16, %%r7;\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%p2]; st.shared.v4.b32 [%%r8], {%%r0, %%r1, %%r2, "
             "%%r3};\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%p2+512]; st.shared.v4.b32 [%%r8+512], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%p2+1024]; st.shared.v4.b32 [%%r8+1024], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%p2+1536]; st.shared.v4.b32 [%%r8+1536], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%p2+" REGISTERS
             "]; bar.sync 0; cvt.u64.u32 %%p5, %%r5;\n"
             "cvta.shared.u64 %%p5, %%p5;\n"
             "%s\nbar.sync 0; st.global.v4.b32 [%%p3+" REGISTERS "], {%%r0, %%r1, %%r2, %%r3};\n"
             "ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%r8]; st.global.v4.b32 [%%p3], {%%r0, %%r1, %%r2, "
             "%%r3};\n"
             "ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%r8+512]; st.global.v4.b32 [%%p3+512], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%r8+1024]; st.global.v4.b32 [%%p3+1024], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%r8+1536]; st.global.v4.b32 [%%p3+1536], {%%r0, "
             "%%r1, %%r2, %%r3};\n"
             "ret;",
             instruction);
    return body;
}

/* Lanes without a row get invalid addresses, which sm_80 and later allow. */
static void fill(memory *m, int matrices)
{
    for (int row = 0; row < ROWS; row++)
        for (int e = 0; e < 8; e++)
            m->rows[row][e] = (uint16_t)(row * 8 + e);
    for (int lane = 0; lane < LANES; lane++) {
        m->at[lane] = lane < 8 * matrices ? (uint32_t)(lane * 37 + 11) % ROWS * 16 : BAD;
        for (int n = 0; n < 8; n++)
            m->registers[lane][n / 2][n % 2] = (uint16_t)(0x8000 + lane * 8 + n);
    }
}

/* The place in memory of element e of a lane's register of matrix n. */
static uint16_t *element(memory *m, bool transposed, int n, int lane, int e)
{
    int row = transposed ? lane % 4 * 2 + e : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + e;
    return &m->rows[m->at[8 * n + row] / 16][column];
}

static void check_move(bool loads, int count, bool transposed, const char *space)
{
    static memory in, out, want;
    static const char *const lists[] = {"", "{%r0}", "{%r0, %r1}", "", "{%r0, %r1, %r2, %r3}"};
    char instruction[160];
    const char *address = *space ? "[%r5]" : "[%p5]";
    snprintf(instruction, sizeof instruction, "%smatrix.sync.aligned.m8n8.x%d%s%s.b16 %s, %s;",
             loads ? "ld" : "st", count, transposed ? ".trans" : "", space, loads ? lists[count] : address,
             loads ? address : lists[count]);
    fill(&in, count);
    want = in;
    for (int n = 0; n < count; n++)
        for (int lane = 0; lane < LANES; lane++)
            for (int e = 0; e < 2; e++)
                if (loads)
                    want.registers[lane][n][e] = *element(&in, transposed, n, lane, e);
                else
                    *element(&want, transposed, n, lane, e) = in.registers[lane][n][e];
    run_body(NULL, body_of(instruction), LANES, &in, sizeof in, &out, sizeof out);
    if (memcmp(out.rows, want.rows, sizeof out.rows) ||
        memcmp(out.registers, want.registers, sizeof out.registers))
        fail_msg("%s", instruction);
}

static void test_moves(void **state)
{
    (void)state;
    static const char *const spaces[] = {".shared", ".shared::cta", ""};
    for (int n = 0; n < 2 * 3 * 2 * 3; n++)
        check_move(n & 1, 1 << n / 2 % 3, n / 6 & 1, spaces[n / 12]);
}

/* The destination may be the source. */
static void test_transpose(void **state)
{
    (void)state;
    static const char *const instructions[] = {
        "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1; mov.b32 %r0, %r1;"};
    for (int k = 0; k < 2; k++) {
        static memory in, out;
        fill(&in, 4);
        run_body(NULL, body_of(instructions[k]), LANES, &in, sizeof in, &out, sizeof out);
        for (int row = 0; row < 8; row++)
            for (int column = 0; column < 8; column++)
                assert_int_equal(out.registers[row * 4 + column / 2][0][column % 2],
                                 in.registers[column * 4 + row / 2][1][row % 2]);
    }
}

typedef struct fault {
    const char *instruction;
    int matrices, lane; /* all rows are valid except this lane's */
    uint32_t at;        /* the offset of its row */
    CUresult result;
    const char *message;
} fault;

#define LD4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%r5];"
#define ST2 "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {%r0, %r1};"

/* The instruction is in line 16. */
static const fault faults[] = {
    {LD4, 4, 9, 8, CUDA_ERROR_MISALIGNED_ADDRESS,
     "line 16: " LD4 "\n  thread (9,0,0) of block (0,0,0) reads 16 bytes"},
    {LD4, 4, 31, 4, CUDA_ERROR_MISALIGNED_ADDRESS, "thread (31,0,0) of block (0,0,0) reads 16 bytes"},
    {LD4, 4, 31, 2048, CUDA_ERROR_ILLEGAL_ADDRESS, "thread (31,0,0) of block (0,0,0) reads 16 bytes"},
    {LD4, 3, 24, BAD, CUDA_ERROR_ILLEGAL_ADDRESS, "and 7 more lanes of its warp"},
    {ST2, 2, 15, 1 << 20, CUDA_ERROR_ILLEGAL_ADDRESS,
     "line 16: " ST2 "\n  thread (15,0,0) of block (0,0,0) writes 16 bytes"},
    {ST2, 2, 0, 2, CUDA_ERROR_MISALIGNED_ADDRESS, "thread (0,0,0) of block (0,0,0) writes 16 bytes"},
    {ST2, 2, 16, BAD, CUDA_SUCCESS, ""}, /* lanes 16 to 31 need no valid row */
    {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%p1];", 4, 0, 0, (CUresult)717,
     "names a row of a matrix that is not in shared memory"},
};

static void check_fault(const fault *f, CUdevice device, const char *header)
{
    static memory in;
    CUcontext context;
    fill(&in, f->matrices);
    in.at[f->lane] = f->at;
    assert_int_equal(cuCtxCreate_v2(&context, 0, device), CUDA_SUCCESS);
    CUfunction k = kernel_of(header, body_of(f->instruction));
    CUdeviceptr p0 = device_bytes(sizeof in, NULL), p1 = device_bytes(sizeof in, &in);
    capture_stderr();
    CUresult r = launch(k, 1, LANES, p0, p1, 0);
    captured_stderr();
    if (r != f->result)
        fail_msg("%s gave %d\n%s", f->instruction, (int)r, printed);
    assert_contains(printed, f->message);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check_fault(&faults[i], 0, NULL);
    /* "For .target sm_75 or below, all threads must contain valid addresses" */
    static const fault old = {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r5];",
                              1,
                              0,
                              0,
                              CUDA_ERROR_ILLEGAL_ADDRESS,
                              "thread (8,0,0)"};
    check_fault(&old, 1, ".version 7.0\n.target sm_75");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"tcgen05.wait::ld.sync.aligned;", "'tcgen05' is not emulated"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [%p0];", "'wmma' is not emulated"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%r0}, {%r1}, {%r2}, {%r3};",
         "'wmma' is not emulated"},
        {"wmma.store.d.sync.aligned.row.m16n16k16.f32 [%p0], {%r0};", "'wmma' is not emulated"},
        {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3}, %r4, 0;",
         "'mma.sp' is not emulated"},
        {"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3}, "
         "%r4, 0;",
         "'mma.sp' is not emulated"},
        {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
         "'ldmatrix.m16n16' is not emulated"},
        {"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32 {%r0, %r1, %r2, %r3}, [%r2];",
         "'ldmatrix.m16n16' is not emulated"},
        {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r2];",
         "'ldmatrix.m8n16' is not emulated"},
        {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r0], {%r1};", "'stmatrix.m16n8' is not emulated"},
        {"tcgen05.fence::before_thread_sync;", "'tcgen05' is not emulated"},
        {"cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%p0, {%r0, %r1, %r2}], [%r3];",
         "a bulk copy with .im2col is not emulated"},
        {"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;",
         "'clusterlaunchcontrol' is not emulated"},
        {"vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;", "this video instruction is not emulated"},
        {"tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%p0, {%r0, %r1}];", "'tld4' is not emulated"},
        {"alloca.u64 %p0, 16;", "'alloca' is not emulated"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        CUmodule module;
        CUfunction f;
        char body[512];
        snprintf(body, sizeof body, ".reg .b32 %%r<6>; .reg .u64 %%p<2>;\n%s", cases[n][0]);
        assert_int_equal(load_body(NULL, body, &module), CUDA_SUCCESS);
        assert_contains(test_log, "kernel 'k' is refused:\nline 7: error: ");
        assert_contains(test_log, cases[n][1]);
        assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_ERROR_NOT_SUPPORTED);
        cuModuleUnload(module);
    }
}

static int begin_devices(void **state)
{
    setenv("KILN_EMU_DEVICE", "sm_90,sm_75", 1);
    return begin_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin_devices, end_context);
}
