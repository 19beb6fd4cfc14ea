"""Tests the machine code of the probes of constants and of wgmma's rate: each loop has the intended number of the
intended instructions, and few others.

usage: sass_test.py ROOT [FOLDER]

ptxas may drop an instruction (rcp of rcp), fold it (a sum of equal addends) or merge it (neighbouring loads); then a probe measures
something else. Exits 77 without ptxas and nvdisasm (from a CUDA toolkit, or the package nvidia-cuda-nvdisasm of PyPI installed with
`pip install --target FOLDER`).
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/bench"))
from probes import SETS, rates, sweeps
from probes.text import timed

SKIPPED = 77
LOOP_COST = 8  # other instructions that a loop may have: counter, branch, moves


def find_disassembler():
    """Finds nvdisasm on the PATH, or in a PyPI package in FOLDER or of this interpreter."""
    found = [shutil.which("nvdisasm")]
    found += [path for base in sys.argv[2:] + sys.path for path in pathlib.Path(base or ".").glob("nvidia/*/bin/nvdisasm")]
    return next((str(path) for path in found if path and os.access(path, os.X_OK)), None)


NVDISASM = find_disassembler()
if not shutil.which("ptxas") or not NVDISASM:
    print("no ptxas" if not shutil.which("ptxas") else "no nvdisasm (pip install --target build/python nvidia-cuda-nvdisasm)")
    sys.exit(SKIPPED)


def disassemble(text):
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(text)
        subprocess.run(["ptxas", "-arch=sm_100a" if ".target sm_100a" in text else "-arch=sm_90a", source, "-o", cubin], check=True)
        return subprocess.run([NVDISASM, "-c", cubin], check=True, capture_output=True, text=True).stdout


def read_code(listing):
    """Returns ([(operation, operands)], {label: its index})."""
    code, labels = [], {}
    for line in listing.splitlines():
        label = re.match(r"\s*(\.L_x_\d+):", line)
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?);", line)
        if label:
            labels[label[1]] = len(code)
        elif found:
            code.append(found.groups())
    return code, labels


def loops(code, labels):
    """Returns the operations of each loop, from the target of a backward branch to the branch, longest loop first."""
    found = []
    for end, (operation, operands) in enumerate(code):
        target = re.search(r"\.L_x_\d+", operands)
        if operation.startswith("BRA") and target and labels[target[0]] < end:
            found.append([line for line in code[labels[target[0]]:end + 1] if line[0] != "NOP"])
    return sorted(found, key=len, reverse=True)


# ---- the operations of loops: {regular expression: how often} ----------------------------------------------------------

ISSUED = {"prmt": "PRMT", "lop3": "LOP3", "imad": "IMAD$", "add": "IADD3|IMAD.IADD", "iadd": "IADD3|IMAD.IADD", "shf": "SHF", "ffma": "FFMA$",
          "dfma": "DFMA", "hfma2": "HFMA2", "dp4a": "IDP.4A", "dp4a chained": "IDP.4A", "ex2": "MUFU.EX2", "rcp": "MUFU.RCP$",
          "shfl": "SHFL", "cvt.f16x2": "F2FP", "i2f": "I2FP"}
BESIDE = {"iadd": "LOP3", "rcp": "FADD"}  # loops with a second instruction beside each counted one
CHAINED = {"ffma": "FFMA$", "hfma2": "HFMA2", "imad": "IMAD$", "dp4a": "IDP.4A", "shfl": "SHFL", "ex2": "MUFU.EX2", "ld.shared": "LDS$"}
TENSOR = {"f16 to f32": "HMMA.16816.F32$", "bf16 to f32": "HMMA.16816.F32.BF16", "f16 to f16": "HMMA.16816.F16", "s8 to s32": "IMMA.16832.S8.S8",
          "tf32 to f32": "HMMA.1688.F32.TF32"}
LOADED = {"lds.32": "LDS$", "lds.64": "LDS.64", "lds.128": "LDS.128", "ldmatrix.x4": "LDSM.16.M88.4", "ldmatrix.x4.trans": "LDSM.16.MT88.4"}
ATOMIC = {"red.add.f32": "REDG.E.ADD.F32", "red.add.u32": "REDG.E.ADD.STRONG",
          "atom.inc.u32": "ATOMG.E.INC", "red.add.f16x2": "REDG.E.ADD.F16x2"}
READ = {"ld.global": {"LDG.E.128": 4}, "cp.async": {"LDGSTS": 4}, "bulk": {"UBLKCP": 1}}


def issued(mix):
    wanted = collections.Counter()
    names = rates.MIXES[mix]
    for i in range(64):
        wanted[ISSUED[names[i % len(names)]]] += 1
        if names[0] in BESIDE:
            wanted[BESIDE[names[0]]] += 1
    return wanted


def multiplied(form):
    """sm_90 has no machine instruction for mma.sync of e4m3: ptxas converts to f16 and multiplies that."""
    return {TENSOR[form]: 16} if form in TENSOR else {"HMMA.16816.F32": 32}


def multiplied_beside(beside, kind):
    load, _, per_k64 = beside.partition(" x ")
    loads = {LOADED[load]: 2 * int(per_k64)} if load in LOADED else {}
    return {"QGMMA" if kind == "e4m3" else "HGMMA": 2 * rates.STEPS, **loads}


def chained(chain):
    if chain.startswith("mma"):
        return {TENSOR[chain[4:]]: 16}
    if chain.startswith("bar"):
        return {"BAR.SYNC": 16}
    return {"LOP3": 8, "PRMT": 8} if chain == "lop3, prmt" else {CHAINED[chain]: 16}


WANTED = {  # probe: operations of a case's loop; None: the kernel has no loop
    "mma_rate": lambda form, **_: multiplied(form),
    "wgmma_rate": lambda beside, kind, **_: multiplied_beside(beside, kind),
    "bandwidth": lambda way, **_: READ[way],
    "latency": lambda chain: chained(chain),
    "chase": lambda load, **_: {"LDG": load != "none"},
    "issue": lambda mix, **_: issued(mix),
    "shared_loads": lambda load, **_: {LOADED[load]: 8},
    "empty_launches": lambda **_: None,
    "waves": lambda **_: {"CS2R": 1},
    "split_join": lambda **_: {"LDG.E.128": 4, "FADD": 16},
    "atomics": lambda atomic, **_: {ATOMIC[atomic]: 16}}
LOOSE = {"wgmma_rate", "bandwidth", "chase", "split_join", "mma_rate e4m3 to f32", "shared_loads", "atomics"}  # plus addresses, sums and conversions
KERNELS = {"dependent_launches": lambda dependent, **_: {"LDG": 1, "STG": 1, "ACQBULK": dependent != "no", "PREEXIT": dependent != "no"}}

SWEPT = {"ex2.approx": "MUFU.EX2", "lg2.approx": "MUFU.LG2", "rcp.approx": "MUFU.RCP$", "sqrt.approx": "MUFU.(RSQ|SQRT)$",
         "rsqrt.approx": "MUFU.RSQ$", "cvt.rn.f16.f32": "F2F.F16.F32", "cvt.rn.bf16.f32": "F2F.BF16.F32", "cvt.rn.f16x2.f32": "F2FP.F16.F32",
         "cvt.rn.bf16x2.f32": "F2FP.BF16.F32", "cvt.rna.tf32.f32": "FSETP.GEU", "cvt.rn.f32.s32": "I2FP.F32.S32",
         "cvt.rn.f32.u32": "I2FP.F32.U32", "cvt.rni.s32.f32": "F2I.NTZ", "cvt.rzi.u32.f32": "F2I.U32.TRUNC.NTZ",
         "cvt.f32.f16": "HADD2.F32", "cvt.rn.f16x2.e4m3x2": "F2FP.F16.E4M3", "cvt.rn.satfinite.e4m3x2.f32": "F2FP.SATFINITE.E4M3", "cvt.rn.satfinite.e2m1x2.f32": "F2FP.SATFINITE.E2M1",
         "cvt.rn.f16x2.e2m1x2": "F2FP.F16.E2M1"}  # by the beginning of the function's name


def count(code, pattern):
    return sum(re.match(f"(?:{pattern})", operation) is not None for operation, _ in code)


def complaint(probe, case):
    """Returns the mistake in the machine code, or None."""
    listing = disassemble(probe.text(**case))
    code, labels = read_code(listing)
    found = loops(code, labels)
    if probe.name in KERNELS:
        got = {pattern: count(code, pattern) for pattern in KERNELS[probe.name](**case)}
        return None if got == KERNELS[probe.name](**case) else f"the kernel has {got}, expected {KERNELS[probe.name](**case)}"
    if probe.name == "sweep":
        pattern = next(operation for name, operation in SWEPT.items() if case["function"].startswith(name))
        got = count(found[0], pattern) if found else 0
        return None if got == 1 else f"the loop has {got} {pattern}, expected 1"
    wanted = WANTED[probe.name](**case)
    if wanted is None:
        return f"{len(found)} loops, expected none" if found else None
    if not found:
        return "no loop"
    is_loose = bool({probe.name, f"{probe.name} {case.get('form')}"} & LOOSE)
    said = [check_loop(loop, wanted, is_loose) for loop in found]
    return "; ".join(said) if all(said) else None


def check_loop(loop, wanted, is_loose):
    """Returns None if the loop has the wanted operations, once or several times (ptxas may unroll it)."""
    got = {pattern: count(loop, pattern) for pattern in wanted}
    times = next((got[pattern] // number for pattern, number in wanted.items() if number), 1)
    others = len(loop) - sum(got.values())
    if times >= 1 and got == {pattern: number * times for pattern, number in wanted.items()} and (is_loose or others <= LOOP_COST):
        return None
    return f"a loop has {got} and {others} others, expected {dict(wanted)}"


FAULTS = {  # bodies that ptxas changes, and the operations in their source
    "rcp of rcp": ("rcp.approx.ftz.f32 d24, d24;\nrcp.approx.ftz.f32 d24, d24;", {"MUFU.RCP$": 2}),
    "shifts of a sum": ("shl.b32 r24, r24, 1;\nshl.b32 r24, r24, 1;", {"SHF|IMAD.SHL|LEA": 2}),
    "a result that nothing uses": ("fma.rn.f32 d30, d24, d8, d12;\nadd.f32 d24, d24, d9;", {"FFMA$": 1, "FADD": 1})}


def main():
    cases = []
    for probe in [rates.WGMMA, *SETS["constants"].values(), sweeps.SWEEPS]:
        texts = {}
        for case in probe.cases if probe.text else []:
            texts.setdefault(probe.text(**case), case)
        cases += [(probe, case) for case in texts.values()]
    missing = {probe.name for probe, _ in cases} - set(WANTED) - set(KERNELS) - {"sweep"}
    if missing:
        sys.exit(f"probes whose machine code is not described here: {', '.join(sorted(missing))}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (probe, case), said in zip(cases, pool.map(lambda c: complaint(*c), cases)):
            if said:
                sys.exit(f"{probe.name} {case}: {said}")
    for name, (body, wanted) in FAULTS.items():
        text = timed(body, rates.seeds("a", 0, 16, "0x3fffffff") + rates.seeds("r", 24, 1) + rates.seeds("d", 8, 24), sink=["r24", "d24"])
        found = loops(*read_code(disassemble(text)))
        if any(check_loop(loop, wanted, True) is None for loop in found):
            sys.exit(f"{name}: this test does not find the change")
    print(f"{len(cases)} kernels")


main()
