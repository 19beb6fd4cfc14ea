#!/usr/bin/env python3
"""Compares the emulated driver's counts of rmsnorm_q4k_gemv with the manifest's cost.

usage: check_gemv.py [--device DEVICE] PROFILE MANIFEST SHAPES WORD...
(a shape is NxK; variants whose id contains a word; without a device, each image is counted)

Each byte of the weights is read once by whole sectors, except that a warp's last rows may be read again. Every byte of the inputs
is read and every byte of the result is written. Each thread block reads x and gamma again, from the caches. Shared memory has no
conflicts. Shapes whose h does not fit on the device, or on the smallest one, are left out. Without a device, only variants with
one f32 vector take all shapes, and the others take the first: types only matter at input and output, and rows are distributed
alike.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters


def touched(count, kind):
    """Returns the bytes of the arguments that are read or written; None if a sector of them is not."""
    rows = [row for row in count.arguments.values() if row[kind]["sectors"]]
    whole = all(row[kind]["distinct_sectors"] == -(-row["bytes"] // 32) for row in rows)
    return sum(row["bytes"] for row in rows) if whole else None


ROOM = {"sm_75": 65536, "sm_80": 166912, "sm_86": 101376, "sm_90": 232448}  # bytes of shared memory
LEAST = {1: "sm_75", 2: "sm_75", 4: "sm_86"}  # device with the least shared memory that runs this many rows
MOST_WAVEFRONTS = 1.05
# With few rows, computing h matters: codes of two neighbours, and scales of lanes eight apart, are in the same banks.
MOST_WAVEFRONTS_OF_SHARES = 1.18
# Every second row begins in the middle of a sector if k is an odd number of super-blocks. Each of a tile's requests, of at most
# 512 bytes, then takes one more sector: 3 for the 36 sectors of a tile, 2 for the remaining 18 with chunk 1024.
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
    rows = int(count.params["rows"])  # a warp's rows, clamped to the last row
    copied = -(-count.args["n"] // rows) * rows * count.args["k"] // 256 * 144
    of_chunk, of_others = MOST_MOVED_BY_HALF_SECTORS
    most_moved, least_used = counters.MOST_MOVED, counters.LEAST_USED
    if count.args["k"] % 512:
        most_moved = of_chunk.get(count.params["chunk"], of_others)
        if count.case[3] != "sm_75":  # cp.async reads sectors twice if rows begin in the middle of a sector
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
