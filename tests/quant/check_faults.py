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

from faults import FAULTS, kernel_id

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
            out.append(f"(?P={name})" if name in seen else rf"(?P<{name}>\{{[^}}]*\}}|[%\w.]+)")
            seen.add(name)
        else:
            out.append(r"\s+" if piece.isspace() else re.escape(piece))
    return re.compile("".join(out))


def plant(text, ptx, instead, times):
    """The text with the edit; None when the PTX does not occur as often as was said."""
    replacement = re.sub(r"\$([a-z])", r"\\g<\1>", instead.replace("\\", "\\\\"))
    faulty, found = pattern_of(ptx).subn(replacement, text)
    return faulty if found == times else None, found


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
        most = "2500" if "group=any" in kernel else "20000"  # there are many sizes of groups
        done = subprocess.run([self.verify, "--driver", self.driver, "--filter", kernel, "--max-elements", most, "--json", "-"],
                              env=environment, text=True, capture_output=True, check=False)
        rows = json.loads(done.stdout)["variants"] if done.stdout else []
        if len(rows) != 1 or rows[0]["id"] != kernel:
            return "not one kernel", done.stdout + done.stderr
        return rows[0]["result"], " ".join(rows[0].get("detail", "").split())

    def check_fault(self, number, row, kernel, times):
        name, says, ptx, instead = row[:4]
        entry = kernel.split("/")[0]
        text, found = plant(self.image(kernel), ptx, instead, times)
        if text is None:
            return entry, False, f"NOT PLANTED {kernel} {name}: the PTX occurs {found} times, not {times}"
        result, detail = self.run(kernel, text, f"fault{number}")
        if result != "WRONG" or not re.search(says, detail):
            return entry, False, f"NOT FOUND {kernel} {name}: {result} {detail}"
        return entry, True, f"found {entry} {name}: {kernel.split('/')[1]}: {detail}"

    def check_healthy(self, number, kernel):
        result, detail = self.run(kernel, self.image(kernel), f"healthy{number}")
        return result == "ok", f"{'healthy' if result == 'ok' else 'NOT HEALTHY'} {kernel} {detail}"


def main():
    word = sys.argv[5] if len(sys.argv) > 5 else ""
    cases = [(row, kernel_id(k), times) for row in FAULTS for kernels, times in row[4].items() for k in expand(kernels)]
    cases = [c for c in cases if word in f"{c[1]} {c[0][0]}"]
    tally, failed = {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        checker = Checker(*sys.argv[1:5], folder)
        kernels = sorted({kernel for _, kernel, _ in cases})
        for fine, line in pool.map(checker.check_healthy, range(len(kernels)), kernels):
            failed += not fine
            if not fine:
                print(line)
        for entry, fine, line in pool.map(lambda i: checker.check_fault(i, *cases[i]), range(len(cases))):
            tally.setdefault(entry, []).append(fine)
            print(line, flush=True)
    for entry, found in sorted(tally.items()):
        print(f"{entry}: {sum(found)} of {len(found)} found")
        failed += not all(found) or (not word and len(found) < LEAST_PER_ENTRY)
    found = sum(map(sum, tally.values()))
    print(f"{found} of {len(cases)} found")
    sys.exit(1 if failed or not cases else 0)


main()
