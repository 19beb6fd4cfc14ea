#!/usr/bin/env python3
"""Tests ptxas.py with a script in place of ptxas: it reports spills, different and missing rows, rows of another ptxas, and images
that ptxas rejects. Without ptxas it reports that it was skipped.

usage: check_ptxas.py KILN
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PTXAS = """#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi
cp "$CUBIN" "$4"
echo "ptxas info    : Compiling entry function 'k' for 'sm'
    8 bytes stack frame, $STORED bytes spill stores, $LOADED bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 360 bytes cmem[0]" >&2
exit $STATUS
"""
TARGET, VARIANT = "sm_75", "nf4_scale/type=f32,group=64"
CONFIG = "bundle: one\ntargets: [sm_75]\nkernels:\n  - {family: nf4_scale, type: [f32, f16]}\n"
HEADING = "variant\ttarget\tregisters\tstack\tcode\timages\t"
SAME = "{variant}\t{target}\t40\t8\t640\told"
CASES = [  # bytes stored and loaded, exit status; version and row; exit status of ptxas.py; words of its output
    (0, 0, 0, "V13.0.88", SAME, 0, "1 assemblies: 0 failed; at most 40 registers"),
    (0, 0, 0, "V13.0.88", SAME, 0, "ok {target} 40 1024 0 8 640 {variant}"),
    (0, 0, 0, "V13.0.88", "{variant}\t{target}\t39\t8\t640\told", 1, "are (40, 8, 640), the row has (39, 8, 640)"),
    (0, 0, 0, "V13.0.88", "{variant}\tsm_80\t40\t8\t640\told", 1, "are (40, 8, 640), the row has None"),
    (0, 0, 0, "V12.9.12", "{variant}\t{target}\t39\t8\t640\told", 0, "SKIPPED: rows of ptxas V12.9.12, this is V13.0.88: only spills"),
    (16, 8, 0, "V12.9.12", SAME, 1, "spills (16, 8) bytes stored and loaded"),
    (16, 8, 0, "V13.0.88", SAME, 1, "spills (16, 8) bytes stored and loaded"),
    (0, 0, 1, "V13.0.88", SAME, 1, "1 failed; at most 0 registers"),
]


def cubin():
    """An ELF file with the sections .shstrtab and .text.k, of 640 bytes."""
    names = b"\0.shstrtab\0.text.k\0"
    header = struct.pack("<16s2HI3QI6H", b"\x7fELF\2\1\1", 2, 190, 1, 0, 0, 64 + len(names), 0, 64, 0, 0, 64, 2, 0)
    sections = [struct.pack("<2I4Q2I2Q", name, kind, 0, 0, 64, size, 0, 0, 1, 0) for name, kind, size in ((1, 3, len(names)), (11, 1, 640))]
    return header + names + b"".join(sections)


def main():
    kiln = sys.argv[1]
    script = str(pathlib.Path(__file__).resolve().parent / "ptxas.py")
    names, failed = {"variant": VARIANT, "target": TARGET}, 0
    with tempfile.TemporaryDirectory() as folder:
        config, ptxas, binary, rows = (pathlib.Path(folder) / name for name in ("one.yaml", "ptxas", "k.cubin", "rows.tsv"))
        config.write_text(CONFIG, encoding="utf-8")
        binary.write_bytes(cubin())
        command = [sys.executable, "-B", script, "check", kiln, str(config), "--rows", str(rows), "--filter", "type=f32"]
        bare = subprocess.run(command, capture_output=True, text=True, env={"PATH": folder})
        outcomes = [(bare, 77, "SKIPPED: no ptxas on the PATH")]
        ptxas.write_text(PTXAS, encoding="utf-8")
        ptxas.chmod(0o755)
        for stored, loaded, status, version, row, wanted, words in CASES:
            rows.write_text(HEADING + version + "\n" + row.format(**names) + "\n", encoding="utf-8")
            environment = {"PATH": f"{folder}:{os.environ['PATH']}", "CUBIN": str(binary), "STORED": str(stored),
                           "LOADED": str(loaded), "STATUS": str(status)}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            outcomes.append((done, wanted, words.format(**names)))
        # --changed assembles only variants whose images differ from their row's
        environment.update(STORED="0", LOADED="0", STATUS="0")
        for verb, option, change, words in (("rebase", "--filter=type=f32", "", "1 assemblies: 0 failed"),
                                            ("check", "--changed", "", "0 assemblies"),
                                            ("check", "--changed", "0", "1 assemblies: 0 failed")):
            rows.write_text(rows.read_text(encoding="utf-8").replace("\t640\t", "\t640\t" + change), encoding="utf-8")
            command[3], command[8:] = verb, ["--filter", "type=f32", option]
            outcomes.append((subprocess.run(command, capture_output=True, text=True, env=environment), 0, words))
    for done, wanted, words in outcomes:
        good = done.returncode == wanted and words in " ".join(done.stdout.split())
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {words}" + ("" if good else f": {done.returncode}\n{done.stdout}{done.stderr}"))
    sys.exit(failed != 0)


main()
