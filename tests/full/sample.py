#!/usr/bin/env python3
"""Verifies a 31st of tests/full.yaml's variants on one emulated target, one input at each size, with every check on.
Which part and which target follow from the number of commits: the same commit always runs the same, and 31 in a row run
them all.

usage: sample.py build REPOSITORY KILN CONFIG CMAKE BUILD_DIR   writes CONFIG, the part of tests/full.yaml, and builds it
       sample.py verify REPOSITORY VERIFY EMULATOR              runs the program that was built
"""
import os
import pathlib
import re
import subprocess
import sys

PARTS = 31  # a prime: a step in the list of variants meets every value of every parameter
CALLS = ("a", "acc", "nibbles", "type", "head_dim", "causal", "format", "x", "y", "epilogue", "matrices", "scale",
         "activation")  # what callers name, of families with parameter split_k
TARGETS = "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121".split()


def count_commits(repository):
    """0 in a folder that is no clone."""
    try:
        told = subprocess.run(["git", "-C", repository, "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return int(told.stdout) if told.returncode == 0 else 0


def values(variant):
    return dict(pair.split("=") for pair in variant.partition("/")[2].split(","))


def unsplit(rows, variant):
    """The first variants for the same calls that share no sum between thread blocks: a family's function takes them where
    the workspace is too small for the others, so a bundle of parts needs one too."""
    def calls(other):
        return other.partition("/")[0], [values(other).get(name) for name in CALLS]
    return [row for row in rows if calls(row[0]) == calls(variant) and values(row[0]).get("split_k", "1") == "1"][:1]


def chosen(rows, part):
    """Every 31st of (variant, its targets); one that split_k no sum beside those that do; and where those of a family leave
    a target without one, the family's first that runs on all."""
    wanted, all_targets = rows[part::PARTS], set().union(*(targets for _, targets in rows))
    for variant, _ in rows[part::PARTS]:
        if values(variant).get("split_k", "1") != "1":
            wanted += [row for row in unsplit(rows, variant) if row not in wanted]
    for family in dict.fromkeys(variant.partition("/")[0] for variant, _ in wanted):
        of_family = [row for row in rows if row[0].partition("/")[0] == family]
        served = set().union(*(targets for variant, targets in of_family if (variant, targets) in wanted))
        if served != all_targets:
            wanted.append(next(row for row in of_family if row[1] == all_targets))
    return [variant for variant, _ in wanted]


def cut(full, listed, part):
    """The configuration of a part of the variants, each an item of its own."""
    targets = re.search("^targets: .*$", full.read_text(encoding="utf-8"), re.M)[0]
    rows = [(variant, set(where.split(","))) for _, variant, where in map(str.split, listed.splitlines())]
    items = []
    for variant in chosen(rows, part):
        family, _, params = variant.partition("/")
        pairs = [p.replace("=", ": ") for p in params.split(",")]
        items.append(f"  - {{{', '.join([f'family: {family}', *pairs])}}}\n")
    return f"bundle: kiln_sample\n{targets}\nkernels:\n{''.join(items)}"


def build(repository, kiln, config, cmake, build_dir):
    full, config = pathlib.Path(repository) / "tests/full.yaml", pathlib.Path(config)
    part = count_commits(repository) % PARTS
    listed = subprocess.run([kiln, "list", str(full)], check=True, capture_output=True, text=True).stdout
    text = cut(full, listed, part)
    if config.read_text(encoding="utf-8") != text:
        config.write_text(text, encoding="utf-8")
    print(f"part {part} of {PARTS}: {text.count('family:')} variants", flush=True)
    return subprocess.run([cmake, "--build", build_dir, "--target", "full_sample"]).returncode


def verify(repository, program, emulator):
    commits = count_commits(repository)
    target = TARGETS[commits % len(TARGETS)]
    print(f"{commits} commits: part {commits % PARTS} of {PARTS}, on {target}", flush=True)
    environment = dict(os.environ, KILN_EMU_DEVICE=target)
    command = [program, "--driver", emulator, "--inputs", "1", "--max-elements", "8192"]
    return subprocess.run(command, env=environment).returncode


sys.exit({"build": build, "verify": verify}[sys.argv[1]](*sys.argv[2:]))
