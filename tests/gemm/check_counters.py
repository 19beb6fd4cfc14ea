#!/usr/bin/env python3
"""What the NF4 products move and execute, as the emulated driver counts it: each argument's bytes exactly as the tiles
say (weights once per tile of rows), sectors, instructions within 2 % of the manifest's cost.

usage: check_counters.py PROFILE MANIFEST TILES,N,K...      (M is TILES times the variant's tile_m)
"""
import concurrent.futures
import json
import os
import subprocess
import sys

MOST_INSTRUCTION_ERROR, LEAST_USED, MOST_MOVED, MOST_WAVEFRONTS = 0.02, 0.95, 1.02, 1.05


def expected_bytes(params, m, n, k):
    """{argument: bytes that all thread blocks together read or write}"""
    size = 4 if params["a"] == "f32" else 2
    row_tiles, column_tiles = -(-m // int(params["tile_m"])), -(-n // int(params["tile_n"]))
    return {"in": size * m * k * column_tiles, "packed": n * k // 2 * row_tiles, "scale": 4 * n * (k // 64) * row_tiles,
            "out": size * m * n}


def count(profile, manifest, variant, target, tiles, n, k):
    params = dict(pair.split("=") for pair in variant.partition("/")[2].split(","))
    m = tiles * int(params["tile_m"])
    command = [profile, manifest, "--variant", variant, "--target", target, "--args", f"m={m},n={n},k={k}", "--json"]
    environment = dict(os.environ, PATH="")  # ptxas would only cost time
    p = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    arguments = {row["name"]: row for row in p["allocations"] if row["is_argument"]}
    used = {name: row["read"]["bytes_used"] + row["write"]["bytes_used"] for name, row in arguments.items()}
    sectors = {name: row["read"]["sectors"] + row["write"]["sectors"] for name, row in arguments.items()}
    cost, executed = p["cost"], p["instructions"]["thread"]
    inputs = sum(arguments[name]["bytes"] for name in ("in", "packed", "scale"))
    compulsory = (cost["bytes_read"], cost["bytes_written"]) == (inputs, arguments["out"]["bytes"])
    equal = used == expected_bytes(params, m, n, k) and compulsory
    error = cost["thread_instructions"] / executed - 1
    weights = used["packed"] + used["scale"]
    moved = 32 * (sectors["packed"] + sectors["scale"]) / weights
    use = sum(used.values()) / (32 * sum(sectors.values()))
    shared = p["shared"]
    wavefronts = sum(shared[side]["wavefronts"] for side in ("read", "write"))
    conflicts = wavefronts / sum(shared[side]["ideal_wavefronts"] for side in ("read", "write"))
    fine = (equal and abs(error) <= MOST_INSTRUCTION_ERROR and moved <= MOST_MOVED and use >= LEAST_USED
            and conflicts <= MOST_WAVEFRONTS)
    return fine, (f"{variant:97} {target:6} {f'{m}x{n}x{k}':14} {'equal' if equal else used} {moved:7.4f} {use:7.4f} {conflicts:7.4f} "
                  f"{executed / (n * k):8.3f} {100 * error:+6.2f} %{'' if fine else '  WRONG'}")


def main():
    profile, manifest, *shapes = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        variants = json.load(file)["variants"]
    cases = [(profile, manifest, v["id"], image["target"], *map(int, shape.split(",")))
             for v in variants for image in v["images"] for shape in shapes]
    print(f"{'variant':97} {'target':6} {'shape':14} bytes weights     use  wavef. /weight  model")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda case: count(*case), cases))
    for _, row in rows:
        print(row)
    right = sum(fine for fine, _ in rows)
    print(f"{right} of {len(rows)} within the bounds")
    sys.exit(right != len(rows) or not rows)


main()
