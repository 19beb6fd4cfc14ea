#!/usr/bin/env python3
"""Joins configurations for a run on a GPU: every variant that the target can run, each once.

usage: join.py KILN BUNDLE TARGET OUTPUT.yaml SETS.json CONFIG...

SETS.json maps each id to the bundle of the first CONFIG that has it: {"nf4_unpack/...": "kiln_default", ...}, in the order of
the configurations. Variants that TARGET cannot run are left out. OUTPUT also lists the a and f targets that other variants need.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def split_target(name):
    """sm_120f: (120, "f")."""
    number, kind = re.fullmatch(r"sm_(\d+)([af]?)", name).groups()
    return int(number), kind


def runs_on(name, target):
    """Whether a device of `target` (sm_90) can run an image for `name`: an older base target, its own a form, or an f form."""
    (number, kind), (here, _) = split_target(name), split_target(target)
    return number == here or (number < here and (not kind or (kind == "f" and number // 10 == here // 10)))


def variants(kiln, config, target):
    """Returns {variant: the target in the configuration whose image a device of `target` runs}. Only the newest base target
    counts: a variant that is listed for older ones only may need more shared memory than newer devices have."""
    listing = subprocess.run([kiln, "list", config], capture_output=True, text=True)
    if listing.returncode != 0:
        sys.exit(f"join.py: kiln list {config} ended with {listing.returncode}\n{listing.stderr}")
    rows = [line.split() for line in listing.stdout.splitlines()]
    listed = {t for *_, targets in rows for t in targets.split(",") if runs_on(t, target)}
    base = max((t for t in listed if not split_target(t)[1]), key=split_target, default=None)
    fits = {name: [t for t in targets.split(",") if t == base or (t in listed and split_target(t)[1])] for _, name, targets in rows}
    return {name: base if base in here else here[0] for name, here in fits.items() if here}


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
    if len(sys.argv) < 7:
        sys.exit(__doc__.split("\n\n")[1])
    kiln, bundle, target, output, sets, *configs = sys.argv[1:]
    if not re.fullmatch(r"sm_\d+", target):
        sys.exit(f"join.py: expected a base target such as sm_90, found '{target}'")
    first, targets = {}, {target: None}
    for config in configs:
        found = variants(kiln, config, target)
        name = re.search(r"^bundle: *(\w+)", pathlib.Path(config).read_text(encoding="utf-8"), re.MULTILINE)[1]
        for variant, image in found.items():
            first.setdefault(variant, name)
            if split_target(image)[1]:
                targets[image] = None
    head = f"# Made by tools/bench/join.py.\nbundle: {bundle}\ntargets: [{', '.join(targets)}]\nkernels:\n"
    config = head + "".join(map(entry, first))
    check(kiln, config)
    write_if_changed(output, config)
    write_if_changed(sets, json.dumps(first, indent=0) + "\n")


if __name__ == "__main__":
    main()
