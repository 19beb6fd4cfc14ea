#!/usr/bin/env python3
"""Tests that the generator refuses variants that no device could run.

usage: check_refused.py KILN FAMILY REFUSED

A line of REFUSED is TARGET | PARAMETERS | words of the message.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def is_refused(kiln, family, target, params, words):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "refused.yaml")
        config.write_text(f"bundle: refused\ntargets: [{target}]\nkernels:\n  - {{family: {family}, {params}}}\n",
                          encoding="utf-8")
        done = subprocess.run([kiln, "generate", config, "--output", folder], capture_output=True, text=True, check=False)
        fine = done.returncode == 1 and words in done.stderr and os.listdir(folder) == ["refused.yaml"]
    if not fine:
        print(f"WRONG {params}: exit {done.returncode}, {done.stderr}")
    return fine


def main():
    kiln, family, path = sys.argv[1:]
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    cases = [map(str.strip, line.split("|")) for line in lines if line and not line.startswith("#")]
    refused = sum(is_refused(kiln, family, *case) for case in cases)
    print(f"{refused} of {len(cases)} refused")
    sys.exit(refused != len(cases) or not cases)


main()
