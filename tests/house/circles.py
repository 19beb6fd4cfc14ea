#!/usr/bin/env python3
"""Finds circular references between the object files of a library or program: each file needs a symbol of the next.

usage: circles.py OBJECT... | circles.py --self-test

A circle fails, with a symbol for each edge.
"""
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def name_of(path):
    """Returns the file without .c, with its folder inside the library, such as bundle/images."""
    return re.sub(r".*\.dir/(?:\./)?|\.c\.o$", "", path)


def symbols(paths):
    """Returns file -> (defined, undefined) global symbols."""
    files = {name_of(path): (set(), set()) for path in paths}
    if len(files) < len(paths):
        sys.exit("two objects of one name among: " + ", ".join(sorted(map(name_of, paths))))
    out = subprocess.run(["nm", "-A", "-g", "-P", *paths], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        path, rest = line.rsplit(": ", 1)
        symbol, kind = rest.split()[:2]
        files[name_of(path)][kind in "Uw"].add(symbol)
    return files


def edges_of(files):
    """Returns file -> {another file that it needs: one symbol}."""
    owner = {symbol: file for file, (defined, _) in files.items() for symbol in defined}
    edges = {file: {} for file in files}
    for file, (_, undefined) in files.items():
        for symbol in sorted(undefined & owner.keys()):
            edges[file].setdefault(owner[symbol], symbol)
    return edges


def reached(edges, start):
    found, waiting = set(), [start]
    while waiting:
        new = edges[waiting.pop()].keys() - found
        found |= new
        waiting += new
    return found


def circles_of(edges):
    """Returns sets of files that reach each other."""
    reach = {file: reached(edges, file) for file in edges}
    return {frozenset(other for other in reach[file] if file in reach[other]) for file in edges if file in reach[file]}


def report(circle, edges):
    for file in sorted(circle):
        for other in sorted(circle & edges[file].keys()):
            print(f"    {file} needs {edges[file][other]} of {other}")


def check(paths):
    edges = edges_of(symbols(paths))
    found = circles_of(edges)
    for circle in sorted(found, key=sorted):
        print("a circle:")
        report(circle, edges)
    print(f"{len(edges)} files, {len(found)} circles")
    return not found


def self_test():
    """Two circles, one of them with three files, and a file outside them."""
    files = {"a": ({"fa"}, {"fb", "memcpy"}), "b": ({"fb"}, {"fc"}), "c": ({"fc"}, {"fa", "fd"}),
             "d": ({"fd"}, {"fe"}), "e": ({"fe"}, {"fd"}), "main": ({"main"}, {"fa"}), "leaf": ({"fl"}, set())}
    found = circles_of(edges_of(files))
    wanted = {frozenset("abc"), frozenset("de")}
    print(f"found {sorted(map(sorted, found))}, wanted {sorted(map(sorted, wanted))}")
    return found == wanted and edges_of(files)["a"] == {"b": "fb"}


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if self_test() else 1)
    if not shutil.which("nm"):
        print("SKIPPED: nm is not installed")
        sys.exit(SKIPPED)
    sys.exit(0 if check(sys.argv[1:]) else 1)


main()
