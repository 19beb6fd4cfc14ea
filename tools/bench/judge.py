"""Reads results without a GPU and prints failures, dispatch's regret, and a table of times beside those of the peers."""
import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import fit
import lm
import plan
import records
import replay
from records import about, microseconds

WRONG = "WRONG", "hung", "died"
FREE = "workspace_size"  # the caller chooses it, so variants that need different sizes of it compete


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def sizes_of(row):
    return tuple(sorted((name, size) for name, size in row["sizes"].items() if name != FREE))


def timed(results, files=("times",)):
    return [row for file in files for row in records.read(results, file) if "us" in row and "id" in row]


class Call:
    """One family at one set of sizes and contract parameters: the variants that compete for the call, and dispatch's pick."""

    def __init__(self, family, contract, sizes):
        self.family, self.contract, self.sizes, self.rows = family, contract, sizes, {}

    def add(self, row):
        kept = self.rows.setdefault(row["id"], row)
        if microseconds(row) < microseconds(kept):
            self.rows[row["id"]] = row

    best = property(lambda self: min(self.rows.values(), key=microseconds))

    @property
    def pick(self):
        """The pick at the largest workspace, since dispatch skips variants that need more. None: it was not timed."""
        widest = max(self.rows.values(), key=lambda row: row["sizes"].get(FREE, 0))
        return self.rows.get(widest.get("pick"))

    @property
    def regret(self):
        return self.regret_of(self.pick) if self.pick else None

    def regret_of(self, row):
        return microseconds(row) / microseconds(self.best)

    def name(self):
        contract = ",".join(f"{k}={v}" for k, v in self.contract.items())
        return f"{self.family} {contract} " + " ".join(f"{k}={v}" for k, v in self.sizes if "stride" not in k and v)


def calls(rows, contracts):
    found = {}
    for row in rows:
        family, contract = contracts[row["id"]]
        key = family, tuple(contract.items()), sizes_of(row)
        found.setdefault(key, Call(family, contract, sizes_of(row))).add(row)
    return list(found.values())


def contracts_of(ids, kiln):
    """{id: (family, {parameter: value})}, with the parameters that callers name; an id leaves out some that have their default."""
    families = json.loads(subprocess.run([kiln, "families", "--json"], capture_output=True, text=True, check=True).stdout)
    text = lambda value: str(value).lower() if isinstance(value, bool) else str(value)
    defaults = {family["name"]: {p["name"]: text(p["default"]) for p in family["params"] if p["role"] == "contract"} for family in families}
    found = {}
    for name in ids:
        family, given = name.partition("/")[0], plan.parameters(name)
        found[name] = family, {p: given.get(p, default) for p, default in defaults[family].items()}
    return found


def existing(kiln, target):
    """Returns the ids of a run that this build has for the target."""
    import join  # pylint: disable=import-outside-toplevel; the kit lacks it
    root = pathlib.Path(__file__).resolve().parents[2]
    return {name for config in plan.CONFIGS for name in join.variants(kiln, str(root / config), target)}


def device_options(device):
    """Options of `kiln explain` for a device as kiln-bench describes it: its row of devices.def, otherwise its target."""
    rows = (pathlib.Path(__file__).resolve().parents[2] / "generator/target/devices.def").read_text(encoding="utf-8")
    names = [name for name in re.findall(r'^DEVICE\("([^"]+)"', rows, re.MULTILINE)
             if re.search(rf"\b{re.escape(name)}\b", device["name"])]
    return ["-d", max(names, key=len)] if names else ["-t", f"sm_{device['sm']}"]


def read_built(build, name):
    """A file that `gpu build` makes."""
    path = pathlib.Path(build) / name
    if not path.exists():
        sys.exit(f"gpu: there is no {path}: make it first (tools/bench/gpu build)")
    return json.loads(path.read_text(encoding="utf-8"))


def rank_correlation(pairs):
    """Spearman's rank correlation of (estimate, time) pairs."""
    if len(pairs) < 3:
        return None
    ranks = [{value: i for i, value in enumerate(sorted(set(column)))} for column in zip(*pairs)]
    x, y = ([rank[value] for value in column] for rank, column in zip(ranks, zip(*pairs)))
    return statistics.correlation(x, y) if len(set(x)) > 1 and len(set(y)) > 1 else None


def estimates(kiln, device, call):
    """{id: cycles} from `kiln explain`, with a workspace large enough for every variant."""
    import join  # pylint: disable=import-outside-toplevel
    words = [f"{k}={v}" for k, v in (*call.contract.items(), *call.sizes)]
    words += [f"{FREE}={largest}" for largest in [max(row["sizes"].get(FREE, -1) for row in call.rows.values())] if largest >= 0]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as config:
        config.write(f"bundle: judged\ntargets: [sm_{device['sm']}]\nkernels:\n" + "".join(map(join.entry, call.rows)))
        config.flush()
        done = subprocess.run([kiln, "explain", config.name, call.family, *device_options(device), "--long", *words],
                              capture_output=True, text=True)
    return {name: int(cycles) for cycles, name in re.findall(r"^ *(\d+)  (\S+)$", done.stdout, re.MULTILINE)}


def regrets(all_calls, kiln, device):
    """{family: [(call, {id: cycles})]} of the calls that several variants compete for, with this build's estimates."""
    rivals, families = [call for call in all_calls if len(call.rows) > 1], {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for call, cycles in zip(rivals, pool.map(lambda call: estimates(kiln, device, call), rivals)):
            if any(name in cycles for name in call.rows):
                families.setdefault(call.family, []).append((call, cycles))
    return families


def pick_of(call, cycles):
    """The row of the variant with the least estimate."""
    return min((row for row in call.rows.values() if row["id"] in cycles), key=lambda row: cycles[row["id"]])


# ---- what is printed -------------------------------------------------------------------------------------------------

def print_run(results):
    for row in records.read(results, "run"):
        if "kernel_driver" in row:
            device = row["first"]["device"]
            print(f"{device['name']}, driver {row['kernel_driver']}, commit {row['commit'][:12]}, {row['date']}, card {row['card']}")
        elif {"failed", "not_run", "skipped"} & row.keys():
            print("  " + " ".join(f"{k}={str(v)[:300]}" for k, v in row.items() if k not in ("ids", "at")))


def print_verification(results):
    rows = [row for row in records.read(results, "verify") + records.read(results, "examine") if "result" in row]
    last = {row["id"]: row for row in rows}
    tally = {}
    for row in last.values():
        tally[row["result"]] = tally.get(row["result"], 0) + 1
    print("\nverified: " + ", ".join(f"{word} {count}" for word, count in sorted(tally.items())))
    worst = {}
    for row in last.values():
        ratio = row.get("worst_error_over_bound")
        family = str(row["id"]).partition("/")[0]
        if ratio is not None and ratio > worst.get(family, (-1,))[0]:
            worst[family] = ratio, row["id"]
    for family, (ratio, name) in sorted(worst.items()):
        print(f"  {family}: {ratio:.3f} of the bound at most, {name}")
    for row in last.values():
        if row["result"] in WRONG:
            print(f"{row['result']} {row['id']}\n    {row.get('detail', '')[:1000]}")


def print_regret(all_calls, kiln, device):
    """The regret of dispatch's picks in the run, and of the picks that this build's estimates give among the same variants."""
    print("\nregret: time of the pick over the best of its rivals; mean of the run's picks, then of the estimates of this build")
    for family, of in sorted(regrets(all_calls, kiln, device).items()):
        print_family_regret(family, of)


def print_family_regret(family, of):
    """`of` is [(call, {id: cycles})]."""
    picks = [(call, pick_of(call, cycles)) for call, cycles in of]
    picks.sort(key=lambda pair: -pair[0].regret_of(pair[1]))
    mean = lambda regrets: f"{statistics.geometric_mean(regrets):.3f}" if regrets else "-"
    ranks = [rank_correlation([(cycles[name], microseconds(row)) for name, row in call.rows.items() if name in cycles])
             for call, cycles in of]
    known = [rank for rank in ranks if rank is not None]
    print(f"{family}: {len(of)} calls, mean {mean([call.regret for call, _ in of if call.regret])}, then "
          f"{mean([call.regret_of(row) for call, row in picks])}"
          + (f", rank correlation {statistics.mean(known):.2f} of {len(known)}" if known else ""))
    for call, pick in picks[:6]:
        if call.regret_of(pick) > 1.05:
            print(f"    {call.regret_of(pick):.2f}  {call.name()}\n          {number(microseconds(pick))} us {pick['id']}\n"
                  f"          {number(microseconds(call.best))} us {call.best['id']}")


def bandwidth(results):
    """Bytes per microsecond of the largest copy, reads plus writes."""
    for row in records.read(results, "times") + [r["first"] for r in records.read(results, "run") if "kernel_driver" in r]:
        if row.get("copies"):
            largest = max(row["copies"], key=lambda copy: copy["bytes"])
            return 2 * largest["bytes"] / microseconds(largest)
    return None


def work_matches(work, call):
    """Whether a peer did the work of the call: every size and parameter that both name is equal."""
    ours = {**call.contract, **dict(call.sizes)}
    ours.setdefault("type", ours.get("a", ours.get("x", ours.get("c"))))
    shared = [name for name in work if name in ours]
    return len(shared) >= 2 and all(str(work[name]).lower() == str(ours[name]) for name in shared)


def peers_of(call, peers):
    alike = {"nf4_gemm": ("nf4_gemm", "matmul", "int4_gemm"), "linear": ("matmul", "int4_gemm"),
             "rmsnorm_q4k_gemv": ("rms_norm_matmul",), "nvfp4_gemv": ("bmm",)}.get(call.family, (call.family,))
    return [row for row in peers if "us" in row and row["work"]["family"] in alike and work_matches(row["work"], call)]


def table(results, all_calls):
    """Prints the best variant of each call, beside the peers."""
    peers, speed = records.read(results, "peers"), bandwidth(results)
    print("\n| call | us | GB/s | TFLOP/s | floor / time | clock | beside it: us, time / its |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for call in all_calls:
        row = call.best
        us, moved = microseconds(row), row["bytes_read"] + row["bytes_written"]
        floor = f"{moved / speed / us:.2f}" if speed else "-"
        work = operations(call)
        beside = "; ".join(f"{p['peer']} {number(microseconds(p))}, {us / microseconds(p):.2f}" for p in peers_of(call, peers))
        print(f"| {call.name()} `{tuning(row['id'], call)}` | {number(us)} | {number(moved / us / 1e3)} | "
              f"{number(work / us / 1e6) if work else '-'} | {floor} | {row.get('sm_mhz', '-')} | {beside} |")


def tuning(name, call):
    return ",".join(f"{k}={v}" for k, v in plan.parameters(name).items() if k not in call.contract)


def operations(call):
    """Additions and multiplications of a product, or of attention's two products over the visible keys."""
    sizes = dict(call.sizes)
    if {"m", "n", "k"} <= set(sizes):
        return 2 * sizes["m"] * sizes["n"] * sizes["k"]
    if "k_length" not in sizes:
        return None
    queries, keys = sizes["q_length"], sizes["k_length"]
    seen = queries * keys
    if call.contract["causal"] == "true":
        seen = sum(max(0, i + 1 + keys - queries) for i in range(queries))
    return 4 * sizes["batch"] * sizes["q_heads"] * seen * int(call.contract["head_dim"])


def device_of(results):
    machine = about(results)
    return machine and machine["first"]["device"]


def calls_of(results, kiln, device):
    """The calls that were timed, with the variants that this build still has."""
    rows, ids = timed(results, ("times", "examine")), existing(kiln, f"sm_{device['sm']}")
    kept = [row for row in rows if row["id"] in ids]
    return calls(kept, contracts_of({row["id"] for row in kept}, kiln))


def main(folders, build):
    kiln = str(pathlib.Path(build) / "bin/kiln")
    for results in folders:
        device = device_of(results)
        if not device:
            sys.exit(f"gpu: {results} has no results: expected a folder with run.jsonl, which describes a device")
        print_run(results)
        print_verification(results)
        print("".join(f"{line}\n" for line in replay.summarise(records.read(results, "replay"))), end="")
        found = calls_of(results, kiln, device)
        print_regret(found, kiln, device)
        table(results, found)
        lm.print_results(results)
        for row in records.read(results, "probes"):
            if row["probe"] not in fit.SUMMARISED:
                print(json.dumps(row))
        fit.print_sweeps(rows := fit.Rows(records.read(results, "probes")))
        fit.print_kernels(rows)
    return 0
