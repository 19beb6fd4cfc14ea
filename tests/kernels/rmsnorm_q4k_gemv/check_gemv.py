#!/usr/bin/env python3
"""What rmsnorm_q4k_gemv moves, as the emulated driver counts it, and that the manifest's cost says so too.

usage: check_gemv.py [--device DEVICE] PROFILE MANIFEST SHAPES WORD...
(a shape is NxK; of the variants whose id holds a word; without a device, all images are counted, each on its own)

Each byte of the weights is read once (of a warp's last rows again), by accesses that use whole sectors; every byte of the inputs is read and every one
of the result written; x and gamma come again for each thread block, from the caches. Shared memory is used without conflicts. Shapes whose h has no room on the device, or on
the least one, are left out. Without a device, all but one vector of f32 take the first shape only: types matter at either
end alone, and rows are shared out alike for more vectors.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters


def touched(count, kind):
    """The bytes of the arguments that are read, or written; None when a sector of them is not."""
    rows = [row for row in count.arguments.values() if row[kind]["sectors"]]
    whole = all(row[kind]["distinct_sectors"] == -(-row["bytes"] // 32) for row in rows)
    return sum(row["bytes"] for row in rows) if whole else None


ROOM = {"sm_75": 65536, "sm_80": 166912, "sm_86": 101376, "sm_90": 232448}  # bytes of shared memory
LEAST = {1: "sm_75", 2: "sm_75", 4: "sm_86"}  # with least of it, of those that take this many rows
MOST_WAVEFRONTS = 1.05
# Where rows are few, making h counts: codes of two neighbours' shares, and numbers of lanes eight apart, are in the same banks.
MOST_WAVEFRONTS_OF_SHARES = 1.18
# Every second row begins in the middle of a sector where k is an odd number of super-blocks. There each of a tile's requests, of
# 512 bytes at most, takes a sector more: 3 for the 36 of a tile, 2 for the 18 that are left of it with chunk 1024.
MOST_MOVED_BY_HALF_SECTORS = {"1024": 1.06}, 1.045


def has_room(params, k, device):
    rows, batch = int(params["rows"]), int(params["batch"])
    stage = 8 * 1152 * rows
    stages = max(2, (9216 if batch > 4 else 18432) // stage + 1)
    share = batch * (80 if params["activation"] == "q8" else 272) | 16
    shares = -(-min(k, int(params["chunk"])) // 256) * 4 * share
    return stages * stage + 1056 * batch + 32 + shares <= ROOM[device or LEAST[rows]]


def size_of(params, n, k):
    return f"n={n},k={k}" + (",eps=1e-5" if params["norm"] == "rms" else "")


def judge(count):
    rows = int(count.params["rows"])  # of a warp: those beyond the last are the last one again
    copied = -(-count.args["n"] // rows) * rows * count.args["k"] // 256 * 144
    of_chunk, of_others = MOST_MOVED_BY_HALF_SECTORS
    most_moved, least_used = counters.MOST_MOVED, counters.LEAST_USED
    if count.args["k"] % 512:
        most_moved = of_chunk.get(count.params["chunk"], of_others)
        if count.case[3] != "sm_75":  # cp.async asks twice for the sectors of rows that begin in the middle of one
            most_moved, least_used = 1.5 * most_moved, 0.7
    return [
        counters.equal("read once", count.total("bytes_used", ["w"]), copied),
        counters.at_most("moved", count.moved_over(copied, ["w"]), most_moved),
        counters.at_least("use", count.sector_use(kinds=["read"]), least_used),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(),
                         MOST_WAVEFRONTS_OF_SHARES if count.args["n"] < 64 else MOST_WAVEFRONTS),
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
