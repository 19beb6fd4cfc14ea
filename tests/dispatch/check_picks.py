#!/usr/bin/env python3
"""The default bundle's dispatch as compiled C, on an emulated device, against `kiln explain`: the same candidates, the same
estimates, the same reasons; and that calls which rows of exact values once sent to the CUDA cores go to the tensor cores.

usage: check_picks.py PROGRAM DRIVER KILN CONFIG DEVICE TARGET
"""
import os
import re
import subprocess
import sys


# What explain says of shared memory, and a call, which does not tell images from room.
ROOM = {"the device has less shared memory than this call takes": "no image for this device and driver, or too little shared memory"}


def calls(program, driver, target):
    """[(family, arguments, {variant: estimate or reason})]."""
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


def explained(kiln, config, device, family, given):
    out = subprocess.run([kiln, "explain", config, family, "--device", device, *given], capture_output=True, text=True, check=False)
    if out.stderr:
        sys.exit(f"{family} {' '.join(given)}: {out.stderr}")
    rows = [line.split(maxsplit=1) for line in out.stdout.splitlines()[1:]]
    made = {}
    for cycles, rest in rows:
        variant, _, why = rest.partition(": ")
        why = re.sub(r"at least \d+ \((.+)\); pass \w+=\d+$", r"at least \1", why)  # the number that explain adds
        why = ROOM.get(why, why)
        made[variant] = why if cycles == "-" else int(cycles)
    return made


# What is told: of a rule whose numbers are all known what to pass, all sizes that are missing, a contract that no variant has.
TOLD = [
    ("a=f16 m=16 n=4096 k=4096",
     "workspace_size must be at least 2097152 ((ceil_div(m, tile_m) * ceil_div(n, tile_n) * split_k + (split_k == 0) * 2 * "
     "min(8 * ceil_div(m, tile_m) * ceil_div(n, tile_n), 320)) * tile_m * tile_n); pass workspace_size=2097152\n"),
    ("a=f16 m=16", "nf4_gemm: n, k are missing: n=... k=...\n"),
    ("a=f16 rows=strided", "nf4_gemm: the configuration has no variant with what the call names"),
]


def tell(kiln, config, device):
    """The lines of TOLD that are not."""
    for given, told in TOLD:
        out = subprocess.run([kiln, "explain", config, "nf4_gemm", "--device", device, *given.split()], capture_output=True,
                             text=True, check=False)
        if told not in out.stdout + out.stderr:
            yield f"WRONG nf4_gemm {given}: expected {told}found {out.stdout}{out.stderr}"


def main(program, driver, kiln, config, device, target):
    untold = list(tell(kiln, config, device))
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
            if "strategy=mma" not in min(numbers, key=numbers.get):
                wrong += 1
                print(f"WRONG {family} {' '.join(given)}: not on the tensor cores")
    print(f"{len(found)} calls, {tensor} of them of 9 to 32 rows without a workspace, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
