#!/usr/bin/env python3
"""Checks the emulated driver's counts of the NF4 products: each argument's bytes follow from the tiles (weights once per tile
of rows); sectors and wavefronts of shared memory have limits.

usage: check_counters.py PROFILE MANIFEST TILES,N,K...      (M is TILES times the variant's tile_m)
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters

MOST_WAVEFRONTS = {"f32": 1.02, "f64": 1.15}  # f64: the sums
DEVICES = {"compact": None, "aligned": ["sm_87"]}  # an aligned table exceeds sm_75's shared memory


def expected_bytes(params, m, n, k):
    """Returns {argument: bytes that all thread blocks together read or write}."""
    size = 4 if params["a"] == "f32" else 2
    row_tiles, column_tiles = -(-m // int(params["tile_m"])), -(-n // int(params["tile_n"]))
    return {"in": size * m * k * column_tiles, "packed": n * k // 2 * row_tiles, "scale": 4 * n * (k // 64) * row_tiles,
            "out": size * m * n}


def judge(count):
    m, n, k = (count.args[name] for name in "mnk")
    used = {name: count.total("bytes_used", [name]) for name in count.arguments}
    sizes = {name: row["bytes"] for name, row in count.arguments.items()}
    weights = used["packed"] + used["scale"]
    return [
        counters.equal("bytes", used, expected_bytes(count.params, m, n, k)),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (sizes["in"] + sizes["packed"] + sizes["scale"], sizes["out"])),
        counters.at_most("weights moved", count.moved_over(weights, ["packed", "scale"]), counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS[count.params["acc"]]),
    ]


def main():
    profile, manifest, *shapes = sys.argv[1:]

    def sizes(params):
        shaped = [list(map(int, shape.split(","))) for shape in shapes]
        return [f"m={tiles * int(params['tile_m'])},n={n},k={k},workspace_size=0" for tiles, n, k in shaped]

    counters.check(profile, manifest, ["nf4_gemm/*low,strategy=simt", "nf4_gemm/*high,strategy=simt"], sizes, judge, lambda params: DEVICES[params["table"]])


main()
