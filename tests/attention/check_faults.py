#!/usr/bin/env python3
"""Plants mistakes in attention's PTX, one at a time, and expects kiln-verify to find each, for the right reason. The
kernels themselves must pass.

usage: check_faults.py KILN CONFIG VERIFY FAULTY_DRIVER [WORD]        (with a word, only the faults whose line holds it)
"""
import concurrent.futures
import json
import pathlib
import re
import sys

from faults import FAULTS

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "quant"))
from plant import TARGET, Planter, plant  # pylint: disable=wrong-import-position

LEAST = 20  # of each kernel


class Checker(Planter):
    def __init__(self, kiln, config, verify, driver):
        super().__init__(kiln, config)
        self.verify = [verify, "--driver", driver, "--json", "-", "--max-elements", "10000", "--inputs", "8"]

    def judge(self, kernel, text):
        """"ok" or "WRONG" or what else kiln-verify made of the kernel with this text, and what it says."""
        out = self.run([*self.verify, "--filter", kernel], {kernel: text}, KILN_EMU_DEVICE=TARGET, KILN_EMU_CHECK="all",
                       KILN_EMU_JUMPS="100000").stdout
        row, = json.loads(out)["variants"]
        return row["result"], " ".join(row.get("detail", "").split())

    def check_healthy(self, kernel):
        result, detail = self.judge(kernel, self.image(kernel))
        return result == "ok", f"healthy {kernel}: {result} {detail}"

    def check(self, kernel, fault):
        name, says, *edit = fault
        try:
            result, detail = self.judge(kernel, plant(self.image(kernel), *edit))
        except ValueError as why:
            return False, f"NOT PLANTED {kernel} {name}: {why}"
        is_found = result == "WRONG" and re.search(says, detail) is not None
        return is_found, f"{'found' if is_found else 'NOT FOUND'} {kernel} {name}: {result} {detail}"


def main():
    word = sys.argv[5] if len(sys.argv) > 5 else ""
    checker, tally, failed = Checker(*sys.argv[1:5]), {}, False
    cases = [(kernel, fault) for kernel, faults in FAULTS.items() for fault in faults if word in f"{kernel} {fault[0]}"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for is_healthy, line in pool.map(checker.check_healthy, sorted({kernel for kernel, _ in cases})):
            print(line)
            failed = failed or not is_healthy
        for (kernel, _), (is_found, line) in zip(cases, pool.map(checker.check, *zip(*cases))):
            tally.setdefault(kernel, []).append(is_found)
            print(line, flush=True)
    for kernel, found in tally.items():
        print(f"{kernel}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not word and len(found) < LEAST)
    sys.exit(failed or not cases)


main()
