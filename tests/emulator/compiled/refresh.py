#!/usr/bin/env python3
"""The compiled functions: PTX kept beside the sources that it was made from.

usage: refresh.py make     compile source/*.c anew (needs nvcc 13 and clang)
       refresh.py check    is every file of ptx/ made from today's sources, by today's list?
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NVCC = "nvcc --ptx -x cu --fmad=false -std=c++17"
CLANG = ("clang -S -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version -ffp-contract=off"
         " -Xclang -target-feature -Xclang +ptx72 -Xclang -fnative-half-type -Xclang -fallow-half-arguments-and-returns")
HEADERS = {"nvcc": ["device.h", "arguments.h", "device_nvcc.h"], "clang": ["device.h", "arguments.h", "device_clang.h"]}

# kind: (compiler, command, subjects)
SUBJECTS = "integer control memory reductions scans atomics warp float double half approximate".split()
KINDS = {
    "nvcc-sm_75": ("nvcc", f"{NVCC} -arch=compute_75", ["library"]),
    "nvcc-sm_90": ("nvcc", f"{NVCC} -arch=compute_90 -lineinfo", SUBJECTS + ["redux", "packed"]),
    "nvcc-debug": ("nvcc", f"{NVCC} -arch=compute_75 -G", ["warp", "approximate"]),
    "clang-O2": ("clang", f"{CLANG} --cuda-gpu-arch=sm_80 -O2", SUBJECTS + ["redux"]),
    "clang-O0": ("clang", f"{CLANG} --cuda-gpu-arch=sm_80 -O0", ["control", "memory"]),
}


def digest(subject, compiler):
    """The hash of the source and of what it includes."""
    sha = hashlib.sha256()
    for name in [f"{subject}.c"] + HEADERS[compiler]:
        sha.update((HERE / "source" / name).read_bytes())
    return sha.hexdigest()[:32]


def version(compiler):
    lines = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    return lines[0] if compiler == "clang" else next(line for line in lines if "release" in line)


def header(subject, kind):
    """The lines that check compares: all but the compiler's version."""
    compiler, command, _ = KINDS[kind]
    return (f"// Made by refresh_compiled from {subject}.c and its headers, sha256 {digest(subject, compiler)}\n"
            f"// {command} {subject}.c\n")


def wanted():
    return {f"{s}.{kind}.ptx": (s, kind) for kind, (_, _, subjects) in KINDS.items() for s in subjects}


def compile_one(subject, kind, folder):
    compiler, command, _ = KINDS[kind]
    out = folder / "out.ptx"
    subprocess.run(command.split() + [f"{subject}.c", "-o", str(out)], cwd=folder, check=True)
    text = re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", out.read_text())  # names, not places of this machine
    first, rest = header(subject, kind).splitlines()
    return f"{first}\n{rest}\n// {version(compiler)}\n{text}"


def make():
    missing = [c for c in HEADERS if not shutil.which(c)]
    if missing:
        sys.exit(f"{' and '.join(missing)} cannot be found: the compiled functions need both compilers to be made anew")
    folder = pathlib.Path(tempfile.gettempdir()) / "kiln_compiled"  # debug information holds it: the same everywhere
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "source", folder)
    for old in (HERE / "ptx").glob("*.ptx"):
        old.unlink()
    for name, (subject, kind) in wanted().items():
        (HERE / "ptx" / name).write_text(compile_one(subject, kind, folder))
    shutil.rmtree(folder)
    print(f"{len(wanted())} files made: read the difference before committing it")


def check():
    names, there = wanted(), {p.name for p in (HERE / "ptx").glob("*.ptx")}
    wrong = [f"{name}: {'is missing' if name in names else 'is not on the list'}" for name in sorted(there ^ set(names))]
    for name in sorted(there & set(names)):
        if not (HERE / "ptx" / name).read_text().startswith(header(*names[name])):
            wrong.append(f"{name}: was not made from today's source, headers and command")
    if wrong:
        sys.exit("\n".join(wrong) + "\nninja refresh_compiled makes them anew")
    print(f"{len(names)} files are made from today's sources")


if sys.argv[1:] not in (["make"], ["check"]):
    sys.exit(__doc__)
make() if sys.argv[1] == "make" else check()
