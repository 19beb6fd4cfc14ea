/* Shared by the tests of single instructions: runs one or a few on the values of every thread. */
#ifndef INSTRUCTION_TEST_H
#define INSTRUCTION_TEST_H

#include "emu_test.h"

/* Each thread has the values a, b and c: 64 bits in %d0 to %d2, the low bits in %r0 to %r2 and %f0 to %f2 (32 bits) and %h0 to
   %h2 (16 bits), a's lowest bit in %q0; %r3 is a times 0x9e3779b1. The result is in %d5, %r5, %f5 or %h5, or in bit 32 if it is
   %q5; those that an instruction does not write are 0. One warp in eight is diverged: its odd lanes have a copy of the
   instruction. */
static inline void run_instruction(const char *header, const char *instruction, unsigned threads,
                                   uint64_t (*in)[3], uint64_t *out)
{
    static char body[4096];
    snprintf(
        body, sizeof body,
        ".reg .u64 %%p<4>; .reg .b64 %%d<7>; .reg .b32 %%r<12>; .reg .b32 %%f<7>; .reg .b16 %%h<7>; .reg .pred %%q<6>;\n"
        ".reg .b8 %%c<4>; .reg .b128 %%x;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r6, %%ctaid.x; mov.u32 %%r7, %%tid.x;\n"
        "mad.lo.u32 %%r8, %%r6, 256, %%r7; mad.wide.u32 %%p1, %%r8, 24, %%p1; mad.wide.u32 %%p0, %%r8, 8, %%p0;\n"
        "ld.global.b64 %%d0, [%%p1]; ld.global.b64 %%d1, [%%p1+8]; ld.global.b64 %%d2, [%%p1+16];\n"
        "cvt.u32.u64 %%r0, %%d0; cvt.u32.u64 %%r1, %%d1; cvt.u32.u64 %%r2, %%d2; mul.lo.u32 %%r3, %%r0, 0x9e3779b1;\n"
        "mov.b32 %%f0, %%r0; mov.b32 %%f1, %%r1; mov.b32 %%f2, %%r2; and.b32 %%r9, %%r0, 1; setp.ne.u32 %%q0, %%r9, 0;\n"
        "cvt.u16.u64 %%h0, %%d0; cvt.u16.u64 %%h1, %%d1; cvt.u16.u64 %%h2, %%d2;\n"
        "mov.b64 %%d5, 0; mov.b32 %%r5, 0; mov.b32 %%f5, 0; mov.b16 %%h5, 0; setp.ne.u32 %%q5, 0, 0;\n"
        "and.b32 %%r9, %%r7, 0xe1; setp.eq.u32 %%q3, %%r9, 0xe1; @%%q3 bra ODD;\n"
        "%s\nbra DONE;\nODD: %s\nDONE:\n"
        "cvt.u64.u32 %%d6, %%r5; or.b64 %%d5, %%d5, %%d6; cvt.u64.u32 %%d6, %%f5; or.b64 %%d5, %%d5, %%d6;\n"
        "cvt.u64.u16 %%d6, %%h5; or.b64 %%d5, %%d5, %%d6; selp.b64 %%d6, 0x100000000, 0, %%q5; or.b64 %%d5, %%d5, %%d6;\n"
        "st.global.b64 [%%p0], %%d5; ret;",
        instruction, instruction);
    run_body(header, body, threads, in, threads * sizeof *in, out, threads * sizeof *out);
}

#endif
