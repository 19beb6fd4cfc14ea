#!/usr/bin/env python3
"""Compares the emulated driver's counts of nvfp4_gemv and fp4_quantize with the manifest's cost.

usage: check_counters.py PROFILE MANIFEST SHAPE,... WORD...    (variants whose id contains a word; a shape is MxKxL, or
                                                              MxKxL@FIRST-LAST for only these thread blocks)

The bytes of a are read once, by whole sectors, and the bytes of b once per thread block. With tiled scales, a sector has the
scales of eight rows: a warp of strategy simt uses four, and the next warp gets the others from the L1 cache. A warp's part of
k may begin inside a sector. A quantiser moves each byte once, by whole sectors; its shapes are MxKx1.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters

def sizes_of(m, k, l):
    return f"m={m},k={k},l={l},b_rows=1"


def quantiser_sizes(m, k, params):
    return f"m={m},k={k}" + (",global_scale=9" if params["format"] == "nvfp4" else "")


def judge_quantiser(count):
    """Rows with an odd number of blocks begin inside a sector."""
    is_whole = count.args["k"] % 128 == 0
    whole = count.part * (count.cost["bytes_read"] + count.cost["bytes_written"])
    return [
        counters.at_most("moved", count.moved_over(whole), counters.MOST_MOVED if is_whole else 1.4),
        counters.at_least("use", count.sector_use(), counters.LEAST_USED if is_whole else 0.7),
        counters.equal("cost's bytes", count.cost["bytes_written"],
                       count.arguments["packed"]["bytes"] + count.arguments["scale"]["bytes"]),
    ]


def rows_taken(count, is_tiled):
    """Counts the first thread blocks, which do equal work, or all."""
    m, rows = count.args["m"], int(count.params["rows"])
    if count.part == 1:
        return m * count.args["l"]
    together = rows if rows < 8 else 2 if is_tiled else 1
    share = -(-m // count.profile["report"]["grid"][0])
    return round(count.part * count.blocks) * -(-share // together) * together


def judge(count):
    if "encode" in count.params:
        return judge_quantiser(count)
    m, k, l = (count.args[name] for name in "mkl")
    lane_codes, rows, k_warps = (int(count.params[name]) for name in ("lane_codes", "rows", "k_warps"))
    codes = k // 2 + k // 16
    is_tiled = count.params.get("scale_layout") == "tiles_128x4"
    matrices = rows_taken(count, is_tiled) * codes
    turn = 512 if rows >= 16 else 32 * lane_codes * max(4 // rows, k_warps)
    # else lanes past the end read the last codes again, and warps past the end read the last row
    is_whole = k % turn == 0 and (count.part < 1 or m % (8 // k_warps * rows) == 0)
    most_moved, least_used = counters.MOST_MOVED, counters.LEAST_USED
    if is_tiled:
        most_moved, least_used = (1.12, 0.88) if rows < 8 else (1.05, 0.95)
    return [
        counters.at_least("a read once", count.total("bytes_used", ["a", "sfa"]) / matrices, 1),
        counters.at_most("moved", count.moved_over(matrices, ["a", "sfa"]), most_moved if is_whole else 3),
        counters.at_least("use", count.sector_use(kinds=["read"]), least_used if is_whole else 0.3),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), 1.05),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       ((m * l + l) * codes, count.arguments["out"]["bytes"])),
    ]


def main():
    profile, manifest, shapes, *words = sys.argv[1:]

    def sizes(params):
        for shape in shapes.split(","):
            whole, _, blocks = shape.partition("@")
            m, k, l = map(int, whole.split("x"))
            if "encode" in params:
                yield quantiser_sizes(m, k, params)
                continue
            if k % (512 if params["strategy"] == "mma" else int(params["lane_codes"])) == 0:
                yield sizes_of(m, k, l) + ("@" + blocks if blocks else "")

    counters.check(profile, manifest, words, sizes, judge)


main()
