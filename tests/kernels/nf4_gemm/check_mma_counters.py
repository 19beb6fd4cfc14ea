#!/usr/bin/env python3
"""Checks the emulated driver's counts of nf4_gemm's strategy mma: each argument's bytes follow from the tiles (weights once per
tile of rows); sectors and wavefronts of shared memory have limits.

usage: check_mma_counters.py PROFILE MANIFEST TILES,N,K[@FIRST-LAST]...      (M is TILES times the variant's tile_m)
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters

MOST_WAVEFRONTS = 1.05
# With 8 k_warps or tile_n 128, 16 scales are copied at once. The rest of their sector is read later, from the L2 cache.
MOST_MOVED_16 = 1.03
MOST_MOVED_8 = 1.06  # tile_m 128: 8 scales fill a sector, but may cross a sector's border
MOST_MOVED_SPLIT = 1.07  # a part of K may begin and end inside a sector of scales


def tiles(count):
    number = {name: int(count.params[name]) for name in ("tile_m", "tile_n", "split_k")}
    return -(-count.args["m"] // number["tile_m"]), -(-count.args["n"] // number["tile_n"]), number


def shared_parts(count):
    """Returns the tiles that several thread blocks share with stream-K."""
    rows, columns, _ = tiles(count)
    blocks = count.args["k"] // 64
    each, parts = -(-rows * columns * blocks // count.blocks), 0
    for tile in range(rows * columns):
        first, last = tile * blocks // each, (tile * blocks + blocks - 1) // each
        parts += last - first + 1 if last > first else 0
    return parts


def expected_bytes(count):
    """Returns {argument: bytes that all thread blocks together read and write}."""
    m, n, k = (count.args[name] for name in "mnk")
    rows, columns, number = tiles(count)
    out = {"in": 2 * m * k * columns, "packed": n * k // 2 * rows, "scale": 4 * n * (k // 64) * rows, "out": 2 * m * n}
    if number["split_k"] == 0:
        parts = shared_parts(count)
        out["workspace"] = 8 * parts * number["tile_m"] * number["tile_n"]
        out["tile_counters"] = 4 * parts
    if number["split_k"] > 1:  # partial sums are written once and read once; one thread per part increments tile_counters
        out["workspace"] = 8 * rows * columns * number["split_k"] * number["tile_m"] * number["tile_n"]
        out["tile_counters"] = 4 * rows * columns * number["split_k"]
    return out


def judge(count):
    used = {name: count.total("bytes_used", [name]) for name in count.arguments}
    weights = used["packed"] + used["scale"]
    has_16 = (count.params["tile_n"], count.params["k_warps"]) == ("64", "8") or (
        count.params["tile_n"] == "128" and count.params["table"] == "compact")
    most_moved = (MOST_MOVED_SPLIT if int(count.params["split_k"]) != 1 else
                  MOST_MOVED_8 if count.params["tile_m"] == "128" else MOST_MOVED_16 if has_16 else counters.MOST_MOVED)
    inputs = sum(count.arguments[name]["bytes"] for name in ("in", "packed", "scale"))
    stated = count.cost["bytes_read"], count.cost["bytes_written"]
    return [
        counters.equal("bytes", used, expected_bytes(count)),
        counters.equal("cost's", stated, (inputs, count.arguments["out"]["bytes"])),
        counters.at_most("weights", count.moved_over(weights, ("packed", "scale")), most_moved),
        counters.at_least("use", count.sector_use(("in", "packed", "scale", "out")), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS),
    ]


def sizes_of(params, shapes):
    for shape in shapes:
        row_tiles, n, k = map(int, shape.split(","))
        tile_m, tile_n, split_k = (int(params[name]) for name in ("tile_m", "tile_n", "split_k"))
        count = row_tiles * -(-n // tile_n)
        if split_k == 0 and k < 64 * 64:  # eight thread blocks share a tile, so that each has more than a few sectors of scales
            k *= 4
        parts = {0: 2 * min(8 * count, 320), 1: 0}.get(split_k, count * split_k)
        workspace = parts * tile_m * tile_n
        yield f"m={row_tiles * tile_m},n={n},k={k},workspace_size={workspace}"


def main():
    profile, manifest, *shapes = sys.argv[1:]
    counters.check(profile, manifest, ["nf4_gemm/*low,strategy=mma", "nf4_gemm/*high,strategy=mma"], lambda params: sizes_of(params, shapes), judge)


main()
