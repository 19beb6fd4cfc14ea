#!/usr/bin/env python3
"""ptxas.py tells a spill, a spill that is known, one that is known and gone, and an image that ptxas refuses; by a ptxas
that is a script. Without one it says that it was skipped.

usage: check_ptxas.py KILN
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PTXAS = """#!/bin/sh
echo "ptxas info    : Compiling entry function 'k' for 'sm'
    0 bytes stack frame, $STORED bytes spill stores, $LOADED bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 360 bytes cmem[0]" >&2
exit $STATUS
"""
TARGET, VARIANT = "sm_75", "nf4_scale/type=f32,group=64"
CONFIG = "bundle: one\ntargets: [sm_75]\nkernels:\n  - {family: nf4_scale, type: [f32, f16]}\n"
CASES = [  # bytes stored, loaded, exit status; known; exit status of ptxas.py; words
    (0, 0, 0, "", 0, "1 assemblies: 1 without a spill, 0 with spills that are known, 0 failed; at most 40 registers"),
    (0, 0, 0, "", 0, "ok {target} 40 1024 0 0 0 {variant}"),
    (16, 8, 0, "", 1, "spills (16, 8), expected (0, 0) bytes stored and loaded"),
    (16, 8, 0, "{variant} {target} 16 8 one register short", 0, "one register short"),
    (16, 12, 0, "{variant} {target} 16 8 one register short", 1, "spills (16, 12), expected (16, 8)"),
    (0, 0, 0, "{variant} {target} 16 8 one register short", 1, "spills (0, 0), expected (16, 8)"),
    (0, 0, 1, "", 1, "1 failed; at most 0 registers"),
]


def main():
    kiln = sys.argv[1]
    script = str(pathlib.Path(__file__).resolve().parent / "ptxas.py")
    names, failed = {"variant": VARIANT, "target": TARGET}, 0
    with tempfile.TemporaryDirectory() as folder:
        config, ptxas, known = (pathlib.Path(folder) / name for name in ("one.yaml", "ptxas", "known.txt"))
        config.write_text(CONFIG, encoding="utf-8")
        known.write_text("", encoding="utf-8")
        command = [sys.executable, "-B", script, kiln, str(config), "--exceptions", str(known), "--filter", "type=f32"]
        bare = subprocess.run(command, capture_output=True, text=True, env={"PATH": folder})
        outcomes = [(bare, 77, "SKIPPED: no ptxas on the PATH")]
        ptxas.write_text(PTXAS, encoding="utf-8")
        ptxas.chmod(0o755)
        for stored, loaded, status, row, wanted, words in CASES:
            known.write_text("# comment\n" + row.format(**names), encoding="utf-8")
            environment = {"PATH": f"{folder}:{os.environ['PATH']}", "STORED": str(stored), "LOADED": str(loaded),
                           "STATUS": str(status)}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            outcomes.append((done, wanted, words.format(**names)))
    for done, wanted, words in outcomes:
        good = done.returncode == wanted and words in " ".join(done.stdout.split())
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {words}" + ("" if good else f": {done.returncode}\n{done.stdout}{done.stderr}"))
    sys.exit(failed != 0)


main()
