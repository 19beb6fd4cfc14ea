#!/usr/bin/env python3
"""What the quantisers move and execute, as the emulated driver counts it: bytes moved over compulsory ones, use of the
sectors moved, thread instructions per element; and that the manifest's cost says the same.

usage: check_counters.py PROFILE CONFIG MANIFEST WORD N...

Of the variants whose id holds WORD, each image, at each n; prints a table.
"""
import concurrent.futures
import json
import subprocess
import sys

MOST_MOVED, LEAST_USED, MOST_INSTRUCTION_ERROR = 1.02, 0.95, 0.02


def count(profile, config, variant, target, n):
    command = [profile, config, "--variant", variant, "--target", target, "--args", f"n={n}", "--json"]
    p = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    arguments = [row for row in p["report"]["allocations"] if row["parameters"]]  # others are tables of the module
    sums = {kind: {key: sum(row[kind][key] for row in arguments) for key in ("sectors", "bytes_used")}
            for kind in ("read", "write")}
    executed, modelled = p["report"]["thread_instructions"], p["cost_instructions"]
    moved = 32 * (sums["read"]["sectors"] + sums["write"]["sectors"])
    used = {kind: sums[kind]["bytes_used"] for kind in sums}
    compulsory = p["bytes_read"] + p["bytes_written"]
    ratios = moved / compulsory, sum(used.values()) / moved, executed / p["elements"], modelled / executed - 1
    bytes_agree = (used["read"], used["write"]) == (p["bytes_read"], p["bytes_written"])
    fine = (bytes_agree and ratios[0] <= MOST_MOVED and ratios[1] >= LEAST_USED
            and abs(ratios[3]) <= MOST_INSTRUCTION_ERROR)
    row = (f"{variant:58} {target:6} {n:8} {ratios[0]:8.4f} {ratios[1]:8.4f} {ratios[2]:9.2f} {100 * ratios[3]:+7.2f} %"
           f"  {'equal' if bytes_agree else 'DIFFER'}{'' if fine else '  WRONG'}")
    return fine, row


def main():
    profile, config, manifest, word, *sizes = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        variants = json.load(file)["variants"]
    cases = [(profile, config, v["id"], image["target"], n)
             for v in variants if word in v["id"] for image in v["images"] for n in sizes]
    print(f"{'variant':58} {'target':6} {'n':>8} {'moved/c.':>8} {'use':>8} {'instr/el.':>9} {'model':>9}  bytes")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda case: count(*case), cases))
    for _, row in rows:
        print(row)
    right = sum(fine for fine, _ in rows)
    print(f"{right} of {len(rows)} within the bounds")
    sys.exit(right != len(rows) or not rows)


main()
