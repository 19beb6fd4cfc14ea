/* The emulated driver refuses what ptxas 13.0 refuses, at the same line, and accepts a similar text that ptxas accepts.
   Otherwise a bundle that runs here might not load on a device. */
#include "emu_test.h"

typedef struct pair {
    const char *refused, *message, *accepted;
} pair;

/* Inserted in the body of a kernel with these registers, from line 8 on. */
static const pair bodies[] = {
    /* bytes */
    {"ret; // \xc3\xa9", "line 8: error: byte 0xC3 is not ASCII", "ret; // e\x01"},
    {"ret;\n.pragma \"\xe9\";", "line 9: error: byte 0xE9 is not ASCII", "ret;\n.pragma \"e\v\";"},
    {"ret;\xa0", "line 8: error: byte 0xA0 is not ASCII", "ret; \t\f\r"},
    {"mov.u32\v%r1, 1;", "line 8: error: expected", "mov.u32\f%r1, 1;"},
    {"add.. u32 %r1, %r2, %r3;", "line 8: error: expected",
     "add .u32 %r1, %r2, %r3; ld.global\n.v2 .f32 {%f1, %f2}, [%d1];"},
    /* nothing after a comma */
    {"add.f32 %f1, %f1, %f2, ;", "line 8: error: expected a constant, found ';'", "add.f32 %f1, %f1, %f2;"},
    {"bar.sync 0, ;", "line 8: error: expected a constant, found ';'", "bar.sync 0;"},
    {"ld.global.u32 %r1, [%d1+48, ];", "line 8: error: expected a constant, found ']'",
     "ld.global.u32 %r1, [%d1+48];"},
    {"ld.global.v2.f32 {%f1, %f2, }, [%d1];", "found '}'", "ld.global.v2.f32 {%f1, %f2}, [%d1];"},
    {"mov.b32 %r1, {%h1, %h2, };", "found '}'", "mov.b32 %r1, {%h1, %h2};"},
    {"call f, (%u1, );", "found ')'", "call f, (%u1);"},
    {"call f, (%u1), ;", "found ';'", "call f, (%u1);"},
    /* labels and functions only by their names */
    {"L: bra L+4;", "line 8: error: 'L' is not a label in scope", "L: bra L;"},
    {"L: bra L[1];", "'L' is not a label", "L: bra L;"},
    {"L: @!%p1 bra !L;", "'L' is not a label", "L: @!%p1 bra L;"},
    {"call f+4, (%u1);", "expected the function to call by its name alone", "call f, (%u1);"},
    {"brx.idx %r1, T; T: .branchtargets A; A: ret;", "'T' is not a label in scope",
     "T: .branchtargets A; brx.idx %r1, T; A: ret;"},
    {"call %d1, (%r1), T; T: .callprototype _ (.param .b32 _);",
     "'T' is not a .callprototype or .calltargets in scope",
     "T: .callprototype _ (.param .b32 _); call %d1, (%r1), T;"},
    /* barriers */
    {"bar.sync 0+40;", "line 8: error: the barriers are numbered from 0 to 15", "bar.sync 0+15;"},
    {"barrier.sync -1;", "the barriers are numbered from 0 to 15", "barrier.sync %r1;"},
    {"bar.red.popc.u32 %r1, 16, %p1;", "numbered from 0 to 15", "bar.red.popc.u32 %r1, 15, %p1;"},
    {"bar.sync 1, 33;", "the number of threads at a barrier must be a multiple of 32", "bar.sync 1, 64;"},
    {"mbarrier.test_wait.parity.shared.b64 %p1, [s], 2;", "the parity of a phase is 0 or 1",
     "mbarrier.test_wait.parity.shared.b64 %p1, [s], 1;"},
    {"bar.arrive 1, 0;", "must be a multiple of 32, not 0", "bar.arrive 1, 32;"},
    {"mbarrier.arrive.noComplete.shared.b64 %d1, [s], 0;", "an mbarrier object counts at least 1 arrival",
     "mbarrier.arrive.noComplete.shared.b64 %d1, [s], 1;"},
    {"mbarrier.arrive_drop.shared.b64 %d1, [s], -1;", "an mbarrier object counts at least 1 arrival",
     "mbarrier.arrive_drop.shared.b64 %d1, [s], %r1;"},
    /* other ranges */
    {"bfe.u32 %r1, %r2, 256, 3;", "line 8: error: a position or a number of bits must be from 0 to 255",
     "bfe.u32 %r1, %r2, 255, %r3;"},
    {"bfi.b64 %d1, %d2, %d3, 3, -1;", "a position or a number of bits", "bfi.b64 %d1, %d2, %d3, 3, 255;"},
    {"cp.async.ca.shared.global [s], [%d1], 4, 5;", "cp.async reads at most as many bytes as it writes",
     "cp.async.ca.shared.global [s], [%d1], 4, 4;"},
    {"cp.async.ca.shared.global [s], [%d1], 4, -1;", "cp.async reads at most",
     "cp.async.ca.shared.global [s], [%d1], 4, 0;"},
    {"mov.f64 %e1, 1e309;", "line 8: error: 1e309 is outside the range of normal doubles",
     "mov.f64 %e1, 1.7976931348623157e308;"},
    {"mov.f32 %f1, 1e-310;", "1e-310 is outside the range", "mov.f32 %f1, 2.2250738585072014e-308;"},
    /* addresses */
    {"ld.global.u32 %r1, [%d1+9.0];", "line 8: error: expected an integer for an offset",
     "ld.global.u32 %r1, [%d1+3*3];"},
    {"ld.param.u32 %r1, [n+0f40000000];", "expected an integer for an offset", "ld.param.u32 %r1, [n+0];"},
    {"ld.param.u32 %r1, [+8];", "line 8: error: only an access to .local can have a constant as its address",
     "ld.local.u32 %r1, [+8];"},
    {"st.shared.u32 [8], %r1;", "only an access to .local", "st.local.u32 [8], %r1;"},
    {"ld.shared.u32 %r1, [s[1]];", "brackets cannot hold brackets", "ld.shared.u32 %r1, s[1];"},
    {"mov.u64 %d1, g[1];", "'g' is not an array", "mov.u64 %d1, g+4;"},
    {"ld.global.u32 %r1, [!%d1];", "an address is a register, a variable or an integer",
     "ld.global.u32 %r1, [%d1];"},
    {"ld.global.u32 %r1, %d1[4];", "'%d1' is not an array", "ld.global.u32 %r1, [%d1+4];"},
    /* registers */
    {"add.u32 %r1.x, %r2, %r3;", "'%r1' is not a vector: it has no .x",
     ".reg .v2 .u32 %v; add.u32 %v.x, %r2, %r3;"},
    {"ld.global.u32 %r1, [%d1.x];", "an address is a register", "ld.global.u32 %r1, [%d1];"},
    {"mov.u32 %r1, %tid.x+4;", "'%tid' must be used directly", "mov.u32 %r1, %tid.x;"},
    {"mov.u32 %r1, %r2-4;", "expected ';', found '-'", "mov.u32 %r1, %r2+-4;"},
    {"mov.u32 %r1, %r2+1.0;", "expected an integer for an offset", "mov.u32 %r1, %r2+(1+2)*WARP_SZ;"},
    {"add.u32 %r1+1, %r2, %r3;", "'%r1' is the destination: expected a register alone",
     "add.u32 %r1, %r2+1, %r3+1;"},
    {"mov.u32 %r1, %r2[1];", "'%r2' with '[]' cannot be an operand", "mov.u32 %r1, %r2+1;"},
    {".reg .v2 .u32 %v; mov.u32 %r1, %v.x+1;", "'%v' with '+' cannot be an operand",
     ".reg .v2 .u32 %v; mov.u32 %r1, %v.x;"},
    {"mov.b64 %d1, {%r1+1, %r2};", "'%r1' is in a list: expected ','", "mov.b64 %d1, {%r1, %r2};"},
    {"st.global.v2.u32 [%d1], {%r1, %r2+1};", "'%r2' is in a list", "st.global.u32 [%d1], %r2+1;"},
    {"brx.idx %r1+1, T; T: .branchtargets A; A: ret;", "'%r1' with '+' cannot be",
     "T: .branchtargets A; brx.idx %r1, T; A: ret;"},
    /* arguments of calls */
    {"call f, (%u1+1);", "'%u1' is in a list", "call f, (1+2);"},
    {".reg .v2 .u32 %v; call f, (%v.x);", "an argument of a call is a register as a whole, not '%v.x'",
     ".reg .u32 %v; call f, (%v);"},
    {"call f, ({%u1});", "expected a register or a constant of type .u32", "call f, (%u1);"},
    {".reg .v2 .u32 %v; call f, (%v);", "'%v' is not of the size, alignment and kind of the parameter 'a'",
     ".reg .v2 .u32 %v; call f2, (%v);"},
    {"call f2, (%u1);", "the parameter 'a' takes a vector register", ".reg .v2 .b32 %v; call f2, (%v);"},
    {".reg .v4 .f32 %v; call f2, (%v);", "'%v' is not of the size, alignment and kind",
     ".reg .v2 .s32 %v; call f2, (%v);"},
    {".reg .v2 .f32 %v; call fa, (%v);", "'%v' is not of the size, alignment and kind",
     ".param .align 8 .b8 v[8]; call fa, (v);"},
    {".param .b64 v; call fa, (v);", "'v' is not of the size, alignment and kind",
     ".param .b32 v; call f, (v);"},
    {".param .v2 .f32 v;", "'v' is a vector: .param has them in arrays only", ".param .v2 .f32 v[2];"},
    {"mov.u32 %r1, %envregs;", "'%envregs' is not declared", "mov.u32 %r1, %envreg31;"},
    {"mov.u32 %r1, %envreg32;", "'%envreg32' is not declared", "mov.u32 %r1, %envreg0;"},
    {"mov.u32 %r1, %globaltimer;", "'%globaltimer' is .u64; expected .u32",
     "mov.u32 %r1, %gridid; mov.u64 %d1, %gridid;"},
    {"mov.u32 %r1, !%tid.x;", "'%tid' must be used directly", "not.b32 %r1, %r2;"},
    {".reg .b32 %r3;", "'%r3' is declared twice; first in line 7", ".reg .b32 %r9;"},
    {"add.bf16x2 %u1, %r2, %r3;", "'%u1' is .u32; expected .bf16x2", "add.bf16x2 %r1, %r2, %r3;"},
    {"add.bf16 %h1, %h2, 1;", "an integer constant cannot be of type .bf16", "add.bf16 %h1, %h2, %h3;"},
    {".reg .u16 %x; cvt.rn.f16x2.e4m3x2 %r1, %x;", "'%x' is .u16; expected .e4m3x2",
     "cvt.rn.f16x2.e4m3x2 %r1, %h1;"},
    {"add.u16x2 %u1, %r2, %r3;", "'%u1' is .u32; expected .u16x2", ".reg .f16x2 %x; add.u16x2 %x, %r2, %r3;"},
    /* spaces */
    {"ld.volatile.u64 %d1, [p0];", "line 8: error: 'p0' is in .param, the instruction accesses .generic",
     "ld.param.u64 %d1, [p0];"},
    {"ld.volatile.param.u64 %d1, [p0];", "'.param' is not a modifier", "ld.weak.param.u64 %d1, [p0];"},
    {"ld.u64 %d1, [p0];", "'p0' is in .param", "ld.param.u64 %d1, [p0];"},
    {"ld.u32 %r1, [c];", "'c' is in .const", "ld.const.u32 %r1, [c];"},
    {"atom.add.u32 %r1, [p0], 1;", "'p0' is in .param", "atom.add.u32 %r1, [g], 1;"},
    {"cvta.global.u64 %d1, s;", "'s' is in .shared, the instruction takes it for .global",
     "cvta.shared.u64 %d1, s;"},
    {"st.param.u32 [n], %r1;", "'n' is a parameter: it cannot be written",
     ".param .b32 a; st.param.b32 [a], %r1; call fp, (a);"},
    /* the address of a variable */
    {"mov.u32 %r1, !s;", "'!' is not allowed here", "mov.u32 %r1, s;"},
    {"mov.f64 %d1, g;", "line 8: error: the address of 'g' cannot be of type .f64", "mov.b64 %e1, g;"},
    {"mov.f32 %f1, s;", "the address of 's' cannot be of type .f32", "mov.b32 %f1, s;"},
    {"mov.u32 %r1, g;", "the address of 'g' takes 64 bits", "mov.u32 %r1, s;"},
    {".param .b32 q; mov.u64 %d1, q;", "the address of the call parameter 'q' cannot be taken",
     "mov.u64 %d1, p0;"},
    {"mov.u64 %d1, f+4;", "nothing can be added to the address of the function 'f'", "mov.u64 %d1, f;"},
    /* vectors */
    {"ld.global.v2.u16 {%r6, %h7}, [%d1];",
     "line 8: error: the elements of a vector must be of one width; '%h7' is not",
     "ld.global.v2.u16 {%r6, %r7}, [%d1];"},
    {"st.global.v2.u16 [%d1], {%h6, %r7};", "of one width", "st.global.v2.u16 [%d1], {%h6, 7};"},
    {"ld.global.v2.b32 {%u1, %f1}, [%d1];", "a vector cannot hold integers and floats",
     "ld.global.v2.b32 {%r1, %f1}, [%d1];"},
    {"st.global.v2.b32 [%d1], {1, %f1};", "a vector cannot hold integers and floats",
     "st.global.v2.b32 [%d1], {1, %r1};"},
    {"ld.global.v2.u32 {_, _}, [%d1];", "a vector needs an element other than '_'",
     "ld.global.v2.u32 {%u1, _}, [%d1];"},
    {"st.global.v2.f32 [%d1], {%f2, _};", "line 8: error:", "st.global.v2.f32 [%d1], {%f2, 0.0};"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%u1,%u2}, {%r1}, "
     "{%f1,%f2,%f3,%f4};",
     "this operand of 'mma' needs registers of type .b32",
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r1}, "
     "{%f1,%f2,%f3,%f4};"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, %r1, {%f1,%f2,%f3,%f4};",
     "expected a vector of 1 elements",
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r1}, "
     "{%f1,%f2,%f3,%f4};"},
    /* a name is declared before it is used, except a label */
    {"add.u32 x, x, 1; .reg .u32 x;", "line 8: error: 'x' is not declared", ".reg .u32 x; add.u32 x, x, 1;"},
    {"mov.u32 %r1, t; .shared .u32 t;", "'t' is not declared", ".shared .u32 t; mov.u32 %r1, t;"},
    {"@x ret; .reg .pred x;", "line 8: error:", ".reg .pred x; @x ret;"},
    {".reg .u32 L; bra L; { L: ret; }", "'L' is not a label in scope", "{ bra L; L: ret; } L: ret;"},
    {"{ .reg .u32 L; { bra L; L: ret; } }", "'L' is not a label in scope",
     "L: { bra L; .reg .u32 M; L: ret; }"},
    /* prototypes and pragmas */
    {"P: .callprototype _ .param .b32 _);", "line 8: error: expected ';', found '.param'",
     "P: .callprototype _ (.param .b32 _);"},
    {"P: .callprototype (.param .b32 _ _ (.param .b32 _);", "expected ')', found '_'",
     "P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[8]);"},
    {"P: .callprototype x (.param .b32 x);", "expected '_', found 'x'",
     "P: .callprototype _ (.param .b32 x, .param .b32 x) .noreturn;"},
    {"P: .callprototype;", "expected '_', found ';'", "P: .callprototype _;"},
    {"P: .callprototype _ (.param .b8 _[], .param .b32 _);", "'_' has no size",
     "P: .callprototype () _ (.reg .b32 _, .param .u64 .ptr .global _, .param .b8 _[]);"},
    {".pragma;", "line 8: error: expected a string, found ';'", ".pragma \"nounroll\";"},
    {".pragma 1;", "expected a string, found '1'", ".pragma \"nounroll\", \"nounroll\";"},
    /* types that only instructions have */
    {".reg .bf16 %x;", "line 8: error: '.bf16' is a type of instructions, not of .reg", ".reg .f16 %x;"},
    {".shared .tf32 x;", "'.tf32' is a type of instructions, not of .shared", ".shared .f32 x;"},
    {".param .f16x2 x;", "'.f16x2' is a type of instructions, not of .param", ".reg .f16x2 %x;"},
    /* immediates in ranges */
    {"pmevent 16;", "line 8: error: the performance events are numbered from 0 to 15", "pmevent 15;"},
    {"pmevent.mask 65536;", "a mask of performance events has 16 bits", "pmevent.mask 65535;"},
    {"createpolicy.fractional.L2::evict_last.b64 %d1, 1.5;", "a fraction must be above 0 and at most 1",
     "createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;"},
    {"createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %d1, 0f00000000;",
     "a fraction must be above 0",
     "createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %d1, 0f3F000000;"},
    {"createpolicy.fractional.L2::evict_last.b64 %d1, -0.5;", "a fraction must be above 0",
     "createpolicy.fractional.L2::evict_last.b64 %d1, %f1;"},
    /* A or B of constants only */
    {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {1}, {%r4}, {%r0, %r1};",
     "this operand of 'mma' needs a register",
     "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r4}, {5, %r1};"},
    {"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%r1, 1}, {4}, {%r0, %r1, %r2, %r3};",
     "this operand of 'mma' needs a register",
     "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%r1, 1}, {%r4}, {%r0, %r1, %r2, "
     "%r3};"},
    /* results that are not kept */
    {"shfl.sync.idx.b32 _|%p1, %r2, 0, 31, -1;", "expected a register of type .b32 as the destination",
     "shfl.sync.idx.b32 %r1|_, %r2, 0, 31, -1; setp.eq.u32 _|%p1, %r1, %r2;"},
    /* vectors of special registers */
    {".reg .v4 .f32 v; mov.v4.f32 v, %tid;", "'%tid' is .u32; expected .f32",
     ".reg .v4 .u32 v; mov.v4.u32 v, %tid;"},
    {"mov.v2.u32 {%r1, %r2}, %ctaid;", "expected a vector of 2 elements",
     "mov.v4.u32 {%r1, _, %r3, %r4}, %ctaid; mov.u32 %r5, %ntid.w;"},
    /* lists of targets */
    {"T: .branchtargets A; ret;", "line 8: error: 'A' is not a label in scope",
     "T: .branchtargets A; A: ret;"},
    {"T: .branchtargets A; { A: ret; }", "'A' is not a label in scope", "{ T: .branchtargets A; } A: ret;"},
    {"T: .branchtargets N<3>; N0: N1: brx.idx %r1, T;", "'N2' is not a label in scope",
     "T: .branchtargets A, N<2>; A: N0: N1: brx.idx %r1, T;"},
    {"T: .calltargets A; A: ret;", "'A' is not a declared function", "T: .calltargets f; A: ret;"},
    /* calls through registers fit their prototype, or each of their targets */
    {"P: .callprototype _ (.reg .u32 a); call %d1, P;", "line 8: error: 'P' has 1 parameters and 0 results",
     "P: .callprototype _ (.reg .u32 a); call %d1, (%r1), P;"},
    {"P: .callprototype (.param .b32 r) _ (); call %d1, P;", "'P' has 0 parameters and 1 results",
     "P: .callprototype (.param .b32 r) _ (); call (%r1), %d1, P;"},
    {"P: .callprototype _ (.reg .u32 a); call %d1, (%f1), P;", "'%f1' is .f32; expected .u32",
     "P: .callprototype _ (.reg .b32 a); call %d1, (%f1), P;"},
    {"P: .callprototype _ (.reg .f32 a); call %d1, (1), P;", "an integer constant cannot be of type .f32",
     "P: .callprototype _ (.reg .f32 a); call %d1, (1.0), P;"},
    {"P: .callprototype (.reg .u32 a, .reg .u32 b) _ (); call (%r1, %r2), %d1, (), P;",
     "a call through a register has at most one result",
     "P: .callprototype (.reg .u32 a) _ (); call (%r1), %d1, (), P;"},
    {"P: .callprototype _ (.param .align 8 .b8 a[8]); { .param .align 4 .b8 q[8]; call %d1, (q), P; }",
     "is not of the size, alignment and kind of the parameter 'a'",
     "P: .callprototype _ (.param .align 8 .b8 a[8]); { .param .align 8 .b8 q[8]; call %d1, (q), P; }"},
    {"P: .callprototype (.param .b32 r) _ (); call (%d1), %d1, (), P;", "'%d1' is .b64; expected .b32",
     "P: .callprototype (.param .b32 r) _ (); call (_), %d1, (), P;"},
    {"T: .calltargets f2, f; call %d1, (%r1), T;", "the parameter 'a' takes a vector register",
     "T: .calltargets fp, f; call %d1, (%r1), T;"},
    {"T: .branchtargets A; A: call %d1, (%r1), T;", "'T' is not a .callprototype or .calltargets in scope",
     "T: .calltargets f; A: call %d1, (%r1), T;"},
    /* call parameters of one alignment */
    {"{ .param .align 4 .b8 q[8]; call fa, (q); }",
     "is not of the size, alignment and kind of the parameter 'a'",
     "{ .param .align 8 .b8 q[8]; call fa, (q); }"},
    {"{ .param .align 8 .b32 q; call fp, (q); }",
     "is not of the size, alignment and kind of the parameter 'a'",
     "{ .param .align 4 .b32 q; call fp, (q); }"},
    {"{ .param .align 256 .b8 q[8]; }", "aligned to at most 128 bytes", "{ .param .align 128 .b8 q[8]; }"},
    /* debugging directives */
    {".loc 1 2\nret;", "line 9: error: expected an integer for a column, found 'ret'", ".loc 1 2 3 ret;"},
    {".loc 1 2 3, inlined_at 1 2 3\nret;", "expected 'function_name'",
     ".loc 1 2 3\n.loc 1 2 4, function_name L, inlined_at 1 2 3\nret; L:"},
    {".file 1 \"x\"\nret;", "'.file' is not a directive of function bodies", ".pragma \"nounroll\"; ret;"},
};

/* At module level, from line 4 on. */
static const pair modules[] = {
    {".entry k(.param .u64 p);\n.entry k(.param .u32 p) { ret; }",
     "line 5: error: function 'k' was declared with other parameters",
     ".entry k(.param .u64 p);\n.entry k(.param .u64 q) { ret; }"},
    {".global .attribute(.managed) .align 3 .u32 m;",
     "line 4: error: the alignment must be a power of two up to 2147483648",
     ".global .attribute(.managed) .align 4 .u32 m = 3;"},
    {".global .attribute() .u32 m;", "line 4: error: expected '.unified', found ')'",
     ".global .attribute(.unified(1, 2), .managed) .u32 m;"},
    {".shared .attribute(.managed) .u32 m;", "expected '.unified', found '.managed'",
     ".global .attribute(.managed, .managed) .u32 m;"},
    {".func .attribute(.managed) f() { ret; }", "expected '.unified', found '.managed'",
     ".func .attribute(.unified(1, 2)) f() { ret; }"},
    {".entry .attribute(.unified(1, 2)) k() { ret; }", "expected a function's name, found '.attribute'",
     ".entry k() { ret; }"},
    {".global .v2 .v2 .f32 x;", "line 4: error: '.v2' is not a type", ".global .v2 .f32 x;"},
    {".entry k()\n.maxntid 64+464 { ret; }", "line 5: error: expected '{', found '+'",
     ".entry k()\n.maxntid 0x40 { ret; }"},
    {".entry k()\n.maxntid 64, (1) { ret; }",
     "line 5: error: expected an integer for a block dimension, found '('",
     ".entry k()\n.maxntid 64, 1U { ret; }"},
    {".entry k()\n.reqntid 0 { ret; }", "a block dimension must be from 1",
     ".entry k()\n.reqntid 1 { ret; }"},
    {".entry k()\n.maxnreg -1 { ret; }", "expected an integer for .maxnreg",
     ".entry k()\n.maxnreg 1 { ret; }"},
    {".func f()\n.maxntid 64 { ret; }", "expected '{', found '.maxntid'", ".entry f()\n.maxntid 64 { ret; }"},
    {".entry k()\n.noreturn { ret; }", "expected '{', found '.noreturn'", ".func k()\n.noreturn { trap; }"},
    {".global .align 4+4 .b8 x[8];", "line 4: error: expected a type, found '+'",
     ".global .align 8 .b8 x[8];"},
    {".func f(.param .u32 _) { ret; }", "expected a parameter's name, found '_'",
     ".entry k(.param .u32 _) { ret; }"},
    {".global .u32 _;", "expected a name, found '_'", ".shared .u32 __[WARP_SZ];"},
    {".global .b8 x[4+4];", "expected ']', found '+'", ".global .b8 x[0x8];"},
    {".shared .b8 x[0];", "'x' has no size", ".extern .shared .b8 x[0];"},
    {".visible .visible .global .u32 x;", "expected", ".visible .global .u32 x;"},
    {".extern .func f() { ret; }", "an external function has no body", ".visible .func f() { ret; }"},
    {".func f(.param .b32 a); .func f(.param .b64 a) { ret; }",
     "function 'f' was declared with other parameters",
     ".func f(.param .b32 a); .func f(.param .b32 b) { ret; }"},
    /* a name is declared before it is used */
    {".entry k() { call f; ret; }\n.func f() { ret; }",
     "line 4: error: the function 'f' is declared after this call",
     ".func f();\n.entry k() { call f; ret; }\n.func f() { ret; }"},
    {".entry k() { .reg .u64 d; mov.u64 d, f; ret; }\n.func f() { ret; }",
     "line 4: error: 'f' is not declared",
     ".func f();\n.entry k() { .reg .u64 d; mov.u64 d, f; ret; }\n.func f() { ret; }"},
    {".entry k() { .reg .u32 r; ld.global.u32 r, [x]; ret; }\n.global .u32 x;", "'x' is not declared",
     ".global .u32 x;\n.entry k() { .reg .u32 r; ld.global.u32 r, [x]; ret; }"},
    {".global .u64 p = x;\n.global .u32 x;", "line 4: error: 'x' is not a .global or .const variable",
     ".global .u32 x;\n.global .u64 p = x;"},
    {".global .u64 p = p;", "'p' is not a .global", ".global .u64 p;"},
    /* kernels are not called */
    {".entry a() { ret; }\n.entry k() { call a; ret; }",
     "line 5: error: 'a' is a kernel, which cannot be called",
     ".func a() { ret; }\n.entry k() { call a; ret; }"},
    {".entry k() { call k; ret; }", "line 4: error: 'k' is a kernel, which cannot be called",
     ".entry k() { ret; }"},
    /* functions without a body */
    {".func f();\n.entry k() { ret; }", "line 4: error: function 'f' has no body, and is not .extern",
     ".extern .func f();\n.entry k() { ret; }"},
    {".entry k();", "function 'k' has no body", ".extern .entry k();"},
    {".func g() { ret; }\n.func f();", "line 5: error: function 'f' has no body",
     ".func g() { ret; }\n.func f();\n.alias f, g;"},
    /* linkage: the first declaration's, or none */
    {".func f();\n.visible .func f() { ret; }",
     "line 5: error: function 'f' was declared with another linkage in line 4",
     ".visible .func f();\n.visible .func f() { ret; }"},
    {".weak .func f();\n.visible .func f() { ret; }", "with another linkage",
     ".weak .func f();\n.func f() { ret; }"},
    {".extern .func f();\n.func f() { ret; }", "with another linkage",
     ".visible .func f();\n.func f() { ret; }"},
    {".entry k();\n.visible .entry k() { ret; }", "with another linkage",
     ".visible .entry k();\n.entry k() { ret; }"},
    {".common .func f() { ret; }", "expected .entry, .func or a variable, found '.func'",
     ".weak .func f() { ret; }"},
    {".common .shared .u32 x;", "only .global variables can be .common", ".common .global .u32 x;"},
    /* parameters */
    {".entry k(.param .u32 a, ) { ret; }", "line 4: error: expected .param or .reg, found ')'",
     ".entry k(.param .u32 a) { ret; }"},
    {".entry k(.param .b8 x[]) { ret; }", "'x' has no size", ".entry k(.param .b8 x[8]) { ret; }"},
    {".func f(.param .b8 x[], .param .u32 y) { ret; }",
     "'x' has no size; only the last parameter of a .func may have none",
     ".func f(.param .u32 y, .param .b8 x[]) { ret; }"},
    {".func (.param .b8 x[]) f() { ret; }", "'x' has no size", ".func (.param .b8 x[8]) f() { ret; }"},
    {".func f(.param .u64 .ptr .global .align 4 y) { ret; }", "'.ptr' is for the parameters of kernels",
     ".entry f(.param .u64 .ptr .global .align 4 y) { ret; }"},
    {".func f(.param .b32 .align 4 y) { ret; }", "expected a parameter's name, found '.align'",
     ".entry f(.param .b32 .align 4 y) { ret; }"},
    {".func f(.param .b32 .global y) { ret; }", "expected a parameter's name, found '.global'",
     ".func f(.param .align 4 .b32 y) { ret; }"},
    {".entry k(.param .u64 .ptr .param y) { ret; }", "expected a parameter's name, found '.param'",
     ".entry k(.param .u64 .ptr .shared y) { ret; }"},
    {".func f(.param .b32 x) { st.param.b32 [x], 1; ret; }", "'x' is a parameter: it cannot be written",
     ".func (.param .b32 x) f() { st.param.b32 [x], 1; ret; }"},
    {".func (.param .b32 x) f() { .reg .b32 r; ld.param.b32 r, [x]; ret; }",
     "'x' is a result: it cannot be read",
     ".func f(.param .b32 x) { .reg .b32 r; ld.param.b32 r, [x]; ret; }"},
    /* initialisers */
    {".global .u32 a;\n.global .b64 p = a;", "line 5: error: an initialiser of 'p' is not of type .b64",
     ".global .u32 a;\n.global .u64 p = a;"},
    {".global .u32 a;\n.global .b8 p[2] = {0xff(a)};", "an initialiser of 'p' is not of type .b8",
     ".global .u32 a;\n.global .u8 p[2] = {0xff(a)};"},
    {".global .u32 a[3] = {1, 2, };", "line 4: error: expected a constant, found '}'",
     ".global .u32 a[2] = {1, 2};"},
    {".global .u32 a[2] = 1;", "expected '{', found '1'", ".global .u32 a[2] = {1};"},
    {".global .u32 a = {1};", "expected a value of 'a', found '{'", ".global .u32 a = 1;"},
    {".global .u32 a[2][2] = {1, 2, 3, 4};", "expected '{', found '1'",
     ".global .u32 a[2][2] = {{1, 2}, {3}};"},
    {".global .v2 .u32 a[2] = {{1}, {3, 4}};", "a vector of 'a' takes 2 values",
     ".global .v2 .u32 a[2] = {{1, 2}};"},
    /* repeated declarations of variables */
    {".extern .shared .b8 x[]; .shared .b8 x[4];", "line 4: error: 'x' is declared twice",
     ".extern .shared .align 16 .b8 x[]; .extern .shared .b8 x[]; .extern .shared .b8 x[4];"},
    {".extern .shared .u32 x[]; .extern .shared .s32 x[];", "'x' is declared twice",
     ".extern .shared .u32 x[]; .entry k() { .reg .u32 r; mov.u32 r, x; ret; } .visible .shared .u32 x[4];"},
    {".visible .global .u32 x; .visible .global .u32 x;", "'x' is declared twice",
     ".extern .global .u32 x; .visible .global .u32 x = 4; .extern .global .u32 x;"},
    {".extern .const .u32 x; .const .u32 x = 4;", "'x' is declared twice",
     ".extern .const .u32 x[]; .visible .const .u32 x[2] = {4, 5};"},
    {".extern .global .u32 x[4]; .visible .global .u32 x[5];", "'x' was declared with another size in line 4",
     ".extern .global .u32 x[2][3]; .visible .global .u32 x[2][3];"},
    {".extern .global .u32 x[1]; .visible .global .u32 x;", "'x' was declared with another size",
     ".extern .global .u32 x[]; .visible .global .u32 x[] = {4, 5};"},
    {".extern .global .u64 x; .visible .global .u64 x = y; .visible .global .u32 y;",
     "'y' is not a .global or .const variable",
     ".extern .global .u64 x; .visible .global .u32 y; .visible .global .u64 x = y;"},
    /* alignments */
    {".global .align 4294967296 .b8 x[4];", "the alignment must be a power of two up to 2147483648",
     ".global .align 131072 .b8 x[4];"},
    {".func f(.param .align 256 .b8 x[4]) { ret; }", "aligned to at most 128 bytes",
     ".extern .func f(.param .align 256 .b8 x[4]); .entry k(.param .align 256 .b8 x[4]) { ret; }"},
    /* directives of functions */
    {".func f() .noreturn .noreturn { trap; }", "line 4: error: expected '{', found '.noreturn'",
     ".func f() .noreturn { trap; }"},
    {".entry k() { P: .callprototype _ () .noreturn .noreturn; ret; }", "expected ';', found '.noreturn'",
     ".entry k() { P: .callprototype _ () .noreturn; ret; }"},
    {".func f() .abi_preserve 4 { ret; }", "'.abi_preserve' needs .version 9.0 and .target sm_80",
     ".func f() { ret; }"},
    {".func (.param .u32 a, .param .u32 b) f() { ret; }", "several results must be in .reg",
     ".func (.reg .u32 a, .reg .u32 b) f() { ret; }"},
    /* sections */
    {".section .debug_x { frob }", "line 4: error: expected ':', found '}'", ".section .debug_x { L: }"},
    {".section .debug_x { .b8 1, }", "expected an integer for the section, found '}'",
     ".section .debug_x { .b8 1 }"},
    {".section .debug_x { .b8 1; }", "expected .b8, .b16, .b32 or .b64, found ';'",
     ".section .debug_x { .b8 1, 2 .b16 3 }"},
    {".section .debug_x { .b8 256 }", "the number does not fit .b8", ".section .debug_x { .b8 255, -128 }"},
    {".section .debug_x { .b16 -32769 }", "the number does not fit .b16", ".section .debug_x { .b32 -1 }"},
    {".section .debug_x { .u8 1 }", "expected .b8, .b16, .b32 or .b64, found '.u8'", ".section .debug_x { }"},
    {".section .debug_x { .b16 L }", "an address takes .b32 or .b64",
     ".section .debug_x { .b64 L+4, .debug_y .b32 L-M }"},
    {".section .debug_x { L: L: .b8 1 }", "'L' is declared twice", ".section .debug_x { L: M: .b8 1 }"},
    {".section debug_x { .b8 1 }", "expected a section such as .debug_info, found 'debug_x'",
     ".section .x { .b8 1 } .section .x { .b8 1 }"},
    {".entry k() .section .x { .b8 1 } { ret; }", "expected '{', found '.section'",
     ".section .x { .b8 1 } .entry k() .pragma \"nounroll\"; { ret; }"},
    {".file 1 \"a\"\n.file 1 \"b\"", "line 5: error: there is a file 1 already",
     ".file 1 \"a\"\n.file 2 \"b\", 3, 4"},
    {".file \"a\"", "expected an integer for a file's number", ".file 1 \"a\""},
    {".loc 1 2 3", "expected .entry, .func or a variable, found '.loc'", ".pragma \"nounroll\";"},
    {".global .f16 x = 0x3C00;", "a variable of type .f16 takes no initialiser", ".global .b16 x = 0x3C00;"},
    {".func f() { ret; } .global .u64 y = f+4;", "nothing can be added to the address of the function 'f'",
     ".func f() { ret; } .global .u64 y = f;"},
    {".global .u32 a[2] = {1, 2, 3};", "the initialiser of 'a' has more elements than the variable",
     ".global .u32 a[] = {1, 2, 3};"},
};

static void check(const pair *p, const char *format)
{
    static char text[4096];
    CUmodule m;
    snprintf(text, sizeof text, format, p->refused);
    if (load_text(text, &m) != CUDA_ERROR_INVALID_PTX)
        fail_msg("this was taken: %s", p->refused);
    assert_contains(test_log, p->message);
    snprintf(text, sizeof text, format, p->accepted);
    if (load_text(text, &m) != CUDA_SUCCESS)
        fail_msg("this was refused: %s\n%s", p->accepted, test_log);
    cuModuleUnload(m);
}

#define HEADER ".version 8.8\n.target sm_90\n.address_size 64\n"

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        check(
            &bodies[i], HEADER
            ".global .u32 g; .const .u32 c; .shared .u32 s[4]; .func f(.reg .u32 a) { ret; } "
            ".func fp(.param .b32 a) { ret; } .func f2(.reg .v2 .f32 a) { ret; } .func fa(.param .align 8 .b8 a[8]) { ret; }\n"
            ".visible .entry k(.param .u64 p0, .param .u32 n)\n{\n"
            ".reg .b32 %%r<9>; .reg .u32 %%u<9>; .reg .f32 %%f<9>; .reg .b64 %%d<9>; .reg .f64 %%e<9>; "
            ".reg .b16 %%h<9>; .reg .pred %%p<9>;\n%s\n}\n");
}

static void test_modules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        check(&modules[i], HEADER "%s\n");
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    CUmodule m;
    assert_int_equal(load_text("\xef\xbb\xbf" HEADER, &m), CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "line 1: error: byte 0xEF is not ASCII");
    assert_int_equal(load_text(".version 8.8\r.target sm_90\r.address_size 64\r", &m), CUDA_SUCCESS);
    cuModuleUnload(m);
}

static void test_deep_initialiser(void **state)
{
    (void)state;
    CUmodule m;
    CUdeviceptr p;
    size_t bytes;
    uint32_t got[8];
    assert_int_equal(load_text(HEADER ".global .u32 x[2][2][2] = {{{1}, {2}}, {{3}, {4, 5}}};", &m),
                     CUDA_SUCCESS);
    assert_int_equal(cuModuleGetGlobal_v2(&p, &bytes, m, "x"), CUDA_SUCCESS);
    assert_int_equal(bytes, sizeof got);
    cuMemcpyDtoH_v2(got, p, sizeof got);
    assert_memory_equal(got, ((uint32_t[]){1, 0, 2, 0, 3, 0, 4, 5}), sizeof got);
    cuModuleUnload(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_deep_initialiser),
    };
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
