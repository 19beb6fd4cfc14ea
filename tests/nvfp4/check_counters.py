#!/usr/bin/env python3
"""What nvfp4_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_counters.py PROFILE MANIFEST SHAPE,... WORD...    (of the variants whose id holds a word; a shape is MxKxL, or
                                                              MxKxL@FIRST-LAST for these thread blocks alone)

The bytes of a are read once, by accesses that use whole sectors, those of b once per thread block. Instructions along k are
held to a budget where a warp has four rows: they are the loop's (at most 2.08 and 1.69 per weight), and what decoding b adds
when 32 rows share it (0.08 and 0.04).
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters

BUDGET = {"software": 2.2, "hardware": 1.75}


def sizes_of(m, k, l):
    return f"m={m},k={k},l={l},b_rows=1"


def along_k(count):
    """Thread instructions per weight, without those that come once for each row."""
    rows = 64
    near, far = (count.at(sizes_of(rows, k, 1)).executed for k in (4096, 8192))
    return (far - near) / (rows * 4096)


def judge(count):
    m, k, l = (count.args[name] for name in "mkl")
    codes = k // 2 + k // 16
    matrices = count.part * m * l * codes
    turn = 32 * int(count.params["lane_codes"]) * max(4 // int(count.params["rows"]), int(count.params["warps"]))
    is_whole = k % turn == 0  # else lanes beyond the end read the last codes again
    budget = BUDGET[count.params["decode"]] if count.params["rows"] == "4" else float("inf")
    return [
        counters.at_least("a read once", count.total("bytes_used", ["a", "sfa"]) / matrices, 1),
        counters.at_most("moved", count.moved_over(matrices, ["a", "sfa"]), counters.MOST_MOVED if is_whole else 3),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED if is_whole else 0.3),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), 1.0),
        counters.at_most("along k", along_k(count), budget),
        counters.figure("per weight", count.executed / (count.part * count.cost["elements"])),
        counters.model(count),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       ((m * l + l) * codes, count.arguments["out"]["bytes"])),
    ]


def main():
    profile, manifest, shapes, *words = sys.argv[1:]

    def sizes(params):
        for shape in shapes.split(","):
            whole, _, blocks = shape.partition("@")
            m, k, l = map(int, whole.split("x"))
            if k % int(params["lane_codes"]) == 0:
                yield sizes_of(m, k, l) + ("@" + blocks if blocks else "")

    counters.check(profile, manifest, words, sizes, judge)


main()
