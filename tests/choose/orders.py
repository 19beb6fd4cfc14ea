#!/usr/bin/env python3
"""A configuration's lock does not depend on the order of items, shapes, devices, targets, keys and listed values. A bundle made
from it does not depend on the number of jobs. Limits on bytes and drivers lead to other choices that respect them.

usage: orders.py KILN
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TARGETS = ["sm_75", "sm_80", "sm_87", "sm_90"]
DEVICES = ["a100", "orin nano", "h100"]
ITEMS = [
    {"family": "nf4_gemm", "a": ["bf16", "f16"], "tile_m": [1, 8, 32, 64], "tile_n": [16, 64, 128], "k_warps": [8, 2, 4],
     "stages": 2, "table": "compact", "within": "1.30",
     "shapes": [{"m": [1, 16, 300], "n": [4096, 14336], "k": 4096}, {"m": 2048, "n": 4096, "k": 14336}]},
    {"family": "nf4_gemm", "a": "f16", "strategy": "mma", "stages": 2, "k_warps": 8, "within": "1.30",
     "shapes": [{"m": 5, "n": 1024, "k": 1024}]},
    {"family": "nvfp4_gemv", "c": ["f16", "bf16"], "decode": "software", "within": "1.20", "max_variants": 6,
     "shapes": [{"m": [4096, 128], "k": [7168, 2048], "l": [1, 8]}]},
    {"family": "rmsnorm_q4k_gemv", "activation": ["q8", "exact"], "x": "f16", "y": "f16",
     "shapes": [{"n": {"from": 1, "to": 14336}, "k": 4096}]},
    {"family": "q4k_dequantize"},
    {"family": "nf4_gemm", "a": "f16", "strategy": "mma", "tile_m": 64, "tile_n": 128, "k_warps": 1, "split_k": 0},
]
draw = random.Random(1)


def shuffled(value):
    """Returns the same configuration in another order."""
    if isinstance(value, list):
        value = [shuffled(v) for v in value]
        draw.shuffle(value)
    elif isinstance(value, dict):
        value = {k: shuffled(value[k]) for k in draw.sample(list(value), len(value))}
    return value


def config(items, targets, devices, rest=""):
    """Writes the value as YAML: JSON without quotes around words."""
    kernels = [{**item, "devices": devices} if "shapes" in item else item for item in items]
    return (f"bundle: app\ntargets: [{', '.join(targets)}]\nkernels:\n"
            + "".join(f"  - {json.dumps(item)}\n" for item in kernels).replace('"', "") + rest)


def choose(kiln, folder, text, *options):
    path = pathlib.Path(folder, "app.yaml")
    path.write_text(text)
    done = subprocess.run([kiln, "choose", "app.yaml", *options], cwd=folder, capture_output=True, text=True)
    return done, pathlib.Path(folder, "app.lock.yaml")


def generate(kiln, folder, *options):
    """Generates a bundle from the lock; returns the bytes of each file."""
    made = pathlib.Path(folder, "made")
    subprocess.run([kiln, "generate", "app.yaml", "-q", "--output", "made", *options], cwd=folder, check=True)
    return {path.name: path.read_bytes() for path in sorted(made.iterdir())}


def check_orders(kiln, folder):
    done, lock = choose(kiln, folder, config(ITEMS, TARGETS, DEVICES))
    first = lock.read_bytes()
    if done.returncode or first.count(b"{family") < 10:
        sys.exit(f"no lock of several variants: {done.stdout}{done.stderr}")
    for _ in range(6):
        text = config(shuffled(ITEMS), shuffled(TARGETS), shuffled(DEVICES))
        done, lock = choose(kiln, folder, text)
        if lock.read_bytes() != first:
            sys.exit(f"another order gives another lock:\n{text}{lock.read_text()}--- the first\n{first.decode()}")
    if generate(kiln, folder, "--jobs", "1") != generate(kiln, folder, "--jobs", "7"):
        sys.exit("another number of jobs gives other bytes")
    return first.count(b"{family")


def image_bytes(kiln, folder):
    manifest = json.loads(generate(kiln, folder)["app.json"])
    sums = {}
    for variant in manifest["variants"]:
        sums[variant["family"]] = sums.get(variant["family"], 0) + sum(i["bytes"] for i in variant["images"])
    return sums


def check_bytes(kiln, folder):
    """The choice respects a limit that the free choice exceeds. A limit below the smallest choice is an error that gives the
    smallest choice's bytes; that limit then works."""
    choose(kiln, folder, config(ITEMS, TARGETS, DEVICES))
    free = image_bytes(kiln, folder)
    for whole, limited in (("bundle", sum(free.values())), ("nf4_gemm", free["nf4_gemm"])):
        done, _ = choose(kiln, folder, config(ITEMS, TARGETS, DEVICES, f"max_bytes: {{{whole}: 1000}}\n"))
        least = re.search(r"expected at most 1000 bytes of images of .*, found (\d+) in the smallest choice", done.stderr)
        if done.returncode != 1 or not least or int(least[1]) >= limited:
            sys.exit(f"{whole}: expected a message with a smallest choice below {limited} bytes: {done.stdout}{done.stderr}")
        for limit in (int(least[1]), (int(least[1]) + limited) // 2, limited):
            done, _ = choose(kiln, folder, config(ITEMS, TARGETS, DEVICES, f"max_bytes: {{{whole}: {limit}}}\n"))
            if done.returncode:
                sys.exit(f"{whole}: {limit} bytes should be enough: {done.stderr}")
            made = image_bytes(kiln, folder)
            if (sum(made.values()) if whole == "bundle" else made[whole]) > limit:
                sys.exit(f"{whole}: at most {limit} bytes were asked for, found {made}")
            if whole != "bundle" and {**made, whole: 0} != {**free, whole: 0}:
                sys.exit(f"the limit of {whole} changed other families: {free}, {made}")
        done, _ = choose(kiln, folder, config(ITEMS, TARGETS, DEVICES, f"max_bytes: {{{whole}: {int(least[1]) - 1}}}\n"))
        if done.returncode != 1:
            sys.exit(f"{whole}: one byte less than the smallest choice was not refused")
        print(f"{whole}: {limited} bytes, at least {least[1]}")


def check_driver(kiln, folder):
    """The choice leaves out variants that the oldest driver does not load: programmatic dependent launch needs CUDA 11.8."""
    item = {"family": "linear", "x": "f16", "y": "f16", "shapes": [{"m": 1, "n": 4096, "k": 4096}]}
    for overlap, status in ("true", 1), (["true", "false"], 0):
        done, lock = choose(kiln, folder, config([{**item, "overlap": overlap}], ["sm_90"], ["h100"], "max_driver: 11.7\n"))
        if done.returncode != status or "overlap: true" in lock.read_text():
            sys.exit(f"overlap {overlap}: the driver of CUDA 11.7 is not kept to: {done.stdout}{done.stderr}")
    generate(kiln, folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        count = check_orders(sys.argv[1], folder)
        check_bytes(sys.argv[1], folder)
        check_driver(sys.argv[1], folder)
    print(f"{count} variants, the same in every order")


main()
