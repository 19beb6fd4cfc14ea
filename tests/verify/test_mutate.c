/* The possible changes of an instruction, by kind, and the splitting of PTX into instructions. */
#include "test_verify.h"

#include <stdio.h>

#include "mutate/mutate.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static ptx_text read_text(const char *bytes, pool *memory)
{
    ptx_text t;
    ptx_text_read(&t, bytes, strlen(bytes), memory);
    return t;
}

static void assert_span(const ptx_text *t, text_span span, const char *words)
{
    char is[256];
    snprintf(is, sizeof is, "%.*s", (int)span.length, t->bytes + span.at);
    assert_string_equal(is, words);
}

static void test_cut(void **state)
{
    (void)state;
    static const char bytes[] = "// a;b { }\n.version 8.0\n.target sm_80, debug\n.address_size 64\n"
                                ".file 1 \"a;{.cu\"\n"
                                ".global .align 4 .b32 table[2] = {1, 2};\n"
                                ".extern .func (.param .b32 r) other(.param .b32 a);\n"
                                ".visible .func (.param .b32 r) twice(.param .b32 a)\n{\n\tret;\n}\n"
                                ".section .debug_info\n{\n.b8 1;\n}\n"
                                ".visible .entry k(.param .u64 p)\n.maxntid 32\n{\n"
                                "\t.reg .pred %p<2>; .reg .b32 %r<3>, odd;\n"
                                "\t.loc 1 2 3\n"
                                "$L__1: @!%p1 ld .global.v2.u32 {%r1, %r2}, [%rd1+8]; // of { two\n"
                                "\t{ .reg .u16 inner; call (r),\n other,\n (a); }\n"
                                "\tmov.b32 odd, %tid.x; /* ; */ ret;\n}\n";
    pool memory = {NULL};
    ptx_text t = read_text(bytes, &memory);
    assert_int_equal(t.function_count, 2);
    assert_span(&t, t.functions[0].name, "twice");
    assert_false(t.functions[0].is_entry);
    assert_int_equal(t.functions[0].statement_count, 1);
    const ptx_function *k = &t.functions[1];
    assert_span(&t, k->name, "k");
    assert_true(k->is_entry);
    assert_int_equal(k->label_count, 1);
    assert_span(&t, k->labels[0], "$L__1");
    assert_int_equal(k->statement_count, 4);
    const ptx_statement *load = &k->statements[0];
    assert_span(&t, load->whole, "@!%p1 ld .global.v2.u32 {%r1, %r2}, [%rd1+8];");
    assert_span(&t, load->guard, "@!%p1");
    assert_span(&t, load->opcode, "ld .global.v2.u32");
    assert_int_equal(load->operand_count, 2);
    assert_span(&t, load->operands[0], "{%r1, %r2}");
    assert_span(&t, load->operands[1], "[%rd1+8]");
    assert_int_equal(ptx_text_line(&t, load->whole.at), 21);
    assert_int_equal(k->statements[1].operand_count, 3);
    assert_span(&t, k->statements[1].operands[1], "other");
    assert_span(&t, k->statements[2].operands[1], "%tid.x");
    assert_int_equal(k->statements[3].operand_count, 0);
    text_span name = k->statements[2].operands[0];
    assert_int_equal(k->register_count, 4);
    assert_span(&t, ptx_text_register(&t, k, name)->type, ".b32");
    assert_null(ptx_text_register(&t, k, k->labels[0]));
    pool_free(&memory);
}

/* Truncated text is read to its end and no further. */
static void test_torn(void **state)
{
    (void)state;
    static const char whole[] =
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n"
        "@%p1 bra A; A: /* x */ call (r), f, (a); \"s\" {}\n}\n.section .d { .b8 1; }\n";
    char torn[sizeof whole];
    for (size_t length = 0; length < sizeof whole; length++) {
        pool memory = {NULL};
        memcpy(torn, whole, length);
        torn[length] = '\0';
        ptx_text t = read_text(torn, &memory);
        for (size_t i = 0; i < t.function_count; i++)
            for (size_t s = 0; s < t.functions[i].statement_count; s++)
                for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++)
                    assert_true(mutation_count(&t, &t.functions[i], &t.functions[i].statements[s], kind) <
                                100);
        pool_free(&memory);
    }
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static const char head[] =
    ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u64 q)\n{\n"
    ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .b16 %h<9>;\n"
    "ld.param.u64 %rd7, [q];\n@%p8 add.u32 %r8, %r7, %r6;\nLAST:\n";

static const struct row {
    mutation_kind kind;
    const char *before, *after; /* all its changes, separated by | */
} rows[] = {
    {MUTATE_OPERATION, "add.u32 %r1, %r2, 0;", "mul.lo.u32 %r1, %r2, 0;"}, /* subtracting 0 is adding it */
    {MUTATE_OPERATION, "add.u32 %r1, %r2, %r3;", "sub.u32 %r1, %r2, %r3;|mul.lo.u32 %r1, %r2, %r3;"},
    {MUTATE_OPERATION, "mul.lo.u32 %r1, %r2, %r3;", "add.u32 %r1, %r2, %r3;"},
    {MUTATE_OPERATION, "mul.rn.f32 %f1, %f2, %f3;",
     "add.rn.f32 %f1, %f2, %f3;|sub.rn.f32 %f1, %f2, %f3;|div.rn.f32 %f1, %f2, %f3;"},
    {MUTATE_OPERATION, "max.f32 %f1, %f2, %f3;", "min.f32 %f1, %f2, %f3;"},
    {MUTATE_OPERATION, "atom.global.add.u32 %r1, [%rd1], 1;",
     "atom.global.max.u32 %r1, [%rd1], 1;|atom.global.exch.u32 %r1, [%rd1], 1;"},
    {MUTATE_OPERATION, "vote.sync.any.pred %p1, %p2, -1;", "vote.sync.all.pred %p1, %p2, -1;"},
    {MUTATE_OPERATION, "setp.lt.and.u32 %p1, %r1, %r2, %p2;",
     "setp.lt.or.u32 %p1, %r1, %r2, %p2;|setp.lt.xor.u32 %p1, %r1, %r2, %p2;"},
    {MUTATE_OPERATION, "prefetch.global.L2 [%rd1];", ""},
    {MUTATE_COMPARISON, "setp.lt.u32 %p1, %r1, %r2;",
     "setp.le.u32 %p1, %r1, %r2;|setp.ge.u32 %p1, %r1, %r2;"},
    {MUTATE_COMPARISON, "setp.gt.f32 %p1, %f1, %f2;",
     "setp.ge.f32 %p1, %f1, %f2;|setp.le.f32 %p1, %f1, %f2;|setp.gtu.f32 %p1, %f1, %f2;"},
    {MUTATE_COMPARISON, "max.f32 %f1, %f2, %f3;", ""},
    {MUTATE_OPERAND, "sub.u32 %r1, %r2, %r3;", "sub.u32 %r1, %r3, %r2;"},
    {MUTATE_OPERAND, "add.u32 %r1, %r2, %r3;", ""},
    {MUTATE_OPERAND, "setp.eq.u32 %p1, %r2, %r3;", ""},
    {MUTATE_OPERAND, "fma.rn.f32 %f1, %f2, %f3, %f4;", "fma.rn.f32 %f1, %f2, %f4, %f3;"},
    {MUTATE_OPERAND, "selp.b32 %r1, %r2, %r3, %p1;",
     "selp.b32 %r1, %r3, %r2, %p1;|selp.b32 %r1, %r2, %p1, %r3;"},
    {MUTATE_OPERAND, "ld.global.v2.u32 {%r1, %r2}, [%rd1];", "ld.global.v2.u32 {%r2, %r1}, [%rd1];"},
    {MUTATE_OPERAND, "mov.u32 %r1, %ctaid.y;", "mov.u32 %r1, %ctaid.x;|mov.u32 %r1, %ctaid.z;"},
    {MUTATE_OPERAND, "ld.param.u64 %rd1, [p];", "ld.param.u64 %rd1, [q];"},
    {MUTATE_REGISTER, "mov.u32 %r1, %r2;",
     "mov.u32 %r8, %r2;|mov.u32 %r7, %r2;|mov.u32 %r6, %r2;|mov.u32 %r1, %r8;|mov.u32 %r1, %r7;|mov.u32 %r1, "
     "%r6;"},
    {MUTATE_REGISTER, "@%p1 ret;", "@%p8 ret;"},
    {MUTATE_REGISTER, "st.global.u32 [%rd1], 1;", "st.global.u32 [%rd7], 1;"},
    {MUTATE_REGISTER, "mov.f32 %f1, %f2;", ""},
    {MUTATE_IMMEDIATE, "and.b32 %r1, %r2, 6;",
     "and.b32 %r1, %r2, 7;|and.b32 %r1, %r2, 5;|and.b32 %r1, %r2, 12;|and.b32 %r1, %r2, 4;|and.b32 %r1, %r2, "
     "2;|"
     "and.b32 %r1, %r2, 14;"},
    {MUTATE_IMMEDIATE, "mov.u32 %r1, 0;", "mov.u32 %r1, 1;"},
    {MUTATE_IMMEDIATE, "mov.u32 %r1, 0x10U;",
     "mov.u32 %r1, 17;|mov.u32 %r1, 15;|mov.u32 %r1, 32;|mov.u32 %r1, 18;|mov.u32 %r1, 20;|mov.u32 %r1, 24;|"
     "mov.u32 %r1, 0;|mov.u32 %r1, 48;"},
    {MUTATE_IMMEDIATE, "mov.f32 %f1, 0f00000000;", "mov.f32 %f1, 0f3F800000;"},
    {MUTATE_IMMEDIATE, "mov.f64 %rd1, 0d0000000000000000;", "mov.f64 %rd1, 0d3FF0000000000000;"},
    {MUTATE_IMMEDIATE, "mov.f32 %f1, 0f40400000;",
     "mov.f32 %f1, 0fC0400000;|mov.f32 %f1, 0f40C00000;|mov.f32 %f1, 0f40000000;|mov.f32 %f1, 0f40480000;|"
     "mov.f32 %f1, 0f40408000;"},
    {MUTATE_IMMEDIATE, "mov.f32 %f1, 0f7FFFFFFF;", "mov.f32 %f1, 0f7F7FFFFF;"},
    {MUTATE_IMMEDIATE, "mov.f32 %f1, 0f4B400000;",
     "mov.f32 %f1, 0fCB400000;|mov.f32 %f1, 0f4BC00000;|mov.f32 %f1, 0f4B400001;"},
    {MUTATE_IMMEDIATE, "mov.b16 %h1, 0x7c01;",
     "mov.b16 %h1, 31744;|mov.b16 %h1, 63490;|mov.b16 %h1, 30721;|mov.b16 %h1, 29697;|mov.b16 %h1, 27649;|mov.b16 %h1, 23553;|"
     "mov.b16 %h1, 15361;"},
    {MUTATE_IMMEDIATE, "prmt.b32 %r1, %r2, 0, 0x5555;",
     "prmt.b32 %r1, %r2, 0, 43690;|prmt.b32 %r1, %r2, 0, 21841;|prmt.b32 %r1, %r2, 0, 21781;|prmt.b32 %r1, %r2, 0, "
     "20821;|prmt.b32 %r1, %r2, 0, 5461;"},
    {MUTATE_IMMEDIATE, "bar.sync 1;", ""},
    {MUTATE_ADDRESS, "ld.global.v2.u32 {%r1, %r2}, [%rd1];",
     "ld.global.v2.u32 {%r1, %r2}, [%rd1+8];|ld.global.v2.u32 {%r1, %r2}, [%rd1+-8];"},
    {MUTATE_ADDRESS, "st.shared.f32 [%r1 + 12], %f1;",
     "st.shared.f32 [%r1 +16], %f1;|st.shared.f32 [%r1 +8], %f1;|st.shared.f32 [%r1 ], %f1;|st.shared.f32 "
     "[%r1 +24], %f1;"},
    {MUTATE_ADDRESS, "ld.param.u64 %rd1, [p];", ""},
    {MUTATE_GUARD, "@%p1 add.u32 %r1, %r2, %r3;", "@!%p1 add.u32 %r1, %r2, %r3;| add.u32 %r1, %r2, %r3;"},
    {MUTATE_GUARD, "@!%p1 ret;", "@%p1 ret;| ret;"},
    {MUTATE_GUARD, "@%p1 bra LAST;", ""},
    {MUTATE_DROP, "add.u32 %r1, %r2, %r3;", "-"},
    {MUTATE_DROP, "bar.sync 0;", ""},
    {MUTATE_DROP, "ret;", ""},
    {MUTATE_BARRIER, "bar.sync 0;", "-"},
    {MUTATE_BARRIER, "barrier.cta.arrive.aligned 1, 64;", "-"},
    {MUTATE_FENCE, "membar.gl;", "-|membar.cta;"},
    {MUTATE_FENCE, "fence.acq_rel.gpu;", "-|fence.acq_rel.cta;"},
    {MUTATE_WAIT, "cp.async.wait_group 1;", "-|cp.async.wait_group 2;"},
    {MUTATE_WAIT, "cp.async.wait_all;", "-"},
    {MUTATE_WAIT, "cp.async.commit_group;", "-"},
    {MUTATE_LANES, "shfl.sync.bfly.b32 %r1, %r2, 2, 31, -1;",
     "shfl.sync.up.b32 %r1, %r2, 2, 31, -1;|shfl.sync.idx.b32 %r1, %r2, 2, 31, -1;|"
     "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;|shfl.sync.bfly.b32 %r1, %r2, 4, 31, -1;|"
     "shfl.sync.bfly.b32 %r1, %r2, 2, 31, 0xfffffffe;"},
    {MUTATE_LANES, "shfl.sync.idx.b32 %r1, %r2, 0, 0x181f, 1;",
     "shfl.sync.bfly.b32 %r1, %r2, 0, 0x181f, 1;|shfl.sync.idx.b32 %r1, %r2, 1, 0x181f, 1;|"
     "shfl.sync.idx.b32 %r1, %r2, 0, 31, 1;|shfl.sync.idx.b32 %r1, %r2, 0, 0x181f, 0x0;"},
    {MUTATE_LANES, "vote.sync.all.pred %p1, %p2, 0xff;", "vote.sync.all.pred %p1, %p2, 0xfe;"},
    {MUTATE_LANES, "bar.warp.sync 3;", "bar.warp.sync 0x2;"},
    {MUTATE_ROUNDING, "fma.rn.f32 %f1, %f2, %f3, %f4;", ""},
    {MUTATE_ROUNDING, "div.rz.f32 %f1, %f2, %f3;", "div.rn.f32 %f1, %f2, %f3;"},
    {MUTATE_ROUNDING, "cvt.rn.f32.u32 %f1, %r9;", ""},
    {MUTATE_ROUNDING, "cvt.rz.f32.u32 %f1, %r8;", "cvt.rn.f32.u32 %f1, %r8;"},
    {MUTATE_ROUNDING, "cvt.rni.s32.f32 %r1, %f1;",
     "cvt.rzi.s32.f32 %r1, %f1;|cvt.rmi.s32.f32 %r1, %f1;|cvt.rpi.s32.f32 %r1, %f1;"},
    {MUTATE_QUALIFIER, "shr.u32 %r1, %r2, 3;", ""},
    {MUTATE_QUALIFIER, "shr.s32 %r1, %r2, 3;", "shr.u32 %r1, %r2, 3;"},
    {MUTATE_QUALIFIER, "dp4a.u32.s32 %r1, %r2, %r3, %r4;", "dp4a.u32.u32 %r1, %r2, %r3, %r4;"},
    {MUTATE_QUALIFIER, "cvt.rn.f32.u32 %f1, %r2;", "cvt.rn.f32.s32 %f1, %r2;"},
    {MUTATE_QUALIFIER, "add.u32 %r1, %r2, 3;", ""},
    {MUTATE_QUALIFIER, "mul.lo.u32 %r1, %r2, 3;", "mul.hi.u32 %r1, %r2, 3;"},
    {MUTATE_QUALIFIER, "ld.global.u8 %r1, [%rd1];", "ld.global.s8 %r1, [%rd1];|ld.global.u16 %r1, [%rd1];"},
    {MUTATE_QUALIFIER, "ld.global.u32 %r1, [%rd1];", ""},
    {MUTATE_QUALIFIER, "ld.global.u16 %h1, [%rd1];", "ld.global.u8 %h1, [%rd1];"},
    {MUTATE_QUALIFIER, "ld.global.u8 %x, [%rd1];",
     "ld.global.u16 %x, [%rd1];"}, /* the instruction that reads it masks the sign */
    {MUTATE_QUALIFIER, "max.f32 %f1, %f2, %f3;", ""},
    {MUTATE_QUALIFIER, "add.ftz.f32 %f1, %f2, %f3;", "add.ftz.sat.f32 %f1, %f2, %f3;"},
    {MUTATE_QUALIFIER, "add.rn.sat.f32 %f1, %f2, %f3;", "add.rn.f32 %f1, %f2, %f3;"},
    {MUTATE_QUALIFIER, "ld.acquire.gpu.u32 %r1, [%rd1];",
     "ld.relaxed.gpu.u32 %r1, [%rd1];|ld.acquire.cta.u32 %r1, [%rd1];"},
    {MUTATE_BRANCH, "@!%p1 bra LAST;", "@%p1 bra LAST;| bra LAST;|-|@!%p1 bra END;"},
    {MUTATE_BRANCH, "bra.uni END;", "bra.uni LAST;"},
    {MUTATE_BRANCH, "@%p1 bra END;", "@%p1 bra LAST;"},
};

static void append(char *all, size_t bytes, const char *text)
{
    size_t used = strlen(all);
    snprintf(all + used, bytes - used, "%s", text);
}

static void check_row(const struct row *row)
{
    char text[1024], all[1024] = "", changed[256];
    pool memory = {NULL};
    snprintf(text, sizeof text, "%s%s\nEND:\nand.b32 %%r9, %%x, 15;\n}\n", head, row->before);
    if (strcmp(row->before, "ret;") == 0) /* the last one */
        snprintf(text, sizeof text, "%sret;\n}\n", head);
    ptx_text t = read_text(text, &memory);
    const ptx_function *f = &t.functions[0];
    const ptx_statement *s = &f->statements[2];
    assert_span(&t, s->whole, row->before);
    size_t count = mutation_count(&t, f, s, row->kind);
    for (size_t i = 0; i < count; i++) {
        mutation m = mutation_at(&t, f, s, row->kind, i);
        const char *whole = mutation_apply(&t, &m, &memory);
        assert_int_not_equal(strcmp(whole, text), 0);
        assert_memory_equal(whole, text, s->whole.at);
        size_t length = s->whole.length + strlen(m.text) - m.span.length;
        assert_string_equal(whole + s->whole.at + length, text + s->whole.at + s->whole.length);
        snprintf(changed, sizeof changed, "%.*s", (int)length, whole + s->whole.at);
        append(all, sizeof all, i ? "|" : "");
        append(all, sizeof all, length ? changed : "-");
    }
    if (strcmp(all, row->after) != 0)
        print_message("%s\n  %s\n", mutation_name(row->kind), row->before);
    assert_string_equal(all, row->after);
    pool_free(&memory);
}

static void test_kinds(void **state)
{
    (void)state;
    bool has_kind[MUTATION_KINDS] = {false};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i]);
        has_kind[rows[i].kind] = true;
    }
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++)
        assert_true(has_kind[kind]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cut), cmocka_unit_test(test_torn),
                                       cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
