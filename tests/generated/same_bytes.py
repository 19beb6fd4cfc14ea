#!/usr/bin/env python3
"""The generator's output for a configuration is byte for byte what is committed beside it.

usage: same_bytes.py folder|locale|environment|compilers KILN CONFIG [--work DIR]
  folder       from another working folder, under another relative name of the configuration
  locale       in every installed locale that is not C (de_DE.UTF-8 where it is there), and in C
  environment  with an empty environment, and with a large one
  compilers    by generators that gcc and clang built here and now (a compiler that is missing is named, one must be there)
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SUFFIXES = (".c", ".h", ".json")


def generate(kiln, config, environment=None, cwd=None):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([kiln, "generate", config, "--output", out], check=True, env=environment, cwd=cwd)
        return {p.name: p.read_bytes() for p in pathlib.Path(out).iterdir() if p.suffix in SUFFIXES}


def committed(config, names):
    return {name: (config.parent / name).read_bytes() for name in names}


def compare(what, made, config):
    kept = committed(config, made)
    different = [name for name in sorted(made) if made[name] != kept[name]]
    total = sum(map(len, made.values()))
    print(f"{what}: {len(made)} files, {total} bytes, " + (f"DIFFERENT: {' '.join(different)}" if different else "the same"))
    return not different and len(made) == len(SUFFIXES)


def folder(kiln, config, _):
    with tempfile.TemporaryDirectory() as other:
        copy = pathlib.Path(other) / "elsewhere.d" / config.name
        copy.parent.mkdir()
        shutil.copy(config, copy)
        yield compare("from its own folder", generate(kiln, config.name, cwd=config.parent), config)
        yield compare("from a copy elsewhere", generate(kiln, f"elsewhere.d/{config.name}", cwd=other), config)
        yield compare("by its absolute name", generate(kiln, str(config), cwd="/"), config)


def locale(kiln, config, _):
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    for name in sorted({"C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", *installed}):
        yield compare(f"LC_ALL={name}", generate(kiln, str(config), {"LC_ALL": name, "LANG": name}), config)


def environment(kiln, config, _):
    yield compare("empty environment", generate(kiln, str(config), {}), config)
    large = {f"VARIABLE_{i}": "x" * 500 for i in range(200)}
    yield compare("large environment", generate(kiln, str(config), large | {"SOURCE_DATE_EPOCH": "1", "TZ": "Asia/Tokyo"}), config)


def compilers(kiln, config, work):
    source = pathlib.Path(__file__).resolve().parents[2]
    found = [c for c in ("gcc", "clang") if shutil.which(c)]
    for missing in {"gcc", "clang"} - set(found):
        print(f"{missing}: not on this machine, its build is SKIPPED")
    for compiler in found:
        build = pathlib.Path(work) / compiler
        quiet = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}",
                        "-DCMAKE_BUILD_TYPE=Release", "-DKILN_TESTS=OFF", "-DKILN_TOOLS=OFF"], **quiet)
        subprocess.run(["cmake", "--build", build, "--target", "kiln", "-j2"], **quiet)
        yield compare(f"built by {compiler}", generate(str(build / "bin" / "kiln"), str(config)), config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=["folder", "locale", "environment", "compilers"])
    parser.add_argument("kiln")
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--work")
    options = parser.parse_args()
    results = list(globals()[options.case](os.path.abspath(options.kiln), options.config.resolve(), options.work))
    sys.exit(0 if results and all(results) else 1)


main()
