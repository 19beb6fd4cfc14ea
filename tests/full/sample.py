#!/usr/bin/env python3
"""Verifies a 23rd of tests/full.yaml's variants on one emulated target, one input at each size, with every check on.
Which part and which target follow from the number of commits: the same commit always runs the same, and 23 in a row run
them all.

usage: sample.py FULL_VERIFY EMULATOR REPOSITORY
"""
import os
import subprocess
import sys

PARTS = 23  # a prime: a step in the list of variants meets every value of every parameter
TARGETS = "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121".split()


def count_commits(repository):
    """0 in a folder that is no clone."""
    try:
        told = subprocess.run(["git", "-C", repository, "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return int(told.stdout) if told.returncode == 0 else 0


def main():
    verify, emulator, repository = sys.argv[1:]
    commits = count_commits(repository)
    part, target = commits % PARTS, TARGETS[commits % len(TARGETS)]
    print(f"{commits} commits: part {part} of {PARTS}, on {target}", flush=True)
    environment = dict(os.environ, KILN_EMU_DEVICE=target, KILN_EMU_CHECK="all")
    command = [verify, "--driver", emulator, "--sample", f"{part}/{PARTS}", "--inputs", "1", "--max-elements", "8192"]
    sys.exit(subprocess.run(command, env=environment).returncode)


main()
