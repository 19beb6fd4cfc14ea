"""Compares every variant's cost expressions with what the emulated driver counts.

usage: check.py kiln-profile CONFIG MANIFEST N...
"""
import json
import subprocess
import sys


def profile(tool, config, variant, target, n):
    out = subprocess.run([tool, config, "--variant", variant, "--target", target, "--args", f"n={n}", "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def problems(variant, p):
    report = p["report"]
    moved = {"read": 0, "write": 0}
    used = {"read": 0, "write": 0}
    for row in report["allocations"]:
        if not row["parameters"]:
            continue  # a table of the module
        name = p["args"][row["parameters"][0]]
        for kind in moved:
            sectors, distinct = row[kind]["sectors"], row[kind]["distinct_sectors"]
            used[kind] += row[kind]["bytes_used"]
            moved[kind] += 32 * sectors
            if sectors > 1.02 * distinct + 2:
                yield f"{name}: {sectors} sectors requested, {distinct} are distinct"
            if sectors and row[kind]["bytes_used"] < 0.95 * 32 * (sectors - 2):
                yield f"{name}: {row[kind]['bytes_used']} bytes used of {sectors} sectors"
    for kind, cost in ("read", p["bytes_read"]), ("write", p["bytes_written"]):
        if used[kind] != cost:
            yield f"{used[kind]} bytes {kind}, the cost says {cost}"
    if p["cost_instructions"]:
        counted = report["thread_instructions"]
        if abs(counted - p["cost_instructions"]) > 0.02 * counted:
            yield f"{counted} thread instructions, the cost says {p['cost_instructions']}"


def main():
    tool, config, manifest, *sizes = sys.argv[1:]
    failed = False
    for variant in json.load(open(manifest, encoding="utf-8"))["variants"]:
        for n in sizes:
            p = profile(tool, config, variant["id"], variant["images"][0]["target"], n)
            for problem in problems(variant, p):
                print(f"{variant['id']}, n={n}: {problem}")
                failed = True
    return failed


sys.exit(main())
