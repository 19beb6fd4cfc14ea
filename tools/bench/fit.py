"""Prints the cost model's constants beside measured ones, and the sweeps' findings. It changes no file.

The constants are in generator/target/devices.def (per device) and include/kiln/estimate.h (for all devices).
"""
import pathlib
import re
import statistics

import records

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = "sm", "multiprocessors", "shared_kb", "multiprocessor_shared_kb", "threads", "blocks", "mhz", "gb_per_s", "mma", "s8", "fp4"
ISSUE_SLOTS = 4
SUMMARISED = "sweep", "resources", "split_k_counters"  # printed as tables; other probes row by row


def read_devices(text):
    """{name: {column: number}} of devices.def."""
    rows = re.findall(r'^DEVICE\("([^"]+)",([^)]*)\)', text, re.MULTILINE)
    return {name: dict(zip(COLUMNS, map(int, numbers.split(",")))) for name, numbers in rows}


def read_estimate(text):
    """The constants of kiln_estimate."""
    return {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", re.search(r"enum \{([^}]*)\}", text)[1])}


def line_through(points):
    """(constant, slope) of the least-squares line; with one point the slope is 0."""
    xs, ys = zip(*points)
    middle = statistics.fmean(xs)
    square = sum((x - middle) ** 2 for x in xs)
    slope = sum((x - middle) * y for x, y in points) / square if square else 0.0
    return statistics.fmean(ys) - slope * middle, slope


CASES = ("mix", "form", "warps", "chain", "load", "kib", "pattern", "memory", "way", "stages", "chunk", "cluster", "blocks", "grid",
         "block", "shared_kb", "dependent", "parts", "tiles", "function", "variant", "launches")  # parameters of probes' cases


class Rows:
    """The rows of probes.jsonl that have values; of a case that ran several times, only the last run."""

    def __init__(self, rows):
        self.rows = {}
        for row in rows:
            if row.get("value") is not None:
                waves = (row["waves"], row["resident"]) if row["probe"] == "waves" else ()
                self.rows[row["probe"], *waves, *(row.get(name) for name in CASES)] = row

    def of(self, probe, **where):
        return [row for row in self.rows.values() if row["probe"] == probe and all(row.get(name) == value for name, value in where.items())]

    def values(self, probe, **where):
        return [row["value"] for row in self.of(probe, **where)]

    def best(self, probe, **where):
        return max(self.values(probe, **where), default=None)

    def least(self, probe, **where):
        return min(self.values(probe, **where), default=None)


# ---- constants -------------------------------------------------------------------------------------------------------

def constants(rows, device, estimate):
    """(name, file, the model's value, measured value) for each constant that a probe measures."""
    facts = next(iter(rows.of("device")), {})
    mhz = facts.get("clock_khz", 0) / 1000
    # A quarter of a multiprocessor does 256 multiply-adds, 512 operations, in this many cycles.
    products, s8_products = rows.best("mma_rate", form="f16 to f32"), rows.best("mma_rate", form="s8 to s32")
    integer = [rows.best("issue", mix=mix) for mix in ("prmt", "lop3", "shf", "imad")]
    reads = [row["bytes_per_clock_sm"] for row in rows.of("bandwidth", memory="L2", cluster=1)]
    copies = max((row["read_gbs"] for row in rows.of("bandwidth", memory="DRAM")), default=None)
    return [
        ("multiprocessors", "devices.def", device.get("multiprocessors"), facts.get("value")),
        ("SM clock, MHz", "devices.def", device.get("mhz"), mhz or None),
        ("shared memory of a multiprocessor, KB", "devices.def", device.get("multiprocessor_shared_kb"),
         facts.get("sm_shared_bytes", 0) >> 10 or None),
        ("threads of a multiprocessor", "devices.def", device.get("threads"), facts.get("sm_threads")),
        ("memory, GB/s", "devices.def", device.get("gb_per_s"), copies),
        ("mma.sync, cycles for 256 multiply-adds", "devices.def", device.get("mma"), products and round(2048 / products, 2)),
        ("the same of s8, for 1024 multiply-adds", "devices.def", device.get("s8"), s8_products and round(8192 / s8_products, 2)),
        ("issue slots, warp instructions per cycle", "estimate.h SLOTS", estimate.get("SLOTS"), rows.best("issue", mix="ffma")),
        ("of integers and moves below sm_100", "estimate.h", 2, min(filter(None, integer), default=None)),
        ("shared memory, cycles for 128 bytes", "estimate.h", 1, rows.least("shared_loads", load="lds.32", pattern="lanes in order")),
        ("one warp, cycles per dependent instruction", "estimate.h WARP_CYCLES", estimate.get("WARP_CYCLES"),
         rows.least("latency", chain="ffma")),
        ("L2, bytes per cycle of a multiprocessor", "estimate.h CACHE_BYTES", estimate.get("CACHE_BYTES"), max(reads, default=None))]


def number(value):
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) and value < 1000 else f"{value:.0f}"


def print_constants(rows, device, estimate):
    print(f"{'constant':44} {'source':24} {'model':>8} {'measured':>9} {'ratio':>6}")
    for what, source, model, found in constants(rows, device, estimate):
        ratio = f"{found / model:.2f}" if model and found else ""
        print(f"{what:44} {source:24} {number(model):>8} {number(found):>9} {ratio:>6}")


def print_table(heading, rows, *columns):
    if rows:
        print(heading)
        for row in rows:
            print("   ", " ".join(f"{column(row):>{width}}" if width > 0 else f"{column(row):{-width}}" for column, width in columns))


def print_rates(rows):
    for probe, key, heading in (("issue", "mix", "issue: warp instructions per cycle and multiprocessor, by warps"),
                                ("mma_rate", "form", "mma.sync: operations per cycle and multiprocessor, by warps")):
        names = list(dict.fromkeys(row[key] for row in rows.of(probe)))
        if names:
            print(heading)
        for name in names:
            by_warps = {row["warps"]: row["value"] for row in rows.of(probe, **{key: name})}
            above = probe == "issue" and max(by_warps.values()) > ISSUE_SLOTS
            print(f"    {name:18}", " ".join(f"{warps}: {value:g}" for warps, value in sorted(by_warps.items())),
                  "  MORE THAN THERE ARE ISSUE SLOTS" if above else "")


def print_memory(rows):
    print_table("latency, cycles", rows.of("latency"), (lambda r: r["chain"], -24), (lambda r: number(r["value"]), 8))
    empty = rows.least("chase", load="none")
    print_table("pointer chase, cycles of a load", rows.of("chase", load="ld.global.cg"), (lambda r: f"{r['kib']} KiB", -12),
                (lambda r: number(r["value"] - (empty or 0)), 8))
    for memory in "L2", "DRAM":
        found = sorted(rows.of("bandwidth", memory=memory, cluster=1), key=lambda r: (r["way"], r["kb_in_flight_sm"]))
        print_table(f"{memory}: GB/s by KB in flight per multiprocessor", found, (lambda r: r["way"], -10),
                    (lambda r: f"{r['kb_in_flight_sm']}", 5), (lambda r: number(r["value"]), 8))


def print_launches(rows):
    for way in "graph", "stream":
        found = [(row["grid"], row["value"]) for row in rows.of("empty_launches", way=way, block=128) if not row.get("shared_kb")]
        if found:
            few = [us for grid, us in found if grid <= 132]
            base, slope = line_through([(grid, us) for grid, us in found if grid >= 1056] or found)
            print(f"empty kernel, {way}: {min(few or [us for _, us in found]):.2f} us; "
                  f"large grids {base:.2f} us + {1000 * slope:.3g} ns per thread block")
    facts = next(iter(rows.of("device")), {})
    for resident in sorted({row["resident"] for row in rows.of("waves")}):
        points = [(row["waves"], row["clocks"] - row["spin"] * row["waves"]) for row in rows.of("waves", resident=resident)]
        base, slope = line_through(points)
        print(f"waves, {resident} per multiprocessor: {base:.0f} cycles for a launch, {slope:.0f} more for each wave")
    for tiles in sorted({row["tiles"] for row in rows.of("split_join")}):
        points = [(row["parts"], row["value"]) for row in rows.of("split_join", tiles=tiles)]
        _, slope = line_through([(parts, us) for parts, us in points if parts > 1] or points)
        print(f"split_k of {tiles} tiles: us by thread blocks per tile", " ".join(f"{parts}: {us:.2f}" for parts, us in sorted(points)),
              f"({facts.get('clock_khz', 0) / 1000 * slope:.0f} cycles for each more)")
    for row in rows.of("dependent_launches"):
        print(f"dependent launches: {row['way']}, {row['dependent']}, {row['grid']} thread blocks: {row['value']} us per kernel")


# ---- sweeps ----------------------------------------------------------------------------------------------------------

def print_sweeps(rows):
    found = rows.of("sweep")
    if found:
        print(f"{'function':34} {'inputs':>11} {'rounded':>9} {'worst':>8} {'at':>9} {'allowed':>9} {'beyond':>8}  {'emulated: worst':>15}")
    for row in found:
        bins, allowed = row["bins"], row["allowed"]
        exact = sum(bins.get(name, [0])[0] for name in ("rounded", "zero", "infinity", "NaN"))
        limit = f"{allowed['relative']:.3g}" if allowed["relative"] else f"{allowed['ulps']:g} ulps" if allowed["ulps"] else "rounded"
        emulated = number(row["emulated"]["value"]) if row.get("emulated") else "-"
        print(f"{row['function']:34} {row['inputs']:11} {exact / row['inputs']:9.4%} {number(row['value']):>8} {row['worst_input']:>9} "
              f"{limit:>9} {bins.get('beyond', [0])[0]:8}  {emulated:>15}")
        if "wrong kind" in bins:
            print(f"    {bins['wrong kind'][0]} results of a wrong kind, such as that of {bins['wrong kind'][1]}")


def print_kernels(rows):
    resources = rows.of("resources")
    figures = lambda row: (row["ptxas"]["registers"], row["ptxas"]["stack"])
    differs = [row for row in resources if row.get("ptxas") and (row["value"], row["local_bytes"]) != figures(row)]
    fewer = [row for row in resources if not row["right"]]
    if resources:
        print(f"{len(resources)} kernels: {len(differs)} with other registers or local bytes than ptxas gives; "
              f"{len(fewer)} with fewer resident thread blocks than they promise")
    for row in differs:
        registers, stack = figures(row)
        print(f"    {row['value']} registers, {row['local_bytes']} bytes; ptxas {registers}, {stack}: {row['variant']}")
    others = [row for row in resources if row.get("modelled") not in (None, row["resident"])]
    for row in others:
        print(f"    {row['resident']} resident, {row['modelled']} in the model: {row['variant']}")
    for row in fewer:
        print(f"    {row['resident']} resident, promised {row['promised']}: {row['variant']}")
    for row in rows.of("split_k_counters"):
        print(f"split_k: {row['value']} launches on {row['streams']} streams ({row['way']}), {row['wrong_words']} wrong words, "
              f"{row['counters_not_zero']} counters not zero: {row['variant']}")


def device_of(rows, devices):
    """The longest name in devices.def that the card's name contains, as 'H100' in 'NVIDIA H100 80GB HBM3'."""
    name = next((row.get("name", "") for row in rows.of("device")), "")
    found = [device for device in devices if all(word in name.split() for word in device.split())]
    return name, max(found, key=len, default=None)


def main(folders):
    devices = read_devices((ROOT / "generator/target/devices.def").read_text(encoding="utf-8"))
    estimate = read_estimate((ROOT / "include/kiln/estimate.h").read_text(encoding="utf-8"))
    for results in folders:
        rows = Rows(records.read(results, "probes"))
        name, device = device_of(rows, devices)
        print(f"{results}: {name or 'no device'}" + ("" if device else ", which devices.def does not have"))
        print_constants(rows, devices.get(device, {}), estimate)
        print_rates(rows)
        print_memory(rows)
        print_launches(rows)
        print_sweeps(rows)
        print_kernels(rows)
    return 0
