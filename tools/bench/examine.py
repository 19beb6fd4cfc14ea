"""The examine call: a closer look at the variants that the measure call found wrong or slow."""
import csv
import ctypes
import subprocess
import sys
import time

import judge
import plan
import records

MOST_AGAIN = 40         # variants to verify again, and calls to time again
DETAIL_BYTES = 6000
SECTIONS = ("SpeedOfLight", "WarpStateStats", "SchedulerStats", "MemoryWorkloadAnalysis", "Occupancy", "LaunchStats", "SourceCounters")
HOTTEST = 24  # lines of machine code
PREFILL, DECODE = plan.PREFILL[0], plan.DECODE[0]
# (prefix of the id, sizes)
COUNTED = (("attention/type=bf16,head_dim=128,causal=false,strategy=mma,tile_q=128,", PREFILL),
           ("attention/type=bf16,head_dim=128,causal=false,strategy=mma,tile_q=16,", DECODE),
           ("nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=tiles,tile_m=64,", dict(m=512, n=14336, k=4096)),
           ("nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=32,tile_n=128,", dict(m=32, n=14336, k=4096)),
           ("nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=1,", dict(m=1, n=4096, k=4096)),
           ("linear/format=q4_k,norm=none,activation=half,x=f16,y=f16,epilogue=none,strategy=tiles,vectors=1,rows=2,chunk=65536,tile_m=128,",
            dict(m=512, n=14336, k=4096)),
           ("rmsnorm_q4k_gemv/norm=rms,x=f16,activation=q8,", dict(n=4096, k=4096)),
           ("int4_quantize/type=f16,mode=sym,group=128,", dict(n=1 << 26)),
           ("nf4_quantize/type=f16,group=64,nibbles=low", dict(n=1 << 26)))
SANITIZED = ("nf4_gemm/", "nf4_gemm_transposed/", "attention/type=f16", "attention/type=bf16", "rmsnorm_q4k_gemv/", "linear/",
             "nvfp4_gemv/", "int4_quantize/", "nf4_unpack/", "rope/")
ILLEGAL = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry illegal() { .reg .u64 %a; mov.u64 %a, 4096; st.global.u32 [%a], 1; ret; }
.visible .entry fine() { ret; }
"""


def first_with(run, words):
    return next((name for name in run.sets if name.startswith(words)), None)


def verify_again(run):
    """Verifies the variants that were wrong or gave no result, with every kind of input; reports in full those still wrong."""
    earlier = records.read(run.options.previous, "verify") if run.options.previous else []
    ids = [row["id"] for row in earlier if row["result"] in judge.WRONG and row["id"] in run.sets]
    run.verify(list(dict.fromkeys(ids)), file="examine", phase="verify again")
    again = {row["id"]: row for row in records.read(run.records.folder, "examine") if row.get("phase") == "verify again"}
    for name in [name for name, row in again.items() if row["result"] in judge.WRONG][:MOST_AGAIN]:
        if run.left() < 5:
            break
        text = run.run_tool([run.program, "verify", *run.device, "--filter", name, "--launch-seconds",
                             str(run.options.launch_seconds)], min(10, run.left()), "verify again")
        run.records.add("examine", {"phase": "dump", "id": name, "text": (text or "")[:DETAIL_BYTES]})


def plan_line(row):
    return " ".join([row["id"], *(f"{name}={value}" for name, value in row["sizes"].items())])


def time_again(run):
    """Times the calls with the largest regret again, with more samples."""
    rows = judge.timed(run.options.previous) if run.options.previous else []
    calls = [call for call in judge.calls([row for row in rows if row["id"] in run.contracts], run.contracts) if call.regret]
    calls = sorted(calls, key=lambda call: -call.regret)[:MOST_AGAIN]
    lines = [plan_line(row) for call in calls for row in call.rows.values()]
    run.time_lines(list(dict.fromkeys(lines)), "times again", samples=31, file="examine")


def ncu_page(run, report, page):
    """The rows of a page as dictionaries, without the lines before the table."""
    done = subprocess.run(["ncu", "-i", report, "--page", page, "--csv"], capture_output=True, text=True, errors="replace",
                          timeout=max(1, min(20, run.left())))
    lines = done.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith(('"ID"', '"Address"'))), len(lines))
    return list(csv.DictReader(lines[begin:]))


def number(row, name):
    try:
        return float(row.get(name) or 0)
    except ValueError:
        return 0.0


def hottest_lines(rows):
    """The instructions with the most samples; and accesses to global memory, with their sectors per request and the minimum."""
    samples, found = "Warp Stall Sampling (All Samples)", []
    for row in sorted(rows, key=lambda row: -number(row, samples))[:HOTTEST]:
        stalls = {name[6:]: int(number(row, name)) for name in row if name and name.startswith("stall_") and number(row, name) > 30}
        found.append({"code": row["Source"].strip(), "samples": int(number(row, samples)), "stalls": stalls})
    for row in rows:
        executed, least = number(row, "Instructions Executed"), number(row, "L2 Theoretical Sectors Global Ideal")
        if executed and least:
            found.append({"code": row["Source"].strip(), "requests": int(executed),
                          "sectors": round(number(row, "L2 Theoretical Sectors Global") / executed, 2), "least": round(least / executed, 2)})
    return found


def count_events(run):
    """Runs ncu on some kernels: metrics, stalls and sectors. Where counters are not permitted, each kernel has one line."""
    for words, shape in COUNTED:
        name = first_with(run, words)
        if name is None or run.left() < 3:
            continue
        lines = plan.rows([plan.Group(name.partition("/")[0], [shape])], {name: run.sets[name]}, run.sizes)
        report = f"{run.room.name}/counters"
        command = ["ncu", *(word for section in SECTIONS for word in ("--section", section)), "--clock-control", "none",
                   "--kernel-name", f"regex:{name.partition('/')[0]}", "--launch-skip", "3", "--launch-count", "1", "-f", "-o", report,
                   run.program, *run.device, "--samples", "1", "--copy-bytes", str(1 << 20)]
        try:
            done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, errors="replace",
                                  timeout=max(1, min(20, run.left())))
            details = {row["Metric Name"]: f"{row['Metric Value']} {row['Metric Unit']}".strip()
                       for row in ncu_page(run, f"{report}.ncu-rep", "details") if row.get("Metric Name")}
            run.records.add("examine", {"phase": "counters", "id": name, "sizes": shape, "status": done.returncode, "metrics": details,
                                        "lines": hottest_lines(ncu_page(run, f"{report}.ncu-rep", "source")),
                                        **({} if details else {"failed": (done.stdout + done.stderr)[-800:]})})
        except (OSError, subprocess.TimeoutExpired) as why:
            run.note(phase="counters", failed=str(why)[-300:])
            if isinstance(why, OSError):
                return


def sanitize(run):
    """Runs memcheck on a few cases of ten variants."""
    for words in SANITIZED:
        name = first_with(run, words)
        if name is None or run.left() < 3:
            continue
        command = ["compute-sanitizer", "--tool", "memcheck", run.program, "verify", *run.device, "--filter", name,
                   "--inputs", "1", "--max-elements", "1024"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=min(15, run.left()))
            run.records.add("examine", {"phase": "sanitizer", "id": name, "status": done.returncode,
                                        "text": (done.stdout + done.stderr)[-1500:]})
        except (OSError, subprocess.TimeoutExpired) as why:
            run.note(phase="sanitizer", failed=f"{name}: {why}"[-300:])
            if isinstance(why, OSError):
                return


def lose_context(run):
    """Tests in a child process whether it can use the GPU after an illegal address. Last, since it may harm later phases."""
    command = [sys.executable, "-B", __file__, run.options.driver or "libcuda.so.1", str(run.options.device)]
    text = run.run_tool(command, run.left(), "illegal address")
    for line in (text or "").splitlines():
        run.note(phase="illegal address", says=line)


def main(path, ordinal):
    """Prints the result of each driver call before and after a store to an unmapped address."""
    cuda, context, module = ctypes.CDLL(path), ctypes.c_void_p(), ctypes.c_void_p()
    function, memory, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()

    def load(entry):
        cuda.cuModuleLoadData(ctypes.byref(module), ILLEGAL)
        return cuda.cuModuleGetFunction(ctypes.byref(function), module, entry)

    def launch():
        return cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None), cuda.cuCtxSynchronize()

    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), ordinal)
    retain = lambda: (cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context))
    steps = [("retain", retain), ("load", lambda: load(b"illegal")), ("illegal launch, wait", launch),
             ("allocate after it", lambda: cuda.cuMemAlloc_v2(ctypes.byref(memory), 256)),
             ("release, retain", lambda: (cuda.cuDevicePrimaryCtxRelease_v2(device), *retain())),
             ("allocate", lambda: cuda.cuMemAlloc_v2(ctypes.byref(memory), 256)),
             ("reset, retain", lambda: (cuda.cuDevicePrimaryCtxReset_v2(device), *retain())),
             ("allocate again", lambda: cuda.cuMemAlloc_v2(ctypes.byref(memory), 256)),
             ("load again", lambda: load(b"fine")), ("launch, wait", launch)]
    for name, step in steps:
        begin = time.monotonic()
        try:
            result = step()
        except (AttributeError, OSError) as why:
            result = why
        print(f"{name}: {result} after {1000 * (time.monotonic() - begin):.1f} ms", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
