#!/usr/bin/env python3
"""Tiles that no device could run are refused when the kernels are generated.

usage: check_refused.py KILN
"""
import os
import subprocess
import sys
import tempfile

REFUSED = {  # parameters: what the message says
    "warps: 32": "16",  # no such value
    "warps: 16": "64 KB",
    "a: f32, strategy: mma, tile_m: 8": "f16 or bf16",
    "strategy: mma": "tile_m from 8",
    "strategy: mma, tile_m: 8, warps: 4": "8 warps",
    "strategy: mma, tile_m: 64, splits: 2": "registers",
    "tile_m: 16": "simt is for tile_m up to 8",
    "vector: 8": "vector is for mma",
    "a: f32, acc: f64": "64 KB",
    "a: f16, acc: f64, warps: 4": "sums in f64 are for A in f32",
    "a: f32, acc: f64, tile_m: 8, warps: 4": "tile_m up to 4",
    "a: f32, acc: f64, tile_m: 1, warps: 16, table: window": "99 KB",
    "tile_m: 4, warps: 16, table: window": "registers",
    "table: window, splits: 3": "splits",
}


def main():
    wrong = 0
    for params, words in REFUSED.items():
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "refused.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write("bundle: refused\ntargets: [sm_80]\nkernels:\n"
                           f"  - {{family: nf4_gemm_transposed, {params}}}\n")
            done = subprocess.run([sys.argv[1], "generate", config, "--output", folder], capture_output=True, text=True)
            fine = done.returncode == 1 and words in done.stderr and os.listdir(folder) == ["refused.yaml"]
        if not fine:
            print(f"WRONG {params}: exit {done.returncode}, {done.stderr}")
        wrong += not fine
    print(f"{len(REFUSED) - wrong} of {len(REFUSED)} refused")
    sys.exit(wrong != 0)


main()
