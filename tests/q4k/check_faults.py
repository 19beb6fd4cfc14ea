#!/usr/bin/env python3
"""Plants mistakes in the Q4_K kernels' PTX, one at a time, and expects kiln-verify to find each, for the right reason. The
kernels themselves must pass.

usage: check_faults.py KILN CONFIG VERIFY FAULTY_DRIVER [WORD]        (with a word, only the faults whose line holds it)
"""
import concurrent.futures
import json
import pathlib
import re
import sys

import faults

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "quant"))
from plant import TARGET, Planter, plant  # pylint: disable=wrong-import-position

LEAST_PER_FAMILY = 20
FAULTS, TARGETS = faults.FAULTS, getattr(faults, "TARGETS", {})  # the target of a kernel, where it is not the usual one


class Checker(Planter):
    def __init__(self, target, kiln, config, verify, driver):
        super().__init__(kiln, config, target)
        self.verify = [verify, "--driver", driver, "--json", "-", "--max-elements", "60000", "--big", "400000"]

    def judge(self, kernel, text):
        """"ok" or "WRONG" or what else kiln-verify made of the kernel with this text, and what it says."""
        out = self.run([*self.verify, "--filter", kernel], {kernel: text}, KILN_EMU_DEVICE=self.target, KILN_EMU_CHECK="all",
                       KILN_EMU_JUMPS="100000").stdout
        row, = json.loads(out)["variants"]
        return row["result"], " ".join(row.get("detail", "").split())

    def check_healthy(self, kernel):
        result, detail = self.judge(kernel, self.image(kernel))
        return result == "ok", f"healthy {kernel}: {result} {detail}"

    def check(self, kernel, name, says, *edit):
        try:
            result, detail = self.judge(kernel, plant(self.image(kernel), *edit))
        except ValueError as why:
            return False, f"NOT PLANTED {kernel} {name}: {why}"
        is_found = result == "WRONG" and re.search(says, detail) is not None
        return is_found, f"{'found' if is_found else 'NOT FOUND'} {kernel} {name}: {result} {detail}"


def main():
    word = sys.argv[5] if len(sys.argv) > 5 else ""
    checkers = {target: Checker(target, *sys.argv[1:5]) for target in {TARGET, *TARGETS.values()}}
    tally, failed = {}, False

    def checker(kernel):
        return checkers[TARGETS.get(kernel, TARGET)]

    cases = [(kernel, fault) for kernel, faults in FAULTS.items() for fault in faults if word in f"{kernel} {fault[0]}"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for is_healthy, line in pool.map(lambda kernel: checker(kernel).check_healthy(kernel),
                                         sorted({kernel for kernel, _ in cases})):
            print(line)
            failed = failed or not is_healthy
        found = pool.map(lambda case: checker(case[0]).check(case[0], *case[1]), cases)
        for (kernel, _), (is_found, line) in zip(cases, found):
            tally.setdefault(kernel.partition("/")[0], []).append(is_found)
            print(line, flush=True)
    for family, found in tally.items():
        print(f"{family}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not word and len(found) < LEAST_PER_FAMILY)
    sys.exit(failed or not cases)


main()
