"""Tests tools/bench/gpu fit: its input, and its output for committed and for made-up results.

usage: fit_test.py ROOT
"""
import contextlib
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/bench"))
import fit


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def said(folder):
    words = io.StringIO()
    with contextlib.redirect_stdout(words):
        expect("exit status", fit.main([folder]), 0)
    return words.getvalue()


def sources():
    """Reads each column of devices.def and each constant of estimate.h, and fits a line through points."""
    devices = fit.read_devices((ROOT / "generator/target/devices.def").read_text(encoding="utf-8"))
    expect("the T4", devices["T4"], dict(zip(fit.COLUMNS, (75, 40, 64, 64, 1024, 16, 1590, 320, 2, 4, 0))))
    expect("devices", len(devices) >= 18 and all(len(row) == len(fit.COLUMNS) for row in devices.values()), True)
    expect("constants", set(fit.read_estimate((ROOT / "include/kiln/estimate.h").read_text(encoding="utf-8"))),
           {"SLOTS", "LOOP_CYCLES", "WARP_CYCLES", "CACHE_BYTES"})
    expect("a line", [round(number, 9) for number in fit.line_through([(1, 5), (2, 7), (4, 11)])], [3.0, 2.0])
    expect("a point", fit.line_through([(3, 5)]), (5.0, 0.0))
    for name, device in (("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("NVIDIA L40", None)):
        expect(name, fit.device_of(fit.Rows([{"probe": "device", "value": 1, "name": name}]), devices), (name, device))


def committed():
    """The H100's probes give constants near the model's, and one impossible rate."""
    rows = fit.Rows(fit.records.read(ROOT / "tools/bench/results/h100-2026-11-27", "probes"))
    devices = fit.read_devices((ROOT / "generator/target/devices.def").read_text(encoding="utf-8"))
    estimate = fit.read_estimate((ROOT / "include/kiln/estimate.h").read_text(encoding="utf-8"))
    found = {what: (model, measured) for what, _, model, measured in fit.constants(rows, devices["H100"], estimate)}
    expect("multiprocessors", found["multiprocessors"], (132, 132))
    expect("memory", found["memory, GB/s"], (3352, 3142.3))
    expect("mma.sync", found["mma.sync, cycles for 256 multiply-adds"], (1, 0.75))
    expect("mma.sync of s8", found["the same of s8, for 1024 multiply-adds"], (2, 1.5))
    expect("latency", math.isclose(found["one warp, cycles per dependent instruction"][1], 4.12), True)
    words = said(ROOT / "tools/bench/results/h100-2026-11-27")
    expect("a rate above the issue slots", words.count("MORE THAN THERE ARE ISSUE SLOTS"), 1)
    expect("no results", "no device" in said(ROOT / "tools/bench/probes"), True)


def made():
    """Made-up rows of sweeps, kernels and waves."""
    sweep = {"probe": "sweep", "function": "ex2.approx.f32", "value": 2.25, "worst_input": "3f000000", "inputs": 1000, "step": 1, "right": False,
             "allowed": {"ulps": 2.0, "relative": 0.0}, "bins": {"rounded": [900, "0", 0.5], "2 to 2.25": [99, "3f000000", 2.25], "wrong kind":
             [1, "7fc00000", 0.0], "beyond": [100, "3f000000", 2.25]}, "emulated": {"value": 0.5009}, "unit": "ulps"}
    rows = [{"probe": "device", "value": 4, "name": "NVIDIA H100", "clock_khz": 1000000, "unit": ""}, sweep,
            {"probe": "resources", "variant": "f/a=1", "value": 40, "local_bytes": 8, "resident": 2, "promised": 3, "modelled": 4,
             "ptxas": {"registers": 32, "stack": 0}, "right": False, "unit": ""},
            {"probe": "resources", "variant": "f/a=2", "value": 32, "local_bytes": 0, "resident": 3, "promised": 3,
             "ptxas": {"registers": 32, "stack": 0}, "right": True, "unit": ""},
            {"probe": "split_k_counters", "variant": "f/split_k=2", "way": "graph", "value": 100000, "streams": 4, "wrong_words": 0,
             "counters_not_zero": 7, "right": False, "unit": ""},
            *({"probe": "waves", "waves": waves, "resident": 1, "value": 1.0, "spin": 1000, "clocks": 3000 + 1300 * waves, "unit": ""}
              for waves in (1, 2, 4)),
            {"probe": "waves", "waves": 8, "resident": 1, "failed": "no", "unit": ""}]
    rows = [{**sweep, "value": 9.0, "worst_input": "00000001"}, *rows]  # an earlier run is ignored
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "probes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = said(folder)
    for line in ("waves, 1 per multiprocessor: 3000 cycles for a launch, 300 more for each wave",
                 "2 kernels: 1 with other registers or local bytes than ptxas gives; 1 with fewer resident thread blocks than they promise",
                 "    40 registers, 8 bytes; ptxas 32, 0: f/a=1", "    2 resident, promised 3: f/a=1", "    2 resident, 4 in the model: f/a=1",
                 "split_k: 100000 launches on 4 streams (graph), 0 wrong words, 7 counters not zero: f/split_k=2",
                 "    1 results of a wrong kind, such as that of 7fc00000"):
        expect(f"the line {line!r}", line in words.splitlines(), True)
    row = next(line for line in words.splitlines() if line.startswith("ex2.approx.f32"))
    expect("a function", row.split()[1:], ["1000", "90.0000%", "2.25", "3f000000", "2", "ulps", "100", "0.501"])


def command():
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/bench/gpu", "fit", ROOT / "tools/bench/results/h100-2026-11-27"],
                          capture_output=True, text=True)
    expect("gpu fit", (done.returncode, done.stderr, "devices.def" in done.stdout), (0, "", True))


sources()
committed()
made()
command()
