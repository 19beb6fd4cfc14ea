#!/usr/bin/env python3
"""Moves the rows of survivors.txt and unreached.txt with their source lines, after a change of kernels' C that keeps most of the
PTX.

usage: move.py OLD_ROOT OLD_KILN KILN CONFIG...
  OLD_ROOT   a checkout from before the change, which OLD_KILN was built from

A line of PTX that both kilns emit (ignoring registers and labels) has a place in both sources: rows of the old place move to the
new one. Rows of deleted lines stay for a person to review.
"""
import difflib
import pathlib
import re
import subprocess
import sys

import places

HERE = pathlib.Path(__file__).resolve().parent
ROWS = {"survivors.txt": 3, "unreached.txt": 1}  # lines of a row


def images(kiln, config):
    done = subprocess.run([kiln, "list", config], stdout=subprocess.PIPE, text=True, check=True)
    return [(variant, target) for _, variant, targets in (line.split() for line in done.stdout.splitlines())
            for target in targets.split(",")]


def without_numbers(lines):
    return [re.sub(r"(%[a-z]+|\b[A-Z_]+)\d+|<\d+>", r"\1", text) for text, _ in lines]


def alike(old, new):
    """Returns the blocks of lines in both, from difflib."""
    return [(0, 0, len(old))] if old == new else difflib.SequenceMatcher(None, old, new, False).get_matching_blocks()


def moves(old_root, old_kiln, kiln, configs):
    """Returns {old place: its new places}."""
    found = {}
    for config in configs:
        for variant, target in images(kiln, config):
            old = places.lines(old_kiln, config, variant, target, old_root)
            new = places.lines(kiln, config, variant, target)
            for a, b, count in alike(without_numbers(old), without_numbers(new)):
                for (_, before), (_, after) in zip(old[a:a + count], new[b:b + count]):
                    found.setdefault(before, {})[after] = True
    return found


def move(path, lines_of_row, found):
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if ".c: " in line and not line.startswith(("#", " ")))
    blocks, place = {}, None
    for line in lines[start:]:
        if line and not line.startswith(" "):
            place = line
            blocks[place] = []
        elif line:
            blocks[place].append(line)
    moved = {}
    for place, body in blocks.items():
        for new in found.get(place, {place: True}):
            rows = moved.setdefault(new, {})
            for i in range(0, len(body), lines_of_row):
                rows.setdefault("\n".join(body[i:i + lines_of_row]))
    text = lines[:start] + [line for place in sorted(moved) for line in (place, *moved[place])]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return sum(place not in blocks for place in moved)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    old_root, old_kiln, kiln, *configs = sys.argv[1:]
    found = moves(pathlib.Path(old_root), old_kiln, kiln, configs)
    for name, lines_of_row in ROWS.items():
        print(f"{name}: {move(HERE / name, lines_of_row, found)} new places")


if __name__ == "__main__":
    main()
