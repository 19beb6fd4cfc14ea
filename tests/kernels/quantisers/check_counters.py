#!/usr/bin/env python3
"""Checks the emulated driver's counts of the quantisers: bytes moved over the minimum, and the used part of sectors. Compares
them with the manifest's cost.

usage: check_counters.py PROFILE MANIFEST WORD n=N[,group_size=G]...       (variants whose id contains WORD)

If the group size is an argument, tiles share scales, and only the ratios are checked. They leave out a nested scale's table of
1 KB, like tables of the module: each scale is looked up in it, and an L1 cache keeps it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters


def judge(count):
    stated = count.cost["bytes_read"], count.cost["bytes_written"]
    used = tuple(count.total("bytes_used", kinds=[kind]) for kind in ("read", "write"))
    shares_scales = count.params.get("group") == "any"
    names = count.arguments.keys() - {"nested_code"}
    return [
        counters.at_most("moved", count.moved_over(sum(stated), names), counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(names), counters.LEAST_USED),
        ("cost's bytes", "-", True) if shares_scales else counters.equal("cost's bytes", stated, used),
    ]


def main():
    profile, manifest, word, *sizes = sys.argv[1:]
    counters.check(profile, manifest, [word], lambda params: sizes, judge)


main()
