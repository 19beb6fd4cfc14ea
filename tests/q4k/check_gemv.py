#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves and executes, as the emulated driver counts it, and that the manifest's cost says the same.

usage: check_gemv.py [--device DEVICE] PROFILE MANIFEST SHAPES WORD...
(a shape is NxK; of the variants whose id holds a word; without a device, all images are counted, each on its own)

Each byte of the weights is read once, by accesses that use whole sectors; every byte of the inputs is read and every one of
the result written; x and gamma come again for each thread block, from the caches. The loop over the weights takes no more
instructions than its budget; shared memory is used without conflicts. Shapes whose h has no room on the device, or on the
least one, are left out. Without a device, types but f32, whose code differs at either end alone, take the first shape only.
"""
import argparse
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
BUDGETS = {"exact": {1: 3.1, 2: 2.9, 4: 2.9}, "q8": {1: 1.35, 2: 1.35, 4: 1.35}}
LOOP_ROWS, LOOP_K = 32, 2560  # the least named K: a single stage of a warp's only row, not full
ROOM = {"sm_75": 65536, "sm_80": 166912, "sm_86": 101376, "sm_90": 232448}  # bytes of shared memory
LEAST = {1: "sm_75", 2: "sm_75", 4: "sm_86"}  # with least of it, of those that take this many rows
MOST_WAVEFRONTS = 1.05
MOST_MOVED_BY_HALF_TILES = 1.04  # chunk 1024: twice as many tiles begin in the middle of a sector


def has_room(params, k, device):
    rows, batch = int(params["rows"]), int(params["batch"])
    stages = 18432 * rows * (2 if rows == 1 and batch <= 2 else 1)
    h = 8 * -(-min(k, int(params["chunk"])) // 512) * (80 if params["activation"] == "q8" else 272)
    return stages + batch * (1072 + h) <= ROOM[device or LEAST[rows]]


def size_of(params, n, k):
    return f"n={n},k={k}" + (",eps=1e-5" if params["norm"] == "rms" else "")


def loop(count):
    """Per weight: what more elements add to the rows of a thread block, less what they add to its h."""
    def executed(rows, k):
        return count.at(size_of(count.params, count.blocks * rows, k) + "@0-0").executed
    few, many = (executed(r, 2 * LOOP_K) - executed(r, LOOP_K) for r in (LOOP_ROWS, 2 * LOOP_ROWS))
    return (many - few) / (LOOP_ROWS * LOOP_K)


def loop_cell(count):
    """Once for a variant: where there are rows for all thread blocks that go at once."""
    activation, rows = count.params["activation"], int(count.params["rows"])
    is_full = count.args["n"] > 8 * rows * count.blocks
    if count.case[3] != "sm_80" or count.params["batch"] != "1" or count.params["chunk"] != "65536" or not is_full:
        return "loop", "-", True
    return counters.at_most("loop", loop(count), BUDGETS[activation][rows])


def judge(count):
    weights = count.args["n"] * count.args["k"] // 256 * 144
    half_tiles = count.params["chunk"] == "1024"
    return [
        counters.equal("read once", count.total("bytes_used", ["w"]), weights),
        counters.at_most("moved", count.moved_over(weights, ["w"]),
                         MOST_MOVED_BY_HALF_TILES if half_tiles else counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS),
        loop_cell(count),
        counters.figure("per weight", count.executed / count.cost["elements"]),
        counters.model(count),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (touched(count, "read"), touched(count, "write"))),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=ROOM)
    for name in "profile", "manifest", "shapes":
        parser.add_argument(name)
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes.split(",")]

    def sizes(params):
        fitting = [size_of(params, n, k) for n, k in shapes if has_room(params, k, options.device)]
        return fitting if options.device or params["x"] == params["y"] == "f32" else fitting[:1]

    counters.check(options.profile, options.manifest, options.words, sizes, judge,
                   lambda params: [options.device] if options.device else None)


main()
