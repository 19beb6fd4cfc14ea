"""Finds the compilers for a script's tests: gcc and clang, if installed; without KILN_TESTS_FULL=1 only the first."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
IS_FULL = os.environ.get("KILN_TESTS_FULL") == "1"


def c_compilers():
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not found:
        print("SKIPPED: neither gcc nor clang is installed")
        sys.exit(SKIPPED)
    return found if IS_FULL else found[:1]


def cxx_compiler(c_compiler):
    """Returns g++ for gcc and clang++ for clang; None if it is not installed."""
    name = {"gcc": "g++", "clang": "clang++"}[c_compiler]
    return name if shutil.which(name) else None


def run(command):
    """Returns the command's output. A failing command ends the test."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print("FAILED:", " ".join(map(str, command)), done.stdout, sep="\n")
        sys.exit(1)
    return done.stdout


def compile_runtime(compiler, level, source_dir, out, *more):
    """Compiles the runtime's objects into the folder `out`, with the flags of its CMakeLists.txt."""
    objects = []
    for source in sorted((source_dir / "runtime").glob("*.c")):
        objects.append(out / (source.stem + ".o"))
        run([compiler, "-std=gnu11", level, "-fPIC", "-ffunction-sections", "-fdata-sections",
             "-fno-asynchronous-unwind-tables", *more, "-I", source_dir / "include", "-c", source, "-o", objects[-1]])
    return objects
