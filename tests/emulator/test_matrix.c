/* ldmatrix, stmatrix and movmatrix. */
#include "emu_test.h"

static char body[16384];

/* Rows of 16 bytes at distinct addresses; element e of row r of matrix m is 1000 m + 8 r + e. */
static void test_matrix_moves(void **state)
{
    (void)state;
    static const char text[] =
        ".reg .u64 %p<3>; .reg .u32 %r<20>; .shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x;\n"
        "mad.wide.u32 %p1, %r0, 16, %p1; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%p1];\n"
        "mov.u32 %r5, s; mad.lo.u32 %r5, %r0, 16, %r5; st.shared.v4.b32 [%r5], {%r1, %r2, %r3, %r4};\n"
        "bar.sync 0; LOAD bar.sync 0;\n"
        "mad.wide.u32 %p0, %r0, 16, %p0; st.global.v4.b32 [%p0], {%r6, %r7, %r8, %r9}; ret;";
    static const struct {
        const char *what;
        int count;
        bool transposed;
    } cases[] = {
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];", 4, false},
        {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];", 4, true},
        {"ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%r6, %r7}, [%r5];", 2, false},
        {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r5];", 1, true},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5]; movmatrix.sync.aligned.m8n8.trans.b16 %r6, "
         "%r10;",
         1, true},
    };
    uint16_t in[32][8], out[32][8];
    for (int row = 0; row < 32; row++)
        for (int e = 0; e < 8; e++)
            in[row][e] = (uint16_t)(1000 * (row / 8) + 8 * (row % 8) + e);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const char *mark = strstr(text, "LOAD");
        snprintf(body, sizeof body, "%.*s%s%s", (int)(mark - text), text, cases[n].what, mark + 4);
        run_body(NULL, body, 32, in, sizeof in, out, sizeof out);
        for (int lane = 0; lane < 32; lane++)
            for (int m = 0; m < cases[n].count; m++)
                for (int e = 0; e < 2; e++) {
                    int row = lane / 4, column = lane % 4 * 2 + e;
                    int want = 1000 * m + (cases[n].transposed ? 8 * column + row : 8 * row + column);
                    assert_int_equal(out[lane][2 * m + e], want);
                }
    }
    /* stmatrix undoes ldmatrix; transposed once, rows become columns */
    for (int transposed = 0; transposed < 2; transposed++) {
        char moves[512];
        const char *mark = strstr(text, "LOAD");
        snprintf(
            moves, sizeof moves,
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%r10, %%r11, %%r12, %%r13}, [%%r5]; bar.sync 0;\n"
            "stmatrix.sync.aligned.m8n8.x4%s.shared.b16 [%%r5], {%%r10, %%r11, %%r12, %%r13}; bar.sync 0;\n"
            "ld.shared.v4.b32 {%%r6, %%r7, %%r8, %%r9}, [%%r5];",
            transposed ? ".trans" : "");
        snprintf(body, sizeof body, "%.*s%s%s", (int)(mark - text), text, moves, mark + 4);
        run_body(NULL, body, 32, in, sizeof in, out, sizeof out);
        for (int row = 0; row < 32; row++)
            for (int e = 0; e < 8; e++)
                assert_int_equal(out[row][e], transposed ? in[row / 8 * 8 + e][row % 8] : in[row][e]);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"wgmma.fence.sync.aligned;", "'wgmma' is not emulated"},
        {"cp.async.bulk.commit_group;", "'cp.async.bulk' is not emulated"},
        {"barrier.cluster.arrive;", "'barrier.cluster' is not emulated"},
        {".reg .b32 %r<4>; mapa.shared::cluster.u32 %r0, %r1, %r2;", "'mapa' (clusters) is not emulated"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        CUmodule module;
        assert_int_not_equal(load_body(NULL, cases[n][0], &module), CUDA_SUCCESS);
        assert_contains(test_log, cases[n][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix_moves),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
