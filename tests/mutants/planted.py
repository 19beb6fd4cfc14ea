#!/usr/bin/env python3
"""Plants mistakes in kernels' PTX that a draw of mutants once left alive: kiln-verify has to find each of them, with few inputs
at small sizes.

usage: planted.py KILN PLANT VERIFY CONFIG [VERIFY CONFIG]...

PLANT is the driver library of plant.c. A row names a bundle's variant, what of its text is replaced, which one of those, and
what has to be said.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

TARGET = "sm_80"
LAST, ALL = -1, None
WRONG = "elements are wrong"
FEW = "--max-elements 4096 --inputs 1"
LONG_SUMS = "--input one-sign --size k=32768"


class Plant(NamedTuple):
    what: str
    bundle: str
    variant: str  # a part of its id
    pattern: str
    becomes: str
    which: int | None  # of those that the pattern fits
    message: str = "elements are wrong|CUDA_ERROR"
    options: str = FEW


SPLIT = "strategy=mma,tile_m=32,tile_n=64,k_warps=4,table=compact,stages=2,split_k=2"
SHARED = "a=bf16,acc=f32,nibbles=low,strategy=mma,tile_m=32,tile_n=128,k_warps=2,table=compact,stages=2,split_k=0"
NESTED = "scale_type=nested,rows=strided,strategy=mma,tile_m=16,tile_n=128"
# Sums on tensor cores.
ONE, TWO, CODES = "format=q8_0,norm=none,activation=half,x=f16,y=f32,epilogue=none,matrices=2,scale=tensor,strategy=mma", \
    "format=q2_k,norm=none,activation=half,x=f16,y=f32,epilogue=bias_residual,strategy=mma,vectors=1,rows=2,chunk=65536,tile_m=16," \
    "tile_n=64,k_warps=2,stages=2,split_k=2", "format=q8_0,norm=none,activation=q8,x=s8,y=f32,epilogue=none,strategy=mma"
ADDITION = r"fma\.rn\.f32 (%f\d+), %f\d+, %f\d+, \1;"
TO_F16 = r"{ .reg .b16 %narrow; cvt.rn.f16.f32 %narrow, \1; cvt.f32.f16 \1, %narrow; }"
# A product of 16 rows of W in the loop's first trip, of the warps that have the first half of a stage.
PRODUCT = r"mma\.sync[^{]*\{%(.)(\d+), %.(\d+), %.(\d+), %.(\d+)\}[^\n]*\n(?=(?s:.*?)add\.u32 (%r\d+), \6, 512;)"


def leave_out(warps, nothing):
    sums = "".join(rf"@%is mov.b32 %\1\{i}, {nothing}; " for i in range(2, 6))
    return (r"\g<0>{ .reg .pred %is; .reg .b32 %at; mov.u32 %at, %tid.x; setp.eq.u32 %is, \6, 0; "
            rf"setp.lt.and.u32 %is, %at, {32 * warps}, %is; {sums}}}\n")


PLANTS = (
    Plant("tile counters are not 0 again", "gemm_mma_sample", SPLIT, r"\.inc\.u32 ([^;]*), [^,;]*;", r".add.u32 \1, 1;", 0),
    Plant("rows of C follow each other at once", "gemm_mma_sample", NESTED, r"\[param_c_stride\]", "[param_n]", 0,
          "elements are wrong|gap of out"),
    Plant("one row of a later round is cut", "gemm_mma_sample", SHARED, r"fma\.rn\.f32", "fma.rn.sat.f32", LAST),
    Plant("the next scales' second factors are others", "gemm_mma_sample", NESTED,
          r"(ld\.global\.nc\.f32 %f\d+, \[%rd\d+)\]", r"\1+-4]", LAST),
    Plant("a row of x is not copied in a later stage", "linear_sample",
          "format=q4_k,norm=none,activation=half,x=f16,y=f16,epilogue=none,strategy=mma,vectors=1,rows=2,chunk=65536,tile_m=8,"
          "tile_n=64,k_warps=2,stages=3", r"cp\.async\.cg\.shared\.global [^;]*;", "", LAST),
    Plant("a piece of W is not copied in a later stage", "linear_sample",
          "format=q8_0,norm=none,activation=half,x=f16,y=f16,epilogue=none,strategy=tiles,vectors=1,rows=2,chunk=65536,tile_m=64",
          r"cp\.async\.cg\.shared\.global [^;]*, 16;", "", LAST),
    Plant("thread blocks without rows go on", "linear_sample",
          "format=q5_1,norm=none,activation=exact,x=f32,y=f32,epilogue=none,strategy=simt,vectors=1,rows=2",
          r"@!%p\d+ bra IF_1_END;", "", 0),
    Plant("the last vector's size is not looked at", "q4k_sample",
          "norm=rms,x=f32,activation=q8,batch=6,y=f32,rows=1,chunk=65536",
          r"(min\.f32 (%f\d+), (%f\d+), )%f\d+;", r"\1\3;", LAST),
    Plant("rows of rotated Q follow each other at once", "default", "rope/type=bf16", r"\[param_out_row_stride\]",
          "[param_q_row_stride]", 0, "elements are wrong|gap of q_out"),
    Plant("sums are kept in f16", "linear_sample", ONE, ADDITION, rf"\g<0> {TO_F16}", ALL, WRONG, LONG_SUMS),
    Plant("sums of codes are kept in f16", "linear_q8_sample", CODES, ADDITION, rf"\g<0> {TO_F16}", ALL, WRONG, LONG_SUMS),
    Plant("one step of 16 is left out", "linear_sample", ONE, PRODUCT, leave_out(2, "0f00000000"), 0, WRONG, LONG_SUMS),
    Plant("one step of 32 codes is left out", "linear_q8_sample", CODES, PRODUCT, leave_out(1, "0x4B400000"), 0, WRONG, LONG_SUMS),
    Plant("a part of k is added in f16", "linear_sample", TWO, r"add\.rn\.f32 (%f\d+), \1, (%f\d+);",
          TO_F16.replace(r"\1", r"\2") + r" \g<0>", ALL, WRONG, LONG_SUMS),
)


def run(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)


def find_id(kiln, config, part):
    lines = run([kiln, "list", config]).stdout.splitlines()
    found = [word for line in lines for word in line.split() if part in word]
    if len(found) != 1:
        sys.exit(f"{config}: {len(found)} variants have '{part}' in their ids")
    return found[0]


def plant(p, text):
    found = list(re.finditer(p.pattern, text))
    if not found:
        sys.exit(f"{p.what}: nothing in the kernel fits {p.pattern}")
    for place in reversed(found) if p.which is ALL else [found[p.which]]:
        text = text[:place.start()] + place.expand(p.becomes) + text[place.end():]
    return text


def is_found(p, kiln, library, programs, folder):
    verify, config = programs[p.bundle]
    variant = find_id(kiln, config, p.variant)
    text = subprocess.run([kiln, "show", config, variant, "-t", TARGET], text=True, capture_output=True, check=True).stdout
    before, after = folder / "before.ptx", folder / "after.ptx"
    before.write_text(text, encoding="utf-8")
    after.write_text(plant(p, text), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    environment.update(KILN_EMU_DEVICE=TARGET, KILN_PLANT_BEFORE=str(before), KILN_PLANT_AFTER=str(after),
                       KILN_EMU_JUMPS="100000", KILN_EMU_VERBOSE="0")
    done = run([verify, "--driver", library, "--filter", variant, *p.options.split()], env=environment)
    is_good = done.returncode == 1 and re.search(p.message, done.stdout)
    print(f"{'ok  ' if is_good else 'FAIL'} {p.what}")
    if not is_good:
        print(done.stdout)
    return is_good


def main():
    kiln, library, *rest = sys.argv[1:]
    programs = {pathlib.Path(config).stem: (verify, config) for verify, config in zip(rest[::2], rest[1::2])}
    with tempfile.TemporaryDirectory() as folder:
        found = [is_found(p, kiln, library, programs, pathlib.Path(folder)) for p in PLANTS]
    sys.exit(not all(found))


main()
