#!/usr/bin/env python3
"""kiln-verify finds results that depend on which thread block comes first, however little.

usage: check_order.py KILN CONFIG VERIFY FAULTY_DRIVER

A thread block counts itself when it begins; where that is not its turn from the first to the last, what its first thread
stores has another lowest bit, which every bound allows. Only the second run, from the last block to the first, shows it.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from plant import TARGET, Planter  # pylint: disable=wrong-import-position

KERNEL = "rmsnorm_q4k_gemv/norm=rms,x=f32,activation=exact,batch=1,y=f32"
COUNTER = ".visible .global .align 4 .u32 begun;\n.visible .entry"
COUNT = """{
.reg .u32 %mine, %turn, %most; .reg .pred %other;
mov.u32 %mine, %tid.x; setp.ne.u32 %other, %mine, 0; mov.u32 %mine, %ctaid.x; mov.u32 %turn, %mine;
@%other bra COUNTED;
mov.u32 %most, %nctaid.x; sub.u32 %most, %most, 1; atom.global.inc.u32 %turn, [begun], %most;
COUNTED: setp.ne.u32 %other, %turn, %mine;
"""
STORE = r"mov.b32 %mine, \3; @%other xor.b32 %mine, %mine, 1; mov.b32 \3, %mine;\n\1st.global.f32 [\2], \3;"


def find_kernel(kiln, config):
    listed = subprocess.run([kiln, "list", config], check=True, capture_output=True, text=True).stdout
    return next(line.split()[1] for line in listed.splitlines() if line.split()[1].startswith(KERNEL))


def disorder(text):
    text = text.replace(".visible .entry", COUNTER, 1).replace("{\n", COUNT, 1)
    text, stores = re.subn(r"(@\S+ )?st\.global\.f32 \[([^\]]*)\], ([^;]*);", STORE, text)
    if not stores:
        sys.exit("the kernel has no store to plant this at")
    return text


def judge(planter, kernel, text, verify, driver, **variables):
    command = [verify, "--driver", driver, "--filter", kernel, "--json", "-", "--max-elements", "60000"]
    done = planter.run(command, {kernel: text}, KILN_EMU_DEVICE=TARGET, **variables)
    told = json.loads(done.stdout)
    (row,), (family,) = told["variants"], told["families"]
    if (family["ok"], family["worst_error_over_bound"]) != (row["result"] == "ok", row["worst_error_over_bound"]):
        sys.exit(f"the family's line differs from its only variant's: {family} {row}")
    return row["result"], " ".join(row.get("detail", "").split())


def main():
    kiln, config, verify, driver = sys.argv[1:]
    kernel, planter, failed = find_kernel(kiln, config), Planter(kiln, config), 0
    healthy = planter.image(kernel)
    cases = (("healthy", healthy, {}, "ok", ""), ("disordered", disorder(healthy), {}, "WRONG", "two runs differ: out"),
             ("disordered, always from the first block", disorder(healthy), {"KILN_EMU_ORDER": "forward"}, "ok", ""))
    for name, text, variables, verdict, words in cases:
        result, detail = judge(planter, kernel, text, verify, driver, **variables)
        good = result == verdict and words in detail
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {result} {detail}")
    sys.exit(failed != 0)


main()
