#!/usr/bin/env python3
"""Checks that the target `all` does not build tests/full.yaml, which is 52 MB of C, or its programs, and that ninja can build them.

usage: on_demand.py BUILD_DIR NINJA
"""
import pathlib
import subprocess
import sys


def inputs(build, ninja, target):
    """Returns the names of all files that a target depends on, directly or not."""
    told = subprocess.run([ninja, "-C", build, "-t", "inputs", target], check=True, capture_output=True, text=True).stdout
    return {pathlib.Path(line).name for line in told.splitlines()}


def main():
    build, ninja = sys.argv[1:]
    if not pathlib.Path(build, "build.ninja").exists():
        print("SKIPPED: ninja tells what a target is made of, and this build has none")
        sys.exit(77)
    all_of_it = {"kiln_full.c", "kiln_full.json", "libkiln_full.a"}
    built, whole = inputs(build, ninja, "all"), inputs(build, ninja, "full_verify")
    wrong = sorted((all_of_it | {"kiln_gpu.c"}) & built) + sorted(f"not {name}" for name in all_of_it - whole)
    wrong += [f"not {name}" for name in ("kiln_default.c", "libkiln_runtime.a") if name not in built]
    print("built by everything:", ", ".join(wrong) if wrong else "what it should be")
    sys.exit(1 if wrong else 0)


main()
