#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_gemv.py PROFILE MANIFEST SHAPES WORD...       (a shape is NxK; of the variants whose id holds a word)

Each byte of the weights is read once, by accesses that use whole sectors; every byte of the inputs is read and every one of
the result written; x and gamma come again for each thread block, from the caches. The loop over the weights takes no more
instructions than its budget; shared memory is used without conflicts. Shapes whose h has no room on sm_75 are left out.
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


# Thread instructions per weight in the loop, of one vector; the fewer rows share h's loads, the more.
BUDGETS = {"exact": {1: 3.15, 2: 3, 4: 2.9}, "q8": {1: 1.42, 2: 1.35, 4: 1.35}}
ROOM = {1: 65536, 2: 65536, 4: 101376}  # bytes of shared memory on the least device that takes this many rows
MOST_WAVEFRONTS, MOST_WAVEFRONTS_OF_FEW = 1.05, 1.07  # few rows: the codes of h are stored with conflicts
MOST_MOVED_BY_HALF_TILES = 1.04  # chunk 1024: twice as many tiles begin in the middle of a sector


def has_room(params, k):
    rows, batch = int(params["rows"]), int(params["batch"])
    stages = 18432 * rows * (2 if rows == 1 and batch <= 2 else 1)
    h = min(k, int(params["chunk"])) // 64 * (80 if params["activation"] == "q8" else 272)
    return stages + batch * (1072 + h) <= ROOM[rows]


def size_of(params, n, k):
    return f"n={n},k={k}" + (",eps=1e-5" if params["norm"] == "rms" else "")


def loop(count):
    """Per weight: what more elements add to the rows of a thread block, less what they add to its h."""
    def executed(rows, k):
        return count.at(size_of(count.params, blocks * rows, k) + "@0-0").executed
    blocks = count.at(size_of(count.params, 65536, 256) + "@0-0").blocks
    rows, k = 32, 2048 * (2 if has_room(count.params, 8192) else 1)
    few, many = (executed(r, 2 * k) - executed(r, k) for r in (rows, 2 * rows))
    return (many - few) / (rows * k)


def loop_cell(count):
    target = count.case[3]
    if target != "sm_80" or count.params["batch"] != "1" or count.params["chunk"] != "65536":
        return "loop", "-", True
    return counters.at_most("loop", loop(count), BUDGETS[count.params["activation"]][int(count.params["rows"])])


def judge(count):
    weights = count.args["n"] * count.args["k"] // 256 * 144
    few = count.args["n"] < 16 * count.blocks
    half_tiles = count.params["chunk"] == "1024"
    return [
        counters.equal("read once", count.total("bytes_used", ["w"]), weights),
        counters.at_most("moved", count.moved_over(weights, ["w"]),
                         MOST_MOVED_BY_HALF_TILES if half_tiles else counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(),
                         MOST_WAVEFRONTS_OF_FEW if few else MOST_WAVEFRONTS),
        loop_cell(count),
        counters.figure("per weight", count.executed / count.cost["elements"]),
        counters.model(count),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (touched(count, "read"), touched(count, "write"))),
    ]


def main():
    profile, manifest, shapes, *words = sys.argv[1:]

    def sizes(params):
        pairs = (tuple(map(int, shape.split("x"))) for shape in shapes.split(","))
        return [size_of(params, n, k) for n, k in pairs if has_room(params, k)]

    counters.check(profile, manifest, words, sizes, judge)


main()
