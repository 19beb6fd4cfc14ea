"""Compares every variant's cost expressions with the emulated driver's counts.

usage: check.py kiln-profile MANIFEST N...
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters


def problems(variant, p):
    used = {"read": 0, "write": 0}
    for row in p["allocations"]:
        if not row["is_argument"]:
            continue  # a table of the module
        name = row["name"]
        for kind in used:
            sectors, distinct = row[kind]["sectors"], row[kind]["distinct_sectors"]
            used[kind] += row[kind]["bytes_used"]
            if sectors > 1.02 * distinct + 2:
                yield f"{name}: {sectors} sectors requested, {distinct} are distinct"
            if sectors and row[kind]["bytes_used"] < 0.95 * 32 * (sectors - 2):
                yield f"{name}: {row[kind]['bytes_used']} bytes used of {sectors} sectors"
    for kind, cost in ("read", p["cost"]["bytes_read"]), ("write", p["cost"]["bytes_written"]):
        if used[kind] != cost:
            yield f"{used[kind]} bytes {kind}, the cost says {cost}"


MULTIPLES = {"q4k_dequantize": 256}  # n is a multiple of this


def main():
    tool, manifest, *sizes = sys.argv[1:]
    failed = False
    for variant in json.load(open(manifest, encoding="utf-8"))["variants"]:
        if [arg["name"] for arg in variant["args"] if arg["direction"] == "value"] != ["n"]:
            continue  # products have their own tests
        for size in map(int, sizes):
            n = size - size % MULTIPLES.get(variant["family"], 1)
            p = counters.run(tool, manifest, variant["id"], variant["images"][0]["target"], f"n={n}").profile
            for problem in problems(variant, p):
                print(f"{variant['id']}, n={n}: {problem}")
                failed = True
    return failed


sys.exit(main())
