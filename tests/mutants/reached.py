#!/usr/bin/env python3
"""Checks that unreached.txt lists all code of the default bundle's kernels that verify.default never reaches.

usage: reached.py KILN CONFIG MANIFEST FOLDER

FOLDER has unreached.DEVICE.json, the emulated driver's KILN_EMU_UNREACHED, for each target of the manifest's images: that of
sm_120 also has the images for sm_120f.
unreached.txt says, for a line of a kernel's source, what never happens there and why. Fails if a row is missing, or if no kernel
needs a row any more.
"""
import json
import pathlib
import re
import sys

from places import places

KNOWN = pathlib.Path(__file__).resolve().parent / "unreached.txt"
NEVER = {"reached": "no thread comes here", "true": "its guard never holds", "false": "its guard always holds"}
HELD, FAILED = 1, 2
SEEN = {"reached": 0, "true": FAILED, "false": HELD}  # from a report: what happened


def known():
    """Returns {(place, never): line of the file}."""
    rows, place = {}, None
    for number, line in enumerate(KNOWN.read_text(encoding="utf-8").splitlines(), 1):
        never, _, reason = line.strip().partition("  ")
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            place = line
        elif never not in NEVER or not reason or place is None:
            sys.exit(f"{KNOWN}:{number}: expected 'true', 'false' or 'reached', and a reason")
        else:
            rows[(place, never)] = number
    return rows


def number_of(target):
    return int(re.match(r"sm_(\d+)", target)[1])


def image_targets(variant):
    """Returns the targets of the manifest's images, oldest first: base targets, or a single family target."""
    return sorted((image["target"] for image in variant["images"]), key=number_of)


def found(kiln, config, manifest, folder):
    """Returns {(place, never): an example}."""
    variants = {v["entry"]: v for v in json.loads(pathlib.Path(manifest).read_text(encoding="utf-8"))["variants"]}
    targets = {target for v in variants.values() for target in image_targets(v)}
    seen, texts = {}, {}  # per image {line: what happened}, over all reports that ran it
    for report in (pathlib.Path(folder) / f"unreached.sm_{number}.json" for number in sorted(set(map(number_of, targets)))):
        for kernel in map(json.loads, report.read_text(encoding="utf-8").splitlines()):
            if kernel["unreached"] not in variants:  # a kernel of kiln-verify itself
                continue
            variant, device = variants[kernel["unreached"]], number_of(kernel["device"])
            image = variant["id"], [t for t in image_targets(variant) if number_of(t) <= device][-1]
            lines = {missed["line"]: SEEN[missed["never"]] for missed in kernel["lines"]}
            texts.update({(image, missed["line"]): missed["text"].strip() for missed in kernel["lines"]})
            before = seen.get(image, lines)
            seen[image] = {line: lines[line] | before[line] for line in lines.keys() & before.keys()}
    missing = {(v["id"], target) for v in variants.values() for target in image_targets(v)} - seen.keys()
    if missing:
        sys.exit(f"{len(missing)} images were not launched, such as {' for '.join(min(missing))}")
    rows, never = {}, {bits: name for name, bits in SEEN.items()}
    for (variant, target), lines in sorted(seen.items()):
        for line, bits in lines.items():
            if bits in never:
                place = places(kiln, config, variant, target)[line - 1]
                rows.setdefault((place, never[bits]), f"{variant} for {target}, line {line}: {texts[(variant, target), line]}")
    return rows


def main():
    rows, expected = found(*sys.argv[1:]), known()
    for row in sorted(rows.keys() - expected.keys()):
        print(f"{row[0]}\n  {row[1]}: {NEVER[row[1]]}, in {rows[row]}")
    for row in sorted(expected.keys() - rows.keys()):
        print(f"{KNOWN.name}:{expected[row]}: {row[1]} no longer so: {row[0]}")
    print(f"{len(rows)} lines of kernels have instructions that were never reached, or guards with one value; {len(expected)} are known")
    sys.exit(rows.keys() != expected.keys())


main()
