#!/usr/bin/env python3
"""Mutates the synchronisation of the product on wgmma: kiln-verify must find each mutant, or survivors.txt must say why not.

usage: mutants.py KILN CONFIG VARIANT VERIFY PLANT SURVIVORS

PLANT is the driver library of tests/mutants/plant.c. A mutant drops a fence, barrier, arrival, commit, copy or wait; or it
changes the bytes that a phase expects by 16, the parity of a wait, a descriptor's offsets by one unit, or its swizzle. It is
found if a check of the emulated driver reports it or a value is wrong. The size is large enough for a second trip around the ring.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TARGET = "sm_90a"
AT_ONCE = 2
OPTIONS = "--inputs 1 --size m=16 --size n=128 --size k=320".split()
GUARD = r"^\t(?:@!?%p\d+ )?"
WAIT = r"^\t(mbarrier\.try_wait\S*) (%p\d+), (\S+), (%r\d+);\n\tnot\.pred (%p\d+), \2;\n\t@\5 bra \w+;\n"
DESCRIPTOR = r"^(\tor\.b64 %rd\d+, %rd\d+, )0x([0-9a-f]{16});\n"
OFFSETS = {"LBO": 1 << 16, "SBO": 1 << 32}
SWIZZLE = 62  # lower bit of the field

# A kind of mutant, the instructions that it changes, and the text that replaces them.
KINDS = [
    ("drop", GUARD + r"(?:fence|bar|barrier|mbarrier\.init|mbarrier\.arrive|wgmma\.(?:fence|commit_group|wait_group)|cp\.async\.bulk|"
             r"setmaxnreg)\b.*\n", lambda m: ""),
    ("drop the wait", WAIT, lambda m: ""),
    ("flip the parity", WAIT, lambda m: f"\t{{ .reg .b32 %flip; xor.b32 %flip, {m[4]}, 1;" + m[0].replace(f"{m[4]};", "%flip; }")),
    ("drop the toggle", r"^\t(?:@%p\d+ )?xor\.b32 (%r\d+), \1, 1;\n", lambda m: ""),
    ("drop expect_tx", GUARD + r"mbarrier\.arrive\.expect_tx\..*\n",
     lambda m: re.sub(r", \d+;", ";", m[0].replace(".expect_tx", ""))),
    *((f"expect {more:+} bytes", GUARD + r"mbarrier\.arrive\.expect_tx\..*\n",
       lambda m, more=more: re.sub(r"(\d+);", lambda n: f"{int(n[1]) + more};", m[0])) for more in (16, -16)),
    *((f"{name} {more:+}", DESCRIPTOR, lambda m, more=more, unit=unit: f"{m[1]}{(int(m[2], 16) + more * unit) % 2**64:#x};\n")
      for name, unit in OFFSETS.items() for more in (1, -1)),
    *((f"swizzle ^ {bits}", DESCRIPTOR, lambda m, bits=bits: f"{m[1]}{int(m[2], 16) ^ bits << SWIZZLE:#x};\n") for bits in (1, 2, 3)),
]


def mutants_of(text):
    """Returns {name: text}. A name has the kind, the first instruction without register numbers, and a number."""
    mutants = {}
    for kind, pattern, change in KINDS:
        for place in re.finditer(pattern, text, re.M):
            line = re.sub(r"(%[a-z]+)\d+", r"\1", place[0].split("\n")[0].strip())
            line, number = f"{kind}: {line}", 1
            while f"{line} #{number}" in mutants:
                number += 1
            mutants[f"{line} #{number}"] = text[:place.start()] + change(place) + text[place.end():]
    return mutants


def read_survivors(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(zip(lines[::2], lines[1::2]))


def is_found(verify, library, variant, before, mutant):
    with tempfile.TemporaryDirectory() as folder:
        old, new = (pathlib.Path(folder, name) for name in ("before.ptx", "after.ptx"))
        old.write_text(before, encoding="utf-8")
        new.write_text(mutant, encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        environment.update(KILN_EMU_DEVICE="sm_90", KILN_EMU_CHECK="all", KILN_EMU_JUMPS="100000",
                           KILN_PLANT_BEFORE=str(old), KILN_PLANT_AFTER=str(new))
        done = subprocess.run([verify, "--driver", library, "--filter", variant, *OPTIONS], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in (0, 1) or "load failed" in done.stdout or "planted\n" not in done.stdout:
        sys.exit(f"kiln-verify ended with {done.returncode}, and did not run the mutant:\n{done.stdout}")
    return done.returncode == 1


def main():
    kiln, config, variant, verify, library, path = sys.argv[1:]
    text = subprocess.run([kiln, "show", config, variant, "-t", TARGET], check=True, capture_output=True, text=True).stdout
    if is_found(verify, library, variant, text, text):
        sys.exit("kiln-verify finds a mistake in the kernel itself")
    mutants, known = mutants_of(text), read_survivors(pathlib.Path(path))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(mutants, pool.map(lambda mutant: is_found(verify, library, variant, text, mutant), mutants.values())))
    wrong = [f"not found, and not in {path}: {name}" for name in mutants if not found[name] and name not in known]
    wrong += [f"found, but in {path}: {name}" for name in known if found.get(name)]
    wrong += [f"in {path}, but no mutant: {name}" for name in known if name not in mutants]
    print("\n".join([*wrong, f"{len(mutants)} mutants, {sum(found.values())} found"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
