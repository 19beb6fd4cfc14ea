#!/usr/bin/env python3
"""Plants mistakes in the quantisers' PTX, one at a time, and expects each to be found, for the right reason: by
kiln-verify, and those that only show beyond 2^32 elements by quant_far.

usage: check_faults.py KILN CONFIG VERIFY FAR MANIFEST FAULTY_DRIVER [WORD]

With a word, only the faults whose line holds it. The kernels themselves must pass.
"""
import concurrent.futures
import json
import re
import sys
import typing

from faults import FAR, FAULTS, SWAPS, kernel_id
from plant import TARGET, Planter, expand, plant

LEAST_PER_ENTRY = 20


class Case(typing.NamedTuple):
    kernel: str
    name: str
    says: str
    make_text: typing.Callable  # of a Checker: the faulty text
    is_far: bool = False


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


class Checker(Planter):
    def __init__(self, kiln, config, verify, far, manifest, driver):
        super().__init__(kiln, config)
        self.verify = [verify, "--driver", driver, "--json", "-"]
        self.far = [far, driver, manifest]

    def judge(self, kernel, text, is_far, most):
        """"ok" or "WRONG" or what else a program made of the kernel with this text, and what it says."""
        if is_far:
            out = self.run([*self.far, kernel], {kernel: text}, KILN_EMU_DEVICE="sm_103").stdout
            return "WRONG" if out.startswith("WRONG") else "ok", out.partition("\n")[0]
        out = self.run([*self.verify, "--filter", kernel, "--max-elements", most], {kernel: text},
                       KILN_EMU_DEVICE=TARGET, KILN_EMU_CHECK="all", KILN_EMU_JUMPS="100000").stdout
        rows = json.loads(out)["variants"]
        if [row["id"] for row in rows] != [kernel]:
            return "not one kernel", out
        return rows[0]["result"], " ".join(rows[0].get("detail", "").split())

    def check(self, case):
        entry, params = case.kernel.split("/")
        try:
            most = "4500" if "group=any" in case.kernel else "20000"  # there are many sizes of groups
            result, detail = self.judge(case.kernel, case.make_text(self), case.is_far, most)
        except ValueError as why:
            return False, f"NOT PLANTED {case.kernel} {case.name}: {why}"
        if result != "WRONG" or not re.search(case.says, detail):
            return False, f"NOT FOUND {case.kernel} {case.name}: {result} {detail}"
        return True, f"found {entry} {case.name}: {params}: {detail}"

    def check_healthy(self, kernel, is_far):
        result, detail = self.judge(kernel, self.image(kernel), is_far, "500" if "group=any" in kernel else "20000")
        return "" if result == "ok" else f"NOT HEALTHY {kernel}: {result} {detail}"


def main():
    word = sys.argv[7] if len(sys.argv) > 7 else ""
    cases = [c for c in (*edits(FAULTS, False), *swaps(), *edits(FAR, True)) if word in f"{c.kernel} {c.name}"]
    kernels = sorted({(c.kernel, c.is_far) for c in cases})
    checker, tally, failed = Checker(*sys.argv[1:7]), {}, not cases
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for line in filter(None, pool.map(checker.check_healthy, *zip(*kernels))):
            failed = True
            print(line)
        for case, (is_found, line) in zip(cases, pool.map(checker.check, cases)):
            tally.setdefault(case.kernel.split("/")[0], []).append(is_found)
            print(line, flush=True)
    for entry, found in sorted(tally.items()):
        print(f"{entry}: {sum(found)} of {len(found)} found")
        failed = failed or not all(found) or (not word and len(found) < LEAST_PER_ENTRY)
    print(f"{sum(map(sum, tally.values()))} of {len(cases)} found")
    sys.exit(failed)


main()
