#!/usr/bin/env python3
"""Plants mistakes in kernels' PTX, one at a time, and expects each to be found, for the right reason. The kernels
themselves must pass.

usage: check.py FAULTS KILN CONFIG VERIFY DRIVER [--far PROGRAM MANIFEST] [--word WORD]

VERIFY is kiln-verify with CONFIG's bundle, DRIVER is faulty_cuda.c; with a word, only the faults whose line holds it.
FAULTS is a family's faults.py, with

    FAULTS  by kernel, rows of (fault, what VERIFY must say, PTX, PTX in its stead, how often the PTX occurs), where $a,
            $b, ... are operands, and the same letter is the same operand; or of (fault, what VERIFY must say, kernel
            whose text is loaded under this one's name)
    RUNS    rows of (part of a kernel's name, target of its text, emulated device, options of VERIFY); the first counts
    TALLY   what of a kernel's name faults are counted by, if not its family; there are at least 20 of each
    FAR     as FAULTS, if there are any that only PROGRAM finds, on tensors of more than 2^32 elements
"""
import argparse
import concurrent.futures
import importlib
import json
import pathlib
import re
import sys
import typing

from plant import Planter, plant

LEAST = 20
FAR_DEVICE = "sm_103"  # it has the most memory
# Watching for races takes time, and what the other checks find they find without it too; most faults show with few inputs.
# That the kernels themselves have no races and are right for all inputs is for the tests of their values to show.
ALL_CHECKS, FAST_CHECKS = "all", "memory,init,sync"
FEW_INPUTS = "--inputs 2"


class Case(typing.NamedTuple):
    kernel: str
    name: str
    says: str
    edit: list
    is_far: bool


def all_cases(faults):
    for is_far, table in (False, faults.FAULTS), (True, getattr(faults, "FAR", {})):
        for kernel, rows in table.items():
            for name, says, *edit in rows:
                yield Case(kernel, name, says, edit, is_far)


class Checker(Planter):
    def __init__(self, runs, args):
        super().__init__(args.kiln, args.config)
        self.runs, self.far, self.driver = runs, args.far, args.driver
        self.verify = [args.verify, "--driver", args.driver, "--json", "-"]

    def run_of(self, kernel):
        return next(run for part, *run in self.runs if part in kernel)

    def target(self, kernel):
        return self.run_of(kernel)[0]

    def judge(self, kernel, text, is_far, checks, inputs=""):
        """"ok" or "WRONG" or what else a program made of the kernel with this text, and what it says."""
        if is_far:
            program, manifest = self.far
            command = [program, self.driver, manifest, kernel]
            line = self.run(command, {kernel: text}, KILN_EMU_DEVICE=FAR_DEVICE).stdout.partition("\n")[0]
            return "WRONG" if line.startswith("WRONG") else "ok", line
        _, device, options = self.run_of(kernel)
        command = [*self.verify, "--filter", kernel, *options.split(), *inputs.split()]
        out = self.run(command, {kernel: text}, KILN_EMU_DEVICE=device, KILN_EMU_CHECK=checks,
                       KILN_EMU_JUMPS="100000").stdout
        row, = json.loads(out)["variants"]
        return row["result"], " ".join(row.get("detail", "").split())

    def check_healthy(self, kernel, is_far):
        result, detail = self.judge(kernel, self.image(kernel), is_far, FAST_CHECKS, FEW_INPUTS)
        return result == "ok", f"healthy {kernel}: {result} {detail}"

    def faulty_text(self, case):
        if len(case.edit) > 1:
            return plant(self.image(case.kernel), *case.edit)
        other, = case.edit
        return self.image(other).replace(self.entry(other), self.entry(case.kernel))

    def check(self, case):
        may_be_values = "wrong" in case.says or "ILLEGAL" in case.says
        first = (FAST_CHECKS if may_be_values else ALL_CHECKS), FEW_INPUTS
        for checks, inputs in (first, (ALL_CHECKS, "")) if not case.is_far else ((ALL_CHECKS, ""),):
            try:
                result, detail = self.judge(case.kernel, self.faulty_text(case), case.is_far, checks, inputs)
            except ValueError as why:
                return False, f"NOT PLANTED {case.kernel} {case.name}: {why}"
            if result == "WRONG" and re.search(case.says, detail):
                return True, f"found {case.kernel} {case.name}: {detail}"
        return False, f"NOT FOUND {case.kernel} {case.name}: {result} {detail}"


def read_command_line():
    parser = argparse.ArgumentParser()
    for name in ("faults", "kiln", "config", "verify", "driver"):
        parser.add_argument(name)
    parser.add_argument("--far", nargs=2)
    parser.add_argument("--word", default="")
    return parser.parse_args()


def main():
    args = read_command_line()
    path = pathlib.Path(args.faults)
    sys.path.append(str(path.parent))
    faults = importlib.import_module(path.stem)
    cases = [c for c in all_cases(faults) if args.word in f"{c.kernel} {c.name}"]
    kernels = sorted({(c.kernel, c.is_far) for c in cases})
    checker, tally, failed = Checker(faults.RUNS, args), {}, not cases
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for is_healthy, line in pool.map(checker.check_healthy, *zip(*kernels)):
            print(line, flush=True)
            failed = failed or not is_healthy
        for case, (is_found, line) in zip(cases, pool.map(checker.check, cases)):
            tally.setdefault(re.search(getattr(faults, "TALLY", r"^\w+"), case.kernel)[0], []).append(is_found)
            print(line, flush=True)
    for counted, found in tally.items():
        print(f"{counted}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not args.word and len(found) < LEAST)
    sys.exit(failed)


main()
