#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_gemv.py PROFILE MANIFEST SHAPES WORD...       (a shape is NxK; of the variants whose id holds a word)

Each byte of the weights is read once, by accesses that use whole sectors; every byte of the inputs is read and every one of
the result written; x and gamma come again for each warp, from the caches. Prints a table.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

MOST_MOVED, LEAST_USED, MOST_INSTRUCTION_ERROR = 1.02, 0.95, 0.02


def count(profile, manifest, variant, target, shape):
    n, k = map(int, shape.split("x"))
    sizes = f"n={n},k={k}" + (",eps=1e-5" if "norm=rms" in variant else "")
    command = [profile, manifest, "--variant", variant, "--target", target, "--args", sizes, "--json"]
    environment = dict(os.environ, PATH="")  # ptxas would only cost time
    p = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    arguments = [row for row in p["allocations"] if row["is_argument"]]
    cost, executed = p["cost"], p["instructions"]["thread"]
    sides = {side: [row for row in arguments if row[side]["sectors"]] for side in ("read", "write")}
    touched = all(row[side]["distinct_sectors"] == -(-row["bytes"] // 32) for side in sides for row in sides[side])
    bytes_agree = touched and all(sum(row["bytes"] for row in sides[side]) == cost[f"bytes_{what}"]
                                  for side, what in (("read", "read"), ("write", "written")))
    weights = next(row for row in arguments if row["name"] == "w")["read"]
    compulsory = n * k // 256 * 144
    moved, read_once = 32 * weights["sectors"] / compulsory, weights["bytes_used"] == compulsory
    use = sum(row["read"]["bytes_used"] for row in sides["read"]) / sum(32 * row["read"]["sectors"] for row in sides["read"])
    error = cost["thread_instructions"] / executed - 1
    fine = (bytes_agree and read_once and moved <= MOST_MOVED and use >= LEAST_USED and
            abs(error) <= MOST_INSTRUCTION_ERROR)
    return fine, (f"{variant:70} {target:6} {shape:12} {moved:7.4f} {use:7.4f} {executed / cost['elements']:9.2f} "
                  f"{100 * error:+.2f} % {'equal' if bytes_agree else '-':>6}{'' if fine else '  WRONG'}")


def main():
    profile, manifest, shapes, *words = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        variants = json.load(file)["variants"]
    cases = [(profile, manifest, v["id"], image["target"], shape) for v in variants
             if "rmsnorm_q4k_gemv" in v["id"] and any(word in v["id"] for word in words)
             for image in v["images"] for shape in shapes.split(",")]
    print(f"{'variant':70} {'target':6} {'shape':12} {'moved/c.':>7} {'use':>6} {'instr/w.':>9} {'model':>7}  bytes")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda case: count(*case), cases))
    for _, row in rows:
        print(row)
    right = sum(fine for fine, _ in rows)
    print(f"{right} of {len(rows)} within the bounds")
    sys.exit(right != len(rows) or not rows)


main()
