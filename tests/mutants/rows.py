#!/usr/bin/env python3
"""Checks that the source lines in survivors.txt and unreached.txt exist.

usage: rows.py check | --self-test

A row whose line was changed or deleted says nothing: move it to the line that does the same (move.py), or delete it. Fails if the
generator's file lacks a row's line.
"""
import sys

from places import ROOT, source_lines

TABLES = ("survivors.txt", "unreached.txt")
FOLDER = ROOT / "tests" / "mutants"


def stale(lines):
    """Returns the (number, place) pairs whose source line does not exist. Places begin lines; what belongs to them is indented."""
    found = []
    for number, line in enumerate(lines, 1):
        path, _, words = line.partition(": ")
        if not path.endswith((".c", ".h")) or line.startswith((" ", "#")):
            continue
        file = f"generator/{path}"
        if not (ROOT / file).is_file() or words not in map(str.strip, source_lines(ROOT, file)):
            found.append((number, line))
    return found


def self_test():
    """Checks that a line that exists is accepted, and that a changed line or file is not."""
    path, source = "kernels/rope.c", (ROOT / "generator/kernels/rope.c").read_text(encoding="utf-8")
    good = f"{path}: {next(line.strip() for line in source.splitlines() if line.strip())}"
    bad = [f"{good} changed", good.replace(path, "kernels/absent.c")]
    sys.exit(stale(["# a comment.c: text", good, "  an indented.c: text", *bad]) != [(4, bad[0]), (5, bad[1])])


def check():
    tables = {name: (FOLDER / name).read_text(encoding="utf-8").splitlines() for name in TABLES}
    found = [(name, *row) for name, lines in tables.items() for row in stale(lines)]
    for name, number, place in found:
        print(f"tests/mutants/{name}:{number}: no such line in generator/: {place}")
    sys.exit(bool(found))


if __name__ == "__main__":
    {"check": check, "--self-test": self_test}[sys.argv[1]]()
