#!/usr/bin/env python3
"""Mutants of the default bundle's kernels: how many the cases of kiln-verify kill, and that those that live are known.

usage: check.py check | rebase VERIFY DRIVER DATA [--full]

`check` fails where a family's ratio is below its row of floors.txt, or where more live that survivors.txt does not have
than a draw explains. With --full it draws more, and each runs every input. `rebase` writes survivors.txt again: a survivor
that it has keeps its reason, another is "open" until a person has read the kernel.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
SEED, DEVICE = "61122", "sm_80"
# How many are drawn, and with which options. What check draws, rebase draws too, and half as many more. Check runs the
# cases of verify.default.
FEW_INPUTS = ("--inputs", "1")
DRAWS = {"check": ("1000", FEW_INPUTS), "full": ("3000", ()), "rebase": ("1500", FEW_INPUTS)}
# A draw follows the kernel's text: a kernel that changes has other mutants, of which survivors.txt knows none. Families leave
# up to a sixth of a draw alive, so that as many are let by, and the floors alone judge until a person has reviewed them.
UNKNOWN_IN = 6
OPEN, NOTHING = "open", "(nothing)"


class Survivors(NamedTuple):
    head: list     # lines of the file, down to the first variant: comments, and reasons by their names
    proofs: set    # names of the reasons that prove that nothing changes
    reasons: dict  # {(variant, statement, what becomes of it): a reason's name, and words behind it}


def read_survivors(path):
    head, kinds, reasons, variant, texts = [], {"proved": set(), "bound": set(), "elsewhere": set()}, {}, None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            pass
        elif words[0] in kinds and variant is None:
            kinds[words[0]].add(words[1])
        elif not line.startswith(" "):
            variant = line
        elif len(texts) < 2:
            texts.append(line.strip())
        elif words[0] in {OPEN}.union(*kinds.values()):
            reasons[(variant, *texts)], texts = line.strip(), []
        else:
            sys.exit(f"{path}:{number}: '{words[0]}' is no reason")
        if variant is None:
            head.append(line)
    if texts:
        sys.exit(f"{path}:{number}: '{texts[0]}' has no reason")
    return Survivors(head, kinds["proved"], reasons)


def read_floors(path):
    """{family: (raw, net)}"""
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {family: (float(raw), float(net)) for family, raw, net in rows}


def draw(options, how):
    """The report of kiln-verify."""
    count, inputs = DRAWS[how]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "mutants.json"
        command = [options.verify, "--driver", options.driver, "--data", options.data, "--max-elements", "4096", *inputs,
                   "--mutate", count, "--seed", SEED, "--json", report]
        done = subprocess.run(command, env={**environment, "KILN_EMU_DEVICE": DEVICE}, stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{done.stdout}\nkiln-verify ended with {done.returncode}")
        return json.loads(report.read_text(encoding="utf-8"))


def key_of(mutant):
    return mutant["id"], mutant["before"], mutant["after"].strip() or NOTHING


def family_of(mutant):
    return mutant["id"].partition("/")[0]


def show(key, reason):
    return f"  {key[1]}\n  {key[2]}\n    {reason}\n"


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def judge(family, mutants, survivors, floor):
    """Prints the family's row and what it lacks; whether it lacks nothing."""
    living = [key_of(m) for m in mutants if m["result"] != "killed"]
    reasons = [survivors.reasons.get(key, "").partition(" ")[0] for key in living]
    proved, unknown = sum(r in survivors.proofs for r in reasons), reasons.count("")
    killed = len(mutants) - len(living)
    raw, net, allowed = percent(killed, len(mutants)), percent(killed, len(mutants) - proved), len(mutants) // UNKNOWN_IN
    is_good = raw >= floor[0] and net >= floor[1] and unknown <= allowed
    print(f"{'ok  ' if is_good else 'FAIL'} {len(mutants):6} {killed:6} {raw:6.1f} {floor[0]:6.1f} {proved:6} {net:6.1f} "
          f"{floor[1]:6.1f} {unknown:8} {allowed:8}  {family}")
    return is_good


def check(options):
    survivors, floors = read_survivors(HERE / "survivors.txt"), read_floors(HERE / "floors.txt")
    mutants = draw(options, "full" if options.full else "check")["mutants"]
    families = {family_of(m) for m in mutants}
    if families != set(floors):
        sys.exit(f"{HERE / 'floors.txt'}: families {sorted(families ^ set(floors))} are not in both, it and the bundle")
    print("      drawn killed  raw %  least proved  net %  least  unknown  allowed  family")
    is_good = [judge(f, [m for m in mutants if family_of(m) == f], survivors, floors[f]) for f in floors]
    living = [key_of(m) for m in mutants if m["result"] != "killed"]
    for key in living:
        if key not in survivors.reasons:
            print(f"\nnot in survivors.txt:\n{key[0]}\n{show(key, OPEN)}", end="")
    for key in dict.fromkeys(key_of(m) for m in mutants):
        if key in survivors.reasons and key not in living:
            print(f"\nin survivors.txt, and killed:\n{key[0]}\n{show(key, survivors.reasons[key])}", end="")
    sys.exit(not all(is_good))


def rebase(options):
    path, written = HERE / "survivors.txt", {}
    old = read_survivors(path)
    mutants = draw(options, "rebase")["mutants"]
    killed = {key_of(m) for m in mutants if m["result"] == "killed"}  # the same text may stand in two places of a kernel
    for m in mutants:
        if key_of(m) not in killed:
            written[key_of(m)] = old.reasons.get(key_of(m), "same-code" if m["result"] == "same code" else OPEN)
    lines = [line + "\n" for line in old.head]
    for variant in dict.fromkeys(key[0] for key in written):
        lines.append(f"{variant}\n" + "".join(show(k, r) for k, r in written.items() if k[0] == variant))
    path.write_text("".join(lines), encoding="utf-8")
    print(f"{len(written)} survivors, {sum(r.startswith(OPEN) for r in written.values())} of them open")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("check", "rebase"))
    for name in ("verify", "driver", "data"):
        parser.add_argument(name)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    {"check": check, "rebase": rebase}[options.verb](options)


main()
