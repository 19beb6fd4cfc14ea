#!/usr/bin/env python3
"""Assembles every variant of a configuration with ptxas, for each listed target: registers, shared bytes (static, and dynamic
per launch), stack bytes and code bytes. No variant may spill, except those that SPILLS lists.

usage: ptxas.py check  KILN CONFIG [--rows FILE] [--filter TEXT] [--changed]
       ptxas.py rebase KILN CONFIG --rows FILE
  check      prints a table; fails at a spill, and if registers, stack or code differ from the row in FILE. The rows are for one
             version of ptxas; with any other, only spills are checked
  rebase     rewrites the rows, if there is no spill
  --changed  leaves out variants whose rows have the hash of their images; with any other ptxas, assembles each image only for
             its own target and for the newest
Exits 77 if no ptxas is on the PATH.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROW = "{:4} {:8} {:>9} {:>7} {:>8} {:>6} {:>7}  {}"
HEADING = "variant\ttarget\tregisters\tstack\tcode\timages\t"


# Variants, targets, and the most bytes stored or loaded. For sm_103 ptxas 13.0 compiles linear's int8 tiles to 255 registers and
# spills; for sm_100 the same text takes 168 registers. The others spill for one target or a few; for the rest the same text fits.
# Those of nf4_gemm's strategy mma are loaded outside the loop, the others at most ten times among a trip's thousand instructions.
SPILLS = [(re.compile(variants), re.compile(targets), most) for variants, targets, most in (
    ("linear/.*x=s8,.*strategy=tiles", "sm_103", 168),
    ("linear/format=q4_k,.*x=s8,.*epilogue=bias_residual,strategy=tiles,.*tile_m=128", "sm_103", 200),
    ("linear/format=q4_k,.*activation=half,.*epilogue=bias_residual,strategy=tiles,.*tile_m=64,tile_n=128", "sm_75", 32),
    ("linear/format=q4_k,.*activation=half,.*epilogue=bias_residual,strategy=tiles,.*tile_m=128,tile_n=256", "sm_90", 60),
    ("linear/format=nf4,group=128,.*x=bf16,.*strategy=mma,.*tile_m=16,tile_n=64,k_warps=2,stages=2,split_k=2", "sm_12[01]", 8),
    ("fp4_gemm/format=mxfp4,x=bf16,.*strategy=mma,tile_m=128,", "sm_90", 20),
    ("nf4_gemm_transposed/a=f16,.*strategy=mma,tile_m=32,k_warps=8,split_k=32,.*table=aligned", "sm_110f?", 4),
    ("nf4_gemm/a=f16,.*strategy=mma,tile_m=1,tile_n=16,k_warps=8,table=compact", "sm_75", 8),
    ("nf4_gemm/.*strategy=mma,tile_m=32,tile_n=64,k_warps=8,.*stages=2", "sm_(87|90|100|103|110)", 4),
    ("nf4_gemm/.*scale_type=nested,rows=strided,strategy=tiles,tile_m=128,tile_n=128,.*stages=4", "sm_8[07]", 32))]


class Assembly(NamedTuple):
    variant: str
    target: str
    images: str    # a hash of the variant's images
    held: tuple    # a row's numbers: registers, stack bytes, code bytes
    static: int    # bytes of static shared memory
    dynamic: int   # most dynamic shared memory of a launch
    spills: tuple  # bytes stored, loaded
    complaint: str # ptxas' errors


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def code_bytes(cubin):
    """Returns the size of .text.ENTRY in a 64-bit ELF file."""
    start, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    text = sections[names][4]
    return sum(s[5] for s in sections if cubin.startswith(b".text.", text + s[0]))


def assemble(kiln, config, folder, key, variant, target, images, dynamic):
    text, cubin = (pathlib.Path(folder) / f"{key}.{target}.{end}" for end in ("ptx", "cubin"))
    shown = subprocess.run([kiln, "show", config, variant, "--target", target], capture_output=True, text=True)
    text.write_text(shown.stdout)
    run = subprocess.run(["ptxas", "-v", f"-arch={target}", "-o", cubin, text], capture_output=True, text=True)
    said = run.stderr
    is_taken = shown.returncode == 0 and run.returncode == 0 and "bytes spill stores" in said
    held = (0, 0, 0)
    if is_taken:
        held = (number(r"Used (\d+) registers", said), number(r"(\d+) bytes stack frame", said), code_bytes(cubin.read_bytes()))
    for file in (text, cubin):
        file.unlink(missing_ok=True)
    return Assembly(variant, target, images, held, number(r"(\d+) bytes smem", said), dynamic,
                    (number(r"(\d+) bytes spill stores", said), number(r"(\d+) bytes spill loads", said)),
                    "" if is_taken else shown.stderr + run.stdout + said)


# ---- rows -----------------------------------------------------------------------------------------------------------

def version():
    return re.search(r"V[\d.]+", subprocess.run(["ptxas", "--version"], capture_output=True, text=True).stdout)[0]


def read_rows(path):
    """Returns {(variant, target): (held, images)}, or None if the rows are for another ptxas."""
    heading, *lines = path.read_text(encoding="utf-8").splitlines()
    if heading != HEADING + version():
        print(f"SKIPPED: rows of ptxas {heading.split()[-1]}, this is {version()}: only spills are looked for")
        return None
    rows = (line.split("\t") for line in lines)
    return {(variant, target): (tuple(map(int, held)), images) for variant, target, *held, images in rows}


def write_rows(path, assemblies):
    rows = sorted([a.variant, a.target, *map(str, a.held), a.images] for a in assemblies)
    path.write_text(HEADING + version() + "\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def fault(assembly, rows):
    """Returns the mistake as text, or an empty text."""
    if assembly.complaint:
        return assembly.complaint
    most = max((most for variants, targets, most in SPILLS
                if targets.fullmatch(assembly.target) and variants.match(assembly.variant)), default=0)
    if max(assembly.spills) > most:
        return f"spills {assembly.spills} bytes stored and loaded"
    row, _ = rows.get((assembly.variant, assembly.target), (None, "")) if rows is not None else (assembly.held, "")
    return "" if row == assembly.held else f"registers, stack and code are {assembly.held}, the row has {row}"


# ---- verbs ----------------------------------------------------------------------------------------------------------

def plan(options, folder, rows):
    """Returns (key, variant, target, images, dynamic shared bytes) for each assembly."""
    subprocess.run([options.kiln, "generate", options.config, "--output", folder], check=True)
    manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text(encoding="utf-8"))
    variants = {v["id"]: v for v in manifest["variants"]}
    listed = subprocess.run([options.kiln, "list", options.config], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        key, variant, targets = line.split()
        targets, images = targets.split(","), variants[variant]["images"]
        own = {image["target"] for image in images}
        # ptxas compiles an image of another target for sm_120f as for sm_120
        targets = [t for t in targets if t in own or t.rstrip("af") == t or t.rstrip("af") not in targets]
        digest = hashlib.sha256("".join(f"{i['target']} {i['xxh3_128']}\n" for i in images).encode()).hexdigest()[:16]
        ends = own | {targets[-1]}
        for target in targets if options.filter in variant else ():
            is_known = target not in ends if rows is None else rows.get((variant, target), ("", ""))[1] == digest
            if not options.changed or not is_known:
                yield key, variant, target, digest, variants[variant]["launch"]["max_shared_bytes"]


def print_table(assemblies, rows):
    faults = 0
    print(ROW.format("", "target", "registers", "static", "dynamic", "stack", "code", "variant"))
    for a in assemblies:
        words = fault(a, rows)
        faults += bool(words)
        registers, stack, code = a.held
        print(ROW.format("FAIL" if words else "ok", a.target, registers, a.static, a.dynamic, stack, code, a.variant))
        if words:
            print("     " + words.rstrip().replace("\n", "\n     "))
    print(f"{len(assemblies)} assemblies: {faults} failed; at most {max((a.held[0] for a in assemblies), default=0)} registers")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["check", "rebase"])
    parser.add_argument("kiln")
    parser.add_argument("config")
    parser.add_argument("--rows", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="variants whose id contains this")
    parser.add_argument("--changed", action="store_true")
    options = parser.parse_args()
    if not shutil.which("ptxas"):
        print("SKIPPED: no ptxas on the PATH")
        sys.exit(77)
    rows = read_rows(options.rows) if options.rows and options.verb == "check" else None
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(assemble, options.kiln, options.config, folder, *row) for row in plan(options, folder, rows)]
        assemblies = [job.result() for job in jobs]
    faults = print_table(assemblies, rows)
    if options.verb == "rebase" and not faults:
        write_rows(options.rows, assemblies)
    sys.exit(1 if faults or not (jobs or options.changed) else 0)


main()
