#!/usr/bin/env python3
"""Checks the emulated driver's counts of the transposed NF4 products: each argument's bytes follow from the tiles (weights once
per tile of rows); sectors and wavefronts have limits.

usage: check_counters.py PROFILE MANIFEST TILES,N,K...      (M is TILES times the variant's tile_m)
"""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))
import counters  # pylint: disable=wrong-import-position

TILE_K = 512
MOST_WAVEFRONTS = 1.05
# A tile's eight scales of a column cross two sectors if the column's scales begin in the middle of a sector (K not a multiple
# of 512). The neighbouring thread block reads both sectors at about the same time: the second read hits the L2 cache, and
# memory is read once per sector, as "distinct" shows.
MOST_MOVED_UNALIGNED, LEAST_USED_UNALIGNED = 1.06, 0.94


def workspace_size(params, m, k):
    tiles = -(-m // int(params["tile_m"])) * -(-k // TILE_K)
    split_k = int(params["split_k"])
    return 0 if split_k == 1 else tiles * split_k * int(params["tile_m"]) * TILE_K


def expected_bytes(params, m, n, k):
    """Returns {argument: bytes that all thread blocks together read or write}; partial sums are written and read."""
    size, wide = 4 if params["a"] == "f32" else 2, 8 if params["acc"] == "f64" else 4
    row_tiles, column_tiles = -(-m // int(params["tile_m"])), -(-k // TILE_K)
    expected = {"in": size * m * n * column_tiles, "packed": n * k // 2 * row_tiles,
                "scale": 4 * n * (k // 64) * row_tiles, "out": size * m * k}
    if params["split_k"] != "1":
        expected |= {"workspace": 2 * wide * workspace_size(params, m, k),
                     "tile_counters": 4 * int(params["split_k"]) * row_tiles * column_tiles}
    return expected


def judge(count):
    m, n, k = (count.args[name] for name in "mnk")
    used = {name: count.total("bytes_used", [name]) for name in count.arguments}
    sizes = {name: row["bytes"] for name, row in count.arguments.items()}
    weights = used["packed"] + used["scale"]
    distinct = 32 * count.total("distinct_sectors", ["packed", "scale"])
    is_aligned = k % TILE_K == 0
    inputs = ["in", "packed", "scale"]
    return [
        counters.equal("bytes", used, expected_bytes(count.params, m, n, k)),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (sum(sizes[name] for name in inputs), sizes["out"])),
        counters.at_most("weights moved", count.moved_over(weights, ["packed", "scale"]),
                         counters.MOST_MOVED if is_aligned else MOST_MOVED_UNALIGNED),
        counters.at_most("distinct", distinct / (sizes["packed"] + sizes["scale"]), counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(inputs),
                          counters.LEAST_USED if is_aligned else LEAST_USED_UNALIGNED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS),
    ]


def main():
    profile, manifest, *shapes = sys.argv[1:]

    def sizes(params):
        for tiles, n, k in (map(int, shape.split(",")) for shape in shapes):
            m = tiles * int(params["tile_m"])
            yield (f"m={m},n={n},k={k},workspace_size={workspace_size(params, m, k)},"
                   f"normal_scales={int(params['scales'] == 'normal')}")

    counters.check(profile, manifest, ["nf4_gemm_transposed/"], sizes, judge)


main()
