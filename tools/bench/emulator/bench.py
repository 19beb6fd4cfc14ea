"""Speed of the emulated driver under several checks and on one and two host threads, beside the same loop in C.

Nothing passes or fails. Prints medians of five rounds. A round runs every row once, so that other load on the machine
affects all rows alike, and ratios compare rows of one round.

usage: bench.py libcuda.so.1 [--json] [--rounds N] [--small]
"""
import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HEAD = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k("

# Sixteen operations, and three for the loop, in registers, without divergence.
ARITHMETIC = HEAD + """.param .u64 p, .param .u32 n) {
.reg .u64 %d; .reg .u32 %r<4>; .reg .f32 %f<8>; .reg .pred %q;
ld.param.u64 %d, [p]; ld.param.u32 %r2, [n]; mov.u32 %r0, 0; mov.u32 %r1, 7;
mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f3F000000; mov.f32 %f2, 0f3E800000; mov.f32 %f3, 0f3E000000;
L:
""" + "".join(f"fma.rn.f32 %f{i % 4}, %f{i % 4}, %f{(i + 1) % 4}, %f{(i + 2) % 4}; xor.b32 %r1, %r1, %r0;\n"
              for i in range(8)) + """add.u32 %r0, %r0, 1; setp.lt.u32 %q, %r0, %r2;
@%q bra L;
add.f32 %f0, %f0, %f1; st.global.f32 [%d], %f0; st.global.u32 [%d+4], %r1; ret; }
"""

# y = a * x + y
STREAM = HEAD + """.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .u64 %d<3>; .reg .u32 %r<4>; .reg .f32 %f<3>;
ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
mad.wide.u32 %d0, %r3, 4, %d0; mad.wide.u32 %d1, %r3, 4, %d1;
ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d1]; fma.rn.f32 %f2, %f0, 0f40000000, %f1; st.global.f32 [%d1], %f2;
ret; }
"""
STREAM_INSTRUCTIONS = 13

# c = a * b, of n rows and columns, in tiles of 16 x 16 in shared memory.
PRODUCT = HEAD + """.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 n) {
.reg .u64 %d<8>; .reg .u32 %r<20>; .reg .f32 %f<4>; .reg .pred %q;
.shared .align 4 .b8 sa[1024]; .shared .align 4 .b8 sb[1024];
ld.param.u64 %d0, [pa]; ld.param.u64 %d1, [pb]; ld.param.u64 %d2, [pc]; ld.param.u32 %r15, [n];
mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y;
mad.lo.u32 %r4, %r3, 16, %r1; mad.lo.u32 %r5, %r2, 16, %r0;
mad.lo.u32 %r6, %r4, %r15, %r0; mad.wide.u32 %d3, %r6, 4, %d0;
mad.lo.u32 %r6, %r1, %r15, %r5; mad.wide.u32 %d4, %r6, 4, %d1;
mad.lo.u32 %r6, %r4, %r15, %r5; mad.wide.u32 %d5, %r6, 4, %d2;
mul.wide.u32 %d6, %r15, 64; shr.u32 %r16, %r15, 4;
mov.u32 %r7, sa; mov.u32 %r8, sb; mad.lo.u32 %r9, %r1, 64, %r7; mad.lo.u32 %r10, %r0, 4, %r8;
mad.lo.u32 %r11, %r0, 4, %r9; mad.lo.u32 %r12, %r1, 64, %r10; mov.u32 %r13, 0; mov.f32 %f0, 0f00000000;
L:
ld.global.f32 %f1, [%d3]; ld.global.f32 %f2, [%d4]; st.shared.f32 [%r11], %f1; st.shared.f32 [%r12], %f2; bar.sync 0;
""" + "".join(f"ld.shared.f32 %f1, [%r9+{4 * k}]; ld.shared.f32 %f2, [%r10+{64 * k}]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
              for k in range(16)) + """bar.sync 0;
add.u64 %d3, %d3, 64; add.u64 %d4, %d4, %d6; add.u32 %r13, %r13, 1; setp.lt.u32 %q, %r13, %r16;
@%q bra L;
st.global.f32 [%d5], %f0; ret; }
"""
PRODUCT_LOOP, PRODUCT_REST = 59, 27

# The arithmetic loop with a warp's lanes adjacent, which suits vectorisers.
C_LOOP = r"""
#include <stdint.h>
#include <stdio.h>
#include <time.h>
static void lanes(uint32_t n, float f[4][32], uint32_t r[32])
{
    for (uint32_t t = 0; t < n; t++)
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 32; i++) {
                f[k % 4][i] = f[k % 4][i] * f[(k + 1) % 4][i] + f[(k + 2) % 4][i];
                r[i] ^= t;
            }
}
int main(void)
{
    unsigned warps, n;
    volatile float out;
    while (scanf("%u %u", &warps, &n) == 2) {
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        for (unsigned w = 0; w < warps; w++) {
            float f[4][32];
            uint32_t r[32];
            for (int i = 0; i < 32; i++) {
                f[0][i] = 1, f[1][i] = .5f, f[2][i] = .25f, f[3][i] = .125f;
                r[i] = 7;
            }
            lanes(n, f, r);
            out = f[0][5] + f[1][6] + (float)r[3];
        }
        (void)out;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        printf("%.9f\n", (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
        fflush(stdout);
    }
}
"""


class Workload:
    """A kernel, its launch, its scalar, the bytes of its buffers, and the number of thread instructions."""

    def __init__(self, text, grid, block, scalar, buffers, instructions):
        self.text, self.grid, self.block, self.scalar = text, grid, block, scalar
        self.buffers, self.instructions = buffers, instructions


def workloads(small):
    loops, elements, size = (20, 1 << 12, 32) if small else (2000, 1 << 20, 512)
    threads = size * size
    return {
        "arithmetic": Workload(ARITHMETIC, (64, 1), (256, 1), loops, [4096], 64 * 256 * (11 + 19 * loops)),
        "stream": Workload(STREAM, (elements // 256, 1), (256, 1), elements, [4 * elements] * 2,
                           elements * STREAM_INSTRUCTIONS),
        "product": Workload(PRODUCT, (size // 16, size // 16), (16, 16), size, [4 * threads] * 3,
                            threads * (PRODUCT_REST + PRODUCT_LOOP * (size // 16))),
    }


ROWS = [(name, checks, threads) for name in ("arithmetic", "stream", "product")
        for checks in ("none", "memory,sync", "memory,init", "memory,init,sync", "all") for threads in (1, 2)
        if checks != "all" or threads == 1]  # the race check uses one thread


# ---- one row, in its own process -------------------------------------------------------------------


def serve(library, name, small):
    """Launches once for each line of input, and prints wall and processor seconds."""
    cuda = ctypes.CDLL(library)
    w = workloads(small)[name]

    def call(function, *args):
        r = getattr(cuda, function)(*args)
        if r:
            sys.exit(f"{function}: {r}")

    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuModuleLoadData", ctypes.byref(module), w.text.encode())
    call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    values = [ctypes.c_uint64() for _ in w.buffers] + [ctypes.c_uint32(w.scalar)]
    for p, size in zip(values, w.buffers):
        call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(size))
        call("cuMemsetD32_v2", p, 0x3F800000, ctypes.c_size_t(size // 4))
    args = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
    cpu = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for _ in sys.stdin:
        start, used = time.perf_counter(), cpu()
        call("cuLaunchKernel", function, *w.grid, 1, *w.block, 1, 0, None, args, None)
        call("cuCtxSynchronize")
        print(time.perf_counter() - start, cpu() - used, flush=True)
    if name == "product":  # buffers of ones
        out = (ctypes.c_float * (w.buffers[2] // 4))()
        call("cuMemcpyDtoH_v2", out, values[2], ctypes.c_size_t(w.buffers[2]))
        if set(out) != {float(w.scalar)}:
            sys.exit("the product is wrong")


class Server:
    def __init__(self, command, **environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def ask(self, line=""):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [float(v) for v in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("a row failed")


# ---- the table ------------------------------------------------------------------------------------------


def compiled_loops(folder):
    """Returns the C loop's programs by compiler options."""
    source = os.path.join(folder, "loop.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(C_LOOP)
    compiler = os.environ.get("CC") or shutil.which("cc")
    for flags in "-O2", "-O3 -march=native":
        program = os.path.join(folder, "loop" + flags.replace(" ", ""))
        if compiler:
            subprocess.run([compiler, *flags.split(), source, "-o", program], check=True)
            yield flags, program


def measure(options):
    w = workloads(options.small)
    servers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, checks, threads in ROWS:
            command = [sys.executable, "-B", __file__, options.library, "--serve", name]
            servers[name, checks, threads] = Server(command + ["--small"] * options.small, KILN_EMU_CHECK=checks,
                                                    KILN_EMU_THREADS=str(threads))
        loops = {flags: Server([program]) for flags, program in compiled_loops(folder)}
        rounds = []
        for _ in range(options.rounds):
            times = {row: server.ask() for row, server in servers.items()}
            for flags, server in loops.items():
                times[flags] = server.ask(f"{64 * 256 // 32} {w['arithmetic'].scalar}")
            rounds.append(times)
        for server in [*servers.values(), *loops.values()]:
            server.close()
    return w, list(loops), rounds


def summary(w, loops, rounds):
    median = lambda f: statistics.median(f(r) for r in rounds)
    rows = []
    for row in ROWS:
        name, checks, threads = row
        unchecked, alone = (name, "none", threads), (name, checks, 1)
        rows.append({
            "workload": name, "checks": checks, "threads": threads, "instructions": w[name].instructions,
            "wall_seconds": median(lambda r: r[row][0]), "core_seconds": median(lambda r: r[row][1]),
            "giga_per_core_second": w[name].instructions / median(lambda r: r[row][1]) / 1e9,
            "core_seconds_over_unchecked": median(lambda r: r[row][1] / r[unchecked][1]),
            "speedup_over_one_thread": median(lambda r: r[alone][0] / r[row][0]),
        })
        if name == "arithmetic":
            rows[-1]["core_seconds_over_c"] = {c: median(lambda r: r[row][1] / r[c][0]) for c in loops}
    compiled = {c: {"core_seconds": median(lambda r: r[c][0])} for c in loops}
    for c in compiled.values():
        c["giga_per_core_second"] = w["arithmetic"].instructions / c["core_seconds"] / 1e9
    return {"rounds": len(rounds), "rows": rows, "c": compiled}


def print_table(s):
    print(f"medians of {s['rounds']}; G/s: 10^9 thread instructions per second of a core; price: over no checks; "
          "speed-up: over one thread, by wall time")
    print(f"{'':11} {'checks':17} {'threads':>7} {'wall s':>8} {'core s':>8} {'G/s':>7} {'price':>7} {'speed-up':>9}")
    for r in s["rows"]:
        over_c = "".join(f"  {v:.1f} x C {c}" for c, v in r.get("core_seconds_over_c", {}).items())
        print(f"{r['workload']:11} {r['checks']:17} {r['threads']:7} {r['wall_seconds']:8.3f} {r['core_seconds']:8.3f} "
              f"{r['giga_per_core_second']:7.2f} {r['core_seconds_over_unchecked']:7.2f} "
              f"{r['speedup_over_one_thread']:9.2f}{over_c}")
    for c, v in s["c"].items():
        print(f"{'arithmetic':11} in C, {c:23} {v['core_seconds']:17.3f} {v['giga_per_core_second']:7.2f}")


def main():
    parser = argparse.ArgumentParser(description="Speed of the emulated driver; see the top of this file.")
    parser.add_argument("library")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="only to see that it works")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.library, options.serve, options.small)
    s = summary(*measure(options))
    if options.json:
        print(json.dumps(s, indent=1))
    else:
        print_table(s)


main()
