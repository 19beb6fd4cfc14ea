#!/usr/bin/env python3
"""What the quantisers move and execute, as the emulated driver counts it: bytes moved over compulsory ones, use of the
sectors moved, thread instructions per element; and that the manifest's cost says the same.

usage: check_counters.py PROFILE MANIFEST WORD n=N[,group_size=G]...

Of the variants whose id holds WORD, each image, at each size; prints a table. Where the group's size is an argument,
tiles share scales, and instructions are not modelled: only the ratios are held to.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

MOST_MOVED, LEAST_USED, MOST_INSTRUCTION_ERROR = 1.02, 0.95, 0.02


def count(profile, manifest, variant, target, size):
    command = [profile, manifest, "--variant", variant, "--target", target, "--args", size, "--json"]
    environment = dict(os.environ, PATH="")  # ptxas would only cost time
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    p = json.loads(done.stdout)
    arguments = [row for row in p["allocations"] if row["is_argument"]]  # others are tables of the module
    sums = {kind: {key: sum(row[kind][key] for row in arguments) for key in ("sectors", "bytes_used")}
            for kind in ("read", "write")}
    cost, executed = p["cost"], p["instructions"]["thread"]
    modelled = cost["thread_instructions"]  # null or 0: not at all
    moved = 32 * (sums["read"]["sectors"] + sums["write"]["sectors"])
    used = {kind: sums[kind]["bytes_used"] for kind in sums}
    moved_ratio, use = moved / (cost["bytes_read"] + cost["bytes_written"]), sum(used.values()) / moved
    error = modelled / executed - 1 if modelled else 0
    bytes_agree = (used["read"], used["write"]) == (cost["bytes_read"], cost["bytes_written"])
    is_as_modelled = not modelled or (bytes_agree and abs(error) <= MOST_INSTRUCTION_ERROR)
    fine = is_as_modelled and moved_ratio <= MOST_MOVED and use >= LEAST_USED
    model = f"{100 * error:+.2f} %" if modelled else "-"
    return fine, (f"{variant:58} {target:6} {size:25} {moved_ratio:8.4f} {use:7.4f} {executed / cost['elements']:9.2f} "
                  f"{model:>8} {'equal' if bytes_agree else '-':>6}{'' if fine else '  WRONG'}")


def main():
    profile, manifest, word, *sizes = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        variants = json.load(file)["variants"]
    cases = [(profile, manifest, v["id"], image["target"], size)
             for v in variants if word in v["id"] for image in v["images"] for size in sizes]
    print(f"{'variant':58} {'target':6} {'size':25} {'moved/c.':>8} {'use':>7} {'instr/el.':>9} {'model':>8}  bytes")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda case: count(*case), cases))
    for _, row in rows:
        print(row)
    right = sum(fine for fine, _ in rows)
    print(f"{right} of {len(rows)} within the bounds")
    sys.exit(right != len(rows) or not rows)


main()
