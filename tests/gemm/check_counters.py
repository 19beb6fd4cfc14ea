#!/usr/bin/env python3
"""What the NF4 products move and execute, as the emulated driver counts it: each argument's bytes exactly as the tiles
say (weights once per tile of rows), sectors, instructions within 2 % of the manifest's cost.

usage: check_counters.py PROFILE MANIFEST TILES,N,K...      (M is TILES times the variant's tile_m)
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters

# A column's scales start in the middle of a sector where K is no multiple of 512: eight of them take two.
MOST_MOVED_UNALIGNED = 1.07
MOST_WAVEFRONTS = {"f32": 1.0, "f64": 1.15}  # of the sums


def expected_bytes(params, m, n, k):
    """{argument: bytes that all thread blocks together read or write}"""
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
        counters.at_most("weights moved", count.moved_over(weights, ["packed", "scale"]),
                         counters.MOST_MOVED if k % 512 == 0 else MOST_MOVED_UNALIGNED),
        counters.at_least("use", count.sector_use(), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS[count.params["acc"]]),
        counters.figure("per weight", count.executed / (n * k)),
        counters.model(count),
    ]


def main():
    profile, manifest, *shapes = sys.argv[1:]

    def sizes(params):
        shaped = [list(map(int, shape.split(","))) for shape in shapes]
        return [f"m={tiles * int(params['tile_m'])},n={n},k={k}" for tiles, n, k in shaped]

    counters.check(profile, manifest, ["nf4_gemm/"], sizes, judge)


main()
