#!/usr/bin/env python3
"""Tiles that no device could run are refused when the kernels are generated.

usage: check_refused.py KILN
"""
import os
import subprocess
import sys
import tempfile

REFUSED = {  # parameters: what the message says
    "slices: 64": "16",  # 2048 threads: no such value; the largest there is makes 512
    "a: f16, acc: f64": "sums in f64 are for A in f32",
    "a: f16, tile_m: 8, slices: 8": "64 KB",
    "tile_n: 32, slices: 16": "64 KB",
    "tile_n: 32, slices: 16, table: window": "99 KB",
    "a: f32, acc: f64, table: window": "table near",
    "a: f32, tile_m: 8, tile_n: 32, slices: 4": "tile_n 32 is for tile_m up to 4",
    "a: f32, acc: f64, tile_m: 8, slices: 4": "64 KB",
    "tile_m: 4, slices: 16": "64 KB",
    "a: f32, tile_m: 8, slices: 8, table: window": "more registers than a multiprocessor has",
    "a: f16, tile_m: 16, tile_n: 32, slices: 4": "from tile_m 16 on a is f32",
    "a: f32, tile_m: 32, tile_n: 64, slices: 8": "64 KB",
    "a: f32, strategy: mma": "no products of f32",
    "a: f16, strategy: mma, tile_n: 32, slices: 4": "slices 8",
    "a: f16, strategy: mma, tile_m: 8, tile_n: 128, slices: 2": "with 128 from 16",
    "a: f16, strategy: mma, tile_m: 64, tile_n: 64, slices: 16": "slices 2 and 4",
    "a: f16, strategy: mma, tile_m: 64, tile_n: 64, slices: 2, stages: 4": "tile_m up to 16",
    "a: f16, strategy: mma, tile_m: 64, tile_n: 64, slices: 4": "99 KB",
    "a: f16, strategy: mma, tile_m: 64, tile_n: 64, slices: 8": "slices 2 and 4",
    "a: f16, splits: 2": "are for strategy mma",
}
WITHOUT_TARGET = {  # on sm_75 alone
    "table: window": "sm_80 or newer, for 84224 bytes of shared memory; sm_75 has 65536",
    "a: f16, strategy: mma, tile_n: 32, table: window": "sm_80 or newer, for 83488 bytes",
    "a: bf16, strategy: mma": "sm_80 or newer)",
}


def main():
    cases = [("sm_80", *case) for case in REFUSED.items()] + [("sm_75", *case) for case in WITHOUT_TARGET.items()]
    wrong = 0
    for target, params, words in cases:
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "refused.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"bundle: refused\ntargets: [{target}]\nkernels:\n  - {{family: nf4_gemm, {params}}}\n")
            done = subprocess.run([sys.argv[1], "generate", config, "--output", folder], capture_output=True, text=True)
            fine = done.returncode == 1 and words in done.stderr and os.listdir(folder) == ["refused.yaml"]
        if not fine:
            print(f"WRONG {params}: exit {done.returncode}, {done.stderr}")
        wrong += not fine
    print(f"{len(cases) - wrong} of {len(cases)} refused")
    sys.exit(wrong != 0)


main()
