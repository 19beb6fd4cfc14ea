#!/usr/bin/env python3
"""What nf4_gemm's strategy mma moves and executes, as the emulated driver counts it: each argument's bytes exactly as the
tiles say (weights once per tile of rows), sectors, wavefronts of shared memory, the loop's thread instructions per weight
beside products against the budget, and all of them against the manifest's cost.

usage: check_mma_counters.py PROFILE MANIFEST TILES,N,K[@FIRST-LAST]...      (M is TILES times the variant's tile_m)
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import counters

MOST_WAVEFRONTS = 1.05
LOOP = 4096  # of K, between two sizes: what comes once per thread block falls away
# Thread instructions per weight and tile of rows: with mma for up to 8 rows, else without it.
BUDGET, BUDGET_WINDOW, BUDGET_WIDE = 2.0, 1.6, 3.0


def tiles(count):
    number = {name: int(count.params[name]) for name in ("tile_m", "tile_n", "splits")}
    return -(-count.args["m"] // number["tile_m"]), -(-count.args["n"] // number["tile_n"]), number


def expected_bytes(count):
    """{argument: bytes that all thread blocks together read and write}"""
    m, n, k = (count.args[name] for name in "mnk")
    rows, columns, number = tiles(count)
    out = {"in": 2 * m * k * columns, "packed": n * k // 2 * rows, "scale": 4 * n * (k // 64) * rows, "out": 2 * m * n}
    if number["splits"] > 1:  # partial sums are written once and read once; arrivals, counted by one thread per part
        out["workspace"] = 8 * rows * columns * number["splits"] * number["tile_m"] * number["tile_n"]
        out["arrivals"] = 4 * rows * columns * number["splits"]
    return out


def loop_per_weight(count):
    """Of one tile of rows; for more than 8 of them less its products, which cost what the tensor units do anyway."""
    longer = count.at(",".join(f"{name}={value + LOOP * (name == 'k')}" for name, value in count.args.items()))
    weights = tiles(count)[0] * count.args["n"] * LOOP
    mma = 32 * (longer.profile["instructions"]["products"] - count.profile["instructions"]["products"])
    rest = longer.executed - count.executed - (mma if int(count.params["tile_m"]) > 8 else 0)
    return rest / weights


def budget(params):
    return BUDGET_WIDE if int(params["tile_m"]) > 8 else BUDGET_WINDOW if params["table"] == "window" else BUDGET


def judge(count):
    used = {name: count.total("bytes_used", [name]) for name in count.arguments}
    weights = used["packed"] + used["scale"]
    inputs = sum(count.arguments[name]["bytes"] for name in ("in", "packed", "scale"))
    stated = count.cost["bytes_read"], count.cost["bytes_written"]
    return [
        counters.equal("bytes", used, expected_bytes(count)),
        counters.equal("cost's", stated, (inputs, count.arguments["out"]["bytes"])),
        counters.at_most("weights", count.moved_over(weights, ("packed", "scale")), counters.MOST_MOVED),
        counters.at_least("use", count.sector_use(("in", "packed", "scale", "out")), counters.LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), MOST_WAVEFRONTS),
        counters.at_most("loop", loop_per_weight(count), budget(count.params)),
        counters.figure("/weight", count.executed / (tiles(count)[0] * count.args["n"] * count.args["k"])),
        counters.model(count),
    ]


def sizes_of(params, shapes):
    for shape in shapes:
        row_tiles, n, k = map(int, shape.split(","))
        tile_m, tile_n, splits = (int(params[name]) for name in ("tile_m", "tile_n", "splits"))
        workspace = row_tiles * -(-n // tile_n) * splits * tile_m * tile_n if splits > 1 else 0
        yield f"m={row_tiles * tile_m},n={n},k={k},workspace_size={workspace}"


def main():
    profile, manifest, *shapes = sys.argv[1:]
    counters.check(profile, manifest, ["strategy=mma"], lambda params: sizes_of(params, shapes), judge)


main()
