#!/usr/bin/env python3
"""kiln-verify finds results that depend on which thread block comes first, though each would be right.

usage: check_order.py DRIVER PROGRAM

PROGRAM has the kernel of order.ptx, and no reference. Only the second run, from the last block to the first, shows it.
"""
import json
import os
import subprocess
import sys

# KILN_EMU_ORDER; what is said of the kernel
CASES = (({}, "WRONG", "two runs differ: y"), ({"KILN_EMU_ORDER": "forward"}, "executed, not compared", ""))


def judge(driver, program, **variables):
    environment = dict(os.environ, KILN_EMU_THREADS="1", **variables)
    done = subprocess.run([program, "--driver", driver, "--json", "-"], env=environment, text=True, capture_output=True,
                          check=False)
    row, = json.loads(done.stdout)["variants"]
    return row["result"], " ".join(row.get("detail", "").split())


def main():
    failed = 0
    for variables, verdict, words in CASES:
        result, detail = judge(*sys.argv[1:], **variables)
        is_good = result == verdict and words in detail
        failed += not is_good
        print(f"{'ok  ' if is_good else 'FAIL'} {variables or 'both orders'}: {result} {detail}")
    sys.exit(failed != 0)


main()
