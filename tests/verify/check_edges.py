#!/usr/bin/env python3
"""Tests sizes of kernels without a plan: they include the bounds of rules, and a bound that is too large is reported.

usage: check_edges.py DRIVER PROGRAM

PROGRAM has the kernel of edges.ptx twice: "wide" may be called with columns that it does not write, "narrow" may not.
"""
import json
import os
import subprocess
import sys

NOT_TRIED, MANY = "bounds of its rules that were not tried:", "the buffers together have more elements than --max-elements"
CASES = (  # a filter, options; the result, words of the detail, the largest columns that ran
    ("wide", "", "WRONG", "two runs differ: y, byte 8000", 1025),
    ("wide", "--max-elements 1024", "executed, not compared", f"{NOT_TRIED} rows=65535 ({MANY}), columns=65536 ({MANY})", 1024),
    ("narrow", "", "executed, not compared", f"{NOT_TRIED} rows=10000000 ({MANY})", 1500),
    ("narrow", "--size columns=1025", "skipped", "not applicable where columns is 1025: columns % 4 == 0 must hold", None),
    ("narrow", "--size columns=1504", "skipped", "not applicable where columns is 1504: columns <= 1500 must hold", None),
)


def main():
    failed = 0
    driver, program = sys.argv[1:]
    for name, options, result, words, columns in CASES:
        done = subprocess.run([program, "--driver", driver, "--json", "-", "--filter", name, "--inputs", "1", *options.split()], text=True,
                              env=dict(os.environ, KILN_EMU_CHECK="memory"), capture_output=True, check=False)
        row, = json.loads(done.stdout)["variants"]
        ranges = row.get("ranges") or {}
        good = row["result"] == result and words in row.get("detail", "") and ranges.get("columns", [0, None])[1] == columns
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name} {options}: {row}")
    sys.exit(failed != 0)


main()
