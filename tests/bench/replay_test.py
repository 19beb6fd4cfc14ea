"""Tests record.py, replay.py and compare.py of tools/bench without a GPU.

usage: replay_test.py ROOT compare                       how results are compared
       replay_test.py ROOT sample BUILD FAULTY           records a kernel of each kind, and repeats it on a copy of the emulated
                                                         driver, under other conditions, and on a driver that misbehaves
       replay_test.py ROOT tests BUILD [TEST ...]        records and repeats the emulated driver's tests
       replay_test.py ROOT assumptions                   the probes that the README names exist
       replay_test.py ROOT record BUILD OUT              records the sample
       replay_test.py ROOT launch DRIVER                 launches the sample
"""
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT, VERB = pathlib.Path(sys.argv[1]), sys.argv[2]
BENCH = ROOT / "tools/bench"
sys.path.insert(0, str(BENCH))
import record
import recording
import replay
from compare import Comparison, Text
from probes.driver import Gpu

JOBS = 2


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


# ---- how results are compared ----------------------------------------------------------------------------------------

def compared(text, wanted, got, order=False, undefined=()):
    comparison = Comparison(Text(text), order)
    comparison.add(0, wanted, got, undefined)
    return comparison.row()


def words(*values, code="I"):
    return struct.pack(f"<{len(values)}{code}", *values)


def compare():
    one, up = 0x3f800000, 0x3f800001
    add, ex2, lg2, sine = b"add.f32 %f, %f, %f;", b"ex2.approx.ftz.f32 %f, %f;", b"lg2.approx.f32 %f, %f;", b"sin.approx.f32 %f, %f;"
    for what, row, wanted in (
            ("equal bytes", compared(add, words(1, 2), words(1, 2)), {"result": "equal"}),
            ("a bit", compared(add, words(one, one), words(one, up)),
             {"result": "differs", "first": {"block": 0, "at": 4, "expected": "3f800000", "got": "3f800001", "bytes": 1}}),
            ("NaNs", compared(add, words(0x7fffffff), words(0x7fc00000)), {"result": "nan", "nans": {"7fffffff 7fc00000": 1}}),
            ("NaNs in text without floats", compared(b"add.u32 %r, %r, %r;", words(0x7fffffff), words(0x7fc00000))["result"], "differs"),
            ("a NaN for a number", compared(ex2, words(one), words(0x7fc00000))["result"], "differs"),
            ("a mask", compared(b"set.eq.u32.f32 %r, %f, %f;", words(0xffffffff), words(0xfffffffe))["result"], "differs"),
            ("an infinity for a NaN", compared(add, words(0x7fffffff), words(0x7f800000))["result"], "differs"),
            ("packed NaNs", compared(b"fma.rn.f16x2 %r, %r;", words(0x3c007fff), words(0x3c007e00)),
             {"result": "nan", "nans": {"7fff 7e00": 1}}),
            ("ex2, 3 ulps", compared(ex2, words(one, one), words(one, one + 3)),
             {"result": "ulps", "ulps": {4: 1}, "instruction": "ex2.approx.f32"}),
            ("ex2, 4 ulps", compared(ex2, words(one), words(one + 4))["result"], "differs"),
            ("lg2 near 0", compared(lg2, words(0), words(0x34800000))["result"], "ulps"),  # 2^-22
            ("lg2 far from 0", compared(lg2, words(0), words(0x35000000))["result"], "differs"),
            ("sin, which is not judged", compared(sine, words(one), words(one + 99))["result"], "unjudged"),
            ("two approximations", compared(ex2 + lg2, words(one), words(one + 99))["result"], "unjudged"),
            ("tanh in bf16", compared(b"tanh.approx.bf16x2 %r, %r;", words(0x3f80, code="H"), words(0x3f7f, code="H"))["result"], "ulps"),
            ("a clock", compared(b"mov.u32 %r, %clock;", words(1), words(2))["result"], "unjudged"),
            ("reordered words", compared(b"atom.global.add.u32 %r;", words(1, 2, 3), words(3, 1, 2), True)["result"], "unordered"),
            ("words that order does not explain", compared(b"atom.global.add.u32 %r;", words(1, 2), words(2, 3), True)["result"], "differs"),
            ("sums in another order", compared(b"red.global.add.f32 [%p], %f;", words(one), words(up), True)["result"], "unordered"),
            ("a sum that is wrong", compared(b"red.global.add.f32 [%p], %f;", words(one), words(one + 4096), True)["result"], "differs"),
            ("reordered words without a reason", compared(add, words(1, 2), words(2, 1))["result"], "differs"),
            ("undefined words", compared(add, words(1, 2, 3), words(1, 9, 3), undefined=[(4, 8)])["result"], "equal"),
            ("words beside undefined ones", compared(add, words(1, 2, 3), words(1, 9, 4), undefined=[(4, 8)])["first"]["at"], 8)):
        expect(what, row, wanted)


# ---- the sample ------------------------------------------------------------------------------------------------------

def kernel(name, body, head="", target="sm_90"):
    return f""".version 8.8
.target {target}
.address_size 64
{head}
.visible .entry {name}(.param .u64 out, .param .u64 in)
{{
    .reg .u64 %p<8>; .reg .u32 %r<16>; .reg .f32 %f<16>; .reg .pred %q;
    ld.param.u64 %p0, [out]; ld.param.u64 %p1, [in]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 32, %r0; mad.wide.u32 %p2, %r2, 4, %p0; mad.wide.u32 %p3, %r2, 4, %p1;
    {body}
    ret;
}}
"""


# Name: (text, result on the emulated driver, result under other conditions: thread blocks in reverse order, registers
# initialised to NaN).
SAMPLE = {
    "mma_sum": (kernel("mma_sum", ".reg .b32 %h; ld.global.b32 %h, [%p3]; mov.f32 %f0, 0f00000000;\n"
                       "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%h, %h}, {%h}, {%f0, %f0, %f0, %f0};\n"
                       "st.global.f32 [%p2], %f1;"), "equal", "equal"),
    "integers": (kernel("integers", "ld.global.u32 %r3, [%p3]; brev.b32 %r4, %r3; st.global.u32 [%p2], %r4;"), "equal", "equal"),
    "approximation": (kernel("approximation", "ld.global.f32 %f0, [%p3]; ex2.approx.f32 %f1, %f0; st.global.f32 [%p2], %f1;"),
                      "equal", "equal"),
    "nans": (kernel("nans", "mov.f32 %f0, 0f7f800000; neg.f32 %f1, %f0; add.f32 %f2, %f0, %f1; st.global.f32 [%p2], %f2;"),
             "equal", "equal"),
    "sums": (kernel("sums", "add.u32 %r3, %r2, 1; cvt.rn.f32.u32 %f0, %r3; rcp.rn.f32 %f0, %f0; red.global.add.f32 [%p0], %f0;"),
             "equal", "unordered"),
    "tickets": (kernel("tickets", "atom.global.add.u32 %r3, [%p1], 1; st.global.u32 [%p2], %r3;"), "equal", "unordered"),
    "last": (kernel("last", "st.global.u32 [%p0], %r1;"), "equal", "equal"),
    "pointers": (kernel("pointers", "ld.global.u64 %p4, [%p1]; st.global.u32 [%p4], 77; st.global.u64 [%p0+8], %p4;"), "equal", "equal"),
    "variables": (kernel("variables", "setp.eq.u32 %q, %r2, 0; ld.const.u32 %r3, [table+4]; st.global.u32 [%p2], %r3;\n"
                         "@!%q bra end; ld.global.u32 %r4, [counter]; add.u32 %r4, %r4, %r3; st.global.u32 [counter], %r4; end:",
                         ".global .u32 counter = 5; .const .u32 table[2] = {1, 2};"), "equal", "equal"),
    "half_undefined": (kernel("half_undefined", "mad.wide.u32 %p2, %r2, 4, %p2; st.global.v2.u32 [%p2], {%r2, %r9};"), "equal", "equal"),
    "newer": (kernel("newer", "st.global.u32 [%p2], %r2;", target="sm_100"), "equal", "equal"),
    "lacking": (kernel("lacking", "mov.f32 %f0, 0f00000000; max.f32 %f1, %f0, %f0, %f0; st.global.f32 [%p2], %f1;", target="sm_100"),
                "left out", "left out"),
    "repeated": (kernel("newer", "st.global.u32 [%p2], %r2;", target="sm_100"), "left out", "left out"),
    "trapped": (kernel("trapped", "trap;"), "equal", "equal"),
}
WHY = {"lacking": "'max' needs .target sm_100", "repeated": "repeats another launch"}
NEWER = "newer", "lacking", "repeated"


def launch(driver):
    """Launches the sample on the first device, and the kernels that it cannot load on the second."""
    import ctypes
    gpu = Gpu(driver, True)
    for name, (text, *_) in SAMPLE.items():
        if name == NEWER[0]:
            other = ctypes.c_void_p()
            gpu.call("cuCtxCreate_v2", ctypes.byref(other), 0, 1)
        module, function, places = ctypes.c_void_p(), ctypes.c_void_p(), []
        gpu.call("cuModuleLoadData", ctypes.byref(module), text.encode())
        gpu.call("cuModuleGetFunction", ctypes.byref(function), module, re.search(r"\.entry (\w+)", text)[1].encode())
        for bytes_ in (4096, 4096, 64):
            at = ctypes.c_uint64()
            gpu.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(bytes_))
            places.append(at)
        first = {"pointers": struct.pack("<Q", places[2].value + 16), "tickets": bytes(4), "mma_sum": words(0x3c003800)}
        data = first.get(name, words(0x3f000000, 0x40490fdb, 0xc1200000, 0x7f800000, 0xff800000, 0x7fc00000))
        gpu.upload(places[1].value, data.ljust(256, b"\1"))
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(places[0]), ctypes.addressof(places[1]))
        gpu.call("cuLaunchKernel", function, 4, 1, 1, 32, 1, 1, 0, None, pointers, None)
        if name == NEWER[-1]:
            gpu.call("cuCtxSetCurrent", gpu.context)
    os._exit(0)  # no cleanup, since the last launch failed, as intended


def launched(build, raw):
    """Launches the sample and returns stderr."""
    environment = {**os.environ, **record.IN_ORDER, "KILN_EMU_RECORD": str(raw), "KILN_EMU_DEVICE": "sm_90,sm_100",
                   "KILN_EMU_VERBOSE": "0"}
    done = subprocess.run([sys.executable, "-B", __file__, ROOT, "launch", build / "lib/emulator/libcuda.so.1"], env=environment,
                          stderr=subprocess.PIPE, text=True)
    expect(f"the sample's exit status; {done.stderr}", done.returncode, 0)
    return done.stderr


def make(room, build, out):
    launched(build, room / "raw")
    files = list(room.glob("raw.*.jsonl"))
    expect("files of the sample", len(files), 1)
    record.record(out, build, "sm_90", JOBS, raw=[("sample", files[0])])


def record_sample():
    with tempfile.TemporaryDirectory() as room:
        make(pathlib.Path(room), pathlib.Path(sys.argv[3]), sys.argv[4])


def replayed(room, driver, **environment):
    """Repeats the sample with replay.py. Returns {entry: row} and the summary."""
    out = room / "replay.jsonl"
    out.unlink(missing_ok=True)
    settings = {**os.environ, "KILN_EMU_DEVICE": "sm_90", "KILN_EMU_VERBOSE": "0", "KILN_EMU_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-B", BENCH / "replay.py", room / "kit", out, "--driver", driver, "--jobs", str(JOBS),
                           "--launch-seconds", "10"], env=settings, capture_output=True, text=True)
    expect("replay.py", (done.returncode, done.stderr), (0, ""))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    names = list(SAMPLE)
    return {names[row["launch"]]: row for row in rows if "launch" in row}, done.stdout


def results(rows):
    return {name: row["result"] for name, row in rows.items()}


FAULTS = {
    "altered:mma_sum": ("differs", {"about": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "first.at": 0, "first.bytes": 1}),
    "altered:approximation": ("ulps", {"ulps": {"1": 1}, "instruction": "ex2.approx.f32"}),
    "altered:nans": ("nan", {"nans": {"7fffffff 7ffffffe": 1}}),
    "altered:integers": ("differs", {"about": "brev.b32", "first.expected": "000000fc", "first.got": "000000fd"}),
    "altered:last": ("equal", {}),  # a race: any thread block may be last
    "hang:integers": ("hung", {"why": "no answer in time"}),
    "lost:mma_sum": ("fails", {"code": 700, "expected": 0}),
    "unloadable:sums": ("unloadable", {"code": 218, "log": "ptxas fatal : faulty driver: entry 'sums' does not load"}),
    "wrong:trapped": ("fails", {"code": 0, "expected": 719}),
    "wrong:pointers": ("differs", {"first.block": 0, "first.at": 8}),
}


def sample():
    build, faulty = pathlib.Path(sys.argv[3]), sys.argv[4]
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        folder = room / "launches"
        said = launched(build, room / "nowhere/raw")
        expect("a file that cannot be written", re.findall(r"KILN_EMU_RECORD: \S+ cannot be written", said) != [], True)
        make(room, build, folder)
        for arguments, status, message in (("--target sm_91", 1, "launches did not run: no start: "),
                                           ("--target sm_90a", 2, "expected a base target such as sm_90, found 'sm_90a'"),
                                           ("--build nowhere", 2, "there is no nowhere/lib/emulator/libcuda.so.1")):
            command = [BENCH / "record.py", room / "none", "--build", build, *arguments.split(), "--launches", *room.glob("raw.*.jsonl")]
            done = subprocess.run([sys.executable, "-B", *command], capture_output=True, text=True)
            expect(f"record.py {arguments}", (done.returncode, message in done.stderr.splitlines()[-1], (room / "none").exists()),
                   (status, True, False))
        launches = dict(zip(SAMPLE, recording.Recording(folder).launches))
        expect("launches", len(launches), len(SAMPLE))
        expect("launches left out", {name: launch["left_out"] for name, launch in launches.items() if "left_out" in launch}, WHY)
        expect("launches whose order matters", [name for name, launch in launches.items() if launch.get("order")],
               ["sums", "tickets"])
        expect("words of a race", launches["last"]["undefined"], [[0, 0, 4]])
        undefined = launches["half_undefined"]["undefined"]
        expect("the undefined words", (undefined[0], len(undefined)), ([0, 4, 8], 128))
        size = recording.pack(folder, room / "kit")
        copy = room / "second/libcuda.so.1"
        copy.parent.mkdir()
        shutil.copy(build / "lib/emulator/libcuda.so.1", copy)
        rows, said = replayed(room, copy)
        expect("the second copy", results(rows), {name: same for name, (_, same, _) in SAMPLE.items()})
        expect("launches with other resources", [name for name, row in rows.items() if "resident" in row], [])
        rows, said = replayed(room, copy, KILN_EMU_ORDER="reverse", KILN_EMU_CHECK="init")
        expect("other conditions", results(rows), {name: other for name, (_, _, other) in SAMPLE.items()})
        for fault, (result, details) in FAULTS.items():
            bad = fault.partition(":")[2]
            rows, said = replayed(room, faulty, KILN_FAULTY=fault, KILN_FAULTY_DRIVER_FOR=str(copy),
                                  KILN_FAULTY_NAME="NVIDIA H100 80GB HBM3")
            row = rows[bad]
            flat = row | {f"first.{name}": value for name, value in row.get("first", {}).items()}
            got = {name: flat.get(name) for name in details}
            expect(fault, (row["result"], got), (result, details))
            expect(f"{fault}: the other launches", results(rows), {name: same for name, (_, same, _) in SAMPLE.items()} | {bad: result})
            expect(f"{fault}: the summary counts it", result == "equal" or f" 1 {result}" in said, True)
        print(f"{len(rows)} launches, {size} bytes packed")


def tests():
    """Records and repeats the launches of the emulated driver's tests, or of some of them."""
    build, only = pathlib.Path(sys.argv[3]), sys.argv[4:]
    with tempfile.TemporaryDirectory() as room:
        room, begin = pathlib.Path(room), time.monotonic()
        record.record(room / "launches", build, "sm_90", JOBS, only)
        record.report(room / "launches")
        size, rows, middle = recording.pack(room / "launches", room / "kit"), [], time.monotonic()
        os.environ.update(KILN_EMU_DEVICE="sm_90", KILN_EMU_VERBOSE="0", **record.IN_ORDER)
        left = replay.replay(room / "launches", str(build / "lib/emulator/libcuda.so.1"), JOBS, time.monotonic() + 3600, rows.append)
        print("\n".join(replay.summarise(rows)))
        print(f"{size / 2**20:.1f} MiB packed; recorded in {middle - begin:.0f} s, repeated in {time.monotonic() - middle:.0f} s")
        counts = collections.Counter(row["result"] for row in rows if "launch" in row)
        expect("results", (left, set(counts)), (0, {"equal", "left out"}))
        reasons = {row["why"] for row in rows if row.get("result") == "left out"}
        expect("launches that are not deterministic", [why for why in reasons if why.startswith(("gives other", "no answer"))], [])


# ---- the table of assumptions ----------------------------------------------------------------------------------------

def phases():
    loader = importlib.machinery.SourceFileLoader("gpu", str(BENCH / "gpu"))
    gpu = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu", loader))
    loader.exec_module(gpu)
    return {name for call in gpu.CALLS.values() for name, *_ in call}


def exists(probe):
    """Whether the name is a test's function, a case of its file, a probe of probes.py or a phase of the kit."""
    from probes import TABLE
    where, _, name = probe.partition(": ")
    if where == "probes":
        return name in TABLE
    if where == "gpu":
        return name in phases()
    if where == "correct":
        return any(f"-- {name} --\n" in file.read_text(encoding="utf-8") for file in (ROOT / "tests/emulator/correct").glob("*.txt"))
    source = ROOT / f"tests/emulator/test_{where}.c"
    return where in record.PROGRAMS and f"cmocka_unit_test({name})" in source.read_text(encoding="utf-8")


def assumptions():
    """Each row of the table names a probe that is recorded or runs on the GPU."""
    page = (ROOT / "tools/emulator/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (`.+?`) \|$", page, re.MULTILINE)
    expect("numbers of assumptions", [int(number) for number, *_ in rows], list(range(1, len(rows) + 1)))
    probes = [(number, name) for number, _, cell in rows for name in re.findall(r"`([^`]+)`", cell)]
    expect("probes that do not exist", [probe for probe in probes if not exists(probe[1])], [])
    expect("a probe that does not exist", [exists(name) for name in ("mma: test_nothing", "probes: mma", "correct: nothing", "gpu: nothing")],
           [False] * 4)


{"compare": compare, "sample": sample, "tests": tests, "assumptions": assumptions, "record": record_sample,
 "launch": lambda: launch(sys.argv[3])}[VERB]()
