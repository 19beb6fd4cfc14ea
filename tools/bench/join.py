#!/usr/bin/env python3
"""Joins configurations for a run on a GPU: every variant that the target can run, each once.

usage: join.py KILN BUNDLE TARGET OUTPUT.yaml SETS.json CONFIG...

SETS.json maps each id to the bundle of the first CONFIG that has it: {"nf4_unpack/...": "kiln_default", ...}, in the order of
the configurations. Variants that TARGET cannot run are left out.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def runs_on(name, target):
    """Whether a device of `target` (sm_90) can run an image for `name`: an older base target, or its own a and f forms."""
    number, kind = re.fullmatch(r"sm_(\d+)([af]?)", name).groups()
    here = int(re.fullmatch(r"sm_(\d+)", target)[1])
    return int(number) == here or (not kind and int(number) < here)


def variants(kiln, config, target):
    listing = subprocess.run([kiln, "list", config], capture_output=True, text=True)
    if listing.returncode != 0:
        sys.exit(f"join.py: kiln list {config} ended with {listing.returncode}\n{listing.stderr}")
    rows = [line.split() for line in listing.stdout.splitlines()]
    return [name for _, name, targets in rows if any(runs_on(t, target) for t in targets.split(","))]


def entry(name):
    family, _, pairs = name.partition("/")
    return "  - {" + ", ".join([f"family: {family}", *(pair.replace("=", ": ") for pair in pairs.split(",") if pair)]) + "}\n"


def check(kiln, text):
    """Exits with kiln's message if kiln rejects a configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([kiln, "list", file.name], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.replace(file.name, "join.py").rstrip())


def write_if_changed(path, text):
    """Leaves an unchanged file alone, so that nothing is rebuilt."""
    path = pathlib.Path(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    kiln, bundle, target, output, sets, *configs = sys.argv[1:]
    if not re.fullmatch(r"sm_\d+", target):
        sys.exit(f"join.py: expected a base target such as sm_90, found '{target}'")
    first = {}
    for config in configs:
        name = re.search(r"^bundle: *(\w+)", pathlib.Path(config).read_text(encoding="utf-8"), re.MULTILINE)[1]
        for variant in variants(kiln, config, target):
            first.setdefault(variant, name)
    head = f"# Made by tools/bench/join.py.\nbundle: {bundle}\ntargets: [{target}]\nkernels:\n"
    config = head + "".join(map(entry, first))
    check(kiln, config)
    write_if_changed(output, config)
    write_if_changed(sets, json.dumps(first, indent=0) + "\n")


if __name__ == "__main__":
    main()
