"""Tests the sweeps over all inputs of a function (tools/bench/probes/sweeps.py) on the emulated driver.

usage: sweeps_test.py ROOT host DRIVER      the device's histograms equal the host's histograms of the same results
       sweeps_test.py ROOT bites DRIVER     finds instructions that are slightly wrong
       sweeps_test.py ROOT emulated DRIVER  the emulated driver's histograms equal emulated.json
       sweeps_test.py ROOT rebase DRIVER    writes emulated.json
       sweeps_test.py ROOT bundle DRIVER KILN  the default bundle's resources and counters, and planted faults
       sweeps_test.py ROOT known DRIVER     skips a probe whose results are known
"""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT, VERB, DRIVER = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/bench"))
os.environ["KILN_EMU_DEVICE"] = "sm_90" if VERB == "bundle" else "sm_100"  # some conversions need sm_100
from probes import sweeps
from probes.driver import Gpu
from probes.functions import FORMATS, FUNCTIONS, INTEGERS

COUNT = 1 << 12           # inputs that the host computes
EMULATED_COUNT = 1 << 16  # inputs of emulated.json


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


# ---- the host's arithmetic: Python's floats, math and struct ---------------------------------------------------------

NARROW = {"e4m3": (4, 3), "e2m1": (2, 1)}


def value(kind, bits):
    """Decodes a number."""
    if kind in ("s32", "u32"):
        return float(struct.unpack("i" if kind == "s32" else "I", struct.pack("I", bits))[0])
    if kind in ("f32", "tf32", "bf16", "f16"):
        bits = bits << {"f32": 0, "tf32": 13, "bf16": 16, "f16": 0}[kind]
        return struct.unpack("<e", struct.pack("<H", bits & 0xffff))[0] if kind == "f16" else \
            struct.unpack("<f", struct.pack("<I", bits & 0xffffffff))[0]
    exponent, fraction = NARROW[kind]
    sign = -1.0 if bits >> exponent + fraction & 1 else 1.0
    field, part, bias = bits >> fraction & (1 << exponent) - 1, bits & (1 << fraction) - 1, (1 << exponent - 1) - 1
    if kind == "e4m3" and bits & 127 == 127:
        return math.nan
    one = 1 << fraction
    return sign * math.ldexp(part + one * (field > 0), max(field, 1) - bias - fraction)


EXACT = {"ex2": lambda x: 2.0 ** min(max(x, -400.0), 400.0) if x == x else x,
         "rcp": lambda x: 1 / x if x else math.copysign(math.inf, x),
         "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
         "rsqrt": lambda x: math.copysign(math.inf, x) if x == 0 else 1 / math.sqrt(x) if x > 0 else math.nan,
         "lg2": lambda x: -math.inf if x == 0 else math.log2(x) if x > 0 else math.nan}
LIMITS = {"e4m3": 448.0, "e2m1": 6.0, "s32": (-2.0 ** 31, 2.0 ** 31 - 1), "u32": (0.0, 2.0 ** 32 - 1)}
LAYOUT = {"f32": (23, -126, 2 ** 128), "tf32": (10, -126, 2 ** 128), "bf16": (7, -126, 2 ** 128), "f16": (10, -14, 65536),
          "e4m3": (3, -6, 480), "e2m1": (1, 0, 8)}


def nearest(x, ties):
    if ties == "away":
        return math.copysign(math.floor(abs(x) + 0.5), x)
    return float(math.trunc(x)) if ties == "zero" else math.copysign(round(x), x)


def classify(function, bits, result):
    """Returns (bin, error in ulps, whether the error is too large) for an input and its result."""
    about, name = FUNCTIONS[function], function.partition(".")[0]
    mask = (1 << {"f16": 16, "e4m3": 8, "e2m1": 4}.get(about.takes, 32)) - 1
    given, got = value(about.takes, bits >> about.shift & mask), value(about.gives, result)
    if ".ftz" in function and abs(given) < 2.0 ** -126:
        given *= 0.0
    exact = EXACT[name](given) if name in EXACT else given
    if about.gives in INTEGERS:
        least, most = LIMITS[about.gives]
        exact = min(max(exact, least), most) if exact == exact else 0.0
        wanted = nearest(exact, "zero" if "rzi" in function else "even")
        return ("zero" if wanted == 0 == got else "rounded" if wanted == got else "other"), abs(got - exact), wanted != got
    fraction, low, overflow = LAYOUT[about.gives]
    if "satfinite" in function:
        limit = LIMITS[about.gives]
        exact = limit if exact != exact and about.gives == "e2m1" else exact if exact != exact else min(max(exact, -limit), limit)
    if exact != exact or got != got:
        return ("NaN" if exact != exact and got != got else "wrong kind"), 0.0, (exact == exact) != (got == got)
    exponent = max(math.frexp(exact)[1] - 1, low) if 0 < abs(exact) < math.inf else low if exact == 0 else 128
    unit = math.ldexp(1.0, exponent - fraction)
    wanted = nearest(exact / unit, "away" if "rna" in function else "even") * unit if abs(exact) < math.inf else exact
    wanted = wanted if abs(wanted) < overflow else math.copysign(math.inf, wanted)
    # lg2's ulp is at least that of 1
    ulp = math.ldexp(1.0, max(exponent, 0) - fraction) if name == "lg2" else unit
    error = abs(got - exact) / ulp if abs(exact) < math.inf else math.nan if got == exact else math.inf
    error = 0.0 if error != error else error
    allowed = {"ex2": 2.0, "rcp": 1.0, "sqrt": abs(exact) * 2.0 ** -23 / ulp, "rsqrt": abs(exact) * 2.0 ** -22.9 / ulp,
               "lg2": max(abs(exact), 1.0) * 2.0 ** -22 / ulp}.get(name, 0.0) if abs(exact) < math.inf else 0.0
    if got == wanted:
        same_sign = math.copysign(1, got) == math.copysign(1, wanted)
        kind = "rounded" if got else "zero" if same_sign else "wrong kind"
        return ("infinity" if abs(got) == math.inf else kind), error, kind == "wrong kind"
    if got == 0 and abs(wanted) < 2.0 ** low:
        return "flushed", error, ".ftz" not in function and error > allowed
    quarter = max(math.ceil(4 * min(error, 100.0)) - 1, 0)
    return (sweeps.BINS[quarter] if quarter < sweeps.QUARTERS else "more"), error, error > allowed


def inputs_of(sample):
    count, start, step = sample
    return [start + step * i & 0xffffffff for i in range(count)]


def results_of(gpu, function, sample):
    data = gpu.buffer("results", 4 << 16)
    sweeps.launch(gpu, function, sample, data, is_raw=True)
    gpu.synchronize()
    return memoryview(gpu.download(data, 4 * sample[0])).cast("I")


def host_histogram(function, inputs, results):
    """Returns {bin: (count, input, f32 of its error)}, like the device."""
    bins, narrow = {}, lambda x: struct.unpack("<I", struct.pack("<f", x))[0]
    for bits, result in zip(inputs, results):
        name, error, is_beyond = classify(function, bits, result)
        for bin_ in [name] + ["beyond"] * is_beyond:
            count, worst = bins.get(bin_, (0, (0, 0)))
            bins[bin_] = count + 1, max(worst, (narrow(error), bits))
    return {name: (count, at, struct.unpack("<f", struct.pack("<I", error))[0]) for name, (count, (error, at)) in bins.items()}


SPECIAL = [0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fffffff, 0xffffffff, 0x7f7fffff, 0x00000001, 0x807fffff, 0x00800000,
           0x3f800000, 0x4f000000, 0x477fefff, 0x477ff000, 0x43e80000, 0x43e80001, 0x3f000000, 0xbf000000, 0x33000000, 0x33000001]


def host():
    """Returns inputs spread over all bits, and inputs at and next to the limits of formats."""
    gpu = Gpu(DRIVER, True)
    for function in FUNCTIONS:
        for sample in [sweeps.sample(function, COUNT)] + [(3, start, 1) for start in SPECIAL if FUNCTIONS[function].bits == 32]:
            got = sweeps.histogram(gpu, function, sample)
            wanted = host_histogram(function, inputs_of(sample), results_of(gpu, function, sample))
            for name in sweeps.BINS:
                expect(f"{function}, inputs from {sample[1]:#x}, bin {name}", got.get(name), wanted.get(name))
            expect(f"{function}: inputs counted", sum(count for name, (count, *_) in got.items() if name != "beyond"), sample[0])


FAULTS = {  # function: (PTX added to the instruction or replacing it, bins that it must fill, first input and step if they matter)
    "rcp.approx.f32": ("add.u32 r16, r16, 2;", {"1.5 to 1.75", "beyond"}),
    "ex2.approx.ftz.f32": ("add.u32 r16, r16, 3;", {"2.75 to 3", "beyond"}),
    "sqrt.approx.f32": ("xor.b32 r16, r16, 0x80000000;", {"more", "wrong kind", "beyond"}),
    "lg2.approx.f32": ("mov.b32 r16, 0x7fffffff;", {"wrong kind", "beyond"}),
    "rsqrt.approx.f32": ("and.b32 r16, r16, 0xfffffff0;", {"more", "beyond"}),
    "cvt.rn.f16x2.f32 low": ("mov.b32 f0, r10; mov.b32 f2, r11; cvt.rn.f16x2.f32 r16, f0, f2;", {"more", "beyond"}),
    "cvt.rn.bf16x2.f32 low": ("add.u32 r16, r10, 0x8000; shr.u32 r16, r16, 16;", {"0.25 to 0.5", "rounded", "beyond"}, 0x3f808000, 0x10000),
    "cvt.rn.bf16.f32": ("cvt.rz.bf16.f32 h0, f0; cvt.u32.u16 r16, h0;", {"0.75 to 1", "beyond"}),
    "cvt.rzi.u32.f32": ("cvt.rni.u32.f32 r16, f0;", {"0.25 to 0.5", "beyond"}),
    "cvt.rni.s32.f32": ("add.s32 r16, r16, 1;", {"0.75 to 1", "beyond"})}


def bites():
    gpu, was = Gpu(DRIVER, True), dict(FUNCTIONS)
    for function, (code, bins, *first) in FAULTS.items():
        sample = (COUNT, *first) if first else sweeps.sample(function, COUNT)
        FUNCTIONS[function] = was[function]._replace(code=f"{was[function].code} {code}",
                                                     target="sm_90" if "rz.bf16" in code else was[function].target)
        found = sweeps.histogram(gpu, function, sample)
        expect(f"{function} and {code}: bins that are missing", bins - set(found), set())
        expect(f"{function} and {code}: what the row says", sweeps.row(function, sample, found)["right"], False)


def table(gpu):
    """Returns {function: its row} from the emulated driver."""
    rows = {}
    for function in FUNCTIONS:
        sample = sweeps.sample(function, EMULATED_COUNT)
        rows[function] = sweeps.row(function, sample, sweeps.histogram(gpu, function, sample))
    return rows


def emulated():
    rows, kept = table(Gpu(DRIVER, True)), json.loads(sweeps.EMULATED.read_text(encoding="utf-8"))
    for function, row in rows.items():
        expect(f"{function}: all errors are allowed", row["right"], True)
        expect(f"{function} in {sweeps.EMULATED.name} (the verb rebase writes it)", kept.get(function), json.loads(json.dumps(row)))
    expect("functions", list(kept), list(FUNCTIONS))


def rebase():
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table(Gpu(DRIVER, True)).items()]
    sweeps.EMULATED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


# ---- the bundle's kernels -------------------------------------------------------------------------------------------

def copy_of_kit(room):
    """Makes the part of the kit that probes.py needs."""
    for path in [ROOT / "tools/python/kiln.py", *(ROOT / "tools/bench").glob("*.py")]:
        shutil.copy(path, room)
    shutil.copytree(ROOT / "tools/bench/probes", room / "probes", ignore=shutil.ignore_patterns("__pycache__"))


def run_probes(room, *options):
    out = room / "out.jsonl"
    out.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-B", room / "probes.py", out, "--driver", DRIVER, "--small", "--seconds", "1000", *options], check=True)
    return [json.loads(line) for line in out.read_text().splitlines()]


def bundle():
    import kernels
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        copy_of_kit(room)
        kernels.write(room / "bundle.json.gz", sys.argv[4], "sm_90")
        rows = run_probes(room, "--only", "resources", "split_k_counters")
        for name in "resources", "split_k_counters":
            found = [row for row in rows if row["probe"] == name]
            expect(f"{name}: rows that are right", [row.get("right") for row in found], [True] * 3)
        figures = [row["ptxas"] for row in rows if row["probe"] == "resources"]
        expect("figures of ptxas", all(f["registers"] > 0 and f["version"].startswith("V") for f in figures), True)
        for module in [name for name in sys.modules if name.partition(".")[0] == "probes"]:
            del sys.modules[module]
        sys.path.insert(0, str(room))
        plant_faults()


def plant_faults():
    """Finds planted faults: launches that write nothing or wrong values, counters that are not reset, too many promised blocks."""
    from probes import bundle as kit
    gpu = Gpu(DRIVER, True)
    modelled = [kit.modelled_blocks(gpu, v) for v in kit.VARIANTS.values()]
    expect("kernels with a number of resident thread blocks in the choosers", sum(blocks is not None for blocks in modelled) >= 30, True)
    case = next(case for case in kit.COUNTERS.cases if case["variant"].startswith("nf4_gemm_transposed/a=bf16"))
    expect("a launch without faults", kit.measure_counters(gpu, **case)["right"], True)
    multiply = kit.Product.multiply

    def later(fault):
        """Plants the fault from the second launch on: later launches are compared with the first."""
        seen = []

        def launch(product):
            seen.append(product)
            return multiply(product) if len(seen) == 1 else fault(product)
        return launch

    def other_input(product):
        multiply(product)
        gpu.launch(gpu.load(kit.check_text()), 1, kit.THREADS, [kit.ctypes.c_uint64(gpu.out), kit.ctypes.c_uint64(product.buffers["out"][0]),
                   kit.ctypes.c_uint64(gpu.out), kit.ctypes.c_uint64(0), kit.ctypes.c_uint32(1)])  # changes one word

    def leave_counter(product):
        multiply(product)
        address, bytes_ = product.buffers["tile_counters"]
        gpu.call("cuMemsetD8Async", kit.ctypes.c_uint64(address + bytes_ - 4), kit.ctypes.c_ubyte(1), kit.ctypes.c_size_t(1), gpu.stream)

    for name, fault, wrong in (("a launch that writes nothing", lambda product: None, "wrong_words"),
                               ("a word that differs", other_input, "wrong_words"),
                               ("a counter that is not reset", leave_counter, "counters_not_zero")):
        kit.Product.multiply = later(fault)
        row = kit.measure_counters(gpu, **{**case, "way": "stream"})
        expect(name, (row["right"], row[wrong] > 0), (False, True))
        kit.Product.multiply = multiply
        for product in "01":  # else the launches do not reset the counters
            gpu.buffers.pop(f"{case['variant']} tile_counters {product}", None)
    promised = next(v for v in kit.VARIANTS.values() if ".minnctapersm 2" in v["text"])
    expect("resident thread blocks", kit.measure_resources(gpu, promised["id"])["right"], True)
    gpu.facts["sm_threads"] = gpu.facts["sm_shared_bytes"] = 1 << 30
    promised["text"] = promised["text"].replace(".minnctapersm 2", ".minnctapersm 33", 1)
    expect("too many promised", kit.measure_resources(gpu, promised["id"])["right"], False)


def known():
    """Skips a probe only for the same card, driver and text, and only if all its cases ran."""
    import known as table
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        copy_of_kit(room)
        rows = run_probes(room, "--only", "device", "waves", "chase")
        (room / "results/card").mkdir(parents=True)
        (room / "results/card/probes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        expect("what a rehearsal has measured", table.collect(room / "results"), [])
        (_, card), = [(row, which) for row, which in table.follow(rows) if row["probe"] == "device"]
        expect("the card", card[0] is not None and card[1] is not None, True)
        whole = [{**row, "text": table.text_of(sweeps_table()[row["name"]])} if row["probe"] == "took" else row for row in rows]
        (room / "results/card/probes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in whole))
        found = table.collect(room / "results")
        expect("probes that are measured", [(name, folder) for *_, name, _, folder in found], [("chase", "card"), ("waves", "card")])
        for change, skipped in ((lambda row: row, ["chase", "waves"]), (lambda row: ["another card", *row[1:]], []),
                                (lambda row: [row[0], "another driver", *row[2:]], []), (lambda row: [*row[:3], "another text", row[4]], [])):
            (room / "known.json").write_text(json.dumps([change(row) for row in found]))
            rows = run_probes(room, "--only", "device", "waves", "chase", "--known", str(room / "known.json"))
            expect("skipped", [row["probe"] for row in rows if "skipped" in row], skipped)
            expect("measured", {row["probe"] for row in rows if "value" in row} & {"waves", "chase"}, {"waves", "chase"} - set(skipped))


def sweeps_table():
    from probes import TABLE
    return TABLE


{"host": host, "bites": bites, "emulated": emulated, "rebase": rebase, "bundle": bundle, "known": known}[VERB]()
