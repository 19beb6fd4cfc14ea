#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_gemv.py PROFILE MANIFEST SHAPES WORD...       (a shape is NxK; of the variants whose id holds a word)

Each byte of the weights is read once, by accesses that use whole sectors; every byte of the inputs is read and every one of
the result written; x and gamma come again for each warp, from the caches.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters


def touched(count, kind):
    """The bytes of the arguments that are read, or written; None when a sector of them is not."""
    rows = [row for row in count.arguments.values() if row[kind]["sectors"]]
    whole = all(row[kind]["distinct_sectors"] == -(-row["bytes"] // 32) for row in rows)
    return sum(row["bytes"] for row in rows) if whole else None


def judge(count):
    weights = count.args["n"] * count.args["k"] // 256 * 144
    return [
        counters.equal("read once", count.total("bytes_used", ["w"]), weights),
        counters.at_most("moved", count.moved_over(weights, ["w"]), counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED),
        counters.figure("per weight", count.executed / count.cost["elements"]),
        counters.model(count),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (touched(count, "read"), touched(count, "write"))),
    ]


def main():
    profile, manifest, shapes, *words = sys.argv[1:]

    def sizes(params):
        eps = ",eps=1e-5" if params["norm"] == "rms" else ""
        return ["n={},k={}".format(*shape.split("x")) + eps for shape in shapes.split(",")]

    counters.check(profile, manifest, words, sizes, judge)


main()
