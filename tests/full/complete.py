#!/usr/bin/env python3
"""Checks that tests/full.yaml names every value of every parameter of every family, and every base target; and that every
family's contract states the accuracy of results, the shape of tile_counters, and their number for a given workspace.

usage: complete.py KILN CONFIG
"""
import json
import re
import subprocess
import sys

BASE_TARGETS = "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121".split()


def values_of(param):
    """Returns all values; for a range of integers, its ends and its default."""
    if param["type"] == "bool":
        return ["true", "false"]
    if "values" in param:
        return [str(v) for v in param["values"]]
    return [str(param[key]) for key in ("min", "max", "default")]


def missing_of_contract(family):
    """Yields what the family's contract does not state."""
    args = {arg["name"]: arg for arg in family["args"]}
    if not family.get("accuracy"):
        yield "accuracy"
    if "tile_counters" in args and not args["tile_counters"].get("shape"):
        yield "shape of tile_counters"
    if "tile_counters" in args and not re.search("tile_counters has .*one for each", args["workspace_size"]["summary"]):
        yield "number of tile_counters in workspace_size"


def main():
    kiln, config = sys.argv[1:]
    families = json.loads(subprocess.run([kiln, "families", "--json"], check=True, capture_output=True, text=True).stdout)
    listed = subprocess.run([kiln, "list", config], check=True, capture_output=True, text=True).stdout
    found, targets = {}, set()
    for line in listed.splitlines():
        _, variant, where = line.split()
        family, params = (variant + "/").split("/")[:2]
        targets.update(where.split(","))
        found.setdefault(family, []).append(dict(pair.split("=") for pair in params.split(",") if pair))
    missing = [f"target {t}" for t in BASE_TARGETS if t not in targets]
    wanted = 0
    for family in families:
        missing += [f"{family['name']}: {what}" for what in missing_of_contract(family)]
        if family["name"] not in found:
            missing.append(f"family {family['name']}")
            continue
        for param in family["params"]:
            for value in values_of(param):
                wanted += 1
                # an id may leave out a parameter with its default value
                if all(params.get(param["name"], str(param["default"])) != value for params in found[family["name"]]):
                    missing.append(f"{family['name']}: {param['name']}={value}")
    print("\n".join(f"MISSING {m}" for m in missing) or f"{wanted} values of {len(families)} families are all there")
    sys.exit(1 if missing or not wanted else 0)


main()
