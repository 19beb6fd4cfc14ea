"""Markdown of what tools/bench/gpu measured: the README's table, from tools/bench/results."""
import json
import pathlib

import families

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
NOTHING = "No measurement on a GPU yet."
HEADER = """| variant | sizes | us | GB/s | of the copy | of the floor | beside it, us |
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
    """A line about the run, and a row for each variant that families.py shows, or for each that was timed."""
    baselines = {}
    for row in measured_baselines(result):
        baselines.setdefault(row["id"], []).append(f"{row['baseline']} {number(row['us']['median'])}")
    rows = [row for row in result["rows"] if is_whole or is_shown(row["id"])]
    return "\n".join([about(result), "", HEADER, *(one_row(row, baselines.get(row["id"], [])) for row in rows)])


def is_shown(variant):
    row = families.FAMILIES.get(variant.partition("/")[0])
    return row is not None and families.selects(row.shown, variant)


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
    trial = "A trial, whose times mean nothing: " if result["emulated"] or result["quick"] else ""
    return (f"{trial}{device['name']} (sm_{device['sm']}, {driver}CUDA {version // 1000}.{version % 1000 // 10}), "
            f"commit {result['commit'][:12]}, {result['date']}: {', '.join([judged, *rest])}; "
            f"{'; '.join(copies)}; empty kernel {number(result['empty_kernel_us']['median'])} us.")


def one_row(row, baselines):
    sizes = " ".join(f"{name}={value}" for name, value in row["sizes"].items())
    cells = [f"`{row['id']}`", sizes, number(row["us"]["median"]), number(row["gb_per_s"]),
             percent(row["ratio_to_copy"]), percent(row["ratio_to_floor"]), "; ".join(baselines)]
    return "| " + " | ".join(cells) + " |"


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def percent(ratio):
    return "-" if ratio is None else f"{100 * ratio:.0f} %"
