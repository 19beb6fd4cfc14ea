"""Speed of the emulated driver: thread instructions per second of convergent arithmetic under several checks and host
threads, and a tiled f32 matrix product. Prints medians of five; nothing passes or fails here.

usage: bench.py build/lib/emulator/libcuda.so.1
"""
import ctypes
import os
import statistics
import subprocess
import sys
import time

ARITHMETIC = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .u64 %d; .reg .u32 %r<4>; .reg .f32 %f<8>; .reg .pred %q;
ld.param.u64 %d, [p]; mov.u32 %r0, 0; mov.u32 %r1, 7;
mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f3F000000; mov.f32 %f2, 0f3E800000; mov.f32 %f3, 0f3E000000;
L:
""" + "".join(f"fma.rn.f32 %f{i % 4}, %f{i % 4}, %f{(i + 1) % 4}, %f{(i + 2) % 4}; xor.b32 %r1, %r1, %r0;\n"
              for i in range(8)) + """add.u32 %r0, %r0, 1; setp.lt.u32 %q, %r0, 2000;
@%q bra L;
add.f32 %f0, %f0, %f1; st.global.f32 [%d], %f0; st.global.u32 [%d+4], %r1; ret; }
"""
BLOCKS, THREADS, LOOPS, LOOP_INSTRUCTIONS = 64, 256, 2000, 19

MATRIX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc) {
.reg .u64 %d<8>; .reg .u32 %r<16>; .reg .f32 %f<4>; .reg .pred %q;
.shared .align 4 .b8 sa[1024]; .shared .align 4 .b8 sb[1024];
ld.param.u64 %d0, [pa]; ld.param.u64 %d1, [pb]; ld.param.u64 %d2, [pc];
mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y;
mad.lo.u32 %r4, %r3, 16, %r1; mad.lo.u32 %r5, %r2, 16, %r0;
mad.lo.u32 %r6, %r4, 512, %r0; mad.wide.u32 %d3, %r6, 4, %d0;
mad.lo.u32 %r6, %r1, 512, %r5; mad.wide.u32 %d4, %r6, 4, %d1;
mad.lo.u32 %r6, %r4, 512, %r5; mad.wide.u32 %d5, %r6, 4, %d2;
mov.u32 %r7, sa; mov.u32 %r8, sb; mad.lo.u32 %r9, %r1, 64, %r7; mad.lo.u32 %r10, %r0, 4, %r8;
mad.lo.u32 %r11, %r0, 4, %r9; mad.lo.u32 %r12, %r1, 64, %r10; mov.u32 %r13, 0; mov.f32 %f0, 0f00000000;
L:
ld.global.f32 %f1, [%d3]; ld.global.f32 %f2, [%d4]; st.shared.f32 [%r11], %f1; st.shared.f32 [%r12], %f2; bar.sync 0;
""" + "".join(f"ld.shared.f32 %f1, [%r9+{4 * k}]; ld.shared.f32 %f2, [%r10+{64 * k}]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
              for k in range(16)) + """bar.sync 0;
add.u64 %d3, %d3, 64; add.u64 %d4, %d4, 32768; add.u32 %r13, %r13, 1; setp.lt.u32 %q, %r13, 32;
@%q bra L;
st.global.f32 [%d5], %f0; ret; }
"""

C_LOOP = r"""
#include <stdint.h>
#include <stdio.h>
#include <time.h>
int main(void) {
    struct timespec a, b; float best = 1e9f;
    for (int t = 0; t < 5; t++) {
        clock_gettime(CLOCK_MONOTONIC, &a);
        volatile float out; volatile uint32_t bits;
        for (int w = 0; w < 64 * 8; w++) {
            float f[4][32]; uint32_t r[32];
            for (int i = 0; i < 32; i++) { f[0][i] = 1; f[1][i] = .5f; f[2][i] = .25f; f[3][i] = .125f; r[i] = 7; }
            for (uint32_t n = 0; n < 2000; n++)
                for (int k = 0; k < 8; k++)
                    for (int i = 0; i < 32; i++) { f[k%4][i] = f[k%4][i] * f[(k+1)%4][i] + f[(k+2)%4][i]; r[i] ^= n; }
            out = f[0][5] + f[1][6]; bits = r[3];
        }
        (void)out; (void)bits;
        clock_gettime(CLOCK_MONOTONIC, &b);
        float s = (float)(b.tv_sec - a.tv_sec) + 1e-9f * (float)(b.tv_nsec - a.tv_nsec);
        best = s < best ? s : best;
    }
    printf("%g\n", best);
}
"""


def child(library, what):
    cuda = ctypes.CDLL(library)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()

    def call(name, *args):
        r = getattr(cuda, name)(*args)
        if r:
            sys.exit(f"{name}: {r}")

    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    text = ARITHMETIC if what == "arithmetic" else MATRIX
    call("cuModuleLoadData", ctypes.byref(module), text.encode())
    call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    pointers = [ctypes.c_uint64() for _ in range(1 if what == "arithmetic" else 3)]
    for p in pointers:
        call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(512 * 512 * 4))
        call("cuMemsetD8_v2", p, 0, ctypes.c_size_t(512 * 512 * 4))
    args = (ctypes.c_void_p * len(pointers))(*[ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in pointers])
    shape = (BLOCKS, 1, 1, THREADS, 1, 1) if what == "arithmetic" else (32, 32, 1, 16, 16, 1)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call("cuLaunchKernel", function, *shape, 0, None, args, None)
        call("cuCtxSynchronize")
        times.append(time.perf_counter() - start)
    print(statistics.median(times))


def measure(library, what, checks, threads):
    environment = dict(os.environ, KILN_EMU_THREADS=str(threads))
    environment.pop("KILN_EMU_CHECK", None)
    if checks:
        environment["KILN_EMU_CHECK"] = checks
    return float(subprocess.run([sys.executable, "-B", __file__, library, what], env=environment, check=True,
                                capture_output=True, text=True).stdout)


def main(library):
    count = BLOCKS * THREADS * LOOPS * LOOP_INSTRUCTIONS
    for checks in ("none", None, "memory,init"):
        for threads in (1, 2):
            seconds = measure(library, "arithmetic", checks, threads)
            print(f"arithmetic     checks {checks or 'default':12} {threads} threads: {count / seconds / 1e9:6.2f} G/s")
    for checks in (None, "memory,init,sync"):
        for threads in (1, 2):
            seconds = measure(library, "matrix", checks, threads)
            print(f"512^3 matrix   checks {checks or 'default':16} {threads} threads: {seconds:6.2f} s")
    source = "/tmp/kiln_bench_loop"
    with open(source + ".c", "w", encoding="utf-8") as f:
        f.write(C_LOOP)
    subprocess.run(["cc", "-O3", "-march=native", source + ".c", "-o", source], check=True)
    seconds = float(subprocess.run([source], check=True, capture_output=True, text=True).stdout)
    print(f"the loop in C, -O3 -march=native, 1 thread: {count / seconds / 1e9:6.2f} G/s")


if len(sys.argv) == 3:
    child(sys.argv[1], sys.argv[2])
else:
    main(sys.argv[1])
