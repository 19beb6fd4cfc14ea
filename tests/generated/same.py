#!/usr/bin/env python3
"""Checks that two generators make the same PTX for the same variants, except for names. Use it for a change that must not
affect kernels.

usage: same.py OLD NEW [--config FILE] [--old-config FILE] [--renamed OLD=NEW]... [--targets T,...]
  OLD, NEW      programs, each kiln of a build
  --config      default: tests/full.yaml
  --old-config  the same configuration as OLD spells it
  --renamed     an argument of kernels and its new name
Variants are matched by id, or by order if OLD has other ids. Exits 1 at a difference, and prints the first different line
of each image.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

CONFIG = pathlib.Path(__file__).resolve().parents[1] / "full.yaml"
SHOWN = 20


def manifest(kiln, config, targets):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([kiln, "generate", config, "--output", out, *targets], check=True)
        (path,) = pathlib.Path(out).glob("*.json")
        return json.loads(path.read_text(encoding="utf-8"))["variants"]


def text(kiln, config, variant, target, renamed=()):
    shown = subprocess.run([kiln, "show", config, variant["id"], "--target", target], check=True, capture_output=True, text=True)
    ptx = shown.stdout.replace(variant["entry"], "ENTRY")
    for names in renamed:
        ptx = ptx.replace(*(f"param_{name}" for name in names.split("=")))
    return [line.lstrip() for line in ptx.splitlines()]


def pairs(old, new):
    by_id = {v["id"]: v for v in new}
    if by_id.keys() == {v["id"] for v in old}:
        return [(v, by_id[v["id"]]) for v in old]
    if len(old) != len(new):
        sys.exit(f"{len(old)} variants and {len(new)}: those of OLD and NEW cannot be told by their order")
    return list(zip(old, new))


def difference(options, old, new, image):
    """Returns the first different line, or None."""
    target = image["target"]
    before = text(options.old, options.old_config or options.config, old, target, options.renamed)
    after = text(options.new, options.config, new, target)
    if before == after:
        return None
    for number, (a, b) in enumerate(zip(before + [""] * len(after), after + [""] * len(before)), 1):
        if a != b:
            return f"{new['id']} {target}, line {number}:\n  - {a}\n  + {b}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--old-config")
    parser.add_argument("--renamed", action="append", default=[])
    parser.add_argument("--targets")
    options = parser.parse_args()
    targets = ["--targets", options.targets] if options.targets else []
    old = manifest(options.old, options.old_config or options.config, targets)
    new = manifest(options.new, options.config, targets)
    images, renamed, different = 0, 0, []
    for before, after in pairs(old, new):
        kept = {image["target"]: image["xxh3_128"] for image in before["images"]}
        made = {image["target"]: image for image in after["images"]}
        images += len(made)
        different += [f"{after['id']}: only one of them has {target}" for target in sorted(kept.keys() ^ made.keys())]
        for target in sorted(kept.keys() & made.keys()):
            if kept[target] != made[target]["xxh3_128"]:
                found = difference(options, before, after, made[target])
                different += [found] if found else []
                renamed += not found
    print("\n".join(different[:SHOWN]) + ("\n" if different else "") +
          f"{len(new)} variants, {images} images: {images - renamed - len(different)} the same, {renamed} except for "
          f"names, {len(different)} different")
    sys.exit(1 if different else 0)


main()
