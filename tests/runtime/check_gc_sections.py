#!/usr/bin/env python3
"""Checks that an application that names one kernel links only that kernel.

usage: check_gc_sections.py SOURCE_DIR
"""
import pathlib
import sys
import tempfile

from compilers import c_compilers, run

FLAGS = ("-std=gnu11", "-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")
KEPT = (b".visible .entry axpy_f32(", b"axpy/type=f32", b".target sm_75\n", b".target sm_90\n")
DROPPED = (b".visible .entry axpy_f64(", b"axpy/type=f64", b"axpy_f64")


def main():
    source_dir = pathlib.Path(sys.argv[1])
    here = source_dir / "tests/runtime"
    sources = [here / "gc_one.c", here / "mini.c", *sorted((source_dir / "runtime").glob("*.c"))]
    failures = 0
    for compiler in c_compilers():
        with tempfile.TemporaryDirectory() as out:
            program = pathlib.Path(out) / "gc_one"
            run([compiler, *FLAGS, "-I", source_dir / "include", *sources, "-o", program, "-ldl"])
            image = program.read_bytes()
        for text in KEPT:
            if text not in image:
                failures += 1
                print(f"{compiler}: {text} is not in the program")
        for text in DROPPED:
            if text in image:
                failures += 1
                print(f"{compiler}: {text} is in the program, which does not use it")
    return 1 if failures else 0


sys.exit(main())
