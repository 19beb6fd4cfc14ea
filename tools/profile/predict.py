#!/usr/bin/env python3
"""Predicts the time of a launch on a device, and what bounds it, from the kernel's machine code.

Needs kiln-profile (ninja -C build kiln-profile emulator), and ptxas and nvdisasm from a CUDA toolkit; nvdisasm also from PyPI's
package nvidia-cuda-nvdisasm, installed for this interpreter or with `pip install --target FOLDER` (--packages FOLDER).
README.md has the model's assumptions and its errors.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import machine_code
import multiprocessor
import warp_trace
from machine_code import NoPrediction, base
from multiprocessor import Step

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_LAUNCH = "4294967295-4294967295"  # thread blocks that no grid has
SCRATCH = "workspace", "tile_counters"  # arguments that a launch writes and reads again
SAMPLED = 8  # most thread blocks that the emulated driver runs

# the columns of devices.def
Device = collections.namedtuple("Device", "name sm multiprocessors shared_kb multiprocessor_shared_kb threads blocks mhz "
                                          "gb_per_s mma s8 fp4")


class Assumptions:
    """What no data sheet states. Measured on an H100 (tools/bench/results/h100-2026-11-27), taken for every device."""

    l2_bytes = 28.0        # per cycle and multiprocessor: 28 to 31, depending on the kind of load
    memory_share = 0.9     # of the data sheet's bandwidth: a copy of 1 GiB reaches 0.90 on an H100, 0.88 on an H200
    l2_cycles, memory_cycles = 284, 691  # latency of a load
    shared_cycles, shuffle_cycles, special_cycles = 22, 23, 10  # from the last wavefront, or from when the pipe is free
    product_cycles = 18    # from when the pipe is free
    launch_us = 1.37       # between two launches of a graph, if one reads what the other wrote
    port_registers = 2     # that a quarter reads per cycle: a multiprocessor issues 2.4 instructions of three operands per cycle
    hopper_product_share = 0.75  # of devices.def's cycles per product, which are rounded up


ASSUMPTIONS = {  # each has an option
    "l2_bytes": "bytes per cycle from the L2 cache to a multiprocessor",
    "memory_share": "share of the data sheet's bandwidth that a kernel can reach",
    "l2_cycles": "cycles until a load from the L2 cache returns",
    "memory_cycles": "cycles until a load from memory returns",
    "port_registers": "registers that a quarter of a multiprocessor reads per cycle",
}


# ---- the device ----------------------------------------------------------------------------------------------------------------


def find_device(name):
    """The device with this name, or the only one whose name contains it."""
    text = (ROOT / "generator/target/devices.def").read_text()
    rows = [re.split(r",\s*", row) for row in re.findall(r'^DEVICE\("(.*)\)', text, re.M)]
    devices = [Device(row[0].rstrip('"'), *map(int, row[1:])) for row in rows]
    exact = [d for d in devices if d.name.lower() == name.lower()]
    found = exact or [d for d in devices if name.lower() in d.name.lower()]
    if len(found) > 1:
        raise NoPrediction(f"--device: '{name}' could be {', '.join(d.name for d in found)}; give one of these")
    if not found:
        raise NoPrediction(f"--device: '{name}' is not a device; there are {', '.join(d.name for d in devices)}")
    return found[0]


def check_target(target, device):
    """kiln-profile checks the target's form."""
    if parts := re.fullmatch(r"sm_(\d+)([af]?)", target):
        sm, kind = int(parts[1]), parts[2]
        runs = {"": sm <= device.sm, "f": sm <= device.sm and sm // 10 == device.sm // 10, "a": sm == device.sm}
        if not runs[kind]:
            raise NoPrediction(f"--target: {target} does not run on {device.name}, which is sm_{device.sm}; leave out --target to "
                               "take the device's best image")


def resident_blocks(device, warps, registers, shared_bytes):
    """Thread blocks that a multiprocessor holds at once."""
    block_bytes = shared_bytes + (1024 if device.sm >= 80 else 0)  # the driver's own
    by_registers = 65536 // (256 * math.ceil(registers * 32 / 256) * warps)
    by_shared = device.multiprocessor_shared_kb * 1024 // max(block_bytes, 1)
    return max(1, min(device.blocks, device.threads // (32 * warps), by_registers, by_shared))


# ---- from instructions to steps ------------------------------------------------------------------------------------------------

SPECIAL = re.compile(r"(MUFU|I2F|F2I|FRND|POPC|BREV|FLO|F2F|I2I)(\.|$)")
MULTIPLY_ADDS = {"1688": 1024, "16816": 2048, "16832": 4096, "16864": 8192, "8816": 1024, "8832": 2048, "884": 256}
CONTROL = "NOP", "BSSY", "WARPSYNC", "VOTE", "VOTEU", "R2UR", "YIELD", "ERRBAR", "DEPBAR", "PLOP3"
LOADS_STORES = "LDS", "STS", "LDSM", "STSM", "ATOMS", "LDL", "STL", "LDC", "LDCU", "S2R", "S2UR", "CCTL", "MEMBAR", "MATCH"


def registers_read(i, kept):
    """Registers that the instruction reads; `kept` are still there from the previous instruction."""
    name = base(i.op)
    if re.fullmatch(r"[HIQO]MMA", name):
        a, b, c = [o.split(".")[0].strip() for o in i.operands.split(",")][1:4]
        sizes = (2, 1, 4) if ".1688." in i.op else (4, 2, 4)
        return sum(size for register, size in zip((a, b, c), sizes) if register != "RZ" and register not in kept)
    operands = re.findall(r"\bR\d+\b", i.operands)
    sources = operands if name.startswith(("ST", "RED", "BAR", "LDGSTS")) else operands[1:]
    return len([r for r in sources if r not in kept]) + (".WIDE" in i.op)


class Translator:
    """Turns instructions into Steps, with the counters of their PTX lines."""

    def __init__(self, device, counts, assume):
        self.device, self.counts, self.assume = device, counts, assume
        self.has_full_rate = device.sm not in (75, 80)  # a quarter issues a float instruction per cycle; otherwise every second
        self.integer_cycles = 1 if device.sm >= 100 else 2

    def step(self, code, n):
        i, previous = code[n], code[max(n - 1, 0)]
        made = self.make(base(i.op), i)
        reads = registers_read(i, set(re.findall(r"(R\d+)\.reuse", previous.operands))) / self.assume.port_registers
        return made._replace(stall=i.stall, sets=i.sets, frees=i.frees, waits=i.waits, reads=reads, line=n // 8)

    def make(self, name, i):
        line = self.counts.lines.get(i.line)
        if i.guard == machine_code.IDLE:
            return Step(multiprocessor.NONE)
        if re.fullmatch(r"[HIQO]MMA", name):
            return Step("tensor", self.product_cycles(name, i.op), self.assume.product_cycles)
        if name in machine_code.MEMORY or name in LOADS_STORES:
            return self.access(name, i.op, line)
        if name == "LDGDEPBAR":
            return Step(multiprocessor.COMMIT)
        if name == "DEPBAR" and (kept := re.search(r"SB0, 0x([0-9a-f]+)", i.operands)):
            return Step(multiprocessor.WAIT, keep=int(kept[1], 16))
        if name == "BAR":
            threads = re.search(r", 0x([0-9a-f]+)$", i.operands)
            return Step(multiprocessor.BARRIER, warps=int(threads[1], 16) // 32 if threads else 0)
        if name in ("BRA", "BSYNC", "EXIT", "CALL", "RET"):
            return Step(multiprocessor.BRANCH)
        if SPECIAL.match(i.op):
            return Step("special", 8, self.assume.special_cycles)
        if re.match(r"D(ADD|MUL|FMA|SETP)", name):
            return Step("double", {80: 4, 90: 2, 100: 2}.get(self.device.sm, 64), 20)
        if re.match(r"IMAD|IDP|IMUL", name):
            return Step("imad" if self.has_full_rate else "fma", self.integer_cycles, 10)
        if re.match(r"FFMA|FMUL|FADD|FSWZ", name):
            return Step("fma", 1 if self.has_full_rate else 2)
        if re.match(r"HFMA2|HADD2|HMUL2", name):
            return Step("fma", 1)
        if name.startswith("U") or name in CONTROL:
            return Step(multiprocessor.NONE, latency=12)
        return Step("alu", self.integer_cycles)

    def product_cycles(self, name, op):
        adds = MULTIPLY_ADDS[next(part for part in op.split(".") if part in MULTIPLY_ADDS)]
        d = self.device
        rate = {"HMMA": d.mma / 256, "IMMA": d.s8 / 1024, "QMMA": d.mma / 512, "OMMA": d.fp4 / 2048}[name]
        return adds * rate * (self.assume.hopper_product_share if d.sm == 90 else 1)

    def access(self, name, op, line):
        a = self.assume
        if name not in machine_code.MEMORY:
            return Step(multiprocessor.LOAD_STORE, 1, a.l2_cycles if name == "MEMBAR" else a.shared_cycles)
        if not line:  # its guard was never true
            return Step(multiprocessor.NONE)
        if name == "SHFL":
            return Step(multiprocessor.LOAD_STORE, 1, a.shuffle_cycles)
        shared = line.get("shared", {}).get("wavefronts", 0) / line["warp"]
        if name in ("LDS", "STS", "LDSM", "STSM", "ATOMS"):
            return Step(multiprocessor.LOAD_STORE, max(shared, 0.1), a.shared_cycles)
        sectors = line.get("allocations", {}).get("sectors", 0) / line["warp"]
        is_load = name in ("LDG", "LD", "LDGSTS")
        through_l1 = is_load and "BYPASS" not in op and "STRONG" not in op
        l2_bytes = 32 * sectors * (self.counts.l1_misses(line) if through_l1 else 1)
        memory_share = self.counts.memory_share(line, is_load)
        memory_bytes = min(l2_bytes, 32 * sectors * memory_share) if memory_share > 1 / 64 else 0
        return Step(multiprocessor.LOAD_STORE, max(shared, sectors / 4, 0.1), a.shared_cycles, l2_bytes=l2_bytes,
                    memory_bytes=memory_bytes, is_copy=name == "LDGSTS")


class Counts:
    """The emulated driver's counters of some of the grid's thread blocks."""

    def __init__(self, profile, sampled):
        report = profile["report"]
        self.lines = {line["line"]: line for line in report["lines"]}
        self.blocks, self.sampled = math.prod(report["grid"]), sampled
        self.warps = math.ceil(math.prod(report["block"]) / 32)
        self.shared_bytes = report["static_shared_bytes"] + report["dynamic_shared_bytes"]
        self.cost = profile["cost"].get("bytes_read", 0) + profile["cost"].get("bytes_written", 0)
        self.multiply_adds = report["tensor"]["multiply_adds"] * self.blocks / sampled
        self.allocations = profile["allocations"]  # in the report's order
        self.executed = {number: line["warp"] / (self.warps * sampled) for number, line in self.lines.items()}

    def touched(self, line):
        return [self.allocations[n] for n in line.get("touched", [])]

    def l1_misses(self, line):
        """The share of the requested sectors that no thread block of the sample has read before."""
        sectors = sum(a["read"]["sectors"] for a in self.touched(line))
        return min(1, sum(a["read"]["distinct_sectors"] for a in self.touched(line)) / sectors) if sectors else 1

    def memory_share(self, line, is_load):
        """The share of the bytes through the L2 cache that comes from memory or goes there: each byte of an argument once, and no
        scratch memory, which stays in the cache."""
        kind = "read" if is_load else "write"
        whole = requested = 0
        for a in self.touched(line):
            if a["is_argument"] and a["name"] not in SCRATCH:
                all_sectors = a[kind]["sectors"] * self.blocks / self.sampled
                requested += all_sectors
                whole += min(a["bytes"] / 32, a[kind]["distinct_sectors"] * self.blocks / self.sampled)
        return min(1, whole / requested) if requested else 0


# ---- the prediction ------------------------------------------------------------------------------------------------------------

Prediction = collections.namedtuple("Prediction", "us result variant counts device blocks resident registers steps covered")
"""us: the time; result: of multiprocessor.run; blocks: of the busiest multiprocessor; steps: of a warp; covered: see covered()"""


def run_profile(options, target, blocks):
    """kiln-profile's JSON for these thread blocks of the launch."""
    command = [options.profile, options.input, "--variant", options.variant, "--target", target, "--args", options.args, "--json"]
    try:
        done = subprocess.run([*command, "--lines"], capture_output=True, text=True, env={**os.environ, "KILN_EMU_BLOCKS": blocks})
    except OSError as problem:
        raise NoPrediction(f"cannot run {options.profile}: {problem.strerror}; build it with `ninja -C build kiln-profile "
                           "emulator`") from problem
    if done.returncode:
        raise NoPrediction(done.stderr.strip().removeprefix("kiln-profile: "))
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as problem:
        raise NoPrediction(f"--profile: {options.profile} is not a kiln-profile: it printed no JSON") from problem


def predict(options):
    assume, device = options.assume, find_device(options.device)
    target = options.target or f"sm_{device.sm}"
    check_target(target, device)
    bare = run_profile(options, target, NO_LAUNCH)
    arch = bare["image"] if bare["image"][-1] in "af" else f"sm_{device.sm}"
    listing, registers = machine_code.assemble(bare["ptx"], arch, options.packages)
    code, labels = machine_code.read(listing)
    outline = Counts(bare, 1)
    resident = resident_blocks(device, outline.warps, registers, outline.shared_bytes)
    blocks = math.ceil(outline.blocks / device.multiprocessors)
    splits = any(a["name"] in SCRATCH for a in outline.allocations)  # then the sample needs whole tiles
    sampled = min(outline.blocks, SAMPLED if splits else max(2, min(resident, blocks, SAMPLED)))
    first = (outline.blocks - sampled) // 2
    counts = Counts(run_profile(options, target, f"{first}-{first + sampled - 1}"), sampled)
    translator = Translator(device, counts, assume)
    places = warp_trace.trace(code, labels, counts.executed)
    step_of = {n: translator.step(code, n) for n in set(places)}
    steps = [step_of[n] for n in places]
    per_cycle = device.gb_per_s * 1e3 / device.mhz * assume.memory_share  # bytes, of the whole device
    machine = multiprocessor.Machine(assume.l2_bytes, per_cycle * blocks / counts.blocks, assume.l2_cycles, assume.memory_cycles)
    result = multiprocessor.run(steps, counts.warps, blocks, min(resident, blocks), machine)
    return Prediction(result.cycles / device.mhz, result, bare["variant"], counts, device, blocks, resident, registers, len(steps),
                      covered(code, places, counts.executed))


def covered(code, places, executed):
    """The trace's memory accesses and products, as a share of those that the emulated driver counted for a warp."""
    kept = {n for n, i in enumerate(code) if machine_code.is_exact(i) and i.line in executed}
    return sum(n in kept for n in places) / max(sum(executed[line] for line in {code[n].line for n in kept}), 1)


def bound(p):
    share, name = max((share, name) for name, share in p.result.busy.items())
    return name.replace("_", "/") if share >= 0.8 else "latency"


def show(p, options):
    c, d = p.counts, p.device
    floor = c.cost / d.gb_per_s / 1e3
    launch = options.assume.launch_us
    rate = f", {2 * c.multiply_adds / p.us / 1e6:.0f} TFLOP/s of products" if c.multiply_adds else ""
    print(f"{p.variant} on {d.name}, {options.args}")
    print(f"{p.us:.2f} us, {launch} more to launch it in a graph{rate}; "
          f"the memory's floor is {floor:.2f} us, {100 * floor / p.us:.0f} %")
    print(f"{c.blocks} thread block{'s' if c.blocks > 1 else ''} of {c.warps} warp{'s' if c.warps > 1 else ''}, "
          f"{p.blocks} on the busiest multiprocessor, {p.resident} at once; "
          f"{p.registers} registers, {p.steps} instructions per warp")
    shares = sorted(((share, name) for name, share in p.result.busy.items() if share >= 0.005), reverse=True)
    print("busy: " + ", ".join(f"{name.replace('_', '/')} {100 * share:.0f} %" for share, name in shares))
    if abs(p.covered - 1) > 0.05:
        print(f"warning: unreliable, since the trace has {100 * p.covered:.0f} % of the counted accesses and products")
    print(f"bound by {bound(p)}")


def positive(text, most=sys.float_info.max):
    try:
        if 0 < float(text) <= most:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number above 0{' and at most 1' if most == 1 else ''}, found '{text}'")


def share(text):
    return positive(text, 1)


def read_options(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("input", metavar="CONFIG|BUNDLE")
    p.add_argument("--variant", required=True, metavar="ID", help="an id, or a key, as `kiln list CONFIG` prints them")
    p.add_argument("--device", required=True, metavar="NAME", help="a device of generator/target/devices.def, such as 'RTX 5090'")
    p.add_argument("--args", default="", metavar="m=64,...", help="the kernel's sizes, as for kiln-profile")
    p.add_argument("--target", metavar="T", help="the image of this target, such as sm_80; default: the device's best image")
    for name, about in ASSUMPTIONS.items():
        p.add_argument(f"--{name.replace('_', '-')}", type=share if name == "memory_share" else positive,
                       default=getattr(Assumptions, name), metavar="X", help=f"{about}; default: %(default)s")
    p.add_argument("--packages", action="append", default=[], metavar="FOLDER",
                   help="a folder of `pip install --target`, for nvdisasm")
    p.add_argument("--profile", default=str(ROOT / "build/bin/kiln-profile"), metavar="PROGRAM",
                   help="another kiln-profile than build/bin/kiln-profile")
    options = p.parse_args(arguments)
    options.assume = Assumptions()
    for name in ASSUMPTIONS:
        setattr(options.assume, name, getattr(options, name))
    return options


def main():
    options = read_options(sys.argv[1:])
    try:
        show(predict(options), options)
    except NoPrediction as problem:
        sys.exit(f"predict.py: {problem}")


if __name__ == "__main__":
    main()
