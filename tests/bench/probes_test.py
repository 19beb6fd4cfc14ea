"""Tests tools/bench/probes.py without a GPU.

usage: probes_test.py ROOT assembles    ptxas takes every probe, without spills and serialised wgmma
       probes_test.py ROOT maps         the layouts found for wgmma's operands equal those of a model of the hardware
       probes_test.py ROOT emulated DRIVER    lines and values of a small run
       probes_test.py ROOT survives DRIVER    a case that hangs, dies or loses the context affects no other case
"""
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, VERB = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/bench"))
import probes
from probes import formats, values

SKIPPED = 77


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def complaint(text):
    """Returns ptxas' error messages, or None."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "probe.ptx"
        source.write_text(text)
        done = subprocess.run(["ptxas", "-arch=sm_100a" if ".target sm_100a" in text else "-arch=sm_90a", "-v", source, "-o", pathlib.Path(folder) / "probe.cubin"],
                              capture_output=True, text=True)
    said = done.stdout + done.stderr
    is_bad = done.returncode or re.search(r"C75\d\d|[1-9]\d* bytes spill|warning", said)
    return said if is_bad else None


def assembles():
    if not shutil.which("ptxas"):
        print("no ptxas")
        sys.exit(SKIPPED)
    texts = {}
    for probe in probes.TABLE.values():
        for case in probe.cases if probe.text else []:
            texts.setdefault(probe.text(**case), f"{probe.name} {case}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, said in zip(texts.values(), pool.map(complaint, texts)):
            if said:
                sys.exit(f"{name}: {said}")
    serialised = next(text for text in texts if "m64n64k16" in text and "wait_group.sync.aligned 1;" in text)
    add = "wgmma.commit_group.sync.aligned;\nadd.f32 d0, d0, d0;"
    if not complaint(serialised.replace("wgmma.commit_group.sync.aligned;", add, 1)):
        sys.exit("ptxas no longer says when it serialises wgmma: this test sees nothing")


def model(skew):
    """Returns a multiply() that lays out operands as a descriptor says, offset by `skew` bytes from the second group of 8 rows."""
    layouts = {0: 0, 1: 128, 2: 64, 3: 32}

    def multiply(_gpu, text, kind, n, a=None, a_image=b"", b_image=b"", c=None, x=0, y=0, count=1):
        form, majors = text
        depth = 32 // formats.BYTES[kind]
        size = formats.BYTES[kind]
        order = values.fragment_order(kind)

        def number(data):
            return values.struct.unpack("<e", data)[0] if kind == "f16" else formats.e4m3(data[0])

        def element(image, descriptor, major, row, k):
            swizzle = layouts[descriptor >> 62]
            at = formats.canonical(kind, major, swizzle, (descriptor >> 16 & 0x3fff) << 4, (descriptor >> 32 & 0x3fff) << 4, row, k)
            at = formats.swizzled(at + ((descriptor & 0x3fff) << 4) + skew * (row // 8), swizzle)
            return number(image.ljust(values.WINDOW, b"\0")[at:at + size])

        def a_element(row, k):
            if form != "registers":
                return element(a_image, x, majors[0], row, k)
            return number(a[order[row, k] * size:][:size])

        left = [[a_element(row, k) for k in range(depth)] for row in range(64)]
        right = [[element(b_image, y, majors[1], column, k) for k in range(depth)] for column in range(n)]
        nonzero = [[(k, v) for k, v in enumerate(row) if v] for row in left]
        return [[sum(v * right[column][k] for k, v in row) for column in range(n)] for row in nonzero]
    return multiply


def maps():
    values.wgmma_text = lambda kind, n, form, a_major="K", b_major="K": (form, (a_major, b_major))
    for skew in 0, 16:
        values.multiply = model(skew)
        for case in values.MAPS:
            got = values.measure_map(None, **case)
            has_skew = skew != 0 and case["operand"] != "A registers"
            expect(f"{case} with a skew of {skew}", got["right"], not has_skew)
            if has_skew and case["major"] == "K":
                expect(f"{case}: element (8, 0)", got["rows"][8] != got["rows"][0], True)
    values.multiply = model(0)
    got = values.measure_map(None, **values.map_case("B", "MN", 0, 2048, 128))
    expect("places of rows 0, 1, 2, 4, 8 .. 32", list(got["rows"].values()), [0, 1, 2, 4, 64, 128, 256])
    expect("places of k 0, 1, 2, 4, 8", list(got["ks"].values()), [0, 8, 16, 32, 1024])


def emulated():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.jsonl"
        subprocess.run([sys.executable, "-B", ROOT / "tools/bench/probes.py", out, "--driver", sys.argv[3], "--small",
                        "--seconds", "1000"], check=True)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    by_name = {name: [row for row in rows if row["probe"] == name] for name in probes.TABLE}
    for name in [name for name, probe in probes.TABLE.items() if not probe.cases]:  # only a kit has their kernels
        expect(f"{name}: without kernels", [row.get("skipped") for row in by_name.pop(name)], ["only the kit has its kernels"])
    for name, found in by_name.items():
        expect(f"{name}: failures", [row for row in found if "failed" in row], [])
        expect(f"{name}: has values", bool(found) and all(row["unit"] is not None for row in found), True)
        expect(f"{name}: wrong results", [row for row in found if row.get("right") is False], [])
    facts = {row["fact"]: row["value"] for row in by_name["mma_sums"] if row["kind"] == "f16"}
    expect("bits beside a product", facts["bits of products beside a product"] >= 23, True)


ROUGH = """
import os, time
from probes.probe import Probe


def measure(gpu, do):
    {"hang": lambda: time.sleep(1000), "die": os.abort, "nothing": lambda: None,
     "lose": lambda: gpu.call("cuMemFree_v2", 12345)}[do]()
    return {"value": 1}


SETS["design"]["rough"] = TABLE["rough"] = Probe("rough", 1, "", [{"do": do} for do in ("nothing", "hang", "nothing", "die", "lose", "nothing")], None, measure)
"""


def survives():
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for script in "bench/probes.py", "bench/known.py", "bench/card.py", "python/kiln.py":
            shutil.copy(ROOT / "tools" / script, copy)
        shutil.copytree(ROOT / "tools/bench/probes", copy / "probes")
        with open(copy / "probes/__init__.py", "a") as table:
            table.write(ROUGH)
        subprocess.run([sys.executable, "-B", copy / "probes.py", copy / "out", "--driver", sys.argv[3], "--only", "rough"], check=True)
        rows = [json.loads(line) for line in (copy / "out").read_text().splitlines()]
    got = [(row["do"], row.get("failed", row.get("value"))) for row in rows if row["probe"] == "rough"]
    expect("cases", [do for do, _ in got], ["nothing", "hang", "nothing", "die", "lose", "nothing"])
    expect("what went well", [number for number, (_, result) in enumerate(got) if result == 1], [0, 2, 5])
    expect("the hang", got[1][1], "killed: the case took too long")


{"survives": survives, "assembles": assembles, "maps": maps, "emulated": emulated}[VERB]()
