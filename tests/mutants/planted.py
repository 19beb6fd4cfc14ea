#!/usr/bin/env python3
"""Plants mistakes that people could make into kernels' PTX, and counts how many kiln-verify finds.

usage: planted.py check TABLE KILN PLANT [--only REGEX] [--few] VERIFY CONFIG [VERIFY CONFIG]...

TABLE is planted.txt, whose first lines describe the format; PLANT is the driver library of plant.c. If kiln-verify misses a case,
it must find it with the options of its line `reveal`, which proves that it is a mistake. Fails if a case without a line `missed`
or `far` is missed, or one with such a line is found. With --few, only the first case of each family is tried. Prints the missed
cases, and for each kind the numbers planted and found, and kiln-verify's processor time.
"""
import argparse
import functools
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

TARGET = "sm_80"
AT_ONCE = 2
REGISTERS = ".reg .pred %w; .reg .b16 %h0; .reg .b32 %s<4>; .reg .b64 %t<4>;"
CASE = re.compile(r"^(\S.*)\n((?:  .*\n)+)", re.M)
LINE = re.compile(r"  (in|with|says|at|before|then|instead|reveal|missed|far)(?: (.*))?\n")
PLACE = re.compile(r"(?:(last|all|-?\d+): )?(.*)")


class Edit(NamedTuple):
    which: str
    pattern: str
    how: str  # "before", "then" (after it) or "instead"
    text: str


class Case(NamedTuple):
    name: str
    kind: str
    bundle: str
    variant: str
    edits: list
    options: str
    says: str
    reveal: str
    missed: str  # why the usual options do not reveal it
    far: str  # why it needs GiBs of memory; not counted


class Run(NamedTuple):
    is_found: bool
    seconds: float
    output: str


class Result(NamedTuple):
    case: Case
    is_found: bool
    is_no_mistake: bool
    seconds: float
    output: str


class Tools(NamedTuple):
    kiln: str
    library: str
    programs: dict  # by bundle: its kiln-verify, and its configuration


def read_case(path, kind, name, body):
    facts, edits, place = dict.fromkeys(("with", "reveal", "missed", "far"), ""), [], ("0", "")
    facts["says"] = "elements are wrong|CUDA_ERROR|gap of"
    for text in body.splitlines(keepends=True):
        line = LINE.fullmatch(text)
        if not line:
            sys.exit(f"{path}: {name}: expected a word that begins a line of a case, found {text.strip()}")
        word, rest = line[1], line[2] or ""
        if word == "at":
            place = PLACE.fullmatch(rest).groups("0")
        elif word in ("before", "then", "instead"):
            edits.append(Edit(*place, word, rest))
        else:
            facts[word] = rest
    bundle, variant = facts["in"].split(" ", 1)
    return Case(name, kind, bundle, variant, edits, *(facts[word] for word in ("with", "says", "reveal", "missed", "far")))


def read(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    kinds = re.split(r"^== (.*) ==\n", text, flags=re.M)[1:]
    cases = [read_case(path, kind, *found.groups()) for kind, part in zip(kinds[::2], kinds[1::2])
             for found in CASE.finditer(part)]
    if len({case.name for case in cases}) != len(cases):
        sys.exit(f"{path}: two cases have one name")
    return cases


def expand(text):
    """Expands `when CONDITION and CONDITION: INSTRUCTION` to a guarded instruction."""
    def conditions(found):
        first, *others = (c.split(" ", 1) for c in found[1].split(" and "))
        tests = [f"setp.{first[0]} %w, {first[1]};"]
        tests += [f"setp.{c.replace('.', '.and.', 1)} %w, {operands}, %w;" for c, operands in others]
        return " ".join(tests) + f" @%w {found[2]};"
    made = re.sub(r"when ([^:]*): ([^;]*)", conditions, text)
    return f"{{ {REGISTERS} {made} }}".replace(";;", ";") if re.search(r"%[wst]\b|%[st]\d|%h0", made) else made


def with_parameters(pattern, text):
    """Replaces $NAME by the register that holds the parameter NAME."""
    def register(name):
        found = re.search(rf"ld\.param\.\w+ (%\w+), \[param_{name[1]}\];", text)
        return found[1] if found else sys.exit(f"the kernel does not load the parameter {name[1]}")
    return re.sub(r"\$([a-z]\w*)", register, pattern)


def places_of(case, text):
    """Returns the (match, edit) pairs of a case."""
    places = []
    for edit in case.edits:
        found = list(re.finditer(with_parameters(edit.pattern, text), text))
        if not found:
            sys.exit(f"{case.name}: nothing in the kernel matches {edit.pattern}")
        if edit.which != "all":
            found = [found[-1 if edit.which == "last" else int(edit.which)]]
        places += [(place, edit) for place in found]
    return places


def plant(cases, text):
    """Returns the kernel with all of these mistakes; None if two change the same place."""
    places = sorted(itertools.chain.from_iterable(places_of(case, text) for case in cases), key=lambda p: p[0].span())
    made, end = [], 0
    for place, edit in places:
        if place.start() < end:
            return None
        change = place.expand(expand(with_parameters(edit.text, text)))
        whole = {"before": f"{change}\n\t{place[0]}", "then": f"{place[0]}\n\t{change}", "instead": change}[edit.how]
        made += [text[end:place.start()], whole]
        end = place.end()
    return "".join(made) + text[end:]


@functools.lru_cache(maxsize=None)
def list_ids(kiln, config):
    done = subprocess.run([kiln, "list", config], text=True, capture_output=True, check=True)
    return [word for line in done.stdout.splitlines() for word in line.split()[1:2]]


def find_id(kiln, config, pattern):
    found = [word for word in list_ids(kiln, config) if re.search(pattern, word)]
    return found[0] if len(found) == 1 else sys.exit(f"{config}: {len(found)} variants match {pattern}")


@functools.lru_cache(maxsize=None)
def show(kiln, config, variant):
    return subprocess.run([kiln, "show", config, variant, "-t", TARGET], text=True, capture_output=True, check=True).stdout


def run(cases, tools, options):
    """Runs kiln-verify on a variant with all of these mistakes."""
    case, names = cases[0], ", ".join(c.name for c in cases)
    verify, config = tools.programs[case.bundle]
    variant = find_id(tools.kiln, config, case.variant)
    text = show(tools.kiln, config, variant)
    with tempfile.TemporaryDirectory() as folder:
        before, after, output = (pathlib.Path(folder, name) for name in ("before.ptx", "after.ptx", "output"))
        before.write_text(text, encoding="utf-8")
        after.write_text(plant(cases, text), encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        environment.update(KILN_EMU_DEVICE=TARGET, KILN_PLANT_BEFORE=str(before), KILN_PLANT_AFTER=str(after),
                           KILN_EMU_JUMPS="1000000", KILN_EMU_VERBOSE="0")
        with open(output, "w", encoding="utf-8") as file:
            process = subprocess.Popen([verify, "--driver", tools.library, "--filter", variant, *options.split()],
                                       env=environment, stdout=file, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said = output.read_text(encoding="utf-8")
    if process.returncode not in (0, 1) or "load failed" in said or "planted\n" not in said:
        sys.exit(f"{names}: kiln-verify ended with {process.returncode}, and did not run the mistake:\n{said}")
    return Run(process.returncode == 1 and bool(re.search(case.says, said)), usage.ru_utime + usage.ru_stime, said)


def companies(cases, tools):
    """Groups cases of one variant that change different places. If a run finds nothing, it misses all of its group."""
    groups = []
    for case in cases:
        text = show(tools.kiln, tools.programs[case.bundle][1],
                    find_id(tools.kiln, tools.programs[case.bundle][1], case.variant))
        for group in groups:
            first = group[0]
            if (first.kind, first.bundle, first.variant, first.options) == (case.kind, case.bundle, case.variant, case.options) \
                    and plant([*group, case], text) is not None:
                group.append(case)
                break
        else:
            groups.append([case])
    return groups


def try_company(cases, tools):
    """Returns a Result per case. If the group is found, each case runs by itself; a missed case runs with `reveal`."""
    together = run(cases, tools, cases[0].options)
    share, results = together.seconds / len(cases), []
    for case in cases:
        own = together
        if together.is_found and len(cases) > 1:
            own = run([case], tools, case.options)
        seconds = share + (own.seconds if own is not together else 0)
        if own.is_found or case.far:
            results.append(Result(case, own.is_found, False, seconds, own.output))
            continue
        proof = run([case], tools, case.reveal)
        results.append(Result(case, False, not proof.is_found, seconds + proof.seconds, proof.output))
    return results


def report(results):
    """Prints the results. Returns whether they are as expected."""
    kinds = {}
    for r in results:
        of_kind = kinds.setdefault(r.case.kind, [0, 0, 0.0])
        of_kind[:] = of_kind[0] + (not r.case.far), of_kind[1] + r.is_found, of_kind[2] + r.seconds
        why = r.case.far or r.case.missed
        if not r.is_found:
            print(f"missed  {r.case.kind}: {r.case.name}{': ' + why if why else ''}")
        if r.is_found == bool(why):
            print(f"FAIL  {r.case.name}: {'found: delete the line that says why not' if why else 'not found'}")
        if r.is_no_mistake:
            print(f"FAIL  {r.case.name}: kiln-verify does not find it with {r.case.reveal}\n{r.output}")
    print(f"{'planted':>8}{'found':>8}{'seconds':>9}  kind")
    kinds["all"] = [sum(column) for column in zip(*kinds.values())]
    for kind, (planted, found, seconds) in kinds.items():
        print(f"{planted:8}{found:8}{seconds:9.1f}  {kind}")
    as_said = all(r.is_found != bool(r.case.far or r.case.missed) for r in results)
    return as_said and not any(r.is_no_mistake for r in results)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("verb", choices=["check"])
    parser.add_argument("table")
    parser.add_argument("kiln")
    parser.add_argument("library")
    parser.add_argument("--only", default="")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("programs", nargs="+")
    words = parser.parse_args()
    pairs = zip(words.programs[::2], words.programs[1::2])
    tools = Tools(words.kiln, words.library, {pathlib.Path(config).stem: (verify, config) for verify, config in pairs})
    cases = read(words.table)
    firsts = {}
    for case in cases:  # including cases that this run skips
        config = tools.programs[case.bundle][1]
        variant = find_id(tools.kiln, config, case.variant)
        plant([case], show(tools.kiln, config, variant))
        firsts.setdefault(variant.partition("/")[0], case)
    chosen = [case for case in (firsts.values() if words.few else cases) if re.search(words.only, f"{case.kind}: {case.name}")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tries = pool.map(lambda company: try_company(company, tools), companies(chosen, tools))
        results = list(itertools.chain.from_iterable(tries))
    sys.exit(not report(results))


if __name__ == "__main__":
    main()
