#!/usr/bin/env python3
"""Plants mistakes in the quantisers' PTX, one at a time, and expects each to be found, for the right reason: by
kiln-verify, and those that only show beyond 2^32 elements by quant_far.

usage: check_faults.py KILN CONFIG VERIFY FAR MANIFEST FAULTY_DRIVER [WORD]

With a word, only the faults whose line holds it. The kernels themselves must pass the same way.
"""
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

from faults import FAR, FAULTS, SWAPS, kernel_id

TARGET = "sm_75"
LEAST_PER_ENTRY = 20


class Case(typing.NamedTuple):
    kernel: str
    name: str
    says: str
    make_text: typing.Callable  # of a Checker: the faulty text
    is_far: bool = False


# ---- faulty texts ---------------------------------------------------------------------------------------------------


def pattern_of(ptx):
    """A regular expression for PTX with $operands; blanks and line ends are alike."""
    seen, out = set(), []
    for piece in re.split(r"(\$[a-z]|\s+)", ptx):
        name = piece[1:]
        if piece.startswith("$"):
            out.append(f"(?P={name})" if name in seen else rf"(?P<{name}>\{{[^}}]*\}}|%\w+)")
            seen.add(name)
        else:
            out.append(r"\s+" if piece.isspace() else re.escape(piece))
    return re.compile("".join(out))


def plant(text, ptx, instead, times):
    """The text with the edit, which has to apply as often as was said."""
    faulty, found = pattern_of(ptx).subn(re.sub(r"\$([a-z])", r"\\g<\1>", instead), text)
    if found != times:
        raise ValueError(f"the PTX occurs {found} times, not {times}")
    return faulty


def expand(kernels):
    return [" ".join(words) for words in itertools.product(*(word.split("/") for word in kernels.split()))]


def edits(rows, is_far):
    for name, says, ptx, instead, kernels in rows:
        for words, times in kernels.items():
            for kernel in map(kernel_id, expand(words)):
                edit = ptx, instead, times
                yield Case(kernel, name, says, lambda c, k=kernel, e=edit: plant(c.image(k), *e), is_far)


def swaps():
    for name, says, kernels in SWAPS:
        for words, other in kernels.items():
            for mine in expand(words):
                operation, coder = mine.split()[:2]
                its = f"{operation} {other}" if other in ("sym", "nf4") else f"{operation} {coder} {other}"
                pair = kernel_id(its), kernel_id(mine)
                yield Case(pair[1], name, says, lambda c, p=pair: c.image(p[0]).replace(*map(c.entry, p)))


# ---- runs -----------------------------------------------------------------------------------------------------------


class Checker:
    def __init__(self, kiln, config, verify, far, manifest, driver, folder):
        self.show = [kiln, "show", config]
        self.verify = [verify, "--driver", driver, "--json", "-"]
        self.far = [far, driver, manifest]
        self.folder = pathlib.Path(folder)

    @functools.cache
    def image(self, kernel):
        command = [*self.show, kernel, "--target", TARGET]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout

    def entry(self, kernel):
        return re.search(r"\.entry (\w+)", self.image(kernel))[1]

    def execute(self, name, kernel, text, command, **variables):
        """Runs a program that loads the kernel, with this text for its image."""
        paths = [self.folder / f"{name}.from", self.folder / f"{name}.to"]
        paths[0].write_text(self.image(kernel))
        paths[1].write_text(text)
        environment = dict(os.environ, KILN_EMU_JUMPS="100000", KILN_EMU_THREADS="1", KILN_FAULT_FROM=str(paths[0]),
                           KILN_FAULT_TO=str(paths[1]), **variables)
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=False).stdout

    def run(self, name, kernel, text, is_far):
        """"ok" or "WRONG" or what else a program made of the kernel, and what it says."""
        if is_far:
            out = self.execute(name, kernel, text, [*self.far, kernel], KILN_EMU_DEVICE="sm_103")
            return "WRONG" if out.startswith("WRONG") else "ok", out.partition("\n")[0]
        most = "4500" if "group=any" in kernel else "20000"  # there are many sizes of groups
        command = [*self.verify, "--filter", kernel, "--max-elements", most]
        out = self.execute(name, kernel, text, command, KILN_EMU_DEVICE=TARGET, KILN_EMU_CHECK="all")
        rows = json.loads(out)["variants"] if out else []
        if [row["id"] for row in rows] != [kernel]:
            return "not one kernel", out
        return rows[0]["result"], " ".join(rows[0].get("detail", "").split())

    def check(self, number, case):
        entry, params = case.kernel.split("/")
        try:
            text = case.make_text(self)
        except ValueError as why:
            return False, f"NOT PLANTED {case.kernel} {case.name}: {why}"
        result, detail = self.run(f"fault{number}", case.kernel, text, case.is_far)
        if result != "WRONG" or not re.search(case.says, detail):
            return False, f"NOT FOUND {case.kernel} {case.name}: {result} {detail}"
        return True, f"found {entry} {case.name}: {params}: {detail}"

    def check_healthy(self, number, kernel, is_far):
        result, detail = self.run(f"healthy{number}", kernel, self.image(kernel), is_far)
        return "" if result == "ok" else f"NOT HEALTHY {kernel}: {result} {detail}"


def main():
    word = sys.argv[7] if len(sys.argv) > 7 else ""
    cases = [c for c in (*edits(FAULTS, False), *swaps(), *edits(FAR, True)) if word in f"{c.kernel} {c.name}"]
    kernels = sorted({(c.kernel, c.is_far) for c in cases})
    tally, failed = {}, not cases
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        checker = Checker(*sys.argv[1:7], folder)
        for line in filter(None, pool.map(checker.check_healthy, itertools.count(), *zip(*kernels))):
            failed = True
            print(line)
        for case, (is_found, line) in zip(cases, pool.map(checker.check, itertools.count(), cases)):
            tally.setdefault(case.kernel.split("/")[0], []).append(is_found)
            print(line, flush=True)
    for entry, found in sorted(tally.items()):
        print(f"{entry}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not word and len(found) < LEAST_PER_ENTRY)
    print(f"{sum(map(sum, tally.values()))} of {len(cases)} found")
    sys.exit(failed)


main()
