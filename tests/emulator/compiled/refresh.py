#!/usr/bin/env python3
"""Compiles source/*.c to the PTX in ptx/, which is committed beside its sources.

usage: refresh.py make     writes ptx/ again (needs nvcc 13 and clang)
       refresh.py check    fails if a file of ptx/ was made from other sources or another kept.txt
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
KEPT, LEFT_OUT = 'extern "C" __global__', "static __device__ __attribute__((unused))"
HEADERS = {"nvcc": ["device.h", "arguments.h", "device_nvcc.h"], "clang": ["device.h", "arguments.h", "device_clang.h"]}

# kind: (compiler, command)
KINDS = {
    "nvcc-sm_75": ("nvcc", f"{NVCC} -arch=compute_75"),
    "nvcc-sm_90": ("nvcc", f"{NVCC} -arch=compute_90"),
    "nvcc-lineinfo": ("nvcc", f"{NVCC} -arch=compute_90 -lineinfo"),
    "nvcc-debug": ("nvcc", f"{NVCC} -arch=compute_75 -G"),
    "clang-O2": ("clang", f"{CLANG} --cuda-gpu-arch=sm_80 -O2"),
    "clang-O0": ("clang", f"{CLANG} --cuda-gpu-arch=sm_80 -O0"),
}


def kept():
    """Returns {(subject, kind): names of its functions} from kept.txt: after its comment, each paragraph is a file."""
    paragraphs = re.split(r"\n\n+", (HERE / "kept.txt").read_text().rstrip())[1:]
    words = [paragraph.split() for paragraph in paragraphs]
    return {tuple(first.split(".")): names for first, *names in words}


def digest(subject, kind, names):
    """Returns a hash of the source, its headers and the names of the kept functions."""
    sha = hashlib.sha256(" ".join(names).encode())
    for name in [f"{subject}.c"] + HEADERS[KINDS[kind][0]]:
        sha.update((HERE / "source" / name).read_bytes())
    return sha.hexdigest()[:32]


def version(compiler):
    lines = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    return lines[0] if compiler == "clang" else next(line for line in lines if "release" in line)


def header(subject, kind, names):
    """Returns the lines that check compares: all of the header except the compiler's version."""
    return (f"// Made by refresh_compiled from {subject}.c, its headers and kept.txt, sha256 {digest(subject, kind, names)}\n"
            f"// {KINDS[kind][1]} {subject}.c\n")


def compile_one(subject, kind, names, folder):
    compiler, command = KINDS[kind]
    functions = re.findall(r"^F\(\w+, (\w+)", (HERE / "functions.def").read_text(), re.M)
    (folder / "kept.h").write_text("".join(f"#define KEPT_{f} {KEPT if f in names else LEFT_OUT}\n" for f in functions))
    out = folder / "out.ptx"
    subprocess.run(command.split() + [f"{subject}.c", "-o", str(out)], cwd=folder, check=True)
    text = re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", out.read_text())  # file names without this machine's folders
    return f"{header(subject, kind, names)}// {version(compiler)}\n{text}"


def wanted():
    return {f"{subject}.{kind}.ptx": (subject, kind, names) for (subject, kind), names in kept().items()}


def make():
    missing = [c for c in HEADERS if not shutil.which(c)]
    if missing:
        sys.exit(f"{' and '.join(missing)} cannot be found: making the compiled functions needs both compilers")
    folder = pathlib.Path(tempfile.gettempdir()) / "kiln_compiled"  # the same on every machine, because debug information has it
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "source", folder)
    for old in (HERE / "ptx").glob("*.ptx"):
        old.unlink()
    files = wanted()
    for name, file in files.items():
        (HERE / "ptx" / name).write_text(compile_one(*file, folder))
    shutil.rmtree(folder)
    print(f"{len(files)} files made: read the difference before committing it")


def check():
    names, there = wanted(), {p.name for p in (HERE / "ptx").glob("*.ptx")}
    wrong = [f"{name}: {'is missing' if name in names else 'is not on the list'}" for name in sorted(there ^ set(names))]
    for name in sorted(there & set(names)):
        if not (HERE / "ptx" / name).read_text().startswith(header(*names[name])):
            wrong.append(f"{name}: was not made from today's source, headers, functions and command")
    if wrong:
        sys.exit("\n".join(wrong) + "\nninja refresh_compiled makes them anew")
    print(f"{len(names)} files are made from today's sources")


if sys.argv[1:] not in (["make"], ["check"]):
    sys.exit(__doc__)
make() if sys.argv[1] == "make" else check()
