#!/usr/bin/env python3
"""Plants mistakes in the quantisers' PTX, one at a time, and expects kiln-verify to find each, for the right reason.

usage: check_faults.py KILN CONFIG VERIFY FAULTY_DRIVER [WORD]

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

from faults import FAULTS, SWAPS, kernel_id

TARGET = "sm_75"
LEAST_PER_ENTRY = 20


def expand(kernels):
    return [" ".join(words) for words in itertools.product(*(word.split("/") for word in kernels.split()))]


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
    """The text with the edit, which has to occur as often as was said."""
    replacement = re.sub(r"\$([a-z])", r"\\g<\1>", instead.replace("\\", "\\\\"))
    faulty, found = pattern_of(ptx).subn(replacement, text)
    if found != times:
        raise ValueError(f"the PTX occurs {found} times, not {times}")
    return faulty


class Checker:
    def __init__(self, kiln, config, verify, driver, folder):
        self.kiln, self.config, self.verify, self.driver = kiln, config, verify, driver
        self.folder = pathlib.Path(folder)

    @functools.cache
    def image(self, kernel):
        return subprocess.run([self.kiln, "show", self.config, kernel, "--target", TARGET], check=True, text=True,
                              capture_output=True).stdout

    def run(self, kernel, text, name):
        """kiln-verify's result for the kernel with this text for its image, and what it says of it."""
        paths = [self.folder / f"{name}.from", self.folder / f"{name}.to"]
        paths[0].write_text(self.image(kernel))
        paths[1].write_text(text)
        environment = dict(os.environ, KILN_EMU_DEVICE=TARGET, KILN_EMU_CHECK="all", KILN_EMU_JUMPS="100000",
                           KILN_EMU_THREADS="1", KILN_FAULT_FROM=str(paths[0]), KILN_FAULT_TO=str(paths[1]))
        most = "4500" if "group=any" in kernel else "20000"  # there are many sizes of groups
        command = [self.verify, "--driver", self.driver, "--filter", kernel, "--max-elements", most, "--json", "-"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
        rows = json.loads(done.stdout)["variants"] if done.stdout else []
        if len(rows) != 1 or rows[0]["id"] != kernel:
            return "not one kernel", done.stdout + done.stderr
        return rows[0]["result"], " ".join(rows[0].get("detail", "").split())

    def image_under_name(self, other, kernel):
        names = [re.search(r"\.entry (\w+)", self.image(k))[1] for k in (other, kernel)]
        return self.image(other).replace(*names)

    def check_fault(self, number, case):
        entry, params = case.kernel.split("/")
        try:
            text = case.plant(self)
        except ValueError as why:
            return False, f"NOT PLANTED {case.kernel} {case.name}: {why}"
        result, detail = self.run(case.kernel, text, f"fault{number}")
        if result != "WRONG" or not re.search(case.says, detail):
            return False, f"NOT FOUND {case.kernel} {case.name}: {result} {detail}"
        return True, f"found {entry} {case.name}: {params}: {detail}"

    def check_healthy(self, number, kernel):
        result, detail = self.run(kernel, self.image(kernel), f"healthy{number}")
        return result == "ok", f"{'healthy' if result == 'ok' else 'NOT HEALTHY'} {kernel} {detail}"


class Case(typing.NamedTuple):
    kernel: str
    name: str
    says: str
    plant: typing.Callable  # of a Checker, the faulty text


def all_cases():
    for name, says, ptx, instead, kernels in FAULTS:
        for words, times in kernels.items():
            for kernel in map(kernel_id, expand(words)):
                yield Case(kernel, name, says,
                           lambda c, k=kernel, p=ptx, i=instead, t=times: plant(c.image(k), p, i, t))
    for name, says, kernels in SWAPS:
        for words, other in kernels.items():
            for mine in expand(words):
                yield Case(kernel_id(mine), name, says,
                           lambda c, o=kernel_id(swap(mine, other)), k=kernel_id(mine): c.image_under_name(o, k))


def swap(words, other):
    """The words of a kernel with another coder, type or order."""
    operation, coder, *rest = words.split()
    return f"{operation} {other}" if other in ("sym", "nf4") else " ".join([operation, coder, other])


def main():
    word = sys.argv[5] if len(sys.argv) > 5 else ""
    cases = [c for c in all_cases() if word in f"{c.kernel} {c.name}"]
    kernels = sorted({c.kernel for c in cases})
    tally, failed = {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        checker = Checker(*sys.argv[1:5], folder)
        for fine, line in pool.map(checker.check_healthy, range(len(kernels)), kernels):
            failed += not fine
            if not fine:
                print(line)
        for case, (fine, line) in zip(cases, pool.map(checker.check_fault, range(len(cases)), cases)):
            tally.setdefault(case.kernel.split("/")[0], []).append(fine)
            print(line, flush=True)
    for entry, found in sorted(tally.items()):
        print(f"{entry}: {sum(found)} of {len(found)} found")
        failed += not all(found) or (not word and len(found) < LEAST_PER_ENTRY)
    print(f"{sum(map(sum, tally.values()))} of {len(cases)} found")
    sys.exit(1 if failed or not cases else 0)


main()
