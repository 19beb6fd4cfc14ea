#!/usr/bin/env python3
"""Compares dispatch's picks with the best variant by an independent measure: a model of a multiprocessor, with the emulated
driver's counts of a thread block of each variant, and its registers from ptxas.

usage: subsets.py KILN PROFILE [--shapes N] [--subsets N] [--seed N] [--show N]

The test draws random subsets of each choice in dispatch.yaml. `kiln explain` orders the choice at each shape on each device; the
pick of a subset is its first variant in that order. BOUNDS limits the pick's modelled time over the subset's best time. The test
also prints, without a bound, the worst pick and by how much one more variant makes a pick slower.

The measure is a model, not a device: its figures rank variants and do not predict times.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import counters

HERE = pathlib.Path(__file__).parent
CONFIG = HERE / "dispatch.yaml"
SKIPPED = 77
BOUNDS = {"median": 1.03, "95 %": 1.15}


# ---- devices ----
# Source: NVIDIA's white papers and data sheets. `integer` and `float`: lanes per multiprocessor and cycle; `tensor`: dense
# multiply-adds of f16 with sums in f32 per multiprocessor and cycle; `memory`: bytes per cycle of the device.

Device = collections.namedtuple("Device", "name target sm multiprocessors shared threads integer float tensor memory")
DEVICES = [
    Device("A100", "sm_80", 80, 108, 164 << 10, 2048, 64, 64, 1024, 1555 / 1.41),
    Device("RTX 4090", "sm_89", 89, 128, 100 << 10, 1536, 64, 128, 256, 1008 / 2.52),
    Device("H100", "sm_90", 90, 132, 228 << 10, 2048, 64, 128, 1250, 3352 / 1.98),
    Device("B200", "sm_100f", 100, 148, 228 << 10, 2048, 128, 128, 1024, 8000 / 1.965),
    Device("Jetson AGX Orin", "sm_87", 87, 16, 164 << 10, 1536, 64, 128, 1024, 204 / 1.3),
]
L2_BYTES, MEMORY_CYCLES, BARRIER_CYCLES = 64, 650, 30
ISSUE_CYCLES = 2.6   # cycles per instruction of a single warp: ptxas' stall counts in this project's loops are 2.2 to 3.1
LOADS_AHEAD = {False: 8, True: 24}  # a warp's requests in flight, without and with cp.async
LAUNCH_CYCLES = 2500 # duration of an empty kernel
JOIN_CYCLES = 2200   # waits of thread blocks that share a sum: a store, an atomic, a load


# ---- geometry: a variant's launch, from its parameters ----

def ceil_div(a, b):
    return -(-a // b)


class Work(collections.namedtuple("Work", "blocks times active", defaults=(1,))):
    """Thread blocks, the repetitions of the counted work in each, and how evenly its warps share the loop: active_warps."""


def product(p, a, resident, device):
    tiles_n, tiles_m = ceil_div(a["n"], p["tile_n"]), ceil_div(a["m"], p["tile_m"])
    grid_n = tiles_n
    if p["strategy"] == "simt" and p["tile_m"] < 16:
        grid_n = min(tiles_n, device.multiprocessors * resident)
    return Work(grid_n * tiles_m * p["split_k"], ceil_div(tiles_n, grid_n),
                active_warps(p, a["k"], product_trip(p)))


def active_warps(p, length, trip):
    """Returns an average warp's work relative to the busiest warp's: trips are distributed over warps."""
    trips = ceil_div(length, p.get("split_k", 1) * trip)
    return trips / (p["k_warps"] * ceil_div(trips, p["k_warps"]))


def product_trip(p):
    return 256 if p["strategy"] == "simt" and p["tile_m"] < 16 else 64


def transposed(p, a, *_):
    """Warps of strategy mma share columns of the result; warps of simt share the summation."""
    return Work(ceil_div(a["k"], 512) * ceil_div(a["m"], p["tile_m"]) * p["split_k"], 1,
                1 if p["strategy"] == "mma" else active_warps(p, a["n"], TRANSPOSED_TRIP["simt"]))


TRANSPOSED_TRIP = {"simt": 16, "mma": 32}


def gguf(p, a, resident, device):
    grid = min(ceil_div(a["n"], 8 * p["rows"]), device.multiprocessors * resident)
    return Work(grid, ceil_div(ceil_div(a["n"], grid), 8 * p["rows"]))


def nvfp4(p, a, resident, device):
    pass_rows, vectors = 8 // p["k_warps"] * p["rows"], min(a["l"], 256)
    grid = min(ceil_div(a["m"], pass_rows), max(1, device.multiprocessors * resident // vectors))
    return Work(grid * vectors, ceil_div(a["l"], 256) * ceil_div(ceil_div(a["m"], grid), pass_rows),
                active_warps(p, a["k"], nvfp4_trip(p)))


def nvfp4_trip(p):
    return 512 if p["strategy"] == "mma" else 32 * p["lane_codes"]


def attention(p, a, *_):
    packed = p["pack_gqa"] == "true"
    queries = a["q_length"] * (a["q_heads"] // a["kv_heads"] if packed else 1)
    heads = a["kv_heads"] if packed else a["q_heads"]
    return Work(ceil_div(queries, p["tile_q"]) * p["split_k"] * heads * a["batch"], 1)


# ---- families: geometry, shapes, and for each shape a small size with the same work per thread block ----

def strides(a, dim):
    for name, heads, rows in (("q", "q_heads", "q_length"), ("k", "kv_heads", "k_length"),
                              ("v", "kv_heads", "k_length"), ("out", "q_heads", "q_length")):
        a[f"{name}_row_stride"] = dim
        a[f"{name}_head_stride"] = dim * a[rows]
        a[f"{name}_batch_stride"] = dim * a[rows] * a[heads]
    return a


def random_size(draw, least, most, step):
    return max(step, round(math.exp(draw.uniform(math.log(least), math.log(most))) / step) * step)


def draw_product(draw, _):
    m = draw.choice([1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 256, 512])
    n, k = (random_size(draw, 512, 16384, 64) for _ in range(2))
    return {"m": m, "n": n, "k": k, "workspace_size": draw.choice([0, 1 << 40])}


def draw_transposed(draw, _):
    return dict(draw_product(draw, _), normal_scales=draw.choice([0, 1]))


def draw_gguf(draw, _):
    return {"n": random_size(draw, 256, 65536, 1), "k": random_size(draw, 512, 16384, 256)}


def draw_nvfp4(draw, _):
    return {"m": random_size(draw, 16, 16384, 1), "k": random_size(draw, 512, 16384, draw.choice([512, 512, 32, 16])),
            "l": draw.choice([1, 1, 1, 2, 4, 8, 64])}


def draw_attention(draw, contract):
    heads, group = draw.choice([1, 2, 4, 8, 32]), draw.choice([1, 1, 4, 8])
    queries = draw.choice([1, 1, 1, 2, 8, 16, 33, 64, 128, 512, 1024, 2048])
    keys = max(queries, random_size(draw, 64, 32768, 1))
    a = {"batch": draw.choice([1, 1, 2, 8]), "q_heads": heads * group, "kv_heads": heads, "q_length": queries,
         "k_length": keys, "splits": 0, "workspace_size": draw.choice([0, 1 << 40])}
    return strides(a, contract["head_dim"])


def small_product(p, a):
    space = (p["split_k"] > 1) * 16 * (p["tile_m"] + 64) * (256 + 128)
    return {"m": p["tile_m"], "n": p["tile_n"], "k": a["k"], "workspace_size": space}


def small_transposed(p, a):
    space = (p["split_k"] > 1) * 32 * (p["tile_m"] + 32) * 1024
    return {"m": p["tile_m"], "n": a["n"], "k": 512, "workspace_size": space, "normal_scales": int(p["scales"] == "normal")}


def small_gguf(p, a):
    return {"n": 8 * p["rows"], "k": a["k"], **({"eps": 1e-5} if p["norm"] == "rms" else {})}


def small_nvfp4(p, a):
    return {"m": 8 // p["k_warps"] * p["rows"], "k": a["k"], "l": 1, "b_rows": 1}


def small_attention(p, a):
    queries = p["tile_q"] // (2 if p["pack_gqa"] == "true" else 1)
    small = {"batch": 1, "q_heads": 2, "kv_heads": 1, "q_length": min(queries, a["q_length"]), "k_length": a["k_length"],
             "splits": 0, "scale": 0.1}
    small["workspace_size"] = (p["split_k"] > 1) * 2 * queries * p["split_k"] * (p["head_dim"] + 8)
    return strides(small, p["head_dim"])


def bytes_product(p, a):
    e = 4 if p["a"] == "f32" else 2
    return a["n"] * a["k"] * 9 / 16 + e * a["m"] * (a["n"] + a["k"])


def bytes_gguf(p, a):
    return a["n"] * a["k"] * 9 / 16 + 8 * a["k"] + 4 * a["n"]


def bytes_nvfp4(p, a):
    return a["l"] * (a["m"] + 1) * a["k"] * 9 / 16


def bytes_attention(p, a):
    return 2 * p["head_dim"] * a["batch"] * 2 * (a["q_heads"] * a["q_length"] + a["kv_heads"] * a["k_length"])


Family = collections.namedtuple("Family", "contract work draw small bytes trip", defaults=(None,))
FAMILIES = {
    "nf4_gemm": Family("a acc nibbles", product, draw_product, small_product, bytes_product,
                       lambda p: ("k", product_trip(p))),
    "nf4_gemm_transposed": Family("a acc nibbles", transposed, draw_transposed, small_transposed, bytes_product,
                                  lambda p: ("n", TRANSPOSED_TRIP[p["strategy"]])),
    "rmsnorm_q4k_gemv": Family("norm x activation batch y", gguf, draw_gguf, small_gguf, bytes_gguf),
    "nvfp4_gemv": Family("c", nvfp4, draw_nvfp4, small_nvfp4, bytes_nvfp4, lambda p: ("k", nvfp4_trip(p))),
    "attention": Family("type head_dim causal", attention, draw_attention, small_attention, bytes_attention),
}


# ---- counts of a thread block ----

def parameters(identity):
    return {name: int(value) if value.isdigit() else value for name, value in counters.parameters(identity).items()}


def args_text(a):
    return ",".join(f"{name}={value}" for name, value in a.items())


COUNTED = ("issue", "integer", "float", "special", "wavefronts", "tensor", "sectors", "barriers", "requests")


def count_block(profile, manifest, identity, target, size, path):
    """Returns the counts of the launch's average thread block, and its resources; without ptxas, no registers."""
    out = subprocess.run([profile, manifest, "--variant", identity, "--target", target, "--args", args_text(size), "--json"],
                         capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    if out.returncode:
        sys.exit(f"{identity} {args_text(size)}: {out.stderr}")
    p = json.loads(out.stdout)
    i, blocks = p["instructions"], math.prod(p["report"]["grid"])
    warp = {name: row["warp"] for name, row in i["classes"].items()}
    of = {
        "issue": i["warp"], "integer": warp["integer"] + warp["conversion"] + warp["move"],
        "float": warp["float"] + warp["half"] + 2 * warp["double"], "special": warp["special"],
        "wavefronts": sum(p["shared"][kind]["wavefronts"] for kind in counters.KINDS) + warp["warp"],
        "tensor": i["multiply_adds"], "barriers": i["barriers"],
        "sectors": sum(row[kind]["sectors"] for row in p["allocations"] for kind in counters.KINDS),
        "requests": sum(row["read"]["requests"] for row in p["allocations"]),
        "joined": sum(row["read"]["sectors"] for row in p["allocations"] if row["name"] == "workspace"),
    }
    shape = {"registers": (p["registers"] or {}).get("count"),
             "threads": math.prod(p["report"]["block"]),
             "shared": p["report"]["dynamic_shared_bytes"] + p["report"]["static_shared_bytes"]}
    return {name: value / blocks for name, value in of.items()}, shape


class Variant:
    def __init__(self, options, manifest, identity):
        self.options, self.manifest, self.identity = options, manifest, identity
        self.family, self.p = FAMILIES[identity.partition("/")[0]], parameters(identity)
        self.target = "sm_100f" if self.p.get("decode") == "hardware" else "sm_90"
        image = "sm_100f" if self.target == "sm_100f" else "sm_80"
        ptx = subprocess.run([options.kiln, "show", CONFIG, identity, "--target", image], capture_output=True, text=True, check=True)
        self.is_async, self.counted, self.registers = "cp.async" in ptx.stdout, {}, None
        # tf32 products take twice as long as 16-bit ones, 8-bit products half
        self.tensor_share = 2 if ".tf32" in ptx.stdout else 0.5 if ".s8" in ptx.stdout else 1
        promised = re.search(r"\.minnctapersm (\d+)", ptx.stdout)
        self.promised = int(promised.group(1)) if promised else 99

    def outside(self, a):
        """Returns a thread block's work outside its main loop: the work of one trip minus what a second trip adds."""
        if not self.family.trip:
            return {}
        size, trip = self.family.trip(self.p)
        one, two = (self.count({**a, size: trips * trip})[0] for trips in (1, 2))
        return {name: max(0, 2 * one[name] - two[name]) for name in one}

    def count(self, a):
        size = self.family.small(self.p, a)
        key = args_text(size)
        if key not in self.counted:
            path = os.environ["PATH"] if self.registers is None else ""
            self.counted[key] = count_block(self.options.profile, self.manifest, self.identity, self.target, size, path)
            self.registers = self.registers or self.counted[key][1]["registers"]
        return self.counted[key]

    def resident(self, shape, device, blocks):
        """Returns the thread blocks that fit on a multiprocessor, by its registers or the launch's promise."""
        return max(1, min(blocks, device.threads // shape["threads"], device.shared // (shape["shared"] + 1024)))


def time_of(variant, a, device):
    of, shape = variant.count(a)
    outside = {name: min(count, variant.outside(a).get(name, 0)) for name, count in of.items()}
    warps = ceil_div(shape["threads"], 32)
    resident = variant.resident(shape, device, 65536 // (warps * ceil_div(variant.registers * 32, 256) * 256))
    work = variant.family.work(variant.p, a, variant.resident(shape, device, variant.promised), device)
    of = {name: outside[name] + (count - outside[name]) * work.times for name, count in of.items()}
    most = ceil_div(work.blocks, device.multiprocessors)
    pipes = most * max(of["issue"] / 4, of["integer"] * 32 / device.integer, of["float"] * 32 / device.float,
                       of["special"] * 2, of["wavefronts"], of["tensor"] * variant.tensor_share / device.tensor)
    of_loop = (of["issue"] - outside["issue"]) * ISSUE_CYCLES + of["requests"] / LOADS_AHEAD[variant.is_async] * MEMORY_CYCLES
    alone = (outside["issue"] * ISSUE_CYCLES + of["barriers"] * BARRIER_CYCLES + of_loop / work.active) / warps
    waits = ceil_div(most, resident) * alone + MEMORY_CYCLES
    caches = most * of["sectors"] * 32 / L2_BYTES
    memory = variant.family.bytes(variant.p, a) / device.memory
    parts = variant.p.get("split_k", 1)
    joins = JOIN_CYCLES + of["joined"] * parts * 32 / L2_BYTES if parts > 1 else 0  # only by the last thread block
    return sum(x ** 4 for x in (pipes, waits, caches, memory)) ** 0.25 + joins + LAUNCH_CYCLES


def all_variants(options, folder):
    subprocess.run([options.kiln, "generate", CONFIG, "--output", folder], check=True)
    manifest = pathlib.Path(folder) / "dispatch.json"
    ids = [v["id"] for v in json.loads(manifest.read_text(encoding="utf-8"))["variants"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(ids, pool.map(lambda identity: Variant(options, manifest, identity), ids)))


# ---- picks ----

def explain(options, family, contract, a, device):
    """Returns the variants that could be launched, best first."""
    values = [f"{name}={value}" for name, value in {**contract, **a}.items()]
    out = subprocess.run([options.kiln, "explain", CONFIG, family, "--device", device.name, "--long", *values],
                         capture_output=True, text=True, check=False)
    if out.stderr:
        sys.exit(f"kiln explain {family} {' '.join(values)}: {out.stderr}")
    return re.findall(r"^ *\d+  (\S+)$", out.stdout, re.MULTILINE)


def choices(variants):
    """Returns (family, contract) -> its variants."""
    found = collections.defaultdict(list)
    for identity in variants:
        family = identity.partition("/")[0]
        p = parameters(identity)
        found[family, tuple((name, p[name]) for name in FAMILIES[family].contract.split())].append(identity)
    return {key: ids for key, ids in found.items() if len(ids) > 2}


def judge_shape(options, variants, family, contract, ids, a, device, subsets):
    order = explain(options, family, contract, a, device)
    times = {i: time_of(variants[i], a, device) for i in order}
    rows, grown = [], 0
    for subset in subsets:
        usable = [i for i in order if i in subset]
        if len(usable) < 2:
            continue
        best = min(usable, key=times.get)
        rows.append((times[usable[0]] / times[best], usable[0], best))
        without = [i for i in usable if i != usable[0]]
        grown = max(grown, times[usable[0]] / times[without[0]])
    return rows, grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("profile")
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--subsets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return judge(options, all_variants(options, folder))


def judge(options, variants):
    draw = random.Random(options.seed)
    by_family = collections.defaultdict(lambda: collections.defaultdict(list))
    for (family, contract), ids in sorted(choices(variants).items()):
        subsets = [set(draw.sample(ids, draw.randint(2, len(ids)))) for _ in range(options.subsets)]
        shapes = [FAMILIES[family].draw(draw, dict(contract)) for _ in range(options.shapes)]

        def judge_here(a, family=family, contract=dict(contract), ids=ids, subsets=subsets):
            return [(device, a, *judge_shape(options, variants, family, contract, ids, a, device, subsets)) for device in DEVICES]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for found in pool.map(judge_here, shapes):
                for device, a, rows, grown in found:
                    by_family[family][device.name] += [(ratio, grown, pick, best, a) for ratio, pick, best in rows]
    return report(options, by_family)


def report(options, by_family):
    failed = 0
    print(f"{'family':20} {'device':15} {'picks':>6} {'median':>7} {'95 %':>7} {'worst':>7} {'grown':>7}")
    for family, devices in by_family.items():
        for name, rows in devices.items():
            ratios = sorted(row[0] for row in rows)
            found = {"median": statistics.median(ratios), "95 %": ratios[int(0.95 * (len(ratios) - 1))]}
            grown = max(row[1] for row in rows)
            bad = any(found[key] > bound for key, bound in BOUNDS.items())
            failed += bad
            print(f"{family:20} {name:15} {len(ratios):6} {found['median']:7.3f} {found['95 %']:7.3f} {ratios[-1]:7.3f} "
                  f"{grown:7.3f}{'  beyond a bound' if bad else ''}")
            show_worst(options, rows)
    print(f"{sum(map(len, by_family.values()))} rows, {failed} beyond a bound")
    return failed > 0


def show_worst(options, rows):
    shown = set()
    for ratio, _, pick, best, a in sorted(rows, key=lambda row: -row[0]):
        if len(shown) == options.show or ratio <= BOUNDS["95 %"]:
            return
        if (pick, best) in shown:
            continue
        shown.add((pick, best))
        sizes = " ".join(f"{key}={value}" for key, value in a.items() if "stride" not in key)
        print(f"    {ratio:.2f} {sizes}\n        picks {pick}\n        best  {best}")


if __name__ == "__main__":
    sys.exit(main())
