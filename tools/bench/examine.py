"""The examine call: what the measure call found wrong or slow, looked at closely."""
import ctypes
import subprocess
import sys
import time

import judge
import records

MOST_AGAIN = 40         # variants, and shapes
DETAIL_BYTES = 6000
# Of the emulated driver's counters, those that hardware has: instructions, sectors, wavefronts, conflicts, bytes.
METRICS = ("smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
           "sm__inst_executed_pipe_tensor.sum", "gpu__time_duration.sum")
# Variants are found by these words; the sizes make launches of a few microseconds.
COUNTED = (("nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=1,", "m=1 n=4096 k=4096"),
           ("nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=tiles,", "m=64 n=4096 k=4096"),
           ("rmsnorm_q4k_gemv/norm=rms,x=f16,activation=q8,", "n=4096 k=4096"),
           ("nvfp4_gemv/c=f16,decode=software,strategy=simt,lane_codes=32,rows=4,", "m=7168 k=2048 l=4 b_rows=1"),
           ("nf4_quantize/type=f16,", "n=4194304"),
           ("linear/format=q4_k,norm=none,activation=exact,x=f16,", "m=1 n=4096 k=4096"))
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
    """Every input for what was wrong or had no answer; what is still wrong is told in full."""
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
    """More samples of the shapes at which dispatch lost most."""
    rows = judge.timed(run.options.previous) if run.options.previous else []
    calls = [call for call in judge.calls([row for row in rows if row["id"] in run.contracts], run.contracts) if call.regret]
    calls = sorted(calls, key=lambda call: -call.regret)[:MOST_AGAIN]
    lines = [plan_line(row) for call in calls for row in call.rows.values()]
    run.time_lines(list(dict.fromkeys(lines)), "times again", samples=31, file="examine")


def count_events(run):
    """Counters of the hardware, for kiln-profile's to be compared with. ncu may be forbidden: that is one line."""
    for words, sizes in COUNTED:
        name = first_with(run, words)
        if name is None or run.left() < 3:
            continue
        command = ["ncu", "--csv", "--metrics", ",".join(METRICS), "--kernel-name", f"regex:{name.partition('/')[0]}",
                   "--launch-count", "1", "--clock-control", "none", run.program, *run.device, "--samples", "1",
                   "--copy-bytes", str(1 << 20)]
        try:
            done = subprocess.run(command, input=f"{name} {sizes}\n", capture_output=True, text=True, errors="replace",
                                  timeout=min(20, run.left()))
            rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
            run.records.add("examine", {"phase": "counters", "id": name, "sizes": sizes, "csv": rows[:40],
                                        "status": done.returncode,
                                        **({} if rows else {"failed": (done.stdout + done.stderr)[-800:]})})
        except (OSError, subprocess.TimeoutExpired) as why:
            run.note(phase="counters", failed=str(why)[-300:])
            if isinstance(why, OSError):
                return


def sanitize(run):
    """memcheck over a few cases of ten variants."""
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
    """Whether a process can go on after an illegal address: last, as it may harm what follows. In a child process."""
    command = [sys.executable, "-B", __file__, run.options.driver or "libcuda.so.1", str(run.options.device)]
    text = run.run_tool(command, run.left(), "illegal address")
    for line in (text or "").splitlines():
        run.note(phase="illegal address", says=line)


def main(path, ordinal):
    """What each call gives, around a store to an address that nothing has."""
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
