#!/usr/bin/env python3
"""Prints the processor time of twenty items, without a lock and with one. Times never fail the test, because machines differ.
The aims are 10 s and 1.5 s on one processor of a laptop.

usage: times.py KILN
"""
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

CONFIG = pathlib.Path(__file__).resolve().parent / "twenty.yaml"


def processor_seconds(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main():
    kiln = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CONFIG, folder)
        chosen, said = processor_seconds([kiln, "choose", CONFIG.name], folder)
        generated, _ = processor_seconds([kiln, "generate", "-q", CONFIG.name, "--output", "made"], folder)
        listed = processor_seconds([kiln, "list", CONFIG.name], folder)[1].splitlines()
        lines = said.splitlines()
        if len(lines) != 21 or lines[-1] != f"{CONFIG.stem}.lock.yaml: {len(listed)} variants":
            sys.exit(f"expected a line for each of 20 items and one for the lock of {len(listed)} variants, found\n{said}")
    print(f"{said}from nothing {chosen:.2f} s of processor time, a bundle from the lock {generated:.2f} s")


main()
