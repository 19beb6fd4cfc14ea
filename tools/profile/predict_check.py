#!/usr/bin/env python3
"""Compares predictions with times that tools/bench measured, and writes the table predicted.tsv.

usage: predict_check.py BUNDLE RESULTS DEVICE [predict.py's options]    appends the rows that predicted.tsv lacks
       predict_check.py                                                prints the errors of predicted.tsv

RESULTS is a folder of tools/bench/results. BUNDLE is made from generated/default.yaml by kiln of the commit that RESULTS/run.jsonl
names: later kernels differ.
"""
import collections
import gzip
import json
import math
import pathlib
import re
import statistics
import sys

import predict

TABLE = pathlib.Path(__file__).with_name("predicted.tsv")
COLUMNS = "results measured_us predicted_us bound variant args".split()
# (n: every n-th call, its variant and args). Calls with f16: products of 1, 16, 64 and 512 rows, and kernels that memory bounds.
# nvfp4_gemv has one matrix only, since the results do not record strides.
CHOSEN = [(3, r"nf4_gemm/a=f16,acc=f32.* m=(1|16|64|512),n=(4096|14336),k=4096,"), (1, r"linear/format=q4_k"),
          (1, r"nf4_unpack/type=f16"), (1, r"nvfp4_gemv/c=f16.*l=1,"), (1, r"rmsnorm_q4k_gemv/norm=rms,x=f16.*n=(4096|28672)")]


def measured(results):
    """Yields (variant, args, median us) of each chosen call."""
    path = pathlib.Path(results) / "times.jsonl.gz"
    rows = [row for row in map(json.loads, gzip.open(path, "rt")) if row.get("phase") == "shipped" and "us" in row]
    calls = {(row["id"], ",".join(f"{k}={v}" for k, v in row["sizes"].items())): statistics.median(row["us"]) for row in rows}
    for every, pattern in CHOSEN:
        yield from [(*call, us) for call, us in calls.items() if re.match(pattern, " ".join(call) + ",")][::every]


def append(bundle, results, device, *options):
    """Predicts the calls that the table lacks."""
    run = pathlib.Path(results).name
    done = {(row["results"], row["variant"], row["args"]) for row in rows()}
    with TABLE.open("a") as table:
        if not done:
            print(*COLUMNS, sep="\t", file=table)
        for variant, args, us in measured(results):
            if (run, variant, args) in done:
                continue
            o = predict.read_options([bundle, "--variant", variant, "--args", args, "--device", device, *options])
            p = predict.predict(o)
            predicted = f"{p.us + o.assume.launch_us:.2f}"
            print(run, f"{us:.2f}", predicted, predict.bound(p), variant, args, sep="\t", file=table, flush=True)


def rows():
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return [dict(zip(COLUMNS, line.split("\t"))) for line in lines[1:]]


def show():
    groups = collections.defaultdict(list)
    for row in rows():
        ratio = float(row["predicted_us"]) / float(row["measured_us"])
        is_product = row["variant"].startswith("nf4_gemm") and "m=1," not in row["args"]
        groups["products of 16 to 512 rows" if is_product else "bound by memory: products of 1 to 4 rows, unpacking"].append(ratio)
        groups["20 us or more" if float(row["measured_us"]) >= 20 else "less than 20 us"].append(ratio)
        groups["all"].append(ratio)
    print("| calls | number | predicted / measured: geometric mean | least | most |\n| --- | ---: | ---: | ---: | ---: |")
    for group, ratios in sorted(groups.items()):
        mean = math.exp(statistics.mean(math.log(r) for r in ratios))
        print(f"| {group} | {len(ratios)} | {mean:.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")


def main(arguments):
    if not arguments:
        return show()
    if len(arguments) < 3 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    try:
        return append(*arguments)
    except (predict.NoPrediction, OSError) as problem:
        sys.exit(f"predict_check.py: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
