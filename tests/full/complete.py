#!/usr/bin/env python3
"""Checks that tests/full.yaml names every value of every parameter of every family, every legal number of stages with each
strategy and type of x, and every base target; and that every family's contract states the accuracy of results, the shape of
tile_counters, and their number for a given workspace.

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


def list_variants(kiln, config, families, text=None):
    """Returns the parameters of each family's variants, and the targets. An id may leave out a parameter with its default value."""
    listed = subprocess.run([kiln, "list", config], check=True, input=text, stdout=subprocess.PIPE, text=True).stdout
    defaults = {family["name"]: {param["name"]: str(param["default"]) for param in family["params"]} for family in families}
    found, targets = {}, set()
    for line in listed.splitlines():
        _, variant, where = line.split()
        family, params = (variant + "/").split("/")[:2]
        targets.update(where.split(","))
        found.setdefault(family, []).append(defaults[family] | dict(pair.split("=") for pair in params.split(",") if pair))
    return found, targets


def stages_of(variants):
    """Returns {(strategy, type of x, stages)}: each of these has its own loop of copies and products."""
    return {(v.get("strategy"), v.get("x"), v["stages"]) for v in variants}


def missing_stages(kiln, family, variants):
    """Yields each legal combination of strategy, type of x and stages that no variant has."""
    stages = next((values_of(param) for param in family["params"] if param["name"] == "stages"), None)
    if not stages:
        return
    others = {tuple((key, value) for key, value in v.items() if key != "stages") for v in variants}
    items = "".join(f"  - {{family: {family['name']}, {', '.join(f'{key}: {value}' for key, value in other)}, "
                    f"stages: [{', '.join(stages)}], combinations: legal}}\n" for other in sorted(others))
    text = f"bundle: stages\ntargets: [sm_90, sm_120f]\nkernels:\n{items}"
    legal = list_variants(kiln, "-", [family], text)[0][family["name"]]
    yield from sorted(str(of) for of in stages_of(legal) - stages_of(variants))


def main():
    kiln, config = sys.argv[1:]
    families = json.loads(subprocess.run([kiln, "families", "--json"], check=True, capture_output=True, text=True).stdout)
    found, targets = list_variants(kiln, config, families)
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
                if all(params[param["name"]] != value for params in found[family["name"]]):
                    missing.append(f"{family['name']}: {param['name']}={value}")
        missing += [f"{family['name']}: strategy, x and stages {of}" for of in missing_stages(kiln, family, found[family["name"]])]
    print("\n".join(f"MISSING {m}" for m in missing) or f"{wanted} values of {len(families)} families are all there")
    sys.exit(1 if missing or not wanted else 0)


main()
