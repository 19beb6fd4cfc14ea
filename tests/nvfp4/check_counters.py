#!/usr/bin/env python3
"""What nvfp4_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_counters.py PROFILE MANIFEST SHAPE,... WORD...    (of the variants whose id holds a word; a shape is MxKxL, or
                                                              MxKxL@FIRST-LAST for these thread blocks alone)

The bytes of a are read once, by accesses that use whole sectors, those of b once per thread block. Thread instructions along
k are held to the loop's budget per weight and to what decoding b adds to it, which the rows of a thread block share. Of
others than these the loop is not to be told from the rest: warps that share a row have a part of a turn to themselves.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters

# Per weight, by kernels' budgets, and of 32 codes of b.
LOOP = {("simt", "software"): 2.2, ("simt", "hardware"): 1.7, ("mma", "software"): 1.7, ("mma", "hardware"): 1.2}
DECODING = {("simt", "software"): 79, ("simt", "hardware"): 41, ("mma", "software"): 105, ("mma", "hardware"): 42}


def sizes_of(m, k, l):
    return f"m={m},k={k},l={l},b_rows=1"


def along_k(count, rows):
    """Thread instructions per weight of a thread block, without those that come once for each row."""
    near, far = (count.at(sizes_of(rows, k, 1)).executed for k in (4096, 8192))
    return (far - near) / (rows * 4096)


def judge(count):
    m, k, l = (count.args[name] for name in "mkl")
    lane_codes, rows, k_warps = (int(count.params[name]) for name in ("lane_codes", "rows", "k_warps"))
    way = count.params["strategy"], count.params["decode"]
    codes = k // 2 + k // 16
    matrices = count.part * m * l * codes
    turn = 512 if rows >= 16 else 32 * lane_codes * max(4 // rows, k_warps)
    # else lanes beyond the end read the last codes again, and warps beyond it the last row
    is_whole = k % turn == 0 and (count.part < 1 or m % (8 // k_warps * rows) == 0)
    is_held = lane_codes == 32 and (rows >= 4 and k_warps <= 2 or k_warps == 1 and "software" in way)
    budget = LOOP[way] + DECODING[way] / (32 * 8 // k_warps * rows) if is_held else float("inf")
    return [
        counters.at_least("a read once", count.total("bytes_used", ["a", "sfa"]) / matrices, 1),
        counters.at_most("moved", count.moved_over(matrices, ["a", "sfa"]), counters.MOST_MOVED if is_whole else 3),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED if is_whole else 0.3),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), 1.05),
        counters.at_most("along k", along_k(count, 8 // k_warps * rows), budget),
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
            if k % (512 if params["strategy"] == "mma" else int(params["lane_codes"])) == 0:
                yield sizes_of(m, k, l) + ("@" + blocks if blocks else "")

    counters.check(profile, manifest, words, sizes, judge)


main()
