#!/usr/bin/env python3
"""A table of what ptxas makes of every variant of a configuration, for each listed target that it runs on: registers,
shared bytes (static, and those that a launch asks for), spill bytes. All are assembled, and none spills but those that the
file of exceptions names, with a reason; one that is there and does not spill as it says fails too.

usage: ptxas.py KILN CONFIG [--exceptions FILE] [--filter TEXT]; exits 77 where no ptxas is on the PATH.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

EXCEPTIONS = pathlib.Path(__file__).resolve().parent / "spills.txt"
ROW = "{:5} {:8} {:>9} {:>7} {:>8} {:>7} {:>7}  {}"


class Assembly(NamedTuple):
    variant: str
    target: str
    registers: int  # 0: ptxas did not take it
    static: int     # bytes of shared memory, like the next
    dynamic: int    # the most that a launch asks for
    spills: tuple   # bytes stored, loaded
    complaint: str


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def assemble(kiln, config, folder, key, variant, target, dynamic):
    text = pathlib.Path(folder) / f"{key}.{target}.ptx"
    shown = subprocess.run([kiln, "show", config, variant, "--target", target], capture_output=True, text=True)
    text.write_text(shown.stdout)
    run = subprocess.run(["ptxas", "-v", f"-arch={target}", "-o", "/dev/null", text], capture_output=True, text=True)
    text.unlink()
    said = run.stderr
    is_taken = shown.returncode == 0 and run.returncode == 0 and "bytes spill stores" in said
    return Assembly(variant, target, number(r"Used (\d+) registers", said) if is_taken else 0,
                    number(r"(\d+) bytes smem", said), dynamic,
                    (number(r"(\d+) bytes spill stores", said), number(r"(\d+) bytes spill loads", said)),
                    "" if is_taken else shown.stderr + run.stdout + said)


def read_exceptions(path):
    """{(variant, target): ((stored, loaded), reason)}"""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            variant, target, stored, loaded, reason = line.split(maxsplit=4)
            rows[variant, target] = ((int(stored), int(loaded)), reason)
    return rows


def judge(assembly, exceptions):
    """The word for the table, and what to say below it."""
    allowed, reason = exceptions.get((assembly.variant, assembly.target), ((0, 0), ""))
    if not assembly.registers:
        return "FAIL", assembly.complaint
    if assembly.spills != allowed:
        return "FAIL", f"spills {assembly.spills}, expected {allowed} bytes stored and loaded"
    return ("known", reason) if reason else ("ok", "")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("config")
    parser.add_argument("--exceptions", type=pathlib.Path, default=EXCEPTIONS)
    parser.add_argument("--filter", default="", help="variants whose id contains this")
    return parser.parse_args()


def plan(options, folder):
    """(key, variant, target, its dynamic shared bytes) of each assembly."""
    subprocess.run([options.kiln, "generate", options.config, "--output", folder], check=True)
    manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text(encoding="utf-8"))
    dynamic = {v["id"]: v["launch"]["max_shared_bytes"] for v in manifest["variants"]}
    listed = subprocess.run([options.kiln, "list", options.config], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        key, variant, targets = line.split()
        if options.filter in variant:
            for target in targets.split(","):
                yield key, variant, target, dynamic[variant]


def main():
    options = read_options()
    if not shutil.which("ptxas"):
        print("SKIPPED: no ptxas on the PATH")
        sys.exit(77)
    exceptions, tally, most = read_exceptions(options.exceptions), {"ok": 0, "known": 0, "FAIL": 0}, 0
    print(ROW.format("", "target", "registers", "static", "dynamic", "stored", "loaded", "variant"))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(assemble, options.kiln, options.config, folder, *row) for row in plan(options, folder)]
        for job in jobs:
            a = job.result()
            word, words = judge(a, exceptions)
            tally[word], most = tally[word] + 1, max(most, a.registers)
            print(ROW.format(word, a.target, a.registers or "?", a.static, a.dynamic, *a.spills, a.variant))
            if words:
                print("      " + words.rstrip().replace("\n", "\n      "))
    print(f"{len(jobs)} assemblies: {tally['ok']} without a spill, {tally['known']} with spills that are known, "
          f"{tally['FAIL']} failed; at most {most} registers")
    sys.exit(1 if tally["FAIL"] or not jobs else 0)


main()
