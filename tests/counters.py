"""Shared by the checks of kernels' counters: runs kiln-profile over variants x images x sizes, and prints a table row for each,
the last line and the exit status. A check gives a variant's sizes and turns counts into a list of cells.

A size is a text for kiln-profile's --args. SIZE@FIRST-LAST runs only these thread blocks, for shapes that take too long
as a whole; compare their counts with `part` of the launch's cost.
"""
import concurrent.futures
import fnmatch
import json
import math
import os
import subprocess
import sys

MOST_MOVED, LEAST_USED = 1.02, 0.95
KINDS = "read", "write", "atomic"


class Count:
    """The counts of a variant's image at one size, from the member `profile` of kiln-profile --json."""

    def __init__(self, case, profile):
        self.case, self.profile = case, profile
        _, _, self.variant, _, size = case
        self.params, self.args, self.cost = parameters(self.variant), profile["args"], profile["cost"]
        self.executed = profile["instructions"]["thread"]
        self.arguments = {row["name"]: row for row in profile["allocations"] if row["is_argument"]}
        self.blocks = math.prod(profile["report"]["grid"])
        first, _, last = (size.partition("@")[2] or f"0-{self.blocks - 1}").partition("-")
        self.part = (min(int(last) + 1, self.blocks) - int(first)) / self.blocks

    def total(self, counter, names=None, kinds=KINDS):
        """Sums over the arguments with these names, or over all arguments. Tables of the module do not count."""
        return sum(self.arguments[name][kind][counter] for name in names or self.arguments for kind in kinds)

    def moved_over(self, compulsory, names=None, kinds=KINDS):
        return 32 * self.total("sectors", names, kinds) / compulsory

    def sector_use(self, names=None, kinds=KINDS):
        return self.total("bytes_used", names, kinds) / (32 * self.total("sectors", names, kinds))

    def wavefronts_over_ideal(self, kinds=KINDS):
        """Returns the ratio for shared memory; 1 if the kernel does not access it."""
        ideal = sum(self.profile["shared"][kind]["ideal_wavefronts"] for kind in kinds)
        return sum(self.profile["shared"][kind]["wavefronts"] for kind in kinds) / ideal if ideal else 1.0


# ---- cells: heading, text, and whether the bound is kept ----

def figure(heading, value):
    return heading, f"{value:.4f}", True


def at_most(heading, value, bound):
    return heading, f"{value:.4f}", value <= bound


def at_least(heading, value, bound):
    return heading, f"{value:.4f}", value >= bound


def equal(heading, found, expected):
    return heading, "equal" if found == expected else f"{found}, not {expected}", found == expected


# ---- runs ----

def parameters(variant):
    return dict(pair.split("=") for pair in variant.partition("/")[2].split(","))


def run(profile, manifest, variant, target, size):
    args, _, blocks = size.partition("@")
    environment = dict(os.environ, PATH="")  # without ptxas, which would only take time
    if blocks:
        environment["KILN_EMU_BLOCKS"] = blocks
    done = subprocess.run([profile, manifest, "--variant", variant, "--target", target, "--args", args, "--json"],
                          stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{variant} on {target}, {size}: kiln-profile ended with status {done.returncode}")
    return Count((profile, manifest, variant, target, size), json.loads(done.stdout))


def print_table(rows):
    lines = [["variant", "target", "size", *(heading for heading, _, _ in rows[0][1])]]
    for count, cells in rows:
        lines.append([*count.case[2:], *(text + "!" * (not fine) for _, text, fine in cells)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print(*(cell.ljust(w) if i < 3 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))), sep="  ")


def check(profile, manifest, words, sizes, judge, devices=lambda params: None):
    """Counts each image at each size, for the variants whose id contains one of the words; * in a word matches any text.
    sizes(parameters) lists the sizes; judge(count) returns the cells, with the same headings for all. If devices(parameters)
    lists devices, only the images that run there are counted. Marks a value beyond its bound with !, and ends the program."""
    with open(manifest, encoding="utf-8") as file:
        variants = json.load(file)["variants"]
    cases = [(profile, manifest, v["id"], target, size) for v in variants if any(fnmatch.fnmatchcase(v["id"], f"*{word}*") for word in words)
             for target in devices(parameters(v["id"])) or [image["target"] for image in v["images"]]
             for size in sizes(parameters(v["id"]))]
    if not cases:
        sys.exit(f"{manifest} has no variant with {' or '.join(words)} in its id")

    def row(case):
        count = run(*case)
        return count, judge(count)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(row, cases))
    print_table(rows)
    right = sum(all(fine for _, _, fine in cells) for _, cells in rows)
    print(f"{right} of {len(rows)} within the bounds")
    sys.exit(right != len(rows))
