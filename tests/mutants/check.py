#!/usr/bin/env python3
"""Mutants of bundles' kernels: counts how many kiln-verify's cases kill, and checks that the survivors are known.

usage: check.py check | rebase DRIVER DATA KILN [--few | --full] [VERIFY CONFIG FILTER MUTANTS]...

VERIFY is the program of the bundle that CONFIG makes; FILTER chooses variants, and "/" takes all; MUTANTS is how many are drawn.
`check` fails if a family's ratio is below its row of floors.txt, if too many survivors are not in survivors.txt, or if a mutant
is killed that survivors.txt proves to change nothing. With --full it draws three times as many, and each runs every input; with
--few one in 32, too few for the ratios of families.
`rebase` updates survivors.txt: it adds new survivors as "open", for a person to review, and drops entries of lines that no kernel
has.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

from places import places

HERE = pathlib.Path(__file__).resolve().parent
SEED, DEVICE = "61122", "sm_80"
FEW_INPUTS = ("--inputs", "1")  # as verify.default runs them
# An edit of a kernel changes the draw, so some survivors may not be in survivors.txt.
UNKNOWN_PERCENT = 3
OPEN, NOTHING = "open", "(nothing)"


class Survivors(NamedTuple):
    head: list     # the lines before the first place: comments, and the named reasons
    proofs: set    # names of the reasons that prove a mutant equivalent
    reasons: dict  # {(place, operation, changed operation): a reason's name and more words}


def read_survivors(path):
    head, kinds, reasons, place, texts = [], {"proved": set(), "bound": set(), "elsewhere": set()}, {}, None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            pass
        elif words[0] in kinds and place is None:
            kinds[words[0]].add(words[1])
        elif not line.startswith(" "):
            place = line
        elif len(texts) < 2:
            texts.append(line.strip())
        elif words[0] in {OPEN}.union(*kinds.values()):
            reasons[(place, *texts)], texts = line.strip(), []
        else:
            sys.exit(f"{path}:{number}: '{words[0]}' is no reason")
        if place is None:
            head.append(line)
    if texts:
        sys.exit(f"{path}:{number}: '{texts[0]}' has no reason")
    return Survivors(head, kinds["proved"], reasons)


def read_floors(path):
    """Returns {family: (raw, net)}."""
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {family: (float(raw), float(net)) for family, raw, net in rows}


class Program(NamedTuple):
    verify: str
    config: str
    filter: str
    mutants: str


def draw(program, options):
    """Runs kiln-verify; returns the mutants of its report."""
    count = int(program.mutants) * 3 if options.full else int(program.mutants) // 32 if options.few else int(program.mutants)
    inputs = () if options.full else FEW_INPUTS
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "mutants.json"
        command = [program.verify, "--driver", options.driver, "--data", options.data, "--max-elements", "4096", *inputs,
                   "--filter", program.filter, "--mutate", str(count), "--seed", SEED, "--json", report]
        done = subprocess.run(command, env={**environment, "KILN_EMU_DEVICE": DEVICE}, stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{done.stdout}\nkiln-verify ended with {done.returncode}")
        return json.loads(report.read_text(encoding="utf-8"))["mutants"]


def operation(statement):
    """Strips the numbers of registers and labels, which differ between variants."""
    return re.sub(r"(%[a-z]+|\b(?:IF|LOOP))_?\d+", r"\1", statement)


def is_other(word, before):
    """Returns whether a word of the changed statement is another register than before, or a label of another IF or LOOP."""
    ifs = [re.match(r"(IF_\d+)?", w)[0] for w in (word, before)]
    return word != before and (operation(word) == operation(before) or (all(ifs) and ifs[0] != ifs[1]))


def change(before, after):
    """Returns the changed statement: ' marks an operand that became another register or label; roundings have no direction."""
    words, others = (re.findall(r"[\w%.]+|[^\w%.]", text.strip()) for text in (before, after))
    marked = [operation(w) + "'" * (i < len(words) and is_other(w, words[i])) for i, w in enumerate(others)]
    return re.sub(r"\.r[zmp](?=\.)", ".r*", "".join(marked)) or NOTHING


def key_of(mutant, kiln, config):
    place = places(kiln, config, mutant["id"], mutant["target"])[mutant["line"] - 1]
    return place, operation(mutant["before"].strip()), change(mutant["before"], mutant["after"])


def family_of(mutant):
    return mutant["id"].partition("/")[0]


def show(key, reason):
    return f"  {key[1]}\n  {key[2]}\n    {reason}\n"


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def judge(family, mutants, survivors, floor):
    """Prints the family's row. Returns whether it reaches its floors."""
    living = [m for m in mutants if m["result"] != "killed"]
    proved = sum(reason_of(m, survivors) in survivors.proofs for m in living)
    killed = len(mutants) - len(living)
    raw, net = percent(killed, len(mutants)), percent(killed, len(mutants) - proved)
    is_good = raw >= floor[0] and net >= floor[1]
    print(f"{'ok  ' if is_good else 'FAIL'} {len(mutants):6} {killed:6} {raw:6.1f} {floor[0]:6.1f} {proved:6} {net:6.1f} "
          f"{floor[1]:6.1f}  {family}")
    return is_good


def judge_all(mutants, survivors, floors):
    print("      drawn killed  raw %  least proved  net %  least  family")
    return all([judge(f, [m for m in mutants if family_of(m) == f], survivors, floors[f]) for f in floors])


def reason_of(mutant, survivors):
    """Returns the reason's name, or "callers" for a proof that names other families."""
    name, families = re.match(r"(\S*)(?: +in ([\w ]+):)?", survivors.reasons.get(mutant["key"], "")).groups()
    return name if families is None or family_of(mutant) in families.split() else "callers"


def draw_all(options):
    every = []
    for program in options.programs:
        mutants = draw(program, options)
        every += [{**m, "key": key_of(m, options.kiln, program.config)} for m in mutants]
    return every


def check(options):
    survivors, floors = read_survivors(HERE / "survivors.txt"), read_floors(HERE / "floors.txt")
    mutants = draw_all(options)
    families = {family_of(m) for m in mutants}
    odd = families - set(floors) if options.few else families ^ set(floors)  # a few mutants may leave out a family
    if odd:
        sys.exit(f"{HERE / 'floors.txt'} and the bundles differ in families: {sorted(odd)}")
    if options.few:
        floors = {family: (0, 0) for family in sorted(families)}
    is_good = judge_all(mutants, survivors, floors)
    unknown = [m for m in mutants if m["result"] != "killed" and not reason_of(m, survivors)]
    wrong = [m for m in mutants if m["result"] == "killed" and reason_of(m, survivors) in survivors.proofs]
    for m in unknown:
        print(f"\nnot in survivors.txt: {m['number']} of {m['id']}\n{m['key'][0]}\n{show(m['key'], OPEN)}", end="")
    for m in wrong:
        print(f"\nkilled, though proved to change nothing: {m['number']} of {m['id']}, {m['detail']}\n{m['key'][0]}\n"
              f"{show(m['key'], survivors.reasons[m['key']])}", end="")
    allowed = len(mutants) * UNKNOWN_PERCENT // 100
    print(f"{len(unknown)} survivors are not in survivors.txt (allowed: {allowed}); {len(wrong)} of its proofs are wrong")
    sys.exit(not is_good or len(unknown) > allowed or bool(wrong))


def places_of(options):
    """Returns the places of all kernels in the bundles."""
    found = set()
    for program in options.programs:
        listed = subprocess.run([options.kiln, "list", program.config], stdout=subprocess.PIPE, text=True, check=True).stdout
        for _, variant, targets in (line.split() for line in listed.splitlines() if program.filter in line):
            for target in targets.split(","):
                found.update(places(options.kiln, program.config, variant, target))
    return found


def rebase(options):
    path = HERE / "survivors.txt"
    old, mutants, existing = read_survivors(path), draw_all(options), places_of(options)
    written = {key: reason for key, reason in old.reasons.items() if key[0] in existing}
    new = old._replace(reasons=written)
    for m in mutants:
        if m["result"] != "killed":
            written.setdefault(m["key"], "same-code" if m["result"] == "same code" else OPEN)
    for m in mutants:
        if m["result"] == "killed" and reason_of(m, new) in new.proofs:
            written[m["key"]] = OPEN
    lines = [line + "\n" for line in old.head]
    for place in sorted({key[0] for key in written}):
        lines.append(f"{place}\n" + "".join(show(k, r) for k, r in sorted(written.items()) if k[0] == place))
    path.write_text("".join(lines), encoding="utf-8")
    judge_all(mutants, read_survivors(path), {family_of(m): (0, 0) for m in mutants})
    print(f"{len(written)} survivors, {sum(r.startswith(OPEN) for r in written.values())} of them open")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("check", "rebase"))
    for name in ("driver", "data", "kiln"):
        parser.add_argument(name)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    words = iter(options.programs)
    options.programs = [Program(*four) for four in zip(words, words, words, words, strict=True)]
    {"check": check, "rebase": rebase}[options.verb](options)


main()
