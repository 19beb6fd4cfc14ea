#!/usr/bin/env python3
"""Plants mistakes in nf4_gemm's PTX, one at a time, and expects kiln-verify to find each, for the right reason. The
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

LEAST_PER_FAMILY = 20
DEVICE = "sm_87"  # few multiprocessors, so that thread blocks have several tiles; shared memory for a window


class Checker(Planter):
    def __init__(self, target, device, kiln, config, verify, driver):
        super().__init__(kiln, config, target)
        self.device = device
        self.in_window = Planter(kiln, config, "sm_80")  # the lowest with shared memory for one
        self.verify = [verify, "--driver", driver, "--json", "-", "--max-elements", "25000"]

    def image(self, kernel):
        return self.in_window.image(kernel) if "table=window" in kernel else super().image(kernel)

    def judge(self, kernel, text):
        """"ok" or "WRONG" or what else kiln-verify made of the kernel with this text, and what it says."""
        out = self.run([*self.verify, "--filter", kernel], {kernel: text}, KILN_EMU_DEVICE=self.device, KILN_EMU_CHECK="all",
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


def check(all_faults, target, device):
    """Ends the program. The kernels' text is for the target; the emulated device runs it."""
    word = sys.argv[5] if len(sys.argv) > 5 else ""
    checker, tally, failed = Checker(target, device, *sys.argv[1:5]), {}, False
    cases = [(kernel, fault) for kernel, faults in all_faults.items() for fault in faults if word in f"{kernel} {fault[0]}"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for is_healthy, line in pool.map(checker.check_healthy, sorted({kernel for kernel, _ in cases})):
            print(line)
            failed = failed or not is_healthy
        for (kernel, _), (is_found, line) in zip(cases, pool.map(checker.check, *zip(*cases))):
            tally.setdefault(kernel.partition("/")[0], []).append(is_found)
            print(line, flush=True)
    for family, found in tally.items():
        print(f"{family}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not word and len(found) < LEAST_PER_FAMILY)
    sys.exit(failed or not cases)


if __name__ == "__main__":
    check(FAULTS, TARGET, DEVICE)
