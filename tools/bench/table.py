"""Markdown of what tools/bench/gpu measured: README.md's table, from tools/bench/results."""
import json
import pathlib

import families

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
NOTHING = "No measurement on a GPU yet."
HEADER = """| variant | sizes | us | GB/s | time / copy | time / floor | beside it: us, time / its |
| --- | --- | ---: | ---: | ---: | ---: | --- |"""

REST = {"executed": "without a reference", "skipped": "that it cannot run", "wrong": "WRONG", "not_run": "not run"}


def markdown(folder=RESULTS):
    """The newest result of each device; a line that says so when there is none."""
    newest = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        name = result["device"]["name"]
        if name not in newest or result["date"] >= newest[name]["date"]:
            newest[name] = result
    return "\n\n".join(of_result(newest[name]) for name in sorted(newest)) or NOTHING


def of_result(result, is_whole=False):
    """A line about the run, and a row for each variant that was timed; or, of what families.py shows, for the fastest."""
    baselines = {}
    for row in measured_baselines(result):
        baselines.setdefault(row["id"], []).append(row)
    rows = result["rows"] if is_whole else fastest(filter(is_shown, result["rows"]))
    return "\n".join([about(result), "", HEADER, *(one_row(row, baselines.get(work_of(row), [])) for row in rows)])


def work_of(row):
    return families.work(row["id"], row["sizes"])


def fastest(rows):
    """Of the variants that do the same work, in the order in which the work comes first."""
    best = {}
    for row in rows:
        kept = best.setdefault(work_of(row), row)
        if row["us"]["median"] < kept["us"]["median"]:
            best[work_of(row)] = row
    return list(best.values())


def is_shown(row):
    family = families.FAMILIES.get(row["id"].partition("/")[0])
    return family is not None and families.selects(family.shown, row["id"], row["sizes"])


def measured_baselines(result):
    return [row for row in result["baselines"]["rows"] if "us" in row]


def about(result):
    device, v = result["device"], result["verification"]
    version = device["driver_version"]
    driver = f"driver {device['kernel_driver']}, " if device["kernel_driver"] else ""
    judged = f"{v['ok']} of {v['variants']} variants right on the device"
    rest = [f"{v[word]} {text}" for word, text in REST.items() if v[word]]
    copies = [f"copy of {result['copy']['bytes'] >> 20} MiB {number(result['copy']['gb_per_s'])} GB/s"]
    copies += [f"{row['baseline']} {number(row['bytes'] / row['us']['median'] / 1e3)} GB/s"
               for row in measured_baselines(result) if row["id"] == "copy"]
    peaks = "".join(f"; {a} products {peak:.3g} TFLOP/s" for a, peak in result.get("peak_tflops", {}).items())
    trial = "A trial, whose times mean nothing: " if result["emulated"] or result["quick"] else ""
    return (f"{trial}{device['name']} (sm_{device['sm']}, {driver}CUDA {version // 1000}.{version % 1000 // 10}), "
            f"commit {result['commit'][:12]}, {result['date']}: {', '.join([judged, *rest])}; "
            f"{'; '.join(copies)}{peaks}; empty kernel {number(result['empty_kernel_us']['median'])} us.")


def one_row(row, baselines):
    us = row["us"]["median"]
    sizes = " ".join(f"{name}={value}" for name, value in row["sizes"].items() if name != "workspace_size")
    beside = [f"{b['baseline']} {number(b['us']['median'])}, {ratio(us, b['us']['median'])}" for b in baselines]
    rate = number(row["gb_per_s"]) + (f", {number(row['tflops'])} TFLOP/s" if row.get("tflops") else "")
    cells = [f"`{row['id']}`", sizes, number(us), rate, ratio(us, row["copy_us"]["median"]),
             ratio(us, row["floor_us"]), "; ".join(beside)]
    return "| " + " | ".join(cells) + " |"


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(time, other):
    return f"{time / other:.2f}" if other else "-"
