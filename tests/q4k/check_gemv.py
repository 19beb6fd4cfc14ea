#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves, as the emulated driver counts it, and that the manifest's cost says so too.

usage: check_gemv.py [--device DEVICE] PROFILE MANIFEST SHAPES WORD...
(a shape is NxK; of the variants whose id holds a word; without a device, all images are counted, each on its own)

Each byte of the weights is read once, by accesses that use whole sectors; every byte of the inputs is read and every one
of the result written; x and gamma come again for each thread block, from the caches. Shared memory is used without conflicts. Shapes whose h has no room on the device, or on
the least one, are left out. Without a device, all but one vector of f32 take the first shape only: types matter at either
end alone, and rows are shared out alike for more vectors.
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


def judge(count):
    weights = count.args["n"] * count.args["k"] // 256 * 144
    half_tiles = count.params["chunk"] == "1024"
    return [
        counters.equal("read once", count.total("bytes_used", ["w"]), weights),
        counters.at_most("moved", count.moved_over(weights, ["w"]),
                         MOST_MOVED_BY_HALF_TILES if half_tiles else counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(kinds=["read"]), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS),
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
        is_plain = params["x"] == params["y"] == "f32" and params["batch"] == "1"
        return fitting if options.device or is_plain else fitting[:1]

    counters.check(options.profile, options.manifest, options.words, sizes, judge,
                   lambda params: [options.device] if options.device else None)


main()
