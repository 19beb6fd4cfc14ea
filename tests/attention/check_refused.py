#!/usr/bin/env python3
"""Variants that no device could run are refused when the kernels are generated.

usage: check_refused.py KILN
"""
import os
import subprocess
import sys
import tempfile

REFUSED = {  # parameters: what the message says
    "type: f32, strategy: mma": "f16 and bf16",
    "type: f64": "tile_q 32",
    "type: f64, head_dim: 256, tile_q: 32": "tile_k 32",
    "type: f32, head_dim: 256, packed: true": "tile_q 32",
    "type: f32, tile_q: 128": "strategy mma",
    "head_dim: 256, tile_q: 128, strategy: mma": "99 KB",
    "head_dim: 104, tile_q: 128, strategy: mma": "tile_k 32",
    "type: f32, head_dim: 200, splits: 4": "tile_q 32",
    "head_dim: 12": "16",
    "head_dim: 264": "256",
    "head_dim: 100": "steps of 8",
}


def main():
    wrong = 0
    for params, words in REFUSED.items():
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "refused.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"bundle: refused\ntargets: [sm_80]\nkernels:\n  - {{family: attention, {params}}}\n")
            done = subprocess.run([sys.argv[1], "generate", config, "--output", folder], capture_output=True, text=True)
            fine = done.returncode == 1 and words in done.stderr and os.listdir(folder) == ["refused.yaml"]
        if not fine:
            print(f"WRONG {params}: exit {done.returncode}, {done.stderr}")
        wrong += not fine
    print(f"{len(REFUSED) - wrong} of {len(REFUSED)} refused")
    sys.exit(wrong != 0)


main()
