#!/usr/bin/env python3
"""Checks every family's contract: it states the accuracy of results, the shape of tile_counters, and their number for a given
workspace.

usage: contract.py KILN
"""
import json
import subprocess
import sys


def main():
    told = subprocess.run([sys.argv[1], "families", "--json"], check=True, capture_output=True, text=True).stdout
    missing = []
    for family in json.loads(told):
        name, args = family["name"], {arg["name"]: arg for arg in family["args"]}
        if not family.get("accuracy"):
            missing.append(f"{name}: no accuracy")
        if "tile_counters" not in args:
            continue
        if not args["tile_counters"].get("shape"):
            missing.append(f"{name}: no shape of tile_counters")
        if "tile_counters has one for each" not in args["workspace_size"]["summary"]:
            missing.append(f"{name}: workspace_size does not say how many tile_counters there are")
    print("\n".join(f"MISSING {m}" for m in missing) or "all contracts are whole")
    sys.exit(bool(missing))


main()
