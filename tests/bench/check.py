"""Tests tools/bench/gpu without a GPU.

usage: check.py ROOT BUILD none|failures|floors|table|carry
       check.py ROOT BUILD rows KILN
       check.py ROOT BUILD emulated DRIVER

BUILD/bin/kiln-bench has a variant of each family.
"""
import contextlib
import gzip
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT, BUILD, VERB = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(ROOT / "tools/bench"))
import families
import table


def gpu(*options, build=BUILD, environment=None):
    return subprocess.run([sys.executable, "-B", str(ROOT / "tools/bench/gpu"), "--build", str(build), *options],
                          capture_output=True, text=True, env=dict(os.environ, **(environment or {})))


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def rows():
    """Every family of tests/full.yaml has a row that times some of its variants, and shapes that name all sizes."""
    def lines(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    sizes = {name.partition("/")[0]: sizes for name, *sizes in map(str.split, lines(BUILD / "bin/kiln-bench", "--list"))}
    named = [line.split()[1] for line in lines(sys.argv[4], "list", ROOT / "tests/full.yaml")]
    present = {name.partition("/")[0] for name in named}
    expect("families of tests/full.yaml that bench_sample.yaml lacks", present - set(sizes), set())
    variants = {name: sizes[name.partition("/")[0]] for name in named}
    expect("families without a row", present - set(families.FAMILIES), set())
    expect("rows without a family", set(families.FAMILIES) - present, set())
    for is_quick in False, True:
        expect("families timed", {name.partition("/")[0] for name, _ in families.plan(variants, is_quick)}, present)
    plan = [name for name, _ in families.plan(variants, False)]
    for family, row in families.FAMILIES.items():
        shown = [name for name in plan if name.startswith(family + "/") and families.selects(row.shown, name)]
        expect(f"{family} is shown", bool(shown), True)


def none():
    """No device is a skip, aloud; a driver that was asked for and is not there is a failure."""
    done = gpu(environment={"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": ""})
    expect("exit status without a GPU", done.returncode, 77)
    expect("its last line", done.stderr.splitlines()[-1],
           "tools/bench/gpu: no NVIDIA GPU to run on; nothing was verified or measured")
    expect("its output", done.stdout, "")
    expect("exit status without the driver", gpu("--driver", "/nowhere/libcuda.so.1").returncode, 1)
    expect("exit status of a wrong option", gpu("--no-such-option").returncode, 2)


@contextlib.contextmanager
def carried():
    """A built tree as it is on another machine: what travels, and no more. And what tools/bench/gpu says of it."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "bin/kiln-bench"
        program.parent.mkdir()
        program.symlink_to(BUILD / "bin/kiln-bench")
        done = gpu("--carry", "--commit", "c0ffee", build=folder)
        program.unlink()
        yield pathlib.Path(folder), done


def carry():
    """What another machine needs is named, and small enough to travel; and it is the program."""
    with carried() as (folder, done):
        expect("exit status", (done.returncode, done.stderr), (0, ""))
        travels = [pathlib.Path(line.split()[-1]).name for line in done.stdout.splitlines()[:-1]]
        expect("what travels", travels, ["kiln-bench.gz", "kiln-bench.commit"])
        expect("what was made", sorted(path.name for path in (folder / "bin").iterdir()), sorted(travels))
        expect("the commit", (folder / "bin/kiln-bench.commit").read_text(encoding="utf-8"), "c0ffee\n")
        with gzip.open(folder / "bin/kiln-bench.gz") as packed:
            expect("what was packed is the program", packed.read() == (BUILD / "bin/kiln-bench").read_bytes(), True)


# ---- a program that stands in for kiln-bench -------------------------------------------------------------------------

STUB_BENCH = """#!/usr/bin/env python3
import json, sys
ids = ["int4_scale/type=f32,mode=sym,group=64", "int4_scale/type=f16,mode=sym,group=64", "nf4_scale/type=f32,group=64",
       "nf4_scale/type=f16,group=64", "nf4_scale/type=bf16,group=64"]
if "verify" in sys.argv:
    name = sys.argv[sys.argv.index("--filter") + 1]
    if name.startswith("int4"):
        sys.exit("it crashed")
    print(json.dumps({"variants": [{"id": name, "result": "ok", "elements": 7, "launches": 2}]}))
    sys.exit()
if "--list" in sys.argv:
    print(*(f"{i} n" for i in ids), sep="\\n")
    sys.exit()
samples = {"batch": 2, "us": [10.0, 30.0, 20.0]}
print(json.dumps({"device": {"name": "stub", "sm": 90, "multiprocessors": 1, "l2_bytes": 1, "memory_bytes": 1,
                             "driver_version": 13000, "emulated": True},
                  "copy_bytes": 10**6, "copy": samples, "empty_kernel": samples}))
for line in sys.stdin:
    name = line.split()[0]
    if name == ids[0]:
        print(json.dumps({"id": name, "error": "the kernel failed"}))
        sys.exit(1)
    if name == ids[1]:
        print(json.dumps({"id": name, "skipped": "no image"}))
        continue
    if name == ids[3]:
        sys.stdout.flush()
        sys.exit(9)
    print(json.dumps({"id": name, "sizes": {"n": 5}, "bytes_read": 300000, "bytes_written": 100000, "set_bytes": 8,
                      "sets": 2, "kernel": samples, "copy": {"batch": 2, "us": [5.0]}}), flush=True)
"""


def failures():
    """A kernel that fails, one that the device cannot run, and a program that dies: named, and the others go on."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "bin").mkdir()
        path = pathlib.Path(folder) / "bin/kiln-bench"
        path.write_text(STUB_BENCH, encoding="utf-8")
        path.chmod(0o755)
        done = gpu("--commit", "c0ffee", build=folder)
        late = gpu("--commit", "c0ffee", "--seconds", "0", build=folder)
    expect("exit status", done.returncode, 1)
    result = json.loads(done.stdout)
    expect("failed", [(f["id"], f["why"]) for f in result["failed"]],
           [("int4_scale/type=f32,mode=sym,group=64", "the kernel failed"),
            ("nf4_scale/type=f16,group=64", "kiln-bench ended with 9")])
    expect("not run", [(f["id"], f["why"]) for f in result["not_run"]],
           [("int4_scale/type=f16,mode=sym,group=64", "no image")])
    expect("timed", [r["id"] for r in result["rows"]], ["nf4_scale/type=f32,group=64", "nf4_scale/type=bf16,group=64"])
    row = result["rows"][0]
    expect("median", row["us"]["median"], 20.0)
    expect("GB/s", row["gb_per_s"], 20.0)
    expect("floor", (row["floor_us"], row["ratio_to_floor"]), (4.0, 0.2))
    expect("copy", (row["copy_us"]["median"], row["ratio_to_copy"]), (5.0, 0.25))
    expect("the large copy's GB/s", result["copy"]["gb_per_s"], 100.0)
    judged = result["verification"]
    expect("verified", (judged["variants"], judged["ok"], judged["wrong"], judged["not_run"]), (5, 3, 2, 0))
    expect("finding", judged["findings"][0]["detail"], "kiln-bench verify ended with 1: it crashed")

    expect("exit status without time", late.returncode, 0)
    result = json.loads(late.stdout)
    expect("verified without time", (result["verification"]["ok"], result["verification"]["not_run"]), (0, 5))
    expect("left out without time", len(result["not_run"]), 5 + 5)


def floors():
    """The floor of products and of attention is what takes longer, their bytes or operations; of other kernels bytes."""
    loader = importlib.machinery.SourceFileLoader("gpu", str(ROOT / "tools/bench/gpu"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(script)
    timed = [{"id": "peak/f16", "us": {"median": 2000}}, {"id": "peak/f32", "skipped": "no memory"},
             {"id": "copy", "us": {"median": 1}}]
    peaks = script.find_peaks(timed)
    expect("operations per us", peaks, {"f16": 2 * 8192**3 / 2000})
    square = {"batch": 2, "q_heads": 128, "q_length": 4096, "k_length": 4096}
    heads = "attention/type=f16,head_dim=64,causal="
    for variant, sizes, floor in (("nf4_gemm/a=f16", {"m": 8192, "n": 8192, "k": 4096}, 1000.0),
                                  ("nf4_gemm/a=f16", {"m": 1, "n": 8192, "k": 4096}, 30.0),
                                  ("nf4_gemm/a=f32", {"m": 8192, "n": 8192, "k": 4096}, 30.0),
                                  (heads + "false", square, 2000.0),
                                  (heads + "true", square, round(2000 * 4097 / 8192, 3)),
                                  (heads + "true", dict(square, q_length=1), 30.0),
                                  ("attention/type=f64,head_dim=64,causal=true", square, 30.0),
                                  ("q4k_dequantize/type=f16", {"n": 8192}, 30.0)):
        row = {"id": variant, "sizes": sizes, "us": {"median": 4000.0}, "floor_us": 30.0, "ratio_to_floor": 0.0075}
        script.raise_floor(row, peaks)
        expect(f"floor of {variant} {sizes}", (row["floor_us"], row["ratio_to_floor"]), (floor, round(floor / 4000, 4)))
        expect(f"rate of {variant} {sizes}", row.get("tflops"), None if floor == 30 else round(floor / 2000 * 8192**3 / 2e9, 1))


# ---- the emulated device ---------------------------------------------------------------------------------------------

def emulated():
    """The whole path with what travels; and results that mean nothing are not put among those that do."""
    driver = sys.argv[4]
    with carried() as (folder, _), tempfile.TemporaryDirectory() as room:
        done = gpu("--driver", driver, "--quick", "--commit", "c0ffee", build=folder, environment={"TMPDIR": room})
        expect("what it leaves behind", list(pathlib.Path(room).iterdir()), [])
    expect("exit status", (done.returncode, done.stderr if done.returncode else ""), (0, ""))
    result = json.loads(done.stdout)
    expect("keys", sorted(result), ["baselines", "commit", "copy", "date", "device", "empty_kernel_us", "emulated",
                                    "failed", "format", "not_run", "only", "peak_tflops", "quick", "rows", "seconds",
                                    "verification"])
    expect("marks", (result["emulated"], result["quick"], result["commit"]), (True, True, "c0ffee"))
    count = len(families.FAMILIES)
    judged = result["verification"]
    expect("verified", (judged["variants"], judged["ok"], judged["findings"]), (count, count, []))
    expect("compared", judged["elements"] > 1000, True)
    expect("timed", [r["id"].partition("/")[0] for r in result["rows"]], list(families.FAMILIES))
    expect("left out", (result["failed"], result["not_run"]), ([], []))
    costs = {r["id"]: (r["bytes_read"], r["bytes_written"]) for r in result["rows"]}
    expect("bytes", costs["nf4_quantize/type=f32,group=32,nibbles=low"], (80000, 10000 + 4 * 625))
    for r in result["rows"]:
        expect(f"{r['id']}: past twice the L2 cache", r["working_set_bytes"] > 2 * result["device"]["l2_bytes"], True)
        expect(f"{r['id']}: samples", (r["us"]["samples"], r["us"]["least"] > 0), (5, True))
    expect("the table's first words", "A trial, whose times mean nothing: kiln emulated" in done.stderr, True)
    target = ROOT / "tools/bench/results/emulated.json"
    refused = gpu("--driver", driver, "--quick", "--output", str(target))
    partial = gpu("--driver", driver, "--quick", "--only", "nf4_s", "--only", "int4_unpack", "--commit", "c0ffee")
    result = json.loads(partial.stdout)
    expect("of some families alone", [r["id"].partition("/")[0] for r in result["rows"]], ["int4_unpack", "nf4_scale"])
    expect("exit status of a family that is not there", gpu("--driver", driver, "--quick", "--only", "int5").returncode, 2)
    expect("exit status of a result among the real ones", (refused.returncode, target.exists()), (1, False))


# ---- the table -------------------------------------------------------------------------------------------------------

def sample(device, date, variant):
    spread = {"median": 80.5, "least": 1, "p10": 1, "p90": 1, "most": 1, "samples": 3}
    row = {"id": variant, "sizes": {"n": 64}, "gb_per_s": 3900.2, "copy_us": {"median": 73.4}, "floor_us": 72.9}
    return {"format": 1, "emulated": False, "quick": False, "commit": "0123456789abcdef", "date": date, "seconds": 1,
            "device": {"name": device, "sm": 90, "driver_version": 13000, "kernel_driver": "580.65.06"},
            "verification": {"variants": 9, "ok": 8, "executed": 0, "skipped": 1, "wrong": 0, "not_run": 0},
            "copy": {"bytes": 1 << 30, "gb_per_s": 4321.4}, "empty_kernel_us": {"median": 2.125},
            "peak_tflops": {"f16": 712.34},
            "rows": [dict(row, us=spread), dict(row, us=dict(spread, median=81), id=variant + ",tile=2"),
                     dict(row, us=spread, id="nf4_scale/type=f32,group=32")],
            "baselines": {"rows": [{"id": "copy", "baseline": "torch copy", "bytes": 10**8, "us": spread},
                                   {"id": variant + " n=64", "baseline": "torch cast", "bytes": 10**8, "us": spread},
                                   {"id": variant + " n=65", "baseline": "another size", "bytes": 1, "us": spread},
                                   {"id": variant + " n=64", "baseline": "other", "skipped": "not there"}], "note": ""}}


TABLE = """A (sm_90, driver 580.65.06, CUDA 13.0), commit 0123456789ab, 2026-02-01: 8 of 9 variants right on the \
device, 1 that it cannot run; copy of 1024 MiB 4321 GB/s; torch copy 1242 GB/s; f16 products 712 TFLOP/s; empty kernel \
2.12 us.

| variant | sizes | us | GB/s | time / copy | time / floor | beside it: us, time / its |
| --- | --- | ---: | ---: | ---: | ---: | --- |
| `nf4_scale/type=f32,group=64` | n=64 | 80.5 | 3900 | 1.10 | 1.10 | torch cast 80.5, 1.00 |"""


def table_():
    """The newest result of each device; and tools/bench/README.md has what the results make."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        expect("table of nothing", table.markdown(folder), table.NOTHING)
        for name, result in (("b", sample("A", "2026-02-01", "nf4_scale/type=f32,group=64")),
                             ("c", sample("A", "2026-01-31", "nf4_scale/type=f16,group=64"))):
            (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
        expect("table", table.markdown(folder), TABLE)
    limited = dict(sample("A", "2026-02-01", "attention/type=f16")["rows"][0], tflops=312.4)
    expect("a rate of operations", table.one_row(limited, []).split(" | ")[3], "3900, 312 TFLOP/s")
    for path in table.RESULTS.glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        expect(f"{path.name} is of a GPU, in full", (result["emulated"], result["quick"], result.get("only")),
               (False, False, None))
    made = gpu("--table").stdout
    page = (ROOT / "tools/bench/README.md").read_text(encoding="utf-8")
    expect("tools/bench/README.md has what tools/bench/gpu --table prints", made in page, True)


{"rows": rows, "none": none, "failures": failures, "floors": floors, "table": table_,
 "carry": carry, "emulated": emulated}[VERB]()
