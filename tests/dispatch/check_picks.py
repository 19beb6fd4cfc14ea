#!/usr/bin/env python3
"""Compares the default bundle's compiled dispatch, on an emulated device, with `kiln explain`: candidates, estimates and reasons.
Also checks that calls go to the tensor cores that exact values in a table once sent to the CUDA cores.

usage: check_picks.py PROGRAM DRIVER KILN CONFIG DEVICE TARGET
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys


# explain's texts about images and shared memory; a call has the same text for both
ROOM = re.compile(r"runs on sm_.*|\d+ KB of shared memory, of \d+")


def calls(program, driver, target):
    """Returns [(family, arguments, {variant: estimate or reason})]."""
    out = subprocess.run([program, driver], capture_output=True, text=True, check=False,
                         env={**os.environ, "KILN_EMU_DEVICE": target})
    found, sizes = [], []
    for line in out.stdout.splitlines():
        if line.startswith("sizes "):
            sizes = line.split()[1:]
        elif line.startswith("call "):
            family, *given = line.split()[1:]
            found.append((family, given + sizes, {}))
        elif line.startswith("- "):
            variant, _, why = line[2:].partition(": ")
            found[-1][2][variant] = why
        elif line[0].isdigit() and found and "/" in line:
            cycles, variant = line.split()
            found[-1][2][variant] = int(cycles)
    if out.returncode or not found:
        sys.exit(out.stdout[-2000:] + out.stderr)
    return found


def explain(kiln, config, device, family, *words):
    return subprocess.run([kiln, "explain", config, family, "--device", device, *words], capture_output=True, text=True, check=False)


def explained(kiln, config, device, family, given):
    out = explain(kiln, config, device, family, *given, "--long")
    if out.stderr:
        sys.exit(f"{family} {' '.join(given)}: {out.stderr}")
    made = {}
    for cycles, variant, why in re.findall(r"^ *(\d+|-)  ([^\s:]+)(?:: (.+))?$", out.stdout, re.MULTILINE):
        why = ROOM.sub("no image for this device and driver, or too little shared memory", why)
        made[variant] = why if cycles == "-" else int(cycles)
    return made


# Calls and the text that `kiln explain` must print for them.
TOLD = [
    ("nf4_gemm a=f16 m=16 n=4096 k=4096 workspace_size=0", r"\n +-  mma +32 +128 +2 +2 +0 +workspace_size at least 2097152\n"),
    ("nf4_gemm a=f16 m=16 n=4096 k=4096", r"; the first is launched: \d+\.\d\d us, an estimate\n"
                                          r"as large as the variants need: workspace_size=2097152\nall: a=f16,acc=f32,"),
    ("nf4_gemm a=f16 m=16 n=4096 k=4100", r"^kiln: error: nf4_gemm: k must be a multiple of 64\n$"),
    ("fp4_gemm m=1 n=64 k=64 alpha=-0.5", r"; the first is launched: "),
    ("fp4_quantize m=1 k=64 global_scale=-0.5", r"^kiln: error: fp4_quantize: global_scale must be at least 0 and finite\n$"),
    ("nf4_gemm a=f16 rows=strided", r"nf4_gemm: no variant has a=f16 rows=strided; there are a=f32 rows=packed, a=f16 rows=packed, a=bf16 rows=packed\n"),
    ("nvfp4_gemv m=2147483648 k=2147483648 l=2147483648", r"; none can be launched\n(?:.*\n)*? +-  .*  a would have 2\^63 bytes or more\n"),
]


def tell(kiln, config, device):
    """Yields a message for each text that `kiln explain` does not print."""
    for given, told in TOLD:
        out = explain(kiln, config, device, *given.split())
        if not re.search(told, out.stdout + out.stderr):
            yield f"WRONG {given}: expected {told}\nfound {out.stdout}{out.stderr}"


def complete(kiln, config, device, families):
    """Returns mistakes in the command that explain suggests for a call without sizes: it must work unchanged."""
    for family in families:  # the bundle lacks attention's default type
        out = explain(kiln, config, device, family, *["type=bf16"] * (family == "attention"))
        said = re.fullmatch(rf"kiln: error: {family}: .+ (?:is|are) missing, as in\n(.+)\n", out.stderr)
        again = said and subprocess.run(shlex.split(said[1]), capture_output=True, text=True, check=False)
        if not said or again.returncode or "; the first is launched" not in again.stdout:
            yield f"WRONG {family}: {out.stderr}{again.stdout + again.stderr if again else ''}\n"


def main(program, driver, kiln, config, device, target):
    families = sorted(set(re.findall(r"family: (\w+)", pathlib.Path(config).read_text())))
    untold = [*tell(kiln, config, device), *complete(kiln, config, device, families)]
    print("".join(untold), end="")
    wrong, tensor = len(untold), 0
    found = calls(program, driver, target)
    for family, given, candidates in found:
        expected = explained(kiln, config, device, family, given)
        numbers = {variant: what for variant, what in candidates.items() if isinstance(what, int)}
        if expected != candidates and len(candidates) > 1:
            wrong += 1
            print(f"WRONG {family} {' '.join(given)}")
            for variant in sorted(set(expected) | set(candidates)):
                if expected.get(variant) != candidates.get(variant):
                    print(f"    {variant}\n        explain  {expected.get(variant)}\n        the call {candidates.get(variant)}")
        rows = next((int(word[2:]) for word in given if word.startswith("m=")), 0)
        if family == "nf4_gemm" and "a=f16" in given and 9 <= rows <= 32:
            tensor += 1
            if "strategy=simt" in min(numbers, key=numbers.get):
                wrong += 1
                print(f"WRONG {family} {' '.join(given)}: not on the tensor cores")
    print(f"{len(found)} calls, {tensor} of them of 9 to 32 rows without a workspace, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
